"""Telling a platform of a boot: what it wants, once or at every boot, within the deadline."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.sources.conftest import FakeClock
from tests.sources.platforms import told
from tests.sources.platforms.told import Told

from homeport.core import platforms
from homeport.core.platforms import Platform
from homeport.errors import DocumentError, PersistError, RefusedBySource, SourceError, Unreachable
from homeport.settings import Settings
from homeport.sources.platforms import checkin
from homeport.sources.platforms.checkin import check_in, lease_address

LIMITS = {"connect_timeout": 5.0, "header_timeout": 5.0, "body_timeout": 5.0}
Start = Callable[[Told], str]


@pytest.fixture
def start() -> Iterator[Start]:
    running: list[ThreadingHTTPServer] = []

    def begin(service: Told) -> str:
        running.append(told.start(service))
        return f"http://127.0.0.1:{running[-1].server_port}"

    yield begin
    for server in running:
        server.shutdown()
        server.server_close()


def at(name: str, *bases: str) -> Platform:
    """The platform with the services of its check-in on other addresses."""
    platform = platforms.find(name)
    assert platform is not None and platform.check_in is not None
    service = platform.check_in.services[0]
    moved = tuple(replace(service, base=base) for base in bases)
    return replace(platform, check_in=replace(platform.check_in, services=moved))


def tell(platform: Platform, root: Path, within: float = 20.0, **more: Any) -> str:
    fake = FakeClock()
    return check_in(platform, Settings(LIMITS), root=root, deadline=fake.time + within, clock=fake.clock, **more)


def test_azure(tmp_path: Path, start: Start) -> None:
    service = Told(told.azure)
    assert tell(at("azure", start(service)), tmp_path) == "Microsoft Azure knows that this machine has booted"
    assert service.requests == ["GET /machine/?comp=goalstate", "POST /machine/?comp=health"]
    tell(at("azure", start(service)), tmp_path)
    assert len(service.good) == 2  # at every boot


def test_azure_where_the_lease_says(tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """DHCP option 245 has the address of the wire server; without it there is one that is known."""
    service = Told(told.azure)
    server = start(service).removeprefix("http://")
    monkeypatch.setattr(checkin, "lease_address", {"a8:3f:81:10": server}.get)
    lease = {"private_245": "a8:3f:81:10"}
    tell(at("azure", "http://127.0.0.1:9"), tmp_path, lease_option=lease.__getitem__)
    assert len(service.good) == 1
    tell(at("azure", f"http://{server}"), tmp_path)
    assert len(service.good) == 2


@pytest.mark.parametrize(("text", "address"), [
    ("a8:3f:81:10", "168.63.129.16"), ("168.63.129.16", "168.63.129.16"), ("A8:3F:81:10", "168.63.129.16"),
    ("", ""), ("a8:3f:81", ""), ("a8:3f:81:100", ""), ("a8:3f:81:-1", ""), ("00:00:00:00", ""), ("e0:00:00:01", ""),
    ("7f:00:00:01", ""), ("nowhere", ""), ("1:2:3:4:5", ""),
])
def test_what_a_lease_says(text: str, address: str) -> None:
    assert lease_address(text) == address


@pytest.mark.parametrize("goal", [
    b"", b"<GoalState/>", told.GOAL_STATE.replace("<InstanceId>", "<Instance>").encode(),
    told.GOAL_STATE.replace(told.CONTAINER, "a<b/>").encode(),
    told.GOAL_STATE.replace(told.CONTAINER, "&lt;x/&gt;").encode(), b"\xff\xfe",
])
def test_azure_says_something_else(tmp_path: Path, start: Start, goal: bytes) -> None:
    """Nothing of a stranger's goes back into XML but letters and digits."""
    service = Told(lambda method, target, headers, body: (200, goal) if method == "GET" else (200, b""))
    with pytest.raises(DocumentError) as caught:
        tell(at("azure", start(service)), tmp_path)
    assert "machine/" in str(caught.value) and service.good == []


def test_scaleway_by_its_other_address(tmp_path: Path, start: Start) -> None:
    service = Told(told.scaleway)
    assert "knows" in tell(at("scaleway", "http://127.0.0.1:9", start(service)), tmp_path)
    assert service.requests == ["PATCH /state"]


def test_packet_once(tmp_path: Path, start: Start) -> None:
    document: dict[str, str] = {}
    service = Told(lambda *request: told.packet(json.dumps(document).encode())(*request))
    base = start(service)
    document["phone_home_url"] = f"{base}/phone-home"
    assert "knows" in tell(at("packet", base), tmp_path)
    assert "heard of this machine before" in tell(at("packet", base), tmp_path)
    assert service.requests.count("POST /phone-home") == 1
    note = tmp_path / "var/lib/homeport/checked-in"
    assert "phone-home" not in note.read_text()
    # Another instance from a copy of this disk has another address to call.
    document["phone_home_url"] = f"{base}/phone-home?instance=2"
    with pytest.raises(RefusedBySource, match="it says 404"):
        tell(at("packet", base), tmp_path)
    document.clear()
    document["hostname"] = "metal-1"
    assert "no boot of this machine" in tell(at("packet", base), tmp_path)


def test_packet_told_but_not_noted(tmp_path: Path, start: Start) -> None:
    (tmp_path / "var").write_text("a file")
    document: dict[str, str] = {}
    base = start(Told(lambda *request: told.packet(json.dumps(document).encode())(*request)))
    document["phone_home_url"] = f"{base}/phone-home"
    with pytest.raises(PersistError, match="was told of this boot"):
        tell(at("packet", base), tmp_path)


@pytest.mark.parametrize("url", [
    "ftp://x/y", "file:///etc/shadow", "no address", "phone-home", "/phone-home", "http:phone-home", 7, ["http://x/"],
    "http://127.0.0.1:9/\r\nX: y", "http://127.0.0.1:9/ HTTP/1.1", "http://127.0.0.1:9/\u2028",
    "http://x/" + "y" * 3000])
def test_packet_names_no_address(tmp_path: Path, start: Start, url: object) -> None:
    """Nor is what it names taken for a path of the metadata service."""
    service = Told(told.packet(json.dumps({"phone_home_url": url}).encode()))
    with pytest.raises(DocumentError) as caught:
        tell(at("packet", start(service)), tmp_path)
    assert service.requests == ["GET /metadata"] and len(str(caught.value)) < 300


def test_packet_chooses_no_password(tmp_path: Path, start: Start) -> None:
    """Nothing of the message is the metadata's, not even who we say we are."""
    heard: list[dict[str, str]] = []

    def hear(method: str, target: str, headers: Any, body: bytes) -> told.Answer:
        heard.append(dict(headers))
        return 200, json.dumps({"phone_home_url": base.replace("//", "//user:word@") + "/here"}).encode()

    base = start(Told(hear))
    tell(at("packet", base), tmp_path)
    assert len(heard) == 2 and "Authorization" not in heard[1] and heard[1]["Content-Length"] == "0"


@pytest.mark.parametrize("url", ["https://127.0.0.1:{port}/", "http://*/", "http://a%0d%0ab/"])
def test_what_cannot_be_told_is_not_told_again(tmp_path: Path, start: Start, url: str) -> None:
    document: dict[str, str] = {}
    service = Told(lambda *request: told.packet(json.dumps(document).encode())(*request))
    base = start(service)
    document["phone_home_url"] = url.format(port=base.rpartition(":")[2])
    said: list[str] = []
    with pytest.raises(SourceError) as caught:
        tell(at("packet", base), tmp_path, within=3, progress=said.append)
    assert isinstance(caught.value, Unreachable) == bool(said) == url.startswith("https:")


def test_a_service_says_when_it_will_listen(tmp_path: Path, start: Start) -> None:
    refusals = iter([503])
    service = Told(told.scaleway, before=lambda request: next(refusals, None), headers={"Retry-After": "7"})
    said: list[str] = []
    assert "knows" in tell(at("scaleway", start(service)), tmp_path, progress=said.append)
    assert [line.rpartition(" in ")[2] for line in said] == ["7.0 s"]


def test_it_is_told_again_until_the_deadline(tmp_path: Path, start: Start) -> None:
    refusals = iter([503, 429, 500])
    service = Told(told.scaleway, before=lambda request: next(refusals, None))
    lines: list[str] = []
    assert "knows" in tell(at("scaleway", start(service)), tmp_path, progress=lines.append)
    assert len(service.requests) == 4 and sum("telling it again" in line for line in lines) == 3
    with pytest.raises(Unreachable, match=r"Cannot tell http://127\.0\.0\.1:9/state: connection refused"):
        tell(at("scaleway", "http://127.0.0.1:9"), tmp_path)


def test_what_is_refused_is_not_told_again(tmp_path: Path, start: Start) -> None:
    service = Told(told.scaleway, before=lambda request: 403)
    with pytest.raises(RefusedBySource):
        tell(at("scaleway", start(service)), tmp_path)
    assert len(service.requests) == 1


@pytest.mark.parametrize("name", ["azure", "packet", "scaleway"])
def test_no_service_sends_us_elsewhere(tmp_path: Path, start: Start, name: str) -> None:
    """Neither with the question nor with the message."""
    other = Told(lambda *request: (200, b"{}"))
    answers = iter([(200, b'{"phone_home_url": "%s/phone-home"}')] if name == "packet" else [])
    elsewhere = start(other)

    def redirect(method: str, target: str, headers: Any, body: bytes) -> told.Answer:
        status, reply = next(answers, (307, b""))
        return status, reply % base.encode() if reply else reply

    service = Told(redirect, headers={"Location": f"{elsewhere}/there"})
    base = start(service)
    with pytest.raises(SourceError):
        tell(at(name, base), tmp_path)
    assert len(service.requests) == 1 + (name == "packet") and other.requests == []


def test_who_wants_to_hear() -> None:
    """Those that Afterburn checks in at."""
    assert {each.name for each in platforms.PLATFORMS if each.check_in} == {"azure", "packet", "scaleway"}
