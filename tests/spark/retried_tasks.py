"""A program: tasks that fail to read, or after they have written files, in a session that tries each task three times.

Arguments: a scratch folder, names of plans. Fails, or prints the plans that it has tried.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import hudi_fast as hf
from hudi_fast.spark.backend import SparkBackend
from hudi_fast.writing.flow import run_write
from tests.spark.flaky_storage import ALWAYS, LOG, FlakyStorage
from tests.spark.spark_writes import NOT_COMPARED, batch, frame, numbers_of
from tests.support.rows import assert_same_rows
from tests.support.sessions import session_of
from tests.support.small_tables import assert_tidy

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.bloom.num_entries": "500",
}
PLANS = {
    "broadcast": {},
    "fused": {},
    "routed": {"hoodie.index.type": "GLOBAL_SIMPLE"},
    "direct": {"hoodie.datasource.write.operation": "bulk_insert"},
}


def rows(ids: range, partitions: int, **how: Any) -> pa.Table:
    """A batch in enough partitions that each task writes several files."""
    table = batch(ids, **how)
    return table.set_column(2, "part", pa.array([f"p{number % partitions}" for number in ids]))


BASE = rows(range(100), 8)
CHANGES = rows(range(60, 140), 9, ts=200, deletes=[61, 70])


def main(folder: Path, plans: list[str]) -> None:
    """Plans with tasks that succeed at the second attempt; the last one with tasks that never do, too."""
    (folder / "log").mkdir()
    os.environ[LOG], os.environ[ALWAYS] = str(folder / "log"), str(folder / "always")
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.python.daemon.module": "hudi_fast.spark.daemon",
    }
    spark = SparkSession.builder.master("local[2,3]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    for plan in plans:
        second_attempt_succeeds(spark, folder, plan)
        print(plan, flush=True)
    last = folder / plans[-1]
    before = no_attempt_succeeds(spark, last)
    spark.stop()  # a task that was left behind has had its chance
    table = hf.HudiTable.open(last)
    assert_same_rows(table.to_arrow(), before, ignore=())
    table.services.repair()  # it may have written a marker since
    assert_tidy(last)


def write(spark: SparkSession, path: Path, plan: str) -> hf.WriteResult:
    """Write :data:`CHANGES` to a storage that fails."""
    forced = plan.replace("direct", "fused")
    session = session_of(FlakyStorage(path), {**OPTIONS, **PLANS[plan], "hudi_fast.plan": forced}, SparkBackend(spark))
    return run_write(session, session.backend.engine(frame(spark, CHANGES), session.settings.write), "append")


def second_attempt_succeeds(spark: SparkSession, folder: Path, plan: str) -> None:
    """The same table as without failures, and no file of a failed attempt."""
    local, remote = folder / f"{plan}_local", folder / plan
    for path in (local, remote):
        hf.write(BASE, path, OPTIONS)
    expected = hf.write(CHANGES, local, {**OPTIONS, **PLANS[plan]})
    failures, unread = len(list((folder / "log").glob("*.failed"))), len(list((folder / "log").glob("*.unread")))
    result = write(spark, remote, plan)
    assert result.plan == plan
    assert numbers_of(result) == numbers_of(expected)
    assert len(list((folder / "log").glob("*.failed"))) > failures, "no task has failed to write"
    if plan != "direct":
        assert len(list((folder / "log").glob("*.unread"))) > unread, "no task has failed to read"
    assert_same_rows(hf.HudiTable.open(remote).to_arrow(), hf.HudiTable.open(local).to_arrow(), NOT_COMPARED)
    assert_tidy(remote)


def no_attempt_succeeds(spark: SparkSession, path: Path) -> pa.Table:
    """The error of the storage arrives; what the table held before."""
    before = hf.HudiTable.open(path).to_arrow()
    (folder := path.parent / "always").touch()
    failure = ""
    try:
        write(spark, path, path.name)
    except Exception as error:
        failure = str(error)
    folder.unlink()
    assert "no room for" in failure, failure
    return before


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
