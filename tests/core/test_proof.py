"""`proof:`, what a document may ask to be reached."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.core.proof import DEFAULT_TIMEOUT, Target, parse_targets


@pytest.mark.parametrize(("tree", "targets"), [
    (None, ()), ([], ()),
    ("gateway", (Target("gateway"),)),
    (["gateway", "source"], (Target("gateway"), Target("source"))),
    ("none", (Target("none"),)),
    ([{"tcp": "192.0.2.1:443"}], (Target("tcp", "192.0.2.1:443"),)),
    ([{"tcp": "[2001:db8::1]:22", "timeout": 5}], (Target("tcp", "[2001:db8::1]:22", 5.0),)),
    ([{"http": "https://example.com:8443/ready?x=1", "timeout": 2.5}],
     (Target("http", "https://example.com:8443/ready?x=1", 2.5),)),
    ([{"http": "http://[fd00::1]/"}], (Target("http", "http://[fd00::1]/"),)),
    ([{"dns": "ntp.example.com."}], (Target("dns", "ntp.example.com."),)),
    ([{"gateway": None, "timeout": 3}], (Target("gateway", "", 3.0),)),
])
def test_targets(tree: Any, targets: tuple[Target, ...]) -> None:
    assert parse_targets(tree) == (targets, [])


def test_a_target_that_waits_for_its_address_is_not_judged() -> None:
    tree = [{"tcp": "{ip}:22"}, {"tcp": "a{b"}]  # braces alone are no placeholder
    targets, complaints = parse_targets(tree, waiting={"proof[0].tcp"})
    assert targets == (Target("tcp", "{ip}:22"),)
    assert [complaint.path for complaint in complaints] == ["proof[1].tcp"]


def test_the_default_limit_is_that_of_a_whole_proof() -> None:
    assert Target("gateway").timeout == DEFAULT_TIMEOUT == 30


@pytest.mark.parametrize(("tree", "complaints"), [
    ("gatway", ["proof[0]: 'gatway'; did you mean gateway?"]),
    (["tcp"], ["proof[0]: 'tcp'; did you mean {tcp: host:port}?"]),
    ([7], ["proof[0]: 7; one of gateway, source, none, {tcp: host:port}, {http: URL}, {dns: name}"]),
    ([{"ping": "192.0.2.1"}], ["proof[0].ping: unknown key 'ping'; one of gateway, source, none, tcp, http, dns"]),
    ([{"tcp": "192.0.2.1:22", "dns": "x"}], ["proof[0]: a mapping with keys tcp, dns; exactly one of"]),
    ([{"timeout": 3}], ["proof[0]: a mapping with key timeout; exactly one of"]),
    ([{"tcp": "192.0.2.1"}], ["proof[0].tcp: '192.0.2.1'; host:port"]),
    ([{"tcp": "192.0.2.1:0"}], ["proof[0].tcp: '192.0.2.1:0'; host:port"]),
    ([{"tcp": "fd00::1:22"}], ["proof[0].tcp: 'fd00::1:22'; host:port"]),  # which part is the port?
    ([{"tcp": 22}], ["proof[0].tcp: 22; host:port"]),
    ([{"http": "ftp://x/"}], ["proof[0].http: 'ftp://x/'; an http or https URL"]),
    ([{"http": "http://me:secret@x/"}], ["proof[0].http: 'http://me:secret@x/'; an http or https URL"]),
    ([{"http": "http://x y/"}], ["proof[0].http: 'http://x y/'; an http or https URL"]),
    ([{"http": "http://[::1/"}], ["proof[0].http: 'http://[::1/'; an http or https URL"]),
    # the proof would have to guess how it is encoded
    ([{"http": "http://x/ü"}], ["proof[0].http: 'http://x/ü'; an http or https URL"]),
    ([{"http": "http:///x"}], ["proof[0].http: 'http:///x'; an http or https URL"]),
    ([{"dns": "a..b"}], ["proof[0].dns: 'a..b'; a name to resolve"]),
    ([{"gateway": "192.0.2.1"}], ["proof[0].gateway: '192.0.2.1'; 'gateway' has no value"]),
    ([{"dns": "x", "timeout": 0}], ["proof[0].timeout: 0; seconds, more than 0 and at most 600"]),
    ([{"dns": "x", "timeout": True}], ["proof[0].timeout: true; seconds"]),
    ([{"dns": "x", "timeout": float("nan")}], ["proof[0].timeout: nan; seconds"]),
    (["none", "gateway"], ["proof: 'none' beside other targets; 'none' alone"]),
    (["gateway"] * 40, ["proof: 40 targets; at most 32"]),
])
def test_complaints(tree: Any, complaints: list[str]) -> None:
    found = [str(complaint) for complaint in parse_targets(tree)[1]]
    assert len(found) == len(complaints)
    for one, start in zip(found, complaints, strict=True):
        assert one.startswith(start)
