"""Arrays of one plain type as another: the leaves of conforming.

Design: :func:`leaf_cast` picks, once per column, a function array -> array. It is made of at most two steps: into the
storable form of the source type (``normalize``), then up the promotion matrix (``promotion``). All functions here are
module level or partials of such, so that a plan can be pickled.

Values follow Java, since Apache Hudi resolves the same files with it:

- a float becomes the double with the same shortest decimal text (1.1f -> 1.1d, not 1.10000002384...), as
  HoodieAvroUtils.rewritePrimaryType and Hudi's Spark reader do it (1.2.0);
- whole numbers become the nearest float or double;
- the text of a float or double is that of Java's ``toString`` (JDK 19 and later: always the shortest digits).
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.schema.normalize import storable_type
from hudi_fast.schema.promotion import can_promote, is_value_checked

__all__ = ["Convert", "java_number_text", "leaf_cast"]

Convert = Callable[[pa.Array], pa.Array]


def leaf_cast(source: pa.DataType, target: pa.DataType, path: str) -> Convert | None:
    """The function that makes arrays of ``target`` from arrays of ``source``; None when the types do not allow it.

    Args:
        source: any Arrow type that has a storable form; not nested, dictionary or run-end encoded.
        target: a storable type, not nested.
        path: of the column, for messages.

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
    promote = _promotion(storable, target)
    return promote if storable == source else partial(_in_two, storable=storable, step=promote)


def java_number_text(values: pa.Array) -> pa.Array:
    """The text Java gives numbers: ``12``, ``1.0``, ``1.0E10``, ``1.5E-4``, ``NaN``, ``-Infinity``.

    Args:
        values: int32, int64, float32 or float64, n of them.

    Returns:
        string, n; nulls stay.
    """
    text = pc.cast(values, pa.string())
    if pa.types.is_integer(values.type):
        return text
    size = pc.abs(values)
    plain = pc.or_(pc.equal(size, 0.0), pc.and_(pc.greater_equal(size, 1e-3), pc.less(size, 1e7)))
    pointed = pc.if_else(pc.match_substring(text, "."), text, pc.binary_join_element_wise(text, "0", "."))
    if pc.all(plain, min_count=0).as_py():
        return pointed
    # few columns hold such numbers, and those many times: once per distinct text
    other = pc.if_else(plain, pa.scalar(None, pa.string()), text).dictionary_encode()
    scientific = pa.array([_java_scientific(each, values.type) for each in other.dictionary.to_pylist()], pa.string())
    return pc.if_else(plain, pointed, pc.take(scientific, other.indices))


def _java_scientific(text: str, kind: pa.DataType) -> str:
    """``1e+10``, ``12345678``, ``0.0001``, ``nan`` as Java writes them: one digit before the point, one or more after.

    Args:
        text: shortest digits of a number of type ``kind``, in Arrow's form.
    """
    special = {"nan": "NaN", "-nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text)
    if special is not None:
        return special
    number = Decimal(text)
    if len(number.normalize().as_tuple().digits) == 1:
        # Java takes the nearest of two digits, not a shorter one and a zero: 4.9E-324, where Arrow has 5e-324
        exact = float(np.float32(text)) if kind == pa.float32() else float(text)
        number = Decimal(f"{exact:.1e}")
    sign, digits, _ = number.normalize().as_tuple()
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{rest}E{number.adjusted()}"


def _promotion(source: pa.DataType, target: pa.DataType) -> Convert:
    if target == pa.string() and source != pa.binary():
        return java_number_text
    if source == pa.float32() and target == pa.float64():
        return _double_of_same_text
    rounds = pa.types.is_integer(source) and pa.types.is_floating(target)
    return partial(_cast, target=target, safe=not rounds)


def _double_of_same_text(values: pa.Array) -> pa.Array:
    return pc.cast(pc.cast(values, pa.string()), pa.float64())


def _cast(values: pa.Array, target: pa.DataType, safe: bool = True) -> pa.Array:
    return pc.cast(values, target, safe=safe)


def _in_two(values: pa.Array, storable: pa.DataType, step: Convert) -> pa.Array:
    return step(pc.cast(values, storable))
