"""A bootstrap on Spark: tasks make skeletons, each of some files; copied rows are read by tasks and bulk inserted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from hudi_fast.bootstrapping.plan import BootstrapPlan
from hudi_fast.bootstrapping.rows import copied_batches
from hudi_fast.bootstrapping.run import BootstrapCarriers
from hudi_fast.bootstrapping.skeletons import SkeletonWork, carry_out, in_threads, weights_of
from hudi_fast.spark.arrow import parallelism
from hudi_fast.spark.services.metadata import run_on
from hudi_fast.spark.services.tasks import in_tasks
from hudi_fast.spark.table_types import as_spark, spark_arrow, spark_schema
from hudi_fast.spark.writing.engine import SparkEngine
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.bootstrap_index import SourceFile
from hudi_fast.writing.plan import TaskToken

__all__ = ["carriers_of_bootstrap"]

_TASKS_PER_CORE = 4


def carriers_of_bootstrap(spark: Any, driver_bytes: int = 0) -> BootstrapCarriers:
    """What does the work of a bootstrap as tasks of a Spark session.

    Args:
        spark: the session.
        driver_bytes: files of less than that get their skeletons by the driver itself.
    """

    def skeletons(work: SkeletonWork) -> list[WriteStat]:
        weights = weights_of(work)
        if sum(weights) < driver_bytes:
            return in_threads(work)
        return in_tasks(spark, work.plan, work.sources, weights, _Files(replace(work, sources=())))

    def engine(plan: BootstrapPlan) -> SparkEngine:
        return SparkEngine(_copied_rows(spark, plan), plan.write)

    return BootstrapCarriers(skeletons, engine, run_on(spark, driver_bytes), "spark")


@dataclass(frozen=True, slots=True)
class _Files:
    """Makes the skeleton of one file; holds what is true for all of them."""

    work: SkeletonWork

    def __call__(self, sources: Sequence[SourceFile], number: int, token: TaskToken) -> list[WriteStat]:
        return carry_out(replace(self.work, sources=tuple(sources)), number, token)


def _copied_rows(spark: Any, plan: BootstrapPlan) -> Any:
    """The rows of all files that are copied, as a DataFrame."""
    storage, files, schema = plan.source.storage, plan.copied, plan.schema
    target = spark_arrow(schema)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in [number for batch in batches for number in batch.column(0).to_pylist()]:
            for rows in copied_batches(storage, files[number], schema):
                yield pa.RecordBatch.from_arrays(as_spark(rows, target), schema=target)

    tasks = min(len(files), _TASKS_PER_CORE * parallelism(spark))
    return spark.range(0, len(files), 1, tasks).mapInArrow(read, spark_schema(schema))
