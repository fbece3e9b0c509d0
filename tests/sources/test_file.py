from __future__ import annotations

import os
from pathlib import Path

import pytest

from homeport.core.identity import Identity
from homeport.errors import DocumentError, NoAssignment, SourceError
from homeport.settings import Settings
from homeport.sources import LARGEST, Reply, file
from homeport.sources.address import MissingFact

WHO = Identity("smbios-uuid", "11-aa", "a test", (), {"uuid": "11-aa", "serial": "S/N 7", "mac": "52:54:00:ab:cd:ef"},
               ("52:54:00:ab:cd:ef", "52:54:00:ab:cd:f0"))


def fetch(root: Path, *locations: str, who: Identity = WHO) -> Reply:
    return file.fetch(Settings({"config": locations}), who, root=root)


def put(root: Path, path: str, data: bytes = b"a: 1\n") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(data)


def test_the_document_at_a_path(tmp_path: Path) -> None:
    put(tmp_path, "etc/net.yaml", b"a: 1\n")
    reply = fetch(tmp_path, "https://cfg.example/not-ours", "/etc/absent.yaml", "/etc/net.yaml")
    assert (reply.data, reply.source, reply.url, reply.over_network) == (b"a: 1\n", "file", "/etc/net.yaml", False)
    assert reply.label == "file /etc/net.yaml" and reply.target == ""


def test_fields_in_a_path(tmp_path: Path) -> None:
    put(tmp_path, "etc/net/11-aa.yaml")
    assert fetch(tmp_path, "/etc/net/{uuid}.yaml").url == "/etc/net/11-aa.yaml"


def test_a_path_with_a_field_we_lack_is_passed_over_while_there_is_another(tmp_path: Path) -> None:
    put(tmp_path, "etc/net.yaml")
    assert fetch(tmp_path, "/etc/{tpmhash}.yaml", "/etc/net.yaml").url == "/etc/net.yaml"
    with pytest.raises(MissingFact, match="no TPM"):
        fetch(tmp_path, "/etc/{tpmhash}.yaml", "/etc/absent.yaml")


@pytest.mark.parametrize("name", [
    "11-aa.yaml", "11-AA.yml", "11-aa.JSON",
    "52:54:00:ab:cd:ef.yaml", "52-54-00-AB-CD-EF.yaml", "525400abcdef.yaml",
    "52:54:00:ab:cd:f0.yaml",  # any card of ours
    "S%2FN 7.yaml",
    "default.yaml",
])
def test_a_folder_has_a_document_named_after_this_machine(tmp_path: Path, name: str) -> None:
    put(tmp_path, f"etc/net/{name}", b"mine\n")
    for stranger in ("12-aa.yaml", "52:54:00:00:00:01.yaml", "README", "11-aa.yaml.bak", ".11-aa.yaml"):
        put(tmp_path, f"etc/net/{stranger}", b"not mine\n")
    reply = fetch(tmp_path, "/etc/net/")
    assert (reply.data, reply.url) == (b"mine\n", f"/etc/net/{name}")


def test_a_document_of_ours_comes_before_the_default(tmp_path: Path) -> None:
    put(tmp_path, "etc/net/default.yaml", b"default\n")
    put(tmp_path, "etc/net/11-aa.yaml", b"mine\n")
    assert fetch(tmp_path, "/etc/net").data == b"mine\n"


def test_two_documents_for_this_machine_are_a_complaint(tmp_path: Path) -> None:
    put(tmp_path, "etc/net/11-aa.yaml")
    put(tmp_path, "etc/net/52-54-00-ab-cd-ef.yaml")
    with pytest.raises(DocumentError, match=r"11-aa\.yaml, 52-54-00-ab-cd-ef\.yaml"):
        fetch(tmp_path, "/etc/net")


def test_nothing_there_names_where_it_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "etc/net").mkdir(parents=True)
    with pytest.raises(NoAssignment, match=r"/etc/absent\.yaml or /etc/net"):
        fetch(tmp_path, "/etc/absent.yaml", "/etc/net")


def test_too_large(tmp_path: Path) -> None:
    put(tmp_path, "etc/net.yaml", b"#" * LARGEST)
    assert len(fetch(tmp_path, "/etc/net.yaml").data) == LARGEST
    put(tmp_path, "etc/net.yaml", b"#" * (LARGEST + 1))
    with pytest.raises(DocumentError, match="larger than 512 KiB"):
        fetch(tmp_path, "/etc/net.yaml")


def test_a_fifo_does_not_stop_the_boot(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    os.mkfifo(tmp_path / "etc/net.yaml")
    with pytest.raises(SourceError, match="not a regular file"):
        fetch(tmp_path, "/etc/net.yaml")
