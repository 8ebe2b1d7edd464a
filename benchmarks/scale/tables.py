"""Tables with very many file groups, made in seconds.

::

    a few template files ─► one hard link per file group ─► WriteStat ─► run_write: metadata table, commit, timeline

The library's own write flow makes the table; only its engine is replaced. :class:`LinkingEngine` writes one base file
for each position in a partition (``groups / partitions`` files) and links it under the proper name of every file group.
The commit, its write statistics, the records of the metadata table and the timeline are those of a real write.

The rows of a link name the partition of its template, so that these tables are for planning; rows that are read from
them are not meaningful. Statistics of the partition column are those of the file group's own partition.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from hudi_fast.formats.log.blocks import BlockType, HeaderKey, encode_block
from hudi_fast.formats.log.delete_block import DeleteRecords, encode_delete_block
from hudi_fast.formats.parquet.column_ranges import ColumnRange, ColumnRanges
from hudi_fast.sessions import open_session
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.file_names import base_file_name, log_file_name
from hudi_fast.view.slices import latest_slices
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.file_group import write_file_group
from hudi_fast.writing.flow import run_write
from hudi_fast.writing.markers import ensure_partition_marker
from hudi_fast.writing.prepare import prepare_rows
from hudi_fast.writing.settings import Settings
from hudi_fast.writing.write_plan import FileGroupWork, Incoming, TaskToken, WriteOutcome, WritePlan

__all__ = ["OPTIONS", "TableSize", "add_logs", "make_table", "partition_name", "rows_of"]

ROWS_PER_FILE = 50
_NO_ROWS = np.zeros(0, np.int64)

OPTIONS = {
    "hoodie.table.name": "scale",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
}
"""Options of the tables and of writes to them; services are measured on their own."""


@dataclass(frozen=True, kw_only=True)
class TableSize:
    """The shape of a table.

    Attributes:
        groups: file groups.
        partitions: partitions; each has ``groups / partitions`` file groups, rounded up.
        groups_per_commit: file groups that one commit writes.
        statistics: whether the metadata table has ``column_stats`` and ``partition_stats``.
        table_type: ``COPY_ON_WRITE`` or ``MERGE_ON_READ``.
    """

    groups: int
    partitions: int
    groups_per_commit: int = 10_000
    statistics: bool = True
    table_type: str = "COPY_ON_WRITE"

    @property
    def per_partition(self) -> int:
        """File groups of a partition."""
        return -(-self.groups // self.partitions)

    def options(self) -> dict[str, str]:
        """The options of the table."""
        switch = str(self.statistics).lower()
        return {
            **OPTIONS,
            "hoodie.datasource.write.table.type": self.table_type,
            "hoodie.metadata.index.column.stats.enable": switch,
            "hoodie.metadata.index.partition.stats.enable": switch,
        }


def partition_name(number: int) -> str:
    """The path of a partition."""
    return f"p{number:06d}"


def rows_of(position: int, count: int = ROWS_PER_FILE, part: str = partition_name(0), first: int = 0) -> pa.Table:
    """Rows ``id, part, ts, value, text`` of the file group at a position of a partition.

    ``value`` is between ``1000 * position`` and ``1000 * position + count``.
    """
    numbers = np.arange(first, first + count)
    return pa.table(
        {
            "id": pa.array([f"key-{position:04d}-{number:08d}" for number in numbers]),
            "part": pa.array([part] * count),
            "ts": pa.array(np.ones(count, np.int64)),
            "value": pa.array(1000 * position + numbers),
            "text": pa.array([f"text of row {number}" for number in numbers]),
        }
    )


def make_table(path: str | os.PathLike[str], size: TableSize) -> int:
    """Make a table of version 9 with a metadata table; returns its number of commits."""
    names = [partition_name(number) for number in range(size.partitions)]
    step = max(1, size.groups_per_commit // size.per_partition)
    parts = [names[start : start + step] for start in range(0, len(names), step)]
    for part in parts:
        _write(path, size.options(), LinkingEngine(part, size.per_partition))
    return len(parts)


def add_logs(path: str | os.PathLike[str], size: TableSize, partitions: Sequence[str]) -> None:
    """One commit with a log file for each file group of the partitions; the table is ``MERGE_ON_READ``."""
    _write(path, size.options(), LoggingEngine(partitions))


def _write(path: str | os.PathLike[str], options: Mapping[str, Any], engine: LinkingEngine | LoggingEngine) -> None:
    session = open_session(Storage(path), Settings.for_write(options))
    with session.keeping_turn():
        run_write(session, engine, "append")


class LinkingEngine:
    """Adds file groups to partitions; links one template file per position.

    Args:
        partitions: partition paths.
        per_partition: file groups to add to each.
    """

    def __init__(self, partitions: Sequence[str], per_partition: int) -> None:
        self._partitions = partitions
        self._rows = pa.concat_tables([rows_of(position) for position in range(per_partition)])
        self._per_partition = per_partition
        self._incoming: Incoming | None = None

    def input_schema(self, state: TableState) -> pa.Schema:
        return self._rows.schema

    def prepare(self, plan: WritePlan) -> None:
        self._incoming = prepare_rows(plan, self._rows)

    def execute(self, plan: WritePlan) -> WriteOutcome:
        templates = [self._template(plan, position) for position in range(self._per_partition)]
        with ThreadPoolExecutor(4) as pool:
            linked = pool.map(lambda one: list(_links(plan, one[1], one[0], templates)), enumerate(self._partitions))
            stats = [stat for found in linked for stat in found]
        for one in templates:
            plan.storage.delete_file(one.path)
        return WriteOutcome(stats, "links", "a table for measurements", frozenset(self._partitions))

    def _template(self, plan: WritePlan, position: int) -> WriteStat:
        assert self._incoming is not None
        name, file_id = self._partitions[0], f"{uuid.uuid4()}-0"
        rows = np.arange(position * ROWS_PER_FILE, (position + 1) * ROWS_PER_FILE)
        work = FileGroupWork(name, file_id, None, _NO_ROWS, _NO_ROWS, None, rows, TaskToken(position))
        return write_file_group(plan, work, self._incoming)[0]


class LoggingEngine:
    """Adds a log file without rows to each file group of some partitions; links one template file.

    Args:
        partitions: partition paths.
    """

    def __init__(self, partitions: Sequence[str]) -> None:
        self._partitions = partitions

    def input_schema(self, state: TableState) -> pa.Schema:
        return rows_of(0, 0).schema

    def prepare(self, plan: WritePlan) -> None:
        pass

    def execute(self, plan: WritePlan) -> WriteOutcome:
        none = pa.array([], pa.string())
        content = encode_delete_block(DeleteRecords(none, none, (), np.ones(0, np.bool_)))
        block = b"".join(map(bytes, encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: plan.instant}, content)))
        stats: list[WriteStat] = []
        for name in self._partitions:
            first = ""
            for one in latest_slices(plan.view, name):
                log = log_file_name(one.file_id, plan.instant, 1, "0-0-0")
                path = f"{name}/{log}"
                if first:
                    _link(plan.storage, first, path)
                else:
                    plan.storage.write_bytes(path, block)
                    first = path
                stats.append(
                    WriteStat(
                        file_id=one.file_id,
                        path=path,
                        prev_commit=one.base_instant,
                        partition_path=name,
                        num_update_writes=1,
                        total_write_bytes=len(block),
                        file_size=len(block),
                        log_files=(log,),
                        log_version=1,
                        log_offset=0,
                        column_ranges={},
                    )
                )
        return WriteOutcome(stats, "links", "a table for measurements", frozenset(self._partitions))


def _links(plan: WritePlan, name: str, number: int, templates: Sequence[WriteStat]) -> Iterator[WriteStat]:
    ensure_partition_marker(plan.storage, name, plan.instant, plan.config.partition_metafile_in_base_format)
    for position, template in enumerate(templates):
        file_id = f"{uuid.uuid4()}-0"
        path = f"{name}/{base_file_name(file_id, f'{number}-{position}-0', plan.instant)}"
        _link(plan.storage, template.path, path)
        ranges = template.column_ranges
        yield replace(
            template,
            file_id=file_id,
            path=path,
            partition_path=name,
            column_ranges=None if ranges is None else _in_partition(ranges, name),
        )


def _in_partition(ranges: ColumnRanges, name: str) -> ColumnRanges:
    """The ranges with the partition columns of another partition."""
    here = pa.scalar(name)
    own = {
        column: replace(one, low=here, high=here)
        for column, one in ranges.items()
        if column in ("part", "_hoodie_partition_path")
    }
    found: dict[str, ColumnRange] = {**ranges, **own}
    return found


def _link(storage: Storage, source: str, target: str) -> None:
    os.link(storage.fs_path(source), storage.fs_path(target))
