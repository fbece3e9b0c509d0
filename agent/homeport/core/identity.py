"""Who this machine is: the facts that may name it, in order, and why one of them was not believed.

Knows what firmware leaves in these fields when nobody filled them in.  Never invents an identity: if no
fact is sound there is none.  A UUID, a serial number or a MAC identifies a machine, it does not
authenticate it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from homeport.core.facts import Facts, Nic
from homeport.core.junk import hostname_fault, mac_fault, serial_fault, tpm_hash_fault, uuid_fault
from homeport.core.mac import is_locally_administered, is_usable_mac, normalise_mac

OVERRIDE_FILE = "/etc/homeport/identity"
OVERRIDE_ARGUMENT = "kernel argument homeport.identity="
ORDER = ("tpm", "smbios-uuid", "smbios-serial", "mac")
# What may stand before the colon of an override, and the field it fills.
OVERRIDE_KINDS = {"uuid": "uuid", "smbios-uuid": "uuid", "serial": "serial", "smbios-serial": "serial",
                  "mac": "mac", "hostname": "hostname", "tpmhash": "tpmhash", "tpm": "tpmhash"}


@dataclass(frozen=True)
class Identity:
    """What names this machine.

    `kind` is "override", "tpm", "smbios-uuid", "smbios-serial", "mac", or "none" with an empty `value`.
    `provenance` says where the value was read.  `rejected` has a sentence for each fact that came before
    it in the order and was not believed.  `fields` are all sound facts, for templates: of uuid, serial,
    mac, hostname and tpmhash those that are known.  `macs` are those of all physical cards.
    """

    kind: str = "none"
    value: str = ""
    provenance: str = ""
    rejected: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    macs: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.value} ({self.provenance})" if self.value else "no identity"

    @property
    def match_facts(self) -> Mapping[str, tuple[str, ...]]:
        """Each fact with all values that fit this machine, as `match:` in a document wants them."""
        facts = {name: (value,) for name, value in self.fields.items()}
        if self.macs:
            facts["mac"] = tuple(dict.fromkeys((*facts.get("mac", ()), *self.macs)))
        return MappingProxyType(facts)


@dataclass(frozen=True)
class Finding:
    """One fact that may name a machine: the field it fills, where it was read, and why it is not believed."""

    kind: str
    field: str
    value: str
    provenance: str
    fault: str


@dataclass(frozen=True)
class TpmFact:
    """What was read of the TPM: the hash of its endorsement key and how that was found, or why there is none."""

    hash: str = ""
    provenance: str = ""
    fault: str = ""


def identify(facts: Facts, *, order: Sequence[str] = ORDER, override: str = "",
             tpm: TpmFact | None = None) -> Identity:
    """The first fact of `order` that is sound, unless an override says who this is.  Never raises.

    `override` is the kernel argument's value and wins over the file's (`facts.identity_override`): the
    same rule as for every setting, and the only way to correct at the boot prompt what was baked into an
    image or cloned with a disk.  An override that cannot be understood leaves no identity: going back to
    the hardware's could fetch another machine's configuration, which is why people write overrides.
    `tpm` is what was read of the TPM, None if nobody looked.
    """
    findings = _findings(facts, tpm or TpmFact())
    fields = MappingProxyType({found.field: found.value for found in findings if not found.fault})
    macs = physical_macs(facts.nics)
    for text, where in ((override, OVERRIDE_ARGUMENT), (facts.identity_override, OVERRIDE_FILE)):
        if text.strip():
            return _overridden(text.strip(), where, fields, macs)
    by_kind = {finding.kind: finding for finding in findings}
    rejected: list[str] = []
    for kind in order:
        finding = by_kind.get(kind)
        if finding and not finding.fault:
            return Identity(kind, finding.value, finding.provenance, tuple(rejected), fields, macs)
        rejected.append(f"{kind}: {finding.fault if finding else 'not a kind of identity'}")
    return Identity(rejected=tuple(rejected), fields=fields, macs=macs)


def needs_tpm(facts: Facts, *, order: Sequence[str] = ORDER, override: str = "",
              templates: Sequence[str] = ()) -> bool:
    """Whether the TPM has to be asked who this is, which takes a slow one half a minute.

    Only if no fact that comes before it in `order` is sound, or if one of the `templates` wants its hash.
    """
    if any("{tpmhash}" in template for template in templates):
        return True
    if "tpm" not in order or override.strip() or facts.identity_override.strip():
        return False
    otherwise = identify(facts, order=[kind for kind in order if kind != "tpm"])
    return otherwise.kind == "none" or order.index("tpm") < order.index(otherwise.kind)


def physical_macs(nics: Sequence[Nic]) -> tuple[str, ...]:
    """The usable MACs of all physical cards, permanent ones where they have one, sorted, each once."""
    macs = {nic.permanent_mac or nic.mac for nic in nics if not nic.virtual}
    return tuple(sorted(mac for mac in macs if mac and is_usable_mac(mac)))


def _findings(facts: Facts, tpm: TpmFact) -> tuple[Finding, ...]:
    smbios = facts.smbios
    mac, card = _naming_mac(facts.nics)
    return (
        Finding("tpm", "tpmhash", tpm.hash, tpm.provenance, tpm.fault or tpm_hash_fault(tpm.hash)),
        Finding("smbios-uuid", "uuid", smbios.uuid, f"{smbios.provenance}, system UUID",
                uuid_fault(smbios.uuid)),
        Finding("smbios-serial", "serial", smbios.serial, f"{smbios.provenance}, system serial number",
                serial_fault(smbios.serial)),
        Finding("mac", "mac", mac, f"permanent MAC of {card}, the smallest", mac_fault(mac)),
        Finding("hostname", "hostname", facts.hostname, "host name", hostname_fault(facts.hostname)),
    )


def _naming_mac(nics: Sequence[Nic]) -> tuple[str, str]:
    """The smallest permanent MAC of a physical card, as Elemental's `mac` authentication chooses it.

    Elemental looks at the current MAC where addr_assign_type says that it is the permanent one; the
    permanent MAC itself is the same and doesn't go away when the card becomes a port of a bond.
    """
    candidates = [(nic.permanent_mac or (nic.mac if nic.addr_assign_type == 0 else ""), nic.name)
                  for nic in nics if not nic.virtual and not is_service_processor(nic)]
    return min((pair for pair in candidates if pair[0] and is_usable_mac(pair[0])), default=("", ""))


def is_service_processor(nic: Nic) -> bool:
    """Whether this looks like the USB end of a BMC or a gadget: many machines have the same MAC there."""
    mac = nic.permanent_mac or nic.mac
    return nic.usb and bool(mac) and is_locally_administered(mac)


def _overridden(text: str, where: str, fields: Mapping[str, str], macs: tuple[str, ...]) -> Identity:
    try:
        name, value = parse_override(text)
    except ValueError as error:
        return Identity(rejected=(f"{where}: {error}",))
    return Identity("override", value, where, (), MappingProxyType({**fields, name: value}), macs)


def parse_override(text: str) -> tuple[str, str]:
    """The field and the value of "kind:value" or of a bare value.

    A bare value is a UUID or a MAC if it looks like one, and otherwise a serial number.  The deny-lists
    don't apply: a person wrote it.  Raises ValueError in words.
    """
    prefix, colon, rest = text.partition(":")
    name = OVERRIDE_KINDS.get(prefix.strip().lower()) if colon else None
    value = rest.strip() if name else text.strip()
    if not value or not value.isprintable():
        raise ValueError(f"{text!r} is not an identity")
    guess = name or next((field for field in ("uuid", "mac") if _fits(field, value)), "serial")
    if not _fits(guess, value):
        raise ValueError(f"{value!r} is not a {guess}")
    return guess, _NORMAL[guess](value)


def _fits(name: str, value: str) -> bool:
    try:
        _NORMAL[name](value)
    except ValueError:
        return False
    return True


def _uuid(text: str) -> str:
    digits = text.lower().replace("-", "").strip("{}")
    if len(digits) != 32 or not all(digit in "0123456789abcdef" for digit in digits):
        raise ValueError("a UUID")
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _tpm_hash(text: str) -> str:
    if fault := tpm_hash_fault(text.lower()):
        raise ValueError(fault)
    return text.lower()


_NORMAL: Mapping[str, Callable[[str], str]] = {
    "uuid": _uuid, "mac": normalise_mac, "tpmhash": _tpm_hash, "serial": str, "hostname": str,
}
