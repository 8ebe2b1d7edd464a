"""The Avro schemas of the metadata table's records, byte for byte as releases of Hudi store them.

Resource files of this package, copied from real tables: five meta fields, then HoodieMetadataRecord. Commits of the
metadata table store the same text without the meta fields.
"""

from __future__ import annotations

import json
from importlib.resources import files

from hudi_fast.formats.avro.schema import META_FIELDS

__all__ = ["RECORD_SCHEMA", "RECORD_SCHEMA_0_15", "schema_of_commits"]


def _resource(name: str) -> str:
    return files("hudi_fast.metadata_table").joinpath(name).read_text("utf-8").strip()


RECORD_SCHEMA = _resource("record_1_2.avsc")
"""Avro JSON of the records with meta fields first, as stored by Hudi 1.2 in tables of every version.

Metadata tables are written with it. Hudi 0.15 reads it too. Hudi 1.2 cannot load a metadata table as a table if its
newest commit has the schema of 0.15: ``HoodieMetadataPayload#getInsertValue`` takes any schema but its own for one with
meta fields.
"""

RECORD_SCHEMA_0_15 = _resource("record_0_15.avsc")
"""The same, as stored by Hudi 0.15: some fields are missing. It is read, and never written."""


def schema_of_commits(schema_json: str = RECORD_SCHEMA) -> str:
    """The schema as stored in commit metadata: the same text without the meta fields."""
    schema = json.loads(schema_json)
    schema["fields"] = [each for each in schema["fields"] if each["name"] not in META_FIELDS]
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
