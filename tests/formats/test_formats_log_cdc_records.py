"""Schemas of change logs."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.avro.types import parse_record
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, scan_log_blocks
from hudi_fast.formats.log.cdc_records import CDC_MODES, cdc_columns, cdc_schema, check_cdc_mode
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import commits_newest_first, load_state
from tests.support.golden import Golden

_TABLE = (
    '{"type":"record","name":"t_record","namespace":"hoodie.t","fields":['
    '{"name":"_hoodie_commit_time","type":["null","string"],"doc":"","default":null},'
    '{"name":"id","type":"string"},'
    '{"name":"where","type":["null",{"type":"record","name":"where","namespace":"hoodie.t.t_record",'
    '"fields":[{"name":"x","type":"int"}]}],"default":null}]}'
)


@pytest.mark.parametrize("name", ["cow_v9_cdc", "mor_v9_cdc"])
def test_schema_is_that_of_real_change_logs(golden: Callable[[str], Golden], name: str) -> None:
    table = golden(name).table
    state = load_state(Storage(str(table)))
    schema = next(commits_newest_first(state))[1].extra_metadata["schema"]
    logs = [path for path in table.rglob(".*.cdc") if ".hoodie" not in path.relative_to(table).parts]
    blocks = [one for log in logs for one in scan_log_blocks(state.storage, str(log.relative_to(table)))]
    assert len(blocks) >= len(logs) > 0
    assert {block.kind for block in blocks} == {BlockType.CDC_DATA}
    assert {block.headers[HeaderKey.SCHEMA] for block in blocks} == {cdc_schema("DATA_BEFORE_AFTER", schema)}


@pytest.mark.parametrize("mode", CDC_MODES)
def test_schema_has_the_columns_of_its_mode_and_images_without_meta_columns(mode: str) -> None:
    record = parse_record(cdc_schema(mode, _TABLE), "a change log")
    assert tuple(each.name for each in record.fields) == cdc_columns(mode)
    images = [each.type.parts[1] for each in record.fields if each.name in ("before", "after")]
    assert [[field.name for field in image.fields] for image in images] == [["id", "where"]] * len(images)
    assert len(images) == {"OP_KEY_ONLY": 0, "DATA_BEFORE": 1, "DATA_BEFORE_AFTER": 2}[mode]


def test_key_only_schema_is_that_of_hudi() -> None:
    assert json.loads(cdc_schema("OP_KEY_ONLY", _TABLE)) == {
        "type": "record",
        "name": "Record",
        "fields": [{"name": "op", "type": ["string", "null"]}, {"name": "record_key", "type": ["string", "null"]}],
    }


def test_record_without_namespace_stays_without() -> None:
    schema = json.loads(cdc_schema("DATA_BEFORE", _TABLE.replace('"namespace":"hoodie.t",', "")))
    assert "namespace" not in schema
    assert schema["name"] == "CDC"


def test_unknown_mode_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"ALL_OF_IT.*DATA_BEFORE_AFTER, DATA_BEFORE, OP_KEY_ONLY"):
        check_cdc_mode("ALL_OF_IT", "t")
