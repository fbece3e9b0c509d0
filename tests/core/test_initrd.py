"""What the initramfs has to do, from the kernel command line."""

from __future__ import annotations

import pytest

from homeport.core import initrd
from homeport.core.cmdline import parse
from homeport.core.facts import Mode
from homeport.core.initrd import RootDevice, decide

LOCAL = "root=UUID=1234 ro quiet"


@pytest.mark.parametrize(("setting", "mode", "cmdline", "look", "network"), [
    # Most boots: nothing needs the network, a document at hand is looked for.
    ("auto", Mode.ACTIVE, LOCAL, True, False),
    ("auto", Mode.PASSIVE, LOCAL, True, False),
    ("auto", Mode.ACTIVE, "", True, False),
    # Somebody asks for the network there.
    ("auto", Mode.ACTIVE, f"{LOCAL} rd.neednet=1", True, True),
    ("auto", Mode.ACTIVE, f"{LOCAL} rd.neednet", True, True),
    ("auto", Mode.ACTIVE, f"{LOCAL} rd.neednet=0", True, False),
    # The last of several counts.
    ("auto", Mode.ACTIVE, f"rd.neednet=1 {LOCAL} rd.neednet=0", True, False),
    ("auto", Mode.ACTIVE, f"rd.neednet=0 {LOCAL} rd.neednet=1", True, True),
    ("auto", Mode.ACTIVE, f"rd.neednet=0 {LOCAL} rd.neednet", True, True),
    ("auto", Mode.ACTIVE, "root=nfs:192.0.2.1:/root", True, True),
    ("auto", Mode.ACTIVE, "root=/dev/nfs nfsroot=192.0.2.1:/root", True, True),
    ("auto", Mode.ACTIVE, "root=live:https://cfg.example/root.img", True, True),
    ("auto", Mode.ACTIVE, "root=UUID=12 netroot=iscsi:192.0.2.1::::iqn.2026:x", True, True),
    ("auto", Mode.ACTIVE, "root=nfsroot-is-no-kind", True, False),
    ("always", Mode.ACTIVE, LOCAL, True, True),
    # The user's own words win, whatever the setting; also over a root on the network.
    ("auto", Mode.ACTIVE, f"{LOCAL} ip=dhcp", False, False),
    ("always", Mode.ACTIVE, f"{LOCAL} ip=192.0.2.9::192.0.2.1:24::eth0:none", False, False),
    ("always", Mode.ACTIVE, "root=nfs:192.0.2.1:/ ip=dhcp", False, False),
    ("always", Mode.ACTIVE, f"{LOCAL} bond=bond0:eth0,eth1", False, False),
    ("always", Mode.ACTIVE, f"{LOCAL} vlan=eth0.5:eth0", False, False),
    ("always", Mode.ACTIVE, f"{LOCAL} bridge=br0:eth0", False, False),
    ("always", Mode.ACTIVE, f"{LOCAL} team=team0:eth0", False, False),
    ("always", Mode.ACTIVE, f"{LOCAL} rd.route=10.0.0.0/8:192.0.2.1", False, False),
    ("always", Mode.ACTIVE, f"{LOCAL} nameserver=192.0.2.1", False, False),
    ("always", Mode.ACTIVE, f"{LOCAL} ifname=lan:52:54:00:12:34:56", False, False),
    ("auto", Mode.ACTIVE, "rd.iscsi.firmware=1 root=UUID=12", False, False),
    ("auto", Mode.ACTIVE, "rd.iscsi.ibft root=UUID=12 rd.neednet=1", False, False),
    ("auto", Mode.ACTIVE, "rd.iscsi.firmware=1 root=UUID=12 rd.iscsi.firmware=0", True, False),
    ("auto", Mode.ACTIVE, "rd.iscsi.firmware=0 root=UUID=12 rd.iscsi.firmware=1", False, False),
    ("auto", Mode.ACTIVE, "rd.iscsi.firmware=0 root=UUID=12 rd.iscsi.ibft", False, False),
    ("always", Mode.ACTIVE, f"{LOCAL} fcoe=eth0:nodcb", False, False),
    ("always", Mode.ACTIVE, f"{LOCAL} rd.nvmf.discover=tcp,192.0.2.1,,4420 rd.neednet=1", False, False),
    ("auto", Mode.ACTIVE, f"{LOCAL} rd.nvmf.connect=tcp,192.0.2.1,,4420,nqn.2014-08.org.example:x", False, False),
    # Who the host is, and what does not go over a card of ours, is no network.
    ("auto", Mode.ACTIVE, f"{LOCAL} rd.nvmf.hostnqn=nqn.2014-08.org.example:x rd.nvmf.discover=fc,auto", True, False),
    # The card that it booted from is a hint, no configuration.
    ("auto", Mode.ACTIVE, f"{LOCAL} BOOTIF=01-52-54-00-12-34-56", True, False),
    ("auto", Mode.ACTIVE, f"{LOCAL} rd.neednet=1 BOOTIF=01-52-54-00-12-34-56", True, True),
    ("off", Mode.ACTIVE, "root=nfs:192.0.2.1:/ rd.neednet=1", False, False),
    # On DHCP by mode: nothing is looked for, and the network comes only if somebody asks for it.
    ("auto", Mode.RECOVERY, LOCAL, False, False),
    ("auto", Mode.RESET, f"{LOCAL} rd.neednet=1", False, True),
    ("always", Mode.LIVE, LOCAL, False, True),
])
def test_decision(setting: str, mode: Mode, cmdline: str, look: bool, network: bool) -> None:
    decision = decide(setting, mode, cmdline)
    assert (decision.look, decision.network) == (look, network), decision
    assert decision.reason


@pytest.mark.parametrize(("setting", "cmdline"), [("auto", LOCAL), ("always", f"{LOCAL} rd.neednet=1")])
def test_a_network_of_the_firmwares(setting: str, cmdline: str) -> None:
    """As if somebody had said it on the kernel line."""
    decision = decide(setting, Mode.ACTIVE, cmdline, "/sys/firmware/ibft")
    assert (decision.look, decision.network) == (False, False)
    assert "/sys/firmware/ibft" in decision.reason


@pytest.mark.parametrize(("cmdline", "said"), [
    ("rd.nvmf.nonbft", True), ("rd.nvmf.nonbft=0", False), ("rd.nvmf.nonbft=0 rd.nvmf.nonbft=yes", True), ("", None),
])
def test_switch(cmdline: str, said: bool | None) -> None:
    assert initrd.switch(parse(cmdline), "rd.nvmf.nonbft") is said


@pytest.mark.parametrize("cmdline", [
    "netroot=iscsi:user:hunter2@192.0.2.7::::iqn.2026:x", "netroot=iscsi:user:hunter2:rev:hunter3@192.0.2.7::::iqn.x",
    "root=cifs://user:hunter2@192.0.2.7/share",
])
def test_no_password_is_told(cmdline: str) -> None:
    for said in (initrd.needs_network(parse(cmdline)), initrd.standing_on_network(parse(cmdline)),
                 decide("auto", Mode.ACTIVE, cmdline).reason, initrd.why_no_device(parse(cmdline))):
        assert "hunter" not in said and "192.0.2.7" in said


@pytest.mark.parametrize(("cmdline", "said", "servers"), [
    ("root=nfs:192.0.2.1:/root", "root=nfs:192.0.2.1:/root", ("192.0.2.1",)),
    ("root=nfs4:[2001:db8::1]:/root:rw", "root=nfs4:[2001:db8::1]:/root:rw", ("2001:db8::1",)),
    ("root=nfs:server.example:/root", "root=nfs:server.example:/root", ()),
    ("root=UUID=1 netroot=iscsi:@192.0.2.7::3260:1:iqn.2026:x", "netroot=iscsi:@192.0.2.7::3260:1:iqn.2026:x",
     ("192.0.2.7",)),
    ("netroot=iscsi:user:secret@192.0.2.7::::iqn.2026:x", "netroot=iscsi:***@192.0.2.7::::iqn.2026:x",
     ("192.0.2.7",)),
    ("root=cifs://192.0.2.9/share", "root=cifs://192.0.2.9/share", ("192.0.2.9",)),
    ("root=/dev/nfs nfsroot=192.0.2.1:/root,v3", "root=/dev/nfs", ()),
    ("root=live:nfs:192.0.2.1:/root.img", "root=live:nfs:192.0.2.1:/root.img", ("192.0.2.1",)),
    ("rd.nvmf.discover=tcp,192.0.2.1,,4420", "rd.nvmf.discover=tcp,192.0.2.1,,4420", ("192.0.2.1",)),
    ("rd.nvmf.discover=tcp,[2001:db8::1],,4420", "rd.nvmf.discover=tcp,[2001:db8::1],,4420", ("2001:db8::1",)),
    ("rd.nvmf.discover=fc,auto", "", ()),
    # A live image is in memory once it is loaded, and a network that anybody else wanted carries no root.
    ("root=live:https://192.0.2.1/root.img rd.neednet=1", "", ()),
    ("rd.iscsi.firmware", "rd.iscsi.firmware", ()),
    ("rd.iscsi.firmware rd.iscsi.firmware=0", "", ()),
    (LOCAL, "", ()),
])
def test_root_that_stands_on_the_network(cmdline: str, said: str, servers: tuple[str, ...]) -> None:
    assert initrd.standing_on_network(parse(cmdline)) == said
    assert initrd.servers(said) == servers


@pytest.mark.parametrize(("cmdline", "mac"), [
    ("BOOTIF=01-52-54-00-AB-cd-ef", "52:54:00:ab:cd:ef"),
    ("BOOTIF=52:54:00:ab:cd:ef", "52:54:00:ab:cd:ef"),
    ("BOOTIF=01-52-54-00-ab-cd-ef BOOTIF=01-52-54-00-00-00-01", "52:54:00:00:00:01"),
    ("BOOTIF=01-52-54-00-ab-cd-ef rd.bootif=0", ""),
    ("rd.bootif=0 BOOTIF=01-52-54-00-ab-cd-ef rd.bootif=1", "52:54:00:ab:cd:ef"),
    ("BOOTIF=eth0", ""),
    ("BOOTIF=01-52-54-00-ab-cd-xy", ""),
    ("", ""),
])
def test_card_that_it_booted_from(cmdline: str, mac: str) -> None:
    assert initrd.boot_mac(parse(cmdline)) == mac


@pytest.mark.parametrize(("cmdline", "device"), [
    ("root=UUID=12-34", RootDevice("/dev/disk/by-uuid/12-34")),
    ('root=LABEL="root fs"', RootDevice("/dev/disk/by-label/root fs")),
    ("root=PARTUUID=ab rootfstype=btrfs rootflags=subvol=@,compress=zstd",
     RootDevice("/dev/disk/by-partuuid/ab", "btrfs", "subvol=@,compress=zstd")),
    ("root=block:/dev/vda1", RootDevice("/dev/vda1")),
    ("root=/dev/vda1 rootfstype=auto", RootDevice("/dev/vda1")),
    ("root=/dev/vda1 rootfstype=ext4,xfs", RootDevice("/dev/vda1")),
    ("root=/dev/sda2 root=/dev/sdb2", RootDevice("/dev/sdb2")),
    # Made or unlocked by somebody else first, or no device at all.
    ("root=/dev/mapper/root", None),
    ("root=UUID=12 rd.luks.uuid=34", None),
    ("root=UUID=12 rd.luks=0", RootDevice("/dev/disk/by-uuid/12")),
    ("root=nfs:192.0.2.1:/", None),
    ("root=UUID=12 netroot=iscsi:192.0.2.1::::iqn.2026:x", None),
    ("root=UUID=12 rd.iscsi.firmware", None),
    ("root=/dev/nbd0", None),
    ("root=live:CDLABEL=COS_LIVE", None),
    ("", None),
])
def test_root_device(cmdline: str, device: RootDevice | None) -> None:
    assert initrd.root_device(parse(cmdline)) == device
    assert bool(initrd.why_no_device(parse(cmdline))) == (device is None)


@pytest.mark.parametrize(("cmdline", "why"), [
    ("root=UUID=12 rd.luks.uuid=34", "encrypted and not open yet: rd.luks.uuid"),
    ("root=/dev/mapper/vg-root", "encrypted, or made of parts, and not there yet: root=/dev/mapper/vg-root"),
    ("root=nfs:192.0.2.1:/", "on the network: root=nfs:192.0.2.1:/"),
    ("root=live:CDLABEL=COS_LIVE", "not on a device that is here now: root=live:CDLABEL=COS_LIVE"),
    ("quiet", "no root= on the kernel line"),
])
def test_why_there_is_no_root_device(cmdline: str, why: str) -> None:
    assert initrd.why_no_device(parse(cmdline)) == why
