"""The embedded assignment server: pools and registrations from a folder, who has which address in SQLite.

What it reads is what the operator of an Elemental fleet has; what it speaks is Elemental's registration protocol
and plain HTTP. Never part of the agent's zipapp.
"""
