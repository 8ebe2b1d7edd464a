"""A program: writes while Spark's local folder is full for large files, and then when it is not.

Argument: a scratch folder. A limit on the size of files stands for a disk that is full: the JVM and the Python workers
write small files, but not the files of a shuffle. Prints the error, ``as before``, and the plan of the next write.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import hudi_fast as hf
from tests.support.small_tables import assert_tidy, options

LIMIT = 3 << 20
ROWS = 60_000


def main(folder: Path) -> None:
    """A write that fails, and one that goes on."""
    (folder / "local").mkdir()
    settings = {"spark.ui.enabled": "false", "spark.local.dir": str(folder / "local")}
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    numbers = spark.range(0, ROWS, 1, 1)
    rows = numbers.select(
        F.format_string("k%07d", "id").alias("id"),
        F.format_string("p%d", F.col("id") % 20).alias("part"),
        F.col("id").alias("ts"),
        F.sha2(F.col("id").cast("string"), 512).alias("text"),
    )
    first = options() | {"hudi_fast.plan": "driver"}
    hf.write(rows.limit(100), folder / "t", first)
    before = sorted(hf.HudiTable.open(folder / "t").to_arrow()["id"].to_pylist())
    limit_files(LIMIT)
    try:
        hf.write(rows, folder / "t", options() | {"hudi_fast.plan": sys.argv[2]})
    except hf.CommitError as error:
        print(str(error).replace("\n", " "))
    assert sorted(hf.HudiTable.open(folder / "t").to_arrow()["id"].to_pylist()) == before
    print("as before")
    limit_files(resource.RLIM_INFINITY)
    result = hf.write(rows, folder / "t", options() | {"hudi_fast.plan": sys.argv[2]})
    assert hf.HudiTable.open(folder / "t").to_arrow().num_rows == ROWS
    assert_tidy(folder / "t")
    print(result.plan)
    spark.stop()


def limit_files(size: int) -> None:
    """No file that the JVM or a Python worker writes may be larger."""
    listed = subprocess.run(["ps", "-ww", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout
    local = str(Path(sys.argv[1]))
    for line in listed.splitlines():
        pid, command = line.split(maxsplit=1)
        if f"spark.local.dir={local}" in command:
            _, maximum = resource.prlimit(int(pid), resource.RLIMIT_FSIZE)
            resource.prlimit(int(pid), resource.RLIMIT_FSIZE, (size, maximum))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
