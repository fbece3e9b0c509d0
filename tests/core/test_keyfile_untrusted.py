import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.core.keyfile import check_untrusted

GOOD = """\
[connection]
id=eth0
uuid=11655ff4-09bf-500f-9f38-9bfcc91ab36b
type=ethernet
interface-name=eth0
{more}
[ipv4]
method=manual
address1=10.0.0.5/24,10.0.0.1
"""


def found(text: str, **expected: str) -> list[str]:
    return [str(complaint) for complaint in check_untrusted(text, **expected)]


def test_a_sound_profile() -> None:
    assert found(GOOD.format(more=""), file_name="eth0.nmconnection", expect_id="eth0",
                 expect_uuid="11655ff4-09bf-500f-9f38-9bfcc91ab36b", expect_interface="eth0") == []


@pytest.mark.parametrize(("more", "complaint"), [
    # what a newline in a description becomes
    ("[user]\nx.y=a\n[connection]\nid=evil", "line 8: second section [connection]"),
    ("id=evil", "line 6: second “id”"),
    ("zone=a\x1b[31m", "line 6: control character U+001B"),
    ("zone=a\0b", "line 6: control character U+0000"),
    # what does not come up at boot
    ("permissions=user:alice:;", "[connection] permissions: binds the profile to a person's login"),
    ("[802-1x]\npassword-flags=1", "[802-1x] password-flags: 1: a person is asked"),
    ("[wifi-security]\npsk-flags=2", "[wifi-security] psk-flags: 2: a person is asked"),
    ("[802-1x]\npassword=<_password_hid_by_nmstate>", "[802-1x] password: nmstate's mask for a secret"),
    ("[.nmmeta]\nshadowed-storage=/etc/x", "[.nmmeta]: NetworkManager's own section"),
    ("[user]\nx.y=a\\x", "[user] x.y: escape “\\x”"),
    ("[802-3-ethernet]\nmtu=9000\n[ethernet]\nmtu=1500", "[802-3-ethernet]: the same section as [ethernet]"),
    # what NetworkManager drops without a word
    ("[ipv6]\nmethod=manual", "[ipv6] method: manual without an address"),
    ("[ipv6]\nmethod=dynamic", "[ipv6] method: “dynamic”"),
    ("[ipv6]\naddress1=10.0.0.1/24", "[ipv6] address1: “10.0.0.1/24”"),
    ("[ipv6]\naddress1=2001:db8::1/129", "[ipv6] address1: “2001:db8::1/129”"),
    ("[ipv6]\naddress1=2001:db8::1/64,x", "[ipv6] address1: “2001:db8::1/64,x”"),
    ("[ipv6]\nroute1=::/0,10.0.0.1", "[ipv6] route1: “::/0,10.0.0.1”"),
    ("[ipv6]\ndns=2001:db8::53;9.9.9.9;", "[ipv6] dns: “2001:db8::53;9.9.9.9;”"),
    ("[ipv6]\nmay-fail=maybe", "[ipv6] may-fail: “maybe”"),
    ("[ipv6]\ngateway=fe80::x", "[ipv6] gateway: “fe80::x”"),
])
def test_holes(more: str, complaint: str) -> None:
    complaints = found(GOOD.format(more=more))
    assert len(complaints) == 1 and complaints[0].startswith(complaint), complaints


@pytest.mark.parametrize("more", [
    "[802-1x]\nca-cert=/etc/pki/ca.pem\npassword-flags=0",
    "[ipv6]\nmethod=auto\ndns=fe80::1%eth0;2001:db8::53#dns.example;\nmay-fail=no\ndhcp-hostname-flags=1",
    "[ipv6]\nmethod=manual\naddress=2001:db8::1\nroute1=::/0\nroute1_options=table=254",
    "[ipv6]\nmethod=manual\naddresses1=2001:db8::1;64;2001:db8::2;",
    "[ipv6]\nroute1=2001:db8:66::/48,,0\nroute1_options=type=blackhole",
])
def test_what_works_is_not_refused(more: str) -> None:
    assert found(GOOD.format(more=more)) == []


@pytest.mark.parametrize(("expected", "complaint"), [
    ({"expect_id": "eth1"}, "[connection] id: “eth0”; “eth1”"),
    ({"expect_uuid": "0"}, "[connection] uuid: “11655ff4-09bf-500f-9f38-9bfcc91ab36b”; “0”"),
    ({"expect_interface": "eth1"}, "[connection] interface-name: “eth0”; “eth1”"),
])
def test_somebody_elses_profile(expected: dict[str, str], complaint: str) -> None:
    assert found(GOOD.format(more=""), **expected) == [complaint]


def test_an_id_that_cannot_be_read_is_not_the_expected_one() -> None:
    assert found("[connection]\nid=a\\x\ntype=dummy\n", expect_id="ax") == [
        "[connection] id: “a\\x”; “ax”", r"[connection] id: escape “\x”; one of \s \n \t \r \\"]


def test_a_profile_by_mac_needs_no_interface() -> None:
    text = "[connection]\ntype=ethernet\n[ethernet]\nmac-address=02:00:00:00:00:01\n"
    assert found(text, expect_interface="eth0") == []
    assert found(text.replace("mac-", "cloned-mac-"), expect_interface="eth0") != []


@pytest.mark.parametrize(("name", "wanted"), [
    ("../../evil.nmconnection", "a plain name in one folder"),
    ("a\\b.nmconnection", "a plain name in one folder"),
    (".hidden.nmconnection", "a plain name in one folder"),
    ("a\nb.nmconnection", "printable characters"),
    ("é" * 128, "at most 255 bytes"),
])
def test_file_names(name: str, wanted: str) -> None:
    complaints = check_untrusted(GOOD.format(more=""), file_name=name)
    assert [complaint.wanted for complaint in complaints] == [wanted]
    assert "\n" not in str(complaints[0])


@pytest.mark.parametrize(("text", "complaint"), [
    ("", "[connection] type: missing"),
    ("[connection]\ntype=foonet\n", "[connection] type: “foonet”"),
    # gc loses these sections (nmstate 2.2.62)
    ("[connection]\ntype=hsr\n", "[hsr]: missing"),
    ("[connection]\ntype=ipvlan\n", "[ipvlan]: missing"),
    ("[connection]\ntype=vpn\n[vpn]\nservice-type=org.freedesktop.NetworkManager.openvpn\n", "[vpn] service-type"),
    ("[connection]\ntype=ethernet\nuuid=7\n", "[connection] uuid: “7”"),
    ("[connection]\ntype=dummy\ninterface-name=a-name-too-long-1\n", "[connection] interface-name"),
    ("[connection]\ntype=dummy\ninterface-name=a/b\n", "[connection] interface-name"),
])
def test_what_is_no_profile(text: str, complaint: str) -> None:
    complaints = found(text)
    assert len(complaints) == 1 and complaints[0].startswith(complaint), complaints


def test_nmstates_own_vpn() -> None:
    assert found("[connection]\ntype=vpn\n[vpn]\nservice-type=org.freedesktop.NetworkManager.libreswan\n") == []


def test_all_at_once_with_the_files_name() -> None:
    complaints = found("[connection]\ntype=x\npermissions=a\nbad\n[ipv4]\nmethod=y\n", file_name="eth0.nmconnection")
    assert [text.split(";")[0] for text in complaints] == [
        "eth0.nmconnection: line 4: “bad”",
        "eth0.nmconnection: [connection] type: “x”",
        "eth0.nmconnection: [connection] permissions: binds the profile to a person's login",
        "eth0.nmconnection: [ipv4] method: “y”",
    ]


def test_many_sections_are_judged_in_one_go() -> None:
    # 100 000 sections: an hour, if each were looked for among the others
    text = GOOD.format(more="") + "".join(f"[{number}]\n" for number in range(100_000))
    assert found(text) == []
    assert len(found("[connection]\ntype=dummy\n[a]\n" + "".join(f"k{n}=\\x\n" for n in range(1000)))) == 100


@given(st.one_of(st.text(), st.text("[]=;\\ \n\0abtype"), st.builds(
    GOOD.__add__, st.text("[]ipv46adresou=;,/:.0123456789\\ \n"))))
def test_any_text_is_judged_and_complaints_are_one_line(text: str) -> None:
    for complaint in check_untrusted(text, file_name="x"):
        assert str(complaint).isprintable()
