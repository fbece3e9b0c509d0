"""From the server's configuration message to a document of ours, without other programs' secrets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from homeport.core.document import understand_document
from homeport.core.elemental.document import network_document, registration_ca
from homeport.errors import DocumentError, NoAssignment, Pending

CASES = Path(__file__).parents[2] / "data/elemental"
COMPLETE = (CASES / "tpm/update-17-S-Config").read_bytes()


def test_a_real_message() -> None:
    document = network_document(COMPLETE)
    assignment = understand_document(document)
    assert assignment.configurator == "nmstate"
    assert assignment.config["interfaces"][0]["ipv4"]["address"] == [{"ip": "192.168.122.150", "prefix-length": 24}]
    assert assignment.config["routes"]["config"][0]["metric"] == 150


def test_only_the_network_goes_on() -> None:
    """The token of Kubernetes' service account, the registration and its authority stay behind."""
    document = network_document(COMPLETE).decode()
    for secret in ("interop-service-account-token", "fire-nodes", "BEGIN CERTIFICATE", "system-agent"):
        assert secret not in document


def test_the_same_network_is_the_same_document() -> None:
    """Whatever else changes: the token does, with each answer of some servers."""
    assert network_document(COMPLETE.replace(b"token-of", b"another")) == network_document(COMPLETE)


def test_without_addresses_it_is_pending() -> None:
    """Condition False: the answer comes, with the placeholder still open."""
    document = network_document((CASES / "tpm/15-S-Config").read_bytes())
    with pytest.raises(Pending, match="inventory-ip"):
        understand_document(document)


@pytest.mark.parametrize("message", [
    b"elemental:\n  registration: {url: https://x}\n",  # configurator none, or a server before network templates
    b"elemental: {}\nconfigurator: none\n",
    b"elemental: {}\ncloud-config: {users: {raw: [91, 93]}}\n",
])
def test_no_network_is_an_answer(message: bytes) -> None:
    document = network_document(message)
    if b"configurator" in message:
        assert understand_document(document).configurator == "none"
        return
    with pytest.raises(NoAssignment, match="configures no network"):
        understand_document(document)


def test_what_a_newer_server_may_add() -> None:
    """A revision and a proof of its own are ours to heed, other keys are not."""
    text = json.dumps({"elemental": {}, "revision": "7", "proof": ["gateway"], "novelty": 1, "configurator": "nmstate",
                       "config": {"interfaces": {"raw": list(b'[{"name":"eth0","state":"up"}]'), "object": None}}})
    assignment = understand_document(network_document(text.encode()))
    assert (assignment.revision, len(assignment.proof)) == ("7", 1)


@pytest.mark.parametrize(("message", "words"), [
    (b"", "nothing at all"),
    (b"<html><body>login</body></html>", "web page"),
    (b"[1, 2]", "no configuration message"),
    (b"interfaces: []", "no configuration message"),
    (b"elemental: {}\nconfig: {interfaces: {raw: [1, 2, 300]}}\n", "numbers 0 to 255"),
    (b"elemental: {}\nconfig: {interfaces: {raw: [91, 91]}}\n", "no JSON"),
    (b"elemental: {}\nelemental: {}\n", "twice"),
    (b"elemental: {}\nx: \xff\n", "not UTF-8"),
    (b"elemental: &a [*a]\n", ""),
    (b"elemental: {}\n" + b"x" * (600 << 10), "614"),
    (b"elemental: " + b"[" * 70 + b"]" * 70, ""),
])
def test_what_is_no_configuration(message: bytes, words: str) -> None:
    with pytest.raises(DocumentError) as caught:
        network_document(message)
    assert words in str(caught.value)


@pytest.mark.parametrize(("message", "found"), [
    (COMPLETE, True),
    (b"elemental: {registration: {ca-cert: ''}}", False),
    (b"elemental: {registration: {ca-cert: 7}}", False),
    (b"elemental: {registration: []}", False),
    (b"elemental: {}", False),
    (b"[]", False),
    (b"\xff", False),
])
def test_the_authority_that_the_server_names(message: bytes, found: bool) -> None:
    assert registration_ca(message).startswith("-----BEGIN CERTIFICATE-----") is found
