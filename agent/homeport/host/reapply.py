"""What NetworkManager does for settings beside a profile: a device runs with them, the profile stays.

Knows how they get there and go again.  Nothing is on disk and nothing goes down: a profile that is brought up
anew, and a boot, are without them.  What is in them is decided in `core/beside.py`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping

from homeport.core.beside import Card, Settings, merged, with_shared_rules
from homeport.core.compare.values import plain_ip
from homeport.core.plan import Plan
from homeport.core.strangers import Added
from homeport.errors import ApplyError, HomeportError
from homeport.host import profiles
from homeport.host.networkmanager import Device, Manager
from homeport.host.nm.values import DeviceState

log = logging.getLogger(__name__)

# NetworkManager reapplies to what it is bringing up, or has.
RUNNING = range(DeviceState.PREPARE, DeviceState.DEACTIVATING)
# The version that is changed: what was applied before, by us or by another, is not what this is made of.
WHATEVER = 0
GOOD_AT_IT = (1, 52)
STARTING = 10.0  # seconds until a card that is given the bootstrap profile begins with IP
PAUSE = 0.05


def read_cards(manager: Manager, names: Collection[str]) -> dict[str, Card]:
    """The profile of each of these cards; of one that has none, the bootstrap, which it can be given."""
    bootstrap = profiles.bootstrap(manager)
    external = {name for active in manager.active_profiles() if active.external for name in active.interfaces}
    cards = {}
    for device in manager.devices():
        if device.interface not in names or device.interface in external:
            continue
        if device.profile and device.state in RUNNING:
            applied, _ = manager.applied(device.path)
            cards[device.interface] = Card(
                settings_of(manager, device), ours=device.profile_id == profiles.BOOTSTRAP,
                metrics=metrics(applied), held=held(applied))
        elif device.managed and bootstrap is not None:
            cards[device.interface] = Card(manager.profile_settings(bootstrap.uuid), ours=True)
    return cards


def metrics(applied: Settings) -> dict[str, int]:
    """The metrics of automatic routes by family, where the settings say any."""
    found = {family: applied.get(family, {}).get("route-metric", ("x", -1))[1] for family in ("ipv4", "ipv6")}
    return {family: int(metric) for family, metric in found.items() if metric != -1}


def held(applied: Settings) -> frozenset[str]:
    """The static addresses of the settings."""
    return frozenset(plain_ip(row["address"][1]) for family in ("ipv4", "ipv6")
                     for row in applied.get(family, {}).get("address-data", ("aa{sv}", []))[1])


def settings_of(manager: Manager, device: Device) -> Settings:
    """What the device runs with, its IP as its profile has it: so nothing that was added before is in it."""
    stored, (found, _) = manager.profile_settings(device.profile), manager.applied(device.path)
    for section in ("ipv4", "ipv6", "user"):
        found.pop(section, None)
        if section in stored:
            found[section] = stored[section]
    wired = {key: value for key, value in found.get("802-3-ethernet", {}).items() if key != "mtu"}
    if "mtu" in stored.get("802-3-ethernet", {}):
        wired["mtu"] = stored["802-3-ethernet"]["mtu"]
    return {**found, "802-3-ethernet": wired}


def put_beside(manager: Manager, plan: Plan, *, checkpoint_seconds: int) -> Callable[[], None]:
    """Put the plan of one card in force; what puts everything back. Raises ApplyError.

    The checkpoint is for the case that we are killed: its rollback brings the profile up anew.
    """
    (name,) = plan.interfaces
    manager.create_checkpoint(checkpoint_seconds)
    device = _running(manager, name)
    before, _ = manager.applied(device.path)
    added = plan.strangers.get(name, Added())
    preserve = can_preserve(manager)
    assert plan.card is not None
    manager.reapply(device.path, merged(plan.card, plan.desired, added.of_ipv6() if preserve else added), WHATEVER,
                    preserve=preserve)

    def put_back() -> None:
        manager.reapply(device.path, before, WHATEVER, preserve=preserve)
        for path in manager.checkpoints():
            manager.destroy_checkpoint(path)

    return put_back


def can_preserve(manager: Manager) -> bool:
    """Whether this NetworkManager can be told to leave alone what it has not made, and keeps its IPv6 then.

    1.42.4 does not, 1.52.1 does (measured); with those between the way is taken that works with both.
    """
    numbers = manager.version().split(".")
    return tuple(int(number) for number in numbers[:2]) >= GOOD_AT_IT if all(map(str.isdigit, numbers[:2])) else True


def wait_for(leased: Mapping[str, frozenset[str]], seconds: float) -> list[str]:
    """Until each interface has these addresses, and a service can bind to them; those that stay away for so long."""
    from homeport.host.proof.kernel import read_network
    end = time.monotonic() + seconds
    while True:
        network = read_network()
        usable = {(name, address.ip) for name in leased for address in network.on(name) if address.usable}
        missing = [ip for name, wanted in leased.items() for ip in sorted(wanted) if (name, ip) not in usable]
        if not missing or time.monotonic() > end:
            return missing
        time.sleep(PAUSE)


def take_back(manager: Manager, names: Iterable[str]) -> None:
    """Let these interfaces run with their profiles alone. Those that are away have nothing to take back."""
    preserve = can_preserve(manager)
    for device in manager.devices():
        if device.interface in names and device.profile and device.state in RUNNING:
            try:
                manager.reapply(device.path, settings_of(manager, device), WHATEVER, preserve=preserve)
            except HomeportError as error:
                log.warning("%s keeps what was added to its profile: %s; it goes with the next boot",
                            device.interface, error)


def share_rules(manager: Manager, names: Collection[str]) -> None:
    """Let each of these interfaces run with every rule that belongs to no address, as their keyfiles will have it.

    nmstate gives such a rule to one of them: it would go with that one (core/keyfile/rules.py).
    """
    running = [device for device in manager.devices()
               if device.interface in names and device.profile and device.state in RUNNING]
    found = {device.path: manager.applied(device.path)[0] for device in running}
    for path, settings in with_shared_rules(found).items():
        manager.reapply(path, settings, WHATEVER, preserve=can_preserve(manager))


def _running(manager: Manager, name: str) -> Device:
    """The device, given the bootstrap profile if it has none."""
    end = time.monotonic() + STARTING
    asked = False
    while True:
        device = manager.device(name)
        if device is not None and device.profile and device.state in RUNNING:
            return device
        bootstrap = profiles.bootstrap(manager)
        if device is not None and bootstrap is not None and not asked:
            manager.activate(bootstrap.uuid, name)
            asked = True
        if time.monotonic() > end:
            raise ApplyError(f"no profile comes up on {name}",
                             "the journal of NetworkManager says why" if device else "the card is gone")
        time.sleep(PAUSE)
