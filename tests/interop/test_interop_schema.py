"""A table whose schema grows under both sides: new columns, wider types, old files in between."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.interop.growing_rows import SMALL, WIDE, WIDEST, only, rows_of, widened
from tests.interop.sides import META, Sides, after_upsert, trip_options
from tests.peer.client import RealHudi


@pytest.mark.smoke("hudi_12-9-True")
@pytest.mark.parametrize(
    ("peer", "version", "we_widen_first"),
    [
        ("hudi_12", 9, True),
        ("hudi_015", 6, False),
        pytest.param("hudi_12", 9, False, marks=pytest.mark.long),
        pytest.param("hudi_015", 6, True, marks=pytest.mark.long),
    ],
)
def test_the_schema_grows_on_either_side(
    peer: str, version: int, we_widen_first: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    options = trip_options(version, hoodie__datasource__write__partitionpath__field="part")
    sides = Sides(request.getfixturevalue(peer), tmp_path / "t", options, plainly=True)
    us, them = sides.we_write, sides.hudi_writes
    one, other = (us, them) if we_widen_first else (them, us)
    rows = rows_of(SMALL, range(20), 1)
    other(rows)
    # Only partition p0 gets new files: those of p1 stay in the old schema.
    new = only(rows_of(WIDE, range(30), 2), "p0")
    one(new)
    rows = after_upsert(widened(rows, WIDE), new)
    sides.agree(rows)
    # Now the other side rewrites old files under the new schema, and widens in turn.
    new = only(rows_of(WIDEST, range(5, 35), 3), "p1")
    other(new)
    rows = after_upsert(widened(rows, WIDEST), new)
    sides.agree(rows)
    new = rows_of(WIDEST, range(10, 40), 4)
    one(new)
    sides.agree(after_upsert(rows, new))
    assert sides.table.schema == WIDEST


PROMOTIONS = {
    "more digits": (pa.decimal128(5, 2), pa.decimal128(12, 2), [Decimal("1.25"), Decimal("-999.99")]),
    "more digits on both sides": (pa.decimal128(5, 2), pa.decimal128(20, 4), [Decimal("1.25"), None]),
    "int to text": (pa.int32(), pa.string(), [-7, None]),
    "long to text": (pa.int64(), pa.string(), [2**62, 1]),
    "double to text": (pa.float64(), pa.string(), [1.5, 1e10]),
    "elements": (pa.list_(pa.int32()), pa.list_(pa.int64()), [[1, 2], []]),
    "values": (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64()), [[("a", 1)], None]),
    "fields": (pa.struct([("x", pa.int32())]), pa.struct([("x", pa.int64())]), [{"x": 1}, {"x": None}]),
}


@pytest.mark.smoke
def test_every_promotion_reads_and_merges_alike(hudi_12: RealHudi, tmp_path: Path) -> None:
    options = trip_options(9, hoodie__datasource__write__partitionpath__field="part")
    # Its vectorised reader says of nested columns that were widened that it cannot read them, and to turn it off.
    hudi_12.sql("SET spark.sql.parquet.enableVectorizedReader=false")
    sides = Sides(hudi_12, tmp_path / "t", options, plainly=True)
    names = [f"v{number}" for number in range(len(PROMOTIONS))]
    wide = [kind for _, kind, _ in PROMOTIONS.values()]

    def rows(part: str, ids: list[str], ts: int, values: list[pa.Array]) -> pa.Table:
        keys = {"id": pa.array(ids), "part": pa.array([part] * 2), "ts": pa.array([ts] * 2, pa.int64())}
        return pa.table({**keys, **dict(zip(names, values, strict=True))})

    given = [pa.array(values, before) for before, _, values in PROMOTIONS.values()]
    sides.we_write(rows("p0", ["a", "b"], 1, given))
    nulls = [pa.nulls(2, kind) for kind in wide]
    sides.we_write(rows("p1", ["c", "d"], 2, nulls))
    before = sides.agree()
    assert [before.schema.field(name).type for name in names] == wide
    sides.hudi_writes(rows("p0", ["a", "e"], 3, nulls))  # carries b over from a file of ours in the old types
    after = sides.agree()
    assert row_of(after, "b") == row_of(before, "b")
    hudi_12.sql("RESET spark.sql.parquet.enableVectorizedReader")


def row_of(table: pa.Table, name: str) -> dict[str, Any]:
    (row,) = table.filter(pa.compute.equal(table["id"], name)).to_pylist()
    return {column: value for column, value in row.items() if column not in META}


@pytest.mark.parametrize(("peer", "version"), [("hudi_12", 9), pytest.param("hudi_015", 6, marks=pytest.mark.long)])
def test_rows_that_lack_columns_are_filled_by_both(
    peer: str, version: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    options = trip_options(
        version,
        hoodie__datasource__write__partitionpath__field="part",
        hoodie__write__set__null__for__missing__columns=True,
    )
    sides = Sides(request.getfixturevalue(peer), tmp_path / "t", options, plainly=True)
    rows = rows_of(WIDE, range(20), 1)
    sides.we_write(rows)
    for ts, write in ((2, sides.we_write), (3, sides.hudi_writes), (4, sides.we_write)):
        new = rows_of(WIDE, range(10 + ts, 20 + ts), ts).drop_columns(["word", "added"])
        write(new)
        rows = after_upsert(rows, widened(new, WIDE))
        sides.agree(rows)
