"""Rows in parts on local disk."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_fast.services.clustering import rows as ordered_rows
from hudi_fast.services.clustering.rows import SpilledRows

SCHEMA = pa.schema({"n": pa.int64(), "text": pa.string()})


def rows(*numbers: int) -> pa.Table:
    return pa.table({"n": list(numbers), "text": [f"t{number}" for number in numbers]}, schema=SCHEMA)


@pytest.mark.parametrize("waiting", [1, 1 << 20])
def test_each_part_has_its_rows_in_the_order_in_which_they_came(
    tmp_path: Path, waiting: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordered_rows, "_WAITING", waiting)
    with SpilledRows(SCHEMA, 3, str(tmp_path)) as spilled:
        for number in range(6):
            spilled.add(number % 2, rows(number, number + 10))
        taken = spilled.take(0)
        assert taken == rows(0, 10, 2, 12, 4, 14)
        assert all(column.num_chunks == 1 for column in taken.columns)
        assert spilled.take(1)["n"].to_pylist() == [1, 11, 3, 13, 5, 15]
        assert spilled.take(2) == SCHEMA.empty_table()
    assert os.listdir(tmp_path) == []


def test_files_are_deleted_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered_rows, "_WAITING", 1)

    def fail() -> None:
        with SpilledRows(SCHEMA, 1, str(tmp_path)) as spilled:
            spilled.add(0, rows(1))
            assert len(list(tmp_path.rglob("*.arrow"))) == 1
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert os.listdir(tmp_path) == []
