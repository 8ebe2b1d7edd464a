"""Whether the bounds in a footer can be believed where NaN may be: what files say of it, and what is read for it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_fast.formats.base_file import BaseFileFooter
from hudi_fast.formats.parquet.base_file import BaseFileWriter, ParquetReader, ParquetSettings, open_base_file
from hudi_fast.formats.parquet.column_ranges import ranges_of_file
from hudi_fast.storage.base import Storage

SCHEMA = pa.schema([("id", pa.string()), ("x", pa.float64())])


def rows(*values: float | None) -> pa.Table:
    return pa.table({"id": [str(at) for at in range(len(values))], "x": pa.array(values, pa.float64())})


def write(storage: Storage, groups: list[pa.Table]) -> None:
    writer = BaseFileWriter(storage, "p/f.parquet", SCHEMA, ParquetSettings(), "{}", [])
    for group in groups:
        writer.write(group)
        writer.flush()
    writer.close(BaseFileFooter())


def columns_read(reader: ParquetReader, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the columns whose values are read from now on."""
    seen: list[str] = []
    batches = reader.batches

    def watched(columns: list[str], *more: Any) -> Iterator[pa.RecordBatch]:
        seen.extend(columns)
        return batches(columns, *more)

    monkeypatch.setattr(reader, "batches", watched)
    return seen


def test_footers_of_our_files_are_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage(tmp_path)
    write(storage, [rows(3.0, None), rows(-1.0, 2.0)])
    with open_base_file(storage, "p/f.parquet") as reader:
        assert reader.has_nan_safe_bounds
        seen = columns_read(reader, monkeypatch)
        found = ranges_of_file(reader, ["x"])["x"]
    assert (found.low, found.high, found.null_count) == (pa.scalar(-1.0), pa.scalar(3.0), 1)
    assert seen == []


def test_where_a_chunk_holds_nan_the_column_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage(tmp_path)
    write(storage, [rows(3.0, 4.0), rows(-1.0, math.nan)])
    with open_base_file(storage, "p/f.parquet") as reader:
        assert reader.has_nan_safe_bounds
        seen = columns_read(reader, monkeypatch)
        found = ranges_of_file(reader, ["id", "x"])
    assert found["x"].low == pa.scalar(-1.0)
    assert found["x"].high is not None
    assert math.isnan(found["x"].high.as_py())
    assert seen == ["x"]


def test_other_files_by_arrow_are_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(rows(3.0, math.nan, -1.0), tmp_path / "f.parquet", store_schema=False)
    with open_base_file(Storage(tmp_path), "f.parquet") as reader:
        assert not reader.has_nan_safe_bounds
        seen = columns_read(reader, monkeypatch)
        found = ranges_of_file(reader, ["x"])["x"]
    assert found.low == pa.scalar(-1.0)
    assert found.high is not None
    assert math.isnan(found.high.as_py())
    assert seen == ["x"]
