"""`configurator: nmc`: what nm-configurator's documents mean that nmstate's do not.

They are nmstate's, but for one thing (suse-edge/nm-configurator, apply_conf.rs, detect_local_interfaces): the name of
an ethernet interface is the document's own, and its `mac-address` says which card that is. In nmstate's words this is
`identifier: mac-address`. What nm-configurator then does by replacing text, the resolver does by fields.
"""

from __future__ import annotations

from typing import Any


def as_nmstate_says(config: dict[str, Any]) -> dict[str, Any]:
    """The same document with its cards told as nmstate tells them. Never raises, whatever the tree."""
    interfaces = config.get("interfaces")
    if not isinstance(interfaces, list):
        return config
    return {**config, "interfaces": [_told_by_mac(one) if _is_card(one) else one for one in interfaces]}


def _is_card(interface: Any) -> bool:
    return (isinstance(interface, dict) and interface.get("type") == "ethernet"
            and isinstance(interface.get("mac-address"), str)
            and "identifier" not in interface and "match" not in interface)


def _told_by_mac(interface: dict[str, Any]) -> dict[str, Any]:
    return {**interface, "identifier": "mac-address"}
