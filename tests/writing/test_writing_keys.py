"""Tables with every key generator and layout of partitions: where rows go, and that they are found again."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from tests.support.small_tables import assert_tidy, options

SOURCE = pa.table(
    {
        "id": ["a", "b", "c", "d"],
        "sub": pa.array([1, 2, 3, 4], pa.int32()),
        "part": ["x y", "ü/é", "50%", None],
        "day": pa.array([dt.date(2024, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 1, 1), None], pa.date32()),
        "at": pa.array([1704067200000, 1704153600000, 1704067200000, 1704240000000], pa.int64()),
        "flag": [True, False, True, None],
        "ts": pa.array([1, 1, 1, 1], pa.int64()),
    }
)
HIVE = "hoodie.datasource.write.hive_style_partitioning"
ENCODE = "hoodie.datasource.write.partitionpath.urlencode"
GENERATOR = "hoodie.datasource.write.keygenerator.type"
TIMES = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM",
    "hoodie.keygen.timebased.timezone": "UTC",
}
NULL = "__HIVE_DEFAULT_PARTITION__"

CASES: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "simple": ({}, ["a", "b", "c", "d"], ["x y", "ü/é", "50%", NULL]),
    "hive style": ({HIVE: "true"}, ["a", "b", "c", "d"], ["part=x y", "part=ü/é", "part=50%", f"part={NULL}"]),
    "encoded": ({ENCODE: "true"}, ["a", "b", "c", "d"], ["x y", "ü%2Fé", "50%25", NULL]),
    "encoded hive style": (
        {HIVE: "true", ENCODE: "true"},
        ["a", "b", "c", "d"],
        ["part=x y", "part=ü%2Fé", "part=50%25", f"part={NULL}"],
    ),
    "not partitioned": (
        {"hoodie.datasource.write.partitionpath.field": None},
        ["a", "b", "c", "d"],
        ["", "", "", ""],
    ),
    "complex": (
        {
            "hoodie.datasource.write.recordkey.field": "id,sub",
            "hoodie.datasource.write.partitionpath.field": "day,flag",
        },
        ["id:a,sub:1", "id:b,sub:2", "id:c,sub:3", "id:d,sub:4"],
        ["2024-01-01/true", "1969-12-31/false", "2024-01-01/true", f"{NULL}/{NULL}"],
    ),
    "number as key": (
        {"hoodie.datasource.write.recordkey.field": "sub"},
        ["1", "2", "3", "4"],
        ["x y", "ü/é", "50%", NULL],
    ),
    "timestamp": (
        {"hoodie.datasource.write.partitionpath.field": "at", GENERATOR: "TIMESTAMP", **TIMES},
        ["a", "b", "c", "d"],
        ["2024/01"] * 4,
    ),
    "custom": (
        {"hoodie.datasource.write.partitionpath.field": "part:SIMPLE,at:TIMESTAMP", HIVE: "true", ENCODE: "true"}
        | {**TIMES, "hoodie.keygen.timebased.output.dateformat": "yyyyMMdd"},
        ["a", "b", "c", "d"],
        [
            "part=x y/at=20240101",
            "part=ü%2Fé/at=20240102",
            "part=50%25/at=20240101",
            f"part={NULL}/at=20240103",
        ],
    ),
}


def merged(changes: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in {**options(), **changes}.items() if value is not None}


@pytest.mark.slow(but="timestamp-9")
@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("case", CASES)
def test_rows_go_to_their_partitions_and_are_found_there_again(case: str, version: str, tmp_path: Path) -> None:
    changes, keys, places = CASES[case]
    settings = {**merged(changes), "hoodie.write.table.version": version}
    path = tmp_path / "t"
    assert hf.write(SOURCE, path, settings).inserts == 4
    opened = hf.HudiTable.open(path)
    stored = opened.to_arrow().sort_by("id")
    assert stored["_hoodie_record_key"].to_pylist() == keys
    assert stored["_hoodie_partition_path"].to_pylist() == places
    assert stored.select(SOURCE.column_names).equals(SOURCE)
    newer = SOURCE.set_column(SOURCE.column_names.index("ts"), "ts", pa.array([0, 1, 2, 3], pa.int64()))
    result = hf.write(newer, path, settings)
    assert (result.inserts, result.updates) == (0, 3)
    assert opened.to_arrow().sort_by("id")["ts"].to_pylist() == [1, 1, 2, 3]
    assert opened.delete(pc.field("id") == "b", merged(changes)).deletes == 1
    assert sorted(opened.to_arrow()["id"].to_pylist()) == ["a", "c", "d"]
    assert_tidy(path)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ["part", "day", "at", "flag", "id"])
def test_filters_find_the_same_rows_whatever_the_layout(case: str, name: str, tmp_path: Path) -> None:
    hf.write(SOURCE, tmp_path / "t", merged(CASES[case][0]))
    opened = hf.HudiTable.open(tmp_path / "t")
    for value in SOURCE[name].to_pylist():
        column, literal = pc.field(name), pa.scalar(value, SOURCE.schema.field(name).type)
        for filter_ in (
            column.is_null() if value is None else column == literal,
            column.is_valid() if value is None else column != literal,
        ):
            wanted = sorted(SOURCE.filter(filter_)["id"].to_pylist())
            assert sorted(opened.to_arrow(columns=["id"], filter=filter_)["id"].to_pylist()) == wanted, str(filter_)


@pytest.mark.slow(but="9")
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_table_without_meta_columns_finds_keys_by_their_fields(version: str, tmp_path: Path) -> None:
    settings = merged(
        {
            "hoodie.populate.meta.fields": "false",
            "hoodie.write.table.version": version,
            "hoodie.datasource.write.recordkey.field": "id,sub",
            "hoodie.datasource.write.partitionpath.field": "flag",
        }
    )
    hf.write(SOURCE, tmp_path / "t", settings)
    newer = SOURCE.slice(1, 2).set_column(6, "ts", pa.array([5, 0], pa.int64()))
    result = hf.write(newer, tmp_path / "t", settings)
    assert (result.inserts, result.updates) == (0, 1)
    opened = hf.HudiTable.open(tmp_path / "t")
    assert opened.schema.names == SOURCE.column_names
    assert opened.to_arrow().column_names == SOURCE.column_names
    assert dict(zip(opened.to_arrow()["id"].to_pylist(), opened.to_arrow()["ts"].to_pylist(), strict=True)) == {
        "a": 1,
        "b": 5,
        "c": 1,
        "d": 1,
    }
    for file in (tmp_path / "t").glob("*/*.parquet"):
        names = pq.read_schema(file).names
        assert names[5:] == SOURCE.column_names
        assert pq.read_table(file, partitioning=None).column(2).null_count == pq.read_metadata(file).num_rows
        assert b"org.apache.hudi.bloomfilter" not in pq.read_metadata(file).metadata


@pytest.mark.slow("true")
@pytest.mark.parametrize("hive_style", ["true", "false"])
def test_partition_columns_may_stay_out_of_the_files(hive_style: str, tmp_path: Path) -> None:
    settings = merged({"hoodie.datasource.write.drop.partition.columns": "true", HIVE: hive_style, ENCODE: "true"})
    hf.write(SOURCE, tmp_path / "t", settings)
    opened = hf.HudiTable.open(tmp_path / "t")
    for file in (tmp_path / "t").glob("*/*.parquet"):
        assert "part" not in pq.read_schema(file).names
    newer = SOURCE.slice(2).set_column(6, "ts", pa.array([0, 5], pa.int64()))
    result = hf.write(newer, tmp_path / "t", settings)
    assert (result.inserts, result.updates) == (0, 1)
    rows = opened.to_arrow(columns=["id", "part", "ts"]).sort_by("id")
    assert rows["part"].to_pylist() == ["x y", "ü/é", "50%", None]
    assert rows["ts"].to_pylist() == [1, 1, 1, 5]
    found = opened.to_arrow(columns=["id"], filter=pc.field("part") == "50%")
    assert found["id"].to_pylist() == ["c"]
    assert opened.delete(pc.field("part") == "x y").deletes == 1
    assert opened.to_arrow().num_rows == 3


@pytest.mark.slow
def test_keys_are_made_up_where_no_key_column_is_named(tmp_path: Path) -> None:
    settings = merged({"hoodie.datasource.write.recordkey.field": None})
    first = hf.write(SOURCE, tmp_path / "t", settings)
    assert first.operation == "bulk_insert"
    second = hf.write(SOURCE, tmp_path / "t", {**settings, "hoodie.datasource.write.operation": "insert"})
    opened = hf.HudiTable.open(tmp_path / "t")
    keys = opened.to_arrow()["_hoodie_record_key"].to_pylist()
    assert len(set(keys)) == len(keys) == 8
    assert {key.split("_")[0] for key in keys} == {first.instant, second.instant}
    with pytest.raises(hf.ConfigError, match="generates its record keys"):
        opened.upsert(SOURCE)
    assert opened.insert_overwrite(SOURCE.slice(0, 1)).inserts == 1
    assert opened.to_arrow().num_rows == 7
    assert opened.delete_partitions(["x y"]).instant > second.instant
    assert opened.to_arrow().num_rows == 6
    gone = opened.to_arrow()["id"][0].as_py()
    left = [one for one in opened.to_arrow()["id"].to_pylist() if one != gone]
    assert opened.delete(pc.field("id") == gone).deletes == 6 - len(left)
    assert opened.to_arrow()["id"].to_pylist() == left


@pytest.mark.slow
def test_partitions_are_deleted_by_path_and_by_star_alone(tmp_path: Path) -> None:
    names = ["a", "ab", "b", "a[b]", "a?", "*", "a.b"]
    rows = pa.table({"id": names, "part": names, "ts": [1] * len(names)})
    for pattern, gone in {
        "a": {"a"},
        "a*": {"a", "ab", "a[b]", "a?", "a.b"},
        "a?": {"a?"},
        "a[b]": {"a[b]"},
        "a.b": {"a.b"},
        "A": set(),
        "*": set(names),
        "zz": set(),
    }.items():
        path = tmp_path / f"t{len(list(tmp_path.iterdir()))}"
        hf.write(rows, path, options())
        opened = hf.HudiTable.open(path)
        opened.delete_partitions([pattern])
        assert set(opened.to_arrow()["id"].to_pylist()) == set(names) - gone, pattern
        assert_tidy(path)
