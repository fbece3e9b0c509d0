"""Whom to believe over TLS when things have changed: the clock is at 1970, the site has a new authority."""

from __future__ import annotations

import datetime
import ipaddress
import os
import time
from collections.abc import Callable

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from configserver import ConfigServer, Tls
from container import Machine
from mischief import drop_in, no_refresh
from seed import SEED, Seeded, assert_on_dhcp, assert_seed, seed_document
from world import World

AGENT = "/usr/lib/homeport/homeport.pyz"
DAY = 86400


@pytest.fixture
def secure(world: World) -> ConfigServer:
    """At https://192.168.122.2, with a certificate of today."""
    world.dhcp.start()
    return world.serve(port=443, tls=True)


def trust(machine: Machine, *authorities: str) -> None:
    """The authorities of the settings, by the names of files in /etc/homeport."""
    files = " ".join(f"/etc/homeport/{name}" for name in authorities)
    machine.write("/etc/homeport/homeport.conf", f"Ca={files}\n")


def authority(server: ConfigServer) -> str:
    assert isinstance(server.tls, Tls)
    return server.tls.ca.read_text()


# The clock is the host's, and a container has no other: homeport's own is set, and what OpenSSL sees differ from
# the true time is the certificate instead.
_CLOCK = f"""\
#!/usr/bin/python3 -I
import sys, time
true_time, started = time.time, time.time()
time.time = lambda: true_time() - started + 60
sys.path.insert(0, "{AGENT}")
sys.argv[0] = "{AGENT}"
from homeport.__main__ import main
sys.exit(main())
"""


def live_in_1970(machine: Machine) -> None:
    """A minute into it, at each boot."""
    machine.write("/usr/local/lib/clock", _CLOCK, 0o755)
    drop_in(machine, "homeport.service", "[Service]\nExecStart=\nExecStart=/usr/local/lib/clock boot --stage host\n")
    no_refresh(machine)


def begin_tomorrow(server: ConfigServer) -> None:
    """A certificate of the same authority that is not valid yet, by the true time."""
    assert server.tls
    folder = server.tls.folder
    request = x509.load_pem_x509_csr((folder / "server.csr").read_bytes())
    issuer = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
    key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.IPAddress(ipaddress.ip_address(server.address))]
    certificate = x509.CertificateBuilder(
        issuer_name=issuer.subject, subject_name=request.subject, public_key=request.public_key(),
        serial_number=x509.random_serial_number(), not_valid_before=now + datetime.timedelta(days=1),
        not_valid_after=now + datetime.timedelta(days=9),
    ).add_extension(x509.SubjectAlternativeName(names), critical=False).sign(key, hashes.SHA256())
    server.tls.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def test_clock_at_1970(secure: ConfigServer, machine: Machine) -> None:
    """No certificate is valid yet, but it is later than when this program was made, and that is all we know."""
    begin_tomorrow(secure)
    machine.write("/etc/homeport/ca.pem", authority(secure))
    trust(machine, "ca.pem")
    live_in_1970(machine)
    boot = machine.boot(f"homeport.config={secure.put(SEED, seed_document())}")
    assert boot.status["started"] < DAY
    assert_seed(machine, boot)
    assert boot.status["exit"] == 0


def test_clock_that_is_right(secure: ConfigServer, machine: Machine, falling: None) -> None:
    """The same certificate on a machine that knows what day it is: not yet."""
    begin_tomorrow(secure)
    machine.write("/etc/homeport/ca.pem", authority(secure))
    trust(machine, "ca.pem")
    boot = machine.boot(f"homeport.config={secure.put(SEED, seed_document())}", "homeport.deadline=2s")
    assert_on_dhcp(boot)
    assert boot.status["exit"] == 69
    assert "not valid yet" in boot.status["reason"]


def test_clock_at_1970_is_no_excuse(secure: ConfigServer, machine: Machine, falling: None) -> None:
    """What had ended when this program was made is refused; the clock is shown with it."""
    machine.write("/etc/homeport/ca.pem", authority(secure))
    trust(machine, "ca.pem")
    live_in_1970(machine)
    os.utime(machine.on_disk(AGENT), (time.time() + 60 * DAY,) * 2)
    boot = machine.boot(f"homeport.config={secure.put(SEED, seed_document())}", "homeport.deadline=2s")
    assert_on_dhcp(boot)
    assert boot.status["exit"] == 69
    assert "has expired" in boot.status["reason"]
    assert "1970" in boot.status["reason"]
    assert secure.requests == []


def test_authority_rotated(
    world: World, secure: ConfigServer, machine: Machine, falling: None, allow: Callable[..., None]
) -> None:
    """The server has a certificate of another authority from now on: what is in force stays, until it is told."""
    machine.write("/etc/homeport/old.pem", authority(secure))
    trust(machine, "old.pem")
    no_refresh(machine)
    seeded = Seeded(machine, secure, secure.put(SEED, seed_document()))

    assert secure.tls
    secure.tls.renew()
    seeded.assign(seed_document("192.168.122.151"))
    done = machine.run(["homeport", "refresh", "--deadline", "3s"], check=False)
    assert done.status == 0, done  # in force is what was assigned
    assert_seed(machine, machine.look())
    assert "authority that is not known" in str(machine.look().status["fallen"])

    # Both at once is how a rotation is done without a gap; a file that is gone already does no harm.
    machine.write("/etc/homeport/new.pem", authority(secure))
    trust(machine, "old.pem", "gone.pem", "new.pem")
    machine.run(["homeport", "refresh"])
    assert_seed(machine, machine.look(), "192.168.122.151/24")
