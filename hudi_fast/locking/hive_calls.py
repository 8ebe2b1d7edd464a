"""The Thrift calls of a Hive metastore lock: lock, heartbeat, unlock, show_locks.

::

    ((1, STRING, "db"), ...)  ─► binary protocol ─► metastore ─► {0: answer} or {1: exception} ─► values by field number

A struct is written as (number, type, value) and read as a dictionary by field number; optional fields of newer
metastores are not written, and unknown fields are skipped. After a failure the connection is closed, and the next call
connects to the first address that accepts.

Source: ``hive_metastore.thrift`` of Apache Hive 2.3; numbers are the same up to 4.0.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TException, TMessageType, TType
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from hudi_fast.errors import LockError

__all__ = ["LockEntry", "LockGoneError", "Metastore"]

Fields: TypeAlias = Sequence[tuple[int, int, Any]]

_ACQUIRED, _EXCLUSIVE, _TABLE, _NO_TRANSACTION = 1, 3, 2, 0


class LockGoneError(Exception):
    """The metastore does not know the lock, or no longer knows it."""


@dataclass(frozen=True, slots=True)
class LockEntry:
    """A lock entry of the metastore.

    Attributes:
        lock_id: id of the lock.
        is_acquired: whether the owner holds the lock; otherwise it waits.
        agent: agent name given by the owner.
        owner: ``user@host``.
    """

    lock_id: int
    is_acquired: bool
    agent: str
    owner: str


class Metastore:
    """A connection to the first metastore that accepts one. Thread-safe: calls are serialised.

    A call without a response raises ``OSError``; it is unknown whether it was executed.

    Args:
        addresses: hosts and ports.
        seconds: maximum wait for a connection, and for a response.
    """

    def __init__(self, addresses: Sequence[tuple[str, int]], seconds: float) -> None:
        self._addresses = tuple(addresses)
        self._seconds = seconds
        self._mutex = threading.Lock()
        self._protocol: Any = None

    @property
    def name(self) -> str:
        """Hosts and ports, for messages."""
        return ",".join(f"{host}:{port}" for host, port in self._addresses)

    def lock(self, database: str, table: str, user: str, host: str, agent: str) -> tuple[int, bool]:
        """Request the exclusive lock of a table: (lock id, whether it was acquired); otherwise the entry waits.

        Raises:
            LockError: the metastore does not support locks.
            OSError: no answer.
        """
        names = ((3, TType.STRING, database), (4, TType.STRING, table))
        component = ((1, TType.I32, _EXCLUSIVE), (2, TType.I32, _TABLE), *names)
        client = ((3, TType.STRING, user), (4, TType.STRING, host), (5, TType.STRING, agent))
        answer = self._call("lock", ((1, TType.LIST, [component]), (2, TType.I64, _NO_TRANSACTION), *client))
        if 0 not in answer:
            raise ConnectionError(f"The Hive metastore at {self.name} refused a lock: {_message(answer)}.")
        return int(answer[0][1]), answer[0][2] == _ACQUIRED

    def heartbeat(self, lock_id: int) -> None:
        """Renew a lock.

        Raises:
            LockGoneError: the lock does not exist.
            OSError: no answer.
        """
        self._require_known(self._call("heartbeat", ((1, TType.I64, lock_id), (2, TType.I64, _NO_TRANSACTION))))

    def unlock(self, lock_id: int) -> None:
        """Release a lock, or remove a waiting entry.

        Raises:
            LockGoneError: the lock does not exist.
            OSError: no answer.
        """
        self._require_known(self._call("unlock", ((1, TType.I64, lock_id),)))

    def entries(self, database: str, table: str) -> list[LockEntry]:
        """All lock entries of a table.

        Raises:
            OSError: no answer.
        """
        answer = self._call("show_locks", ((1, TType.STRING, database), (2, TType.STRING, table)))
        return [
            LockEntry(each[1], each[5] == _ACQUIRED, each.get(13, ""), f"{each.get(10, '')}@{each.get(11, '')}")
            for each in answer.get(0, {}).get(1, [])
            if (each.get(2, "").lower(), each.get(3, "").lower()) == (database.lower(), table.lower())
        ]

    def close(self) -> None:
        """Close the connection."""
        with self._mutex:
            self._disconnect()

    # ---- the wire

    def _call(self, name: str, request: Fields) -> dict[int, Any]:
        with self._mutex:
            try:
                if self._protocol is None:
                    self._protocol = _connected(self._addresses, self._seconds)
                return _answered(self._protocol, name, request)
            except TApplicationException as error:  # the connection stays usable
                if error.type == TApplicationException.UNKNOWN_METHOD:
                    raise LockError(f"The Hive metastore at {self.name} does not support locks: {error}.") from error
                raise ConnectionError(
                    f"The Hive metastore at {self.name} failed at {name}: {error.message or 'see its log'}. Locks need "
                    "the transaction tables in its database."
                ) from error
            except (OSError, TException, EOFError, ValueError) as error:
                self._disconnect()
                raise ConnectionError(
                    f"The Hive metastore at {self.name} did not answer {name}: {type(error).__name__} {error}".rstrip()
                ) from error
            except BaseException:
                self._disconnect()  # the next call must not read the late response to this one
                raise

    def _disconnect(self) -> None:
        protocol, self._protocol = self._protocol, None
        if protocol is not None:
            with contextlib.suppress(OSError):
                protocol.trans.close()

    @staticmethod
    def _require_known(answer: dict[int, Any]) -> None:
        if answer:
            raise LockGoneError(_message(answer))


def _connected(addresses: Sequence[tuple[str, int]], seconds: float) -> Any:
    for place, address in enumerate(addresses, 1):
        try:
            connection = socket.create_connection(address, seconds)
        except OSError:
            if place == len(addresses):
                raise
            continue
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport = TSocket(*address)
        transport.setHandle(connection)
        return TBinaryProtocol(TBufferedTransport(transport))
    raise ConnectionError("no address")


def _answered(protocol: Any, name: str, request: Fields) -> dict[int, Any]:
    protocol.writeMessageBegin(name, TMessageType.CALL, 0)
    _write(protocol, ((1, TType.STRUCT, request),))
    protocol.writeMessageEnd()
    protocol.trans.flush()
    _, kind, _ = protocol.readMessageBegin()
    if kind == TMessageType.EXCEPTION:
        error = TApplicationException()
        error.read(protocol)
        protocol.readMessageEnd()
        raise error
    answer = _read(protocol)
    protocol.readMessageEnd()
    return answer


def _write(protocol: Any, fields: Fields) -> None:
    protocol.writeStructBegin("")
    for number, kind, value in fields:
        protocol.writeFieldBegin("", kind, number)
        if kind == TType.STRUCT:
            _write(protocol, value)
        elif kind == TType.LIST:
            protocol.writeListBegin(TType.STRUCT, len(value))
            for item in value:
                _write(protocol, item)
            protocol.writeListEnd()
        else:
            {TType.I32: protocol.writeI32, TType.I64: protocol.writeI64, TType.STRING: protocol.writeString}[kind](
                value
            )
        protocol.writeFieldEnd()
    protocol.writeFieldStop()
    protocol.writeStructEnd()


def _read(protocol: Any) -> dict[int, Any]:
    values: dict[int, Any] = {}
    protocol.readStructBegin()
    while True:
        _, kind, number = protocol.readFieldBegin()
        if kind == TType.STOP:
            break
        if kind == TType.STRUCT:
            values[number] = _read(protocol)
        elif kind == TType.LIST:
            item, size = protocol.readListBegin()
            if item == TType.STRUCT:
                values[number] = [_read(protocol) for _ in range(size)]
            else:
                for _ in range(size):
                    protocol.skip(item)
            protocol.readListEnd()
        elif kind in (TType.I32, TType.I64, TType.STRING):
            read = {TType.I32: protocol.readI32, TType.I64: protocol.readI64, TType.STRING: protocol.readString}[kind]
            values[number] = read()
        else:
            protocol.skip(kind)
        protocol.readFieldEnd()
    protocol.readStructEnd()
    return values


def _message(answer: dict[int, Any]) -> str:
    """The message of a declared exception."""
    return "; ".join(str(each.get(1, "")) for each in answer.values() if isinstance(each, dict))
