"""Casts between scalar types: the leaves of conforming.

:func:`leaf_cast` selects, once per column, a function array -> array. The function has at most two steps: into the
storable form of the source type (``normalize``), then to a wider type (``promotion``). All functions are module level
or partials of such functions, so plans can be pickled.

Values follow Java, as Apache Hudi reads the same files with it:

- a float becomes the double with the same shortest decimal text (1.1f -> 1.1d, not 1.10000002384...), as in
  HoodieAvroUtils.rewritePrimaryType and Hudi's Spark reader (1.2.0);
- when files are read, whole numbers become the nearest float or double; when rows are written, only with the option
  ``hudi_fast.allow.rounding``, else a number that would be rounded is refused;
- the text of a float or double is the same as of Java's ``toString`` (JDK 19 and later: always the shortest digits).

After an ALTER, a stored type may differ from the current one in a way that no write could widen. :func:`read_cast` has
these conversions; as in Spark's casts, values that do not fit become null.

Timestamps in files may have a wrong label (``mislabelled``). :func:`file_cast` and :func:`stored_cast` handle it.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.schema.mislabelled import counts_milliseconds
from hudi_fast.schema.normalize import storable_type
from hudi_fast.schema.promotion import can_promote, is_value_checked

__all__ = ["Convert", "LeafCast", "file_cast", "java_number_text", "leaf_cast", "read_cast", "stored_cast"]

Convert = Callable[[pa.Array], pa.Array]

LeafCast = Callable[[pa.DataType, pa.DataType, str], Convert | None]
"""Source type, target type, column -> conversion, or None if the types do not convert."""

_MAX_DIGITS = 38


def leaf_cast(source: pa.DataType, target: pa.DataType, path: str, rounds: bool = True) -> Convert | None:
    """The function that converts arrays of ``source`` to ``target``; None if the types do not convert.

    Args:
        source: any Arrow type that has a storable form; not nested, dictionary or run-end encoded.
        target: a storable type, not nested.
        path: the column, for messages.
        rounds: whether an integer may become the nearest float or double.

    The function raises ``pyarrow.ArrowInvalid`` for values that do not fit (a timestamp that would lose digits).

    Raises:
        SchemaMismatchError, UnsupportedFeatureError: ``source`` has no storable form.
    """
    if is_value_checked(source, target):
        return partial(_cast, target=target)
    storable = storable_type(source, path)
    if storable == target:
        return partial(_cast, target=target)
    if not can_promote(storable, target):
        return None
    promote = _promotion(storable, target, rounds)
    return promote if storable == source else partial(_in_two, storable=storable, step=promote)


def read_cast(stored: pa.DataType, current: pa.DataType) -> Convert | None:
    """The conversion of stored values to the type that the column was altered to; None if the types do not convert.

    Numbers and texts become decimals, rounded half up; texts become dates; dates and decimals become texts. A text that
    is not a number or date, and a number with too many digits, become null.

    Args:
        stored: the type in the file.
        current: the type in the table.

    Source: ``HoodieAvroUtils.rewritePrimaryTypeWithDiffSchemaType`` and Spark's ``Cast``, which Hudi 1.2.0 uses to read
    log and base files.
    """
    if current == pa.string() and (pa.types.is_date32(stored) or pa.types.is_decimal128(stored)):
        return partial(_cast, target=current)
    if pa.types.is_date32(current) and stored == pa.string():
        return _dates
    numeric = stored == pa.string() or pa.types.is_integer(stored) or pa.types.is_floating(stored)
    if pa.types.is_decimal128(current) and numeric:
        return partial(_decimals, target=current)
    return None


def file_cast(source: pa.DataType, target: pa.DataType, path: str) -> Convert | None:
    """:func:`leaf_cast` for values of a file that stores timestamps as labelled numbers; the label may be wrong.

    Raises:
        SchemaMismatchError, UnsupportedFeatureError: ``source`` has no storable form.
    """
    if counts_milliseconds(source, target):
        return partial(_relabelled, target=target)
    return leaf_cast(source, target, path)


def stored_cast(source: pa.DataType, target: pa.DataType, path: str) -> Convert | None:
    """:func:`file_cast`, or else :func:`read_cast`: reads log blocks of any age.

    Raises:
        SchemaMismatchError, UnsupportedFeatureError: ``source`` has no storable form.
    """
    return file_cast(source, target, path) or read_cast(storable_type(source, path), target)


def java_number_text(values: pa.Array) -> pa.Array:
    """The text of numbers in Java: ``12``, ``1.0``, ``1.0E10``, ``1.5E-4``, ``NaN``, ``-Infinity``.

    Args:
        values: n values of int32, int64, float32 or float64.

    Returns:
        string[n]; null for null.
    """
    text = pc.cast(values, pa.string())
    if pa.types.is_integer(values.type):
        return text
    size = pc.abs(values)
    plain = pc.or_(pc.equal(size, 0.0), pc.and_(pc.greater_equal(size, 1e-3), pc.less(size, 1e7)))
    pointed = pc.if_else(pc.match_substring(text, "."), text, pc.binary_join_element_wise(text, "0", "."))
    if pc.all(plain, min_count=0).as_py():
        return pointed
    # few columns hold such numbers, usually repeated: convert once per distinct text
    other = pc.if_else(plain, pa.scalar(None, pa.string()), text).dictionary_encode()
    scientific = pa.array([_java_scientific(each, values.type) for each in other.dictionary.to_pylist()], pa.string())
    return pc.if_else(plain, pointed, pc.take(scientific, other.indices))


def _java_scientific(text: str, kind: pa.DataType) -> str:
    """``1e+10``, ``12345678``, ``0.0001``, ``nan`` in Java's form: one digit before the point, one or more after it."""
    special = {"nan": "NaN", "-nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text)
    if special is not None:
        return special
    number = Decimal(text)
    if len(number.normalize().as_tuple().digits) == 1:
        # Java uses the nearest number of two digits instead of one digit and a zero: 4.9E-324, where Arrow has 5e-324
        exact = float(np.float32(text)) if kind == pa.float32() else float(text)
        number = Decimal(f"{exact:.1e}")
    sign, digits, _ = number.normalize().as_tuple()
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{rest}E{number.adjusted()}"


def _promotion(source: pa.DataType, target: pa.DataType, rounds: bool) -> Convert:
    if target == pa.string() and source != pa.binary():
        return java_number_text
    if source == pa.float32() and target == pa.float64():
        return _double_of_same_text
    if pa.types.is_integer(source) and pa.types.is_floating(target):
        return partial(_cast, target=target, safe=False) if rounds else partial(_exact, target=target)
    return partial(_cast, target=target)


def _double_of_same_text(values: pa.Array) -> pa.Array:
    return pc.cast(pc.cast(values, pa.string()), pa.float64())


def _cast(values: pa.Array, target: pa.DataType, safe: bool = True) -> pa.Array:
    return pc.cast(values, target, safe=safe)


def _exact(values: pa.Array, target: pa.DataType) -> pa.Array:
    try:
        return pc.cast(values, target)
    except pa.ArrowInvalid as error:
        raise pa.ArrowInvalid(f"{error}; hudi_fast.allow.rounding=true stores the nearest {target}") from error


def _relabelled(values: pa.Array, target: pa.DataType) -> pa.Array:
    return values.view(target)


def _in_two(values: pa.Array, storable: pa.DataType, step: Convert) -> pa.Array:
    return step(pc.cast(values, storable))


def _dates(values: pa.Array) -> pa.Array:
    trimmed = pc.utf8_trim_whitespace(values)
    dates = pc.strptime(trimmed, format="%Y-%m-%d", unit="s", error_is_null=True)
    return pc.cast(dates, pa.date32())


def _decimals(values: pa.Array, target: pa.DataType) -> pa.Array:
    text = values if values.type == pa.string() else java_number_text(values)
    # few columns are altered, and numbers repeat: convert once per distinct text
    encoded = text.dictionary_encode()
    made = pa.array([_decimal(each, target) for each in encoded.dictionary.to_pylist()], target)
    return pc.take(made, encoded.indices)


def _decimal(text: str, target: pa.DataType) -> Decimal | None:
    """The number in a text, with the scale of ``target``; None if the text is not a number."""
    try:
        with localcontext(prec=2 * _MAX_DIGITS + len(text)):
            number = Decimal(text.strip()).quantize(Decimal(1).scaleb(-target.scale), rounding=ROUND_HALF_UP)
    except (InvalidOperation, ValueError):
        return None
    fits = number.is_finite() and abs(number).scaleb(target.scale) < Decimal(10) ** target.precision
    return number if fits else None
