import errno
import os
import stat
from pathlib import Path

import pytest

from homeport.core.keyfile import Keyfile, own_profile, parse, stable_uuid
from homeport.core.keyfile.format import _sound
from homeport.errors import PersistError
from homeport.host import keyfiles
from homeport.host.keyfiles import ETC, path_of, remove_files, remove_owned, write_profiles
from homeport.host.store import Manifest, OwnedFile

STRANGER = "[connection]\nid=admin\nuuid=3d2c9a70-9d5a-4f0e-8f58-111111111111\ntype=ethernet\n"


def profile(name: str, address: str = "10.0.0.5/24", uuid: str = "") -> Keyfile:
    text = f"[connection]\ntype=ethernet\ninterface-name={name}\n[ipv4]\nmethod=manual\naddress1={address}\n"
    return own_profile(text, uuid=uuid or stable_uuid("machine", name), name=name, nic=None, tags={})


def put(root: Path, name: str, text: str, mode: int = 0o600) -> Path:
    path = root / ETC / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def manifest(root: Path, *names: str) -> Manifest:
    """What the store would have announced for these profiles, as they are on disk now."""
    files = []
    for name in names:
        path = path_of(name)
        data = (root / path).read_bytes() if (root / path).exists() else b""
        files.append(OwnedFile(path, keyfiles.fingerprint(data), stable_uuid("machine", name), name))
    return Manifest(keyfiles=tuple(files))


def test_profiles_reach_the_disk_for_root_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        written = write_profiles(tmp_path, {"eth0": profile("eth0"), "eth1": profile("eth1")})
    finally:
        os.umask(old)
    assert [file.path for file in written] == [f"{ETC}/homeport-eth0.nmconnection",
                                               f"{ETC}/homeport-eth1.nmconnection"]
    for file in written:
        status = (tmp_path / file.path).stat()
        assert stat.S_IMODE(status.st_mode) == 0o600
        assert file.changed and file.fingerprint == keyfiles.fingerprint((tmp_path / file.path).read_bytes())
        assert parse((tmp_path / file.path).read_text()).raw("connection", "uuid") == file.uuid


def test_what_is_there_already_is_not_written_again(tmp_path: Path) -> None:
    write_profiles(tmp_path, {"eth0": profile("eth0")})
    path = tmp_path / path_of("eth0")
    before = path.stat()
    assert [file.changed for file in write_profiles(tmp_path, {"eth0": profile("eth0")})] == [False]
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    path.chmod(0o644)   # NetworkManager would ignore it
    assert [file.changed for file in write_profiles(tmp_path, {"eth0": profile("eth0")})] == [True]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_ours_is_replaced_whatever_it_was(tmp_path: Path) -> None:
    write_profiles(tmp_path, {"eth0": profile("eth0", uuid=stable_uuid("machine", "former"))})
    write_profiles(tmp_path, {"eth0": profile("eth0", "10.0.0.6/24")})
    assert parse((tmp_path / path_of("eth0")).read_text()).raw("ipv4", "address1") == "10.0.0.6/24"
    assert len(list((tmp_path / ETC).iterdir())) == 1


@pytest.mark.parametrize("strange", ["file", "link", "folder", "clone"])
def test_a_foreign_file_of_our_name_survives(tmp_path: Path, strange: str,
                                             caplog: pytest.LogCaptureFixture) -> None:
    path = put(tmp_path, "homeport-eth0.nmconnection", STRANGER)
    if strange == "link":
        path.rename(tmp_path / ETC / "target")
        path.symlink_to("target")
    elif strange == "folder":
        path.unlink()
        path.mkdir()
    elif strange == "clone":   # nmcli connection clone copies our mark, but has its own UUID
        clone = profile("eth0").set("connection", "uuid", stable_uuid("machine", "clone"))
        path.write_text(clone.render())
    before = path.lstat()
    written = write_profiles(tmp_path, {"eth0": profile("eth0")})
    assert path.lstat() == before
    assert written[0].path == f"{ETC}/homeport-eth0+2.nmconnection"
    assert "homeport-eth0.nmconnection is not homeport's" in caplog.text
    # the same at the next boot, and the next write goes there too
    assert path_of("eth0", tmp_path) == written[0].path
    assert [file.changed for file in write_profiles(tmp_path, {"eth0": profile("eth0")})] == [False]
    assert keyfiles.list_owned(tmp_path) == (written[0].path,)


def test_a_name_that_was_announced_is_kept_or_refused(tmp_path: Path) -> None:
    announced = Manifest(keyfiles=(OwnedFile(path_of("eth0"), interface="eth0"),))
    write_profiles(tmp_path, {"eth0": profile("eth0")}, announced)
    put(tmp_path, "homeport-eth0.nmconnection", STRANGER)
    with pytest.raises(PersistError, match=r"eth0: /.*homeport-eth0.nmconnection is not homeport's"):
        write_profiles(tmp_path, {"eth0": profile("eth0")}, announced)


def test_all_names_taken(tmp_path: Path) -> None:
    for number in range(1, 10):
        put(tmp_path, path_of("eth0").rpartition("/")[2].replace(".nm", f"+{number}.nm" if number > 1 else ".nm"),
            STRANGER)
    with pytest.raises(PersistError, match="hold all its names"):
        path_of("eth0", tmp_path)


def test_a_foreign_profile_of_our_uuid_is_not_shadowed(tmp_path: Path) -> None:
    uuid = stable_uuid("machine", "eth0")
    # with a fault for which our reader would refuse the whole file
    put(tmp_path, "Wired.nmconnection", f"[connection]\nid=w\nid=w\nuuid = {uuid.upper()}\ntype=ethernet\n")
    assert keyfiles.holders(tmp_path, uuid) == (f"{ETC}/Wired.nmconnection",)
    with pytest.raises(PersistError, match=f"Wired.nmconnection has its UUID {uuid}"):
        write_profiles(tmp_path, {"eth0": profile("eth0")})
    assert not (tmp_path / path_of("eth0")).exists()


def test_what_does_not_read_back_as_it_was_is_said(tmp_path: Path) -> None:
    # as if our own writer had let a line end through
    wrong = _sound((*profile("eth0").sections, ("x", (("key", "a\nb"),))))
    with pytest.raises(PersistError, match="does not read back"):
        write_profiles(tmp_path, {"eth0": wrong})


def test_a_disk_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "etc").write_text("not a folder")
    with pytest.raises(PersistError, match=os.strerror(errno.EEXIST)) as caught:
        write_profiles(tmp_path, {"eth0": profile("eth0")})
    assert "a reboot loses them" in str(caught.value)


@pytest.mark.parametrize("known", [True, False])
def test_removal_takes_ours_and_leaves_strangers(tmp_path: Path, known: bool,
                                                 caplog: pytest.LogCaptureFixture) -> None:
    """With the manifest or without it: /var may be lost, and DHCP must still be reached."""
    write_profiles(tmp_path, {"eth0": profile("eth0"), "eth1": profile("eth1"), "eth2": profile("eth2")})
    put(tmp_path, "Wired connection 1.nmconnection", STRANGER)
    put(tmp_path, "homeport-admin.nmconnection", STRANGER)
    put(tmp_path, "copy-of-ours.nmconnection", profile("eth3").render())      # not our name
    put(tmp_path, path_of("eth1").rpartition("/")[2], STRANGER)                  # put in the place of ours
    faulty = tmp_path / path_of("eth2")                                          # edited badly, still ours
    faulty.write_text(faulty.read_text() + "fault\n")
    gone = remove_owned(tmp_path, manifest(tmp_path, "eth0", "eth1", "eth2") if known else None)
    assert gone == (path_of("eth0"), path_of("eth2"))
    assert sorted(path.name for path in (tmp_path / ETC).iterdir()) == [
        "Wired connection 1.nmconnection", "copy-of-ours.nmconnection", "homeport-admin.nmconnection",
        "homeport-eth1.nmconnection"]
    assert ("homeport-eth1.nmconnection does not carry our mark any more" in caplog.text) == known
    assert remove_owned(tmp_path) == ()


def test_removal_of_what_is_left_over(tmp_path: Path) -> None:
    write_profiles(tmp_path, {"eth0": profile("eth0"), "eth1": profile("eth1")})
    assert remove_owned(tmp_path, keep=[path_of("eth0")]) == (path_of("eth1"),)
    stale = manifest(tmp_path, "eth0", "eth1").keyfiles
    assert remove_files(tmp_path, stale) == (path_of("eth0"),)


def test_an_empty_machine(tmp_path: Path) -> None:
    assert keyfiles.list_owned(tmp_path) == ()
    assert remove_owned(tmp_path) == ()


@pytest.mark.parametrize(("damage", "found"), [
    (lambda path: None, None),
    (lambda path: path.unlink(), "is missing"),
    (lambda path: path.write_text(path.read_text() + "\n"), "was edited"),
    (lambda path: path.chmod(0o640), "is not for root alone"),
    (lambda path: (path.rename(path.with_suffix(".x")), path.symlink_to(path.with_suffix(".x"))), "is missing"),
])
def test_damage(tmp_path: Path, damage, found: str | None) -> None:  # type: ignore[no-untyped-def]
    write_profiles(tmp_path, {"eth0": profile("eth0")})
    known = manifest(tmp_path, "eth0")
    damage(tmp_path / path_of("eth0"))
    expected = (f"/{path_of('eth0')} {found}",) if found else ()
    assert tuple(line.partition(":")[0] for line in keyfiles.damage(tmp_path, known)) == expected
    assert keyfiles.intact(tmp_path, known) == (found is None)


def test_the_runtime_folder(tmp_path: Path) -> None:
    """Where the initrd puts them."""
    written = write_profiles(tmp_path, {"eth0": profile("eth0")}, folder=keyfiles.RUN)
    assert written[0].path == "run/NetworkManager/system-connections/homeport-eth0.nmconnection"
    assert keyfiles.list_owned(tmp_path) == ()
    assert remove_owned(tmp_path, folder=keyfiles.RUN) == (written[0].path,)


def test_what_a_killed_run_left(tmp_path: Path) -> None:
    """Half-written files of ours in both folders go, what has another name stays; no folder is no error."""
    keyfiles.sweep_up(tmp_path)
    half = ".homeport-0123456789abcdef.tmp"
    left = put(tmp_path, half, "[conn")
    theirs = put(tmp_path, ".homeport-notes.tmp", "mine")
    state = tmp_path / "var/lib/homeport" / half
    state.parent.mkdir(parents=True)
    state.touch()
    keyfiles.sweep_up(tmp_path)
    assert (left.exists(), state.exists(), theirs.exists()) == (False, False, True)
