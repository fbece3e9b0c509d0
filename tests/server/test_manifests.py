"""A folder of manifests: the seed as it is, both shapes, several documents, and every fault with file and path."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from homeport_server.manifests import folder
from homeport_server.manifests.documents import read_documents
from homeport_server.manifests.sets import Manifests, read_manifests

DATA = Path(__file__).parents[1] / "data" / "server"
SEED = (DATA / "seed.yaml").read_text()
INVENTORY = (DATA / "inventory.yaml").read_text()
POOL = "InClusterIPPool/fleet-default/elemental-inventory-pool"


def read(**files: str) -> tuple[Manifests, list[str]]:
    manifests, faults = read_manifests(
        {f"{name}.yaml": textwrap.dedent(text).encode() for name, text in files.items()})
    return manifests, [str(fault) for fault in faults]


def test_the_seed() -> None:
    manifests, faults = read(seed=SEED, inventory=INVENTORY)
    assert not faults
    assert list(manifests.pools) == [POOL]
    registration, = manifests.registrations
    inventory, = manifests.inventories
    assert registration.machine_name == "test-btrfs-${System Information/UUID}"
    assert registration.network.pools == inventory.network.pools == {"inventory-ip": POOL}
    assert inventory.network.fixed["inventory-ip"].ip == "192.168.122.150"
    assert manifests.pinned("tpm", inventory.tpm_hash) is inventory
    assert manifests.pinned("plain", inventory.tpm_hash) is None


def test_the_inventory_alone() -> None:
    """Its pool may be elsewhere: its address is there already."""
    manifests, faults = read(inventory=INVENTORY)
    assert not faults
    assert len(manifests.inventories) == 1


def test_the_older_shape() -> None:
    """`ipAddresses` and `ipAddressPools` as lists of {name, ipPoolRef}."""
    old = SEED.replace("""\
        inventory-ip:
          apiGroup: ipam.cluster.x-k8s.io
          kind: InClusterIPPool
          name: elemental-inventory-pool
""", """\
      - name: inventory-ip
        ipPoolRef:
          apiGroup: ipam.cluster.x-k8s.io
          kind: InClusterIPPool
          name: elemental-inventory-pool
""")
    manifests, faults = read(seed=old)
    assert old != SEED
    assert not faults
    assert manifests.registrations[0].network.pools == {"inventory-ip": POOL}


def test_what_kubectl_writes() -> None:
    """`kind: List`, the registration's token in its status, and kinds of others, which are left alone."""
    items = "- " + textwrap.indent(SEED.partition("---\n")[2].replace("  token: fire-nodes\n", ""), "  ")[2:]
    manifests, faults = read(
        pool=SEED.partition("---")[0],
        registration=f"apiVersion: v1\nkind: List\nitems:\n{items}"
                     "  status: {registrationToken: xyz, registrationURL: 'https://old.example/x/registration/xyz'}\n"
                     "- {apiVersion: v1, kind: Namespace, metadata: {name: fleet-default}}\n")
    assert not faults
    assert manifests.registrations[0].token == "xyz"


@pytest.mark.parametrize(("before", "after", "fault"), [
    # in the pool
    ("- 192.168.122.150-192.168.122.200", "- 192.168.122.150-192.168.122.300",
     "seed.yaml: InClusterIPPool/elemental-inventory-pool: spec.addresses[0]: '192.168.122.150-192.168.122.300'; an "),
    ("kind: InClusterIPPool\nmetadata", "kind: InClusterIpPool\nmetadata",
     "seed.yaml: InClusterIpPool/elemental-inventory-pool: kind: 'InClusterIpPool'; did you mean 'InClusterIPPool'?"),
    # in the registration
    ("          kind: InClusterIPPool", "          kind: Metal3IPPool",
     "MachineRegistration/fire-nodes: spec.config.network.ipAddresses.inventory-ip.kind: 'Metal3IPPool'"),
    ("          name: elemental-inventory-pool", "          name: elemental-pool",
     "ipAddresses.inventory-ip: there is no InClusterIPPool/fleet-default/elemental-pool; one of the pools"),
    ("configurator: nmstate", "configurator: nmstat",
     "spec.config.network.configurator: 'nmstat'; did you mean 'nmstate'?"),
    ("  token: fire-nodes", "  token: Fire_Nodes", "spec.token: 'Fire_Nodes'; lower-case"),
    ("  machineName: test", "  machineNam: test",
     "spec.machineNam: unknown key 'machineNam'; did you mean 'machineName'?"),
    ("  machineName: test-btrfs-${System Information/UUID}", "  machineName: 7", "spec.machineName: 7; text"),
    # in the configuration, as the machine would say it, before the machine has to
    ("prefix-length: 24", "prefix-lenght: 24",
     "spec.config.network.config.interfaces[0].ipv4.address[0].prefix-lenght"),
    ('"{inventory-ip}"', '"{inventory_ip}"',
     "config.interfaces[0].ipv4.address[0].ip: the placeholder '{inventory_ip}'; one of ipAddresses"),
    ("next-hop-address: 192.168.122.1", "next-hop-address: 192.168.123.1",
     "spec.config.network.config.routes.config[0]"),
    # of the document
    ("  prefix: 24\n", "  prefix: 24\n  prefix: 24\n", "stands here twice"),
    ("gateway: 192.168.122.1", "gateway: [192.168.122.1", "line"),
    ("name: elemental-inventory-pool\n  namespace", "nam: elemental-inventory-pool\n  namespace",
     "metadata.name: nothing"),
])
def test_faults(before: str, after: str, fault: str) -> None:
    wrong = SEED.replace(before, after, 1)
    assert wrong != SEED
    _manifests, faults = read(seed=wrong)
    assert any(fault in text for text in faults), faults


def test_all_faults_of_all_files_at_once() -> None:
    _manifests, faults = read(
        a=SEED.replace("192.168.122.200", "nowhere"),
        b="just text\n---\n{apiVersion: v1}\n",
        c=SEED.partition("---")[2].replace("fire-nodes", "other").replace("configurator: nmstate", "configurator: x"))
    assert {fault.partition(":")[0] for fault in faults} == {"a.yaml", "b.yaml", "c.yaml"}
    assert len(faults) == 4


def test_lines_are_those_of_the_file() -> None:
    _manifests, faults = read(a="apiVersion: v1\nkind: X\n---\n# nothing here\n---\nkey: 1\nkey: 2\n")
    assert any("line 6 and in line 7" in fault for fault in faults)


@pytest.mark.parametrize(("second", "fault"), [
    (SEED, "metadata.name: InClusterIPPool/elemental-inventory-pool in fleet-default once more, as in a.yaml"),
    (SEED.partition("---")[2].replace("name: fire-nodes", "name: others"), "spec.token: the same token once more"),
])
def test_nothing_twice(second: str, fault: str) -> None:
    _manifests, faults = read(a=SEED, b=second)
    assert any(fault in text for text in faults), faults


def test_no_address_for_two_inventories() -> None:
    _manifests, faults = read(a=INVENTORY, b=INVENTORY.replace("name: test-btrfs-d47", "name: test-btrfs-e47").replace(
        "tpmHash: 7", "tpmHash: 8"))
    assert faults == ["b.yaml: MachineInventory/test-btrfs-e47ca4cf-e95e-4e43-939b-e5bce460fbfc: "
                      "spec.network.ipAddresses.inventory-ip: 192.168.122.150 once more, as in a.yaml: "
                      "MachineInventory/test-btrfs-d47ca4cf-e95e-4e43-939b-e5bce460fbfc; it once"]


@pytest.mark.parametrize("data", [
    b"\xff\xfe", b"\x00", b"a: *b", b"&a [*a, *a]", b"[" * 5_000, b"---\n" * 5_000, b"a: !!python/object:os.system x",
    b"x" * 600_000, "kind: \u202e".encode(),
    b"apiVersion: v1\nkind: List\nitems: [1, {kind: List, apiVersion: v1, items: []}]",
])
def test_hostile_bytes(data: bytes) -> None:
    """Never an exception; and what is wrong is said."""
    documents, faults = read_documents("f", data)
    assert faults or not documents


def test_block_text_with_dashes() -> None:
    """A line of dashes within text is text; at the start of a line it is YAML's marker, whatever it was meant as."""
    documents, faults = read_documents("f", b"apiVersion: v1\nkind: X\ntext: |\n  ---\n  --- x\nmore: a---b\n---\n"
                                            b"apiVersion: v1\nkind: Y\n")
    assert not faults
    assert [document.kind for document in documents] == ["X", "Y"]
    assert documents[0].tree["text"] == "---\n--- x\n"


def test_folder(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".git").mkdir()
    for name in ("a.yaml", "sub/b.yml", "c.json", "d.txt", ".e.yaml", ".git/f.yaml"):
        (tmp_path / name).write_text("x")
    assert list(folder.read_files(tmp_path)) == ["a.yaml", "c.json", "sub/b.yml"]
    before = folder.signature(tmp_path)
    (tmp_path / "d.txt").write_text("other")
    assert folder.signature(tmp_path) == before
    (tmp_path / "sub/b.yml").write_text("y")
    assert folder.signature(tmp_path) != before
    with pytest.raises(folder.UnreadableFolder):
        folder.read_files(tmp_path / "a.yaml")


def test_the_last_good_set_is_kept(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    assert folder.last_good(kept) is None
    folder.keep_good(kept, {"a.yaml": b"x: \xff\n", "b.yaml": "ä".encode()})
    assert folder.last_good(kept) == {"a.yaml": b"x: \xff\n", "b.yaml": "ä".encode()}
    assert kept.stat().st_mode & 0o777 == 0o600
    kept.write_text("{")
    assert folder.last_good(kept) is None
