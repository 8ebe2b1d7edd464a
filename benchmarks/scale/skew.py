"""Writes with most rows in one partition, against the same rows spread evenly.

::

    rows, share ─► even, skewed: in turn, in own processes ─► insert, upsert of a tenth ─► rows checked ─► times

Both shapes have the same keys, values and number of partitions; only the partition column differs. Seconds are those of
``hf.write``. The peak is that of the largest Python worker and of the driver's Python process, without JVMs.

Usage::

    python -m benchmarks.scale.skew --rows 20000000 --share 0.9 [--runs 3] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.scale.measure import SparkPeaks, local_session

PARTITIONS = 20
SHAPES = ("even", "skewed")
_WIDTHS = (64, 64)  # characters of the text columns


def main() -> None:
    """Run both shapes in turn and print their times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--share", type=float, default=0.9, help="share of the rows in one partition")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, help="for the tables; by default a temporary one")
    parser.add_argument("--only", choices=SHAPES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only is not None:
        print(json.dumps(_measure(given.only, given.rows, given.share, given.cores, given.folder)))
        return
    folder = given.folder or Path(tempfile.mkdtemp(prefix="skew-"))
    found: dict[str, list[dict[str, Any]]] = {shape: [] for shape in SHAPES}
    for _ in range(given.runs):
        for shape in SHAPES:
            found[shape].append(_in_process(shape, given, folder / shape))
            shutil.rmtree(folder / shape)
    for step in ("insert", "upsert"):
        for shape in SHAPES:
            runs = [one[step] for one in found[shape]]
            seconds = sorted(one["seconds"] for one in runs)
            print(
                f"{step:7} {shape:7} {median(seconds):7.1f} s ({seconds[0]:.1f} to {seconds[-1]:.1f}), "
                f"{runs[-1]['plan']}, {runs[-1]['files']} files, worker {max(one['worker_mib'] for one in runs)} MiB, "
                f"driver {max(one['driver_mib'] for one in runs)} MiB"
            )
        ratio = median(one[step]["seconds"] for one in found["skewed"]) / median(
            one[step]["seconds"] for one in found["even"]
        )
        print(f"{step:7} skewed / even {ratio:.2f}")


def _in_process(shape: str, given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.scale.skew", "--only", shape, "--folder", str(folder)]
    command += ["--rows", str(given.rows), "--share", str(given.share), "--cores", str(given.cores)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _measure(shape: str, rows: int, share: float, cores: int, folder: Path) -> dict[str, Any]:
    """Insert all rows into a new table, then update a tenth of them."""
    from pyspark.sql import functions as F

    import hudi_fast as hf

    spark = local_session(cores, folder)
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
    }

    def batch(step: int, ts: int) -> Any:
        number = F.col("id")
        in_large = F.pmod(F.hash(number, F.lit(1)), F.lit(1000)) < int(share * 1000)
        other = F.pmod(F.hash(number, F.lit(2)), F.lit(PARTITIONS))
        part = F.when(in_large, F.lit(0)).otherwise(other) if shape == "skewed" else other
        return spark.range(0, rows, step, 4 * cores).select(
            F.format_string("key-%012d", number).alias("id"),
            F.format_string("part=%02d", part).alias("part"),
            F.lit(ts).cast("long").alias("ts"),
            number.alias("value"),
            *(F.substring(F.sha2(F.concat_ws("-", number, F.lit(at), F.lit(ts)), 512), 1, width).alias(f"text{at}")
              for at, width in enumerate(_WIDTHS)),
        )  # fmt: skip

    answer = {}
    for name, step, ts in (("insert", 1, 1), ("upsert", 10, 2)):
        with SparkPeaks().watching() as peaks:
            begin = time.perf_counter()
            result = hf.write(batch(step, ts), folder / "t", options)
            seconds = time.perf_counter() - begin
        answer[name] = {
            "seconds": seconds,
            "plan": result.plan,
            "files": result.files_written,
            "worker_mib": peaks.worker_mib,
            "driver_mib": peaks.driver_mib,
        }
    table = hf.HudiTable.open(folder / "t")
    table_rows = hf.read(spark, folder / "t").agg(F.count("*"), F.sum("ts"), F.sum("value")).first()
    updated = len(range(0, rows, 10))
    expected = (rows, rows + updated, rows * (rows - 1) // 2)
    if tuple(table_rows) != expected:
        raise SystemExit(f"{table.path}: expected {expected}, found {tuple(table_rows)}")
    spark.stop()
    return answer


if __name__ == "__main__":
    main()
