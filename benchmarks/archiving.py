"""Archive 1000 instants; read ten instants and write a table with up to 10 000 archived instants."""

from __future__ import annotations

import shutil
import tempfile
from functools import partial
from pathlib import Path

import pyarrow as pa

from hudi_fast import HudiTable, write
from hudi_fast.config.service_options import ArchiveOptions
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.archive.timeline import ArchivedInstant, ArchivedTimeline, append_archive
from hudi_fast.timeline.instants import Instant, State
from hudi_fast.timeline.transition import complete, create_requested, to_inflight
from hudi_fast.view.table_state import load_state

OPTIONS = {
    "hoodie.table.name": "archived",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
KEEP = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.metadata.enable": "false",
}
INSTANTS = 1000


class Archive:
    """Archive 1000 commits of a table without a metadata table, by table version."""

    params = ("9", "6")
    param_names = ("table version",)
    number = 1
    warmup_time = 0

    def setup(self, version: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="hudi_fast-asv-")) / "table"
        self.options = {**OPTIONS, **KEEP, "hoodie.write.table.version": version}
        write(rows(0), self.path, self.options)
        state = load_state(Storage(self.path))
        (first,) = state.timeline.writes()
        body = state.storage.read_bytes(f"{state.config.timeline_folder}/{first.file_name}")
        for number in range(INSTANTS + 1):
            instant = Instant(instant_of(number), "commit", State.REQUESTED)
            create_requested(state.storage, state.config, instant)
            to_inflight(state.storage, state.config, instant, body)
            complete(state.storage, state.config, instant, body, partial(str, instant_of(number)[:-1] + "9"))

    def teardown(self, version: str) -> None:
        shutil.rmtree(self.path.parent)

    def time_archive(self, version: str) -> None:
        assert len(HudiTable.open(self.path).services.archive(self.options).instants) == INSTANTS


class History:
    """Read the last ten archived instants, and write 100 rows, in a table with a metadata table."""

    params = (10, 10_000)
    param_names = ("archived instants",)

    def setup(self, archived: int) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="hudi_fast-asv-")) / "table"
        for version in range(12):
            write(rows(version), self.path, OPTIONS)
        state = load_state(Storage(self.path))
        first = state.timeline.writes()[0]
        body = state.storage.read_bytes(f"{state.config.timeline_folder}/{first.file_name}")
        for start in range(0, archived, 100):
            some = range(start, min(start + 100, archived))
            made = [ArchivedInstant(instant_of(one), instant_of(one)[:-1] + "9", "commit", body) for one in some]
            append_archive(state.storage, state.config, made, ArchiveOptions())
        self.archive = ArchivedTimeline(state.storage, state.config)
        self.begin = instant_of(archived - 10)

    def teardown(self, archived: int) -> None:
        shutil.rmtree(self.path.parent)

    def time_last_ten(self, archived: int) -> None:
        assert len(self.archive.instants(self.begin)) == 10

    def time_last_ten_with_bodies(self, archived: int) -> None:
        assert len(list(self.archive.read(self.begin))) == 10

    def time_write(self, archived: int) -> None:
        write(rows(99), self.path, OPTIONS)


def rows(version: int) -> pa.Table:
    return pa.table({"id": [f"k{number}" for number in range(100)], "value": [version] * 100})


def instant_of(number: int) -> str:
    return f"20250101{number:05d}0000"
