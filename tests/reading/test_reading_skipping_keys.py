"""Record keys that follow from a filter."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow.compute import field

from hudi_fast.config.table_config import TableConfig
from hudi_fast.expressions.arrow_filters import parse_filter
from hudi_fast.expressions.conditions import Column
from hudi_fast.reading.skipping.keys import record_key_texts, wanted_values

SCHEMA = pa.schema({"_hoodie_record_key": pa.string(), "id": pa.string(), "n": pa.int32(), "x": pa.float64()})


def config(keys: str, **more: str) -> TableConfig:
    properties = {
        "hoodie.table.name": "t",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": "9",
        "hoodie.table.recordkey.fields": keys,
        **more,
    }
    return TableConfig.from_properties(properties, "/t")


def keys_of(filter_: pc.Expression, table: TableConfig) -> list[str] | None:
    found = record_key_texts(parse_filter(filter_), SCHEMA, table)
    return None if found is None else sorted(found.to_pylist())


@pytest.mark.parametrize(
    ("filter_", "expected"),
    [
        (field("n") == 7, [7]),
        (pc.scalar(7) == field("n"), [7]),
        (field("n").isin([7, 8]) & (field("x") > 1), [7, 8]),
        (field("n") > 7, None),
        ((field("n") == 7) | (field("x") > 1), None),
        (field("x") == 7.0, None),
    ],
)
def test_values_of_a_column_are_those_that_it_is_compared_with(
    filter_: pc.Expression, expected: list[int] | None
) -> None:
    name = "x" if "x == " in str(filter_) else "n"
    found = wanted_values(parse_filter(filter_), SCHEMA, Column((name,)))
    assert (None if found is None else found.to_pylist()) == expected


def test_a_key_of_one_column_has_both_formats() -> None:
    complex_key = config("id", **{"hoodie.table.keygenerator.type": "COMPLEX"})
    assert keys_of(field("id") == "a", complex_key) == ["a", "id:a"]
    assert keys_of(field("id") == "a", config("id")) == ["a"]
    assert keys_of(field("_hoodie_record_key") == "a", config("id")) == ["a"]


def test_a_key_of_several_columns_needs_all_of_them() -> None:
    table = config("id,n", **{"hoodie.table.keygenerator.type": "COMPLEX"})
    wanted = (field("id").isin(["a", "b"])) & (field("n") == 7)
    assert keys_of(wanted, table) == ["id:a,n:7", "id:b,n:7"]
    assert keys_of(field("id") == "a", table) is None


NESTED = pa.schema(
    {
        "place": pa.struct({"city": pa.string(), "at": pa.struct({"zip": pa.int64()})}),
        "price": pa.decimal128(9, 2),
        "day": pa.date32(),
        "moment": pa.timestamp("us", "UTC"),
    }
)


@pytest.mark.parametrize(
    ("filter_", "keys", "expected"),
    [
        (field("price") == Decimal("1.5"), "price", ["1.50"]),
        (field("price") == Decimal("1.501"), "price", None),
        (field("day") == date(2024, 1, 2), "day", ["2024-01-02"]),
        (field("moment") == datetime(2024, 1, 2, tzinfo=UTC), "moment", None),
        (field("place", "city") == "Oslo", "place.city", ["Oslo"]),
        (
            (field("place", "city") == "Oslo") & (field("place", "at", "zip") == 7),
            "place.city,place.at.zip",
            ["place.city:Oslo,place.at.zip:7"],
        ),
    ],
)
def test_keys_of_other_types_and_of_fields_of_structs(
    filter_: pc.Expression, keys: str, expected: list[str] | None
) -> None:
    kind = {"hoodie.table.keygenerator.type": "COMPLEX"} if "," in keys else {}
    found = record_key_texts(parse_filter(filter_), NESTED, config(keys, **kind))
    assert (None if found is None else found.to_pylist()) == expected


def test_too_many_keys_are_not_looked_up() -> None:
    many = [f"k{number}" for number in range(10_001)]
    assert keys_of(field("id").isin(many), config("id")) is None
    assert keys_of(field("id").isin(pa.array([], pa.string())), config("id")) == []
