"""How the value of a setting is written: durations, yes and no, paths, URLs, lists of words.

Each parser takes the text and returns the value, or raises ValueError that says what would be right.
Refuses to know which option it parses for and where the text stood.  It is on the fast path: imports
that cost time are inside the functions that need them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

# What a URL or path template may contain (core/identity.py, `fields`).
TEMPLATE_FIELDS = ("uuid", "serial", "mac", "hostname", "tpmhash")
LONGEST = 24 * 3600.0  # seconds; more is a mistake: nothing here may wait for ever
UNITS: Mapping[str, float] = {
    "": 1, "s": 1, "sec": 1, "second": 1, "seconds": 1, "ms": 0.001, "msec": 0.001,
    "m": 60, "min": 60, "minute": 60, "minutes": 60, "h": 3600, "hr": 3600, "hour": 3600, "hours": 3600,
}
# How a machine may name itself to a registration server (Elemental's `auth` and `emulate-tpm`).
AUTHS = ("tpm", "mac", "sys-uuid", "emulated-tpm")
YES = ("yes", "y", "true", "t", "on", "1")
NO = ("no", "n", "false", "f", "off", "0")


def parse_duration(text: str) -> float:
    """Seconds: "30", "30s", "2min", "1min 30s", "500ms"."""
    wanted = 'a time such as "30", "30s" or "2min", more than 0 and at most a day'
    total, rest = 0.0, text.strip().lower()
    while rest:
        number, rest = _take(rest, "0123456789.")
        unit, rest = _take(rest, "abcdefghijklmnopqrstuvwxyz")
        if unit not in UNITS or not number or (rest and not unit):
            raise ValueError(wanted)
        try:
            total += float(number) * UNITS[unit]
        except ValueError:
            raise ValueError(wanted) from None
    if not 0 < total <= LONGEST:
        raise ValueError(wanted)
    return total


def _take(text: str, characters: str) -> tuple[str, str]:
    """What `text` begins with of these characters, and the rest without blanks before it."""
    rest = text.lstrip(characters)
    return text[:len(text) - len(rest)], rest.lstrip()


def parse_boolean(text: str) -> bool:
    """Yes or no, as systemd writes it."""
    folded = text.strip().lower()
    if folded in YES:
        return True
    if folded in NO:
        return False
    raise ValueError('"yes" or "no"')


def one_of(*words: str) -> Callable[[str], str]:
    """A parser for exactly one of `words`, whatever the case."""
    def parse_word(text: str) -> str:
        if text.strip().lower() in words:
            return text.strip().lower()
        raise ValueError(f"one of {', '.join(words)}")
    return parse_word


def some_of(*words: str) -> Callable[[str], tuple[str, ...]]:
    """A parser for a list of `words`, separated by white space or commas, each at most once."""
    def parse_words(text: str) -> tuple[str, ...]:
        found = tuple(text.lower().replace(",", " ").split())
        if not found or len(set(found)) < len(found) or not set(found) <= set(words):
            raise ValueError(f"a list of {', '.join(words)}, each at most once")
        return found
    return parse_words


def parse_paths(text: str) -> tuple[str, ...]:
    """Absolute paths separated by white space; quotes keep a path with blanks together."""
    return tuple(_path(word, 'an absolute path such as "/etc/homeport/ca.pem"') for word in split(text))


def parse_seed(text: str) -> tuple[str, ...]:
    """Absolute paths; or one document, packed and in base64, which never begins with a slash."""
    words = split(text)
    if len(words) == 1 and not words[0].startswith("/") and words[0].isascii() and (
            words[0].replace("+", "").replace("/", "").replace("-", "").replace("_", "").rstrip("=").isalnum()):
        return (words[0],)
    return tuple(_path(word, 'an absolute path such as "/etc/homeport/seed.yaml", or a document in base64')
                 for word in words)


def parse_locations(text: str) -> tuple[str, ...]:
    """Paths and URLs where a document may be, with fields such as {uuid} in them."""
    return tuple(_location(word) for word in split(text))


def parse_text(text: str) -> str:
    """Any text on one line."""
    return text.strip()


def parse_web_address(text: str) -> str:
    """An http or https URL without fields, or nothing."""
    return _web_address(text.strip(), "an http:// or https:// URL") if text.strip() else ""


def parse_auth(text: str) -> str:
    """A way to authenticate with a registration server, or nothing."""
    return one_of(*AUTHS)(text) if text.strip() else ""


def parse_proxy(text: str) -> str:
    """The URL of an HTTP proxy, or nothing; "host:port" is understood."""
    value = text.strip()
    if not value or value.lower() in ("none", "direct", *NO):
        return ""
    return _web_address(value if "://" in value else f"http://{value}",
                        'a proxy such as "http://proxy.example:3128"')


def parse_platform(text: str) -> str:
    """"auto", "off" or the name of a platform; an alias becomes the name."""
    word = text.strip().lower()
    if word in ("auto", "off"):
        return word
    from homeport.core.platformnames import NAMES, find_name
    if name := find_name(word):
        return name
    raise ValueError(f"auto, off or one of {', '.join(NAMES)}")


def split(text: str) -> list[str]:
    """Words separated by white space; double or single quotes keep one together."""
    words, word, quote, started = [], "", "", False
    for character in text:
        if quote and character == quote:
            quote = ""
        elif not quote and character in "\"'":
            quote, started = character, True
        elif character.isspace() and not quote:
            if started:
                words.append(word)
            word, started = "", False
        else:
            word, started = word + character, True
    if quote:
        raise ValueError(f"a closing {quote}")
    return [*words, word] if started else words


def for_people(text: str) -> str:
    """A value as it may be shown: without a URL's user name, password, query and fragment."""
    def shown(word: str) -> str:
        scheme, separator, rest = word.partition("://")
        if not separator:
            return word
        rest = rest.partition("#")[0].partition("?")[0]
        host, slash, path = rest.partition("/")
        return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
    return " ".join(map(shown, text.split()))


def _path(word: str, wanted: str) -> str:
    if not word.startswith("/") or "\0" in word:
        raise ValueError(wanted)
    return word


def _location(word: str) -> str:
    wanted = 'an absolute path or an http(s) URL, such as "https://cfg.example/{uuid}.yaml"'
    scheme, separator, rest = word.partition("://")
    _check_fields(word)
    if not separator:
        return _path(word, wanted)
    if scheme.lower() == "file":
        return _path(rest, wanted)
    return _web_address(word, wanted)


def _check_fields(word: str) -> None:
    for piece in word.split("{")[1:]:
        name, closed, _ = piece.partition("}")
        if not closed or name not in TEMPLATE_FIELDS:
            known = " ".join(f"{{{field}}}" for field in TEMPLATE_FIELDS)
            raise ValueError(f"only these fields: {known}")


def _web_address(word: str, wanted: str) -> str:
    scheme, separator, rest = word.partition("://")
    host = rest.partition("/")[0].partition("?")[0].rpartition("@")[2]
    if scheme.lower() not in ("http", "https") or not separator or host[:1] in ("", ":"):
        raise ValueError(wanted)
    if any(character.isspace() for character in word):
        raise ValueError(f"{wanted}, without blanks")
    return word
