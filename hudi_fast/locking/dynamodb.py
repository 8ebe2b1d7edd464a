"""A lock item in a DynamoDB table; its version changes with each renewal.

::

    no item ─► put ──────────────────────────────┐
    released item ─► replace ────────────────────┼─► held ─► renewed every third of the lease ─► deleted
    version unchanged for its whole lease ───────┘
      └ polled, measured with this process's clock

No clocks are compared. A waiting writer measures how long the version has not changed. The holder measures its lease
from before the request that acquired it, so its lease ends earlier for the holder than for any other writer. After its
lease, a holder still has the lock if no other writer took it: each renewal requires that the item is unchanged since
the holder's last write.

A request whose response was lost may have been executed. An item with our owner name is ours at any version, because
owner names are unique; it is renewed before the lock counts as held.

Sources: ``DynamoDBBasedLockProvider``, ``DynamoDBBasedImplicitPartitionKeyLockProvider`` (Apache Hudi),
``AmazonDynamoDBLockClient`` 1.2.0.
"""

from __future__ import annotations

import contextlib
import logging
import platform
import threading
import time
import uuid
from collections.abc import Callable

from hudi_fast.config.concurrency_options import LockOptions
from hudi_fast.config.properties_file import load_properties
from hudi_fast.errors import HudiError, LockError
from hudi_fast.events import note
from hudi_fast.locking.dynamodb_table import LockItem, LockTable, open_lock_table
from hudi_fast.locking.provider import path_hash
from hudi_fast.storage.base import Storage

__all__ = ["DynamoDbLock", "open_dynamodb", "open_dynamodb_implicit"]

_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 1.0
_RENEWALS_PER_LEASE = 3
_RETRIES_PER_RENEWAL = 4
_MARGIN = 1 / 3
_RELEASE_PAUSES = (0.0, 0.1, 0.5)


def open_dynamodb(storage: Storage, options: LockOptions) -> DynamoDbLock:
    """Open the lock with the given partition key; the default key is the table name.

    Raises:
        ConfigError: boto3 is missing, or a setting is invalid.
        TableNotFoundError: the key is the table name, and the table does not exist.
    """
    key = options.dynamodb_partition_key or load_properties(storage)["hoodie.table.name"]
    return DynamoDbLock(open_lock_table(options), key, options.wait_ms)


def open_dynamodb_implicit(storage: Storage, options: LockOptions) -> DynamoDbLock:
    """Open the lock whose partition key is derived from the table's base path.

    Raises:
        ConfigError: boto3 is missing, or a setting is invalid.
    """
    return DynamoDbLock(open_lock_table(options), path_hash(storage.uri), options.wait_ms)


class DynamoDbLock:
    """One acquisition of one lock: a :class:`~hudi_fast.locking.provider.LockProvider`."""

    def __init__(self, table: LockTable, key: str, lease_ms: int) -> None:
        self._table = table
        self._key = key
        self._lease_ms = lease_ms
        self._owner = f"{platform.node()}{uuid.uuid4()}"
        self._seen: tuple[str, float] | None = None
        self._holder = ""
        self._may_be_written = False
        self._mutex = threading.Lock()  # guards the fields below, which the renewal thread also changes
        self._version: str | None = None
        self._until = 0.0
        self._lost = "it was never acquired"
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def holder(self) -> str:
        """Owner name at the last attempt: host and uuid."""
        return self._holder

    def try_lock(self, seconds: float) -> bool:
        """Try to acquire the lock; False if other holders kept it.

        Args:
            seconds: maximum wait, extended once by the lease of the holder, which may have crashed; 0 = one attempt.

        Raises:
            LockError: DynamoDB refuses requests, or this provider already holds the lock.
            OSError: DynamoDB does not answer.
        """
        if self._version is not None:
            raise LockError(f"This provider already holds the lock {self._key!r} in {self._table.name}.")
        deadline, patient, pause = time.monotonic() + seconds, seconds > 0, _FIRST_PAUSE
        while True:
            item = self._table.read(self._key)
            if self._try_acquire(item):
                return True
            if item is not None and patient:
                deadline, patient = deadline + item.lease_ms / 1000, False
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause, left))
            pause = min(pause * 2, _LONGEST_PAUSE)

    def require_held(self) -> None:
        """Renew the lock, which fails if another writer has held it since the last renewal.

        Raises:
            LockError: the lock was lost, or DynamoDB does not answer and the lease ends soon.
        """
        failure: Exception | None = None
        with self._mutex:
            if self._version is not None:
                try:
                    self._renew()
                except OSError as error:
                    failure = error
            if self._version is None:
                raise LockError(f"{self._name} was lost: {self._lost}. Nothing was published; retry.")
            left = self._until - time.monotonic()
        if left < self._lease_ms / 1000 * _MARGIN:
            raise LockError(
                f"{self._name} may be lost before a change is visible: {max(left, 0.0):.1f} s of its lease of "
                f"{self._lease_ms / 1000:g} s are left{f', and {failure}' if failure else ''}. Nothing was published; "
                "retry."
            ) from failure

    def is_certain(self) -> bool:
        """Whether the lease of the last renewal has not ended."""
        return self._version is not None and time.monotonic() < self._until

    def unlock(self) -> None:
        """Delete the item if it is ours.

        Raises:
            OSError: DynamoDB does not answer; the lock ends with its lease.
        """
        self._ended.set()
        try:
            with self._mutex:
                version, self._version, self._lost = self._version, None, "it was released"
                if version is not None:
                    self._delete(version)
        finally:
            if self._thread is not None:
                self._thread.join()
                self._thread = None

    def close(self) -> None:
        """Release a held lock, or one from a request with an unknown outcome."""
        with contextlib.suppress(OSError, HudiError):
            self.unlock()
        if self._may_be_written:
            with contextlib.suppress(OSError, HudiError):
                item = self._table.read(self._key)
                if item is not None and item.owner == self._owner:
                    self._delete(item.version)

    # ---- acquisition

    def _try_acquire(self, item: LockItem | None) -> bool:
        """Try to acquire the lock, given its item as last read."""
        self._holder = "" if item is None else item.owner
        mine = self._next()
        if item is None:
            return self._write(mine, lambda: self._table.create(mine))
        if item.owner == self._owner:
            return self._write(mine, lambda: self._table.renew(mine, item.version))
        if item.released:
            return self._write(mine, lambda: self._table.replace_released(mine))
        now = time.monotonic()
        if self._seen is None or self._seen[0] != item.version:
            self._seen = item.version, now
            return False
        if now - self._seen[1] <= item.lease_ms / 1000:
            return False
        return self._write(mine, lambda: self._table.replace(mine, item.version))

    def _write(self, mine: LockItem, request: Callable[[], bool]) -> bool:
        """Send a request that acquires the lock, and determine its outcome."""
        started = time.monotonic()
        try:
            taken = request()
        except OSError:
            self._may_be_written = True
            item = self._table.read(self._key)
            if item is None or item.owner != self._owner:
                return False
            mine, started = self._next(), time.monotonic()
            taken = self._table.renew(mine, item.version)
        if taken:
            self._start_lease(mine.version, started)
        return taken

    def _start_lease(self, version: str, started: float) -> None:
        with self._mutex:
            self._version, self._until = version, started + self._lease_ms / 1000
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=f"hudi_fast lock {self._key}", daemon=True)
        self._thread.start()

    # ---- renewal

    def _keep(self) -> None:
        """Renew the lock until it is released or lost; retry failed renewals sooner."""
        regular = self._lease_ms / 1000 / _RENEWALS_PER_LEASE
        pause = regular
        while not self._ended.wait(pause):
            with self._mutex:
                if self._version is None:
                    return
                try:
                    self._renew()
                    pause = regular
                    note("locking", logging.DEBUG, "The lock %s was renewed", self._key)
                except (OSError, HudiError) as error:  # require_held reports a lost lock
                    pause = regular / _RETRIES_PER_RENEWAL
                    note("locking", logging.WARNING, "The renewal of the lock %s failed: %s", self._key, error)

    def _renew(self) -> None:
        """Renew the lock, or record that it was lost. The caller holds the mutex."""
        if self._version is None:
            return
        mine, started = self._next(), time.monotonic()
        renewed = self._table.renew(mine, self._version)
        if not renewed:
            item = self._table.read(self._key)
            if item is None or item.owner != self._owner:
                self._version = None
                self._lost = "its item was deleted" if item is None else f"{item.owner} has taken it"
                self._holder = "" if item is None else item.owner
                note("locking", logging.WARNING, "The lock %s was lost: %s", self._key, self._lost)
                return
            mine, started = self._next(), time.monotonic()  # the response to an earlier renewal was lost
            renewed = self._table.renew(mine, item.version)
        if renewed:
            self._version, self._until = mine.version, started + self._lease_ms / 1000

    def _delete(self, version: str) -> None:
        """Delete the item if it is ours."""
        failure: OSError | None = None
        for pause in _RELEASE_PAUSES:
            time.sleep(pause)
            try:
                if self._table.delete(self._key, self._owner, version):
                    return
                item = self._table.read(self._key)
            except OSError as error:
                failure = error
                continue
            if item is None or item.owner != self._owner:
                return
            version = item.version
        raise failure or OSError(f"{self._name} could not be deleted.")

    def _next(self) -> LockItem:
        return LockItem(self._key, self._owner, self._lease_ms, str(uuid.uuid4()))

    @property
    def _name(self) -> str:
        return f"The lock {self._key!r} in the DynamoDB table {self._table.name}"
