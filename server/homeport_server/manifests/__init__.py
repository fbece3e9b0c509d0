"""What an operator writes, read: pools, registrations and inventories, as Elemental and Cluster API have them.

Pure but for `folder.py`. Everything wrong is said at once, with file, path and reason.
"""
