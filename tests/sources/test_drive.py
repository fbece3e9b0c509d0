"""The drive labelled HOMEPORT, read on real images and never mounted; and fw_cfg."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from homeport.core.identity import Identity
from homeport.errors import DocumentError, NoAssignment, SourceError, Unconfigured
from homeport.sources import LARGEST, drive, fwcfg

UUID, MAC = "4c4c4544-0042-3010-8051-b4c04f564432", "52:54:00:ab:cd:ef"
WHO = Identity("smbios-uuid", UUID, fields={"uuid": UUID, "serial": "SN/1", "mac": MAC}, macs=(MAC,))
Plug = Callable[..., None]


@pytest.fixture(params=["iso9660", "vfat", "ext4"])
def plug(request: pytest.FixtureRequest, tmp_path: Path) -> Plug:
    """plug(files, label="HOMEPORT"): an image where udev would show the drive."""
    tool = {"iso9660": "genisoimage", "vfat": "mcopy", "ext4": "mke2fs"}[request.param]
    if not shutil.which(tool):
        pytest.skip(f"no {tool}")

    def plug(files: Mapping[str, bytes], label: str = "HOMEPORT") -> None:
        folder, image = tmp_path / "content", tmp_path / "root/dev/disk/by-label" / label
        folder.mkdir()
        image.parent.mkdir(parents=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)
        if request.param == "iso9660":
            run("genisoimage", "-quiet", "-R", "-J", "-V", label, "-o", str(image), str(folder))
            return
        if request.param == "ext4":
            run("mke2fs", "-q", "-F", "-t", "ext4", "-L", label, "-d", str(folder), str(image), "4M")
            return
        run("truncate", "--size=2M", str(image))
        run("mkfs.vfat", "-n", label, str(image))
        run("mcopy", "-i", str(image), *map(str, folder.iterdir()), "::")

    return plug


def run(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True)


@pytest.mark.parametrize("name", [f"{UUID}.yaml", f"{UUID.upper()}.yml", "52-54-00-ab-cd-ef.json", "525400abcdef.yaml"])
def test_one_of_this_machine(plug: Plug, tmp_path: Path, name: str) -> None:
    """By whichever fact it is named; it goes before the one for all."""
    plug({name: b"ours\n", "homeport.yaml": b"everyone's\n", "11111111-0042-3010-8051-b4c04f564432.yaml": b"theirs\n"})
    reply = drive.fetch(WHO, root=tmp_path / "root")
    assert (reply.data, reply.source, reply.over_network) == (b"ours\n", "drive", False)
    assert reply.url.casefold() == f"homeport/{name}".casefold()


def test_one_for_all(plug: Plug, tmp_path: Path) -> None:
    plug({"homeport.yaml": b"everyone's\n"}, label="homeport" if shutil.which("genisoimage") else "HOMEPORT")
    assert drive.fetch(Identity(), root=tmp_path / "root").data == b"everyone's\n"


def test_two_of_this_machine(plug: Plug, tmp_path: Path) -> None:
    plug({f"{UUID}.yaml": b"a\n", "52-54-00-ab-cd-ef.yaml": b"b\n"})
    with pytest.raises(DocumentError, match="more than one document for this machine"):
        drive.fetch(WHO, root=tmp_path / "root")


def test_none_of_this_machine(plug: Plug, tmp_path: Path) -> None:
    plug({"11111111-0042-3010-8051-b4c04f564432.yaml": b"theirs\n"})
    with pytest.raises(NoAssignment, match="no document for this machine") as caught:
        drive.fetch(WHO, root=tmp_path / "root")
    assert f"{UUID}.yaml" in caught.value.hint
    assert drive.read_seed(tmp_path / "root") is None


def test_only_a_seed(plug: Plug, tmp_path: Path) -> None:
    """Then the drive says nothing of an assignment, and is no failure."""
    plug({"seed.yaml": b"seed\n"})
    with pytest.raises(Unconfigured):
        drive.fetch(WHO, root=tmp_path / "root")
    reply = drive.read_seed(tmp_path / "root")
    assert reply and (reply.data, reply.label) == (b"seed\n", "seed HOMEPORT/seed.yaml")


@pytest.mark.parametrize("link", ["sda", "sdb"])
def test_two_drives(
    tmp_path: Path, link: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str],
) -> None:
    """The same one is taken, wherever the link leads; what was taken and what was left is said, once."""
    if not shutil.which("mke2fs"):
        pytest.skip("no mke2fs")
    drive._say.cache_clear()
    for number, name in (("8:0", "sda"), ("8:16", "sdb")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "homeport.yaml").write_text(f"{name}\n")
        (tmp_path / "dev/disk/by-label").mkdir(parents=True, exist_ok=True)
        run("mke2fs", "-q", "-F", "-t", "ext4", "-L", "HOMEPORT", "-d", str(tmp_path / name),
            str(tmp_path / "dev" / name), "4M")
        (tmp_path / "sys/dev/block" / number).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sys/block" / name).mkdir(parents=True)
        (tmp_path / "sys/dev/block" / number).symlink_to(tmp_path / "sys/block" / name)
        (tmp_path / "run/udev/data").mkdir(parents=True, exist_ok=True)
        (tmp_path / f"run/udev/data/b{number}").write_text("S:disk/by-label/HOMEPORT\n")
    (tmp_path / "dev/disk/by-label/HOMEPORT").symlink_to(f"../../{link}")
    (tmp_path / "sys/block/sdb/removable").write_text("1\n")
    assert drive.fetch(WHO, root=tmp_path).data == b"sdb\n"
    assert drive.read_seed(tmp_path) is None
    said = "2 drives are labelled HOMEPORT: taking /dev/sdb, leaving /dev/sda"
    assert caplog.messages == [said]
    assert capsys.readouterr().out == f"homeport: {said}\n"
    (tmp_path / "dev/sdb").unlink()
    (tmp_path / "dev/disk/by-label/HOMEPORT").unlink()
    (tmp_path / "dev/disk/by-label/HOMEPORT").symlink_to("../../sda")
    assert drive.fetch(WHO, root=tmp_path).data == b"sda\n"
    assert caplog.messages == [said]


def test_too_large(plug: Plug, tmp_path: Path) -> None:
    plug({"homeport.yaml": b"x" * (LARGEST + 1)})
    with pytest.raises(DocumentError, match=str(LARGEST + 1)):
        drive.fetch(WHO, root=tmp_path / "root")


def test_no_drive(tmp_path: Path) -> None:
    assert not drive.is_there(tmp_path)
    assert drive.read_seed(tmp_path) is None
    with pytest.raises(NoAssignment, match="No drive is labelled HOMEPORT"):
        drive.fetch(WHO, root=tmp_path)


@pytest.mark.parametrize(("data", "said"), [
    *((data, "none of iso9660, vfat, ext4") for data in (b"", b"\0" * 65536, b"\xff" * 65536)),
    (b"LUKS\xba\xbe\0\2".ljust(65536, b"\0"), r"encrypted \(LUKS\)"),
])
def test_another_file_system(tmp_path: Path, data: bytes, said: str) -> None:
    image = tmp_path / "dev/disk/by-label/HOMEPORT"
    image.parent.mkdir(parents=True)
    image.write_bytes(data)
    with pytest.raises(SourceError, match=said):
        drive.fetch(WHO, root=tmp_path)


def test_fw_cfg(tmp_path: Path) -> None:
    assert not fwcfg.is_there(tmp_path)
    with pytest.raises(NoAssignment):
        fwcfg.fetch(root=tmp_path)
    file = tmp_path / fwcfg.PATH
    file.parent.mkdir(parents=True)
    file.write_bytes(b"ours\n")
    assert fwcfg.is_there(tmp_path)
    assert fwcfg.fetch(root=tmp_path).label == "fw-cfg opt/io.homeport/assignment"
    file.write_bytes(b"x" * (LARGEST + 1))
    with pytest.raises(DocumentError, match="larger than 512 KiB"):
        fwcfg.fetch(root=tmp_path)
