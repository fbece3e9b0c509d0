"""Who gets what: one address for each machine and name, for ever; and every way in which that could go wrong."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from homeport_server import changes
from homeport_server.admission import Moved, Request
from homeport_server.caller import Caller, Facts, clean_facts, plain_caller
from homeport_server.manifests.sets import read_manifests
from homeport_server.outcome import Assigned, Outcome, Refused, Waiting
from homeport_server.registrar import Registrar
from homeport_server.store import addresses, tables
from homeport_server.store.database import Database, StoreError

DATA = Path(__file__).parents[1] / "data" / "server"
SEED = (DATA / "seed.yaml").read_text()
INVENTORY = (DATA / "inventory.yaml").read_text()
SEED_HASH = "759d02b8cdfad743082ac528214a5b00cb3d6079aaa2b6bb35d87209e36f1fdb"
NAME = "test-btrfs-d47ca4cf-e95e-4e43-939b-e5bce460fbfc"
NO_FACTS = Facts()


@dataclass
class Desk:
    """A registrar with a clock that only the test moves."""

    registrar: Registrar
    now: list[float] = field(default_factory=lambda: [1_000_000.0])

    def load(self, *texts: str) -> list[str]:
        manifests, faults = read_manifests({f"{i}.yaml": text.encode() for i, text in enumerate(texts)})
        assert not faults
        return self.registrar.put_in_force(manifests)

    def ask(self, caller: Caller | str, facts: Facts = NO_FACTS, uuid: str = "") -> Outcome:
        who = plain_caller(caller) if isinstance(caller, str) else caller
        return self.registrar.ask(Request(
            who, self.registrar.manifests.registrations[0], facts=facts,
            data={"System Information": {"UUID": uuid or f"{who.kind}-{who.digest[:20]}"}}))

    def ip(self, caller: Caller | str, facts: Facts = NO_FACTS) -> str:
        outcome = self.ask(caller, facts)
        assert isinstance(outcome, Assigned), outcome
        return outcome.addresses["inventory-ip"].ip

    def release(self, text: str, forget: bool = False) -> list[str]:
        return changes.release(self.registrar.database, text, self.now[0], forget=forget)

    def reserve(self, text: str, ip: str) -> str:
        return changes.reserve(self.registrar.database, text, {"inventory-ip": ip}, self.now[0])


Make = Callable[..., Desk]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Database] = []

    def desk(*texts: str, moved: Moved = "same") -> Desk:
        database = Database(tmp_path / "state.sqlite")
        made.append(database)
        now = [1_000_000.0]
        found = Desk(Registrar(database, lambda: now[0], secrets.randbelow, moved), now)
        found.load(*(texts or (SEED,)))
        return found

    yield desk
    for database in made:
        database.close()


def small(last: int, **more: object) -> str:
    """The seed's pool, smaller: from 150 to `last`."""
    extra = "".join(f"  {key}: {value}\n" for key, value in more.items())
    return SEED.replace("192.168.122.200", f"192.168.122.{last}").replace("  prefix: 24\n", f"  prefix: 24\n{extra}", 1)


def test_the_lowest_free_one_and_then_the_same(make: Make) -> None:
    desk = make()
    assert [desk.ip("a"), desk.ip("b"), desk.ip("c")] == [f"192.168.122.15{n}" for n in range(3)]
    assert [desk.ip("c"), desk.ip("a"), desk.ip("b")] == ["192.168.122.152", "192.168.122.150", "192.168.122.151"]
    again = make()  # another process, the same file
    assert [again.ip("a"), again.ip("c")] == ["192.168.122.150", "192.168.122.152"]


def test_tpm_and_plain_are_two_machines(make: Make) -> None:
    desk = make()
    plain = plain_caller("a")
    assert desk.ip(plain) != desk.ip(Caller("tpm", plain.digest))


def test_exhausted_and_served_again(make: Make) -> None:
    desk = make(small(151))
    assert [desk.ip("a"), desk.ip("b")] == ["192.168.122.150", "192.168.122.151"]
    outcome = desk.ask("c")
    assert isinstance(outcome, Waiting)
    assert "no address of InClusterIPPool/fleet-default/elemental-inventory-pool is free" in outcome.reason
    machine, = desk.registrar.look_up("c")
    assert machine.pending == outcome.reason
    assert desk.release("a") == ["192.168.122.150"]
    assert desk.ip("c") == "192.168.122.150"
    assert desk.registrar.look_up("c")[0].pending == ""
    assert isinstance(desk.ask("a"), Waiting)
    # A larger pool serves, too.
    desk.load(small(152))
    assert desk.ip("a") == "192.168.122.152"


def test_a_pool_that_shrinks_takes_nothing_back(make: Make) -> None:
    desk = make()
    ips = [desk.ip(name) for name in "abc"]
    desk.load(small(150))
    assert [desk.ip(name) for name in "abc"] == ips
    assert isinstance(desk.ask("d"), Waiting)


def test_a_released_address_rests(make: Make) -> None:
    desk = make(small(150, addressReuseGracePeriodSeconds=60))
    assert desk.ip("a") == "192.168.122.150"
    desk.release("a")
    assert isinstance(desk.ask("b"), Waiting)
    desk.now[0] += 61
    assert desk.ip("b") == "192.168.122.150"


def test_edits_of_a_registration_reach_known_machines(make: Make) -> None:
    desk = make()
    first = desk.ask("a")
    desk.load(SEED.replace("metric: 150", "metric: 160"))
    second = desk.ask("a")
    assert isinstance(first, Assigned)
    assert isinstance(second, Assigned)
    assert second.network.config["routes"]["config"][0]["metric"] == 160
    assert first.revision != second.revision
    assert first.addresses == second.addresses


def test_an_inventory_pins(make: Make) -> None:
    desk = make(SEED, INVENTORY)
    # Its address is nobody else's, though it is the first of the pool.
    assert desk.ip("a") == "192.168.122.151"
    outcome = desk.ask(Caller("tpm", SEED_HASH))
    assert isinstance(outcome, Assigned)
    assert outcome.machine == NAME
    assert outcome.addresses["inventory-ip"].ip == "192.168.122.150"
    assert outcome.addresses["inventory-ip"].gateway == "192.168.122.1"


def test_an_inventory_moves_a_machine_when_it_is_edited(make: Make) -> None:
    desk = make(SEED, INVENTORY)
    assert desk.ip(Caller("tpm", SEED_HASH)) == "192.168.122.150"
    desk.load(SEED, INVENTORY.replace("192.168.122.150", "192.168.122.77"))
    assert desk.ip(Caller("tpm", SEED_HASH)) == "192.168.122.77"
    assert desk.ip("a") == "192.168.122.150"  # free again
    desk.load(SEED)
    assert desk.ip(Caller("tpm", SEED_HASH)) == "192.168.122.77"  # what it has it keeps


def test_an_inventory_does_not_take_what_another_has(make: Make) -> None:
    desk = make()
    assert desk.ip("a") == "192.168.122.150"
    warnings = desk.load(SEED, INVENTORY)
    assert "192.168.122.150 is fixed by fleet-default/" in warnings[0]
    outcome = desk.ask(Caller("tpm", SEED_HASH))
    assert isinstance(outcome, Waiting)
    assert "another machine has it" in outcome.reason
    desk.release("a", forget=True)
    assert desk.ip(Caller("tpm", SEED_HASH)) == "192.168.122.150"


def test_an_inventory_that_fixes_only_the_address(make: Make) -> None:
    """The configuration is the registration's then."""
    bare = INVENTORY[:INVENTORY.index("    configurator")] + "    ipAddresses: {inventory-ip: 192.168.122.199}\n"
    desk = make(SEED, bare)
    outcome = desk.ask(Caller("tpm", SEED_HASH))
    assert isinstance(outcome, Assigned)
    assert outcome.addresses["inventory-ip"].ip == "192.168.122.199"
    assert outcome.network.config == desk.registrar.manifests.registrations[0].network.config


def test_a_reservation_before_the_machine(make: Make) -> None:
    desk = make()
    desk.reserve("52:54:00:AA:BB:CC", "192.168.122.150")
    desk.reserve("SN-0042", "192.168.122.180")
    assert desk.ip("a") == "192.168.122.151"
    assert desk.ip("b", Facts(macs=frozenset({"52:54:00:aa:bb:cc"}))) == "192.168.122.150"
    assert desk.ip("c", Facts(serial="SN-0042")) == "192.168.122.180"


def test_a_reservation_for_a_known_machine(make: Make) -> None:
    desk = make()
    assert [desk.ip("a"), desk.ip("b")] == ["192.168.122.150", "192.168.122.151"]
    desk.reserve("a", "192.168.122.200")
    assert desk.ip("a") == "192.168.122.200"
    with pytest.raises(changes.NotFree, match=r"192\.168\.122\.151"):
        desk.reserve("a", "192.168.122.151")
    # Released, it is still reserved; forgotten, it is free.
    desk.release("a")
    assert desk.ip("a") == "192.168.122.200"
    desk.reserve("a", "192.168.122.201")  # another one in its place
    assert desk.ip("a") == "192.168.122.201"
    desk.release("a", forget=True)
    assert not desk.registrar.look_up("a")
    assert desk.ip("c") == "192.168.122.150"


def test_a_reservation_of_what_the_machine_has(make: Make) -> None:
    desk = make()
    assert desk.ip("a") == "192.168.122.150"
    desk.reserve("a", "192.168.122.150")
    desk.release("a")
    assert desk.ip("b") == "192.168.122.151"
    assert desk.ip("a") == "192.168.122.150"


BOARD = Facts(serial="SN-0001", macs=frozenset({"52:54:00:00:00:01", "52:54:00:00:00:02"}))


def test_a_changed_uuid_is_the_same_machine(make: Make) -> None:
    """No second address: serial number and a card are known. And back, as firmware does when a card is switched off."""
    desk = make()
    first = desk.ip("uuid-one", BOARD)
    assert desk.ip("uuid-two", Facts(serial="SN-0001", macs=frozenset({"52:54:00:00:00:02"}))) == first
    assert desk.ip("uuid-one", BOARD) == first
    machine, = desk.registrar.look_up("uuid-two")
    assert machine.note == "moved: it was uuid-one, now it is uuid-two"


def test_a_changed_uuid_may_be_another_machine(make: Make) -> None:
    desk = make(moved="new")
    assert desk.ip("uuid-one", BOARD) != desk.ip("uuid-two", BOARD)


@pytest.mark.parametrize("facts", [
    Facts(serial="SN-0001", macs=frozenset({"52:54:00:00:00:99"})),  # the serial number alone
    Facts(serial="SN-0002", macs=BOARD.macs),  # the cards alone
    clean_facts(serial="Not Specified", macs=BOARD.macs),  # a serial number that is none
])
def test_one_fact_is_not_enough(make: Make, facts: Facts) -> None:
    desk = make()
    assert desk.ip("uuid-one", BOARD) != desk.ip("uuid-two", facts)


@pytest.mark.parametrize(("known", "comes"), [
    (Caller("tpm", "1" * 64), plain_caller("uuid-two")),
    (Caller("tpm", "1" * 64), Caller("tpm", "2" * 64)),
    (plain_caller("uuid-one"), Caller("tpm", "2" * 64)),
])
def test_a_tpm_is_not_had_for_a_serial_number(make: Make, known: Caller, comes: Caller) -> None:
    """Neither the machine's document nor a second address; a person decides."""
    desk = make()
    first = desk.ip(known, BOARD)
    outcome = desk.ask(comes, BOARD)
    assert isinstance(outcome, Refused)
    assert "no second address" in outcome.reason
    name = desk.registrar.look_up(known.value or known.digest)[0].name
    desk.release(name, forget=True)
    assert desk.ip(comes, BOARD) == first


def test_one_identity_on_two_boards(make: Make) -> None:
    """Vendors ship boards with one UUID, and emulated TPMs with one seed."""
    desk = make()
    first = desk.ip("uuid-one", BOARD)
    outcome = desk.ask("uuid-one", Facts(serial="SN-0002", macs=frozenset({"52:54:00:00:00:05"})))
    assert isinstance(outcome, Refused)
    assert "two machines with one identity" in outcome.reason
    assert desk.ip("uuid-one", BOARD) == first
    # A new card, or a new board in the old case, is no other machine.
    assert desk.ip("uuid-one", Facts(serial="SN-0001", macs=frozenset({"52:54:00:00:00:05"}))) == first


def test_one_name_for_two_machines(make: Make) -> None:
    desk = make(SEED.replace("${System Information/UUID}", "same"))
    desk.ip("a")
    outcome = desk.ask("b")
    assert isinstance(outcome, Refused)
    assert "already exists" in outcome.reason


def test_several_names_from_several_pools(make: Make) -> None:
    """All of them or none; and the second family from its own pool."""
    other = SEED.partition("---")[0].replace("elemental-inventory-pool", "six").replace(
        "192.168.122.150-192.168.122.200", "2001:db8::10-2001:db8::11").replace("prefix: 24", "prefix: 64").replace(
        "gateway: 192.168.122.1", "gateway: 2001:db8::1").replace("kind: In", "kind: GlobalIn")
    both = SEED.replace("        inventory-ip:\n",
                        "        six: {kind: GlobalInClusterIPPool, name: six}\n        inventory-ip:\n")
    desk = make(both, other)
    for name, last in (("a", "10"), ("b", "11")):
        outcome = desk.ask(name)
        assert isinstance(outcome, Assigned)
        assert outcome.addresses["six"].ip == f"2001:db8::{last}"
    waiting = desk.ask("c")
    assert isinstance(waiting, Waiting)
    assert waiting.reason.startswith("six: no address of GlobalInClusterIPPool/six")


def test_pools_that_overlap_give_no_address_twice(make: Make) -> None:
    other = small(155).partition("---")[0].replace("elemental-inventory-pool", "other")
    both = small(153).replace("        inventory-ip:\n",
                              "        b: {kind: InClusterIPPool, name: other}\n        inventory-ip:\n")
    desk = make(both, other)
    given: list[str] = []
    for name in "ab":
        outcome = desk.ask(name)
        assert isinstance(outcome, Assigned)
        given += [address.ip for address in outcome.addresses.values()]
    assert sorted(given) == [f"192.168.122.15{n}" for n in range(4)]
    assert isinstance(desk.ask("c"), Waiting)  # one for b, in the larger pool, none for inventory-ip


def test_no_network_is_an_answer(make: Make) -> None:
    desk = make(SEED[:SEED.index("    network:")] + "    network: {configurator: none}\n")
    outcome = desk.ask("a")
    assert isinstance(outcome, Assigned)
    assert not outcome.network
    assert not outcome.addresses


def test_a_reset_machine_gives_back(make: Make) -> None:
    desk = make()
    assert desk.ip("a") == "192.168.122.150"
    assert desk.registrar.hear(plain_caller("a"), {"event": "reset"}) == ["192.168.122.150"]
    assert desk.registrar.hear(plain_caller("never seen"), {"event": "reset"}) == []
    assert desk.ip("b") == "192.168.122.150"
    assert desk.ip("a") == "192.168.122.151"


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(["ask", "release", "forget", "reserve"]), st.integers(0, 7),
                          st.integers(150, 156)), max_size=30))
def test_whatever_happens(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]) -> None:
    """No address twice, none outside the pool, none that changes without a reason."""
    database = Database(tmp_path_factory.mktemp("any") / "state.sqlite")
    desk = Desk(Registrar(database, lambda: 0.0, secrets.randbelow))
    desk.load(small(154))
    has: dict[str, str] = {}
    for step, number, last in steps:
        name = f"machine-{number}"
        if step == "ask":
            outcome = desk.ask(name)
            if isinstance(outcome, Assigned):
                ip = outcome.addresses["inventory-ip"].ip
                assert has.get(name, ip) == ip
                has[name] = ip
            else:
                assert name not in has
        else:
            try:
                if step == "reserve":
                    desk.reserve(name, f"192.168.122.{last}")
                else:
                    desk.release(name, forget=step == "forget")
            except (changes.NoSuchMachine, changes.NotFree):
                continue
            has.pop(name, None)
        assert len(set(has.values())) == len(has)
    held = database.look(addresses.everything)
    assert len({one.ip for one in held}) == len(held)
    database.close()


def test_a_race_for_the_last_addresses(make: Make, tmp_path: Path) -> None:
    """Threads with databases of their own, as processes have: each address once, and nobody without an answer."""
    make(small(157))
    outcomes: dict[str, Outcome] = {}

    def work(start: int) -> None:
        database = Database(tmp_path / "state.sqlite")
        desk = Desk(Registrar(database, lambda: 0.0, secrets.randbelow))
        desk.load(small(157))
        for number in range(start, start + 4):
            outcomes[f"{start}/{number}"] = desk.ask(f"machine-{number}")
        database.close()

    # Neighbours ask for half the machines of each other at the same time.
    threads = [threading.Thread(target=work, args=(start,)) for start in range(0, 10, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    by_machine: dict[str, set[str]] = {}
    for key, outcome in outcomes.items():
        if isinstance(outcome, Assigned):
            by_machine.setdefault(key.partition("/")[2], set()).add(outcome.addresses["inventory-ip"].ip)
    assert len(outcomes) == 20
    assert all(len(ips) == 1 for ips in by_machine.values())
    assert sorted(ip for ips in by_machine.values() for ip in ips) == [f"192.168.122.15{n}" for n in range(8)]


def test_a_batch_is_on_disk_at_its_end(make: Make, tmp_path: Path) -> None:
    """One that fails takes nothing with it; to others nothing is there before the end."""
    desk, other = make(), make()
    database = desk.registrar.database
    with database.batch():
        assert desk.ip("a") == "192.168.122.150"
        with pytest.raises(changes.NoSuchMachine):
            desk.release("nobody")
        with pytest.raises(StoreError):
            database.change(lambda connection: addresses.hold(connection, "192.168.122.150", "n", None, 0.0))
        assert desk.ip("b") == "192.168.122.151"
        assert desk.registrar.look_up("a")
        assert not other.registrar.look_up("a")
    assert other.ip("a") == "192.168.122.150"
    assert other.ip("b") == "192.168.122.151"


def test_a_database_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "state.sqlite").write_bytes(b"no database at all, but long enough to be looked at" * 100)
    with pytest.raises(StoreError, match="Cannot use the database"):
        Database(tmp_path / "state.sqlite")


def test_the_database_is_for_its_owner_alone(make: Make, tmp_path: Path) -> None:
    make()
    assert (tmp_path / "state.sqlite").stat().st_mode & 0o777 == 0o600


def test_the_tables_are_portable() -> None:
    """Another database than SQLite needs no other tables; the constraints are among them."""
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    text = "\n".join(str(CreateTable(table).compile(dialect=dialect)) for table in tables.metadata.sorted_tables)
    for constraint in ("PRIMARY KEY (key)", "UNIQUE (machine, name)", "UNIQUE (reserved_for, name)",
                       "PRIMARY KEY (kind, digest)", "UNIQUE (namespace, name)"):
        assert constraint in text
