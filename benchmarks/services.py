"""Services: clustering of whole tables, rollback of small and large writes, small upserts with inline services.

Cleaning, archiving and the rewrite of one clustering group have separate files.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from hudi_fast.kernels import warm_up

from hudi_fast import HudiTable, write
from hudi_fast.services.clustering.cluster_work import ClusteringResult
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state

OPTIONS = {
    "hoodie.table.name": "served",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
}
BULK = {**OPTIONS, "hoodie.datasource.write.operation": "bulk_insert"}
NO_SERVICES = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
ONE_COMMIT = {"hoodie.clustering.inline.max.commits": "1", "hoodie.clustering.async.max.commits": "1"}
ROWS, PARTITIONS, FILES = 400_000, 10, 4
COMMITS = 60


def rows(count: int, partitions: int, ts: int = 0, first: int = 0) -> pa.Table:
    """Ascending keys, spread over the partitions, and four columns of values."""
    random, numbers = np.random.default_rng(first + 1), np.arange(first, first + count)
    columns = {
        "id": pa.array([f"key-{number:032d}" for number in numbers]),
        "part": pa.array([f"p{number % partitions:04d}" for number in numbers]),
        "ts": pa.array(np.full(count, ts)),
    }
    columns |= {f"value_{place}": pa.array(random.random(count).round(3)) for place in range(4)}
    return pa.table(columns)


class Cluster:
    """Plan, rewrite and commit a clustering of 400 000 rows in ten partitions with four files each."""

    params = ("not sorted", "sorted")
    param_names = ("rows",)
    number = 1
    warmup_time = 0

    def setup_cache(self) -> str:
        folder = tempfile.mkdtemp(prefix="hudi_fast-asv-")
        each = ROWS // FILES
        for number in range(FILES):
            write(rows(each, PARTITIONS, first=number * each), f"{folder}/table", {**BULK, **NO_SERVICES})
        return folder

    def setup(self, folder: str, how: str) -> None:
        warm_up()
        self.path = Path(tempfile.mkdtemp(dir=folder)) / "table"
        shutil.copytree(f"{folder}/table", self.path)
        sort = {"hoodie.clustering.plan.strategy.sort.columns": "value_0,ts"} if how == "sorted" else {}
        self.options = {**OPTIONS, **ONE_COMMIT, **sort}
        self.files = [path for path in self.path.rglob("*.parquet") if ".hoodie" not in path.parts]

    def teardown(self, folder: str, how: str) -> None:
        shutil.rmtree(self.path.parent)

    def _cluster(self) -> ClusteringResult:
        done = HudiTable.open(self.path).services.cluster(self.options)
        assert done.rows == ROWS
        return done

    def time_cluster(self, folder: str, how: str) -> None:
        self._cluster()

    def peakmem_cluster(self, folder: str, how: str) -> None:
        self._cluster()

    def time_cp_instead(self, folder: str, how: str) -> None:
        for number, path in enumerate(self.files):
            shutil.copyfile(path, self.path.parent / f"{number}.parquet")


class Rollback:
    """Roll back the newest write of a table with 300 partitions; the write touched ``touched`` of them."""

    params = (3, 300)
    param_names = ("partitions written",)
    number = 1
    warmup_time = 0

    def setup_cache(self) -> str:
        folder = tempfile.mkdtemp(prefix="hudi_fast-asv-")
        write(rows(3000, 300), f"{folder}/table", BULK)
        return folder

    def setup(self, folder: str, touched: int) -> None:
        warm_up()
        self.path = Path(tempfile.mkdtemp(dir=folder)) / "table"
        shutil.copytree(f"{folder}/table", self.path)
        write(rows(3000, 300, ts=1).slice(0, touched), self.path, {**OPTIONS, **NO_SERVICES})
        last = load_state(Storage(self.path)).timeline.last_completed_write
        assert last is not None
        self.instant = last.requested

    def teardown(self, folder: str, touched: int) -> None:
        shutil.rmtree(self.path.parent)

    def time_rollback(self, folder: str, touched: int) -> None:
        done = HudiTable.open(self.path).services.rollback(self.instant, OPTIONS)
        assert done.files_deleted == touched

    def peakmem_rollback(self, folder: str, touched: int) -> None:
        self.time_rollback(folder, touched)


class SmallUpsert:
    """Upsert 100 rows into a table of 1000 that is new or 60 commits old, with and without inline services."""

    params = ((0, COMMITS), ("by default", "none"))
    param_names = ("commits before", "services")
    number = 1
    timeout = 300

    def setup(self, commits: int, services: str) -> None:
        warm_up()
        self.path = Path(tempfile.mkdtemp(prefix="hudi_fast-asv-")) / "table"
        self.options: Mapping[str, str] = OPTIONS if services == "by default" else {**OPTIONS, **NO_SERVICES}
        write(rows(1000, PARTITIONS), self.path, self.options)
        self.rows = rows(100, PARTITIONS, ts=1)
        for _ in range(commits):
            write(self.rows, self.path, self.options)

    def teardown(self, commits: int, services: str) -> None:
        shutil.rmtree(self.path.parent)

    def time_upsert(self, commits: int, services: str) -> None:
        write(self.rows, self.path, self.options)
