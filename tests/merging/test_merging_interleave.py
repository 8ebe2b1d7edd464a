"""Rows replaced and removed in a table, against the same on lists."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.formats.varlen import replace_rows

SCHEMA = pa.schema(
    [
        pa.field("key", pa.string()),
        pa.field("number", pa.int64()),
        pa.field("flag", pa.bool_()),
        pa.field("bytes", pa.binary()),
        pa.field("price", pa.decimal128(20, 2)),
        pa.field("nested", pa.struct([pa.field("x", pa.int32())])),
    ]
)


def rows_of(numbers: range, word: str, with_nulls: bool) -> pa.Table:
    def null(number: int, every: int) -> bool:
        return with_nulls and number % every == 0

    return pa.Table.from_pylist(
        [
            {
                "key": f"k{number:04}",
                "number": None if null(number, 3) else number * len(word),
                "flag": None if null(number, 5) else number % 2 == 0,
                "bytes": None if null(number, 4) else f"{word} {number}".encode() * (number % 3),
                "price": None if null(number, 7) else Decimal(number) / 4,
                "nested": None if null(number, 6) else {"x": number},
            }
            for number in numbers
        ],
        schema=SCHEMA,
    )


@pytest.mark.slow("False")
@pytest.mark.parametrize("with_nulls", [False, True])
@given(data=st.data(), count=st.integers(1, 120), share=st.sampled_from([1, 5, 40]))
def test_rows_are_replaced_and_removed(with_nulls, data, count, share):
    changed = sorted(data.draw(st.sets(st.integers(0, count - 1), max_size=max(1, count // share))))
    dropped = sorted(data.draw(st.sets(st.sampled_from(changed)))) if changed else []
    replaced = [number for number in changed if number not in dropped]
    base, other = rows_of(range(count), "old", with_nulls), rows_of(range(count), "newer", with_nulls)
    kept = data.draw(st.sampled_from([frozenset(), frozenset({"key"})]))
    found = replace_rows(
        base.slice(0, count),
        other.take(pa.array(replaced, pa.int64())),
        np.array(replaced, np.int64),
        np.array(dropped, np.int64),
        kept,
    )
    expected = [
        (other if number in replaced else base).slice(number, 1).to_pylist()[0]
        for number in range(count)
        if number not in dropped
    ]
    assert found.schema == SCHEMA
    assert found.to_pylist() == expected
    found.validate(full=True)


def test_positions_outside_the_table_are_refused():
    base = rows_of(range(3), "old", with_nulls=False)
    with pytest.raises(IndexError):
        replace_rows(base, base.slice(0, 1), np.array([3]), np.array([], np.int64))
