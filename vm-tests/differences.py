"""Two outcomes of the same metadata, compared: profiles by what they mean, and what the kernel has.

A difference is one line, `CASE: WHAT there A, here B`; a reason, by a pattern, is what it is known for.  The
reasons are in docs/peers.md, where people read them; `Reasons` holds both to each other: no difference without a
reason, no reason without a difference.
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address, ip_interface, ip_network
from pathlib import Path

Fact = str | frozenset[str]
Facts = dict[str, dict[str, Fact]]
NOTHING = "nothing"

# What a keyfile says that is of no consequence for the network: names, UUIDs, tags.
IGNORED = re.compile(r"connection\.(id|uuid|autoconnect-slaves|master|slave-type|interface-name)|user\.|"
                     r"ethernet\.mac-address")


def meaning(profiles: Mapping[str, str], nics: Mapping[str, str]) -> Facts:
    """By interface; `nics` are the names of MACs."""
    parsed = [_parse(text) for text in profiles.values()]
    uuids = {each["connection"].get("uuid", ""): _interface(each, nics) for each in parsed}
    return {_interface(each, nics): _facts(each, uuids) for each in parsed}


def _parse(text: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters="=", comment_prefixes="#")
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    return parser


def _interface(profile: configparser.ConfigParser, nics: Mapping[str, str]) -> str:
    mac = profile.get("ethernet", "mac-address", fallback="").lower()
    return nics.get(mac, "") or profile["connection"].get("interface-name", "") or profile["connection"]["id"]


def _facts(profile: configparser.ConfigParser, uuids: Mapping[str, str]) -> dict[str, Fact]:
    facts: dict[str, Fact] = {f"{section}.{key}": value.lower() for section in profile.sections()
                              for key, value in profile[section].items()
                              if section not in ("ipv4", "ipv6") and not IGNORED.match(f"{section}.{key}")}
    if master := profile["connection"].get("master"):
        facts["port of"] = uuids.get(master, master)
    for family in ("ipv4", "ipv6"):
        if profile.has_section(family):
            facts |= {f"{family} {key}": value for key, value in _family(dict(profile[family])).items()}
    return facts


def _family(section: dict[str, str]) -> dict[str, Fact]:
    addresses, routes = set(), set()
    if gateway := section.get("gateway"):
        routes.add(f"default via {_ip(gateway)}")
    rest: dict[str, Fact] = {}
    for key, value in section.items():
        if re.fullmatch(r"address\d+", key):
            own, _, gateway = value.partition(",")
            addresses.add(str(ip_interface(own)))
            if gateway:
                routes.add(f"default via {_ip(gateway)}")
        elif re.fullmatch(r"route\d+", key):
            routes.add(_route(value, section.get(f"{key}_options", "")))
        elif key in ("dns", "dns-search"):
            rest[key] = frozenset(_ip(each) for each in re.split("[;,]", value) if each)
        elif key != "gateway" and not re.fullmatch(r"route\d+_options", key):
            rest[key] = value
    return {"address": frozenset(addresses), "route": frozenset(routes), **rest}


def _route(value: str, options: str) -> str:
    destination, gateway, metric = [*value.split(","), "", ""][:3]
    network = ip_network(destination, strict=False)
    words = ["default" if network.prefixlen == 0 else str(network)]
    words += [f"via {_ip(gateway)}"] if gateway and not ip_address(gateway).is_unspecified else []
    # 1024 is what the kernel makes of 0 for IPv6.
    words += [f"metric {metric}"] if metric not in ("", "0", "1024") else []
    table = dict(each.split("=", 1) for each in options.split(",") if "=" in each).get("table", "254")
    return " ".join(words + ([f"table {table}"] if table not in ("254", "0") else []))


def _ip(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        return text


def compare(case: str, there: Mapping[str, Mapping[str, Fact]], here: Mapping[str, Mapping[str, Fact]]) -> list[str]:
    """A line for each difference."""
    lines = []
    for name in sorted({*there, *here}):
        for fact in sorted({*there.get(name, {}), *here.get(name, {})}):
            a, b = there.get(name, {}).get(fact, NOTHING), here.get(name, {}).get(fact, NOTHING)
            lines += [f"{case}: {name} {fact}: {text}" for text in _differ(a, b)]
    return lines


def _differ(there: Fact, here: Fact) -> list[str]:
    if isinstance(there, str) and isinstance(here, str):
        return [f"there {there}, here {here}"] if there != here else []
    a = there if isinstance(there, frozenset) else frozenset()
    b = here if isinstance(here, frozenset) else frozenset()
    return [f"only there {each}" for each in sorted(a - b)] + [f"only here {each}" for each in sorted(b - a)]


@dataclass(frozen=True)
class Reason:
    """Why lines that have `pattern` in them differ; `name` is its row in docs/peers.md."""

    name: str
    pattern: str


class Reasons:
    """The reasons of one peer, and which of them were needed."""

    def __init__(self, page: Path, heading: str, reasons: Iterable[Reason]) -> None:
        self.reasons = list(reasons)
        self.rows = rows(page.read_text(), heading)
        self.used: set[Reason] = set()
        self.unknown: list[str] = []

    def take(self, lines: Iterable[str]) -> None:
        for line in lines:
            found = [reason for reason in self.reasons if re.search(reason.pattern, line)]
            self.used |= {*found}
            if not found:
                self.unknown.append(line)

    def faults(self) -> list[str]:
        """What doesn't fit, one line each."""
        names = {reason.name for reason in self.reasons}
        return [*(f"no reason is known for {line}" for line in self.unknown),
                *(f"docs/peers.md has no row `{name}`" for name in sorted(names - self.rows)),
                *(f"the row `{name}` of docs/peers.md is no reason of the test" for name in sorted(self.rows - names)),
                *(f"nothing differs any more by `{reason.name}`: {reason.pattern}" for reason in self.reasons
                  if reason not in self.used)]


def rows(page: str, heading: str) -> set[str]:
    """The names in the first column of the table below a heading."""
    _, _, section = page.partition(f"\n## {heading}\n")
    return set(re.findall(r"^\| `([a-z0-9 -]+)` \|", section.partition("\n## ")[0], re.MULTILINE))
