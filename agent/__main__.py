"""What Python starts in the zipapp, and in this folder (`python3 -I agent`): the agent."""

import sys

from homeport.__main__ import main

sys.exit(main())
