"""Entries folded by a user function, one entry of each key at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.merging.fold import fold_by_merger
from hudi_fast.merging.log_entries import LogEntries


def entries(*versions: tuple[str, int | None]) -> LogEntries:
    """Rows with a number; None deletes the key."""
    numbers = [number for _, number in versions if number is not None]
    deletes = np.array([number is None for _, number in versions])
    row = np.where(deletes, -1, np.cumsum(~deletes) - 1)
    keys = pa.array([key for key, _ in versions], pa.string())
    rows = pa.table({"n": pa.array(numbers, pa.int64())})
    return LogEntries(keys, rows, row, deletes, deletes.copy(), ())


def fold(merger, *versions: tuple[str, int | None]) -> list[tuple[str, int | None]]:
    numbers = np.unique([key for key, _ in versions], return_inverse=True)[1].astype(np.int32)
    last, folded = fold_by_merger(merger, entries(*versions), numbers)
    assert last.tolist() == sorted(last.tolist())
    assert [versions[at][0] for at in last] == folded.keys.to_pylist()
    values = [None if row < 0 else folded.rows["n"][int(row)].as_py() for row in folded.row]
    assert folded.deletes.tolist() == [value is None for value in values]
    return list(zip(folded.keys.to_pylist(), values, strict=True))


def add(older: pa.Table, newer: pa.Table) -> pa.Table:
    return pa.table({"n": pc.add(older["n"], newer["n"])})


def test_each_version_is_merged_into_the_earlier_ones() -> None:
    assert fold(add, ("a", 1), ("b", 10), ("a", 2), ("c", 5), ("a", 3)) == [("b", 10), ("c", 5), ("a", 6)]


def test_a_delete_forgets_what_came_before_it() -> None:
    assert fold(add, ("a", 1), ("a", None), ("a", 2), ("b", 1), ("b", None)) == [("a", 2), ("b", None)]


def test_keys_that_are_deleted_alone_have_no_rows() -> None:
    assert fold(add, ("a", None), ("b", None)) == [("a", None), ("b", None)]


def test_the_function_gets_each_key_once_a_round() -> None:
    sizes = []

    def noting(older: pa.Table, newer: pa.Table) -> pa.Table:
        sizes.append(older.num_rows)
        return newer

    fold(noting, *[(key, number) for number in range(3) for key in "abc"[: 3 - number]])
    assert sizes == [2, 1]
