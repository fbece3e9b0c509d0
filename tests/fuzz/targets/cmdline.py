"""The kernel command line, which anyone with a boot menu can write."""

from __future__ import annotations

from contextlib import suppress

from homeport.core.cmdline import homeport_arguments, parse, quote
from homeport.core.facts import Smbios
from homeport.core.mode import find_mode
from homeport.core.platforms.recognition import recognise
from homeport.errors import SettingsError

WORDS = ('homeport.', 'homeport.mode=', 'homeport.config="', "elemental.mode=", "recovery", "CDLABEL", '"', " ",
         "ds=nocloud;s=http://", "__dmi.system-uuid__", "ignition.platform.id=")

SEEDS = (b'BOOT_IMAGE=/vmlinuz root="LABEL=a b" ro quiet homeport.config=https://cfg.example/{uuid}.yaml '
         b'homeport.nic_wait=5s "homeport.identity=serial:S 7" homeport.refresh elemental.mode=passive',)


def check(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")  # as /proc/cmdline is read
    arguments = parse(text)
    assert all(isinstance(name, str) for name, _value in arguments)
    for name, value in homeport_arguments(text).items():
        assert name == name.lower() and "_" not in name and isinstance(value, str)
    mode, reason = find_mode(None, text, ())
    assert mode and reason
    with suppress(SettingsError):
        for candidate in recognise("auto", text, Smbios(serial=text, uuid="0-1"), ("cidata",)):
            assert candidate.reason
    # A word without quotes of its own comes back from the command line as it was put there.
    word = text.replace('"', "").replace("\0", " ")
    if word and "=" not in word:
        assert parse(f"quiet {quote(word)} ro")[1:-1] == [(word, None)]
