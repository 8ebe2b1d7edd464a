"""Memory of Spark's Python workers while they write one large partition.

::

    insert ─► upsert ─► [MERGE_ON_READ: read ─► compaction] ─► update ─► merge ─► [read ─► compaction]
       each step: rows checked ─► seconds, plan, files, peak of the largest worker

All rows are in one partition, and their text is random hexadecimal digits, so that files are about half as large as the
rows. The peak is that of the largest Python worker, without the JVM; "private" is the part that is not pages of files.
Seconds are those of the step, without the check.

Usage::

    python -m benchmarks.scale.large_partition                                  # 12 million rows of 330 bytes
    python -m benchmarks.scale.large_partition --rows 400000 --width 10000      # wide rows
    python -m benchmarks.scale.large_partition --rows 6000000 --width 40        # narrow rows
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.scale.measure import SparkPeaks, local_session

KINDS = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
STEPS = ("upsert", "read", "compact", "update", "merge")
_KEY_WIDTH, _FIXED = 16, 35  # bytes of the key; of key, partition path, ordering value and number
_DIGEST = 128  # characters of a hash
_BOUND_MIB = 1024


def main() -> None:
    """Write a table of each kind and print the peaks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=12_000_000)
    parser.add_argument("--width", type=int, default=330, help=f"bytes of a row, more than {_FIXED}")
    parser.add_argument("--share", type=float, default=1.0, help="share of the rows that each later write changes")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument(
        "--steps", nargs="+", choices=STEPS, default=[*STEPS, "read", "compact"], help="after the insert, in order"
    )
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--set", action="append", default=[], metavar="OPTION=VALUE", help="option of every write")
    parser.add_argument("--folder", type=Path, help="for the tables; by default a temporary one")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="large-partition-"))
    highest = 0
    try:
        spark = local_session(given.cores, folder)
        for kind in given.kinds:
            highest = max(highest, _Table(spark, folder / kind, kind, given).measure())
            shutil.rmtree(folder / kind)
            shutil.rmtree(folder / f"{kind}-source", ignore_errors=True)
        spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if highest > _BOUND_MIB:
        raise SystemExit(f"a worker took {highest} MiB, more than {_BOUND_MIB} MiB")


class _Table:
    """A table with one partition, and the steps on it."""

    def __init__(self, spark: Any, path: Path, kind: str, given: argparse.Namespace) -> None:
        self._spark, self._path, self._kind, self._given = spark, path, kind, given
        self._changed = int(given.rows * given.share)
        self._newest = 0  # ordering value of the changed rows
        self._options = {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.table.type": KINDS[kind],
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.datasource.write.precombine.field": "ts",
            **dict(each.split("=", 1) for each in given.set),
        }

    def measure(self) -> int:
        """Run the steps; returns the largest peak of a worker, in MiB."""
        import hudi_fast as hf

        steps: dict[str, Callable[[], Any]] = {
            "upsert": lambda: hf.write(self._batch(self._changed), self._path, self._options),
            "read": self._check,
            "compact": lambda: hf.HudiTable.open(self._path).services.compact(spark=self._spark),
            "update": lambda: hf.update(
                self._spark, self._path, f"number < {self._changed}", {"ts": "ts + 1"}, self._options
            ),
            "merge": lambda: (
                hf.merge(self._spark, self._path, self._stored(self._batch(self._changed)), self._options)
                .on("id")
                .when_matched_update({"ts": "source.ts", "text": "source.text"})
                .execute()
            ),
        }
        inserted = {**self._options, "hoodie.datasource.write.operation": "insert"}
        peaks = [
            self._step("insert", lambda: hf.write(self._batch(self._given.rows), self._path, inserted), writes=True)
        ]
        for name in self._given.steps:
            if self._kind == "mor" or name not in ("read", "compact"):
                peaks.append(self._step(name, steps[name], writes=name not in ("read", "compact")))
        return max(peaks)

    def _step(self, name: str, call: Callable[[], Any], writes: bool) -> int:
        with SparkPeaks().watching() as peaks:
            begin = time.perf_counter()
            result = call()
            seconds = time.perf_counter() - begin
        self._newest += writes
        if name != "read":
            self._check()
        how = f"{result.plan}, {result.files_written} files" if hasattr(result, "plan") else ""
        print(
            f"{self._kind} {name:7} {seconds:7.1f} s, worker {peaks.worker_mib} MiB ({peaks.private_mib} private), "
            f"driver {peaks.driver_mib} MiB  {how}",
            flush=True,
        )
        return peaks.worker_mib

    def _batch(self, count: int) -> Any:
        """The first rows; their ordering value is one more than the stored one."""
        from pyspark.sql import functions as F

        ts = self._newest + 1
        width = self._given.width - _FIXED
        number = F.col("id")
        digests = [
            F.sha2(F.concat_ws("-", number, F.lit(at), F.lit(ts)), 512).substr(1, min(_DIGEST, width - at))
            for at in range(0, width, _DIGEST)
        ]
        return self._spark.range(0, count, 1, 8 * self._given.cores).select(
            F.format_string(f"key-%0{_KEY_WIDTH - 4}d", number).alias("id"),
            F.lit("one").alias("part"),
            F.lit(ts).cast("long").alias("ts"),
            number.alias("number"),
            F.concat(*digests).alias("text"),
        )

    def _stored(self, rows: Any) -> Any:
        """The rows from Parquet files: of a computed text Spark expects 20 bytes, and would broadcast them."""
        path = str(self._path) + "-source"
        rows.write.mode("overwrite").parquet(path)
        return self._spark.read.parquet(path)

    def _check(self) -> None:
        """Compare counts and sums of all rows."""
        from pyspark.sql import functions as F

        import hudi_fast as hf

        rows = self._given.rows
        sums = F.count("*"), F.sum("ts"), F.sum("number"), F.sum(F.length("text"))
        found = hf.read(self._spark, self._path).agg(*sums).first()
        expected = (
            rows,
            rows + (self._newest - 1) * self._changed,
            rows * (rows - 1) // 2,
            rows * (self._given.width - _FIXED),
        )
        if tuple(found) != expected:
            raise SystemExit(f"{self._path}: expected {expected}, found {tuple(found)}")


if __name__ == "__main__":
    main()
