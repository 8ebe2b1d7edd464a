"""Rows of change queries and images of rows."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from hudi_fast.reading.incremental import cdc_units
from hudi_fast.reading.incremental.cdc_units import CHANGE_SCHEMA, change_batch, images

ROWS = pa.table({"id": ["a", "b"], "n": pa.array([1, None], pa.int32())})


def test_an_image_is_the_json_of_a_row() -> None:
    (texts,) = images(ROWS)
    assert [json.loads(text) for text in texts.to_pylist()] == [{"id": "a", "n": 1}, {"id": "b"}]


def test_images_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cdc_units, "_PIECE_ROWS", 2)
    pieces = list(images(pa.concat_tables([ROWS] * 3).combine_chunks()))
    assert [len(piece) for piece in pieces] == [2, 2, 2]


def test_a_missing_image_is_null() -> None:
    (texts,) = images(ROWS)
    batch = change_batch("100", "i", None, texts)
    assert batch.schema == CHANGE_SCHEMA
    assert batch.to_pylist()[0] == {"op": "i", "ts_ms": "100", "before": None, "after": texts[0].as_py()}
    mixed = change_batch("100", pa.array(["u", "d"]), texts, pa.array([None, None], pa.string()))
    assert mixed["op"].to_pylist() == ["u", "d"]
