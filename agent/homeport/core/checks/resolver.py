"""Checks of DNS: syntax, and whether the servers can be kept in a profile.

nmstate would put them into NetworkManager's global configuration as well, which outlives the document: a
machine in recovery would then ask a server of the network it lost. homeport keeps DNS in the profile only.
"""

from __future__ import annotations

from collections.abc import Iterator

from homeport.core.checks.reading import complain, read_ip, section
from homeport.core.checks.view import Entry, View
from homeport.core.complaint import Complaint, Path
from homeport.core.showing import show

_PLAIN_OPTIONS = (
    "debug", "edns0", "inet6", "ip6-bytestring", "ip6-dotint", "no-aaaa", "no-check-names", "no-ip6-dotint",
    "no-reload", "no-tld-query", "rotate", "single-request", "single-request-reopen", "trust-ad", "use-vc",
)
_VALUE_OPTIONS = ("attempts", "ndots", "timeout")
_CONFIG = ("dns-resolver", "config")


def dns_syntax(view: View) -> Iterator[Complaint]:
    """Servers, search domains and options that resolv.conf(5) does not know."""
    for path, server in view.texts(*_CONFIG, "server"):
        address, percent, scope = server.partition("%")
        ip = read_ip(address)
        if ip is None or (percent and (ip.version == 4 or not scope or "%" in scope)):
            yield complain(path, show(server), "an IP address, or fe80::1%eth0")
    for path, domain in view.texts(*_CONFIG, "search"):
        if not domain or any(c.isspace() for c in domain):
            yield complain(path, show(domain), "a domain such as example.org")
    for path, option in view.texts(*_CONFIG, "options"):
        name, colon, _ = option.partition(":")
        if name not in (_VALUE_OPTIONS if colon else _PLAIN_OPTIONS):
            yield complain(path, show(option), f"one of {', '.join(_PLAIN_OPTIONS)}, or "
                                               f"{', '.join(f'{name}:N' for name in _VALUE_OPTIONS)}")


def dns_in_profiles(view: View) -> Iterator[Complaint]:
    """Servers must fit into profiles of this document, in their order."""
    servers = [(path, server) for path, server in view.texts(*_CONFIG, "server")
               if read_ip(server.partition("%")[0]) is not None]
    for version in (4, 6):
        mine = [(path, server) for path, server in servers if (":" in server) == (version == 6) and "%" not in server]
        if mine and not any(_can_keep(entry, version) for entry in view.entries):
            yield complain(mine[0][0], f"{mine[0][1]}, but no interface here has IPv{version}",
                           f"an interface with IPv{version} in whose profile it can be kept")
    order = "".join("6" if ":" in server else "4" for _, server in servers)
    squeezed = "".join(c for c, before in zip(order, " " + order, strict=False) if c != before)
    if "464" in squeezed or "646" in squeezed:
        yield complain((*_CONFIG, "server"), "IPv4 and IPv6 servers that alternate",
                       "all of one family first, then the other: profiles keep them apart")
    yield from _link_local_servers(view)
    config = section(section(view.config.get("dns-resolver")).get("config"))
    others = [key for key in ("search", "options") if config.get(key)]
    if others and not servers and not any(_can_keep(entry, v) for entry in view.entries for v in (4, 6)):
        yield complain((*_CONFIG, others[0]), "no interface here has IP",
                       "an interface with IP in whose profile it can be kept")


def _can_keep(entry: Entry, version: int) -> bool:
    return entry.up and not entry.user_space and entry.type != "loopback" \
        and entry.family(version).may_have_address


def _link_local_servers(view: View) -> Iterator[Complaint]:
    scopes: dict[str, Path] = {}
    for path, server in view.texts(*_CONFIG, "server"):
        scope = server.partition("%")[2]
        if not scope:
            continue
        scopes.setdefault(scope, path)
        found = _why_not_there(view.kernel.get(scope))
        if found:
            yield complain(path, f"{show(scope)} {found}", "an interface of this document with IPv6")
    for scope, path in list(scopes.items())[1:]:
        yield complain(path, f"a second interface, {show(scope)}, for link-local servers", "one interface for all")


def _why_not_there(entry: Entry | None) -> str:
    """What keeps an interface from having a link-local server: nmstate wants an address beside its link-local one, or
    a way to one (is_iface_valid_for_dns in dns.rs). "" if nothing does.
    """
    if entry is None:
        return "is not declared here"
    if not entry.up:
        return f"is {entry.state}"
    if entry.family(6).enabled is False:
        return "has IPv6 off"
    return "" if _can_keep(entry, 6) else "has no IPv6 address, nor a way to get one"
