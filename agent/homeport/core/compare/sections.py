"""A section of the document against the same section of `show`: only what the document says.

Knows which keys have two names, which lists have no order, and which keys steer nmstate and are never
shown. A value that `show` does not print cannot be compared: it is a difference only under the keys
without which the interface would be another one (`_ESSENTIAL`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from homeport.core.compare.values import plain, same_value
from homeport.core.complaint import Complaint, Path, render_path
from homeport.core.schema.kinds import read_bool, read_number
from homeport.core.showing import show

ALIASES = {
    "ports": "port",
    "bond": "link-aggregation",
    "balance-slb": "balance_slb",
    "accept-all-mac": "promiscuous",
    "n_rxq": "rx-queue",
    "dpdk-lsc-interrupt": "lsc-interrupt",
    "group-forward-mask": "group-fwd-mask",
    "suppress_prefixlength": "suppress-prefix-length",
}
_ESSENTIAL = frozenset({"base-iface", "id", "peer", "port", "port1", "port2", "remote", "pkey"})
# For the one who applies, or read-only; never in what `show` prints.
_UNSEEN = frozenset({
    "allow-extra-ports", "allow-extra-patch-ports", "supervision-address", "gc-timer", "hello-timer",
    "neighbors", "max-vfs", "iface-name", "nm-auto-defaults",
})
MASK = "<_password_hid_by_nmstate>"


def section_differences(
        desired: object, current: object, path: Path, *, options: bool = True) -> Iterator[Complaint]:
    """Where `current` is not what `desired` says. `options` false: bond options do not count."""
    if isinstance(desired, Mapping):
        if not isinstance(current, Mapping):
            yield difference(path, current, desired)
            return
        found = {ALIASES.get(str(key), str(key)): value for key, value in current.items()}
        for key, value in desired.items():
            name = ALIASES.get(str(key), str(key))
            if value is None or name in _UNSEEN or (name == "options" and not options):
                continue
            yield from _key_differences(name, value, found, (*path, str(key)), options)
    elif isinstance(desired, list):
        yield from _list_differences(desired, current, path, options)
    elif not same_value(str(path[-1]) if path else "", desired, current):
        yield difference(path, current, desired)


def difference(path: Path, found: object, wanted: object) -> Complaint:
    return Complaint(render_path(path), "missing" if found is None else show(found), show(wanted))


def _key_differences(
        name: str, value: object, found: Mapping[str, object], path: Path, options: bool,
) -> Iterator[Complaint]:
    shown = found.get(name)
    if shown == MASK:
        return
    if shown is None:
        if name in _ESSENTIAL and not _is_nothing(value):
            yield difference(path, None, value)
    elif name in _NO_ORDER_TEXTS:
        if _words(name, value) != _words(name, shown):
            yield difference(path, shown, value)
    else:
        yield from section_differences(value, shown, path, options=options)


# Addresses that the kernel keeps in an order of its own, in one text or as a list.
_NO_ORDER_TEXTS = frozenset({"arp_ip_target", "ns_ip6_target", "address-flags", "ip6tun-flags"})


def _words(name: str, value: object) -> set[str]:
    words = value if isinstance(value, list) else str(value).split(",")
    return {plain(name, word) for word in words if word}


def _list_differences(
        desired: Sequence[object], current: object, path: Path, options: bool) -> Iterator[Complaint]:
    shown = current if isinstance(current, list) else []
    if all(not isinstance(item, (Mapping, list)) for item in (*desired, *shown)):
        key = str(path[-1]) if path else ""
        if sorted(plain(key, item) for item in desired) != sorted(plain(key, item) for item in shown):
            yield Complaint(render_path(path), listing(shown), listing(desired))
        return
    names = {_name(item): item for item in shown if isinstance(item, Mapping)}
    for index, item in enumerate(desired):
        at = (*path, index)
        if not isinstance(item, Mapping) or _name(item) not in names:
            yield difference(at, None, item)
        else:
            yield from section_differences(item, names[_name(item)], at, options=options)
    if path and ALIASES.get(str(path[-1]), path[-1]) in ("port", "trunk-tags"):
        wanted = {_name(item) for item in desired if isinstance(item, Mapping)}
        extra = [name for name in names if name not in wanted]
        if extra:
            yield Complaint(render_path(path), f"{listing(extra)} too", "only what is listed")


def _name(item: Mapping[object, object]) -> str:
    """What tells the items of a list apart: a port's name, a VF's or tag's number, a QoS mapping."""
    if "name" in item:
        return str(item["name"])
    bounds = item.get("id-range")
    if isinstance(bounds, Mapping):
        return f"{read_number(bounds.get('min'))}-{read_number(bounds.get('max'))}"
    if "from" in item:
        return f"{read_number(item['from'])}:{read_number(item.get('to'))}"
    return f"{read_number(item.get('id'))}"


def _is_nothing(value: object) -> bool:
    return value in ("", [], {}) or read_bool(value) is False or read_number(value) == 0


def listing(items: Sequence[object]) -> str:
    """A list of scalars as a person reads it."""
    return ", ".join(str(item) for item in items) if items else "none"
