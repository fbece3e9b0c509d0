"""Plain HTTP: who gets which document, and what else is answered."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import requests
from tests.server.conftest import Server
from tests.server.machine import CONFIG, board, register
from tests.server.software_tpm import SoftwareTpm

from homeport.core.document import understand_document

Make = Callable[..., Server]
UUID = "4c4c4544-0042-3010-8051-b4c04f564432"
TOKEN = {"token": "fire-nodes"}


def test_a_machine_comes_for_its_document(make_server: Make) -> None:
    server = make_server()
    reply = server.get(f"/assignments/{UUID}", params=TOKEN)
    assert reply.status_code == 200
    assert reply.headers["Content-Type"].startswith("application/yaml")
    assignment = understand_document(reply.content, content_type=reply.headers["Content-Type"])
    assert assignment.addresses["inventory-ip"].ip == "192.168.122.150"
    assert assignment.addresses["inventory-ip"].gateway == "192.168.122.1"
    assert reply.headers["ETag"] == f'"{assignment.revision.removeprefix("sha256:")}"'
    again = server.get(f"/assignments/{UUID}", params=TOKEN, headers={"If-None-Match": f'"x", {reply.headers["ETag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    assert f"test-btrfs-{UUID}" in server.run("list").text
    # By registration it is the same machine, with the same address; sys-uuid sends it as sysfs has it.
    assert register(server.registration(), UUID)[0] == CONFIG
    assert server.run("list").text.count("192.168.122.15") == 1


@pytest.mark.parametrize("headers", [
    {"Authorization": "Bearer fire-nodes"},
    {"Authorization": requests.auth._basic_auth_str("homeport", "fire-nodes")},
    {"Authorization": requests.auth._basic_auth_str("fire-nodes", "")},
])
def test_where_a_token_may_be(shared_server: Server, headers: dict[str, str]) -> None:
    assert shared_server.get("/assignments/SN-3001", headers=headers).status_code == 200


def test_nobody_gets_what_is_anothers(make_server: Make, seed: str) -> None:
    """Neither without a token, nor with that of another registration, nor what is a TPM's."""
    other = seed.partition("---")[2].replace("fire-nodes", "other")
    server = make_server(files={"seed.yaml": seed, "other.yaml": other})
    assert server.get("/assignments/SN-0001", params=TOKEN).status_code == 200
    assert server.get("/assignments/SN-0001").status_code == 401
    assert server.get("/assignments/SN-0002").status_code == 401  # no telling which of them is known
    assert server.get("/assignments/SN-0001", params={"token": "other"}).status_code == 401
    assert server.get("/assignments/SN-0001", params={"token": "fire-node"}).status_code == 401
    tpm = SoftwareTpm()
    register(server.registration(), tpm, **board(1))
    for name in (tpm.digest, "SN-000001", "52:54:00:00:00:01", "4C4C4544-0042-3010-8051-000000000001"):
        reply = server.get(f"/assignments/{name}", params=TOKEN)
        assert (reply.status_code, reply.text) == (403, "this machine must register with its TPM\n")
        assert requests.post(f"{server.url}/reports/{name}", json={"event": "reset"}, params=TOKEN,
                             timeout=60).status_code == 403
    assert server.get("/assignments/52:54:00:00:00:77", params={"token": "other"}).status_code == 200


def test_an_inventory_is_served_as_a_file_would_be(make_server: Make, seed: str) -> None:
    """By hash or by name, without a token where there is none; until its machine has shown its TPM."""
    inventory = (Path(__file__).parents[1] / "data/server/inventory.yaml").read_text()
    tpm = SoftwareTpm()
    text = inventory.replace("759d02b8cdfad743082ac528214a5b00cb3d6079aaa2b6bb35d87209e36f1fdb", tpm.digest)
    server = make_server(files={"inventory.yaml": text})
    for name in (tpm.digest, "test-btrfs-d47ca4cf-e95e-4e43-939b-e5bce460fbfc"):
        reply = server.get(f"/assignments/{name}")
        assert reply.status_code == 200
        assert understand_document(reply.content).addresses["inventory-ip"].ip == "192.168.122.150"
    assert server.get("/assignments/another").status_code == 404
    (server.folder / "seed.yaml").write_text(seed)
    server.logs("1 pools, 1 registrations, 1 inventories")
    assert server.get(f"/assignments/{tpm.digest}").status_code == 401
    assert server.get(f"/assignments/{tpm.digest}", params=TOKEN).status_code == 200
    assert register(server.registration(), tpm)[0] == CONFIG
    assert server.get(f"/assignments/{tpm.digest}", params=TOKEN).status_code == 403


def test_not_yet_and_when_to_come_again(make_server: Make, seed: str) -> None:
    server = make_server(files={"seed.yaml": seed.replace("192.168.122.200", "192.168.122.150")})
    server.get("/assignments/SN-0001", params=TOKEN)
    reply = server.get("/assignments/SN-0002", params=TOKEN)
    assert (reply.status_code, reply.headers["Retry-After"]) == (202, "10")
    assert "no address of InClusterIPPool/" in reply.text
    server.run("release", "SN-0001")
    assert server.get("/assignments/SN-0002", params=TOKEN).status_code == 200


def test_a_changed_uuid(make_server: Make) -> None:
    """Serial number and card in the query tell that it is the same machine; or that it is another one."""
    server = make_server()
    board_facts = {**TOKEN, "serial": "SN-0001", "mac": "52:54:00:00:00:01"}
    first = server.get(f"/assignments/{UUID}", params=board_facts)
    second = server.get("/assignments/4c4c4544-0042-3010-8051-b4c04f560000", params=board_facts)
    assert (first.status_code, first.text) == (second.status_code, second.text) == (200, first.text)
    assert f"moved: it was {UUID}, now it is 4c4c4544-0042-3010-8051-b4c04f560000" in server.run("list").text
    other = server.get(f"/assignments/{UUID}", params={**TOKEN, "serial": "SN-0002", "mac": "52:54:00:00:00:02"})
    assert other.status_code == 403
    assert "two machines with one identity" in other.text


def test_reports(make_server: Make) -> None:
    server = make_server()
    server.get("/assignments/SN-0001", params=TOKEN)

    def post(body: object, name: str = "SN-0001", **params: str) -> int:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        reply = requests.post(f"{server.url}/reports/{name}", data=data, params={**TOKEN, **params}, timeout=60)
        return reply.status_code

    assert post({"rung": "assigned", "exit": 0, "secret": "no", "reason": "x" * 5_000, "steps": [1] * 1_000}) == 204
    shown = json.loads(server.run("show", "SN-0001", "--json").text)[0]["report"]
    assert shown["rung"] == "assigned"
    assert len(shown["reason"]) == 1_000
    assert set(shown) == {"rung", "exit", "reason"}
    for wrong in (b"", b"[]", b"{", b"\xff", b"[" * 50_000):
        assert post(wrong) == 400
    assert post(b"x" * 200_000) == 413
    assert post({}, token="wrong") == 401
    assert post({}, name="SN-0002") == 404
    assert post({"mode": "reset", "rung": "dhcp"}) == 204
    assert "192.168.122.150" not in server.run("list").text
    assert "released 192.168.122.150" in server.log


def test_too_often(shared_server: Server) -> None:
    replies = [shared_server.get("/assignments/SN-3002", params=TOKEN) for _ in range(20)]
    codes = [reply.status_code for reply in replies]
    assert codes[:10] == [200] * 10
    assert 429 in codes
    assert 1 <= int(replies[codes.index(429)].headers["Retry-After"]) <= 3
    assert shared_server.get("/assignments/SN-3003", params=TOKEN).status_code == 200


def test_guessing_tokens(make_server: Make) -> None:
    server = make_server()
    codes = [server.get(f"/elemental/registration/guess-{n}").status_code for n in range(25)]
    assert set(codes) == {404, 429}
    assert codes[:20] == [404] * 20
    assert server.get("/assignments/SN-0001", params={"token": "guess"}).status_code == 429


@pytest.mark.parametrize(("option", "known", "tpm"), [("off", 404, 404), ("plain", 200, 403), ("any", 200, 200)])
def test_who_is_served_by_http(make_server: Make, option: str, known: int, tpm: int) -> None:
    server = make_server("--http", option)
    key = SoftwareTpm()
    register(server.registration(), key)
    assert server.get("/assignments/SN-0001", params=TOKEN).status_code == known
    assert server.get(f"/assignments/{key.digest}", params=TOKEN).status_code == tpm


@pytest.mark.parametrize(("path", "status"), [
    ("/healthz", 200),
    ("/", 404),
    ("/elemental/registration/", 404),
    ("/elemental/seedimage/x/y", 404),
    ("/assignments/", 404),
    ("/assignments/a/b", 404),
    ("/assignments/" + "x" * 300 + "?token=fire-nodes", 404),
    ("/assignments/%00?token=fire-nodes", 404),
    ("/assignments/%0a%1b?token=fire-nodes", 404),
    ("/assignments/unknown?token=fire-nodes", 404),
    ("/assignments/00000000-0000-0000-0000-000000000000?token=fire-nodes", 404),
    ("/assignments/%ff?token=%ff", 401),
    ("/assignments/..%2f..%2fetc%2fpasswd?token=fire-nodes", 200),  # a name like another, and no path
    ("/assignments/a?token=" + "x" * 5_000, 401),
])
def test_odd_requests(shared_server: Server, path: str, status: int) -> None:
    reply = shared_server.get(path)
    assert reply.status_code == status
    assert "Traceback" not in reply.text + shared_server.log
    assert reply.headers["Server"] == "homeport-server"
