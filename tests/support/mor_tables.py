"""Small MERGE_ON_READ tables, and what is in their log files: blocks are decoded by fastavro and pyarrow."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import hudi_fast as hf
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, read_content, scan_log_blocks
from hudi_fast.formats.log.delete_block import decode_delete_block, decode_positions
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat, encode_commit_metadata
from hudi_fast.timeline.instants import Instant
from hudi_fast.view.file_names import LogFile, log_order, parse_log_file
from hudi_fast.view.table_state import commits_newest_first, load_state, read_commit
from tests.support.small_tables import options, plain_rows, table_rows

__all__ = [
    "Block",
    "blocks_of",
    "log_files",
    "make_key_logged_early",
    "make_key_of_a_log",
    "make_logs_alone",
    "mor_options",
    "newest_commit",
    "stats_of",
]

VERSIONS = ("6", "8", "9")


@dataclass(frozen=True)
class Block:
    """A block of a log file.

    Attributes:
        file: name of the log file.
        kind: of the block.
        headers: as stored.
        positions: rows of the base file; None without the header.
        rows: of a data block.
        deletes: (key, partition path, ordering values...) of a delete block; no values for Hudi's default.
    """

    file: str
    kind: BlockType
    headers: dict[HeaderKey, str]
    positions: list[int] | None
    rows: list[dict[str, Any]]
    deletes: list[tuple[Any, ...]]


def mor_options(more: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Options for a MERGE_ON_READ table that is not compacted by its writes; see ``small_tables.options``."""
    return {
        **options(**changes),
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.compact.inline": "false",
        **(more or {}),
    }


def newest_commit(path: str | Path) -> tuple[Instant, CommitMetadata]:
    """The last commit and what it recorded."""
    return next(commits_newest_first(load_state(Storage(path))))


def stats_of(path: str | Path) -> list[WriteStat]:
    """Write stats of the last commit, by path."""
    return sorted(newest_commit(path)[1].write_stats(), key=lambda stat: stat.path)


def log_files(path: str | Path) -> list[LogFile]:
    """All log files of a table, by partition and in the order in which they apply."""
    entries = Storage(path).list_dir("", recursive=True)
    found = [log for log in map(parse_log_file, entries) if log is not None and ".hoodie/" not in log.path]
    return sorted(found, key=lambda log: (log.path.rpartition("/")[0], log.file_id, *log_order(log)))


def blocks_of(path: str | Path, partition: str | None = None) -> list[Block]:
    """All blocks of a table's log files, or of one partition's."""
    storage = Storage(path)
    logs = [log for log in log_files(path) if partition in (None, log.path.rpartition("/")[0])]
    return [_decoded(storage, log, block) for log in logs for block in scan_log_blocks(storage, log.path)]


def _decoded(storage: Storage, log: LogFile, block: Any) -> Block:
    content = read_content(storage, block)
    headers = dict(block.headers)
    text = headers.get(HeaderKey.RECORD_POSITIONS)
    rows: list[dict[str, Any]] = []
    deletes: list[tuple[Any, ...]] = []
    if block.kind is BlockType.AVRO_DATA:
        rows = _avro_rows(bytes(content), headers[HeaderKey.SCHEMA])
    elif block.kind is BlockType.PARQUET_DATA:
        rows = pq.read_table(content).to_pylist()
    elif block.kind is BlockType.DELETE:
        found = decode_delete_block(content, log.path, block.content_start)
        values = zip(*(column.to_pylist() for column in found.ordering), strict=True) if found.ordering else None
        keys, places = found.keys.to_pylist(), found.partitions.to_pylist()
        each = list(values) if values is not None else [()] * len(keys)
        default = found.is_default.tolist()
        deletes = [
            (key, place, *(() if plain else value))
            for key, place, value, plain in zip(keys, places, each, default, strict=True)
        ]
    positions = None if text is None else decode_positions(text).tolist()
    return Block(log.name, block.kind, headers, positions, rows, deletes)


def _avro_rows(content: bytes, schema: str) -> list[dict[str, Any]]:
    assert content[:4] == b"\x00\x00\x00\x03"
    parsed = fastavro.parse_schema(json.loads(schema))
    count, at = int.from_bytes(content[4:8], "big"), 8
    rows = []
    for _ in range(count):
        size = int.from_bytes(content[at : at + 4], "big")
        source = io.BytesIO(content[at + 4 : at + 4 + size])
        rows.append(fastavro.schemaless_reader(source, parsed, None))
        assert source.read() == b""
        at += 4 + size
    assert at == len(content)
    return rows


def make_logs_alone(path: Path, version: str, **changes: Any) -> dict[str, Any]:
    """Partition p1 has a slice of log files only, as other writers make them: k00001 and k00003, k00005 deleted."""
    # No metadata table: the base file is taken away behind its back.
    settings = {**mor_options(table_version=version, **changes), "hoodie.metadata.enable": "false"}
    hf.write(plain_rows(range(10)), path, settings)
    rows = plain_rows([1, 3, 5], ts=5, text="log").append_column("_hoodie_is_deleted", pa.array([False, None, True]))
    hf.write(rows, path, settings)
    (base,) = path.glob("p1/*.parquet")
    base.unlink()
    assert sorted(key for key, row in table_rows(path).items() if row[0] == "p1") == ["k00001", "k00003"]
    return {**settings, "hoodie.write.set.null.for.missing.columns": "true"}


def make_key_logged_early(path: Path, settings: dict[str, Any]) -> None:
    """A table of k00002, k00004, k00006 where k00004 was deleted, and written again when a compaction was pending.

    Unless a global index has given it a new place, it stands in a log alone, beside the base file of that compaction.
    """
    hf.write(plain_rows([2, 4, 6]), path, settings)
    table = hf.HudiTable.open(path)
    table.delete(plain_rows([4], ts=2), settings)
    table.services.schedule_compact({**settings, "hoodie.compact.inline.max.delta.commits": "1"})
    hf.write(plain_rows([4], ts=3, text="again"), path, settings)
    table.services.run_pending(settings)
    assert sorted(table_rows(path)) == ["k00002", "k00004", "k00006"]
    in_base_files = table.to_arrow(query_type="read_optimized").num_rows
    assert in_base_files == (3 if str(settings["hoodie.index.type"]).startswith("GLOBAL") else 2)


def make_key_of_a_log(path: Path, settings: dict[str, Any]) -> None:
    """A table of k00002, k00004, k00006; k00004 was inserted into a log, as writers of Flink do, above a base file."""
    settings = {**settings, "hoodie.metadata.enable": "false"}  # files are changed behind its back
    hf.write(plain_rows([2, 4, 6]), path, settings)
    hf.write(plain_rows([4], ts=2, text="log"), path, settings)
    (base,) = path.glob("p0/*.parquet")
    rows = pq.ParquetFile(base).read()
    pq.write_table(rows.filter(pc.field("_hoodie_record_key") != "k00004"), base)
    state = load_state(Storage(path))
    instant = state.timeline.writes()[-1]
    commit = read_commit(state.storage, state.config, instant)
    stats = {"p0": [replace(stat, num_inserts=1, num_update_writes=0) for stat in commit.write_stats()]}
    body = encode_commit_metadata(replace(commit, partition_to_write_stats=stats), state.config.layout_version)
    (path / state.config.timeline_folder / instant.file_name).write_bytes(body)
    assert sorted(table_rows(path)) == ["k00002", "k00004", "k00006"]
    assert hf.HudiTable.open(path).to_arrow(query_type="read_optimized").num_rows == 2
