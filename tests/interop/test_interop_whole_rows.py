"""Partial updates as whole rows, rows that move and blend, operations of rows: real Hudi is on the other side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.interop.sides import Sides, trip_options, trips
from tests.peer.client import RealHudi
from tests.support.rows import assert_same_rows


@pytest.mark.parametrize(
    ("kind", "version"),
    [("COPY_ON_WRITE", 9), pytest.param("COPY_ON_WRITE", 6, marks=pytest.mark.long), ("MERGE_ON_READ", 6)],
)
def test_hudi_reads_and_continues_partial_updates_of_ours(
    kind: str, version: int, hudi_12: RealHudi, tmp_path: Path
) -> None:
    options = {**trip_options(version), "hoodie.datasource.write.table.type": kind, "hoodie.compact.inline": False}
    sides = Sides(hudi_12, tmp_path / "t", {**options, "hoodie.index.type": "GLOBAL_SIMPLE"}, plainly=True)
    sides.hudi_writes(trips(range(40)), "bulk_insert")
    some = trips(range(5, 20), ts=5).select(["id", "city", "ts", "fare"])
    elsewhere = some.set_column(1, "city", pa.array(["city0"] * 8 + ["new"] * 7))
    sides.we_write(elsewhere, more={"hudi_fast.partial.update": True})
    expected = {row["id"]: row for row in trips(range(40)).to_pylist()}
    for row in elsewhere.to_pylist():
        expected[row["id"]] |= row
    sides.agree(pa.Table.from_pylist(list(expected.values()), trips([0]).schema))
    whole = trips(range(10, 13), ts=6, note="whole")
    sides.hudi_writes(whole)
    sides.we_write(trips([11, 30], ts=7).select(["id", "city", "ts", "note"]), more={"hudi_fast.partial.update": True})
    expected |= {row["id"]: row for row in whole.to_pylist()}
    for row in trips([11, 30], ts=7).select(["id", "city", "ts", "note"]).to_pylist():
        expected[row["id"]] |= row
    sides.agree(pa.Table.from_pylist(list(expected.values()), trips([0]).schema))


@pytest.mark.smoke("MERGE_ON_READ")
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_operations_are_those_of_the_other_side(kind: str, hudi_12: RealHudi, tmp_path: Path) -> None:
    allow = {"hoodie.allow.operation.metadata.field": True}
    options = {
        **trip_options(9),
        "hoodie.datasource.write.table.type": kind,
        "hoodie.compact.inline": False,
        **allow,
    }
    sides = Sides(hudi_12, tmp_path / "t", options, plainly=True)
    sides.hudi_writes(trips(range(12)))
    changes = trips(range(4, 9), ts=5)
    changes = changes.append_column("_hoodie_operation", pa.array(["U", "-U", "D", "U", "U"]))
    sides.we_write(changes)
    if kind == "COPY_ON_WRITE":  # with this option Hudi 1.2.0 commits upserts into logs without their rows
        sides.hudi_writes(trips(range(8, 10), ts=6))
    columns = ["id", "ts", "fare", "_hoodie_operation"]
    ours = sides.table.to_arrow(columns=columns)
    theirs = sides.hudi.read(sides.path).select(columns)
    assert_same_rows(ours, theirs, ignore=())
    updated = (4, 7) if kind == "COPY_ON_WRITE" else (4, 7, 8)
    operations: dict[str, Any] = {row["id"]: row["_hoodie_operation"] for row in ours.to_pylist()}
    assert operations == {f"trip-{i:05d}": "U" if i in updated else None for i in range(12) if i not in (5, 6)}
    if kind == "MERGE_ON_READ":
        sides.table.services.compact()
        assert_same_rows(sides.table.to_arrow(columns=columns), sides.hudi.read(sides.path).select(columns), ignore=())


@pytest.mark.parametrize("kind", [pytest.param("COPY_ON_WRITE", marks=pytest.mark.long), "MERGE_ON_READ"])
def test_rows_of_a_database_move_as_hudi_moves_them(kind: str, hudi_12: RealHudi, tmp_path: Path) -> None:
    marker = "__debezium_unavailable_value"
    options = {
        "hoodie.table.name": "changes",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "_event_lsn",
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.debezium.PostgresDebeziumAvroPayload",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.index.type": "GLOBAL_SIMPLE",
        "hoodie.simple.index.update.partition.path": True,
        "hoodie.compact.inline": False,
    }
    batches = [
        [("a", "p0", 1, "c", "long"), ("b", "p0", 1, "c", "b"), ("c", "p1", 1, "c", "c"), ("d", "p1", 1, "c", "d")],
        [
            ("a", "p1", 2, "u", marker),
            ("b", "p0", 2, "u", marker),
            ("c", "p0", 2, "u", "new"),
            ("e", "p2", 1, "c", "e"),
        ],
        [
            ("a", "p0", 1, "u", "late"),
            ("b", "p2", 3, "u", marker),
            ("c", "p1", 3, "d", marker),
            ("d", "p0", 2, "u", "x"),
        ],
        [("a", "p2", 5, "u", marker), ("d", "p1", 5, "u", marker), ("e", "p0", 5, "u", "y")],
    ]

    def rows_of(batch: list[tuple[Any, ...]]) -> pa.Table:
        names = ["id", "part", "_event_lsn", "_change_operation_type", "text"]
        return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in batch])

    ours = Sides(hudi_12, tmp_path / "ours", options, plainly=True)
    theirs = Sides(hudi_12, tmp_path / "theirs", options, plainly=True)
    both = Sides(hudi_12, tmp_path / "both", options, plainly=True)
    for number, batch in enumerate(batches):
        ours.we_write(rows_of(batch))
        theirs.hudi_writes(rows_of(batch))
        (both.we_write if number % 2 else both.hudi_writes)(rows_of(batch))
        if number % 2 == 0:  # what follows moves the same keys on
            continue
        found = [
            side.agree().select(["id", "part", "_event_lsn", "text", "_hoodie_partition_path"])
            for side in ((ours, theirs) if number == 1 else (ours, theirs, both))
        ]
        for one in found[1:]:
            assert_same_rows(one, found[0], ignore=())
