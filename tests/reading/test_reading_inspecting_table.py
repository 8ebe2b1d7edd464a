"""Files, partitions and statistics of a table state."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.metadata_table.state import open_state
from hudi_fast.reading.inspecting.contents import (
    current_slices,
    files_table,
    partitions_table,
    small_files,
    stats_table,
)
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import TableState
from tests.support.small_tables import options, plain_rows


@pytest.fixture
def state(tmp_path: Path) -> TableState:
    """Two file groups; that of ``p0`` has an older slice."""
    for ids, ts in ((range(4), 1), ([0], 2)):
        hf.write(plain_rows(ids, ts=ts), tmp_path, {**options(), "hoodie.clean.automatic": "false"})
    return open_state(Storage(tmp_path))


def test_each_newest_slice_is_a_file_of_the_table(state: TableState) -> None:
    slices = current_slices(state)
    files = files_table(state)
    assert files == files_table(state, slices)
    assert files["partition"].to_pylist() == [one.partition for one in slices] == ["p0", "p1"]
    assert sum(files["rows"].to_pylist()) == 4
    assert small_files(slices) == 2


def test_partitions_sum_up_their_files(state: TableState) -> None:
    files, partitions = files_table(state), partitions_table(state)
    assert partitions["partition"].to_pylist() == ["p0", "p1"]
    assert sum(partitions["bytes"].to_pylist()) == sum(files["bytes"].to_pylist())


def test_statistics_are_one_row_for_the_table(state: TableState) -> None:
    (row,) = stats_table(state).to_pylist()
    assert (row["partitions"], row["files"], row["rows"], row["unread_files"]) == (2, 2, 4, 1)
    assert row["last_write"] == state.timeline.writes()[-1].requested
    assert row["pending"] == []
    assert {one["partition"] for one in row["metadata_table"]} >= {"files"}
