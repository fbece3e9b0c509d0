"""What nmstatectl's error lines mean, for a person; and masking of what they quote.

Knows the texts of nmstate 2.2.62 and the NetworkManager errors that it passes on; refuses to run anything.
nmstate's own kinds are not shown: it calls "Bug" what is a stopped bus or a pending checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from homeport.errors import ApplyError, HomeportError, NotAllowed


class NmstateUnavailable(ApplyError):
    """nmstatectl is not installed, or NetworkManager did not answer it: nothing was changed."""


class CheckpointPending(ApplyError):
    """Another program, or an earlier run of ours, holds a checkpoint; rolling back clears it."""


class NoCheckpoint(ApplyError):
    """Nothing to commit or undo: the checkpoint ran out, or NetworkManager was restarted."""


class NotCaptured(ApplyError):
    """A policy looks for what this machine does not have, or not yet."""


_CHECK = "`homeport check` names each fault with its path"
_LINKS = "`ip link` lists those there are"
_DECLARE = "name an interface that exists, or declare it in the document"

# What nmstate writes -> (class, message, hint). {0}, {1} are the pattern's groups, {text} is nmstate's
# own line. The first that fits wins.
_TABLE: tuple[tuple[str, type[HomeportError], str, str], ...] = (
    (r"CheckpointConflict|Another checkpoint exists", CheckpointPending,
     "NetworkManager holds an unfinished change of another program (a checkpoint)",
     "`nmstatectl rollback` undoes it; it also runs out by itself, mostly within a minute"),
    (r"Not active checkpoints", NoCheckpoint,
     "the checkpoint is gone: it ran out, or NetworkManager was restarted", ""),
    (r"checkpoint \S+ does not exist", NoCheckpoint,
     "NetworkManager was restarted meanwhile", "`journalctl -b -u NetworkManager` says why"),
    (r"PermissionError|AccessDenied|PermissionDenied", NotAllowed,
     "NetworkManager does not allow it", "run it as root"),
    (r"DbusConnectionError|ServiceUnknown|UnknownMethod|NameHasNoOwner", NmstateUnavailable,
     "NetworkManager does not answer on the system bus", "`systemctl status NetworkManager dbus`"),
    (r"[Ii]nterface (\S+) does not exist", ApplyError, "there is no network interface {0}", _LINKS),
    (r"MAC address (\S+), but no interface is holding", ApplyError,
     "no network interface has the MAC address {0}", _LINKS),
    (r"PCI address (\S+), but no interface is holding", ApplyError,
     "no network interface sits at the PCI address {0}", "`lspci` lists them"),
    (r"Controller interface (\S+) is holding unknown port (\S+)", ApplyError,
     "{0} has a port {1}, which does not exist", _DECLARE),
    (r"next hop interface (\S+) not found", ApplyError,
     "a route leads through {0}, which does not exist", _DECLARE),
    (r"'(\S+)': interface name is longer than 15 characters", ApplyError,
     "the interface name {0} is longer than the kernel's 15 characters", "choose a shorter one"),
    (r"NetworkManager plugin for '([\w-]+)'", ApplyError,
     "NetworkManager lacks its plugin for {0}", "install the plugin and restart NetworkManager"),
    (r"Please upgrade NetworkManager(.*)", ApplyError,
     "this NetworkManager is too old for the document{0}", "leave the setting out, or upgrade it"),
    (r"(\S*unknown property\S*|\(InvalidProperty\)):?(.*)", ApplyError,
     "NetworkManager does not accept a setting: {text}", "it may need a newer NetworkManager"),
    (r"[Hh]ostname", ApplyError, "the host name was refused: {text}", "letters, digits, dashes and dots"),
    (r"UnknownDevice|CreationFailed|(?i:operation not supported)", ApplyError,
     "an interface could not be made: {text}",
     "is its base interface there, and the kernel module for its type (`modprobe bonding 8021q vrf`)?"),
    (r"VerificationError: (.*)", ApplyError, "what is in force is not what was asked for: {0}",
     "often a setting that the driver ignores, or an address that another host holds"),
    (r"PolicyError: (.*) not found", NotCaptured, "the policy captures a {0}, and there is none",
     "give it longer to appear (NicWait=), or let the policy capture something else"),
    (r"Interrupted by SIGINT", ApplyError, "nmstatectl was stopped, and rolled back", ""),
    (r"not valid NetworkState or NetworkPolicy: (.*?)(?: at line \d+ column \d+)?$", ApplyError,
     "nmstate does not read the document: {0}", _CHECK),
    (r"InvalidArgument: (.*)", ApplyError, "{0}", _CHECK),
)

_WORDS = {"apply": "apply the configuration", "commit": "keep the configuration", "rollback": "roll back",
          "show": "read the current state", "gc": "make keyfiles", "policy": "resolve the policy",
          "version": "ask nmstatectl for its version"}

_LOG_LINE = re.compile(r"^\[\S+ +(?:TRACE|DEBUG|INFO|WARN|ERROR) ")
_SECRET_NAME = re.compile(r"(?i)passw|psk|secret|mka-cak|private-key|token$")
_SECRET_TEXT = re.compile(r"""(?i)((?:[\w-]*passw\w*|psk|[\w-]*secret[\w-]*|mka-cak)["']?\s*[:=]\s*)"""
                          r"""("[^"]*"|'[^']*'|\S+)""")


def explain(action: str, status: int, stderr: str) -> HomeportError:
    """The error for an `nmstatectl ACTION` that ended with `status`; `stderr` has its secrets masked."""
    lines = [line for line in stderr.splitlines() if line.strip() and not _LOG_LINE.match(line)]
    text = "\n".join(lines).strip() or f"exit status {status}, without a word"
    intent = f"Cannot {_WORDS.get(action, action)}"
    for pattern, kind, message, hint in _TABLE:
        match = re.search(pattern, text, re.MULTILINE)
        if match:
            groups = [group or "" for group in match.groups()]
            return kind(f"{intent}: {message.format(*groups, text=_short(text))}", hint)
    return ApplyError(f"{intent}: nmstate says: {_short(text)}")


def _short(text: str) -> str:
    """Its first line, without nmstate's kind, of at most 200 characters."""
    first = re.sub(r"^NmstateError: (?:\w+: )?", "", text.splitlines()[0])
    return first if len(first) <= 200 else first[:199] + "…"


def secrets_of(tree: object) -> frozenset[str]:
    """Every string that stands under a secret's name in a document (802.1X, MACsec, IPsec)."""
    return frozenset(_secrets(tree, inside=False))


def _secrets(tree: object, inside: bool) -> Iterator[str]:
    if isinstance(tree, Mapping):
        for name, value in tree.items():
            yield from _secrets(value, inside or bool(_SECRET_NAME.search(str(name))))
    elif isinstance(tree, (list, tuple)):
        for value in tree:
            yield from _secrets(value, inside)
    elif inside and isinstance(tree, (str, int)) and not isinstance(tree, bool) and len(str(tree)) > 1:
        yield str(tree)


def mask(text: str, secrets: frozenset[str] = frozenset()) -> str:
    """`text` with each of `secrets`, and whatever follows a secret's name, as `***`."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return _SECRET_TEXT.sub(r"\1***", text)
