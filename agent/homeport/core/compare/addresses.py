"""The `ipv4` or `ipv6` section of an interface against `show`: enabled, dynamic, addresses.

Knows what nmstate itself leaves out when it applies (link-local and expiring addresses, addresses of
other programs) and that dynamic addresses stand beside static ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from homeport.core.compare.sections import difference, section_differences
from homeport.core.compare.values import plain_ip
from homeport.core.complaint import Complaint, Path, render_path
from homeport.core.schema.kinds import read_bool, read_number

Section = Mapping[str, object]
# Only while addresses are assigned dynamically, and only if `show` tells.
_DYNAMIC_SETTINGS = ("auto-dns", "auto-gateway", "auto-routes", "auto-route-table-id",
                     "auto-route-metric", "dhcp-client-id", "dhcp-duid", "dhcp-send-hostname",
                     "dhcp-custom-hostname")
_SETTINGS = ("addr-gen-mode", "token", "forwarding", "prefix-route-metric")


def family_differences(
        desired: object, current: object, path: Path, *, thorough: bool) -> Iterator[Complaint]:
    """Where one IP family of an interface is not what `desired` says.

    `thorough`: static addresses that `desired` does not list are differences too.
    """
    if not isinstance(desired, Mapping):
        return
    found: Section = current if isinstance(current, Mapping) else {}
    enabled = read_bool(desired.get("enabled"))
    if enabled is False:
        if read_bool(found.get("enabled")) is True and (_static(found) or _is_dynamic(found)):
            yield difference((*path, "enabled"), True, False)
        return
    if enabled and read_bool(found.get("enabled")) is not True and not _is_empty(desired):
        yield difference((*path, "enabled"), False, True)
        return
    for key in ("dhcp", "autoconf"):
        wanted = read_bool(desired.get(key))
        if wanted is not None and wanted != (read_bool(found.get(key)) is True):
            yield difference((*path, key), read_bool(found.get(key)) is True, wanted)
    yield from _address_differences(desired, found, path, thorough)
    names = (*_SETTINGS, *(_DYNAMIC_SETTINGS if _is_dynamic(desired) else ()))
    for key in names:
        if desired.get(key) is not None and found.get(key) is not None \
                and not (key.endswith("metric") and read_number(desired[key]) == -1):
            yield from section_differences(desired[key], found[key], (*path, key))


def _address_differences(
        desired: Section, found: Section, path: Path, thorough: bool) -> Iterator[Complaint]:
    addresses = desired.get("address")
    if not isinstance(addresses, list):
        return
    have = _addresses(found)
    wanted = _addresses(desired)
    for index, item in enumerate(addresses):
        pair = _pair(item)
        if pair in wanted and pair not in have:
            same_ip = [prefix for ip, prefix in have if ip == pair[0]]
            yield Complaint(
                render_path((*path, "address", index)),
                f"{pair[0]}/{same_ip[0]}" if same_ip else "not on the interface",
                f"{pair[0]}/{pair[1]}")
    exact = thorough and read_bool(desired.get("allow-extra-address")) is not True
    if exact or read_bool(desired.get("allow-extra-address")) is False:
        for ip, prefix in _static(found):
            if (ip, prefix) not in wanted:
                yield Complaint(render_path((*path, "address")), f"{ip}/{prefix} too",
                                "only the addresses listed")


def _pair(item: object) -> tuple[str, int]:
    if not isinstance(item, Mapping):
        return ("", -1)
    return plain_ip(item.get("ip")), read_number(item.get("prefix-length")) or 0


def _addresses(section: Section) -> list[tuple[str, int]]:
    """All addresses but those that nmstate does not set: expiring, link-local, of other programs."""
    items = section.get("address")
    return [_pair(item) for item in items if isinstance(item, Mapping) and not _is_not_set(item)] \
        if isinstance(items, list) else []


def _static(section: Section) -> list[tuple[str, int]]:
    return [] if _is_dynamic(section) and not section.get("address") else _addresses(section)


def _is_not_set(item: Mapping[str, object]) -> bool:
    ip = plain_ip(item.get("ip"))
    return (item.get("valid-life-time", item.get("valid-lft", item.get("valid-left", "forever")))
            != "forever"
            or (":" in ip and ip[:3] in ("fe8", "fe9", "fea", "feb"))
            or str(item.get("protocol", "lo")) not in ("lo", "ra", "kernel_ll"))


def _is_dynamic(section: Section) -> bool:
    return read_bool(section.get("dhcp")) is True or read_bool(section.get("autoconf")) is True


def _is_empty(section: Section) -> bool:
    """Enabled, but with nothing to show for it: the kernel may then report the family as off."""
    return section.get("address") == [] and not _is_dynamic(section)
