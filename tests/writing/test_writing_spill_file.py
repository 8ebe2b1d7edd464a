"""Rows in a temporary file, by number.

Module: hudi_fast.writing.spilling.spill_file.
"""

from __future__ import annotations

from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from hudi_fast.errors import CommitError
from hudi_fast.writing.spilling.spill_file import Piece, SpillFile, SpillSettings
from tests.support.examples import examples


@settings(max_examples=examples(30))
@given(
    parts=st.lists(st.lists(st.integers(0, 3), max_size=40), max_size=12),
    memory=st.sampled_from([16, 640, 1 << 20]),
    cut=st.tuples(st.integers(0, 30), st.integers(0, 30)),
)
def test_rows_of_a_number_come_back_in_their_order(parts, memory, cut) -> None:
    expected: dict[int, list[int]] = {}
    with SpillFile(SpillSettings(memory), "t") as file:
        for numbers in parts:
            first = sum(map(len, expected.values()))
            values = list(range(first, first + len(numbers)))
            file.add(pa.record_batch({"v": pa.array(values, pa.int64())}), np.array(numbers, dtype=np.int64))
            for number, value in zip(numbers, values, strict=True):
                expected.setdefault(number, []).append(value)
        file.finish()
        assert file.numbers() == sorted(expected)
        for number, values in expected.items():
            assert file.count(number) == len(values)
            found = [value for batch in file.read(number) for value in batch.column("v").to_pylist()]
            assert found == values
            start, end = min(cut), max(cut)
            piece = Piece(file, number, start, end)
            found = [value for batch in piece.batches() for value in batch.column("v").to_pylist()]
            assert found == values[start:end]


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    file = SpillFile(SpillSettings(16, str(tmp_path / "file")), "the table")
    with pytest.raises(CommitError, match=r"the write to the table .* cannot be written: .* The table is as before"):
        file.add(pa.record_batch({"v": [1, 2, 3]}), np.zeros(3, dtype=np.int64))
