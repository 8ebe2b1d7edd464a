"""Batches that tasks send to each other as bytes."""

from __future__ import annotations

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.spark.writing import sent_batches


def test_buffers_become_values_in_their_order() -> None:
    parts = [pa.py_buffer(text) for text in (b"first", b"", b"third")]
    assert sent_batches.binary_of(parts).to_pylist() == [b"first", b"", b"third"]


def test_more_bytes_than_an_array_takes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sent_batches, "_LARGEST", 7)
    assert len(sent_batches.binary_of([pa.py_buffer(b"1234567")])) == 1
    with pytest.raises(hf.InvalidDataError, match=r"has 8 bytes.* send 7 .*maxRecordsPerBatch"):
        sent_batches.binary_of([pa.py_buffer(b"1234"), pa.py_buffer(b"5678")])
