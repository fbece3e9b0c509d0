"""The version, and the commit that `mkzipapp.py` puts beside it when it packs."""

from __future__ import annotations

VERSION = "0.1.0"

try:
    from homeport._build import COMMIT as COMMIT
    from homeport._build import COMMIT_TIME as COMMIT_TIME
except ImportError:  # the tree itself, not a zipapp
    COMMIT, COMMIT_TIME = "tree", 0
