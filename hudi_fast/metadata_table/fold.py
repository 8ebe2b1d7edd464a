"""Fold the stored versions of each key in one file group into its current record.

::

    layers (base file, then log blocks in order of application)
        ─► drop entries before a delete of their key ─► by kind:
             bloom filter, record index, secondary index    keep the newest
             files                                          one map: a name's latest state, its largest size since
             deletion
             statistics                                     the newest exact one, widened by later ones
        ─► drop records that are deletes themselves ─► one flat table

Works on arrays; only values that are needed are decoded. Source: metadata reference 3.2; HoodieMetadataPayload and
HoodieTableMetadataUtil.mergeColumnStatsRecords, release 1.2.0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.records import decode_records, flat_schema
from hudi_fast.metadata_table.stat_values import STAT_VALUE
from hudi_fast.values import dataclass

__all__ = ["Layer", "fold", "widen"]

Numbers = npt.NDArray[np.int64]
_STATS = frozenset({PartitionKind.COLUMN_STATS, PartitionKind.PARTITION_STATS, PartitionKind.EXPRESSION_INDEX})


@dataclass(frozen=True, slots=True)
class Layer:
    """Some entries of one file or log block, each key at most once.

    Attributes:
        keys: string[n].
        values: binary[n], Avro; an empty value deletes its key. None: all entries are deletes.
        schema: Avro JSON of the values.
        where: the file, for messages.
    """

    keys: pa.Array
    values: pa.Array | None
    schema: str
    where: str


def fold(kind: PartitionKind, layers: Sequence[Layer]) -> pa.Table:
    """The live records of one file group.

    ``layers`` are ordered oldest first.

    Returns:
        The flat table of the kind, in the order of the layers.

    Raises:
        CorruptTableError: a value cannot be decoded.
        UnsupportedFeatureError: more than 2 GiB of keys in one file group.
    """
    layers = [layer for layer in layers if len(layer.keys)]
    while layers and layers[0].values is None:
        layers = layers[1:]  # no earlier entries to delete
    if not layers:
        return flat_schema(kind).empty_table()
    codes = _codes(layers)
    kept = np.ones(len(codes), np.bool_) if _all_once(codes) else _not_deleted(layers, codes)
    kept &= ~_deletes(layers)
    newest_wins = kind is not PartitionKind.FILES and kind not in _STATS
    if newest_wins:
        kept &= _last_of_each(codes, np.flatnonzero(kept))
    rows = _decoded(kind, layers, kept)
    if kind is PartitionKind.FILES:
        return _fold_files(rows)
    if kind in _STATS:
        rows = _fold_stats(rows, codes[kept])
    return _live(rows)


# ---- entries


def _codes(layers: Sequence[Layer]) -> Numbers:
    """A number per entry, equal for equal keys: int64[entries]."""
    try:
        keys = pa.concat_arrays([layer.keys for layer in layers])
    except pa.ArrowInvalid as error:
        raise UnsupportedFeatureError(
            f"A file group of the metadata table holds more than 2 GiB of keys [file {layers[0].where}]: {error}"
        ) from error
    if len(layers) == 1:
        return np.arange(len(keys), dtype=np.int64)
    return _numbers(keys)


def _all_once(codes: Numbers) -> bool:
    return len(codes) == 0 or int(codes.max()) + 1 == len(codes)


def _deletes(layers: Sequence[Layer]) -> npt.NDArray[np.bool_]:
    """The entries that delete their key."""
    return np.concatenate(
        [
            np.ones(len(layer.keys), np.bool_)
            if layer.values is None
            else pc.equal(pc.binary_length(layer.values), 0).to_numpy(zero_copy_only=False)
            for layer in layers
        ]
    )


def _not_deleted(layers: Sequence[Layer], codes: Numbers) -> npt.NDArray[np.bool_]:
    """The entries after the last delete of their key."""
    deletes = np.flatnonzero(_deletes(layers))
    last = np.full(int(codes.max()) + 1, -1, np.int64)
    last[codes[deletes]] = deletes  # ascending: the last assignment of a repeated index is kept
    return np.arange(len(codes)) > last[codes]


def _last_of_each(codes: Numbers, among: Numbers) -> npt.NDArray[np.bool_]:
    """Mark the last of the entries ``among`` of each key."""
    last = np.full(int(codes.max()) + 1, -1, np.int64)
    last[codes[among]] = among
    marks = np.zeros(len(codes), np.bool_)
    marks[last[last >= 0]] = True
    return marks


def _decoded(kind: PartitionKind, layers: Sequence[Layer], kept: npt.NDArray[np.bool_]) -> pa.Table:
    tables: list[pa.Table] = []
    start = 0
    for layer in layers:
        mask = kept[start : start + len(layer.keys)]
        start += len(layer.keys)
        if layer.values is None or not mask.any():
            continue
        keys, values = layer.keys, layer.values
        if not mask.all():
            keys, values = keys.filter(pa.array(mask)), values.filter(pa.array(mask))
        tables.append(decode_records(kind, keys, values, layer.schema, layer.where))
    return pa.concat_tables(tables) if tables else flat_schema(kind).empty_table()


def _live(rows: pa.Table) -> pa.Table:
    """Drop records that mark deleted items."""
    if "deleted" not in rows.column_names or not pc.any(rows.column("deleted")).as_py():
        return rows
    return rows.filter(pc.invert(rows.column("deleted")))


# ---- files


def _fold_files(rows: pa.Table) -> pa.Table:
    """One row per name whose last entry is not a delete, with its largest size since the last delete."""
    rows = rows.filter(pc.is_valid(rows.column("name")))
    if not rows.num_rows:
        return rows
    keys, names = (_dense(rows.column(name)) for name in ("key", "name"))
    pairs = pa.array(keys * (int(names.max()) + 1) + names)
    codes = _dense(pairs)
    deleted = rows.column("deleted").to_numpy()
    if _all_once(codes):
        return rows if not deleted.any() else rows.filter(pa.array(~deleted))
    deletes = np.flatnonzero(deleted)
    count = int(codes.max()) + 1
    last, last_delete = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    last[codes] = np.arange(len(codes))
    last_delete[codes[deletes]] = deletes
    since = np.arange(len(codes)) > last_delete[codes]
    sizes = np.zeros(count, np.int64)
    np.maximum.at(sizes, codes[since], rows.column("size").to_numpy()[since])
    live = np.flatnonzero(last > last_delete)
    place = rows.column_names.index("size")
    chosen = rows.take(pa.array(last[live]))
    return chosen.set_column(place, rows.schema.field(place), pa.array(sizes[live]))


def _dense(column: pa.ChunkedArray | pa.Array) -> Numbers:
    """Replace values by numbers from 0."""
    joined = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(joined, pa.ChunkedArray):  # above 2 GiB
        joined = pa.concat_arrays([chunk.cast(pa.large_string()) for chunk in joined.chunks])
    return _numbers(joined)


def _numbers(values: pa.Array) -> Numbers:
    """A number per value, equal for equal values."""
    return np.asarray(values.dictionary_encode().indices.to_numpy(zero_copy_only=False), np.int64)


# ---- statistics


def _fold_stats(rows: pa.Table, codes: Numbers) -> pa.Table:
    """One row per key: the last independent row, widened by later rows.

    A row is independent if it is exact (tight), a delete, or directly after a delete.

    ``rows`` are in order of application; ``codes`` is int64[rows], equal for rows of one key.
    """
    if not rows.num_rows:
        return rows
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    if first.all():
        return rows
    deleted, tight = rows.column("deleted").to_numpy()[order], rows.column("tight").to_numpy()[order]
    independent = first | deleted | tight | np.concatenate([[False], deleted[:-1]])
    key = np.cumsum(first) - 1
    starts = np.zeros(int(key[-1]) + 1, np.int64)
    starts[key[independent]] = np.flatnonzero(independent)
    counted = np.flatnonzero(np.arange(len(order)) >= starts[key])
    return widen(rows.take(pa.array(order[counted])), key[counted])


# ---- combine several statistics of one column, of one file or partition, into one that holds for all
#
# Takes the minimum of minimums, the maximum of maximums, and the sums of counts and sizes. Values whose stored forms
# do not compare (decimals of V2 are bytes; wrappers of different kinds) become unknown, which excludes nothing. A range
# also becomes unknown when one of the rows has values but no range. Source: metadata reference 3.2;
# HoodieTableMetadataUtil, release 1.2.0.


_SUMS = ("value_count", "null_count", "total_size", "total_uncompressed_size")
_DECIMAL = 10  # value_type of V2 whose bytes do not compare


def widen(rows: pa.Table, groups: npt.NDArray[np.int64]) -> pa.Table:
    """One row per group.

    Args:
        rows: statistics (:data:`hudi_fast.metadata_table.records.COLUMN_STATS`), grouped, oldest first within a group.
        groups: int64[rows], ascending from 0.

    Returns:
        The newest row of each group, with ranges, counts and sizes of all.
    """
    last = np.flatnonzero(np.concatenate([groups[1:] != groups[:-1], [True]]))
    newest = rows.take(pa.array(last))
    several = np.bincount(groups) > 1
    if not several.any():
        return newest
    some = pa.array(several[groups])
    rows, codes = rows.filter(some), groups[several[groups]]
    added = _aggregated(rows, codes)
    merged = newest.filter(pa.array(several))
    for name, column in added.items():
        place = merged.column_names.index(name)
        merged = merged.set_column(place, merged.schema.field(place), column)
    back = np.concatenate([np.flatnonzero(~several), np.flatnonzero(several)])
    return pa.concat_tables([newest.filter(pa.array(~several)), merged]).take(pa.array(np.argsort(back)))


def _aggregated(rows: pa.Table, codes: npt.NDArray[np.int64]) -> dict[str, pa.Array]:
    """The columns that change, one value per group in ascending order."""
    inputs: dict[str, pa.Array] = {"code": pa.array(codes), "unknown": _unknown_range(rows)}
    wanted: list[tuple[str, str]] = [("unknown", "any")]
    for side in ("min", "max"):
        for member in STAT_VALUE:
            values = pc.struct_field(rows.column(side), [member.name, "value"])
            if values.null_count < len(values):
                name = f"{side} {member.name}"
                inputs[name] = values
                wanted.append((name, side))
    for name in _SUMS:
        inputs[name] = rows.column(name)
        wanted.append((name, "sum"))
    found = pa.table(inputs).group_by("code").aggregate(wanted).sort_by("code")
    unknown = found.column("unknown_any").combine_chunks()
    result = {side: _union(found, side, unknown) for side in ("min", "max")}
    return result | {name: found.column(f"{name}_sum").combine_chunks() for name in _SUMS}


def _unknown_range(rows: pa.Table) -> pa.Array:
    """Rows whose range does not describe their values, or does not compare in its stored form."""
    lacks_range = pc.or_(pc.is_null(rows.column("min")), pc.is_null(rows.column("max")))
    all_null = pc.fill_null(pc.equal(rows.column("value_count"), rows.column("null_count")), False)
    decimal = pc.fill_null(pc.equal(rows.column("value_type"), _DECIMAL), False)
    return pc.or_(pc.and_(lacks_range, pc.invert(all_null)), decimal).combine_chunks()


def _union(found: pa.Table, side: str, unknown: pa.Array) -> pa.Array:
    """Values of :data:`STAT_VALUE`; null where the range is unknown or the wrappers differ."""
    members: list[pa.Array] = []
    present = np.zeros(found.num_rows, np.int64)
    columns: dict[str, pa.Array] = {}
    for member in STAT_VALUE:
        name = f"{side} {member.name}_{side}"
        if name in found.column_names:
            columns[member.name] = found.column(name).combine_chunks()
            present += columns[member.name].is_valid().to_numpy(zero_copy_only=False)
    known = (present == 1) & ~unknown.to_numpy(zero_copy_only=False)
    for member in STAT_VALUE:
        column = columns.get(member.name)
        if column is None:
            members.append(pa.nulls(found.num_rows, member.type))
            continue
        missing = pc.or_(column.is_null(), pa.array(~known))
        fill = pa.scalar(_zero(member.type.field(0).type), member.type.field(0).type)
        values = pc.fill_null(column, fill).cast(member.type.field(0).type)
        members.append(pa.StructArray.from_arrays([values], fields=[member.type.field(0)], mask=missing))
    return pa.StructArray.from_arrays(members, fields=list(STAT_VALUE), mask=pa.array(~known))


def _zero(kind: pa.DataType) -> object:
    """A value of the type, to fill nulls."""
    if pa.types.is_boolean(kind):
        return False
    if pa.types.is_string(kind):
        return ""
    if pa.types.is_binary(kind):
        return b""
    return pa.scalar(0, pa.int64()).cast(kind).as_py() if pa.types.is_time(kind) else 0
