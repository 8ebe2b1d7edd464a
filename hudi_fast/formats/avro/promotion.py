"""Conversions of scalar values to another type: Avro's promotions, and Hudi's widening of columns.

Source: Avro 1.11 specification, "Schema Resolution"; HoodieAvroUtils.rewritePrimaryType, Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Convert", "Promote", "built_in_conversion"]

Convert: TypeAlias = Callable[[pa.Array], pa.Array]

Promote: TypeAlias = Callable[[pa.DataType, pa.DataType, str], Convert | None]
"""``schema.cast.stored_cast``: source type, target type, column -> conversion, or None if the types do not convert."""

_TEXT = (pa.string(), pa.binary())
_FLOATS = (pa.float32(), pa.float64())


def built_in_conversion(source: pa.DataType, target: pa.DataType) -> Convert | None:
    """The conversion between two scalar Arrow types; None if this module has none."""
    if source == pa.float32() and target == pa.float64():
        return _double_of_same_text
    if source == pa.int32() and target == pa.int64():
        return partial(_cast, target=target, safe=True)
    if source in (pa.int32(), pa.int64()) and target in _FLOATS:
        return partial(_cast, target=target, safe=False)
    if source in _TEXT and target in _TEXT:
        return partial(_cast, target=target, safe=True)
    return partial(_cast, target=target, safe=True) if _holds(source, target) else None


def _holds(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a checked cast converts the values: timestamps and times to another unit, decimals to more digits."""
    if pa.types.is_decimal128(source) and pa.types.is_decimal128(target):
        grows = target.precision - target.scale >= source.precision - source.scale
        return bool(grows and target.scale >= source.scale)
    both_times = pa.types.is_time(source) and pa.types.is_time(target)
    return bool(both_times or (pa.types.is_timestamp(source) and pa.types.is_timestamp(target)))


def _double_of_same_text(values: pa.Array) -> pa.Array:
    # 1.1f becomes 1.1d, not 1.10000002384...: HoodieAvroUtils.rewritePrimaryType, Hudi 1.2.0
    return pc.cast(pc.cast(values, pa.string()), pa.float64())


def _cast(values: pa.Array, target: pa.DataType, safe: bool) -> pa.Array:
    return pc.cast(values, target, safe=safe)
