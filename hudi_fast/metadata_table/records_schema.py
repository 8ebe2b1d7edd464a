"""The Avro schemas of the metadata table's records, byte for byte as releases of Hudi store them in files.

Resources beside this module, taken from files of real tables: five meta fields first, then HoodieMetadataRecord. What
commits of the metadata table say of its schema is the same text without the meta fields.
"""

from __future__ import annotations

import json
from importlib.resources import files

from hudi_fast.formats.avro.schema import META_FIELDS

__all__ = ["RECORD_SCHEMA", "RECORD_SCHEMA_0_15", "schema_of_commits"]


def _resource(name: str) -> str:
    return files("hudi_fast.metadata_table").joinpath(name).read_text("utf-8").strip()


RECORD_SCHEMA = _resource("record_1_2.avsc")
"""Avro JSON of the records, meta fields first, as Hudi 1.2 stores it."""

RECORD_SCHEMA_0_15 = _resource("record_0_15.avsc")
"""The same, as Hudi 0.15 stores it."""


def schema_of_commits(schema_json: str = RECORD_SCHEMA) -> str:
    """The schema as commit metadata has it: without the meta fields, else the same text."""
    schema = json.loads(schema_json)
    schema["fields"] = [each for each in schema["fields"] if each["name"] not in META_FIELDS]
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
