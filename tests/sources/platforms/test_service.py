"""Asking metadata services: with the right headers and tokens, patiently, and never loosely."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.sources.conftest import FakeClock
from tests.sources.platforms.conftest import CASES, MANNERS

from homeport.core import platforms
from homeport.core.platforms.shape import NotThere, Platform, Unreadable, Want, fixed
from homeport.core.platforms.shape import Service as Way
from homeport.errors import DocumentError, RefusedBySource, SourceError, Unreachable
from homeport.settings import Settings
from homeport.sources.patience import SYSTEM_CLOCK
from homeport.sources.platforms import saved
from homeport.sources.platforms.service import PIECE_PATIENCE, Session

QUICK = Settings({"connect_timeout": 5.0, "header_timeout": 5.0, "body_timeout": 5.0, "proxy": "http://127.0.0.1:9"})


def platform_of(case: str) -> Platform:
    found = platforms.find(case.partition("-")[0])
    assert found is not None
    return found


def session(case: str, base: str, left: float = 10.0) -> Session:
    way = next(way for way in platform_of(case).ways if isinstance(way, Way))
    return Session(replace(way, base=base), QUICK, SYSTEM_CLOCK, lambda: left)


SERVED = sorted(path.name for path in CASES.iterdir() if path.name.partition("-")[0] in MANNERS)


@pytest.mark.parametrize("case", SERVED)
def test_each_service_is_asked_as_it_wants_to_be(case: str, serve: Any) -> None:
    """And gives over the network what the same metadata give from a folder: nobody needs another request."""
    service = serve(case)
    asked = session(case, service.url).read()
    kept = saved.read(platform_of(case), CASES / case / "metadata")
    assert {name: data and data.split() for name, data in asked.items()} == {
        name: data and data.split() for name, data in kept.items()}
    assert len(service.requests) == len(set(service.requests))


def test_every_service_is_in_the_tests() -> None:
    served = {platform.name for platform in platforms.PLATFORMS if any(isinstance(way, Way) for way in platform.ways)}
    assert served == set(MANNERS) == {case.partition("-")[0] for case in SERVED}


EC2 = "aws-two-nics-three-addresses"


def test_a_failure_in_the_middle_costs_one_request(serve: Any) -> None:
    service = serve(EC2)
    asking = session(EC2, service.url)
    failing = iter([(503, {"Retry-After": "2"})])
    service.before = lambda path: next(failing, None) if path.endswith("local-ipv4s") else None
    with pytest.raises(Unreachable) as caught:
        asking.read()
    assert caught.value.retry_after == 2
    so_far = len(service.requests)
    asking.read()
    assert len(service.requests) == 2 + 12 + 1  # token, list; six keys of two NICs, one of them twice
    assert so_far < len(service.requests)


def test_a_token_that_has_run_out_is_replaced(serve: Any) -> None:
    service = serve(EC2)
    asking = session(EC2, service.url)
    asking.token = "an old one"
    with pytest.raises(Unreachable):
        asking.read()
    asking.read()
    assert service.requests[:2] == ["GET /2021-01-03/meta-data/network/interfaces/macs/", "PUT /latest/api/token"]


def test_without_another_token_no_card_is_left_out(serve: Any) -> None:
    """To be given none is no matter of the card that happened to be asked for then."""
    service = serve(EC2)
    asking = session(EC2, service.url)
    service.before = lambda path: (401, {}) if "53:02/" in path else None
    with pytest.raises(Unreachable):
        asking.read()
    service.before = lambda path: (403, {}) if path.endswith("token") else None
    with pytest.raises(RefusedBySource):
        asking.read()


def test_without_a_token_nothing_is_asked(serve: Any) -> None:
    """IMDSv1 answers whoever can make a server fetch a URL; an instance that has only that is none of ours."""
    service = serve(EC2, before=lambda path: (403, {}) if path.endswith("token") else None)
    with pytest.raises(RefusedBySource):
        session(EC2, service.url).read()
    assert service.requests == ["PUT /latest/api/token"]


@pytest.mark.parametrize(("status", "headers", "error"), [
    (404, {}, NotThere),
    (403, {}, RefusedBySource),
    (400, {}, RefusedBySource),
    (408, {}, Unreachable),
    (410, {}, Unreachable),  # Azure: not yet
    (429, {}, Unreachable),
    (500, {}, Unreachable),
    (301, {"Location": "http://127.0.0.1:1/"}, SourceError),  # a portal, but no metadata service
    (204, {}, RefusedBySource),
])
def test_what_other_answers_mean(serve: Any, status: int, headers: dict[str, str], error: type[Exception]) -> None:
    service = serve("vultr-additional-and-private", before=lambda path: (status, headers))
    with pytest.raises(error) as caught:
        session("vultr", service.url).read()
    assert type(caught.value) is error


def test_too_much(serve: Any, tmp_path: Path) -> None:
    service = serve("vultr-additional-and-private")
    service.folder = tmp_path
    (tmp_path / "v1.json").write_bytes(b" " * (512 * 1024 + 1))
    with pytest.raises(DocumentError):
        session("vultr", service.url).read()


def test_nobody_there() -> None:
    with pytest.raises(Unreachable, match="connection refused"):
        session("vultr", "http://127.0.0.1:9").read()
    with pytest.raises(Unreachable, match="before the deadline"):
        session("vultr", "http://127.0.0.1:9", left=0).read()


def test_a_token_that_is_none(serve: Any, raw: Any) -> None:
    def talk(connection: Any) -> None:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na\r\nb: evil")

    with pytest.raises(SourceError, match="no token"):
        session(EC2, raw(talk)).read()


@pytest.mark.parametrize("by_piece", [False, True])
def test_only_cards_are_given_up_one_by_one(serve: Any, by_piece: bool) -> None:
    """Elsewhere an optional piece is no card: without it something else than what is assigned would be configured."""
    service = serve("hetzner-public-and-private")
    service.before = lambda path: (503, {}) if path.endswith("private-networks") else None
    fake = FakeClock()
    pieces = [Want(f"hetzner/v1/metadata/{name}", optional=True) for name in ("network-config", "private-networks")]
    asking = Session(Way(service.url, fixed(*pieces), by_piece=by_piece), QUICK, fake.clock, lambda: 120.0)
    files = None
    for _ in range(5):
        try:
            files = asking.read()
        except Unreachable:
            fake.time += 10
    assert (files is not None) == by_piece


def test_a_card_has_its_own_time_after_an_outage(serve: Any) -> None:
    """The service was away for longer than one piece is waited for: one more failure costs no card its addresses."""
    service = serve(EC2)
    fake = FakeClock()
    way = next(way for way in platform_of(EC2).ways if isinstance(way, Way))
    asking = Session(replace(way, base=service.url), QUICK, fake.clock, lambda: 120.0)
    away = True
    service.before = lambda path: (503, {}) if away and path.endswith("macs/") else None
    for _ in range(3):
        with pytest.raises(Unreachable):
            asking.read()
        fake.time += 5
    away, once = False, iter([(503, dict[str, str]())])
    service.before = lambda path: next(once, None) if path.endswith("53:02/local-ipv4s") else None
    with pytest.raises(Unreachable):
        asking.read()
    assert not any(isinstance(data, Unreadable) for data in asking.read().values())


def test_all_pieces_of_a_dead_card_have_the_time_of_one(serve: Any) -> None:
    service = serve(EC2)
    fake = FakeClock()
    way = next(way for way in platform_of(EC2).ways if isinstance(way, Way))
    asking = Session(replace(way, base=service.url), QUICK, fake.clock, lambda: 120.0)
    service.before = lambda path: (503, {}) if "53:02/" in path else None
    started, files = fake.time, None
    while files is None:
        try:
            files = asking.read()
        except Unreachable:
            fake.time += 1
    assert fake.time - started == PIECE_PATIENCE
    assert {path for path, data in files.items() if isinstance(data, Unreadable)} == {
        path for path in files if "53:02/" in path}
