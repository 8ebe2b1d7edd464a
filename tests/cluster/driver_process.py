"""A program: a Spark driver that writes as it is asked, and stops at a stage of the write if it is asked.

It attaches to the JVM of :mod:`tests.cluster.application`. Each line on standard input is a :class:`Work` as JSON. For
each line the program prints ``begin``, then ``done`` or ``failed`` with the error. At the stage that the work names it
prints ``stage`` and waits for a further line. Stages are made by wrapping functions of the library in this process.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import hudi_fast as hf
from hudi_fast.metadata_table.updates import commit as metadata_update
from hudi_fast.services import clean as cleaning
from hudi_fast.writing import flow, rollback, transaction
from tests.cluster.application import TASKS

__all__ = ["PARTITIONS", "Work", "is_visible_at"]

PARTITIONS = 4

_STAGES: dict[str, tuple[Any, str, bool]] = {
    "begun": (flow, "begin", True),
    "answered": (transaction, "_reconcile", False),
    "reconciled": (flow, "record_schema", False),
    "metadata": (metadata_update, "finish_delta_commit", False),
    "recorded": (transaction, "complete", False),
    "completed": (transaction, "complete", True),
    "cleaning": (cleaning, "complete", False),
    "rolling back": (rollback, "complete", False),
}
"""By stage: the function (module and name), and whether the stage comes after its call, or before."""


def is_visible_at(stage: str) -> bool | None:
    """Whether the rows of a write are visible that ends at this stage; None if the stage does not tell."""
    return {"completed": True, "cleaning": True}.get(stage, False if stage in _STAGES else None)


@dataclass(frozen=True)
class Work:
    """One write.

    Attributes:
        table: base path.
        first: number of the first row.
        count: number of rows.
        step: difference between the numbers of two rows.
        ts: ordering value of all rows.
        deleted: rows whose number is a multiple of this are deleted; 0 for none.
        options: of the write.
        stage: where the driver stops; empty for nowhere.
    """

    table: str
    first: int
    count: int
    step: int
    ts: int
    deleted: int
    options: dict[str, Any] = field(default_factory=dict)
    stage: str = ""

    @property
    def numbers(self) -> range:
        """Numbers of the rows."""
        return range(self.first, self.first + self.count * self.step, self.step)


def rows_of(spark: SparkSession, work: Work) -> Any:
    """The rows of a write; each column is a function of number and ordering value."""
    numbers = work.numbers
    rows = spark.range(numbers.start, numbers.stop, numbers.step, TASKS)
    number = F.col("id")
    is_deleted = F.lit(False) if not work.deleted else number % work.deleted == 0
    return rows.select(
        F.format_string("key-%012d", number).alias("id"),
        F.format_string("p%d", number % PARTITIONS).alias("part"),
        F.lit(work.ts).cast("long").alias("ts"),
        (number * 1000 + work.ts).alias("value"),
        F.sha2(F.concat_ws("-", number, F.lit(work.ts)), 256).alias("text"),
        is_deleted.alias("_hoodie_is_deleted"),
    )


class Stages:
    """Stops at one stage of the current write."""

    def __init__(self) -> None:
        self.next = ""
        for name, (module, function, after) in _STAGES.items():
            setattr(module, function, self._stopping(name, getattr(module, function), after))

    def _stopping(self, name: str, function: Callable[..., Any], after: bool) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            if not after:
                self._reach(name)
            result = function(*arguments, **named)
            if after:
                self._reach(name)
            return result

        return run

    def _reach(self, name: str) -> None:
        if self.next == name:
            self.next = ""
            print("stage", flush=True)
            sys.stdin.readline()


def attached() -> SparkSession:
    """The session of the JVM that the environment names."""
    gateway = launch_gateway()
    jvm: Any = gateway.jvm
    running = jvm.org.apache.spark.SparkContext.getOrCreate()
    context = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(running)
    conf = SparkConf(_jvm=jvm, _jconf=context.getConf())
    return SparkSession(SparkContext(conf=conf, gateway=gateway, jsc=context))


def main() -> None:
    """Write until the input ends."""
    spark, stages = attached(), Stages()
    print("ready", flush=True)
    while line := sys.stdin.readline():
        work = Work(**json.loads(line))
        stages.next = work.stage
        print("begin", flush=True)
        try:
            result = hf.write(rows_of(spark, work), work.table, work.options)
        except Exception as error:
            print("failed", type(error).__name__, str(error).replace("\n", " ")[:2000], flush=True)
        else:
            print("done", result.plan, flush=True)


if __name__ == "__main__":
    main()
