"""Compares every partition of the metadata table with the files of the table.

::

    folders, footers, rows ─► the sources that would build the partition ─► by file group ─┐
                                                                                           ├─► compared ─► differences
    metadata table ─ read group by group, as readers do ───────────────────────────────────┘

One file group is in memory at a time, data beyond a memory budget is in a local file, and compiled code compares rows:
this suits indexes of millions of keys. Nothing is written. A partition that is being built is skipped.

Source: HoodieMetadataTableValidator, Hudi 1.2.0.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import cast

import pyarrow as pa

from hudi_fast.errors import ConfigError, CorruptTableError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.formats.parquet.leaf_columns import leaf_columns
from hudi_fast.merging.log_scan import is_rolled_back
from hudi_fast.merging.slice_merge import slice_merge
from hudi_fast.metadata_table.definitions import index_version
from hudi_fast.metadata_table.keys import NON_PARTITIONED
from hudi_fast.metadata_table.layout import PartitionKind, kind_of
from hudi_fast.metadata_table.read import record_kind, scan
from hudi_fast.metadata_table.records import decode_records, flat_schema
from hudi_fast.metadata_table.stat_values import StatsVersion, indexed_columns
from hudi_fast.metadata_table.table import MetadataTable, examine_metadata
from hudi_fast.metadata_table.updates.commit import log_writer
from hudi_fast.metadata_table.updates.groups import GroupWriter
from hudi_fast.metadata_table.updates.produce import ProducerContext, RecordSource, sources_of_table
from hudi_fast.metadata_table.updates.produce_base import stored_schema
from hudi_fast.metadata_table.updates.produce_expression import check_expression
from hudi_fast.metadata_table.updates.record_bins import RECORDS, GroupBins
from hudi_fast.metadata_table.updates.runner import routed
from hudi_fast.services.validation.compare import Stored, compare_rows, difference, stored_files
from hudi_fast.services.validation.stats import StatsSeen
from hudi_fast.view.file_names import parse_log_file
from hudi_fast.view.listing import PARTITION_MARKERS
from hudi_fast.view.table_state import TableState, load_state, table_schema
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

_MOST_THREADS = 8
_MISSING = frozenset({"missing file", "missing statistics"})
_MISSING_PARTITION = "missing partition"
_ANY_INSTANT = "00000000000000000"
_STATS = frozenset({PartitionKind.COLUMN_STATS, PartitionKind.PARTITION_STATS, PartitionKind.EXPRESSION_INDEX})


@dataclass(frozen=True, slots=True)
class ValidationResult:
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


@dataclass(frozen=True)
class _Validation:
    """State that all partitions share."""

    table: MetadataTable
    context: ProducerContext
    stored: Stored
    threads: int


def validate_metadata(session: TableSession, partitions: Sequence[str] = (), most: int = 1000) -> ValidationResult:
    """Compare the metadata table with the table.

    Args:
        session: the call.
        partitions: metadata partitions to compare; empty for all.
        most: maximum number of listed differences per metadata partition.

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
    if not config.metadata_partitions:
        return _result([])
    table, problem = examine_metadata(storage, config, state.timeline)
    found: list[tuple[pa.Table, dict[str, object]]] = []
    if problem is not None:
        found.append(_untrusted(problem))
    if table is not None:
        validation = _prepared(state, table, session.settings)
        chosen = partitions or table.partitions
        found += [_validated(validation, name, most) for name in chosen]
    return _result(found)


# ---- results


def _result(found: Iterable[tuple[pa.Table, dict[str, object]]]) -> ValidationResult:
    pairs = list(found)
    differences = pa.concat_tables([DIFFERENCES.empty_table(), *(table for table, _ in pairs)])
    return ValidationResult(differences, pa.Table.from_pylist([row for _, row in pairs], SUMMARY))


def _untrusted(problem: str) -> tuple[pa.Table, dict[str, object]]:
    rows = _named("", [difference("not to be trusted", found=problem)])
    return rows, {"partition": "", "differences": 1}


def _named(partition: str, tables: Sequence[pa.Table]) -> pa.Table:
    rows = pa.concat_tables(tables)
    names = pa.repeat(pa.scalar(partition, pa.string()), rows.num_rows)
    return rows.add_column(0, DIFFERENCES.field(0), names).cast(DIFFERENCES)


# ---- one partition


def _prepared(state: TableState, table: MetadataTable, settings: Settings) -> _Validation:
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
    threads = settings.write.threads or min(_MOST_THREADS, os.cpu_count() or 1)
    return _Validation(table, context, stored_files(context), threads)


@dataclass
class _Counts:
    """Numbers of expected and found records and of differences; updated while a partition is compared."""

    expected: int = 0
    found: int = 0
    differences: int = 0


def _validated(validation: _Validation, partition: str, most: int) -> tuple[pa.Table, dict[str, object]]:
    """The first differences of one metadata partition, and its row of the summary."""
    started = time.monotonic()
    reason = validation.table.unusable(partition)
    if reason is not None:
        return _named(partition, [difference("unusable", found=reason)]), {"partition": partition, "differences": 1}
    counts, shown, note = _Counts(), [DIFFERENCES.empty_table()], None
    left = most
    try:
        for rows in _differences(validation, partition, counts):
            counts.differences += rows.num_rows
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


def _differences(validation: _Validation, partition: str, counts: _Counts) -> Iterator[pa.Table]:
    """All differences of a metadata partition, including unreadable records."""
    try:
        differences = _compared(validation, partition, counts)
        stay = validation.context.config.layout_version < 2  # log files of failed writes
        yield from (_that_count(validation, rows) for rows in differences) if stay else differences
    except (CorruptTableError, InvalidDataError) as error:
        yield difference("unreadable", found=str(error))


def _compared(validation: _Validation, partition: str, counts: _Counts) -> Iterable[pa.Table]:
    """Differences, group by group, then those that need all groups."""
    table, kind = validation.table, record_kind(validation.table, partition)
    writer = log_writer(table, _ANY_INSTANT, [partition])
    seen = StatsSeen() if kind in _STATS else None
    types = _types(validation.context, partition)
    with GroupBins(ordered=False) as bins:
        yield from _collect(validation, partition, writer, bins)
        filled = set(bins.names())
        for number in range(len(table.groups(partition))):
            name = (partition, number)
            pieces = [pa.table(list(piece), schema=RECORDS) for piece in bins.take(name)] if name in filled else []
            records = pa.concat_tables([RECORDS.empty_table(), *pieces])
            expected = _flat(kind, records, writer.schema, partition)
            found = scan(table, partition, [number])
            counts.expected += expected.num_rows
            counts.found += found.num_rows
            if seen is not None:
                seen.add(expected, found)
            yield from compare_rows(kind, validation.context, types, validation.stored, expected, found)
    if seen is not None:
        yield from seen.missing()


def _that_count(validation: _Validation, rows: pa.Table) -> pa.Table:
    """Differences without invalid log files and partitions that hold only those: readers skip them."""
    named = zip(rows.column("what").to_pylist(), rows.column("key").to_pylist(), strict=True)
    return rows.filter(pa.array([not _is_harmless(validation, *each) for each in named], pa.bool_()))


def _is_harmless(validation: _Validation, what: str, key: str) -> bool:
    if what == _MISSING_PARTITION:
        path = key.partition("/")[2]
        files = validation.context.view.lister.files("" if path == NON_PARTITIONED else path)
        return all(one.name in PARTITION_MARKERS or _is_rolled_back(validation, one.name) for one in files)
    return what in _MISSING and _is_rolled_back(validation, key.rpartition("/")[2])


def _is_rolled_back(validation: _Validation, name: str) -> bool:
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
    """The types of values in statistics, by column; an expression's are those of its results."""
    if kind_of(partition) is PartitionKind.EXPRESSION_INDEX:
        expression = check_expression(context, partition)
        return {expression.column.name: expression.result}
    return leaf_columns(stored_schema(context))


def _flat(kind: PartitionKind, records: pa.Table, schema: str, partition: str) -> pa.Table:
    rows = records.filter(records.column("value").is_valid()).combine_chunks()
    if not rows.num_rows:
        return flat_schema(kind).empty_table()
    flat = decode_records(kind, rows.column("key").chunk(0), rows.column("value").chunk(0), schema, partition)
    # A table without files has a record of no file.
    return flat.filter(flat.column("name").is_valid()) if kind is PartitionKind.FILES else flat


def _collect(validation: _Validation, partition: str, writer: GroupWriter, bins: GroupBins) -> Iterable[pa.Table]:
    """Read the sources into ``bins``; unreadable ones become differences."""
    sources = sources_of_table(validation.context, partition, _ANY_INSTANT)
    with ThreadPoolExecutor(validation.threads, thread_name_prefix="hudi_fast") as pool:
        for problem in pool.map(lambda source: _collect_one(source, writer, bins), sources):
            if problem is not None:
                yield problem


def _collect_one(source: RecordSource, writer: GroupWriter, bins: GroupBins) -> pa.Table | None:
    try:
        for records in source.read(writer.schema):
            try:
                parts = list(routed(records, writer))
            except KeyError:
                return difference(
                    "missing file groups",
                    key=records.data_partition,
                    expected=f"groups for {len(records.keys)} records",
                )
            for group, rows in parts:
                bins.put((str(records.partition), group), rows)
    except InvalidDataError as error:
        return difference("rows that cannot be indexed", found=str(error))
    return None
