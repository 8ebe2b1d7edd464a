"""Differences as rows."""

from __future__ import annotations

import pyarrow as pa

from hudi_fast.services.validation import ROWS, difference, differences


def test_one_difference_is_one_row() -> None:
    row = difference("size", "p/f", "3", "4")
    assert row.schema == ROWS
    assert row.to_pylist() == [{"what": "size", "key": "p/f", "expected": "3", "found": "4"}]


def test_several_differences_share_a_kind_or_have_their_own() -> None:
    keys = pa.array(["a", "b"])
    assert differences("missing file", keys)["what"].to_pylist() == ["missing file"] * 2
    made = differences(pa.array(["x", "y"]), keys, found=pa.array(["1", None]))
    assert made.schema == ROWS
    assert made.to_pylist()[0] == {"what": "x", "key": "a", "expected": None, "found": "1"}
