"""Arrow's allocator in processes of hudi_fast."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.storage.allocator import choose_allocator

VARIABLE = "ARROW_DEFAULT_MEMORY_POOL"


@pytest.mark.skipif(sys.platform != "linux", reason="chosen on Linux alone")
@pytest.mark.parametrize(("given", "used"), [(None, "jemalloc"), ("system", "system")])
def test_a_choice_of_the_user_stays(monkeypatch: pytest.MonkeyPatch, given: str | None, used: str) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if given is not None:
        monkeypatch.setenv(VARIABLE, given)
    choose_allocator()
    assert os.environ[VARIABLE] == used


@pytest.mark.parametrize(
    ("program", "pool"),
    [
        ("import sys; from hudi_fast.cli.main import program; sys.argv = ['hudi-fast', 'head', {table!r}]", "jemalloc"),
        ("import hudi_fast as hf; program = hf.HudiTable({table!r}).to_arrow", "mimalloc"),
    ],
    ids=["the command", "a program of somebody else"],
)
@pytest.mark.slow(but="the command")
@pytest.mark.skipif(sys.platform != "linux", reason="chosen on Linux alone")
def test_only_processes_of_hudi_fast_get_an_allocator(tmp_path: Path, program: str, pool: str) -> None:
    table = str(tmp_path / "t")
    hf.write([{"id": 1}], table, key="id")
    shown = "import pyarrow as pa; print(pa.default_memory_pool().backend_name)"
    text = f"{program.format(table=table)}\ntry:\n    program()\nexcept SystemExit:\n    pass\n{shown}"
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == pool
