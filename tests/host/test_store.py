"""What is remembered, and that half of it never misleads."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.host.store import IN_FORCE, INFLIGHT, MANIFEST, PREVIOUS, Inflight, Manifest, OwnedFile, Store

ENP1S0 = OwnedFile("etc/homeport-enp1s0.nmconnection", "aa", "uuid-1", "enp1s0")
ENP2S0 = OwnedFile("etc/homeport-enp2s0.nmconnection", "bb", "uuid-2", "enp2s0")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_nothing_is_remembered_at_first(store: Store) -> None:
    assert store.read_assigned() is None
    assert store.read_manifest() == Manifest()
    assert store.read_inflight() is None
    assert store.read_status() is None


def test_manifest_round_trips(store: Store) -> None:
    manifest = Manifest(revision="7", source="url", keyfiles=(ENP1S0,), stale=(ENP2S0,), complete=True)
    store.write_manifest(manifest)
    assert store.read_manifest() == manifest
    assert store.read_manifest().uuids == {"uuid-1", "uuid-2"}


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"keyfiles": [{"path": 1, "moon": 2}]}', '{"moon": 1}'])
def test_damaged_manifest_counts_as_none(text: str, store: Store, tmp_path: Path) -> None:
    store.prepare()
    (tmp_path / MANIFEST).write_text(text)
    assert store.read_manifest() == Manifest()


def test_document_keeps_its_forerunner(store: Store, tmp_path: Path) -> None:
    store.keep_document(b"one")
    store.keep_document(b"two")
    store.keep_document(b"two")  # the same again must not push the forerunner out
    assert store.read_assigned() == b"two"
    assert (tmp_path / PREVIOUS).read_bytes() == b"one"


def test_every_file_is_ours_before_and_after_it_exists(store: Store) -> None:
    """The manifest on disk names the new files before they are written, and the old ones until they are gone."""
    store.write_manifest(Manifest(keyfiles=(ENP1S0,), complete=True))
    announced = store.announce(Manifest(revision="2"), (ENP2S0,))
    on_disk = store.read_manifest()
    assert on_disk == announced
    assert on_disk.keyfiles == (ENP2S0,)
    assert on_disk.stale == (ENP1S0,)
    assert not on_disk.complete


def test_interrupted_twice_still_knows_all_files(store: Store) -> None:
    store.write_manifest(Manifest(keyfiles=(ENP1S0,), complete=True))
    store.announce(Manifest(), (ENP2S0,))
    third = OwnedFile("etc/homeport-enp3s0.nmconnection")
    assert set(store.announce(Manifest(), (third,)).owned) == {third, ENP2S0, ENP1S0}


def test_inflight_until_it_is_finished(store: Store, tmp_path: Path) -> None:
    inflight = Inflight("boot", global_dns={"servers": ["as", ["192.0.2.1"]]}, interfaces=("enp1s0",), files=("a",))
    store.begin(inflight)
    assert store.read_inflight() == inflight
    store.finish()
    store.finish()
    assert not (tmp_path / INFLIGHT).exists()


def test_state_is_for_root_alone_and_status_for_all(store: Store, tmp_path: Path) -> None:
    store.keep_document(b"psk: secret")
    store.write_status({"rung": "dhcp"})
    assert (tmp_path / "var/lib/homeport").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "var/lib/homeport/assigned.yaml").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "run/homeport/status.json").stat().st_mode & 0o777 == 0o644


def test_marker_says_whether_a_proven_configuration_is_in_force(store: Store, tmp_path: Path) -> None:
    store.write_status({"rung": "assigned"}, in_force=True)
    assert (tmp_path / IN_FORCE).exists()
    store.write_status({"rung": "dhcp"})
    assert not (tmp_path / IN_FORCE).exists()


def test_forget_leaves_nothing_and_can_be_said_twice(store: Store, tmp_path: Path) -> None:
    store.keep_document(b"one")
    store.keep_document(b"two")
    store.write_manifest(Manifest(keyfiles=(ENP1S0,)))
    store.begin(Inflight("boot"))
    store.forget()
    store.forget()
    assert list((tmp_path / "var/lib/homeport").iterdir()) == []
