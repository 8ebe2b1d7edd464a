"""Ordering values of delete blocks in the types of the table's columns."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hudi_fast.formats.log.delete_block import DeleteRecords
from hudi_fast.merging.log_entries import DeleteOrdering, convert_delete_ordering


def convert(stored: list[pa.Array], kinds: list[pa.DataType], default: list[bool] | None = None) -> DeleteOrdering:
    count = len(stored[0]) if stored else len(default or [])
    keys = pa.array([f"k{number}" for number in range(count)])
    flags = np.array(default or [False] * count)
    return convert_delete_ordering(
        DeleteRecords(keys, pa.nulls(count, pa.string()), tuple(stored), flags), tuple(kinds)
    )


@pytest.mark.parametrize(
    ("stored", "kind", "expected"),
    [
        (pa.array([5], pa.int64()), pa.int64(), 5),
        (pa.array([19000], pa.int32()), pa.date32(), date(2022, 1, 8)),
        (pa.array([1_000_000], pa.int64()), pa.timestamp("us", "UTC"), datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        (pa.array([b"ab"]), pa.binary(2), b"ab"),
        (pa.array([None]), pa.int32(), None),
    ],
)
def test_values_that_hudi_compares_have_the_type_of_the_column(
    stored: pa.Array, kind: pa.DataType, expected: Any
) -> None:
    made = convert([stored], [kind])
    assert made.columns[0].type == kind
    assert made.columns[0].to_pylist() == [expected]
    assert not made.mismatched.any()


@pytest.mark.parametrize(
    ("stored", "kind"),
    [
        (pa.array([5], pa.int32()), pa.int64()),
        (pa.array(["5"]), pa.int64()),
        (pa.array([5.0]), pa.int64()),
        (pa.array([5], pa.int64()), pa.date32()),
    ],
)
def test_values_of_another_java_class_do_not_compare(stored: pa.Array, kind: pa.DataType) -> None:
    made = convert([stored], [kind])
    assert made.columns[0].to_pylist() == [None]
    assert made.mismatched.tolist() == [True]


def test_defaults_have_no_value_and_are_no_mismatch() -> None:
    made = convert([pa.array(["x", "y"])], [pa.int64()], [True, False])
    assert made.default.tolist() == [True, False]
    assert made.mismatched.tolist() == [False, True]
    made = convert([pa.array([7, 8])], [pa.int64()], [True, False])
    assert made.columns[0].to_pylist() == [None, 8]


def test_another_number_of_values_is_a_mismatch_of_every_delete() -> None:
    made = convert([pa.array([7, 8])], [pa.int64(), pa.int64()], [True, False])
    assert [column.to_pylist() for column in made.columns] == [[None, None]] * 2
    assert made.mismatched.tolist() == [False, True]
    assert convert([], [pa.int64()], [True]).mismatched.tolist() == [False]


def test_a_table_without_ordering_columns_has_no_values() -> None:
    assert convert([pa.array([7])], []).columns == ()
