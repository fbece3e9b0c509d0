"""What is fuzzed: everything that reads what somebody else wrote, one module each.

A module has `check(data)`, which hands the bytes to the agent and asserts what must hold whatever they are;
`WORDS`, pieces of the format that chance alone would take long to find; and `SEEDS`, sound inputs to begin with.
Nothing here knows a fuzzer: the same functions are ordinary tests (`test_corpus.py`) and what `fuzz.py` feeds.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

TARGETS = (
    "cmdline",  # the kernel command line
    "dns",  # answers of name servers
    "documents",  # assignments, whole: YAML, shapes, placeholders, schema, checks
    "drives",  # file systems of configuration drives
    "elemental",  # what a registration server says
    "http",  # what a web server says: heads, bodies, redirects, Retry-After
    "keyfiles",  # connection profiles
    "links",  # the kernel's list of network links
    "metadata",  # what clouds and providers say of a machine
    "nics",  # documents against the network cards of a machine
    "settings",  # homeport.conf
    "smbios",  # firmware tables
    "tpm",  # a TPM's answers, certificates, challenges
)


@dataclass(frozen=True)
class Target:
    """`check` raises for a finding, whatever the exception; `words` are for the fuzzer's dictionary."""

    check: Callable[[bytes], None]
    words: Sequence[bytes]
    seeds: Sequence[bytes]


def load(name: str) -> Target:
    """The target of that name. Imported only now, so that a fuzzer can instrument what it imports."""
    module = importlib.import_module(f"targets.{name}")
    words = tuple(word if isinstance(word, bytes) else word.encode() for word in module.WORDS)
    return Target(module.check, words, tuple(module.SEEDS))
