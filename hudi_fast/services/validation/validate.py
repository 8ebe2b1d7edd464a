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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import pyarrow as pa

from hudi_fast.errors import ConfigError, CorruptTableError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.merging.slice_merge import slice_merge
from hudi_fast.metadata_table.definitions import index_version
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.stat_values import StatsVersion, indexed_columns
from hudi_fast.metadata_table.table import MetadataTable, examine_metadata
from hudi_fast.metadata_table.updates.produce import ProducerContext, sources_of_table
from hudi_fast.reading.inspecting.results import ShownResult
from hudi_fast.services.validation.compare import difference, stored_files
from hudi_fast.services.validation.groups import (
    ANY_INSTANT,
    GroupComparison,
    ReadableSource,
    Validation,
    without_harmless,
)
from hudi_fast.services.validation.stats import StatsSeen
from hudi_fast.view.lost_content import require_bodies, written_sizes
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
