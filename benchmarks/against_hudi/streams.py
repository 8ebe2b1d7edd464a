"""Compare streaming upserts of hudi_fast and of Apache Hudi's sink: same files, same options, rows checked.

hudi_fast streams by ``hudi_fast.sink`` on Spark, and by ``hudi_fast.Streamer`` in one process.

Data flow: the input is one file of random keys per batch. Each side streams the files into an empty table in a separate
process (:mod:`stream_side`). Cleaning and archiving run inline; MERGE_ON_READ tables are compacted beside the stream.
The rows of each table are compared with the expected rows of the files. Then the rows per second are printed, and the
seconds of the first and the last ten batches.

Usage::

    .venv/bin/python benchmarks/against_hudi/streams.py --scratch FOLDER [--batches 50] [--rows 10000]
        [--sides hudi,spark,streamer] [--kinds COPY_ON_WRITE,MERGE_ON_READ] [--version 1.2.0]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import hudi_fast

HERE = Path(__file__).resolve().parent
PYTHONS = {"hudi": str(HERE.parents[1] / ".venv-hudi" / "bin" / "python"), "spark": sys.executable}
PYTHONS["streamer"] = PYTHONS["spark"]
SEED = 20261121
PARTITIONS = 4
KEYS_PER_ROW = 10
EDGE = 10


def make_files(folder: Path, batches: int, rows: int) -> None:
    """One file per batch, with random keys out of ten times as many as a file has rows; later batches are newer."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    random = np.random.default_rng(SEED)
    for batch in range(batches):
        keys = random.integers(0, rows * KEYS_PER_ROW, rows)
        table = pa.table(
            {
                "id": keys,
                "part": [f"p{key % PARTITIONS}" for key in keys.tolist()],
                "ts": rows * batch + np.arange(rows),
                "name": [f"name-{key}" for key in keys.tolist()],
                "value": random.random(rows),
            }
        )
        file = folder / f"{batch:05}.parquet"
        pq.write_table(table, file)
        os.utime(file, (1_700_000_000 + batch,) * 2)


def expected(folder: Path) -> pa.Table:
    """The newest row of every key."""
    rows = pq.read_table(folder).sort_by("ts")
    newest = rows.group_by("id").aggregate([("ts", "max")])["ts_max"]
    return rows.filter(pc.is_in(rows["ts"], newest)).sort_by("id")


def run_side(side: str, asked: argparse.Namespace, source: Path, warm: Path, kind: str) -> dict[str, Any]:
    """Stream into a new table, and compare its rows."""
    table = asked.scratch / f"{side}-{kind.lower()}"
    for path in asked.scratch.glob(f"{table.name}*"):
        shutil.rmtree(path)
    given = {"side": side, "warm": warm, "source": source, "table": table, "kind": kind}
    given |= {"version": asked.version, "cores": asked.cores}
    command = [PYTHONS[side], str(HERE / "stream_side.py")]
    for name, value in given.items():
        command += [f"--{name}", str(value)]
    with open(asked.scratch / f"{side}.log", "wb") as log:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, cwd=asked.scratch, check=False)
    if done.returncode:
        raise SystemExit(f"{side} exited with {done.returncode}: see {asked.scratch / f'{side}.log'}")
    wanted = expected(source)
    got = hudi_fast.HudiTable.open(table).to_arrow(columns=wanted.column_names).sort_by("id").cast(wanted.schema)
    if not got.equals(wanted):
        raise SystemExit(f"{side}, {kind}: the rows of the table differ from the expected rows of the files")
    return dict(json.loads(done.stdout))


def main() -> None:
    """Print a line for each side and table type."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--batches", type=int, default=50)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--sides", default="hudi,spark,streamer")
    parser.add_argument("--kinds", default="COPY_ON_WRITE,MERGE_ON_READ")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--version", default="1.2.0")
    asked = parser.parse_args()
    source, warm = asked.scratch / "files", asked.scratch / "warm-files"
    make_files(source, asked.batches, asked.rows)
    make_files(warm, 3, asked.rows)
    for kind in asked.kinds.split(","):
        slowest = None
        for side in asked.sides.split(","):
            told = run_side(side, asked, source, warm, kind)
            seconds, batches = told["seconds"], told["batches"]
            slowest = slowest or seconds
            first, last = statistics.mean(batches[:EDGE]), statistics.mean(batches[-EDGE:])
            print(
                f"{kind:13} {side:8} {seconds:7.1f} s {asked.batches * asked.rows / seconds:9,.0f} rows/s "
                f"{slowest / seconds:5.1f} x   a batch: first ten {first:.2f} s, last ten {last:.2f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
