"""Combine several statistics of one column, of one file or partition, into one that holds for all.

Takes the minimum of minimums, the maximum of maximums, and the sums of counts and sizes. Values whose stored forms do
not compare (decimals of V2 are bytes; wrappers of different kinds) become unknown, which excludes nothing. So does a
range when one of the rows has values but no range. Source: metadata reference 3.2; HoodieTableMetadataUtil, release
1.2.0.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.metadata_table.stat_values import STAT_VALUE

__all__ = ["widen"]

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
