import json
from pathlib import Path

import pytest

from homeport.core.facts import Nic
from homeport.core.keyfile import (
    OWNED,
    Keyfile,
    KeyfileError,
    escape_gc,
    file_name,
    is_ours,
    own_profile,
    own_profiles,
    parse,
    stable_uuid,
)

CASES = Path(__file__).parent.parent / "data" / "keyfiles"
UUID = "0b7a1e9c-6a0f-4a6e-8a37-2f5f6d2f2a11"
NIC = Nic(name="eth0", permanent_mac="52:54:00:aa:bb:cc")


def own(text: str, *, nic: Nic | None = NIC, name: str = "eth0", wait_ip: str | None = None,
        **references: str) -> Keyfile:
    head = "[connection]\ntype=ethernet\ninterface-name=eth0\n"
    text = text if text.startswith("[connection]") else head + text
    return own_profile(text, uuid=UUID, name=name, nic=nic, tags={"revision": "7"},
                       references=references, wait_ip=wait_ip)


def made(case: Path) -> dict[str, str]:
    """What we make of the case's `in/`: file name -> text."""
    texts = {path.stem: path.read_text() for path in sorted((case / "in").iterdir())}
    if case.name.endswith("-gc"):
        texts = {name: escape_gc(text) for name, text in texts.items()}
    nics = [Nic(**nic) for nic in json.loads((case / "nics.json").read_text())]
    profiles = own_profiles(texts, uuids={name: stable_uuid("golden", name) for name in texts}, nics=nics,
                            tags={"revision": "golden"})
    return {file_name(name): profile.render() for name, profile in profiles.items()}


@pytest.mark.parametrize("case", sorted(CASES.iterdir()), ids=lambda case: case.name)
def test_golden(case: Path) -> None:
    assert made(case) == {path.name: path.read_text() for path in (case / "out").iterdir()}


@pytest.mark.parametrize("case", sorted(CASES.iterdir()), ids=lambda case: case.name)
def test_what_is_ours_stays_as_it_is(case: Path) -> None:
    for path in (case / "out").iterdir():
        profile = parse(path.read_text())
        assert is_ours(profile)
        name = path.stem.removeprefix("homeport-")
        again = own_profile(path.read_text(), uuid=profile.raw("connection", "uuid") or "", name=name,
                            nic=None, tags={"revision": "golden"})
        assert again == profile


# What a profile is called and how it finds its NIC.

@pytest.mark.parametrize(("old", "kept"), [
    ("id=eth0\n", "homeport-eth0"),                    # nmstate's own: the interface's name
    ("", "homeport-eth0"),
    ("id=Uplink of rack 7\n", "Uplink of rack 7"),     # the document's `profile-name`
    ("id=a\\x\n", "homeport-eth0"),                    # NetworkManager would drop it
    ("id=a\\nb\n", "homeport-eth0"),
])
def test_id(old: str, kept: str) -> None:
    text = f"[connection]\n{old}type=ethernet\ninterface-name=eth0\n"
    assert own(text).get("connection", "id") == kept


def test_a_nic_with_a_permanent_mac_is_found_under_any_name() -> None:
    profile = own("[ethernet]\ncloned-mac-address=02:00:00:00:00:99\n")
    assert profile.raw("connection", "interface-name") is None
    assert profile.get_mac("ethernet", "mac-address") == "52:54:00:aa:bb:cc"
    assert profile.raw("ethernet", "cloned-mac-address") == "02:00:00:00:00:99"


@pytest.mark.parametrize(("nic", "text"), [
    (None, ""),
    (Nic(name="eth0"), ""),                                            # a veth
    (Nic(name="eth0", permanent_mac="52:54:00:aa:bb:cc", virtual=True), ""),
])
def test_a_nic_without_one_is_found_by_name(nic: Nic | None, text: str) -> None:
    profile = own(text, nic=nic)
    assert profile.raw("connection", "interface-name") == "eth0"
    assert profile.raw("ethernet", "mac-address") is None


@pytest.mark.parametrize("kind", ["bond", "bridge", "vlan", "infiniband"])
def test_only_ethernet_is_matched_by_mac(kind: str) -> None:
    profile = own(f"[connection]\ntype={kind}\ninterface-name=x0\n")
    assert profile.raw("connection", "interface-name") == "x0"
    assert not profile.has("ethernet")


def test_a_profile_that_names_no_nic_does_not_take_any() -> None:
    # gc of `identifier: mac-address` without a MAC
    profile = own("[connection]\nid=eth0\ntype=802-3-ethernet\n", nic=None)
    assert profile.raw("connection", "interface-name") == "eth0"
    assert profile.raw("connection", "type") == "ethernet"


def test_a_mac_of_the_document_stays_where_the_nic_is_unknown() -> None:
    profile = own("[connection]\ntype=ethernet\n[ethernet]\nmac-address=52:54:00:00:00:07\n", nic=None)
    assert profile.raw("connection", "interface-name") is None


def test_a_slot_of_the_document_is_not_narrowed_to_a_card() -> None:
    profile = own("[connection]\ntype=ethernet\n[match]\npath=pci-0000:00:03.0;\n")
    assert profile.raw("ethernet", "mac-address") is None


@pytest.mark.parametrize(("section", "key", "old", "new"), [
    ("connection", "master", "bond0", "U-bond"),
    ("vlan", "parent", "eth1", "U-eth1"),
    ("macvlan", "parent", "11655ff4-09bf-500f-9f38-9bfcc91ab36b", "U-old"),
    ("vxlan", "parent", "eth10", "eth10"),             # not eth1 with something behind it
    ("infiniband", "parent", "eth1", "eth1"),          # NetworkManager takes only a name there
    ("veth", "peer", "eth1", "eth1"),
])
def test_references_go_by_uuid(section: str, key: str, old: str, new: str) -> None:
    text = "[connection]\ntype=vlan\ninterface-name=x0\n"
    text += f"{key}={old}\n" if section == "connection" else f"[{section}]\n{key}={old}\n"
    profile = own_profile(text, uuid=UUID, name="x0", nic=None, tags={}, references={
        "bond0": "U-bond", "eth1": "U-eth1", "11655ff4-09bf-500f-9f38-9bfcc91ab36b": "U-old"})
    assert profile.raw(section, key) == new


def test_two_profiles_of_one_name_are_no_reference() -> None:
    # an Open vSwitch bridge and its internal interface
    head = "[connection]\ninterface-name=br0\ntype="
    texts = {"br0": f"{head}ovs-bridge\n", "br0-if": f"{head}ovs-interface\ncontroller=br0\n"}
    profiles = own_profiles(texts, uuids={name: stable_uuid("m", name) for name in texts}, nics=[], tags={})
    assert profiles["br0-if"].raw("connection", "master") == "br0"


def test_older_names_are_kept_for_older_networkmanagers() -> None:
    profile = own("[connection]\ntype=ethernet\ncontroller=br0\nport-type=bridge\n", br0="U-br0")
    assert profile.raw("connection", "master") == "U-br0"
    assert profile.raw("connection", "slave-type") == "bridge"


# What is of the moment goes; what is ours is marked.

def test_state_goes() -> None:
    profile = own("[connection]\ntype=ethernet\ntimestamp=1796066245\npermissions=user:root:;\n"
                  "wait-device-timeout=60000\n[.nmmeta]\nshadowed-storage=/etc/x\n")
    assert profile.names() == ("connection", "ethernet", "user")
    assert [key for key, _ in profile.items("connection")] == ["id", "uuid", "type", "autoconnect-priority"]


@pytest.mark.parametrize(("old", "new"), [
    ("", "130"), ("autoconnect-priority=-999\n", "130"),    # "Wired connection 1", edited by nmstate
    ("autoconnect-priority=500\n", "500"),
])
def test_priority(old: str, new: str) -> None:
    assert own("[connection]\ntype=ethernet\n" + old).raw("connection", "autoconnect-priority") == new


def test_marks() -> None:
    profile = own("[user]\nnmstate.interface.description=Main\nio.homeport.owned=somebody\nio.homeport.x=y\n")
    assert profile.items("user") == (
        (OWNED, UUID), ("io.homeport.revision", "7"),
        ("nmstate.interface.description", "Main"),
        ("org.freedesktop.NetworkManager.origin", "homeport"))


def test_a_clone_is_not_ours() -> None:
    profile = own("")
    assert is_ours(profile)
    assert not is_ours(profile.set("connection", "uuid", stable_uuid("m", "clone")))
    assert not is_ours(profile.remove("user"))


def test_secrets_stay() -> None:
    profile = own("[802-1x]\neap=tls;\nidentity=me\nprivate-key-password=p\\\\w\n")
    assert profile.get("802-1x", "private-key-password") == r"p\w"


# Numbers.

@pytest.mark.parametrize(("old", "new"), [
    (["address0=10.0.0.1/8", "address1=10.0.0.2/8"], ["address1=10.0.0.1/8", "address2=10.0.0.2/8"]),
    (["route0=0.0.0.0/0,10.0.0.9", "route0_options=table=254", "route2=10.1.0.0/16"],
     ["route1=0.0.0.0/0,10.0.0.9", "route1_options=table=254", "route2=10.1.0.0/16"]),
    # by number, not by spelling
    (["address10=10.0.0.3/8", "address9=10.0.0.2/8"], ["address1=10.0.0.2/8", "address2=10.0.0.3/8"]),
    (["address=10.0.0.1/8", "address1=10.0.0.2/8"], ["address1=10.0.0.1/8", "address2=10.0.0.2/8"]),
    (["routing-rule0=priority 5 from 10.0.0.1 table 7"], ["routing-rule1=priority 5 from 10.0.0.1 table 7"]),
    (["addresses1=10.0.0.1;8;0.0.0.0;"], ["addresses1=10.0.0.1;8;0.0.0.0;"]),  # the older form is another key
])
def test_numbering(old: list[str], new: list[str]) -> None:
    profile = own("[ipv4]\nmethod=manual\n" + "\n".join(old) + "\n")
    lines = [f"{key}={raw}" for key, raw in profile.items("ipv4")]
    assert [line for line in lines if line.startswith(("address", "rout"))] == new


def test_one_number_twice_is_refused() -> None:
    with pytest.raises(KeyfileError, match="of one number"):
        own("[ipv4]\naddress1=10.0.0.1/8\naddress01=10.0.0.2/8\n")


# Waits.

@pytest.mark.parametrize(("text", "left"), [
    ("[ipv4]\nmethod=auto\ndhcp-timeout=2147483647\n", {"dhcp-timeout": "45"}),
    ("[ipv4]\nmethod=auto\ndhcp-timeout=90\n", {"dhcp-timeout": "90"}),     # a user's own
    ("[ipv4]\nmethod=manual\naddress1=10.0.0.1/8\ndhcp-timeout=2147483647\n", {"dhcp-timeout": None}),
    ("[ipv6]\nmethod=auto\nra-timeout=2147483647\ndhcp-timeout=2147483647\n",
     {"ra-timeout": "45", "dhcp-timeout": "45"}),
    ("[ipv6]\nmethod=dhcp\n", {"ra-timeout": None, "dhcp-duid": "ll", "dhcp-iaid": "mac"}),
    ("[ipv4]\nmethod=auto\n", {"dhcp-client-id": "mac"}),
    ("[ipv4]\nmethod=auto\ndhcp-client-id=01:02\n", {"dhcp-client-id": "01:02"}),
    ("[ipv4]\nmethod=manual\naddress1=10.0.0.1/8\n", {"dhcp-client-id": None}),
])
def test_waits_end(text: str, left: dict[str, str | None]) -> None:
    profile = own(text)
    family = text[1:5]
    assert {key: profile.raw(family, key) for key in left} == left


STATIC, DHCP, LINK, OFF = "manual\naddress1=x", "auto", "link-local", "disabled"


@pytest.mark.parametrize(("ipv4", "ipv6", "wait_ip", "required", "waiting"), [
    (STATIC, OFF, "", {"ipv4"}, set()),
    (STATIC, LINK, "", {"ipv4"}, set()),             # fe80:: alone is no network
    (OFF, DHCP, "", {"ipv6"}, set()),
    (STATIC, DHCP, "", set(), {"ipv4"}),             # one must not take the other down
    (STATIC, STATIC, "", set(), {"ipv4", "ipv6"}),
    (DHCP, DHCP, "", set(), set()),
    (OFF, OFF, "", set(), set()),
    (STATIC, STATIC, "any", set(), set()),           # the document does not want to wait
    (STATIC, DHCP, "ipv6", {"ipv6"}, set()),
    (DHCP, DHCP, "ipv4+ipv6", {"ipv4", "ipv6"}, set()),
])
@pytest.mark.parametrize("before", ["", "may-fail=false\n", "required-timeout=5000\n"])
def test_required_families(ipv4: str, ipv6: str, wait_ip: str, required: set[str], waiting: set[str],
                           before: str) -> None:
    """Whatever an earlier document left in the live profile, the outcome is this document's."""
    profile = own(f"[ipv4]\n{before}method={ipv4}\n[ipv6]\n{before}method={ipv6}\n", wait_ip=wait_ip)
    families = ("ipv4", "ipv6")
    assert {family for family in families if profile.raw(family, "may-fail") == "false"} == required
    assert {family for family in families if profile.raw(family, "required-timeout")} == waiting


def test_a_profile_that_says_what_it_requires_is_believed() -> None:
    profile = own("[ipv4]\nmethod=auto\nmay-fail=true\n[ipv6]\nmethod=disabled\n")
    assert profile.raw("ipv4", "may-fail") == "true"


# Rules that are of no address.

def test_a_rule_of_no_address_is_in_every_profile_that_can_carry_it() -> None:
    loose = "priority 30350 from 0.0.0.0/0 suppress_prefixlength 0 table 254"
    head = "[connection]\ntype=ethernet\ninterface-name="
    texts = {
        "eth0": f"{head}eth0\n[ipv4]\nmethod=manual\naddress1=10.0.0.1/8\n"
                f"routing-rule1=priority 5 from 10.0.0.1 table 7\nrouting-rule2={loose}\n",
        "eth1": f"{head}eth1\n[ipv4]\nmethod=auto\n",
        # the same rule with its words in another order
        "eth2": f"{head}eth2\n[ipv4]\nmethod=auto\n"
                "routing-rule1=priority 30350 table 254 suppress_prefixlength 0 from 0.0.0.0/0\n",
        "eth3": f"{head}eth3\n[ipv4]\nmethod=disabled\n",
    }
    profiles = own_profiles(texts, uuids={name: stable_uuid("m", name) for name in texts}, nics=[], tags={})
    rules = {name: [raw for key, raw in profile.items("ipv4") if key.startswith("routing-rule")]
             for name, profile in profiles.items()}
    assert rules["eth0"] == ["priority 5 from 10.0.0.1 table 7", loose]
    assert rules["eth1"] == [loose]
    assert len(rules["eth2"]) == 1
    assert rules["eth3"] == []


def test_rules_go_by_priority() -> None:
    # nmstate writes them in another order each time
    rules = ["priority 9 from 10.0.0.1 table 7", "priority 30350 from all table 7", "priority 100 to 10.0.0.2 table 7"]
    text = "[connection]\ntype=ethernet\n[ipv4]\nmethod=auto\n"
    one, other = (own_profiles(
        {"eth0": text + "".join(f"routing-rule{n}={rule}\n" for n, rule in enumerate(order))},
        uuids={"eth0": UUID}, nics=[], tags={}) for order in (rules, rules[::-1]))
    assert one == other
    assert one["eth0"].raw("ipv4", "routing-rule2") == rules[2]


@pytest.mark.parametrize(("text", "message"), [
    ("[connection]\nid=x\n", r"\[connection\] type: missing"),
    ("[ethernet]\nmtu=1500\n", r"\[connection\] type: missing"),
    ("[connection]\ntype=ethernet\n[802-3-ethernet]\n[ethernet]\n", "section"),
])
def test_no_profile(text: str, message: str) -> None:
    with pytest.raises(KeyfileError, match=message):
        own_profile(text, uuid=UUID, name="eth0", nic=None, tags={})


@pytest.mark.parametrize("uuid", ["", "x", UUID + "\n[ipv4]"])
def test_no_uuid(uuid: str) -> None:
    with pytest.raises(KeyfileError, match="a UUID"):
        own_profile("[connection]\ntype=ethernet\n", uuid=uuid, name="eth0", nic=None, tags={})
