"""A lock that is an object beside the table's data, changed by conditional writes alone.

::

    read ─► nobody's: none, expired, or past its time ─► write ours, if it is still as read ─► held
         └► another's, within its time: wait                                                    │
            renew: write a later time, if it is as we left it  ◄─ every so often, in a thread ──┤
                └─ it is not ─► lost                                                            │
            require_held: the same, right before a change becomes visible  ◄────────────────────┤
            unlock: write `expired`, if it is as we left it  ◄──────────────────────────────────┘

File, content, timings and steps are those of Apache Hudi's ``StorageBasedLockProvider`` (1.2.0), whose JVMs take part.
Two things are done with more care, and a JVM does not notice either:

A write whose outcome the store did not tell (a timeout, an error of its own, or a `no` that answers a request that had
been let through before) is looked for: what bears our owner's name was written by us, as nobody else has that name.

Validity is a time of the wall clock, which those who wait compare with theirs. The holder does not rely on that: it
trusts its lease until two renewals before the end, counted by a monotonic clock from before the request, and renews it
before it publishes. A renewal that comes late and finds the object unchanged is good, since nobody can have taken the
lock in between.
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from hudi_fast.config.lock_options import LockOptions
from hudi_fast.errors import LockError
from hudi_fast.locking.audit import Audit, is_audited
from hudi_fast.locking.azure_credentials import lock_storage
from hudi_fast.locking.lock_record import DRIFT_MS, STORAGE_LOCK_PATH, LockRecord, decode_record, is_taken, put_record
from hudi_fast.storage.base import Storage
from hudi_fast.storage.conditional import Versioned

__all__ = ["StorageLock", "open_storage_lock"]

_FIRST_POLL_SECONDS, _LAST_POLL_SECONDS = 0.05, 1.0
_RELEASE_PAUSES = (0.0, 1.0, 2.0, 4.0)
_STOP_SECONDS = 15.0
"""Longest wait for a renewal that is under way, as Apache Hudi's."""
_AUDIT_SECONDS = 5.0


@dataclass(slots=True)
class _Lease:
    """What we hold.

    Attributes:
        version: of the object as we wrote it last.
        valid_until: what it says; milliseconds since the epoch.
        trusted_until: by the monotonic clock.
        lost: what was found instead; empty while nothing was.
        given_up_ms: when, by the wall clock; 0 for not, or not for sure.
        over: tells the thread of this lease to end.
    """

    version: str
    valid_until: int
    trusted_until: float
    lost: str = ""
    given_up_ms: int = 0
    over: threading.Event = field(default_factory=threading.Event)


def open_storage_lock(storage: Storage, options: LockOptions) -> StorageLock:
    """The lock object of a table.

    Args:
        storage: the table's storage.
        options: ``storage_validity_seconds``, ``storage_renew_seconds``, and credentials of the lock's own in Azure.

    Raises:
        ConfigError: the client of the store is not installed, or credentials are incomplete.
        UnsupportedFeatureError: the storage has no conditional writes.
    """
    place = lock_storage(storage, options)
    return StorageLock(place, float(options.storage_validity_seconds), float(options.storage_renew_seconds))


class StorageLock:
    """One table's lock object; a :class:`~hudi_fast.locking.provider.LockProvider`.

    Args:
        storage: the table's storage.
        validity_seconds: how long the lock lasts unless renewed.
        renew_seconds: how often it is renewed.
        wall_seconds: the clock that is compared with those of others; seconds since the epoch.
    """

    def __init__(
        self,
        storage: Storage,
        validity_seconds: float,
        renew_seconds: float,
        wall_seconds: Callable[[], float] = time.time,
    ) -> None:
        self._storage = storage
        self._store = storage.conditional()
        self._validity = validity_seconds
        self._renew = renew_seconds
        self._wall = wall_seconds
        self._owner = str(uuid.uuid4())
        self._lease: _Lease | None = None
        self._last_valid_until = 0
        self._is_in_doubt = False
        self._holder = ""
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def holder(self) -> str:
        """Owner and validity of the lock as last seen; empty when nobody else had it."""
        return self._holder

    # ---- taking it

    def try_lock(self, seconds: float) -> bool:
        """Wait at most so long for the lock; False when others held it all that time.

        Raises:
            LockError: the object cannot be understood, or must not be read or written.
            OSError: the store could not be asked, up to the end.
        """
        if self._lease is not None:
            raise LockError(f"The lock of {self._storage.uri} is held already, by this provider.")
        deadline, pause = time.monotonic() + seconds, _FIRST_POLL_SECONDS
        while True:
            failure = None
            try:
                if self._attempt():
                    return True
            except (PermissionError, FileNotFoundError) as error:
                raise LockError(
                    f"The lock {STORAGE_LOCK_PATH} of {self._storage.uri} cannot be asked for: {error}."
                ) from error
            except OSError as error:
                failure = error
            left = deadline - time.monotonic()
            if left <= 0:
                if failure is not None:
                    raise failure
                return False
            time.sleep(min(pause, left))
            pause = min(2 * pause, _LAST_POLL_SECONDS)

    def _attempt(self) -> bool:
        found = self._store.read(STORAGE_LOCK_PATH)
        if found is not None and self._is_anothers(found):
            return False
        started, now = time.monotonic(), self._now_ms()
        valid_until = self._next_valid_until(now)
        record, self._is_in_doubt = LockRecord(False, valid_until, self._owner), True
        version = put_record(self._store, record, None if found is None else found.version)
        self._is_in_doubt = False
        if version is None:
            return False
        lease = _Lease(version, valid_until, self._trusted_until(started))
        self._thread = threading.Thread(target=self._keep, args=(lease, now), name="hudi_fast-lock", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            self._expire(lease)
            raise OSError(f"no thread can be started that would renew {STORAGE_LOCK_PATH}: {error}") from error
        self._lease = lease
        return True

    def _is_anothers(self, found: Versioned) -> bool:
        """What bears our name is ours: a try of which we did not hear that it had come through."""
        record = decode_record(found.data)
        taken = record.owner != self._owner and is_taken(record, self._now_ms())
        if taken:
            self._holder = (
                f"owner {record.owner[:100]}, valid for {(record.valid_until - self._now_ms()) / 1000:.1f} s more"
            )
        return taken

    # ---- keeping it

    def require_held(self) -> None:
        """Renew the lease, or have one that can be trusted.

        Raises:
            LockError: the lock was lost, or the store did not answer for so long that it may have been.
        """
        with self._guard:
            lease, failure = self._lease, None
            if lease is None:
                raise LockError(f"The lock of {self._storage.uri} is not held.")
            if not lease.lost:
                try:
                    self._renew_lease(lease)
                except OSError as error:
                    failure = error
            if lease.lost:
                raise LockError(
                    f"The lock {STORAGE_LOCK_PATH} of {self._storage.uri} was lost: {lease.lost}. This process or its "
                    f"connection was held up for longer than {self._validity:g} s, or clocks differ. Nothing was "
                    "published; run it again."
                )
            if time.monotonic() > lease.trusted_until:
                raise LockError(
                    f"The lock {STORAGE_LOCK_PATH} of {self._storage.uri} could not be renewed in time"
                    f"{f' ({failure})' if failure else ''}: others may have it soon. Nothing was published; run it "
                    "again, or raise hoodie.write.lock.storage.validity.timeout.secs."
                ) from failure

    def _keep(self, lease: _Lease, started_ms: int) -> None:
        """The thread of one lease: renews it, and writes the audit's records beside what the holder does."""
        audit = None
        if is_audited(self._storage):
            audit = Audit(self._storage, self._owner, started_ms, round(self._validity * 1000))
            audit.record("START", started_ms)
        while not lease.over.wait(self._renew):
            with self._guard:
                if lease.lost or lease.over.is_set():
                    break
                now = self._now_ms()
                try:
                    self._renew_lease(lease)
                except OSError:
                    continue  # the next one may come through in time
            if audit is not None and not lease.lost:
                audit.record("RENEW", now)
        if audit is not None and lease.given_up_ms:
            audit.record("END", lease.given_up_ms, lease.given_up_ms <= lease.valid_until + DRIFT_MS)

    def _renew_lease(self, lease: _Lease) -> None:
        started = time.monotonic()
        valid_until = self._next_valid_until(self._now_ms())
        try:
            version = put_record(self._store, LockRecord(False, valid_until, self._owner), lease.version)
        except LockError as error:
            lease.lost = str(error)
            return
        if version is None:
            lease.lost = self._taken_by()
            return
        lease.version, lease.valid_until, lease.trusted_until = version, valid_until, self._trusted_until(started)

    def _taken_by(self) -> str:
        with contextlib.suppress(OSError):
            found = self._store.read(STORAGE_LOCK_PATH)
            return "the file is gone" if found is None else f"it says {found.data[:200].decode(errors='replace')} now"
        return "others have written it"

    # ---- giving it up

    def unlock(self) -> None:
        """Mark the lock expired if it is ours.

        Raises:
            OSError: the store did not take it; the lock goes when its validity ends.
        """
        lease, self._lease = self._lease, None
        if lease is None:
            return
        if not self._guard.acquire(timeout=_STOP_SECONDS):
            lease.over.set()
            raise OSError(f"a renewal of {STORAGE_LOCK_PATH} has been under way for more than {_STOP_SECONDS:g} s")
        try:
            if not lease.lost:
                now = self._now_ms()
                self._expire(lease)
                lease.given_up_ms = now
        finally:
            lease.over.set()
            self._guard.release()
        if self._thread is not None:
            self._thread.join(_AUDIT_SECONDS)

    def _expire(self, lease: _Lease) -> None:
        record, failure = LockRecord(True, lease.valid_until, self._owner), OSError()
        for pause in _RELEASE_PAUSES:
            time.sleep(pause)
            try:
                put_record(self._store, record, lease.version)
                return
            except OSError as error:
                failure = error
            except LockError:
                return  # not ours any more, whatever it is
        raise failure

    def close(self) -> None:
        """Give up what is held, or may have been written without an answer, and end the thread; never fails."""
        with contextlib.suppress(OSError, LockError):
            self.unlock()
            if self._is_in_doubt:
                found = self._store.read(STORAGE_LOCK_PATH)
                record = None if found is None else decode_record(found.data)
                if found is not None and record is not None and record.owner == self._owner:
                    self._expire(_Lease(found.version, record.valid_until, 0.0))

    # ---- clocks

    def _now_ms(self) -> int:
        return round(self._wall() * 1000)

    def _next_valid_until(self, now_ms: int) -> int:
        """Later than all that we have written: versions of equal contents may be equal."""
        self._last_valid_until = max(now_ms + round(self._validity * 1000), self._last_valid_until + 1)
        return self._last_valid_until

    def _trusted_until(self, started: float) -> float:
        return started + self._validity - 2 * self._renew
