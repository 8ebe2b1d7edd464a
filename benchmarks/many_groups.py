"""Upsert rows of 1 000 small file groups, and read with a filter that all of them pass: what each file group costs."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pyarrow as pa

from hudi_fast import HudiTable, write

GROUPS = 1000
ROWS_OF_GROUP = 20


def _rows(count: int, fare: float) -> pa.Table:
    ids = range(count)
    cities = [f"c{one % GROUPS:04d}" for one in ids]
    return pa.table({"id": [f"{one:08d}" for one in ids], "city": cities, "fare": [float(one) + fare for one in ids]})


class ManyGroups:
    """A table with one file group in each of its partitions; a write updates one row of each."""

    number, repeat, warmup_time = 1, 3, 0
    timeout = 600

    def setup_cache(self) -> str:
        """Make the table once; each upsert has a copy."""
        folder = Path(tempfile.mkdtemp(prefix="many-groups-"))
        write(_rows(GROUPS * ROWS_OF_GROUP, 0.0), folder / "start", key="id", partition_by="city")
        return str(folder)

    def setup(self, folder: str) -> None:
        """Copy the table."""
        shutil.rmtree(Path(folder, "table"), ignore_errors=True)
        shutil.copytree(Path(folder, "start"), Path(folder, "table"))
        self.changed = _rows(GROUPS, 0.5)

    def time_upsert(self, folder: str) -> None:
        """Rewrite each file group."""
        write(self.changed, Path(folder, "table"), key="id", partition_by="city")

    def time_filtered_read(self, folder: str) -> None:
        """Read most rows."""
        HudiTable(Path(folder, "table")).to_arrow(filter="fare > 50")
