"""The system bus for a client of NetworkManager: one connection, calls with a limit, errors with a meaning.

Knows jeepney and the D-Bus error names; refuses to know what NetworkManager's objects mean
(`host/networkmanager.py` does). `DBUS_SYSTEM_BUS_ADDRESS` is honoured, as libdbus, zbus and systemd do.
"""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING, Any

from homeport.errors import ApplyError, HomeportError, NotAllowed

if TYPE_CHECKING:
    from jeepney.io.blocking import DBusConnection

logger = logging.getLogger(__name__)

SERVICE = "org.freedesktop.NetworkManager"
CALL_SECONDS = 10.0  # NetworkManager answers in milliseconds, a busy one in a second or two

# While the name is owned by nobody yet, or is owned but the object is not exported
# (spec/field-reports.md 1: some milliseconds at each start of NetworkManager).
_NOT_READY = frozenset((
    "org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner",
    "org.freedesktop.DBus.Error.UnknownMethod", "org.freedesktop.DBus.Error.UnknownObject",
    "org.freedesktop.DBus.Error.NoReply", "org.freedesktop.DBus.Error.Disconnected",
    "org.freedesktop.DBus.Error.Spawn.ServiceNotFound", "org.freedesktop.DBus.Error.Spawn.ChildExited",
    "org.freedesktop.systemd1.NoSuchUnit", "org.freedesktop.DBus.Error.TimedOut",
))
_DENIED = frozenset((
    "org.freedesktop.DBus.Error.AccessDenied", "org.freedesktop.DBus.Error.AuthFailed",
    "org.freedesktop.NetworkManager.PermissionDenied",
    "org.freedesktop.NetworkManager.Settings.PermissionDenied",
    "org.freedesktop.NetworkManager.Device.PermissionDenied",
))


class NotReady(ApplyError):
    """NetworkManager (or the bus) does not answer yet, or no longer: waiting can help."""


class BusError(ApplyError):
    """NetworkManager answered with an error; `name` is its D-Bus name."""

    def __init__(self, message: str, hint: str = "", name: str = "") -> None:
        super().__init__(message, hint)
        self.name = name


class MissingBusLibrary(HomeportError):
    """The jeepney package is not installed."""


class Bus:
    """A connection that is opened at the first call and opened again after a restart of the bus."""

    def __init__(self) -> None:
        self._connection: DBusConnection | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def call(self, path: str, interface: str, method: str, signature: str = "",
             body: tuple[Any, ...] = (), *, timeout: float = CALL_SECONDS) -> tuple[Any, ...]:
        """The reply's values. Variants are `(signature, value)` pairs, both ways.

        Raises NotReady, NotAllowed, BusError, MissingBusLibrary; waits at most `timeout` seconds.
        """
        started = time.monotonic()
        try:
            connection = self._open()
            from jeepney import DBusAddress, HeaderFields, MessageType, new_method_call

            address = DBusAddress(path, bus_name=SERVICE, interface=interface)
            call = new_method_call(address, method, signature or None, body)
            reply = connection.send_and_get_reply(call, timeout=timeout)
        except TimeoutError as error:
            self.close()  # a late reply must not be read as the answer to the next call
            raise NotReady(f"Cannot ask NetworkManager ({method}): no answer in {timeout:g} s",
                           "is it stopped or overloaded? `systemctl status NetworkManager`") from error
        except OSError as error:
            self.close()
            raise _unreachable(error) from error
        logger.debug("%s.%s %s: %.1f ms", interface, method, path, 1000 * (time.monotonic() - started))
        if reply.header.message_type is MessageType.error:
            name = str(reply.header.fields.get(HeaderFields.error_name, ""))
            text = reply.body[0] if reply.body and isinstance(reply.body[0], str) else ""
            raise _error(method, name, text)
        return tuple(reply.body)

    def _open(self) -> DBusConnection:
        if self._connection is None:
            try:
                from jeepney.io.blocking import open_dbus_connection
            except ImportError as error:
                raise MissingBusLibrary("Cannot speak to NetworkManager: no Python module jeepney",
                                        "install python3-jeepney") from error
            self._connection = open_dbus_connection("SYSTEM", auth_timeout=5.0)
        return self._connection


def _unreachable(error: OSError) -> HomeportError:
    where = os.environ.get("DBUS_SYSTEM_BUS_ADDRESS", "/run/dbus/system_bus_socket")
    if isinstance(error, PermissionError):
        return NotAllowed(f"Cannot open the system bus at {where}: {error.strerror}", "run it as root")
    return NotReady(f"Cannot reach the system bus at {where}: {error.strerror or error}",
                    "is dbus running? `systemctl status dbus.socket`")


def _error(method: str, name: str, text: str) -> HomeportError:
    if name in _NOT_READY:
        return NotReady(f"NetworkManager is not ready: {text or name}", "`systemctl status NetworkManager`")
    if name in _DENIED:
        return NotAllowed(f"NetworkManager refuses {method}: {text or name}", "run it as root")
    return BusError(f"NetworkManager refuses {method}: {text or name}", name=name)
