"""Writes and queries of a warm Spark session with two cores: 12 columns, 10 partitions.

Each class starts a session in ``setup``; it ends with the process of the benchmark.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import hudi_fast as hf
from benchmarks.scale.measure import local_session
from benchmarks.verbs import BULK, OPTIONS, ROWS, trips

CORES = 2
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
SIZES = {"small": (1000, 100), "large": (ROWS, ROWS // 100)}
"""Rows of a table, and how many of them an upsert changes."""


class Upserts:
    """Upserts of the rows of a Parquet file: 100 into 1 000, and 1 % into 200 000."""

    params = ("small, COPY_ON_WRITE", "large, COPY_ON_WRITE", "large, MERGE_ON_READ")
    param_names = ("table",)
    number = 1
    warmup_time = 0
    timeout = 300

    def setup_cache(self) -> str:
        folder = tempfile.mkdtemp(prefix="hudi_fast-asv-")
        for table in self.params:
            size, kind = table.split(", ")
            _make(f"{folder}/{table}", size, kind)
            pq.write_table(_changed(size), f"{folder}/{table}.parquet")
        return folder

    def setup(self, folder: str, table: str) -> None:
        self.spark = _session(folder)
        self.options = _options(table.split(", ")[1])
        self.rows = self.spark.read.parquet(f"{folder}/{table}.parquet")
        self.path = tempfile.mkdtemp(dir=folder)
        for name in ("warm", "timed"):
            shutil.copytree(f"{folder}/{table}", f"{self.path}/{name}")
        hf.write(self.rows, f"{self.path}/warm", self.options)

    def teardown(self, folder: str, table: str) -> None:
        shutil.rmtree(self.path)

    def time_upsert(self, folder: str, table: str) -> None:
        hf.write(self.rows, f"{self.path}/timed", self.options)


class Queries:
    """Queries of a table of 200 000 rows of which the last commit changed 1 %; a sink drops the rows."""

    params = KINDS
    param_names = ("table type",)
    number = 1
    timeout = 300

    def setup_cache(self) -> dict[str, str]:
        """The path of each table, and the completion time of its first commit."""
        folder = tempfile.mkdtemp(prefix="hudi_fast-asv-")
        begins = {"folder": folder}
        for kind in KINDS:
            path = f"{folder}/{kind}"
            _make(path, "large", kind)
            begins[kind] = hf.HudiTable.open(path).history()["completion"][0].as_py()
            hf.write(_changed("large"), path, _options(kind))
        return begins

    def setup(self, begins: dict[str, str], kind: str) -> None:
        self.spark = _session(begins["folder"])
        self.path = f"{begins['folder']}/{kind}"
        self.incremental = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": begins[kind],
        }
        self.time_snapshot(begins, kind)
        self.time_incremental(begins, kind)
        assert hf.read(self.spark, self.path, self.incremental).count() == SIZES["large"][1]

    def time_snapshot(self, begins: dict[str, str], kind: str) -> None:
        _drop(hf.read(self.spark, self.path))

    def time_incremental(self, begins: dict[str, str], kind: str) -> None:
        _drop(hf.read(self.spark, self.path, self.incremental))


def _session(folder: str) -> Any:
    return local_session(CORES, Path(folder))


def _drop(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _options(kind: str) -> dict[str, str]:
    return {**OPTIONS, "hoodie.datasource.write.table.type": kind, "hoodie.compact.inline": "false"}


def _make(path: str, size: str, kind: str) -> None:
    hf.write(trips(SIZES[size][0]), path, {**BULK, **_options(kind)})


def _changed(size: str) -> pa.Table:
    """New versions of some rows, at regular distances."""
    rows, changed = SIZES[size]
    return trips(rows, ts=1).take(pa.array(np.arange(0, rows, rows // changed)))
