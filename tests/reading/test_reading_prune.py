"""Partitions pruned by their paths, and row groups by their statistics."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.compute import field

from hudi_fast.config.table_config import TableConfig
from hudi_fast.reading.prune import (
    matching_partitions,
    matching_row_groups,
    partition_columns,
    typed_partition_values,
)
from hudi_fast.storage.base import Storage

SCHEMA = pa.schema({"day": pa.date32(), "city": pa.string(), "n": pa.int64(), "cents": pa.decimal128(9, 2)})


def config(fields: str, **more: str) -> TableConfig:
    properties = {
        "hoodie.table.name": "t",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": "9",
        "hoodie.table.recordkey.fields": "id",
        "hoodie.table.partition.fields": fields,
        **more,
    }
    return TableConfig.from_properties(properties, "/t")


@pytest.mark.parametrize(
    ("fields", "partition", "more", "expected"),
    [
        ("day", "2024-01-02", {}, {"day": date(2024, 1, 2)}),
        (
            "city,n",
            "city=Rome/n=7",
            {"hoodie.datasource.write.hive_style_partitioning": "true"},
            {"city": "Rome", "n": 7},
        ),
        ("city", "__HIVE_DEFAULT_PARTITION__", {}, {}),
        ("n", "__HIVE_DEFAULT_PARTITION__", {}, {"n": None}),
        ("n", "default", {"hoodie.table.version": "4"}, {"n": None}),
        ("cents", "-1.50", {}, {"cents": Decimal("-1.50")}),
        ("city", "2024/01/02", {}, {}),
        ("n", "seven", {}, {}),
        ("other", "x", {}, {}),
        ("day", "2024-01-02", {"hoodie.table.keygenerator.type": "TIMESTAMP"}, {}),
    ],
)
def test_values_follow_from_unambiguous_paths(
    fields: str, partition: str, more: dict[str, str], expected: dict[str, Any]
) -> None:
    found = typed_partition_values(config(fields, **more), SCHEMA, partition)
    assert {name: value.as_py() for name, value in found.items()} == expected
    columns = partition_columns(config(fields, **more), SCHEMA, [partition])
    assert {name: values[0].as_py() for name, values in columns.items() if values[0].is_valid} == {
        name: value for name, value in expected.items() if value is not None
    }


def test_the_values_of_many_paths_are_typed_as_columns() -> None:
    found = partition_columns(config("n,city"), SCHEMA, ["7/Rome", "seven/Oslo", "8", "9/__HIVE_DEFAULT_PARTITION__"])
    assert found["n"].equals(pa.array([7, None, None, 9], pa.int64()))
    assert found["city"].equals(pa.array(["Rome", "Oslo", None, None]))


def test_partitions_that_cannot_match_are_left_out() -> None:
    paths = ["2024-01-01", "2024-01-02", "__HIVE_DEFAULT_PARTITION__"]
    table = config("day")
    assert matching_partitions(table, SCHEMA, paths, field("day") > date(2024, 1, 1)) == paths[1:2]
    assert matching_partitions(table, SCHEMA, paths, field("day").is_null()) == paths[2:]
    texts = ["a", "b", "__HIVE_DEFAULT_PARTITION__"]  # the empty string is in the folder of null
    assert matching_partitions(config("city"), SCHEMA, texts, field("city") < "b") == ["a", texts[2]]
    assert matching_partitions(table, SCHEMA, paths, field("n") == 1) == paths
    assert matching_partitions(table, SCHEMA, paths, None) == paths
    assert matching_partitions(config(""), SCHEMA, [""], field("n") == 1) == [""]


def test_row_groups_that_cannot_match_are_left_out(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": range(12)}), tmp_path / "f.parquet", row_group_size=4)
    storage = Storage(tmp_path)
    assert matching_row_groups(storage, "f.parquet", field("n") > 6, {}) == [1, 2]
    assert matching_row_groups(storage, "f.parquet", field("n") > 100, {}) == []
    for filter_ in (None, field("other") > 6):
        assert matching_row_groups(storage, "f.parquet", filter_, {}) is None
    assert matching_row_groups(storage, "missing.parquet", field("n") > 6, {}) is None


def test_row_groups_are_chosen_by_the_value_of_the_path_and_not_by_the_stored_one(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": range(8), "p": ["there"] * 8}), tmp_path / "f.parquet", row_group_size=4)
    here = {"p": pa.scalar("here")}
    for filter_, groups in (
        (field("p") == "here", [0, 1]),
        (field("p") == "there", []),
        ((field("p") == "here") & (field("n") > 4), [1]),
        ((field("p") == "there") | (field("n") > 4), [1]),
        ((field("p") > "here") | (field("n") < 2), [0]),
        (field("p").is_null(), []),
    ):
        assert matching_row_groups(Storage(tmp_path), "f.parquet", filter_, here) == groups
    assert matching_row_groups(
        Storage(tmp_path), "f.parquet", field("p").is_null(), {"p": pa.scalar(None, pa.string())}
    ) == [0, 1]
