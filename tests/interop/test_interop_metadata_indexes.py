"""Every index of the metadata table in turns with Apache Hudi: kept up and asked by both, and true after each turn.

What an index leaves out shows as a row that a query misses or a key that is there twice, so after each turn both sides
are asked through their indexes for rows that the test knows, and Apache Hudi's own procedures compare its view of the
metadata table with the folders.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.interop.mor_sides import MorSides, mor_options
from tests.interop.sides import after_delete, after_upsert, trip_options, trips
from tests.support.metadata_checks import assert_metadata_true

pytestmark = pytest.mark.peer

THROUGH = {
    "hoodie.metadata.enable": True,
    "hoodie.enable.data.skipping": True,
    "hoodie.metadata.index.column.stats.enable": True,
    "hoodie.metadata.index.bloom.filter.enable": True,
}
BLOOM = {
    "hoodie.index.type": "BLOOM",
    "hoodie.index.bloom.num_entries": 100,
    "hoodie.bloom.index.use.metadata": True,
    "hoodie.metadata.index.bloom.filter.enable": True,
    "hoodie.metadata.index.column.stats.enable": True,  # release 0.15 would drop them
}
RECORD = {
    "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
    "hoodie.metadata.global.record.level.index.enable": True,
    "hoodie.metadata.record.index.min.filegroup.count": 2,
}
SECONDARY = {"hoodie.metadata.index.secondary.column": "seats", "hoodie.index.name": "by_seats"}
BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 2}
CONSISTENT = {
    **BUCKET,
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.min.num.buckets": 2,
    "hoodie.bucket.index.max.num.buckets": 4,
}
MOR, COW = "MERGE_ON_READ", "COPY_ON_WRITE"
STATS = {"files", "column_stats"}
TURNS = {
    "record and secondary, v9": (
        "hudi_12",
        9,
        MOR,
        {**RECORD, **SECONDARY},
        {"record_index", "secondary_index_by_seats"},
    ),
    "record and secondary, v8": (
        "hudi_12",
        8,
        COW,
        {**RECORD, **SECONDARY},
        {"record_index", "secondary_index_by_seats"},
    ),
    "bloom, v9": ("hudi_12", 9, MOR, BLOOM, {"bloom_filters"}),
    "bloom, 0.15": ("hudi_015", 6, MOR, BLOOM, {"bloom_filters"}),
    "consistent, v9": ("hudi_12", 9, MOR, CONSISTENT, set()),
}


MORE = ("record and secondary, v9", "record and secondary, v8", "bloom, 0.15", "consistent, v9")


@pytest.mark.long("bloom, v9")
@pytest.mark.parametrize("name", [pytest.param(one, marks=pytest.mark.long if one in MORE else ()) for one in TURNS])
def test_turns_of_both_sides(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    release, version, kind, index, there = TURNS[name]
    options = mor_options(version) if kind == MOR else trip_options(version)
    sides = MorSides(request.getfixturevalue(release), tmp_path / "t", {**options, **index})
    expected = STATS | there | ({"partition_stats"} if version > 6 else set())
    rows = trips(range(40))
    sides.we_write(rows)
    for ts, write in ((5, sides.hudi_writes), (6, sides.we_write)):
        new = trips(range(4 * ts, 40 + 5 * ts), ts=ts, note=f"write {ts}")
        write(new, more={"hoodie.metadata.enable": True})
        rows = after_upsert(rows, new)
        assert set(assert_metadata_true(sides.path)) == expected
    gone = trips(range(0, 75, 6), ts=8)
    sides.we_write(gone, "delete")
    rows = after_delete(rows, gone)
    agree_by_indexes(sides, rows, expected)
    if kind == MOR:
        sides.we_compact()
        assert set(assert_metadata_true(sides.path)) == expected
        sides.agree(rows)


def agree_by_indexes(sides: MorSides, rows: pa.Table, expected: set[str]) -> None:
    """The same rows, whichever index is asked; and a metadata table that tells the truth, says Apache Hudi too."""
    assert set(assert_metadata_true(sides.path)) == expected
    assert sides.table.services.validate().differences.to_pylist() == []
    sides.agree(rows)
    some = rows["id"][rows.num_rows // 2].as_py()
    for where, filter_ in (
        (f"id = '{some}'", pc.field("id") == some),
        ("id IN ('trip-00012', 'trip-00071', 'none')", pc.field("id").isin(["trip-00012", "trip-00071", "none"])),
        ("seats = 3", pc.field("seats") == 3),
        ("fare > 60 AND city = 'city1'", (pc.field("fare") > 60) & (pc.field("city") == "city1")),
        ("day < DATE'1965-01-06'", pc.field("day") < dt.date(1965, 1, 6)),
        ("fare IS NULL", pc.field("fare").is_null()),
    ):
        wanted = sorted(rows.filter(filter_)["id"].to_pylist())
        ours = sides.table.to_arrow(columns=["id"], filter=filter_)
        assert sorted(ours["id"].to_pylist()) == wanted, where
        theirs = sides.hudi.read(sides.path, THROUGH, where=where, columns=["id"])
        assert sorted(theirs["id"].to_pylist()) == wanted, where
    told_by_hudi(sides)


def told_by_hudi(sides: MorSides) -> None:
    """Apache Hudi's procedures find nothing wrong, and list the files that are there."""
    table = sides.in_catalog()
    differing = sides.hudi.sql(f"CALL validate_metadata_table_files(table => '{table}')")
    assert differing.num_rows == 0, differing.to_pylist()
    cities = sides.hudi.sql(f"CALL show_metadata_table_partitions(table => '{table}')").column(0).to_pylist()
    assert sorted(cities) == sorted(sides.table.partitions()["partition"].to_pylist())
    for city in cities:
        told = sides.hudi.sql(f"CALL show_metadata_table_files(table => '{table}', partition => '{city}')")
        names = {name.rpartition("/")[2] for name in told.column(0).to_pylist()}
        assert names == {one.name for one in (sides.path / city).iterdir() if is_data(one.name)}


def is_data(name: str) -> bool:
    return not name.endswith(".crc") and not name.startswith(".hoodie")
