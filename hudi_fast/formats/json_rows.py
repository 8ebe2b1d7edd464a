"""Arrow rows -> JSON text, one object per row, in the formats of Hudi's change queries.

::

    column ─► text of each value (kernels.json_text; whole numbers by Arrow) ─┐
    column ─► ...                                                            ─┼─► members side by side ─► objects
    nested: items ─► texts ─► joined list by list ────────────────────────────┘

Hudi writes the text of a row in one of two formats (:class:`JsonStyle`). A member has its column's name; members are
in schema order. Fractional numbers have the shortest form that parses to the same value, in Java's layout
(``Double.toString`` of JDK 19 and later; older releases sometimes print an extra digit).

=================  =============================================  =========================================
type               ROW                                            AVRO
=================  =============================================  =========================================
null member        omitted, also in nested objects and maps       ``null``
text               escapes for ``"``, ``\\\\`` and below U+0020      also U+007F-009F and U+2000-20FF
binary             base64                                         text, one character per byte
fixed size binary  base64                                         ``[1, -2, 3]``
date               days since 1970-01-01                          the same
time, timestamp    timestamps in microseconds, times as stored    as stored
decimal            number, all digits of its scale                unsupported: pass the stored bytes
=================  =============================================  =========================================

Sources: ``InternalRowToJsonStringConverter`` of Hudi 1.2.0 with Jackson 2.15, ``GenericData.toString`` of Avro 1.11.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import InvalidDataError, UnsupportedFeatureError
from hudi_fast.formats.varlen import fixed_items, string_array, varlen_buffers
from hudi_fast.kernels.java_text import NUMBER_BYTES, POWERS, java_doubles, java_numbers
from hudi_fast.kernels.json_text import (
    BYTE_LIST_WIDTH,
    base64_quoted,
    byte_lists,
    close_objects,
    fill_joined,
    fill_quoted,
    latin_1,
    measure_joined,
    measure_quoted,
    put_parts,
)

__all__ = ["JsonStyle", "json_rows"]

_ROWS_AT_ONCE = 1024
"""Rows that are filled column after column: their text should stay in the processor's cache."""

_MAX_BYTES = 2**31 - 1
_EMPTY = np.zeros(0, dtype=np.uint8)
_NULL = pa.scalar("null")


class JsonStyle(Enum):
    """The JSON format of rows.

    Attributes:
        ROW: as ``InternalRowToJsonStringConverter`` (Hudi 1.2.0): no spaces, null members omitted.
        AVRO: as ``GenericData.toString`` (Avro 1.11): spaces after commas and colons, nulls included.
    """

    ROW = "row"
    AVRO = "avro"


class _Syntax(NamedTuple):
    """Separators of a style, and its escapes of characters (see :func:`measure_quoted`)."""

    style: JsonStyle
    colon: bytes
    separator: bytes
    classes: npt.NDArray[np.uint8]


def json_rows(rows: pa.RecordBatch | pa.StructArray, style: JsonStyle) -> pa.StringArray:
    """Convert n rows to JSON objects, string[n]; null for null structs.

    Raises:
        UnsupportedFeatureError: a column has a type without JSON form.
        InvalidDataError: the texts exceed 2 GiB; pass fewer rows.
    """
    syntax = _SYNTAXES[style]
    if isinstance(rows, pa.RecordBatch):
        return _object(syntax, rows.schema.names, rows.columns, rows.num_rows)
    return _struct(syntax, rows)


# ---- values


def _texts(syntax: _Syntax, values: pa.Array) -> pa.StringArray:
    """The text of each value; ``null`` for null."""
    return _null_as_text(_formatted(syntax, values))


def _formatted(syntax: _Syntax, values: pa.Array) -> pa.StringArray:
    """The text of each value; null for null."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _formatted(syntax, values.dictionary_decode())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _quoted(syntax, values.cast(pa.string()))
    if pa.types.is_struct(kind):
        return _struct(syntax, values)
    if pa.types.is_map(kind):
        return _map(syntax, values)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _list(syntax, values)
    if pa.types.is_floating(kind):
        return _fractions(values)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _bytes(syntax, values)
    return _number(syntax, values)


def _number(syntax: _Syntax, values: pa.Array) -> pa.StringArray:
    kind = values.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind):
        return values.cast(pa.string())
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return values.cast(pa.int32()).cast(pa.string())
    if pa.types.is_time64(kind):
        return values.cast(pa.int64()).cast(pa.string())
    if pa.types.is_timestamp(kind):
        micros = values.cast(pa.timestamp("us", kind.tz)) if syntax.style is JsonStyle.ROW else values
        return micros.cast(pa.int64()).cast(pa.string())
    if pa.types.is_decimal(kind) and syntax.style is JsonStyle.ROW:
        return values.cast(pa.string())
    raise UnsupportedFeatureError(f"Values of type {kind} have no {syntax.style.name} form in JSON.")


def _quoted(syntax: _Syntax, values: pa.StringArray) -> pa.StringArray:
    offsets, data = varlen_buffers(values)
    ends = np.empty(len(values) + 1, dtype=np.int32)
    out = _room(int(measure_quoted(offsets, data, syntax.classes, ends)))
    fill_quoted(offsets, data, syntax.classes, ends, out)
    return _with_validity(string_array(ends, out), values)


def _bytes(syntax: _Syntax, values: pa.Array) -> pa.StringArray:
    fixed = pa.types.is_fixed_size_binary(values.type)
    plain = values.cast(pa.binary())
    offsets, data = varlen_buffers(plain)
    count, size = len(plain), int(offsets[-1]) - int(offsets[0])
    ends = np.empty(count + 1, dtype=np.int32)
    if syntax.style is JsonStyle.ROW:
        out = _room(2 * count + 4 * (size // 3 + count))
        base64_quoted(offsets, data, ends, out)
    elif fixed:
        out = _room(2 * count + BYTE_LIST_WIDTH * size)
        byte_lists(offsets, data, ends, out)
    else:
        out = _room(2 * size)
        latin_1(offsets, data, ends, out)
        return _quoted(syntax, _with_validity(string_array(ends, out[: ends[-1]]), values))
    return _with_validity(string_array(ends, out[: ends[-1]]), values)


def _fractions(values: pa.Array) -> pa.StringArray:
    ends = np.empty(len(values) + 1, dtype=np.int32)
    out = _room(NUMBER_BYTES * len(values))
    if pa.types.is_float64(values.type):
        java_doubles(fixed_items(values).view(np.int64), POWERS, ends, out)
        return _with_validity(string_array(ends, out[: ends[-1]]), values)
    shortest = values.cast(pa.float32() if pa.types.is_float16(values.type) else values.type).cast(pa.string())
    shortest = _second_digits(values, shortest)
    offsets, data = varlen_buffers(shortest)
    java_numbers(offsets, data, ends, out)
    return _with_validity(string_array(ends, out[: ends[-1]]), values)


def _second_digits(values: pa.Array, shortest: pa.StringArray) -> pa.StringArray:
    """Where one digit is enough, Java prints the nearest two-digit number; only the smallest numbers differ by this."""
    tiny = pc.fill_null(pc.and_(pc.less(pc.abs(values), 1e-42), pc.not_equal(values, 0.0)), False)
    if not pc.any(tiny).as_py():
        return shortest
    nearest = [f"{value:.1e}" for value in values.filter(tiny).to_pylist()]
    one_digit = [len(text.partition("e")[0].lstrip("-")) == 1 for text in shortest.filter(tiny).to_pylist()]
    kept = shortest.filter(tiny).to_pylist()
    chosen = [new if one else old for new, old, one in zip(nearest, kept, one_digit, strict=True)]
    return pc.replace_with_mask(shortest, tiny, pa.array(chosen, pa.string()))


# ---- nested values


class _Part(NamedTuple):
    """The next part of each text: a literal and a value text; both omitted where ``kept`` is 0."""

    literal: bytes
    texts: pa.StringArray
    kept: npt.NDArray[np.uint8]


def _object(syntax: _Syntax, names: Sequence[str], columns: Sequence[pa.Array], count: int) -> pa.StringArray:
    """Objects with these columns of n values as members."""
    parts: list[_Part] = []
    for name, column in zip(names, columns, strict=True):
        # The first member starts with a comma, too; the opening brace overwrites it.
        lead = syntax.separator if parts and syntax.style is JsonStyle.AVRO else b","
        literal = lead + json.dumps(name, ensure_ascii=False).encode() + syntax.colon
        parts.append(_Part(literal, _texts(syntax, column), _kept(syntax, column)))
    sizes = _sizes(parts, count)
    offsets = _offsets(np.maximum(sizes, 1) + 1)
    out = _room(int(offsets[-1]))
    starts = offsets[:-1]
    close_objects(starts, _filled(parts, starts, out), out)
    return string_array(offsets.astype(np.int32), out)


def _struct(syntax: _Syntax, values: pa.StructArray) -> pa.StringArray:
    kind = values.type
    members = range(kind.num_fields)
    names, columns = [kind.field(number).name for number in members], [values.field(number) for number in members]
    return _with_validity(_object(syntax, names, columns, len(values)), values)


def _kept(syntax: _Syntax, values: pa.Array) -> npt.NDArray[np.uint8]:
    """1 for members that are written, 0 for omitted members; empty to write all."""
    if syntax.style is JsonStyle.AVRO or not values.null_count:
        return _EMPTY
    return np.asarray(values.is_valid().cast(pa.uint8()), dtype=np.uint8)


def _list(syntax: _Syntax, values: pa.ListArray) -> pa.StringArray:
    bounds, low, high = _bounds(values)
    texts = _texts(syntax, values.values[low:high])
    return _with_validity(_joined(bounds, texts, _EMPTY, b"[]" + syntax.separator), values)


def _map(syntax: _Syntax, values: pa.MapArray) -> pa.StringArray:
    bounds, low, high = _bounds(values)
    keys, items = values.keys[low:high], values.items[low:high]
    names = _formatted(syntax, keys)
    if not pa.types.is_string(keys.type):
        names = _quoted(syntax, names)
    parts = [
        _Part(b"", names, _EMPTY),
        _Part(syntax.colon, _texts(syntax, items), _EMPTY),
    ]
    offsets = _offsets(_sizes(parts, len(keys)))
    out = _room(int(offsets[-1]))
    _filled(parts, offsets[:-1], out)
    entries = string_array(offsets.astype(np.int32), out)
    return _with_validity(_joined(bounds, entries, _kept(syntax, items), b"{}" + syntax.separator), values)


def _bounds(values: pa.ListArray | pa.MapArray) -> tuple[npt.NDArray[np.int32], int, int]:
    """The start and end of each list's items, and the range of items in use."""
    if pa.types.is_large_list(values.type):
        values = values.cast(pa.list_(values.type.value_type))
    bounds = values.offsets.to_numpy()
    low, high = int(bounds[0]), int(bounds[-1])
    return np.ascontiguousarray(bounds - bounds[0]), low, high


def _joined(
    bounds: npt.NDArray[np.int32], texts: pa.StringArray, kept: npt.NDArray[np.uint8], marks: bytes
) -> pa.StringArray:
    """Join texts list by list; ``marks``: the opening byte, the closing byte, and the separator."""
    offsets, data = varlen_buffers(texts)
    ends = np.empty(len(bounds), dtype=np.int32)
    out = _room(int(measure_joined(bounds, offsets, kept, len(marks) - 2, ends)))
    fill_joined(bounds, offsets, data, kept, np.frombuffer(marks, np.uint8), ends, out)
    return string_array(ends, out)


def _sizes(parts: Sequence[_Part], count: int) -> npt.NDArray[np.int64]:
    sizes = np.zeros(count, dtype=np.int64)
    for part in parts:
        lengths = np.diff(varlen_buffers(part.texts).offsets) + len(part.literal)
        sizes += lengths * part.kept if len(part.kept) else lengths
    return sizes


def _offsets(sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)))


def _filled(parts: Sequence[_Part], starts: npt.NDArray[np.int64], out: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Write the parts of each text from its start on; return the ends."""
    at = starts.copy()
    stored = [(np.frombuffer(part.literal, np.uint8), *varlen_buffers(part.texts), part.kept) for part in parts]
    for first in range(0, len(at), _ROWS_AT_ONCE):
        last = min(first + _ROWS_AT_ONCE, len(at))
        for literal, offsets, data, kept in stored:
            put_parts(at[first:last], out, literal, offsets[first : last + 1], data, kept[first:last])
    return at


# ---- buffers


def _room(size: int) -> npt.NDArray[np.uint8]:
    if size > _MAX_BYTES:
        raise InvalidDataError(f"The JSON of these rows has {size} bytes, too many for one array; pass fewer rows.")
    return np.empty(size, dtype=np.uint8)


def _null_as_text(texts: pa.StringArray) -> pa.StringArray:
    return pc.fill_null(texts, _NULL) if texts.null_count else texts


def _with_validity(texts: pa.StringArray, source: pa.Array) -> pa.StringArray:
    """The texts, null where the source is null."""
    if not source.null_count:
        return texts
    return pc.if_else(source.is_valid(), texts, pa.scalar(None, pa.string()))


def _escapes(controls: Sequence[int]) -> npt.NDArray[np.uint8]:
    classes = np.zeros(256, dtype=np.uint8)
    classes[:0x20] = 1
    classes[list(controls)] = 1
    classes[list(b'\b\t\n\f\r"\\')] = 2
    return classes


def _syntaxes() -> dict[JsonStyle, _Syntax]:
    avro = _escapes([0x7F])
    avro[0xC2], avro[0xE2] = 3, 4
    return {
        JsonStyle.ROW: _Syntax(JsonStyle.ROW, b":", b",", _escapes([])),
        JsonStyle.AVRO: _Syntax(JsonStyle.AVRO, b": ", b", ", avro),
    }


_SYNTAXES = _syntaxes()
