"""A lock that is an item in a DynamoDB table: there while somebody has it, with a version that changes as they work.

::

    not there ─► put ────────────────────────────┐
    left behind ─► put over it ──────────────────┼─► ours ─► renewed every third of the lease ─► deleted
    same version for longer than its lease ──────┘
      └ looked at again and again, with this process's clock

No clocks are compared: who waits measures how long the holder has been silent, and the holder counts its lease from
before the request that got it, so that it always ends earlier than anybody else thinks. A holder that was silent for
too long still has the lock if nobody took it, and only asking tells: every renewal has the condition that the item is
as this holder left it.

A request whose answer was lost may have been carried out. An item with our name is ours whatever version it has, since
every provider has a name of its own; it is renewed before it counts.

Sources: ``DynamoDBBasedLockProvider``, ``DynamoDBBasedImplicitPartitionKeyLockProvider`` (Apache Hudi),
``AmazonDynamoDBLockClient`` 1.2.0.
"""

from __future__ import annotations

import contextlib
import platform
import threading
import time
import uuid
from collections.abc import Callable

from hudi_fast.config.lock_options import LockOptions
from hudi_fast.config.properties_file import load_properties
from hudi_fast.errors import HudiError, LockError
from hudi_fast.locking.dynamodb_table import LockItem, LockTable, open_lock_table
from hudi_fast.locking.path_hash import path_hash
from hudi_fast.storage.base import Storage

__all__ = ["DynamoDbLock", "open_dynamodb", "open_dynamodb_implicit"]

_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 1.0
_BEATS_IN_A_LEASE = 3
_SOONER = 4
_MARGIN = 1 / 3
_RELEASE_PAUSES = (0.0, 0.1, 0.5)


def open_dynamodb(storage: Storage, options: LockOptions) -> DynamoDbLock:
    """The lock with the partition key that the options name, or that of the table's name.

    Args:
        storage: the table's storage.
        options: table of locks, partition key, lease.

    Raises:
        ConfigError: boto3 is missing, or a setting is wrong.
        TableNotFoundError: the key is the table's name, and there is no table.
    """
    key = options.dynamodb_partition_key or load_properties(storage)["hoodie.table.name"]
    return DynamoDbLock(open_lock_table(options), key, options.wait_ms)


def open_dynamodb_implicit(storage: Storage, options: LockOptions) -> DynamoDbLock:
    """The lock whose partition key follows from the table's base path.

    Raises:
        ConfigError: boto3 is missing, or a setting is wrong.
    """
    return DynamoDbLock(open_lock_table(options), path_hash(storage.uri), options.wait_ms)


class DynamoDbLock:
    """One acquisition of one lock: a :class:`~hudi_fast.locking.provider.LockProvider`.

    Args:
        table: where the lock is kept.
        key: its partition key.
        lease_ms: for how long the lock is ours without renewal.
    """

    def __init__(self, table: LockTable, key: str, lease_ms: int) -> None:
        self._table = table
        self._key = key
        self._lease_ms = lease_ms
        self._owner = f"{platform.node()}{uuid.uuid4()}"
        self._seen: tuple[str, float] | None = None
        self._holder = ""
        self._unsure = False
        self._mutex = threading.Lock()  # over what is below; the renewal is a thread
        self._version: str | None = None
        self._until = 0.0
        self._lost = "it was not taken"
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def holder(self) -> str:
        """Name of the owner at the last look: a host and a number."""
        return self._holder

    def try_lock(self, seconds: float) -> bool:
        """Wait at most so long, and once the lease of whoever has the lock: it ends if they have died.

        Args:
            seconds: how long; 0 for one look.

        Raises:
            LockError: DynamoDB refuses requests.
            OSError: it does not answer.
        """
        deadline, patient, pause = time.monotonic() + seconds, seconds > 0, _FIRST_PAUSE
        while True:
            item = self._table.read(self._key)
            if self._take(item):
                return True
            if item is not None and patient:
                deadline, patient = deadline + item.lease_ms / 1000, False
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause, left))
            pause = min(pause * 2, _LONGEST_PAUSE)

    def require_held(self) -> None:
        """Renew the lock: that succeeds only while nobody else has had it.

        Raises:
            LockError: it was lost, or too little of the lease is left and DynamoDB does not answer.
        """
        failure: Exception | None = None
        with self._mutex:
            if self._version is not None:
                try:
                    self._renew()
                except OSError as error:
                    failure = error
            if self._version is None:
                raise LockError(f"{self._name} was lost: {self._lost}. Nothing was published; run it again.")
            left = self._until - time.monotonic()
        if left < self._lease_ms / 1000 * _MARGIN:
            raise LockError(
                f"{self._name} may be lost before a change is visible: {max(left, 0.0):.1f} s of its lease of "
                f"{self._lease_ms / 1000:g} s are left{f', and {failure}' if failure else ''}. Nothing was published; "
                "run it again."
            ) from failure

    def unlock(self) -> None:
        """Delete the item if it is ours.

        Raises:
            OSError: DynamoDB does not answer; the lock goes when its lease ends.
        """
        self._ended.set()
        try:
            with self._mutex:
                version, self._version, self._lost = self._version, None, "it was given up"
                if version is not None:
                    self._delete(version)
        finally:
            if self._thread is not None:
                self._thread.join()
                self._thread = None

    def close(self) -> None:
        """Give the lock up, also one that came after nobody waited for it any more."""
        with contextlib.suppress(OSError, HudiError):
            self.unlock()
        if self._unsure:
            with contextlib.suppress(OSError, HudiError):
                item = self._table.read(self._key)
                if item is not None and item.owner == self._owner:
                    self._delete(item.version)

    # ---- taking

    def _take(self, item: LockItem | None) -> bool:
        """Try to make the lock ours, given how it was a moment ago."""
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
        """Make a request that makes the lock ours, and find out what became of it."""
        started = time.monotonic()
        try:
            taken = request()
        except OSError:
            self._unsure = True
            item = self._table.read(self._key)
            if item is None or item.owner != self._owner:
                return False
            mine, started = self._next(), time.monotonic()
            taken = self._table.renew(mine, item.version)
        if taken:
            self._hold(mine.version, started)
        return taken

    def _hold(self, version: str, started: float) -> None:
        with self._mutex:
            self._version, self._until = version, started + self._lease_ms / 1000
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=f"hudi_fast lock {self._key}", daemon=True)
        self._thread.start()

    # ---- holding

    def _keep(self) -> None:
        """Renew the lock until it is given up or lost; sooner again where that did not work."""
        regular = self._lease_ms / 1000 / _BEATS_IN_A_LEASE
        pause = regular
        while not self._ended.wait(pause):
            with self._mutex:
                if self._version is None:
                    return
                try:
                    self._renew()
                    pause = regular
                except (OSError, HudiError):  # whoever relies on the lock asks and hears of it
                    pause = regular / _SOONER

    def _renew(self) -> None:
        """Renew the lock, which we have as far as we know; under the mutex. It may turn out to be lost."""
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
                return
            mine, started = self._next(), time.monotonic()  # a renewal whose answer was lost
            renewed = self._table.renew(mine, item.version)
        if renewed:
            self._version, self._until = mine.version, started + self._lease_ms / 1000

    def _delete(self, version: str) -> None:
        """Delete the item as long as it is ours; one that is not is somebody else's."""
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
