"""Documents against cards: total, the same in whatever order the cards come, and nothing left to do afterwards."""

from __future__ import annotations

from homeport.core.facts import Nic
from homeport.core.nics import resolve
from homeport.core.yamlsafe import read_yaml
from targets.documents import SEEDS as DOCUMENT_SEEDS
from targets.documents import WORDS as DOCUMENT_WORDS
from targets.documents import check_complaints

NICS = (
    Nic("eth0", 2, "52:54:00:12:34:56", "52:54:00:12:34:56", 0, "0000:00:03.0", "virtio_net", carrier=True),
    Nic("eth1", 3, "52:54:00:12:34:57", "52:54:00:12:34:57", 0, "0000:00:04.0", "virtio_net", carrier=False),
    Nic("eth10", 4, "52:54:00:12:34:57", "52:54:00:12:34:5a", 0, "0000:00:05.0", "ixgbe"),  # has the MAC of its bond
    Nic("eth2", 5, "52:54:00:12:34:56", "", 0, "", "mlx5_core"),  # a virtual function's twin
    Nic("bond0", 6, "52:54:00:12:34:57", "", 2, kind="bond", virtual=True),
    Nic("usb0", 7, "be:ba:00:00:00:01", "be:ba:00:00:00:01", 0, driver="cdc_ether", usb=True),
)
WORDS = (*DOCUMENT_WORDS, "eth1", "eth10", "eth0.10", "bond0", "mac: ", "pci: ", "0000:00:0?.0", "virtio*", "ixgbe")

SEEDS = (*DOCUMENT_SEEDS, b"""\
interfaces:
- {name: lan, type: ethernet, match: {driver: ix*, mac: 52-54-00-12-34-5A}, mtu: 9000}
- {name: eth1, type: ethernet, identifier: mac-address, mac-address: 52:54:00:12:34:56}
- {name: eth0, type: ethernet, identifier: pci-address, pci-address: '0000:00:04.0'}
- {name: a-very-long-name-of-a-vlan, type: vlan, vlan: {base-iface: eth0, id: 7}}
- {name: bond0, type: bond, link-aggregation: {mode: active-backup, port: [lan, eth1]}, copy-mac-from: lan}
- {name: eth9, type: ethernet, state: absent}
- {name: veth0, type: veth, veth: {peer: veth1}}
routes: {config: [{destination: 0.0.0.0/0, next-hop-interface: a-very-long-name-of-a-vlan}]}
""")


def check(data: bytes) -> None:
    tree = read_yaml(data.decode("utf-8", "replace")).value
    if not isinstance(tree, dict):
        return
    for nics in (NICS, NICS[:2], ()):
        resolved = resolve(tree, nics)
        check_complaints(resolved.complaints[:1000])
        assert all(text.isprintable() for text in (*resolved.missing, *resolved.notes))
        assert resolve(tree, nics[::-1]) == resolved
        if not resolved.complaints:
            again = resolve(resolved.config, nics)
            assert again.config == resolved.config and not again.complaints
    resolve(tree, NICS, offline=True)
