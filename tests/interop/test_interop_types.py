"""Every type, through every writer: values survive being merged by the other side, and Spark sees the same types."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.interop.all_types import SPARK_TYPES, all_types
from tests.interop.sides import Sides, after_upsert, trip_options
from tests.peer.client import RealHudi


def sides_of(hudi: RealHudi, version: int, path: Path) -> Sides:
    options = trip_options(version, hoodie__datasource__write__partitionpath__field="part")
    return Sides(hudi, path, options, plainly=True)


@pytest.mark.smoke("hudi_12-9", "hudi_015-6")
@pytest.mark.parametrize(
    ("peer", "version"),
    [("hudi_12", 9), *(pytest.param("hudi_12", older, marks=pytest.mark.long) for older in (8, 6)), ("hudi_015", 6)],
)
def test_files_of_ours_are_merged_by_hudi_and_its_files_by_us(
    peer: str, version: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    sides = sides_of(request.getfixturevalue(peer), version, tmp_path / "t")
    rows = known_to(sides, all_types(range(20)))
    sides.we_write(rows, "bulk_insert")
    sides.agree(rows)
    assert spark_types(sides) == {name: SPARK_TYPES[name] for name in rows.column_names if name in SPARK_TYPES}
    for turn, write in enumerate((sides.hudi_writes, sides.we_write, sides.hudi_writes, sides.we_write)):
        # Some rows change, some are carried over, some are new: all three ways that a value gets into a new file.
        new = known_to(sides, all_types(range(10 + turn, 25 + turn), ts=2 + turn))
        write(new)
        rows = after_upsert(rows, new)
        sides.agree(rows)


@pytest.mark.parametrize(("peer", "version"), [("hudi_12", 9), pytest.param("hudi_015", 6, marks=pytest.mark.long)])
def test_files_of_sparks_row_writer_are_merged_by_us(
    peer: str, version: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    sides = sides_of(request.getfixturevalue(peer), version, tmp_path / "t")
    rows = known_to(sides, all_types(range(20)))
    sides.hudi_writes(rows, "bulk_insert")
    sides.agree(rows)
    new = known_to(sides, all_types(range(10, 25), ts=2))
    sides.we_write(new)
    rows = after_upsert(rows, new)
    sides.agree(rows)
    new = known_to(sides, all_types(range(12, 27), ts=3))
    sides.hudi_writes(new)
    sides.agree(after_upsert(rows, new))


def test_hudi_reads_nulls_inside_our_lists(hudi_12: RealHudi, tmp_path: Path) -> None:
    """Its own Avro writer cannot hold them; Spark's row writer and we can."""
    sides = sides_of(hudi_12, 9, tmp_path / "t")
    rows = all_types(range(6)).append_column("gaps", pa.array([[None], [1, None, 3], [], None, [None, 2], [4]]))
    sides.we_write(rows)
    new = rows.slice(2).set_column(2, "ts", pa.array([9] * 4))
    sides.we_write(new)
    sides.agree(after_upsert(rows, new))


def test_required_columns_are_read_and_merged_by_both(hudi_12: RealHudi, tmp_path: Path) -> None:
    sides = sides_of(hudi_12, 9, tmp_path / "t")
    inner = pa.struct([pa.field("x", pa.int32(), nullable=False), ("y", pa.string())])
    extra = [
        (pa.field("must", pa.int64(), nullable=False), pa.array(range(10), pa.int64())),
        (pa.field("box", inner, nullable=False), pa.array([{"x": i, "y": None} for i in range(10)], inner)),
        (
            pa.field("full", pa.list_(pa.field("element", pa.int32(), nullable=False)), nullable=False),
            pa.array([[i] * (i % 3) for i in range(10)], pa.list_(pa.field("element", pa.int32(), nullable=False))),
        ),
    ]
    rows = all_types(range(10)).select(["id", "part", "ts"])
    for field, values in extra:
        rows = rows.append_column(field, values)
    sides.we_write(rows)
    sides.agree(rows)
    assert [field.name for field in sides.table.schema if not field.nullable] == ["must", "box", "full"]
    new = rows.slice(3, 4).set_column(2, "ts", pa.array([9] * 4))
    sides.hudi_writes(new)
    rows = after_upsert(rows, new)
    sides.agree(rows)
    new = rows.slice(0, 5).set_column(2, "ts", pc.add(rows.slice(0, 5)["ts"], 20))
    sides.we_write(new)
    sides.agree(after_upsert(rows, new))


def spark_types(sides: Sides) -> dict[str, str]:
    described = sides.hudi.sql("DESCRIBE seen", {"seen": sides.path})
    types = dict(zip(described["col_name"].to_pylist(), described["data_type"].to_pylist(), strict=True))
    return {name: kind for name, kind in types.items() if name in SPARK_TYPES}


def known_to(sides: Sides, rows: pa.Table) -> pa.Table:
    """Releases before 1.0 have no timestamps without zone."""
    return rows.drop_columns(["wall"]) if sides.hudi.version.startswith("0.") else rows
