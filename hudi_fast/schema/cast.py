"""Casts between types: in files, by evolution, and of assigned values.

Casts between scalar types: the leaves of conforming.

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

Timestamps that count milliseconds although their file says microseconds.

Where Apache Hudi before 1.1 compares schemas, it knows one type of timestamp, ``timestamp-micros``. A writer of
``timestamp-millis`` then stores milliseconds under the label of microseconds, in its files and in the table's schema.
Since 1.1, releases write the right label to new files and to the table's schema, and read the numbers of older files
as milliseconds::

    file             table's column     the stored number is
    ───────────────  ─────────────────  ──────────────────────────────────────────────
    timestamp[us]    timestamp[ms]      in milliseconds: the label of the file is wrong
    timestamp[ms]    timestamp[us]      in milliseconds, as the file says
    int64            timestamp          in the unit of the column

Only formats that store numbers with a label can have a wrong label: Parquet, and Avro records in logs and HFiles. ORC
and Lance store points in time.

Sources: ``SchemaRepair``, ``HoodieSchemaRepair`` (1.2.0); ``AvroInternalSchemaConverter`` (0.15.0).

Promotions: which stored values of one storable type can be read as another.

Whether a write may change a column this way is another question: :mod:`hudi_fast.schema.assignment` answers it.

:func:`can_promote` uses a table for scalar types and recursion for nested types. Data written with the *from* type can
then be read as the *to* type without loss, except of float digits. A struct may gain nullable fields and lose none; a
nullable element never becomes required.

Timestamps and times are separate: whether they can change their unit or zone depends on each value
(:func:`is_value_checked`). This is not a promotion, because a single row may not fit.

Source: HoodieSchemaCompatibilityChecker and the Avro rewriting of Hudi 1.2.0; enums and uuids are strings here.

Casts of scalar values that SQL, an update or a merge assigns to a column: Spark's casts, where nothing is lost.

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

from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.schema.normalize import storable_type

__all__ = [
    "Convert",
    "LeafCast",
    "can_alter",
    "can_promote",
    "counts_milliseconds",
    "double_as_decimal",
    "file_cast",
    "is_projection",
    "is_value_checked",
    "java_number_text",
    "leaf_cast",
    "read_cast",
    "sources_of",
    "sql_cast",
    "stored_cast",
    "time_text",
]


def counts_milliseconds(stored: pa.DataType, current: pa.DataType) -> bool:
    """Whether values that a file stores as ``stored`` count milliseconds, given the column's type in the table.

    Timestamps without a zone keep their unit: no release gave them a wrong label.
    """
    if not (pa.types.is_timestamp(stored) and pa.types.is_timestamp(current)):
        return False
    return bool(stored.unit == "us" and current.unit == "ms" and stored.tz is not None and current.tz is not None)


_NUMBERS_AND_TEXT = (pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string())

_PLAIN: Mapping[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.int32(): _NUMBERS_AND_TEXT[1:],
    pa.int64(): _NUMBERS_AND_TEXT[2:],
    pa.float32(): _NUMBERS_AND_TEXT[3:],
    pa.float64(): _NUMBERS_AND_TEXT[4:],
    pa.string(): (pa.binary(),),
    pa.binary(): (pa.string(),),
}


def can_promote(from_type: pa.DataType, to_type: pa.DataType) -> bool:
    """Whether every value of ``from_type`` can be stored as ``to_type``; true for equal types.

    Both are storable types (``normalize.storable_type``). int -> long, float, double, string; long -> float, double,
    string, timestamp (the number is the timestamp's value); float -> double, string; double -> string; string <->
    bytes; decimal -> a decimal with at least as many digits on both sides of the point; list, map and struct by their
    parts.
    """
    if from_type == to_type or to_type in _PLAIN.get(from_type, ()):
        return True
    if pa.types.is_decimal128(from_type) and pa.types.is_decimal128(to_type):
        integers_fit = to_type.precision - to_type.scale >= from_type.precision - from_type.scale
        return bool(integers_fit and to_type.scale >= from_type.scale)
    if pa.types.is_timestamp(to_type):
        return bool(from_type == pa.int64())
    if pa.types.is_list(from_type) and pa.types.is_list(to_type):
        return _can_promote_field(from_type.value_field, to_type.value_field)
    if pa.types.is_map(from_type) and pa.types.is_map(to_type):
        keys_fit = can_promote(from_type.key_type, to_type.key_type)
        return keys_fit and _can_promote_field(from_type.item_field, to_type.item_field)
    if pa.types.is_struct(from_type) and pa.types.is_struct(to_type):
        return _fields_fit(_children(from_type), _children(to_type))
    return False


def can_alter(from_type: pa.DataType, to_type: pa.DataType) -> bool:
    """Whether an ALTER may change a scalar type this way; allows more than writes do.

    In addition to :func:`can_promote`: int, long, float and double -> decimal; date and decimal -> string; string ->
    date, decimal. Values that do not fit become null (``cast.read_cast``). It does not allow long -> timestamp.

    Source: ``SchemaChangeUtils.isTypeUpdateAllow`` (Hudi 1.2.0).
    """
    if pa.types.is_timestamp(to_type) or pa.types.is_nested(from_type) or pa.types.is_nested(to_type):
        return bool(from_type == to_type)
    if can_promote(from_type, to_type):
        return True
    if pa.types.is_decimal128(to_type):
        return from_type in _NUMBERS_AND_TEXT
    if pa.types.is_date32(to_type):
        return bool(from_type == pa.string())
    return bool(to_type == pa.string() and (pa.types.is_date32(from_type) or pa.types.is_decimal128(from_type)))


def is_value_checked(from_type: pa.DataType, to_type: pa.DataType) -> bool:
    """Whether values convert if each value fits: between timestamps, and between times of day.

    A timestamp without zone is read as UTC when it gets a zone, and keeps its UTC reading when it loses one: only the
    unit changes the stored number.
    """
    both_timestamps = pa.types.is_timestamp(from_type) and pa.types.is_timestamp(to_type)
    return bool(both_timestamps or (pa.types.is_time(from_type) and pa.types.is_time(to_type)))


def is_projection(incoming: pa.Schema, table: pa.Schema) -> bool:
    """Whether rows of ``incoming`` fit into ``table`` unchanged: no column is new, and all shared columns can promote.

    Columns that ``incoming`` lacks must be nullable in ``table``.
    """
    return _fields_fit(list(incoming), list(table))


def sources_of(to_type: pa.DataType) -> tuple[str, ...]:
    """The types that can be promoted to a scalar type, as text for messages."""
    if pa.types.is_decimal128(to_type):
        return ("a decimal with no more digits on either side of the point",)
    if is_value_checked(to_type, to_type):
        return ("other units if each value fits", *(("int64",) if pa.types.is_timestamp(to_type) else ()))
    return tuple(str(each) for each, wider in _PLAIN.items() if to_type in wider)


def _can_promote_field(source: pa.Field, target: pa.Field) -> bool:
    return (target.nullable or not source.nullable) and can_promote(source.type, target.type)


def _fields_fit(sources: list[pa.Field], targets: list[pa.Field]) -> bool:
    by_name = {each.name: each for each in targets}
    given = {each.name for each in sources}
    if not given <= by_name.keys() or len(given) != len(sources):
        return False
    if any(not each.nullable for each in targets if each.name not in given):
        return False
    return all(_can_promote_field(each, by_name[each.name]) for each in sources)


def _children(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(i) for i in range(kind.num_fields)]


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


_WIDEST_DECIMAL = 76
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
    wide = some.cast(pa.string()).cast(pa.decimal256(_WIDEST_DECIMAL, kind.scale + _DIGITS_OF_DOUBLE))
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


def _of_float(values: pa.Array, target: pa.DataType) -> pa.Array:
    return double_as_decimal(values.cast(pa.float64()), target)


def _rounded(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Whole numbers and decimals as decimals with other digits."""
    scale = values.type.scale if pa.types.is_decimal(values.type) else 0
    wide = values.cast(pa.decimal256(_WIDEST_DECIMAL, max(scale, target.scale)))
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
