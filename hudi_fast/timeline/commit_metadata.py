"""Commit metadata: the files that a commit, delta commit or replace commit wrote, one :class:`WriteStat` per file.

Data flow: write statistics of workers -> :class:`CommitMetadata` -> :func:`encode_commit_metadata` -> body of the
completed instant -> :func:`decode_commit_metadata` in readers. Layout 1 stores JSON, layout 2 an Avro container; an
upgraded table has both, and decoding recognises them by their first bytes. Unknown members are ignored and missing ones
take defaults, as in Hudi. Values are picklable.

Sources: HoodieWriteStat, HoodieCommitMetadata, CommitMetadataSerDeV1/V2, releases 0.15.0 and 1.2.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.avro.container import is_avro_container, read_single_record, write_single_record
from hudi_fast.formats.parquet.column_ranges import ColumnRanges
from hudi_fast.storage.untrusted import stored_json
from hudi_fast.timeline.avro_models import COMMIT_METADATA, REPLACE_COMMIT_METADATA
from hudi_fast.timeline.field_types import checked
from hudi_fast.values import dataclass

__all__ = [
    "CommitMetadata",
    "RuntimeStats",
    "WriteStat",
    "decode_commit_metadata",
    "encode_commit_metadata",
    "encode_workload_profile",
]


@dataclass(frozen=True, slots=True)
class RuntimeStats:
    """Durations per file in milliseconds: scanning logs, creating a file, merging."""

    total_scan_time: int = 0
    total_create_time: int = 0
    total_upsert_time: int = 0


@dataclass(frozen=True, slots=True)
class WriteStat:
    """Write statistics of one file; counts are rows, sizes are bytes.

    Attributes (others as in ``HoodieWriteStat``):
        path: relative to the table.
        prev_commit: base instant of the previous file slice; the text ``null`` for a new file group.
        num_writes: rows in the file, including copied rows of a rewritten base file.
        prev_base_file: name of the replaced base file.
        min_event_time: milliseconds since the epoch, like ``max_event_time``.
        cdc_stats: path of a change log to its size.
        base_file: set for log files only, like ``log_files`` (names), ``log_version`` and ``log_offset``.
        total_log_records: set by compaction, like the other ``total_log_*`` counters.
        column_ranges: column ranges of the file. This and the following fields exist during the write and are not
            stored.
        inserts_last: whether the file ends with the inserted rows, and all other rows have stored keys.
        copied_row_groups: row groups that were copied as bytes.
        decoded_because: reason why no row group was copied as bytes.
    """

    file_id: str = ""
    path: str = ""
    prev_commit: str = "null"
    num_writes: int = 0
    num_deletes: int = 0
    num_update_writes: int = 0
    num_inserts: int = 0
    num_updates: int = 0
    total_write_bytes: int = 0
    total_write_errors: int = 0
    partition_path: str = ""
    file_size: int = 0
    prev_base_file: str | None = None
    min_event_time: int | None = None
    max_event_time: int | None = None
    runtime_stats: RuntimeStats | None = None
    cdc_stats: Mapping[str, int] | None = None
    base_file: str | None = None
    log_files: tuple[str, ...] | None = None
    log_version: int | None = None
    log_offset: int | None = None
    temp_path: str | None = None
    total_log_records: int = 0
    total_log_files: int | None = None
    total_log_files_compacted: int = 0
    total_log_size_compacted: int = 0
    total_log_read_time_ms: int = 0
    total_updated_records_compacted: int = 0
    total_log_blocks: int = 0
    total_corrupt_log_blocks: int = 0
    total_rollback_blocks: int = 0
    column_ranges: ColumnRanges | None = field(default=None, compare=False, repr=False)
    inserts_last: bool = field(default=False, compare=False, repr=False)
    copied_row_groups: int = field(default=0, compare=False, repr=False)
    decoded_because: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """The body of a commit.

    Attributes:
        partition_to_write_stats: partition path to the statistics of its files.
        extra_metadata: ``schema`` (Avro JSON without meta columns), checkpoints of streams, ...
        operation_type: such as ``UPSERT`` or ``COMPACT``.
        compacted: whether the commit is a compaction or log compaction.
        partition_to_replace_file_ids: replaced file groups of a replace commit; None for other actions.
    """

    partition_to_write_stats: dict[str, list[WriteStat]] = field(default_factory=dict)
    extra_metadata: dict[str, str] = field(default_factory=dict)
    operation_type: str = "UNKNOWN"
    compacted: bool = False
    partition_to_replace_file_ids: dict[str, list[str]] | None = None

    def write_stats(self) -> Iterator[WriteStat]:
        """All write stats, partition by partition."""
        for stats in self.partition_to_write_stats.values():
            yield from stats


# Attribute -> member, in the order of JSON bodies.
_COUNTS = {
    "num_writes": "numWrites",
    "num_deletes": "numDeletes",
    "num_update_writes": "numUpdateWrites",
    "num_inserts": "numInserts",
    "num_updates": "numUpdates",
    "total_write_bytes": "totalWriteBytes",
    "total_write_errors": "totalWriteErrors",
    "total_log_records": "totalLogRecords",
    "total_log_files_compacted": "totalLogFilesCompacted",
    "total_log_size_compacted": "totalLogSizeCompacted",
    "total_log_read_time_ms": "totalLogReadTimeMs",
    "total_updated_records_compacted": "totalUpdatedRecordsCompacted",
    "total_log_blocks": "totalLogBlocks",
    "total_corrupt_log_blocks": "totalCorruptLogBlock",
    "total_rollback_blocks": "totalRollbackBlocks",
    "file_size": "fileSizeInBytes",
}
_OPTIONAL = {
    "temp_path": "tempPath",
    "min_event_time": "minEventTime",
    "max_event_time": "maxEventTime",
    "prev_base_file": "prevBaseFile",
}
_LOG_FILE = {"log_version": "logVersion", "log_offset": "logOffset", "base_file": "baseFile"}
_PLAIN = tuple((_COUNTS | _OPTIONAL).items())
_NULLABLE = tuple((_OPTIONAL | _LOG_FILE).items())


def encode_commit_metadata(meta: CommitMetadata, layout: int, replace: bool = False) -> bytes:
    """The body of a completed (or inflight) instant.

    Args:
        meta: the commit metadata.
        layout: timeline layout: 1 for JSON, 2 for an Avro container.
        replace: whether the body belongs to a completed replace commit.
    """
    if layout not in (1, 2):
        raise ValueError(f"The timeline layout is {layout}; expected 1 or 2.")
    record: dict[str, Any] = {
        "partitionToWriteStats": {
            partition: [_stat_members(stat, layout) for stat in stats]
            for partition, stats in meta.partition_to_write_stats.items()
        },
        "compacted": meta.compacted,
        "extraMetadata": meta.extra_metadata,
        "operationType": meta.operation_type,
    }
    if replace:
        record["partitionToReplaceFileIds"] = meta.partition_to_replace_file_ids or {}
    if layout == 1:
        return json.dumps(record, ensure_ascii=False).encode()
    # Apache Hudi writes a null version.
    record["version"] = None
    return write_single_record(REPLACE_COMMIT_METADATA if replace else COMMIT_METADATA, record)


def encode_workload_profile(
    inserts: Mapping[str, int],
    updates: Mapping[str, Mapping[str, tuple[str, int]]],
    operation_type: str,
    layout: int,
) -> bytes:
    """The body of an inflight commit: planned rows per file group, which a rollback without markers reads.

    Args:
        inserts: partition path to rows.
        updates: partition path to file id to (base instant of the slice, rows).
        operation_type: such as ``UPSERT``.
        layout: timeline layout, 1 or 2.
    """
    stats: dict[str, list[WriteStat]] = {}
    for partition in sorted({*inserts, *updates}):
        stats[partition] = [WriteStat(num_inserts=inserts.get(partition, 0), partition_path=partition)]
        for file_id, (base, rows) in sorted(updates.get(partition, {}).items()):
            stats[partition].append(
                WriteStat(file_id=file_id, prev_commit=base, num_update_writes=rows, partition_path=partition)
            )
    return encode_commit_metadata(CommitMetadata(stats, {}, operation_type), layout)


def decode_commit_metadata(data: bytes, path: str | None = None) -> CommitMetadata:
    """Decode commit metadata from JSON or Avro; an empty body is an empty commit.

    Raises:
        CorruptTableError: the body is neither JSON nor Avro, or truncated.
    """
    if not data:
        return CommitMetadata()
    record = read_single_record(data, path) if is_avro_container(data) else _read_json(data, path)
    try:
        return checked(_metadata_of(record))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CorruptTableError(f"The commit metadata has an unexpected form: {error!r}.", path) from error


def _read_json(data: bytes, path: str | None) -> dict[str, Any]:
    try:
        record = stored_json(data)
    except ValueError as error:
        raise CorruptTableError(f"Expected commit metadata as JSON or Avro: {error}.", path) from error
    if not isinstance(record, dict):
        raise CorruptTableError(f"Expected commit metadata as a JSON object, found {type(record).__name__}.", path)
    return record


def _metadata_of(record: Mapping[str, Any]) -> CommitMetadata:
    stats = record.get("partitionToWriteStats") or {}
    replaced = record.get("partitionToReplaceFileIds")
    return CommitMetadata(
        {partition: [_stat_of(stat, partition) for stat in found or ()] for partition, found in stats.items()},
        {key: value for key, value in (record.get("extraMetadata") or {}).items() if value is not None},
        record.get("operationType") or "UNKNOWN",
        bool(record.get("compacted")),
        None if replaced is None else {partition: list(ids) for partition, ids in replaced.items()},
    )


def _stat_of(record: Mapping[str, Any], partition: str) -> WriteStat:
    values: dict[str, Any] = {name: record.get(member) or 0 for name, member in _COUNTS.items()}
    for name, member in _NULLABLE:
        values[name] = record.get(member)
    runtime, log_files, written_to = record.get("runtimeStats"), record.get("logFiles"), record.get("partitionPath")
    return WriteStat(
        file_id=record.get("fileId") or "",
        path=record.get("path") or "",
        prev_commit=record.get("prevCommit") or "null",
        partition_path=partition if written_to is None else written_to,
        runtime_stats=None if runtime is None else _runtime_of(runtime),
        cdc_stats=_cdc_of(record.get("cdcStats")),
        log_files=None if log_files is None else tuple(log_files),
        total_log_files=record.get("totalLogFiles"),
        **values,
    )


def _runtime_of(record: Mapping[str, Any]) -> RuntimeStats:
    names = ("totalScanTime", "totalCreateTime", "totalUpsertTime")
    return RuntimeStats(*(record.get(name) or 0 for name in names))


def _cdc_of(record: Mapping[str, int] | None) -> dict[str, int] | None:
    return None if record is None else dict(record)


def _stat_members(stat: WriteStat, layout: int) -> dict[str, Any]:
    runtime = stat.runtime_stats
    members: dict[str, Any] = {
        "fileId": stat.file_id,
        "path": stat.path or None,
        "cdcStats": _cdc_of(stat.cdc_stats),
        "prevCommit": stat.prev_commit,
        "partitionPath": stat.partition_path,
    }
    for name, member in _PLAIN:
        members[member] = getattr(stat, name)
    members["runtimeStats"] = runtime and {
        "totalScanTime": runtime.total_scan_time,
        "totalUpsertTime": runtime.total_upsert_time,
        "totalCreateTime": runtime.total_create_time,
    }
    if stat.log_files is not None or stat.log_version is not None or layout > 1:
        members |= {member: getattr(stat, name) for name, member in _LOG_FILE.items()}
        members["logFiles"] = None if stat.log_files is None else list(stat.log_files)
    if layout > 1:
        members["totalLogFiles"] = stat.total_log_files
    return members
