"""A lock in a Hive metastore: an exclusive lock of a table name; the table need not exist in Hive.

::

    lock ─► ACQUIRED ─► heartbeats in a thread ─► unlock
         └► WAITING ──► unlock at once, pause, retry

A waiting request stays in the metastore's queue until it is removed, even if its client has crashed, and blocks all
later requests. Like Apache Hudi, this provider therefore never waits in the queue; it retries instead.

A request whose response was lost may have acquired the lock with an unknown lock id. The entry is found by the unique
agent name of the provider and released. The metastore expires a lock without heartbeats (``hive.txn.timeout``); right
before a change becomes visible, another heartbeat checks that the lock still exists.

Source: ``HiveMetastoreBasedLockProvider`` and ``Heartbeat`` (Apache Hudi 1.2.0).
"""

from __future__ import annotations

import contextlib
import getpass
import logging
import os
import platform
import random
import threading
import time
import uuid
from collections.abc import Sequence
from typing import Any

from hudi_fast.config.concurrency_options import LockOptions
from hudi_fast.errors import LockError
from hudi_fast.events import note
from hudi_fast.hive.client import (
    HiveClient,
    UnknownCallError,
    hive_module,
    message_of,
    metastore_addresses,
    metastore_tls,
)
from hudi_fast.storage.base import Storage
from hudi_fast.values import dataclass

__all__ = ["HiveMetastoreLock", "LockEntry", "LockGoneError", "Metastore", "open_hive_metastore"]

_ANSWER_SECONDS = 15.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_JITTER = random.SystemRandom()  # leaves the caller's seeded `random` untouched
_FRESH_SECONDS = 1.0
_CHECK_ATTEMPTS = 3
_RELEASE_SECONDS = 3.0
_URIS_KEY = "hoodie.write.lock.hivemetastore.uris"


def open_hive_metastore(storage: Storage, options: LockOptions) -> HiveMetastoreLock:
    """Open the lock of the given database and table, in the metastore of the options or of ``hive-site.xml``.

    Raises:
        ConfigError: no metastore is given, or it is not ``thrift://host:port``.
        UnsupportedFeatureError: ``hive-site.xml`` requires authentication, encryption or another protocol.
    """
    addresses = metastore_addresses(options.hive_uris, _URIS_KEY, "A lock")
    store = Metastore(addresses, _ANSWER_SECONDS)
    return HiveMetastoreLock(store, options.hive_database or "", options.hive_table or "", options.heartbeat_ms / 1000)


class HiveMetastoreLock:
    """One acquisition of one lock: a :class:`~hudi_fast.locking.provider.LockProvider`."""

    def __init__(self, metastore: Metastore, database: str, table: str, heartbeat_seconds: float) -> None:
        self._metastore = metastore
        self._database, self._table = database, table
        self._heartbeat_seconds = heartbeat_seconds
        self._agent = f"hudi_fast-{uuid.uuid4()}"
        self._pid = os.getpid()
        self._holder = ""
        self._may_be_written = False
        self._lock_id: int | None = None
        self._lost = ""
        self._confirmed = 0.0
        """When the last heartbeat of a check was sent, on the monotonic clock."""
        self._released = threading.Event()

    @property
    def holder(self) -> str:
        """User, host and agent of the holder at the end of the last failed attempt."""
        return self._holder

    def try_lock(self, seconds: float) -> bool:
        """Try to acquire the lock at least once, for at most ``seconds``; False if other holders kept it.

        Raises:
            LockError: the metastore does not support locks, or this provider already holds the lock.
            OSError: the metastore does not answer.
        """
        if self._lock_id is not None:
            raise LockError(f"This provider already holds the lock {self._name}.")
        deadline, pause = time.monotonic() + seconds, _FIRST_PAUSE
        while not self._try_acquire():
            left = deadline - time.monotonic()
            if left <= 0:
                self._note_holder()
                return False
            time.sleep(min(left, pause * _JITTER.uniform(0.5, 1.0)))  # two clients in step would block each other
            pause = min(pause * 2, _LONGEST_PAUSE)
        return True

    def require_held(self) -> None:
        """Check the lock with a heartbeat.

        Raises:
            LockError: the lock was lost, or the check failed.
        """
        lock_id = self._lock_id
        if lock_id is None:
            raise LockError(f"The lock {self._name} is not held.")
        if self._pid != os.getpid():
            raise LockError(f"The lock {self._name} is held by process {self._pid}, not by this one.")
        problem = "the metastore answers too slowly"
        for _ in range(_CHECK_ATTEMPTS):
            asked = time.monotonic()
            try:
                self._metastore.heartbeat(lock_id)
            except LockGoneError as error:
                self._lost = f"{error}"
            except OSError as error:
                problem = f"{error}"
                continue
            if self._lost:
                problem = f"the metastore no longer knows it ({self._lost})"
                break
            if time.monotonic() - asked < _FRESH_SECONDS:
                self._confirmed = asked
                return
            # The process may have been suspended since the request, and the answer may be outdated.
        raise LockError(
            f"The lock {self._name} in the Hive metastore at {self._metastore.name} may be lost: {problem}. Another "
            "writer may hold it now. Nothing was published; retry the operation."
        )

    def is_certain(self) -> bool:
        """Whether the metastore has answered a heartbeat in this second: it lets no lock expire sooner."""
        alive = self._lock_id is not None and not self._lost
        return alive and time.monotonic() - self._confirmed < _FRESH_SECONDS

    def unlock(self) -> None:
        """Release the lock.

        Raises:
            OSError: no answer; the metastore expires the lock after its timeout.
        """
        lock_id, self._lock_id = self._lock_id, None
        self._released.set()
        if lock_id is not None and self._pid == os.getpid():
            self._release(lock_id)

    def close(self) -> None:
        """Release a held lock, and close the connection."""
        with contextlib.suppress(OSError, LockError):
            self.unlock()
            self._release_leftovers()
        if self._pid == os.getpid():
            self._metastore.close()

    # ---- inside

    @property
    def _name(self) -> str:
        return f"{self._database}.{self._table}"

    def _try_acquire(self) -> bool:
        self._release_leftovers()
        before, self._may_be_written = self._may_be_written, True
        lock_id, acquired = self._metastore.lock(self._database, self._table, _user(), platform.node(), self._agent)
        if not acquired:
            self._release(lock_id)
            self._may_be_written = before
            return False
        self._may_be_written = before
        self._lock_id, self._lost, self._released = lock_id, "", threading.Event()
        threading.Thread(
            target=self._send_heartbeats, args=(lock_id, self._released), name="hudi_fast-hive-heartbeat", daemon=True
        ).start()
        return True

    def _send_heartbeats(self, lock_id: int, released: threading.Event) -> None:
        """Send heartbeats until the lock is released or lost."""
        pause = self._heartbeat_seconds / 2
        while not released.wait(pause):
            try:
                self._metastore.heartbeat(lock_id)
                pause = self._heartbeat_seconds
                note("locking", logging.DEBUG, "Heartbeat of the lock %d", lock_id)
            except LockGoneError as error:
                if not released.is_set():
                    self._lost = f"{error}"
                    note("locking", logging.WARNING, "The lock %d was lost: %s", lock_id, error)
                return
            except (OSError, LockError) as error:
                note("locking", logging.WARNING, "The heartbeat of the lock %d failed: %s", lock_id, error)
                pause = min(self._heartbeat_seconds, _LONGEST_PAUSE)

    def _release(self, lock_id: int) -> None:
        """Release an entry, with retries, because the metastore may keep a leftover entry for ever."""
        deadline, pause = time.monotonic() + _RELEASE_SECONDS, _FIRST_PAUSE
        while True:
            try:
                self._metastore.unlock(lock_id)
                return
            except LockGoneError:
                return
            except OSError:
                if time.monotonic() + pause >= deadline:
                    raise
                time.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    def _release_leftovers(self) -> None:
        """Release entries from requests with an unknown outcome; such a request may also be executed later."""
        if not self._may_be_written or self._pid != os.getpid():
            return
        for entry in self._metastore.entries(self._database, self._table):
            if entry.agent == self._agent:
                self._release(entry.lock_id)

    def _note_holder(self) -> None:
        with contextlib.suppress(OSError):
            entries = self._metastore.entries(self._database, self._table)
            self._holder = ", ".join(f"{each.owner} ({each.agent})" for each in entries if each.is_acquired)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # in a container the user may have no name
        return str(os.getuid())


# ---- the calls: lock, heartbeat, unlock, show_locks
#
# Source: ``hive_metastore.thrift`` of Apache Hive 2.3.

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
