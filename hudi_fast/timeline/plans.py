"""Bodies of rollback, clean and savepoint instants as values, to and from Avro.

Data flow: plan of a service -> ``encode_*`` -> body of the requested file -> ``decode_*`` before execution -> metadata
-> ``encode_*`` -> body of the completed file. Paths in plans are absolute, below the base path as the writer spells it.
Clean metadata (version 2) and savepoints contain file names without folder. Compaction and clustering plans are in
:mod:`hudi_fast.timeline.service_plans`.

Sources: HoodieRollbackPlan, HoodieRollbackMetadata, HoodieCleanerPlan, HoodieCleanMetadata, HoodieSavepointMetadata and
CleanPlanV2MigrationHandler, release 1.2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, TypeVar

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.avro.container import read_single_record, write_single_record
from hudi_fast.timeline.avro_models import (
    CLEAN_METADATA,
    CLEANER_PLAN,
    ROLLBACK_METADATA,
    ROLLBACK_PLAN,
    SAVEPOINT_METADATA,
)
from hudi_fast.timeline.field_types import checked
from hudi_fast.values import dataclass

__all__ = [
    "CleanMetadata",
    "CleanPartition",
    "CleanPlan",
    "RollbackMetadata",
    "RollbackPartition",
    "RollbackPlan",
    "RollbackRequest",
    "SavepointMetadata",
    "decode_body",
    "decode_clean_metadata",
    "decode_clean_plan",
    "decode_rollback_metadata",
    "decode_rollback_plan",
    "decode_savepoint",
    "encode_clean_metadata",
    "encode_clean_plan",
    "encode_rollback_metadata",
    "encode_rollback_plan",
    "encode_savepoint",
]

_Value = TypeVar("_Value")
_Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RollbackRequest:
    """Planned rollback of one file (layout 2) or file group (layout 1).

    Attributes:
        partition_path: partition of the file.
        file_id: empty in layout 2.
        latest_base_instant: base instant of the slice; empty in layout 2.
        files_to_be_deleted: absolute paths.
        log_blocks_to_be_deleted: layout 1: log file (absolute, with scheme) to size. Each file gets a command block in
            a new log file.
    """

    partition_path: str
    file_id: str = ""
    latest_base_instant: str = ""
    files_to_be_deleted: tuple[str, ...] = ()
    log_blocks_to_be_deleted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """The instant to roll back, and the requests per file."""

    instant: str
    action: str
    requests: tuple[RollbackRequest, ...] = ()


@dataclass(frozen=True, slots=True)
class RollbackPartition:
    """Result of a rollback in one partition; log files map to their sizes in bytes."""

    partition_path: str
    deleted: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    rollback_log_files: Mapping[str, int] = field(default_factory=dict)
    log_files_from_failed_commit: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RollbackMetadata:
    """Result of a rollback.

    Attributes:
        start_time: requested time of the rollback.
        instant: requested time of the rolled back instant.
        action: action of the rolled back instant.
        millis: duration in milliseconds.
        partitions: one entry per changed partition.
    """

    start_time: str
    instant: str
    action: str
    millis: int = 0
    partitions: tuple[RollbackPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class CleanPlan:
    """The files that a clean deletes.

    Attributes:
        policy: ``KEEP_LATEST_COMMITS``, ``KEEP_LATEST_FILE_VERSIONS`` or ``KEEP_LATEST_BY_HOURS``.
        earliest_instant_to_retain: requested time of the oldest instant that stays readable, or None.
        earliest_action: action of that instant.
        last_completed: requested time of the newest completed write at planning time.
        files: partition path to absolute paths.
        partitions_to_be_deleted: paths of partitions to delete completely.
        extra_metadata: such as ``savepointed_timestamps``.
        sources: whether the plan also deletes source files of a bootstrapped table.
    """

    policy: str
    earliest_instant_to_retain: str | None = None
    earliest_action: str = "commit"
    last_completed: str = ""
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    partitions_to_be_deleted: tuple[str, ...] = ()
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    sources: bool = False


@dataclass(frozen=True, slots=True)
class CleanPartition:
    """Result of a clean in one partition; file names without folder."""

    partition_path: str
    policy: str
    deleted: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    partition_deleted: bool = False


@dataclass(frozen=True, slots=True)
class CleanMetadata:
    """Result of a clean; ``earliest_instant_to_retain`` is empty if the policy has no such instant."""

    start_time: str
    earliest_instant_to_retain: str = ""
    last_completed: str = ""
    millis: int = 0
    partitions: tuple[CleanPartition, ...] = ()
    extra_metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SavepointMetadata:
    """A savepoint: partition path to names of base and log files, author, time (ms since the epoch) and comment."""

    files: Mapping[str, tuple[str, ...]]
    savepointed_by: str = ""
    savepointed_at: int = 0
    comments: str = ""


def decode_body(data: bytes, path: str | None, build: Callable[[_Record], _Value]) -> _Value:
    """Apply ``build`` to the single record of a body.

    Raises:
        CorruptTableError: the body is not an Avro file, or has another kind of record.
    """
    record = read_single_record(data, path)
    try:
        return checked(build(record))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CorruptTableError(f"The Avro record has an unexpected form: {error!r}.", path) from error


def encode_rollback_plan(plan: RollbackPlan) -> bytes:
    """The body of ``rollback.requested``."""
    requests = [
        {
            "partitionPath": request.partition_path,
            "fileId": request.file_id,
            "latestBaseInstant": request.latest_base_instant,
            "filesToBeDeleted": list(request.files_to_be_deleted),
            "logBlocksToBeDeleted": dict(request.log_blocks_to_be_deleted),
        }
        for request in plan.requests
    ]
    instant = {"commitTime": plan.instant, "action": plan.action}
    return write_single_record(
        ROLLBACK_PLAN, {"instantToRollback": instant, "RollbackRequests": requests, "version": 1}
    )


def decode_rollback_plan(data: bytes, path: str | None = None) -> RollbackPlan:
    """Decode ``rollback.requested``; raises CorruptTableError for another body."""

    def build(record: _Record) -> RollbackPlan:
        requests = tuple(
            RollbackRequest(
                one["partitionPath"],
                one.get("fileId") or "",
                one.get("latestBaseInstant") or "",
                tuple(one.get("filesToBeDeleted") or ()),
                one.get("logBlocksToBeDeleted") or {},
            )
            for one in record["RollbackRequests"] or ()
        )
        instant = record["instantToRollback"]
        return RollbackPlan(instant["commitTime"], instant["action"], requests)

    return decode_body(data, path, build)


def encode_rollback_metadata(metadata: RollbackMetadata) -> bytes:
    """The body of a completed rollback."""
    partitions = {
        one.partition_path: {
            "partitionPath": one.partition_path,
            "successDeleteFiles": list(one.deleted),
            "failedDeleteFiles": list(one.failed),
            "rollbackLogFiles": dict(one.rollback_log_files),
            "logFilesFromFailedCommit": dict(one.log_files_from_failed_commit),
        }
        for one in metadata.partitions
    }
    record = {
        "startRollbackTime": metadata.start_time,
        "timeTakenInMillis": metadata.millis,
        "totalFilesDeleted": sum(len(one.deleted) for one in metadata.partitions),
        "commitsRollback": [metadata.instant],
        "partitionMetadata": partitions,
        "version": 1,
        "instantsRollback": [{"commitTime": metadata.instant, "action": metadata.action}],
    }
    return write_single_record(ROLLBACK_METADATA, record)


def decode_rollback_metadata(data: bytes, path: str | None = None) -> RollbackMetadata:
    """Decode a completed rollback; raises CorruptTableError for another body."""

    def build(record: _Record) -> RollbackMetadata:
        partitions = tuple(
            RollbackPartition(
                one["partitionPath"],
                tuple(one["successDeleteFiles"]),
                tuple(one["failedDeleteFiles"]),
                one.get("rollbackLogFiles") or {},
                one.get("logFilesFromFailedCommit") or {},
            )
            for one in record["partitionMetadata"].values()
        )
        instants = record.get("instantsRollback") or [{"commitTime": record["commitsRollback"][0], "action": "commit"}]
        first = instants[0]
        return RollbackMetadata(
            record["startRollbackTime"], first["commitTime"], first["action"], record["timeTakenInMillis"], partitions
        )

    return decode_body(data, path, build)


def encode_clean_plan(plan: CleanPlan) -> bytes:
    """The body of ``clean.requested`` (version 2)."""
    earliest = plan.earliest_instant_to_retain
    record = {
        "earliestInstantToRetain": earliest
        and {"timestamp": earliest, "action": plan.earliest_action, "state": "COMPLETED"},
        "lastCompletedCommitTimestamp": plan.last_completed,
        "policy": plan.policy,
        "filesToBeDeletedPerPartition": {},
        "version": 2,
        "filePathsToBeDeletedPerPartition": {
            partition: [{"filePath": name, "isBootstrapBaseFile": False} for name in names]
            for partition, names in plan.files.items()
        },
        "partitionsToBeDeleted": list(plan.partitions_to_be_deleted),
        "extraMetadata": dict(plan.extra_metadata),
    }
    return write_single_record(CLEANER_PLAN, record)


def decode_clean_plan(data: bytes, path: str | None = None) -> CleanPlan:
    """Decode ``clean.requested``, version 1 or 2; raises CorruptTableError for another body."""

    def build(record: _Record) -> CleanPlan:
        earliest = record.get("earliestInstantToRetain") or {}
        files = {partition: tuple(names) for partition, names in (record["filesToBeDeletedPerPartition"] or {}).items()}
        sources = False
        for partition, infos in (record.get("filePathsToBeDeletedPerPartition") or {}).items():
            files[partition] = tuple(info["filePath"] for info in infos if not info.get("isBootstrapBaseFile"))
            sources = sources or len(files[partition]) < len(infos)
        return CleanPlan(
            record["policy"],
            earliest.get("timestamp"),
            earliest.get("action", "commit"),
            record.get("lastCompletedCommitTimestamp") or "",
            files,
            tuple(record.get("partitionsToBeDeleted") or ()),
            record.get("extraMetadata") or {},
            sources,
        )

    return decode_body(data, path, build)


def encode_clean_metadata(metadata: CleanMetadata) -> bytes:
    """The body of a completed clean (version 2)."""
    partitions = {
        one.partition_path: {
            "partitionPath": one.partition_path,
            "policy": one.policy,
            "deletePathPatterns": [*one.deleted, *one.failed],
            "successDeleteFiles": list(one.deleted),
            "failedDeleteFiles": list(one.failed),
            "isPartitionDeleted": one.partition_deleted,
        }
        for one in metadata.partitions
    }
    record = {
        "startCleanTime": metadata.start_time,
        "timeTakenInMillis": metadata.millis,
        "totalFilesDeleted": sum(len(one.deleted) for one in metadata.partitions),
        "earliestCommitToRetain": metadata.earliest_instant_to_retain,
        "lastCompletedCommitTimestamp": metadata.last_completed,
        "partitionMetadata": partitions,
        "version": 2,
        "bootstrapPartitionMetadata": {},
        "extraMetadata": dict(metadata.extra_metadata),
    }
    return write_single_record(CLEAN_METADATA, record)


def decode_clean_metadata(data: bytes, path: str | None = None) -> CleanMetadata:
    """Decode a completed clean; paths of version 1 become names. Raises CorruptTableError for another body."""

    def build(record: _Record) -> CleanMetadata:
        partitions = tuple(
            CleanPartition(
                one["partitionPath"],
                one["policy"],
                tuple(name.rpartition("/")[2] for name in one["successDeleteFiles"]),
                tuple(name.rpartition("/")[2] for name in one["failedDeleteFiles"]),
                bool(one.get("isPartitionDeleted")),
            )
            for one in record["partitionMetadata"].values()
        )
        return CleanMetadata(
            record["startCleanTime"],
            record["earliestCommitToRetain"],
            record.get("lastCompletedCommitTimestamp") or "",
            record["timeTakenInMillis"],
            partitions,
            record.get("extraMetadata") or {},
        )

    return decode_body(data, path, build)


def encode_savepoint(metadata: SavepointMetadata) -> bytes:
    """The body of a completed savepoint."""
    partitions = {
        partition: {"partitionPath": partition, "savepointDataFile": list(names)}
        for partition, names in metadata.files.items()
    }
    record = {
        "savepointedBy": metadata.savepointed_by,
        "savepointedAt": metadata.savepointed_at,
        "comments": metadata.comments,
        "partitionMetadata": partitions,
        "version": 1,
    }
    return write_single_record(SAVEPOINT_METADATA, record)


def decode_savepoint(data: bytes, path: str | None = None) -> SavepointMetadata:
    """Decode a completed savepoint; raises CorruptTableError for another body."""

    def build(record: _Record) -> SavepointMetadata:
        found = record["partitionMetadata"].items()
        return SavepointMetadata(
            {partition: tuple(one["savepointDataFile"]) for partition, one in found},
            record["savepointedBy"],
            record["savepointedAt"],
            record["comments"],
        )

    return decode_body(data, path, build)
