"""The answer to Get: what elemental-register is to install, and the network, as one YAML mapping.

Laid out so that Go's yaml.v3 reads it into the operator's structs (spec/elemental.md, 1.6): every value of `config`
and `cloud-config` is a RawExtension, whose JSON stands there as a list of byte values. Further keys it ignores, so
`revision` and `proof` are ours. Knows no sockets, and keeps no secrets but those of the registration.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from homeport.core.placeholders import fill, fill_keyfiles
from homeport.core.yamlwrite import render_yaml
from homeport_server.elemental.messages import Type
from homeport_server.manifests.registrations import Registration
from homeport_server.outcome import Assigned, Waiting

# What GetClientRegistrationConfig passes on; no-toolkit and labels are the machine's own.
_REGISTRATION_KEYS = ("emulate-tpm", "emulated-tpm-seed", "no-smbios", "auth")
_PASSED_ON = ("install", "reset", "system-agent")


def bootstrap(registration: Registration, url: str, ca: str) -> dict[str, Any]:
    """What anyone who has the registration's URL is told: how to register. Zero values are left out, as Go does."""
    given = registration.elemental.get("registration") or {}
    values = {"url": url, "ca-cert": ca, **{key: given.get(key) for key in _REGISTRATION_KEYS}}
    return {"elemental": {"registration": {key: value for key, value in values.items() if value}}}


def render_bootstrap(registration: Registration, url: str, ca: str) -> str:
    return render_yaml(bootstrap(registration, url, ca))


def render_config(registration: Registration, url: str, ca: str, assigned: Assigned, version: int) -> bytes:
    """The payload of MsgConfig; for a protocol before 12 without the network, which it does not know."""
    tree = bootstrap(registration, url, ca)
    tree["elemental"] |= {key: registration.elemental[key] for key in _PASSED_ON if registration.elemental.get(key)}
    text = render_yaml(tree) + _raws("cloud-config", registration.cloud_config)
    if version >= Type.NETWORK_CONFIG and assigned.network:
        text += _network(assigned)
    return text.encode("utf-8", "surrogatepass")


def render_error(reason: str | Waiting) -> bytes:
    """The payload of MsgError. `pending` and `retry-after` (seconds) are ours: Go reads the message alone."""
    if isinstance(reason, Waiting):
        return render_yaml({"message": f"not ready: {reason.reason}", "pending": True,
                            "retry-after": reason.retry_after}).encode()
    return render_yaml({"message": reason}).encode()


def _network(assigned: Assigned) -> str:
    network = assigned.network
    head: dict[str, Any] = {"configurator": network.configurator}
    if assigned.addresses:
        # Go has text here; prefix and gateway go straight into the template, which it can fill no further.
        head["ipAddresses"] = {name: address.ip for name, address in assigned.addresses.items()}
    head["revision"] = assigned.revision
    if network.proof is not None:
        head["proof"] = network.proof
    if network.force:
        head["force"] = True
    # `{name}` stays as it is: each address is filled in by itself, for the machine to fill.
    kept = {name: replace(address, ip="{" + name + "}") for name, address in assigned.addresses.items()}
    filler = fill_keyfiles if network.configurator == "nmconnections" else fill
    config, _open = filler(network.config, kept)
    return render_yaml(head) + _raws("config", config)


def _raws(key: str, values: Mapping[str, Any]) -> str:
    """A map of RawExtensions; each list of bytes on one line, for 8 KB would be 20 otherwise."""
    if not values:
        return ""
    lines = [f"{key}:"]
    for name, value in values.items():
        data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        # The writer of YAML knows how to quote a key.
        quoted = render_yaml({name: None}).rpartition(":")[0]
        lines += [f"    {quoted}:", f"        raw: [{', '.join(map(str, data))}]", "        object: null"]
    return "\n".join(lines) + "\n"
