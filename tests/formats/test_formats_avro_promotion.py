"""Conversions of scalar values to wider types."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hudi_fast.formats.avro.promotion import built_in_conversion


@pytest.mark.parametrize(
    ("source", "target", "value", "expected"),
    [
        (pa.int32(), pa.int64(), -5, -5),
        (pa.int32(), pa.float32(), 2**24 + 1, float(2**24)),
        (pa.int64(), pa.float64(), 2**53 + 1, float(2**53)),
        (pa.float32(), pa.float64(), 1.1, 1.1),  # the same text, as in Apache Hudi: not 1.10000002384...
        (pa.string(), pa.binary(), "é", "é".encode()),
        (pa.binary(), pa.string(), b"x", "x"),
        (pa.decimal128(5, 2), pa.decimal128(8, 3), Decimal("1.25"), Decimal("1.250")),
        (pa.time32("ms"), pa.time64("us"), None, None),
        (pa.timestamp("ms"), pa.timestamp("us"), None, None),
    ],
)
def test_a_value_is_widened(source: pa.DataType, target: pa.DataType, value: Any, expected: Any) -> None:
    convert = built_in_conversion(source, target)
    assert convert is not None
    made = convert(pa.array([value, None], source))
    assert made.type == target
    assert made.to_pylist() == [expected, None]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (pa.int64(), pa.int32()),
        (pa.float64(), pa.float32()),
        (pa.int32(), pa.string()),
        (pa.decimal128(5, 2), pa.decimal128(5, 3)),
        (pa.decimal128(5, 2), pa.decimal128(8, 1)),
        (pa.date32(), pa.timestamp("us")),
    ],
)
def test_there_is_no_conversion_that_loses_values(source: pa.DataType, target: pa.DataType) -> None:
    assert built_in_conversion(source, target) is None
