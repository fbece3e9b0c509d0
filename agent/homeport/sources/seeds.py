"""Seeds: a document for when nothing better is there yet, given with the image, on a drive, or on the kernel line.

Knows where they can be, and how a whole document goes on the kernel command line: compressed with gzip or zstd (or
not at all), then base64.  A kernel takes 2048 bytes of command line on x86 and ARM, 4096 on s390
(COMMAND_LINE_SIZE), the boot loader's own arguments included: about 1.4 KiB of compressed document.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from homeport.core.complaint import Complaint
from homeport.errors import DocumentError, NoAssignment
from homeport.sources.reply import LARGEST, Reply

if TYPE_CHECKING:
    from homeport.settings import Settings

Where = str | os.PathLike[str]
KERNEL_ARGUMENT = "homeport.seed="
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
UNPACKING = 10.0  # seconds


def read(settings: Settings, *, root: Where = "/") -> Reply:
    """The first that is there: on the kernel line, on the drive, in the image. Raises NoAssignment if none is,
    DocumentError or SourceError for one that cannot be used.
    """
    reply = read_at_hand(settings, root=root) or read_files(settings, root=root)
    if reply is None:
        where = next((path for path in settings.seed if path.startswith("/")), "")
        raise NoAssignment("This image has no seed document", f"one can be put at {where}" if where else "")
    return reply


def read_at_hand(settings: Settings, *, root: Where = "/") -> Reply | None:
    """One that somebody gave this very machine: on the kernel line, or on the drive."""
    data = next((text for text in settings.seed if not text.startswith("/")), "")
    if data:
        return Reply(unpack(data), source="seed", url=KERNEL_ARGUMENT)
    from homeport.sources import drive
    return drive.read_seed(root)


def read_files(settings: Settings, *, root: Where = "/") -> Reply | None:
    """The first file that is there: the image's."""
    from homeport.sources.file import read_first
    return read_first([path for path in settings.seed if path.startswith("/")], root=root, source="seed")


def unpack(text: str) -> bytes:
    """The document in a kernel argument's value. Raises DocumentError that says what is wrong with it."""
    import binascii
    from base64 import b64decode
    plain = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        data = b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise _fault("not base64, or cut off: a kernel takes 2048 bytes of arguments", "gzip -9 FILE | base64 -w0"
                     ) from None
    if data.startswith(GZIP):
        return _gunzip(data)
    if data.startswith(ZSTD):
        return _unzstd(data)
    return data


def _gunzip(data: bytes) -> bytes:
    import zlib
    stream = zlib.decompressobj(wbits=31)  # gzip's header and its checksum
    try:
        found = stream.decompress(data, LARGEST + 1)
    except zlib.error as error:
        raise _fault(f"gzip: {error}", "the whole of what gzip wrote") from error
    if len(found) > LARGEST:
        raise _too_large()
    if not stream.eof:
        raise _fault("gzip: cut off; a kernel takes 2048 bytes of arguments", "a smaller document, or a drive")
    return found


def _unzstd(data: bytes) -> bytes:
    """By the library, which systemd and kmod have brought; else by the program."""
    from homeport.host import zstd
    try:
        found = zstd.unpack(data, LARGEST)
    except zstd.Damaged as error:
        raise _fault(f"zstd: damaged or cut off ({error}); a kernel takes 2048 bytes of arguments",
                     "the whole of what zstd wrote") from error
    except OSError:
        return _by_program(data)
    if len(found) > LARGEST:
        raise _too_large()
    return found


def _by_program(data: bytes) -> bytes:
    from homeport.host.process import MissingProgram, TimedOut, run
    from homeport.host.zstd import LIBRARY
    try:
        done = run(["zstd", "--decompress", "--stdout", "--memory=128MiB", "--quiet"], input=data, timeout=UNPACKING)
    except (MissingProgram, TimedOut) as error:
        raise _fault(f"zstd: there is no {LIBRARY} here, and: {error.message}",
                     "gzip, which needs neither; or one of them in this image") from error
    if done.truncated or len(done.stdout) > LARGEST:
        raise _too_large()
    if done.status != 0:
        raise _fault("zstd: damaged or cut off; a kernel takes 2048 bytes of arguments", "the whole of what zstd wrote")
    return done.stdout


def _too_large() -> DocumentError:
    return _fault(f"unpacked it is larger than {LARGEST >> 10} KiB", "an assignment is a few KiB; is this one?")


def _fault(found: str, wanted: str) -> DocumentError:
    return DocumentError([Complaint(f"the kernel argument {KERNEL_ARGUMENT}", found, wanted)])
