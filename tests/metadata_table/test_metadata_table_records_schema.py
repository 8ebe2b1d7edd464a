"""The stored schemas of the metadata table's records."""

from __future__ import annotations

import json

import fastavro
import pytest

from hudi_fast.metadata_table.records import RECORD_SCHEMA, RECORD_SCHEMA_0_15, schema_of_commits

META = [
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
]


@pytest.mark.parametrize("text", [RECORD_SCHEMA, RECORD_SCHEMA_0_15])
def test_records_begin_with_the_meta_fields_and_commits_leave_them_out(text: str) -> None:
    fastavro.parse_schema(json.loads(text))
    names = [field["name"] for field in json.loads(text)["fields"]]
    assert names[:7] == [*META, "key", "type"]
    commit = schema_of_commits(text)
    assert [field["name"] for field in json.loads(commit)["fields"]] == names[5:]
    assert ": " not in commit


def test_release_1_2_added_fields() -> None:
    assert set(json.loads(RECORD_SCHEMA_0_15)) == set(json.loads(RECORD_SCHEMA))
    assert len(RECORD_SCHEMA) > len(RECORD_SCHEMA_0_15)
