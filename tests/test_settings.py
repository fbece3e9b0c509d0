"""Settings: which place wins, what is tolerated, and what people read of the options."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from homeport import settings
from homeport.errors import SettingsError, UsageError
from homeport.settings import OPTIONS, Settings, default_file_text, help_options, man_options, read_settings


def write(root: Path, path: str, text: str | bytes) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())


def test_nothing_is_set(tmp_path: Path) -> None:
    found = read_settings(tmp_path)
    assert found.sources == ("credential", "fw-cfg", "file", "drive", "url", "elemental", "platform")
    assert found.identity_order == ("tpm", "smbios-uuid", "smbios-serial", "mac")
    assert (found.deadline, found.initrd_deadline, found.nic_wait) == (120, 30, 30)
    assert (found.connect_timeout, found.header_timeout, found.body_timeout) == (5, 10, 20)
    assert (found.apply_timeout, found.proof_timeout) == (150, 30)
    assert (found.config, found.proxy, found.report, found.allow_dispatch) == ((), "", "", False)
    assert found.seed == ("/etc/homeport/seed.yaml", "/usr/lib/homeport/seed.yaml")
    assert (found.origins, found.warnings) == ({}, ())


def test_each_option_is_an_attribute_with_a_sound_default() -> None:
    assert {option.attribute for option in OPTIONS} | {"origins", "warnings"} == set(Settings.__annotations__)
    assert len({option.name for option in OPTIONS}) == len(OPTIONS)
    for option in OPTIONS:
        assert getattr(Settings(), option.attribute) == option.parse(option.default)


# Lowest first; each place sets the deadline to its own number.
PLACES = [
    "usr/lib/homeport/homeport.conf",
    "etc/homeport/homeport.conf",
    "etc/homeport/homeport.conf.d/10-a.conf",  # drop-ins go by name, not by folder
    "usr/lib/homeport/homeport.conf.d/20-b.conf",
    "run/homeport/homeport.conf.d/30-c.conf",
]


@pytest.mark.parametrize("highest", range(len(PLACES)))
def test_a_higher_place_wins(tmp_path: Path, highest: int) -> None:
    for number, place in enumerate(PLACES[:highest + 1]):
        write(tmp_path, place, f"Deadline={number + 1}\n")
    found = read_settings(tmp_path)
    assert found.deadline == highest + 1
    assert found.origins == {"deadline": f"/{PLACES[highest]}:1"}
    assert read_settings(tmp_path, "homeport.deadline=99").deadline == 99
    assert read_settings(tmp_path, "homeport.deadline=99", {"deadline": "100"}).deadline == 100


def test_a_drop_in_of_etc_hides_its_namesakes(tmp_path: Path) -> None:
    for number, folder in enumerate(("usr/lib", "run", "etc")):
        write(tmp_path, f"{folder}/homeport/homeport.conf.d/50-x.conf", f"Deadline={number + 1}")
    assert read_settings(tmp_path).deadline == 3
    (tmp_path / "etc/homeport/homeport.conf.d/50-x.conf").unlink()
    assert read_settings(tmp_path).deadline == 2


def test_a_link_to_dev_null_masks(tmp_path: Path) -> None:
    write(tmp_path, "usr/lib/homeport/homeport.conf.d/50-x.conf", "Deadline=1")
    (tmp_path / "etc/homeport/homeport.conf.d").mkdir(parents=True)
    (tmp_path / "etc/homeport/homeport.conf.d/50-x.conf").symlink_to("/dev/null")
    assert read_settings(tmp_path).deadline == 120


@pytest.mark.parametrize("line", [
    "NicWait=7", "nicwait = 7", "nic-wait=7s", "NIC_WAIT='7'", 'Nic-Wait="7 sec"', "[Homeport]\nNicWait=7",
    "# comment\n; comment\n\n  NicWait=7  ", "\ufeffNicWait=7", "NicWait=7\r",
    "NicWait=8\nNicWait=7",  # the last of one place
])
def test_spellings_of_a_name(tmp_path: Path, line: str) -> None:
    write(tmp_path, "etc/homeport/homeport.conf", line)
    found = read_settings(tmp_path)
    assert (found.nic_wait, found.warnings) == (7, ())


@pytest.mark.parametrize("argument", ["homeport.nic-wait=7", "homeport.nic_wait=7", "HOMEPORT.NicWait=7",
                                      'homeport.nic-wait="7 s"', '"homeport.nic-wait=7 s"'])
def test_spellings_of_a_kernel_argument(tmp_path: Path, argument: str) -> None:
    assert read_settings(tmp_path, f"quiet {argument} ro").nic_wait == 7


def test_lines_of_a_list_add_up_in_one_place_and_replace_those_below(tmp_path: Path) -> None:
    write(tmp_path, "usr/lib/homeport/homeport.conf", "Config=/vendor.yaml")
    write(tmp_path, "etc/homeport/homeport.conf", "Config=/a.yaml\nconfig-url=https://b.example/{uuid}\n")
    assert read_settings(tmp_path).config == ("/a.yaml", "https://b.example/{uuid}")
    assert read_settings(tmp_path, "homeport.config=/c homeport.config=/d").config == ("/c", "/d")


def test_an_empty_value_is_the_default_again(tmp_path: Path) -> None:
    write(tmp_path, "usr/lib/homeport/homeport.conf", "Config=/vendor.yaml\nSeed=/s\nDeadline=3")
    write(tmp_path, "etc/homeport/homeport.conf", "Config=\nSeed=\nDeadline=")
    found = read_settings(tmp_path)
    assert (found.config, found.seed, found.deadline) == ((), Settings().seed, 120)
    write(tmp_path, "etc/homeport/homeport.conf", "Config=/a\nConfig=\nConfig=/b")
    assert read_settings(tmp_path).config == ("/b",)


def test_a_bare_kernel_argument_is_a_yes(tmp_path: Path) -> None:
    assert read_settings(tmp_path, "homeport.allow-dispatch").allow_dispatch is True
    with pytest.raises(SettingsError, match=r"homeport\.mode="):
        read_settings(tmp_path, "homeport.mode")


def test_every_bad_value_at_once_with_its_place(tmp_path: Path) -> None:
    write(tmp_path, "etc/homeport/homeport.conf", "\nDeadline=soon\nSources=url post\n")
    with pytest.raises(SettingsError) as error:
        read_settings(tmp_path, "homeport.mode=fast")
    assert error.value.status == 78
    for part in ("/etc/homeport/homeport.conf:2: 'soon'", "/etc/homeport/homeport.conf:3: 'url post'",
                 "one of auto, active", "kernel argument homeport.mode=", "such as \"30\""):
        assert part in error.value.message


def test_a_comment_behind_a_value_is_explained(tmp_path: Path) -> None:
    write(tmp_path, "etc/homeport/homeport.conf", "Deadline=30 # seconds")
    with pytest.raises(SettingsError, match="a comment needs a line of its own"):
        read_settings(tmp_path)


def test_a_secret_in_a_bad_value_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as error:
        read_settings(tmp_path, "homeport.config=https://me:hush@cfg.example/{uid}?token=hush")
    assert "cfg.example" in str(error.value)
    assert "hush" not in str(error.value)


def test_leniently_the_rest_of_what_was_meant_counts(tmp_path: Path) -> None:
    write(tmp_path, "etc/homeport/homeport.conf", "Deadline=50\nNicWait=never")
    found = read_settings(tmp_path, "homeport.deadline=soon homeport.mode=recovery", lenient=True)
    assert (found.deadline, found.nic_wait, found.mode) == (50, 30, "recovery")
    assert [warning.endswith("going on without it") for warning in found.warnings] == [True, True]


@pytest.mark.parametrize(("line", "warning"), [
    ("Deadlin=3", "1: there is no option 'Deadlin', ignoring it (did you mean Deadline=?)"),
    ("zzz=3", "1: there is no option 'zzz', ignoring it"),
    ("[Network]\nDeadline=3", "2: this section is not ours, ignoring Deadline"),
    ("Identity=serial:A1", "1: Identity is for the kernel command line only, ignoring it "
                           "(a file has its own place: /etc/homeport/identity)"),
])
def test_what_nobody_knows_is_a_warning(tmp_path: Path, line: str, warning: str) -> None:
    write(tmp_path, "etc/homeport/homeport.conf", line)
    found = read_settings(tmp_path)
    assert found.warnings == (f"/etc/homeport/homeport.conf:{warning}",)
    assert found.deadline == 120


def test_an_unknown_kernel_argument_is_a_warning(tmp_path: Path) -> None:
    found = read_settings(tmp_path, "homeport.nic-weight=3 homeportx.mode=live")
    assert len(found.warnings) == 1
    assert "did you mean homeport.nic-wait=?" in found.warnings[0]


def test_a_bad_flag_is_the_caller_s_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--deadline soon"):
        read_settings(tmp_path, "", {"deadline": "soon"})


@pytest.mark.parametrize("what", ["folder", "fifo", "huge"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, what: str) -> None:
    path = tmp_path / "etc/homeport/homeport.conf"
    path.parent.mkdir(parents=True)
    if what == "folder":
        path.mkdir()
    elif what == "fifo":
        import os
        os.mkfifo(path)
        assert read_settings(tmp_path).deadline == 120  # nobody writes there: as good as empty
        return
    else:
        path.write_text("#" * (settings.MAX_FILE + 1))
    with pytest.raises(SettingsError, match=r"/etc/homeport/homeport\.conf: cannot be read"):
        read_settings(tmp_path)
    assert read_settings(tmp_path, lenient=True).deadline == 120


def test_a_comment_in_latin_1_is_no_fault(tmp_path: Path) -> None:
    write(tmp_path, "etc/homeport/homeport.conf", b"# f\xfcr uns\nDeadline=3\n")
    assert read_settings(tmp_path).deadline == 3


def test_settings_are_read_only() -> None:
    with pytest.raises(AttributeError):
        Settings().mode = "live"
    assert Settings().replace(mode="live").mode == "live"
    with pytest.raises(TypeError, match="mood"):
        Settings({"mood": "good"})


def test_the_shipped_file_sets_nothing_and_names_all(tmp_path: Path) -> None:
    text = default_file_text()
    write(tmp_path, "usr/lib/homeport/homeport.conf", text)
    found = read_settings(tmp_path)
    assert (found.origins, found.warnings) == ({}, ())
    # Uncommented as it stands, each line is the default.
    write(tmp_path, "usr/lib/homeport/homeport.conf",
          "\n".join(line[1:] for line in text.splitlines() if line[:1] == "#" and line[1:2].isupper()))
    found = read_settings(tmp_path)
    assert found.warnings == ()
    in_files = [option for option in OPTIONS if option.in_files]
    assert set(found.origins) == {option.name for option in in_files}
    for option in OPTIONS:
        assert getattr(found, option.attribute) == getattr(Settings(), option.attribute)
    assert max(map(len, text.splitlines())) <= 100


def test_every_option_stands_in_the_manual_and_in_the_help() -> None:
    manual, help_text = man_options(), help_options()
    for option in OPTIONS:
        assert f"{option.kernel_argument}=".replace("-", "\\-") in manual
        assert (f"\\fB{option.key}=" in manual) == option.in_files
        assert f"\n  {option.name}" in "\n" + help_text
    assert max(map(len, help_text.splitlines())) <= 80
    assert not [line for line in manual.splitlines() if line.startswith((".", "'"))
                and line.split()[0] not in (".SS", ".TP")]


def test_the_import_is_cheap() -> None:
    """The fast path imports it: whatever costs milliseconds has to stay out."""
    agent = Path(settings.__file__).parents[1]
    code = f"import sys; sys.path.insert(0, {str(agent)!r}); import homeport.settings as settings; " \
           "settings.read_settings('/nowhere', 'homeport.mode=active'); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert not loaded & {"argparse", "dataclasses", "difflib", "enum", "inspect", "json", "pathlib", "re",
                         "subprocess", "textwrap", "typing", "yaml", "configparser"}
