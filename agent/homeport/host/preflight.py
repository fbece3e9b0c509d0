"""What a document needs of this machine and does not find, asked in milliseconds.

Without a kernel module, a base interface or a plugin `nmstatectl` tries for two minutes before it says so.
Knows how to ask the kernel whether it can make a kind of link without making one, and where NetworkManager
keeps its plugins. Never guesses: what cannot be told is not complained about.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import struct
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from homeport.core.checks import needs
from homeport.core.complaint import Complaint

# The kind of link (rtnetlink's IFLA_INFO_KIND) that each module brings.
KINDS = {
    "bonding": "bond", "8021q": "vlan", "bridge": "bridge", "dummy": "dummy", "hsr": "hsr", "ib_ipoib": "ipoib",
    "ip6_tunnel": "ip6tnl", "ipip": "ipip", "ipvlan": "ipvlan", "macsec": "macsec", "macvlan": "macvlan",
    "macvtap": "macvtap", "sit": "sit", "veth": "veth", "vrf": "vrf", "vxlan": "vxlan", "xfrm_interface": "xfrm",
}
PLUGIN_FOLDERS = ("usr/lib/NetworkManager", "usr/lib64/NetworkManager", "usr/lib/*/NetworkManager")
PROGRAM_FOLDERS = "/usr/sbin:/usr/bin:/sbin:/bin"


def missing(config: Mapping[str, Any], *, interfaces: Collection[str], networkmanager: str,
            root: Path = Path("/")) -> list[Complaint]:
    """A complaint for each thing that `config` needs and this machine has not.

    `interfaces` are the kernel's names of those that exist, `networkmanager` its version.
    """
    return list(_missing(config, interfaces, networkmanager, root))


def _missing(config: Mapping[str, Any], interfaces: Collection[str], networkmanager: str,
             root: Path) -> Iterator[Complaint]:
    wanted = needs(config)
    for name, why in wanted.bases.items():
        if name not in interfaces:
            yield Complaint("interfaces", f"there is no interface {name}; {why}",
                            f"declare it, or one of: {', '.join(sorted(interfaces))}")
    for module, why in wanted.modules.items():
        if module in KINDS and not can_make(KINDS[module]):
            yield Complaint("interfaces", f"this kernel cannot make a {KINDS[module]}; {why}",
                            f"the kernel module {module} in this image")
    for plugin, why in wanted.nm_plugins.items():
        if not has_plugin(plugin, root):
            yield Complaint("interfaces", f"NetworkManager has no plugin for {plugin}; {why}",
                            "the distribution's package with it, in this image")
    for program, why in wanted.programs.items():
        if shutil.which(program, path=PROGRAM_FOLDERS) is None:
            yield Complaint("interfaces", f"there is no {program}; {why}", f"{program} in this image")
    for version, why in wanted.networkmanager.items():
        if (have := parse_version(networkmanager)) and have < version:
            yield Complaint("interfaces", f"NetworkManager {networkmanager} is too old; {why}",
                            "NetworkManager " + ".".join(map(str, version)))


def parse_version(text: str) -> tuple[int, ...]:
    """The leading numbers of a version; empty if there are none."""
    numbers = []
    for part in text.split("."):
        digits = part[:len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)


def has_plugin(name: str, root: Path) -> bool:
    """A device plugin beside NetworkManager's own, or a VPN plugin's description."""
    if (root / f"usr/lib/NetworkManager/VPN/nm-{name}-service.name").exists():
        return True
    return any(True for folder in PLUGIN_FOLDERS for _ in root.glob(f"{folder}/*/libnm-device-plugin-{name}.so"))


# include/uapi/linux/netlink.h, rtnetlink.h, if_link.h
_RTM_NEWLINK = 16
_NLMSG_ERROR = 2
_FLAGS = 0x1 | 0x4 | 0x200 | 0x400  # REQUEST, ACK, EXCL, CREATE
_IFLA_IFNAME, _IFLA_LINKINFO, _IFLA_NUM_TX_QUEUES = 3, 18, 31
_IFLA_INFO_KIND = 1
_TOO_MANY_QUEUES = 4097


def can_make(kind: str) -> bool:
    """Whether the kernel knows this kind of link, its module loaded if it has one. Makes nothing.

    It is asked for a link with more queues than any may have: a kernel that does not know the kind says
    EOPNOTSUPP, after it has tried to load the module; one that does refuses the queues (net/core/rtnetlink.c,
    rtnl_newlink before rtnl_create_link). True where it cannot be asked.
    """
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
            kernel.settimeout(5)  # modprobe may take its time
            kernel.send(_request(kind))
            answer = kernel.recv(4096)
    except OSError:
        return True
    _, message, _, _, _, error = struct.unpack_from("=IHHIIi", answer)
    return bool(message != _NLMSG_ERROR or -error != errno.EOPNOTSUPP)


def _request(kind: str) -> bytes:
    link = struct.pack("=BxHiII", 0, 0, 0, 0, 0)
    link += _attribute(_IFLA_IFNAME, f"hp{os.getpid() % 100000}".encode() + b"\0")
    link += _attribute(_IFLA_NUM_TX_QUEUES, struct.pack("=I", _TOO_MANY_QUEUES))
    link += _attribute(_IFLA_LINKINFO, _attribute(_IFLA_INFO_KIND, kind.encode() + b"\0"))
    return struct.pack("=IHHII", 16 + len(link), _RTM_NEWLINK, _FLAGS, 1, 0) + link


def _attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(data), kind) + data + b"\0" * (-len(data) % 4)
