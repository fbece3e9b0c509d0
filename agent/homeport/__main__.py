"""`python3 -m homeport`, and what the zipapp starts."""

from __future__ import annotations

import gc
import sys


def main() -> int:
    # The unit's own command line, and nothing else: the boot on which nothing has changed.
    if sys.argv[1:] in (["boot"], ["boot", "--stage", "host"], ["boot", "--stage=host"]):
        from homeport.fastpath import still_in_force
        if still_in_force():
            return 0
    # A run is over in a second, and nearly all it makes are modules: looking for garbage among those is a tenth
    # of a boot's processor time. Rarely instead of never, for a run that retries for minutes.
    gc.set_threshold(100_000, 20, 100)
    from homeport import cli
    return cli.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
