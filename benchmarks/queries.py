"""Incremental queries in one process: the rows of the last commit, in tables of 200 000 rows and in larger ones."""

from __future__ import annotations

import shutil
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hudi_fast.kernels import warm_up

from hudi_fast import HudiTable, write

ROWS = 200_000
PARTITIONS = 10
ROWS_PER_GROUP = 50
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "uuid",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.bloom.num_entries": "1000",
    "hoodie.metadata.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline": "false",
}


def _trips(numbers: np.ndarray, ts: int, partitions: int) -> pa.Table:
    texts = pc.cast(pa.array(numbers), pa.string())
    columns: dict[str, pa.Array] = {
        "uuid": pc.binary_join_element_wise("key-0000-0000-0000", texts, "-"),
        "city": pc.binary_join_element_wise("city", pc.cast(pa.array(numbers % partitions), pa.string()), "-"),
        "ts": pa.array(np.full(len(numbers), ts)),
    }
    columns |= {f"value_{place}": pa.array(np.random.default_rng(place).random(len(numbers))) for place in range(9)}
    return pa.table(columns)


def _table(kind: str, rows: int, changed: int, partitions: int) -> str:
    """A table whose second commit changed ``changed`` of its rows, at regular distances."""
    path = tempfile.mkdtemp(prefix="hudi_fast-asv-")
    options = {**OPTIONS, "hoodie.datasource.write.table.type": kind}
    first = {**options, "hoodie.datasource.write.operation": "bulk_insert"}
    write(_trips(np.arange(rows), 0, partitions), path, first)
    write(_trips(np.arange(0, rows, rows // changed), 1, partitions), path, options)
    return path


class Incremental:
    """All rows of the last commit, which changed 1 % of the table."""

    params = KINDS
    param_names = ("table type",)

    def setup(self, kind: str) -> None:
        warm_up()
        self.path = _table(kind, ROWS, ROWS // 100, PARTITIONS)
        self.table = HudiTable.open(self.path)
        self.begin = self.table.history()["completion"][0].as_py()

    def teardown(self, kind: str) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def time_incremental(self, kind: str) -> None:
        assert self.table.incremental(self.begin).num_rows == ROWS // 100

    def peakmem_incremental(self, kind: str) -> None:
        self.table.incremental(self.begin)

    def time_snapshot(self, kind: str) -> None:
        self.table.to_arrow()


class IncrementalOfLargeTables:
    """Ten changed rows in ten file groups, in a table with 20 file groups and in one with 2000."""

    params = (KINDS, (20, 2000))
    param_names = ("table type", "file groups")
    timeout = 300

    def setup(self, kind: str, groups: int) -> None:
        warm_up()
        self.path = _table(kind, groups * ROWS_PER_GROUP, 10, groups)
        self.table = HudiTable.open(self.path)
        self.begin = self.table.history()["completion"][0].as_py()

    def teardown(self, kind: str, groups: int) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def time_incremental(self, kind: str, groups: int) -> None:
        assert self.table.incremental(self.begin).num_rows == 10
