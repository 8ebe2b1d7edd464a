"""Batches that tasks send to each other as bytes."""

from __future__ import annotations

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.spark.arrow import session_conf
from hudi_fast.spark.writing import sent_batches


def test_buffers_become_values_in_their_order() -> None:
    parts = [pa.py_buffer(text) for text in (b"first", b"", b"third")]
    assert sent_batches.binary_of(parts).to_pylist() == [b"first", b"", b"third"]


def test_more_bytes_than_an_array_takes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sent_batches, "_LARGEST", 7)
    assert len(sent_batches.binary_of([pa.py_buffer(b"1234567")])) == 1
    with pytest.raises(hf.InvalidDataError, match=r"has 8 bytes.* send 7 .*maxRecordsPerBatch"):
        sent_batches.binary_of([pa.py_buffer(b"1234"), pa.py_buffer(b"5678")])


def test_rows_are_not_packed_where_comet_makes_the_batches(spark, tmp_path) -> None:
    """Comet counts the rows of a batch, not the bytes: it would join thousands of packed values."""
    assert sent_batches.packs_rows(spark)
    rows = pa.table({"id": [f"k{at:03d}" for at in range(200)], "p": ["a", "b"] * 100, "ts": [1] * 200})
    options = {"hudi_fast.plan": "routed", "hudi_fast.scan": "spark"}
    with session_conf(spark, {"spark.comet.exec.pyarrowUDF.enabled": "true"}):
        assert not sent_batches.packs_rows(spark)
        for ts in (1, 2):
            change = rows.set_column(2, "ts", pa.array([ts] * 200)).slice(0, 200 // ts)
            hf.write(spark.createDataFrame(change), tmp_path / "t", key="id", partition_by="p", options=options)
        with session_conf(spark, {"spark.comet.enabled": "false"}):
            assert sent_batches.packs_rows(spark)
    stored = hf.HudiTable(tmp_path / "t").to_arrow(columns=["id", "ts"])
    assert dict(zip(*stored.to_pydict().values(), strict=True)) == {f"k{at:03d}": 2 - at // 100 for at in range(200)}
