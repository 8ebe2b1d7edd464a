"""Rewrite of one clustering group: 400 000 rows of 12 columns in 8 files. One process, one thread.

``cp`` copies the same bytes. The lower bound for sorting reads, sorts, gathers and writes with Arrow.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hudi_fast.kernels import warm_up

from hudi_fast import write
from hudi_fast.metadata_table.state import open_state
from hudi_fast.services.clustering.cluster import rewrite_group, rewrite_rows
from hudi_fast.services.clustering.cluster_work import ClusteringWork, Ordering
from hudi_fast.services.clustering.rows import group_input
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.service_plans import ClusteringGroup, ClusteringSlice
from hudi_fast.view.slices import latest_slices
from hudi_fast.writing.draft import draft_files
from hudi_fast.writing.markers import delete_markers, make_marker_folder
from hudi_fast.writing.settings import Settings
from hudi_fast.writing.write_plan import TaskToken

ROWS, FILES = 400_000, 8
INSTANT = "29990101000000000"
OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "uuid",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.datasource.write.operation": "bulk_insert",
    "hoodie.metadata.enable": "false",
}


def _trips(number: int) -> pa.Table:
    random, count = np.random.default_rng(number), ROWS // FILES
    columns = {
        "uuid": pa.array([f"key-{key:012d}" for key in range(number * count, (number + 1) * count)]),
        "ts": pa.array(random.integers(0, 1 << 40, count)),
        "city": pa.array([f"city {place}" for place in random.integers(0, 100, count)]),
    }
    columns |= {f"value_{place}": pa.array(random.random(count).round(3)) for place in range(4)}
    return pa.table(columns)


def _work(path: str, ordering: Ordering) -> tuple[ClusteringWork, ClusteringGroup]:
    storage = Storage(path)
    state = open_state(storage)
    plan = draft_files(state, Settings.from_options(OPTIONS).write)
    plan = replace(plan, instant=INSTANT, files=replace(plan.files, threads=1))
    slices = tuple(
        ClusteringSlice(one.partition, one.file_id, storage.absolute(one.base_file.path))
        for one in latest_slices(state.view, "")
    )
    group = ClusteringGroup(slices, 1)
    work = ClusteringWork(plan=plan, merge=plan.merge_of(state), group_count=1, ordering=ordering, target_bytes=1 << 30)
    return work, group


class Rewrite:
    number = 1
    warmup_time = 0

    def setup_cache(self) -> str:
        folder = tempfile.mkdtemp(prefix="hudi_fast-asv-")
        for number in range(FILES):
            write(_trips(number), f"{folder}/table", OPTIONS)
        return folder

    def setup(self, folder: str) -> None:
        warm_up()
        self.path = f"{folder}/table"
        make_marker_folder(Storage(self.path), INSTANT)
        self.files = [path for path in Path(self.path).glob("*.parquet") if INSTANT not in path.name]
        self.copies = tempfile.mkdtemp(dir=folder)

    def teardown(self, folder: str) -> None:
        for path in Path(self.path).glob(f"*{INSTANT}*"):
            path.unlink()
        delete_markers(Storage(self.path), INSTANT)
        shutil.rmtree(self.copies)

    def _run(self, ordering: Ordering | None = None, memory: int = 1 << 30) -> None:
        work, group = _work(self.path, ordering or Ordering())
        rewrite_rows(group_input(work, group), TaskToken(0), memory)

    def time_row_groups_copied(self, folder: str) -> None:
        rewrite_group(*_work(self.path, Ordering()), TaskToken(0))

    def time_cp_instead(self, folder: str) -> None:
        for path in self.files:
            shutil.copyfile(path, f"{self.copies}/{path.name}")

    def time_decoded(self, folder: str) -> None:
        self._run()

    def time_sorted(self, folder: str) -> None:
        self._run(Ordering(("city", "ts")))

    def time_arrow_sorted_instead(self, folder: str) -> None:
        rows = pa.concat_tables([pq.read_table(path, use_threads=False) for path in self.files])
        rows = rows.sort_by([("city", "ascending"), ("ts", "ascending")])
        pq.write_table(rows, f"{self.copies}/sorted.parquet", compression="zstd", compression_level=1)

    def time_sorted_over_local_disk(self, folder: str) -> None:
        self._run(Ordering(("city", "ts")), 16 << 20)

    def time_z_order(self, folder: str) -> None:
        self._run(Ordering(("value_0", "value_1"), "ZORDER"))

    def time_hilbert(self, folder: str) -> None:
        self._run(Ordering(("value_0", "value_1"), "HILBERT"))

    def peakmem_sorted(self, folder: str) -> None:
        self._run(Ordering(("city", "ts")))

    def peakmem_sorted_over_local_disk(self, folder: str) -> None:
        self._run(Ordering(("city", "ts")), 16 << 20)
