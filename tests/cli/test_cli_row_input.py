"""Rows that come from a pipe.

Module: hudi_fast.cli.rows.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import click
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as feather
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from hudi_fast.cli.rows import rows_of
from hudi_fast.errors import ConfigError, InvalidDataError

ROWS = pa.table({"id": [1, 2], "name": ["a", "ü"]})


def arrow(write: Callable[..., Any]) -> Callable[[pa.Table, IO[bytes]], None]:
    def put(rows: pa.Table, sink: IO[bytes]) -> None:
        with write(sink, rows.schema) as writer:
            writer.write_table(rows)

    return put


def lines(rows: pa.Table, sink: IO[bytes]) -> None:
    sink.write("\n".join(json.dumps(row) for row in rows.to_pylist()).encode())


WRITERS: dict[str, Callable[[pa.Table, IO[bytes]], Any]] = {
    "parquet": pq.write_table,
    "csv": pa_csv.write_csv,
    "lines of json": lines,
    "array of json": lambda rows, sink: sink.write(b" " + json.dumps(rows.to_pylist()).encode()),
    "arrow file": arrow(pa.ipc.new_file),
    "arrow stream": arrow(pa.ipc.new_stream),
    "feather": feather.write_feather,
    "orc": orc.write_table,
}


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Sets what a pipe holds."""
    return lambda data: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize("kind", WRITERS)
def test_the_first_bytes_of_a_pipe_tell_the_format(pipe: Callable[[bytes], None], kind: str) -> None:
    sink = io.BytesIO()
    WRITERS[kind](ROWS, sink)
    pipe(sink.getvalue())
    assert rows_of("-").to_pylist() == ROWS.to_pylist()


@pytest.mark.parametrize(
    ("data", "kind", "said"),
    [
        (b"  \n", None, "empty"),
        (b"PAR1 and no more", None, "cannot be read as parquet"),
        (b"{oh no", None, "cannot be read as json"),
        (b"[1, 2", None, "cannot be read as json"),
        (b"id\n1,2\n", None, "cannot be read as csv"),
        (b"id\n1\n", "orc", "cannot be read as orc"),
        (b"id\n1\n", "arrow", "--input-format names another"),
    ],
)
def test_a_pipe_without_rows_is_refused(
    pipe: Callable[[bytes], None], data: bytes, kind: str | None, said: str
) -> None:
    pipe(data)
    with pytest.raises(InvalidDataError, match=said):
        rows_of("-", kind)


def test_a_terminal_is_no_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(terminal.buffer, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdin", terminal)
    with pytest.raises(click.UsageError, match="got a terminal"):
        rows_of("-")


def test_a_file_has_the_format_of_its_ending_or_the_named_one(tmp_path: Path) -> None:
    pa_csv.write_csv(ROWS, tmp_path / "rows.txt")
    assert rows_of(str(tmp_path / "rows.txt"), "csv").to_pylist() == ROWS.to_pylist()
    with pytest.raises(ConfigError, match="parquet, csv"):
        rows_of(str(tmp_path / "rows.txt"))
