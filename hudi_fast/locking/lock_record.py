"""What the lock object of a table says, and writing it so that what became of the write is known.

::

    bytes ─► LockRecord ─► is_taken? ─► put_record: our record, if the object is as it was ─► its version, if it is ours

Content and clock drift are those of Apache Hudi's ``StorageLockFile`` and ``StorageBasedLockProvider`` (1.2.0).
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from hudi_fast.errors import LockError
from hudi_fast.storage.conditional import ConditionalStore, ThrottledError

__all__ = ["DRIFT_MS", "STORAGE_LOCK_PATH", "LockRecord", "decode_record", "encode_record", "is_taken", "put_record"]

STORAGE_LOCK_PATH = ".hoodie/.locks/table_lock.json"

DRIFT_MS = 500
"""How much clocks may differ: added to everybody's validity."""

_TRIES = 4


@dataclass(frozen=True, slots=True)
class LockRecord:
    """What the object says.

    Attributes:
        expired: whether the lock was given up.
        valid_until: until when it is held otherwise; milliseconds since the epoch.
        owner: a UUID of each provider.
    """

    expired: bool
    valid_until: int
    owner: str


def encode_record(record: LockRecord) -> bytes:
    """Compact JSON with the three fields that every JVM requires."""
    fields = {"expired": record.expired, "validUntil": record.valid_until, "owner": record.owner}
    return json.dumps(fields, separators=(",", ":")).encode()


def decode_record(data: bytes) -> LockRecord:
    """The record of an object; unknown fields are left out, as by Apache Hudi.

    Raises:
        LockError: it is none.
    """
    try:
        fields = json.loads(data)
        expired, valid_until, owner = fields["expired"], fields["validUntil"], fields["owner"]
        is_long = type(valid_until) is int and -(2**63) <= valid_until < 2**63
        if type(expired) is bool and is_long and isinstance(owner, str):
            return LockRecord(expired, valid_until, owner)
    except (ValueError, KeyError, TypeError):
        pass
    raise LockError(
        f"The lock {STORAGE_LOCK_PATH} cannot be understood: expected the fields expired, validUntil and owner, found "
        f"{data[:200]!r}. When no writer is at work, delete the file."
    )


def is_taken(record: LockRecord, now_ms: int) -> bool:
    """Whether whoever wrote a record has the lock, by a clock that may be fast.

    Args:
        record: as read.
        now_ms: milliseconds since the epoch.
    """
    return not record.expired and now_ms <= record.valid_until + DRIFT_MS


def put_record(store: ConditionalStore, record: LockRecord, version: str | None) -> str | None:
    """Write a record if the object is as it was, and find out what became of that.

    Args:
        store: of the table.
        record: ours.
        version: of the object as it was; None for no object.

    Returns:
        The version of what is there now and is ours; None when others have written.

    Raises:
        ThrottledError: nothing was written.
        OSError: whether it was written is unknown, or it has not been up to now.
    """
    data, expected = encode_record(record), version
    for _ in range(_TRIES):
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
        expected = found.version  # an earlier write of ours, whose answer never came
    raise OSError(f"{STORAGE_LOCK_PATH} could not be written in {_TRIES} tries")
