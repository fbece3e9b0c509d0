"""The platform source: from what a machine says of itself to a document, with the real edges."""

from __future__ import annotations

import lzma
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.sources.conftest import FakeClock
from tests.sources.platforms.conftest import serve  # noqa: F401

from homeport import sources
from homeport.core import platforms
from homeport.core.document import understand_document
from homeport.core.facts import Facts, Nic, Smbios
from homeport.core.identity import Identity
from homeport.core.platforms import recognition
from homeport.core.platforms.shape import Service
from homeport.errors import DocumentError, NoAssignment, RefusedBySource, SourceError, Unconfigured, Unreachable
from homeport.settings import Settings
from homeport.sources import Reply, platform

DRIVES = Path(__file__).parents[1] / "data" / "drives"
ENS3 = Nic("ens3", 2, "00:00:5e:00:53:01", "00:00:5e:00:53:01")
ENS4 = Nic("ens4", 3, "00:00:5e:00:53:02", "00:00:5e:00:53:02")
ON_EC2 = Facts(smbios=Smbios(manufacturer="Amazon EC2"), nics=(ENS3, ENS4))
NOWHERE = Facts(smbios=Smbios(manufacturer="QEMU"), nics=(ENS3, ENS4))
LIMITS = {"connect_timeout": 5.0, "header_timeout": 5.0, "body_timeout": 5.0}


class Asking:
    """Asks all sources the way a boot does; `at` puts a platform's services on other addresses."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.fake, self.monkeypatch = root, FakeClock(), monkeypatch
        self.lines: list[str] = []

    def at(self, name: str, *bases: str) -> None:
        found = platforms.find(name)
        assert found is not None
        services = [way for way in found.ways if isinstance(way, Service)]
        others = [way for way in found.ways if not isinstance(way, Service)]
        moved = replace(found, ways=(*others, *(replace(services[0], base=base) for base in bases)))
        for module in (platforms, recognition):
            self.monkeypatch.setattr(module, "PLATFORMS", tuple(
                moved if each is found else each for each in platforms.PLATFORMS))

    def __call__(self, facts: Facts, *, within: float = 120.0, **settings: Any) -> Reply:
        return sources.fetch(Settings({**LIMITS, **settings}), Identity(), deadline=self.fake.time + within,
                             root=self.root, clock=self.fake.clock, progress=self.lines.append, facts=facts)


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asking:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    monkeypatch.setattr(platform, "NIC_WAIT", 0.0)
    monkeypatch.setattr(platform, "ROUTER_WAIT", 0.0)
    return Asking(tmp_path, monkeypatch)


def plug_in(root: Path, image: str, label: str) -> None:
    (root / "dev/disk/by-label").mkdir(parents=True, exist_ok=True)
    (root / "dev/disk/by-label" / label).write_bytes(lzma.decompress((DRIVES / f"{image}.xz").read_bytes()))


EC2 = "aws-two-nics-three-addresses"


def test_a_cloud_that_smbios_tells_of(ask: Asking, serve: Callable[..., Any]) -> None:  # noqa: F811
    service = serve(EC2)
    ask.at("aws", service.url)
    reply = ask(ON_EC2)
    assert (reply.source, reply.url, reply.over_network) == ("platform aws", service.url, True)
    assignment = understand_document(reply.data)
    assert [entry["name"] for entry in assignment.config["interfaces"]] == ["nic0", "nic1"]
    assert ask(ON_EC2).data == reply.data  # nothing changed, nothing to apply


def test_nobody_is_asked_on_a_machine_that_is_nowhere(ask: Asking, serve: Callable[..., Any]) -> None:  # noqa: F811
    service = serve(EC2)
    ask.at("aws", service.url)
    with pytest.raises(Unconfigured):
        ask(NOWHERE)
    assert service.requests == []


def test_a_platform_by_name(ask: Asking, serve: Callable[..., Any]) -> None:  # noqa: F811
    ask.at("aws", serve(EC2).url)
    assert ask(NOWHERE, platform="aws").source == "platform aws"
    argument = replace(NOWHERE, cmdline="quiet ignition.platform.id=aws")
    assert ask(argument).source == "platform aws"
    with pytest.raises(Unconfigured):
        ask(argument, platform="off")
    with pytest.raises(Unconfigured):
        ask(ON_EC2, sources=("file", "url"))


def test_another_source_that_is_silent_does_not_let_the_cloud_in(
        ask: Asking, serve: Callable[..., Any]) -> None:  # noqa: F811
    """Or machines would change their networks because a server is away."""
    service = serve(EC2)
    ask.at("aws", service.url)
    with pytest.raises(Unreachable):
        ask(ON_EC2, config=("http://127.0.0.1:9/a",), within=1.0)
    assert service.requests == []
    assert ask(ON_EC2, config=("http://127.0.0.1:9/a",), platform="aws", within=3.0).source == "platform aws"


def test_a_service_that_comes_late(ask: Asking, serve: Callable[..., Any]) -> None:  # noqa: F811
    """As while the bootstrap DHCP still runs: it is asked again, with the pauses of every source."""
    service = serve(EC2)
    refusals = iter([(503, {}), (503, {}), (503, {"Retry-After": "3"})])
    service.before = lambda path: next(refusals, None)
    ask.at("aws", service.url)
    ask(ON_EC2)
    assert ask.fake.slept == [0.25, 0.5, 3.0]
    assert sum("asking again" in line for line in ask.lines) == 3


def test_a_service_that_never_comes(ask: Asking) -> None:
    ask.at("aws", "http://127.0.0.1:9")
    with pytest.raises(Unreachable, match=r"No metadata from http://127\.0\.0\.1:9/latest/api/token"):
        ask(ON_EC2, within=20.0)
    assert sum(ask.fake.slept) <= 20.0


def test_one_of_two_addresses_is_enough(ask: Asking, serve: Callable[..., Any]) -> None:  # noqa: F811
    """Scaleway has one for IPv4 and one for IPv6, and a machine may have either."""
    service = serve("scaleway-flexible")
    ask.at("scaleway", "http://127.0.0.1:9", service.url)
    reply = ask(replace(NOWHERE, smbios=Smbios(manufacturer="Scaleway")))
    assert reply.url == service.url and ask.fake.slept == []


def test_a_drive(ask: Asking) -> None:
    plug_in(ask.root, "proxmox-rock-ridge.iso", "cidata")
    reply = ask(NOWHERE)
    assert (reply.source, reply.url, reply.over_network) == (
        "platform nocloud", "/dev/disk/by-label/cidata", False)
    assert ask(replace(NOWHERE, cmdline="ignition.platform.id=proxmoxve")).source == "platform proxmoxve"


def test_a_drive_wins_over_the_service(ask: Asking, serve: Callable[..., Any]) -> None:  # noqa: F811
    service = serve("openstack-bond-vlan-dhcpv6")
    ask.at("openstack", service.url)
    facts = Facts(smbios=Smbios(product="OpenStack Nova"), nics=(ENS3, ENS4, Nic("ens5", 4, "00:00:5e:00:53:03")))
    assert ask(facts).over_network
    asked = len(service.requests)
    plug_in(ask.root, "kubevirt.iso", "config-2")
    assert not ask(facts).over_network
    assert len(service.requests) == asked


def test_no_drive_is_nothing_unusual(ask: Asking) -> None:
    """It is waited for a little where the platform has no other way, and then DHCP stays."""
    with pytest.raises(Unconfigured):
        ask(replace(NOWHERE, smbios=Smbios(manufacturer="KubeVirt")))
    assert 4.0 < sum(ask.fake.slept) < 11.0
    with pytest.raises(NoAssignment, match="no drive labelled cidata") as caught:
        ask(NOWHERE, platform="proxmoxve")
    assert not isinstance(caught.value, Unconfigured)


def test_firmware_may_be_of_a_hypervisor_that_has_nothing_and_a_drive_has(ask: Asking) -> None:
    plug_in(ask.root, "proxmox-rock-ridge.iso", "cidata")
    assert ask(replace(NOWHERE, smbios=Smbios(manufacturer="VMware, Inc."))).source == "platform nocloud"


def test_a_platform_without_networks_in_its_metadata(ask: Asking) -> None:
    reply = ask(replace(NOWHERE, smbios=Smbios(product="Exoscale Compute Platform")))
    assert understand_document(reply.data).configurator == "none"
    assert not reply.over_network


def test_metadata_that_cannot_be_used_are_a_document_that_cannot(
        ask: Asking, serve: Callable[..., Any]) -> None:  # noqa: F811
    ask.at("digitalocean", serve("digitalocean-faults").url)
    with pytest.raises(DocumentError) as caught:
        ask(NOWHERE, platform="digitalocean")
    assert len(caught.value.complaints) == 3


def test_a_nic_that_is_not_here(ask: Asking, serve: Callable[..., Any]) -> None:  # noqa: F811
    ask.at("aws", serve(EC2).url)
    reply = ask(replace(ON_EC2, nics=(ENS3,)))
    assert [entry["mac-address"] for entry in understand_document(reply.data).config["interfaces"]] == [
        ENS3.mac.upper()]
    assert any("no card has MAC 00:00:5e:00:53:02" in line for line in ask.lines)


@pytest.mark.parametrize(("platform_id", "folder"), [("aws", EC2), ("digitalocean", "digitalocean-public-and-private")])
def test_no_nic_of_them_is_here(
        ask: Asking, serve: Callable[..., Any], platform_id: str, folder: str) -> None:  # noqa: F811
    """Not "nothing is assigned", which would take down what is in force."""
    ask.at(platform_id, serve(folder).url)
    strange = replace(ENS3, mac="00:00:5e:00:53:77", permanent_mac="00:00:5e:00:53:77")
    with pytest.raises(DocumentError, match="only network cards that are not in this machine: 0"):
        ask(replace(NOWHERE, nics=(strange,)), platform=platform_id)


@pytest.mark.parametrize(("setting", "on_aws", "on_digitalocean"), [
    ("auto", True, False), ("yes", False, False), ("no", True, True)])
def test_what_is_kept_on_disk(ask: Asking, serve: Callable[..., Any], setting: str, on_aws: bool,  # noqa: F811
                              on_digitalocean: bool) -> None:
    ask.at("aws", serve(EC2).url)
    ask.at("digitalocean", serve("digitalocean-public-and-private").url)
    aws = ask(ON_EC2, platform_persist=setting)
    assert (aws.volatile, aws.reconciles, aws.partial) == (on_aws, True, False)
    digitalocean = ask(NOWHERE, platform="digitalocean", platform_persist=setting)
    assert (digitalocean.volatile, digitalocean.reconciles) == (on_digitalocean, False)


def test_a_card_whose_metadata_are_wrong_is_not_one_that_is_gone(
        ask: Asking, serve: Callable[..., Any]) -> None:  # noqa: F811
    ask.at("aws", serve("aws-one-faulty-nic").url)
    assert ask(ON_EC2).partial


# Too large, and not what stands there.
LARGE = b"10.0.1.10\n" * (52 << 10)
ONE_PIECE = [
    (500, b"", "it says 500", 10.0), (403, b"", "refuses (403)", 0.0), (400, b"", "refuses (400)", 0.0),
    (301, b"", "redirects", 0.0), (200, LARGE, "larger than 512 KiB", 0.0)]


@pytest.mark.parametrize("missing", ["local-ipv4s", ""])  # "": not one of its keys comes
@pytest.mark.parametrize(("status", "body", "why", "slept"), ONE_PIECE)
def test_a_card_whose_metadata_do_not_come_stops_no_other(
        ask: Asking, serve: Callable[..., Any], missing: str, status: int, body: bytes, why: str,  # noqa: F811
        slept: float) -> None:
    service = serve(EC2)
    ask.at("aws", service.url)
    service.before = lambda path: (status, {}) if f"53:01/{missing}" in path else None
    service.instead = body
    reply = ask(ON_EC2)
    assert reply.partial
    # What may come is asked for again, what is refused isn't.
    assert slept <= sum(ask.fake.slept) <= 2 * slept
    config = understand_document(reply.data).config
    assert [entry["mac-address"] for entry in config["interfaces"]] == [ENS4.mac.upper()]
    # It has the numbers of its own place all the same: those of the first would be in the way of what that one has.
    assert {route["table-id"] for route in config["routes"]["config"]} == {30201, 30401}
    assert any("53:01/" in line and why in line and "left out" in line for line in ask.lines)


@pytest.mark.parametrize(("status", "kind"), [(500, Unreachable), (403, RefusedBySource), (302, SourceError)])
def test_a_service_that_refuses_every_card_is_no_platform_without_cards(
        ask: Asking, serve: Callable[..., Any], status: int, kind: type[Exception]) -> None:  # noqa: F811
    service = serve(EC2)
    ask.at("aws", service.url)
    service.before = lambda path: (status, {}) if "/macs/0" in path else None
    with pytest.raises(kind):
        ask(ON_EC2)


@pytest.mark.parametrize("name", ["aws", "aliyun"])
def test_a_list_that_is_no_text(ask: Asking, serve: Callable[..., Any], name: str) -> None:  # noqa: F811
    """It is a fault of the document, found on the way to it."""
    service = serve(EC2 if name == "aws" else "aliyun-one-nic-two-addresses")
    service.before = lambda path: (200, {}) if path.endswith("/macs/") else None
    service.instead = b"m\xe9/\n"
    ask.at(name, service.url)
    with pytest.raises(DocumentError, match=r"meta-data/network/interfaces/macs/: bytes that are not UTF-8") as caught:
        ask(NOWHERE, platform=name)
    assert "this is what the metadata of" in caught.value.hint


def test_metadata_of_any_size(ask: Asking, serve: Callable[..., Any]) -> None:  # noqa: F811
    """No piece is too large, all of them are: a fault on the way to the document, and of it."""
    service = serve(EC2)
    service.before = lambda path: (200, {}) if "/macs/0" in path else None
    service.instead = bytes(512 << 10)
    ask.at("aws", service.url)
    with pytest.raises(DocumentError, match="more than 4 MiB") as caught:
        ask(ON_EC2)
    assert caught.value.hint == "this is what the metadata of Amazon EC2 say"


def test_the_journal_is_not_filled_with_cards_that_nobody_has(
        ask: Asking, serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    service = serve(EC2)
    service.before = lambda path: (200, {}) if path.endswith("/macs/") else None
    service.instead = "".join(f"02:00:00:00:00:0{number}/\n" for number in range(7)).encode() + ENS3.mac.encode()
    ask.at("aws", service.url)
    monkeypatch.setattr(platform, "MOST_NOTES", 3)
    ask(ON_EC2)
    assert sum("no card has MAC" in line for line in ask.lines) == 3
    assert ask.lines[-1] == "Amazon EC2: 4 more of that kind"


UP = (replace(ENS3, carrier=True), replace(ENS4, carrier=True))
LIST = "GET /2021-01-03/meta-data/network/interfaces/macs/"


class LateCard:
    """EC2, which lists its second card from the `after`th question on; until then it does what `until` says."""

    def __init__(self, service: Any, after: int, until: tuple[int, dict[str, str]] = (200, {})) -> None:
        self.service, self.after, self.until = service, after, until
        service.before, service.instead = self.before, f"{ENS3.mac}/\n".encode()

    @property
    def asked(self) -> int:
        return int(self.service.requests.count(LIST))

    def before(self, path: str) -> tuple[int, dict[str, str]] | None:
        if not path.endswith("/macs/") or self.asked >= self.after:
            return None
        return self.until if self.asked > 1 else (200, {})


@pytest.mark.parametrize("until", [(200, {}), (503, {}), (404, {}), (403, {})])
def test_a_card_that_is_listed_late(
        ask: Asking, serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch,  # noqa: F811
        until: tuple[int, dict[str, str]]) -> None:
    """It was plugged in a moment ago; NetworkManager holds it back meanwhile."""
    monkeypatch.setattr(platform, "NIC_WAIT", 15.0)
    service = serve(EC2)
    late = LateCard(service, 4, until)
    ask.at("aws", service.url)
    config = understand_document(ask(replace(ON_EC2, nics=UP)).data).config
    assert [entry["mac-address"] for entry in config["interfaces"]] == [ENS3.mac.upper(), ENS4.mac.upper()]
    assert (late.asked, ask.fake.slept) == (4, [1.0, 1.0, 1.0])
    # What the others said before isn't asked for once more.
    assert len(service.requests) == 1 + 4 + 12
    assert any("does not list ens4 yet" in line for line in ask.lines)


def test_a_card_that_is_never_listed(
        ask: Asking, serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """Counted from the beginning: before NetworkManager connects the card without its addresses."""
    monkeypatch.setattr(platform, "NIC_WAIT", 15.0)
    service = serve(EC2)
    late = LateCard(service, 99)
    ask.at("aws", service.url)
    reply = ask(replace(ON_EC2, nics=UP))
    assert not reply.partial
    assert len(understand_document(reply.data).config["interfaces"]) == 1
    assert (late.asked, sum(ask.fake.slept)) == (16, 15.0)
    ask.fake.slept.clear()
    ask(replace(ON_EC2, nics=UP), within=5.0)
    assert sum(ask.fake.slept) <= 4.0


@pytest.mark.parametrize("other", [
    replace(ENS4, carrier=False), replace(ENS4, carrier=None), replace(ENS4, carrier=True, usb=True),
    replace(ENS4, carrier=True, virtual=True, kind="veth"), replace(ENS4, carrier=True, virtual=True, kind="bridge")])
def test_a_card_that_is_none_of_the_platforms(
        ask: Asking, serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, other: Nic) -> None:  # noqa: F811
    monkeypatch.setattr(platform, "NIC_WAIT", 15.0)
    service = serve(EC2)
    late = LateCard(service, 99)
    ask.at("aws", service.url)
    ask(replace(ON_EC2, nics=(UP[0], other)))
    assert (late.asked, ask.fake.slept) == (1, [])


def test_a_card_that_networkmanager_leaves_alone(
        ask: Asking, serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setattr(platform, "NIC_WAIT", 15.0)
    monkeypatch.setattr(platform, "unmanaged", lambda: frozenset(("ens4",)))
    service = serve(EC2)
    late = LateCard(service, 99)
    ask.at("aws", service.url)
    ask(replace(ON_EC2, nics=UP))
    assert (late.asked, ask.fake.slept) == (1, [])


def test_a_card_of_a_platform_that_has_no_list(
        ask: Asking, serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """Oracle's bare metal has cards without a VNIC, for good."""
    monkeypatch.setattr(platform, "NIC_WAIT", 15.0)
    ask.at("oraclecloud", serve("oraclecloud-virtual-machine").url)
    ask(replace(NOWHERE, nics=(*UP, Nic("ens9", 9, "02:00:00:00:00:99", "02:00:00:00:00:99", carrier=True))),
        platform="oraclecloud")
    assert ask.fake.slept == []


def test_routers_that_were_advertised(monkeypatch: pytest.MonkeyPatch) -> None:
    from homeport.host.proof import kernel
    routes = [kernel.Route(2, "::", 0, "fe80::1", 900, 254), kernel.Route(3, "0.0.0.0", 0, "10.0.2.1", 900, 254),
              kernel.Route(3, "2001:db8::", 64, "fe80::9", 900, 254), kernel.Route(9, "::", 0, "fe80::2", 900, 254),
              kernel.Route(2, "::", 0, "fe80::7", 10, 30400)]  # our own, by the router of before
    routes = [*routes, kernel.Route(3, "::", 0, "fe80::3", 10, 30401)]  # the same, where none is advertised just now
    monkeypatch.setattr(kernel, "read_network", lambda: kernel.Network((), (), tuple(routes)))
    assert {mac: str(ip) for mac, ip in platform.routers((ENS3, ENS4)).items()} == {
        ENS3.mac: "fe80::1", ENS4.mac: "fe80::3"}


@pytest.mark.parametrize(("settings", "least", "most"), [({}, 20.0, 31.0), ({"platform_persist": "yes"}, 100.0, 121.0)])
def test_a_machine_that_has_dhcp_all_the_same_waits_less(
        ask: Asking, settings: dict[str, Any], least: float, most: float) -> None:
    ask.at("aws", "http://127.0.0.1:1")
    with pytest.raises(Unreachable):
        ask(ON_EC2, **settings)
    assert least < sum(ask.fake.slept) < most


def test_policy_routing_off(ask: Asking, serve: Callable[..., Any]) -> None:  # noqa: F811
    ask.at("aws", serve(EC2).url)
    assert "route-rules" in understand_document(ask(ON_EC2).data).config
    assert "route-rules" not in understand_document(ask(ON_EC2, policy_routing="off").data).config


@pytest.mark.parametrize(("text", "servers"), [
    ("search a\nnameserver 192.0.2.53\nnameserver 2001:db8::53 # x\n", ["192.0.2.53", "2001:db8::53"]),
    ("nameserver 127.0.0.53\n", []),
    ("nameserver\nnameserver fe80::1%eth0\nnameserver x\n", []),
    ("", []),
])
def test_servers_in_use(tmp_path: Path, text: str, servers: list[str]) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/resolv.conf").write_text(text)
    assert [str(server) for server in platform.servers(tmp_path)] == servers


def test_a_drive_that_cannot_be_read_outweighs_none(ask: Asking) -> None:
    (ask.root / "dev/disk/by-label/cidata").mkdir(parents=True)
    with pytest.raises(SourceError, match="Cannot read the drive") as caught:
        ask(NOWHERE)
    assert not isinstance(caught.value, NoAssignment)
