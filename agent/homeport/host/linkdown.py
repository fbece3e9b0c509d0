"""A card put down and emptied, by rtnetlink(7): nothing is left on it for NetworkManager to take for somebody's wish.

Knows two messages (include/uapi/linux/{rtnetlink,if_addr}.h). For the initramfs, where NetworkManager has stopped and
its other ways do not work any more.
"""

from __future__ import annotations

import logging
import socket
import struct
from contextlib import suppress

log = logging.getLogger(__name__)

RTM_NEWLINK, RTM_DELADDR = 16, 21
REQUEST_ACK = 0x1 | 0x4
IFF_UP = 1
IFA_LOCAL = 2


def take_down(name: str) -> None:
    """Never raises: what stays is adopted by NetworkManager, and that is all."""
    from homeport.host.proof.kernel import read_network
    try:
        network = read_network()
        link = network.link(name)
        if link is None:
            return
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
            kernel.settimeout(5)
            _ask(kernel, RTM_NEWLINK, struct.pack("=BxHiII", 0, 0, link.index, 0, IFF_UP))
            for address in network.on(name):
                if ":" not in address.ip:  # IPv6 goes with the link
                    with suppress(OSError):  # one may go with another
                        _ask(kernel, RTM_DELADDR, _address(link.index, address.ip, address.prefix))
    except OSError as error:
        log.debug("cannot take %s down: %s", name, error)


def _address(index: int, ip: str, prefix: int) -> bytes:
    packed = socket.inet_aton(ip)
    return struct.pack("=BBBBi", socket.AF_INET, prefix, 0, 0, index) + struct.pack("=HH", 8, IFA_LOCAL) + packed


def _ask(kernel: socket.socket, kind: int, body: bytes) -> None:
    kernel.send(struct.pack("=IHHII", 16 + len(body), kind, REQUEST_ACK, 1, 0) + body)
    answer = kernel.recv(4096)
    error = struct.unpack_from("=i", answer, 16)[0]
    if error:
        raise OSError(-error, f"netlink message {kind}")
