"""Both sides of one table: what hudi_fast reads, what real Apache Hudi reads, and what the rows ought to be.

Data flow: a test makes rows (:func:`trips`), has one side write them (:meth:`Sides.we_write`,
:meth:`Sides.hudi_writes`), keeps by itself what the table should hold (:func:`after_upsert`, :func:`after_delete`) and
asks both sides (:meth:`Sides.agree`). Both read the same files, so even the meta columns have to be the same.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import hudi_fast as hf
from tests.peer.client import RealHudi
from tests.support.rows import assert_same_rows

__all__ = ["META", "Sides", "after_delete", "after_upsert", "data_columns", "trip_options", "trips"]

META = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
SMALL = {
    "hoodie.upsert.shuffle.parallelism": 2,
    "hoodie.insert.shuffle.parallelism": 2,
    "hoodie.delete.shuffle.parallelism": 2,
    "hoodie.bulkinsert.shuffle.parallelism": 2,
    "hoodie.bloom.index.parallelism": 2,
    # By default each write that keeps such an index up runs two hundred tasks, most of them without rows.
    "hoodie.metadata.index.secondary.parallelism": 2,
    "hoodie.metadata.index.expression.parallelism": 2,
}
OPERATION = "hoodie.datasource.write.operation"
START = dt.datetime(2024, 3, 1, tzinfo=dt.UTC)


@dataclass
class Sides:
    """One table and those who write to it.

    Attributes:
        hudi: real Apache Hudi.
        path: base path.
        options: what a writer of either side needs to create the table and to write to it.
        key: columns that rows are named by when they differ.
        plainly: Hudi writes without a metadata table, which saves most of the time that a small write takes.
    """

    hudi: RealHudi
    path: Path
    options: Mapping[str, Any]
    key: Sequence[str] = ("id",)
    plainly: bool = False

    @property
    def table(self) -> hf.HudiTable:
        """The table, opened by hudi_fast."""
        return hf.HudiTable.open(self.path)

    def we_write(self, rows: pa.Table, operation: str = "upsert", more: Mapping[str, Any] | None = None) -> Any:
        """A write of hudi_fast; a metadata table that Hudi built is kept up."""
        options = {**self.options, OPERATION: operation, **(more or {})}
        if self.plainly:
            options["hoodie.metadata.enable"] = False
        return hf.write(rows, self.path, options)

    def hudi_writes(self, rows: pa.Table, operation: str = "upsert", more: Mapping[str, Any] | None = None) -> None:
        """A write of Hudi, with its defaults but for the parallelism and upgrades."""
        options = {**self.options, **SMALL, OPERATION: operation, **(more or {})}
        if self.plainly:
            options["hoodie.metadata.enable"] = False
        if self.hudi.version.startswith("0."):
            options.pop("hoodie.write.table.version", None)
        else:
            options["hoodie.write.auto.upgrade"] = False
        self.hudi.write(rows, self.path, options)

    def in_catalog(self) -> str:
        """A name of the table for Hudi's SQL."""
        name = "at_" + hashlib.md5(os.fsencode(self.path)).hexdigest()
        self.hudi.sql(f"CREATE TABLE IF NOT EXISTS {name} USING hudi LOCATION '{self.path}'")
        return name

    def agree(self, expected: pa.Table | None = None) -> pa.Table:
        """Both sides read the same rows, meta columns too, and they are ``expected``; what hudi_fast read."""
        ours = self.table.to_arrow()
        assert_same_rows(ours, self.hudi.read(self.path), ignore=())
        if expected is not None:
            assert_same_rows(data_columns(ours), expected, key=self.key)
        return ours


def trips(ids: Sequence[int], ts: int = 1, cities: int = 3, note: str = "first") -> pa.Table:
    """Rows of a small table: key ``id``, partition ``city``, ordering ``ts``; every row a function of id and ts."""
    moments = [START + dt.timedelta(minutes=i, microseconds=i) for i in ids]
    return pa.table(
        {
            "id": pa.array([f"trip-{i:05d}" for i in ids], pa.string()),
            "city": pa.array([f"city{i % cities}" for i in ids], pa.string()),
            "ts": pa.array([ts] * len(ids), pa.int64()),
            "fare": pa.array([None if i % 11 == 0 else i * 1.5 + ts for i in ids], pa.float64()),
            "seats": pa.array([i % 5 for i in ids], pa.int32()),
            "started": pa.array(moments, pa.timestamp("us", "UTC")),
            "day": pa.array([dt.date(1965, 1, 1) + dt.timedelta(days=i) for i in ids], pa.date32()),
            "note": pa.array([None if i % 7 == 0 else f"{note} {i} ü€😀" for i in ids], pa.string()),
        }
    )


def trip_options(version: int, **more: Any) -> dict[str, Any]:
    """Options of a table of :func:`trips`; ``__`` in a keyword stands for a dot."""
    return {
        "hoodie.table.name": "trips",
        "hoodie.write.table.version": version,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
        **{name.replace("__", "."): value for name, value in more.items()},
    }


def after_upsert(rows: pa.Table, new: pa.Table, key: Sequence[str] = ("id",)) -> pa.Table:
    """``rows`` once ``new`` has been upserted and won every comparison."""
    return pa.concat_tables([after_delete(rows, new, key), new.select(rows.column_names)])


def after_delete(rows: pa.Table, gone: pa.Table, key: Sequence[str] = ("id",)) -> pa.Table:
    """``rows`` without those whose key is among ``gone``."""
    position = pa.array(range(rows.num_rows), pa.int64())
    keyed = rows.select(list(key)).append_column("_position", position)
    left = keyed.join(gone.select(list(key)), keys=list(key), join_type="left anti")
    return rows.take(left.column("_position"))


def data_columns(table: pa.Table) -> pa.Table:
    """``table`` without Hudi's meta columns."""
    return table.select([name for name in table.column_names if name not in META])
