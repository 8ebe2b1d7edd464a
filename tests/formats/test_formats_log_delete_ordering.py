"""Ordering values of delete entries: what a column can hold, and which rows have Hudi's default."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hudi_fast.errors import CorruptTableError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.formats.log.delete_ordering import (
    BlockPlace,
    checked,
    column_items,
    default_rows,
    null_rows,
    validity_of,
)

PLACE = BlockPlace("a.log", 100)


def items(column: pa.Array, present: list[bool] | None = None) -> list[bytes]:
    """The stored bytes of each row."""
    flags = np.array(present or [True] * len(column))
    offsets, out = column_items(column, flags)
    return [out[first:last].tobytes() for first, last in pairwise(offsets)]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([True]), b"\x02\x01"),
        (pa.array([-1], pa.int32()), b"\x04\x01"),
        (pa.array([1], pa.int64()), b"\x06\x02"),
        (pa.array([1.0], pa.float64()), b"\x0a" + bytes(6) + b"\xf0?"),
        (pa.array([b"ab"]), b"\x0c\x04ab"),
        (pa.array(["ab"], pa.large_string()), b"\x0e\x04ab"),
        (pa.array([3], pa.date32()), b"\x04\x06"),
        (pa.array([3], pa.timestamp("us", "UTC")), b"\x06\x06"),
    ],
)
def test_a_value_is_stored_after_the_branch_of_its_type(column: pa.Array, expected: bytes) -> None:
    assert items(column) == [expected]


def test_rows_that_are_not_present_get_no_bytes() -> None:
    assert items(pa.array([1, None, 2], pa.int64()), [True, False, True]) == [b"\x06\x02", b"", b"\x06\x04"]


def test_decimals_have_the_scale_of_hudi() -> None:
    (stored,) = items(pa.array([Decimal("1.5")], pa.decimal128(5, 1)))
    assert stored[0] == 18  # branch 9
    assert int.from_bytes(stored[2:], "big") == 15 * 10**14
    with pytest.raises(UnsupportedFeatureError, match="15 digits"):
        items(pa.array([Decimal("1.5")], pa.decimal128(38, 16)))
    with pytest.raises(InvalidDataError, match="15 digits before"):
        items(pa.array([Decimal(10) ** 20], pa.decimal128(38, 1)))


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.timestamp("ns"), pa.int8()])
def test_other_types_cannot_be_stored(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedFeatureError, match="ordering values of type"):
        items(pa.nulls(1, kind), [False])


@pytest.mark.parametrize(
    ("ordering", "expected"),
    [
        ([], [True, True, True]),
        ([[1, None, 3]], [True, True, False]),
        ([[1, 2, 3], [4, 5, 6]], [True, False, False]),
    ],
)
def test_rows_without_an_ordering_value_have_the_default(ordering: list[list[Any]], expected: list[bool]) -> None:
    columns = [pa.array(values, pa.int64()) for values in ordering]
    keys = pa.array(["a", "b", "c"])
    assert default_rows(np.array([True, False, False]), columns, keys).tolist() == expected


def test_a_null_among_several_ordering_values_is_refused_with_its_key() -> None:
    columns = [pa.array([1, 2]), pa.array([None, 3])]
    with pytest.raises(InvalidDataError, match="'a'"):
        default_rows(np.array([False, False]), columns, pa.array(["a", "b"]))


def test_validity_and_nulls() -> None:
    bitmap, nulls = validity_of(np.array([True, False, True]))
    assert bitmap is not None
    assert (bitmap.to_pybytes()[0], nulls) == (0b101, 1)
    assert validity_of(np.array([True])) == (None, 0)
    assert null_rows(pa.array([1, None])).tolist() == [False, True]


def test_invalid_values_are_damage_with_their_place() -> None:
    wrong = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff")]
    )
    with pytest.raises(CorruptTableError, match="ordering values") as raised:
        checked(wrong, "ordering values", PLACE)
    assert (raised.value.path, raised.value.offset) == ("a.log", 100)
    assert "byte 100" in str(PLACE.unsupported("Something"))
