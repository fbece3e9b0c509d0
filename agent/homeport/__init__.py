"""homeport: every machine finds its home port.

A oneshot boot agent: it works out which machine it runs on, fetches the network configuration that
machine was assigned, puts it in force, proves that it works, and keeps it.  `boot.py` tells the story.
"""
