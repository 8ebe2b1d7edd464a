"""Memory of local writes whose rows are larger than memory.

::

    generator of batches ─► bulk_insert ─► upsert of all rows ─► read by batches
                         └► insert into ten partitions
       each step: a process of its own ─► seconds, GB of rows, MiB at most in each phase

Rows have 12 columns and keys of 36 characters; a batch exists only while it is written. The peak is the one that the
kernel keeps of the process (``VmHWM``, reset before each phase). The program fails if a step takes more than 2 GiB.

Usage::

    python -m benchmarks.scale.larger_than_memory                      # 30 million rows, 5 GB
    python -m benchmarks.scale.larger_than_memory --rows 100000000     # 17 GB
    python -m benchmarks.scale.larger_than_memory --set hoodie.index.type=GLOBAL_SIMPLE
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import hudi_fast as hf
from hudi_fast.writing.spilling import engine

BOUND_MIB = 2048
BATCH = 65_536
STEPS = (("bulk_insert", 1), ("upsert", 1), ("read", 1), ("insert", 10))
_PHASES = ("spill_rows", "split_partition", "split_table", "write_buckets", "write_incoming")
"""Functions of the engine: check and spill, find file groups, write them, write partitions that fit into memory."""

_HEX = np.array([f"{number:02x}" for number in range(256)], dtype="S2")
_GROUPS = ((0, 0, 8), (8, 9, 4), (12, 14, 4), (16, 19, 4), (20, 24, 12))  # from digit, to place, count


def main() -> None:
    """Run all steps and print the peaks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=30_000_000)
    parser.add_argument("--set", action="append", default=[], metavar="OPTION=VALUE", help="option of every write")
    parser.add_argument("--folder", type=Path, help="for the tables; by default a temporary one")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step is not None:
        _step(given.step, given)
        return
    folder = given.folder or Path(tempfile.mkdtemp(prefix="larger-than-memory-"))
    highest = 0
    try:
        for step, partitions in STEPS:
            arguments = ["--rows", str(given.rows), "--folder", str(folder / str(partitions)), "--step", step]
            arguments += [text for one in given.set for text in ("--set", one)]
            call = [sys.executable, "-m", "benchmarks.scale.larger_than_memory", *arguments]
            told = json.loads(
                subprocess.run(call, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[-1]
            )
            print(step, told, flush=True)
            highest = max(highest, told["peak_mib"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if highest > BOUND_MIB:
        raise SystemExit(f"a step took {highest} MiB, more than {BOUND_MIB} MiB")


def _step(step: str, given: argparse.Namespace) -> None:
    """One step; the last line of output is what it took."""
    phases: dict[str, int] = {}
    for name in _PHASES:
        setattr(engine, name, _measured(name, getattr(engine, name), phases))
    started, path = time.monotonic(), str(given.folder)
    sizes: list[int] = []
    if step == "read":
        rows = sum(batch.num_rows for batch in hf.HudiTable.open(path).to_batches())
        plan = "read"
    else:
        options = {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "day",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.operation": step,
            **dict(each.split("=", 1) for each in given.set),
        }
        result = hf.write(batches(given.rows, int(given.folder.name), int(step == "upsert"), sizes), path, options)
        rows, plan = result.inserts + result.updates, result.plan
    assert rows == given.rows, f"{rows} rows instead of {given.rows}"
    phases["rest"] = _peak()
    told = {
        "seconds": round(time.monotonic() - started),
        "plan": plan,
        "row_gb": round(sum(sizes) / 1e9, 1),
        "peak_mib": max(phases.values()),
        "phases_mib": phases,
    }
    print(json.dumps(told))


def _measured(name: str, function: Callable[..., Any], phases: dict[str, int]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        phases["rest"] = max(phases.get("rest", 0), _peak())
        _reset()
        try:
            return function(*arguments)
        finally:
            phases[name] = max(phases.get(name, 0), _peak())
            _reset()

    return call


def _peak() -> int:
    """The most memory of this process since the last reset, MiB."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) >> 10


def _reset() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def batches(rows: int, partitions: int, ts: int, sizes: list[int]) -> Iterator[pa.RecordBatch]:
    """Rows with the keys of the numbers below ``rows``; appends the Arrow bytes of each batch to ``sizes``."""
    chance = np.random.default_rng(ts)
    for start in range(0, rows, BATCH):
        numbers = np.arange(start, min(rows, start + BATCH))
        count = len(numbers)
        batch = pa.record_batch(
            {
                "id": _keys(numbers),
                "day": pa.array(np.char.add("2024-01-0", (numbers % partitions).astype("U2"))),
                "ts": pa.array(np.full(count, ts)),
                "driver": pa.array(chance.integers(0, 100_000, count)),
                "rider": pa.array(np.char.add("rider-", chance.integers(0, 100_000, count).astype("U6"))),
                "city": pa.array(np.char.add("city-", chance.integers(0, 300, count).astype("U4"))),
                "paid": pa.array(chance.random(count) < 0.5),
                "note": _keys(numbers + (1 << 40)),
                **{name: pa.array(chance.random(count)) for name in ("fare", "tip", "lat", "lon")},
            }
        )
        sizes.append(batch.nbytes)
        yield batch


def _keys(numbers: np.ndarray) -> pa.Array:
    """A different text of 36 characters for each number, like a UUID."""
    first = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    second = (first ^ (first >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    digits = _HEX[np.stack([first, second], 1).view(np.uint8).reshape(-1, 16)].view(np.uint8).reshape(-1, 32)
    texts = np.full((len(numbers), 36), ord("-"), np.uint8)
    for digit, place, count in _GROUPS:
        texts[:, place : place + count] = digits[:, digit : digit + count]
    offsets = np.arange(0, texts.size + 1, 36, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(numbers), [None, pa.py_buffer(offsets), pa.py_buffer(texts)])


if __name__ == "__main__":
    main()
