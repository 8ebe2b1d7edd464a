"""Column statistics of a file: smallest and largest value, nulls, sizes (``HoodieColumnRangeMetadata``, 1.2.0).

::

    Parquet footer ── ranges_of_footer ─┐  for columns without complete statistics: ranges_of_file reads the column
    rows ─────────── ranges_of_rows ────┼─► {column: ColumnRange} ── merge_ranges ─► ranges of several files
                                        └── with_nans: footers omit NaN, which is larger than every number

Columns have the names of :mod:`hudi_fast.formats.parquet.leaf_columns`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Context, Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_fast.formats.base_file import BaseFileReader, ShortBounds
from hudi_fast.formats.parquet.leaf_columns import leaf_columns, leaf_values
from hudi_fast.values import dataclass

__all__ = [
    "ColumnRange",
    "ColumnRanges",
    "bounds",
    "merge_ranges",
    "ranges_of_file",
    "ranges_of_footer",
    "ranges_of_rows",
    "with_nans",
]

_MAX_LENGTH = 1024
"""Maximum characters (or bytes) of a bound; longer bounds are rounded to shorter ones."""

_EXACT = Context(prec=80)


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """One column of one file. Picklable.

    Attributes:
        low: smallest value, in the column's Arrow type; None if all values are null, or unknown.
        high: largest value; NaN is larger than all numbers, as in Spark.
        null_count: number of nulls.
        value_count: number of values, including nulls.
        total_size: bytes of the column in the file; 0 for log files.
        total_uncompressed_size: uncompressed bytes of the column in the file; 0 for log files.
    """

    low: pa.Scalar | None
    high: pa.Scalar | None
    null_count: int
    value_count: int
    total_size: int = 0
    total_uncompressed_size: int = 0

    @property
    def is_known(self) -> bool:
        """Whether the range is complete: it has bounds, or all values are null."""
        return self.low is not None or self.null_count >= self.value_count


_UNKNOWN = ColumnRange(None, None, 0, 1)

ColumnRanges: TypeAlias = Mapping[str, ColumnRange]
"""Ranges by dotted name, one per column of the file."""


# ---- from rows


def ranges_of_rows(rows: pa.Table | pa.RecordBatch, columns: Collection[str] | None = None) -> dict[str, ColumnRange]:
    """The ranges of rows in memory; sizes are 0.

    ``columns`` are dotted names; None for all. Columns that ``rows`` lack are omitted.
    """
    known = leaf_columns(rows.schema)
    found = {}
    for name in known if columns is None else [name for name in columns if name in known]:
        values = leaf_values(rows, name)
        low, high = bounds(values)
        found[name] = ColumnRange(low, high, values.null_count, len(values))
    return found


def bounds(values: pa.Array | pa.ChunkedArray) -> tuple[pa.Scalar | None, pa.Scalar | None]:
    """Smallest and largest value, shortened if they are long; None without values. NaN is the largest value."""
    if len(values) == values.null_count:
        return None, None
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    found = pc.min_max(values)
    low, high = found["min"], found["max"]
    if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
        high = pa.scalar(float("nan"), values.type)
    return _short(low, high)


def with_nans(ranges: ColumnRanges, names: Collection[str], schema: pa.Schema) -> ColumnRanges:
    """Add NaN to the ranges of a footer, for columns with the dotted ``names``."""
    if not names:
        return ranges
    changed, kinds = dict(ranges), leaf_columns(schema)
    for name in names:
        one = changed.get(name)
        if one is not None:
            nan = pa.scalar(float("nan"), kinds[name])
            changed[name] = replace(one, low=nan if one.low is None else one.low, high=nan)
    return changed


# ---- from Parquet


def ranges_of_footer(
    metadata: pq.FileMetaData,
    schema: pa.Schema,
    columns: Collection[str] | None = None,
    short_bounds: ShortBounds = frozenset(),
) -> dict[str, ColumnRange]:
    """The ranges in a footer, with row groups merged; NaN is omitted, and bounds may be missing.

    Args:
        metadata: the footer.
        schema: columns of the file.
        columns: dotted names; None for all. Columns that the file lacks are omitted.
        short_bounds: column chunks whose statistics cannot be decoded.
    """
    leaves = leaf_columns(schema)
    chosen = {
        name: (number, kind) for number, (name, kind) in enumerate(leaves.items()) if columns is None or name in columns
    }
    parts: dict[str, list[ColumnRange]] = {name: [] for name in chosen}
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for name, (number, kind) in chosen.items():
            parts[name].append(_chunk_range(row_group.column(number), kind, (group, number) in short_bounds))
    return {name: _merged(found) if found else ColumnRange(None, None, 0, 0) for name, found in parts.items()}


def ranges_of_file(reader: BaseFileReader, columns: Collection[str] | None = None) -> dict[str, ColumnRange]:
    """The ranges of a base file: from its footer, and by reading a column if the footer is incomplete.

    The ranges of other formats than Parquet are unknown: Apache Hudi records none for their files.

    ``columns`` are dotted names; None for all. Columns that the file lacks are omitted.

    Raises:
        CorruptTableError: the file cannot be read.
    """
    parts = reader.parts
    if len(parts) > 1:
        return _ranges_of_parts(reader, parts, columns)
    if reader.metadata is None:
        return {name: _UNKNOWN for name in leaf_columns(reader.schema) if columns is None or name in columns}
    found = ranges_of_footer(reader.metadata, reader.schema, columns, reader.short_bounds)
    leaves, has_nan_safe_bounds = leaf_columns(reader.schema), reader.has_nan_safe_bounds
    for name, one in found.items():
        unsure = not has_nan_safe_bounds and pa.types.is_floating(leaves[name]) and one.null_count < one.value_count
        if one.is_known and not unsure:
            continue
        seen = [ranges_of_rows(batch, [name])[name] for batch in reader.batches([name.split(".")[0]])]
        if seen:
            whole = _merged(seen)
            found[name] = replace(one, low=whole.low, high=whole.high, null_count=max(one.null_count, whole.null_count))
    return found


def _ranges_of_parts(
    reader: BaseFileReader, parts: Sequence[BaseFileReader], columns: Collection[str] | None
) -> dict[str, ColumnRange]:
    """The ranges of a file with columns in several files; columns that are in none of these files are read."""
    found: dict[str, ColumnRange] = {}
    for part in parts:
        found = ranges_of_file(part, columns) | found
    missing = [name for name in reader.schema.names if name not in found and (columns is None or name in columns)]
    for name in missing:
        if not pa.types.is_nested(reader.schema.field(name).type):
            found[name] = _merged([ranges_of_rows(batch, [name])[name] for batch in reader.batches([name])])
    return found


# ---- merging


def merge_ranges(parts: Iterable[ColumnRanges]) -> dict[str, ColumnRange]:
    """Merge the ranges of several files: bounds are widened, counts and sizes added.

    A bound that is unknown in one file is unknown in the result.
    """
    found: dict[str, list[ColumnRange]] = {}
    for ranges in parts:
        for name, one in ranges.items():
            found.setdefault(name, []).append(one)
    return {name: _merged(ones) for name, ones in found.items()}


def _merged(parts: list[ColumnRange]) -> ColumnRange:
    if len(parts) == 1:
        return parts[0]
    lows = [one.low for one in parts if one.low is not None]
    highs = [one.high for one in parts if one.high is not None]
    known = all(one.is_known for one in parts)
    return ColumnRange(
        min(lows, key=_order) if lows and known else None,
        max(highs, key=_order) if highs and known else None,
        sum(one.null_count for one in parts),
        sum(one.value_count for one in parts),
        sum(one.total_size for one in parts),
        sum(one.total_uncompressed_size for one in parts),
    )


def _order(value: pa.Scalar) -> Any:
    """A sort key for scalars of one type: texts by their bytes, NaN last."""
    kind = value.type
    if pa.types.is_temporal(kind):
        return value.value
    plain = value.as_py()
    if isinstance(plain, str):
        return plain.encode()
    return (plain != plain, plain) if pa.types.is_floating(kind) else plain


# ---- internals


def _chunk_range(chunk: Any, kind: pa.DataType, is_short: bool) -> ColumnRange:
    """The range of one column in one row group; statistics with short bounds are not decoded."""
    stats = None if is_short else chunk.statistics
    nulls = 0 if stats is None or not stats.has_null_count else int(stats.null_count)
    low = high = None
    if stats is not None and stats.has_min_max:
        low, high = _scalar(stats.min_raw, kind), _scalar(stats.max_raw, kind)
    if low is not None and high is not None:
        low, high = _short(low, high)
    else:
        low = high = None
    return ColumnRange(
        low,
        high,
        nulls,
        int(chunk.num_values),
        int(chunk.total_compressed_size),
        int(chunk.total_uncompressed_size),
    )


def _scalar(raw: Any, kind: pa.DataType) -> pa.Scalar | None:
    """A stored bound in the column's type; None if the conversion is ambiguous."""
    if pa.types.is_decimal(kind):
        number = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)
        try:
            return pa.scalar(Decimal(number).scaleb(-kind.scale, _EXACT), kind)
        except pa.ArrowInvalid:  # a damaged footer has more digits than the column
            return None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        try:
            return pa.scalar(raw.decode(), kind)
        except UnicodeDecodeError:  # the bound is cut off within a character
            return None
    same = (
        pa.types.is_signed_integer(kind)
        or pa.types.is_boolean(kind)
        or (pa.types.is_floating(kind) and kind.bit_width > 16)
        or pa.types.is_date32(kind)
        or pa.types.is_time(kind)
        or (pa.types.is_timestamp(kind) and kind.unit != "s")
    )
    if same and not isinstance(raw, bytes):
        return pa.scalar(raw, kind)
    if isinstance(raw, bytes) and (pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind)):
        return pa.scalar(raw, kind)
    return None


def _short(low: pa.Scalar, high: pa.Scalar) -> tuple[pa.Scalar | None, pa.Scalar | None]:
    """Bounds of limited length; None if no larger bound exists. Zero is -0.0 as lower and 0.0 as upper bound."""
    if pa.types.is_floating(low.type):
        below, above = (-0.0 if low.as_py() == 0 else low.as_py()), (0.0 if high.as_py() == 0 else high.as_py())
        return pa.scalar(below, low.type), pa.scalar(above, high.type)
    highest = _rounded(high, up=True)
    return (None, None) if highest is None else (_rounded(low, up=False), highest)


def _rounded(value: pa.Scalar, up: bool) -> pa.Scalar | None:
    """A long text or byte string as a shorter one that is not larger (``up``: not smaller); None if none exists."""
    kind = value.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind)):
        return value
    plain = value.as_py()
    if len(plain) <= _MAX_LENGTH:
        return value
    if not up:
        return pa.scalar(plain[:_MAX_LENGTH], kind)
    part = plain[:_MAX_LENGTH]
    if isinstance(part, bytes):
        part = part.rstrip(b"\xff")
        return pa.scalar(part[:-1] + bytes([part[-1] + 1]), kind) if part else None
    part = part.rstrip("\U0010ffff")
    return pa.scalar(part[:-1] + _next_character(part[-1]), kind) if part else None


def _next_character(char: str) -> str:
    code = ord(char) + 1
    return chr(0xE000 if code == 0xD800 else code)  # skips the surrogates
