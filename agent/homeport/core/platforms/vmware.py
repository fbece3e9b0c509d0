"""VMware: two keys of `guestinfo`, which the hypervisor holds for each virtual machine."""

from __future__ import annotations

from homeport.core.platforms import kargs, networkconfig
from homeport.core.platforms.network import Network
from homeport.core.platforms.reading import Files, Node, decode, line, tree
from homeport.core.platforms.shape import Guestinfo, Platform, Sign, Want, fixed

METADATA, ENCODING = "guestinfo.metadata", "guestinfo.metadata.encoding"
KARGS = "guestinfo.afterburn.initrd.network-kargs"
PLAIN, BASE64, GZIP = ("",), ("base64", "b64"), ("gzip+base64", "gz+b64")
LARGEST = 512 << 10  # bytes, unpacked
DEFLATE_IN_GZIP = 31  # zlib's wbits for a gzip header (zlib.h, inflateInit2)


def build(files: Files, network: Network) -> None:
    """cloud-init's metadata, whose `network` is version 1 or 2; only without that the kernel arguments."""
    described = metadata(files)
    config = described["network"]
    if isinstance(config.value, str):
        text = unpack(config.text().encode(), described["network.encoding"], config.path)
        config = tree({"network": text}, "network")
    if config:
        networkconfig.read(config["config"] if isinstance(config["config"].value, dict) else config, network)
    elif line(files, KARGS):
        kargs.read(line(files, KARGS), network)


def metadata(files: Files) -> Node:
    """cloud-init's metadata, unpacked; without value if there are none. Raises Fault."""
    data = unpack(files.get(METADATA) or b"", line(files, ENCODING), METADATA)
    found = tree({METADATA: data}, METADATA)
    if found.value is not None and not isinstance(found.value, dict):
        raise found.fault("cloud-init's metadata, a mapping")
    return found


def unpack(data: bytes, encoding: Node, path: str) -> bytes:
    """The bytes that were packed as `encoding` says; raises Fault."""
    import base64
    import zlib

    kind = encoding.text("").lower()
    if kind not in (*PLAIN, *BASE64, *GZIP):
        raise encoding.fault("base64 or gzip+base64")
    try:
        if kind in PLAIN:
            return data
        packed = base64.b64decode("".join(decode(data, path).split()), validate=True)
        if kind in BASE64:
            return packed
        unpacker = zlib.decompressobj(DEFLATE_IN_GZIP)
        text = unpacker.decompress(packed, LARGEST)
    except (ValueError, zlib.error):
        raise Node(kind, path).fault(f"a value that is {kind}, as its encoding says") from None
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise Node(kind, path).fault(f"at most {LARGEST >> 10} KiB unpacked, and all of it")
    return text


PLATFORM = Platform(
    name="vmware", title="VMware", build=build, signs=(Sign("manufacturer", ("VMware, Inc.",)),),
    ways=(Guestinfo(fixed(*(Want(key, optional=True) for key in (METADATA, ENCODING, KARGS)))),),
    reads="`guestinfo.metadata` (plain, base64, gzip), else `guestinfo.afterburn.initrd.network-kargs`",
    configures="as NoCloud; of kernel arguments `ip=` with an interface (also its host name, MTU, MAC), `nameserver=`, "
               "`rd.route=`",
    leaves="guests without `vmware-rpctool` or `vmtoolsd`; OVF environments; `ip=` without an interface",
)
