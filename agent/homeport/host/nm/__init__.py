"""Parts of `host/networkmanager.py`: the bus and the values."""
