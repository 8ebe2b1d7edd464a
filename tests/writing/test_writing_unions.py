"""Columns that are unions of several types in Avro: structs in Arrow and in base files, unions in logs and schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.formats.log.blocks import HeaderKey
from tests.support.mor_tables import blocks_of, mor_options, newest_commit

POINT = pa.struct([("x", pa.int64())])
UNION = pa.struct([("member0", pa.int32()), ("member1", pa.string()), ("member2", POINT)])
SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("u", UNION)])


def one(**value: Any) -> dict[str, Any]:
    return {"member0": None, "member1": None, "member2": None, **value}


def rows(values: dict[str, Any], ts: int) -> pa.Table:
    return pa.Table.from_pylist(
        [{"id": key, "part": "p", "ts": ts, "u": value} for key, value in values.items()], schema=SCHEMA
    )


def union_type(schema: str) -> Any:
    (field,) = (each for each in json.loads(schema)["fields"] if each["name"] == "u")
    return [each["type"] if isinstance(each, dict) else each for each in field["type"]]


@pytest.mark.slow("6")
@pytest.mark.parametrize("version", ["6", "9"])
def test_unions_are_merged_compacted_and_read(version: str, tmp_path: Path) -> None:
    settings = mor_options(table_version=version)
    first = {"a": one(member0=1), "b": one(member1="x"), "c": None, "d": one(member2={"x": 5})}
    hf.write(rows(first, 1), tmp_path, settings)
    second = {"a": one(member2={"x": None}), "b": None, "c": one(member0=-7)}
    hf.write(rows(second, 2), tmp_path, settings)
    expected = {**first, **second}

    def stored() -> dict[str, Any]:
        found = hf.HudiTable.open(tmp_path).to_arrow().to_pylist()
        return {row["id"]: row["u"] for row in found}

    (block,) = blocks_of(tmp_path)
    assert union_type(block.headers[HeaderKey.SCHEMA]) == ["null", "int", "string", "record"]
    assert union_type(newest_commit(tmp_path)[1].extra_metadata["schema"]) == ["null", "int", "string", "record"]
    assert stored() == expected
    assert hf.HudiTable.open(tmp_path).services.compact().file_groups == 1
    assert stored() == expected


def test_a_log_refuses_two_values_at_once(tmp_path: Path) -> None:
    settings = mor_options()
    hf.write(rows({"a": one(member0=1)}, 1), tmp_path, settings)
    with pytest.raises(hf.InvalidDataError, match="'u' has 2 values"):
        hf.write(rows({"a": one(member0=1, member1="x")}, 2), tmp_path, settings)
    assert hf.HudiTable.open(tmp_path).to_arrow().column("u").to_pylist() == [one(member0=1)]
