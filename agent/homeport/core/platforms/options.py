"""What the formats call the options of bonds and bridges, in nmstate's words.

cloud-init writes `bond-miimon` or `bond_miimon`, netplan `mii-monitor-interval`; the kernel, and nmstate with
it, `miimon`.
"""

from __future__ import annotations

from typing import Any

from homeport.core.platforms.network import Network
from homeport.core.platforms.reading import Fault, Node

MODES = ("balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb")

# Spellings that are not the kernel's, without prefix and with dashes.
_BOND = {
    "mii-monitor-interval": "miimon", "transmit-hash-policy": "xmit_hash_policy", "up-delay": "updelay",
    "down-delay": "downdelay", "arp-ip-targets": "arp_ip_target", "fail-over-mac-policy": "fail_over_mac",
    "gratuitious-arp": "num_grat_arp", "gratuitous-arp": "num_grat_arp", "primary-reselect-policy": "primary_reselect",
    "learn-packet-interval": "lp_interval", "all-members-active": "all_slaves_active",
    "all-slaves-active": "all_slaves_active", "packets-per-member": "packets_per_slave",
}
_NUMBERS = ("miimon", "updelay", "downdelay", "arp_interval", "min_links", "num_grat_arp", "packets_per_slave",
            "lp_interval", "resend_igmp", "num_unsol_na")
_SWITCHES = {"all_slaves_active": ("dropped", "delivered")}
KNOWN_BOND = {
    *_NUMBERS, "xmit_hash_policy", "lacp_rate", "ad_select", "arp_ip_target", "arp_validate", "arp_all_targets",
    "fail_over_mac", "primary", "primary_reselect", "all_slaves_active", "tlb_dynamic_lb"}

_STP = {"forward-delay": "forward-delay", "fd": "forward-delay", "hello-time": "hello-time", "hello": "hello-time",
        "max-age": "max-age", "maxage": "max-age", "priority": "priority", "bridgeprio": "priority"}
# What the kernel takes while spanning tree is on (net/bridge/br_private_stp.h), and nmstate in any case.
_LIMITS = {"forward-delay": (2, 30), "hello-time": (1, 10), "max-age": (6, 40), "priority": (0, 65535)}


def bond(given: list[tuple[str, Node]], ports: list[str], network: Network) -> dict[str, Any]:
    """nmstate's `link-aggregation`, from options by whatever name; what is not known is noted."""
    mode, options = "balance-rr", dict[str, Any]()
    for key, node in given:
        name = key.replace("_", "-").removeprefix("bond-")
        name = _BOND.get(name, name.replace("-", "_"))
        if name == "mode":
            mode = bond_mode(node)
        elif name in KNOWN_BOND:
            options[name] = _bond_option(name, node)
        elif name not in ("slaves", "links", "interfaces"):
            network.note(f"{node.path} is not known here, and left out")
    return {"mode": mode, "options": options, "port": ports}


def bond_mode(node: Node) -> str:
    """A mode by name or by the kernel's number."""
    if node.value in MODES:
        return str(node.value)
    try:
        return MODES[node.number(0, len(MODES) - 1)]
    except Fault:
        raise node.fault(f"one of {', '.join(MODES)}") from None


def _bond_option(name: str, node: Node) -> Any:
    if name in _SWITCHES:
        return _SWITCHES[name][node.number(0, 1) if str(node.value) in ("0", "1") else node.flag()]
    if name in _NUMBERS:
        return node.number()
    if isinstance(node.value, list):
        return ",".join(item.text() for item in node.items())
    return node.flag() if isinstance(node.value, bool) else str(node.value)


def bridge(given: list[tuple[str, Node]], ports: list[str], network: Network) -> dict[str, Any]:
    """nmstate's `bridge`. Spanning tree is on unless said otherwise, as in netplan.

    Its times have no meaning without it, where a delay of 0 is usual, and nmstate would refuse that.
    """
    stp: dict[str, Any] = {"enabled": True}
    times: dict[str, Node] = {}
    options: dict[str, Any] = {"stp": stp}
    for key, node in given:
        name = key.replace("_", "-").removeprefix("bridge-")
        if name == "stp":
            stp["enabled"] = node.flag()
        elif name in _STP:
            times[_STP[name]] = node
        elif name in ("ageing-time", "ageing"):
            options["mac-ageing-time"] = node.number()
        elif name != "ports":
            network.note(f"{node.path} is not known here, and left out")
    for name, node in times.items() if stp["enabled"] else ():
        low, high = _LIMITS[name]
        if low <= node.number() <= high:
            stp[name] = node.number()
        else:
            network.note(f"{node.path}: {node.number()} is not from {low} to {high}, as spanning tree needs; left out")
    return {"options": options, "port": [{"name": port} for port in ports]}
