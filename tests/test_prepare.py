"""What NetworkManager starts with in the initramfs, and what is left alone."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conftest import find_nmstatectl
from tests.initramfs import DOCUMENT, GENERATED, in_run, keep, make, put

from homeport import asking, kept, prepare, prepared, start
from homeport.core.keyfile import parse
from homeport.host import keyfiles, nics
from homeport.host.files import write_atomic
from homeport.host.store import HANDOVER, INITRD
from homeport.machine import Machine
from homeport.settings import read_settings
from homeport.sources import drive

NETWORK = "rd.neednet=1"
GENERATED_PATH = f"{keyfiles.RUN}/default_connection.nmconnection"


@pytest.fixture(autouse=True)
def nmstate(monkeypatch: pytest.MonkeyPatch) -> None:
    if not find_nmstatectl():
        pytest.skip("no nmstatectl: run tools/setup")
    monkeypatch.setenv("NMSTATECTL", find_nmstatectl())


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A real root that can be looked at, without a device."""
    folder = tmp_path / "real"
    folder.mkdir()

    @contextmanager
    def real_root(_: Machine) -> Iterator[Path | None]:
        yield folder
    monkeypatch.setattr(start, "real_root", real_root)
    return folder


def starts(root: Path) -> bool:
    """Whether NetworkManager is told to start."""
    return (root / start.NEEDNET).exists()


@pytest.mark.parametrize("cmdline", [
    "homeport.initrd=off rd.neednet=1", "ip=dhcp rd.neednet=1", "homeport.initrd=always ip=192.0.2.9:::24::eth0:none",
    "homeport.mode=recovery root=UUID=12",
])
def test_nothing_of_ours(tmp_path: Path, cmdline: str) -> None:
    put(tmp_path, GENERATED_PATH, GENERATED)
    put(tmp_path, "etc/homeport/assignment.yaml", DOCUMENT)
    prepare.prepare(make(tmp_path, f"{cmdline} homeport.config=/etc/homeport/assignment.yaml"))
    assert (tmp_path / GENERATED_PATH).read_text() == GENERATED
    assert in_run(tmp_path) == ["default_connection.nmconnection"]
    assert not starts(tmp_path)
    assert not (tmp_path / "run/homeport").exists()


@pytest.mark.parametrize("table", ["sys/firmware/ibft/target0/nic-assoc", "sys/firmware/acpi/tables/NBFT"])
def test_the_firmwares_own_network(tmp_path: Path, table: str) -> None:
    """The root may stand on it: the generator's profiles of it stay, and nothing of ours is put beside them."""
    put(tmp_path, table, "0")
    put(tmp_path, f"{keyfiles.RUN}/nbft0.nmconnection", GENERATED)
    put(tmp_path, "etc/homeport/assignment.yaml", DOCUMENT)
    prepare.prepare(make(tmp_path, f"{NETWORK} homeport.config=/etc/homeport/assignment.yaml"))
    assert in_run(tmp_path) == ["nbft0.nmconnection"]
    assert not starts(tmp_path) and not (tmp_path / "run/homeport").exists()


def test_nothing_needs_the_network(tmp_path: Path) -> None:
    """What is at hand is for the handover, when the real root is there; nothing is waited for."""
    prepare.prepare(make(tmp_path, "root=UUID=12"))
    assert not starts(tmp_path) and in_run(tmp_path) == []
    assert (tmp_path / HANDOVER).exists() and not (tmp_path / INITRD).exists()


def test_dhcp_takes_the_place_of_the_generated_default(tmp_path: Path) -> None:
    put(tmp_path, GENERATED_PATH, GENERATED)
    put(tmp_path, f"{keyfiles.RUN}/somebody.nmconnection", "[connection]\nid=x\n")
    prepare.prepare(make(tmp_path, f"{NETWORK} homeport.config=http://cfg.example/x"))
    assert in_run(tmp_path) == ["homeport-bootstrap.nmconnection", "somebody.nmconnection"]
    assert starts(tmp_path)
    note = prepare.note(tmp_path)
    assert (note["kept"], note["found"]) == (False, ["somebody.nmconnection"])
    mode = (tmp_path / keyfiles.RUN / "homeport-bootstrap.nmconnection").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600
    assert stat.S_IMODE((tmp_path / "run/NetworkManager").stat().st_mode) == 0o755


def test_on_the_card_that_it_booted_from(tmp_path: Path) -> None:
    prepare.prepare(make(tmp_path, f"{NETWORK} BOOTIF=01-52-54-00-00-00-01"))
    text = (tmp_path / keyfiles.RUN / "homeport-bootstrap.nmconnection").read_text()
    assert parse(text).raw("ethernet", "mac-address") == "52:54:00:00:00:01"


def test_what_the_kernel_line_wants_of_dhcp(tmp_path: Path) -> None:
    """Understood by NetworkManager's generator, and taken over from it; its other settings are not."""
    put(tmp_path, GENERATED_PATH, GENERATED + "[ipv4]\nmethod=auto\ndhcp-timeout=90\ndhcp-client-id=site-7\n"
        "dhcp-vendor-class-identifier=rack\nignore-auto-dns=true\nmay-fail=false\n")
    prepare.prepare(make(tmp_path, f"{NETWORK} rd.net.dhcp.client-id=site-7"))
    ours = parse((tmp_path / keyfiles.RUN / "homeport-bootstrap.nmconnection").read_text())
    assert dict(ours.items("ipv4")) == {"dhcp-client-id": "site-7", "dhcp-vendor-class-identifier": "rack",
                                        "ignore-auto-dns": "true"}
    assert in_run(tmp_path) == ["homeport-bootstrap.nmconnection"]


def test_without_a_bootstrap_profile_the_generated_one_stays(tmp_path: Path) -> None:
    put(tmp_path, GENERATED_PATH, GENERATED)
    machine = make(tmp_path, NETWORK)
    (tmp_path / "usr/lib/homeport/homeport-bootstrap.nmconnection").unlink()
    prepare.prepare(machine)
    assert in_run(tmp_path) == ["default_connection.nmconnection"]
    assert starts(tmp_path)


def test_a_document_at_hand(tmp_path: Path, real: Path) -> None:
    put(tmp_path, "etc/homeport/assignment.yaml", DOCUMENT)
    put(tmp_path, GENERATED_PATH, GENERATED)
    prepare.prepare(make(tmp_path, f"{NETWORK} homeport.config=/etc/homeport/assignment.yaml"))
    assert in_run(tmp_path) == ["homeport-enp1s0.nmconnection"]
    found = prepared.read(tmp_path)
    assert found and (found.rung, found.proven, found.source) == ("assigned", False, "file")
    profile = parse((tmp_path / keyfiles.RUN / "homeport-enp1s0.nmconnection").read_text())
    assert profile.raw("ipv4", "address1") == "192.0.2.5/24"
    assert profile.raw("ethernet", "mac-address") == "52:54:00:00:00:01"
    assert [file.uuid for file in found.profiles] == [profile.raw("connection", "uuid")]
    assert starts(tmp_path)


@pytest.mark.parametrize(("document", "asked"), [
    (DOCUMENT, False),
    (f"machines:\n- match: {{serial: none}}\n  config: {{interfaces: []}}\n- config: {json.dumps(DOCUMENT)}\n", False),
    ("machines:\n- match: {tpmHash: abc}\n  config: {interfaces: []}\n", True),
])
def test_the_tpm_is_asked_only_if_it_may_choose(
    tmp_path: Path, real: Path, document: str, asked: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may take half a minute, in which the root file system is not looked for."""
    done: list[str] = []

    def identify(machine: Machine) -> None:
        done.append("asked")
        machine.report.identity = {"kind": "tpm"}
    monkeypatch.setattr(asking, "identify", identify)
    put(tmp_path, "etc/homeport/assignment.yaml", document)
    prepare.prepare(make(tmp_path, f"{NETWORK} homeport.config=/etc/homeport/assignment.yaml"))
    assert bool(done) == asked
    assert len(done) < 2


def test_another_document_than_the_kept_one(tmp_path: Path, real: Path) -> None:
    """It takes the UUID of what is kept for the same card, and so its place."""
    manifest = keep(real, "interfaces: []\n")
    put(tmp_path, "etc/homeport/assignment.yaml", DOCUMENT)
    prepare.prepare(make(tmp_path, f"{NETWORK} homeport.config=/etc/homeport/assignment.yaml"))
    found = prepared.read(tmp_path)
    assert found and found.uuids == manifest.uuids
    assert not kept.is_there(make(tmp_path))


def test_the_very_document_that_is_kept(tmp_path: Path, real: Path) -> None:
    """Then what was proven is used, byte for byte, and nothing is rendered."""
    keep(real)
    put(tmp_path, "etc/homeport/assignment.yaml", DOCUMENT)
    machine = make(tmp_path, f"{NETWORK} homeport.config=/etc/homeport/assignment.yaml")
    prepare.prepare(machine)
    assert prepared.read(tmp_path) is None
    assert in_run(tmp_path) == []
    assert kept.is_there(machine)


def test_half_of_what_is_kept_is_nothing(tmp_path: Path, real: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An initramfs that is full: DHCP, and no profile that is only a part of a network."""
    keep(real, names=("enp1s0", "bond0"))

    def full(root: object, path: str, data: bytes, mode: int = 0o600) -> None:
        if str(path).endswith("bond0.nmconnection"):
            raise OSError(28, "No space left on device", path)
        write_atomic(root, path, data, mode)  # type: ignore[arg-type]
    monkeypatch.setattr(keyfiles, "write_atomic", full)
    machine = make(tmp_path, f"{NETWORK} homeport.config=http://cfg.example/x")
    prepare.prepare(machine)
    assert not kept.is_there(machine) and not machine.store.read_manifest().keyfiles
    assert list((tmp_path / keyfiles.ETC).iterdir()) == []
    assert in_run(tmp_path) == ["homeport-bootstrap.nmconnection"]


def test_the_real_roots_own_profiles(tmp_path: Path, real: Path) -> None:
    """Byte for byte, with all that is remembered of them; nobody has to be asked."""
    manifest = keep(real, names=("enp1s0", "bond0"))
    put(real, "var/lib/homeport/software-ek.pem", "key")
    put(tmp_path, GENERATED_PATH, GENERATED)
    machine = make(tmp_path, f"{NETWORK} homeport.config=http://cfg.example/x")
    prepare.prepare(machine)
    assert in_run(tmp_path) == [] and starts(tmp_path)
    assert kept.is_there(machine)
    assert machine.store.read_manifest() == manifest
    assert keyfiles.intact(tmp_path, manifest)
    assert machine.store.read_assigned() == DOCUMENT.encode()
    assert (tmp_path / "var/lib/homeport/software-ek.pem").read_text() == "key"


@pytest.mark.parametrize("damage", ["edited", "gone", "readable", "half"])
def test_kept_profiles_that_are_not_as_they_were(tmp_path: Path, real: Path, damage: str) -> None:
    """They are not used; the way to DHCP is."""
    manifest = keep(real)
    file = real / manifest.keyfiles[0].path
    if damage == "edited":
        put(real, manifest.keyfiles[0].path, file.read_text() + "\n")
    elif damage == "gone":
        file.unlink()
    elif damage == "readable":
        file.chmod(0o644)
    else:
        path = real / "var/lib/homeport/manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"complete": False}))
    machine = make(tmp_path, f"{NETWORK} homeport.config=http://cfg.example/x")
    prepare.prepare(machine)
    assert in_run(tmp_path) == ["homeport-bootstrap.nmconnection"]
    assert not kept.is_there(machine)
    assert not machine.store.read_manifest().keyfiles


@pytest.mark.parametrize(("config", "used"), [
    ("http://cfg.example/x", "homeport-bootstrap.nmconnection"),  # a server is asked first, over DHCP
    ("", "homeport-enp1s0.nmconnection"),  # there is nothing else
])
def test_the_images_own_seed(tmp_path: Path, real: Path, config: str, used: str) -> None:
    put(tmp_path, "usr/lib/homeport/seed.yaml", DOCUMENT)
    prepare.prepare(make(tmp_path, f"{NETWORK} homeport.config={config}" if config else NETWORK))
    assert in_run(tmp_path) == [used]


def test_a_seed_of_this_very_machine(tmp_path: Path, real: Path) -> None:
    """Before any DHCP, also where a server is to be asked; behind what was proven."""
    import base64
    seed = base64.b64encode(DOCUMENT.encode()).decode()
    cmdline = f"{NETWORK} homeport.config=http://cfg.example/x homeport.seed={seed}"
    prepare.prepare(make(tmp_path, cmdline))
    found = prepared.read(tmp_path)
    assert found and found.rung == "seed"
    assert in_run(tmp_path) == ["homeport-enp1s0.nmconnection"]

    other = tmp_path / "other"
    keep(real)
    prepare.prepare(make(other, cmdline))
    assert prepared.read(other) is None
    assert kept.is_there(make(other))


@pytest.mark.parametrize(("document", "fault"), [
    (DOCUMENT.replace("prefix-length: 24", "prefix-length: 99"), "interfaces[0].ipv4.address[0].prefix-length"),
    (DOCUMENT.replace("enp1s0", "enp9s0"), "enp9s0"),
    (": no yaml: at all", "assigned"),
    ("capture: {x: interfaces.name == \"enp1s0\"}\ndesired: {interfaces: []}\n", "assigned"),
])
def test_a_document_that_cannot_be_used_is_loud(
    tmp_path: Path, real: Path, document: str, fault: str, capsys: pytest.CaptureFixture[str],
) -> None:
    """One short line with the place at fault; and the next way."""
    put(tmp_path, "etc/homeport/assignment.yaml", document)
    prepare.prepare(make(tmp_path, f"{NETWORK} homeport.config=/etc/homeport/assignment.yaml"))
    lines = capsys.readouterr().out.splitlines()
    assert any(fault in line for line in lines), lines
    assert all(line.startswith("homeport: ") and len(line) <= 100 for line in lines)
    assert in_run(tmp_path) == ["homeport-bootstrap.nmconnection"]
    assert starts(tmp_path)


@pytest.mark.parametrize("way", ["use_assignment", "use_kept", "use_seed"])
def test_a_bug_is_told_and_the_next_way_taken(
    tmp_path: Path, real: Path, way: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whatever is wrong with us: a machine without its network is one that nobody can look into."""
    def broken(_: Machine) -> str:
        raise OverflowError("cannot convert float infinity to integer")
    monkeypatch.setattr(start, way, broken)
    prepare.prepare(make(tmp_path, f"{NETWORK} homeport.config=http://cfg.example/x"))
    assert in_run(tmp_path) == ["homeport-bootstrap.nmconnection"]
    assert starts(tmp_path) and (tmp_path / INITRD).exists() and (tmp_path / HANDOVER).exists()
    assert "a bug in homeport: OverflowError" in capsys.readouterr().out
    assert "in broken" in caplog.text  # the traceback


def test_a_machine_that_we_fail_to_read(
    tmp_path: Path, real: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:
    """It may be in recovery: DHCP, and no assignment."""
    def broken(*_: object) -> None:
        raise IndexError("string index out of range")
    monkeypatch.setattr("homeport.host.facts.read_facts", broken)
    put(tmp_path, "etc/homeport/assignment.yaml", DOCUMENT)
    prepare.prepare(make(tmp_path, f"{NETWORK} homeport.config=/etc/homeport/assignment.yaml"))
    assert in_run(tmp_path) == ["homeport-bootstrap.nmconnection"]
    assert starts(tmp_path) and (tmp_path / HANDOVER).exists()
    assert "a bug in homeport: IndexError" in capsys.readouterr().out


def test_the_handover_has_its_mark_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However this ends: what is at hand still reaches the real root."""
    def killed(*_: object) -> None:
        raise KeyboardInterrupt
    monkeypatch.setattr(start, "bring_network", killed)
    with pytest.raises(KeyboardInterrupt):
        prepare.prepare(make(tmp_path, NETWORK))
    assert (tmp_path / HANDOVER).exists()


@pytest.mark.parametrize(("left", "waits"), [(30.0, 10.0), (15.0, 5.0), (3600.0, 30.0)])
def test_an_absent_card_leaves_time_for_all_else(
    tmp_path: Path, real: Path, left: float, waits: float, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the settings as they come, a document that names it may take a third of the deadline; time is not passed."""
    ends: list[float] = []

    def gave_up(end: float) -> bool:
        ends.append(end - time.monotonic())
        return False
    monkeypatch.setattr(nics, "wait_for_change", gave_up)
    put(tmp_path, "etc/homeport/assignment.yaml", DOCUMENT.replace("enp1s0", "enp9s0"))
    cmdline = f"{NETWORK} homeport.config=/etc/homeport/assignment.yaml"
    machine = make(tmp_path, cmdline)
    machine.settings = read_settings(tmp_path, cmdline)
    machine.ends = time.monotonic() + left
    prepare.prepare(machine)
    (end,) = ends
    assert waits / 2 < end < waits + 0.1  # it has taken some time itself
    assert in_run(tmp_path) == ["homeport-bootstrap.nmconnection"]


@pytest.mark.parametrize(("root", "crypttab", "why"), [
    ("UUID=homeport-is-not-here", "", "not there in time: /dev/disk/by-uuid/homeport-is-not-here"),
    ("UUID=homeport-is-not-here", "root UUID=34 none\n", "encrypted and not open yet: /dev/disk/by-uuid/homeport-is"),
    ("UUID=12 rd.luks.uuid=34", "", "encrypted and not open yet: rd.luks.uuid"),
    ("/dev/mapper/vg-root", "", "root=/dev/mapper/vg-root"),
])
def test_a_root_that_is_not_there_is_told_once(
    tmp_path: Path, root: str, crypttab: str, why: str, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Two ways ask for it, and one wait is enough for both."""
    waits: list[str] = []

    def wait_for(path: str, _: float) -> bool:
        waits.append(path)
        return False
    monkeypatch.setattr(start, "wait_for", wait_for)
    caplog.set_level("INFO")
    put(tmp_path, "etc/crypttab", crypttab)
    put(tmp_path, "etc/homeport/assignment.yaml", ": no yaml: at all")
    prepare.prepare(make(tmp_path, f"{NETWORK} homeport.config=/etc/homeport/assignment.yaml root={root}"))
    (told,) = (message for message in caplog.messages if "real root cannot" in message)
    assert why in told and len(waits) < 2
    assert in_run(tmp_path) == ["homeport-bootstrap.nmconnection"]


@pytest.mark.parametrize("busy", [prepare.UDEV_BUSY, "a USB port"])
@pytest.mark.parametrize("cmdline", [NETWORK, "root=UUID=12"])
def test_a_drive_that_is_on_its_way(
    tmp_path: Path, real: Path, busy: str, cmdline: str, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before NetworkManager starts where the network is wanted, and before the real root is handed anything."""
    machine = make(tmp_path, f"{cmdline} homeport.config=http://cfg.example/x")
    put(tmp_path, busy, "")
    monkeypatch.setattr(prepare, "drives_on_their_way", lambda root: busy == "a USB port")
    monkeypatch.setattr(time, "sleep", lambda _: put(tmp_path, "dev/disk/by-label/HOMEPORT", ""))
    if cmdline == NETWORK:
        prepare.prepare(machine)
    else:
        assert prepare.has_something(machine, real)
    assert drive.is_there(tmp_path)


@pytest.mark.parametrize("left", [60.0, 2.0])
def test_a_drive_that_never_comes(tmp_path: Path, left: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five seconds, or what is left: an empty card reader is on its way for good."""
    passed = [100.0]
    monkeypatch.setattr(prepare, "drives_on_their_way", lambda root: True)
    machine = make(tmp_path, "root=UUID=12")
    machine.ends = passed[0] + left
    monkeypatch.setattr(time, "monotonic", lambda: passed[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: passed.append(passed.pop() + seconds))
    prepare.wait_for_drive(machine)
    assert passed[0] - 100.0 == pytest.approx(min(left, 5.0), abs=0.1)


def test_systemd_does_not_wait_any_longer(
    tmp_path: Path, real: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A TPM, a disk that hangs: with DHCP there is a network all the same."""
    def killed(_: Machine) -> str:
        raise KeyboardInterrupt
    monkeypatch.setattr(start, "use_kept", killed)
    put(tmp_path, GENERATED_PATH, GENERATED)
    with pytest.raises(KeyboardInterrupt):
        prepare.prepare(make(tmp_path, f"{NETWORK} homeport.config=http://cfg.example/x"))
    assert in_run(tmp_path) == ["homeport-bootstrap.nmconnection"]
    assert starts(tmp_path) and (tmp_path / INITRD).exists()


def test_why_what_is_kept_is_not_used(tmp_path: Path, real: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    prepare.prepare(make(tmp_path, f"{NETWORK} homeport.config=http://cfg.example/x"))
    assert "last-known-good: nothing was ever proven on this machine" in caplog.text


def test_arguments_that_dracut_adds(tmp_path: Path) -> None:
    """Those of the image first, the kernel's own last: a later one counts."""
    put(tmp_path, "etc/cmdline.d/35-neednet.conf", "rd.neednet\n")
    put(tmp_path, "etc/cmdline.d/90-root.conf", "root=UUID=1\nro")
    machine = make(tmp_path, "root=UUID=2")
    prepare.prepare(machine)
    assert starts(tmp_path)
    assert prepare.read_arguments(machine).split() == ["rd.neednet", "root=UUID=1", "ro", "root=UUID=2"]


def test_a_boot_with_nothing_to_do_is_cheap(tmp_path: Path) -> None:
    """Most are: neither yaml nor what renders and applies is imported to find that out."""
    code = ("import sys; from homeport.cli import main\n"
            f"assert main(['prepare', '--root', {str(tmp_path)!r}]) == 0\n"
            f"assert main(['handover', '--root', {str(tmp_path)!r}]) == 0\n"
            f"assert main(['handover', '--clean', '--root', {str(tmp_path)!r}]) == 0\n"
            "print(*sorted(m for m in sys.modules if m in ('yaml', 'requests', 'ssl', 'subprocess', 'jeepney', "
            "'homeport.asking', 'homeport.planning', 'homeport.inforce', 'homeport.fallback', 'homeport.core.schema', "
            "'homeport.tidy')))")
    make(tmp_path, "root=UUID=12")
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True,
                          env={"PYTHONPATH": str(Path(prepare.__file__).parents[1])})
    assert done.stdout.strip() == ""
    assert (tmp_path / HANDOVER).exists()
