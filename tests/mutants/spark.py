"""Mistakes on Spark: the plan of a write, the task of each row, the readers of a query."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["SPARK"]

SPARK = (
    Mutant(
        name="spark-lanes-forget-bucket-counts-of-partitions",
        file="hudi_fast/spark/writing/unrouted_plans.py",
        before="buckets = bucket_of_keys(here, settings, path)",
        after="buckets = bucket_of_keys(here, settings)",
        harm="Two tasks write to one bucket of a partition with its own number of buckets, and the write fails.",
        near=("tests/spark/test_spark_bucket.py",),
    ),
    Mutant(
        name="spark-partitions-share-new-buckets",
        file="hudi_fast/spark/writing/workload.py",
        before="        first += max(0, one.new_files - 1)\n",
        after="        first += 1\n",
        harm="Rows of two partitions are in one bucket, and a task writes them to the wrong partition or fails.",
        near=("tests/spark/test_spark_buckets.py",),
    ),
    Mutant(
        name="spark-uncounted-rows-share-new-buckets",
        file="hudi_fast/spark/writing/routed.py",
        before="return len(routes.slices) + sum(one.new_files for one in files.values())",
        after="return len(routes.slices)",
        harm="Keys that were looked up are looked up again in the wrong slices, or rows of two partitions are mixed.",
        near=("tests/spark/test_spark_mor_writes.py", "tests/spark/test_spark_routed.py"),
    ),
    Mutant(
        name="spark-join-takes-keys-of-other-partitions",
        file="hudi_fast/spark/writing/routed.py",
        before="        on = on & (F.col(_PATH) == F.col(STORED_PATH))\n",
        after="        on = on & F.col(STORED_PATH).isNotNull()\n",
        harm="An upsert whose partitions are too large for lookups in lanes changes rows of other partitions.",
        near=("tests/spark/test_spark_mor_writes.py", "tests/spark/test_spark_routed.py"),
    ),
    Mutant(
        name="spark-global-deletes-look-in-one-partition",
        file="hudi_fast/spark/writing/engine.py",
        before='_TAGGED = frozenset({"upsert", "delete"})',
        after='_TAGGED = frozenset({"upsert"})',
        harm="A large delete with a global index leaves rows whose partition the caller does not name.",
        near=("tests/spark/test_spark_failures.py", "tests/spark/test_spark_plans.py"),
    ),
    Mutant(
        name="spark-shows-log-rows-that-lost",
        file="hudi_fast/spark/reading/scan.py",
        before="if scan.merge is not None and scan.merge.rules.compares:",
        after="if scan.merge is not None and not scan.merge.rules.compares:",
        harm="A query on Spark returns late log records beside the stored rows that beat them.",
        near=("tests/spark/test_spark_read_mor.py",),
    ),
)
