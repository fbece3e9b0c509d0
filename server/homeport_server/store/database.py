"""The database: opened, laid out, and changed by functions that are run as one transaction each.

Knows what SQLite needs to be trusted with addresses: write-ahead log, every commit on disk before anybody is told,
the write lock taken at the start of a change. Refuses to know what is in the tables.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, insert, select
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from homeport.errors import HomeportError
from homeport_server.store import tables

Result = TypeVar("Result")
TRIES = 8
LOCK_WAIT = 30.0  # seconds; a command of a person beside a server that registers hundreds


class StoreError(HomeportError):
    """The database cannot be used."""

    status = os.EX_CANTCREAT


class Database:
    """One SQLite file. May be used from several threads, and beside other processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.engine = _sqlite(path)
        self._here = threading.local()  # the batch of this thread
        try:
            # Names and addresses of machines, tokens: for root only, before the first byte is in it.
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
            with self.engine.begin() as connection:
                tables.metadata.create_all(connection)
                _check_version(connection, path)
        except (OSError, DBAPIError) as error:
            raise StoreError(f"Cannot use the database {path}: {_cause(error)}",
                             "name another place with --state") from None

    def change(self, function: Callable[[Connection], Result]) -> Result:
        """Run `function` as one transaction and give back what it gives; it is on disk then.

        Run again when another writer was faster, so it must do nothing but database work.  Raises StoreError.
        """
        batch: Connection | None = getattr(self._here, "batch", None)
        if batch is not None:
            with self._as_ours("change"), batch.begin_nested():
                return function(batch)
        for attempt in range(TRIES):
            try:
                with self.engine.begin() as connection:
                    return function(connection)
            except (IntegrityError, OperationalError) as error:
                if attempt + 1 == TRIES:
                    raise StoreError(f"Cannot change the database {self.path}: {_cause(error)}") from None
            except DBAPIError as error:
                raise StoreError(f"Cannot change the database {self.path}: {_cause(error)}") from None
        raise AssertionError("the last attempt returns or raises")

    def look(self, function: Callable[[Connection], Result]) -> Result:
        """Run `function` on one unchanging view of the database. Raises StoreError."""
        batch: Connection | None = getattr(self._here, "batch", None)
        with self._as_ours("read"):
            if batch is not None:
                return function(batch)
            with self.engine.connect() as connection:
                # As plain reader: no write lock (see _begin).
                return function(connection.execution_options(homeport_read=True))

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Changes of this thread are on disk together at the end; each of them is still all or nothing.

        Nobody may be told of a change before.  Raises StoreError at the end, and then nothing was changed.
        """
        with self._as_ours("change"), self.engine.begin() as connection:
            self._here.batch = connection
            try:
                yield
            finally:
                self._here.batch = None

    @contextmanager
    def _as_ours(self, what: str) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise StoreError(f"Cannot {what} the database {self.path}: {_cause(error)}") from None

    def close(self) -> None:
        self.engine.dispose()


def _sqlite(path: Path) -> Engine:
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": LOCK_WAIT, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        # Transactions are ours to begin: pysqlite would begin them late, and without the lock.
        connection.isolation_level = None
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        reads = connection.get_execution_options().get("homeport_read", False)
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")

    return engine


def _check_version(connection: Connection, path: Path) -> None:
    found = connection.scalar(select(tables.about.c.value).where(tables.about.c.key == "version"))
    if found is None:
        connection.execute(insert(tables.about).values(key="version", value=tables.VERSION))
    elif found != tables.VERSION:
        raise StoreError(f"Cannot use the database {path}: it is of version {found}, not {tables.VERSION}",
                         "use the server that made it, or export from there and import here")


def _cause(error: Exception) -> str:
    if isinstance(error, DBAPIError) and isinstance(error.orig, sqlite3.Error):
        return str(error.orig)
    return str(error.strerror) if isinstance(error, OSError) else type(error).__name__
