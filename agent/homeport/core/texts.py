"""Fields that nmstate reads as text whatever they look like, and the text that the document has there.

`next-hop-interface: 100` is the interface named "100", and `config: 1e3` a host name: serde_yaml
hands a field that nmstate declares as String the very characters of the document.  Not so below
`interfaces` and in policies: nmstate reads these into JSON values first, where 100 stays a number
and is refused for a name (nmstate 2.2.62: net_state.rs, hostname.rs, dns.rs, route.rs,
route_rule.rs, ovs.rs, ovn.rs against iface.rs and policy/).  Seen with `nmstatectl format`.
"""

from __future__ import annotations

from typing import Any

from homeport.core.complaint import Path
from homeport.core.scalars import plain_text
from homeport.core.yamlsafe import read_yaml

_ROUTE = ("destination", "next-hop-interface", "next-hop-address", "source", "vrf-name")
_RULE = ("ip-from", "ip-to", "iif")
_DNS = ("server", "search", "options")
# Sections that nmstate takes as empty when nothing stands there, but not when `null` does.
_MAY_BE_BARE = ("interfaces", "routes", "route-rules", "ovn")


class Texts:
    """The document's own spelling of its scalars; read again only if someone asks."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tree: Any = None
        self._read = False
        self._parent: tuple[Path, Any] = (), None  # the last one: a list is asked about item by item

    def at(self, path: Path, value: Any) -> str:
        """The text at `path`, or the usual spelling of `value` if it did not come as YAML."""
        if isinstance(value, str):
            return value
        if not self._read:
            self._tree, self._read = read_yaml(self._text, as_text=True).value, True
        above, last = path[:-1], path[-1]
        try:
            if self._parent[0] != above or not above:
                self._parent = above, self._find(above)
            found = self._parent[1][last]
        except (LookupError, TypeError):
            return plain_text(value)
        return found if isinstance(found, str) else plain_text(value)

    def _find(self, path: Path) -> Any:
        found = self._tree
        for part in path:
            found = found[part]
        return found


def as_nmstate_reads(config: dict[str, Any], texts: Texts, path: Path) -> dict[str, Any]:
    """A copy of a nmstate document with its text fields as text and bare sections left out.

    What is not of the shape that nmstate expects stays as it is, for the schema to complain about.
    """
    state = {key: value for key, value in config.items()
             if value is not None or key not in _MAY_BE_BARE}
    if isinstance(state.get("description"), int | float):
        state["description"] = texts.at((*path, "description"), state["description"])
    _fields(state, "hostname", ("running", "config"), texts, path)
    if isinstance(dns := state.get("dns-resolver"), dict):
        state["dns-resolver"] = {
            part: _lists(client, _DNS, texts, (*path, "dns-resolver", part))
            for part, client in dns.items()}
    _entries(state, "routes", "config", _ROUTE, texts, path)
    _entries(state, "routes", "running", _ROUTE, texts, path)
    _entries(state, "route-rules", "config", _RULE, texts, path)
    if isinstance(ovs := state.get("ovs-db"), dict):
        state["ovs-db"] = {part: _texts(values, None, texts, (*path, "ovs-db", part))
                           for part, values in ovs.items()}
    _entries(state, "ovn", "bridge-mappings", ("localnet", "bridge"), texts, path)
    return state


def _fields(parent: dict[str, Any], key: str, names: tuple[str, ...], texts: Texts,
            path: Path) -> None:
    if isinstance(parent.get(key), dict):
        parent[key] = _texts(parent[key], names, texts, (*path, key))


def _entries(state: dict[str, Any], section: str, key: str, names: tuple[str, ...], texts: Texts,
             path: Path) -> None:
    part = state.get(section)
    if isinstance(part, dict) and isinstance(part.get(key), list):
        where = (*path, section, key)
        state[section] = {**part, key: [_texts(entry, names, texts, (*where, index))
                                        for index, entry in enumerate(part[key])]}


def _texts(entry: Any, names: tuple[str, ...] | None, texts: Texts, path: Path) -> Any:
    """`entry` with its fields called `names` (without them: all) as text, unless they are not set."""
    if not isinstance(entry, dict):
        return entry
    spelled = {key: texts.at((*path, key), value) for key, value in entry.items()
               if (names is None or key in names) and isinstance(value, int | float)}
    return {**entry, **spelled} if spelled else entry


def _lists(client: Any, names: tuple[str, ...], texts: Texts, path: Path) -> Any:
    if not isinstance(client, dict):
        return client
    return {key: [texts.at((*path, key, index), part)
                  if part is None or isinstance(part, int | float) else part
                  for index, part in enumerate(value)]
            if key in names and isinstance(value, list) else value
            for key, value in client.items()}
