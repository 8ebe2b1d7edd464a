"""Compare expected and stored records of the metadata table.

Compares the expected and the stored records of one file group, and describes the differences as text.

::

    expected, found ─► matched by key, in compiled code ─► missing | stale | different ─► text, for those only

Missing or wrong records mislead readers and are always reported. Superfluous records are reported if they mislead: a
key of the record index that no row has, or statistics of a deleted file. Readers skip the entry of a file of a failed
write, so it is not reported.

::

    rows of both sides with one key ─► equal as stored: most ─► done
                                  └──► as values of the column: minimum, maximum, counts ─► differences

Stored forms may differ where values do not: a compaction of release 0.15 wraps dates as numbers. A record of a
partition may be wider than the files, but never narrower: the record of a write replaces the record of a service that
was planned before the write and ended after it. Release 1.2 leaves nulls out of the value count of an expression
(SparkMetadataWriterUtils) and of nothing else, so that count is not compared. Releases 0.14 to 1.0 store zero for both
bounds of a column that has no value in a file: that is not a difference, since readers keep more files for it.

Rows that describe a difference: its kind, its key, the expected and the found value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.formats.bloom_filter import BloomFilter
from hudi_fast.formats.parquet.column_ranges import ColumnRange
from hudi_fast.formats.varlen import single_chunk
from hudi_fast.metadata_table.keys import NON_PARTITIONED, bloom_key, secondary_prefix
from hudi_fast.metadata_table.layout import PartitionKind, index_version, kind_of
from hudi_fast.metadata_table.state import AddedFile
from hudi_fast.metadata_table.updates.produce import ProducerContext
from hudi_fast.metadata_table.updates.produce_expression import check_expression, texts_of_file
from hudi_fast.metadata_table.updates.produce_functions import Unknown
from hudi_fast.metadata_table.updates.produce_stats import PARTITION_STATS, ranges_of_records
from hudi_fast.storage.base import FileStat
from hudi_fast.values import dataclass
from hudi_fast.view.base_files import open_file
from hudi_fast.view.file_names import parse_log_file
from hudi_fast.view.listing import StorageLister

__all__ = ["ROWS", "StatsSeen", "Stored", "compare_rows", "compare_stats", "difference", "differences", "stored_files"]

ROWS = pa.schema([pa.field(name, pa.string()) for name in ("what", "key", "expected", "found")])
"""Columns of the differences that validation reports."""


def difference(what: str, key: str | None = None, expected: str | None = None, found: str | None = None) -> pa.Table:
    """One row of :data:`ROWS`.

    Args:
        what: kind of difference.
        key: file, record key, column ...
        expected: value according to the table.
        found: value in the metadata table.
    """
    return pa.Table.from_pylist([{"what": what, "key": key, "expected": expected, "found": found}], ROWS)


def differences(
    what: str | pa.Array, keys: pa.Array, expected: pa.Array | None = None, found: pa.Array | None = None
) -> pa.Table:
    """Rows of :data:`ROWS`.

    Args:
        what: kind of difference: one for all, or string[n].
        keys: string[n].
        expected: string[n], or None.
        found: string[n], or None.
    """
    count = len(keys)
    nothing = pa.nulls(count, pa.string())
    kinds = pa.repeat(pa.scalar(what, pa.string()), count) if isinstance(what, str) else what
    columns = [kinds, keys, nothing if expected is None else expected, nothing if found is None else found]
    return pa.Table.from_arrays(columns, schema=ROWS)


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
                yield difference(what, label, _shown(left), _shown(right))


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


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)


_PARTITIONS = 1
_RECORD_KEY = "_hoodie_record_key"


@dataclass(frozen=True)
class Stored:
    """Names of all files in the table's folders, valid or not.

    Attributes:
        partitions: partition paths as records write them, string[p].
        files: partition path, slash, file name of each file, string[n].
        names: file names and partition paths that statistics may belong to.
        by_filter: each file by the key of its bloom filter.
    """

    partitions: pa.Array
    files: pa.Array
    names: pa.Array
    by_filter: dict[str, FileStat]


def stored_files(context: ProducerContext) -> Stored:
    """List the table's folders."""
    lister = StorageLister(context.storage)
    paths = lister.partitions()
    files, names, by_filter = [], set(paths), {}
    for path in paths:
        for entry in lister.files(path):
            files.append(f"{path or NON_PARTITIONED}/{entry.name}")
            names.add(entry.name)
            by_filter[bloom_key(path, entry.name)] = entry
    partitions = pa.array([path or NON_PARTITIONED for path in paths], pa.string())
    return Stored(partitions, pa.array(files, pa.string()), pa.array(sorted(names), pa.string()), by_filter)


def compare_rows(
    partition: str,
    kind: PartitionKind,
    context: ProducerContext,
    types: Mapping[str, pa.DataType],
    stored: Stored,
    expected: pa.Table,
    found: pa.Table,
) -> Iterator[pa.Table]:
    """The differences of one file group, as tables of :data:`hudi_fast.services.validation.ROWS`.

    Args:
        partition: of the metadata table.
        kind: kind of the records.
        context: the table.
        types: types of values that have statistics, by column.
        stored: its files.
        expected: expected flat rows.
        found: stored flat rows.
    """
    if kind is PartitionKind.FILES:
        yield from _files(stored, expected, found)
    elif kind is PartitionKind.RECORD_INDEX:
        yield from _locations(expected, found)
    elif kind is PartitionKind.SECONDARY_INDEX:
        yield from _keys(partition, context, expected, found)
    elif kind is PartitionKind.BLOOM_FILTERS:
        yield from _filters(partition, context, stored, expected, found)
    else:
        yield from compare_stats(kind, types, stored.names, expected, found)


# ---- files


def _files(stored: Stored, expected: pa.Table, found: pa.Table) -> Iterator[pa.Table]:
    expected, found = _alive(expected), _alive(found)
    ours, theirs = _paths(expected), _paths(found)
    at = pc.index_in(ours, theirs)
    is_name = pc.equal(expected.column("type"), _PARTITIONS).combine_chunks()
    # A partition whose folder has no valid file may be missing.
    needed = pc.or_(pc.invert(is_name), pc.is_in(expected.column("name"), _folders(expected)).combine_chunks())
    gone = pc.and_(pc.is_null(at), needed)
    names = pc.if_else(is_name, "missing partition", "missing file")
    sizes = single_chunk(expected.column("size"))
    yield differences(names.filter(gone), ours.filter(gone), _text(sizes.filter(gone)))
    both = pc.is_valid(at)
    other = single_chunk(found.column("size")).take(at.filter(both))
    wrong = pc.not_equal(sizes.filter(both), other)
    yield differences(
        "size", ours.filter(both).filter(wrong), _text(sizes.filter(both).filter(wrong)), _text(other.filter(wrong))
    )
    extra = pc.invert(pc.is_in(theirs, ours))
    is_name = pc.equal(found.column("type"), _PARTITIONS).combine_chunks()
    known = pc.if_else(
        is_name,
        pc.is_in(single_chunk(found.column("name")), stored.partitions),
        pc.is_in(theirs, stored.files),
    )
    stale = pc.and_(extra, pc.invert(known))
    names = pc.if_else(is_name, "no such partition", "no such file")
    yield differences(names.filter(stale), theirs.filter(stale), None, _text(found.column("size").filter(stale)))


def _alive(rows: pa.Table) -> pa.Table:
    return rows.filter(pc.and_(pc.is_valid(rows.column("name")), pc.invert(rows.column("deleted"))))


def _paths(rows: pa.Table) -> pa.Array:
    return pc.binary_join_element_wise(single_chunk(rows.column("key")), single_chunk(rows.column("name")), "/")


def _folders(rows: pa.Table) -> pa.Array:
    return single_chunk(rows.filter(pc.not_equal(rows.column("type"), _PARTITIONS)).column("key")).unique()


# ---- keys


def _locations(expected: pa.Table, found: pa.Table) -> Iterator[pa.Table]:
    keys, theirs = single_chunk(expected.column("key")), single_chunk(found.column("key"))
    at = pc.index_in(keys, theirs)
    gone = pc.is_null(at)
    yield differences("missing key", keys.filter(gone), _places(expected.filter(gone)))
    both = pc.is_valid(at)
    here, there = expected.filter(both), found.take(at.filter(both))
    same = pc.and_(*(pc.equal(here.column(name), there.column(name)) for name in ("partition", "file_id")))
    wrong = pc.invert(pc.fill_null(same, False))
    yield differences(
        "location", keys.filter(both).filter(wrong), _places(here.filter(wrong)), _places(there.filter(wrong))
    )
    stale = pc.invert(pc.is_in(theirs, keys))
    yield differences("stale key", theirs.filter(stale), None, _places(found.filter(stale)))


def _places(rows: pa.Table) -> pa.Array:
    columns = (single_chunk(rows.column(name)) for name in ("partition", "file_id"))
    return pc.binary_join_element_wise(*columns, "/", null_handling="replace", null_replacement="?")


def _keys(partition: str, context: ProducerContext, expected: pa.Table, found: pa.Table) -> Iterator[pa.Table]:
    ours, theirs = single_chunk(expected.column("key")), single_chunk(found.column("key"))
    missing = ours.filter(pc.invert(pc.is_in(ours, theirs)))
    if index_version(partition, context.config.version, context.definitions) == "V1":
        missing = missing.filter(pc.invert(pc.starts_with(missing, secondary_prefix(None))))  # Hudi 1.0 has no nulls
    yield differences("missing key", missing)
    yield differences("stale key", theirs.filter(pc.invert(pc.is_in(theirs, ours))))


# ---- bloom filters


def _filters(
    partition: str, context: ProducerContext, stored: Stored, expected: pa.Table, found: pa.Table
) -> Iterator[pa.Table]:
    ours, theirs = single_chunk(expected.column("key")), single_chunk(found.column("key"))
    at = pc.index_in(ours, theirs)
    for key in ours.filter(pc.is_null(at)).to_pylist():
        yield difference("missing filter", stored.by_filter[key].path if key in stored.by_filter else key)
    both = pc.is_valid(at)
    filters = single_chunk(found.column("filter")).take(at.filter(both))
    same = pc.equal(single_chunk(expected.column("filter")).filter(both), filters)
    others = pc.or_(pc.is_in(theirs, ours.filter(both).filter(pc.invert(same))), pc.invert(pc.is_in(theirs, ours)))
    for row in found.filter(others).select(["key", "kind", "filter"]).to_pylist():
        file = stored.by_filter.get(row["key"])
        if file is None:
            yield difference("stale filter", row["key"])
            continue
        missed = _missed(partition, context, file, row["filter"], row["kind"])
        if missed:
            yield difference("filter", file.path, "a filter of all keys of the file", f"one without {missed} of them")


def _missed(partition: str, context: ProducerContext, file: FileStat, text: bytes, kind: str) -> int:
    """How many keys of a file its filter misses: record keys, or the text of an expression's results."""
    stored = BloomFilter.from_base64(text.decode("latin-1"), kind, where=file.path)
    if kind_of(partition) is PartitionKind.EXPRESSION_INDEX:
        expression = check_expression(context, partition)
        try:
            texts = pa.chunked_array(texts_of_file(context, expression, _as_added(file)), pa.string())
        except Unknown:
            return 0
        return len(texts) - int(stored.might_contain(texts).sum())
    with open_file(context.storage, file.path) as reader:
        keys = reader.read([_RECORD_KEY]).column(0)
    return len(keys) - int(stored.might_contain(keys).sum())


def _as_added(file: FileStat) -> AddedFile:
    partition, log = file.path.rpartition("/")[0], parse_log_file(file)
    return AddedFile(partition, file.name, file.size, "", log is not None, "")


def _text(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return single_chunk(values).cast(pa.string())
