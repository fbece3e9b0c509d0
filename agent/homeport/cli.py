"""The command line: its verbs, its options, and the one place where an error becomes an exit status.

Settings are options too: `settings.OPTIONS` declares each once, and every verb that reads them takes
them as flags. What a verb does is in `commands.py`.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from homeport import commands
from homeport.errors import DocumentError, HomeportError, UsageError
from homeport.settings import OPTIONS
from homeport.version import VERSION

EPILOG = """\
exit status:
  0   what this mode asks for is in force: assigned (fresh, unchanged or
      last-known-good), or DHCP by mode
  64  wrong command line            78  wrong settings
  65  a document arrived but is not acceptable
  69  no source answered in time, and nothing assigned is in force
  75  refused by nmstate, verification or proof; rolled back
  73  in force, but could not be persisted
  77  not allowed: not root, or identity rejected by the server
  70  a bug in homeport

homeport(8), homeport.conf(5); the outcome of this boot: homeport status
"""


class Parser(argparse.ArgumentParser):
    """argparse, but a wrong command line is 64 and one line of help, not the whole page."""

    def error(self, message: str) -> None:  # type: ignore[override]
        raise UsageError(f"{message}", f"see {self.prog} --help")


def main(argv: Sequence[str]) -> int:
    """Run one verb; the exit status of design.md, section 4. Only a bug has a traceback."""
    # As Ctrl-C: what was begun is rolled back on the way out.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        arguments = build_parser().parse_args(argv)
        verb: Callable[[argparse.Namespace], int] = arguments.run
        return verb(arguments)
    except DocumentError as error:
        commands.print_complaints(error.complaints)
        return error.status
    except HomeportError as error:
        print(f"homeport: {error}", file=sys.stderr)
        return error.status
    except BrokenPipeError:
        # The reader of our output went away (`homeport status | head -1`): not our failure, nor theirs.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return os.EX_OK
    except KeyboardInterrupt:
        print("homeport: interrupted", file=sys.stderr)
        return 130
    except Exception:
        traceback.print_exc()
        print("homeport: this is a bug; please report what stands above", file=sys.stderr)
        return os.EX_SOFTWARE


def build_parser() -> Parser:
    parser = Parser(
        prog="homeport", description="Every machine finds its home port: fetch the network configuration that "
        "this machine is assigned, put it in force, prove it, keep it.",
        epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"homeport {VERSION}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=Parser)

    boot = _verb(verbs, "boot", commands.boot, "what the units run: the whole story of a boot")
    boot.add_argument("--stage", choices=("initrd", "host"), default="host", help="default: host")
    boot.add_argument("--dry-run", action="store_true", help="stop before anything changes, and print the plan")
    _settings(boot)

    prepare = _verb(verbs, "prepare", commands.prepare, "in the initramfs, before NetworkManager starts (for the unit)")
    prepare.set_defaults(stage="initrd")
    _settings(prepare)

    handover = _verb(verbs, "handover", commands.handover, "from the initramfs to the real root (for the unit)")
    handover.add_argument("--clean", action="store_true", help="tidy up behind NetworkManager, when it has stopped")
    handover.set_defaults(stage="initrd")
    _settings(handover)

    identify = _verb(verbs, "identify", commands.identify, "who this machine is, and how we know")
    _json(identify)
    _settings(identify)

    fetch = _verb(verbs, "fetch", commands.fetch, "what this machine is assigned (secrets masked)")
    fetch.add_argument("--raw", action="store_true", help="the document byte for byte, secrets and all")
    _settings(fetch)

    check = _verb(verbs, "check", commands.check, "every complaint about documents, with its path; exit 65")
    check.add_argument("files", nargs="+", metavar="FILE", help="a document, or - for standard input")
    check.add_argument("--allow-dispatch", action="store_true", help="accept documents that carry scripts")
    _json(check)

    render = _verb(verbs, "render", commands.render, "offline: the desired state and the keyfiles of a document")
    render.add_argument("file", metavar="FILE", help="a document, or - for standard input; with --platform a folder")
    render.add_argument("--platform", metavar="NAME", help="FILE is a folder with the saved metadata of this platform")
    render.add_argument("--ip", action="append", default=[], metavar="NAME=ADDRESS", help="the address for {NAME}")
    render.add_argument("--nic", action="append", default=[], metavar="NAME=MAC", help="a NIC that the machine has")
    render.add_argument("-o", "--output", type=Path, metavar="DIR", help="write files there instead of printing")

    apply = _verb(verbs, "apply", commands.apply, "put a document in force now, under a checkpoint, with proof")
    apply.add_argument("file", metavar="FILE", help="a document, or - for standard input")
    _settings(apply)

    refresh = _verb(verbs, "refresh", commands.refresh, "fetch again, and apply only a change")
    refresh.add_argument("--if-due", action="store_true", help="not if this boot has just asked (for the unit)")
    _settings(refresh)

    metadata = _verb(verbs, "metadata", commands.metadata, "what the cloud or provider says of this instance")
    metadata.add_argument("--attributes", metavar="FILE", help="write the attributes there, by Afterburn's names")
    metadata.add_argument("--hostname", metavar="FILE", help="write the host name there, unless somebody has set one")
    metadata.add_argument("--check-in", action="store_true", help="tell the platform, and Report=, that we have booted")
    _settings(metadata)

    status = _verb(verbs, "status", commands.status, "what happened at boot; exit status as that of the boot")
    _json(status)

    reset = _verb(verbs, "reset", commands.reset, "forget the assignment, back to DHCP")
    reset.add_argument("--yes", action="store_true", help="do not ask")
    _settings(reset)

    _verb(verbs, "version", commands.version, "the version and the commit it was built from")
    return parser


def _verb(verbs: argparse._SubParsersAction[Parser], name: str, run: Callable[[argparse.Namespace], int],
          text: str) -> Parser:
    parser = verbs.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".", allow_abbrev=False)
    parser.set_defaults(run=run)
    parser.add_argument("--root", type=Path, default=Path("/"), metavar="DIR", help="work on the tree below DIR")
    parser.add_argument("--debug", action="store_true", help="tell every detail")
    return parser


def _json(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="for programs; the keys are stable")


def _settings(parser: Parser) -> None:
    group = parser.add_argument_group("settings", "as in homeport.conf(5); a flag wins over files and kernel arguments")
    for option in OPTIONS:
        group.add_argument(f"--{option.name}", dest=f"setting:{option.name}", metavar="VALUE", help=option.help)
