"""Compacts a file group: its entries in key order, in pieces of bounded size.

::

    log layers ─► changed keys ─► their entries in the base file ─► fold ─► encoded, sorted ─┐
    base file ─► block by block, without those keys, as stored ──────────────────────────────┴─► merged

A base file may be large, while its log holds the changes of a few commits. Only the changed entries are decoded, the
rest is copied: memory holds the log and one block of the base file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.formats.hfile.reader import HFileReader
from hudi_fast.metadata_table.fold import Layer, fold
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.read import log_layers, record_kind
from hudi_fast.metadata_table.records import decode_records, encode_records
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.metadata_table.updates.groups import GroupWriter
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.slices import FileSlice

__all__ = ["CompactGroup", "Entries", "GroupSlice", "compacted_entries"]

Entries = tuple[pa.Array, pa.Array]
"""Keys (binary or string) and values (binary), ascending by key."""


@dataclass(frozen=True, slots=True)
class GroupSlice:
    """A slice to compact.

    Attributes:
        partition: of the metadata table.
        number: of its file group within the partition.
        slice: with the log files of the plan only.
    """

    partition: str
    number: int
    slice: FileSlice


@dataclass(frozen=True, slots=True)
class CompactGroup:
    """Compacts slices, one at a time; picklable, for tasks on any machine.

    A repeated call writes the same file again.
    """

    table: MetadataTable
    writer: GroupWriter

    def __call__(self, one: GroupSlice) -> WriteStat:
        """Write the new base file of a slice.

        Raises:
            CorruptTableError: a file is missing or corrupt.
        """
        entries = compacted_entries(self.table, one.partition, one.slice, self.writer.schema)
        return self.writer.compacted(one.partition, one.number, entries, one.slice.log_files)


def compacted_entries(table: MetadataTable, partition: str, slice_: FileSlice, schema: str) -> Iterator[Entries]:
    """The entries of a compacted slice's new base file, in consecutive pieces.

    Values are encoded with ``schema`` (Avro JSON).

    Raises:
        CorruptTableError: a file is missing or corrupt.
        UnsupportedFeatureError: an unknown kind of partition, or values of an unsupported type.
    """
    kind, layers = record_kind(table, partition), log_layers(table, slice_)
    if slice_.base_file is None:
        yield _encoded(kind, layers, schema)
        return
    path = slice_.base_file.path
    with table.storage.open_input(path) as source, HFileReader.open(source, path) as reader:
        own = reader.schema or schema
        touched = pa.concat_arrays([pa.array([], pa.string()), *(layer.keys for layer in layers)]).unique()
        positions, values = reader.lookup(touched)
        stored = Layer(touched.take(pa.array(positions)), values, own, path)
        changed = _encoded(kind, [stored, *layers], schema)
        for block in _untouched(reader, touched):
            entries = block if own == schema else _recoded(kind, block, own, schema, path)
            ahead = _count_up_to(changed[0], block[0][-1].as_py()) if len(block[0]) else 0
            yield _merged(entries, (changed[0].slice(0, ahead), changed[1].slice(0, ahead)))
            changed = changed[0].slice(ahead), changed[1].slice(ahead)
        yield changed


def _untouched(reader: HFileReader, touched: pa.Array) -> Iterator[Entries]:
    """The base file's blocks without the keys in the log."""
    known = touched.cast(pa.binary())
    for keys, values in reader.scan():
        kept = pc.invert(pc.is_in(keys, known))
        yield keys.filter(kept), values.filter(kept)


def _encoded(kind: PartitionKind, layers: list[Layer], schema: str) -> Entries:
    """The live records of the layers, encoded and sorted by key."""
    keys, values = encode_records(kind, fold(kind, layers), schema)
    return _sorted(keys.cast(pa.binary()), values)


def _recoded(kind: PartitionKind, entries: Entries, own: str, schema: str, path: str) -> Entries:
    """Entries re-encoded with another schema."""
    keys, values = encode_records(kind, decode_records(kind, *entries, own, path), schema)
    return keys.cast(pa.binary()), values


def _merged(one: Entries, other: Entries) -> Entries:
    if not len(other[0]):
        return one
    return _sorted(pa.concat_arrays([one[0], other[0]]), pa.concat_arrays([one[1], other[1]]))


def _sorted(keys: pa.Array, values: pa.Array) -> Entries:
    order = pc.array_sort_indices(keys)
    return keys.take(order), values.take(order)


def _count_up_to(keys: pa.Array, last: bytes) -> int:
    """The number of ascending keys that are not above ``last``."""
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) // 2
        if keys[middle].as_py() <= last:
            low = middle + 1
        else:
            high = middle
    return low
