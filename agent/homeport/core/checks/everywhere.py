"""Checks of any string anywhere, in policies too: control characters, masked secrets, scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from homeport.core.checks.reading import complain, section
from homeport.core.checks.view import View
from homeport.core.complaint import Complaint, Path
from homeport.core.showing import show

MASK = "<_password_hid_by_nmstate>"
_SCRIPTS = ("post-activation", "post-deactivation")


def harmful_strings(view: View) -> Iterator[Complaint]:
    """No string may hold a control character: in a keyfile a line end in a description begins a new section.

    Nor be what `nmstatectl show` prints instead of a password; fed back, it would become the password.
    """
    for path, value in view.strings:
        if value == MASK:
            yield complain(path, "the mask that nmstate prints instead of a secret", "the secret itself")
        # Scripts have lines; whether they are allowed at all is another check.
        if not value.isprintable() and not (path and path[-1] in _SCRIPTS and "dispatch" in path):
            bad = next((c for c in value if ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u2028\u2029"), "")
            if bad:
                yield complain(path, f"a control character ({bad!a}) in {show(value)}", "text on one line")


def dispatch_scripts(view: View) -> Iterator[Complaint]:
    """Scripts from the network run as root whenever the interface comes up or goes down."""
    for state, at in _states(view.config):
        interfaces = state.get("interfaces")
        for index, entry in enumerate(interfaces if isinstance(interfaces, list) else []):
            scripts = section(section(entry).get("dispatch"))
            if any(scripts.get(key) for key in _SCRIPTS) and section(entry).get("state") != "absent":
                yield complain((*at, "interfaces", index, "dispatch"), "scripts that would run as root",
                               "no scripts, or AllowDispatch=yes in homeport.conf")


def _states(config: Mapping[str, object]) -> Iterator[tuple[Mapping[str, object], Path]]:
    yield config, ()
    for key in ("desired", "desiredState"):
        yield section(config.get(key)), (key,)
