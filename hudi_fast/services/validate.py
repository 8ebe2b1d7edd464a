"""Compares every partition of the metadata table with the files of the table.

::

    folders, footers, rows ─► the sources that would build the partition ─► by file group ─┐
                                                                                           ├─► compared ─► differences
    metadata table ─ read group by group, as readers do ───────────────────────────────────┘

A process, or a Spark task, has one file group in memory at a time, data beyond a memory budget is in a local file, and
compiled code compares rows: this suits indexes of millions of keys. Nothing is written. A partition that is being built
is skipped.

Source: HoodieMetadataTableValidator, Hudi 1.2.0.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Self, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import ConfigError, CorruptTableError, HudiError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.formats.parquet.leaf_columns import leaf_columns
from hudi_fast.merging.log_scan import is_rolled_back
from hudi_fast.merging.rules import slice_merge
from hudi_fast.metadata_table.keys import NON_PARTITIONED
from hudi_fast.metadata_table.layout import PartitionKind, index_version, kind_of
from hudi_fast.metadata_table.read import record_kind, scan
from hudi_fast.metadata_table.records import decode_records, flat_schema
from hudi_fast.metadata_table.stat_values import StatsVersion, indexed_columns
from hudi_fast.metadata_table.table import MetadataTable, examine_metadata
from hudi_fast.metadata_table.updates.commit import log_writer
from hudi_fast.metadata_table.updates.groups import GroupWriter
from hudi_fast.metadata_table.updates.produce import ProducerContext, RecordSource, sources_of_table
from hudi_fast.metadata_table.updates.produce_base import EncodedRecords, stored_schema
from hudi_fast.metadata_table.updates.produce_expression import check_expression
from hudi_fast.metadata_table.updates.record_bins import RECORDS, Bin, Entries
from hudi_fast.reading.inspecting.results import ShownResult
from hudi_fast.services.validation import ROWS, StatsSeen, Stored, compare_rows, difference, stored_files
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import parse_log_file
from hudi_fast.view.listing import PARTITION_MARKERS
from hudi_fast.view.lost_files import require_bodies, written_sizes
from hudi_fast.view.table_state import TableState, commits_newest_first, load_state, table_schema
from hudi_fast.writing.backend import Backend
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.settings import Settings

__all__ = ["DIFFERENCES", "SUMMARY", "ValidationResult", "validate_metadata"]

DIFFERENCES = pa.schema(
    [
        pa.field("partition", pa.string(), nullable=False),
        pa.field("what", pa.string(), nullable=False),
        pa.field("key", pa.string()),
        pa.field("expected", pa.string()),
        pa.field("found", pa.string()),
    ]
)
"""Schema of the differences: one row each, with the metadata partition and the file, key or column."""

SUMMARY = pa.schema(
    [
        pa.field("partition", pa.string(), nullable=False),
        pa.field("expected", pa.int64()),
        pa.field("found", pa.int64()),
        pa.field("differences", pa.int64(), nullable=False),
        pa.field("seconds", pa.float64()),
        pa.field("note", pa.string()),
    ]
)
"""Schema of the summary: one row per metadata partition with the numbers of expected and found records, and the time.

``note`` says why a partition could not be checked."""


@dataclass(frozen=True, slots=True)
class ValidationResult(ShownResult):
    """The result of a validation.

    Attributes:
        differences: of :data:`DIFFERENCES`; the first ones of each metadata partition.
        summary: of :data:`SUMMARY`; counts all differences. Empty for a table without a metadata table.
    """

    differences: pa.Table
    summary: pa.Table

    @property
    def ok(self) -> bool:
        """Whether there are no differences."""
        return not any(self.summary.column("differences").to_pylist())


def validate_metadata(session: TableSession, partitions: Sequence[str] = (), limit: int = 1000) -> ValidationResult:
    """Compare the metadata table with the table.

    Args:
        session: the call.
        partitions: metadata partitions to compare; empty for all.
        limit: maximum number of listed differences per metadata partition.

    Raises:
        ConfigError: the table's metadata table has no such partition.
        CorruptTableError: a file of the table itself is damaged.
        UnsupportedFeatureError: the table merges its rows in a way that is not supported.
    """
    storage = session.storage
    state = load_state(storage)
    config = state.config
    unknown = [name for name in partitions if name not in config.metadata_partitions]
    if unknown:
        raise ConfigError(
            f"The metadata table of {storage.uri} has no partition {unknown[0]!r}; it has "
            f"{', '.join(config.metadata_partitions) or 'none'}."
        )
    require_bodies(storage, state.timeline)
    found = _lost_content(state)
    if not config.metadata_partitions:
        return _result(found)
    table, problem = examine_metadata(storage, config, state.timeline)
    if problem is not None:
        found.append(_untrusted(problem))
    if table is not None:
        validation = _prepared(state, table, session.settings)
        chosen = partitions or table.partitions
        found += [_validated(validation, session.backend, name, limit) for name in chosen]
    return _result(found)


# ---- results


def _result(found: Iterable[tuple[pa.Table, dict[str, object]]]) -> ValidationResult:
    pairs = list(found)
    differences = pa.concat_tables([DIFFERENCES.empty_table(), *(table for table, _ in pairs)])
    return ValidationResult(differences, pa.Table.from_pylist([row for _, row in pairs], SUMMARY))


def _lost_content(state: TableState) -> list[tuple[pa.Table, dict[str, object]]]:
    """Data files that are shorter than a completed write of the active timeline says."""
    sizes = written_sizes(commits_newest_first(state))
    folders = {path.rpartition("/")[0] for path in sizes}
    entries = (entry for folder in sorted(folders) for entry in state.storage.list_dir(folder))
    rows = [
        difference("shorter than its commit says", one.path, str(sizes[one.path][1]), str(one.size))
        for one in entries
        if one.path in sizes and one.size < sizes[one.path][1]
    ]
    return [(_named("", rows), {"partition": "", "differences": len(rows)})] if rows else []


def _untrusted(problem: str) -> tuple[pa.Table, dict[str, object]]:
    rows = _named("", [difference("not to be trusted", found=problem)])
    return rows, {"partition": "", "differences": 1}


def _named(partition: str, tables: Sequence[pa.Table]) -> pa.Table:
    rows = pa.concat_tables(tables)
    names = pa.repeat(pa.scalar(partition, pa.string()), rows.num_rows)
    return rows.add_column(0, DIFFERENCES.field(0), names).cast(DIFFERENCES)


# ---- one partition


def _prepared(state: TableState, table: MetadataTable, settings: Settings) -> Validation:
    config, schema = state.config, table_schema(state) or pa.schema([])
    stats = table.definitions.get(PartitionKind.COLUMN_STATS)
    version = cast(StatsVersion, index_version(PartitionKind.COLUMN_STATS, config.version, table.definitions))
    columns = indexed_columns(schema, version, config.populate_meta_fields) if stats is None else stats.source_fields
    context = ProducerContext(
        storage=state.storage,
        config=config,
        view=state.view,
        merge=slice_merge(state, settings.merger),
        metadata=None,  # expected records follow from the table alone
        schema=schema,
        indexed_columns=tuple(columns),
        definitions=table.definitions,
    )
    return Validation(table, context, stored_files(context))


@dataclass
class _Counts:
    """Numbers of expected and found records and of differences; updated while a partition is compared."""

    expected: int = 0
    found: int = 0
    differences: int = 0


def _validated(
    validation: Validation, backend: Backend, partition: str, limit: int
) -> tuple[pa.Table, dict[str, object]]:
    """The first differences of one metadata partition, and its row of the summary."""
    started = time.monotonic()
    reason = validation.table.unusable(partition)
    if reason is not None:
        return _named(partition, [difference("unusable", found=reason)]), {"partition": partition, "differences": 1}
    counts, shown, note = _Counts(), [DIFFERENCES.empty_table()], None
    left = limit
    try:
        for rows in _differences(validation, backend, partition, counts, limit):
            shown.append(_named(partition, [rows.slice(0, left)]))
            left -= shown[-1].num_rows
    except UnsupportedFeatureError as error:
        note = f"not checked: {error}"
    row = {
        "partition": partition,
        "expected": counts.expected,
        "found": counts.found,
        "differences": counts.differences,
        "seconds": time.monotonic() - started,
        "note": note,
    }
    return pa.concat_tables(shown), row


def _differences(
    validation: Validation, backend: Backend, partition: str, counts: _Counts, limit: int
) -> Iterator[pa.Table]:
    """The first differences of a metadata partition, including unreadable records, by group; all are counted."""
    seen = StatsSeen()
    try:
        comparison = GroupComparison.of(validation, partition, limit)
        sources = sources_of_table(validation.context, partition, ANY_INSTANT)
        readable = [ReadableSource(source, comparison.writer) for source in sources]
        for one in backend.visit_groups(readable, comparison):
            counts.expected += one.expected
            counts.found += one.found
            counts.differences += one.differences
            yield one.rows
            if one.error is not None:
                raise one.error
            seen.join(one.seen)
        for rows in seen.missing():
            harmful = without_harmless(validation, rows)
            counts.differences += harmful.num_rows
            yield harmful
    except (CorruptTableError, InvalidDataError) as error:
        counts.differences += 1
        yield difference("unreadable", found=str(error))


# ---- one file group, in this process or in a task
#
# ::
#
#     source ─► ReadableSource: records; a problem becomes a record of its own ─► by file group
#     GroupComparison: expected records of a group, stored records ─► GroupDifferences

ANY_INSTANT = "00000000000000000"
"""The instant of expected records; instants are not compared."""

_PROBLEMS = ""
"""The partition of records that hold problems; its one group is visited before all others."""

_MISSING = frozenset({"missing file", "missing statistics"})
_MISSING_PARTITION = "missing partition"
_STATS = frozenset({PartitionKind.COLUMN_STATS, PartitionKind.PARTITION_STATS, PartitionKind.EXPRESSION_INDEX})


@dataclass(frozen=True)
class Validation:
    """State that all partitions of the metadata table share; picklable."""

    table: MetadataTable
    context: ProducerContext
    stored: Stored


@dataclass(frozen=True)
class GroupDifferences:
    """The result for one file group.

    Attributes:
        expected: number of expected records.
        found: number of stored records.
        differences: number of differences.
        rows: the first of them.
        error: why the comparison ended early; None if it did not.
        seen: files and partitions with statistics.
    """

    expected: int = 0
    found: int = 0
    differences: int = 0
    rows: pa.Table = field(default_factory=ROWS.empty_table)
    error: HudiError | None = None
    seen: StatsSeen = field(default_factory=StatsSeen)


@dataclass(frozen=True)
class ReadableSource:
    """A source whose rows may be impossible to index: the problem then follows the records before it."""

    source: RecordSource
    writer: GroupWriter

    @property
    def weight(self) -> int:
        """Bytes to read."""
        return self.source.weight

    def read(self, schema: str) -> Iterator[EncodedRecords]:
        """The source's records, and its problem if it has one."""
        try:
            for records in self.source.read(schema):
                if not self.writer.has_groups(records):
                    count = f"groups for {len(records.keys)} records"
                    yield _problem(difference("missing file groups", key=records.data_partition, expected=count))
                    return
                yield records
        except InvalidDataError as error:
            yield _problem(difference("rows that cannot be indexed", found=str(error)))


@dataclass(frozen=True)
class GroupComparison:
    """Compares the file groups of one metadata partition; see :class:`runner.GroupVisitor`.

    Attributes:
        types: of values in statistics, by column.
        limit: maximum number of listed differences of a group.
    """

    validation: Validation
    partition: str
    kind: PartitionKind
    writer: GroupWriter
    types: Mapping[str, pa.DataType]
    limit: int

    @classmethod
    def of(cls, validation: Validation, partition: str, limit: int) -> Self:
        """The comparison of a partition.

        Raises:
            CorruptTableError: groups of the partition are missing.
            UnsupportedFeatureError: an unknown kind of partition.
        """
        kind = record_kind(validation.table, partition)
        writer = log_writer(validation.table, ANY_INSTANT, [partition])
        return cls(validation, partition, kind, writer, _types(validation.context, partition), limit)

    @property
    def schema(self) -> str:
        """Avro JSON of expected values."""
        return self.writer.schema

    @property
    def groups(self) -> Sequence[Bin]:
        """All file groups of the partition."""
        return [(self.partition, number) for number in range(len(self.validation.table.groups(self.partition)))]

    def route(self, records: EncodedRecords) -> npt.NDArray[np.int32]:
        """The file group of each record."""
        if records.partition == _PROBLEMS:
            return np.zeros(len(records.keys), np.int32)
        return self.writer.route(records)

    def visit(self, partition: str, group: int, entries: Iterable[Entries]) -> GroupDifferences:
        """Compare the expected records of one group with the stored ones."""
        if partition == _PROBLEMS:
            found = [pa.ipc.open_stream(value).read_all() for _, values in entries for value in values.to_pylist()]
            rows = pa.concat_tables(found).sort_by([("what", "ascending"), ("found", "ascending")])
            return GroupDifferences(differences=rows.num_rows, rows=rows.slice(0, self.limit))
        seen, shown, error = StatsSeen(), [ROWS.empty_table()], None
        records = found_records = differences = 0
        left = self.limit
        try:
            expected, found = self._expected(entries), scan(self.validation.table, self.partition, [group])
            records, found_records = expected.num_rows, found.num_rows
            if self.kind in _STATS:
                seen.add(expected, found)
            shared = self.validation
            tables = (self.types, shared.stored, expected, found)
            for every in compare_rows(self.partition, self.kind, shared.context, *tables):
                rows = without_harmless(shared, every)
                differences += rows.num_rows
                shown.append(rows.slice(0, left))
                left -= shown[-1].num_rows
        except (CorruptTableError, InvalidDataError, UnsupportedFeatureError) as problem:
            error = problem
        return GroupDifferences(records, found_records, differences, pa.concat_tables(shown), error, seen)

    def _expected(self, entries: Iterable[Entries]) -> pa.Table:
        pieces = [pa.Table.from_arrays(list(piece), schema=RECORDS) for piece in entries]
        return _flat(self.kind, pa.concat_tables([RECORDS.empty_table(), *pieces]), self.schema, self.partition)


def _problem(row: pa.Table) -> EncodedRecords:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, row.schema) as stream:
        stream.write_table(row)
    return EncodedRecords(_PROBLEMS, pa.array(["problem"]), pa.array([sink.getvalue().to_pybytes()], pa.binary()))


def without_harmless(validation: Validation, rows: pa.Table) -> pa.Table:
    """Differences without invalid log files, and without partitions that hold nothing else: readers skip them."""
    if validation.context.config.layout_version > 1:
        return rows  # rollbacks delete the log files of failed writes
    named = zip(rows.column("what").to_pylist(), rows.column("key").to_pylist(), strict=True)
    return rows.filter(pa.array([not _is_harmless(validation, *each) for each in named], pa.bool_()))


def _is_harmless(validation: Validation, what: str, key: str) -> bool:
    if what == _MISSING_PARTITION:
        path = key.partition("/")[2]
        files = validation.context.view.lister.files("" if path == NON_PARTITIONED else path)
        return all(one.name in PARTITION_MARKERS or _is_rolled_back(validation, one.name) for one in files)
    return what in _MISSING and _is_rolled_back(validation, key.rpartition("/")[2])


def _is_rolled_back(validation: Validation, name: str) -> bool:
    """Whether it is a log file whose blocks are all invalid, although its writes may be archived by now."""
    lister, storage = validation.context.view.lister, validation.context.storage
    for partition in lister.partitions():
        logs = [one for one in map(parse_log_file, lister.files(partition)) if one is not None]
        for log in logs:
            if log.name == name:
                group = log.file_id, log.instant
                return is_rolled_back(storage, log, [one for one in logs if (one.file_id, one.instant) == group])
    return False


def _types(context: ProducerContext, partition: str) -> Mapping[str, pa.DataType]:
    """The types of values in statistics, by column; for an expression index, the types of its results."""
    if kind_of(partition) is PartitionKind.EXPRESSION_INDEX:
        expression = check_expression(context, partition)
        return {expression.column.name: expression.result}
    return leaf_columns(stored_schema(context))


def _flat(kind: PartitionKind, records: pa.Table, schema: str, partition: str) -> pa.Table:
    rows = records.filter(records.column("value").is_valid()).combine_chunks()
    if not rows.num_rows:
        return flat_schema(kind).empty_table()
    flat = decode_records(kind, rows.column("key").chunk(0), rows.column("value").chunk(0), schema, partition)
    # The partition ``files`` of a table without files has a record that names no file.
    return flat.filter(flat.column("name").is_valid()) if kind is PartitionKind.FILES else flat
