#!/usr/bin/python3
"""Writes the table of platforms into docs/platforms.md, between its `begin` and its `end`, from their modules."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "agent"))

from homeport.core.platformnames import ALIASES
from homeport.core.platforms import PLATFORMS, Platform
from homeport.core.platforms.shape import Drive, Service, Way

PAGE = Path(__file__).resolve().parents[1] / "docs" / "platforms.md"
BEGIN, END = "<!-- begin -->\n", "<!-- end -->\n"
HEAD = ("| platform | name | known by | asked at | what is read | what is configured | what is not |",
        "|---|---|---|---|---|---|---|")
FIELDS = {"manufacturer": "system vendor", "product": "product name", "chassis_asset_tag": "chassis asset tag",
          "serial": "serial number", "family": "family"}


def table() -> str:
    return "".join(f"{line}\n" for line in (*HEAD, *map(row, PLATFORMS)))


def row(platform: Platform) -> str:
    names = ", ".join([f"`{platform.name}`", *(alias for alias, name in ALIASES.items() if name == platform.name)])
    places = "; ".join(map(place, platform.ways)) or "nowhere"
    return " | ".join((f"| {platform.title}{' ⟳' * platform.reconciles}", names, signs(platform), places,
                       platform.reads, platform.configures, f"{platform.leaves} |"))


def signs(platform: Platform) -> str:
    """What firmware says there; a platform without that is known by its drive, or has to be named."""
    found = [f"{FIELDS[sign.field]} {'begins with ' * sign.begins}{' or '.join(f'`{value}`' for value in sign.values)}"
             for sign in platform.signs]
    found += [platform.also_known_by] if platform.also_known_by else []
    by_itself = {"nocloud": "its name, its drive, or `ds=nocloud`", "openstack": "its name, or its drive"}
    return "; ".join(found) or by_itself.get(platform.name, "its name")


def place(way: Way) -> str:
    if isinstance(way, Service):
        headers = [f"`{name}: {value}`" for name, value in (way.headers or {}).items()]
        headers += [f"`{way.token.header}`, by a PUT"] if way.token else []
        return f"`{way.base}`" + (f" with {', '.join(headers)}" if headers else "")
    if isinstance(way, Drive):
        return f"drive `{way.labels[0]}` ({' or '.join(way.kinds)})"
    return "`vmware-rpctool` or `vmtoolsd`"


def filled(page: str) -> str:
    """The page with the platforms as they are now."""
    head, _, rest = page.partition(BEGIN)
    return head + BEGIN + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
