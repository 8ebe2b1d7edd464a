"""A program: a Spark driver that writes as it is asked.

Arguments: URL of the master, base path of the table. Each line on standard input is a :class:`Work` as JSON. For each
line the program prints ``begin``, then ``done`` or ``failed`` with the error.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import hudi_fast as hf

__all__ = ["NETWORK_SECONDS", "PARTITIONS", "Work"]

PARTITIONS = 6
TASKS = 4
NETWORK_SECONDS = 20
"""An executor that does not answer for so long counts as lost."""


@dataclass(frozen=True)
class Work:
    """One write.

    Attributes:
        first: number of the first row.
        count: number of rows.
        step: difference between the numbers of two rows.
        ts: ordering value of all rows.
        deleted: rows whose number is a multiple of this are deleted; 0 for none.
        options: of the write.
    """

    first: int
    count: int
    step: int
    ts: int
    deleted: int
    options: dict[str, Any] = field(default_factory=dict)

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


def main(url: str, path: str) -> None:
    """Write until the input ends."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.sql.shuffle.partitions": str(TASKS),
        "spark.network.timeout": f"{NETWORK_SECONDS}s",
        "spark.network.timeoutInterval": "5s",
        "spark.executor.heartbeatInterval": "4s",
        "spark.speculation": "true",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "2",
        "spark.speculation.minTaskRuntime": "2s",
        "spark.ui.showConsoleProgress": "false",
    }
    spark = SparkSession.builder.master(url).appName("writes").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    print("ready", flush=True)
    for line in sys.stdin:
        work = Work(**json.loads(line))
        print("begin", flush=True)
        try:
            result = hf.write(rows_of(spark, work), path, work.options)
        except Exception as error:
            print("failed", type(error).__name__, str(error).replace("\n", " ")[:2000], flush=True)
        else:
            print("done", result.plan, flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
