"""hudi-rs, an implementation that shares no code with Apache Hudi's, reads the tables that we write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi import HudiQueryType, HudiReadOptions, HudiTableBuilder

import hudi_fast as hf
from tests.interop.sides import after_delete, after_upsert, data_columns, trip_options, trips
from tests.support.rows import assert_same_rows

pytestmark = pytest.mark.slow

PARTITION = "hoodie.datasource.write.partitionpath.field"


def read(path: Path, options: HudiReadOptions | None = None) -> pa.Table:
    return pa.Table.from_batches(HudiTableBuilder.from_base_uri(str(path)).build().read(options))


@pytest.mark.slow("partitioned-8", "hive_style-6", "hive_style-8", "hive_style-9")
@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize(
    "more",
    [{}, {PARTITION: ""}, {"hoodie.datasource.write.hive_style_partitioning": True, PARTITION: "city,seats"}],
    ids=["partitioned", "not_partitioned", "hive_style"],
)
def test_every_snapshot_reads_the_same(version: int, more: dict[str, Any], tmp_path: Path) -> None:
    path, options = tmp_path / "t", {**trip_options(version), **more}
    operation = "hoodie.datasource.write.operation"
    rows = trips(range(50))
    first = hf.write(rows, path, {**options, operation: "bulk_insert"})
    new = trips(range(30, 70), ts=2, note="second")
    second = hf.write(new, path, options)
    before, rows = rows, after_upsert(rows, new)
    assert_same(path, rows)
    table = hf.HudiTable.open(path)
    gone = trips(range(25, 35))
    table.delete(gone)
    rows = after_delete(rows, gone)
    assert_same(path, rows)
    for instant, then in ((first.instant, before), (second.instant, after_upsert(before, new))):
        assert_same_rows(data_columns(read(path, HudiReadOptions().with_as_of_timestamp(instant))), then, key=["id"])
    # An incremental query goes by completion times where names of instants have them.
    history = {row["instant"]: row for row in table.history().to_pylist()}
    times = [history[one.instant]["completion" if version >= 8 else "instant"] for one in (first, second)]
    changed = HudiReadOptions().with_query_type(HudiQueryType.Incremental)
    changed = changed.with_start_timestamp(times[0]).with_end_timestamp(times[1])
    assert_same_rows(data_columns(read(path, changed)), new, key=["id"])
    fresh = trips(range(300, 310))
    hf.write(fresh, path, {**options, operation: "insert_overwrite_table"})
    assert_same(path, fresh)


def assert_same(path: Path, rows: pa.Table) -> None:
    theirs = read(path)
    assert_same_rows(hf.HudiTable.open(path).to_arrow(), theirs, ignore=())
    assert_same_rows(data_columns(theirs), rows, key=["id"])
