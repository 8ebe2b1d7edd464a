"""The Spark session of the tests' own process: UTC, small, this interpreter's workers, and no Hudi jar in it."""

from __future__ import annotations

import sys

import pyarrow as pa
import pytest


def test_workers_run_this_interpreter(spark):
    def executable(batches):
        for batch in batches:
            yield pa.record_batch({"python": [sys.executable] * batch.num_rows})

    rows = spark.range(2, numPartitions=2).mapInArrow(executable, "python string").collect()
    assert {row.python for row in rows} == {sys.executable}


def test_the_session_is_small_and_in_utc(spark):
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.sparkContext._jvm.java.util.TimeZone.getDefault().getID() == "UTC"


def test_there_is_no_hudi_jar_in_it(spark):
    with pytest.raises(Exception, match=r"hudi"):
        spark.range(1).write.format("hudi").save("/nonexistent/trips")
