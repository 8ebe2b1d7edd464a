"""Index definitions as Apache Hudi writes them, and as it reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError
from hudi_fast.metadata_table.layout import (
    DEFINITIONS_PATH,
    IndexDefinition,
    index_version,
    load_definitions,
    save_definitions,
)
from hudi_fast.storage.base import Storage


def config_of(storage: Storage, **more: str) -> TableConfig:
    stored = {key.replace("_", "."): value for key, value in more.items()}
    return TableConfig.from_properties({**load_properties(storage), **stored}, storage.uri)


def test_the_definitions_of_apache_hudi_are_read(golden):
    storage = Storage(golden("mor_v9_secondary_index").table)
    found = load_definitions(storage, config_of(storage))
    assert set(found) == {"record_index", "column_stats", "secondary_index_idx_name", "expr_index_idx_day"}
    assert found["record_index"].options == {"isPartitioned": "false"}
    assert found["column_stats"].source_fields[-2:] == ("amount", "qty")
    assert found["secondary_index_idx_name"] == IndexDefinition(
        "secondary_index_idx_name", "secondary_index", "identity", ("name",), {}, "V2"
    )
    day = found["expr_index_idx_day"]
    assert (day.kind, day.function, day.options["format"]) == ("column_stats", "from_unixtime", "yyyy-MM-dd")


def test_what_is_saved_is_what_apache_hudi_had_written(golden):
    table = golden("mor_v9_secondary_index").table
    storage = Storage(table)
    before = json.loads((table / DEFINITIONS_PATH).read_text())
    sidecar = table / ".hoodie/.index_defs/.index.json.crc"
    sidecar.write_bytes(b"old")
    config = config_of(storage)
    save_definitions(storage, config, load_definitions(storage, config))
    assert json.loads((table / DEFINITIONS_PATH).read_text()) == before
    assert not sidecar.exists()


def test_a_table_without_definitions_has_none(golden):
    storage = Storage(golden("h015_cow").table)
    assert load_definitions(storage, config_of(storage)) == {}


def test_the_properties_say_where_definitions_are(golden):
    storage = Storage(golden("h015_cow").table)
    config = config_of(storage, hoodie_table_index_defs_path=f"{storage.uri}/.hoodie/elsewhere.json")
    one = IndexDefinition("column_stats", "column_stats", "column_stats", ("a",))
    save_definitions(storage, config, {"column_stats": one})
    assert storage.exists(".hoodie/elsewhere.json")
    assert load_definitions(storage, config) == {"column_stats": one}


def test_a_path_outside_the_table_is_refused(golden):
    storage = Storage(golden("h015_cow").table)
    with pytest.raises(CorruptTableError, match="leaves the table"):
        load_definitions(storage, config_of(storage, hoodie_table_index_defs_path="../index.json"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"indexDefinitions": {"x": {}}}',
        '{"indexDefinitions": {"x": {"indexType": 1, "sourceFields": 3}}}',
    ],
)
def test_a_file_that_makes_no_sense_is_an_error_that_names_it(golden, text):
    table: Path = golden("cow_v9_mixed", own=True).table
    (table / DEFINITIONS_PATH).write_text(text)
    storage = Storage(table)
    with pytest.raises(CorruptTableError, match=r"index\.json"):
        load_definitions(storage, config_of(storage))


@pytest.mark.parametrize(
    ("partition", "version", "expected"),
    [
        ("column_stats", 6, "V1"),
        ("column_stats", 8, "V1"),
        ("column_stats", 9, "V2"),
        ("partition_stats", 9, "V2"),
        ("secondary_index_a", 8, "V1"),
        ("secondary_index_a", 9, "V2"),
        ("expr_index_a", 9, "V2"),
        ("record_index", 9, "V1"),
        ("files", 9, "V1"),
        ("bloom_filters", 9, "V1"),
    ],
)
def test_the_version_of_an_index_follows_from_the_table_s(partition, version, expected):
    assert index_version(partition, version, {}) == expected


def test_a_definition_goes_before_the_table_s_version():
    old = IndexDefinition("column_stats", "column_stats", version="V1")
    assert index_version("column_stats", 9, {"column_stats": old}) == "V1"
    assert index_version("partition_stats", 9, {"column_stats": old}) == "V1"
