"""Content of a table's lock object, conditional writes of it with a known outcome, and the content of lock files.

::

    bytes ─► LockRecord ─► is_taken? ─► put_record: write our record if the object is unchanged ─► new version or None

Content and clock drift are those of Apache Hudi's ``StorageLockFile`` and ``StorageBasedLockProvider`` (1.2.0).
"""

from __future__ import annotations

import json
import os
import socket
import threading
from datetime import datetime

from hudi_fast.errors import LockError
from hudi_fast.storage.conditional import ConditionalStore, ThrottledError
from hudi_fast.storage.untrusted import stored_json
from hudi_fast.values import dataclass

__all__ = [
    "DRIFT_MS",
    "STORAGE_LOCK_PATH",
    "LockRecord",
    "decode_record",
    "encode_record",
    "is_taken",
    "lock_content",
    "put_record",
]

STORAGE_LOCK_PATH = ".hoodie/.locks/table_lock.json"
"""Path of the lock object, relative to the table; the one that Apache Hudi uses."""

DRIFT_MS = 500
"""Tolerated difference between clocks; added to the validity of every record."""

_ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class LockRecord:
    """Content of the lock object.

    Attributes:
        expired: whether the lock was released.
        valid_until: end of the lease in milliseconds since the epoch.
        owner: UUID of the provider.
    """

    expired: bool
    valid_until: int
    owner: str


def encode_record(record: LockRecord) -> bytes:
    """Compact JSON with the three fields that Apache Hudi requires."""
    fields = {"expired": record.expired, "validUntil": record.valid_until, "owner": record.owner}
    return json.dumps(fields, separators=(",", ":")).encode()


def decode_record(data: bytes) -> LockRecord:
    """Decode the content of a lock object; unknown fields are ignored, as by Apache Hudi.

    Raises:
        LockError: the content is not a lock record.
    """
    try:
        fields = stored_json(data)
        expired, valid_until, owner = fields["expired"], fields["validUntil"], fields["owner"]
        is_long = type(valid_until) is int and -(2**63) <= valid_until < 2**63
        if type(expired) is bool and is_long and isinstance(owner, str):
            return LockRecord(expired, valid_until, owner)
    except (ValueError, KeyError, TypeError):
        pass
    raise LockError(
        f"The lock {STORAGE_LOCK_PATH} cannot be decoded: expected the fields expired, validUntil and owner, found "
        f"{data[:200]!r}. If no writer is running, delete the file."
    )


def is_taken(record: LockRecord, now_ms: int) -> bool:
    """Whether the owner of the record still holds the lock, allowing for clock drift."""
    return not record.expired and now_ms <= record.valid_until + DRIFT_MS


def put_record(store: ConditionalStore, record: LockRecord, version: str | None) -> str | None:
    """Write a record if the object is unchanged, and determine the outcome.

    Args:
        store: conditional store of the table.
        record: our record.
        version: version of the object when it was read; None for a missing object.

    Returns:
        The new version of the object; None if another writer changed it.

    Raises:
        ThrottledError: nothing was written.
        OSError: the write failed, or its outcome is unknown.
    """
    data, expected = encode_record(record), version
    for _ in range(_ATTEMPTS):
        unknown: OSError | None = None
        try:
            if expected is None:
                written = store.create(STORAGE_LOCK_PATH, data)
            else:
                written = store.replace(STORAGE_LOCK_PATH, data, expected)
            if written is not None:
                return written
        except (ThrottledError, PermissionError, FileNotFoundError):
            raise
        except OSError as error:
            unknown = error
        found = store.read(STORAGE_LOCK_PATH)
        if found is not None and found.data == data:
            return found.version
        if unknown is not None and (None if found is None else found.version) == expected:
            raise unknown
        if found is None or decode_record(found.data).owner != record.owner:
            return None
        expected = found.version  # an earlier write of this process, whose response was lost
    raise OSError(f"{STORAGE_LOCK_PATH} could not be written in {_ATTEMPTS} attempts")


def lock_content(token: str) -> bytes:
    """Content of a lock file: JSON with the applicable fields of Apache Hudi's ``LockInfo``, and this process."""
    fields = {
        "lockCreateTime": datetime.now().isoformat(" ", "milliseconds"),
        "lockThreadName": threading.current_thread().name,
        "writer": "hudi_fast",
        "host": socket.gethostname(),
        "process": os.getpid(),
        "token": token,
    }
    return json.dumps(fields, indent=2).encode()
