"""Find dangling instants, and rebuild bodies that a power loss has emptied.

Finds dangling instants: abandoned pending instants, and completed ones whose body is lost.

======================  =================================================  ==========================================
instant                 repair                                             reason
======================  =================================================  ==========================================
pending write           rolls it back, unless it may be live               no query returns its rows
pending rollback        finishes it                                        every step can be repeated
plan lost, no files     removes the instant from the timeline              it cannot be executed, and has no effect yet
plan lost, with files   nothing                                            the files may hold rows
pending restore         nothing                                            restoring again finishes it
inflight savepoint      removes it from the timeline                       it protects no files yet
write, its body lost    writes it again if its files are certain           see below
other body lost         nothing                                            nothing else has its content
======================  =================================================  ==========================================

A pending service with a plan is not a finding: it can be executed.

Rebuilds the body of a completed write that a power loss has emptied, if the files of the write are certain.

::

    an empty completed file ─► the metadata table's delta commit of that instant, whole ─► the files that it lists
        ─► are all of them there, with their sizes? ─► a write stat for each ─► the body

The metadata table records the files of a write before the write completes, so it lists the files of the lost body. File
names in folders alone prove nothing: the power loss may have removed a file and its name. Without proof no body is
written, and a person must decide. The numbers of inserted, updated and deleted rows are lost for good, and so are other
notes of the write, such as the checkpoint of a stream.

No body is rebuilt where the files do not show all of it: for a write that replaced file groups, that wrote log files
which are named after their slice (before table version 8), or that wrote change logs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

from hudi_fast.errors import CorruptTableError, HudiError
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, LogBlock, scan_log_blocks
from hudi_fast.metadata_table.state import MetadataLister
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.services.repairing.findings import Finding, Inspection
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.storage.untrusted import stored_json
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat, decode_commit_metadata, encode_commit_metadata
from hudi_fast.timeline.heartbeat import is_alive
from hudi_fast.timeline.instants import WRITE_ACTIONS, Instant, State
from hudi_fast.timeline.plans import (
    decode_clean_metadata,
    decode_clean_plan,
    decode_rollback_metadata,
    decode_rollback_plan,
    decode_savepoint,
)
from hudi_fast.timeline.service_plans import (
    ClusteringPlan,
    decode_compaction_plan,
    decode_index_metadata,
    decode_index_plan,
    decode_requested_replace,
    decode_restore_metadata,
)
from hudi_fast.values import dataclass
from hudi_fast.view.base_files import open_base
from hudi_fast.view.file_names import LOGS_NAMED_BY_WRITE, BaseFile, LogFile, parse_base_file, parse_log_file
from hudi_fast.view.planned_files import checked_clean, checked_clustering, checked_compaction, checked_rollback
from hudi_fast.view.table_state import read_commit

__all__ = ["UncertainError", "find_instants", "is_clustering", "rebuilt_body"]

_SCHEMA_KEY = b"parquet.avro.schema"
_META_PREFIX = "_hoodie_"


class UncertainError(Exception):
    """The files of a write are not certain; the message is a clause that says why."""


@dataclass(frozen=True)
class _Found:
    """A file of the write, and the Avro schema of its rows."""

    stat: WriteStat
    schema: str


def rebuilt_body(inspection: Inspection, instant: Instant) -> bytes:
    """The body of a completed write whose file is empty.

    Args:
        inspection: of the table.
        instant: the write.

    Raises:
        UncertainError: its files are not certain.
    """
    config = inspection.config
    if instant.action not in ("commit", "deltacommit"):
        raise UncertainError(f"a {instant.action} names file groups that it replaced")
    if instant.action == "deltacommit" and config.version < LOGS_NAMED_BY_WRITE:
        raise UncertainError(f"log files of table version {config.version} do not say which writes they are of")
    if config.layout_version == 1 and not inspection.storage.is_local:
        raise UncertainError("the store cannot keep the time of the file, at which the write was completed")
    planned = {state for state in State if state is not State.COMPLETED}
    if any("logcompaction" in file.name for state, file in inspection.files_of(instant).items() if state in planned):
        raise UncertainError("a log compaction names the blocks that it replaced")
    try:
        found = [_file(inspection, instant, entry) for entry in _listed(inspection, instant)]
    except (HudiError, FileNotFoundError) as error:
        raise UncertainError(f"not all of it can be read: {str(error).rstrip('.')}") from error
    schemas = {one.schema for one in found}
    if len(schemas) != 1:
        raise UncertainError("its files have several schemas")
    by_partition: dict[str, list[WriteStat]] = {}
    for one in found:
        by_partition.setdefault(one.stat.partition_path, []).append(one.stat)
    is_compaction = config.is_mor and instant.action == "commit"
    metadata = CommitMetadata(
        by_partition, {"schema": schemas.pop()}, "COMPACT" if is_compaction else "UNKNOWN", is_compaction
    )
    return encode_commit_metadata(metadata, config.layout_version)


def _listed(inspection: Inspection, instant: Instant) -> list[FileStat]:
    """The files of the write, as the metadata table lists them."""
    table = inspection.metadata
    if table is None or inspection.metadata_problem is not None:
        raise UncertainError("there is no metadata table that lists its files")
    _require_whole(table, instant)
    lister = MetadataLister(table)
    entries = [entry for partition in lister.partitions() for entry in lister.files(partition)]
    written = [entry for entry in entries if _instant_of(entry) == instant.requested]
    if not written:
        raise UncertainError("the metadata table lists no file of it")
    return written


def _require_whole(table: MetadataTable, instant: Instant) -> None:
    """Check that the metadata table has recorded a write, and that no file of that record is lost or shortened."""
    own = next((one for one in table.timeline.completed() if one.requested == instant.requested), None)
    if own is None or own in table.timeline.without_body:
        raise UncertainError("the metadata table has no delta commit of it")
    for stat in read_commit(table.storage, table.config, own).write_stats():
        file = table.storage.stat(stat.path)
        if file is None or file.size < stat.file_size:
            raise UncertainError(f"the metadata table has lost a part of {stat.path}")


def _instant_of(entry: FileStat) -> str | None:
    file = parse_base_file(entry) or parse_log_file(entry)
    return None if file is None else file.instant


def _file(inspection: Inspection, instant: Instant, entry: FileStat) -> _Found:
    partition = entry.path.rpartition("/")[0]
    here = {one.path: one.size for one in inspection.partitions.get(partition, ())}
    if here.get(entry.path, -1) < entry.size:
        raise UncertainError(f"its file {entry.path} is missing, or shorter than {entry.size} bytes")
    base, log = parse_base_file(entry), parse_log_file(entry)
    if log is not None and log.is_cdc:
        raise UncertainError("it logged changes")
    if base is not None:
        return _base_file(inspection, instant, base, partition)
    assert log is not None, "it has an instant in its name"
    return _log_file(inspection.storage, instant, log, partition)


def _base_file(inspection: Inspection, instant: Instant, base: BaseFile, partition: str) -> _Found:
    with open_base(inspection.storage, base) as reader:
        footer, rows = reader.metadata, reader.num_rows
    pairs = {} if footer is None else footer.metadata or {}
    if _SCHEMA_KEY not in pairs:
        raise UncertainError(f"{base.path} does not say its schema")
    before = _base_before(inspection, instant, base, partition)
    stat = WriteStat(
        file_id=base.file_id,
        path=base.path,
        prev_commit="null" if before is None else before.instant,
        prev_base_file=None if before is None else before.name,
        num_writes=rows,
        num_inserts=rows if before is None else 0,
        total_write_bytes=base.size,
        file_size=base.size,
        partition_path=partition,
    )
    return _Found(stat, _own_columns(pairs[_SCHEMA_KEY].decode()))


def _base_before(inspection: Inspection, instant: Instant, base: BaseFile, partition: str) -> BaseFile | None:
    """The newest base file of the same file group that an earlier completed write made."""
    known = {one.requested for one in inspection.timeline.completed()}
    parsed = (parse_base_file(one) for one in inspection.partitions[partition])
    older = [
        one
        for one in parsed
        if one is not None and one.file_id == base.file_id and one.instant < instant.requested and one.instant in known
    ]
    return max(older, key=lambda one: one.instant, default=None)


def _log_file(storage: Storage, instant: Instant, log: LogFile, partition: str) -> _Found:
    blocks = list(scan_log_blocks(storage, log.path))
    if any(one.kind is BlockType.CORRUPT for one in blocks):
        raise CorruptTableError("It has a block that is cut.", log.path)
    schemas = {_own_columns(text) for text in _schemas(blocks)}
    if len(schemas) != 1 or any(HeaderKey.IS_PARTIAL in one.headers for one in blocks):
        raise UncertainError(f"{log.path} does not say the table's schema")
    stat = WriteStat(
        file_id=log.file_id,
        path=log.path,
        prev_commit=instant.requested,
        partition_path=partition,
        total_write_bytes=log.size,
        file_size=log.size,
        base_file="",
        log_files=(log.name,),
        log_version=log.version,
        log_offset=0,
        total_log_blocks=len(blocks),
    )
    return _Found(stat, schemas.pop())


def _schemas(blocks: Iterable[LogBlock]) -> Iterator[str]:
    return (one.headers[HeaderKey.SCHEMA] for one in blocks if one.headers.get(HeaderKey.SCHEMA))


def _own_columns(text: str) -> str:
    """A schema without the meta columns, as commits have it."""
    try:
        schema = stored_json(text)
        schema["fields"] = [one for one in schema["fields"] if not one["name"].startswith(_META_PREFIX)]
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(f"Expected the schema of a record as JSON, found {text[:80]!r}: {error}.") from error
    return json.dumps(schema, separators=(",", ":"))


_LEFT_BEHIND_MS = 3_600_000
"""A savepoint is written in one step, so one that is inflight for an hour is abandoned."""

_Decode = Callable[[bytes, str | None], object]

_PLANS: dict[str, Callable[[Storage, bytes, str], object]] = {
    "compaction": lambda storage, body, path: checked_compaction(storage, decode_compaction_plan(body, path), path),
    "logcompaction": lambda storage, body, path: checked_compaction(storage, decode_compaction_plan(body, path), path),
    "clustering": lambda storage, body, path: _clustering_of(storage, body, path),
    "clean": lambda storage, body, path: checked_clean(storage, decode_clean_plan(body, path), path),
    "indexing": lambda _, body, path: decode_index_plan(body, path),
}
_BODIES: dict[str, _Decode] = {
    "clean": decode_clean_metadata,
    "rollback": decode_rollback_metadata,
    "restore": decode_restore_metadata,
    "savepoint": decode_savepoint,
    "indexing": decode_index_metadata,
}
_LOST = {
    "clean": "The list of its deleted files is lost. Harmless to queries; archiving removes it.",
    "rollback": "The list of its instants is lost. Harmless to queries; archiving removes it.",
    "restore": "The list of its instants is lost. Harmless to queries; archiving removes it.",
    "savepoint": "The list of its files is lost. Delete it, and make it again if its slices still exist.",
    "indexing": "Harmless to queries. Validate the metadata table; drop and rebuild the index if it differs.",
}


def find_instants(inspection: Inspection) -> Iterator[Finding]:
    """Findings of the kinds ``lost body``, ``failed write`` and ``dangling instant``, oldest first."""
    with_files = _instants_with_files(inspection)
    restoring = inspection.timeline.pending_restore is not None
    for instant in inspection.timeline.instants:
        if instant.state is State.COMPLETED:
            found = _completed(inspection, instant)
        else:
            found = _pending(inspection, instant, with_files, restoring)
        if found is not None:
            yield found


def is_clustering(inspection: Inspection, instant: Instant) -> bool:
    """Whether a pending replace commit of layout 1 is a clustering: it has a plan.

    Raises:
        CorruptTableError: its requested file is damaged, or names something else than data files.
    """
    requested = inspection.files_of(instant).get(State.REQUESTED)
    if requested is None:
        return False
    storage = inspection.storage
    return _clustering_of(storage, storage.read_bytes(requested.path), requested.path) is not None


def _clustering_of(storage: Storage, body: bytes, path: str) -> ClusteringPlan | None:
    plan = decode_requested_replace(body, path).clustering
    return None if plan is None else checked_clustering(storage, plan, path)


# ---- pending


def _pending(inspection: Inspection, instant: Instant, with_files: set[str], restoring: bool) -> Finding | None:
    path = _path(inspection, instant)
    if instant.action == "restore":
        advice = "An unfinished restore; no write can begin until it is finished. Restore to its savepoint again."
        return Finding("dangling instant", instant.requested, path, 0, False, advice)
    if is_alive(inspection.storage, instant.requested, inspection.heartbeat):
        return None
    if instant.action == "savepoint":
        return _half_savepoint(inspection, instant, path)
    if instant.action == "rollback":
        return _rollback(inspection, instant, path, restoring)
    if instant.action in WRITE_ACTIONS:
        return _write(inspection, instant, path, with_files, restoring)
    problem = _lost_plan(inspection, instant)
    return None if problem is None else _without_plan(inspection, instant, path, problem, with_files)


def _write(
    inspection: Inspection, instant: Instant, path: str, with_files: set[str], restoring: bool
) -> Finding | None:
    try:
        if instant.action == "replacecommit" and is_clustering(inspection, instant):
            return None
    except CorruptTableError as error:
        return _without_plan(inspection, instant, path, str(error), with_files)
    advice = "A write without a live heartbeat; it is rolled back."
    return _undone(inspection, instant, path, advice, restoring)


def _rollback(inspection: Inspection, instant: Instant, path: str, restoring: bool) -> Finding:
    """A pending rollback is finished, as the next write would."""
    requested = inspection.files_of(instant).get(State.REQUESTED)
    try:
        body = b"" if requested is None else inspection.storage.read_bytes(requested.path)
        plan = decode_rollback_plan(body, path)
    except (CorruptTableError, FileNotFoundError):
        if requested is not None and instant.state is State.REQUESTED:
            advice = "A rollback whose plan was never completed; it is removed from the timeline."
            return _undone(inspection, instant, path, advice, restoring)
        advice = (
            "An inflight rollback whose plan is lost, and with it the list of files to delete. Find and delete the "
            "data files of the instant that it rolls back, then delete the rollback's files on the timeline."
        )
        return Finding("dangling instant", instant.requested, path, 0, False, advice)
    try:
        target = checked_rollback(inspection.storage, plan, path).instant
    except CorruptTableError as error:
        advice = f"{error} No write can begin until then."
        return Finding("dangling instant", instant.requested, path, 0, False, advice)
    advice = f"An abandoned rollback of {target}; it is finished."
    if any(one.requested == target for one in inspection.timeline.writes()):
        advice = f"An abandoned rollback of {target}; it is finished. {target} is complete: its rows are removed."
    return _undone(inspection, instant, path, advice, restoring)


def _undone(inspection: Inspection, instant: Instant, path: str, advice: str, restoring: bool) -> Finding:
    if restoring:
        advice = "Finish the pending restore first."
    elif inspection.busy:
        advice = "A writer of this machine holds the table's lock, and may be running it. Try again later."
    return Finding("failed write", instant.requested, path, 0, not (restoring or inspection.busy), advice)


def _half_savepoint(inspection: Inspection, instant: Instant, path: str) -> Finding | None:
    file = inspection.files_of(instant).get(State.INFLIGHT)
    if file is None or inspection.age_ms(file) < _LEFT_BEHIND_MS:
        return None
    advice = "An abandoned inflight savepoint; it is removed from the timeline."
    return Finding("dangling instant", instant.requested, path, file.size, True, advice)


def _lost_plan(inspection: Inspection, instant: Instant) -> str | None:
    """Why the plan of a pending service cannot be read; None when it can."""
    requested = inspection.files_of(instant).get(State.REQUESTED)
    if requested is None:
        return "there is no requested file."
    if instant.action in _PLANS:
        try:
            body = inspection.storage.read_bytes(requested.path)
            if not body:
                return "the requested file is empty."
            _PLANS[instant.action](inspection.storage, body, requested.path)
        except CorruptTableError as error:
            return str(error)
        except FileNotFoundError:  # another process completed or removed it
            return None
    return None


def _without_plan(inspection: Inspection, instant: Instant, path: str, problem: str, with_files: set[str]) -> Finding:
    """A service without a plan. It is removed from the timeline if it made no files."""
    what = f"A {instant.action} whose plan is lost: {problem.rstrip('.')}."
    size = sum(file.size for file in inspection.files_of(instant).values())
    if instant.action == "indexing" and instant.state is State.INFLIGHT:
        advice = f"{what} Drop the index that it was building, then delete the files of this instant."
    elif instant.requested in with_files:
        advice = (
            f"{what} There are data files of this instant, and they may hold rows. Restore the requested file; other "
            "data files cannot be checked before."
        )
    else:
        advice = f"{what} It has no data files, and is removed from the timeline. Plan the repair again after that."
        return Finding("dangling instant", instant.requested, path, size, True, advice)
    return Finding("dangling instant", instant.requested, path, size, False, advice)


# ---- completed


def _completed(inspection: Inspection, instant: Instant) -> Finding | None:
    file = inspection.files_of(instant).get(State.COMPLETED)
    if file is None:
        return None
    if instant.action in WRITE_ACTIONS:
        if file.size and _reads(inspection, file, decode_commit_metadata):
            return None
        return _lost_body(inspection, instant, file)
    elif instant.action not in _BODIES or (file.size and _reads(inspection, file, _BODIES[instant.action])):
        return None
    else:
        advice = f"The body of a completed {instant.action} is empty or truncated. {_LOST[instant.action]}"
    return Finding("dangling instant", instant.requested, file.path, file.size, False, advice)


def _lost_body(inspection: Inspection, instant: Instant, file: FileStat) -> Finding:
    """A completed write whose body is lost: it is written again where its files are certain."""
    lost = "A completed write whose body is empty or truncated"
    try:
        rebuilt_body(inspection, instant)
    except UncertainError as error:
        advice = (
            f"{lost}, so that its files are unknown: {error}. Restore the file, or roll the write back with "
            "services.rollback() or `hudi-fast rollback`, and write its rows again."
        )
        return Finding("dangling instant", instant.requested, file.path, file.size, False, advice)
    advice = (
        f"{lost}. The metadata table lists its files, and all are there: the body is written again. Its figures of "
        "rows, and a checkpoint of a stream, stay lost."
    )
    return Finding("lost body", instant.requested, file.path, file.size, True, advice)


def _reads(inspection: Inspection, file: FileStat, decode: _Decode) -> bool:
    """Whether a body can be decoded; True for one that was deleted in the meantime."""
    try:
        decode(inspection.storage.read_bytes(file.path), file.path)
    except CorruptTableError:
        return False
    except FileNotFoundError:
        return True
    return True


def _instants_with_files(inspection: Inspection) -> set[str]:
    """Requested times in the names of data files."""
    entries = (entry for found in inspection.partitions.values() for entry in found)
    parsed = (parse_base_file(entry) or parse_log_file(entry) for entry in entries)
    return {one.instant for one in parsed if one is not None}


def _path(inspection: Inspection, instant: Instant) -> str:
    return f"{inspection.config.timeline_folder}/{instant.file_name}"
