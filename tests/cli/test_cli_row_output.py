"""Where rows go, in a process of its own: pipes that close, and screens.

Module: hudi_fast.cli.row_output.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_fast as hf

COMMAND = [sys.executable, "-c", "from hudi_fast.cli.main import program; program()"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    hf.write(
        pa.table({"id": range(20_000), "text": ["a long text, so that a pipe is full" * 3] * 20_000}),
        tmp_path / "t",
        key="id",
    )
    return tmp_path / "t"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["table", "jsonl", "csv", "parquet", "arrow"])
def test_a_pipe_that_closes_ends_a_command_quietly(table: Path, kind: str) -> None:
    limit = ["--limit", "5000"] if kind == "table" else []
    with subprocess.Popen(
        [*COMMAND, "read", str(table), "--format", kind, *limit], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.read(10)
        running.stdout.close()
        said = running.stderr.read()
    assert (said, running.returncode) == (b"", 141)


@pytest.mark.slow
def test_rows_for_programs_are_not_written_to_a_screen(table: Path) -> None:
    screen, end = pty.openpty()
    done = subprocess.run(
        [*COMMAND, "read", str(table), "--format", "parquet"], stdout=end, stderr=subprocess.PIPE, check=False
    )
    os.close(end)
    os.close(screen)
    assert done.returncode == 2
    assert done.stderr.decode().startswith("Error: --format parquet is not for a screen. Add --output FILE")
