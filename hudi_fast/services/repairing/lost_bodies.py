"""Rebuilds the body of a completed write that a power loss has emptied, if the files of the write are certain.

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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hudi_fast.errors import CorruptTableError, HudiError
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, LogBlock, scan_log_blocks
from hudi_fast.metadata_table.lister import MetadataLister
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.services.repairing.inspection import Inspection
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.storage.stored_json import stored_json
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat, encode_commit_metadata
from hudi_fast.timeline.instant import Instant, State
from hudi_fast.view.base_files import open_base
from hudi_fast.view.file_names import LOGS_NAMED_BY_WRITE, BaseFile, LogFile, parse_base_file, parse_log_file
from hudi_fast.view.table_state import read_commit

__all__ = ["UncertainError", "rebuilt_body"]

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
