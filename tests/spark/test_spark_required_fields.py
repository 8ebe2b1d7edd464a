"""Null structs with required fields, as Spark's expressions make them, go through every plan and compaction."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from hudi_fast.formats.column_limits import without_hidden_nulls
from tests.support.required_fields import rows_with_null_parents

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
}
TYPE, OPERATION = "hoodie.datasource.write.table.type", "hoodie.datasource.write.operation"
CASES = """
    SELECT id, 'a' part, {ts}L ts,
        CASE WHEN id % 2 = 0 THEN named_struct('no', 5) END s,
        CASE WHEN id % 2 = 0 THEN array(named_struct('no', 5)) END l,
        CASE WHEN id % 2 = 0 THEN map('k', named_struct('no', 5)) END m,
        CASE WHEN id % 2 = 0 THEN named_struct('inner', named_struct('no', 5, 'text', 'x'), 'list', array(1, 2)) END o
    FROM range({first}, {last})
"""


def expected(ts: int, first: int, last: int) -> dict[int, dict]:
    values = {"s": {"no": 5}, "l": [{"no": 5}], "m": {"k": {"no": 5}}}
    values["o"] = {"inner": {"no": 5, "text": "x"}, "list": [1, 2]}
    return {
        key: {"id": key, "part": "a", "ts": ts, **(dict.fromkeys(values) if key % 2 else values)}
        for key in range(first, last)
    }


def rows_of(frame) -> list[dict]:
    return sorted((row.asDict(recursive=True) for row in frame.collect()), key=lambda row: row["id"])


@pytest.mark.long(
    "driver-MERGE_ON_READ",
    "broadcast-COPY_ON_WRITE",
    "fused-MERGE_ON_READ",
    "routed-COPY_ON_WRITE",
    "direct-COPY_ON_WRITE",
)
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("plan", ["driver", "broadcast", "fused", "routed", "direct"])
def test_null_structs_with_required_fields_go_through_every_plan(spark, tmp_path, plan, table_type):
    path, options = tmp_path / "t", {**OPTIONS, TYPE: table_type, "hudi_fast.plan": plan.replace("direct", "fused")}
    if plan == "direct":
        options[OPERATION] = "bulk_insert"
    first = spark.sql(CASES.format(ts=1, first=0, last=8))
    assert not first.schema["s"].dataType["no"].nullable
    assert hf.write(first, path, options).plan == plan
    hf.write(spark.sql(CASES.format(ts=2, first=4, last=10)), path, {**options, OPERATION: "upsert"})
    rows = {**expected(1, 0, 8), **expected(2, 4, 10)}
    names = list(rows[0])
    assert rows_of(hf.read(spark, path).select(names)) == list(rows.values())
    if table_type == "MERGE_ON_READ":
        hf.HudiTable.open(path).services.compact(spark=spark)
        assert rows_of(hf.read(spark, path).select(names)) == list(rows.values())
    assert (
        hf.write(spark.sql(CASES.format(ts=3, first=9, last=10)), path, {**options, OPERATION: "upsert"}).updates == 1
    )


def test_merges_and_updates_keep_null_structs(spark, tmp_path):
    rows = rows_with_null_parents(range(4))
    hf.write(rows, tmp_path / "t", {**OPTIONS, TYPE: "MERGE_ON_READ"})
    pq.write_table(without_hidden_nulls(rows_with_null_parents(range(3, 6), ts=2)), tmp_path / "source.parquet")
    source = spark.read.parquet(str(tmp_path / "source.parquet"))
    merge = hf.merge(tmp_path / "t", source, spark=spark).on("id").when_matched_update().when_not_matched_insert()
    assert merge.execute().inserts == 2
    hf.update(tmp_path / "t", "id = 'k1'", {"ts": "9"}, spark=spark)
    hf.HudiTable.open(tmp_path / "t").services.compact(spark=spark)
    stored = hf.read(tmp_path / "t", columns=rows.column_names).to_pylist()
    wanted = [*rows.to_pylist()[:3], *rows_with_null_parents(range(3, 6), ts=2).to_pylist()]
    wanted[1]["ts"] = 9
    assert sorted(stored, key=lambda row: row["id"]) == wanted
