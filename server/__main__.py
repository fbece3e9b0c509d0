"""`python3 -I server`: the assignment server of this tree. It shares homeport's core with the agent beside it."""

import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "agent"))

from homeport_server.cli import main

sys.exit(main(sys.argv[1:]))
