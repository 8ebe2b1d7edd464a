"""What the Spark UI says about the jobs of a write, and what validators and callbacks do on Spark.

The tags of Spark Connect are part of the program ``every_plan``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from tests.support.small_tables import options, plain_rows

pytestmark = pytest.mark.spark

DESCRIPTION, GROUP = "spark.job.description", "spark.jobGroup.id"
COUNT = "select count(*) from <TABLE_NAME>"


def described(spark: Any, group: str) -> list[str]:
    """The descriptions of the jobs of a group, from Spark's own status store."""
    store = spark.sparkContext._jsc.sc().statusStore()
    jobs = store.jobsList(None)
    found = []
    for at in range(jobs.size()):
        job = jobs.apply(at)
        if job.jobGroup().isDefined() and job.jobGroup().get() == group:
            found.append(job.description().get() if job.description().isDefined() else "")
    return found


def frame(spark: Any, count: int, ts: int = 1) -> Any:
    return spark.createDataFrame(plain_rows(range(count), ts=ts).to_pandas())


def test_jobs_say_phase_table_and_instant_and_the_callers_description_returns(spark: Any, tmp_path: Path) -> None:
    context = spark.sparkContext
    context.setJobGroup("mine", "what I do")
    try:
        more = {**options(), "hudi_fast.plan": "fused"}
        result = hf.write(frame(spark, 8), tmp_path, more)
        assert (context.getLocalProperty(GROUP), context.getLocalProperty(DESCRIPTION)) == ("mine", "what I do")
        with pytest.raises(hf.HudiError):
            hf.write(frame(spark, 8), tmp_path, {**more, "hoodie.datasource.write.recordkey.field": "text"})
        assert context.getLocalProperty(DESCRIPTION) == "what I do"
    finally:
        context.setLocalProperty(GROUP, None)
        context.setLocalProperty(DESCRIPTION, None)
    assert f"hudi_fast: execute {tmp_path} {result.instant}" in described(spark, "mine")


def test_validators_ask_spark_and_callbacks_are_called(spark: Any, tmp_path: Path) -> None:
    package, key = "org.apache.hudi.client.validator.", "hoodie.precommit.validators"
    results: list[Any] = []
    path = tmp_path / "t"
    more = {
        **options(),
        key: f"{package}SqlQueryInequalityPreCommitValidator,{package}SqlQuerySingleResultPreCommitValidator",
        f"{key}.inequality.sql.queries": COUNT,
        f"{key}.single.value.sql.queries": "select count(*) from <TABLE_NAME> where id rlike '^x'#0",
        "hudi_fast.commit.callback": results.append,
    }
    first = hf.write(frame(spark, 4), path, more)
    second = hf.write(frame(spark, 6, 2), path, more)
    with pytest.raises(hf.ValidationError, match="SqlQueryInequalityPreCommitValidator"):
        hf.write(frame(spark, 6, 3), path, more)
    assert results == [first, second]
    hf.sink(tmp_path / "streamed", more)(frame(spark, 4), 0)
    assert [one.inserts for one in results] == [4, 2, 4]
    assert hf.HudiTable.open(path).to_arrow().num_rows == 6
    with pytest.raises(hf.ConfigError, match="Spark refuses the query"):
        hf.write(frame(spark, 7), path, {**more, f"{key}.inequality.sql.queries": "select x from <TABLE_NAME>"})
    assert not [one for one in spark.catalog.listTables() if one.name.startswith("hudi_fast_")]
