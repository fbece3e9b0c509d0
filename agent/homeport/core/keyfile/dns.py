"""The assigned DNS servers, inside the profiles.

nmstate keeps some of them in NetworkManager's global DNS only: servers that alternate between the
families, or of a family that no interface has (spec/nmstate-and-peers.md, 0.1).  homeport clears
the global DNS, or recovery's DHCP would keep a static server; so what is missing in the profiles is
added here.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence

from homeport.core.keyfile.format import Keyfile

_DEFAULTS = {"ipv4": "0.0.0.0/0", "ipv6": "::/0"}
_USABLE = ("manual", "auto", "dhcp")
# nmstate's own values: the family of the first server comes first.
_FIRST, _SECOND = "40", "50"


def add_dns(
    profiles: Mapping[str, Keyfile], *, servers: Sequence[str], search: Sequence[str] = (),
    options: Sequence[str] = (),
) -> tuple[dict[str, Keyfile], tuple[str, ...]]:
    """The profiles with every server, search domain and option; and the servers that have no place.

    A server has a place if some profile has addresses of its family; the profile with the default
    route is taken first.  Profiles that hold all of it already come back as they are.
    """
    result = dict(profiles)
    held = {_address(server) for profile in profiles.values() for family in _DEFAULTS
            for server in profile.get_list(family, "dns")}
    homeless: list[str] = []
    for family in _DEFAULTS:
        wanted = [server for server in servers if _family(server) == family]
        name = _home(result, family) if any(_address(server) not in held for server in wanted) else ""
        if name is None:
            homeless += [server for server in wanted if _address(server) not in held]
        elif name:
            priority = _FIRST if _family(servers[0]) == family else _SECOND
            result[name] = (result[name].set_list(family, "dns", wanted)
                            .set_raw(family, "dns-priority", priority))
    result = _with_words(result, "dns-search", search)
    result = _with_words(result, "dns-options", options)
    return {name: profile if profile == profiles[name] else profile.in_order()
            for name, profile in result.items()}, tuple(homeless)


def _with_words(profiles: dict[str, Keyfile], key: str, words: Sequence[str]) -> dict[str, Keyfile]:
    """Search domains and options, once: beside servers if there are any."""
    places = [(name, family) for name, profile in profiles.items() for family in _DEFAULTS]
    if not words or any(profiles[name].get_list(family, key) for name, family in places):
        return profiles
    beside = [place for place in places if profiles[place[0]].get_list(place[1], "dns")]
    other = [(name, family) for family in _DEFAULTS if (name := _home(profiles, family))]
    for name, family in (beside or other)[:1]:
        profiles = {**profiles, name: profiles[name].set_list(family, key, words)}
    return profiles


def _home(profiles: Mapping[str, Keyfile], family: str) -> str | None:
    """The profile whose addresses of this family lead out, None if no profile has any."""
    usable = [name for name, profile in profiles.items()
              if profile.raw(family, "method") in _USABLE
              and profile.raw("connection", "type") != "loopback"]
    leading = [name for name in usable if _leads_out(profiles[name], family)]
    return next(iter([*leading, *usable]), None)


def _leads_out(profile: Keyfile, family: str) -> bool:
    for key, raw in profile.items(family):
        parts = raw.split(",")
        if key == "gateway" or (key.startswith("address") and len(parts) > 1 and parts[1]):
            return True
        if key.startswith("route") and parts[0] == _DEFAULTS[family] and "options" not in key:
            return True
    return False


def _family(server: str) -> str:
    return "ipv6" if ":" in server else "ipv4"


def _address(server: str) -> str:
    """One spelling for one address; what is none stands for itself."""
    try:
        return str(ipaddress.ip_address(server.strip()))
    except ValueError:
        return server.strip()
