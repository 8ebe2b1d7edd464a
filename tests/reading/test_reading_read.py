"""``hf.read`` without Spark: every query type, folders of partitions, partition columns from paths.

Modules: hudi_fast.api, hudi_fast.reading.read.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from tests.support.small_tables import OPTIONS, plain_rows

QUERY = "hoodie.datasource.query.type"
BEGIN = "hoodie.datasource.read.begin.instanttime"
FORMAT = "hoodie.datasource.query.incremental.format"
FROM_PATH = {"hoodie.datasource.read.extract.partition.values.from.path": "true"}
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}


@pytest.mark.slow
def test_a_read_returns_what_the_table_object_returns(tmp_path) -> None:
    path = tmp_path / "t"
    first = hf.write(plain_rows(range(20)), path, OPTIONS | MOR).instant
    hf.write(plain_rows(range(5), ts=2), path, OPTIONS)
    table = hf.HudiTable.open(path)
    assert hf.read(path).sort_by("id") == table.to_arrow().sort_by("id")
    some = hf.read(path, columns=["ts", "id"], filter="ts > 1 and part = 'p1'")
    assert some.sort_by("id") == table.to_arrow(["ts", "id"], "ts > 1 and part = 'p1'").sort_by("id")
    for time in ({"options": {"as.of.instant": first}}, {"as_of": first}):
        assert hf.read(path, **time, filter=pc.field("ts") > 1).num_rows == 0
    for kind in ({"options": {QUERY: "read_optimized"}}, {"query_type": "read_optimized"}):
        assert hf.read(path, **kind).num_rows == table.count(query_type="read_optimized")
    with pytest.raises(hf.ConfigError, match="contradicts the argument 'snapshot'"):
        hf.read(path, {QUERY: "incremental"}, query_type="snapshot")
    changed = hf.read(path, {QUERY: "incremental", BEGIN: table.history()["completion"][0].as_py()}, columns=["id"])
    assert sorted(changed["id"].to_pylist()) == [f"k{number:05}" for number in range(5)]
    assert hf.read(spark=None, path=path) == hf.read(None, path)


def test_changes_are_read_with_columns_and_filters(tmp_path) -> None:
    path = tmp_path / "t"
    hf.write(plain_rows(range(4)), path, {**OPTIONS, "hoodie.table.cdc.enabled": "true"})
    hf.HudiTable.open(path).delete("id = 'k00001'")
    changes = {QUERY: "incremental", FORMAT: "cdc", BEGIN: "earliest"}
    assert hf.read(path, changes).num_rows == 5
    deletes = hf.read(path, changes, columns=["after", "op"], filter="op = 'd'")
    assert deletes.to_pylist() == [{"after": "null", "op": "d"}]
    table, asked = hf.HudiTable.open(path), {"columns": ["after", "op"], "filter": pc.field("op") == "d"}
    assert table.cdc("earliest", **asked) == table.cdc_batches("earliest", **asked).read_all() == deletes
    for asked, said in (({"columns": ["fare"]}, "no column 'fare'"), ({"filter": "fare > 1"}, "fare")):
        with pytest.raises(hf.ConfigError, match=said):
            hf.read(path, changes, **asked)


@pytest.mark.slow(but="mor")
@pytest.mark.parametrize("more", [{}, HIVE, MOR | HIVE], ids=["plain", "hive", "mor"])
def test_a_folder_of_partitions_is_read_alone(tmp_path, more) -> None:
    path = tmp_path / "t"
    first = hf.write(plain_rows(range(20)), path, OPTIONS | more).instant
    hf.write(plain_rows(range(20), ts=2), path, OPTIONS)
    folder = path / ("part=p1" if HIVE.items() <= more.items() else "p1")
    expected = hf.read(path, filter="part = 'p1'").sort_by("id")
    assert expected.num_rows
    assert hf.read(folder).sort_by("id") == hf.read(f"{folder}/").sort_by("id") == expected
    assert hf.read(folder, {"as.of.instant": first}, filter="ts > 1").num_rows == 0
    changes = {QUERY: "incremental", BEGIN: "earliest"}
    for more in ({}, {FORMAT: "cdc"}):
        with pytest.raises(hf.ConfigError, match=r"incremental query reads a whole table, and (part=)?p1 is a folder"):
            hf.read(folder, changes | more)
    with pytest.raises(hf.TableNotFoundError):
        hf.read(path / "nothing")


def test_a_folder_is_a_whole_part_of_the_path(tmp_path) -> None:
    rows = pa.table({"id": ["a", "b", "c"], "day": ["1", "12", "1"], "hour": ["0", "0", "5"], "ts": [1, 1, 1]})
    fields = {**OPTIONS, "hoodie.datasource.write.partitionpath.field": "day,hour"}
    hf.write(rows, tmp_path / "t", {**fields, "hoodie.datasource.write.keygenerator.type": "COMPLEX"})
    assert sorted(hf.read(tmp_path / "t" / "1")["id"].to_pylist()) == ["a", "c"]
    assert hf.read(tmp_path / "t" / "1" / "5")["id"].to_pylist() == ["c"]


@pytest.mark.slow("cow")
@pytest.mark.parametrize("more", [{}, MOR], ids=["cow", "mor"])
def test_partition_columns_are_read_from_paths(tmp_path, more) -> None:
    """With a global index a row may stay in its folder when its partition column changes; the folder then counts."""
    path = tmp_path / "t"
    moved = {"hoodie.index.type": "GLOBAL_BLOOM", "hoodie.bloom.index.update.partition.path": "false"}
    hf.write(plain_rows(range(8)), path, OPTIONS | more | moved)
    changed = plain_rows(range(1, 2), ts=2)
    at = changed.column_names.index("part")
    hf.write(changed.set_column(at, "part", pa.array(["elsewhere"])), path, OPTIONS | moved)
    folders = {row["id"]: row["_hoodie_partition_path"] for row in hf.read(path).to_pylist()}
    for given in ({}, FROM_PATH):
        found = {row["id"]: row["part"] for row in hf.read(path, given, columns=["part", "id"]).to_pylist()}
        assert found == folders
    assert hf.read(path, FROM_PATH, filter="part = 'elsewhere'").num_rows == 0
    same = f"part = '{folders['k00001']}'"
    for columns in (["part"], ["part", "ts"], None):
        assert hf.read(path, FROM_PATH, columns=columns, filter=same).num_rows == 4
    assert hf.read(path, FROM_PATH, columns=["part"])["part"].to_pylist().count(folders["k00001"]) == 4


def test_a_path_that_does_not_give_its_columns_is_refused(tmp_path) -> None:
    rows = pa.table({"id": ["a"], "at": pa.array([0], pa.int64()), "ts": [1]})
    by_day = {
        "hoodie.datasource.write.partitionpath.field": "at",
        "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
    }
    hf.write(rows, tmp_path / "t", {**OPTIONS, **by_day})
    with pytest.raises(hf.UnsupportedFeatureError, match=r"'1970-01-01' of key generator TIMESTAMP does not give"):
        hf.read(tmp_path / "t", FROM_PATH)
    assert hf.read(tmp_path / "t", FROM_PATH, columns=["id"]).to_pylist() == [{"id": "a"}]


def test_the_session_is_given_once() -> None:
    with pytest.raises(TypeError, match="the Spark session twice"):
        hf.read(None, "t", spark=None)
