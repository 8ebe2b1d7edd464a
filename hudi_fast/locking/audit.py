"""Audit log of locks in storage: one file per acquisition, if auditing is enabled for the table.

::

    .hoodie/.locks/audit_enabled.json: true ─► .hoodie/.locks/audit/<acquired>_<owner>.jsonl: START RENEW... END

Apache Hudi reads and writes the same files. A failure to write a record is ignored: locks do not depend on the log.

Source: ``AuditServiceFactory``, ``StorageLockProviderAuditService``, Hudi 1.2.0.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from typing import Any

from hudi_fast.storage.base import Storage
from hudi_fast.storage.stored_json import stored_json

__all__ = ["AUDIT_FOLDER", "AUDIT_SWITCH", "Audit", "is_audited"]

AUDIT_SWITCH = ".hoodie/.locks/audit_enabled.json"
AUDIT_FOLDER = ".hoodie/.locks/audit"
"""Path of the file that switches the audit on, and the folder of its files."""

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
class Audit:
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
