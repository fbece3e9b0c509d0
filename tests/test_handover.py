"""What reaches the real root, what waits for it in /run, and what is left alone."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conftest import find_nmstatectl
from tests.initramfs import DOCUMENT, in_run, keep, make, put

from homeport import handover, prepared, start
from homeport.host import facts, keyfiles
from homeport.host.files import write_atomic
from homeport.host.store import INITRD, Store
from homeport.machine import Machine

OTHER = DOCUMENT.replace("192.0.2.5", "192.0.2.6")


@pytest.fixture
def real(tmp_path: Path) -> Path:
    """A real root that was never booted."""
    folder = tmp_path / "sysroot"
    for name in ("etc", "var/lib", "usr/lib"):
        (folder / name).mkdir(parents=True)
    return folder


def after_a_run(root: Path, cmdline: str = "", rung: str = "assigned", kept: bool = False) -> Machine:
    """An initramfs in which homeport has run and come to this rung."""
    machine = make(root, cmdline)
    put(root, INITRD, json.dumps({"started": 1.0, "kept": kept}))
    machine.store.write_status({"rung": rung, "fetched": True, "boot_id": machine.report.boot_id}, in_initrd=True)
    return machine


def test_what_was_proven_is_the_real_roots(tmp_path: Path, real: Path) -> None:
    """Byte for byte, for root only, under the same UUIDs; the real root finds nothing to do."""
    machine = after_a_run(tmp_path)
    manifest = keep(tmp_path)
    put(tmp_path, "var/lib/homeport/software-ek.pem", "key")
    handover.handover(machine, real)
    there = Store(real)
    assert there.read_manifest() == manifest
    assert keyfiles.intact(real, manifest)
    assert there.read_assigned() == DOCUMENT.encode()
    assert (real / "var/lib/homeport/software-ek.pem").read_text() == "key"
    assert (real / "var/lib/homeport").stat().st_mode & 0o777 == 0o700
    assert in_run(tmp_path) == [] and prepared.read(tmp_path) is None


LINK, SCRIPT = "etc/systemd/network/98-nmstate-enp1s0.link", "etc/NetworkManager/dispatcher.d/nmstate-enp1s0-up.sh"


@pytest.mark.parametrize(("said", "there", "expected"), [
    ("berth-7", None, "berth-7\n"),
    ("berth-7", "# by hand\nberth-7\n", "# by hand\nberth-7\n"),  # as it is
    ("berth-7", "image\n", "berth-7\n"),  # as on the real root: what is assigned counts
    ("", "image\n", None),
    (None, "image\n", "image\n"),  # nothing is said: not that of the initramfs, either
    (None, None, None),
])
def test_the_host_name_of_the_document(
    tmp_path: Path, real: Path, said: str | None, there: str | None, expected: str | None,
) -> None:
    """Before systemd sets it there; without it the real root would have to apply all of it once more."""
    machine = after_a_run(tmp_path)
    put(tmp_path, "etc/hostname", f"{said or 'dracut'}\n", 0o644)
    manifest = replace(keep(tmp_path), hostname=said)
    Store(tmp_path).write_manifest(manifest)
    if there is not None:
        put(real, "etc/hostname", there, 0o644)
    handover.handover(machine, real)
    name = real / "etc/hostname"
    assert (name.read_text() if name.exists() else None) == expected
    assert not name.exists() or name.stat().st_mode & 0o777 == 0o644
    assert Store(real).read_manifest() == manifest


def test_what_no_profile_can_say(tmp_path: Path, real: Path) -> None:
    """udev's file for alternative names, dispatch scripts: those of the document, and no others that lie there."""
    machine = after_a_run(tmp_path)
    put(tmp_path, LINK, "[Link]\nAlternativeName=uplink0\n", 0o644)
    put(tmp_path, SCRIPT, "#!/bin/sh\n", 0o755)
    put(tmp_path, LINK.replace("enp1s0", "enp9s0"), "[Link]\n", 0o644)
    put(real, LINK, "[Link]\nAlternativeName=old\n", 0o644)
    manifest = replace(keep(tmp_path), side_files=(LINK, SCRIPT))
    Store(tmp_path).write_manifest(manifest)
    handover.handover(machine, real)
    assert (real / LINK).read_text() == "[Link]\nAlternativeName=uplink0\n"
    assert (real / SCRIPT).stat().st_mode & 0o777 == 0o755
    assert [file.name for file in (real / LINK).parent.iterdir()] == [Path(LINK).name]
    assert Store(real).read_manifest() == manifest


@pytest.mark.parametrize("link", ["/dev/null", "/usr/lib/systemd/system/homeport.service"])
def test_homeport_is_masked_in_the_real_root(tmp_path: Path, real: Path, link: str) -> None:
    """Nothing of ours gets there then; a link to something else is no mask."""
    machine = after_a_run(tmp_path)
    manifest = keep(tmp_path)
    unit = real / handover.UNIT
    unit.parent.mkdir(parents=True)
    unit.symlink_to(link)
    handover.handover(machine, real)
    assert (Store(real).read_manifest() == manifest) == (link != "/dev/null")


def test_over_a_former_assignment(tmp_path: Path, real: Path) -> None:
    """What it had and the new one has not goes; its document is the previous one; strangers stay."""
    keep(real, OTHER, revision="r0", names=("enp1s0", "bond0"))
    put(real, "var/lib/homeport/fastpath", "stamp")
    put(real, "var/lib/homeport/software-ek.pem", "the machine's own")
    put(real, f"{keyfiles.ETC}/homeport-lab.nmconnection", "[connection]\nid=theirs\nuuid=1\n")
    machine = after_a_run(tmp_path)
    manifest = keep(tmp_path)
    put(tmp_path, "var/lib/homeport/software-ek.pem", "another")
    handover.handover(machine, real)
    names = sorted(file.name for file in (real / keyfiles.ETC).iterdir())
    assert names == ["homeport-enp1s0.nmconnection", "homeport-lab.nmconnection"]
    assert Store(real).read_manifest() == manifest
    assert (real / "var/lib/homeport/previous.yaml").read_text() == OTHER
    assert not (real / "var/lib/homeport/fastpath").exists()
    assert (real / "var/lib/homeport/software-ek.pem").read_text() == "the machine's own"


def test_a_stranger_holds_the_name(tmp_path: Path, real: Path) -> None:
    put(real, f"{keyfiles.ETC}/homeport-enp1s0.nmconnection", "[connection]\nid=theirs\nuuid=1\n")
    machine = after_a_run(tmp_path)
    keep(tmp_path)
    handover.handover(machine, real)
    (file,) = Store(real).read_manifest().keyfiles
    assert file.path == f"{keyfiles.ETC}/homeport-enp1s0+2.nmconnection"
    assert keyfiles.intact(real, Store(real).read_manifest())
    assert "theirs" in (real / keyfiles.ETC / "homeport-enp1s0.nmconnection").read_text()


@pytest.mark.parametrize(("fstab", "cmdline", "why"), [
    ("UUID=1 /var ext4 defaults 0 2\n", "", "/var is another file system, which is not mounted yet"),
    ("UUID=1\t/etc\text4\tx-initrd.mount\n", "", "/etc is another file system"),
    ("# a comment\nUUID=1 /var/lib/homeport ext4\n", "", "/var/lib/homeport is another file system"),
    ("UUID=1 / nfs defaults\n", "root=nfs:192.0.2.1:/", "it is on the network (root=nfs:192.0.2.1:/)"),
    ("", "systemd.mount-extra=PARTLABEL=var:/var:ext4:noatime", "/var is another file system"),
    ("", "systemd.mount-extra=/dev/sda3:/var/lib/", "/var/lib is another file system"),
    ("", "ostree=/ostree/boot.1/x/y/0", "/var is another file system"),
    ("no var", "", "there is no /var/lib yet"),
])
def test_what_cannot_be_written_now_waits_in_run(
    tmp_path: Path, real: Path, fstab: str, cmdline: str, why: str, capsys: pytest.CaptureFixture[str],
) -> None:
    """Where the real root's NetworkManager finds it, under the same UUIDs; nothing of the real root is touched."""
    if fstab == "no var":
        os.rmdir(real / "var/lib")
    else:
        put(real, "etc/fstab", fstab, 0o644)
    machine = after_a_run(tmp_path, cmdline)
    manifest = keep(tmp_path)
    before = sorted(map(str, real.rglob("*")))
    handover.handover(machine, real)
    assert sorted(map(str, real.rglob("*"))) == before
    assert in_run(tmp_path) == ["homeport-enp1s0.nmconnection"]
    found = prepared.read(tmp_path)
    assert found and (found.rung, found.proven, found.fetched, found.etag) == ("assigned", True, True, '"1"')
    assert found.uuids == manifest.uuids
    assert prepared.document(tmp_path) == DOCUMENT.encode()
    (line,) = capsys.readouterr().out.splitlines()
    assert "cannot be written yet" in line and len(line) <= 100
    assert why[:20] in line


def test_other_lines_of_fstab_are_nobodys_business(tmp_path: Path, real: Path) -> None:
    put(real, "etc/fstab", "UUID=1 / ext4 defaults\nUUID=2 /home ext4\nUUID=3 /var/log ext4\nnonsense\n", 0o644)
    machine = after_a_run(tmp_path)
    manifest = keep(tmp_path)
    handover.handover(machine, real)
    assert Store(real).read_manifest() == manifest


def test_a_disk_that_refuses(tmp_path: Path, real: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of it: what was proven waits in /run, and the former assignment is not half gone."""
    manifest = keep(real, OTHER, address="192.0.2.6/24", revision="r0")
    machine = after_a_run(tmp_path)
    keep(tmp_path)

    def full(root: object, path: str, data: bytes, mode: int = 0o600) -> None:
        if str(root) == str(real) and str(path).endswith(".nmconnection"):
            raise OSError(28, "No space left on device", path)
        write_atomic(root, path, data, mode)  # type: ignore[arg-type]
    monkeypatch.setattr(keyfiles, "write_atomic", full)
    handover.handover(machine, real)
    assert in_run(tmp_path) == ["homeport-enp1s0.nmconnection"]
    assert keyfiles.intact(real, manifest)
    # The next boot knows that it is half done, and has the newer document.
    assert not Store(real).read_manifest().complete


def test_a_real_root_that_cannot_be_looked_at(
    tmp_path: Path, real: Path, caplog: pytest.LogCaptureFixture,
) -> None:
    """A folder on the way to mount units, of a damaged disk: what was proven waits in /run, and why is said."""
    caplog.set_level(logging.INFO)
    (real / "etc/systemd").symlink_to("systemd")
    machine = after_a_run(tmp_path)
    manifest = keep(tmp_path)
    handover.handover(machine, real)
    assert in_run(tmp_path) == ["homeport-enp1s0.nmconnection"]
    found = prepared.read(tmp_path)
    assert found and found.proven and found.uuids == manifest.uuids
    assert "Too many levels of symbolic links" in caplog.text
    assert not (real / "var/lib/homeport").exists()


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyError("name")])
def test_facts_that_cannot_be_read(
    tmp_path: Path, real: Path, error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:
    """What was proven is handed over without them."""
    def failing(*_: object) -> None:
        raise error
    monkeypatch.setattr(facts, "read_facts", failing)
    machine = after_a_run(tmp_path)
    manifest = keep(tmp_path)
    handover.handover(machine, real)
    assert Store(real).read_manifest() == manifest
    assert "facts: " in capsys.readouterr().out


def test_a_bug_does_not_lose_what_was_proven(
    tmp_path: Path, real: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:
    machine = after_a_run(tmp_path)
    keep(tmp_path)

    def buggy(*_: object) -> None:
        raise KeyError("name")
    monkeypatch.setattr(handover, "relabel", buggy)
    handover.handover(machine, real)
    assert in_run(tmp_path) == ["homeport-enp1s0.nmconnection"]
    assert "Traceback" in caplog.text and "KeyError: 'name'" in caplog.text


@pytest.mark.parametrize(("rung", "kept"), [("dhcp", False), ("left-as-found", False), ("last-known-good", True)])
def test_nothing_new_was_proven(tmp_path: Path, real: Path, rung: str, kept: bool) -> None:
    machine = after_a_run(tmp_path, rung=rung, kept=kept)
    if kept:
        keep(tmp_path)
    handover.handover(machine, real)
    assert not (real / keyfiles.ETC).exists() and in_run(tmp_path) == []


@pytest.mark.parametrize(("config", "lines"), [
    ("SELINUX=enforcing\n", True), ("# SELINUX=disabled\nSELINUX=permissive\n", True), ("SELINUX=disabled\n", False),
    ("", False),
])
def test_labels(tmp_path: Path, real: Path, config: str, lines: bool) -> None:
    """Given by the real root's tmpfiles, before its NetworkManager reads the files."""
    if config:
        put(real, "etc/selinux/config", config, 0o644)
    machine = after_a_run(tmp_path)
    keep(tmp_path)
    handover.handover(machine, real)
    file = tmp_path / "run/tmpfiles.d/homeport-relabel.conf"
    assert file.exists() == lines
    if lines:
        for line in file.read_text().splitlines()[1:]:
            assert line.split()[0] in ("z", "Z") and line.split()[1].startswith("/")


# -- nothing ran in the initramfs --

@pytest.fixture
def nmstate(monkeypatch: pytest.MonkeyPatch) -> None:
    if not find_nmstatectl():
        pytest.skip("no nmstatectl: run tools/setup")
    monkeypatch.setenv("NMSTATECTL", find_nmstatectl())


CONFIG = "homeport.config=/etc/homeport/assignment.yaml"


@pytest.mark.usefixtures("nmstate")
def test_a_document_at_hand_is_rendered_for_the_real_root(tmp_path: Path, real: Path) -> None:
    """Its machine id makes the UUIDs: those of the initramfs's are its image's."""
    put(real, "etc/machine-id", "0123456789abcdef0123456789abcdef\n")
    put(tmp_path, "etc/machine-id", "f" * 32 + "\n")
    put(tmp_path, "etc/homeport/assignment.yaml", DOCUMENT)
    handover.handover(make(tmp_path, CONFIG), real)
    found = prepared.read(tmp_path)
    assert found and (found.rung, found.proven, found.fetched) == ("assigned", False, False)
    from homeport.core.keyfile import stable_uuid
    assert [file.uuid for file in found.profiles] == [stable_uuid("0123456789abcdef0123456789abcdef", "enp1s0")]
    assert in_run(tmp_path) == ["homeport-enp1s0.nmconnection"]
    assert not (real / keyfiles.ETC).exists()


@pytest.mark.usefixtures("nmstate")
def test_the_real_root_has_it_already(tmp_path: Path, real: Path) -> None:
    keep(real)
    put(tmp_path, "etc/homeport/assignment.yaml", DOCUMENT)
    handover.handover(make(tmp_path, CONFIG), real)
    assert in_run(tmp_path) == [] and prepared.read(tmp_path) is None


@pytest.mark.usefixtures("nmstate")
def test_but_somebody_edited_it(tmp_path: Path, real: Path) -> None:
    manifest = keep(real)
    put(real, manifest.keyfiles[0].path, (real / manifest.keyfiles[0].path).read_text() + "\n")
    put(tmp_path, "etc/homeport/assignment.yaml", DOCUMENT)
    handover.handover(make(tmp_path, CONFIG), real)
    found = prepared.read(tmp_path)
    assert found and found.uuids == manifest.uuids


@pytest.mark.usefixtures("nmstate")
@pytest.mark.parametrize(("cmdline", "kept", "rendered"), [
    ("", False, True),
    ("", True, False),  # what was proven is better than a seed
    ("homeport.config=http://cfg.example/x", False, False),  # a server is asked first
    ("homeport.mode=recovery", False, False),
])
def test_the_images_seed(tmp_path: Path, real: Path, cmdline: str, kept: bool, rendered: bool) -> None:
    put(real, "usr/lib/homeport/seed.yaml", DOCUMENT)
    if kept:
        keep(real)
    handover.handover(make(tmp_path, cmdline), real)
    found = prepared.read(tmp_path)
    assert (found is not None and found.rung == "seed") == rendered


@pytest.mark.usefixtures("nmstate")
@pytest.mark.parametrize("where", ["read_at_hand", "understand"])
def test_a_bug_costs_one_document_not_both(
    tmp_path: Path, real: Path, where: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:
    """Its traceback is in the journal, and the seed takes the assignment's place."""
    put(tmp_path, "etc/homeport/assignment.yaml", DOCUMENT)
    put(real, "usr/lib/homeport/seed.yaml", DOCUMENT)
    good, bugs = getattr(start, where), [KeyError("name")]

    def buggy(*arguments: object) -> object:
        if bugs:
            raise bugs.pop()
        return good(*arguments)
    monkeypatch.setattr(start, where, buggy)
    handover.handover(make(tmp_path, CONFIG), real)
    found = prepared.read(tmp_path)
    assert found and found.rung == "seed"
    assert "Traceback" in caplog.text and "KeyError: 'name'" in caplog.text


@pytest.mark.usefixtures("nmstate")
def test_a_card_that_is_not_there_yet(tmp_path: Path, real: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Said, and left to the real root, which waits longer."""
    put(tmp_path, "etc/homeport/assignment.yaml", DOCUMENT.replace("enp1s0", "enp9s0"))
    handover.handover(make(tmp_path, CONFIG), real)
    assert in_run(tmp_path) == [] and prepared.read(tmp_path) is None
    assert "enp9s0" in capsys.readouterr().out
