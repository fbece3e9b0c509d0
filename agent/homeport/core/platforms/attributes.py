"""What a platform says of an instance beyond its network: attributes by Afterburn's names, and its host name.

The names are an interface that services rely on (`EnvironmentFile=/run/metadata/afterburn`; Afterburn,
docs/usage/attributes.md), so they are kept as they are.  Values are looked up where the table says: a file of
the metadata, or with `#` a value in it; `*` is each item of a list, numbered in the name, and `+` all of them,
with colons between; after ` | ` another place follows, for where there is nothing at the first one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from homeport.core.platforms import vmware
from homeport.core.platforms.network import Network, Situation
from homeport.core.platforms.reading import Fault, Files, Node, line, tree
from homeport.core.platforms.shape import Platform, Want

PREFIX = "AFTERBURN"
HOSTNAME_MAX = 64  # bytes, limits.h of Linux
LONGEST = 4096  # characters of a value

_EC2, _ALIYUN = "2021-01-03/meta-data", "2016-01-01/meta-data"
_EXOSCALE = "1.0/meta-data"
_OPENSTACK, _OPENSTACK_EC2 = "openstack/latest/meta_data.json", "ec2/latest/meta-data.json"
_NETWORK = "computeMetadata/v1/instance/network-interfaces/"
_HETZNER, _HETZNER_PRIVATE = "hetzner/v1/metadata", "hetzner/v1/metadata/private-networks"
_DROPLET = "metadata/v1.json#"
_CLOUDSTACK = {"AVAILABILITY_ZONE": "cloudstack/metadata/availability_zone.txt",
               "CLOUD_IDENTIFIER": "cloudstack/metadata/cloud_identifier.txt",
               "INSTANCE_ID": "cloudstack/metadata/instance_id.txt",
               "LOCAL_HOSTNAME": "cloudstack/metadata/local_hostname.txt",
               "SERVICE_OFFERING": "cloudstack/metadata/service_offering.txt",
               "VM_ID": "cloudstack/metadata/vm_id.txt"}

ATTRIBUTES: Mapping[str, Mapping[str, str]] = {
    "akamai": {
        "INSTANCE_HOST_UUID": "v1/instance#host_uuid", "INSTANCE_ID": "v1/instance#id",
        "INSTANCE_LABEL": "v1/instance#label", "INSTANCE_REGION": "v1/instance#region",
        "INSTANCE_TAGS": "v1/instance#tags.+", "INSTANCE_TYPE": "v1/instance#type",
        "IPV6_LINK_LOCAL": "v1/network#ipv6.link_local",
        "IPV6_RANGE_*": "v1/network#ipv6.ranges.*", "IPV6_SHARED_RANGE_*": "v1/network#ipv6.shared_ranges.*",
        "IPV6_SLAAC": "v1/network#ipv6.slaac", "PRIVATE_IPV4_*": "v1/network#ipv4.private.*",
        "PUBLIC_IPV4_*": "v1/network#ipv4.public.*", "SHARED_IPV4_*": "v1/network#ipv4.shared.*"},
    "aliyun": {
        "EIPV4": f"{_ALIYUN}/eipv4", "HOSTNAME": f"{_ALIYUN}/hostname", "IMAGE_ID": f"{_ALIYUN}/image-id",
        "INSTANCE_ID": f"{_ALIYUN}/instance-id", "INSTANCE_TYPE": f"{_ALIYUN}/instance/instance-type",
        "IPV4_PRIVATE": f"{_ALIYUN}/private-ipv4", "IPV4_PUBLIC": f"{_ALIYUN}/public-ipv4",
        "REGION_ID": f"{_ALIYUN}/region-id", "VPC_ID": f"{_ALIYUN}/vpc-id", "ZONE_ID": f"{_ALIYUN}/zone-id"},
    "aws": {
        "HOSTNAME": f"{_EC2}/hostname", "PUBLIC_HOSTNAME": f"{_EC2}/public-hostname",
        "IPV4_LOCAL": f"{_EC2}/local-ipv4", "IPV4_PUBLIC": f"{_EC2}/public-ipv4", "IPV6": f"{_EC2}/ipv6",
        "AVAILABILITY_ZONE": f"{_EC2}/placement/availability-zone",
        "AVAILABILITY_ZONE_ID": f"{_EC2}/placement/availability-zone-id", "INSTANCE_ID": f"{_EC2}/instance-id",
        "INSTANCE_TYPE": f"{_EC2}/instance-type", "REGION": f"{_EC2}/placement/region"},
    "azure": {
        "IPV4_DYNAMIC": "metadata/instance/network#interface.0.ipv4.ipAddress.0.privateIpAddress",
        "IPV4_VIRTUAL": "metadata/instance/network#interface.0.ipv4.ipAddress.0.publicIpAddress",
        "VMSIZE": "metadata/instance/compute#vmSize"},
    "cloudstack": _CLOUDSTACK,
    "digitalocean": {
        "HOSTNAME": f"{_DROPLET}hostname", "REGION": f"{_DROPLET}region",
        "IPV4_ANCHOR_*": f"{_DROPLET}interfaces.public.*.anchor_ipv4.ip_address",
        "IPV4_PUBLIC_*": f"{_DROPLET}interfaces.public.*.ipv4.ip_address",
        "IPV4_PRIVATE_*": f"{_DROPLET}interfaces.private.*.ipv4.ip_address",
        "IPV6_PUBLIC_*": f"{_DROPLET}interfaces.public.*.ipv6.ip_address",
        "IPV6_PRIVATE_*": f"{_DROPLET}interfaces.private.*.ipv6.ip_address"},
    "exoscale": {
        "AVAILABILITY_ZONE": f"{_EXOSCALE}/availability-zone", "CLOUD_IDENTIFIER": f"{_EXOSCALE}/cloud-identifier",
        "INSTANCE_ID": f"{_EXOSCALE}/instance-id", "LOCAL_IPV4": f"{_EXOSCALE}/local-ipv4",
        "PUBLIC_IPV4": f"{_EXOSCALE}/public-ipv4", "LOCAL_HOSTNAME": f"{_EXOSCALE}/local-hostname",
        "PUBLIC_HOSTNAME": f"{_EXOSCALE}/public-hostname", "SERVICE_OFFERING": f"{_EXOSCALE}/service-offering",
        "VM_ID": f"{_EXOSCALE}/vm-id"},
    "gcp": {
        "HOSTNAME": "computeMetadata/v1/instance/hostname", "MACHINE_TYPE": "computeMetadata/v1/instance/machine-type",
        "IP_EXTERNAL_*": f"{_NETWORK}#*.accessConfigs.0.externalIp", "IP_LOCAL_*": f"{_NETWORK}#*.ip"},
    "hetzner": {
        "AVAILABILITY_ZONE": f"{_HETZNER}/availability-zone", "HOSTNAME": f"{_HETZNER}/hostname",
        "INSTANCE_ID": f"{_HETZNER}/instance-id", "PUBLIC_IPV4": f"{_HETZNER}/public-ipv4",
        "PRIVATE_IPV4_*": f"{_HETZNER_PRIVATE}#*.ip", "REGION": f"{_HETZNER}/region"},
    "ibmcloud": {"INSTANCE_ID": "meta-data#instance-id", "LOCAL_HOSTNAME": "meta-data#local-hostname"},
    # `hostname` is the name with its domain there.
    "ibmcloud-classic": {"INSTANCE_ID": f"{_OPENSTACK}#uuid",
                         "LOCAL_HOSTNAME": f"{_OPENSTACK}#name | {_OPENSTACK}#hostname"},
    "kubevirt": {
        "HOSTNAME": f"{_OPENSTACK}#hostname | meta-data#local-hostname",
        "INSTANCE_ID": f"{_OPENSTACK}#uuid | meta-data#instance-id", "INSTANCE_TYPE": f"{_OPENSTACK}#instance_type"},
    "nocloud": {"HOSTNAME": "meta-data#local-hostname", "INSTANCE_ID": "meta-data#instance-id"},
    "openstack": {
        "HOSTNAME": f"latest/meta-data/hostname | {_OPENSTACK}#hostname",
        "INSTANCE_ID": f"latest/meta-data/instance-id | {_OPENSTACK_EC2}#instance-id",
        "INSTANCE_TYPE": f"latest/meta-data/instance-type | {_OPENSTACK_EC2}#instance-type",
        "INSTANCE_UUID": f"{_OPENSTACK}#uuid",
        "IPV4_LOCAL": f"latest/meta-data/local-ipv4 | {_OPENSTACK_EC2}#local-ipv4",
        "IPV4_PUBLIC": f"latest/meta-data/public-ipv4 | {_OPENSTACK_EC2}#public-ipv4"},
    "oraclecloud": {
        "AVAILABILITY_DOMAIN": "opc/v2/instance/#availabilityDomain",
        "COMPARTMENT_ID": "opc/v2/instance/#compartmentId", "FAULT_DOMAIN": "opc/v2/instance/#faultDomain",
        "HOSTNAME": "opc/v2/instance/#hostname", "INSTANCE_ID": "opc/v2/instance/#id",
        "INSTANCE_SHAPE": "opc/v2/instance/#shape", "REGION_ID": "opc/v2/instance/#canonicalRegionName"},
    "packet": {"HOSTNAME": "metadata#hostname", "PHONE_HOME_URL": "metadata#phone_home_url", "PLAN": "metadata#plan"},
    "powervs": {"INSTANCE_ID": f"{_OPENSTACK}#uuid", "LOCAL_HOSTNAME": f"{_OPENSTACK}#name | {_OPENSTACK}#hostname"},
    "proxmoxve": {"HOSTNAME": "user-data#hostname", "INSTANCE_ID": "meta-data#instance-id"},
    "scaleway": {
        "HOSTNAME": "conf#hostname", "INSTANCE_ID": "conf#id", "INSTANCE_TYPE": "conf#commercial_type",
        # Afterburn's documentation has the first three of these names, its program the others.
        "PRIVATE_IPV4": "conf#private_ip", "PUBLIC_IPV4": "conf#public_ip.address", "PUBLIC_IPV6": "conf#ipv6.address",
        "IPV4_PRIVATE": "conf#private_ip", "IPV4_PUBLIC": "conf#public_ip.address", "IPV6_PUBLIC": "conf#ipv6.address",
        "ZONE_ID": "conf#location.zone_id"},
    "upcloud": {
        "HOSTNAME": "metadata/v1.json#hostname", "INSTANCE_ID": "metadata/v1.json#instance_id",
        "REGION": "metadata/v1.json#region"},
    # No attributes of Afterburn's: it reads nothing there but kernel arguments.
    "vmware": {"HOSTNAME": f"{vmware.METADATA}#local-hostname", "INSTANCE_ID": f"{vmware.METADATA}#instance-id"},
    "vultr": {
        "HOSTNAME": "v1.json#hostname", "INSTANCE_ID": "v1.json#instanceid",
        "REGION_CODE": "v1.json#region.regioncode"},
}
QUERIES = {"metadata/instance/compute": "api-version=2021-02-01&format=json"}
# What has to be known to read another one.
_BESIDE = {vmware.METADATA: vmware.ENCODING}
# A host name that is no attribute of Afterburn's.
HOSTNAMES = {"azure": "metadata/instance/compute#name"}

# The first addresses of the network that the metadata describe, by family.
FIRST_ADDRESSES: Mapping[str, Mapping[int, str]] = {
    "hetzner": {6: "PUBLIC_IPV6"}, "kubevirt": {4: "IPV4", 6: "IPV6"}, "proxmoxve": {4: "IPV4", 6: "IPV6"}}

# What stands for what in the names that are for everybody, in order of preference.
_CUSTOM = {
    "HOSTNAME": ("HOSTNAME", "LOCAL_HOSTNAME"),
    "PUBLIC_IPV4": ("PUBLIC_IPV4", "IPV4_PUBLIC", "IPV4_PUBLIC_0", "PUBLIC_IPV4_0", "IP_EXTERNAL_0", "EIPV4",
                    "IPV4_VIRTUAL"),
    "PRIVATE_IPV4": ("PRIVATE_IPV4", "LOCAL_IPV4", "IPV4_LOCAL", "IPV4_PRIVATE", "IPV4_PRIVATE_0", "PRIVATE_IPV4_0",
                     "IP_LOCAL_0", "IPV4_DYNAMIC"),
    "PUBLIC_IPV6": ("PUBLIC_IPV6", "IPV6", "IPV6_PUBLIC_0", "IPV6_SLAAC"),
    "PRIVATE_IPV6": ("PRIVATE_IPV6", "IPV6_PRIVATE_0"),
}
_ADDRESS = re.compile(r"IPV[46]|\bIP_")


def wants(platform: Platform) -> list[Want]:
    """The metadata that attributes and host name need, of whatever way the platform has."""
    places = [*ATTRIBUTES.get(platform.name, {}).values(), HOSTNAMES.get(platform.name, "")]
    paths = dict.fromkeys(place.partition("#")[0] for each in places for place in each.split(" | ") if place)
    paths |= dict.fromkeys(_BESIDE[path] for path in paths if path in _BESIDE)
    known = {want.path: want for way in platform.ways for want in way.wants({})}
    if platform.name in FIRST_ADDRESSES:
        paths |= dict.fromkeys(known)
    return [Want(path, known[path].query if path in known else QUERIES.get(path, ""), optional=True) for path in paths]


def attributes(platform: Platform, files: Files) -> dict[str, str]:
    """The attributes by their whole names, in the platform's own namespace and in that for everybody."""
    found = {name: value for name, place in ATTRIBUTES.get(platform.name, {}).items()
             for name, value in _look_up(name, place, files) if value}
    if platform.name == "packet":
        found |= _packet(files)
    found |= _first_addresses(platform, files)
    found = {name: _as_address(name, value) if _ADDRESS.search(name) else value for name, value in found.items()}
    found = {name: value for name, value in found.items() if value}
    custom = {name: next((found[each].partition("/")[0] for each in candidates if each in found), "")
              for name, candidates in _CUSTOM.items()}
    custom["HOSTNAME"] = custom["HOSTNAME"] or hostname(platform, files)
    own = platform.name.upper().replace("-", "_")
    return {**{f"{PREFIX}_{own}_{name}": value for name, value in found.items()},
            **{f"{PREFIX}_CUSTOM_{name}": value for name, value in custom.items() if value}}


def hostname(platform: Platform, files: Files) -> str:
    """The host name that the platform gives, however long it is; "" if it gives none."""
    places = [HOSTNAMES.get(platform.name, ""), *(
        place for name, place in ATTRIBUTES.get(platform.name, {}).items() if name in _CUSTOM["HOSTNAME"])]
    found = (value for place in filter(None, places) for _, value in _look_up("", place, files))
    return next(filter(None, found), "")


def shortened(name: str) -> str:
    """As the kernel takes it: a name that fits is untouched, a longer one cut to 64 bytes, then at its first dot."""
    data = name.encode()
    if len(data) <= HOSTNAME_MAX:
        return name
    cut = data[:HOSTNAME_MAX].decode("utf-8", "ignore")
    return cut.partition(".")[0]


def _look_up(name: str, place: str, files: Files) -> Iterator[tuple[str, str]]:
    for each in place.split(" | "):
        path, inside, keys = each.partition("#")
        if files.get(path) is None:
            continue
        try:
            value: Any = _document(files, path).value if inside else line(files, path).value
        except Fault:  # something else than it should be: an attribute is never a reason to fail
            continue
        values = list(_values(value, keys.split(".") if inside else []))
        yield from ((name.replace("*", str(number)), text) for number, text in enumerate(values))
        if values:
            return


def _document(files: Files, path: str) -> Node:
    return vmware.metadata(files) if path == vmware.METADATA else tree(files, path)


def _values(value: Any, keys: list[str]) -> Iterator[str]:
    """The scalars at `keys`, whatever shape the value has."""
    if not keys:
        text = value if isinstance(value, str) else str(value) if isinstance(value, int) else ""
        # One line of printable characters: this goes to files that are read line by line.
        yield text if text.isprintable() and len(text) <= LONGEST else ""
    elif keys[0] == "*":
        for item in value if isinstance(value, list) else ():
            yield from _values(item, keys[1:])
    elif keys[0] == "+":
        yield from _values(":".join(_values(value, ["*", *keys[1:]])), [])
    elif isinstance(value, list) and keys[0].isdigit():
        yield from _values(value[int(keys[0])], keys[1:]) if int(keys[0]) < len(value) else ()
    elif isinstance(value, dict) and keys[0] in value:
        yield from _values(value[keys[0]], keys[1:])


def _as_address(name: str, text: str) -> str:
    """As everybody writes it: IPv6 in small letters. "" for what is no address, or of another family than `name` says:
    units have it on their command lines.
    """
    from ipaddress import ip_interface

    try:
        found = ip_interface(text)
    except ValueError:
        return ""
    family = 4 if "IPV4" in name else 6 if "IPV6" in name else found.version
    if found.version != family or "%" in text:
        return ""
    return str(found if "/" in text else found.ip)


def _first_addresses(platform: Platform, files: Files) -> dict[str, str]:
    """Those of the first interface that has any; none of a network that cannot be understood."""
    names = FIRST_ADDRESSES.get(platform.name, {})
    network = Network(Situation())
    there = {path: data for path, data in files.items() if data is not None}
    with suppress(Fault):
        if names:
            platform.build(there, network)
    addresses = next((link.addresses for link in network.links.values() if link.addresses), ())
    return {names[each.version]: str(each.ip) for each in reversed(list(addresses)) if each.version in names}


def _packet(files: Files) -> dict[str, str]:
    """Addresses are one list there, told apart by what they are."""
    found: dict[str, str] = {}
    count: dict[str, int] = {}
    try:
        addresses = tree(files, "metadata")["network"]["addresses"].items()
    except Fault:
        return {}
    for entry in addresses:
        try:
            family, public = entry["address_family"].number(4, 6), entry["public"].flag()
        except Fault:
            continue
        if family not in (4, 6):
            continue
        kind = f"IPV{family}_{'PUBLIC' if public else 'PRIVATE'}"
        number = count.setdefault(kind, 0)
        count[kind] += 1
        for key, suffix in (("address", ""), ("gateway", "_GATEWAY")):
            for text in _values(entry[key].value, []):
                found[f"{kind}{suffix}_{number}"] = text
    return {name: value for name, value in found.items() if value}
