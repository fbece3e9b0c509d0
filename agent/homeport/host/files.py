"""Files below a root directory, written so that no reader and no power cut ever sees half of one.

Knows the order of writes (temporary file in the same directory, mode before content, fsync, rename,
fsync of the directory) and how to stay below `root`.  Refuses to know what is in a file or whose it
is.

Every failure is the kernel's OSError (ENOSPC, EROFS, ...) about the path as the caller wrote it;
what that means is the caller's to say.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

Where = str | os.PathLike[str]

# A leading dot and an ending of our own: NetworkManager and systemd skip such files in their
# folders.
TEMPORARY = re.compile(r"\.homeport-[0-9a-f]{16}\.tmp")
MAX_LINKS = 40  # as the kernel's MAXSYMLINKS (include/linux/namei.h)


def write_atomic(root: Where, path: Where, data: bytes, mode: int = 0o600) -> None:
    """Put `data` at `path` below `root`, with exactly `mode` whatever the umask, or change nothing.

    On return it survives a power cut.  The directory must exist (`make_dir`).  A symlink at `path`
    is replaced, not followed.  Raises OSError.
    """
    with _parent(root, path) as (directory, name):
        temporary = f".homeport-{os.urandom(8).hex()}.tmp"
        try:
            _write_new(directory, temporary, data, mode)
            os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=directory)
            raise
        _sync(directory)


def read_file(root: Where, path: Where, limit: int) -> bytes | None:
    """The content of the regular file `path` below `root`, or None if there is none.

    Symlinks are followed, below `root`.  More than `limit` bytes is an OSError (EFBIG), anything
    but a regular file one too (EISDIR, EINVAL): a FIFO must not stop a boot.
    """
    shown = os.fspath(path)
    try:
        # O_NONBLOCK only matters for what is refused below: opening a FIFO would wait for a writer.
        fd = os.open(resolve(root, path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _about(error, shown) from error
    with open(fd, "rb", buffering=0) as file:
        kind = os.fstat(fd).st_mode
        if not stat.S_ISREG(kind):
            number = errno.EISDIR if stat.S_ISDIR(kind) else errno.EINVAL
            raise OSError(number, "not a regular file", shown)
        data = bytearray()
        while chunk := file.read(min(1 << 16, limit + 1 - len(data))):
            data += chunk
            if len(data) > limit:
                raise OSError(errno.EFBIG, f"larger than {limit} bytes", shown)
    return bytes(data)


def attribute(path: str) -> str:
    """The first line, of at most 64 characters, of a file of the kernel's that cannot lead elsewhere; "" without it."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.readline(64).strip()
    except OSError:
        return ""


def remove(root: Where, path: Where) -> bool:
    """Remove the file or symlink `path` for good; false if there is none. Raises OSError."""
    try:
        with _parent(root, path) as (directory, name):
            os.unlink(name, dir_fd=directory)
            _sync(directory)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def make_dir(root: Where, path: Where, mode: int = 0o755) -> None:
    """Make the directory `path` below `root` with `mode`, and what is missing above it with 0755.

    One that exists is left as it is: it may be a stranger's.  Raises OSError, FileExistsError among
    them if something else has that name.
    """
    parts = _parts(path)
    for depth in range(1, len(parts) + 1):
        _make_one(root, "/" + "/".join(parts[:depth]), mode if depth == len(parts) else 0o755)


def is_dir(root: Where, path: Where) -> bool:
    """Whether `path` below `root` is a directory, or a symlink to one; false if that cannot be seen."""
    try:
        return os.path.isdir(resolve(root, path))
    except OSError:
        return False


def sweep(root: Where, path: Where) -> tuple[str, ...]:
    """Remove what a killed `write_atomic` left in the directory `path`; the names, for the log.

    Only for a caller who knows that nobody else is writing there now.
    """
    try:
        names = [name for name in os.listdir(resolve(root, path)) if TEMPORARY.fullmatch(name)]
    except (FileNotFoundError, NotADirectoryError):
        return ()
    return tuple(name for name in sorted(names) if remove(root, f"{os.fspath(path)}/{name}"))


def resolve(root: Where, path: Where, *, follow_last: bool = True) -> str:
    """Where `path` is when `root` is "/": its symlinks are followed, but never out of `root`.

    In a tree that is not the running system, `/etc/x -> /usr/x` means the tree's own `/usr/x`.
    A path that does not exist resolves too.  Raises OSError (ELOOP).
    """
    base = os.fspath(root)
    todo, done, links = _parts(path)[::-1], list[str](), 0
    while todo:
        part = todo.pop()
        if part == "..":
            done = done[:-1]
            continue
        here = os.path.join(base, *done, part)
        target = _link(here) if todo or follow_last else None
        if target is None:
            done.append(part)
            continue
        links += 1
        if links > MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))
        done = [] if target.startswith("/") else done
        todo += [name for name in target.split("/") if name not in ("", ".")][::-1]
    return os.path.join(base, *done)


def _parts(path: Where) -> list[str]:
    return [part for part in os.fspath(path).split("/") if part not in ("", ".")]


def _link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:  # not a symlink, or not there
        return None


@contextmanager
def _parent(root: Where, path: Where) -> Iterator[tuple[int, str]]:
    """The directory of `path` as a descriptor, and the last component; errors then name `path`."""
    shown = os.fspath(path)
    parts = _parts(path)
    if not parts or parts[-1] == "..":
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), shown)
    try:
        above = resolve(root, "/".join(parts[:-1]))
        directory = os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield directory, parts[-1]
        finally:
            os.close(directory)
    except OSError as error:
        raise _about(error, shown) from error


def _about(error: OSError, shown: str) -> OSError:
    """The same error about `shown`; OSError itself picks the subclass by the number."""
    number = error.errno or errno.EIO
    return OSError(number, error.strerror or os.strerror(number), shown)


def _write_new(directory: int, name: str, data: bytes, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(name, flags, 0o600, dir_fd=directory)
    with open(fd, "wb", buffering=0) as file:
        os.fchmod(fd, mode)  # before the first byte: a secret is never readable, not for a moment
        view = memoryview(data)
        while view:
            view = view[file.write(view):]
        os.fsync(fd)  # before the rename, or a power cut can leave the new name with no content


def _sync(directory: int) -> None:
    """Make a change of names last. File systems that cannot do it (9p, some FUSE) say EINVAL."""
    try:
        os.fsync(directory)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise


def _make_one(root: Where, path: str, mode: int) -> None:
    with _parent(root, path) as (directory, name):
        try:
            os.mkdir(name, 0o700, dir_fd=directory)
        except FileExistsError:
            if not is_dir(root, path):
                raise
            return
        os.chmod(name, mode, dir_fd=directory)  # mkdir's mode is cut by the umask
        _sync(directory)
