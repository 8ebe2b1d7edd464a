"""Rewriting a base file with rows replaced, dropped and appended (``HoodieWriteMergeHandle``, ``HoodieConcatHandle``;
Hudi 1.2.0).

Nobody looks at keys here: the work names base rows by position. First it is settled which incoming rows win
(:func:`settle`), then the row groups are walked: those that are replaced whole are not even read, the others pass
through in batches, so memory holds one batch of the old file and one row group of the new one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.formats.parquet_base import BaseFileReader, open_base_file
from hudi_fast.merge.interleave import replace_rows
from hudi_fast.merge.rules import at_least, ordering_columns
from hudi_fast.schema.conform import ConformPlan, plan_conform
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.file_names import BaseFile
from hudi_fast.writing.file_columns import CONSTANT_META, META_COLUMNS, RECORD_KEY, constant_column, writer_schema
from hudi_fast.writing.gather import gather, gather_array
from hudi_fast.writing.key_footer import KeyFooter
from hudi_fast.writing.output_file import BATCH_ROWS, OutputFile, Rows, chunks, new_rows
from hudi_fast.writing.plan import FileGroupWork, Incoming, WritePlan

__all__ = ["incoming_wins", "rewrite_file_group"]


def rewrite_file_group(plan: WritePlan, work: FileGroupWork, base: BaseFile, incoming: Incoming) -> WriteStat:
    """Write the next version of a base file."""
    with open_base_file(plan.storage, base.path) as reader:
        changes = _settle(plan, work, incoming, reader)
        footer = KeyFooter.for_rewritten_file(plan, reader.footer(), base.path)
        with OutputFile(plan, work, work.file_id, "MERGE", footer) as output:
            for table in _merged_tables(plan, work, incoming, reader, changes, output.name):
                output.write(table)
                footer.carry(table.column(RECORD_KEY))
            first = work.first_sequence + len(changes.replaced)
            for part in chunks(work.inserts):
                output.write(new_rows(plan, work, incoming, part, output.name, first))
                footer.add(gather_array(incoming.key_array(), part))
                first += len(part)
            size = output.close()
    return WriteStat(
        file_id=work.file_id,
        path=output.path,
        prev_commit=base.instant,
        prev_base_file=base.name,
        partition_path=work.partition,
        num_writes=output.rows,
        num_inserts=len(work.inserts),
        num_update_writes=len(changes.replaced),
        num_deletes=len(changes.dropped),
        total_write_bytes=size,
        file_size=size,
    )


# ---- what wins


@dataclass(frozen=True)
class _Changes:
    """What happens to the base file's rows.

    Attributes:
        replaced: int64[u], ascending rows of the base file that get new values.
        sources: int64[u], the incoming rows they come from.
        dropped: int64[d], ascending rows of the base file that go.
    """

    replaced: Rows
    sources: Rows
    dropped: Rows


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
    plan: WritePlan, incoming: Incoming, reader: BaseFileReader, base_rows: Rows, sources: Rows
) -> npt.NDArray[np.bool_]:
    """For pairs of stored and incoming rows with one key, whether the incoming one stays."""
    roots = sorted({name.split(".")[0] for name in plan.rules.ordering_fields})
    names = [name for name in roots if name in reader.schema.names]
    wanted = pa.schema([plan.schema.field(name).with_nullable(True) for name in roots])
    if names:
        conforming = plan_conform(pa.schema([reader.schema.field(name) for name in names]), wanted)
        stored = gather(conforming.apply(reader.read(names)).combine_chunks(), base_rows)
    else:  # a file older than the ordering column
        stored = pa.table({field.name: pa.nulls(len(base_rows), field.type) for field in wanted})
    new = [gather_array(column, sources) for column in incoming.ordering]
    wins = at_least(new, ordering_columns(plan.rules, stored))
    if incoming.deletes is not None:  # a delete without any ordering value always wins
        wins |= incoming.deletes[sources] & _all_null(new, len(sources))
    return wins


def _all_null(columns: list[pa.Array], count: int) -> npt.NDArray[np.bool_]:
    result = np.ones(count, dtype=np.bool_)
    for column in columns:
        result &= pc.is_null(column).to_numpy(zero_copy_only=False)
    return result


# ---- the new version's rows


def _merged_tables(
    plan: WritePlan, work: FileGroupWork, incoming: Incoming, reader: BaseFileReader, changes: _Changes, name: str
) -> Iterator[pa.Table]:
    """The rewritten rows in file order."""
    carried = _Carried.of(plan, work, reader, name)
    start = 0
    for group, rows in enumerate(reader.row_group_rows()):
        replaced = _within(changes.replaced, start, start + rows)
        if replaced.stop - replaced.start == rows:
            for low in range(replaced.start, replaced.stop, BATCH_ROWS):
                part = slice(low, min(low + BATCH_ROWS, replaced.stop))
                yield new_rows(plan, work, incoming, changes.sources[part], name, work.first_sequence + low)
            start += rows
            continue
        for batch in reader.batches(carried.columns, BATCH_ROWS, [group]):
            end = start + batch.num_rows
            replaced, dropped = _within(changes.replaced, start, end), _within(changes.dropped, start, end)
            table = carried.conform(batch)
            if replaced.stop > replaced.start or dropped.stop > dropped.start:
                first = work.first_sequence + replaced.start
                updates = new_rows(plan, work, incoming, changes.sources[replaced], name, first)
                positions, gone = changes.replaced[replaced] - start, changes.dropped[dropped] - start
                table = replace_rows(table, updates.select(table.column_names), positions, gone)
            yield carried.complete(table)
            start = end


@dataclass(frozen=True)
class _Carried:
    """How rows of the old file are carried into the new one.

    Attributes:
        columns: columns to read; those with one value per file are not.
        plan: brings them to the file schema.
        schema: the writer's schema.
        constants: values of the columns with one value per file; empty when the table stores no meta columns.
    """

    columns: list[str]
    plan: ConformPlan
    schema: pa.Schema
    constants: dict[str, str]

    @classmethod
    def of(cls, plan: WritePlan, work: FileGroupWork, reader: BaseFileReader, name: str) -> _Carried:
        stored = plan.config.populate_meta_fields
        constants = dict(zip(CONSTANT_META, (work.partition, name), strict=True)) if stored else {}
        left_out = CONSTANT_META if stored else META_COLUMNS
        wanted = pa.schema([field for field in plan.file_schema if field.name not in left_out])
        columns = [field.name for field in wanted if field.name in reader.schema.names]
        present = pa.schema([reader.schema.field(column) for column in columns])
        return cls(columns, plan_conform(present, wanted), writer_schema(plan), constants)

    def conform(self, batch: pa.RecordBatch) -> pa.Table:
        """Rows of the old file in today's types, without the columns that have one value per file."""
        return pa.Table.from_batches([self.plan.apply(batch)])

    def complete(self, table: pa.Table) -> pa.Table:
        """With those columns."""
        count = table.num_rows
        columns = [
            table.column(field.name)
            if field.name in table.column_names
            else constant_column(self.constants[field.name], count)
            if field.name in self.constants
            else pa.nulls(count, field.type)
            for field in self.schema
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)


def _within(rows: Rows, start: int, end: int) -> slice:
    low, high = np.searchsorted(rows, (start, end))
    return slice(int(low), int(high))
