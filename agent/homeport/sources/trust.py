"""Whom to believe over TLS: the system's certificate authorities, and those of the settings.

Knows where distributions keep their bundle, and what to do about dates while this machine's clock is
known to be wrong. There is no switch that turns verification off. `certifi` plays no part: it would
bring its own opinion along.

**The clock floor.** A machine with a dead battery boots in 1970, when no certificate is valid yet. What
we know then is that it is *not earlier* than some instant: the build of this program, or the last time
an assignment was proven. While the clock is before that floor, OpenSSL is told not to judge dates, and
we judge them ourselves before the first byte is sent: a certificate that ended before the floor is
refused; that one begins after the floor says nothing, since the real time is later too. (Python cannot
set OpenSSL's verification time, and setting the system's clock is not ours to do.) From the floor on,
OpenSSL judges as always.
"""

from __future__ import annotations

import logging
import os
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from homeport.host.files import read_file
from homeport.sources.wire import AttemptFailed, Limits, TlsSocket

log = logging.getLogger(__name__)

BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Arch, Alpine
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # Fedora, RHEL
    "/var/lib/ca-certificates/ca-bundle.pem",  # SUSE
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
LARGEST = 4 << 20  # bytes of a configured PEM file; the whole of Mozilla's list is 220 KiB
NO_CHECK_TIME = 0x200000  # X509_V_FLAG_NO_CHECK_TIME, openssl/x509_vfy.h
PARTIAL_CHAIN = 0x80000  # X509_V_FLAG_PARTIAL_CHAIN: a configured intermediate is an anchor too

# X509_V_ERR_*, openssl/x509_vfy.h
NOT_YET_VALID, EXPIRED, HOST_MISMATCH, ADDRESS_MISMATCH = 9, 10, 62, 64
UNKNOWN_CA = (2, 7, 18, 19, 20, 21)  # 7: signed by another key of an authority of that name


class Context(ssl.SSLContext):
    """An SSLContext for connections to `host` within `limits`.

    `floor` is 0.0 while nothing is known against the clock, whose time was `now`; seconds since 1970.
    """

    limits: Limits
    host: str = ""
    floor: float = 0.0
    now: float = 0.0

    def wrap_socket(self, *args: Any, **kwargs: Any) -> ssl.SSLSocket:
        """As usual, except that the name to check is never left out (urllib3 1.26 does, for addresses)."""
        kwargs["server_hostname"] = kwargs.get("server_hostname") or self.host
        return super().wrap_socket(*args, **kwargs)


def make_context(ca_files: Sequence[str] = (), *, root: str | os.PathLike[str] = "/", now: float,
                 floor: float = 0.0) -> Context:
    """TLS 1.2 or newer, with the system's authorities and those in `ca_files` (PEM, below `root`).

    `now` and `floor` are seconds since 1970.  A file that cannot be used is a warning, for the others
    may do: a rotation is when one of them is missing.
    """
    context = Context(ssl.PROTOCOL_TLS_CLIENT)  # requires a certificate, and that it fits the host
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags |= ssl.VerifyFlags(PARTIAL_CHAIN)
    context.hostname_checks_common_name = False  # RFC 9110, 4.3.4
    context.set_alpn_protocols(["http/1.1"])
    context.sslsocket_class = TlsSocket
    context.now = now
    if now < floor:
        context.floor = floor
        context.verify_flags |= ssl.VerifyFlags(NO_CHECK_TIME)
    _load_system(context)
    for path in ca_files:
        _load_file(context, root, path)
    return context


def _load_system(context: ssl.SSLContext) -> None:
    """What OpenSSL was built to look at, a folder read as needed; else the bundle of a distribution."""
    context.set_default_verify_paths()
    paths = ssl.get_default_verify_paths()
    if context.cert_store_stats()["x509"] or _has_certificates(paths.capath):
        return
    for bundle in BUNDLES:
        try:
            context.load_verify_locations(bundle)
        except (OSError, ssl.SSLError):
            continue
        return
    log.debug("No certificate authorities of the system found, going on with those of the settings")


def _has_certificates(folder: str | None) -> bool:
    """Whether OpenSSL would find something there: files named by hash, such as 5ad8a5d6.0."""
    try:
        with os.scandir(folder or "/nowhere") as entries:
            return any(entry.name[8:10] == "." + entry.name[9:10] and entry.name[9:].isdigit()
                       for entry in entries)
    except OSError:
        return False


def _load_file(context: ssl.SSLContext, root: str | os.PathLike[str], path: str) -> None:
    words = "no such file"
    try:
        data = read_file(root, path, LARGEST)
        if data is not None:
            # Comments between the certificates may be in any language.
            context.load_verify_locations(cadata=data.decode("ascii", "ignore"))
            return
    except (ValueError, ssl.SSLError):
        words = "no certificate in it"
    except OSError as error:
        words = error.strerror or "not readable"
    log.warning("Cannot use the certificate authorities in %s: %s; going on without them", path, words)


def explain(error: ssl.SSLError, host: str, now: float | None = None) -> AttemptFailed:
    """Why TLS with `host` failed, and what a person can do about it.

    What asking again cannot change is final: an unknown authority, the wrong name.  Dates are not, since
    the clock may be set meanwhile.
    """
    if not isinstance(error, ssl.SSLCertVerificationError):
        words = (error.reason or "connection broke").replace("_", " ").lower()
        return AttemptFailed(f"TLS handshake with {host} failed: {words}")
    code = error.verify_code
    if code in (NOT_YET_VALID, EXPIRED):
        return _out_of_date(host, "is not valid yet" if code == NOT_YET_VALID else "has expired",
                            time.time() if now is None else now)
    if code in UNKNOWN_CA:
        return AttemptFailed(f"the certificate of {host} is from an authority that is not known here",
                             "add its PEM file with ca=", final=True)
    if code in (HOST_MISMATCH, ADDRESS_MISMATCH):
        return AttemptFailed(f"the certificate is not for {host}",
                             "use the name that the certificate has, or give the server another one",
                             final=True)
    return AttemptFailed(f"the certificate of {host} is not acceptable: {error.verify_message}", final=True)


def check_dates(sock: ssl.SSLSocket) -> None:
    """Judge the dates of a chain that OpenSSL has verified otherwise, while the clock is before the floor.

    Raises AttemptFailed, after closing the connection.
    """
    context = sock.context
    if not isinstance(context, Context) or not context.floor:
        return
    for certificate in _verified_chain(sock):
        if ssl.cert_time_to_seconds(certificate["notAfter"]) < context.floor:
            sock.close()
            raise _out_of_date(sock.server_hostname or "the server", "has expired", context.now)


def _verified_chain(sock: Any) -> Iterator[Mapping[str, Any]]:
    """The chain from the server's certificate to the anchor, as `getpeercert` writes each.

    Up to Python 3.12 only the inner object has it; if that ever changes, the server's alone.
    """
    chain = getattr(sock._sslobj, "get_verified_chain", None)
    if chain is None:
        yield sock.getpeercert()
        return
    for certificate in chain():
        yield certificate.get_info()


def _out_of_date(host: str, verdict: str, now: float) -> AttemptFailed:
    clock = time.strftime("%Y-%m-%d %H:%M", time.gmtime(now))
    return AttemptFailed(f"the certificate of {host} {verdict}; this machine's clock says {clock} UTC",
                         "if the clock is wrong, set it (NTP, RTC battery); else renew the certificate")
