"""Behind NetworkManager in the initramfs: what goes, and what the real root takes over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.initramfs import BOOTSTRAP, DOCUMENT, GENERATED, in_run, keep, make, profile, put

from homeport import cli, prepared, tidy
from homeport.host import keyfiles, linkdown
from homeport.host.store import IN_FORCE, INITRD, Manifest, OwnedFile, Store
from homeport.machine import Machine
from homeport.prepare import DEVICES

OURS, STRANGERS = "homeport-bootstrap.nmconnection", "somebody.nmconnection"
BOOTSTRAP_UUID, GENERATED_UUID = "308909ec-dda8-593d-9459-0ea1837da121", "99999999-0000-4000-8000-000000000000"


@pytest.fixture
def down(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The cards that were put down."""
    cards: list[str] = []
    monkeypatch.setattr(linkdown, "take_down", cards.append)
    return cards


@pytest.fixture
def real(tmp_path: Path) -> Path:
    folder = tmp_path / "sysroot"
    folder.mkdir()
    return folder


def stopped(root: Path, cmdline: str = "rd.neednet=1", uuid: str = BOOTSTRAP_UUID, *, ours: bool = True) -> Machine:
    """An initramfs whose NetworkManager has stopped, with enp1s0 on the profile of this UUID; `ours` if homeport has
    brought it up.
    """
    machine = make(root, cmdline)
    if ours:
        put(root, INITRD, json.dumps({"found": [STRANGERS, "generated.nmconnection"]}))
    put(root, f"{keyfiles.RUN}/{OURS}", BOOTSTRAP)
    put(root, f"{keyfiles.RUN}/generated.nmconnection", GENERATED)
    put(root, f"{keyfiles.RUN}/{STRANGERS}", "[connection]\nid=x\nuuid=5\n")
    put(root, f"{keyfiles.RUN}/enp1s0.nmconnection", "[connection]\nid=enp1s0\nuuid=7\n")  # nmstate's
    put(root, f"{DEVICES}/2", f"[device]\nmanaged=1\nconnection-uuid={uuid}\n")
    put(root, f"{DEVICES}/1", "[device]\nmanaged=0\n")
    return machine


def has_note(root: Path) -> bool:
    return (root / DEVICES / "2").exists()


def test_a_new_machine_on_dhcp(tmp_path: Path, real: Path, down: list[str]) -> None:
    """The real root has the same bootstrap profile: the lease goes on, without a flap."""
    put(real, tidy.BOOTSTRAP_OF_ROOT, BOOTSTRAP)
    tidy.tidy(stopped(tmp_path), real)
    assert in_run(tmp_path) == [STRANGERS]
    assert has_note(tmp_path) and down == []
    assert (tmp_path / DEVICES / "1").exists()


@pytest.mark.parametrize("uuid", [BOOTSTRAP_UUID, GENERATED_UUID, "7"])
def test_a_machine_that_has_its_profiles(tmp_path: Path, real: Path, down: list[str], uuid: str) -> None:
    """Nothing of the initramfs's keeps the card from them."""
    put(real, tidy.BOOTSTRAP_OF_ROOT, BOOTSTRAP)
    keep(real)
    tidy.tidy(stopped(tmp_path, uuid=uuid), real)
    assert in_run(tmp_path) == [STRANGERS]
    assert not has_note(tmp_path) and down == ["enp1s0"]


def test_the_loopback_stays_up(tmp_path: Path, real: Path, down: list[str]) -> None:
    """NetworkManager makes a profile of it; without one, it is as the kernel and systemd have it."""
    machine = stopped(tmp_path)
    put(tmp_path, "sys/class/net/lo/ifindex", "1\n")
    put(tmp_path, f"{DEVICES}/1", "[device]\nconnection-uuid=8\n")
    tidy.tidy(machine, real)
    assert not (tmp_path / DEVICES / "1").exists() and down == ["enp1s0"]


def test_what_was_handed_over_stays_up(tmp_path: Path, real: Path, down: list[str]) -> None:
    (file,) = keep(real).keyfiles
    tidy.tidy(stopped(tmp_path, uuid=file.uuid), real)
    assert has_note(tmp_path) and down == []


def test_what_waits_in_run_stays(tmp_path: Path, real: Path, down: list[str]) -> None:
    machine = stopped(tmp_path)
    record = prepared.write(tmp_path, prepared.Prepared("assigned"), DOCUMENT.encode(), {"enp1s0": profile()})
    put(tmp_path, f"{DEVICES}/2", f"[device]\nconnection-uuid={record.profiles[0].uuid}\n")
    tidy.tidy(machine, real)
    assert in_run(tmp_path) == ["homeport-enp1s0.nmconnection", STRANGERS]
    assert has_note(tmp_path) and down == []


def test_what_is_not_to_be_kept_runs_on(tmp_path: Path, real: Path, down: list[str]) -> None:
    """A cloud's assignment is in /run from the start, with what is remembered of it."""
    machine = stopped(tmp_path)
    made = profile()
    uuid = made.raw("connection", "uuid") or ""
    file = put(tmp_path, f"{keyfiles.RUN}/homeport-enp1s0.nmconnection", made.render())
    machine.store.remember(DOCUMENT.encode(), Manifest(volatile=True, complete=True, keyfiles=(
        OwnedFile(str(file.relative_to(tmp_path)), uuid=uuid, interface="enp1s0"),)))
    put(tmp_path, f"{DEVICES}/2", f"[device]\nconnection-uuid={uuid}\n")
    tidy.tidy(machine, real)
    assert in_run(tmp_path) == ["homeport-enp1s0.nmconnection", STRANGERS]
    assert has_note(tmp_path) and down == []


@pytest.mark.parametrize("cmdline", ["root=nfs:192.0.2.1:/ rd.neednet=1", "netroot=iscsi:192.0.2.1::::iqn.x",
                                     "homeport.initrd=off rd.neednet=1", "ip=dhcp rd.neednet=1"])
def test_left_as_it_is(tmp_path: Path, real: Path, down: list[str], cmdline: str) -> None:
    """Under a root on the network, where homeport was told to keep out, and where a user's network is all there is."""
    put(real, tidy.BOOTSTRAP_OF_ROOT, BOOTSTRAP)
    machine = stopped(tmp_path, cmdline, GENERATED_UUID)
    before = in_run(tmp_path)
    tidy.tidy(machine, real)
    assert in_run(tmp_path) == before and has_note(tmp_path) and down == []


@pytest.mark.parametrize("table", ["sys/firmware/ibft/target0/nic-assoc", "sys/firmware/acpi/tables/NBFT"])
def test_the_firmwares_own_network_is_left(tmp_path: Path, real: Path, down: list[str], table: str) -> None:
    """Whatever the real root has: what stands on it may not be seen."""
    put(tmp_path, table, "0")
    keep(real)
    machine = stopped(tmp_path, "root=UUID=1", GENERATED_UUID, ours=False)
    before = in_run(tmp_path)
    tidy.tidy(machine, real)
    assert in_run(tmp_path) == before and has_note(tmp_path) and down == []


def test_the_kernel_line_counts_where_dracut_adds_to_it(tmp_path: Path, real: Path, down: list[str]) -> None:
    put(tmp_path, "etc/cmdline.d/20-neednet.conf", "rd.neednet=1\n")
    tidy.tidy(stopped(tmp_path, "ip=dhcp", GENERATED_UUID), real)
    assert has_note(tmp_path) and down == [] and "generated.nmconnection" in in_run(tmp_path)


def test_a_users_network_ends_with_the_initramfs_where_there_is_an_assignment(
    tmp_path: Path, real: Path, down: list[str],
) -> None:
    keep(real)
    tidy.tidy(stopped(tmp_path, "ip=dhcp rd.neednet=1", GENERATED_UUID), real)
    assert in_run(tmp_path) == [STRANGERS]
    assert not has_note(tmp_path) and down == ["enp1s0"]


@pytest.mark.parametrize("ours", [True, False])
def test_a_strangers_profile_and_its_card(tmp_path: Path, real: Path, down: list[str], ours: bool) -> None:
    """Another module's network is not ours to end, whoever brought NetworkManager up."""
    keep(real)
    tidy.tidy(stopped(tmp_path, "root=UUID=1", "5", ours=ours), real)
    assert STRANGERS in in_run(tmp_path)
    assert has_note(tmp_path) and down == []


@pytest.mark.parametrize(("uuid", "stays"), [("7", True), (GENERATED_UUID, False), (BOOTSTRAP_UUID, False)])
def test_where_homeport_did_not_bring_the_network_up(
    tmp_path: Path, real: Path, down: list[str], uuid: str, stays: bool,
) -> None:
    """Whose a profile is, is what it says of itself: all others stay, with the cards that run on them."""
    keep(real)
    tidy.tidy(stopped(tmp_path, "root=UUID=1", uuid, ours=False), real)
    assert in_run(tmp_path) == ["enp1s0.nmconnection", STRANGERS]
    assert has_note(tmp_path) == stays and down == ([] if stays else ["enp1s0"])


def test_a_generated_network_where_homeport_kept_out_of_it(tmp_path: Path, real: Path, down: list[str]) -> None:
    """The kernel line's own; nothing of ours was started, and the real root has an assignment."""
    keep(real)
    tidy.tidy(stopped(tmp_path, "ip=dhcp rd.neednet=1", GENERATED_UUID, ours=False), real)
    assert in_run(tmp_path) == ["enp1s0.nmconnection", STRANGERS]
    assert not has_note(tmp_path) and down == ["enp1s0"]


def test_what_cannot_be_looked_at_does_not_keep_the_rest(
    tmp_path: Path, real: Path, down: list[str], caplog: pytest.LogCaptureFixture,
) -> None:
    """A card that goes meanwhile, and a folder that has a profile's name."""
    (tmp_path / keyfiles.RUN / "0.nmconnection").mkdir(parents=True)
    (tmp_path / "sys/class/net/gone/ifindex").mkdir(parents=True)
    keep(real)
    tidy.tidy(stopped(tmp_path), real)
    assert in_run(tmp_path) == ["0.nmconnection", STRANGERS]
    assert not has_note(tmp_path) and down == ["enp1s0"]
    assert "Cannot remove /run/NetworkManager/system-connections/0.nmconnection" in caplog.text


def test_nothing_there(tmp_path: Path, real: Path, down: list[str]) -> None:
    tidy.tidy(make(tmp_path, "root=UUID=1"), real)
    assert down == [] and not Store(real).read_manifest().keyfiles


@pytest.mark.parametrize("argv", [["handover"], ["handover", "--clean"]])
def test_what_was_in_force_here_is_not_promised_there(tmp_path: Path, argv: list[str]) -> None:
    """Where the real root's homeport is masked, NetworkManager-wait-online has to wait again."""
    make(tmp_path)
    put(tmp_path, IN_FORCE, "")
    assert cli.main([*argv, "--root", str(tmp_path)]) == 0
    assert (tmp_path / IN_FORCE).exists() == (argv == ["handover"])
