"""What a cloud or provider says of a machine: `{name of the platform: {path: text or tree}}`."""

from __future__ import annotations

import json
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from homeport.core import platforms
from homeport.core.document import check_document
from homeport.core.platformnames import NAMES
from homeport.core.platforms.attributes import attributes, hostname
from homeport.core.yamlsafe import read_yaml
from homeport.core.yamlwrite import render_yaml
from homeport.errors import DocumentError
from homeport.sources.platforms import saved
from targets.documents import check_complaints
from targets.nics import NICS


def _seed(folder: Path) -> bytes:
    name = max((name for name in NAMES if folder.name.startswith(f"{name}-")), key=len)
    platform = platforms.find(name)
    assert platform is not None
    files = {path: data.decode() for path, data in saved.read(platform, folder / "metadata").items() if data}
    return json.dumps({name: files}).encode()


_DATA = Path(__file__).parents[2] / "data/platforms"
SEEDS = tuple(_seed(folder) for folder in sorted(_DATA.iterdir()) if (folder / "metadata").is_dir())
WORDS = (*(f'"{name}": ' for name in NAMES), '{"', '": "', '", "', "[{", "}]", "\\n", "00:00:5e:00:53:01",
         "192.0.2.1/24", "2001:db8::1/64", "255.255.255.0", "mac", "interfaces", "version: 2\\nethernets:\\n", "null",
         "64", "rd.route=", "nameserver=", "ip=eth0:dhcp")


def check(data: bytes) -> None:
    tree = read_yaml(data.decode("utf-8", "replace")).value
    if not isinstance(tree, dict):
        return
    for name, parts in list(tree.items())[:3]:
        platform = platforms.find(name)
        if platform is None or not isinstance(parts, dict):
            continue
        files = {path: _body(part) for path, part in parts.items()}
        attributes(platform, files)
        assert hostname(platform, files).isprintable()
        try:
            made = platforms.make(platform, files, platforms.Situation(NICS, servers=(ip_address("192.0.2.53"),)))
        except DocumentError as error:
            check_complaints(error.complaints)
        else:
            check_complaints(check_document(render_yaml(made.tree).encode()).complaints)


def _body(part: Any) -> bytes:
    return part.encode("utf-8", "replace") if isinstance(part, str) else json.dumps(part).encode()
