"""Random verbs on random kinds of MERGE_ON_READ tables, compactions among them, by both engines, against a dict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test

import hudi_fast as hf
from tests.naive.bucket_hash import list_hash
from tests.properties.mor_model import MorModel
from tests.properties.table_model import Counts, Key, Row
from tests.properties.test_properties_table import BUCKETS, TableMachine, batches, changes, table_of
from tests.support.examples import examples

NOW = {"hoodie.compact.inline.max.delta.commits": "1"}
COUNT = int(BUCKETS["hoodie.bucket.index.num.buckets"])
LOGS_NOW = {"hoodie.log.compaction.blocks.threshold": "1"}


def bucket_of(key: str) -> int:
    """The bucket of a key of one field: Java's hash of a list of one string."""
    return (list_hash([key]) & 0x7FFFFFFF) % COUNT


class MorMachine(TableMachine):
    """The rules of every table, over a model that keeps base rows and logs apart."""

    spark: Any = None

    @initialize(
        version=st.sampled_from(["6", "8", "9"]),
        partitioned=st.booleans(),
        by_time=st.booleans(),
        index=st.sampled_from(["SIMPLE", "BLOOM", "BLOOM by metadata", "RECORD", "RECORD", "BUCKET", "BUCKET"]),
        hive_style=st.booleans(),
        meta=st.sampled_from([True, True, True, False]),
        small=st.sampled_from(["0", "7000"]),
        blocks=st.sampled_from(["avro", "avro", "parquet"]),
        secondary=st.booleans(),
        first=batches,
    )
    def create(self, version, partitioned, by_time, index, hive_style, meta, small, blocks, secondary, first) -> None:
        if index == "RECORD" and version != "9":
            partitioned, index = False, "GLOBAL_RECORD"  # the other is of release 1.1
        self.model = MorModel(partitioned, by_time, "RECORD" in index, bucket_of if index == "BUCKET" else None)
        self.prepare(version, partitioned, by_time, index, hive_style, meta, secondary)
        self.options |= {
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.compact.inline": "false",
            "hoodie.parquet.small.file.limit": small,
            "hoodie.logfile.data.block.format": blocks,
        }
        result = hf.write(self.given(first), self.path, self.options)
        self.committed(result, self.model.upsert(first, result.instant))

    def committed(self, result, counts) -> None:
        if self.model.bucket_of is not None:  # a log counts what it takes as updates, whether the key is new or not
            assert result.inserts + result.updates == counts.inserts + counts.updates
            counts = Counts(result.inserts, result.updates, counts.deletes)
        super().committed(result, counts)

    def given(self, batch: list[Row]) -> Any:
        """What is written: Arrow rows, or a DataFrame."""
        rows = table_of(batch)
        return rows if self.spark is None else self.spark.createDataFrame(rows.to_pylist(), SPARK_SCHEMA)

    def write(self, batch: list[Row], operation: str, **more: str) -> hf.WriteResult:
        groups = self.groups()
        named = {"hoodie.datasource.write.operation": operation}
        result = hf.write(self.given(batch), self.path, {**self.settings(), **more, **named})
        files = self.table.files().to_pylist()
        fresh = {file["file_id"] for file in files if file["instant"] == result.instant}
        self.model.rewritten = {key for key, file_id in groups.items() if file_id in fresh}
        return result

    @property
    def knows_duplicates(self) -> bool:
        return self.model.bucket_of is None  # keys of logs are not looked for

    def groups(self) -> dict[Key, str]:
        """The file group of every key that base files hold."""
        found: dict[Key, str] = {}
        for file in self.table.files().to_pylist():
            path = Path(self.path) / file["partition"] / file["base_file"]
            for row in pq.read_table(path, columns=["id", "part"], partitioning=None).to_pylist():
                place = self.model.place(Row(row["id"], row["part"], None, None))
                known = found.setdefault((place, row["id"]), file["file_id"])
                assert known == file["file_id"] or self.model.forgets
        return found

    @rule()
    def compact(self) -> None:
        plan = self.model.plan()
        self.table.services.compact(NOW, spark=self.spark)
        self.model.compact(plan)
        assert not any(self.table.files()["log_files"].to_pylist())

    @precondition(lambda self: self.model.stored)
    @rule(batch=st.lists(changes, max_size=14))
    def write_while_a_compaction_waits(self, batch) -> None:
        plan = self.model.plan()
        self.table.services.schedule_compact(NOW)
        result = self.write(batch, "upsert")
        self.committed(result, self.model.upsert(batch, result.instant))
        self.holds_the_rows_of_the_model()
        done = self.table.services.compact(NOW, spark=self.spark, pending_only=True)
        assert bool(done.instant) == bool(plan)
        self.model.compact(plan)

    @rule()
    def compact_logs(self) -> None:
        done = self.table.services.compact_logs(LOGS_NOW, spark=self.spark)
        if done.instant:
            self.model.compact_logs(done.instant)

    def rows_in_base_files(self) -> int:
        return self.model.base_rows


SPARK_SCHEMA = "id string, part string, ts long, v int, _hoodie_is_deleted boolean"

TestMorTable = pytest.mark.slow(MorMachine.TestCase)
TestMorTable.settings = settings(
    max_examples=examples(20), stateful_step_count=14, suppress_health_check=list(HealthCheck)
)


def test_on_spark_they_do_the_same(spark: Any) -> None:
    class OnSpark(MorMachine):
        pass

    OnSpark.spark = spark
    run_state_machine_as_test(
        OnSpark,
        settings=settings(max_examples=examples(3), stateful_step_count=6, suppress_health_check=list(HealthCheck)),
    )
