"""What homeport does for others on a machine at a provider: attributes, host name, word of the boot; and how all of it
is switched off.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from tests.sources.platforms import told

from container import Machine, Nic
from firmware import firmware_of
from namespaces import wait_until
from provider import Provider
from trees import REPOSITORY
from world import Lan, World

MAC = "00:00:5e:00:53:01"
UNITS = ("homeport-attributes", "homeport-hostname", "homeport-check-in")
MakeMachine = Callable[..., Machine]
AZURE = firmware_of("azure", chassis_asset_tag="7783-7084-3265-9085-8269-3286-77")
# What systemd and shells take for more than text.
SIZE = "Standard_B1s '\"$HOME ${HOME} `id` \\ \\n #;"
WIRE_SERVER = "198.51.100.16"  # not the one that everybody knows: the lease has it


@pytest.fixture
def lan(world: World) -> Lan:
    """A provider's subnet, whose DHCP names Azure's wire server."""
    lan = world.add_lan("subnet", ("10.1.0.1/24", "2001:db8:7::1/64", "fe80::1/64"))
    lan.dhcp.start(first="10.1.0.4", last="10.1.0.4", router="10.1.0.1",
                   extra=(f"--dhcp-option-force=245,{WIRE_SERVER}",))
    return lan


def azure(name: str) -> dict[str, str]:
    address = {"privateIpAddress": "10.1.0.4", "publicIpAddress": "203.0.113.4"}
    family = {"ipAddress": [address], "subnet": [{"address": "10.1.0.0", "prefix": "24"}]}
    network = {"interface": [{"macAddress": MAC.replace(":", "").upper(), "ipv4": family, "ipv6": {"ipAddress": []}}]}
    return {"metadata/instance/network": json.dumps(network),
            "metadata/instance/compute": json.dumps({"name": name, "vmSize": SIZE})}


def enable(machine: Machine, *units: str) -> None:
    for unit in units:
        link = machine.on_disk(f"/etc/systemd/system/multi-user.target.wants/{unit}.service")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"/usr/lib/systemd/system/{unit}.service")


def unnamed(machine: Machine) -> None:
    machine.write("/etc/hostname", "")


def state(machine: Machine, unit: str) -> str:
    """Of a unit that has been started: "active" or "failed", once it has done what it does."""
    def settled() -> str:
        shown = machine.run(["systemctl", "show", "-P", "ActiveState", unit]).stdout.strip()
        return shown if shown not in ("activating", "inactive") else ""

    return wait_until(settled, what=f"the end of {unit}")


def test_azure(world: World, lan: Lan, make_machine: MakeMachine, allow: Callable[..., None]) -> None:
    """All three, on the first boot: a name too long for the kernel, and a check that must succeed before "Ready"."""
    allow("Dependency failed for homeport-check-in")
    machine = make_machine("azure-vm", nics=(Nic("eth0", MAC, lan),), firmware=AZURE)
    enable(machine, *UNITS)
    unnamed(machine)
    # A health check of the image's, as boot-complete.target is for (systemd.special(7)).
    machine.write("/etc/systemd/system/health.service", "[Unit]\nBefore=boot-complete.target\n[Service]\n"
                  "Type=oneshot\nExecStart=/bin/sh -c 'sleep 1; ! test -e /etc/sick'\n"
                  "[Install]\nRequiredBy=boot-complete.target\n")
    wants = machine.on_disk("/etc/systemd/system/boot-complete.target.requires/health.service")
    wants.parent.mkdir(parents=True)
    wants.symlink_to("/etc/systemd/system/health.service")
    name = "web-1-of-a-cluster-with-quite-a-long-name.production.example.internal.test"
    with (Provider(world, "azure", azure(name), address="169.254.169.254"),
          Provider(world, "azure", {}, address=WIRE_SERVER, hears=told.azure) as wire):
        boot = machine.boot()
        assert boot.status["source"].startswith("platform azure") and boot.addresses("eth0") == ["10.1.0.4/24"]
        # Before network-online.target, so that whoever registers somewhere does so under this name.
        assert machine.run(["uname", "-n"]).stdout.strip() == name.partition(".")[0]
        assert machine.read("/etc/hostname").strip() == name.partition(".")[0]
        machine.wait(f"journalctl -b -u homeport-hostname -o cat | grep -qF \"cut from '{name}'\"")
        assert [state(machine, f"{unit}.service") for unit in UNITS] == ["active"] * 3
        assert len(wire.told.good) == 1
        attributes = machine.read("/run/metadata/afterburn")
        assert f"AFTERBURN_CUSTOM_HOSTNAME={name}\n" in attributes
        assert "AFTERBURN_CUSTOM_PRIVATE_IPV4=10.1.0.4\nAFTERBURN_CUSTOM_PUBLIC_IPV4=203.0.113.4\n" in attributes
        assert machine.run(["stat", "-c", "%a", "/run/metadata/afterburn"]).stdout == "644\n"
        # As other units read it.
        shown = machine.run(["systemd-run", "--wait", "--pipe", "-q", "-p", "EnvironmentFile=/run/metadata/afterburn",
                             "printenv", "AFTERBURN_AZURE_VMSIZE"]).stdout
        assert shown == f"{SIZE}\n"

        # An administrator's name stays, and nobody is asked for another; a sick boot is not called ready.
        machine.power_off()
        machine.write("/etc/hostname", "db-7\n")
        machine.write("/etc/sick", "")
        again = machine.boot()
        assert again.status["exit"] == 0
        assert machine.run(["uname", "-n"]).stdout.strip() == "db-7"
        wait_until(lambda: "Dependency failed" in machine.console, what="the check-in to be given up")
        assert len(wire.told.good) == 1
        assert "stays db-7: somebody has set it" in machine.story()


def ignite(machine: Machine, platform: str) -> None:
    """What Ignition makes of the platform's fragment on a first boot."""
    folder = machine.folder / "base.platform.d"
    subprocess.run([sys.executable, REPOSITORY / "tools/ignition-fragments.py", folder], check=True)
    fragment = json.loads((folder / platform / "50-homeport.ign").read_text())
    for unit in fragment["systemd"]["units"]:
        if unit.get("mask"):
            machine.on_disk(f"/etc/systemd/system/{unit['name']}").symlink_to("/dev/null")
        for dropin in unit.get("dropins", ()):
            machine.write(f"/etc/systemd/system/{unit['name']}.d/{dropin['name']}", dropin["contents"])
    enabled = [unit["name"].removesuffix(".service") for unit in fragment["systemd"]["units"] if unit.get("enabled")]
    enable(machine, *(unit for unit in enabled if unit in UNITS))


def test_scaleway_with_ignition(world: World, lan: Lan, make_machine: MakeMachine) -> None:
    """Host name and check-in, as the platform's fragment has them; by IPv6 while the IPv4 service is out of order."""
    document = {"hostname": "scw-1", "id": "i-1", "public_ips": [
        {"address": "10.1.0.4", "netmask": "24", "family": "inet", "provisioning_mode": "dhcp"},
        {"address": "2001:db8:7::4", "netmask": "64", "gateway": "fe80::1", "family": "inet6",
         "provisioning_mode": "manual"}]}
    machine = make_machine("scaleway", nics=(Nic("ens2", MAC, lan),))
    ignite(machine, "scaleway")
    unnamed(machine)
    with (Provider(world, "scaleway", {"conf": json.dumps(document)}, hears=told.scaleway) as first,
          Provider(world, "scaleway", {}, address="fd00:42::42", hears=told.scaleway) as twin):
        boot = machine.boot("ignition.platform.id=scaleway")
        assert boot.status["source"].startswith("platform scaleway")
        assert machine.run(["uname", "-n"]).stdout == "scw-1\n"
        assert state(machine, "homeport-check-in.service") == "active" and len(first.told.good) == 1
        first.stop()
        machine.run(["systemctl", "restart", "homeport-check-in"])
        assert len(twin.told.good) == 1
    command = machine.run(["systemctl", "show", "-P", "ExecStart", "homeport-check-in"]).stdout
    assert "$HOMEPORT_OPTIONS" in command  # filled in from the drop-in, which named the platform
    assert "--platform scaleway" in machine.run(["systemctl", "show", "-P", "Environment", "homeport-check-in"]).stdout


def test_report_says_when_the_boot_is_complete(world: World, lan: Lan, make_machine: MakeMachine) -> None:
    """The server of Report= hears twice: the outcome at once, and that all of the boot went well."""
    heard: list[dict[str, Any]] = []

    def hear(method: str, target: str, headers: Any, body: bytes) -> told.Answer:
        heard.append(json.loads(body) if body else {})
        return 200, b""

    machine = make_machine("reporting", nics=(Nic("eth0", MAC, lan),))
    enable(machine, "homeport-check-in")
    with Provider(world, "report", {}, address="198.51.100.77", hears=hear):
        machine.boot("homeport.report=http://198.51.100.77/boots", "homeport.platform=off", "homeport.mode=recovery")
        assert state(machine, "homeport-check-in.service") == "active"
    posts = [post for post in heard if post]
    assert [post.get("event", "") for post in posts] == ["", "boot-complete"]
    assert posts[0]["rung"] == posts[1]["rung"] == "dhcp"


@pytest.mark.parametrize("how", ["mask", "argument"])
def test_one_unit_to_mask(world: World, lan: Lan, make_machine: MakeMachine, how: str) -> None:
    """Plain DHCP by NetworkManager, and nothing of ours runs, whatever is enabled."""
    machine = make_machine(f"masked-{how}", nics=(Nic("eth0", MAC, lan),), firmware=AZURE)
    enable(machine, *UNITS)
    unnamed(machine)
    timer = machine.on_disk("/etc/systemd/system/timers.target.wants/homeport-refresh.timer")
    timer.parent.mkdir(parents=True, exist_ok=True)
    timer.symlink_to("/usr/lib/systemd/system/homeport-refresh.timer")
    if how == "mask":
        machine.on_disk("/etc/systemd/system/homeport.service").symlink_to("/dev/null")
    with ExitStack() as stack:
        service = stack.enter_context(Provider(world, "azure", azure("web-1"), address="169.254.169.254"))
        wire = stack.enter_context(Provider(world, "azure", {}, address=WIRE_SERVER, hears=told.azure))
        boot = machine.boot(*(["systemd.mask=homeport.service"] if how == "argument" else []))
        assert boot.addresses("eth0") == ["10.1.0.4/24"] and boot.resolv
        assert boot.failed_units == []
        machine.run(["timeout", "20", "systemctl", "is-system-running", "--wait"], check=False)
        for unit in (*UNITS, "homeport-refresh"):
            shown = machine.sh(f"systemctl show -P ActiveState -P ConditionResult {unit}").stdout.split()
            assert shown == ["inactive", "no"], unit
        assert service.service.requests == [] and wire.told.requests == []
    assert not machine.exists("/run/homeport/status.json")
    assert not [name for name in machine.look().keyfiles if name.startswith("homeport-")]
