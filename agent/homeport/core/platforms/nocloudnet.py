"""NoCloud over the network: `ds=nocloud;s=http://…/` as cloud-init reads it, from the kernel command line or from
the serial number in SMBIOS, which hypervisors let their users choose.

Pure text. A seed that is a local folder is cloud-init's own business and no seed here.
"""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import quote, urlsplit

from homeport.core.facts import Smbios
from homeport.core.platforms import nocloud
from homeport.core.platforms.shape import Platform, Service
from homeport.errors import SettingsError

NAMES = ("nocloud", "nocloud-net")
SEED_KEYS = ("s", "seedfrom")
# __dmi.NAME__ in a seed, by dmidecode's names, and what that is here.
DMI = {
    "system-uuid": "uuid", "system-serial-number": "serial", "system-manufacturer": "manufacturer",
    "system-product-name": "product", "system-version": "version", "baseboard-serial-number": "board_serial",
    "baseboard-manufacturer": "board_manufacturer", "baseboard-product-name": "board_product",
    "chassis-serial-number": "chassis_serial", "chassis-asset-tag": "chassis_asset_tag",
}
FIELD = re.compile(r"__dmi\.([\w-]+)__")


def find_argument(text: str) -> str:
    """The `nocloud;s=…` of a `ds=` in `text`, which may be a serial number; "" if it is none."""
    _, found, rest = text.partition("ds=")
    word = rest.split()[0] if found and rest.split() else ""
    return word if word.partition(";")[0].lower() in NAMES else ""


def platform(argument: str, smbios: Smbios) -> Platform:
    """NoCloud as `argument` says: at the address of its seed, or without one on a drive.

    Raises SettingsError for an address that asks for what SMBIOS doesn't say here.
    """
    seed = _seed(argument)
    if not _is_address(seed):
        return nocloud.PLATFORM
    base = FIELD.sub(lambda match: _fact(match[1], smbios), seed).rstrip("/")
    return replace(nocloud.PLATFORM, ways=(Service(base, nocloud.DRIVE.wants),))


def _seed(argument: str) -> str:
    pairs = (part.partition("=") for part in argument.split(";")[1:])
    return next((value for key, _, value in pairs if key.strip() in SEED_KEYS), "")


def _is_address(seed: str) -> bool:
    """Of a service, as far as one can see: anybody may have written a serial number."""
    try:
        parts = urlsplit(seed)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 80) > 0
    except ValueError:  # a port that is no number, brackets that do not match
        return False


def _fact(name: str, smbios: Smbios) -> str:
    value = str(getattr(smbios, DMI[name])) if name in DMI else ""
    if not value:
        raise SettingsError(f"the seed of ds=nocloud asks for __dmi.{name}__, which this machine does not have",
                            "`homeport identify` shows what it has")
    return quote(value, safe="")
