"""VMware's guestinfo, by programs that behave as open-vm-tools' do."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.core.platforms.shape import Guestinfo, NotThere, Want
from homeport.core.platforms.vmware import PLATFORM
from homeport.errors import DocumentError, SourceError
from homeport.sources.platforms import guestinfo

(WAY,) = PLATFORM.ways
RPCTOOL = """\
#!/bin/sh
case "$1" in
  "info-get guestinfo.metadata") printf '%s\\n' '{"instance-id": "x"}' ;;
  *) echo 'No value found' >&2; exit 1 ;;
esac
"""


def install(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


def read(left: float = 10.0) -> dict[str, bytes | None]:
    assert isinstance(WAY, Guestinfo)
    return dict(guestinfo.Session(WAY, lambda: left).read())


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(("name", "text"), [
    ("vmware-rpctool", RPCTOOL),
    ("vmtoolsd", RPCTOOL.replace("#!/bin/sh\n", '#!/bin/sh\n[ "$1" = --cmd ] || exit 64\nshift\n')),
])
def test_keys_with_and_without_value(programs: Path, name: str, text: str) -> None:
    install(programs, name, text)
    found = read()
    assert found.pop("guestinfo.metadata") == b'{"instance-id": "x"}'
    assert set(found.values()) == {None}


def test_no_program_and_no_value(programs: Path) -> None:
    with pytest.raises(NotThere, match="vmware-rpctool or vmtoolsd"):
        read()
    install(programs, "vmware-rpctool", "#!/bin/sh\nexit 1\n")
    with pytest.raises(NotThere):
        read()


def test_a_program_that_hangs(programs: Path) -> None:
    install(programs, "vmware-rpctool", "#!/bin/sh\nwhile :; do :; done\n")
    with pytest.raises(SourceError, match=r"Cannot read guestinfo\.metadata"):
        read(left=0.2)


@pytest.mark.parametrize("more", [0, 1, 4 << 20])
def test_a_value_that_is_too_large_is_not_cut(programs: Path, more: int) -> None:
    (programs / "value").write_bytes(b"x" * ((512 << 10) + more) + b"\n")
    (programs / "cat").symlink_to("/bin/cat")
    install(programs, "vmware-rpctool", f"#!/bin/sh\ncat {programs}/value\n")
    if more:
        with pytest.raises(DocumentError, match=r"guestinfo\.metadata: more than 512 KiB"):
            read()
    else:
        assert len(read()["guestinfo.metadata"] or b"") == 512 << 10


def test_the_keys_are_the_documented_ones() -> None:
    assert isinstance(WAY, Guestinfo)
    assert [want.path for want in WAY.wants({}) if isinstance(want, Want)] == [
        "guestinfo.metadata", "guestinfo.metadata.encoding", "guestinfo.afterburn.initrd.network-kargs"]
