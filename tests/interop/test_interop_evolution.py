"""Columns altered by either side: real Hudi reads and writes on after our ALTER, and we after its."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from tests.peer.client import PeerError, RealHudi

LONG = pytest.mark.long
TABLES = [
    ("hudi_12", 9, "MERGE_ON_READ"),
    pytest.param("hudi_12", 9, "COPY_ON_WRITE", marks=LONG),
    pytest.param("hudi_015", 6, "MERGE_ON_READ", marks=LONG),
    pytest.param("hudi_015", 6, "COPY_ON_WRITE", marks=LONG),
]
SET = (
    "set hoodie.schema.on.read.enable=true",
    "set hoodie.datasource.write.schema.allow.auto.evolution.column.drop=true",
    # Its vectorised reader refuses nested columns that were altered, and says to turn it off.
    "set spark.sql.parquet.enableVectorizedReader=false",
    # It cannot merge statistics of a column that was a number and is text now.
    "set hoodie.metadata.enable=false",
    "set hoodie.compact.inline=false",
)
STRUCT = pa.struct([("x", pa.int32()), ("y", pa.string())])


@pytest.fixture(autouse=True)
def settings_end_with_a_test(peers: list[RealHudi]) -> Iterator[None]:
    """What a test sets in the session of a peer would change the answers to others."""
    yield
    for peer in peers:
        peer.sql("RESET")


def rows(first: int, last: int, ts: int, **columns: Any) -> pa.Table:
    numbers = range(first, last)
    keys = {"id": [f"k{n}" for n in numbers], "part": [f"p{n % 2}" for n in numbers]}
    return pa.table({**keys, "ts": pa.array([ts] * len(numbers), pa.int64()), **columns})


def small(first: int, last: int, ts: int) -> pa.Table:
    numbers = list(range(first, last))
    return rows(
        first,
        last,
        ts,
        a=pa.array(numbers, pa.int32()),
        gone=[f"g{n}" for n in numbers],
        d=pa.array(numbers, pa.int32()).cast(pa.date32()),
        s=pa.array([{"x": n, "y": f"y{n}"} for n in numbers], STRUCT),
    )


def options(kind: str, version: int) -> dict[str, Any]:
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.hive_style_partitioning": True,
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.table.version": version,
        "hoodie.metadata.enable": False,
        "hoodie.compact.inline": False,
    }


def by_key(table: pa.Table) -> list[dict[str, Any]]:
    names = [name for name in table.column_names if not name.startswith("_hoodie")]
    return list(table.select(sorted(names)).sort_by("id").to_pylist())


@pytest.mark.smoke("hudi_12-9-MERGE_ON_READ")
@pytest.mark.parametrize(("peer", "version", "kind"), TABLES)
def test_both_sides_alter_and_write_in_turns(
    peer: str, version: int, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    hudi: RealHudi = request.getfixturevalue(peer)
    path, name = tmp_path / "t", f"t_{peer}_{kind}".lower()
    asked = options(kind, version)
    hf.write(small(0, 6, 1), path, asked)
    table = hf.HudiTable.open(path)

    def agree() -> list[dict[str, Any]]:
        ours, theirs = by_key(table.to_arrow()), by_key(hudi.read(path, {"hoodie.schema.on.read.enable": "true"}))
        assert ours == theirs
        return ours

    table.alter(
        hf.RenameColumn("a", "aa"),
        hf.DropColumn("gone"),
        hf.AddColumn("e", pa.int32(), comment="new", after="ts"),
        hf.RenameColumn("s.x", "xx"),
        hf.ChangeType("d", pa.string()),
    )
    table.alter(hf.AddColumn("gone", pa.string()), hf.ChangeType("aa", pa.int64()))
    for statement in (*SET, f"create table {name} using hudi location '{path}'"):
        hudi.sql(statement)
    found = agree()
    assert found[1] == {
        "id": "k1",
        "part": "p1",
        "ts": 1,
        "aa": 1,
        "d": "1970-01-02",
        "e": None,
        "gone": None,
        "s": {"xx": 1, "y": "y1"},
    }
    # Hudi writes on: what it rewrites has the columns of today, and it keeps the history.
    hudi.sql(f"update {name} set gone = 'back', e = 7, ts = 2 where id in ('k1', 'k2')")
    found = agree()
    assert (found[1]["gone"], found[1]["aa"], found[3]["gone"]) == ("back", 1, None)
    # Hudi alters, and we write on.
    hudi.sql(f"alter table {name} rename column e to ee")
    hudi.sql(f"alter table {name} drop column gone")
    hudi.sql(f"alter table {name} add columns (gone bigint)")
    assert {"ee", "gone"} <= set(table.schema.names)
    found = agree()
    assert (found[1]["ee"], found[1]["gone"]) == (7, None)
    struct = table.schema.field("s").type
    new = rows(
        4,
        8,
        3,
        ee=pa.array([1, 2, 3, 4], pa.int32()),
        aa=pa.array([2**40] * 4),
        d=["x"] * 4,
        s=pa.array([{"xx": 5, "y": "z"}] * 4, struct),
        gone=pa.array([8] * 4, pa.int64()),
        added=[0.5] * 4,
    )
    table.upsert(new, asked)
    found = agree()
    assert (found[5]["added"], found[5]["gone"], found[1]["added"]) == (0.5, 8, None)
    # Each side alters once more on top of what the other wrote; what we compact or rewrite has the newest names.
    hudi.sql(f"alter table {name} rename column added to more")
    table.alter(hf.RenameColumn("s", "st"), hf.MoveColumn("more", after="id"))
    found = agree()
    assert (found[5]["more"], found[5]["st"], found[0]["st"]) == (0.5, {"xx": 5, "y": "z"}, {"xx": 0, "y": "y0"})
    if kind == "MERGE_ON_READ":
        table.services.compact({"hoodie.metadata.enable": False})
        assert agree() == found
    hudi.sql(f"delete from {name} where id = 'k0'")
    assert len(agree()) == 7
    as_of = table.history()["instant"].to_pylist()[0]
    assert by_key(table.to_arrow(as_of=as_of)) == by_key(small(0, 6, 1))


@LONG
def test_what_hudi_refuses_to_alter_is_refused_here_too(hudi_12: RealHudi, tmp_path: Path) -> None:
    path = tmp_path / "t"
    hf.write(small(0, 2, 1), path, options("COPY_ON_WRITE", 9))
    table = hf.HudiTable.open(path)
    for statement in (*SET, f"create table refused using hudi location '{path}'"):
        hudi_12.sql(statement)
    changes = {
        "rename column id to id2": hf.RenameColumn("id", "id2"),
        "rename column ts to ts2": hf.RenameColumn("ts", "ts2"),
        "rename column part to part2": hf.RenameColumn("part", "part2"),
        "drop column ts": hf.DropColumn("ts"),
        "rename column a to gone": hf.RenameColumn("a", "gone"),
        "rename column a to GONE": hf.RenameColumn("a", "GONE"),
        "add columns (a int)": hf.AddColumn("a", pa.int32()),
        "add columns (s.x int)": hf.AddColumn("s.x", pa.int32()),
        "add columns (n.x int)": hf.AddColumn("n.x", pa.int32()),
        "alter column a type date": hf.ChangeType("a", pa.date32()),
        "alter column d type int": hf.ChangeType("d", pa.int32()),
        "drop column nothing": hf.DropColumn("nothing"),
    }
    for statement, change in changes.items():
        with pytest.raises(PeerError):
            hudi_12.sql(f"alter table refused {statement}")
        with pytest.raises((hf.ConfigError, hf.SchemaMismatchError)):
            table.alter(change)
    assert by_key(table.to_arrow()) == by_key(small(0, 2, 1))
