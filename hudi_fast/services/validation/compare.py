"""Compares the expected and the stored records of one file group, and describes the differences as text.

::

    expected, found ─► matched by key, in compiled code ─► missing | stale | different ─► text, for those only

Missing or wrong records mislead readers and are always reported. Superfluous records are reported if they mislead: a
key of the record index that no row has, or statistics of a deleted file. Readers skip the entry of a file of a failed
write, so it is not reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.formats.bloom_filter import BloomFilter
from hudi_fast.formats.varlen import single_chunk
from hudi_fast.metadata_table.definitions import index_version
from hudi_fast.metadata_table.keys import NON_PARTITIONED, bloom_key, secondary_prefix
from hudi_fast.metadata_table.layout import PartitionKind, kind_of
from hudi_fast.metadata_table.table_delta import AddedFile
from hudi_fast.metadata_table.updates.produce import ProducerContext
from hudi_fast.metadata_table.updates.produce_expression import check_expression, texts_of_file
from hudi_fast.metadata_table.updates.produce_functions import Unknown
from hudi_fast.services.validation.stats import compare_stats
from hudi_fast.services.validation.text import difference, differences
from hudi_fast.storage.base import FileStat
from hudi_fast.view.base_files import open_file
from hudi_fast.view.file_names import parse_log_file
from hudi_fast.view.listing import StorageLister

__all__ = ["Stored", "compare_rows", "difference", "stored_files"]

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
    """The differences of one file group, as tables of :data:`hudi_fast.services.validation.text.ROWS`.

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
