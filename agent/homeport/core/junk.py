"""What firmware says when it says nothing: UUIDs, serial numbers and MACs that many machines share.

Each function returns why a value cannot name a machine, in words, or "" if it can.  The lists are what
vendors have shipped (dmidecode output in public reports; elemental-operator and assisted-installer refuse
parts of the same); values no list can hold are caught by their shape: all one character, counting up, too
short.  Refuses to know which fact matters more: that is `identity.py`.
"""

from __future__ import annotations

from homeport.core.mac import is_usable_mac

VENDOR_UUIDS = frozenset((
    "03000200-0400-0500-0006-000700080009",  # AMI's sample, on boards of many makers
    "00020003-0004-0005-0006-000700080009",  # the same in the other byte order
    "03020100-0504-0706-0809-0a0b0c0d0e0f",  # counting up, little-endian
    "00010203-0405-0607-0809-0a0b0c0d0e0f",  # counting up
    "12345678-1234-5678-90ab-cddeefaabbcc",  # Gigabyte
    "78563412-3412-7856-90ab-cddeefaabbcc",  # the same in the other byte order
    "4c4c4544-0000-2010-8020-80c04f202020",  # Dell without a service tag: "DELL" and blanks
    "44454c4c-0000-1020-8020-80c04f202020",  # the same in the other byte order
))
# Compared in lower case, without anything but letters and digits.
VENDOR_TEXTS = frozenset((
    "none", "null", "nil", "na", "nosn", "unknown", "unspecified", "undefined", "empty", "blank", "default",
    "defaultstring", "invalid", "oem", "sample", "example", "test", "tbd", "todo", "string",
    "tobefilledbyoem", "tobefilledbyoemenduser", "tobefilled", "filledbyoem", "oemserialnumber",
    "systemserialnumber", "sysserialnumber", "serialnumber", "serial", "productserialnumber",
    "chassisserialnumber", "baseboardserialnumber", "boardserialnumber", "motherboardserialnumber",
    "mbserialnumber", "mbserial", "systemserial", "ssnstring", "serialno", "noasset", "noassettag",
    "systemproductname", "systemmanufacturer", "systemversion", "systemsku", "productname", "assettag",
    "chassisassettag", "type1systemserialnumber", "type2boardserialnumber",
    "vmware", "qemu", "virtualbox", "0x00000000",
))
# "Not Specified", "Not Available", "Not Applicable", "Not Settable", ...
VENDOR_BEGINNINGS = ("not ", "to be filled", "no serial", "<", "(none")
HOSTNAMES = frozenset((
    "localhost", "localhost.localdomain", "localhost6", "(none)", "linux", "none", "unknown"))
SHORTEST_SERIAL = 4
COUNTING = "01234567890123456789012345678901234567890123456789"


def uuid_fault(uuid: str) -> str:
    """Why an SMBIOS UUID cannot name a machine."""
    if not uuid:
        return "there is none"
    digits = uuid.lower().replace("-", "")
    if _is_vendor_text(uuid):
        return f"{uuid!r} is what firmware says for nothing"
    if len(digits) != 32 or not all(digit in "0123456789abcdef" for digit in digits):
        return f"{uuid!r} is not a UUID"
    if uuid.lower() in VENDOR_UUIDS:
        return f"{uuid} is a firmware vendor's sample, on many machines"
    if len({digits[at:at + 2] for at in range(0, 32, 2)}) == 1:
        return f"{uuid} is one byte repeated"
    return ""


def serial_fault(serial: str) -> str:
    """Why an SMBIOS serial number cannot name a machine."""
    if not serial.strip():
        return "there is none"
    core = "".join(character for character in serial.lower() if character.isalnum())
    if _is_vendor_text(serial):
        return f"{serial!r} is what firmware says for nothing"
    if len(core) < SHORTEST_SERIAL:
        return f"{serial!r} is too short to name one machine"
    if len(set(core)) == 1:
        return f"{serial!r} is one character repeated"
    if core in COUNTING:
        return f"{serial!r} only counts up"
    return ""


def mac_fault(mac: str) -> str:
    """Why a normalised MAC cannot name a machine."""
    if not mac:
        return "no physical network card with a permanent MAC"
    return "" if is_usable_mac(mac) else f"{mac} is no card's own"


def tpm_hash_fault(tpm_hash: str) -> str:
    """Why this is not the SHA-256 of an endorsement key."""
    if not tpm_hash:
        return "no endorsement key was read"
    if len(tpm_hash) != 64 or not all(digit in "0123456789abcdef" for digit in tpm_hash):
        return f"{tpm_hash!r} is not a SHA-256"
    return "" if len(set(tpm_hash)) > 1 else f"{tpm_hash} is one digit repeated"


def hostname_fault(hostname: str) -> str:
    """Why a host name says nothing about a machine."""
    if not hostname:
        return "there is none"
    return f"{hostname!r} is every machine's" if hostname.lower() in HOSTNAMES else ""


def _is_vendor_text(text: str) -> bool:
    folded = " ".join(text.lower().split())
    core = "".join(character for character in folded if character.isalnum())
    return not core or core in VENDOR_TEXTS or folded.startswith(VENDOR_BEGINNINGS)
