"""The version, and the commit that `mkzipapp.py` puts beside it when it packs."""

from __future__ import annotations

VERSION = "0.1.0"

try:
    from homeport._build import COMMIT as COMMIT
except ImportError:  # the tree itself, not a zipapp
    COMMIT = "tree"
