"""Blob columns: written, kept, read, and their bytes; module hudi_fast.formats.logical_types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.formats.logical_types import BLOB
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import load_timeline
from hudi_fast.view.table_state import load_state, table_avro
from tests.support.small_tables import options, table_rows


def inline(data: bytes) -> dict[str, Any]:
    return {"type": "INLINE", "data": data, "reference": None}


def outside(path: Path, offset: int | None = None, length: int | None = None) -> dict[str, Any]:
    reference = {"external_path": str(path), "offset": offset, "length": length, "managed": False}
    return {"type": "OUT_OF_LINE", "data": None, "reference": reference}


def rows(blobs: dict[int, dict[str, Any] | None], ts: int) -> pa.Table:
    field = pa.field("blob", BLOB, metadata={"hudi_type": "BLOB"})
    table = pa.table(
        {
            "id": pa.array([f"k{number:05d}" for number in blobs]),
            "part": pa.array([f"p{number % 2}" for number in blobs]),
            "ts": pa.array([ts] * len(blobs), pa.int64()),
        }
    )
    return table.append_column(field, pa.array(list(blobs.values()), BLOB))


@pytest.mark.slow("COPY_ON_WRITE")
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_blobs_are_kept_and_read(kind: str, tmp_path: Path) -> None:
    file, path = tmp_path / "payload.bin", tmp_path / "t"
    file.write_bytes(bytes(range(200)))
    settings = {**options(), "hoodie.datasource.write.table.type": kind, "hoodie.compact.inline": "false"}
    blobs = {0: inline(b"zero"), 1: outside(file, 10, 5), 2: None, 3: outside(file)}
    hf.write(rows(blobs, 1), path, settings)
    hf.write(rows({0: outside(file, 190), 2: inline(b"")}, 2), path, settings)
    blobs |= {0: outside(file, 190), 2: inline(b"")}
    table = hf.HudiTable.open(path)
    for service in ("compact", "cluster") if kind == "MERGE_ON_READ" else ("cluster",):
        getattr(table.services, service)()
        assert {int(key[1:]): row[2] for key, row in table_rows(path).items()} == blobs
    read = table.to_arrow(columns=["id", "blob"])
    found = dict(zip(read["id"].to_pylist(), table.read_blobs(read["blob"]).to_pylist(), strict=True))
    whole = bytes(range(200))
    assert found == {"k00000": whole[190:], "k00001": whole[10:15], "k00002": b"", "k00003": whole}
    avro = json.loads(table_avro(load_state(Storage(path))) or "")
    assert avro["fields"][3]["type"][1]["logicalType"] == "blob"
    assert load_timeline(Storage(path), table.config).pending() == ()


def test_what_is_no_blob_or_not_there_is_told(tmp_path: Path) -> None:
    file = tmp_path / "payload.bin"
    file.write_bytes(b"12345")
    hf.write(rows({0: outside(file, 3, 9), 1: outside(tmp_path / "gone", 0, 1)}, 1), tmp_path / "t", options())
    table = hf.HudiTable.open(tmp_path / "t")
    read = table.to_arrow().sort_by("id")["blob"].combine_chunks()
    with pytest.raises(hf.CorruptTableError, match=r"bytes 3 to 12 of .*payload\.bin, which has 5 bytes"):
        table.read_blobs(read.slice(0, 1))
    with pytest.raises(hf.CorruptTableError, match="gone, which is missing"):
        table.read_blobs(read.slice(1))
    with pytest.raises(hf.InvalidDataError, match="takes the values of a blob column"):
        table.read_blobs(pa.array([b"x"]))
    wrong = rows({0: None}, 1).drop_columns(["blob"])
    field = pa.field("blob", pa.struct([("other", pa.string())]), metadata={"hudi_type": "BLOB"})
    wrong = wrong.append_column(field, pa.nulls(1, field.type))
    with pytest.raises(hf.SchemaMismatchError, match="a blob is struct<type"):
        hf.write(wrong, tmp_path / "bad", options())
