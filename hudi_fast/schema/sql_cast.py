"""Casts of scalar values that SQL, an update or a merge assigns to a column: Spark's casts, where nothing is lost.

:func:`sql_cast` is the leaf of :func:`hudi_fast.schema.conform.assigned_values`. Its results are those of Spark's
``CAST``:

- numbers become the text of Java (``1.0E10``), decimals text without an exponent, times text without trailing zeros;
- a number becomes the nearest decimal, rounded half up from its shortest digits (2.675 -> 2.68);
- a decimal becomes the nearest double.

Values that Spark would truncate or guess are refused: the fraction of a number for a column of integers, an integer
whose digits a double does not hold, a text other than a number in digits.

Source: ``Cast`` and ``Decimal`` of Spark 4, in the mode ANSI.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.schema.cast import Convert, java_number_text, leaf_cast
from hudi_fast.schema.normalize import storable_type

__all__ = ["double_as_decimal", "sql_cast", "time_text"]

_MAX_DIGITS = 76
"""Digits of Arrow's widest decimal."""

_DIGITS_OF_DOUBLE = 19
"""Upper bound for the digits after the first one in the shortest text of a double."""


def sql_cast(source: pa.DataType, target: pa.DataType, path: str) -> Convert | None:
    """The function that casts arrays of ``source`` to ``target``; None if the types do not convert.

    Args:
        source: any Arrow type that has a storable form; not nested, dictionary or run-end encoded.
        target: a storable type, not nested.
        path: the column, for messages.

    The function raises ``pyarrow.ArrowInvalid`` for values that do not fit.

    Raises:
        SchemaMismatchError, UnsupportedFeatureError: ``source`` has no storable form.
    """
    storable = storable_type(source, path)
    step = _step(storable, target)
    if step is None:
        return leaf_cast(source, target, path, rounds=False)
    return step if storable == source else partial(_in_two, storable=storable, step=step)


def double_as_decimal(value: Any, kind: pa.DataType) -> Any:
    """The nearest decimals of doubles, rounded half up, as ``Decimal(Double)`` of Spark makes them.

    Args:
        value: an array or an expression of float64.
        kind: type of the decimals. A number with too many digits, NaN and infinity are refused.
    """
    least = 10.0 ** -(kind.scale + 2)  # smaller numbers round to zero, and may have more digits than a decimal
    some = pc.if_else(pc.less(pc.abs(value), pa.scalar(least)), pa.scalar(0.0), value)
    wide = some.cast(pa.string()).cast(pa.decimal256(_MAX_DIGITS, kind.scale + _DIGITS_OF_DOUBLE))
    return pc.round(wide, kind.scale, round_mode="half_towards_infinity").cast(kind)


def time_text(values: Any) -> Any:
    """The text of times of day, or of timestamps without a zone: an array or an expression."""
    text = pc.replace_substring_regex(values.cast(pa.string()), r"\.0+$", "")
    return pc.replace_substring_regex(text, r"(\.\d*[1-9])0+$", r"\1")


def _step(source: pa.DataType, target: pa.DataType) -> Convert | None:
    """The cast if Arrow differs from Spark, or a write of rows from SQL; None for all other casts."""
    if source == target or pa.binary() in (source, target):
        return None
    if pa.types.is_decimal(target):
        if pa.types.is_floating(source):
            return partial(_of_float, target=target)
        if pa.types.is_integer(source) or pa.types.is_decimal(source):
            return partial(_rounded, target=target)
    if target == pa.string():
        if pa.types.is_integer(source) or pa.types.is_floating(source):
            return java_number_text
        if pa.types.is_decimal(source):
            return _plain_digits
        if pa.types.is_timestamp(source) or pa.types.is_time(source):
            return time_text
    if source == pa.string() and pa.types.is_integer(target):
        return partial(_whole_number, target=target)
    if pa.types.is_decimal(source) and pa.types.is_floating(target):
        return partial(_in_two, storable=pa.string(), step=partial(pc.cast, target_type=target))
    known = pa.types.is_timestamp(source) and pa.types.is_timestamp(target)
    return None if known or pa.types.is_time(source) else partial(pc.cast, target_type=target)


def _in_two(values: pa.Array, storable: pa.DataType, step: Convert) -> pa.Array:
    return step(pc.cast(values, storable))


def _of_float(values: pa.Array, target: pa.DataType) -> pa.Array:
    return double_as_decimal(values.cast(pa.float64()), target)


def _rounded(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Whole numbers and decimals as decimals with other digits."""
    scale = values.type.scale if pa.types.is_decimal(values.type) else 0
    wide = values.cast(pa.decimal256(_MAX_DIGITS, max(scale, target.scale)))
    if scale > target.scale:
        wide = pc.round(wide, target.scale, round_mode="half_towards_infinity")
    return wide.cast(target)


def _plain_digits(values: pa.Array) -> pa.Array:
    """The text of decimals without an exponent, which Arrow writes for small decimals."""
    text = values.cast(pa.string())
    if not pc.any(pc.match_substring(text, "E"), min_count=0).as_py():
        return text
    small = text.dictionary_encode()
    plain = pa.array([format(one.as_py(), "f") for one in small.dictionary.cast(values.type)], pa.string())
    return plain.take(small.indices)


def _whole_number(values: pa.Array, target: pa.DataType) -> pa.Array:
    text = pc.utf8_trim_whitespace(values)
    wrong = pc.invert(pc.match_substring_regex(text, r"^[+-]?[0-9]+$"))
    if pc.any(wrong, min_count=0).as_py():
        raise pa.ArrowInvalid(f"{values.filter(wrong)[0].as_py()!r} is no whole number")
    return pc.cast(pc.replace_substring_regex(text, r"^\+", ""), target)
