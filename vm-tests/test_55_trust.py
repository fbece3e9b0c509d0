"""https with an authority of the site's own: replaced by the next one, and before the clock is set."""

from __future__ import annotations

import shutil
import subprocess
import time
from dataclasses import dataclass

import pytest

from configserver import ConfigServer, Tls
from container import Machine
from seed import SEED, Seeded, assert_on_dhcp, assert_seed, seed_document
from world import World

CONF = "/etc/homeport/homeport.conf"


@dataclass(frozen=True)
class Signed:
    """One authority, and what the server has from it."""

    ca: str
    files: tuple[str, ...]


def renewed(tls: Tls) -> Signed:
    """A new authority, of the same name as the one before, as such things go."""
    tls.renew()
    return Signed(tls.ca.read_text(), tuple((tls.folder / f"server.{kind}").read_text() for kind in ("pem", "key")))


def use(tls: Tls, signed: Signed) -> None:
    for kind, text in zip(("pem", "key"), signed.files, strict=True):
        (tls.folder / f"server.{kind}").write_text(text)


@pytest.fixture
def https(world: World) -> ConfigServer:
    return world.serve(port=443, tls=True)


def test_an_authority_is_replaced(world: World, https: ConfigServer, machine: Machine, falling: None) -> None:
    """While both are known either will do; a machine that was forgotten keeps what it has, and says why."""
    assert https.tls
    world.dhcp.start()
    old, new = renewed(https.tls), renewed(https.tls)
    machine.write("/etc/homeport/old.pem", old.ca)
    machine.write("/etc/homeport/new.pem", new.ca)
    machine.write(CONF, "Ca=/etc/homeport/old.pem\nCa=/etc/homeport/new.pem\n")

    use(https.tls, old)
    seeded = Seeded(machine, https, https.put(SEED, seed_document()))
    use(https.tls, new)
    machine.run(["homeport", "refresh"])
    assert [request.status for request in https.asked(SEED)][-1] == 304

    # Settings that have changed are asked with at the next boot.
    asked = len(https.requests)
    machine.write(CONF, "Ca=/etc/homeport/old.pem\n")
    boot = seeded.reboot("homeport.deadline=5s")
    assert_seed(machine, boot)
    assert (boot.status["rung"], boot.status["exit"]) == ("last-known-good", 0)
    assert "192.168.122.2 is from an authority that is not known here" in boot.status["reason"]
    assert "ca=" in machine.run(["homeport", "status"]).stdout
    assert len(https.requests) == asked  # and told nothing to somebody who may be anybody


# A machine whose clock has lost its battery. Only what the agent's unit starts sees it: time(2) is OpenSSL's,
# clock_gettime(2) Python's. What measures intervals goes on.
CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (clock == CLOCK_REALTIME && result == 0) now->tv_sec -= SWITCHED_ON;
    return result;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec, now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *where) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    return where ? *where = exact.tv_sec : exact.tv_sec;
}
"""
IN_1970 = "/usr/lib/in-1970.so"


@pytest.fixture
def in_1970(machine: Machine) -> Machine:
    """The machine, and for its homeport it is the first of January 1970."""
    compiler = shutil.which("gcc")
    if not compiler:
        pytest.skip("no compiler for another clock (gcc)")
    subprocess.run([compiler, "-shared", "-fPIC", "-x", "c", f"-DSWITCHED_ON={int(time.time())}", "-o",
                    str(machine.on_disk(IN_1970)), "-", "-ldl"], input=CLOCK.encode(), check=True)  # fmt: skip
    machine.write("/etc/systemd/system/homeport.service.d/clock.conf", f"[Service]\nEnvironment=LD_PRELOAD={IN_1970}\n")
    return machine


def test_a_clock_without_battery(world: World, https: ConfigServer, in_1970: Machine) -> None:
    """No certificate is valid yet, and the time servers are behind the network that it is to bring."""
    machine = in_1970
    assert https.tls
    world.dhcp.start()
    machine.write("/etc/homeport/ca.pem", https.tls.ca.read_text())
    machine.write(CONF, "Ca=/etc/homeport/ca.pem\n")
    seeded = Seeded(machine, https, https.put(SEED, seed_document()))
    assert (seeded.first.status["rung"], seeded.first.status["exit"]) == ("assigned", 0)

    # It is 1970 indeed, and for everybody else that is the end of it.
    preload = f"LD_PRELOAD={IN_1970}"
    assert machine.sh(f"{preload} date +%Y").stdout == "1970\n"
    judged = machine.sh(f"{preload} curl -sS --cacert /etc/homeport/ca.pem {seeded.url}", check=False)
    assert "not yet valid" in judged.stderr

    https.stop()
    world.dhcp.stop()
    boot = seeded.reboot()
    assert_seed(machine, boot)
    assert boot.status["steps"][0]["name"] == "fast path"


def test_what_had_expired_before_the_image_was_made(
    world: World, https: ConfigServer, in_1970: Machine, falling: None
) -> None:
    """It is later than the installation, whatever the clock says: an old certificate stays one."""
    assert https.tls
    world.dhcp.start()
    subprocess.run(["openssl", "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                    "-CAcreateserial", "-days", "-1", "-extfile", "extensions", "-out", "server.pem"],
                   cwd=https.tls.folder, check=True, capture_output=True)  # fmt: skip
    in_1970.write("/etc/homeport/ca.pem", https.tls.ca.read_text())
    in_1970.write(CONF, "Ca=/etc/homeport/ca.pem\n")
    boot = in_1970.boot(f"homeport.config={https.put(SEED, seed_document())}", "homeport.deadline=3s")
    assert_on_dhcp(boot)
    assert boot.status["exit"] == 69
    assert "has expired" in boot.status["reason"] and "1970" in boot.status["reason"]
    assert https.requests == []
