"""A bulk insert whose rows stay in their chunks: real Hudi reads its files, and writes on top of them.

Module: hudi_fast.writing.prepare.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.writing import prepare
from tests.peer.client import RealHudi
from tests.support.small_tables import options, plain_rows, rows_of, table_rows

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("kind", "version"), [("COPY_ON_WRITE", "9"), ("MERGE_ON_READ", "6")])
def test_hudi_reads_files_of_kept_chunks_and_changes_their_rows(
    hudi_12: RealHudi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, version: str
) -> None:
    monkeypatch.setattr(prepare, "_MANY_BYTES", 0)
    monkeypatch.setattr(prepare, "_RUN_ROWS", 1)
    path, given = tmp_path / "t", options(operation="bulk_insert", table_version=version)
    given |= {"hoodie.datasource.write.table.type": kind, "hoodie.write.auto.upgrade": "false"}
    rows = pa.concat_tables([plain_rows(range(40)), plain_rows(range(40, 55)), plain_rows(range(55, 100))])
    items = [[number] * (number % 3) for number in range(rows.num_rows)]
    rows = rows.append_column("items", pa.chunked_array([items[:55], items[55:]], pa.list_(pa.int64())))
    hf.write(rows, path, given)
    assert rows_of(hudi_12.read(path)) == rows_of(rows) == table_rows(path)

    changed = rows.slice(30, 40).set_column(2, "ts", pa.array([2] * 40, pa.int64()))
    hudi_12.write(changed, path, {**given, "hoodie.datasource.write.operation": "upsert"})
    assert rows_of(hudi_12.read(path)) == table_rows(path) == {**rows_of(rows), **rows_of(changed)}
