"""Tables whose columns real Hudi altered (``schema/data/*.zip``), with its snapshot after each of the steps.

The metadata tables are left out. ``about.json`` says which instant was the newest when a snapshot was taken.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["ALTERED", "AlteredTable", "rows_of", "unzip_altered"]

DATA = Path(__file__).parents[1] / "schema" / "data"
ALTERED = ("cow_v9_altered", "h015_mor_altered", "mor_v6_altered")


@dataclass(frozen=True, slots=True)
class AlteredTable:
    """One of them.

    Attributes:
        table: its folder.
        answers: the folder of snapshots.
        as_of: by name of a step, the newest instant then; in the order of the steps.
    """

    table: Path
    answers: Path
    as_of: dict[str, str]

    def snapshot(self, step: str) -> list[dict[str, object]]:
        """Rows of real Hudi's snapshot after a step, by key."""
        return rows_of(pq.read_table(self.answers / f"{step}.parquet", partitioning=None))


def rows_of(table: pa.Table) -> list[dict[str, object]]:
    """Rows by key."""
    return list(table.sort_by("id").to_pylist())


def unzip_altered(name: str, folder: Path) -> AlteredTable:
    """Unzip a table into a new folder below ``folder``."""
    target = folder / name
    with zipfile.ZipFile(DATA / f"{name}.zip") as archive:
        archive.extractall(target)
    about = json.loads((target / "expected" / "about.json").read_text())
    return AlteredTable(target / "table", target / "expected", about["as_of"])
