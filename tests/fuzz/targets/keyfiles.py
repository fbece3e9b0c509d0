"""Profiles as text: what NetworkManager, `nmstatectl gc` and documents bring."""

from __future__ import annotations

from pathlib import Path

from homeport.core.facts import Nic
from homeport.core.keyfile import KeyfileError, check_untrusted, escape_gc, is_ours, own_profile, parse
from targets.documents import check_complaints

UUID = "6f0c5f9a-b1d6-4f2e-9a4b-e7a3d1c88f50"
NIC = Nic("eth0", 2, "52:54:00:12:34:56", "52:54:00:12:34:56", 0, "0000:00:03.0", "virtio_net")

_KEYS = """
    connection id uuid type interface-name autoconnect-priority timestamp permissions master slave-type controller
    port-type ethernet 802-3-ethernet mac-address 802-11-wireless wifi ssid ipv4 ipv6 method auto manual disabled
    address1 address0 addresses route1 route1_options routing-rule1 dns dns-search may-fail dhcp-timeout vlan parent
    bond bridge vpn service-type user .nmmeta proxy wireguard private-key-flags match path vrf vxlan macsec hsr ipvlan
    192.0.2.10/24,192.0.2.1 52:54:00:12:34:56 97;59;98; io.homeport.owned <_password_hid_by_nmstate>
    """  # fmt: skip
WORDS = (*(f"{word}=" for word in _KEYS.split()), *(f"[{word}]\n" for word in _KEYS.split()), *_KEYS.split(), UUID,
         "\n", "\\s", "\\n", ";", "\\;", "\r\n", "# ")

_DATA = Path(__file__).parents[2] / "data/keyfiles"
SEEDS = tuple(path.read_bytes() for path in sorted(_DATA.rglob("*.nmconnection")))


def check(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    complaints = check_untrusted(text, file_name="a.nmconnection")
    check_complaints(complaints)
    check_complaints(check_untrusted(text, expect_id="a", expect_uuid=UUID, expect_interface="eth0"))
    try:
        keyfile = parse(text)
    except KeyfileError as error:
        check_complaints(error.complaints)
        assert complaints  # what cannot be read must not be written
    else:
        assert parse(keyfile.render()) == keyfile
        assert keyfile.in_order().in_order() == keyfile.in_order()
    escape_gc(text)
    for nic in (NIC, None):
        check_owned(text, nic)


def check_owned(text: str, nic: Nic | None) -> None:
    try:
        ours = own_profile(text, uuid=UUID, name="eth0", nic=nic, tags={"revision": "7"}, wait_ip="")
    except KeyfileError as error:
        check_complaints(error.complaints)
        return
    assert is_ours(ours)
    assert ours.get("connection", "uuid") == UUID
    assert parse(ours.render()) == ours
    # NetworkManager hands it back at the next boot: then nothing may be left to change.
    again = own_profile(ours.render(), uuid=UUID, name="eth0", nic=nic, tags={"revision": "7"}, wait_ip="")
    assert again.render() == ours.render()
