"""Partial updates that write whole rows, operations of rows, searches, and refused types, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from tests.spark.spark_writes import Step, assert_same_writes, batch, frame
from tests.support.small_tables import options, plain_rows

PARTIAL = {"hudi_fast.partial.update": "true"}
TABLE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.bloom.num_entries": "500",
    "hoodie.compact.inline": "false",
}


def some(numbers: Any, **changes: Any) -> pa.Table:
    """Rows with the key, the partition, the ordering value and one other column."""
    return batch(numbers, **changes).select(["id", "part", "ts", "number"])


STEPS = [
    Step("upsert", batch(range(120))),
    Step("upsert", some([*range(80, 110), 3, 85], ts=200), PARTIAL),
    Step("upsert", some(range(30, 90), ts=400, shift=1), PARTIAL),
]


@pytest.mark.parametrize(
    ("plan", "index", "kind", "version"),
    [
        ("routed", "GLOBAL_SIMPLE", "COPY_ON_WRITE", "9"),
        pytest.param("routed", "GLOBAL_SIMPLE", "MERGE_ON_READ", "9", marks=pytest.mark.long),
        ("fused", "BLOOM", "MERGE_ON_READ", "6"),
        pytest.param("routed", "SIMPLE", "COPY_ON_WRITE", "6", marks=pytest.mark.long),
        pytest.param("fused", "SIMPLE", "COPY_ON_WRITE", "9", marks=pytest.mark.long),
        pytest.param("broadcast", "SIMPLE", "MERGE_ON_READ", "6", marks=pytest.mark.long),
    ],
)
def test_partial_updates_write_what_one_process_writes(
    spark: Any, tmp_path: Path, plan: str, index: str, kind: str, version: str
) -> None:
    settings = {
        **TABLE,
        "hoodie.index.type": index,
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.table.version": version,
    }
    steps = STEPS if index.startswith("GLOBAL") else STEPS[:2]
    assert_same_writes(spark, tmp_path, plan, settings, steps)


def test_operations_delete_and_are_read_by_name(spark: Any, tmp_path: Path) -> None:
    settings = {**options(), "hoodie.allow.operation.metadata.field": True, "hudi_fast.plan": "fused"}
    hf.write(frame(spark, plain_rows(range(4))), tmp_path / "t", settings)
    changes = plain_rows([1, 2], ts=2).append_column("_hoodie_operation", pa.array(["U", "D"]))
    hf.write(frame(spark, changes), tmp_path / "t", settings)
    read = hf.read(spark, tmp_path / "t", columns=["id", "_hoodie_operation"]).collect()
    assert {row[0]: row[1] for row in read} == {"k00000": None, "k00001": "U", "k00003": None}


def test_blending_rows_do_not_move_beside_the_driver(spark: Any, tmp_path: Path) -> None:
    payload = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
    settings = {**options(index="GLOBAL_SIMPLE"), "hoodie.datasource.write.payload.class": payload}
    hf.write(frame(spark, plain_rows(range(4))), tmp_path / "t", settings)
    with pytest.raises(hf.UnsupportedFeatureError, match=r"fit into the driver .*driver\.max\.bytes"):
        hf.write(frame(spark, plain_rows(range(4), ts=2)), tmp_path / "t", {**settings, "hudi_fast.plan": "routed"})


def test_types_that_tables_cannot_hold_are_refused_by_name(spark: Any, tmp_path: Path) -> None:
    columns = {
        "INTERVAL '1' MONTH": "interval",
        "INTERVAL '1' DAY": "duration",
        "array(make_interval(1))": "interval",
    }
    if int(spark.version.split(".")[0]) >= 4:
        columns["parse_json('{}')"] = "variant"
    for text, kind in columns.items():
        rows = spark.sql(f"SELECT 'a' AS id, 'p' AS part, 1L AS ts, {text} AS odd")
        with pytest.raises(hf.UnsupportedFeatureError, match=rf"Column 'odd.*{kind}"):
            hf.write(rows, tmp_path / "t", options())
    assert not (tmp_path / "t").exists()
