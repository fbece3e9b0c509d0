"""Every check: a document that it refuses, and its neighbour that it must not."""
# ruff: noqa: E501, UP031  (a table: its rows read better whole)

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.core.checks import CHECKS, DOUBTS, EVERYWHERE, check_meaning, needs
from homeport.core.checks.everywhere import dispatch_scripts
from homeport.core.checks.view import View
from homeport.core.schema import check_schema
from homeport.core.yamlsafe import read_yaml

Judge = Callable[[str, object], tuple[bool, str]]
Documents = list[tuple[str, dict[str, Any]]]


def read(text: str) -> Any:
    return read_yaml(text).value


# An uplink, so that rows speak of one thing only.
UP = "{name: up0, type: ethernet, ipv4: {enabled: true, dhcp: true}}"
STATIC = ("{name: eth0, type: ethernet, ipv4: {enabled: true, address: [{ip: 192.0.2.10, prefix-length: 24}]}, "
          "ipv6: {enabled: true, address: [{ip: '2001:db8::10', prefix-length: 64}]}}")


def interfaces(*entries: str) -> str:
    return f"interfaces: [{', '.join((UP, *entries))}]"


def bond(mode: str, options: str = "", rest: str = "port: [a, b]") -> str:
    return interfaces(f"{{name: bond0, type: bond, link-aggregation: {{mode: {mode}, options: {{{options}}}, {rest}}}}}")


def bridge(port: str = "", options: str = "") -> str:
    return interfaces(f"{{name: br0, type: linux-bridge, bridge: {{options: {{{options}}}, "
                      f"port: [{{name: a, {port}}}]}}}}")


def routes(*entries: str, entry: str = STATIC) -> str:
    return f"routes: {{config: [{', '.join(entries)}]}}\n" + interfaces(entry)


def rules(*entries: str, entry: str = STATIC) -> str:
    return f"route-rules: {{config: [{', '.join(entries)}]}}\n" + interfaces(entry)


def dns(config: str, *entries: str) -> str:
    return f"dns-resolver: {{config: {{{config}}}}}\n" + interfaces(*(entries or (STATIC,)))


def vlan(more: str, name: str = "eth0.5") -> str:
    return f"{{name: {name}, type: vlan, vlan: {{base-iface: eth0, {more}}}}}"


GATEWAY = "{destination: 0.0.0.0/0, next-hop-interface: eth0, next-hop-address: %s}"

# (refused, path of the complaint, words of it, its neighbour that is fine)
ROWS: list[tuple[str, str, str, str]] = [
    # everywhere
    (interfaces('{name: e, type: ethernet, description: "a\\nb"}'), "interfaces[1].description", "control character",
     interfaces("{name: e, type: ethernet, description: 'a – b'}")),
    (interfaces('{name: e, type: ethernet, description: "a\\u2028b"}'), "interfaces[1].description", "one line",
     interfaces("{name: e, type: ethernet, description: 'ä'}")),
    (interfaces("{name: e, type: ethernet, 802.1x: {password: <_password_hid_by_nmstate>}}"),
     "interfaces[1].802.1x.password", "the mask", interfaces("{name: e, type: ethernet, 802.1x: {password: secret}}")),
    (interfaces("{name: e, type: ethernet, dispatch: {post-activation: 'rm x'}}"), "interfaces[1].dispatch",
     "run as root", interfaces("{name: e, type: ethernet, dispatch: {post-activation: ''}}")),
    # the whole
    ("{}", "", "empty configuration", "interfaces: [%s]" % UP),
    ("description: nothing", "", "empty configuration", "interfaces: [%s]" % UP),
    ("interfaces: [{name: eth0, type: ethernet, state: absent}]", "interfaces", "no interface that is up",
     interfaces("{name: eth1, type: ethernet, state: absent}")),
    ("interfaces: [{name: eth0, type: ethernet, ipv4: {enabled: false}, ipv6: {enabled: false}}]", "interfaces",
     "no interface that is up", "interfaces: [{name: eth0, type: ethernet, ipv4: {enabled: false}}]"),
    # A bond without IP whose ports cannot have any; partial documents keep what they don't mention.
    ("interfaces: [{name: b, type: bond, ipv4: {enabled: false}, ipv6: {enabled: false}, "
     "link-aggregation: {mode: '1', port: [eth0]}}, {name: eth0, type: ethernet}]", "interfaces", "no interface",
     "interfaces: [{name: eth0, type: ethernet, mtu: 9000}]"),
    ("interfaces: [{name: dummy0, type: dummy, ipv4: {enabled: true, address: [{ip: 192.0.2.1, prefix-length: 32}]}}]",
     "interfaces", "no interface", "interfaces: [{name: eth0}]"),
    # names
    (interfaces("{name: enp94s0f0np0.2507, type: vlan, vlan: {base-iface: up0, id: 2507}}"), "interfaces[1].name",
     "at most 15", interfaces("{name: enp94s0f0.2507, type: vlan, vlan: {base-iface: up0, id: 2507}}")),
    # A card by MAC has a name of ours; a predictable name that is too long is the card's alternative one.
    (interfaces("{name: a-very-long-name-0, type: ethernet}"), "interfaces[1].name", "at most 15",
     interfaces("{name: a-very-long-name-0, type: ethernet, identifier: mac-address, mac-address: '52:54:00:00:00:01'}",
                "{name: enp0s20f0u1u2u3i1, type: ethernet}")),
    (interfaces("{name: 'eth0:1', type: ethernet}"), "interfaces[1].name", "without slash, colon or space",
     interfaces("{name: 'sriov:eth0:1', type: ethernet}")),
    (interfaces("{name: all, type: dummy}"), "interfaces[1].name", "kernel uses", interfaces("{name: al, type: dummy}")),
    (interfaces("{name: '', type: dummy}"), "interfaces[1].name", "empty", interfaces("{name: x, type: dummy}")),
    (interfaces("{name: e, type: ethernet, profile-name: ../../evil}"), "interfaces[1].profile-name", "slash",
     interfaces("{name: e, type: ethernet, profile-name: Wired connection 1}")),
    (interfaces("{name: ../x, type: ethernet, identifier: pci-address, pci-address: '00:01.0'}"), "interfaces[1].name",
     "slash", interfaces("{name: my card, type: ethernet, identifier: pci-address, pci-address: '00:01.0'}")),
    (interfaces("{name: e, type: ethernet, profile-name: %s}" % ("x" * 300)), "interfaces[1].profile-name", "at most",
     interfaces("{name: e, type: ethernet, profile-name: %s}" % ("x" * 200))),
    (interfaces("{name: e, type: ethernet}", "{name: e, type: ethernet}"), "interfaces[2].name", "again",
     # nmstate keeps Open vSwitch's bridges apart from the kernel's interfaces
     interfaces("{name: br0, type: ovs-bridge}", "{name: br0, type: ovs-interface}")),
    (interfaces("{name: e, type: ethernt}"), "interfaces[1].type", "did you mean ethernet?",
     interfaces("{name: e, type: tun}", "{name: f, type: odd, state: absent}")),
    (interfaces("{name: e, type: ethernet, identifier: mac-address}"), "interfaces[1].mac-address", "missing",
     interfaces("{name: e, type: ethernet, identifier: mac-address, mac-address: 52-54-00-aa-bb-cc}")),
    (interfaces("{name: e, type: ethernet, identifier: pci-address}"), "interfaces[1].pci-address", "missing",
     interfaces("{name: e, type: ethernet, identifier: pci-address, pci-address: '00:01.0'}")),
    (interfaces("{name: e, identifier: mac-address, mac-address: '52:54:00:aa:bb:cc'}",
                "{name: f, identifier: mac-address, mac-address: '52-54-00-AA-BB-CC'}"),
     "interfaces[2].mac-address", "the same", interfaces(
         "{name: e, identifier: mac-address, mac-address: '52:54:00:aa:bb:cc'}",
         "{name: f, identifier: mac-address, mac-address: '52:54:00:aa:bb:cd'}")),
    (interfaces("{name: e, type: ethernet, mac-address: '52:54:00:12:34'}"), "interfaces[1].mac-address",
     "a MAC address such as", interfaces("{name: e, type: ethernet, mac-address: '52:54:00:12:34:56'}")),
    # An InfiniBand address has 20 bytes; lo's zeros are what show prints.
    (interfaces("{name: e, type: ethernet, mac-address: '01:00:5e:00:00:01'}"), "interfaces[1].mac-address", "group",
     interfaces("{name: lo, type: loopback, mac-address: '00:00:00:00:00:00'}",
                "{name: ib0, type: infiniband, mac-address: '%s'}" % ":".join(["80"] + ["02"] * 19))),
    (interfaces("{name: e, type: ethernet, mac-address: '00:00:00:00:00:00'}"), "interfaces[1].mac-address", "zeros",
     interfaces("{name: e, type: ethernet, mac-address: '02:00:00:00:00:00'}")),
    (bridge(options="group-addr: nonsense"), "interfaces[1].bridge.options.group-addr", "MAC",
     bridge(options="group-addr: '01:80:C2:00:00:00'")),
    ("hostname: {config: -node}\n" + interfaces(), "hostname.config", "'-node'",
     "hostname: {config: '', running: n-1_x.example.org}\n" + interfaces()),
    ("hostname: {running: 'a..b'}\n" + interfaces(), "hostname.running", "labels",
     "hostname: {running: a.b}\n" + interfaces()),
    ("hostname: {config: %s}\n" % ("x" * 65) + interfaces(), "hostname.config", "at most 64",
     "hostname: {config: %s}\n" % ("x" * 63) + interfaces()),
    # addresses
    (interfaces("{name: e, type: ethernet, ipv4: {enabled: true, address: [{ip: '2001:db8::1', prefix-length: 64}]}}"),
     "interfaces[1].ipv4.address[0].ip", "an IPv4 address", interfaces(STATIC)),
    (interfaces("{name: e, type: ethernet, ipv4: {enabled: true, address: [{ip: 192.0.2.1, prefix-length: 33}]}}"),
     "interfaces[1].ipv4.address[0].prefix-length", "from 0 to 32",
     interfaces("{name: e, type: ethernet, ipv4: {enabled: true, address: [{ip: 192.0.2.1, prefix-length: '32'}]}}")),
    (interfaces("{name: e, type: ethernet, ipv4: {enabled: true, address: [{ip: 0.0.0.0, prefix-length: 8}]}}"),
     "interfaces[1].ipv4.address[0].ip", "one machine",
     interfaces("{name: e, type: ethernet, ipv4: {enabled: true, address: [{ip: 192.0.2.0, prefix-length: 31}]}}")),
    (interfaces("{name: e, type: ethernet, ipv4: {enabled: true, address: [{ip: 224.0.0.9, prefix-length: 24}]}}"),
     "interfaces[1].ipv4.address[0].ip", "multicast", interfaces(STATIC)),
    (interfaces("{name: e, type: ethernet, ipv4: {address: [{ip: 192.0.2.1, prefix-length: 24}]}}"),
     "interfaces[1].ipv4.enabled", "there are addresses",
     interfaces("{name: e, type: ethernet, ipv4: {enabled: 'yes', address: [{ip: 192.0.2.1, prefix-length: 24}]}}")),
    (interfaces("{name: e, type: ethernet, ipv6: {enabled: false, autoconf: true, dhcp: true}}"),
     "interfaces[1].ipv6.enabled", "false, although",
     interfaces("{name: e, type: ethernet, ipv6: {enabled: false, autoconf: false}}")),
    (interfaces(STATIC, "{name: e, type: ethernet, ipv4: {enabled: true, address: [{ip: 192.0.2.10, prefix-length: 24}]}}"),
     "interfaces[2].ipv4.address[0].ip", "eth0 has too",
     # Unnumbered links share a host address; twice on one interface is once.
     interfaces("{name: e, type: ethernet, ipv4: {enabled: true, address: [{ip: 192.0.2.1, prefix-length: 32}, "
                "{ip: 192.0.2.1, prefix-length: 32}]}}",
                "{name: f, type: ethernet, ipv4: {enabled: true, address: [{ip: 192.0.2.1, prefix-length: 32}]}}")),
    (interfaces("{name: b, type: bond, link-aggregation: {mode: '1', port: [e]}}",
                "{name: e, type: ethernet, ipv4: {enabled: true, dhcp: true}}"),
     "interfaces[2].ipv4.enabled", "a port of b",
     interfaces("{name: v, type: vrf, vrf: {route-table-id: 5, port: [e]}}",
                "{name: e, type: ethernet, ipv4: {enabled: true, dhcp: true}}")),
    (interfaces("{name: b, type: ovs-bridge, bridge: {port: [{name: e}]}}", "{name: e, type: ethernet, ipv6: {enabled: true}}"),
     "interfaces[2].ipv6.enabled", "belong to b",
     interfaces("{name: b, type: ovs-bridge, bridge: {port: [{name: e}]}}",
                "{name: e, type: ovs-interface, ipv6: {enabled: true}}")),
    (interfaces("{name: e, type: ethernet, mtu: 1200, ipv6: {enabled: true}}"), "interfaces[1].mtu", "at least 1280",
     interfaces("{name: e, type: ethernet, mtu: 1200, ipv6: {enabled: false}}", "{name: f, mtu: 1280, ipv6: {enabled: true}}")),
    (interfaces("{name: e, type: ethernet, mtu: 60, ipv4: {enabled: true}}"), "interfaces[1].mtu", "at least 68",
     interfaces("{name: e, type: ethernet, mtu: 68, ipv4: {enabled: true}}")),
    (interfaces("{name: e, type: ethernet, mtu: 4294967296}"), "interfaces[1].mtu", "at most",
     interfaces("{name: e, type: ethernet, mtu: 65536}")),
    (interfaces("{name: eth0, type: ethernet, mtu: 1500}", "{name: v, type: vlan, mtu: 9000, vlan: {base-iface: eth0, id: 5}}"),
     "interfaces[2].mtu", "has 1500",
     # Without an MTU in the document, the base may well have a large one.
     interfaces("{name: eth0, type: ethernet}", "{name: v, type: vlan, mtu: 9000, vlan: {base-iface: eth0, id: 5}}")),
    (interfaces("{name: e, type: ethernet, ipv6: {enabled: true, autoconf: true, dhcp: false}}"),
     "interfaces[1].ipv6.dhcp", "autoconf",
     interfaces("{name: e, type: ethernet, ipv6: {enabled: true, autoconf: false, dhcp: true}}")),
    (interfaces("{name: e, type: ethernet, ipv6: {enabled: true, autoconf: true, dhcp: true, token: '2001:db8::5'}}"),
     "interfaces[1].ipv6.token", "last 64 bits",
     interfaces("{name: e, type: ethernet, ipv6: {enabled: true, autoconf: true, dhcp: true, token: '::0.0.250.193'}}")),
    (interfaces("{name: e, type: ethernet, ipv6: {enabled: true, autoconf: false, dhcp: true, token: '::5'}}"),
     "interfaces[1].ipv6.token", "without autoconf",
     interfaces("{name: e, type: ethernet, ipv6: {enabled: true, autoconf: false, dhcp: true, token: ''}}")),
    (interfaces("{name: e, type: ethernet, ipv4: {enabled: true, dhcp: true, auto-route-metric: 1, prefix-route-metric: 2}}"),
     "interfaces[1].ipv4.prefix-route-metric", "one metric for both",
     # Without DHCP the other metric is not used at all.
     interfaces("{name: e, type: ethernet, ipv4: {enabled: true, dhcp: false, auto-route-metric: 1, prefix-route-metric: 2}}")),
    (interfaces("{name: e, type: ethernet, ipv4: {enabled: true, dhcp: true, auto-route-metric: -2}}"),
     "interfaces[1].ipv4.auto-route-metric", "from -1",
     interfaces("{name: e, type: ethernet, ipv4: {enabled: true, dhcp: true, auto-route-metric: -1}}")),
    (interfaces("{name: e, type: ethernet, wait-ip: ipv4+ipv6, ipv4: {enabled: true}, ipv6: {enabled: false}}"),
     "interfaces[1].wait-ip", "IPv6 is off", interfaces("{name: e, type: ethernet, wait-ip: any, ipv6: {enabled: false}}")),
    (interfaces("{name: lo, type: loopback, ipv4: {enabled: false}}"), "interfaces[1].ipv4.enabled", "loopback",
     interfaces("{name: lo, type: loopback, ipv4: {enabled: true, address: [{ip: 203.0.113.1, prefix-length: 32}]}}")),
    (interfaces("{name: lo, type: loopback, ipv6: {enabled: true, autoconf: true, dhcp: true}}"), "interfaces[1].ipv6",
     "static addresses only", interfaces("{name: lo, type: loopback, ipv6: {enabled: true}}")),
    (interfaces("{name: e, type: ethernet, mptcp: {address-flags: [signal, fullmesh]}}"),
     "interfaces[1].mptcp.address-flags", "one of the two",
     interfaces("{name: e, type: ethernet, mptcp: {address-flags: [signal, backup]}}")),
    # ports
    (interfaces("{name: b, type: bond, link-aggregation: {mode: '1', port: [x]}}",
                "{name: r, type: linux-bridge, bridge: {port: [{name: x}]}}"),
     "interfaces[2].bridge.port[0].name", "a port of b already",
     interfaces("{name: b, type: bond, link-aggregation: {mode: '1', port: [x]}}",
                "{name: r, type: linux-bridge, bridge: {port: [{name: b}]}}")),
    # The same port, once by its profile's name.
    (interfaces("{name: b, type: bond, link-aggregation: {mode: '1', port: [x]}}",
                "{name: r, type: vrf, vrf: {route-table-id: 5, port: [px]}}", "{name: x, profile-name: px, type: ethernet}"),
     "interfaces[2].vrf.port[0]", "already",
     interfaces("{name: b, type: bond, link-aggregation: {mode: '1', port: [x]}}",
                "{name: r, type: vrf, state: absent, vrf: {port: [x]}}")),
    (bond("active-backup", rest="port: [a, a]"), "interfaces[1].link-aggregation.port[1]", "again", bond("active-backup")),
    (bond("active-backup", rest="port: [bond0]"), "interfaces[1].link-aggregation.port[0]", "itself",
     interfaces("{name: br0, type: ovs-bridge, bridge: {port: [{name: br0}]}}")),
    (bond("active-backup").replace(UP, UP + ", {name: a, type: ethernet, state: absent}"),
     "interfaces[2].link-aggregation.port[0]", "absent",
     bond("active-backup").replace(UP, UP + ", {name: a, type: ethernet, state: down}")),
    (bond("active-backup", rest="port: [lo]"), "interfaces[1].link-aggregation.port[0]", "loopback", bond("'1'")),
    (interfaces("{name: ib0, type: infiniband}", "{name: b, type: bond, link-aggregation: {mode: balance-rr, port: [ib0]}}"),
     "interfaces[2].link-aggregation.port[0]", "InfiniBand",
     interfaces("{name: ib0, type: infiniband}", "{name: b, type: bond, link-aggregation: {mode: 1, port: [ib0]}}")),
    (interfaces("{name: b, type: bond, link-aggregation: {mode: '1', port: [x]}}", "{name: x, type: ethernet, controller: c}"),
     "interfaces[2].controller", "a port of b",
     interfaces("{name: b, type: bond, link-aggregation: {mode: '1', port: [x]}}", "{name: x, type: ethernet, controller: b}")),
    (interfaces("{name: b, type: bond, link-aggregation: {mode: '1', port: [x]}}", "{name: x, type: ethernet, controller: ''}"),
     "interfaces[2].controller", "empty", interfaces("{name: x, type: ethernet, controller: ''}")),
    (interfaces("{name: b, type: bond, link-aggregation: {mode: '1', port: []}}", "{name: x, type: ethernet, controller: b}"),
     "interfaces[2].controller", "no x",
     # No list at all: the port's own word is enough.  A controller that is not declared may be on the machine.
     interfaces("{name: b, type: bond, link-aggregation: {mode: '1'}}", "{name: x, type: ethernet, controller: b}",
                "{name: y, type: ethernet, controller: br9}")),
    (interfaces("{name: b, type: bond, state: absent}", "{name: x, type: ethernet, controller: b}"),
     "interfaces[2].controller", "absent", interfaces("{name: x, type: ethernet, controller: b}")),
    (interfaces("{name: d, type: dummy}", "{name: x, type: ethernet, controller: d}"), "interfaces[2].controller",
     "of type dummy", interfaces("{name: d}", "{name: x, type: ethernet, controller: d}")),
    (interfaces(vlan("id: 5", "eth0")), "interfaces[1].vlan.base-iface", "itself", interfaces(vlan("id: 5"))),
    (interfaces("{name: eth0, type: bond, state: absent}", vlan("id: 5")), "interfaces[2].vlan.base-iface", "absent",
     # A card stays when its profile goes, and a VLAN may stand on it.
     interfaces("{name: eth0, type: ethernet, state: absent}", vlan("id: 5"))),
    (interfaces("{name: eth0, type: loopback}", vlan("id: 5")), "interfaces[2].vlan.base-iface", "loopback",
     interfaces("{name: eth0, type: linux-bridge}", vlan("id: 5"))),
    (interfaces("{name: v, type: vlan, vlan: {base-iface: b, id: 5}}",
                "{name: b, type: bond, link-aggregation: {mode: '1', port: [v]}}"),
     "interfaces[1].vlan.base-iface", "no circle",
     interfaces("{name: v, type: vlan, vlan: {base-iface: b, id: 5}}",
                "{name: b, type: bond, link-aggregation: {mode: '1', port: [w]}}")),
    (interfaces("{name: b, type: bond, copy-mac-from: b, link-aggregation: {mode: '1'}}"), "interfaces[1].copy-mac-from",
     "'b'", interfaces("{name: b, type: bond, copy-mac-from: eth7, link-aggregation: {mode: '1'}}")),
    (interfaces("{name: v, type: veth, veth: {peer: v}}"), "interfaces[1].veth.peer", "itself",
     interfaces("{name: v, type: veth, veth: {peer: w}}")),
    ("ovn: {bridge-mappings: [{localnet: n, bridge: b}, {localnet: n, bridge: b}]}\n" + interfaces(),
     "ovn.bridge-mappings[1].localnet", "again", "ovn: {bridge-mappings: [{localnet: n, bridge: b}]}\n" + interfaces()),
    ("ovn: {bridge-mappings: [{localnet: n}]}\n" + interfaces(), "ovn.bridge-mappings[0].bridge", "missing",
     "ovn: {bridge-mappings: [{localnet: n, state: absent}]}\n" + interfaces()),
    ("ovn: {bridge-mappings: [{localnet: n, bridge: b}]}\n" + interfaces("{name: b, type: ovs-bridge, state: absent}"),
     "ovn.bridge-mappings[0].bridge", "absent",
     "ovn: {bridge-mappings: [{localnet: n, bridge: b}]}\n" + interfaces("{name: b, type: ovs-bridge}")),
    # bonds
    (interfaces("{name: b, type: bond, link-aggregation: {port: [a]}}"), "interfaces[1].link-aggregation.mode", "missing",
     interfaces("{name: b, type: bond, bond: {mode: lacp, port: [a]}}")),
    (bond("unknown"), "interfaces[1].link-aggregation.mode", "'unknown'", bond("802.3ad")),
    (bond("active-backup", "lacp_rate: fast"), "interfaces[1].link-aggregation.options.lacp_rate", "802.3ad",
     bond("4", "lacp_rate: fast")),
    (bond("balance-rr", "primary: a"), "interfaces[1].link-aggregation.options.primary", "active-backup",
     bond("active-backup", "primary: a")),
    (bond("active-backup", "primary: c"), "interfaces[1].link-aggregation.options.primary", "no port",
     bond("balance-alb", "primary: b")),
    (bond("balance-xor", "balance_slb: true"), "interfaces[1].link-aggregation.options.balance_slb", "vlan+srcmac",
     bond("balance-xor", "balance-slb: true, xmit_hash_policy: 5")),
    (bond("802.3ad", "ad_actor_system: '01:00:5e:00:00:01'"), "interfaces[1].link-aggregation.options.ad_actor_system",
     "no multicast", bond("802.3ad", "ad_actor_system: '02:00:00:00:00:01'")),
    (bond("active-backup", "num_grat_arp: 1, num_unsol_na: 2"), "interfaces[1].link-aggregation.options.num_unsol_na",
     "the same", bond("active-backup", "num_grat_arp: 2, num_unsol_na: 2")),
    (bond("active-backup", "miimon: 100, arp_interval: 100, arp_ip_target: 192.0.2.1"),
     "interfaces[1].link-aggregation.options.arp_interval", "one of the two",
     bond("active-backup", "miimon: 0, arp_interval: 100, arp_ip_target: 192.0.2.1")),
    (bond("802.3ad", "arp_interval: 100, arp_ip_target: 192.0.2.1"), "interfaces[1].link-aggregation.options.arp_interval",
     "miimon instead", bond("balance-xor", "arp_interval: 100, arp_ip_target: 192.0.2.1")),
    (bond("active-backup", "arp_interval: 100"), "interfaces[1].link-aggregation.options.arp_interval", "target",
     bond("active-backup", "arp_interval: 100, ns_ip6_target: ['2001:db8::1']")),
    (bond("active-backup", "arp_ip_target: 192.0.2.1"), "interfaces[1].link-aggregation.options.arp_ip_target",
     "without arp_interval", bond("active-backup", "arp_ip_target: ''")),
    (bond("active-backup", "miimon: 0, updelay: 100"), "interfaces[1].link-aggregation.options.updelay", "miimon",
     bond("active-backup", "updelay: 100")),
    (bond("active-backup", rest="port: [a, b], ports-config: [{name: a}, {name: c}]"),
     "interfaces[1].link-aggregation.ports-config[1].name", "not in port",
     bond("active-backup", rest="port: [b, a], ports-config: [{name: a}, {name: b}]")),
    (bond("active-backup", rest="port: [a, b], ports-config: [{name: a}]"), "interfaces[1].link-aggregation.port",
     "not in ports-config", bond("active-backup", rest="ports-config: [{name: a}]")),
    (bond("active-backup", rest="ports-config: [{name: a, queue-id: 1}, {name: b, queue-id: 1}]"),
     "interfaces[1].link-aggregation.ports-config[1].queue-id", "a has too",
     bond("active-backup", rest="ports-config: [{name: a, queue-id: 0}, {name: b, queue-id: 0}]")),
    # links
    (interfaces(vlan("id: 4095")), "interfaces[1].vlan.id", "to 4094", interfaces(vlan("id: 4094"))),
    (interfaces("{name: v, type: vlan, vlan: {id: 5}}"), "interfaces[1].vlan.base-iface", "missing",
     # Without the section it is a VLAN that exists.
     interfaces("{name: v, type: vlan, mtu: 1400}")),
    (interfaces(vlan("id: 5", "v1"), vlan("id: '5'", "v2")), "interfaces[2].vlan.id", "v1 is already",
     interfaces(vlan("id: 5", "v1"), vlan("id: 5, protocol: 802.1ad", "v2"))),
    (interfaces(vlan("id: 5, egress-qos-map: [{from: 9, to: 8}]")), "interfaces[1].vlan.egress-qos-map[0].to",
     "from 0 to 7", interfaces(vlan("id: 5, egress-qos-map: [{from: 9, to: 7}]"))),
    (interfaces("{name: x, type: vxlan, vxlan: {id: 16777216, remote: 192.0.2.1}}"), "interfaces[1].vxlan.id",
     "to 16777215", interfaces("{name: x, type: vxlan, vxlan: {id: 16777215, remote: 192.0.2.1}}")),
    (interfaces("{name: x, type: vxlan, vxlan: {id: 1, local: 192.0.2.1, remote: '2001:db8::1'}}"),
     "interfaces[1].vxlan.local", "one family",
     interfaces("{name: x, type: vxlan, vxlan: {id: 1, local: '2001:db8::2', remote: '2001:db8::1'}}")),
    (interfaces("{name: t, type: ip-tunnel, ip-tunnel: {mode: ip6ip6, flow-label: 1048576}}"),
     "interfaces[1].ip-tunnel.flow-label", "at most",
     interfaces("{name: t, type: ip-tunnel, ip-tunnel: {mode: ip6ip6, flow-label: 1048575}}")),
    (interfaces("{name: v, type: vrf, vrf: {port: []}}"), "interfaces[1].vrf.route-table-id", "routing table",
     interfaces("{name: v, type: vrf, vrf: {port: [], route-table-id: 10}}")),
    (interfaces("{name: m, type: macsec, macsec: {base-iface: up0, encrypt: true, port: 0, validation: check, "
                "send-sci: true, mka-cak: %s}}" % ("a" * 32)), "interfaces[1].macsec.mka-ckn", "both keys",
     interfaces("{name: m, type: macsec, macsec: {base-iface: up0, encrypt: true, port: 0, validation: check, "
                "send-sci: true}}")),
    (interfaces("{name: m, type: macsec, macsec: {base-iface: up0, encrypt: true, port: 0, validation: check, "
                "send-sci: true, mka-cak: %s, mka-ckn: abcd}}" % ("a" * 31)), "interfaces[1].macsec.mka-cak",
     "32 hexadecimal",
     interfaces("{name: m, type: macsec, macsec: {base-iface: up0, encrypt: true, port: 0, validation: check, "
                "send-sci: true, mka-cak: %s, mka-ckn: abcd}}" % ("a" * 32))),
    (interfaces("{name: m, type: mac-vlan, mac-vlan: {base-iface: up0, mode: bridge, promiscuous: false}}"),
     "interfaces[1].mac-vlan.promiscuous", "passthru",
     interfaces("{name: m, type: mac-vlan, mac-vlan: {base-iface: up0, mode: passthru, promiscuous: false}}")),
    (interfaces("{name: i, type: ipvlan, ipvlan: {base-iface: up0, private: true, vepa: true}}"),
     "interfaces[1].ipvlan.vepa", "one of the two",
     interfaces("{name: i, type: ipvlan, ipvlan: {base-iface: up0, private: true, vepa: false}}")),
    (interfaces("{name: h, type: hsr, hsr: {port1: a, port2: b, interlink: c, multicast-spec: 0, protocol: prp}}"),
     "interfaces[1].hsr.interlink", "prp",
     interfaces("{name: h, type: hsr, hsr: {port1: a, port2: b, interlink: c, multicast-spec: 0, protocol: hsr}}")),
    (bridge("vlan: {mode: trunk, tag: 5, trunk-tags: [{id: 6}]}"), "interfaces[1].bridge.port[0].vlan.tag", "native",
     bridge("vlan: {mode: trunk, tag: 5, enable-native: true, trunk-tags: [{id: 6}]}")),
    (bridge("vlan: {mode: trunk}"), "interfaces[1].bridge.port[0].vlan.trunk-tags", "missing",
     bridge("vlan: {mode: trunk, trunk-tags: []}")),
    (bridge("vlan: {mode: access, enable-native: true, tag: 5}"), "interfaces[1].bridge.port[0].vlan.enable-native",
     "mode trunk", bridge("vlan: {mode: access, tag: 5}")),
    (bridge("vlan: {mode: access, trunk-tags: [{id: 5}]}"), "interfaces[1].bridge.port[0].vlan.trunk-tags", "access mode",
     bridge("vlan: {mode: access, trunk-tags: []}")),
    (bridge("vlan: {tag: 4095}"), "interfaces[1].bridge.port[0].vlan.tag", "to 4094", bridge("vlan: {tag: 0}")),
    (bridge("vlan: {mode: trunk, trunk-tags: [{id: 5}, {id-range: {min: 4, max: 6}}]}"),
     "interfaces[1].bridge.port[0].vlan.trunk-tags[1]", "again",
     bridge("vlan: {mode: trunk, trunk-tags: [{id: 5}, {id-range: {min: 6, max: 6}}]}")),
    (bridge("vlan: {mode: trunk, trunk-tags: [{id-range: {min: 9, max: 6}}]}"),
     "interfaces[1].bridge.port[0].vlan.trunk-tags[0]", "the lower one first",
     bridge("vlan: {mode: trunk, trunk-tags: [{id-range: {min: 1, max: 4094}}]}")),
    (bridge("stp-priority: 64"), "interfaces[1].bridge.port[0].stp-priority", "to 63", bridge("stp-priority: 63")),
    (bridge(options="group-forward-mask: 8, group-fwd-mask: 16"), "interfaces[1].bridge.options.group-fwd-mask",
     "the same option", bridge(options="group-forward-mask: 8, group-fwd-mask: 8")),
    (bridge(options="group-fwd-mask: 9"), "interfaces[1].bridge.options.group-fwd-mask", "lowest three bits",
     bridge(options="group-fwd-mask: 65528")),
    (bridge(options="vlan-default-pvid: 5"), "interfaces[1].bridge.options.vlan-default-pvid", "without VLAN filtering",
     bridge("vlan: {mode: access, tag: 7}", "vlan-default-pvid: 5")),
    (bridge(options="stp: {hello-time: 11}"), "interfaces[1].bridge.options.stp.hello-time", "from 1 to 10",
     bridge(options="stp: {hello-time: 10, max-age: 40, forward-delay: 2}")),
    (interfaces("{name: p, type: ovs-interface, mtu: 1500, patch: {peer: q}}"), "interfaces[1].mtu", "patch",
     interfaces("{name: p, type: ovs-interface, patch: {peer: q}}", "{name: i, type: ovs-interface, mtu: 1500}")),
    (interfaces("{name: p, type: ovs-interface, dpdk: {devargs: x, n_rxq_desc: 1000}}"),
     "interfaces[1].dpdk.n_rxq_desc", "power of 2",
     interfaces("{name: p, type: ovs-interface, dpdk: {devargs: x, n_rxq_desc: 0, n_txq_desc: 4096}}")),
    (interfaces("{name: e, type: ethernet, ethernet: {sr-iov: {total-vfs: 2, vfs: [{id: 2}]}}}"),
     "interfaces[1].ethernet.sr-iov.vfs[0].id", "2 of 2",
     interfaces("{name: e, type: ethernet, ethernet: {sr-iov: {total-vfs: 2, vfs: [{id: 1}]}}}")),
    (interfaces("{name: e, type: ethernet, ethernet: {sr-iov: {vfs: [{id: 0, vlan-proto: 802.1ad}]}}}"),
     "interfaces[1].ethernet.sr-iov.vfs[0].vlan-proto", "without vlan-id",
     interfaces("{name: e, type: ethernet, ethernet: {sr-iov: {vfs: [{id: 0, vlan-proto: 802.1ad, vlan-id: 5}]}}}")),
    (interfaces("{name: e, type: ethernet, alt-names: [{name: up0}]}"), "interfaces[1].alt-names[0].name", "already",
     interfaces("{name: e, type: ethernet, alt-names: [{name: up0, state: absent}, {name: other}]}")),
    # routes
    (routes("{destination: 10.0.0.0/40, next-hop-interface: eth0}"), "routes.config[0].destination", "a network such as",
     routes("{destination: 10.1.2.3/8, next-hop-interface: eth0}")),
    (routes("{next-hop-interface: eth0}"), "routes.config[0].destination", "missing",
     routes("{state: absent, next-hop-interface: eth0}")),
    (routes("{destination: 10.0.0.0/8, next-hop-interface: eth0, next-hop-address: gateway}"),
     "routes.config[0].next-hop-address", "an IP address", routes(GATEWAY % "192.0.2.1")),
    (routes("{destination: '::/0', next-hop-interface: eth0, next-hop-address: 192.0.2.1}"),
     "routes.config[0].next-hop-address", "an IPv6 address",
     routes("{destination: '::/0', next-hop-interface: eth0, next-hop-address: '2001:db8::1'}")),
    (routes("{destination: 10.0.0.0/8, next-hop-interface: eth0, source: '2001:db8::10'}"), "routes.config[0].source",
     "an IPv4 address", routes("{destination: 10.0.0.0/8, next-hop-interface: eth0, source: 192.0.2.10}")),
    (routes("{destination: 0.0.0.0, next-hop-interface: eth0}"), "routes.config[0].destination", "0.0.0.0/0",
     routes("{destination: 0.0.0.0/1, next-hop-interface: eth0}")),
    (routes("{destination: 10.0.0.0/8, next-hop-interface: eth0, metric: -5}"), "routes.config[0].metric", "from -1",
     routes("{destination: 10.0.0.0/8, next-hop-interface: eth0, metric: 4294967295}")),
    (routes("{destination: 10.0.0.0/8, next-hop-interface: eth0, mtu: 0}"), "routes.config[0].mtu", "more than 0",
     routes("{destination: 10.0.0.0/8, next-hop-interface: eth0, mtu: 1}")),
    (routes("{destination: 10.0.0.0/8, next-hop-interface: eth0, weight: 257}"), "routes.config[0].weight", "1 to 256",
     routes("{destination: 10.0.0.0/8, next-hop-interface: eth0, weight: 256}")),
    (routes("{destination: '2001:db8:1::/48', next-hop-interface: eth0, weight: 2}"), "routes.config[0].weight", "IPv6",
     routes("{destination: '2001:db8:1::/48', next-hop-interface: eth0}")),
    (routes("{destination: 10.0.0.0/8}"), "routes.config[0].next-hop-interface", "missing",
     routes("{destination: 10.0.0.0/8, route-type: blackhole}")),
    (routes("{destination: 10.0.0.0/8, route-type: blackhole, next-hop-interface: eth0}"),
     "routes.config[0].next-hop-interface", "no next hop",
     routes("{destination: 10.0.0.0/8, route-type: blackhole, next-hop-interface: lo}")),
    # nmstate would write such a route into whatever profile that card has; ours it is not.
    (routes("{destination: 10.0.0.0/8, next-hop-interface: eth7}"), "routes.config[0].next-hop-interface",
     "not declared", routes("{destination: 10.0.0.0/8, next-hop-interface: lo}")),
    (routes("{destination: 10.0.0.0/8, next-hop-interface: cni0}", entry="{name: cni0, state: ignore}"),
     "routes.config[0].next-hop-interface", "left alone",
     routes("{destination: 10.0.0.0/8, next-hop-interface: cni0, state: ignore}", entry="{name: cni0, state: ignore}")),
    (routes("{destination: 10.0.0.0/8, next-hop-interface: eth0}", entry="{name: eth0, type: ethernet, state: down}"),
     "routes.config[0].next-hop-interface", "is down",
     # Neither DHCP nor a partial entry says that there will be no address.
     routes("{destination: 10.0.0.0/8, next-hop-interface: eth0, next-hop-address: 10.9.9.9}",
            entry="{name: eth0, type: ethernet}")),
    (routes("{destination: '::/0', next-hop-interface: eth0}", entry="{name: eth0, type: ethernet, ipv6: {enabled: false}}"),
     "routes.config[0].next-hop-interface", "IPv6 is off", routes("{destination: '::/0', next-hop-interface: eth0}")),
    (routes("{destination: 10.0.0.0/8, next-hop-interface: up0, vrf-name: v}",
            entry="{name: v, type: vrf, state: absent}"), "routes.config[0].vrf-name", "absent",
     routes("{destination: 10.0.0.0/8, next-hop-interface: up0, vrf-name: v}",
            entry="{name: v, type: vrf, vrf: {route-table-id: 7, port: [up0]}}")),
    (routes("{destination: 10.0.0.0/8, next-hop-interface: up0, vrf-name: v, table-id: 8}",
            entry="{name: v, type: vrf, vrf: {route-table-id: 7, port: [up0]}}"), "routes.config[0].table-id", "table 7",
     routes("{destination: 10.0.0.0/8, next-hop-interface: up0, vrf-name: v, table-id: 7}",
            entry="{name: v, type: vrf, vrf: {route-table-id: 7, port: [up0]}}")),
    (routes("{destination: 10.0.0.0/8, route-type: blackhole}", "{destination: 10.1.0.0/8, route-type: prohibit}"),
     "routes.config[1].route-type", "one type",
     routes("{destination: 10.0.0.0/8, route-type: blackhole}", "{destination: 10.0.0.0/8, route-type: prohibit, metric: 5}")),
    (routes(GATEWAY % "203.0.113.1"), "routes.config[0].next-hop-address", "in no network of eth0 (192.0.2.0/24)",
     routes("{destination: 203.0.113.0/29, next-hop-interface: eth0, next-hop-address: 0.0.0.0}", GATEWAY % "203.0.113.1")),
    (routes(GATEWAY % "192.0.2.10"), "routes.config[0].next-hop-address", "itself", routes(GATEWAY % "192.0.2.254")),
    (routes(GATEWAY % "192.0.2.255"), "routes.config[0].next-hop-address", "no machine's",
     routes(GATEWAY % "192.0.2.1",
            entry="{name: eth0, type: ethernet, ipv4: {enabled: true, address: [{ip: 192.0.2.0, prefix-length: 31}]}}")),
    # A gateway on the link itself is every link's; DHCP may bring the network of any gateway.
    (routes("{destination: '::/0', next-hop-interface: eth0, next-hop-address: '2001:db8:1::1'}"),
     "routes.config[0].next-hop-address", "in no network",
     routes("{destination: '::/0', next-hop-interface: eth0, next-hop-address: 'fe80::1'}",
            "{destination: 10.0.0.0/8, next-hop-interface: up0, next-hop-address: 203.0.113.1}")),
    # rules
    (rules("{route-table: 100}"), "route-rules.config[0]", "neither", rules("{family: ipv4, route-table: 100}")),
    (rules("{ip-from: nowhere}"), "route-rules.config[0].ip-from", "a network such as", rules("{ip-from: 192.0.2.1}")),
    (rules("{ip-to: 192.0.2.1, family: ipv6}"), "route-rules.config[0].ip-to", "an IPv6 network",
     rules("{ip-to: '2001:db8::/32', family: ipv6}")),
    (rules("{family: ipv4, fwmask: 5}"), "route-rules.config[0].fwmask", "without a mark",
     rules("{family: ipv4, fwmask: 5, fwmark: 1}")),
    (rules("{family: ipv4, priority: -2}"), "route-rules.config[0].priority", "-1 for any", rules("{family: ipv4, priority: -1}")),
    (rules("{family: ipv4, iif: eth7}"), "route-rules.config[0].iif", "not declared", rules("{family: ipv4, iif: eth0}")),
    (rules("{family: ipv6, iif: eth0}", entry="{name: eth0, type: ethernet, ipv6: {enabled: false}}"),
     "route-rules.config[0]", "IPv6, which is off on eth0", rules("{family: ipv6, route-table: 100}")),
    # DNS
    (dns("server: [ns.example.org]"), "dns-resolver.config.server[0]", "an IP address", dns("server: [192.0.2.53]")),
    (dns("server: ['192.0.2.53%eth0']"), "dns-resolver.config.server[0]", "fe80::1%eth0", dns("server: ['fe80::1%eth0']")),
    (dns("search: [example org]"), "dns-resolver.config.search[0]", "a domain", dns("search: [example.org, '~.']")),
    (dns("options: ['timeout']"), "dns-resolver.config.options[0]", "timeout:N", dns("options: ['timeout:5', rotate]")),
    (dns("server: ['2001:db8::53']", UP.replace("up0", "e").replace("}}", "}, ipv6: {enabled: false}}")).replace(
        UP, "{name: up0, type: ethernet, ipv4: {enabled: true, dhcp: true}, ipv6: {enabled: false}}"),
     "dns-resolver.config.server[0]", "no interface here has IPv6",
     # A partial entry may have IPv6 from before.
     dns("server: ['2001:db8::53']", "{name: e, type: ethernet}")),
    ("dns-resolver: {config: {server: [192.0.2.53]}}", "dns-resolver.config.server[0]", "no interface here has IPv4",
     dns("server: [192.0.2.53]", UP.replace("up0", "e"))),
    (dns("server: [192.0.2.1, '2001:db8::1', 192.0.2.2]"), "dns-resolver.config.server", "alternate",
     dns("server: [192.0.2.1, 192.0.2.2, '2001:db8::1', '2001:db8::2']")),
    (dns("server: ['fe80::1%eth7']"), "dns-resolver.config.server[0]", "'eth7' is not declared", dns("server: ['fe80::1%eth0']")),
    (dns("server: ['fe80::1%eth0', 'fe80::1%up0']"), "dns-resolver.config.server[1]", "second interface",
     dns("server: ['fe80::1%eth0', 'fe80::2%eth0']")),
    # nmstate: "has IPv6 disabled"; an address of the card's own making is none. A partial entry may have one from before.
    (dns("server: ['fe80::1%eth0']", "{name: eth0, type: ethernet, ipv6: {enabled: true, dhcp: false, address: []}}"),
     "dns-resolver.config.server[0]", "no IPv6 address, nor a way",
     dns("server: ['fe80::1%eth0']", "{name: eth0, type: ethernet, ipv6: {enabled: true}}")),
    (dns("server: ['fe80::1%eth0']", "{name: eth0, type: ethernet, state: down}"),
     "dns-resolver.config.server[0]", "is down", dns("server: ['fe80::1%eth0']")),
    ("dns-resolver: {config: {search: [example.org]}}", "dns-resolver.config.search", "no interface",
     dns("search: [example.org]", UP.replace("up0", "e"))),
]


def ids(row: tuple[str, str, str, str]) -> str:
    return f"{row[1] or 'document'}-{row[2]}"


@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_refused(row: tuple[str, str, str, str]) -> None:
    text, path, words, _ = row
    said = [str(complaint) for complaint in check_meaning(read(text)) if complaint.path == path]
    assert len(said) == 1, (said, check_meaning(read(text)))
    assert words in said[0]


@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_its_neighbour_is_not(row: tuple[str, str, str, str]) -> None:
    assert check_schema(read(row[3])) == []
    assert check_meaning(read(row[3])) == []


def test_every_check_has_a_row() -> None:
    idle = {check.__name__ for check in (*EVERYWHERE, dispatch_scripts, *CHECKS, *DOUBTS)}
    for text, *_ in ROWS:
        view = View(read(text))
        idle -= {check.__name__ for check in (*EVERYWHERE, dispatch_scripts, *CHECKS, *DOUBTS) if list(check(view))}
    assert idle == set()


def test_documents_that_work_are_not_refused(documents: Documents) -> None:
    assert {name: found for name, tree in documents
            if (found := list(map(str, check_meaning(tree, allow_dispatch=True))))} == {}


def test_what_nmstate_accepts_offline_is_not_refused(documents: Documents, nmstatectl: Judge) -> None:
    """Every neighbour too, where `validate` can judge without knowing the machine."""
    refused = {name: said for name, tree in documents for ok, said in [nmstatectl("validate", tree)] if not ok}
    # `validate` has no machine at hand to copy a MAC from, and takes a type it doesn't know for ethernet.
    assert set(refused) <= {"controllers: a bond with every option", "links: an ethernet card with everything that any "
                            "interface can have", "links: left alone, taken away, shut down, and a state of the query"}


def test_force_means_it() -> None:
    doubtful = routes(GATEWAY % "203.0.113.1", entry=STATIC).replace(UP, UP.replace("enabled: true", "enabled: false"))
    assert {c.path for c in check_meaning(read(doubtful))} == {
        "routes.config[0].next-hop-address", "interfaces[0].ipv4.enabled"}
    assert check_meaning(read(doubtful), force=True) == []
    # A mistake is a mistake, meant or not.
    assert check_meaning(read("interfaces: [{name: '', type: dummy}]"), force=True) != []


def test_scripts_are_a_setting() -> None:
    scripts = read(interfaces('{name: e, type: ethernet, dispatch: {post-activation: "a\\nb"}}'))
    assert [c.path for c in check_meaning(scripts)] == ["interfaces[1].dispatch"]
    assert check_meaning(scripts, allow_dispatch=True) == []


def test_policies_are_looked_through_for_scripts_and_secrets() -> None:
    policy = read('''
capture: {x: "interfaces.name=='e'"}
desired:
  interfaces: [{name: "{{ capture.x.interfaces.0.name }}", dispatch: {post-activation: x},
                802.1x: {password: <_password_hid_by_nmstate>}}]
''')
    assert [c.path for c in check_meaning(policy)] == [
        "desired.interfaces[0].802.1x.password", "desired.interfaces[0].dispatch"]


def test_fifty_faults_are_fifty_complaints() -> None:
    entries = [f"{{name: v{i}, type: vlan, vlan: {{base-iface: up0, id: {5000 + i}}}}}" for i in range(25)]
    entries += [f"{{name: e{i}, type: ethernet, mtu: {i}, ipv6: {{enabled: true}}}}" for i in range(25)]
    assert len(check_meaning(read(interfaces(*entries)))) == 50


def test_needs() -> None:
    found = needs(read("route-rules: {config: [{family: ipv4}]}\n" + interfaces(
        "{name: bond0, type: bond, copy-mac-from: eth5, link-aggregation: {mode: '1', port: [eth1, up0]}}",
        vlan("id: 5"),
        "{name: br0, type: ovs-bridge, bridge: {port: [{name: made-by-ovs}]}}",
        "{name: vpn, type: ipsec, libreswan: {right: 192.0.2.1}}",
        "{name: v0, type: veth, veth: {peer: v1}}", "{name: mv, type: mac-vlan, mac-vlan: {base-iface: v1, mode: vepa}}",
        "{name: t, type: ip-tunnel, ip-tunnel: {mode: sit, base-iface: eth6}}",
        "{name: hsr0, type: hsr, hsr: {port1: eth2, port2: eth3, multicast-spec: 0, protocol: hsr}}",
        "{name: x, type: ethernet, 802.1x: {identity: y}, controller: br7}",
        "{name: gone, type: dummy, state: absent}")))
    assert set(found.modules) == {"bonding", "8021q", "openvswitch", "veth", "macvlan", "sit", "hsr"}
    assert found.modules["bonding"] == "bond0 is of type bond"
    assert set(found.nm_plugins) == {"ovs", "libreswan"}
    assert set(found.programs) == {"wpa_supplicant"}
    # Not up0 (declared), v1 (made as a peer), made-by-ovs (made by Open vSwitch).
    assert set(found.bases) == {"eth0", "eth1", "eth2", "eth3", "eth5", "eth6", "br7"}
    assert found.bases["eth0"] == "eth0.5 stands on it"
    assert found.networkmanager == {(1, 46): "hsr0 is of type hsr"}
    assert set(found.not_offline) == {"bond0", "hsr0"}


def test_a_plain_document_needs_nothing() -> None:
    assert not any(vars(needs(read(interfaces(STATIC)))).values())


def test_many_interfaces_cost_little() -> None:
    """Half a MiB in which everything refers to everything."""
    entries: list[dict[str, object]] = [
        {"name": f"v{i}", "type": "vlan", "vlan": {"base-iface": f"v{i + 1}", "id": i % 4095},
         "ipv4": {"enabled": True, "address": [{"ip": f"10.{i >> 8}.{i & 255}.1", "prefix-length": 24}]}}
        for i in range(2500)]
    config = {"interfaces": entries, "routes": {"config": [
        {"destination": f"10.{i >> 8}.{i & 255}.0/24", "next-hop-interface": f"v{i}",
         "next-hop-address": f"10.{i >> 8}.{i & 255}.2"} for i in range(2500)]}}
    begin = time.process_time()
    check_meaning(config)
    assert time.process_time() - begin < 4  # 0.4 s on a quiet machine; quadratic would be minutes


def test_much_on_one_interface_costs_little() -> None:
    config = {
        "interfaces": [
            {"name": "e", "type": "ethernet", "ipv4": {"enabled": True, "address": [
                {"ip": f"10.{i >> 8}.{i & 255}.1", "prefix-length": 24} for i in range(3000)]}},
            {"name": "b", "type": "linux-bridge", "bridge": {"port": [{"name": f"p{i}"} for i in range(3000)]}},
            *({"name": f"p{i}", "type": "ethernet", "controller": "b"} for i in range(1000))],
        "routes": {"config": [
            {"destination": f"172.16.{i & 255}.0/24", "next-hop-interface": "e", "metric": i,
             "next-hop-address": f"10.{i >> 8}.{i & 255}.2"} for i in range(3000)]},
        "route-rules": {"config": [{"ip-from": f"10.0.{i & 255}.0/24", "priority": i} for i in range(3000)]}}
    begin = time.process_time()
    assert check_meaning(config) == []
    assert time.process_time() - begin < 5  # 0.5 s on a quiet machine


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(
    ["up0", "eth0", "192.0.2.1", "2001:db8::1", "bond", "vlan", "vrf", "absent", "up", "", "true", "5"]) | st.text()
keys = st.sampled_from([
    "interfaces", "routes", "route-rules", "dns-resolver", "config", "name", "type", "state", "ipv4", "ipv6",
    "address", "ip", "prefix-length", "enabled", "dhcp", "port", "link-aggregation", "bridge", "vlan", "vrf",
    "base-iface", "id", "destination", "next-hop-interface", "next-hop-address", "server", "mtu", "options", "mode",
    "hostname", "ovn", "bridge-mappings", "controller", "profile-name", "mac-address", "identifier"])
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=6), max_leaves=40)


def test_mutants_are_survived(mutants: Callable[[int, int], Iterator[tuple[str, dict[str, Any]]]]) -> None:
    for _, mutant in mutants(7, 2000):
        check_meaning(mutant)
        needs(mutant)


@settings(max_examples=60)
@given(st.dictionaries(keys, trees, max_size=6))
def test_it_never_raises(tree: dict[str, Any]) -> None:
    for complaint in check_meaning(tree):
        assert complaint.found
        assert str(complaint).isprintable()
    needs(tree)


@settings(max_examples=60)
@given(st.lists(st.dictionaries(keys, trees, max_size=8), max_size=4))
def test_nor_inside_interfaces(entries: list[dict[str, Any]]) -> None:
    check_meaning({"interfaces": entries, "routes": {"config": entries}, "route-rules": {"config": entries}})
