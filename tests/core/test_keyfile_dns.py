import pytest

from homeport.core.keyfile import Keyfile, add_dns, parse


def profile(ipv4: str = "method=disabled", ipv6: str = "method=disabled", kind: str = "ethernet") -> Keyfile:
    return parse(f"[connection]\ntype={kind}\n[ipv4]\n{ipv4}\n[ipv6]\n{ipv6}\n")


def servers(profiles: dict[str, Keyfile]) -> dict[str, tuple[str, ...]]:
    return {f"{name}.{family}": found for name, profile in profiles.items() for family in ("ipv4", "ipv6")
            if (found := profile.get_list(family, "dns"))}


def test_servers_that_alternate_between_the_families() -> None:
    # nmstate: global DNS only, nothing in the profile
    made, homeless = add_dns({"eth0": profile("method=auto", "method=auto")},
                             servers=["9.9.9.9", "2001:db8::53", "8.8.8.8"], search=["a.b"], options=["rotate"])
    assert servers(made) == {"eth0.ipv4": ("9.9.9.9", "8.8.8.8"), "eth0.ipv6": ("2001:db8::53",)}
    assert [made["eth0"].raw(family, "dns-priority") for family in ("ipv4", "ipv6")] == ["40", "50"]
    assert made["eth0"].get_list("ipv4", "dns-search") == ("a.b",)
    assert made["eth0"].get_list("ipv4", "dns-options") == ("rotate",)
    assert made["eth0"].get_list("ipv6", "dns-search") == ()
    assert homeless == ()


def test_what_is_there_already_is_not_touched() -> None:
    before = {"eth0": profile("method=manual\naddress1=10.0.0.1/8\ndns=9.9.9.9;\ndns-search=a.b;"),
              "eth1": profile(ipv6="method=manual\naddress1=2001:db8::1/64\ndns=2001:DB8:0::53;")}
    made, homeless = add_dns(before, servers=["9.9.9.9", "2001:db8::53"], search=["a.b"])
    assert made == before and homeless == ()


@pytest.mark.parametrize("route", [
    "address1=10.0.0.1/8,10.0.0.254", "address1=10.0.0.1/8\nroute1=0.0.0.0/0,10.0.0.254,150",
    "address1=10.0.0.1/8\ngateway=10.0.0.254",
])
def test_the_profile_with_the_default_route_is_taken(route: str) -> None:
    made, _ = add_dns({"a": profile("method=auto"), "b": profile(f"method=manual\n{route}")}, servers=["9.9.9.9"])
    assert servers(made) == {"b.ipv4": ("9.9.9.9",)}


@pytest.mark.parametrize("other", [
    profile("method=disabled"), profile("method=link-local"),
    profile("method=manual\naddress1=127.0.0.1/8", kind="loopback"),
])
def test_a_server_without_a_place_is_named(other: Keyfile) -> None:
    made, homeless = add_dns({"a": other}, servers=["9.9.9.9"], search=["a.b"])
    assert made == {"a": other} and homeless == ("9.9.9.9",)


def test_ipv6_first() -> None:
    made, _ = add_dns({"a": profile("method=auto", "method=auto")}, servers=["2001:db8::53", "9.9.9.9"])
    assert [made["a"].raw(family, "dns-priority") for family in ("ipv4", "ipv6")] == ["50", "40"]


def test_search_domains_alone() -> None:
    made, _ = add_dns({"a": profile(ipv6="method=auto")}, servers=[], search=["a.b", "c.d"])
    assert made["a"].get_list("ipv6", "dns-search") == ("a.b", "c.d")
