"""Partitions by the values of their columns."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import ConfigError
from hudi_fast.reading.prune import partitions_of_clause

PATHS = ["day=1/city=Oslo", "day=1/city=a%2Fb", "day=2/city=Oslo", "day=2/city=__HIVE_DEFAULT_PARTITION__"]


def config(**more: str) -> TableConfig:
    given = {
        "hoodie.table.name": "t",
        "hoodie.table.version": "9",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.partition.fields": "day,city",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
        **more,
    }
    return TableConfig.from_properties(given, "t")


@pytest.mark.parametrize(
    ("clause", "found"),
    [
        ({}, PATHS),
        ({"day": None, "CITY": None}, PATHS),
        ({"Day": "1"}, PATHS[:2]),
        ({"day": "1", "city": "a/b"}, PATHS[1:2]),
        ({"city": "Oslo", "day": None}, [PATHS[0], PATHS[2]]),
        ({"city": "null"}, PATHS[3:]),
        ({"day": "3"}, []),
    ],
)
def test_a_clause_names_partitions_by_their_values(clause: dict[str, str | None], found: list[str]) -> None:
    values: dict[str, Any] = {"1": 1, "3": 3, "null": None}
    assert partitions_of_clause(config(), PATHS, clause, lambda text: values.get(text, text), "t") == found


def test_values_without_names_and_truth_values() -> None:
    plain = {"hoodie.datasource.write.hive_style_partitioning": "false"}
    paths = ["true/x", "false/x", "true/x/y"]
    assert partitions_of_clause(config(**plain), paths, {"day": "t"}, lambda _: True, "t") == ["true/x"]


def test_other_columns_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"The table db\.t is partitioned by \['day', 'city'\], not by \['hour'\]"):
        partitions_of_clause(config(), PATHS, {"hour": None}, str, "db.t")
