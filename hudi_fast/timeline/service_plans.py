"""Bodies of instants of table services, as values.

Plans of compactions, clusterings and other replace commits as values, to and from Avro.

Readers and writers read the plans of pending compactions and clusterings: a pending compaction starts a new file slice
at its instant, and file groups of a pending clustering may not be updated. Compaction plans of version 2 contain file
names, plans of version 1 whole paths; both are decoded to names.

Sources: HoodieCompactionPlan, HoodieRequestedReplaceMetadata, CompactionUtils, ClusteringUtils, release 1.2.0.

Bodies of indexing instants as values, to and from Avro.

::

    [IndexPart] ─► indexing.requested ─► execution (empty inflight file) ─► indexing, with the same parts

A part names a partition of the metadata table and the newest write that the index build includes; later writes log to
the partition themselves. Sources: HoodieIndexPlan, HoodieIndexPartitionInfo, HoodieIndexCommitMetadata, release 1.2.0.

Bodies of restore instants as values, to and from Avro.

Data flow: instants to roll back -> :class:`RestorePlan` -> body of the requested file; results of their rollbacks ->
:class:`RestoreMetadata` -> body of the completed file. The inflight file is empty. Bodies of rollbacks and savepoints
are in :mod:`hudi_fast.timeline.plans`.

Sources: HoodieRestorePlan (version 2), HoodieRestoreMetadata, TimelineMetadataUtils.convertRestoreMetadata, release
1.2.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from hudi_fast.formats.avro.container import read_single_record, write_single_record
from hudi_fast.timeline.avro_models import (
    COMPACTION_PLAN,
    INDEX_COMMIT_METADATA,
    INDEX_PLAN,
    REQUESTED_REPLACE_METADATA,
    RESTORE_METADATA,
    RESTORE_PLAN,
    ROLLBACK_METADATA,
)
from hudi_fast.timeline.plans import RollbackMetadata, decode_body, decode_rollback_metadata, encode_rollback_metadata
from hudi_fast.values import dataclass

__all__ = [
    "ClusteringGroup",
    "ClusteringPlan",
    "ClusteringSlice",
    "CompactionOperation",
    "CompactionPlan",
    "IndexPart",
    "RequestedReplace",
    "RestoreMetadata",
    "RestorePlan",
    "decode_compaction_plan",
    "decode_index_metadata",
    "decode_index_plan",
    "decode_requested_replace",
    "decode_restore_metadata",
    "decode_restore_plan",
    "encode_compaction_plan",
    "encode_index_metadata",
    "encode_index_plan",
    "encode_requested_replace",
    "encode_restore_metadata",
    "encode_restore_plan",
]

_Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CompactionOperation:
    """One file slice to compact; file names without folder.

    ``base_file`` is None for a slice without base file. ``source`` is the source file of a skeleton file, which Hudi
    takes from the plan.
    """

    partition_path: str
    file_id: str
    base_instant: str
    base_file: str | None = None
    log_files: tuple[str, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    source: str | None = None


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The file slices that a compaction or log compaction merges.

    Attributes:
        operations: one per file group.
        extra_metadata: free keys.
        compactor_class: Java helper class of a log compaction; None for a compaction.
        strategy_params: parameters of the helper class.
        preserve_meta_fields: whether rows keep their commit time and sequence number.
        missing_partitions: partitions that planning had to leave out.
    """

    operations: tuple[CompactionOperation, ...] = ()
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    compactor_class: str | None = None
    strategy_params: Mapping[str, str] = field(default_factory=dict)
    preserve_meta_fields: bool = False
    missing_partitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusteringSlice:
    """One file slice to rewrite; absolute paths below the base path as the writer spells it.

    ``source`` is the source file of a skeleton file, which Hudi takes from the plan.
    """

    partition_path: str
    file_id: str
    base_path: str
    log_paths: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class ClusteringGroup:
    """File slices to rewrite together into ``output_groups`` new file groups, with metadata of the strategy."""

    slices: tuple[ClusteringSlice, ...]
    output_groups: int = 1
    metrics: Mapping[str, float] = field(default_factory=dict)
    extra_metadata: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ClusteringPlan:
    """The groups of a clustering, and the Java strategy class with its parameters, such as sort columns."""

    groups: tuple[ClusteringGroup, ...]
    strategy_class: str | None = None
    strategy_params: Mapping[str, str] = field(default_factory=dict)
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    preserve_meta_fields: bool = True
    missing_partitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestedReplace:
    """The body of a requested replace commit.

    All fields are None for insert overwrite; delete partition has an operation type, and a clustering has a plan.
    """

    operation_type: str | None = None
    clustering: ClusteringPlan | None = None
    extra_metadata: Mapping[str, str] | None = None


def encode_compaction_plan(plan: CompactionPlan) -> bytes:
    """The body of ``compaction.requested`` or ``logcompaction.requested`` (version 2)."""
    operations = [
        {
            "baseInstantTime": one.base_instant,
            "deltaFilePaths": list(one.log_files),
            "dataFilePath": one.base_file,
            "fileId": one.file_id,
            "partitionPath": one.partition_path,
            "metrics": dict(one.metrics),
            "bootstrapFilePath": one.source,
        }
        for one in plan.operations
    ]
    strategy = plan.compactor_class and {
        "compactorClassName": plan.compactor_class,
        "strategyParams": dict(plan.strategy_params),
        "version": 1,
    }
    record = {
        "operations": operations,
        "extraMetadata": dict(plan.extra_metadata),
        "version": 2,
        "strategy": strategy,
        "preserveHoodieMetadata": plan.preserve_meta_fields,
        "missingSchedulePartitions": list(plan.missing_partitions),
    }
    return write_single_record(COMPACTION_PLAN, record)


def decode_compaction_plan(data: bytes, path: str | None = None) -> CompactionPlan:
    """Decode ``compaction.requested`` or ``logcompaction.requested``; raises CorruptTableError for another body."""

    def build(record: _Record) -> CompactionPlan:
        strategy = record.get("strategy") or {}
        return CompactionPlan(
            tuple(_operation(one) for one in record["operations"] or ()),
            record.get("extraMetadata") or {},
            strategy.get("compactorClassName"),
            strategy.get("strategyParams") or {},
            bool(record.get("preserveHoodieMetadata")),
            tuple(record.get("missingSchedulePartitions") or ()),
        )

    return decode_body(data, path, build)


def _operation(record: _Record) -> CompactionOperation:
    base = record.get("dataFilePath")
    return CompactionOperation(
        record.get("partitionPath") or "",
        record["fileId"],
        record["baseInstantTime"],
        base.rpartition("/")[2] if base else None,
        tuple(name.rpartition("/")[2] for name in record.get("deltaFilePaths") or ()),
        record.get("metrics") or {},
        record.get("bootstrapFilePath") or None,
    )


def encode_requested_replace(requested: RequestedReplace) -> bytes:
    """The body of ``replacecommit.requested`` or ``clustering.requested``.

    As in Apache Hudi, all fields of an insert overwrite are null, including the version.
    """
    record = {
        "operationType": requested.operation_type,
        "clusteringPlan": None if requested.clustering is None else _clustering_record(requested.clustering),
        "extraMetadata": None if requested.extra_metadata is None else dict(requested.extra_metadata),
        "version": None if requested == RequestedReplace() else 1,
    }
    return write_single_record(REQUESTED_REPLACE_METADATA, record)


def decode_requested_replace(data: bytes, path: str | None = None) -> RequestedReplace:
    """Decode ``replacecommit.requested`` or ``clustering.requested``; an empty body gives an empty value.

    Raises:
        CorruptTableError: another body.
    """
    if not data:
        return RequestedReplace()

    def build(record: _Record) -> RequestedReplace:
        plan = record["clusteringPlan"]
        return RequestedReplace(
            record["operationType"], None if plan is None else _clustering(plan), record.get("extraMetadata")
        )

    return decode_body(data, path, build)


def _clustering_record(plan: ClusteringPlan) -> _Record:
    return {
        "inputGroups": [
            {
                "slices": [_slice_record(one) for one in group.slices],
                "metrics": dict(group.metrics),
                "numOutputFileGroups": group.output_groups,
                "extraMetadata": None if group.extra_metadata is None else dict(group.extra_metadata),
                "version": 1,
            }
            for group in plan.groups
        ],
        "strategy": {
            "strategyClassName": plan.strategy_class,
            "strategyParams": dict(plan.strategy_params),
            "version": 1,
        },
        "extraMetadata": dict(plan.extra_metadata),
        "version": 1,
        "preserveHoodieMetadata": plan.preserve_meta_fields,
        "missingSchedulePartitions": list(plan.missing_partitions),
    }


def _slice_record(one: ClusteringSlice) -> _Record:
    return {
        "dataFilePath": one.base_path,
        "deltaFilePaths": list(one.log_paths),
        "fileId": one.file_id,
        "partitionPath": one.partition_path,
        "bootstrapFilePath": one.source,
        "version": 1,
    }


def _clustering(record: _Record) -> ClusteringPlan:
    strategy = record.get("strategy") or {}
    groups = tuple(
        ClusteringGroup(
            tuple(_slice(one) for one in group["slices"] or ()),
            group.get("numOutputFileGroups") or 1,
            group.get("metrics") or {},
            group.get("extraMetadata"),
        )
        for group in record["inputGroups"] or ()
    )
    return ClusteringPlan(
        groups,
        strategy.get("strategyClassName"),
        strategy.get("strategyParams") or {},
        record.get("extraMetadata") or {},
        bool(record.get("preserveHoodieMetadata")),
        tuple(record.get("missingSchedulePartitions") or ()),
    )


def _slice(record: _Record) -> ClusteringSlice:
    return ClusteringSlice(
        record.get("partitionPath") or "",
        record["fileId"],
        record.get("dataFilePath") or "",
        tuple(record.get("deltaFilePaths") or ()),
        record.get("bootstrapFilePath") or "",
    )


_VERSION = 1


@dataclass(frozen=True, slots=True)
class IndexPart:
    """One partition of the metadata table to index.

    Attributes:
        partition: folder of the partition, such as ``record_index``.
        upto: requested time of the newest write that the index build includes; empty for a table without writes.
        extra_metadata: free keys.
    """

    partition: str
    upto: str = ""
    extra_metadata: Mapping[str, str] = field(default_factory=dict)


def encode_index_plan(parts: Sequence[IndexPart]) -> bytes:
    """The body of ``indexing.requested``."""
    record = {"version": _VERSION, "indexPartitionInfos": [_part_record(one) for one in parts]}
    return write_single_record(INDEX_PLAN, record)


def decode_index_plan(data: bytes, path: str | None = None) -> tuple[IndexPart, ...]:
    """Decode ``indexing.requested``; raises CorruptTableError for another body."""
    return decode_body(data, path, _parts)


def encode_index_metadata(parts: Sequence[IndexPart]) -> bytes:
    """The body of a completed indexing."""
    infos = [_part_record(one) for one in parts]
    record = {"version": _VERSION, "operationType": None, "indexPartitionInfos": infos}
    return write_single_record(INDEX_COMMIT_METADATA, record)


def decode_index_metadata(data: bytes, path: str | None = None) -> tuple[IndexPart, ...]:
    """Decode a completed indexing; raises CorruptTableError for another body."""
    return decode_body(data, path, _parts)


def _part_record(one: IndexPart) -> _Record:
    return {
        "version": _VERSION,
        "metadataPartitionPath": one.partition,
        "indexUptoInstant": one.upto,
        "extraMetadata": dict(one.extra_metadata),
    }


def _parts(record: _Record) -> tuple[IndexPart, ...]:
    return tuple(
        IndexPart(one["metadataPartitionPath"], one.get("indexUptoInstant") or "", one.get("extraMetadata") or {})
        for one in record["indexPartitionInfos"] or ()
    )


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
