"""What keyfiles bring about, in nmstate's words: enough to find their cards, to compare and to prove.

An assignment may be keyfiles (`configurator: nmconnections`). NetworkManager puts those in force by itself; that
it did, and that the network carries traffic, is looked at as for every other assignment. Knows names, types,
addresses and default routes of a profile; refuses to know its other settings, which are NetworkManager's affair.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from homeport.core.keyfile.escapes import KeyfileError
from homeport.core.keyfile.format import Keyfile, parse

# NetworkManager's type -> nmstate's, where they differ
_TYPES = {"802-3-ethernet": "ethernet", "bridge": "linux-bridge", "macvlan": "mac-vlan", "ip-tunnel": "iptunnel"}
_SAME = ("ethernet", "vlan", "bond", "dummy", "vrf", "vxlan", "veth", "infiniband", "loopback", "macsec", "hsr",
         "ipvlan")
_FAMILIES = (("ipv4", "0.0.0.0/0"), ("ipv6", "::/0"))
_ADDRESS, _ROUTE = re.compile(r"address(?:es)?[0-9]*"), re.compile(r"routes?[0-9]*")


def desired_state(config: Mapping[str, str]) -> dict[str, Any]:
    """The state that these keyfiles (name -> text) are to bring about; one that cannot be read brings nothing.

    A profile for a card by its MAC, without an interface's name, is for an interface of the profile's name: the
    resolver finds the card.
    """
    interfaces: list[dict[str, Any]] = []
    routes: list[dict[str, Any]] = []
    for stem, text in config.items():
        try:
            profile = parse(text)
            interface = _interface(stem, profile)
            routes += _default_routes(interface["name"], profile)
            interfaces.append(interface)
        except (KeyfileError, ValueError):
            continue
    return {"interfaces": interfaces, **({"routes": {"config": routes}} if routes else {})}


def interface_names(config: Mapping[str, str]) -> dict[str, str]:
    """The interface of each keyfile by its name in the document, as `desired_state` names it."""
    return {stem: _name(stem, parse(text)) for stem, text in config.items()}


def _interface(stem: str, profile: Keyfile) -> dict[str, Any]:
    kind = profile.raw("connection", "type") or ""
    interface: dict[str, Any] = {"name": _name(stem, profile), "state": "up"}
    if kind in _TYPES or kind in _SAME:
        interface["type"] = _TYPES.get(kind, kind)
    mac = profile.get_mac("ethernet", "mac-address") or profile.get_mac("802-3-ethernet", "mac-address")
    if mac and not profile.raw("connection", "interface-name"):
        interface |= {"identifier": "mac-address", "mac-address": mac}
    for family, _everywhere in _FAMILIES:
        if section := _family(profile, family):
            interface[family] = section
    return interface


def _name(stem: str, profile: Keyfile) -> str:
    return profile.get("connection", "interface-name") or stem


def _family(profile: Keyfile, family: str) -> dict[str, Any]:
    method = profile.raw(family, "method")
    if method in ("disabled", "ignore"):
        return {"enabled": False} if method == "disabled" else {}
    if method == "auto" and family == "ipv4":
        return {"enabled": True, "dhcp": True}
    addresses = [{"ip": ip, "prefix-length": prefix} for ip, prefix, _gateway in _addresses(profile, family)]
    if method == "manual" and addresses:
        section: dict[str, Any] = {"enabled": True, "address": addresses}
        return section | ({"dhcp": False} if family == "ipv4" else {})
    return {}


def _default_routes(interface: str, profile: Keyfile) -> Iterator[dict[str, Any]]:
    for family, everywhere in _FAMILIES:
        gateways = {gateway for _ip, _prefix, gateway in _addresses(profile, family) if gateway}
        gateways |= {gateway} if (gateway := profile.raw(family, "gateway")) else set()
        for key, raw in profile.items(family):
            destination, _, rest = raw.partition(",")
            if _ROUTE.fullmatch(key) and destination.strip() in (everywhere, everywhere.partition("/")[0]):
                gateways |= {rest.partition(",")[0].strip()} - {""}
        for gateway in sorted(gateways):
            yield {"destination": everywhere, "next-hop-address": gateway, "next-hop-interface": interface}


def _addresses(profile: Keyfile, family: str) -> Iterator[tuple[str, int, str]]:
    """Address, prefix and the gateway that may stand beside it ("" for none)."""
    for key, raw in profile.items(family):
        if _ADDRESS.fullmatch(key):
            for entry in filter(None, raw.split(";")) if key.startswith("addresses") else (raw,):
                address, _, gateway = entry.strip().partition(",")
                ip, _, prefix = address.strip().partition("/")
                yield ip, int(prefix or (32 if family == "ipv4" else 128)), gateway.strip()
