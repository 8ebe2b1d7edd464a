"""Hostile files cost bounded memory and time, and end in an error of hudi_fast that names the file.

All files are read in processes of their own, which are short of memory and end when a file takes too long.
Modules: hudi_fast.storage.local_store, hudi_fast.storage.untrusted, hudi_fast.timeline.avro_models.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.spark.programs import PROJECT
from tests.untrusted.readers import READERS

FORMATS = [name for name in READERS if not name.startswith("table")]
TABLES = [name for name in READERS if name.startswith("table")]


def problems(*arguments: str) -> list[str]:
    """What the fuzzer found."""
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-m", "tests.untrusted.fuzz", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [line for line in done.stdout.splitlines() if line.strip() and not line.startswith("-- ")]


@pytest.mark.slow
def test_a_small_file_that_becomes_large_is_refused() -> None:
    assert problems("--bombs") == []


@pytest.mark.slow
def test_damaged_files_of_each_format_are_read_or_refused() -> None:
    assert problems("--count", "10", *FORMATS) == []


@pytest.mark.slow
def test_tables_with_a_damaged_file_are_read_or_refused() -> None:
    assert problems("--count", "1", *TABLES[:4]) == []


@pytest.mark.long
@pytest.mark.timeout(900)
def test_many_damaged_files() -> None:
    assert problems("--first", "5000", "--count", "150", *FORMATS) == []
