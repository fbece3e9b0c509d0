"""Alternative names of a card, taken away by rtnetlink(7), for nmstate to add them again.

Knows one message (include/uapi/linux/{rtnetlink,if_link}.h), and why it is needed.
"""

from __future__ import annotations

import logging
import socket
import struct
from collections.abc import Iterator, Mapping
from typing import Any

log = logging.getLogger(__name__)

RTM_DELLINKPROP = 109
REQUEST_ACK = 0x1 | 0x4
IFLA_PROP_LIST, IFLA_ALT_IFNAME, NESTED = 52, 53, 0x8000


def make_way(desired: Mapping[str, Any]) -> None:
    """Take away each alternative name that is desired, where it is already. Never raises.

    With `--override-iface` nmstate (2.2.62) takes a card to have none, adds them all, and fails at one that is there:
    from a .link file that outlived its document, or of a run that was rolled back.
    """
    for interface, name in _wanted(desired):
        try:
            # The kernel refuses a name that is another card's, or the card's first.
            _take_away(socket.if_nametoindex(interface), name)
        except OSError as error:
            log.debug("%s has no alternative name %s to take away: %s", interface, name, error)


def _wanted(desired: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for interface in desired.get("interfaces", ()):
        for item in interface.get("alt-names") or ():
            if item.get("state") != "absent":
                yield interface["name"], str(item.get("name"))


def _take_away(index: int, name: str) -> None:
    text = name.encode() + b"\0"
    inner = struct.pack("=HH", 4 + len(text), IFLA_ALT_IFNAME) + text + b"\0" * (-len(text) % 4)
    outer = struct.pack("=HH", 4 + len(inner), IFLA_PROP_LIST | NESTED) + inner
    body = struct.pack("=BxHiII", 0, 0, index, 0, 0) + outer
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.settimeout(5)
        kernel.send(struct.pack("=IHHII", 16 + len(body), RTM_DELLINKPROP, REQUEST_ACK, 1, 0) + body)
        if error := struct.unpack_from("=i", kernel.recv(4096), 16)[0]:
            raise OSError(-error, "netlink message RTM_DELLINKPROP")
