"""The calls of a Hive metastore lock: lock, heartbeat, unlock, show_locks.

Source: ``hive_metastore.thrift`` of Apache Hive 2.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hudi_fast.errors import LockError
from hudi_fast.hive.client import HiveClient, UnknownCallError, hive_module, message_of
from hudi_fast.hive.site import metastore_tls

__all__ = ["LockEntry", "LockGoneError", "Metastore"]

_NO_TRANSACTION = 0


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
    """The locks of the first metastore that accepts a connection. Thread-safe: calls are serialised.

    A call without a response raises ``OSError``; it is unknown whether it was executed.

    Args:
        addresses: hosts and ports.
        seconds: maximum wait for a connection, and for a response.
    """

    def __init__(self, addresses: Sequence[tuple[str, int]], seconds: float) -> None:
        self._client = HiveClient(addresses, seconds, metastore_tls())

    @property
    def name(self) -> str:
        """Hosts and ports, for messages."""
        return self._client.name

    def lock(self, database: str, table: str, user: str, host: str, agent: str) -> tuple[int, bool]:
        """Request the exclusive lock of a table: (lock id, whether it was acquired); otherwise the entry waits.

        Raises:
            LockError: the metastore does not support locks.
            OSError: no answer.
        """
        types = hive_module()
        component = types.LockComponent(types.LockType.EXCLUSIVE, types.LockLevel.TABLE, database, table)
        request = types.LockRequest([component], _NO_TRANSACTION, user, host, agent)
        try:
            answer = self._call("lock", request)
        except (types.NoSuchTxnException, types.TxnAbortedException) as error:
            raise ConnectionError(f"The Hive metastore at {self.name} refused a lock: {message_of(error)}.") from error
        return int(answer.lockid), answer.state == types.LockState.ACQUIRED

    def heartbeat(self, lock_id: int) -> None:
        """Renew a lock.

        Raises:
            LockGoneError: the lock does not exist.
            OSError: no answer.
        """
        self._call_known("heartbeat", hive_module().HeartbeatRequest(lock_id, _NO_TRANSACTION))

    def unlock(self, lock_id: int) -> None:
        """Release a lock, or remove a waiting entry.

        Raises:
            LockGoneError: the lock does not exist.
            OSError: no answer.
        """
        self._call_known("unlock", hive_module().UnlockRequest(lock_id))

    def entries(self, database: str, table: str) -> list[LockEntry]:
        """All lock entries of a table.

        Raises:
            OSError: no answer.
        """
        types = hive_module()
        answer = self._call("show_locks", types.ShowLocksRequest(database, table))
        return [
            LockEntry(
                one.lockid,
                one.state == types.LockState.ACQUIRED,
                one.agentInfo or "",
                f"{one.user or ''}@{one.hostname or ''}",
            )
            for one in answer.locks or []
            if (one.dbname.lower(), (one.tablename or "").lower()) == (database.lower(), table.lower())
        ]

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _call(self, method: str, request: Any) -> Any:
        try:
            return self._client.call(method, request)
        except UnknownCallError as error:
            raise LockError(f"The Hive metastore at {self.name} does not support locks: {error}") from error
        except ConnectionError as error:
            raise ConnectionError(f"{error} Locks need the transaction tables in its database.") from error

    def _call_known(self, method: str, request: Any) -> None:
        """Call a method that fails for a lock that does not exist."""
        types = hive_module()
        try:
            self._call(method, request)
        except tuple(types.__thrift_meta__["exceptions"]) as error:
            raise LockGoneError(message_of(error)) from error
