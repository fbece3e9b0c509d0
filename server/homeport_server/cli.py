"""The command line: what it can be asked, and the one place where an error becomes an exit status."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from homeport.core.showing import printable
from homeport.errors import HomeportError, UsageError
from homeport.host import journal
from homeport.version import VERSION
from homeport_server import commands

LIBRARIES = ("Debian 13 has what is needed: python3-aiohttp, python3-cryptography, python3-sqlalchemy, python3-yaml; "
             "docs/pool.md says what to do elsewhere")
LONGEST_LINE = 8_192  # characters of a message
EPILOG = """\
exit status:
  0   done                          64  wrong command line
  65  manifests that are wrong      66  no such folder, machine or file
  69  cannot listen there           73  the database cannot be used
  78  no certificate, or a library is missing   70  a bug in homeport-server

homeport-server(8); "Assign addresses from a pool in ten minutes" is docs/pool.md
"""


class Parser(argparse.ArgumentParser):
    """argparse, but a wrong command line is 64 and one line of help, not the whole page."""

    def error(self, message: str) -> None:  # type: ignore[override]
        raise UsageError(message, f"see {self.prog} --help")


def main(argv: Sequence[str]) -> int:
    """Run one command; its exit status. Only a bug has a traceback."""
    try:
        arguments = build_parser().parse_args(argv)
        set_up_log("debug" if arguments.debug else "info")
        command: Callable[[argparse.Namespace], int] = arguments.run
        return command(arguments)
    except HomeportError as error:
        print(f"homeport-server: {error}", file=sys.stderr)
        return error.status
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return os.EX_OK
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if isinstance(error, ImportError) and (library := foreign(error)):
            print(f"homeport-server: The Python library {library} is missing, or too old: {error.msg} ({LIBRARIES})",
                  file=sys.stderr)
            return os.EX_CONFIG
        traceback.print_exc()
        print("homeport-server: this is a bug; please report what stands above", file=sys.stderr)
        return os.EX_SOFTWARE


def foreign(error: ImportError) -> str:
    """The library that could not be imported, "" for a module of ours."""
    library = (error.name or "").partition(".")[0]
    return "" if library in ("homeport", "homeport_server") else library


class Harmless(logging.Formatter):
    """Lines as `inner` makes them, without what a terminal would obey: much in them is what machines say."""

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self.inner = inner

    def format(self, record: logging.LogRecord) -> str:
        record.msg, record.args = printable(record.getMessage(), LONGEST_LINE), None
        return self.inner.format(record)


def set_up_log(level: str) -> None:
    journal.set_up(level)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(Harmless(handler.formatter or logging.Formatter()))
    logging.getLogger("asyncio").setLevel(logging.WARNING)


def build_parser() -> Parser:
    parser = Parser(
        prog="homeport-server", description="Give each machine its network: addresses from pools, by Elemental's "
        "registration protocol and by HTTP, from the manifests in a folder.",
        epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"homeport-server {VERSION}")
    verbs = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)

    serve = _command(verbs, "serve", commands.serve, "serve machines what the manifests in a folder say")
    serve.add_argument("folder", metavar="DIR", type=Path, help="pools, registrations and inventories, as YAML")
    _state(serve)
    serve.add_argument("--listen", metavar="ADDR:PORT", action="append", type=_listen, help=(
        "default: 0.0.0.0:443, without TLS 0.0.0.0:80; may be given several times"))
    serve.add_argument("--url", metavar="URL", type=_url, help=(
        "where machines find this server, without a path; default: as each of them found it"))
    serve.add_argument("--name", metavar="NAME", action="append", default=[], help=(
        "one more host name or address that the server's own certificate is for"))
    serve.add_argument("--tls-cert", metavar="FILE", type=Path, help="serve with this certificate (PEM, with chain)")
    serve.add_argument("--tls-key", metavar="FILE", type=Path, help="the key of --tls-cert")
    serve.add_argument("--tls-ca", metavar="FILE", type=Path, help="the authority of --tls-cert, to tell machines")
    serve.add_argument("--no-tls", action="store_true", help="plain HTTP, for a bench or behind a proxy")
    serve.add_argument("--tpm-ca", metavar="FILE", action="append", default=[], type=Path, help=(
        "only TPMs whose certificate is by an authority in this file; default: any TPM"))
    serve.add_argument("--http", choices=("off", "plain", "any"), default="plain", help=(
        "who is served by plain GET: nobody, machines that never showed a TPM (default), anybody"))
    serve.add_argument("--moved", choices=("same", "new"), default="same", help=(
        "a known board with a new identity is the same machine (default), or a new one"))
    serve.add_argument("--trust-config", action="store_true", help="do not check what stands below 'config'")
    serve.add_argument("--connections", metavar="N", type=int, default=1024, help=(
        "at most so many at once; default 1024"))

    check = _command(verbs, "check", commands.check, "every complaint about the manifests in a folder; exit 65")
    check.add_argument("folder", metavar="DIR", type=Path)
    check.add_argument("--trust-config", action="store_true", help="do not check what stands below 'config'")
    check.add_argument("--json", action="store_true", help="for programs; the keys are stable")

    listing = _command(verbs, "list", commands.list_machines, "machines, their addresses, what became of them")
    _state(listing)
    listing.add_argument("--json", action="store_true", help="for programs; the keys are stable")

    show = _command(verbs, "show", commands.show, "all that is known of a machine, an address or a registration")
    show.add_argument("id", metavar="ID", help=_IDS + "; an address; a registration, for its URLs and CA")
    _state(show)
    show.add_argument("--json", action="store_true", help="for programs; the keys are stable")

    release = _command(verbs, "release", commands.release, "give a machine's addresses back to their pools")
    release.add_argument("id", metavar="ID", help=_IDS)
    release.add_argument("--forget", action="store_true", help="forget its identities and reservations, too")
    _state(release)

    reserve = _command(verbs, "reserve", commands.reserve, "fix addresses for a machine, known or not")
    reserve.add_argument("id", metavar="ID", help=_IDS)
    reserve.add_argument("addresses", metavar="NAME=ADDRESS", nargs="+", type=_pair, help=(
        "the name as in ipAddresses of its registration"))
    _state(reserve)

    export = _command(verbs, "export", commands.export, "machines as MachineInventory manifests")
    export.add_argument("ids", metavar="ID", nargs="*", help="default: all")
    _state(export)

    bring = _command(verbs, "import", commands.import_machines, "machines and addresses from MachineInventories")
    bring.add_argument("files", metavar="FILE", nargs="+", help="or - for standard input")
    _state(bring)
    return parser


_IDS = "a name, TPM hash, UUID, serial number or MAC"


def _command(verbs: argparse._SubParsersAction[Parser], name: str, run: Callable[[argparse.Namespace], int],
             text: str) -> Parser:
    parser = verbs.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".", allow_abbrev=False)
    parser.set_defaults(run=run)
    parser.add_argument("--debug", action="store_true", help="tell every detail")
    return parser


def _state(parser: Parser) -> None:
    parser.add_argument("--state", metavar="DIR", type=Path, default=default_state(), help=(
        "database and certificates; default: $STATE_DIRECTORY, or %(default)s"))


def default_state() -> Path:
    """Where the state is: systemd's StateDirectory=, else the usual place of root or of this user."""
    told = os.environ.get("STATE_DIRECTORY", "").partition(":")[0]
    if told:
        return Path(told)
    if os.geteuid() == 0:
        return Path("/var/lib/homeport-server")
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "homeport-server"


def _listen(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65_535:
        raise argparse.ArgumentTypeError(f"{text} is no ADDR:PORT, such as 192.0.2.1:443 or [::]:443")
    return host.strip("[]") or "0.0.0.0", int(port)


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
        raise argparse.ArgumentTypeError(f"{text} is no URL such as https://net.example.com:8443")
    return text.rstrip("/")


def _pair(text: str) -> tuple[str, str]:
    from homeport_server.ranges import parse_address, to_text

    name, equals, address = text.partition("=")
    try:
        if not name or not equals:
            raise ValueError("a name and an address")
        return name, to_text(*parse_address(address))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error} is wanted, as in lan=192.0.2.10") from None
