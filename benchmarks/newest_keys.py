"""Upserts whose keys are close together, as those of events are: few row groups of the files change.

::

    rows in the order of their keys ─► bulk_insert ─► upsert of some rows among the newest ones ─► rows checked
                                                       each time into a copy of the table, in this process

The rows have 12 columns and keys of 36 characters that begin with the time. ``copied`` is the upsert as it is, which
copies unchanged row groups; ``encoded`` is the same one with every row group encoded again.

Usage::

    python -m benchmarks.newest_keys [--rows 8000000] [--partitions 1] [--share 0.01] [--range 0.05] [--runs 5]
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import hudi_fast as hf

OPTIONS = {
    "hoodie.table.name": "events",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
}


def main() -> None:
    """Make the table, time both ways, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--share", type=float, default=0.01, help="share of the rows that change")
    parser.add_argument("--range", type=float, default=0.05, help="share of the newest keys among which they are")
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="newest-keys-"))
    try:
        hf.write(rows_of(np.arange(given.rows), given.partitions, 1), folder / "start", _with("bulk_insert"))
        files = hf.HudiTable.open(folder / "start").files()
        print(f"{given.rows:,} rows, {files.num_rows} files")
        newest = np.arange(int(given.rows * (1 - given.range)), given.rows)
        chosen = np.sort(np.random.default_rng(1).choice(newest, int(given.rows * given.share), replace=False))
        changed = rows_of(chosen, given.partitions, 2)
        for name in ("copied", "encoded"):
            seconds = [_timed(folder, changed, given, name) for _ in range(given.runs)]
            print(f"{name:8} {median(seconds):.3f} s ({min(seconds):.3f} to {max(seconds):.3f})", flush=True)
    finally:
        shutil.rmtree(folder)


def rows_of(numbers: Any, partitions: int, ts: int) -> pa.Table:
    """The rows with these numbers: each a function of its number and ``ts``."""
    random = np.random.default_rng(ts)
    count = len(numbers)
    times = pa.array(numbers).cast(pa.string())
    padded = pc.utf8_lpad(times, 12, "0")
    tails = pc.utf8_lpad(pa.array(numbers * 2654435761 % 2**32).cast(pa.string()), 23, "-")
    columns = {f"value{at}": random.normal(size=count) for at in range(4)}
    return pa.table(
        {
            "id": pc.binary_join_element_wise(padded, tails, "-"),
            "part": pc.binary_join_element_wise("part", pa.array(numbers % partitions).cast(pa.string()), ""),
            "ts": pa.array(np.full(count, ts)),
            "number": pa.array(numbers),
            **columns,
            "name": pc.binary_join_element_wise(
                "name", pa.array(random.integers(0, 5000, count)).cast(pa.string()), " "
            ),
            "code": pa.array(random.integers(0, 100, count)),
            "flag": pa.array(random.integers(0, 2, count).astype(bool)),
            "seen": pa.array(numbers * 1_000_000, pa.timestamp("us")),
        }
    )


def _with(operation: str) -> dict[str, str]:
    return {**OPTIONS, "hoodie.datasource.write.operation": operation}


def _timed(folder: Path, changed: pa.Table, given: argparse.Namespace, name: str) -> float:
    """Seconds of one upsert; its rows are checked afterwards."""
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(folder / "start", out)
    nothing = mock.patch("hudi_fast.writing.patched_file.kept_parts", return_value=None)
    with contextlib.nullcontext() if name == "copied" else nothing:
        begin = time.perf_counter()
        result = hf.write(changed, out, _with("upsert"))
        seconds = time.perf_counter() - begin
    assert result.updates == changed.num_rows, result
    found = hf.HudiTable.open(out).to_arrow(["ts", "number"])
    assert found.num_rows == given.rows
    expected = given.rows + changed.num_rows, given.rows * (given.rows - 1) // 2
    assert (pc.sum(found["ts"]).as_py(), pc.sum(found["number"]).as_py()) == expected
    return seconds


if __name__ == "__main__":
    main()
