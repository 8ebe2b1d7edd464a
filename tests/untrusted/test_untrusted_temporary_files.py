"""Rows in temporary files can be read by their user alone, whatever the umask.

Modules: hudi_fast.merging.row_buffer, hudi_fast.services.clustering.rows,
hudi_fast.metadata_table.updates.record_bins.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_fast.merging import row_buffer
from hudi_fast.merging.row_buffer import RowBuffer
from hudi_fast.metadata_table.updates.record_bins import RECORDS, GroupBins
from hudi_fast.services.clustering.rows import SpilledRows


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """A umask that lets everybody read and write."""
    before = os.umask(0)
    yield
    os.umask(before)


def readable_by_others(folder: Path) -> list[str]:
    """Files below a folder that another user could reach and read."""
    found = []
    for at, folders, files in os.walk(folder):
        folders[:] = [one for one in folders if (Path(at) / one).stat().st_mode & 0o077]
        found += [one for one in files if (Path(at) / one).stat().st_mode & 0o077]
    return found


def test_collected_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_buffer, "spool_folder", lambda: str(tmp_path))
    with RowBuffer(lambda text, error: error, budget=1) as rows:
        rows.add(pa.record_batch({"a": [1, 2]}))
        assert list(tmp_path.iterdir()) == []  # the file has no name


def test_rows_of_a_clustering(tmp_path: Path) -> None:
    rows = pa.table({"a": [1, 2]})
    with SpilledRows(rows.schema, 1, str(tmp_path)) as spilled:
        spilled.add(0, rows)
        spilled._write(0)
        assert len(list(tmp_path.rglob("*"))) == 2
        assert readable_by_others(tmp_path) == []


def test_records_of_the_metadata_table(tmp_path: Path) -> None:
    bins = GroupBins(budget=1, folder=str(tmp_path))
    bins.put(("files", 0), pa.table([pa.array(["k"]), pa.array([b"v"])], schema=RECORDS))
    assert len(list(tmp_path.iterdir())) == 1
    assert readable_by_others(tmp_path) == []
