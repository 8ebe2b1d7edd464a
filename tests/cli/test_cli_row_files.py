"""Files and pipes of rows in each format.

Module: hudi_fast.cli.row_output.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from hudi_fast.cli.row_files import row_format_of, write_file, write_stream
from hudi_fast.errors import ConfigError

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", None, "ü"]})
BATCHES = ROWS.to_batches(max_chunksize=2)
READERS: dict[str, Callable[[Any], pa.Table]] = {
    "parquet": pq.read_table,
    "csv": lambda one: pa_csv.read_csv(one, convert_options=pa_csv.ConvertOptions(strings_can_be_null=True)),
    "jsonl": lambda one: pa.Table.from_pylist([json.loads(line) for line in bytes_of(one).splitlines()]),
    "arrow": lambda one: pa.ipc.open_file(one).read_all(),
    "stream": lambda one: pa.ipc.open_stream(one).read_all(),
}


def bytes_of(one: Any) -> bytes:
    return one.read() if hasattr(one, "read") else Path(one).read_bytes()


@pytest.mark.parametrize("ending", ["parquet", "csv", "json", "jsonl", "ndjson", "arrow", "PARQUET"])
def test_rows_written_to_a_file_come_back(tmp_path: Path, ending: str) -> None:
    path = str(tmp_path / f"out.{ending}")
    assert write_file(path, ROWS.schema, BATCHES) == 3
    assert READERS[row_format_of(path)](path).to_pylist() == ROWS.to_pylist()


def test_a_named_format_needs_no_ending(tmp_path: Path) -> None:
    write_file(str(tmp_path / "out"), ROWS.schema, BATCHES, "parquet")
    assert pq.read_table(tmp_path / "out").to_pylist() == ROWS.to_pylist()


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl", "arrow"])
def test_rows_written_to_a_pipe_come_back(kind: str) -> None:
    pipe = io.BytesIO()
    pipe.seekable = lambda: False  # type: ignore[method-assign]
    write_stream(kind, pipe, ROWS.schema, BATCHES)
    back = READERS["stream" if kind == "arrow" else kind](io.BytesIO(pipe.getvalue()))
    assert back.to_pylist() == ROWS.to_pylist()


def test_lists_and_structs_are_json_in_csv() -> None:
    rows = pa.table({"id": [1, 2], "tags": [["a", "b"], None], "at": [{"x": 1}, {"x": None}]})
    pipe = io.BytesIO()
    write_stream("csv", pipe, rows.schema, rows.to_batches())
    assert pipe.getvalue().decode().splitlines() == [
        '"id","tags","at"',
        '1,"[""a"", ""b""]","{""x"": 1}"',
        '2,,"{""x"": null}"',
    ]


def test_a_write_that_fails_leaves_neither_the_file_nor_a_part(tmp_path: Path) -> None:
    def source() -> Iterator[pa.RecordBatch]:
        yield BATCHES[0]
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        write_file(str(tmp_path / "out.parquet"), ROWS.schema, source())
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_an_unknown_format_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\.parquet, \.csv, \.json, \.jsonl, \.ndjson, \.arrow"):
        write_file(str(tmp_path / "out.xlsx"), ROWS.schema, BATCHES)
