"""hudi_fast and Apache Hudi write to one table in turns, and read the same rows after every turn."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.interop.sides import Sides, after_delete, after_upsert, data_columns, trip_options, trips
from tests.support.rows import assert_same_rows

pytestmark = pytest.mark.peer

BY_INDEX = "hoodie.index.type"
WRITERS = [("hudi_12", 9), ("hudi_12", 8), ("hudi_12", 6), ("hudi_015", 6)]


def of_writers(release: str, version: int) -> pytest.MarkDecorator:
    """A test with each writer: with this one, and with the others in the tier ``long``."""
    cases = [pytest.param(one, marks=() if one == (release, version) else pytest.mark.long) for one in WRITERS]
    return pytest.mark.parametrize("sides", cases, indirect=True, ids=lambda one: f"{one[0]}-v{one[1]}")


@pytest.fixture
def sides(request: pytest.FixtureRequest, tmp_path: Path) -> Sides:
    peer, version = request.param
    # One test of each release has a metadata table: that where the more operations are ours, or Hudi's.
    ours = "of_ours" in request.node.name
    plainly = (peer, version) != (("hudi_12", 9) if ours else ("hudi_015", 6))
    return Sides(request.getfixturevalue(peer), tmp_path / "trips", trip_options(version), plainly=plainly)


@pytest.fixture
def indexes(sides: Sides) -> tuple[str, ...]:
    """One of a partition and one of the table, which both releases have by default, or as their option says."""
    return ("BLOOM" if sides.hudi.version.startswith("0.") else "SIMPLE", "GLOBAL_BLOOM")


def city(table: pa.Table, *names: str) -> pa.Table:
    return table.filter(pc.is_in(table["city"], pa.array(names)))


def without_city(table: pa.Table, *names: str) -> pa.Table:
    return table.filter(pc.invert(pc.is_in(table["city"], pa.array(names))))


@of_writers("hudi_12", 9)
def test_hudi_reads_every_operation_of_ours_and_writes_on_by_every_index(
    sides: Sides, indexes: tuple[str, ...]
) -> None:
    seen: list[tuple[str, pa.Table]] = []
    rows = trips(range(60))
    seen.append((sides.we_write(rows, "bulk_insert").instant, rows))
    new = trips(range(30, 90), ts=5, note="second")
    late = trips(range(6), ts=0, note="too late")  # ordering: loses against what is stored
    rows = after_upsert(rows, new)
    seen.append((sides.we_write(pa.concat_tables([new, late])).instant, rows))
    more = trips(range(90, 99), ts=5)
    rows = pa.concat_tables([rows, more])
    seen.append((sides.we_write(more, "insert").instant, rows))
    gone = trips(range(25, 35)).select(["id", "city"])
    rows = after_delete(rows, gone)
    seen.append((sides.table.delete(gone).instant, rows))
    fresh = city(trips(range(200, 230), ts=5), "city1")
    rows = pa.concat_tables([without_city(rows, "city1"), fresh])
    seen.append((sides.we_write(fresh, "insert_overwrite").instant, rows))
    sides.agree(rows)
    assert_travels(sides, seen)

    rows = hudi_goes_on(sides, rows, indexes)

    rows = without_city(rows, "city2")
    sides.table.delete_partitions(["city2"])
    back = city(trips(range(0, 90, 4), ts=30, note="back"), "city2")
    rows = pa.concat_tables([rows, back])
    sides.hudi_writes(back)
    sides.agree(rows)
    anew = trips(range(500, 520))
    sides.we_write(anew, "insert_overwrite_table")
    last = trips(range(510, 530), ts=2, note="last")
    sides.hudi_writes(last)
    sides.agree(after_upsert(anew, last))


def assert_travels(sides: Sides, seen: list[tuple[str, pa.Table]]) -> None:
    for instant, rows in seen:
        assert_same_rows(data_columns(sides.table.to_arrow(as_of=instant)), rows, key=["id"])
    for instant, rows in seen[1::3]:
        assert_same_rows(data_columns(sides.hudi.read(sides.path, {"as.of.instant": instant})), rows, key=["id"])


def hudi_goes_on(sides: Sides, rows: pa.Table, indexes: tuple[str, ...]) -> pa.Table:
    """Updates find their rows by whichever index, so that no key is there twice; and so do ours afterwards.

    A key that Hudi wrote twice would still be there twice after our write.
    """
    late = trips([36, 38, 39], ts=1, note="too late")
    for number, index in enumerate(indexes):
        new = trips(range(40 + number, 110 + number), ts=10 + 2 * number, note=f"by Hudi {index}")
        if index.startswith("GLOBAL"):  # keys stay, their cities change
            new = after_upsert(new, trips(range(42, 56), ts=20, cities=2, note="moved"))
        rows = after_upsert(rows, new)
        sides.hudi_writes(pa.concat_tables([new, late]), more={BY_INDEX: index})
        new = trips(range(60 + number, 130 + number), ts=11 + 2 * number, note=f"by us {index}")
        if index.startswith("GLOBAL"):
            new = after_upsert(new, trips(range(70, 84), ts=20, cities=2, note="moved"))
        rows = after_upsert(rows, new)
        sides.we_write(pa.concat_tables([new, late]), more={BY_INDEX: index})
        sides.agree(rows)
    gone = trips(range(103, 112))
    sides.hudi_writes(gone, "delete")
    return after_delete(rows, gone)


@pytest.mark.long("hudi_015-v6")
@of_writers("hudi_015", 6)
def test_we_write_on_a_table_that_hudi_created_by_every_operation_of_its_own(sides: Sides) -> None:
    rows = trips(range(60))
    sides.hudi_writes(rows, "bulk_insert")  # Spark's row writer; the upsert below takes the Avro path
    new = trips(range(30, 90), ts=5, note="second")
    rows = after_upsert(rows, new)
    sides.hudi_writes(new)
    more, late = trips(range(50, 100), ts=6, note="by us"), trips([1, 31], ts=0, note="too late")
    rows = after_upsert(rows, more)
    before = last_instant(sides)
    sides.we_write(pa.concat_tables([more, late]), more={BY_INDEX: "BLOOM"})
    sides.agree(rows)
    assert_incremental(sides, before, more)
    gone = trips(range(20, 40))
    rows = after_delete(rows, gone)
    sides.table.delete(gone)
    fresh = city(trips(range(300, 330), ts=5, note="overwritten"), "city0")
    rows = pa.concat_tables([without_city(rows, "city0"), fresh])
    sides.hudi_writes(fresh, "insert_overwrite")
    sides.agree(rows)
    new = trips(range(290, 306), ts=7, note="after the overwrite")
    rows = after_upsert(rows, new)
    sides.we_write(new)
    rows = without_city(rows, "city1")
    sides.hudi_writes(city(trips(range(3)), "city1"), "delete_partition")
    sides.agree(rows)
    new = trips(range(60), ts=8, note="again")
    rows = after_upsert(rows, new)
    sides.we_write(new)
    new = trips(range(10, 70), ts=9, note="the end")
    sides.hudi_writes(new)
    sides.agree(after_upsert(rows, new))


def last_instant(sides: Sides) -> str:
    """Where an incremental query begins: tables from version 8 on go by completion times."""
    column = "instant" if sides.table.version < 8 else "completion"
    return str(pc.max(sides.table.history()[column]).as_py())


def assert_incremental(sides: Sides, begin: str, changed: pa.Table) -> None:
    """Hudi's incremental query finds the rows of our commit by its instant and metadata, and no others."""
    query = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": begin}
    assert_same_rows(data_columns(sides.hudi.read(sides.path, query)), changed, key=["id"])
