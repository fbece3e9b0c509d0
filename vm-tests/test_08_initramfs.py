"""What `dracut --add homeport` puts into an initramfs, and that it works in there: by listing and by chroot.

That it boots is told elsewhere. What homeport brings is all that an image without it has not, of the same dracut, the
same modules and with nmstatectl.
"""

from __future__ import annotations

import ast
import base64
import fnmatch
import json
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from homeport.host.preflight import KINDS
from image import Image, build, make_image, modes, unpack
from seed import SEED, seed_document
from trees import REPOSITORY, NotPrepared, work_folder
from world import World

SUITES = [
    "trixie",
    pytest.param("bookworm", marks=pytest.mark.vm_full("the module is the same; an older dracut, Python, requests")),
    pytest.param("forky", marks=pytest.mark.vm_full("the module is the same; a newer dracut, Python, systemd")),
]

UNITS = ("prepare", "initrd", "handover", "tidy")
# What homeport may bring, and nothing else does: patterns of paths.
BROUGHT = (
    "usr/bin/homeport", "usr/bin/python3", "usr/bin/python3.*", "usr/bin/nmstatectl",
    "usr/lib/python3*/*", "usr/lib/homeport/*", "var/lib/homeport",
    # The authorities, and OpenSSL's settings.
    "etc/ssl/certs/ca-certificates.crt", "etc/ssl/openssl.cnf", "usr/lib/ssl/*",
    # What C extensions and Python itself stand on, where systemd and NetworkManager have not brought it already.
    *(f"*/lib{name}.so*" for name in ("crypto", "ssl", "z", "zstd", "yaml-0", "expat", "ffi", "uuid", "systemd", "m")),
    *(f"usr/lib/systemd/system/homeport-{name}.service" for name in UNITS),
    *(f"etc/systemd/system/initrd.target.wants/homeport-{name}.service" for name in UNITS),
    "usr/lib/systemd/system/*wait-online-initrd.service.d/50-homeport.conf", "usr/lib/udev/rules.d/85-homeport.rules",
    "usr/lib/modules/*/kernel/*",  # by name below
    "usr/lib/modprobe.d/*", "usr/lib/modules/*/modules.*",
)  # fmt: skip
# The kernel's modules, beside those that dracut brings for every network: what documents, facts and drives need, and
# what these stand on.
KERNEL = {
    # Links.
    "dummy", "macvtap", "tap", "veth", "vrf", "vxlan", "macsec", "wireguard", "ipip", "sit", "ip6_tunnel", "tun", "hsr",
    "macvlan", "ipvlan", "bonding", "8021q", "bridge", "xfrm_interface", "ib_ipoib",
    "ip_tunnel", "tunnel4", "tunnel6", "xfrm6_tunnel", "udp_tunnel", "ip6_udp_tunnel", "garp", "mrp", "stp", "llc",
    "gcm", "ctr", "ghash-generic", "gf128mul", "crypto_null", "libchacha20poly1305", "libchacha", "libpoly1305",
    "libcurve25519", "libcurve25519-generic", "chacha-x86_64", "poly1305-x86_64", "curve25519-x86_64", "tls",
    "chacha_generic", "poly1305_generic", "libblake2s", "libblake2s-generic", "blake2s-x86_64", "xfrm_algo",
    # Who this is.
    "dmi-sysfs", "qemu_fw_cfg", "tpm_crb", "tpm_tis", "tpm_tis_core", "tpm_tis_spi", "tpm_vtpm_proxy", "tpm_nsc",
    "tpm_infineon", "tpm_atmel", "tpm", "tpm_tis_i2c_cr50", "tpm_tis_i2c", "tpm_i2c_infineon", "tpm_svsm",
    "xen-tpmfront",
    # The look at the real root.
    "loop",
    # Drives.
    "isofs", "vfat", "fat", "ext4", "mbcache", "jbd2", "nls_cp437", "nls_iso8859-1", "nls_ascii", "nls_utf8", "cdrom",
    "sr_mod", "sd_mod", "virtio_blk", "virtio_scsi", "scsi_mod", "scsi_common", "ata_piix", "ahci", "libahci", "libata",
    "usb-storage", "uas", "usbcore", "usb-common", "xhci-hcd", "xhci-pci", "ehci-hcd", "ehci-pci", "crc16", "t10-pi",
    "crc64-rocksoft", "crc64_rocksoft_generic", "crc64", "crc-t10dif", "crct10dif_common",
}  # fmt: skip
# The libraries beside Python's own; bookworm's requests asks for guessers of encodings, its urllib3 for six.
LIBRARIES = {"_yaml", "certifi", "h11", "idna", "jeepney", "requests", "systemd", "urllib3", "wsproto", "yaml"}
OLDER = {"chardet", "charset_normalizer", "six"}
# In no image, whoever brings it: what configures a network behind our back, services of the real root, what
# downloads, and Python's ballast.
UNWANTED = (
    "*/curl", "*/wget", "*/dhclient*", "*/dhcpcd*", "*/nm-cloud-setup*", "*/cloud-init*", "*/afterburn*",
    "*/NetworkManager.service", "*/NetworkManager-dispatcher.service", "*/NetworkManager-wait-online.service",
    "*/nm-dispatcher", "*/networkd.conf", "*/systemd-networkd.service",
    "*/homeport.service", "*/homeport-refresh.*", "*/homeport-attributes.*", "*/homeport-check-in.*",
    "*/50-homeport.conf/*", "usr/lib/NetworkManager/system-connections/*", "etc/NetworkManager/system-connections/*",
    "*.py", "*/__pycache__*", "*-packages/*", "*/ldconfig*", "*/cacert.pem", "*/pip*", "*/cryptography*", "*/pyudev*",
)  # fmt: skip


@dataclass(frozen=True)
class Unpacked:
    """An image, and its files."""

    image: Image
    root: Path

    @property
    def files(self) -> set[str]:
        return {path.relative_to(self.root).as_posix() for path in self.root.rglob("*")
                if path.is_symlink() or not path.is_dir()}

    def run(self, *argv: str, input: str = "", prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        """A program in there, without /proc, /sys and /dev, and with an empty environment."""
        return subprocess.run([*prefix, "chroot", str(self.root), *argv], input=input, capture_output=True, text=True,
                              check=False, timeout=120, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})

    def python(self, program: str, *arguments: str) -> str:
        """A program as the launcher would run one."""
        done = self.run("/usr/bin/python3", "-I", "-S", "-", *arguments, input=program)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module", params=SUITES)
def with_homeport(request: pytest.FixtureRequest) -> Iterator[Unpacked]:
    yield from unpacked(image_of(request.param))


@pytest.fixture(scope="module")
def without(with_homeport: Unpacked) -> Iterator[Unpacked]:
    """The same with all that homeport stands on, and not with homeport."""
    suite = with_homeport.image.folder.name.partition("-")[0]
    yield from unpacked(image_of(suite, homeport=False))


@pytest.fixture(scope="module")
def trixie() -> Image:
    return image_of("trixie")


def image_of(suite: str, *, homeport: bool = True, own_units: bool = False) -> Image:
    if os.geteuid() != 0:
        pytest.skip("an image is made by root only")
    try:
        if not shutil.which("cpio"):
            raise NotPrepared("cpio is not installed (run: make setup-tests)")
        return make_image(suite, homeport=homeport, own_units=own_units)
    except NotPrepared as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"{error} (tools/setup vm-{suite})")


def unpacked(image: Image) -> Iterator[Unpacked]:
    folder = work_folder() / f"layer-{image.folder.name}"
    yield Unpacked(image, unpack(image.initramfs, folder))
    shutil.rmtree(folder)


def test_only_what_is_needed(with_homeport: Unpacked, without: Unpacked) -> None:
    """A package or driver that comes along by itself is looked at before it ships."""
    brought = with_homeport.files - without.files
    strangers = {path for path in brought if not any(fnmatch.fnmatch(path, pattern) for pattern in BROUGHT)}
    assert not strangers
    drivers = {re.sub(r"\.ko.*$", "", Path(path).name) for path in brought if "/kernel/" in path}
    assert drivers <= KERNEL
    unwanted = {path for path in with_homeport.files if any(fnmatch.fnmatch(f"/{path}", f"/{bad}") for bad in UNWANTED)}
    # dracut's network-manager takes it where the root has it, as Debian 12; NetworkManager does without by default.
    assert unwanted <= {"usr/sbin/dhclient"} & without.files


def test_nobody_gets_it_unasked(without: Unpacked) -> None:
    """The product is installed in this root, and its initramfs is as it was."""
    assert (without.image.root / "usr/lib/dracut/modules.d/50homeport/module-setup.sh").exists()
    assert not {path for path in without.files if "homeport" in path or "python" in path}


def test_libraries(with_homeport: Unpacked) -> None:
    standard = with_homeport.python("import sys; print(*sys.stdlib_module_names)").split()
    folder = next((with_homeport.root / "usr/lib").glob("python3.*"))
    found = {path.name.partition(".")[0] for path in folder.iterdir()} - {"lib-dynload"}
    older = OLDER if "bookworm" in with_homeport.image.folder.name else set()
    assert found - set(standard) <= LIBRARIES | older
    assert not {path.name.partition(".")[0] for path in (folder / "lib-dynload").iterdir()} - set(standard)
    # Compiling is half of a start's time.
    with zipfile.ZipFile(with_homeport.root / "usr/lib/homeport/homeport.pyz") as agent:
        assert {Path(name).suffix for name in agent.namelist()} == {".pyc"}


# Prints what of the modules on its command line cannot be imported, and whether the libraries are whole.
_IMPORTER = """
import sys
sys.path.insert(0, "/usr/lib/homeport/homeport.pyz")
import codecs, datetime, importlib, json, pkgutil, socket, time
from homeport.sources.http import import_requests
import_requests()
missing = {}
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except Exception as error:
        missing[name] = f"{type(error).__name__}: {error}"
import ssl, yaml
from homeport.sources.trust import make_context
facts = {
    "missing": missing, "path": sys.path[1:],
    "fast yaml": yaml.__with_libyaml__,
    "authorities": make_context(now=time.time()).cert_store_stats()["x509_ca"],
    "date": time.strptime("Jun  1 12:00:00 2026 GMT", "%b %d %H:%M:%S %Y %Z").tm_year,
    "name": socket.getaddrinfo("127.0.0.1", 80)[0][4][0],
    "codecs": [codecs.lookup(name).name for name in ("idna", "utf-8-sig", "utf-16-le", "latin-1", "ascii")],
}
print(json.dumps(facts))
"""


def test_every_import_is_there(with_homeport: Unpacked) -> None:
    """All that the agent's sources import anywhere, found out without the script that made the image."""
    modules, foreign = set(), set()
    for path in sorted((REPOSITORY / "agent/homeport").rglob("*.py")):
        name = path.relative_to(REPOSITORY / "agent").with_suffix("").as_posix().replace("/", ".")
        modules.add(name.removesuffix(".__init__"))
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                foreign |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                foreign.add(node.module)
    modules -= {"homeport.__main__"}
    facts = json.loads(with_homeport.python(_IMPORTER, *sorted(modules | foreign)))
    assert {name.partition(".")[0] for name in facts["missing"]} == {"cryptography", "libnmstate", "pyudev"}
    assert facts["fast yaml"]
    assert not any("packages" in folder for folder in facts["path"])
    assert facts["authorities"] > 100
    assert facts["date"] == 2026 and facts["name"] == "127.0.0.1" and len(facts["codecs"]) == 5


def test_program_runs(with_homeport: Unpacked) -> None:
    version = with_homeport.run("homeport", "version")
    assert (version.returncode, version.stderr) == (0, "")
    installed = subprocess.run(["chroot", with_homeport.image.root, "homeport", "version"], capture_output=True,
                               text=True, check=True)
    assert version.stdout == installed.stdout
    identified = with_homeport.run("homeport", "identify")
    assert identified.returncode == 0, identified.stderr
    assert "identity:" in identified.stdout


def test_seed_that_zstd_has_packed(with_homeport: Unpacked) -> None:
    """By the library: there is no program for it in an image."""
    assert not list(with_homeport.root.glob("usr/*bin/zstd"))
    packed = subprocess.run(["zstd", "-19", "-c"], input=seed_document().encode(), capture_output=True, check=True)
    assert with_homeport.python(_UNPACKER, base64.b64encode(packed.stdout).decode()) == seed_document()


_UNPACKER = """
import sys
sys.path.insert(0, "/usr/lib/homeport/homeport.pyz")
from homeport.sources import seeds
sys.stdout.write(seeds.unpack(sys.argv[1]).decode())
"""


def test_document_becomes_keyfiles_offline(with_homeport: Unpacked) -> None:
    """With the image's own nmstatectl, and a machine's id as systemd makes one at the start."""
    (with_homeport.root / "etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    done = with_homeport.run("homeport", "render", "-", "--nic", "enp1s0=02:00:00:00:00:01",
                             "--ip", "inventory-ip=192.168.122.150", "-o", "/tmp/rendered", input=seed_document())
    assert done.returncode == 0, done.stderr
    keyfiles = list((with_homeport.root / "tmp/rendered").rglob("*.nmconnection"))
    shutil.rmtree(with_homeport.root / "tmp/rendered")
    assert len(keyfiles) == 1


def test_document_is_fetched_over_tls(with_homeport: Unpacked, world: World) -> None:
    server = world.serve(port=443, tls=True)
    assert server.tls
    url = server.put(SEED, seed_document())
    fetch = ("homeport", "fetch", "--config", url, "--sources", "url", "--deadline", "10")
    refused = with_homeport.run(*fetch, prefix=tuple(world.namespace.argv([])))
    assert refused.returncode != 0 and "authority" in refused.stderr, refused.stderr
    shutil.copy(server.tls.ca, with_homeport.root / "tmp/site.pem")
    fetched = with_homeport.run(*fetch, "--ca", "/tmp/site.pem", prefix=tuple(world.namespace.argv([])))
    (with_homeport.root / "tmp/site.pem").unlink()
    assert fetched.returncode == 0, fetched.stderr
    assert "inventory-ip" in fetched.stdout


def test_every_link_fact_and_drive_has_its_driver(with_homeport: Unpacked) -> None:
    """What this kernel has of it."""
    def drivers(root: Path) -> set[str]:
        folder = next((root / "usr/lib/modules").iterdir())
        return {re.sub(r"\.ko.*$", "", path.name).replace("-", "_") for path in folder.rglob("*.ko*")}

    wanted = {*KINDS, "tun", "wireguard", "dmi_sysfs", "qemu_fw_cfg", "tpm_crb", "tpm_tis", "isofs", "vfat", "ext4",
              "sr_mod", "virtio_blk", "usb_storage", "ahci", "loop"}  # fmt: skip
    there = drivers(with_homeport.image.tree)
    assert there >= {"bonding", "8021q", "vrf", "dummy", "macvlan", "vxlan"}
    assert wanted & there <= drivers(with_homeport.root)


def test_units_and_modes(with_homeport: Unpacked) -> None:
    root = with_homeport.root
    for name in UNITS:
        link = root / f"etc/systemd/system/initrd.target.wants/homeport-{name}.service"
        assert link.readlink().name == link.name
        assert (root / "usr/lib/systemd/system" / link.name).exists()
    # Both generations, whichever this NetworkManager is of.
    for unit in ("nm-wait-online-initrd.service", "NetworkManager-wait-online-initrd.service"):
        assert (root / f"usr/lib/systemd/system/{unit}.d/50-homeport.conf").exists()
    assert (root / "usr/lib/udev/rules.d/85-homeport.rules").exists()
    assert modes(root, ("usr/lib/homeport/homeport-bootstrap.nmconnection", "var/lib/homeport", "usr/bin/homeport")) \
        == {"usr/lib/homeport/homeport-bootstrap.nmconnection": 0o600, "var/lib/homeport": 0o700,
            "usr/bin/homeport": 0o755}  # fmt: skip
    assert modes(with_homeport.image.folder, ["initramfs"]) == {"initramfs": 0o600}


OF_THIS_MACHINE = {
    "etc/homeport/homeport.conf": "[Homeport]\nCa=/etc/site/ca.pem\n",
    "etc/homeport/homeport.conf.d/50-site.conf": "[Homeport]\nSeed=/srv/seed.yaml\n",
    "etc/site/ca.pem": "a certificate",
    "srv/seed.yaml": "a document",
    "etc/credstore/homeport.assignment": "another one",
}


def test_same_root_same_bytes(trixie: Image, tmp_path: Path) -> None:
    """And what says which machine this is stays out of an image for all."""
    identity = write_file(trixie.root / "etc/homeport/identity", "uuid:11111111-2222-3333-4444-555555555555\n")
    try:
        build(trixie, tmp_path / "second", *trixie.arguments)
    finally:
        identity.unlink()
    assert (tmp_path / "second").read_bytes() == trixie.initramfs.read_bytes()


def test_settings_of_the_machine(trixie: Image, tmp_path: Path) -> None:
    """By the conf file that ships switched off, in an image for one machine, whose nmstatectl somebody has built."""
    wanted = OF_THIS_MACHINE | {"etc/homeport/identity": "serial:4711\n"}
    files = [write_file(trixie.root / path, text) for path, text in wanted.items()]
    files[0].chmod(0o600)
    nmstatectl, own = trixie.root / "usr/bin/nmstatectl", trixie.root / "usr/local/bin/nmstatectl"
    nmstatectl.rename(own)
    try:
        others = (word for word in trixie.arguments if word not in ("--add", "homeport", "--no-hostonly"))
        build(trixie, tmp_path / "image", "--add-confdir", "homeport", "--hostonly", "--no-hostonly-cmdline", *others)
    finally:
        own.rename(nmstatectl)
        for file in files:
            file.unlink()
    root = unpack(tmp_path / "image", tmp_path / "root")
    assert {path: (root / path).read_text() for path in wanted} == wanted
    assert modes(root, ["etc/homeport/homeport.conf", "usr/bin/nmstatectl"]) == {
        "etc/homeport/homeport.conf": 0o600, "usr/bin/nmstatectl": 0o755}
    # A card, a drive and a TPM that this machine has not while the image is made.
    drivers = {re.sub(r"\.ko.*$", "", path.name) for path in (root / "usr/lib/modules").rglob("*.ko*")}
    assert drivers >= {"bonding", "8021q", "vrf", "macvlan", "isofs", "vfat", "sr_mod", "qemu_fw_cfg"}


@pytest.mark.vm_full("another initramfs, of another suite")
def test_units_of_networkmanagers_own() -> None:
    """From 1.54 on NetworkManager has units for the initramfs, and from 1.56 a generator that starts them."""
    for files in unpacked(image_of("forky", own_units=True)):
        units = files.root / "usr/lib/systemd/system"
        for name in ("NetworkManager-config-initrd", "NetworkManager-initrd", "NetworkManager-wait-online-initrd"):
            assert "@" not in (units / f"{name}.service").read_text()
        assert (units / "NetworkManager-wait-online-initrd.service.d/50-homeport.conf").exists()
        assert (files.root / "usr/lib/systemd/system-generators/nm-initrd-generator.sh").exists()
        assert not (units / "nm-initrd.service").exists()


def test_half_a_program_is_no_image(trixie: Image, tmp_path: Path) -> None:
    """Better no image than one that is found out at the next boot."""
    library = next((trixie.root / "usr/lib/python3").glob("dist-packages/yaml/__init__.py"))
    hidden = library.with_suffix(".hidden")
    library.rename(hidden)
    try:
        with pytest.raises(RuntimeError, match=r"Cannot put homeport into the initramfs: .*yaml") as caught:
            build(trixie, tmp_path / "image", *trixie.arguments)
    finally:
        hidden.rename(library)
    assert "install it in the root" in str(caught.value)


def write_file(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path
