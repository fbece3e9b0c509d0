#!/usr/bin/python3
"""Prints the homeport.conf that is shipped: every option with its help, commented out at its default."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "agent"))

from homeport.settings import default_file_text

sys.stdout.write(default_file_text())
