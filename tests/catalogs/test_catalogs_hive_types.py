"""Avro types as Hive types and as Spark's schema."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hudi_fast.catalogs.entries import TypeRules, hive_type, spark_schema
from hudi_fast.errors import UnsupportedFeatureError

NEW, OLD = TypeRules(), TypeRules(is_old=True)
DECIMAL = {"type": "fixed", "name": "f", "size": 6, "logicalType": "decimal", "precision": 12, "scale": 3}
POINT = {"type": "record", "name": "p", "fields": [{"name": "X-y$", "type": "int"}, {"name": "z", "type": DECIMAL}]}
LOGICAL = [
    ({"type": "int", "logicalType": "date"}, "date", "date"),
    ({"type": "long", "logicalType": "timestamp-micros"}, "timestamp", "timestamp"),
    ({"type": "long", "logicalType": "local-timestamp-millis"}, "timestamp", "timestamp_ntz"),
    ({"type": "long", "logicalType": "time-micros"}, "bigint", "long"),
    (DECIMAL, "decimal(12,3)", "decimal(12,3)"),
]
PLAIN = [
    ("boolean", "boolean", "boolean"),
    ("int", "int", "integer"),
    ("long", "bigint", "long"),
    ("float", "float", "float"),
    ("double", "double", "double"),
    ("string", "string", "string"),
    ("bytes", "binary", "binary"),
    ({"type": "enum", "name": "e", "symbols": ["a"]}, "string", "string"),
]


def spark_type(avro: Any, rules: TypeRules = NEW) -> Any:
    return json.loads(spark_schema([{"name": "a", "type": avro}], rules))["fields"][0]["type"]


@pytest.mark.parametrize(("avro", "hive", "spark"), [*PLAIN, *LOGICAL])
def test_type_of_a_column(avro: Any, hive: str, spark: str) -> None:
    assert hive_type(avro, NEW) == hive_type(["null", avro], NEW) == hive
    assert spark_type(avro) == spark_type([avro, "null"]) == spark


@pytest.mark.parametrize("avro", [LOGICAL[1][0], LOGICAL[2][0]])
def test_timestamps_may_be_numbers(avro: Any) -> None:
    assert hive_type(avro, TypeRules(has_timestamps=False)) == "bigint"


def test_nested_types() -> None:
    avro = {"type": "map", "values": ["null", {"type": "array", "items": ["null", POINT]}]}
    assert hive_type(avro, NEW) == "map<string,array<struct<x_y_dollar_:int,z:decimal(12,3)>>>"
    assert spark_type(avro) == {
        "type": "map",
        "keyType": "string",
        "valueType": {
            "type": "array",
            "elementType": json.loads(spark_schema(POINT["fields"], NEW)),
            "containsNull": True,
        },
        "valueContainsNull": True,
    }


def test_spark_schema_is_the_text_of_apache_hudi() -> None:
    assert spark_schema([{"name": "é", "type": ["null", {"type": "array", "items": "int"}]}], NEW) == (
        '{"type":"struct","fields":[{"name":"é","type":{"type":"array", "elementType":"integer","containsNull":false},'
        '"nullable":true,"metadata":{}}]}'
    )


def test_union_of_several_types_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r'no type for the Avro union \["int", "string"\]'):
        hive_type(["int", "string"], NEW)


def test_rules_of_old_tables() -> None:
    local = LOGICAL[2][0]
    assert (hive_type(local, OLD), spark_type(local, OLD)) == ("bigint", "long")
    assert spark_type({"type": "array", "items": ["null", "int"]}, OLD)["containsNull"] is False
    assert spark_type({"type": "map", "values": ["null", "int"]}, OLD)["valueContainsNull"] is True
