"""The server on the network: its door, its two protocols, its limits."""
