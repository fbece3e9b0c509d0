"""zstd, unpacked by its library: Python has none of its own before 3.14, and an initramfs has no program for it.

Knows the streaming calls of libzstd (https://facebook.github.io/zstd/zstd_manual.html). What is unpacked is a
stranger's: it has a limit. Its window has that of the library, 128 MiB, which every level of `zstd` keeps to, and of
which only what is written takes memory.
"""

from __future__ import annotations

import ctypes

LIBRARY = "libzstd.so.1"
PIECE = 1 << 17  # bytes; ZSTD_DStreamOutSize(), a whole block


class Damaged(Exception):
    """Not zstd, or not all of it; in the library's words."""


class _Buffer(ctypes.Structure):
    """ZSTD_inBuffer, ZSTD_outBuffer: where, how much, how far."""

    _fields_ = (("data", ctypes.c_void_p), ("size", ctypes.c_size_t), ("pos", ctypes.c_size_t))


def unpack(data: bytes, limit: int) -> bytes:
    """What `data` holds, all of its frames; of more than `limit` bytes only a little more. Raises Damaged; OSError
    where there is no such library.
    """
    library = _load()
    stream = library.ZSTD_createDCtx()
    if not stream:
        raise MemoryError("libzstd has no memory for a stream")
    try:
        return _unpack(library, stream, data, limit)
    finally:
        library.ZSTD_freeDCtx(stream)


def _unpack(library: ctypes.CDLL, stream: int, data: bytes, limit: int) -> bytes:
    source, place = ctypes.create_string_buffer(data, len(data)), ctypes.create_string_buffer(PIECE)
    given = _Buffer(ctypes.cast(source, ctypes.c_void_p), len(data), 0)
    found = bytearray()
    while True:
        taken = _Buffer(ctypes.cast(place, ctypes.c_void_p), PIECE, 0)
        before = given.pos
        # What is left of a frame, as far as it is known; 0 at its end.
        left = _check(library, library.ZSTD_decompressStream(stream, ctypes.byref(taken), ctypes.byref(given)))
        found += place.raw[:taken.pos]
        if len(found) > limit or (left == 0 and given.pos == given.size):
            return bytes(found)
        if given.pos == before and taken.pos == 0:
            raise Damaged("cut off")


def _check(library: ctypes.CDLL, result: int) -> int:
    if library.ZSTD_isError(result):
        raise Damaged(library.ZSTD_getErrorName(result).decode("ascii", "replace"))
    return result


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(LIBRARY)
    size, pointer, buffer = ctypes.c_size_t, ctypes.c_void_p, ctypes.POINTER(_Buffer)
    for name, result, arguments in (
            ("createDCtx", pointer, ()), ("freeDCtx", size, (pointer,)),
            ("decompressStream", size, (pointer, buffer, buffer)),
            ("isError", ctypes.c_uint, (size,)), ("getErrorName", ctypes.c_char_p, (size,))):
        function = getattr(library, f"ZSTD_{name}")
        function.restype, function.argtypes = result, arguments
    return library
