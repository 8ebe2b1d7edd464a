"""What it costs that writes are on the disk before they are acknowledged: the same writes with and without fsync.

``python benchmarks/scale/durability.py FOLDER`` with a folder on the disk to measure. It prints the median and the
range of each, in milliseconds, and the ratio of the medians.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

import hudi_fast as hf

SMALL_ROUNDS, LARGE_ROUNDS = 21, 9
WARM_UP = 3
LARGE = 2_000_000
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")


def options(kind: str, fsync: bool) -> dict[str, str]:
    return {
        "hoodie.table.name": "durability",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.table.type": kind,
        "hudi_fast.fsync": str(fsync).lower(),
    }


def rows(numbers: np.ndarray, ts: int) -> pa.Table:
    random = np.random.default_rng(ts)
    count = len(numbers)
    return pa.table(
        {
            "id": pa.array(numbers).cast(pa.string()),
            "part": pa.array(numbers % 4).cast(pa.string()),
            "ts": np.full(count, ts),
            "ratio": random.random(count),
            "size": random.integers(0, 1 << 40, count),
            "text": pa.array(random.integers(0, 1 << 60, count)).cast(pa.string()),
        }
    )


def small(folder: Path, kind: str, fsync: bool) -> Iterator[float]:
    """Upserts of 100 rows, one after another, into a table of 1 000."""
    path = folder / f"small-{fsync}"
    hf.write(rows(np.arange(1000), 0), path, options(kind, fsync))
    for number in range(SMALL_ROUNDS + WARM_UP):
        change = rows(np.arange(number * 10, number * 10 + 100), number + 1)
        yield timed(change, path, kind, fsync)


def large(folder: Path, kind: str, fsync: bool) -> Iterator[float]:
    """Upserts of half of the rows of a table, each into a new table."""
    change = rows(np.arange(0, LARGE, 2), 1)
    for number in range(LARGE_ROUNDS + WARM_UP):
        path = folder / f"large-{fsync}-{number}"
        first = options(kind, fsync) | {"hoodie.datasource.write.operation": "bulk_insert"}
        hf.write(rows(np.arange(LARGE), 0), path, first)
        os.sync()  # so that nothing of this is written below
        yield timed(change, path, kind, fsync)
        shutil.rmtree(path)


def timed(change: pa.Table, path: Path, kind: str, fsync: bool) -> float:
    start = time.perf_counter()
    hf.write(change, path, options(kind, fsync))
    return time.perf_counter() - start


def main() -> None:
    """Measure both kinds of tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder / "durability"
    print("| upsert | table type | with fsync | without | ratio |\n|---|---|---|---|---|")
    for work, what in ((small, "100 rows"), (large, f"{LARGE // 2:,} of {LARGE:,} rows")):
        for kind in KINDS:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            seconds = list(zip(work(folder, kind, True), work(folder, kind, False), strict=True))[WARM_UP:]
            synced, left = zip(*seconds, strict=True)
            ratio = statistics.median(synced) / statistics.median(left)
            print(f"| {what} | {kind} | {shown(synced)} | {shown(left)} | {ratio:.2f} x |", flush=True)
    shutil.rmtree(folder)


def shown(seconds: tuple[float, ...]) -> str:
    middle, low, high = (round(1000 * one) for one in (statistics.median(seconds), min(seconds), max(seconds)))
    return f"{middle} ms ({low}–{high})"


if __name__ == "__main__":
    main()
