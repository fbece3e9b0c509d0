"""What homeport writes for Ignition, before its own judges and by the rules of its specification.

`ignition-validate` and `butane` are built by the set-up where there is Go.  The rules are those of specification
3.0.0 (coreos.github.io/ignition/configuration-v3_0) that a fragment of units can break.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from homeport.core.platformnames import NAMES
from homeport.core.platforms import PLATFORMS, find

TOP = Path(__file__).resolve().parents[1]
SYSTEMD = TOP / "systemd"
BUTANE = SYSTEMD / "ignition/homeport.bu"
KEYS = {"": {"ignition", "storage", "systemd"}, "ignition": {"version"}, "systemd": {"units"},
        "unit": {"name", "enabled", "mask", "contents", "dropins"}, "dropin": {"name", "contents"}}
PEERS = {"nm-cloud-setup.service", "nm-cloud-setup.timer", "afterburn-checkin.service",
         "afterburn-firstboot-checkin.service"}


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ignition_fragments", TOP / "tools/ignition-fragments.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FRAGMENTS: dict[str, dict[str, Any]] = tool().fragments()


def judge(name: str, program: str) -> str:
    """A judge's path. Without Go there is none, which is said; in CI only then."""
    paths = TOP / "build/paths.env"
    told = dict(line.split("=", 1) for line in paths.read_text().splitlines() if "=" in line) if paths.exists() else {}
    found = os.environ.get(name) or told.get(name, "") or shutil.which(program) or ""
    if found and Path(found).exists():
        return found
    if os.environ.get("CI") and shutil.which("go"):
        pytest.fail(f"no {program}, although there is Go (run: tools/setup ignition)")
    pytest.skip(f"no {program} (with Go: tools/setup ignition)")


def complaints(config: dict[str, Any]) -> list[str]:
    """What is against the rules."""
    units = config.get("systemd", {}).get("units", [])
    dropins = [dropin for unit in units for dropin in unit.get("dropins", ())]
    places = [("", config), ("ignition", config.get("ignition", {})), ("systemd", config.get("systemd", {})),
              *(("unit", unit) for unit in units), *(("dropin", dropin) for dropin in dropins)]
    found = [f"{place or 'config'}: {key}" for place, value in places for key in set(value) - KEYS[place]]
    if config.get("ignition", {}).get("version") != "3.0.0":
        found.append("ignition.version")
    names = [unit["name"] for unit in units]
    found += [f"twice: {name}" for name in set(names) if names.count(name) > 1]
    found += [f"no unit: {name}" for name in names if not re.fullmatch(r"[\w@:.-]+\.(service|timer|target)", name)]
    found += [f"no drop-in: {dropin['name']}" for dropin in dropins if not dropin["name"].endswith(".conf")]
    found += [f"not true or false: {unit}" for unit in units for key in ("enabled", "mask")
              if not isinstance(unit.get(key, True), bool)]
    return found


@pytest.mark.parametrize("name", FRAGMENTS)
def test_fragment(name: str) -> None:
    fragment = FRAGMENTS[name]
    assert complaints(fragment) == []
    platform = find(name)
    assert platform is not None
    units = {unit["name"]: unit for unit in fragment["systemd"]["units"]}
    ours = {unit for unit in units if unit.startswith("homeport")}
    assert {"homeport.service", "homeport-refresh.service"} <= ours and set(units) - ours <= PEERS
    # Each unit of ours is one that is installed, and that can be enabled; each of others' is switched off.
    for unit, entry in units.items():
        if unit in ours:
            assert "[Install]" in (SYSTEMD / unit).read_text() and entry["enabled"] is True
        else:
            assert entry == {"name": unit, "mask": True}
    assert ("homeport-refresh.timer" in ours) == ("nm-cloud-setup.service" in units) == platform.reconciles
    assert ("homeport-check-in.service" in ours) == (platform.check_in is not None)
    told = [dropin["contents"] for entry in units.values() for dropin in entry.get("dropins", ())]
    assert set(told) <= {f'[Service]\nEnvironment="HOMEPORT_OPTIONS=--platform {name}"\n'}


def test_a_fragment_for_each_platform_that_ignition_can_name() -> None:
    assert set(FRAGMENTS) == {*NAMES, "azurestack"} - {"nocloud"}
    assert {name for name, fragment in FRAGMENTS.items() if "homeport-check-in" in json.dumps(fragment)} == {
        "azure", "azurestack", "packet", "scaleway"}
    # Those that Afterburn takes a host name from (its afterburn-hostname.service), at least.
    afterburns = """aliyun azure azurestack digitalocean exoscale hetzner ibmcloud kubevirt oraclecloud proxmoxve
        scaleway upcloud vultr"""
    named = {name for name, fragment in FRAGMENTS.items() if "homeport-hostname" in json.dumps(fragment)}
    assert set(afterburns.split()) <= named


def test_the_rules_find_faults() -> None:
    wrong = {"ignition": {"version": "2.0.0"}, "systemd": {"units": [
        {"name": "a", "enable": True}, {"name": "b.service", "dropins": [{"name": "c"}]}, {"name": "b.service"}]}}
    assert sorted(complaints(wrong)) == [
        "ignition.version", "no drop-in: c", "no unit: a", "twice: b.service", "unit: enable"]


def test_installed(tmp_path: Path) -> None:
    subprocess.run(["make", "-C", TOP, "install-ignition", f"DESTDIR={tmp_path}"], check=True, capture_output=True)
    folder = tmp_path / "usr/lib/ignition/base.platform.d"
    assert {file.parent.name: json.loads(file.read_text()) for file in folder.rglob("*.ign")} == FRAGMENTS


def test_ignition_takes_them(tmp_path: Path) -> None:
    validate = judge("IGNITION_VALIDATE", "ignition-validate")
    for name, fragment in FRAGMENTS.items():
        done = subprocess.run([validate, "-"], input=json.dumps(fragment).encode(), capture_output=True, check=False)
        assert (done.returncode, done.stdout + done.stderr) == (0, b""), name
    wrong = {"ignition": {"version": "3.0.0"}, "systemd": {"units": [{"name": "a"}]}}
    assert subprocess.run([validate, "-"], input=json.dumps(wrong).encode(), check=False,
                          capture_output=True).returncode != 0


@pytest.mark.parametrize(("variant", "version"), [("fcos", "1.1.0"), ("fcos", "1.6.0"), ("flatcar", "1.1.0")])
def test_butane_takes_the_config(variant: str, version: str) -> None:
    """On Fedora CoreOS and Flatcar, without a warning; and Ignition takes what comes of it."""
    butane, validate = judge("BUTANE", "butane"), judge("IGNITION_VALIDATE", "ignition-validate")
    text = BUTANE.read_text().replace("variant: fcos\nversion: 1.1.0\n", f"variant: {variant}\nversion: {version}\n")
    done = subprocess.run([butane, "--strict"], input=text.encode(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    config = json.loads(done.stdout)
    wanted = {file.name for file in SYSTEMD.glob("homeport*.service") if file.stem != "homeport-server"
              and re.search("^WantedBy=multi-user.target", file.read_text(), re.MULTILINE)}
    assert {unit["name"] for unit in config["systemd"]["units"] if unit.get("enabled")} == wanted
    assert subprocess.run([validate, "-"], input=done.stdout, check=False).returncode == 0


def test_the_settings_in_the_config_are_settings(tmp_path: Path) -> None:
    """Without butane, too: what stands there is read without a complaint."""
    from homeport.core.yamlsafe import read_yaml
    from homeport.settings import read_settings
    config: Any = read_yaml(BUTANE.read_text()).value
    (file,) = config["storage"]["files"]
    target = tmp_path / file["path"].lstrip("/")
    target.parent.mkdir(parents=True)
    target.write_text(file["contents"]["inline"].replace("#Config=", "Config="))
    settings = read_settings(tmp_path)
    assert settings.warnings == () and settings.config and settings.platform == "auto"


def test_every_platform_is_thought_of() -> None:
    assert {platform.name for platform in PLATFORMS} <= {*FRAGMENTS, "nocloud"}
