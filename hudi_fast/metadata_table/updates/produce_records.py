"""Records of ``record_index`` and of secondary indexes.

Records of ``record_index``: locations of keys that a change adds, deletes of keys that it removes.

::

    new file group ─────────────── all its keys ─► put
    group rewritten by this process ─ last rows ─► put       deleted rows: keys before minus keys after ─► delete
    any other change of a group ── base rows hidden by the log before and after, keys of the log alone
                                   ─► differences: put or delete
    group replaced ─────────────── all its keys ─► delete

Updates change no record. A key that moves to another file group produces a delete and a value; the value is kept.
Source: metadata reference 3.8; HoodieTableMetadataUtil#convertMetadataToRecordIndexRecords, Hudi 1.2.0.

Records of ``secondary_index_<name>``: pairs of a column value and a record key.

::

    slice before ─► value$key ... ─┐
    slice after ──► value$key ... ─┴─► added: put      removed: delete      others: unchanged

A change that keeps a row's value produces no record. Rows of two data partitions with the same value and key share the
record; deleting the last of these rows deletes it. Since version 2 of the index, all records of a value are in one file
group.
Source: metadata reference 2.3 and 3.9; SecondaryIndexRecordGenerationUtils, Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import InvalidDataError, UnsupportedFeatureError
from hudi_fast.formats.base_file import BaseFileReader
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, LogBlock
from hudi_fast.formats.varlen import gather_array, single_chunk, varlen_buffers
from hudi_fast.kernels.key_table import hash_keys
from hudi_fast.keys.key_generator import record_keys
from hudi_fast.merging.log_scan import visible_blocks
from hudi_fast.merging.merged_slice import ResolvedSlice, resolve_slice
from hudi_fast.merging.rules import OPERATION, key_columns, merge_schema, merging_columns
from hudi_fast.metadata_table.keys import (
    IndexedColumn,
    secondary_keys,
    secondary_routing,
    split_secondary_keys,
    type_of_column,
)
from hudi_fast.metadata_table.layout import PartitionKind, index_version
from hudi_fast.metadata_table.read import lookup
from hudi_fast.metadata_table.records import RECORD_INDEX, SECONDARY, encode_records, instant_millis
from hudi_fast.metadata_table.updates.produce_base import (
    EncodedRecords,
    GroupChange,
    ProducerContext,
    opened,
    slice_bytes,
    slice_rows,
    stored_schema,
)
from hudi_fast.values import dataclass
from hudi_fast.view.slices import FileSlice, latest_slices

__all__ = ["KeysOfGroup", "KeysOfSlice", "PairsOfGroup", "PairsOfSlice", "check_secondary", "keys_of", "slice_keys"]

_SHARE_OF_KEYS = 4
"""Keys take about one part in this many of a file."""

_FEW_BYTES = 1 << 17
"""Approximate size of the last rows of a rewritten file."""


@dataclass(frozen=True)
class KeysOfSlice:
    """All keys of a slice, to build a record index."""

    context: ProducerContext
    slice: FileSlice
    partitioned: bool

    @property
    def weight(self) -> int:
        """Size of the slice's keys."""
        return slice_bytes(self.slice) // _SHARE_OF_KEYS

    def read(self, schema: str) -> Iterator[EncodedRecords]:
        """Records in batches; memory holds a batch, and eight bytes for each key of the slice."""
        one = self.slice
        for keys in _once_each(self.context, one):
            yield _puts(self.context, keys, one.partition, one.file_id, one.base_instant, self.partitioned, schema)


@dataclass(frozen=True)
class KeysOfGroup:
    """The effect of a change on the keys of one file group.

    Attributes:
        deletes: whether keys of a replaced group are deleted; False if the same change rewrites its rows.
    """

    before: ProducerContext
    after: ProducerContext
    change: GroupChange
    instant: str
    partitioned: bool
    deletes: bool = True

    @property
    def weight(self) -> int:
        """Size of the keys that are read before and after the change."""
        one = self.change
        if one.deletes == 0 and one.before is not None and one.after is not None:
            rewritten = one.inserts_last is not None and not one.before.log_files
            return _FEW_BYTES if rewritten else sum(log.size for log in one.before.log_files) // _SHARE_OF_KEYS
        return slice_bytes(one.before, one.after) // _SHARE_OF_KEYS

    def read(self, schema: str) -> Iterator[EncodedRecords]:
        """Keys to put, then keys to delete."""
        put, deleted = self._keys()
        one = self.change
        if len(put):
            if self.deletes:
                _refuse_repeated(pa.chunked_array([put]), one.after)
            else:
                put = pc.unique(put)  # clustering may have merged groups to which two writers inserted the same key
            yield _puts(self.after, put, one.partition, one.file_id, self.instant, self.partitioned, schema)
        if len(deleted):
            where = one.partition if self.partitioned else None
            yield EncodedRecords(
                PartitionKind.RECORD_INDEX, deleted, pa.nulls(len(deleted), pa.binary()), data_partition=where
            )

    def _keys(self) -> tuple[pa.Array, pa.Array]:
        """Keys to put and keys to delete."""
        none = pa.array([], pa.string())
        one = self.change
        if one.before is None:
            return (none if one.after is None else _all_keys(self.after, one.after)), none
        if one.after is None:
            return none, (_all_keys(self.before, one.before) if self.deletes else none)
        if one.inserts_last is not None and not one.before.log_files and not one.after.log_files:
            return self._of_rewrite(one.before, one.after, one.inserts_last)
        same_base = one.before.base_file == one.after.base_file
        if same_base and self.after.merge.rules.merger is None:
            if one.deletes == 0 and not _may_delete(self.before, one.before):
                return none, none  # only updates of existing keys
            return _of_log(self.before, one.before, self.after, one.after)
        return _difference(_all_keys(self.before, one.before), _all_keys(self.after, one.after))

    def _of_rewrite(self, before: FileSlice, after: FileSlice, inserts: int) -> tuple[pa.Array, pa.Array]:
        """Keys to put and to delete, for a new base file whose last rows were inserted."""
        with opened(self.after.storage, after) as reader:
            assert reader is not None
            first = reader.num_rows - inserts
            if not self.change.deletes:
                return _last_keys(self.after, reader, first), pa.array([], pa.string())
        keys = _all_keys(self.after, after)
        return keys.slice(first), _difference(_all_keys(self.before, before), keys)[1]


# ---- keys of slices


def slice_keys(context: ProducerContext, slice_: FileSlice) -> Iterator[pa.Array]:
    """The record keys of a slice in a snapshot, in batches."""
    for batch in slice_rows(context, slice_, key_columns(context.merge)):
        yield keys_of(context, batch)


def keys_of(context: ProducerContext, rows: pa.RecordBatch | pa.Table) -> pa.Array:
    """The record keys of rows with the columns of :func:`hudi_fast.merging.rules.key_columns`."""
    if context.merge.key_config is not None:
        return single_chunk(record_keys(context.merge.key_config, rows))
    return single_chunk(rows.column(key_columns(context.merge)[0]))


def _all_keys(context: ProducerContext, slice_: FileSlice) -> pa.Array:
    return single_chunk(pa.chunked_array(list(slice_keys(context, slice_)), pa.string()))


def _last_keys(context: ProducerContext, reader: BaseFileReader, first: int) -> pa.Array:
    """The keys from row ``first`` on; reads only the row groups of these rows."""
    ends = np.cumsum(reader.row_group_rows())
    groups = [group for group, end in enumerate(ends) if end > first]
    if not groups:
        return pa.array([], pa.string())
    rows = reader.read(key_columns(context.merge), groups)
    start = int(ends[groups[0]]) - reader.row_group_rows()[groups[0]]
    return keys_of(context, rows.slice(max(0, first - start)).combine_chunks())


# ---- differences


def _difference(before: pa.Array, after: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Added keys and removed keys."""
    new = after.filter(pc.invert(pc.is_in(after, before)))
    return new, before.filter(pc.invert(pc.is_in(before, after)))


def _of_log(
    context: ProducerContext, before: FileSlice, after_context: ProducerContext, after: FileSlice
) -> tuple[pa.Array, pa.Array]:
    """Keys to put and to delete for a slice whose log grew: base rows that the log no longer hides, or newly hides."""
    with opened(context.storage, before) as reader:
        old = _resolved(context, before, reader)
        new = _resolved(after_context, after, reader)
        hidden_before, hidden = _dropped(old), _dropped(new)
        newly_hidden, unhidden = np.setdiff1d(hidden, hidden_before), np.setdiff1d(hidden_before, hidden)
        none = pa.array([], pa.string())
        stored = none
        if reader is not None and (len(newly_hidden) or len(unhidden)):
            stored = keys_of(context, reader.read(key_columns(context.merge)).combine_chunks())
        added, removed = _difference(_appended(old), _appended(new))
        put = [gather_array(stored, unhidden) if len(unhidden) else none, added]
        deleted = [gather_array(stored, newly_hidden) if len(newly_hidden) else none, removed]
        return pa.concat_arrays(put), pa.concat_arrays(deleted)


def _may_delete(context: ProducerContext, slice_: FileSlice) -> bool:
    """Whether a slice's log may hold deletes, which later rows may undo, or keys that the base file lacks."""
    if slice_.base_file is None:
        return True
    columns = [*stored_schema(context).names, OPERATION]
    marks = merging_columns(replace(context.merge.rules, ordering_fields=()), columns) or columns
    return any(
        block.kind is BlockType.DELETE or any(f'"{name}"' in _schema_of(block) for name in marks)
        for block in visible_blocks(context.merge, slice_)
    )


def _schema_of(block: LogBlock) -> str:
    return block.headers.get(HeaderKey.SCHEMA, "")


def _resolved(context: ProducerContext, slice_: FileSlice, reader: BaseFileReader | None) -> ResolvedSlice | None:
    blocks = visible_blocks(context.merge, slice_) if slice_.log_files else []
    if not blocks:
        return None
    full = stored_schema(context)
    columns = merge_schema(context.merge, pa.schema([]), full)
    instant = None if slice_.base_file is None else slice_.base_file.instant
    return resolve_slice(context.merge, blocks, columns, reader, instant)


def _dropped(resolved: ResolvedSlice | None) -> np.ndarray:
    return np.zeros(0, np.int64) if resolved is None else resolved.changes.dropped


def _appended(resolved: ResolvedSlice | None) -> pa.Array:
    """Keys that occur only in the log."""
    if resolved is None:
        return pa.array([], pa.string())
    return single_chunk(gather_array(resolved.entries.keys, resolved.appended))


# ---- records


def _puts(
    context: ProducerContext,
    keys: pa.Array,
    partition: str,
    file_id: str,
    instant: str,
    partitioned: bool,
    schema: str,
) -> EncodedRecords:
    count = len(keys)
    millis = instant_millis(pa.array([instant], pa.string()), context.config.timezone)[0]
    columns = [
        keys,
        pa.repeat(pa.scalar(partition, pa.string()), count),
        pa.repeat(pa.scalar(file_id, pa.string()), count),
        pa.repeat(millis.cast(pa.int64()), count),
        pa.nulls(count, pa.int64()),
    ]
    kind = PartitionKind.RECORD_INDEX
    rows = pa.Table.from_arrays(columns, schema=RECORD_INDEX)
    encoded = encode_records(kind, rows, schema, context.file_id_encoding)
    return EncodedRecords(kind, *encoded, data_partition=partition if partitioned else None)


def _once_each(context: ProducerContext, slice_: FileSlice) -> Iterator[pa.Array]:
    """The keys of a slice in batches; raises after the last batch if keys repeat."""
    hashes = []
    for keys in slice_keys(context, slice_):
        hashes.append(_hashes(keys))
        yield keys
    ordered = np.sort(np.concatenate([np.empty(0, np.uint64), *hashes]))
    suspects = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if len(suspects):
        found = [keys.filter(pa.array(np.isin(_hashes(keys), suspects))) for keys in slice_keys(context, slice_)]
        _refuse_repeated(pa.chunked_array(found, pa.string()), slice_)


def _hashes(keys: pa.Array) -> npt.NDArray[np.uint64]:
    hashes = np.empty(len(keys), np.uint64)
    hash_keys(*varlen_buffers(keys), hashes)
    return hashes


def _refuse_repeated(keys: pa.ChunkedArray, slice_: FileSlice | None) -> None:
    """Check that keys are unique, as in Apache Hudi, whose HFiles reject duplicates."""
    distinct = pc.count_distinct(keys).as_py()
    if distinct == len(keys):
        return
    counts = pc.value_counts(keys)
    twice = pc.struct_field(counts, "values").filter(pc.greater(pc.struct_field(counts, "counts"), 1))[0].as_py()
    where = "" if slice_ is None else f" The file group {slice_.file_id} in partition {slice_.partition!r}"
    raise InvalidDataError(
        f"A record index needs unique keys.{where} holds {len(keys) - distinct} rows more than distinct keys, for "
        f"example the key {twice!r} more than once. Remove duplicates, or leave the record index out "
        "(hoodie.metadata.global.record.level.index.enable=false)."
    )


@dataclass(frozen=True)
class PairsOfSlice:
    """All pairs of a slice, to build an index."""

    context: ProducerContext
    partition: str
    slice: FileSlice

    @property
    def weight(self) -> int:
        """Size of the slice."""
        return slice_bytes(self.slice)

    def read(self, schema: str) -> Iterator[EncodedRecords]:
        """Records in batches."""
        for pairs in _pairs(self.context, self.partition, self.slice):
            yield _records(self.context, self.partition, pairs, schema)


@dataclass(frozen=True)
class PairsOfGroup:
    """The effect of a change on the pairs of one file group."""

    before: ProducerContext
    after: ProducerContext
    partition: str
    change: GroupChange

    @property
    def weight(self) -> int:
        """Size of the slices before and after."""
        return slice_bytes(self.change.before, self.change.after)

    def read(self, schema: str) -> Iterator[EncodedRecords]:
        """Pairs to put, then pairs to delete."""
        old = _all_pairs(self.before, self.partition, self.change.before)
        new = _all_pairs(self.after, self.partition, self.change.after)
        added = new.filter(pc.invert(pc.is_in(new, old))) if len(old) else new
        removed = old.filter(pc.invert(pc.is_in(old, new))) if len(new) else old
        removed = self._unshared(removed)
        if len(added):
            yield _records(self.after, self.partition, added, schema)
        if len(removed):
            yield _records(self.after, self.partition, removed, None)

    def _unshared(self, removed: pa.Array) -> pa.Array:
        """The removed pairs that no row of another data partition has.

        Other partitions are searched only if the record index is partitioned: rows of several partitions may then have
        the same key.
        """
        table = self.before.metadata
        index = PartitionKind.RECORD_INDEX.value
        if table is None or not len(removed) or index not in table.partitions or not table.is_by_partition(index):
            return removed
        for path in self.after.view.lister.partitions():
            if path == self.change.partition or not len(removed):
                continue
            keys = pc.unique(split_secondary_keys(removed)[1])
            holding = set(lookup(table, index, keys, data_partition=path).column("file_id").to_pylist())
            for slice_ in latest_slices(self.after.view, path) if holding else ():
                if slice_.file_id in holding:
                    shared = pc.is_in(removed, _all_pairs(self.after, self.partition, slice_))
                    removed = removed.filter(pc.invert(shared))
        return removed


def check_secondary(context: ProducerContext, partition: str) -> IndexedColumn:
    """The indexed column of a secondary index.

    Raises:
        UnsupportedFeatureError: the index has no column or several columns, or its column is not stored or has an
            unsupported type.
    """
    definition = context.definitions.get(partition)
    fields = () if definition is None else definition.source_fields
    if len(fields) != 1:
        raise UnsupportedFeatureError(
            f"The secondary index {partition} of {context.storage.uri} is over {list(fields)}; one column is supported."
        )
    schema, name = stored_schema(context), fields[0]
    column = IndexedColumn(partition, name)
    root, kind = column.root(schema.names), type_of_column(schema, column)
    if kind is None or (context.config.drop_partition_columns and root in context.config.partition_fields):
        raise UnsupportedFeatureError(
            f"The secondary index {partition} of {context.storage.uri} is over {name!r}, which is not a column stored "
            f"in files; these are {schema.names}. A field of a struct is named struct.field."
        )
    takes = (
        pa.types.is_string(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_temporal(kind)
        or pa.types.is_boolean(kind)
    )
    if not takes:
        raise UnsupportedFeatureError(
            f"The secondary index {partition} of {context.storage.uri} is over {name!r} of type {kind}; supported are "
            "strings, integers, floats, booleans, dates, times and timestamps, as in Apache Hudi."
        )
    return column


def _all_pairs(context: ProducerContext, partition: str, slice_: FileSlice | None) -> pa.Array:
    found = [] if slice_ is None else list(_pairs(context, partition, slice_))
    return single_chunk(pa.chunked_array(found, pa.string()))


def _pairs(context: ProducerContext, partition: str, slice_: FileSlice) -> Iterator[pa.Array]:
    """The index keys of a slice's rows.

    Raises:
        InvalidDataError: a key is too long for the index.
    """
    column = check_secondary(context, partition)
    root = column.root(stored_schema(context).names)
    columns = list(dict.fromkeys([root, *key_columns(context.merge)]))
    for batch in slice_rows(context, slice_, columns):
        values, keys = column.values(batch), keys_of(context, batch)
        column.refuse_long(values, keys, f"table {context.config.name} ({context.storage.uri})")
        yield secondary_keys(column.texts(values), keys)


def _records(context: ProducerContext, partition: str, pairs: pa.Array, schema: str | None) -> EncodedRecords:
    """Records of pairs; without a schema, deletes of pairs."""
    version = index_version(partition, context.config.version, context.definitions)
    hashed = secondary_routing(pairs) if version != "V1" else None
    if schema is None:
        return EncodedRecords(partition, pairs, pa.nulls(len(pairs), pa.binary()), hashed)
    not_deleted = pa.repeat(pa.scalar(False), len(pairs))
    rows = pa.Table.from_arrays([pairs, not_deleted], schema=SECONDARY)
    keys, values = encode_records(PartitionKind.SECONDARY_INDEX, rows, schema)
    return EncodedRecords(partition, keys, values, hashed)
