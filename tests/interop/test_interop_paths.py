"""Paths and schemas of reads as Apache Hudi takes them: folders of partitions, patterns, columns from paths.

Modules: hudi_fast.reading.read, hudi_fast.spark_api.dropin.tables.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.spark.arrow import collect
from tests.peer.client import PeerError
from tests.support.kept_rows import FROM_PATHS, VALUES, write_kept_values
from tests.support.rows import assert_same_rows

W = "hoodie.datasource.write."
OPTIONS = {
    "hoodie.table.name": "t",
    f"{W}recordkey.field": "id",
    f"{W}precombine.field": "ts",
    f"{W}partitionpath.field": "region,day",
    f"{W}keygenerator.type": "COMPLEX",
    "hoodie.metadata.enable": "false",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.compact.inline": "false",
}
PATHS = "hoodie.datasource.read.paths"
FROM_PATH = {"hoodie.datasource.read.extract.partition.values.from.path": "true"}
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int32()),
        "region": ["a", "a", "b", "ab"],
        "day": pa.array([10, 20, 10, 10], pa.int32()),
        "fare": [1.5, 2.5, 3.5, 4.5],
        "ts": [7, 8, 9, 10],
    }
)


@pytest.mark.parametrize(("kind", "hive"), [("COPY_ON_WRITE", True), ("MERGE_ON_READ", False)])
def test_folders_and_columns_from_paths_are_read_alike(hudi_12, tmp_path, kind, hive) -> None:
    path = tmp_path / "t"
    options = {**OPTIONS, f"{W}table.type": kind, f"{W}hive_style_partitioning": hive}
    hf.write(ROWS, path, options)
    hudi_12.write(ROWS.slice(0, 1).set_column(3, "fare", pa.array([100.0])), path, options)
    folder = path / ("region=a" if hive else "a")
    for place in (path, folder, folder / ("day=10" if hive else "10")):
        for more in ({}, FROM_PATH):
            theirs = hudi_12.read(place, more)
            assert_same_rows(hf.read(place, more), theirs.select(hf.read(place).column_names), key=["id"])
    assert hf.read(folder).num_rows == 2
    changed = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": hf.HudiTable.open(path).history()["completion"][0].as_py(),
    }
    other = path / ("region=b" if hive else "b")
    assert hudi_12.read(other, changed)["region"].to_pylist() == ["a"]  # Hudi forgets the folder
    with pytest.raises(hf.ConfigError, match="An incremental query reads a whole table"):
        hf.read(other, changed)
    for asked in ({"path": path / "*"}, {"path": path, "options": {PATHS: str(folder)}}):
        with pytest.raises(PeerError, match="Glob paths are not supported for read paths"):
            hudi_12.read(**asked)
        with pytest.raises(hf.HudiError, match=r"as in Apache Hudi 1\.2|Apache Hudi 1\.2 refuses it, too"):
            hf.read(**asked)


def test_a_schema_means_the_same(hudi_12, spark, tmp_path) -> None:
    path = tmp_path / "t"
    hudi_12.write(ROWS, path, OPTIONS)
    session = spark.newSession()
    hf.accelerate(session)
    for asked in (
        "fare double, id int, region string, day int",
        "id long, region string, day int, nothing double",
        "ID int, region string, day int",
        "_hoodie_record_key string, id string, fare decimal(10,2), region string, day int",
    ):
        ours = session.read.format("hudi").schema(asked).load(str(path))
        theirs = hudi_12.read(path, schema=asked)
        assert ours.columns == theirs.column_names
        assert_same_rows(collect(ours), theirs, key=[next(name for name in ours.columns if name.lower() == "id")])
    with pytest.raises(hf.SchemaMismatchError, match="asks for ts as int"):
        session.read.format("hudi").schema("id int, ts int, region string, day int").load(str(path))


@pytest.mark.parametrize("hive", [True, False])
def test_stored_values_that_differ_from_their_folders_are_read_alike(hudi_12, tmp_path, hive) -> None:
    for type_ in FROM_PATHS:
        style = {f"{W}hive_style_partitioning": hive, f"{W}partitionpath.urlencode": type_ == "string"}
        path = tmp_path / type_
        write_kept_values(path, type_, "COPY_ON_WRITE", 9, **style)
        ours, theirs = (
            {row["id"]: row["part"] for row in rows.to_pylist()} for rows in (hf.read(path), hudi_12.read(path))
        )
        if type_ == "string":  # Hudi shows null for the empty string of that folder, too
            assert theirs.pop("k2") is None
            assert ours.pop("k2") == VALUES[type_][1][0]
        assert ours == theirs, type_
