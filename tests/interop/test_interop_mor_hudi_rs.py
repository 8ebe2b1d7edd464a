"""hudi-rs, which shares no code with Apache Hudi's reader, merges the logs that we write and reads what we compact."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hudi import HudiReadOptions, HudiTableBuilder

import hudi_fast as hf
from tests.interop.mor_sides import mor_options
from tests.interop.sides import after_delete, after_upsert, data_columns, trips
from tests.support.rows import assert_same_rows

pytestmark = pytest.mark.slow


def read(path: Path, options: HudiReadOptions | None = None) -> pa.Table:
    return pa.Table.from_batches(HudiTableBuilder.from_base_uri(str(path)).build().read(options))


def assert_same(path: Path, rows: pa.Table) -> None:
    theirs = read(path)
    assert_same_rows(hf.HudiTable.open(path).to_arrow(), theirs, ignore=())
    assert_same_rows(data_columns(theirs), rows, key=["id"])


@pytest.mark.parametrize("version", [6, 8, 9])
def test_every_snapshot_reads_the_same(version: int, tmp_path: Path) -> None:
    path, options = tmp_path / "t", mor_options(version)
    rows = trips(range(50))
    hf.write(rows, path, {**options, "hoodie.datasource.write.operation": "bulk_insert"})
    new = pa.concat_tables([trips(range(30, 70), ts=5, note="second"), trips(range(4), ts=0, note="too late")])
    second = hf.write(new, path, options)
    rows = after_upsert(rows, trips(range(30, 70), ts=5, note="second"))
    assert_same(path, rows)
    table, before = hf.HudiTable.open(path), rows
    gone = trips(range(25, 35))
    table.delete(gone, options=options)
    rows = after_delete(rows, gone)
    assert_same(path, rows)
    then = data_columns(read(path, HudiReadOptions().with_as_of_timestamp(second.instant)))
    assert_same_rows(then, before, key=["id"])
    table.services.compact({"hoodie.compact.inline.max.delta.commits": 1})
    assert_same(path, rows)
    new = trips(range(20, 60), ts=6)
    table.upsert(new, options)
    assert_same(path, after_upsert(rows, new))
