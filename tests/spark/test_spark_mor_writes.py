"""Delta commits by every plan of the Spark engine: the tables are those that the local engine writes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.formats.log.blocks import BlockType
from tests.spark.spark_writes import NOT_COMPARED, Step, assert_same_writes, batch, frame
from tests.support.mor_tables import (
    blocks_of,
    log_files,
    make_key_logged_early,
    make_key_of_a_log,
    make_logs_alone,
    mor_options,
    newest_commit,
)
from tests.support.rows import assert_same_rows
from tests.support.small_tables import assert_tidy, plain_rows, table_rows

CHANGES = batch([*range(120), *range(10), 5], ts=[*[200] * 120, *[300] * 10, 1], deletes=[81, 95, 130])
STEPS = [
    Step("upsert", batch(range(100))),
    Step("upsert", batch(range(10, 30), ts=150, seed=1)),  # goes to logs alone
    Step("upsert", batch(range(10, 60), ts=[*[140] * 25, *[160] * 25], deletes=[12, 44], seed=2)),
    Step("delete", batch(range(50, 70))),
    Step("upsert", CHANGES),
    Step("insert", batch(range(200, 210))),
    Step("insert_overwrite", batch([0, 4], ts=7)),
]
MOVES = [
    Step("upsert", batch(range(60))),
    Step("upsert", batch(range(30), ts=300, deletes=[7], seed=1)),
    Step("upsert", batch(range(50), ts=200, seed=2, shift=1)),  # loses to the log where that has the row
    Step("upsert", batch(range(20), ts=400, deletes=[3], seed=3, shift=2)),
    Step("delete", batch(range(40, 50))),
    Step("upsert", batch([3, 7, 41, 42], ts=1, seed=4, shift=3)),
]


@pytest.mark.smoke("driver-9", "routed-9")
@pytest.mark.parametrize(("plan", "version"), [("driver", "9"), ("broadcast", "6"), ("fused", "6"), ("routed", "9")])
def test_every_plan_logs_what_the_local_engine_logs(plan: str, version: str, spark: Any, tmp_path: Path) -> None:
    # One plan does every step, the first one, too; each other plan does one step of each kind.
    steps, given = (STEPS, 0) if plan == "routed" else ([STEPS[0], *STEPS[2:5], STEPS[6]], 1)
    path = assert_same_writes(spark, tmp_path, plan, mor_options(table_version=version), steps, given=given)
    assert newest_commit(path)[0].action == "replacecommit"
    kinds = {block.kind for block in blocks_of(path)}
    assert kinds == {BlockType.AVRO_DATA, BlockType.DELETE}
    assert len(log_files(path)) > 8


@pytest.mark.parametrize(
    ("index", "plan"),
    [
        pytest.param("SIMPLE", "driver", marks=pytest.mark.long),
        ("BLOOM", "broadcast"),
        ("SIMPLE", "fused"),
        ("BLOOM", "routed"),
        pytest.param("BLOOM", "driver", marks=pytest.mark.long),
        pytest.param("SIMPLE", "broadcast", marks=pytest.mark.long),
        pytest.param("BLOOM", "fused", marks=pytest.mark.long),
        pytest.param("SIMPLE", "routed", marks=pytest.mark.long),
    ],
)
def test_every_plan_finds_a_key_that_a_compaction_or_another_writer_left_to_the_log(
    index: str, plan: str, spark: Any, tmp_path: Path
) -> None:
    settings = {**mor_options(index=index), "hudi_fast.plan": plan}
    for name, make in (("early", make_key_logged_early), ("inserted", make_key_of_a_log)):
        make(tmp_path / name, mor_options(index=index))
        hf.write(frame(spark, plain_rows([4, 8], ts=4, text="later")), tmp_path / name, settings)
        assert hf.HudiTable.open(tmp_path / name).to_arrow().num_rows == 4
        assert table_rows(tmp_path / name)["k00004"] == ("p0", 4, "later4")


@pytest.mark.parametrize(
    ("index", "version"), [("GLOBAL_SIMPLE", "9"), pytest.param("GLOBAL_BLOOM", "6", marks=pytest.mark.long)]
)
def test_rows_that_move_are_compared_with_what_a_reader_sees(
    index: str, version: str, spark: Any, tmp_path: Path
) -> None:
    """Counts may differ: a key that has left a log's slice is still in its base file, unless that was rewritten."""
    options = mor_options(table_version=version, index=index)
    hf.write(MOVES[0].rows, tmp_path / "local", options)
    shutil.copytree(tmp_path / "local", tmp_path / "spark")
    steps = MOVES[1:3] + MOVES[4:] if version == "9" else MOVES[1:]
    for step in steps:
        settings = {**options, "hoodie.datasource.write.operation": step.operation}
        hf.write(step.rows, tmp_path / "local", settings)
        hf.write(frame(spark, step.rows), tmp_path / "spark", {**settings, "hudi_fast.plan": "routed"})
        found, wanted = (hf.HudiTable.open(tmp_path / name).to_arrow() for name in ("spark", "local"))
        assert_same_rows(found, wanted, ignore=NOT_COMPARED)
    assert_tidy(tmp_path / "spark")


@pytest.mark.long
def test_rows_that_stay_where_their_key_is(spark: Any, tmp_path: Path) -> None:
    stay = mor_options({"hoodie.simple.index.update.partition.path": "false"}, index="GLOBAL_SIMPLE")
    assert_same_writes(spark, tmp_path, "routed", stay, MOVES[:3], given=1)


def test_tables_without_partitions_and_parquet_blocks(spark: Any, tmp_path: Path) -> None:
    more = {"hoodie.logfile.data.block.format": "parquet"}
    path = assert_same_writes(spark, tmp_path, "routed", mor_options(more, partition=None), STEPS[:4], given=1)
    assert BlockType.PARQUET_DATA in {block.kind for block in blocks_of(path)}


def test_bulk_insert_makes_base_files_in_a_delta_commit(spark: Any, tmp_path: Path) -> None:
    settings = {**mor_options(), "hoodie.datasource.write.operation": "bulk_insert"}
    result = hf.write(spark.createDataFrame(batch(range(50))), tmp_path / "t", settings)
    assert (result.plan, result.inserts) == ("driver", 50)
    assert newest_commit(tmp_path / "t")[0].action == "deltacommit"
    assert log_files(tmp_path / "t") == []


def test_keys_of_log_files_without_base_file_are_joined(spark: Any, tmp_path: Path) -> None:
    settings = {**make_logs_alone(tmp_path / "t", "9"), "hudi_fast.plan": "routed"}
    result = hf.write(spark.createDataFrame(plain_rows([1, 7], ts=6, text="new")), tmp_path / "t", settings)
    assert (result.plan, result.inserts, result.updates) == ("routed", 1, 1)
    rows = table_rows(tmp_path / "t")
    assert [rows[key][1:3] for key in ("k00001", "k00003", "k00007")] == [(6, "new1"), (5, "log3"), (6, "new7")]


def test_a_key_of_log_files_in_another_partition_is_another_row(spark: Any, tmp_path: Path) -> None:
    """The index is not global: the same key in another partition is another row."""
    settings = {**make_logs_alone(tmp_path / "t", "9"), "hudi_fast.plan": "routed"}
    rows = plain_rows([1, 7], ts=6, text="new")
    rows = rows.set_column(rows.schema.get_field_index("part"), "part", pa.array(["elsewhere", "p1"]))
    result = hf.write(spark.createDataFrame(rows), tmp_path / "t", settings)
    assert (result.plan, result.inserts, result.updates) == ("routed", 2, 0)
    stored = hf.HudiTable.open(tmp_path / "t").to_arrow(filter="id = 'k00001'")
    assert sorted(stored["part"].to_pylist()) == ["elsewhere", "p1"]


def test_partial_updates_by_spark_and_the_keys_that_they_miss(spark: Any, tmp_path: Path) -> None:
    settings = mor_options()
    hf.write(plain_rows(range(10)), tmp_path / "t", settings)
    partial = {**settings, "hudi_fast.partial.update": "true"}
    for plan in ("fused", "routed"):
        rows = spark.createDataFrame(plain_rows([1, 77], ts=6, text=plan))
        with pytest.raises(hf.InvalidDataError, match=r"1 rows of the partial update .*'k00077'"):
            hf.write(rows, tmp_path / "t", {**partial, "hudi_fast.plan": plan})
        hf.write(rows.filter("id = 'k00001'"), tmp_path / "t", {**partial, "hudi_fast.plan": plan})
        assert table_rows(tmp_path / "t")["k00001"] == ("p1", 6, f"{plan}1")
    assert_tidy(tmp_path / "t")
