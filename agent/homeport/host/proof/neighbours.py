"""Whether a neighbour is there: ARP (RFC 826) and IPv6 neighbour discovery (RFC 4861), and whether it is we.

ICMP echo is not used: many a gateway drops it, and none can drop these and still be a gateway.
The frames are ours, so a cached neighbour entry of the former configuration proves nothing.
"""

from __future__ import annotations

import errno
import socket
import struct
import time
from collections.abc import Collection, Iterator

from homeport.core.links import Link
from homeport.host.proof import kernel
from homeport.host.proof.ways import Way, bind, endpoint

ARPHRD_ETHER = 1
_ETH_P_ARP = 0x0806
_ICMP6_FILTER = 1
_SOLICITATION, _ADVERTISEMENT = 135, 136
_PAUSES = (0.1, 0.2, 0.4, 0.8, 1.0)  # between requests; the last one for ever
# NetworkManager's own dad-timeout is 200 ms in all (RFC 5227 would wait for seconds)
_PROBE_PAUSE, _PROBES = 0.07, 3
_NUD_POLL = 0.05
# What a link says that is up and has nothing yet to send with.
_NOT_NOW = (errno.ENOBUFS, errno.ENETDOWN)
_SENDABLE = 5.0  # seconds for that to pass


def ask(link: Link, source: str, ip: str, deadline: float) -> str | None:
    """The link-layer address that answers for `ip` on `link` before `deadline`, None if none does.

    "" where the kernel knows the neighbour to be there and links have no addresses.
    """
    bare = ip.partition("%")[0]
    if link.hardware != ARPHRD_ETHER:
        return _ask_kernel(link, source, bare, deadline)
    if kernel.family_of(bare) == socket.AF_INET6:
        return _solicit(link, source, bare, deadline)
    return _arp(link, source, bare, deadline)


def find_conflicts(link: Link, addresses: Collection[str], own: Collection[str]) -> dict[str, str]:
    """IPv4 addresses that another host on the link claims, with its MAC; takes 0.2 s.

    RFC 5227 probes: asked from nobody (0.0.0.0), so no neighbour learns anything from them. They work whether
    or not the address is already on the interface. `own` are the MACs of this machine.
    """
    found: dict[str, str] = {}
    wanted = {socket.inet_aton(ip): ip for ip in addresses}
    with _arp_socket(link) as file:
        _wait_until_sendable(file, _request(link, b"\0\0\0\0", next(iter(wanted), b"\0\0\0\0")))
        for _ in range(_PROBES):
            for packed in wanted:
                _send(file, _request(link, b"\0\0\0\0", packed))
            for sender, mac, _ in _replies(file, time.monotonic() + _PROBE_PAUSE):
                if sender in wanted and mac not in own:
                    found[wanted[sender]] = mac
    return found


def _wait_until_sendable(file: socket.socket, frame: bytes) -> None:
    """Until the link takes a frame: a bond that has just come up drops them while it has not chosen a port (802.3ad: a
    second or two). Where it never does, what has to be reached is not reached either, and that proof fails.
    """
    end = time.monotonic() + _SENDABLE
    while not _send(file, frame) and time.monotonic() < end:
        time.sleep(_PAUSES[0])


def _send(file: socket.socket, data: bytes, to: tuple[str, int, int, int] | None = None) -> bool:
    """Whether the link took it. What it does not take now is a question that nobody heard, and is asked again."""
    try:
        file.sendto(data, to) if to else file.send(data)
    except OSError as error:
        if error.errno not in _NOT_NOW:
            raise
        return False
    return True


def _arp(link: Link, source: str, ip: str, deadline: float) -> str | None:
    sender, target = socket.inet_aton(source or "0.0.0.0"), socket.inet_aton(ip)
    with _arp_socket(link) as file:
        for until in _rounds(deadline):
            _send(file, _request(link, sender, target))
            for replier, mac, operation in _replies(file, until):
                if replier == target and mac != link.mac and operation == 2:
                    return mac
    return None


def _arp_socket(link: Link) -> socket.socket:
    file = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ARP))
    file.bind((link.name, _ETH_P_ARP))
    return file


def _request(link: Link, sender: bytes, target: bytes) -> bytes:
    mac = bytes.fromhex(link.mac.replace(":", ""))
    return (b"\xff" * 6 + mac + struct.pack("!HHHBBH", _ETH_P_ARP, 1, 0x0800, 6, 4, 1)
            + mac + sender + b"\0" * 6 + target)


def _replies(file: socket.socket, until: float) -> Iterator[tuple[bytes, str, int]]:
    """(sender's IP, sender's MAC, operation) of each ARP packet for Ethernet and IPv4 until then."""
    for frame in _packets(file, until):
        if len(frame) >= 42 and frame[14:20] == b"\0\x01\x08\0\x06\x04":
            yield frame[28:32], ":".join(f"{byte:02x}" for byte in frame[22:28]), frame[21]


def _solicit(link: Link, source: str, ip: str, deadline: float) -> str | None:
    target = socket.inet_pton(socket.AF_INET6, ip)
    group = socket.inet_ntop(socket.AF_INET6, bytes.fromhex("ff0200000000000000000001ff") + target[13:])
    # the kernel fills in the checksum (RFC 3542, 3.1); option 1 is our link-layer address
    message = struct.pack("!BBHI", _SOLICITATION, 0, 0, 0) + target + b"\x01\x01" + bytes.fromhex(
        link.mac.replace(":", ""))
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as file:
        bind(file, Way(link.name, source, link.index))
        file.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, link.index)
        file.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)  # RFC 4861, 7.1.1
        file.setsockopt(socket.IPPROTO_ICMPV6, _ICMP6_FILTER, _only(_ADVERTISEMENT))
        for until in _rounds(deadline):
            _send(file, message, (group, 0, 0, link.index))
            for answer in _packets(file, until):
                if len(answer) >= 24 and answer[0] == _ADVERTISEMENT and answer[8:24] == target:
                    return _target_address(answer[24:]) or "its address"
    return None


def _only(kind: int) -> bytes:
    """An ICMP6_FILTER that blocks all but one type (a set bit blocks; linux/icmpv6.h)."""
    words = [0xFFFFFFFF] * 8
    words[kind >> 5] &= ~(1 << (kind & 31))
    return struct.pack("=8I", *words)


def _target_address(options: bytes) -> str:
    while len(options) >= 8 and options[1]:
        if options[0] == 2:
            return ":".join(f"{byte:02x}" for byte in options[2:8])
        options = options[options[1] * 8:]
    return ""


def _ask_kernel(link: Link, source: str, ip: str, deadline: float) -> str | None:
    """For links that are not Ethernet (InfiniBand, tunnels): make the kernel need the neighbour, and look."""
    way = Way(link.name, source, link.index)
    with socket.socket(kernel.family_of(ip), socket.SOCK_DGRAM) as file:
        bind(file, way)
        for until in _rounds(deadline):
            file.sendto(b"", endpoint(ip, 9, way))  # 9 is discard (RFC 863)
            while time.monotonic() < until:
                mac = kernel.neighbour(link.index, ip)
                if mac is not None:
                    return mac
                time.sleep(_NUD_POLL)
    return None


def _rounds(deadline: float) -> Iterator[float]:
    """Until when to wait for an answer, before asking again; at least one round."""
    number = 0
    while number == 0 or time.monotonic() < deadline:
        pause = _PAUSES[min(number, len(_PAUSES) - 1)]
        yield min(time.monotonic() + pause, max(deadline, time.monotonic() + _PAUSES[0]))
        number += 1


def _packets(file: socket.socket, until: float) -> Iterator[bytes]:
    while (left := until - time.monotonic()) > 0:
        file.settimeout(left)
        try:
            yield file.recv(2048)
        except TimeoutError:
            return
        except OSError as error:
            if error.errno not in _NOT_NOW:  # told once, of what was sent before
                raise
