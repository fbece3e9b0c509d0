"""What really went over a cable: packets as they are seen on the tap of a machine's NIC.

    with Capture(world.namespace, "tap1") as wire: …
    wire.sent_by_machine, wire.dhcp()

Knows Ethernet, IPv4 and UDP as far as it takes to recognise DHCP.
"""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from types import TracebackType

from namespaces import NetworkNamespace

ETH_P_ALL = 3
_IPV4, _IPV6, _UDP = 0x0800, 0x86DD, 17
# <linux/if_packet.h>
_SOL_PACKET, _PACKET_AUXDATA, _VLAN_VALID = 263, 8, 1 << 4
_DHCP = {67, 68, 546, 547}  # v4 and v6


class Capture:
    """Every frame on one interface of a namespace, from now on; `stop` ends it."""

    def __init__(self, namespace: NetworkNamespace, interface: str) -> None:
        self.frames: list[bytes] = []
        self.ours: list[bytes] = []  # those that the machine sent

        self._socket = open_packets(namespace, interface)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._stopped.is_set():
            with suppress(TimeoutError):
                try:
                    frame, outgoing = receive(self._socket)
                except TimeoutError:
                    raise
                except OSError:
                    return  # the tap is gone
                self.frames.append(frame)
                # A tap's own outgoing packets are what the machine receives.
                if not outgoing:
                    self.ours.append(frame)

    def dhcp(self) -> list[bytes]:
        """The DHCP packets of both families that the machine sent."""
        return [frame for frame in self.ours if ports(frame) & _DHCP]

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._socket.close()

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.stop()


def open_packets(namespace: NetworkNamespace, interface: str) -> socket.socket:
    """A socket for whole frames on an interface; `receive` waits 0.2 s on it at most."""

    def work() -> socket.socket:
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        opened.setsockopt(_SOL_PACKET, _PACKET_AUXDATA, 1)
        opened.bind((interface, 0))
        opened.settimeout(0.2)
        return opened

    return namespace.call(work)


def receive(opened: socket.socket) -> tuple[bytes, bool]:
    """A frame as it was on the wire, and whether it went out here. Raises TimeoutError."""
    frame, more, _, address = opened.recvmsg(65536, 64)
    for level, kind, data in more:
        # struct tpacket_auxdata: the kernel has taken a VLAN's tag off.
        if (level, kind) == (_SOL_PACKET, _PACKET_AUXDATA) and len(data) >= 20:
            status, *_, tag, protocol = struct.unpack_from("IIIHHHH", data)
            if status & _VLAN_VALID:
                frame = frame[:12] + struct.pack(">HH", protocol or 0x8100, tag) + frame[12:]
    return frame, address[2] == socket.PACKET_OUTGOING


_MESSAGES = {1: "discover", 3: "request", 4: "decline", 7: "release", 8: "inform"}
_COOKIE = bytes((99, 130, 83, 99))


def messages(frames: list[bytes]) -> list[str]:
    """What a DHCPv4 client said, in order."""
    return [_MESSAGES.get(options[53][0], "?") for options in map(_options, frames) if options.get(53)]


def client_ids(frames: list[bytes]) -> set[bytes]:
    """Who it said it is; b"" for one that gave no client identifier."""
    return {options.get(61, b"") for options in map(_options, frames) if options.get(53)}


def _options(frame: bytes) -> dict[int, bytes]:
    """The options of a DHCPv4 packet (RFC 2132); none of another packet."""
    at, found = frame.find(_COOKIE) + 4, dict[int, bytes]()
    while 4 <= at < len(frame) - 1 and frame[at] != 255:
        size = frame[at + 1] if frame[at] else -1
        if frame[at]:
            found[frame[at]] = frame[at + 2:at + 2 + size]
        at += 2 + size
    return found


def ports(frame: bytes) -> set[int]:
    """The UDP ports of an Ethernet frame; empty if it is none of UDP."""
    kind, at = int.from_bytes(frame[12:14], "big"), 14
    if kind == 0x8100:  # a VLAN
        kind, at = int.from_bytes(frame[16:18], "big"), 18
    if kind == _IPV4 and frame[at + 9] == _UDP:
        at += (frame[at] & 15) * 4
    elif kind == _IPV6 and frame[at + 6] == _UDP:
        at += 40
    else:
        return set()
    return {int.from_bytes(frame[at:at + 2], "big"), int.from_bytes(frame[at + 2:at + 4], "big")}
