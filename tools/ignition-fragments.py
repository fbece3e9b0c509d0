#!/usr/bin/python3
"""Writes a fragment for Ignition's base.platform.d/ for each platform, from the modules: FOLDER/NAME/50-homeport.ign.

Ignition merges the fragment of the platform that it runs on under the user's config, so all of it can be
overridden there: `make install-ignition` puts them into an image.  They have no `Platform=`: that would let the
platform in where a machine's own server is away.  The name goes to the units that ask the platform anyhow.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "agent"))

from homeport.core.platforms import PLATFORMS, Platform
from homeport.core.platforms.attributes import ATTRIBUTES, HOSTNAMES

VERSION = "3.0.0"  # of Ignition's specification: the oldest that any Ignition 2 reads
FILE = "50-homeport.ign"
# Names of Ignition's for what is another platform here; and what Ignition has no name for.
MORE = {"azure": ("azurestack",)}
NOT_IGNITIONS = ("nocloud",)
PEERS = ("nm-cloud-setup.service", "nm-cloud-setup.timer")


def fragments() -> dict[str, dict[str, Any]]:
    """Ignition's name of a platform -> its fragment."""
    return {name: fragment(platform, name) for platform in PLATFORMS if platform.name not in NOT_IGNITIONS
            for name in (platform.name, *MORE.get(platform.name, ()))}


def fragment(platform: Platform, name: str) -> dict[str, Any]:
    units = [enabled("homeport.service"), enabled("homeport-refresh.service")]
    if platform.reconciles:
        # Addresses come and go while the machine runs; and two programs must not configure them.
        units += [enabled("homeport-refresh.timer"), *(masked(peer) for peer in PEERS)]
    if has_hostname(platform):
        units.append(told("homeport-hostname.service", name))
    if platform.check_in:
        afterburns = "afterburn-firstboot-checkin.service" if platform.check_in.once else "afterburn-checkin.service"
        units += [told("homeport-check-in.service", name), masked(afterburns)]
    return {"ignition": {"version": VERSION}, "systemd": {"units": units}}


def has_hostname(platform: Platform) -> bool:
    return platform.name in HOSTNAMES or not {"HOSTNAME", "LOCAL_HOSTNAME"}.isdisjoint(
        ATTRIBUTES.get(platform.name, {}))


def enabled(unit: str) -> dict[str, Any]:
    return {"name": unit, "enabled": True}


def masked(unit: str) -> dict[str, Any]:
    return {"name": unit, "mask": True}


def told(unit: str, name: str) -> dict[str, Any]:
    """Enabled, and told which platform this is."""
    contents = f'[Service]\nEnvironment="HOMEPORT_OPTIONS=--platform {name}"\n'
    return {**enabled(unit), "dropins": [{"name": "10-platform.conf", "contents": contents}]}


def write(folder: Path) -> None:
    for name, content in fragments().items():
        file = folder / name / FILE
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        file.chmod(0o644)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FOLDER")
    write(Path(sys.argv[1]))
