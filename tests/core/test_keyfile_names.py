import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.core.keyfile import KeyfileError, file_name, stable_uuid
from homeport.core.keyfile.names import is_our_file_name, is_uuid


@pytest.mark.parametrize(("name", "file"), [
    ("enp1s0", "homeport-enp1s0.nmconnection"),
    ("bond0.7", "homeport-bond0.7.nmconnection"),
    ("a;rm -rf $HOME", "homeport-a%3brm%20-rf%20%24HOME.nmconnection"),
    ("é", "homeport-%c3%a9.nmconnection"),
    ("a%3b", "homeport-a%253b.nmconnection"),       # not the same as a;
    ("a+2", "homeport-a%2b2.nmconnection"),         # not the second name of a
])
def test_file_name(name: str, file: str) -> None:
    assert file_name(name) == file
    assert is_our_file_name(file)


def test_another_file_name_of_the_same_profile() -> None:
    assert file_name("eth0", 2) == "homeport-eth0+2.nmconnection"


@pytest.mark.parametrize("name", [
    "", ".", "..", ".hidden", "../../x", "a/b", "a\\b", "a\nb", "a\0b", "a\x7f", "x" * 250, "\udc80",
])
def test_no_file_name(name: str) -> None:
    with pytest.raises(KeyfileError, match="a name that can be a file name"):
        file_name(name)


@given(st.text(min_size=1, max_size=15), st.text(min_size=1, max_size=15))
def test_two_names_never_share_a_file(one: str, other: str) -> None:
    try:
        files = {file_name(one, 1), file_name(other, 1)}
    except KeyfileError:
        return
    assert (len(files) == 1) == (one == other)


@given(st.text())
def test_any_name_is_refused_or_safe(name: str) -> None:
    try:
        file = file_name(name)
    except KeyfileError:
        return
    assert file.isascii() and len(file) <= 255
    assert set(file) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-%+")


def test_stable_uuid() -> None:
    one = stable_uuid("machine", "eth0")
    assert one == "a1780a4f-7c9c-5d0c-9a2b-4de58d395944"    # never changes: profiles in the field have it
    assert one == str(uuid.uuid5(uuid.UUID("6f0c5f9a-b1d6-4f2e-9a4b-e7a3d1c88f50"), "machine\0eth0"))
    assert is_uuid(one)
    # other machines, other profiles, and no two pairs that read the same when put together
    others = [("machine2", "eth0"), ("machine", "eth1"), ("machin", "eeth0"), ("machineeth0", "")]
    assert len({one, *(stable_uuid(*pair) for pair in others)}) == 5


def test_a_stable_uuid_needs_a_machine() -> None:
    with pytest.raises(ValueError, match="machine's id"):
        stable_uuid("", "eth0")


@pytest.mark.parametrize("text", ["", "x", "fe09f8e2-8b7c-5d0c-a4a0-7ef29e1fb1fg", "fe09f8e28b7c5d0ca4a07ef29e1fb1f7",
                                  "a1780a4f-7c9c-5d0c-9a2b-4de58d395944\n", "-".join(("", "", "", "", ""))])
def test_no_uuid(text: str) -> None:
    assert not is_uuid(text)
