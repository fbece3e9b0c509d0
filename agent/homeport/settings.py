"""The settings: every option declared once, and what files and kernel arguments make of them.

Knows names, defaults, help and the order in which one place wins over another; `--help`,
homeport.conf(5), the shipped homeport.conf and the parser all come from `OPTIONS`.  Refuses to know what
the settings are for.  The fast path imports it: what costs time is imported where it is used.

Lowest first: /usr/lib/homeport/homeport.conf, /etc/homeport/homeport.conf, then the drop-ins
homeport.conf.d/*.conf of /usr/lib/homeport, /run/homeport and /etc/homeport together, by file name (one in
/etc hides one of the same name in /run, and that one in /usr/lib, as with systemd), then the kernel
arguments.  What a higher place says replaces what a lower one said, lists too; within one place the lines
of a list add up, and an empty value means the default.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from homeport.core import cmdline as kernel
from homeport.option_values import (
    for_people,
    one_of,
    parse_auth,
    parse_boolean,
    parse_duration,
    parse_locations,
    parse_paths,
    parse_platform,
    parse_proxy,
    parse_seed,
    parse_text,
    parse_web_address,
    some_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SOURCES = ("credential", "fw-cfg", "file", "drive", "url", "elemental", "platform")
IDENTITY_KINDS = ("tpm", "smbios-uuid", "smbios-serial", "mac")
MODES = ("auto", "active", "passive", "recovery", "reset", "live")
FILES = ("usr/lib/homeport/homeport.conf", "etc/homeport/homeport.conf")
DROP_INS = tuple(f"{folder}/homeport/homeport.conf.d" for folder in ("usr/lib", "run", "etc"))
MAX_FILE = 64 * 1024  # bytes; more is not a settings file of ours


class Option:
    """One option: `default` is text, as a file would have it; `parse` raises ValueError with what is right.

    `many` options may be given several times in one place. `in_files` is false for what only the kernel
    command line may say. `secret` is true for a value that no message may show.
    """

    __slots__ = ("aliases", "default", "group", "help", "in_files", "many", "name", "parse", "secret")

    def __init__(self, name: str, default: str, parse: Callable[[str], Any], help: str, *, group: str = "",
                 aliases: tuple[str, ...] = (), many: bool = False, in_files: bool = True,
                 secret: bool = False) -> None:
        self.name = name
        self.default = default
        self.parse = parse
        self.help = help
        self.group = group
        self.aliases = aliases
        self.many = many
        self.in_files = in_files
        self.secret = secret

    def shown(self, text: str) -> str:
        """A value of this option, right or wrong, as people may see it."""
        return "(not shown)" if self.secret and text else for_people(text)

    @property
    def attribute(self) -> str:
        return self.name.replace("-", "_")

    @property
    def kernel_argument(self) -> str:
        return f"{kernel.PREFIX}{self.name}"

    @property
    def key(self) -> str:
        """As it is written in files: "nic-wait" is NicWait=."""
        return "".join(part.capitalize() for part in self.name.split("-"))


OPTIONS: tuple[Option, ...] = (
    Option("config", "", parse_locations,
           "Where this machine's document is: an absolute path or an http(s) URL. {uuid}, {serial}, {mac}, "
           "{hostname} and {tpmhash} stand for what the machine is. Several are tried in order.",
           group="Where the assignment comes from", aliases=("config-url", "config-file"), many=True),
    Option("sources", "credential fw-cfg file drive url elemental platform", some_of(*SOURCES),
           "Which sources are asked, in this order. fw-cfg is a file that QEMU passes (opt/io.homeport/assignment), "
           "drive a file system labelled HOMEPORT."),
    Option("registration", "", parse_web_address,
           "URL at which this machine registers with an Elemental server (elemental-operator, homeport-server); its "
           "last part is the registration's token, a secret. Empty: as Elemental's own config.yaml says.",
           secret=True),
    Option("registration-auth", "", parse_auth,
           "How it says there who it is: tpm, mac, sys-uuid or emulated-tpm. Empty: as Elemental's config.yaml says, "
           "otherwise tpm. Only a TPM proves it."),
    Option("platform", "auto", parse_platform,
           "The cloud or provider whose metadata are this machine's document, by name. auto: if nothing else is "
           "configured, the one that firmware, drives or ignition.platform.id= tell of. off: none.",
           aliases=("source",)),
    Option("platform-persist", "auto", one_of("auto", "yes", "no"),
           "Whether what a platform's metadata say is kept on disk. auto: not on clouds whose NICs and addresses come "
           "and go (EC2, Google, Azure, Alibaba, Oracle): there the next boot starts as image and administrator left "
           "it. yes, no: everywhere."),
    Option("policy-routing", "auto", one_of("auto", "off"),
           "On clouds, whether traffic from each of several addresses leaves by its own NIC, through tables and rules. "
           "off: where a container network doesn't get on with that."),
    Option("seed", "/etc/homeport/seed.yaml /usr/lib/homeport/seed.yaml", parse_seed,
           "Documents to use when neither a source nor a last-known-good assignment is there; the first that "
           "exists counts. Or, on the kernel line, the document itself: gzip or zstd, then base64.", many=True,
           secret=True),
    Option("ca", "", parse_paths,
           "PEM files with certificate authorities to trust for https, in addition to the system's. Several "
           "let one be replaced by the next without a gap.", many=True),
    Option("proxy", "", parse_proxy,
           "HTTP proxy for the url and elemental sources. Proxy variables of the environment are not read."),
    Option("report", "", parse_web_address,
           "URL to which the outcome is posted after each boot; empty: nowhere."),
    Option("mode", "auto", one_of(*MODES),
           "How this machine was booted. Only active and passive put an assignment in force, the others stay "
           "on DHCP. auto: as Elemental's marker files and kernel arguments say, otherwise active.",
           group="Which machine, in which mode"),
    Option("identity-order", " ".join(IDENTITY_KINDS), some_of(*IDENTITY_KINDS),
           "Which facts may name this machine; the first that is sound does."),
    Option("identity", "", parse_text,
           'What this machine is, instead of what its hardware says: "uuid:…", "serial:…", "mac:…", '
           '"hostname:…" or "tpmhash:…", or the bare value. Wins over /etc/homeport/identity, which holds '
           "the same on one line.", in_files=False),
    Option("initrd", "auto", one_of("auto", "off", "always"),
           "Whether homeport works in the initramfs. auto: if the root file system or an argument asks for "
           "the network there, or if the assignment or a seed is at hand without one. What the kernel line itself "
           "says of the network there (ip=, bond=, ...) always wins."),
    Option("refresh", "yes", parse_boolean,
           "Whether the sources are asked again after a boot that found its assignment unchanged on disk."),
    Option("allow-dispatch", "no", parse_boolean,
           "Whether a document may carry dispatch scripts, which run as root on every link change."),
    Option("log-level", "info", one_of("debug", "info", "warning", "error"),
           "How much is logged; $SYSTEMD_LOG_LEVEL wins."),
    Option("deadline", "120s", parse_duration,
           "Total time for all sources in the real root; then the next rung of the ladder.",
           group="How long things may take"),
    Option("initrd-deadline", "30s", parse_duration,
           "Total time in the initramfs up to the handover; the sources get two thirds of it."),
    Option("connect-timeout", "5s", parse_duration, "One attempt: to be connected."),
    Option("header-timeout", "10s", parse_duration, "One attempt: until the answer begins."),
    Option("body-timeout", "20s", parse_duration, "One attempt: until the document is complete."),
    Option("nic-wait", "30s", parse_duration,
           "How long to wait for network cards that the document names and that are not there yet; "
           "in the initramfs at most a third of what is left of its deadline."),
    Option("nm-wait", "30s", parse_duration, "How long to wait for NetworkManager to answer."),
    Option("apply-timeout", "150s", parse_duration, "How long nmstatectl may take to apply."),
    Option("tpm-timeout", "30s", parse_duration,
           "How long the TPM may take for each thing that it is asked. Its driver, where firmware or udev promise one, "
           "has five seconds to come."),
    Option("proof-timeout", "30s", parse_duration, "How long the proof of the new configuration may take."),
)


class Settings:
    """The settings in force, read-only; times in seconds. What each means stands in `OPTIONS`.

    `origins` has the place of each option that is not at its default ("/etc/homeport/homeport.conf:3",
    "kernel argument homeport.mode="); `warnings` are what was tolerated, for the caller to log.
    """

    config: tuple[str, ...]
    sources: tuple[str, ...]
    platform: str
    platform_persist: str
    policy_routing: str
    registration: str
    registration_auth: str
    seed: tuple[str, ...]
    ca: tuple[str, ...]
    proxy: str
    report: str
    mode: str
    identity_order: tuple[str, ...]
    identity: str
    initrd: str
    refresh: bool
    allow_dispatch: bool
    log_level: str
    deadline: float
    initrd_deadline: float
    connect_timeout: float
    header_timeout: float
    body_timeout: float
    nic_wait: float
    nm_wait: float
    apply_timeout: float
    tpm_timeout: float
    proof_timeout: float
    origins: Mapping[str, str]
    warnings: tuple[str, ...]

    def __init__(self, values: Mapping[str, Any] | None = None, *, origins: Mapping[str, str] | None = None,
                 warnings: Iterable[str] = ()) -> None:
        """`values` by attribute; what is not among them has its default. Raises TypeError for a stranger."""
        known = {option.attribute: option.parse(option.default) for option in OPTIONS}
        if strangers := set(values or {}) - set(known):
            raise TypeError(f"no such setting: {', '.join(sorted(strangers))}")
        self.__dict__.update(known, **(values or {}))
        self.__dict__.update(origins=dict(origins or {}), warnings=tuple(warnings))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"settings are read-only: {name}")

    def replace(self, **values: Any) -> Settings:
        """A copy with some values changed, as a command line option would."""
        now = {option.attribute: getattr(self, option.attribute) for option in OPTIONS}
        return Settings(now | values, origins=self.origins, warnings=self.warnings)


def read_settings(root: str | os.PathLike[str] = "/", cmdline: str = "",
                  flags: Mapping[str, str] | None = None, *, lenient: bool = False) -> Settings:
    """The settings of the files below `root` and of the kernel command line `cmdline`.

    `flags` are options of our own command line by name, and win over both; a bad one raises UsageError.
    Raises SettingsError with every bad value at once.  With `lenient` a bad value is a warning, and what a
    lower place says stays, so that a boot can go on with the rest of what was meant.
    """
    faults: list[str] = []
    warnings: list[str] = []
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for place in _places(os.fspath(root), cmdline, faults):
        for option, texts, where in _gather(place, warnings):
            try:
                values[option.attribute] = _parse(option, texts)
                origins[option.name] = where
            except ValueError as wanted:
                faults.append(f"{where}: {option.shown(' '.join(texts)) or 'nothing'!r} is not a value for "
                              f"{option.name}; it must be {wanted}")
    faults, warnings = [_for_console(fault) for fault in faults], [_for_console(warning) for warning in warnings]
    if faults and not lenient:
        from homeport.errors import SettingsError
        raise SettingsError("Cannot use the settings: " + "; ".join(faults),
                            "correct them there; homeport.conf(5) lists all options")
    if flags:
        values.update(_read_flags(flags, origins))
    return Settings(values, origins=origins, warnings=[
        *warnings, *(f"{fault}, going on without it" for fault in faults)])


def _read_flags(flags: Mapping[str, str], origins: dict[str, str]) -> Iterator[tuple[str, Any]]:
    from homeport.errors import UsageError
    for name, text in flags.items():
        option = _find(name)
        if option is None:
            raise UsageError(f"there is no option --{name}")
        try:
            yield option.attribute, option.parse(text or option.default)
        except ValueError as wanted:
            raise UsageError(f"--{name} {option.shown(text)}: it must be {wanted}") from None
        origins[option.name] = f"--{name}"


class Line:
    """One assignment as written: name and value, where it stands, and whether that is a file."""

    __slots__ = ("in_file", "name", "value", "where")

    def __init__(self, name: str, value: str | None, where: str, *, in_file: bool) -> None:
        self.name = name
        self.value = value
        self.where = where
        self.in_file = in_file


def _places(root: str, cmdline: str, faults: list[str]) -> Iterator[list[Line]]:
    for path in (*FILES, *_drop_ins(root)):
        try:
            text = _read(os.path.join(root, path))
        except (OSError, ValueError) as error:
            cause = error.strerror if isinstance(error, OSError) else error
            faults.append(f"/{path}: cannot be read: {cause}")
        else:
            yield list(_lines(text, f"/{path}"))
    yield [Line(name, value, f"kernel argument {kernel.PREFIX}{name}=", in_file=False)
           for name, value in kernel.our_arguments(cmdline)]


def _drop_ins(root: str) -> list[str]:
    found: dict[str, str] = {}
    for folder in DROP_INS:
        try:
            names = os.listdir(os.path.join(root, folder))
        except OSError:
            continue
        found |= {name: f"{folder}/{name}" for name in names
                  if name.endswith(".conf") and not name.startswith(".")}
    return [found[name] for name in sorted(found)]


def _read(path: str) -> str:
    """The text of a settings file, "" if it is absent or masked (a link to /dev/null)."""
    if os.path.realpath(path) == os.devnull:
        return ""
    try:
        # Not blocking: a FIFO in that place must not stop a boot.
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return ""
    try:
        data = os.read(file, MAX_FILE + 1)
    finally:
        os.close(file)
    if len(data) > MAX_FILE:
        raise ValueError(f"larger than {MAX_FILE // 1024} KiB")
    # A comment in another encoding is no reason to fail; a value that needs one is refused by its parser.
    return data.decode("utf-8-sig", "replace")


def _lines(text: str, path: str) -> Iterator[Line]:
    """The assignments of a file; those of sections that are not ours have the section in their name."""
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("[") and line.endswith("]"):
            section = line if kernel.fold_name(line) != "[homeport]" else ""
            continue
        name, equals, value = line.partition("=")
        written = value.strip() if equals else None
        yield Line(section + name.strip(), written, f"{path}:{number}", in_file=True)


def _gather(lines: list[Line], warnings: list[str]) -> Iterator[tuple[Option, list[str], str]]:
    """The options that one place sets, each with its value, or its values for a list."""
    gathered: dict[str, tuple[Option, list[str], str]] = {}
    for line in lines:
        option = _find(line.name)
        if option is None or line.in_file > option.in_files:
            warnings.append(_unknown(line, option))
            continue
        texts = gathered[option.name][1] if option.name in gathered and option.many and line.value else []
        gathered[option.name] = option, [*texts, _text(option, line)], line.where
    yield from gathered.values()


def _find(name: str) -> Option | None:
    folded = kernel.fold_name(name)
    for option in OPTIONS:
        if folded in map(kernel.fold_name, (option.name, *option.aliases)):
            return option
    return None


def _text(option: Option, line: Line) -> str:
    if line.value is None:
        # A bare word means yes, as for other kernel arguments; for anything but a boolean it is refused.
        return "yes" if option.parse is parse_boolean else "(no value)"
    value = line.value
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" and value[0] not in value[1:-1]:
        return value[1:-1]
    return value


def _parse(option: Option, texts: list[str]) -> Any:
    joined = " ".join(texts).strip()
    try:
        return option.parse(joined or option.default)
    except ValueError as wanted:
        if " #" in joined or " ;" in joined:
            raise ValueError(f"{wanted}; a comment needs a line of its own") from None
        raise


def _unknown(line: Line, option: Option | None) -> str:
    if option is not None:
        return f"{line.where}: {line.name} is for the kernel command line only, ignoring it " \
               f"(a file has its own place: /etc/homeport/{option.name})"
    if line.name.startswith("["):
        return f"{line.where}: this section is not ours, ignoring {line.name.rpartition(']')[2]}"
    import difflib
    names = {kernel.fold_name(name): option for option in OPTIONS for name in (option.name, *option.aliases)}
    near = difflib.get_close_matches(kernel.fold_name(line.name), names, 1)
    hint = ""
    if near:
        meant = names[near[0]]
        hint = f" (did you mean {meant.key if line.in_file else meant.kernel_argument}=?)"
    return f"{line.where}: there is no option {line.name!r}, ignoring it{hint}"


def _for_console(text: str) -> str:
    """A message that quotes a file: nothing in it that a terminal would obey, and no more than anyone reads."""
    text = text if len(text) <= 1000 else text[:1000] + "…"
    return text if text.isprintable() else "".join(char if char.isprintable() else "?" for char in text)


def default_file_text() -> str:
    """The homeport.conf that is shipped: every option with its help, commented out at its default."""
    from homeport.settings_text import default_file_text as render
    return render(OPTIONS)


def man_options() -> str:
    """The options for homeport.conf(5), as man macros."""
    from homeport.settings_text import man_options as render
    return render(OPTIONS)


def help_options() -> str:
    """The options for `homeport --help`, as plain text."""
    from homeport.settings_text import help_options as render
    return render(OPTIONS)
