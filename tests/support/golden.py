"""The tables in ``tests/tables``, unzipped, with what real Hudi answers about them."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["TABLES", "Golden", "golden_names", "unzip_golden"]

TABLES = Path(__file__).parents[1] / "tables"


@dataclass(frozen=True, slots=True)
class Golden:
    """One table that real Hudi wrote.

    Attributes:
        name: as in ``tests/tables``, for example ``cow_v9_mixed`` or ``hudi_rs/cow_v8_empty``.
        table: the table's folder; the test may change it.
        answers: the folder of expected answers; does not exist for ``hudi_rs/*``.
        expected: ``about.json``: bundle version, options, instants ...; empty for ``hudi_rs/*``.
    """

    name: str
    table: Path
    answers: Path
    expected: dict[str, Any]

    def snapshot(self) -> pa.Table:
        """Rows of real Hudi's snapshot query."""
        return self.answer("snapshot")

    def answer(self, query: str) -> pa.Table:
        """Rows of ``snapshot``, ``read_optimized``, ``incremental`` or ``as_of``."""
        return pq.read_table(self.answers / f"{query}.parquet", partitioning=None).replace_schema_metadata(None)

    def has(self, query: str) -> bool:
        """Whether there are expected rows for that query."""
        return (self.answers / f"{query}.parquet").exists()

    def cdc(self) -> list[dict[str, Any]]:
        """Rows of real Hudi's change data capture query."""
        return list(json.loads((self.answers / "cdc.json").read_text()))


def golden_names(prefix: str = "") -> list[str]:
    """Names of the tables that begin with ``prefix``, sorted; use them to parametrise a test.

    Those of old releases (``old/``) have fewer answers, and are named only if the prefix says so.
    """
    names = (str(path.relative_to(TABLES).with_suffix("")) for path in TABLES.rglob("*.zip"))
    return sorted(
        name for name in names if name.startswith(prefix) and name.startswith("old/") <= (prefix[:4] == "old/")
    )


def unzip_golden(name: str, folder: Path) -> Golden:
    """Unzip a table into a new folder below ``folder``."""
    target = folder / name
    target.mkdir(parents=True)
    with zipfile.ZipFile(TABLES / f"{name}.zip") as archive:
        for entry in archive.namelist():
            if not entry.startswith("__MACOSX/") and not entry.endswith(".DS_Store"):
                archive.extract(entry, target)
    about = target / "expected" / "about.json"
    expected = json.loads(about.read_text()) if about.exists() else {}
    (table,) = (path.parent for path in target.glob("*/.hoodie"))
    return Golden(name, table, target / "expected", expected)
