"""Folders of Parquet files, tables made of them by us, and two that real Apache Hudi made."""

from __future__ import annotations

import datetime as dt
import zipfile
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import hudi_fast as hf
from hudi_fast.bootstrapping.bootstrap import BootstrapResult, run_bootstrap
from hudi_fast.config.properties_file import update_properties
from hudi_fast.sessions import open_session
from hudi_fast.storage.base import Storage

__all__ = [
    "BY_REGEX",
    "FULL",
    "META",
    "REAL",
    "RealTable",
    "bootstrap_options",
    "bootstrapped",
    "changed",
    "data",
    "make_source",
    "source_rows",
    "unpack",
]

META = 5
REAL = Path(__file__).parents[1] / "view" / "data"
FULL = {"hoodie.bootstrap.mode.selector": "FullRecordBootstrapModeSelector"}
BY_REGEX = {
    "hoodie.bootstrap.mode.selector": "org.apache.hudi.client.bootstrap.selector.BootstrapRegexModeSelector",
    "hoodie.bootstrap.mode.selector.regex": "city=c1",
    "hoodie.bootstrap.mode.selector.regex.mode": "FULL_RECORD",
}
FOLDERS = {
    "hive": "city=c{0}",
    "plain": "c{0}",
    "number": "year=202{0}",
    "two": "year=202{0}/city=c {0}",
    "none": "",
}
START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


def bootstrap_options(**more: Any) -> dict[str, Any]:
    """What a table of :func:`make_source` needs; ``__`` in a keyword stands for a dot."""
    return {
        "hoodie.table.name": "boot",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        **{name.replace("__", "."): value for name, value in more.items()},
    }


def bootstrapped(
    source: Path, storage: Storage, options: dict[str, Any], mode: str = "errorifexists"
) -> BootstrapResult:
    """A bootstrap in threads of this process, on a storage of the test."""
    return run_bootstrap(Storage(source), storage, options, mode, lambda settings: open_session(storage, settings))


def source_rows(first: int, count: int) -> pa.Table:
    """Rows of one file; every one a function of its number."""
    numbers = range(first, first + count)
    return pa.table(
        {
            "id": pa.array([f"k{i:04d}" for i in numbers]),
            "ts": pa.array([i % 7 for i in numbers], pa.int64()),
            "fare": pa.array([None if i % 11 == 0 else i * 1.5 for i in numbers], pa.float64()),
            "amount": pa.array([Decimal(i) / 4 for i in numbers], pa.decimal128(10, 2)),
            "at": pa.array(
                [START + dt.timedelta(minutes=i, microseconds=i) for i in numbers], pa.timestamp("us", "UTC")
            ),
            "tags": pa.array([[f"t{i}", "x"] if i % 3 else None for i in numbers], pa.list_(pa.string())),
            "note": pa.array([f"n{i} é" for i in numbers]),
        }
    )


def make_source(path: Path, style: str = "hive", parts: int = 3, files: int = 2) -> pa.Table:
    """Some files in each of some folders (one folder for ``none``); all their rows, with what the folders say."""
    made = []
    for part in range(1 if style == "none" else parts):
        folder = FOLDERS[style].format(part)
        (path / folder).mkdir(parents=True, exist_ok=True)
        for file in range(files):
            rows = source_rows(part * 100 + file * 50, 20 + file)
            pq.write_table(rows, path / folder / f"part-{part}-{file}.parquet", row_group_size=7)
            named = dict(one.split("=") for one in folder.split("/") if "=" in one)
            named = {"city": folder} if style == "plain" else named
            for name, value in named.items():
                rows = rows.append_column(name, pa.array([value] * rows.num_rows))
            made.append(rows)
    (path / "_SUCCESS").touch()
    return pa.concat_tables(made)


def data(table: pa.Table) -> pa.Table:
    """Rows without meta columns, by key."""
    return table.select([name for name in table.column_names if not name.startswith("_hoodie_")]).sort_by("id")


def changed(rows: pa.Table, ts: int = 100, note: str = "changed") -> pa.Table:
    """The rows with another note, to be written."""
    rows = rows.set_column(rows.column_names.index("ts"), "ts", pa.array([ts] * rows.num_rows, pa.int64()))
    return rows.set_column(rows.column_names.index("note"), "note", pa.array([note] * rows.num_rows))


@dataclass(frozen=True, slots=True)
class RealTable:
    """A table that real Hudi bootstrapped, metadata only.

    Attributes:
        path: the table.
        source: the folder that it was made of.
        expected: real Hudi's snapshot.
    """

    path: Path
    source: Path
    expected: pa.Table

    @property
    def table(self) -> hf.HudiTable:
        """The table, opened."""
        return hf.HudiTable.open(self.path)


def unpack(name: str, folder: Path) -> RealTable:
    """One of ``bootstrapped_v9`` (1.2.0, merge-on-read) and ``bootstrapped_0_15`` (copy-on-write, two levels).

    The folder that it was made of lies elsewhere now, and the table is told where.
    """
    with zipfile.ZipFile(REAL / f"{name}.zip") as archive:
        archive.extractall(folder)
    update_properties(Storage(folder / "table"), {"hoodie.bootstrap.base.path": str(folder / "source")})
    expected = pq.read_table(folder / "expected.parquet", partitioning=None).replace_schema_metadata(None)
    return RealTable(folder / "table", folder / "source", expected)
