"""Values that NetworkManager drops without a word: the profile comes up, without its address.

Measured on 1.42 and 1.52: `address1=foo`, an IPv6 server in [ipv4], `may-fail=maybe` are ignored at
debug level, and `nmcli --offline` accepts the profile.  Knows the few keys whose loss strands a machine;
refuses to be a second schema of NetworkManager.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from homeport.core.complaint import Complaint
from homeport.core.keyfile.escapes import shown
from homeport.core.keyfile.format import Keyfile

_METHODS = {
    "ipv4": ("auto", "disabled", "link-local", "manual", "shared"),
    "ipv6": ("auto", "dhcp", "disabled", "ignore", "link-local", "manual", "shared"),
}
_BOOLEANS = ("may-fail", "never-default", "ignore-auto-dns", "ignore-auto-routes")
_TRUTH = ("true", "false", "1", "0", "yes", "no", "on", "off")
_ADDRESS = re.compile(r"address\d*")
_ROUTE = re.compile(r"route\d*")


def check_values(profile: Keyfile) -> Iterator[Complaint]:
    """A complaint for each such value, with its section and key."""
    for family in _METHODS:
        method = profile.raw(family, "method")
        if method is not None and method not in _METHODS[family]:
            yield Complaint(f"[{family}] method", f"“{shown(method)}”", "one of " + ", ".join(_METHODS[family]))
        for key, raw in profile.items(family):
            wanted = _fault(family, key, raw.strip())
            if wanted:
                yield Complaint(f"[{family}] {key}", f"“{shown(raw)}”", wanted)
        if method == "manual" and not any(key.startswith("address") for key, _ in profile.items(family)):
            yield Complaint(f"[{family}] method", "manual without an address", "address1=IP/PREFIX")


def _fault(family: str, key: str, raw: str) -> str:
    """What would be right instead of this value, "" if it is right or not ours to judge."""
    version = 4 if family == "ipv4" else 6
    if _ADDRESS.fullmatch(key):
        # IP/PREFIX,GATEWAY; the older `;` and `,` for any of the separators are still read.
        address, *rest = re.split("[/,;]", raw.rstrip(",;"))
        prefix, *gateway = rest or [""]
        sound = (_is_address(address, version) and _is_prefix(prefix, version) and len(gateway) < 2
                 and all(_is_address(text, version) for text in gateway))
        return "" if sound else "IP/PREFIX or IP/PREFIX,GATEWAY"
    if _ROUTE.fullmatch(key):
        target, *hop = re.split("[,;]", raw.rstrip(",;"))
        network, _, prefix = target.partition("/")
        sound = (_is_address(network, version) and _is_prefix(prefix, version)
                 and (not hop or not hop[0] or _is_address(hop[0], version)))
        return "" if sound else "NETWORK/PREFIX,GATEWAY,METRIC"
    if key == "gateway":
        return "" if _is_address(raw, version) else f"an IPv{version} address"
    if key == "dns":
        servers = [text.strip() for text in re.split("[;,]", raw) if text.strip()]
        return "" if all(_is_server(text, version) for text in servers) else f"IPv{version} addresses"
    if key in _BOOLEANS:
        return "" if raw in _TRUTH else "true or false"
    return ""


def _is_server(text: str, version: int) -> bool:
    """A server may carry a scope, a port or a name for TLS; only plain addresses are judged."""
    if "://" in text or "#" in text or "%" in text:
        return True
    return _is_address(text, version)


def _is_address(text: str, version: int) -> bool:
    try:
        return ipaddress.ip_address(text.strip()).version == version
    except ValueError:
        return False


def _is_prefix(text: str, version: int) -> bool:
    """Decimal digits within the family's range; none stands for NetworkManager's default."""
    text = text.strip()
    digits = text.isascii() and text.isdecimal() and len(text) < 4
    return not text or (digits and int(text) <= (32 if version == 4 else 128))
