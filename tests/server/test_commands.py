"""The commands beside a running server: what they print, what they change, how they end."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.server.conftest import Server
from tests.server.machine import CONFIG, board, register
from tests.server.software_tpm import SoftwareTpm

from homeport.core.document import understand_document

Make = Callable[..., Server]
INVENTORY = (Path(__file__).parents[1] / "data" / "server" / "inventory.yaml").read_text()
TOKEN = {"token": "fire-nodes"}


def test_check(make_server: Make, seed: str) -> None:
    server = make_server(files={"seed.yaml": seed, "inventory.yaml": INVENTORY}, start=False)
    assert "1 pools, 1 registrations, 1 inventories" in server.run("check", str(server.folder)).text
    (server.folder / "wrong.yaml").write_text(seed.replace("name: ", "name: x-").replace("prefix: 24", "prefix: 99"))
    wrong = server.run("check", str(server.folder), status=os.EX_DATAERR).text
    assert "wrong.yaml: InClusterIPPool/x-elemental-inventory-pool: spec.prefix: 99; a number from 0 to 32" in wrong
    found = json.loads(server.run("check", "--json", str(server.folder), status=os.EX_DATAERR).text)
    assert {(one["file"], one["path"]) for one in found} >= {("wrong.yaml", "spec.prefix")}
    server.run("check", str(server.folder / "nowhere"), status=os.EX_NOINPUT)


def test_trusting_the_configuration(make_server: Make, seed: str) -> None:
    """A newer nmstate may know what this server does not; pools must be there all the same."""
    server = make_server(files={"seed.yaml": seed.replace("type: ethernet", "type: quantum")}, start=False)
    server.run("check", str(server.folder), status=os.EX_DATAERR)
    server.run("check", "--trust-config", str(server.folder))


@pytest.mark.parametrize(("arguments", "status"), [
    ((), os.EX_USAGE),
    (("nonsense",), os.EX_USAGE),
    (("serve",), os.EX_USAGE),
    (("serve", ".", "--listen", "nowhere"), os.EX_USAGE),
    (("serve", ".", "--url", "nowhere"), os.EX_USAGE),
    (("serve", ".", "--url", "https://a/with/path"), os.EX_USAGE),
    (("serve", ".", "--tls-cert", "x"), os.EX_USAGE),
    (("reserve", "x", "lan"), os.EX_USAGE),
    (("reserve", "x", "lan=192.0.2.300"), os.EX_USAGE),
    (("serve", "/proc/nowhere", "--no-tls"), os.EX_NOINPUT),
    (("release", "nobody"), os.EX_NOINPUT),
    (("release", "--forget", "nobody"), os.EX_NOINPUT),
    (("show", "nobody"), os.EX_NOINPUT),
    (("import", "/proc/nowhere"), os.EX_NOINPUT),
    (("--help",), 0),
    (("--version",), 0),
    (("list",), 0),
    (("export",), 0),
])
def test_exit_statuses(make_server: Make, arguments: tuple[str, ...], status: int) -> None:
    server = make_server(start=False)
    server.state.mkdir()
    output = server.state / "output"
    takes_state = arguments and arguments[0] not in ("--help", "--version", "nonsense")
    pid = server.nursery.ask(
        start=[*arguments, *(("--state", str(server.state)) if takes_state else ())], output=str(output))
    ended = server.nursery.ask(wait=pid)
    assert ended == status, output.read_text()
    assert "Traceback" not in output.read_text()


def test_an_address_that_is_taken(make_server: Make) -> None:
    server = make_server()
    pid = server.nursery.ask(start=["serve", str(server.folder), "--no-tls", "--state", str(server.state), "--listen",
                                    f"127.0.0.1:{server.port}"], output=str(server.state / "second"))
    assert server.nursery.ask(wait=pid) == os.EX_UNAVAILABLE
    assert "Cannot listen at 127.0.0.1" in (server.state / "second").read_text()


def test_list_and_show(make_server: Make) -> None:
    server = make_server()
    assert server.run("list").text == "no machines yet\n"
    register(server.registration(), "52:54:00:aa:00:01", **board(1), labels={"site": "north"})
    tpm = SoftwareTpm()
    register(server.registration(), tpm, **board(2))
    server.run("reserve", "SN-0042", "inventory-ip=192.168.122.200")
    lines = server.run("list").text.splitlines()
    name = "test-btrfs-4c4c4544-0042-3010-8051-00000000000"
    assert [line.split()[0] for line in lines] == ["NAME", f"{name}1", f"{name}2", "-"]
    assert "inventory-ip=192.168.122.150" in lines[1]
    assert "52:54:00:aa:00:01" in lines[1]
    assert f"tpm {tpm.digest[:12]}" in lines[2]
    assert "inventory-ip=192.168.122.200" in lines[3]
    for text in ("SN-000001", "52:54:00:00:00:01", "52-54-00-AA-00-01", "192.168.122.150",
                 "test-btrfs-4c4c4544-0042-3010-8051-000000000001", "4C4C4544-0042-3010-8051-000000000001"):
        shown, = json.loads(server.run("show", "--json", text).text)
        assert shown["serial"] == "SN-000001"
    assert shown["labels"] == {"elemental.cattle.io/site": "north"}
    assert "reservedFor:  sn-0042" in server.run("show", "192.168.122.200").text
    urls = server.run("show", "fire-nodes").text
    assert f"url:          {server.registration()}" in urls
    assert f"{server.url}/assignments/{{uuid}}?token=fire-nodes" in urls


def test_reserve_and_release(make_server: Make) -> None:
    server = make_server()
    assert "for whichever machine is SN-0001" in server.run("reserve", "SN-0001", "inventory-ip=192.168.122.200").text
    assert "192.168.122.200" in server.get("/assignments/SN-0001", params=TOKEN).text
    assert "192.168.122.150" in server.get("/assignments/SN-0002", params=TOKEN).text
    refused = server.run("reserve", "SN-0002", "inventory-ip=192.168.122.200", status=os.EX_DATAERR).text
    assert "Cannot reserve 192.168.122.200 for SN-0002" in refused
    assert server.run("release", "SN-0001").text == "released 192.168.122.200\n"
    assert "reserved" in server.run("list").text
    assert server.run("release", "--forget", "SN-0001").text == "released 192.168.122.200\n"
    assert "192.168.122.200" not in server.run("list").text
    # Outside of every pool is fine, too: a fixed address is the operator's own business.
    server.run("reserve", "SN-0002", "inventory-ip=192.168.122.10")
    assert "192.168.122.10" in server.get("/assignments/SN-0002", params=TOKEN).text


def test_to_the_operator_and_back(make_server: Make, seed: str, tmp_path: Path) -> None:
    """What is exported is imported elsewhere, and each machine has its address there; and it is what it was."""
    one = make_server()
    tpm = SoftwareTpm()
    register(one.registration(), tpm, **board(1))
    register(one.registration(), "52:54:00:aa:00:01", **board(2))
    exported = one.run("export").text
    documents = list(yaml.safe_load_all(exported))
    assert [document["kind"] for document in documents] == ["MachineInventory"] * 2
    assert {"tpmHash": tpm.digest}.items() <= documents[0]["spec"].items()
    for document in documents:
        assignment = understand_document(yaml.safe_dump(document).encode())
        assert assignment.addresses["inventory-ip"].ip.startswith("192.168.")
    (tmp_path / "exported.yaml").write_text(exported)

    two = make_server(files={"seed.yaml": seed.replace("fire-nodes", "others")})
    two.get("/assignments/SN-0099", params={"token": "others"})  # takes .150, which one machine had there
    refused = two.run("import", str(tmp_path / "exported.yaml"), status=os.EX_DATAERR).text
    assert "192.168.122.150 is not free here" in refused
    assert two.run("list").text.count("test-btrfs") == 0
    two.run("release", "--forget", "SN-0099")
    assert two.run("import", str(tmp_path / "exported.yaml")).text == "imported 2 machines\n"
    two.run("import", str(tmp_path / "exported.yaml"))  # again changes nothing
    assert "192.168.122.152" in two.get("/assignments/SN-0098", params={"token": "others"}).text
    kind, payload = register(two.registration("others"), tpm, update=True)
    assert kind == CONFIG
    assert yaml.safe_load(payload)["ipAddresses"] == {"inventory-ip": "192.168.122.150"}
    kind, payload = register(two.registration("others"), "52:54:00:aa:00:01", update=True)
    assert yaml.safe_load(payload)["ipAddresses"] == {"inventory-ip": "192.168.122.151"}


@pytest.mark.parametrize(("text", "words"), [
    ("", "nothing at all"),
    ("{}", "apiVersion and kind"),
    ("{apiVersion: v1, kind: Secret}", "at least one"),
    (INVENTORY.replace("  tpmHash", "  tpmHas"), "neither tpmHash nor machineHash"),
    (INVENTORY.replace("192.168.122.150", "nowhere"), "no address"),
])
def test_a_wrong_import_changes_nothing(make_server: Make, tmp_path: Path, text: str, words: str) -> None:
    server = make_server(start=False)
    (tmp_path / "wrong.yaml").write_text(text)
    (tmp_path / "good.yaml").write_text(INVENTORY)
    assert words in server.run("import", str(tmp_path / "good.yaml"), str(tmp_path / "wrong.yaml"),
                               status=os.EX_DATAERR).text
    assert server.run("list").text == "no machines yet\n"


def test_reload(make_server: Make, seed: str) -> None:
    """A change is in force within seconds; a wrong one is told about, fault by fault, and the good set stays."""
    server = make_server()
    path = server.folder / "seed.yaml"
    names = (f"SN-{number:04}" for number in range(1, 50))  # none of them comes too often

    def metric() -> int:
        text = server.get(f"/assignments/{next(names)}", params=TOKEN).text
        return int(text.partition("metric: ")[2].split()[0])

    assert metric() == 150
    path.write_text(seed.replace("metric: 150", "metric: 160"))
    server.wait_for(lambda: server.log.count("in force") == 2, 60)
    assert metric() == 160
    path.write_text(seed.replace("prefix: 24\n", "prefix: 99\n", 1))
    server.logs("1 faults in the manifests: the last good ones stay in force")
    assert "seed.yaml: InClusterIPPool/elemental-inventory-pool: spec.prefix: 99" in server.log
    assert metric() == 160
    # Over a restart, too.
    server.stop()
    server.start()
    assert "Starting with the last manifests that were good" in server.log
    assert metric() == 160
    path.write_text(seed)
    server.wait_for(lambda: server.log.count("in force: 1 pools") == 4, 60)
    assert metric() == 150


def test_a_reload_drops_no_connection(make_server: Make, seed: str) -> None:
    from tests.server.machine import GET, VERSION, Machine

    server = make_server()
    with Machine(server.registration(), "Bearer PLAINkept") as machine:
        machine.receive()
        (server.folder / "seed.yaml").write_text(seed.replace("metric: 150", "metric: 160"))
        os.kill(server.pid, signal.SIGHUP)
        server.wait_for(lambda: server.log.count("in force") == 2, 8)
        machine.say(VERSION, b"\x0c")
        assert machine.say(GET)[0] == CONFIG


def test_no_good_manifests_and_none_before(make_server: Make) -> None:
    server = make_server(files={"a.yaml": "apiVersion: v1\n"}, start=False)
    server.state.mkdir()
    pid = server.nursery.ask(start=["serve", str(server.folder), "--no-tls", "--state", str(server.state), "--listen",
                                    "127.0.0.1:0"], output=str(server.log_path))
    assert server.nursery.ask(wait=pid) == os.EX_DATAERR
    assert "a.yaml: a mapping with key apiVersion; a manifest with apiVersion and kind" in server.log


def test_a_token_that_the_server_chose(make_server: Make, seed: str) -> None:
    """The URL is the same after a restart, and no log has it."""
    server = make_server(files={"seed.yaml": seed.replace("  token: fire-nodes\n", "")})
    token = json.loads(server.run("show", "--json", "fire-nodes").text)[0]["token"]
    assert len(token) == 54
    assert server.get("/assignments/SN-0001", params={"token": token}).status_code == 200
    server.stop()
    server.start()
    assert server.get("/assignments/SN-0001", params={"token": token}).status_code == 200
    assert token not in server.log


def test_moved_is_reported(make_server: Make) -> None:
    server = make_server()
    first = register(server.registration(), "uuid-one", **board(1))
    second = register(server.registration(), "uuid-two", **board(1, uuid="4c4c4544-0042-3010-8051-00000000ffff"))
    assert yaml.safe_load(first[1])["ipAddresses"] == yaml.safe_load(second[1])["ipAddresses"]
    assert "moved: it was uuid-one, now it is uuid-two" in server.run("list").text
    server.logs("moved: it was uuid-one, now it is uuid-two")
