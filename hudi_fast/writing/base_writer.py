"""Step 4 of a write: one file group's rows become base files.

:func:`create_file_group` writes new files from incoming rows; :func:`merge_file_group` rewrites a base file with rows
replaced, dropped and appended (``HoodieCreateHandle``, ``HoodieWriteMergeHandle``, ``HoodieConcatHandle``; 1.2.0). Both
are pure in the plan, the work and the files of the pinned slice, and return plain write stats.

Merging never looks at keys: the work names base rows by position. It first settles which incoming rows win, then walks
the row groups: those that are replaced whole are not even read, the others pass through in batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.formats.parquet_base import (
    BaseFileReader,
    BaseFileWriter,
    dictionary_columns,
    open_base_file,
)
from hudi_fast.merge.interleave import replace_rows
from hudi_fast.merge.rules import at_least, ordering_columns
from hudi_fast.schema.conform import ConformPlan, plan_conform
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.file_names import base_file_name
from hudi_fast.writing.file_columns import (
    COMMIT_SEQNO,
    COMMIT_TIME,
    CONSTANT_META,
    FILE_NAME,
    PARTITION_PATH,
    RECORD_KEY,
    constant_column,
    new_meta_columns,
    writer_schema,
)
from hudi_fast.writing.gather import gather, gather_array
from hudi_fast.writing.key_footer import KeyFooter
from hudi_fast.writing.markers import create_marker
from hudi_fast.writing.partition_marker import ensure_partition_marker
from hudi_fast.writing.plan import FileGroupWork, Incoming, WritePlan

__all__ = ["incoming_wins", "write_file_group"]

_BATCH_ROWS = 65536


def write_file_group(plan: WritePlan, work: FileGroupWork, incoming: Incoming) -> list[WriteStat]:
    """Write one file group and say what was written."""
    ensure_partition_marker(plan.storage, work.partition, plan.instant, plan.config.partition_metafile_in_base_format)
    if work.slice is None or work.slice.base_file is None:
        return _create_file_group(plan, work, incoming)
    return [_merge_file_group(plan, work, incoming)]


# ---- new file groups


def _create_file_group(plan: WritePlan, work: FileGroupWork, incoming: Incoming) -> list[WriteStat]:
    """Write ``work.inserts``; a file that is full is followed by another with the next suffix."""
    stats: list[WriteStat] = []
    prefix, _, suffix = work.file_id.rpartition("-")
    rows, start = work.inserts, 0
    while start < len(rows) or not stats:
        file_id = f"{prefix}-{int(suffix) + len(stats)}"
        stat = _create_file(plan, work, file_id, incoming, rows[start:], work.first_sequence + start)
        start += stat.num_writes
        stats.append(stat)
    return stats


def _create_file(
    plan: WritePlan,
    work: FileGroupWork,
    file_id: str,
    incoming: Incoming,
    rows: npt.NDArray[np.int64],
    first_sequence: int,
) -> WriteStat:
    name, path = _announce(plan, work, file_id, "CREATE")
    footer = KeyFooter.for_new_file(plan)
    writer: BaseFileWriter | None = None
    ceiling = plan.sizing.max_file_size * (1 + plan.sizing.compression_slack) - 2 * plan.average_record_size
    try:
        for chunk in _chunks(rows, _BATCH_ROWS):
            table = _new_rows(plan, work, incoming, chunk, name, first_sequence)
            writer = writer or _open_writer(plan, path, table)
            writer.write(table)
            footer.add(gather_array(incoming.key_array(), chunk))
            first_sequence += len(chunk)
            if _encoded_estimate(writer) > ceiling:
                break
        if writer is None:
            writer = _open_writer(plan, path, writer_schema(plan).empty_table())
        size = writer.close(footer.finish())
    except BaseException:
        if writer is not None:
            writer.abort()
        raise
    return WriteStat(
        file_id=file_id,
        path=path,
        prev_commit="null",
        partition_path=work.partition,
        num_writes=writer.rows,
        num_inserts=writer.rows,
        total_write_bytes=size,
        file_size=size,
    )


def _new_rows(
    plan: WritePlan, work: FileGroupWork, incoming: Incoming, rows: npt.NDArray[np.int64], name: str, first: int
) -> pa.Table:
    """Incoming rows with meta columns, in the writer's schema."""
    schema = writer_schema(plan)
    if not len(rows):  # a delete by key brings no columns
        return schema.empty_table()
    keys = gather_array(incoming.key_array(), rows)
    meta = new_meta_columns(plan, keys, work.partition, name, work.token.task, first)
    data = gather(incoming.rows, rows)
    columns = [*meta, *(data.column(field.name) for field in list(schema)[5:])]
    return pa.Table.from_arrays(columns, schema=schema)


# ---- existing file groups


@dataclass(frozen=True)
class _Changes:
    """What happens to the base file's rows.

    Attributes:
        replaced: int64[u], ascending rows of the base file that get new values.
        sources: int64[u], the incoming rows they come from.
        dropped: int64[d], ascending rows of the base file that go.
    """

    replaced: npt.NDArray[np.int64]
    sources: npt.NDArray[np.int64]
    dropped: npt.NDArray[np.int64]


def _merge_file_group(plan: WritePlan, work: FileGroupWork, incoming: Incoming) -> WriteStat:
    assert work.slice is not None
    base = work.slice.base_file
    assert base is not None
    with open_base_file(plan.storage, base.path) as reader:
        changes = _settle(plan, work, incoming, reader)
        name, path = _announce(plan, work, work.file_id, "MERGE")
        footer = KeyFooter.for_rewritten_file(plan, reader.footer(), base.path)
        writer = _open_writer_like(plan, path, reader)
        try:
            for table in _merged_tables(plan, work, incoming, reader, changes, name):
                writer.write(table)
                footer.carry(table.column(RECORD_KEY))
            for chunk in _chunks(work.inserts, _BATCH_ROWS):
                first = work.first_sequence + len(changes.replaced) + (writer.rows - _kept(reader, changes))
                writer.write(_new_rows(plan, work, incoming, chunk, name, first))
                footer.add(gather_array(incoming.key_array(), chunk))
            size = writer.close(footer.finish())
        except BaseException:
            writer.abort()
            raise
    return WriteStat(
        file_id=work.file_id,
        path=path,
        prev_commit=base.instant,
        prev_base_file=base.name,
        partition_path=work.partition,
        num_writes=writer.rows,
        num_inserts=len(work.inserts),
        num_update_writes=len(changes.replaced),
        num_deletes=len(changes.dropped),
        total_write_bytes=size,
        file_size=size,
    )


def _kept(reader: BaseFileReader, changes: _Changes) -> int:
    return reader.num_rows - len(changes.dropped)


def _settle(plan: WritePlan, work: FileGroupWork, incoming: Incoming, reader: BaseFileReader) -> _Changes:
    """Compare ordering values where they decide; what loses leaves the stored row alone."""
    base_rows, sources = work.base_rows, work.incoming_rows
    deletes = np.zeros(len(sources), dtype=np.bool_)
    if incoming.deletes is not None:
        deletes |= incoming.deletes[sources]
    decided = np.zeros(len(sources), dtype=np.bool_) if work.moved is None else work.moved
    if incoming.ordering and not decided.all():
        wins = decided | incoming_wins(plan, incoming, reader, base_rows, sources)
        base_rows, sources, deletes, decided = base_rows[wins], sources[wins], deletes[wins], decided[wins]
    gone = deletes | decided
    return _Changes(base_rows[~gone], sources[~gone], base_rows[gone])


def incoming_wins(
    plan: WritePlan,
    incoming: Incoming,
    reader: BaseFileReader,
    base_rows: npt.NDArray[np.int64],
    sources: npt.NDArray[np.int64],
) -> npt.NDArray[np.bool_]:
    """For pairs of stored and incoming rows with one key, whether the incoming one stays."""
    names = sorted({name.split(".")[0] for name in plan.rules.ordering_fields} & set(reader.schema.names))
    stored_schema = pa.schema([plan.schema.field(name).with_nullable(True) for name in _roots(plan)])
    stored = plan_conform(pa.schema([reader.schema.field(name) for name in names]), stored_schema)
    table = stored.apply(reader.read(names)) if names else stored_schema.empty_table()
    if not names:  # a file older than the ordering column: all null
        table = pa.table({f.name: pa.nulls(reader.num_rows, f.type) for f in stored_schema})
    picked = table.take(pa.array(base_rows))
    take = pa.array(sources)
    wins = at_least([column.take(take) for column in incoming.ordering], ordering_columns(plan.rules, picked))
    if incoming.deletes is not None:
        wins |= incoming.deletes[sources] & _all_default(incoming, take)
    return wins


def _roots(plan: WritePlan) -> list[str]:
    return sorted({name.split(".")[0] for name in plan.rules.ordering_fields})


def _all_default(incoming: Incoming, rows: pa.Array) -> npt.NDArray[np.bool_]:
    """Rows without any ordering value: as deletes they are commit-time deletes and always win."""
    result = np.ones(len(rows), dtype=np.bool_)
    for column in incoming.ordering:
        result &= pc.is_null(column.take(rows)).to_numpy(zero_copy_only=False)
    return result


def _merged_tables(
    plan: WritePlan, work: FileGroupWork, incoming: Incoming, reader: BaseFileReader, changes: _Changes, name: str
) -> Iterator[pa.Table]:
    """The rewritten rows in file order; at most one batch of base rows is held at a time."""
    updates = _new_rows(plan, work, incoming, changes.sources, name, work.first_sequence)
    carried = _Carried.of(plan, reader)
    start = 0
    for group, rows in enumerate(reader.row_group_rows()):
        replaced = _within(changes.replaced, start, start + rows)
        if replaced.stop - replaced.start == rows:
            yield updates.slice(replaced.start, rows)
            start += rows
            continue
        for batch in reader.batches(carried.columns, _BATCH_ROWS, [group]):
            end = start + batch.num_rows
            replaced, dropped = _within(changes.replaced, start, end), _within(changes.dropped, start, end)
            table = carried.complete(batch, work.partition, name)
            count = replaced.stop - replaced.start
            if count or dropped.stop > dropped.start:
                positions, gone = changes.replaced[replaced] - start, changes.dropped[dropped] - start
                table = replace_rows(table, updates.slice(replaced.start, count), positions, gone)
            yield table
            start = end


@dataclass(frozen=True)
class _Carried:
    """How rows of the old file are carried into the new one.

    Attributes:
        columns: columns to read; those with one value per file are not.
        conform: brings them to the file schema.
        schema: the writer's schema.
        constants: whether partition path and file name are filled in.
    """

    columns: list[str]
    conform: ConformPlan
    schema: pa.Schema
    constants: bool

    @classmethod
    def of(cls, plan: WritePlan, reader: BaseFileReader) -> _Carried:
        schema = writer_schema(plan)
        constants = plan.config.populate_meta_fields
        wanted = pa.schema([f for f in plan.file_schema if not (constants and f.name in CONSTANT_META)])
        if not constants:
            wanted = pa.schema(list(wanted)[5:])
        columns = [field.name for field in wanted if field.name in reader.schema.names]
        present = pa.schema([reader.schema.field(column) for column in columns])
        return cls(columns, plan_conform(present, wanted), schema, constants)

    def complete(self, batch: pa.RecordBatch, partition: str, name: str) -> pa.Table:
        table = pa.Table.from_batches([self.conform.apply(batch)])
        count = table.num_rows
        if not self.constants:
            meta = [pa.nulls(count, pa.string())] * 5
        else:
            known = [table.column(column) for column in (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY)]
            meta = [*known, constant_column(partition, count), constant_column(name, count)]
        data = [table.column(field.name) for field in list(self.schema)[5:]]
        return pa.Table.from_arrays([*meta, *data], schema=self.schema)


# ---- shared


def _announce(plan: WritePlan, work: FileGroupWork, file_id: str, kind: str) -> tuple[str, str]:
    name = base_file_name(file_id, str(work.token), plan.instant)
    path = f"{work.partition}/{name}" if work.partition else name
    create_marker(plan.storage, plan.instant, path, kind)
    return name, path


def _open_writer(plan: WritePlan, path: str, sample: pa.Table) -> BaseFileWriter:
    constant = [COMMIT_TIME, *CONSTANT_META]
    chosen = dictionary_columns(sample, constant, [RECORD_KEY, COMMIT_SEQNO])
    return BaseFileWriter(plan.storage, path, writer_schema(plan), plan.parquet, plan.avro_schema, chosen)


def _open_writer_like(plan: WritePlan, path: str, reader: BaseFileReader) -> BaseFileWriter:
    """Columns that the old file held with a dictionary keep it; new columns start with one."""
    new = [field.name for field in plan.file_schema if field.name not in reader.schema.names]
    chosen = {*reader.dictionary_encoded(), COMMIT_TIME, PARTITION_PATH, FILE_NAME, *new} - {RECORD_KEY, COMMIT_SEQNO}
    return BaseFileWriter(plan.storage, path, writer_schema(plan), plan.parquet, plan.avro_schema, sorted(chosen))


def _encoded_estimate(writer: BaseFileWriter) -> float:
    """Bytes that the file would have if it ended now; waiting rows are taken to compress as others did."""
    return writer.bytes_encoded + writer.bytes_waiting * 0.35


def _chunks(rows: npt.NDArray[np.int64], size: int) -> Iterator[npt.NDArray[np.int64]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _within(rows: npt.NDArray[np.int64], start: int, end: int) -> slice:
    low, high = np.searchsorted(rows, (start, end))
    return slice(int(low), int(high))
