"""Storage options of a stream whose places are partly in a store and partly on this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.streamer.settings import open_place
from tests.servers.s3 import S3Server

KEYS = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.precombine.field": "ts"}
SCHEMA = {
    "type": "record",
    "name": "trip",
    "fields": [{"name": name, "type": ["null", "long"], "default": None} for name in ("id", "ts")],
}
ROWS = "".join(json.dumps({"id": one, "ts": 1}) + "\n" for one in range(3))


def stream(source: str, table: str, files: Path, options: dict[str, str] | None) -> hf.Streamer:
    """A stream of JSON files with its schema and a query in files of this machine, and an error table there."""
    (files / "trip.avsc").write_text(json.dumps(SCHEMA))
    (files / "some.sql").write_text("SELECT * FROM <SRC> WHERE id < 2")
    given = {
        **KEYS,
        "hoodie.streamer.source.dfs.root": source,
        "hoodie.streamer.schemaprovider.source.schema.file": str(files / "trip.avsc"),
        "hoodie.streamer.transformer.sql.file": str(files / "some.sql"),
        "hoodie.errortable.enable": "true",
        "hoodie.errortable.base.path": str(files / "errors"),
    }
    return hf.Streamer(
        given,
        storage_options=options,
        source_class="JsonDFSSource",
        target_base_path=table,
        transformer_class="SqlFileBasedTransformer",
        schemaprovider_class="FilebasedSchemaProvider",
    )


@pytest.mark.parametrize("is_table_there", [True, False])
def test_places_of_this_machine_take_no_options_of_a_store(
    is_table_there: bool, s3_server: S3Server, tmp_path: Path
) -> None:
    there, name = s3_server.path(f"places-{is_table_there}"), "a.json"
    here = tmp_path / "here"
    here.mkdir()
    options = dict(s3_server.options)
    source, table = (str(here), there) if is_table_there else (there, str(tmp_path / "table"))
    Storage(source, None if is_table_there else options).write_bytes(name, ROWS.encode() + b"no JSON\n")
    assert stream(source, table, tmp_path, options).turn().inserts == 2
    read = hf.HudiTable.open(table, storage_options=options if is_table_there else None)
    assert read.count() == 2
    assert hf.HudiTable.open(tmp_path / "errors").count() == 1


def test_options_that_no_place_takes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(hf.ConfigError, match=r"got \['region'\], and all paths of the stream into .*table are local"):
        stream(str(tmp_path), str(tmp_path / "table"), tmp_path, {"region": "eu-west-1"})
    assert not (tmp_path / "table").exists()


def test_a_place_is_local_by_its_scheme(tmp_path: Path) -> None:
    for path in (str(tmp_path), f"file://{tmp_path}"):
        assert open_place(None, path, {"region": "eu-west-1"}).is_local
