"""Compares expected and stored statistics.

::

    rows of both sides with one key ─► equal as stored: most ─► done
                                  └──► as values of the column: minimum, maximum, counts ─► differences

Stored forms may differ where values do not: a compaction of release 0.15 wraps dates as numbers. A record of a
partition may be wider than the files, but never narrower: the record of a write replaces the record of a service that
was planned before the write and ended after it. Release 1.2 leaves nulls out of the value count of an expression
(SparkMetadataWriterUtils) and of nothing else, so that count is not compared. Releases 0.14 to 1.0 store zero for both
bounds of a column that has no value in a file: that is not a difference, since readers keep more files for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.formats.parquet.column_ranges import ColumnRange
from hudi_fast.formats.varlen import single_chunk
from hudi_fast.metadata_table.keys import NON_PARTITIONED
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.updates.column_ranges import PARTITION_STATS, ranges_of_records
from hudi_fast.services.validation.text import difference, differences

__all__ = ["StatsSeen", "compare_stats"]

_COUNTS = ("value_count", "null_count")
_VALUES = ("min", "max")
_COLUMN_HASH = 12


class StatsSeen:
    """The files (or partitions) that have any statistics, collected over all file groups."""

    def __init__(self) -> None:
        self._expected: set[str] = set()
        self._found: set[str] = set()

    def add(self, expected: pa.Table, found: pa.Table) -> None:
        """Add the expected and the found rows of one file group.

        Files without values need no statistics, and Apache Hudi does not always store statistics for logs of deletes.
        Partitions need none after concurrent writes, until the next write.
        """
        of_files = pc.not_equal(expected.column("type"), PARTITION_STATS)
        with_values = expected.filter(pc.and_(of_files, pc.greater(expected.column("value_count"), 0)))
        self._expected |= set(with_values.column("file_name").unique().to_pylist())
        self._found |= set(found.column("file_name").unique().to_pylist())

    def join(self, other: StatsSeen) -> None:
        """Add the files and partitions that another one has seen."""
        self._expected |= other._expected
        self._found |= other._found

    def missing(self) -> Iterator[pa.Table]:
        """Files and partitions that should have statistics but have none.

        A missing column is not a difference: each write may index other columns.
        """
        for name in sorted(self._expected - self._found):
            yield difference("missing statistics", name or NON_PARTITIONED)


def compare_stats(
    kind: PartitionKind,
    types: Mapping[str, pa.DataType],
    names: pa.Array,
    expected: pa.Table,
    found: pa.Table,
) -> Iterator[pa.Table]:
    """The differences of one file group.

    Args:
        kind: column stats, partition stats or an expression index.
        types: of values by column: the column's, or of an expression's results.
        names: existing files and partitions.
        expected: expected rows of :data:`hudi_fast.metadata_table.records.COLUMN_STATS`.
        found: stored rows.
    """
    ours, theirs = single_chunk(expected.column("key")), single_chunk(found.column("key"))
    at = pc.index_in(ours, theirs)
    both = pc.is_valid(at)
    here, there = expected.filter(both).combine_chunks(), found.take(at.filter(both)).combine_chunks()
    unlike = pc.invert(_alike(here, there))
    yield from _different(kind, types, here.filter(unlike), there.filter(unlike))
    stale = pc.invert(pc.is_in(single_chunk(found.column("file_name")), names))
    rows = found.filter(stale)
    yield differences("stale statistics", _labels(rows))


def _alike(here: pa.Table, there: pa.Table) -> pa.Array:
    """Whether rows are equal as stored."""
    same = pa.repeat(pa.scalar(True), here.num_rows)
    for name in _COUNTS:
        same = pc.and_(same, _equal(single_chunk(here.column(name)), single_chunk(there.column(name))))
    for name in _VALUES:
        left, right = single_chunk(here.column(name)), single_chunk(there.column(name))
        for member in left.type:
            path = [member.name, "value"]
            same = pc.and_(same, _equal(pc.struct_field(left, path), pc.struct_field(right, path)))
    return same


def _equal(left: pa.Array, right: pa.Array) -> pa.Array:
    no_values = pc.and_(left.is_null(), right.is_null())
    return pc.or_(no_values, pc.fill_null(pc.equal(left, right), False))


def _labels(rows: pa.Table) -> pa.Array:
    columns = (single_chunk(rows.column(name)) for name in ("column_name", "file_name"))
    return pc.binary_join_element_wise(*columns, " of ", null_handling="replace", null_replacement="?")


def _different(
    kind: PartitionKind, types: Mapping[str, pa.DataType], here: pa.Table, there: pa.Table
) -> Iterator[pa.Table]:
    """Rows whose stored forms and values differ."""
    if not here.num_rows:
        return
    ours, theirs = ranges_of_records(here, types), ranges_of_records(there, types)
    labels = _labels(here).to_pylist()
    names = ("key", "column_name", "type")
    for label, row in zip(labels, there.select(names).to_pylist(), strict=True):
        where, column = row["key"][_COLUMN_HASH:], row["column_name"]
        if column not in ours.get(where, {}) or column not in theirs.get(where, {}):
            continue  # the table no longer has that column
        expected, found = ours[where][column], theirs[where][column]
        of_partition = row["type"] == PARTITION_STATS
        if of_partition and _covers(found, expected):
            continue
        for what, left, right in _parts(kind, expected, found, of_partition):
            if left != right:
                yield difference(what, label, _text(left), _text(right))


def _covers(wide: ColumnRange, narrow: ColumnRange) -> bool:
    if narrow.low is None or narrow.high is None:
        return True
    if wide.low is None or wide.high is None:
        return False
    low, high = wide.low.as_py() <= narrow.low.as_py(), wide.high.as_py() >= narrow.high.as_py()
    return bool(low and high)


def _parts(
    kind: PartitionKind, expected: ColumnRange, found: ColumnRange, of_partition: bool
) -> Iterator[tuple[str, Any, Any]]:
    if not _is_empty_as_stored_before_1_1(expected, found):
        yield "least value", _plain(expected.low), _plain(found.low)
        yield "greatest value", _plain(expected.high), _plain(found.high)
    if not of_partition:
        yield "nulls", expected.null_count, found.null_count
    if not of_partition and kind is not PartitionKind.EXPRESSION_INDEX:
        yield "values", expected.value_count, found.value_count


def _is_empty_as_stored_before_1_1(expected: ColumnRange, found: ColumnRange) -> bool:
    """Whether a column without values has zero for both bounds: the bounds of Parquet's empty statistics."""
    if expected.low is not None or expected.high is not None or expected.null_count != expected.value_count:
        return False
    return _is_zero(found.low) and _is_zero(found.high)


def _is_zero(value: pa.Scalar | None) -> bool:
    if value is None or not value.is_valid:
        return False
    number = value.value if pa.types.is_temporal(value.type) else value.as_py()
    return isinstance(number, int | float) and not number


def _plain(value: pa.Scalar | None) -> Any:
    found = None if value is None else value.as_py()
    return "NaN" if found != found else found


def _text(value: Any) -> str:
    return "none" if value is None else str(value)
