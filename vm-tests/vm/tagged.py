"""A host on a VLAN: it answers ARP and pings for one address, and so does whoever carries the VLAN to it.

    with TaggedHost(world.lan, 10, "10.46.0.1") as host:
        machine.sh("ping -c 1 10.46.0.1")
        host.asked_by                        # the MACs that have pinged it

A program and not an interface: the kernel of the host may lack VLANs. Knows ARP and ICMP echo, no more.
"""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from types import TracebackType

from namespaces import NetworkNamespace
from world import Cable, Lan

from .wire import open_packets, receive

MAC = bytes.fromhex("525400aa1000")
_TAG = 0x8100
_ARP, _IPV4, _ICMP = 0x0806, 0x0800, 1


class TaggedHost:
    """See the head of this module."""

    def __init__(self, lan: Lan, vlan: int, address: str) -> None:
        self.vlan, self.address = vlan, socket.inet_aton(address)
        self.asked_by: set[str] = set()
        self._namespace = NetworkNamespace()
        self._cable = Cable(lan, self._namespace, "eth0")
        self._namespace.ip("link", "set", "eth0", "up", "promisc", "on")
        self._socket = open_packets(self._namespace, "eth0")
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._stopped.is_set():
            with suppress(TimeoutError):
                frame, outgoing = receive(self._socket)
                head = struct.unpack_from(">HHH", frame, 12) if len(frame) > 34 else (0, 0, 0)
                if outgoing or head[0] != _TAG or head[1] & 0xFFF != self.vlan:
                    continue
                answer = self._arp(frame) if head[2] == _ARP else self._echo(frame) if head[2] == _IPV4 else b""
                if answer:
                    self._socket.send(frame[6:12] + MAC + frame[12:18] + answer)

    def _arp(self, frame: bytes) -> bytes:
        if frame[24:26] != b"\0\x01" or frame[42:46] != self.address:
            return b""
        return frame[18:24] + b"\0\x02" + MAC + self.address + frame[26:36]

    def _echo(self, frame: bytes) -> bytes:
        packet = frame[18:]
        size, whole = (packet[0] & 15) * 4, int.from_bytes(packet[2:4], "big")
        if packet[9] != _ICMP or packet[16:20] != self.address or packet[size] != 8:
            return b""
        self.asked_by.add(frame[6:12].hex(":"))
        body = b"\0\0\0\0" + packet[size + 4:whole]
        body = body[:2] + _checksum(body) + body[4:]
        # Source and destination change places, which leaves the header's checksum as it is.
        return packet[:12] + packet[16:20] + packet[12:16] + packet[20:size] + body

    def close(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._socket.close()
        self._cable.remove()
        self._namespace.close()

    def __enter__(self) -> TaggedHost:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


def _checksum(data: bytes) -> bytes:
    total = sum(struct.unpack(f">{len(data) // 2}H", data[: len(data) & ~1])) + (data[-1] << 8 if len(data) % 2 else 0)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack(">H", ~total & 0xFFFF)
