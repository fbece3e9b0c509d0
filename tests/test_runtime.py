"""What runs card by card: how a change, a card that cannot be read, and one that fails are planned and remembered.

A NetworkManager that only tells of its devices, and a current state that is what was put in force last.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from ipaddress import ip_interface
from pathlib import Path
from typing import Any

import pytest

from homeport import boot, planning, runtime
from homeport.core import beside, platforms
from homeport.core.complaint import Complaint
from homeport.core.document import Assignment, parse_document, understand_document
from homeport.core.facts import Facts, Nic, Stage
from homeport.core.nics import resolve
from homeport.core.plan import Plan, refuse_to_move
from homeport.core.platforms.network import Network
from homeport.core.platforms.rendering import render
from homeport.core.platforms.vnics import Vnic, configure
from homeport.core.yamlwrite import render_yaml
from homeport.errors import ApplyError, HomeportError, RootOnNetwork
from homeport.host import preflight, profiles, reapply
from homeport.host.nm.values import Device, DeviceState
from homeport.host.store import RECONCILES, Manifest, OwnedFile, Store
from homeport.machine import Machine
from homeport.report import Report
from homeport.settings import Settings
from homeport.sources import Reply

A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
NICS = (Nic("ens3", 2, A, A), Nic("ens4", 3, B, B))
ONE, TWO = ("10.0.1.10", "10.0.1.11"), ("10.0.2.10", "10.0.2.11")
PROFILE = {"connection": {"id": ("s", "theirs")}, "ipv4": {"method": ("s", "auto")}, "ipv6": {"method": ("s", "auto")}}
MAKE_PLAN = planning.make_plan


class FakeManager:
    """Every card with the same profile, and what it runs with beside it."""

    def __init__(self, held: Callable[[str], Sequence[str]], skipped: Collection[str] = ()) -> None:
        self.held, self.skipped = held, skipped

    def devices(self) -> list[Device]:
        return [Device(f"/{nic.name}", nic.name, 1, DeviceState.ACTIVATED, profile=nic.name, profile_id="theirs")
                for nic in NICS]

    def active_profiles(self) -> list[Any]:
        return []

    def profiles(self) -> list[Any]:
        return []

    def profile_settings(self, uuid: str) -> dict[str, Any]:
        skip = {"user": {"data": ("a{ss}", {beside.SKIP[1]: "yes"})}}
        return PROFILE | (skip if uuid in self.skipped else {})

    def applied(self, path: str) -> tuple[dict[str, Any], int]:
        rows = [{"address": ("s", each), "prefix": ("u", 24)} for each in self.held(path.strip("/"))]
        ipv4 = {**PROFILE["ipv4"], "address-data": ("aa{sv}", rows), "route-metric": ("x", int(path[-1]) * 100 - 200)}
        return {**PROFILE, "ipv4": ipv4}, 1


class Story:
    """A machine whose cards have what was put in force last; `fails` are those that refuse, `skipped` those whose
    profile says that they are to be left alone, `away` the addresses that DHCP does not bring.
    """

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state: dict[str, Any] = {"interfaces": [{"name": nic.name} for nic in NICS]}
        self.fails: set[str] = set()
        self.away: set[str] = set()
        self.waited: dict[str, frozenset[str]] = {}
        self.skipped: set[str] = set()
        self.protected: frozenset[str] = frozenset()
        self.touched: list[str] = []
        self.root, self.store = root, Store(root)
        monkeypatch.setattr(planning, "current_state", lambda machine: self.shown())
        # The plan for whole profiles, of which nothing remains.
        monkeypatch.setattr(planning, "make_plan", lambda machine, assignment: Plan(assignment, {}))
        monkeypatch.setattr(boot, "put_in_force", lambda machine, part, reply: self.put_in_force(part))
        monkeypatch.setattr(reapply, "wait_for", self.wait_for)

    def shown(self) -> dict[str, Any]:
        routes = self.state.get("routes", {}).get("config", [])
        return {**self.state, "routes": {"running": routes, "config": routes}}

    def addresses(self, name: str) -> list[str]:
        return [item["ip"] for entry in self.state["interfaces"] if entry["name"] == name
                for item in entry.get("ipv4", {}).get("address", ())]

    def put_in_force(self, part: Plan) -> None:
        if part.in_force:
            return
        (name,) = part.interfaces
        if name in self.fails:
            raise ApplyError(f"{name} refuses")
        refuse_to_move(part, self.protected)
        self.touched.append(name)
        left = beside.without(self.state, {name})
        self.state = {
            "interfaces": [*left["interfaces"], *part.desired["interfaces"]],
            **{section: {"config": [*left[section]["config"], *(
                each for each in part.desired.get(section, {}).get("config", ())
                if each.get("state") is None and each not in left[section]["config"])]}
               for section in ("routes", "route-rules")}}

    def wait_for(self, leased: dict[str, frozenset[str]], seconds: float) -> list[str]:
        self.waited = leased
        return sorted(self.away & {ip for ips in leased.values() for ip in ips})

    def hears(self, *vnics: Vnic | None, kept: Reply | None = None) -> Machine:
        """A run that is told this; None is a card that cannot be read. With `kept` it is told that."""
        self.touched = []
        machine = Machine(self.root, Settings(), Stage.HOST, self.store, Report(), facts=Facts(nics=NICS))
        machine._protected = self.protected
        machine._manager = FakeManager(self.addresses, self.skipped)  # type: ignore[assignment]
        network = Network(platforms.Situation(NICS))
        configure(network, vnics)
        reply = kept or Reply(
            render_yaml(render(network).tree).encode(), source="platform aws", content_type="application/yaml",
            volatile=True, reconciles=True, partial=None in vnics)
        boot.keep(machine, reply, understand_document(reply.data))
        return machine

    def remembered(self, name: str) -> list[str]:
        config = parse_document(self.store.read_assigned() or b"").config
        return [item["ip"] for entry in resolve(config, NICS).config["interfaces"] if entry["name"] == name
                for item in entry["ipv4"].get("address", ())]

    def rules(self) -> set[str]:
        return {rule["ip-from"] for rule in self.state.get("route-rules", {}).get("config", ()) if "ip-from" in rule}


@pytest.fixture
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Story:
    return Story(tmp_path, monkeypatch)


def vnic(mac: str, *addresses: str) -> Vnic:
    return Vnic(mac, [ip_interface(f"{address}/24") for address in addresses])


def hosts(*addresses: str) -> set[str]:
    return {f"{address}/32" for address in addresses}


def test_only_the_card_that_changes_is_touched(story: Story) -> None:
    story.hears(vnic(A, *ONE), vnic(B, *TWO))
    assert story.touched == ["ens3", "ens4"]
    story.hears(vnic(A, *ONE), vnic(B, *TWO))
    assert story.touched == []
    story.hears(vnic(A, *ONE), vnic(B, *TWO[:1]))
    assert story.touched == ["ens4"]
    assert (story.addresses("ens3"), story.addresses("ens4")) == ([*ONE], [*TWO[:1]])
    assert story.rules() == hosts(*ONE, *TWO[:1])


def test_what_went_while_a_card_could_not_be_read_goes_once_it_can(story: Story) -> None:
    """A card that nothing is remembered of would have a stranger's address then, for good."""
    story.hears(vnic(A, *ONE), vnic(B, *TWO))
    story.hears(None, vnic(B, *TWO[:1]))
    assert story.touched == ["ens4"]
    assert (story.addresses("ens3"), story.remembered("ens3")) == ([*ONE], [*ONE])
    assert story.store.read_manifest().beside == ("ens4", "ens3")  # what `reset` takes back
    story.hears(None, vnic(B, *TWO[:1]))
    assert story.touched == []
    story.hears(vnic(A, *ONE[:1]), vnic(B, *TWO[:1]))
    assert story.touched == ["ens3"]
    assert (story.addresses("ens3"), story.rules()) == ([*ONE[:1]], hosts(ONE[0], TWO[0]))


def test_a_card_that_went_while_another_could_not_be_read(story: Story) -> None:
    """Which one it was that went cannot be said yet: both have what they had, until all can be read."""
    story.hears(vnic(A, *ONE), vnic(B, *TWO))
    story.hears(vnic(A, *ONE), None)
    assert story.touched == []
    story.hears(vnic(A, *ONE))
    assert story.touched == ["ens4"]
    assert (story.addresses("ens4"), story.rules()) == ([], hosts(*ONE))


def test_a_service_that_is_away_after_that(story: Story) -> None:
    """The last-known-good document has all of the cards."""
    story.hears(vnic(A, *ONE), vnic(B, *TWO))
    story.hears(None, vnic(B, *TWO[:1]))
    manifest = story.store.read_manifest()
    kept = Reply(story.store.read_assigned() or b"", source=manifest.source, volatile=True, reconciles=True)
    story.hears(kept=kept)
    assert story.touched == []
    assert (story.addresses("ens3"), story.addresses("ens4")) == ([*ONE], [*TWO[:1]])


def test_nothing_is_taken_from_what_another_platform_said(story: Story) -> None:
    story.hears(vnic(A, *ONE), vnic(B, *TWO))
    network = Network(platforms.Situation(NICS))
    configure(network, [None, vnic(B, *TWO)])
    reply = Reply(render_yaml(render(network).tree).encode(), source="platform gcp", volatile=True, reconciles=True,
                  partial=True)
    machine = Machine(story.root, Settings(), Stage.HOST, story.store, Report(), facts=Facts(nics=NICS))
    assignment = understand_document(reply.data)
    assert runtime.with_unread(machine, reply, assignment) == (reply, assignment)


def test_a_card_that_cannot_be_read_keeps_its_profile_too(story: Story) -> None:
    """PlatformPersist=yes: what is put on disk has the card as it was."""
    story.hears(vnic(A, *ONE), vnic(B, *TWO))
    data, manifest = story.store.read_assigned() or b"", story.store.read_manifest()
    story.store.forget_running()
    story.store.keep_document(data)
    story.store.write_manifest(replace(manifest, volatile=False))
    network = Network(platforms.Situation(NICS))
    configure(network, [None, vnic(B, *TWO[:1])])
    reply = Reply(render_yaml(render(network).tree).encode(), source="platform aws", reconciles=True, partial=True)
    machine = Machine(story.root, Settings(), Stage.HOST, story.store, Report(), facts=Facts(nics=NICS))
    whole, assignment = runtime.with_unread(machine, reply, understand_document(reply.data))
    assert assignment == understand_document(whole.data)
    entries = resolve(assignment.config, NICS).config["interfaces"]
    assert {entry["name"]: [item["ip"] for item in entry["ipv4"]["address"]] for entry in entries} == {
        "ens3": [*ONE], "ens4": [*TWO[:1]]}
    assert machine.report.revision == assignment.revision


def test_what_comes_while_it_is_put_in_force_is_heard(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """NetworkManager's dispatcher asks for a refresh only on a machine that is known to be on such a platform."""
    marked = []

    def put_in_force(machine: Machine, part: Plan, _reply: Reply) -> None:
        marked.append((machine.root / RECONCILES).exists())
        story.put_in_force(part)

    monkeypatch.setattr(boot, "put_in_force", put_in_force)
    story.hears(vnic(A, *ONE), vnic(B, *TWO))
    assert marked == [True, True]


def test_a_card_that_fails_is_remembered_as_it_is(story: Story) -> None:
    """And what should have gone from it goes with the next run, or the one after that."""
    story.hears(vnic(A, *ONE), vnic(B, *TWO))
    story.fails = {"ens4"}
    machine = story.hears(vnic(A, *ONE[:1]), vnic(B, *TWO[:1]))
    assert machine.report.exit == ApplyError.status
    assert story.touched == ["ens3"]
    assert (story.remembered("ens3"), story.remembered("ens4")) == ([*ONE[:1]], [*TWO])
    assert story.store.read_manifest().revision == ""  # nobody takes it for what was assigned
    story.fails = set()
    story.hears(vnic(A, *ONE[:1]), vnic(B, *TWO[:1]))
    assert story.touched == ["ens4"]
    assert (story.addresses("ens4"), story.rules()) == ([*TWO[:1]], hosts(ONE[0], TWO[0]))


def test_the_addresses_that_dhcp_brings_are_waited_for(
        story: Story, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Those of the cards that changed; what stays away is said, and is no failure."""
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(beside, "leased", lambda state, card: frozenset({f"of {state['interfaces'][0]['name']}"}))
    story.fails, story.away = {"ens4"}, {"of ens3"}
    machine = story.hears(vnic(A, *ONE), vnic(B, *TWO))
    assert story.waited == {"ens3": {"of ens3"}}
    assert "DHCP has not brought of ens3 yet, going on without" in caplog.text
    story.fails, story.away = set(), set()
    machine = story.hears(vnic(A, *ONE), vnic(B, *TWO))
    assert story.waited == {"ens4": {"of ens4"}} and machine.report.exit == 0


def test_a_card_that_went_and_could_not_be_cleared(story: Story) -> None:
    story.hears(vnic(A, *ONE), vnic(B, *TWO))
    story.fails = {"ens4"}
    story.hears(vnic(A, *ONE[:1]))
    assert story.remembered("ens4") == [*TWO]
    story.fails = set()
    story.hears(vnic(A, *ONE[:1]))
    assert (story.touched, story.addresses("ens4")) == (["ens4"], [])


def test_a_card_that_is_to_be_left_alone_from_now_on(story: Story) -> None:
    """Nothing is done to it, and `reset` still knows that something was."""
    story.hears(vnic(A, *ONE), vnic(B, *TWO))
    story.skipped = {"ens4"}
    story.hears(vnic(A, *ONE[:1]), vnic(B, *TWO[:1]))
    assert (story.touched, story.addresses("ens4")) == (["ens3"], [*TWO])
    assert story.store.read_manifest().beside == ("ens3", "ens4")


def test_a_new_card_that_fails_has_nothing(story: Story) -> None:
    story.fails = {"ens4"}
    story.hears(vnic(A, *ONE), vnic(B, *TWO))
    assert (story.remembered("ens3"), story.remembered("ens4")) == ([*ONE], [])
    assert story.store.read_manifest().beside == ("ens3", "ens4")
    story.fails = set()
    story.hears(vnic(A, *ONE), vnic(B, *TWO))
    assert (story.touched, story.addresses("ens4")) == (["ens4"], [*TWO])


def test_if_none_can_be_put_in_force_the_first_one_says_why(story: Story) -> None:
    story.fails = {"ens3", "ens4"}
    with pytest.raises(HomeportError, match="ens3 refuses"):
        story.hears(vnic(A, *ONE), vnic(B, *TWO))
    assert story.store.read_assigned() is None


def test_a_card_under_the_root_file_system_is_left_as_it_is(story: Story) -> None:
    """The others are not: each is put in force by itself. It is remembered as it is, for when it can be changed."""
    story.protected = frozenset(("ens3",))
    machine = story.hears(vnic(A, *ONE), vnic(B, *TWO))
    assert (story.touched, story.addresses("ens3")) == (["ens4"], [])
    assert machine.report.exit == 0
    assert any("ens3 is left as it is: the root file system stands on it" in step.note for step in machine.report.steps)
    assert (story.remembered("ens3"), story.remembered("ens4")) == ([], [*TWO])
    story.hears(vnic(A, *ONE), vnic(B, *TWO[:1]))
    assert (story.touched, story.addresses("ens4")) == (["ens4"], [*TWO[:1]])
    story.protected = frozenset()
    story.hears(vnic(A, *ONE), vnic(B, *TWO[:1]))
    assert (story.touched, story.addresses("ens3")) == (["ens3"], [*ONE])


def test_nothing_is_taken_from_a_card_that_is_left_out(
        story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rules are in no document that leaves it out, and are to stay."""
    story.hears(vnic(A, *ONE), vnic(B, *TWO))
    monkeypatch.setattr(preflight, "missing", lambda config, **more: [])
    monkeypatch.setattr(profiles, "whose", lambda *arguments: profiles.Ownership((), False))
    monkeypatch.setattr(FakeManager, "version", lambda self: "1.52", raising=False)
    machine = Machine(story.root, Settings(), Stage.HOST, story.store, Report(), facts=Facts(nics=NICS))
    machine._manager = FakeManager(story.addresses)  # type: ignore[assignment]
    config = beside.without(resolve(parse_document(story.store.read_assigned() or b"").config, NICS).config, {"ens3"})
    assignment = understand_document(render_yaml(config).encode())
    for without, gone in (((), hosts(*ONE)), (("ens3",), set())):
        plan = MAKE_PLAN(machine, assignment, without)
        assert {rule["ip-from"] for rule in plan.desired["route-rules"]["config"] if rule.get("state")} == gone


def test_a_card_under_the_root_file_system_and_no_other(story: Story) -> None:
    story.protected = frozenset(("ens3",))
    with pytest.raises(RootOnNetwork):
        story.hears(vnic(A, *ONE))
    assert story.store.read_assigned() is None


METAL = [{"macAddr": A, "vlanTag": 0, "nicIndex": 0, "privateIp": "10.0.1.10", "virtualRouterIp": "10.0.1.1",
          "subnetCidrBlock": "10.0.1.0/24"},
         {"macAddr": "02:00:00:00:00:a1", "vlanTag": 5, "nicIndex": 0, "privateIp": "10.0.5.10",
          "virtualRouterIp": "10.0.5.1", "subnetCidrBlock": "10.0.5.0/24"}]


class Metal:
    """Oracle's bare metal with its root on iSCSI: the plans that are made for it, after a first one of all of it."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.without: list[frozenset[str]] = []
        self.configs: list[dict[str, Any]] = []
        self.machine = Machine(root, Settings(), Stage.HOST, Store(root), Report(), facts=Facts(nics=NICS))
        self.machine._protected = frozenset(("ens3",))
        self.machine._manager = FakeManager(lambda name: ())  # type: ignore[assignment]
        monkeypatch.setattr(planning, "make_plan", self.make_plan)

    def make_plan(self, machine: Machine, assignment: Assignment, without: frozenset[str] = frozenset()) -> Plan:
        self.without.append(without)
        self.configs.append(assignment.config)
        return Plan(assignment, assignment.config, changes=(Complaint("interfaces", "this", "that"),))

    def plan(self, vnics: list[dict[str, Any]], *, volatile: bool = True) -> Plan:
        found = platforms.find("oraclecloud")
        assert found is not None
        files = {"opc/v2/vnics/": json.dumps(vnics).encode()}
        data = render_yaml(platforms.make(found, files, platforms.Situation(NICS)).tree).encode()
        assignment = understand_document(data)
        resolved = resolve(assignment.config, NICS).config
        whole = Plan(assignment, resolved, changes=(Complaint("interfaces", "this", "that"),))
        return runtime.beside_profiles(
            self.machine, whole, Reply(data, source="platform oraclecloud", volatile=volatile, reconciles=True))


@pytest.fixture
def metal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Metal:
    return Metal(tmp_path, monkeypatch)


def test_vlans_of_a_card_under_the_root_file_system(metal: Metal) -> None:
    """What stands on it comes, with its routes and rules; those of the card itself are not touched."""
    plan = metal.plan(METAL)
    refuse_to_move(plan, {"ens3"})
    (config,) = metal.configs
    assert [entry["name"] for entry in config["interfaces"]] == ["macvlan1", "macvlan1.5"]
    assert config["interfaces"][0]["mac-vlan"]["base-iface"] == "ens3"
    assert {route["next-hop-interface"] for route in config["routes"]["config"]} == {"macvlan1.5"}
    assert {rule["ip-from"] for rule in config["route-rules"]["config"] if "ip-from" in rule} == {"10.0.5.10/32"}
    assert metal.without == [{"ens3"}]  # nor are they taken away, if they were there before
    assert plan.left_alone == {"ens3"}


@pytest.mark.parametrize(("mtu", "given"), [("1500\n", 1500), ("9000\n", 9000), ("", 9000)])
def test_what_stands_on_a_card_has_no_larger_mtu(metal: Metal, tmp_path: Path, mtu: str, given: int) -> None:
    """The firmware's iSCSI leaves the card at 1500, and the kernel would refuse Oracle's 9000 above it."""
    (tmp_path / "sys/class/net/ens3").mkdir(parents=True)
    (tmp_path / "sys/class/net/ens3/mtu").write_text(mtu)
    metal.plan(METAL)
    assert [entry["mtu"] for entry in metal.configs[0]["interfaces"]] == [given, given]


def test_a_card_under_the_root_file_system_without_vlans(metal: Metal) -> None:
    plan = metal.plan(METAL[:1], volatile=False)
    assert metal.configs == []
    with pytest.raises(RootOnNetwork):
        refuse_to_move(plan, {"ens3"})


def test_a_profile_on_disk_is_not_taken_away_by_leaving_its_card_out(metal: Metal) -> None:
    """PlatformPersist=yes, and the initramfs has put all of it in force and kept it."""
    assert metal.plan(METAL, volatile=False).left_alone == {"ens3"}
    metal.machine.store.write_manifest(Manifest(keyfiles=(OwnedFile("etc/a", interface="ens3"),)))
    with pytest.raises(RootOnNetwork):
        refuse_to_move(metal.plan(METAL, volatile=False), {"ens3"})
