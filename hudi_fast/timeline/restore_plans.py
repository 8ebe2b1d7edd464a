"""Bodies of restore instants as values, to and from Avro.

Data flow: instants to roll back -> :class:`RestorePlan` -> body of the requested file; results of their rollbacks ->
:class:`RestoreMetadata` -> body of the completed file. The inflight file is empty. Bodies of rollbacks and savepoints
are in :mod:`hudi_fast.timeline.plans`.

Sources: HoodieRestorePlan (version 2), HoodieRestoreMetadata, TimelineMetadataUtils.convertRestoreMetadata, release
1.2.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_fast.formats.avro.container import read_single_record, write_single_record
from hudi_fast.timeline.avro_models import RESTORE_METADATA, RESTORE_PLAN, ROLLBACK_METADATA
from hudi_fast.timeline.plans import (
    RollbackMetadata,
    decode_body,
    decode_rollback_metadata,
    encode_rollback_metadata,
)

__all__ = [
    "RestoreMetadata",
    "RestorePlan",
    "decode_restore_metadata",
    "decode_restore_plan",
    "encode_restore_metadata",
    "encode_restore_plan",
]

_Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """The instants that a restore rolls back.

    Attributes:
        savepoint: requested time of the savepointed commit; empty in plans of version 1.
        instants: requested time and action of each instant, in rollback order.
    """

    savepoint: str
    instants: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RestoreMetadata:
    """The result of a restore.

    Attributes:
        start_time: requested time of the restore.
        millis: duration in milliseconds.
        instants: requested time and action of each instant, as in the plan.
        rollbacks: requested time of each instant to the result of its rollback.
    """

    start_time: str
    millis: int = 0
    instants: tuple[tuple[str, str], ...] = ()
    rollbacks: Mapping[str, RollbackMetadata] = field(default_factory=dict)


def encode_restore_plan(plan: RestorePlan) -> bytes:
    """The body of ``restore.requested`` (version 2)."""
    record = {
        "instantsToRollback": _infos(plan.instants),
        "version": 2,
        "savepointToRestoreTimestamp": plan.savepoint,
    }
    return write_single_record(RESTORE_PLAN, record)


def decode_restore_plan(data: bytes, path: str | None = None) -> RestorePlan:
    """Decode ``restore.requested``; raises CorruptTableError for another body."""

    def build(record: _Record) -> RestorePlan:
        return RestorePlan(record.get("savepointToRestoreTimestamp") or "", _instants(record["instantsToRollback"]))

    return decode_body(data, path, build)


def encode_restore_metadata(metadata: RestoreMetadata) -> bytes:
    """The body of a completed restore."""
    record = {
        "startRestoreTime": metadata.start_time,
        "timeTakenInMillis": metadata.millis,
        "instantsToRollback": [requested for requested, _ in metadata.instants],
        "hoodieRestoreMetadata": {
            requested: [read_single_record(encode_rollback_metadata(one))]
            for requested, one in metadata.rollbacks.items()
        },
        "version": 1,
        "restoreInstantInfo": _infos(metadata.instants),
    }
    return write_single_record(RESTORE_METADATA, record)


def decode_restore_metadata(data: bytes, path: str | None = None) -> RestoreMetadata:
    """Decode a completed restore; raises CorruptTableError for another body."""

    def build(record: _Record) -> RestoreMetadata:
        rollbacks = {
            requested: decode_rollback_metadata(write_single_record(ROLLBACK_METADATA, found[0]))
            for requested, found in record["hoodieRestoreMetadata"].items()
            if found and found[0] is not None
        }
        instants = _instants(record.get("restoreInstantInfo") or ()) or tuple(
            (requested, rollbacks[requested].action if requested in rollbacks else "commit")
            for requested in record["instantsToRollback"]
        )
        return RestoreMetadata(record["startRestoreTime"], record["timeTakenInMillis"], instants, rollbacks)

    return decode_body(data, path, build)


def _infos(instants: tuple[tuple[str, str], ...]) -> list[_Record]:
    return [{"commitTime": requested, "action": action} for requested, action in instants]


def _instants(infos: Any) -> tuple[tuple[str, str], ...]:
    return tuple((one["commitTime"], one["action"]) for one in infos)
