"""Hudi's indexes over files of ours: bloom filters, key ranges, column statistics, record and secondary index.

What an index says wrongly shows as a row that is there twice, or as one that a query leaves out.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.interop.all_types import SPARK_TYPES, all_types
from tests.interop.sides import Sides, after_upsert, trip_options, trips
from tests.peer.client import RealHudi

INDEX = "hoodie.index.type"
BLOOM = {INDEX: "BLOOM"}


@pytest.mark.smoke("BLOOM")
@pytest.mark.parametrize("index", ["BLOOM", pytest.param("GLOBAL_BLOOM", marks=pytest.mark.long)])
def test_keys_that_java_orders_in_its_own_way_are_found(hudi_12: RealHudi, tmp_path: Path, index: str) -> None:
    """Beyond U+D7FF, Java's order of strings is not that of their bytes, and footers hold the smallest and largest."""
    sides = Sides(hudi_12, tmp_path / "t", trip_options(9, hoodie__index__type=index), plainly=True)
    keys = ["z", "ü", "€", "\uffee", "😀", "\U0010ffff", "\ud7ff", "ab", "😀😀"]

    def rows(ts: int, some: list[str]) -> pa.Table:
        count = len(some)
        return pa.table({"id": some, "city": ["c"] * count, "ts": pa.array([ts] * count, pa.int64())})

    sides.we_write(rows(1, keys), "bulk_insert")
    sides.hudi_writes(rows(2, [*keys, "\ue000", "A"]))
    sides.agree(rows(2, [*keys, "\ue000", "A"]))
    sides.we_write(rows(3, [*keys, "\ue000", "A"]))
    sides.hudi_writes(rows(4, [*keys, "\ue000", "A", "😁"]))
    sides.agree(rows(4, [*keys, "\ue000", "A", "😁"]))


def test_filters_that_grow_are_continued_by_the_other_side(hudi_12: RealHudi, tmp_path: Path) -> None:
    options = trip_options(
        9,
        hoodie__index__type="BLOOM",
        hoodie__bloom__index__filter__type="DYNAMIC_V0",
        hoodie__index__bloom__num_entries=10,
        hoodie__bloom__index__filter__dynamic__max__entries=40,
    )
    sides = Sides(hudi_12, tmp_path / "t", options, plainly=True)
    rows = trips(range(100))
    sides.we_write(rows)
    for ts, write in ((2, sides.hudi_writes), (3, sides.we_write), (4, sides.hudi_writes)):
        new = trips(range(20 * ts, 100 + 30 * ts), ts)
        write(new)
        rows = after_upsert(rows, new)
    sides.agree(rows)


def test_a_filter_that_is_far_too_full_still_answers(hudi_12: RealHudi, tmp_path: Path) -> None:
    options = trip_options(9, hoodie__index__type="BLOOM", hoodie__index__bloom__num_entries=5)
    simple = {"hoodie.bloom.index.filter.type": "SIMPLE"}
    sides = Sides(hudi_12, tmp_path / "t", {**options, **simple}, plainly=True)
    rows = trips(range(100))
    sides.hudi_writes(rows)
    for ts, write in ((2, sides.we_write), (3, sides.hudi_writes)):
        new = trips(range(20 * ts, 100 + 30 * ts), ts)
        write(new)
        rows = after_upsert(rows, new)
    sides.agree(rows)


def test_a_file_that_lost_its_last_row_takes_rows_again(hudi_12: RealHudi, tmp_path: Path) -> None:
    """It has a filter and no key range."""
    sides = Sides(hudi_12, tmp_path / "t", {**trip_options(9), **BLOOM})
    rows = trips(range(9))
    sides.we_write(rows)
    sides.table.delete(rows)
    sides.agree(rows.slice(0, 0))
    some = trips(range(6), ts=2)
    sides.hudi_writes(some)
    sides.agree(some)
    sides.hudi_writes(some, "delete")
    sides.we_write(rows)
    sides.agree(rows)


def test_queries_that_skip_files_by_our_statistics_miss_nothing(hudi_12: RealHudi, tmp_path: Path) -> None:
    """Hudi takes the column statistics of its metadata table from the footers of our files."""
    sides = Sides(hudi_12, tmp_path / "t", trip_options(9, hoodie__datasource__write__partitionpath__field="part"))
    rows = all_types(range(30))
    sides.we_write(rows)
    sides.hudi_writes(all_types(range(30, 33)))
    stats = sides.path / ".hoodie" / "metadata" / "column_stats"
    assert stats.exists()
    rows = sides.table.to_arrow()
    skipping = {"hoodie.metadata.enable": True, "hoodie.enable.data.skipping": True}
    names = ("i", "l", "d", "s", "date", "at", "wall", "dec5", "dec15", "dec20", "dec38")
    for name, bound in zip(names, itertools.cycle((pc.min, pc.max)), strict=False):
        value = bound(rows[name])
        where = f"{name} = {literal(name, value.as_py())}"
        found = sides.hudi.read(sides.path, skipping, where=where, columns=["id"])
        expected = rows.filter(pc.equal(rows[name], value))["id"].to_pylist()
        assert expected
        assert sorted(found["id"].to_pylist()) == sorted(expected), where


def literal(name: str, value: Any) -> str:
    """Spark's spelling of a value of a column of ``all_types``."""
    text = value.isoformat() if isinstance(value, dt.date) else str(value)
    return f"CAST('{text}' AS {SPARK_TYPES[name]})"


@pytest.mark.long
def test_indexes_of_the_metadata_table_are_kept_up(hudi_12: RealHudi, tmp_path: Path) -> None:
    sides = Sides(hudi_12, tmp_path / "t", trip_options(9))
    by_record = {
        INDEX: "RECORD_INDEX",
        "hoodie.metadata.record.index.enable": True,
        "hoodie.metadata.global.record.level.index.enable": True,
        "hoodie.metadata.record.index.min.filegroup.count": 2,  # ten by default, with a task each in every write
        "hoodie.metadata.global.record.level.index.min.filegroup.count": 2,
    }
    rows = trips(range(50))
    sides.we_write(rows)
    new = trips(range(30, 70), ts=2, note="by record index")
    sides.hudi_writes(new, more=by_record)
    rows = after_upsert(rows, new)
    name = sides.in_catalog()
    with single_writer_of_indexes(hudi_12):
        hudi_12.sql(f"CREATE INDEX by_seats ON {name} (seats)")
    assert {"record_index", "secondary_index_by_seats"} <= metadata_partitions(sides)
    new = trips(range(60, 90), ts=3, note="by us")
    sides.we_write(new)
    rows = after_upsert(rows, new)
    assert {"record_index", "secondary_index_by_seats"} <= metadata_partitions(sides)
    assert seats_of(sides, name) == pc.sum(pc.equal(rows["seats"], 3)).as_py()
    new = trips(range(70, 100), ts=4, note="by record index again")
    sides.hudi_writes(new, more=by_record)
    rows = after_upsert(rows, new)
    sides.agree(rows)
    assert "record_index" in metadata_partitions(sides)
    assert seats_of(sides, name) == pc.sum(pc.equal(rows["seats"], 3)).as_py()


@contextmanager
def single_writer_of_indexes(hudi: RealHudi) -> Iterator[None]:
    """What Hudi wants set before it builds an index of its own accord."""
    lock, mode = "hoodie.write.lock.provider", "hoodie.write.concurrency.mode"
    hudi.sql(f"SET {lock}=org.apache.hudi.client.transaction.lock.InProcessLockProvider")
    hudi.sql(f"SET {mode}=OPTIMISTIC_CONCURRENCY_CONTROL")
    try:
        yield
    finally:
        hudi.sql(f"RESET {lock}")
        hudi.sql(f"RESET {mode}")


def metadata_partitions(sides: Sides) -> set[str]:
    folder = sides.path / ".hoodie" / "metadata"
    return {entry.name for entry in folder.iterdir() if entry.name != ".hoodie"} if folder.exists() else set()


def seats_of(sides: Sides, name: str) -> int:
    return int(sides.hudi.sql(f"SELECT count(*) AS found FROM {name} WHERE seats = 3")["found"][0].as_py())
