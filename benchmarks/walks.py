"""How many modules a call passes through, and how often it changes from one to another: the walks of the architecture.

``python -m benchmarks.walks`` prints one line for each call; ``--spark`` adds the driver side of calls on Spark.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa

import hudi_fast as hf

__all__ = ["main", "walk"]

ROOT = Path(__file__).resolve().parents[1]


def walk(call: Callable[[], object]) -> tuple[int, int]:
    """Run a call; the number of modules of the library that it enters, and of changes between two of them."""
    modules: set[str] = set()
    changes = 0

    def enter(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal changes
        if event != "call" or (here := _module(frame)) is None:
            return
        modules.add(here)
        caller = frame.f_back
        while caller is not None and _module(caller) is None:
            caller = caller.f_back
        changes += caller is not None and _module(caller) != here

    threading.setprofile(enter)
    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return len(modules), changes


def _module(frame: FrameType) -> str | None:
    """The path of a module of the library, relative to its root; None for others."""
    name = frame.f_code.co_filename
    if not name.startswith(str(ROOT)):
        return None
    path = name[len(str(ROOT)) + 1 :]
    return path if path.startswith(("hudi_fast/", "kernels/")) else None


def _rows(count: int, first: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": ids, "city": [f"c{one % 4}" for one in ids], "fare": [float(one) for one in ids]})


def main() -> None:
    """Run it from a command line."""
    parser = argparse.ArgumentParser(description="Modules and changes between modules of some calls.")
    parser.add_argument("--spark", action="store_true", help="also on a Spark session of this process")
    spark = None
    if parser.parse_args().spark:
        from pyspark.sql import SparkSession

        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        for name, call in _calls(folder, spark).items():
            call()  # imports and caches
            modules, changes = walk(call)
            print(f"{name:40} {modules:5} modules {changes:7,} changes")
    if spark is not None:
        spark.stop()


def _calls(folder: str, spark: Any) -> dict[str, Callable[[], object]]:
    words: dict[str, Any] = {"key": "id", "partition_by": "city"}
    trips, logs = f"{folder}/trips", f"{folder}/logs"
    hf.write(_rows(1000, 0), trips, **words)
    hf.write(_rows(1000, 0), logs, table_type="merge_on_read", **words)
    calls: dict[str, Callable[[], object]] = {
        "hf.write of 100 rows": lambda: hf.write(_rows(100, 50), trips, **words),
        "to_arrow(filter=...)": lambda: hf.HudiTable(trips).to_arrow(filter="fare > 50"),
    }
    if spark is not None:
        incoming = spark.createDataFrame(_rows(100, 50).to_pandas())

        def compacted() -> object:
            hf.write(_rows(100, 50), logs, **words)
            return hf.HudiTable(logs).services.compact(spark=spark)

        calls["hf.write of 100 rows on Spark"] = lambda: hf.write(incoming, trips, **words)
        calls["hf.read(filter=...) on Spark"] = lambda: hf.read(trips, spark=spark, filter="fare > 50").collect()
        calls["write, and services.compact on Spark"] = compacted
    return calls


if __name__ == "__main__":
    main()
