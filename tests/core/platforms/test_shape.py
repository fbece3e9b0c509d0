"""How much of metadata is asked for: all that a walk wants, within bounds that no real platform comes near."""

from __future__ import annotations

import pytest

from homeport.core.platforms import aws, shape
from homeport.core.platforms.reading import Fault, line
from homeport.core.platforms.shape import NotThere, Unreadable, Want, fixed, gather


def macs(count: int) -> bytes:
    return "".join(f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}/\n" for number in range(count)).encode()


def test_more_pieces_than_anybody_has() -> None:
    """What was not asked for is not what isn't there: a card of which it was would be one without addresses."""
    asked: list[str] = []

    def ask(want: Want) -> bytes | None:
        asked.append(want.path)
        return macs(400) if want.path == aws.MACS else None

    files = gather(aws.wants, ask)
    assert len(asked) == shape.MOST_PIECES
    assert len(files) == 1 + 400 * len(aws.KEYS)
    beyond = set(files) - set(asked)
    assert len(beyond) == 401 and all(isinstance(files[path], Unreadable) for path in beyond)
    with pytest.raises(Fault, match="more than 2000 pieces"):
        line(files, next(iter(beyond)))


def test_more_bytes_than_anybody_has() -> None:
    """Each piece is small enough, all of them are not."""
    pieces = [Want(str(number), optional=True) for number in range(9)]
    piece = bytes(512 << 10)
    assert len(gather(fixed(*pieces[:8]), lambda want: piece)) == 8
    asked: list[str] = []

    def ask(want: Want) -> bytes:
        asked.append(want.path)
        return piece

    with pytest.raises(Fault, match="more than 4 MiB"):
        gather(fixed(*pieces, *(Want(f"more-{number}") for number in range(100))), ask)
    assert len(asked) == 9


def test_what_a_platform_always_has_is_there_or_nothing_is() -> None:
    with pytest.raises(NotThere):
        gather(fixed("a"), lambda want: None)
    with pytest.raises(NotThere):
        gather(fixed(Want("a", optional=True)), lambda want: None)
    assert gather(fixed(Want("a", optional=True), "b"), lambda want: b"" if want.path == "b" else None) == {
        "a": None, "b": b""}
