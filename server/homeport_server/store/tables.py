"""The tables. What must never be, the database refuses: an address twice, a name or an identity for two machines.

Times are seconds since 1970. Mappings are JSON text. An address is stored as text that sorts as its number does
(`ranges.to_key`), since no database has an integer of 128 bits.
"""

from __future__ import annotations

from sqlalchemy import (
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

VERSION = "1"

metadata = MetaData()

about = Table(
    "about", metadata,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)  # fmt: skip

# Tokens of registrations that have none of their own: the URL must be the same after a restart.
tokens = Table(
    "tokens", metadata,
    Column("registration", Text, primary_key=True),  # namespace/name
    Column("token", Text, nullable=False, unique=True),
)  # fmt: skip

machines = Table(
    "machines", metadata,
    Column("id", Integer, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("registration", Text, nullable=False, default=""),
    Column("uuid", Text, nullable=False, default=""),
    Column("serial", Text, nullable=False, default=""),
    Column("labels", Text, nullable=False, default="{}"),
    Column("annotations", Text, nullable=False, default="{}"),
    Column("network", Text, nullable=False, default="{}"),  # what it was last assigned, a template
    Column("revision", Text, nullable=False, default=""),
    Column("pending", Text, nullable=False, default=""),  # why it has no assignment now
    Column("note", Text, nullable=False, default=""),  # what a person should know: moved, from where
    Column("report", Text, nullable=False, default="{}"),
    Column("reported", Float),
    Column("created", Float, nullable=False),
    Column("seen", Float, nullable=False),
    UniqueConstraint("namespace", "name"),
    Index("machines_serial", "serial"),
    Index("machines_uuid", "uuid"),
)  # fmt: skip

# A machine may have had several: its UUID changed, a card was replaced.
identities = Table(
    "identities", metadata,
    Column("kind", Text, primary_key=True),  # tpm, plain
    Column("digest", Text, primary_key=True),
    Column("value", Text, nullable=False, default=""),
    Column("machine", Integer, ForeignKey("machines.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("since", Float, nullable=False),
)  # fmt: skip

cards = Table(
    "cards", metadata,
    Column("machine", Integer, ForeignKey("machines.id", ondelete="CASCADE"), primary_key=True),
    Column("mac", Text, primary_key=True, index=True),
)  # fmt: skip

# An address is held by a machine, reserved for an identity, both, or resting until `free_at`.
addresses = Table(
    "addresses", metadata,
    Column("key", Text, primary_key=True),
    Column("ip", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("machine", Integer, ForeignKey("machines.id", ondelete="CASCADE")),
    Column("reserved_for", Text),
    Column("pool", Text, nullable=False, default=""),
    Column("prefix", Integer),
    Column("gateway", Text),
    Column("rest", Integer, nullable=False, default=0),  # seconds, once it is released
    Column("free_at", Float),
    Column("since", Float, nullable=False),
    UniqueConstraint("machine", "name"),
    UniqueConstraint("reserved_for", "name"),
)  # fmt: skip
