"""A lock object in the table's storage, changed by conditional writes only.

::

    read ─► free: missing, released or expired ─► write our record if the object is unchanged ─► held
         └► held by another owner: wait                                                          │
            renew: write a later expiry if the object is unchanged  ◄─ periodically, in a thread ┤
                └─ changed ─► lost                                                               │
            require_held: renew right before a change becomes visible  ◄─────────────────────────┤
            unlock: write `expired` if the object is unchanged  ◄────────────────────────────────┘

File, content, timings and steps are those of Apache Hudi's ``StorageBasedLockProvider`` (1.2.0); JVMs and hudi_fast
exclude each other. Two steps are stricter here:

If the outcome of a write is unknown (a timeout, a server error, or a failed condition after a repeated request), the
object is read again. An object with our owner id was written by this provider, because owner ids are unique.

The expiry in the object is a wall-clock time, which waiting writers compare with their own clocks. The holder does not
rely on it: it trusts its lease until two renewal intervals before its end, measured by a monotonic clock from before
the request, and renews it before it publishes. A late renewal that finds the object unchanged is valid, because no
other writer can have held the lock in between.

A process that released the lock takes it again without reading it first: its write fails if another writer held the
lock since. If an owner on this machine ended without releasing the lock, no writer waits for its lease: the lock of the
machine reveals it (:mod:`hudi_fast.locking.machine`).
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import field
from typing import Any

from hudi_fast.config.concurrency_options import LockOptions
from hudi_fast.errors import ConfigError, LockError
from hudi_fast.events import note
from hudi_fast.locking.lock_record import DRIFT_MS, STORAGE_LOCK_PATH, LockRecord, decode_record, is_taken, put_record
from hudi_fast.storage.base import Storage
from hudi_fast.storage.conditional import Versioned
from hudi_fast.storage.untrusted import stored_json
from hudi_fast.values import dataclass

__all__ = ["AUDIT_FOLDER", "AUDIT_SWITCH", "StorageLock", "azure_sign_in", "lock_storage", "open_storage_lock"]

_FIRST_POLL_SECONDS, _LAST_POLL_SECONDS = 0.05, 1.0
_RELEASE_PAUSES = (0.0, 1.0, 2.0, 4.0)
_STOP_SECONDS = 15.0
"""Maximum wait for a running renewal, as in Apache Hudi."""
_AUDIT_SECONDS = 5.0

_released: dict[str, str] = {}
"""Version of each lock object after this process released it; a guess, which the store checks."""
_MAX_RELEASED = 1000

_audited: dict[str, bool] = {}
"""Whether the locks of tables are audited, for tables whose options do not name this lock."""


@dataclass(slots=True)
class _Lease:
    """A held lock.

    Attributes:
        version: version of the object after our last write.
        valid_until: expiry in the object; milliseconds since the epoch.
        trusted_until: end of the trusted lease, by the monotonic clock.
        lost: reason why the lock was lost; "" while it is held.
        released_ms: wall-clock time of the release; 0 if not released, or unknown.
        stop: stops the renewal thread.
    """

    version: str
    valid_until: int
    trusted_until: float
    lost: str = ""
    released_ms: int = 0
    stop: threading.Event = field(default_factory=threading.Event)


def open_storage_lock(storage: Storage, options: LockOptions) -> StorageLock:
    """Open the lock object of a table.

    Raises:
        ConfigError: the client library of the store is not installed, or credentials are incomplete.
        UnsupportedFeatureError: the storage has no conditional writes.
    """
    own_storage = lock_storage(storage, options)
    validity, renew = float(options.storage_validity_seconds), float(options.storage_renew_seconds)
    return StorageLock(own_storage, validity, renew, is_default=not options.is_distributed)


class StorageLock:
    """One table's lock object; a :class:`~hudi_fast.locking.provider.LockProvider`.

    Args:
        storage: the table's storage.
        validity_seconds: length of the lease.
        renew_seconds: interval between renewals.
        wall_seconds: wall clock; seconds since the epoch.
        is_default: whether no option names this lock. Then each process reads only once per table whether its lock is
            audited.
    """

    def __init__(
        self,
        storage: Storage,
        validity_seconds: float,
        renew_seconds: float,
        wall_seconds: Callable[[], float] = time.time,
        is_default: bool = False,
    ) -> None:
        self._storage = storage
        self._store = storage.conditional()
        self._validity = validity_seconds
        self._renew = renew_seconds
        self._wall = wall_seconds
        self._is_default = is_default
        self._owner = str(uuid.uuid4())
        self._lease: _Lease | None = None
        self._last_valid_until = 0
        self._may_be_written = False
        self._holder = ""
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self.ended: frozenset[str] = frozenset()
        """Owners that have ended; the lock does not wait for their leases."""

    @property
    def owner(self) -> str:
        """Unique name in our records."""
        return self._owner

    @property
    def holder(self) -> str:
        """Owner and remaining validity of the last other holder seen; "" for none."""
        return self._holder

    # ---- acquisition

    def try_lock(self, seconds: float) -> bool:
        """Try to acquire the lock for at most ``seconds``; False if other holders kept it.

        Raises:
            LockError: the object cannot be decoded, or access is denied.
            OSError: the last attempt failed.
        """
        if self._lease is not None:
            raise LockError(f"This provider already holds the lock of {self._storage.uri}.")
        deadline, pause = time.monotonic() + seconds, _FIRST_POLL_SECONDS
        while True:
            failure = None
            try:
                if self._attempt():
                    return True
            except (PermissionError, FileNotFoundError) as error:
                raise LockError(
                    f"The lock {STORAGE_LOCK_PATH} of {self._storage.uri} cannot be acquired: {error}."
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
        known = _released.pop(repr(self._store), None)
        if known is not None and self._take(known):
            return True
        found = self._store.read(STORAGE_LOCK_PATH)
        if found is not None and self._is_held_by_other(found):
            return False
        return self._take(None if found is None else found.version)

    def _take(self, free: str | None) -> bool:
        """Write our record if the object still has the version ``free``, in which the lock is free."""
        started, now = time.monotonic(), self._now_ms()
        valid_until = self._next_valid_until(now)
        record, self._may_be_written = LockRecord(False, valid_until, self._owner), True
        version = put_record(self._store, record, free)
        self._may_be_written = False
        if version is None:
            return False
        lease = _Lease(version, valid_until, self._trusted_until(started))
        self._thread = threading.Thread(target=self._keep, args=(lease, now), name="hudi_fast-lock", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            self._expire(lease)
            raise OSError(f"the renewal thread of {STORAGE_LOCK_PATH} cannot be started: {error}") from error
        self._lease = lease
        return True

    def _is_held_by_other(self, found: Versioned) -> bool:
        """Whether another owner holds the lock; a record with our owner id is an attempt with an unknown outcome."""
        record = decode_record(found.data)
        taken = record.owner not in (self._owner, *self.ended) and is_taken(record, self._now_ms())
        if taken:
            self._holder = (
                f"owner {record.owner[:100]}, valid for another {(record.valid_until - self._now_ms()) / 1000:.1f} s"
            )
        return taken

    # ---- renewal

    def require_held(self) -> None:
        """Renew the lease; if the store does not answer, check that the lease is still trusted.

        Raises:
            LockError: the lock was lost or may be lost.
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
                    f"connection was blocked for longer than {self._validity:g} s, or clocks differ. Nothing was "
                    "published; retry."
                )
            if time.monotonic() > lease.trusted_until:
                raise LockError(
                    f"The lock {STORAGE_LOCK_PATH} of {self._storage.uri} could not be renewed in time"
                    f"{f' ({failure})' if failure else ''}: another writer may take it soon. Nothing was published; "
                    "retry, or raise hoodie.write.lock.storage.validity.timeout.secs."
                ) from failure

    def is_certain(self) -> bool:
        """Whether the lease is not lost and still trusted."""
        lease = self._lease
        return lease is not None and not lease.lost and time.monotonic() <= lease.trusted_until

    def _keep(self, lease: _Lease, started_ms: int) -> None:
        """Body of the lease's thread: renews the lease and writes audit records."""
        audit = None
        if self._is_audited():
            audit = _Audit(self._storage, self._owner, started_ms, round(self._validity * 1000))
            audit.record("START", started_ms)
        while not lease.stop.wait(self._renew):
            with self._guard:
                if lease.lost or lease.stop.is_set():
                    break
                now = self._now_ms()
                try:
                    self._renew_lease(lease)
                    self._log_renewal(lease.lost)
                except OSError as error:
                    self._log_renewal(error)
                    continue  # the next renewal may still be in time
            if audit is not None and not lease.lost:
                audit.record("RENEW", now)
        if audit is not None and lease.released_ms:
            audit.record("END", lease.released_ms, lease.released_ms <= lease.valid_until + DRIFT_MS)

    def _is_audited(self) -> bool:
        if not self._is_default:
            return is_audited(self._storage)
        key = repr(self._store)
        if key not in _audited:
            _audited[key] = is_audited(self._storage)
        return _audited[key]

    def _log_renewal(self, trouble: object) -> None:
        level, text = (logging.WARNING, "failed: %s") if trouble else (logging.DEBUG, "succeeded%s")
        note("locking", level, f"The renewal of the lock {text}", trouble or "", table=self._storage.uri)

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
            if found is None:
                return "the file was deleted"
            return f"its content is now {found.data[:200].decode(errors='replace')}"
        return "another writer has changed it"

    # ---- release

    def unlock(self) -> None:
        """Mark the lock as expired if it is ours.

        Raises:
            OSError: the write failed; the lock ends with its lease.
        """
        lease, self._lease = self._lease, None
        if lease is None:
            return
        if not self._guard.acquire(timeout=_STOP_SECONDS):
            lease.stop.set()
            raise OSError(f"a renewal of {STORAGE_LOCK_PATH} has been running for more than {_STOP_SECONDS:g} s")
        try:
            if not lease.lost:
                now = self._now_ms()
                self._expire(lease)
                lease.released_ms = now
        finally:
            lease.stop.set()
            self._guard.release()
        if self._thread is not None:
            self._thread.join(_AUDIT_SECONDS)

    def _expire(self, lease: _Lease) -> None:
        record, failure = LockRecord(True, lease.valid_until, self._owner), OSError()
        for pause in _RELEASE_PAUSES:
            time.sleep(pause)
            try:
                released = put_record(self._store, record, lease.version)
                if released is not None and len(_released) < _MAX_RELEASED:
                    _released[repr(self._store)] = released
                return
            except OSError as error:
                failure = error
            except LockError:
                return  # the object is no longer ours
        raise failure

    def close(self) -> None:
        """Release a held lock, or one from a write with an unknown outcome, and stop the thread; never fails."""
        with contextlib.suppress(OSError, LockError):
            self.unlock()
            if self._may_be_written:
                found = self._store.read(STORAGE_LOCK_PATH)
                record = None if found is None else decode_record(found.data)
                if found is not None and record is not None and record.owner == self._owner:
                    self._expire(_Lease(found.version, record.valid_until, 0.0))

    # ---- clocks

    def _now_ms(self) -> int:
        return round(self._wall() * 1000)

    def _next_valid_until(self, now_ms: int) -> int:
        """The next expiry, later than all earlier ones: stores may give equal contents equal versions."""
        self._last_valid_until = max(now_ms + round(self._validity * 1000), self._last_valid_until + 1)
        return self._last_valid_until

    def _trusted_until(self, started: float) -> float:
        return started + self._validity - 2 * self._renew


# ---- audit log of locks in storage: one file per acquisition, if auditing is enabled for the table
#
# ::
#
#     .hoodie/.locks/audit_enabled.json: true ─► .hoodie/.locks/audit/<acquired>_<owner>.jsonl: START RENEW... END
#
# Apache Hudi reads and writes the same files. A failure to write a record is ignored: locks do not depend on the log.
#
# Source: ``AuditServiceFactory``, ``StorageLockProviderAuditService``, Hudi 1.2.0.


AUDIT_SWITCH = ".hoodie/.locks/audit_enabled.json"
AUDIT_FOLDER = ".hoodie/.locks/audit"
"""Path of the file that enables the audit, and the folder of the audit files."""

_FIELD = "STORAGE_LOCK_AUDIT_SERVICE_ENABLED"


def is_audited(storage: Storage) -> bool:
    """Whether the table's locks are audited: the switch file is readable and enables it."""
    try:
        found = storage.conditional().read(AUDIT_SWITCH)
        return found is not None and _is_on(stored_json(found.data))
    except (OSError, ValueError):
        return False


def _is_on(switch: Any) -> bool:
    """Jackson's ``asBoolean``: true, the text ``true``, or an integer other than zero."""
    value = switch.get(_FIELD) if isinstance(switch, dict) else None
    return value.strip() == "true" if isinstance(value, str) else isinstance(value, int) and value != 0


@dataclass(slots=True)
class _Audit:
    """The records of one acquisition.

    Attributes:
        storage: the table's storage.
        owner: UUID of the provider.
        started_ms: time of the acquisition in milliseconds since the epoch.
        validity_ms: length of the lease.
    """

    storage: Storage
    owner: str
    started_ms: int
    validity_ms: int
    _lines: list[str] = field(default_factory=list)

    def record(self, state: str, timestamp_ms: int, held: bool = True) -> None:
        """Add a record and write all records; failures are ignored.

        Args:
            state: ``START``, ``RENEW`` or ``END``.
            timestamp_ms: time of the event in milliseconds since the epoch.
            held: whether the lease was valid at that time.
        """
        record = {
            "ownerId": self.owner,
            "transactionStartTime": self.started_ms,
            "timestamp": timestamp_ms,
            "state": state,
            "lockExpiration": timestamp_ms + self.validity_ms,
            "lockHeld": held,
        }
        self._lines.append(json.dumps(record, separators=(",", ":")) + "\n")
        with contextlib.suppress(OSError):
            path = f"{AUDIT_FOLDER}/{self.started_ms}_{self.owner}.jsonl"
            self.storage.write_bytes(path, "".join(self._lines).encode())


# ---- separate credentials for a lock in Azure Blob Storage
#
# ::
#
#     hoodie.write.lock.azure... ─► first credentials given, in Apache Hudi's order ─► storage for the lock
#
# Source: ``AzureStorageLockClient``, Hudi 1.2.0.


_SCHEMES = ("abfs", "abfss", "wasb", "wasbs", "az")
_SECRET = ("key", "sas", "token", "tenant", "client", "secret")
_L = "hoodie.write.lock.azure."


def lock_storage(storage: Storage, options: LockOptions) -> Storage:
    """The storage for the lock: the table's storage, or one with the lock's own credentials in Azure.

    Raises:
        ConfigError: the credentials are incomplete; the message does not contain them.
    """
    own = azure_sign_in(options)
    if not own or storage.uri.partition("://")[0] not in _SCHEMES:
        return storage
    kept = {name: value for name, value in storage.options.items() if not any(part in name.lower() for part in _SECRET)}
    return Storage(storage.uri, {**kept, **own})


def azure_sign_in(options: LockOptions) -> dict[str, str]:
    """Storage options of the first credentials given; empty without credentials.

    Raises:
        ConfigError: a connection string without credentials, or an incomplete client secret.
    """
    if options.azure_connection_string:
        return _of_connection(options.azure_connection_string)
    if options.azure_sas_token:
        return {"sas_token": options.azure_sas_token.removeprefix("?")}
    if options.azure_managed_identity:
        return {"client_id": options.azure_managed_identity}
    client = {
        "tenant_id": options.azure_tenant,
        "client_id": options.azure_client,
        "client_secret": options.azure_client_secret,
    }
    given = {name: value for name, value in client.items() if value}
    if given and len(given) < len(client):
        raise ConfigError(f"Give all of {_L}client.tenant.id, {_L}client.id and {_L}client.secret, or none.")
    return given


def _of_connection(text: str) -> dict[str, str]:
    parts = dict(part.strip().partition("=")[::2] for part in text.split(";") if part.strip())
    key, signature = parts.get("AccountKey"), parts.get("SharedAccessSignature")
    if not key and not signature:
        raise ConfigError(f"{_L}connection.string has neither AccountKey nor SharedAccessSignature.")
    found = {"account_key": key} if key else {"sas_token": str(signature).removeprefix("?")}
    account, endpoint = parts.get("AccountName", ""), parts.get("BlobEndpoint", "").rstrip("/")
    if account and endpoint.endswith(f"/{account}"):  # an emulator, where the account is a folder
        found["endpoint_url"] = endpoint.removesuffix(f"/{account}")
    return found
