"""Tokens of registrations, and what the server tells its own commands about itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlalchemy import Connection, delete, insert, select, update

from homeport_server.manifests.registrations import Registration
from homeport_server.store.tables import about, tokens

# As the operator draws them: no vowels, so that no word comes out.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_LENGTH = 54


def token_map(connection: Connection, registrations: Iterable[Registration],
              chance: Callable[[int], int]) -> dict[str, Registration]:
    """The registrations by token: their own, or one that is drawn once and kept."""
    kept = {row.registration: row.token for row in connection.execute(select(tokens))}
    found: dict[str, Registration] = {}
    for registration in registrations:
        token = registration.token or kept.get(registration.key) or _draw(chance)
        if kept.get(registration.key) != token:
            connection.execute(delete(tokens).where(
                (tokens.c.registration == registration.key) | (tokens.c.token == token)))
            connection.execute(insert(tokens).values(registration=registration.key, token=token))
        found[token] = registration
    return found


def kept_tokens(connection: Connection) -> dict[str, str]:
    """Registration -> token."""
    return {row.registration: row.token for row in connection.execute(
        select(tokens).order_by(tokens.c.registration))}


def remember(connection: Connection, key: str, value: str) -> None:
    changed = connection.execute(update(about).where(about.c.key == key).values(value=value))
    if not changed.rowcount:
        connection.execute(insert(about).values(key=key, value=value))


def recall(connection: Connection, key: str) -> str:
    return connection.scalar(select(about.c.value).where(about.c.key == key)) or ""


def _draw(chance: Callable[[int], int]) -> str:
    return "".join(_ALPHABET[chance(len(_ALPHABET))] for _ in range(_LENGTH))
