"""A settings file: unusable is said once and for all faults, and a boot goes on without it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from homeport.errors import SettingsError
from homeport.settings import FILES, OPTIONS, read_settings

WORDS = (*(f"{option.key}=" for option in OPTIONS), *(option.name for option in OPTIONS), "[Homeport]\n", "[Other]\n",
         "yes", "120s", "2min", "infinity", "https://cfg.example/{uuid}.yaml", "/a.yaml", "# ", ";", "\n", '"', "ms")
SEEDS = (b"[Homeport]\nConfig=https://cfg.example/{uuid}.yaml\nCONFIG=/a.yaml\nnic_wait = 1min 30s\nrefresh=no\n"
         b"Ca=/etc/a.pem /etc/b.pem\nProxy=http://proxy.example:3128\nSources=file url\n[Other]\nMode=x\n",
         b"Confg=/a.yaml\nMode=actve\nDeadline=0\nIdentity=uuid:1\nca=\n# Mode=reset\nMode=\"active\"\n")

_root = tempfile.TemporaryDirectory(prefix="homeport-fuzz-")
_file = Path(_root.name, FILES[1])
_file.parent.mkdir(parents=True)


def check(data: bytes) -> None:
    _file.write_bytes(data)
    # Whatever stands there, a boot has its settings; said is every fault, in words for a console.
    lenient = read_settings(_root.name, lenient=True)
    assert all(warning.isprintable() for warning in lenient.warnings), lenient.warnings
    assert lenient.deadline < float("inf")
    try:
        strict = read_settings(_root.name)
    except SettingsError as error:
        assert error.message.isprintable(), ascii(error.message)
        assert len(lenient.warnings) > 0
    else:
        assert vars(strict) == vars(lenient)
