"""How metadata are asked for: over HTTP, from a drive, from VMware's tools, from a folder where they were saved.

Each module has hands for one kind of way (`core/platforms/shape.py`) and knows no platform.
"""
