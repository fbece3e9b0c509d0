"""The TPM of a machine: against a software TPM, checked with tpm2-tools, and against TPMs that misbehave."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from homeport.core.tpm.attestation import Challenge
from homeport.core.tpm.keys import Method, name_of
from homeport.core.tpm.wire import sized
from homeport.host import tpm as tpms
from homeport.host import tpmchild, tpmdevice
from homeport.host.tpm import Tpm, TpmError, open_tpm, read_endorsement_key, read_fact
from swtpm import Swtpm, missing

TOOLS = ("tpm2_createek", "tpm2_readpublic", "tpm2_getcap", "tpm2_flushcontext", "tpm2_makecredential",
         "tpm2_nvdefine", "tpm2_nvundefine", "tpm2_nvwrite", "tpm2_changeauth", "tpm2_createprimary",
         "tpm2_evictcontrol")
RIGHTS = "ownerread|ownerwrite|authread|authwrite"


@pytest.fixture(scope="module")
def chip(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Swtpm]:
    """A software TPM for the tests that leave it as they found it."""
    if why := missing(*TOOLS):
        pytest.skip(why)
    with Swtpm(tmp_path_factory.mktemp("tpm")) as made:
        yield made


@pytest.fixture
def own_chip(tmp_path: Path) -> Iterator[Swtpm]:
    """One for a test that changes it."""
    if why := missing(*TOOLS):
        pytest.skip(why)
    with Swtpm(tmp_path / "tpm") as made:
        yield made


def root_with(chip: Swtpm, folder: Path) -> Path:
    """A root whose /dev/tpmrm0 is that TPM."""
    (folder / "dev").mkdir(parents=True)
    (folder / "dev/tpmrm0").symlink_to(chip.socket)
    return folder


def hash_by_tools(chip: Swtpm, algorithm: str = "rsa") -> str:
    """What tpm2-tools say the endorsement key is: its SubjectPublicKeyInfo, hashed."""
    chip.tool("tpm2_createek", "-c", "ek.ctx", "-G", algorithm, "-u", "ek.pub")
    chip.tool("tpm2_readpublic", "-c", "ek.ctx", "-f", "der", "-o", "ek.der")
    chip.tool("tpm2_flushcontext", "-t")
    return hashlib.sha256((chip.folder / "ek.der").read_bytes()).hexdigest()


def left_in(chip: Swtpm) -> str:
    """What is loaded or persistent: nothing of ours may be."""
    return "".join(chip.tool("tpm2_getcap", kind) for kind in
                   ("handles-transient", "handles-loaded-session", "handles-saved-session", "handles-persistent"))


def test_hash_is_that_of_tpm2_tools(chip: Swtpm, tmp_path: Path) -> None:
    found = read_endorsement_key(root_with(chip, tmp_path))
    assert (found.hash, found.method) == (hash_by_tools(chip), Method.RSA_TEMPLATE)
    assert left_in(chip) == ""


def test_activation(own_chip: Swtpm, tmp_path: Path) -> None:
    """tpm2_makecredential encrypts to the endorsement key, as a server does; nothing stays in the TPM."""
    hash_by_tools(own_chip)
    secret = bytes(range(32))
    (own_chip.folder / "secret").write_bytes(secret)
    with open_tpm(root_with(own_chip, tmp_path / "root")) as tpm:
        attestation = tpm.attestation()
        assert tpm.attestation() is attestation
        name = name_of(attestation.public).hex()
        own_chip.tool("tpm2_makecredential", "-T", "none", "-u", "ek.pub", "-s", "secret", "-n", name,
                      "-o", "credential")
        blob = (own_chip.folder / "credential").read_bytes()[8:]  # after tpm2-tools' own magic and version
        size = 2 + int.from_bytes(blob[:2], "big")
        assert tpm.activate(Challenge(blob[:size], blob[size:])) == secret
        # Another session for another challenge; and one that is not for this key.
        assert tpm.activate(Challenge(blob[:size], blob[size:])) == secret
        with pytest.raises(TpmError, match="open the server's challenge: the integrity check failed"):
            tpm.activate(Challenge(sized(sized(bytes(32)) + bytes(34)), blob[size:]))
    assert left_in(own_chip) == ""


def test_certificate_in_the_tpm_wins(own_chip: Swtpm, tmp_path: Path) -> None:
    """Its key is another than the template's: Elemental believes it, and only attestation finds out."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-subj", "/CN=ek",
                    "-outform", "DER", "-out", "cert.der"], cwd=own_chip.folder, check=True, capture_output=True)
    der = (own_chip.folder / "cert.der").read_bytes()
    own_chip.tool("tpm2_nvdefine", "0x1c00002", "-C", "o", "-s", str(len(der) + 100), "-a", RIGHTS)
    own_chip.tool("tpm2_nvwrite", "0x1c00002", "-C", "o", "-i", "cert.der")
    root = root_with(own_chip, tmp_path / "root")
    found = read_endorsement_key(root)
    assert (found.method, found.certificate) == (Method.CERTIFICATE, der)
    with open_tpm(root) as tpm, pytest.raises(TpmError, match=r"certificate .* is for another key"):
        tpm.attestation()


def test_junk_instead_of_a_certificate(own_chip: Swtpm, tmp_path: Path) -> None:
    """As for go-attestation, it counts as none; so does an index that was never written, or that we may not read."""
    root = root_with(own_chip, tmp_path / "root")
    own_chip.tool("tpm2_nvdefine", "0x1c00002", "-C", "o", "-s", "2000", "-a", RIGHTS)
    assert read_endorsement_key(root).method is Method.RSA_TEMPLATE
    (own_chip.folder / "junk").write_bytes(b"\xff" * 2000)
    own_chip.tool("tpm2_nvwrite", "0x1c00002", "-C", "o", "-i", "junk")
    assert read_endorsement_key(root).method is Method.RSA_TEMPLATE
    own_chip.tool("tpm2_nvundefine", "0x1c00002", "-C", "o")
    own_chip.tool("tpm2_nvdefine", "0x1c00002", "-C", "o", "-s", "2000", "-a", "ownerread|ownerwrite", "-p", "secret")
    assert read_endorsement_key(root).method is Method.RSA_TEMPLATE


def test_nonce_makes_another_key(own_chip: Swtpm, tmp_path: Path) -> None:
    plain = hash_by_tools(own_chip)
    (own_chip.folder / "nonce").write_bytes(b"\x07" * 32)
    own_chip.tool("tpm2_nvdefine", "0x1c00003", "-C", "o", "-s", "32", "-a", RIGHTS)
    own_chip.tool("tpm2_nvwrite", "0x1c00003", "-C", "o", "-i", "nonce")
    assert read_endorsement_key(root_with(own_chip, tmp_path / "root")).hash != plain


def test_hierarchy_with_a_password(own_chip: Swtpm, tmp_path: Path) -> None:
    own_chip.tool("tpm2_changeauth", "-c", "endorsement", "secret")
    with pytest.raises(TpmError, match="derive the endorsement key: it has a password"):
        read_endorsement_key(root_with(own_chip, tmp_path / "root"))


def test_persistent_storage_key_is_used_and_stays(own_chip: Swtpm, tmp_path: Path) -> None:
    """With a password on the owner's hierarchy it is the only way to an attestation key."""
    own_chip.tool("tpm2_createprimary", "-C", "o", "-c", "srk", "-a",
                  "restricted|decrypt|fixedtpm|fixedparent|sensitivedataorigin|userwithauth|noda")
    own_chip.tool("tpm2_evictcontrol", "-C", "o", "-c", "srk", "0x81000001")
    own_chip.tool("tpm2_flushcontext", "-t")
    own_chip.tool("tpm2_changeauth", "-c", "owner", "secret")
    with open_tpm(root_with(own_chip, tmp_path / "root")) as tpm:
        assert tpm.attestation().signature.startswith(b"\0\x14\0\x0b\x01\0")
    assert left_in(own_chip).split() == ["-", "0x81000001"]


# Without a TPM

@pytest.mark.parametrize(("files", "words"), [
    ({}, "has no TPM that the kernel knows"),
    ({"sys/class/tpm/tpm0/tpm_version_major": "1\n"}, "TPM 1.2"),
    ({"sys/class/tpm/tpm0/device/caps": "Manufacturer: 0x49465800\n"}, "TPM 1.2"),  # Linux before 5.10
    ({"sys/class/tpm/tpm0/tpm_version_major": "2\n"}, "the kernel has made no /dev/tpmrm0"),
    ({"sys/firmware/acpi/tables/TPM2": ""}, "says its firmware, but the kernel has no driver for it"),
])
def test_none(tmp_path: Path, files: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpmdevice.await_tpm, "__defaults__", ("/", 0.1))
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(TpmError, match=words):
        open_tpm(tmp_path)


def test_beside_an_old_one(chip: Swtpm, tmp_path: Path) -> None:
    """Number 0 is a TPM 1.2: the TPM 2.0 is the one that names the machine."""
    for number, version in ((0, "1"), (1, "2")):
        (tmp_path / f"sys/class/tpm/tpm{number}").mkdir(parents=True)
        (tmp_path / f"sys/class/tpm/tpm{number}/tpm_version_major").write_text(f"{version}\n")
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/tpmrm1").symlink_to(chip.socket)
    assert read_endorsement_key(tmp_path).key == read_endorsement_key(root_with(chip, tmp_path / "root")).key


def test_what_is_no_tpm(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/tpmrm0").symlink_to("/dev/null")
    with pytest.raises(TpmError, match="no sound answer: 2 bytes announced, 0 there"):
        read_endorsement_key(tmp_path)


# A TPM that misbehaves

Answers = Callable[[bytes], bytes | None]


@pytest.fixture
def pretend(tmp_path: Path) -> Iterator[Callable[[Answers], Path]]:
    """`pretend(answers)` is a root whose TPM says to each command what `answers` gives; None ends the connection."""
    listeners = []

    def start(answers: Answers) -> Path:
        (tmp_path / "dev").mkdir()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(tmp_path / "dev/tpmrm0"))
        listener.listen()
        listeners.append(listener)
        threading.Thread(target=_answer, args=(listener, answers), daemon=True).start()
        return tmp_path

    yield start
    for listener in listeners:
        listener.close()


def _answer(listener: socket.socket, answers: Answers) -> None:
    connection, _ = listener.accept()
    with connection, suppress(OSError):  # the other side may have had enough
        while command := connection.recv(4096):
            answer = answers(command)
            if answer is None:
                return
            connection.sendall(answer)


def refusal(code: int) -> bytes:
    return bytes.fromhex("80010000000a") + code.to_bytes(4, "big")


@pytest.mark.parametrize(("answer", "words"), [
    (refusal(0x921), "it is locked: too many wrong passwords"),
    (refusal(0x100), "the firmware has not started it"),
    (refusal(0x101), "it has failed its self-test"),
    (bytes.fromhex("00c40000000a0000001e"), "TPM 1.2"),
    (bytes.fromhex("80010000000b0000000000"), "its answer is not sound"),
    (bytes.fromhex("8001ffffffff00000000"), "broke off: Protocol error"),
    (bytes.fromhex("800100000009"), "did not .* within|broke off"),
    (bytes.fromhex("80020000000e00000000ffffffff"), "no sound answer"),
    (None, "broke off"),
])
def test_answers_of_a_bad_tpm(pretend: Callable[[Answers], Path], answer: bytes | None, words: str) -> None:
    with pytest.raises(TpmError, match=words):
        read_endorsement_key(pretend(lambda _command: answer), limit=3.0)


def test_busy_is_asked_again(pretend: Callable[[Answers], Path]) -> None:
    """Then the limit ends it, with the reason."""
    asked = []
    root = pretend(lambda command: asked.append(command) or refusal(0x922))  # type: ignore[func-returns-value]
    with pytest.raises(TpmError, match="it is busy"):
        read_endorsement_key(root, limit=3.0)
    assert len(asked) >= 3


def test_silence_ends_at_the_limit(pretend: Callable[[Answers], Path]) -> None:
    started = time.monotonic()
    with pytest.raises(TpmError, match=r"did not give its certificate within 0.3 s"):
        read_endorsement_key(pretend(sleepily), limit=0.3)
    assert time.monotonic() - started < 9  # less than it sleeps


def sleepily(_command: bytes) -> bytes:
    time.sleep(10)
    return b""


# A TPM that hangs, with the kernel's own waits: poll() and close() do not come back, and no signal ends them.

class Hung:
    """For ever; and SIGKILL does not reach it (see `hung`)."""

    def __init__(self, path: str) -> None:
        self.path = path

    def exchange(self, command: bytes, seconds: float) -> bytes:
        held = [str(os.getpid())]
        for fd in os.listdir("/proc/self/fd"):
            with suppress(FileNotFoundError):  # the one of the listing
                held.append(os.readlink(f"/proc/self/fd/{fd}"))
        Path(self.path).with_name("held").write_text(" ".join(held))
        self.close()
        raise AssertionError

    def close(self) -> None:
        while True:
            time.sleep(60)


@pytest.fixture
def hung(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A root with such a TPM; nobody but the test kills who waits for it."""
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/tpmrm0").touch()
    monkeypatch.setattr(tpms, "DeviceFile", Hung)
    monkeypatch.setattr(signal, "SIGKILL", 0)
    yield tmp_path
    monkeypatch.undo()
    child = holder(tmp_path)[0]
    os.kill(int(child), signal.SIGKILL)
    os.waitpid(int(child), 0)


def holder(root: Path) -> list[str]:
    """The process that waits for the TPM, and what it has open."""
    return (root / "dev/held").read_text().split()


def test_a_tpm_that_hangs_in_the_kernel_is_left(hung: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit holds, the end of the process does not wait, and systemd is told to look elsewhere for who waits."""
    aside = []
    monkeypatch.setattr(tpmchild, "put_aside", lambda pid, name, why: aside.append((pid, name)))
    with open("/dev/zero", "rb"):
        fact = read_fact(hung, limit=2.0)
    assert fact.fault == "This machine's TPM did not give its certificate within 2 s"
    tpms.give_back()
    child, *files = holder(hung)
    assert aside == [(int(child), f"homeport-tpm-{child}")]
    os.kill(int(child), 0)  # it is still there
    # No lock, no bus, no file system of ours is held for as long as the kernel likes.
    assert sorted({name.split(":")[0] for name in files}) == ["/dev/null", "socket"]
    assert sum(name.startswith("socket") for name in files) == 1
    assert os.getsid(int(child)) == int(child)


def test_without_systemd_it_stays_where_it_is(hung: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, name: str, why: str) -> None:
        raise FileNotFoundError(2, "No such file or directory", "/run/systemd/private")

    monkeypatch.setattr(tpmchild, "put_aside", refuse)
    with pytest.raises(TpmError, match="within 2 s"):
        read_endorsement_key(hung, limit=2.0)


def test_nothing_of_a_child_is_left(chip: Swtpm, tmp_path: Path) -> None:
    with open_tpm(root_with(chip, tmp_path)) as tpm:
        child = tpm._transport._child  # type: ignore[attr-defined]
        assert tpm.endorsement_key()
        os.kill(child, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_a_child_that_dies_is_an_error(chip: Swtpm, tmp_path: Path) -> None:
    with open_tpm(root_with(chip, tmp_path)) as tpm:
        os.kill(tpm._transport._child, signal.SIGKILL)  # type: ignore[attr-defined]
        with pytest.raises(TpmError, match="broke off"):
            tpm.endorsement_key()


# The device file, with whose refusals systemd or the kernel keeps us out

@pytest.mark.parametrize(("refusal", "words"), [
    (PermissionError(1, "Operation not permitted"), "its driver came after this unit's list of devices was made"),
    (OSError(16, "Device or resource busy"), "another program holds it"),
    (OSError(5, "Input/output error"), "Input/output error"),
])
def test_a_device_that_does_not_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: OSError, words: str
) -> None:
    def refuse(path: str) -> None:
        raise refusal

    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/tpmrm0").touch()
    monkeypatch.setattr(tpms, "DeviceFile", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(TpmError, match=f"Cannot open this machine's TPM, /dev/tpmrm0: {words}"):
        open_tpm(tmp_path)


def test_without_rsa_the_p256_key_names_it(own_chip: Swtpm, tmp_path: Path) -> None:
    """A TPM that refuses RSA keys: the hash is that of its P-256 key, by a method of its own, and no attestation."""
    class NoRsa:
        def __init__(self, inner: Tpm) -> None:
            self.inner = inner._transport

        def exchange(self, command: bytes, seconds: float) -> bytes:
            if command[6:10] == b"\0\0\x01\x31" and b"\0\x01\0\x0b\0\x03\0\xb2" in command:
                return refusal(0x2C4)  # TPM_RC_VALUE for the second parameter
            return self.inner.exchange(command, seconds)

        def close(self) -> None:
            self.inner.close()

    with Tpm(NoRsa(open_tpm(root_with(own_chip, tmp_path / "root")))) as tpm:
        found = tpm.endorsement_key()
        with pytest.raises(TpmError, match="no RSA endorsement key"):
            tpm.attestation()
    assert (found.method, found.hash) == (Method.ECC_TEMPLATE, hash_by_tools(own_chip, "ecc"))
