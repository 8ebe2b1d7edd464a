"""Columns of a result: names in upper or lower case, and fields of structs, by every call that reads."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner

import hudi_fast as hf
from hudi_fast.cli.main import cli
from hudi_fast.reading.shown_columns import shown_columns
from tests.support.small_tables import options

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("userName", pa.string()),
        ("s", pa.struct([("x", pa.int64()), ("In", pa.struct([("z", pa.string())]))])),
        ("a.b", pa.int64()),
    ]
)
ASKED = ["ID", "USERNAME", "S.X", "s.IN.Z"]
ROWS = [
    {"ID": "1", "USERNAME": "ann", "X": 7, "Z": "deep"},
    {"ID": "2", "USERNAME": "bob", "X": None, "Z": None},
]


@pytest.mark.parametrize(
    ("name", "path", "shown"),
    [
        ("id", ("id",), "id"),
        ("Id", ("id",), "Id"),
        ("USERNAME", ("userName",), "USERNAME"),
        ("S.x", ("s", "x"), "x"),
        ("s.in.Z", ("s", "In", "z"), "Z"),
        ("A.B", ("a.b",), "A.B"),
    ],
)
def test_a_column_is_called_as_written(name: str, path: tuple[str, ...], shown: str) -> None:
    found = shown_columns([name], SCHEMA, "t")
    assert (found.paths, found.schema.names) == ((path,), [shown])
    assert found.is_plain == (name == "id")


def test_a_name_spelt_as_a_column_is_that_column() -> None:
    both = pa.schema([("v", pa.int64()), ("V", pa.string())])
    assert shown_columns(["V"], both, "t").schema == pa.schema([("V", pa.string())])
    assert shown_columns(["id"], SCHEMA, "t", exact=True).paths == (("id",),)


@pytest.mark.parametrize(
    ("columns", "exact", "message"),
    [
        (["nope"], False, r"t has no column 'nope'; it has \['id', 'userName', 's', 'a.b'\]"),
        (["s.y"], False, r"t has no column 's.y'"),
        (["userName.x"], False, r"t has no column 'userName.x'"),
        (["ID"], True, r"t has no column 'ID'"),
        (["s.X"], True, r"t has no column 's.X'"),
        (["id", "id"], False, r"columns names \['id'\] more than once"),
        (["s.x", "S.x"], False, r"columns names \['x'\] more than once"),
        ("id", False, r"columns takes a list of names; got the text 'id'"),
    ],
)
def test_other_names_are_refused(columns, exact, message) -> None:
    with pytest.raises(hf.ConfigError, match=message):
        shown_columns(columns, SCHEMA, "t", exact)


def test_a_name_between_two_columns_is_refused() -> None:
    both = pa.schema([("vV", pa.int64()), ("Vv", pa.string())])
    with pytest.raises(hf.ConfigError, match="'vV' and 'Vv' differ only in case"):
        shown_columns(["vv"], both, "t")


@pytest.fixture(scope="module", params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request, tmp_path_factory) -> hf.HudiTable:
    """Two rows, one of them updated: in the log of a MERGE_ON_READ table."""
    path = tmp_path_factory.mktemp("shown") / "t"
    kind = {"hoodie.datasource.write.table.type": request.param}
    inner = {"x": 7, "In": {"z": "deep"}}
    rows = pa.table({"id": ["1", "2"], "userName": ["old", "bob"], "ts": [1, 1], "s": [inner, None]})
    hf.write(rows, path, {**options(partition=None), **kind})
    opened = hf.HudiTable.open(path)
    opened.upsert(rows.slice(0, 1).set_column(1, "userName", pa.array(["ann"])))
    return opened


def of_cli(table: hf.HudiTable) -> pa.Table:
    answer = CliRunner().invoke(cli, ["read", table.path, "--columns", ",".join(ASKED), "--json"])
    return pa.Table.from_pylist([json.loads(line) for line in answer.output.splitlines()])


DOORS = {
    "to_arrow": lambda table: table.to_arrow(ASKED),
    "to_batches": lambda table: pa.Table.from_batches(table.to_batches(ASKED)),
    "to_pandas": lambda table: pa.Table.from_pandas(table.to_pandas(ASKED).astype({"X": "Int64"})),
    "to_polars": lambda table: table.to_polars(ASKED).to_arrow(),
    "lazy": lambda table: table.to_polars(ASKED, lazy=True).collect().to_arrow(),
    "to_duckdb": lambda table: table.to_duckdb(ASKED).to_arrow_table(),
    "scan": lambda table: pa.table(pickle.loads(pickle.dumps(table.scan(ASKED)))),
    "head": lambda table: table.head(2, ASKED),
    "incremental": lambda table: table.incremental("earliest", columns=ASKED),
    "read": lambda table: hf.read(table.path, columns=ASKED),
    "filtered": lambda table: table.to_arrow(ASKED, "TS = 1 and (s.X = 7 or S.x is null)"),
    "cli": of_cli,
}


@pytest.mark.slow("COPY_ON_WRITE-to_arrow")
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_every_read_takes_names_in_any_case_and_fields_of_structs(door, table) -> None:
    found = door(table)
    assert found.column_names == ["ID", "USERNAME", "X", "Z"]
    assert sorted(found.to_pylist(), key=lambda row: row["ID"]) == ROWS


@pytest.mark.slow("MERGE_ON_READ")
def test_a_scan_with_names_of_its_own_is_filtered_by_them_or_by_those_of_the_table(table) -> None:
    scan = table.scan(ASKED)
    assert scan.to_table(["Z"], pc.field("X") == 7).to_pylist() == [{"Z": "deep"}]
    assert scan.count_rows(pc.field("USERNAME") == "bob") == 1
    assert scan.count_rows(pc.field("userName") == "bob") == 1
    assert scan.head(5, filter=pc.field("X") == 7).num_rows == 1
    assert scan.filter("username = 'bob'").to_table(["ID"]).to_pylist() == [{"ID": "2"}]
    lazy = table.to_polars(ASKED, lazy=True).filter(pl.col("X") == 7).select("USERNAME")
    assert lazy.collect().to_dicts() == [{"USERNAME": "ann"}]
    assert table.to_duckdb(ASKED).filter("X = 7").project("Z").fetchall() == [("deep",)]
    with pytest.raises(hf.UnsupportedFeatureError, match="name the table's columns"):
        scan.filter(pc.field("X") == 7)


def test_columns_of_changes_are_in_any_case(tmp_path: Path) -> None:
    with_changes = {**options(partition=None), "hoodie.table.cdc.enabled": "true"}
    hf.write(pa.table({"id": ["1"], "ts": [1], "v": [1]}), tmp_path / "t", with_changes)
    found = hf.HudiTable.open(tmp_path / "t").cdc("earliest", columns=["OP", "After"])
    assert found.column_names == ["OP", "After"]
    assert found["OP"].to_pylist() == ["i"]
