"""Ordering values of delete entries <-> Arrow columns.

Each kind of ordering value has a branch, and each branch an Arrow type:

======  ======================  ======================
branch  wrapper                 Arrow
======  ======================  ======================
1       BooleanWrapper          bool
2, 3    IntWrapper, LongWrapper int32, int64
4, 5    Float-, DoubleWrapper   float32, float64
6, 7    Bytes-, StringWrapper   binary, string
8       DateWrapper             date32
9       DecimalWrapper          decimal128(30, 15)
10      TimeMicrosWrapper       time64[us]
11      TimestampMicrosWrapper  timestamp[us, UTC]
12      ArrayWrapper            several columns (inside it: LocalDateWrapper, date32)
======  ======================  ======================

Fewer kinds are written: dates, times and timestamps are written as the column's int or long, because Hudi's Spark
reader compares the entry's value with an int or long and fails on another Java class
(OrderingValueEngineTypeConverter, Hudi 1.2.0). Readers therefore find ints and longs for such columns, in files of
Apache Hudi, too, and must cast them to the column's type.

A column must have the same branch in all entries of a block; this holds if all rows of its writer had one schema.
Source: spec section 6.5; HoodieAvroWrapperUtils, Hudi 1.2.0.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import CorruptTableError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.formats.varlen import fixed_items, string_array, varlen_buffers
from hudi_fast.kernels import delete_records as reading
from hudi_fast.kernels import delete_records as writing
from hudi_fast.values import dataclass

__all__ = ["BlockPlace", "checked", "column_items", "default_rows", "null_rows", "read_ordering", "validity_of"]

_DECIMAL = pa.decimal128(30, 15)
_ARRAY = 12

# Branch -> (Arrow type, bytes of a value; 0 for Avro ints and longs).
_NUMBERS: dict[int, tuple[pa.DataType, int]] = {
    1: (pa.bool_(), 1),
    2: (pa.int32(), 0),
    3: (pa.int64(), 0),
    4: (pa.float32(), 4),
    5: (pa.float64(), 8),
    8: (pa.date32(), 0),
    10: (pa.time64("us"), 0),
    11: (pa.timestamp("us", tz="UTC"), 0),
    12: (pa.date32(), 0),
}
_VARLEN: dict[int, pa.DataType] = {6: pa.binary(), 7: pa.string()}
_DECIMAL_BRANCH = 9
_INT_TYPES = (pa.int32(), pa.date32(), pa.time32("ms"))
_LONG_TYPES = (pa.int64(), pa.time64("us"))


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """Position of a block's list of entries, for messages.

    Attributes:
        path: the log file.
        offset: byte position of the list in the file.
    """

    path: str
    offset: int

    def corrupt(self, message: str, at: int = 0) -> CorruptTableError:
        """The error for an invalid byte at position ``at`` of the list."""
        return CorruptTableError(message, self.path, self.offset + at)

    def unsupported(self, message: str) -> UnsupportedFeatureError:
        """The error for valid but unsupported content."""
        return UnsupportedFeatureError(f"{message} [file {self.path}, byte {self.offset}]")


# ---- reading


def read_ordering(
    data: npt.NDArray[np.uint8],
    branch: npt.NDArray[np.int32],
    value_at: npt.NDArray[np.int64],
    items: npt.NDArray[np.int64],
    present: npt.NDArray[np.bool_],
    place: BlockPlace,
) -> tuple[pa.Array, ...]:
    """Ordering values of n entries that the kernels have checked; one column of n per ordering value.

    Args:
        data: uint8[], the list of entries.
        branch: int32[n], from ``read_deletes``.
        value_at: int64[n], from ``read_deletes``.
        items: int64[n], from ``read_deletes``.
        present: bool[n], which entries have an ordering value.
        place: position of the list, for messages.

    Raises:
        CorruptTableError: a value is invalid for its type.
        UnsupportedFeatureError: values of one column have different types, or entries have different numbers of values.
    """
    kind = _one_branch(branch[present], place)
    if kind is None:
        return ()
    if kind != _ARRAY:
        return (_read_column(data, kind, value_at, present, place),)
    widths = np.unique(items[present])
    if widths.size > 1:
        raise place.unsupported(f"Deletes with different numbers of ordering values ({widths.tolist()}) in one block")
    columns, rows = int(widths[0]), present.size
    item_branch, item_at = np.empty(columns * rows, np.int32), np.empty(columns * rows, np.int64)
    reading.locate_items(data, value_at, present, item_branch, item_at)
    found = []
    for column in range(columns):
        rows_of = slice(column * rows, (column + 1) * rows)
        has_value = item_branch[rows_of] != 0
        kind = _one_branch(item_branch[rows_of][has_value], place)
        if kind is None:
            found.append(pa.nulls(rows))
        else:
            found.append(_read_column(data, kind, item_at[rows_of], has_value, place))
    return tuple(found)


def _one_branch(branch: npt.NDArray[np.int32], place: BlockPlace) -> int | None:
    """The branch of all values; None without values."""
    kinds = np.unique(branch)
    if kinds.size > 1:
        raise place.unsupported(
            f"Deletes with ordering values of different types (branches {kinds.tolist()}) in one block"
        )
    return int(kinds[0]) if kinds.size else None


def _read_column(
    data: npt.NDArray[np.uint8],
    branch: int,
    value_at: npt.NDArray[np.int64],
    present: npt.NDArray[np.bool_],
    place: BlockPlace,
) -> pa.Array:
    validity, nulls = validity_of(present)
    rows = present.size
    if branch in _VARLEN:
        offsets = np.empty(rows + 1, np.int32)
        values = np.empty(reading.measure_values(data, value_at, present, offsets), np.uint8)
        reading.copy_values(data, value_at, present, offsets, values)
        array = string_array(offsets, values, _VARLEN[branch], validity, nulls)
    elif branch == _DECIMAL_BRANCH:
        words = np.empty(2 * rows, np.uint64)
        bad = int(reading.read_decimals(data, value_at, present, words))
        if bad >= 0:
            raise place.corrupt("Expected a decimal of up to 30 digits.", int(value_at[bad]))
        array = pa.Array.from_buffers(_DECIMAL, rows, [validity, pa.py_buffer(words)], nulls)
    else:
        numbers = np.empty(rows, np.int64)
        reading.read_numbers(data, value_at, present, _NUMBERS[branch][1], numbers)
        array = _number_array(branch, numbers, validity, nulls, place)
    return checked(array, "ordering values", place)


def _number_array(
    branch: int, numbers: npt.NDArray[np.int64], validity: pa.Buffer | None, nulls: int, place: BlockPlace
) -> pa.Array:
    kind, width = _NUMBERS[branch]
    if width == 1:
        return pa.Array.from_buffers(kind, len(numbers), [validity, _bits(numbers != 0)], nulls)
    items = numbers
    if kind.bit_width == 32:
        items = numbers.astype(np.uint32) if width else numbers.astype(np.int32)
        if not width and not np.array_equal(items, numbers):
            raise place.corrupt("Expected 32-bit ordering values, found larger ones.")
    return pa.Array.from_buffers(kind, len(numbers), [validity, pa.py_buffer(items)], nulls)


def checked(array: pa.Array, what: str, place: BlockPlace) -> pa.Array:
    """Return ``array`` if its values are valid for its type (UTF-8, digits of decimals, times of a day).

    Raises:
        CorruptTableError: a value is invalid; ``what`` names the values.
    """
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise place.corrupt(f"The {what} of a delete block are malformed: {error}.") from error
    return array


def _bits(flags: npt.NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def validity_of(present: npt.NDArray[np.bool_]) -> tuple[pa.Buffer | None, int]:
    """Arrow's validity bitmap and number of nulls."""
    nulls = present.size - int(np.count_nonzero(present))
    return (_bits(present), nulls) if nulls else (None, 0)


# ---- writing


def null_rows(array: pa.Array) -> npt.NDArray[np.bool_]:
    """bool[n], writable: rows with a null."""
    if array.null_count == 0:
        return np.zeros(len(array), np.bool_)
    return np.array(array.is_null().to_numpy(zero_copy_only=False), np.bool_)


def default_rows(is_default: npt.NDArray[np.bool_], ordering: list[pa.Array], keys: pa.Array) -> npt.NDArray[np.bool_]:
    """bool[n]: the rows of ``is_default``, and the rows without an ordering value.

    Raises:
        InvalidDataError: a row that is not in ``is_default`` has a null among several ordering values.
    """
    if not ordering:
        return np.ones_like(is_default)
    absent = [null_rows(column) for column in ordering]
    if len(ordering) == 1:
        return np.asarray(is_default | absent[0])
    partly = np.flatnonzero(np.logical_or.reduce(absent) & ~is_default)
    if partly.size:
        raise InvalidDataError(
            f"Hudi cannot read a delete with a null among {len(ordering)} ordering values; {partly.size} deletes have "
            f"one, the first for record key {keys[int(partly[0])].as_py()!r}. Fill the ordering fields."
        )
    return is_default


def column_items(
    column: pa.Array, present: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """A column's values as stored in entries, each after its branch: (int64[n + 1] offsets, uint8[] bytes).

    Args:
        column: n ordering values.
        present: bool[n], the rows to write, which are not null; other rows get no bytes.

    Raises:
        InvalidDataError: a decimal does not fit.
        UnsupportedFeatureError: deletes cannot store the type.
    """
    kind, rows = column.type, len(column)
    offsets = np.empty(rows + 1, np.int64)
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        column = column.cast(pa.string() if pa.types.is_large_string(kind) else pa.binary())
        kind = column.type
    if kind in _VARLEN.values():
        branch = 6 if kind == pa.binary() else 7
        values = varlen_buffers(column)
        out = np.empty(6 * rows + int(values.offsets[-1] - values.offsets[0]), np.uint8)
        used = writing.varlen_items(*values, present, branch, offsets, out)
    elif pa.types.is_decimal(kind):
        words = fixed_items(_wide_decimals(column)).view(np.uint64)
        out = np.empty(18 * rows, np.uint8)
        used = writing.decimal_items(words, present, _DECIMAL_BRANCH, offsets, out)
    else:
        branch = _number_branch(kind)
        out = np.empty(11 * rows, np.uint8)
        used = writing.number_items(_number_bits(column), present, branch, _NUMBERS[branch][1], offsets, out)
    return offsets, out[: int(used)]


def _number_branch(kind: pa.DataType) -> int:
    """The branch of a column of numbers."""
    if kind in _INT_TYPES:
        return 2
    if kind in _LONG_TYPES or (pa.types.is_timestamp(kind) and kind.unit in ("ms", "us")):
        return 3
    found = next((branch for branch in (1, 4, 5) if _NUMBERS[branch][0] == kind), None)
    if found is None:
        raise UnsupportedFeatureError(f"Deletes cannot store ordering values of type {kind}.")
    return found


def _number_bits(column: pa.Array) -> npt.NDArray[np.int64]:
    """int64[n]: numbers, floats as bits; undefined for nulls."""
    if column.type == pa.bool_():
        return np.asarray(column.fill_null(False).to_numpy(zero_copy_only=False), np.int64)
    items = fixed_items(column)
    if pa.types.is_floating(column.type):
        return items.astype(np.int64)
    return items.view(np.int32 if column.type.bit_width == 32 else np.int64).astype(np.int64)


def _wide_decimals(column: pa.Array) -> pa.Array:
    """The column as decimal128(30, 15)."""
    if column.type.scale > _DECIMAL.scale:
        raise UnsupportedFeatureError(
            f"Deletes store decimals with up to {_DECIMAL.scale} digits after the point, not {column.type}."
        )
    try:
        return column.cast(_DECIMAL)
    except pa.ArrowInvalid as error:
        raise InvalidDataError(
            f"Deletes store decimals with up to {_DECIMAL.precision - _DECIMAL.scale} digits before the point: {error}."
        ) from error
