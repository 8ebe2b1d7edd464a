"""Records of ``secondary_index_<name>``: pairs of a column value and a record key.

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
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.varlen import single_chunk
from hudi_fast.merging.slice_merge import key_columns
from hudi_fast.metadata_table.definitions import index_version
from hudi_fast.metadata_table.indexed_values import IndexedColumn, type_of_column
from hudi_fast.metadata_table.keys import secondary_keys, secondary_routing, split_secondary_keys
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.read import lookup
from hudi_fast.metadata_table.records import SECONDARY, encode_records
from hudi_fast.metadata_table.updates.produce_base import (
    EncodedRecords,
    GroupChange,
    ProducerContext,
    slice_bytes,
    slice_rows,
    stored_schema,
)
from hudi_fast.metadata_table.updates.produce_records import keys_of
from hudi_fast.view.slices import FileSlice, latest_slices

__all__ = ["PairsOfGroup", "PairsOfSlice", "check_secondary"]


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
