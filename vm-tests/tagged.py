"""Another host on a VLAN of a LAN, for a kernel that has no VLANs: frames written and read by hand.

    with Tagged(lan, 40, ["192.0.2.1", "2001:db8:e::1"]) as host:     # answers ARP, neighbour solicitations, pings
        host.asked                                                     # who was looked for, as "ARP 192.0.2.1"

Layout: IEEE 802.1Q; RFC 826; RFC 792; RFC 4861, 4.3 and 4.4; RFC 4443, 4.1.  The kernel takes the tag of a frame
that it receives off, and tells it beside (packet(7), PACKET_AUXDATA).
"""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from types import TracebackType

from namespaces import NetworkNamespace
from world import Lan

SOL_PACKET, PACKET_AUXDATA, VLAN_VALID = 263, 8, 1 << 4
AUXDATA = struct.Struct("=IIIHHHH")
ETH_P_ALL, ARP, IPV4, IPV6, VLAN = 3, 0x0806, 0x0800, 0x86DD, 0x8100
ICMP, ICMPV6 = 1, 58
ECHO, ECHO_REPLY, ECHO6, ECHO6_REPLY, SOLICITATION, ADVERTISEMENT = 8, 0, 128, 129, 135, 136


class Tagged:
    """See the head of this module."""

    def __init__(self, lan: Lan, vlan: int, addresses: list[str]) -> None:
        self.vlan = vlan
        self.addresses = [ip_address(address) for address in addresses]
        self.asked: list[str] = []
        self.namespace = NetworkNamespace()
        self.cable = lan.plug(self.namespace, "eth0")
        self.namespace.ip("link", "set", "eth0", "up")

        def open_socket() -> socket.socket:
            opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            opened.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
            opened.bind(("eth0", 0))
            return opened

        self._socket = self.namespace.call(open_socket)
        self._socket.settimeout(0.2)
        self.mac: bytes = self._socket.getsockname()[4]
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._stopped.is_set():
            with suppress(TimeoutError, struct.error, IndexError):
                frame, beside, _, sender = self._socket.recvmsg(1 << 16, socket.CMSG_SPACE(AUXDATA.size))
                if sender[2] != socket.PACKET_OUTGOING and self._tag(beside) == self.vlan:
                    self._answer(frame[6:12], int.from_bytes(frame[12:14], "big"), frame[14:])

    @staticmethod
    def _tag(beside: list[tuple[int, int, bytes]]) -> int:
        """The VLAN of a frame, 0 if it has none."""
        for level, kind, data in beside:
            if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
                status, _, _, _, _, tci, _ = AUXDATA.unpack(data[:AUXDATA.size])
                return int(tci & 0xFFF) if status & VLAN_VALID else 0
        return 0

    def _answer(self, who: bytes, kind: int, data: bytes) -> None:
        if kind == ARP and data[6:8] == b"\0\1" and (wanted := IPv4Address(data[24:28])) in self.addresses:
            self.asked.append(f"ARP {wanted}")
            self._send(who, ARP, data[:6] + b"\0\2" + self.mac + data[24:28] + data[8:18])
        elif kind == IPV4 and data[9] == ICMP and IPv4Address(data[16:20]) in self.addresses:
            start = (data[0] & 15) * 4
            echo = data[start:int.from_bytes(data[2:4], "big")]
            if echo[0] == ECHO:
                reply = _summed(bytes([ECHO_REPLY, 0, 0, 0]) + echo[4:], 2)
                header = _summed(data[:8] + bytes([64, ICMP, 0, 0]) + data[16:20] + data[12:16] + data[20:start], 10)
                self._send(who, IPV4, header + reply)
        elif kind == IPV6 and data[6] == ICMPV6:
            self._answer_ipv6(who, data, data[40:40 + int.from_bytes(data[4:6], "big")])

    def _answer_ipv6(self, who: bytes, data: bytes, message: bytes) -> None:
        source, target = data[8:24], IPv6Address(data[24:40])
        if message[0] == SOLICITATION and (wanted := IPv6Address(message[8:24])) in self.addresses and any(source):
            self.asked.append(f"ND {wanted}")
            # Solicited, override; with the option "target link-layer address".
            answer = bytes([ADVERTISEMENT, 0, 0, 0, 0x60, 0, 0, 0]) + wanted.packed + b"\2\1" + self.mac
            self._send(who, IPV6, _ipv6(wanted.packed, source, answer))
        elif message[0] == ECHO6 and target in self.addresses:
            self._send(who, IPV6, _ipv6(target.packed, source, bytes([ECHO6_REPLY, 0, 0, 0]) + message[4:]))

    def _send(self, who: bytes, kind: int, data: bytes) -> None:
        self._socket.send(who + self.mac + struct.pack("!HHH", VLAN, self.vlan, kind) + data)

    def leave(self) -> None:
        self._stopped.set()
        self._thread.join(timeout=2)
        self._socket.close()
        self.cable.remove()
        self.namespace.close()

    def __enter__(self) -> Tagged:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.leave()


def _summed(data: bytes, place: int, before: bytes = b"") -> bytes:
    """`data` with the Internet checksum (RFC 1071) at `place`; `before` is summed with it."""
    padded = before + data + b"\0" * (len(before + data) % 2)
    total = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return data[:place] + struct.pack("!H", ~total & 0xFFFF) + data[place + 2:]


def _ipv6(source: bytes, target: bytes, message: bytes) -> bytes:
    head = struct.pack("!IHBB", 6 << 28, len(message), ICMPV6, 255) + source + target
    return head + _summed(message, 2, source + target + struct.pack("!II", len(message), ICMPV6))
