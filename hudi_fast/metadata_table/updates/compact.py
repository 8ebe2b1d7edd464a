"""Compacts a file group: its entries in key order, in pieces of bounded size.

::

    base file, log blocks ─► a block of each ─► entries up to the least last key:
        keys that a log has ─► fold ─► encoded ─┐
        other keys of the base file, as stored ─┴─► merged, sorted ─► piece

Only the changed entries are decoded, the rest is copied. Memory holds one block of each file, and log blocks of up to
8 MiB as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.metadata_table.fold import Layer, fold
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.read import layer_streams, record_kind
from hudi_fast.metadata_table.records import decode_records, encode_records
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.metadata_table.updates.groups import GroupWriter
from hudi_fast.metadata_table.updates.record_bins import Entries, count_up_to, key_bytes
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.slices import FileSlice

__all__ = ["CompactGroup", "GroupSlice", "OutOfOrderError", "all_entries", "compacted_entries"]


class OutOfOrderError(Exception):
    """The keys of a file do not ascend by their bytes."""


@dataclass(frozen=True, slots=True)
class GroupSlice:
    """A slice to compact.

    Attributes:
        partition: partition of the metadata table.
        number: number of the file group within the partition.
        slice: the slice, with only the log files of the plan.
    """

    partition: str
    number: int
    slice: FileSlice


_SMALL = 1 << 20
"""Entries of slices up to this size in bytes are sorted in memory."""


@dataclass(frozen=True, slots=True)
class CompactGroup:
    """Compacts slices, one at a time. Picklable, for tasks on any machine.

    A repeated call writes the same file again.
    """

    table: MetadataTable
    writer: GroupWriter

    def __call__(self, one: GroupSlice) -> WriteStat:
        """Write the new base file of a slice.

        Raises:
            CorruptTableError: a file is missing or corrupt.
        """
        where = self.table, one.partition, one.slice, self.writer.schema
        write = partial(self.writer.compacted, one.partition, one.number, logs=one.slice.log_files)
        if one.slice.weight <= _SMALL:  # many short pieces take longer than one sort
            return write(entries=[all_entries(*where)])
        try:
            return write(entries=compacted_entries(*where))
        except OutOfOrderError:
            return write(entries=[all_entries(*where)])


def compacted_entries(table: MetadataTable, partition: str, slice_: FileSlice, schema: str) -> Iterator[Entries]:
    """The entries of a compacted slice's new base file, in consecutive pieces.

    Values are encoded with ``schema`` (Avro JSON).

    Raises:
        CorruptTableError: a file is missing or corrupt.
        OutOfOrderError: keys of a file do not ascend by their bytes; see :func:`all_entries`.
        UnsupportedFeatureError: the kind of the partition is unknown, or values have an unsupported type.
    """
    kind = record_kind(table, partition)
    cursors = [_Cursor(stream) for stream in layer_streams(table, slice_)]
    based = slice_.base_file is not None
    while (bound := min((last for one in cursors if (last := one.last()) is not None), default=None)) is not None:
        layers = [one.up_to(bound) for one in cursors]
        base, logs = (layers[0], layers[1:]) if based else (None, layers)
        changes = [one for one in logs if one is not None]
        if base is not None:
            untouched, touched = _parted(base, changes)
            yield _merged(_as_stored(kind, untouched, schema), _encoded(kind, [touched, *changes], schema))
        else:
            yield _encoded(kind, changes, schema)


def all_entries(table: MetadataTable, partition: str, slice_: FileSlice, schema: str) -> Entries:
    """The entries of a compacted slice's new base file, sorted in memory, for files with keys in another order.

    Arguments and errors are the same as for :func:`compacted_entries`.
    """
    layers = [layer for stream in layer_streams(table, slice_) for layer in stream]
    return _encoded(record_kind(table, partition), layers, schema)


class _Cursor:
    """Reads the ascending entries of one file up to a key at a time."""

    def __init__(self, stream: Iterator[Layer]) -> None:
        self._stream = stream
        self._rest: Layer | None = None
        self._before: bytes | None = None
        self._last = b""

    def last(self) -> bytes | None:
        """The last key of the entries that were read; None after the end of the file."""
        while self._rest is None:
            layer = next(self._stream, None)
            if layer is None:
                return None
            if len(layer.keys):
                self._take(layer)
        return self._last

    def up_to(self, bound: bytes) -> Layer | None:
        """The next entries whose keys are not above ``bound``. ``bound`` must not be above :meth:`last`."""
        if self._rest is None:
            return None
        count = len(self._rest.keys) if self._last <= bound else count_up_to(self._rest.keys, bound)
        found = _rows(self._rest, slice(0, count))
        self._rest = _rows(self._rest, slice(count, None)) if count < len(self._rest.keys) else None
        return found if count else None

    def _take(self, layer: Layer) -> None:
        if layer.values is None:  # keys of a delete block are in any order
            layer = replace(layer, keys=layer.keys.take(pc.array_sort_indices(layer.keys)))
        first, last = key_bytes(layer.keys[0]), key_bytes(layer.keys[-1])
        if self._before is not None and first <= self._before:
            raise OutOfOrderError(layer.where)
        self._rest, self._before, self._last = layer, last, last


def _rows(layer: Layer, rows: slice) -> Layer:
    return replace(layer, keys=layer.keys[rows], values=None if layer.values is None else layer.values[rows])


def _parted(base: Layer, changes: Sequence[Layer]) -> tuple[Layer, Layer]:
    """The entries of a base file whose keys are in no change, and the other entries."""
    if not changes:
        return base, _rows(base, slice(0, 0))
    assert base.values is not None
    known = pc.is_in(base.keys, pa.concat_arrays([one.keys for one in changes]))
    parts = [
        replace(base, keys=base.keys.filter(one), values=base.values.filter(one)) for one in (pc.invert(known), known)
    ]
    return parts[0], parts[1]


def _as_stored(kind: PartitionKind, layer: Layer, schema: str) -> Entries:
    """The stored entries, re-encoded if they have another schema."""
    assert layer.values is not None
    if layer.schema == schema:
        return layer.keys, layer.values
    return encode_records(kind, decode_records(kind, layer.keys, layer.values, layer.schema, layer.where), schema)


def _encoded(kind: PartitionKind, layers: Sequence[Layer], schema: str) -> Entries:
    """The live records of the layers, encoded and sorted by key."""
    return _sorted(*encode_records(kind, fold(kind, layers), schema))


def _merged(one: Entries, other: Entries) -> Entries:
    if not len(other[0]):
        return one
    return _sorted(pa.concat_arrays([one[0], other[0]]), pa.concat_arrays([one[1], other[1]]))


def _sorted(keys: pa.Array, values: pa.Array) -> Entries:
    order = pc.array_sort_indices(keys)
    return keys.take(order), values.take(order)
