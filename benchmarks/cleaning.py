"""Clean a table of 15 000 files of a few bytes in 100 partitions; 10 000 of them are obsolete."""

from __future__ import annotations

import shutil
import tempfile
from functools import partial
from pathlib import Path

import pyarrow as pa

from hudi_fast import HudiTable, write
from hudi_fast.config.table_config import TableConfig
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat, encode_commit_metadata
from hudi_fast.timeline.instants import Instant, State
from hudi_fast.timeline.transition import complete, create_requested, to_inflight
from hudi_fast.view.table_state import load_state

PARTITIONS, GROUPS, SLICES = 100, 50, 3
OPTIONS = {
    "hoodie.table.name": "cleaned",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
RETAINED = {"hoodie.clean.commits.retained": "2"}


class Clean:
    """A clean of all partitions that deletes 10 000 files, with and without a metadata table."""

    params = (True, False)
    param_names = ("metadata table",)
    number = 1
    warmup_time = 0
    timeout = 600

    def setup_cache(self) -> str:
        folder = tempfile.mkdtemp(prefix="hudi_fast-asv-")
        make_table(Path(folder) / "table")
        return folder

    def setup(self, folder: str, metadata: bool) -> None:
        self.path = Path(tempfile.mkdtemp(dir=folder)) / "table"
        shutil.copytree(Path(folder) / "table", self.path)
        self.options = {**OPTIONS, **RETAINED, "hoodie.metadata.enable": str(metadata).lower()}
        write(one_row(ts=9), self.path, self.options)
        self.services = HudiTable.open(self.path).services

    def time_plan(self, folder: str, metadata: bool) -> None:
        planned = self.services.plan_clean(self.options)
        assert planned is not None
        assert planned.files == PARTITIONS * GROUPS * (SLICES - 1)

    def time_clean(self, folder: str, metadata: bool) -> None:
        assert self.services.clean(self.options).files_deleted == PARTITIONS * GROUPS * (SLICES - 1)

    def teardown(self, folder: str, metadata: bool) -> None:
        shutil.rmtree(self.path.parent)


class AfterAWrite:
    """Write one row with an inline clean, and without one."""

    params = ("not wanted", "not due", "every write")
    param_names = ("clean",)
    number = 1
    warmup_time = 0

    def setup(self, clean: str) -> None:
        self.folder = tempfile.mkdtemp(prefix="hudi_fast-asv-")
        retained = {"not due": "100"}.get(clean, "2")
        cleans = {"hoodie.clean.automatic": str(clean != "not wanted").lower()}
        self.options = {**OPTIONS, **cleans, "hoodie.clean.commits.retained": retained}
        for ts in range(5):
            write(one_row(ts), self.folder, self.options)

    def time_write(self, clean: str) -> None:
        write(one_row(ts=9), self.folder, self.options)

    def teardown(self, clean: str) -> None:
        shutil.rmtree(self.folder)


def one_row(ts: int) -> pa.Table:
    """One row in a partition of its own."""
    return pa.table({"id": ["k"], "part": ["p"], "ts": [ts], "text": ["x"]})


def make_table(path: Path) -> None:
    """A table with three commits and three slices per file group."""
    write(one_row(ts=0), path, {**OPTIONS, "hoodie.metadata.enable": "false"})
    storage = Storage(path)
    config = load_state(storage).config
    for number in range(SLICES):
        time = f"2020010100000{number}000"
        stats = {f"part{each:03}": commit_files(path, each, time) for each in range(PARTITIONS)}
        put(storage, config, time, CommitMetadata(stats, {}, "UPSERT"))


def commit_files(path: Path, partition: int, time: str) -> list[WriteStat]:
    """Write one file per file group of a partition."""
    folder = path / f"part{partition:03}"
    folder.mkdir(exist_ok=True)
    (folder / ".hoodie_partition_metadata").write_text(f"commitTime={time}\npartitionDepth=1\n")
    stats = []
    for group in range(GROUPS):
        file_id = f"{partition:08}-0000-4000-8000-{group:012}-0"
        name = f"{file_id}_0-1-{group}_{time}.parquet"
        (folder / name).write_bytes(b"some bytes")
        stats.append(
            WriteStat(file_id, f"{folder.name}/{name}", prev_commit=time, partition_path=folder.name, file_size=10)
        )
    return stats


def put(storage: Storage, config: TableConfig, time: str, metadata: CommitMetadata) -> None:
    """Write a completed commit."""
    requested = create_requested(storage, config, Instant(time, "commit", State.REQUESTED))
    inflight = to_inflight(storage, config, requested)
    body = encode_commit_metadata(metadata, config.layout_version)
    complete(storage, config, inflight, body, partial(str, f"{time[:-3]}500"))
