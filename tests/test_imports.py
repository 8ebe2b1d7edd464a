"""What a small call loads in a new process: growth of the start-up time fails here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hudi_fast as hf

WRITE = "import hudi_fast; hudi_fast.write([{'id': 1, 'fare': 2.0}], {path!r}, key='id')"
READ = "import hudi_fast; hudi_fast.read({path!r})"
FILTERED = "import hudi_fast; hudi_fast.read({path!r}, filter='fare > 1')"
COMMAND = """
from click.testing import CliRunner
from hudi_fast.cli.main import cli
assert CliRunner().invoke(cli, {arguments!r}).exit_code == 0
"""
INFO, HELP = COMMAND.replace("{arguments!r}", "['info', {path!r}]"), COMMAND.replace("{arguments!r}", "['--help']")
ARROW = {"pyarrow", "numpy"}
COMMON = ARROW | {"fastavro", "pyroaring"}
OURS = "hudi_fast"
PULLED_IN = {"pandas", "dateutil", "pytz", "six", "cython_runtime", "mypy_extensions", "tzdata"}
"""Packages that pyarrow or sqlglot load if they are installed."""


def loaded(program: str) -> list[str]:
    report = "import json, sys; print(json.dumps(sorted(sys.modules)))"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("COVERAGE_")}
    command = [sys.executable, "-c", f"{program}\n{report}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow(but="write")
@pytest.mark.parametrize(
    ("program", "limit", "packages"),
    [
        ("import hudi_fast", 1, set()),
        (WRITE, 300, COMMON),
        (READ, 190, COMMON),
        (FILTERED, 205, COMMON | {"sqlglot"}),
        (INFO, 175, COMMON | {"click", "rich"}),
        (HELP, 25, {"click"}),
    ],
    ids=["import", "write", "read", "read with a filter", "info", "help"],
)
def test_a_small_call_loads_few_modules_and_packages(
    tmp_path: Path, program: str, limit: int, packages: set[str]
) -> None:
    table = tmp_path / "t"
    hf.write([{"id": 1, "fare": 2.0}], table, key="id")
    found = loaded(program.replace("{path!r}", repr(str(table))))
    assert len([one for one in found if one.partition(".")[0] == OURS]) <= limit
    others = {one.partition(".")[0] for one in found if not one.startswith("_")}
    assert others - sys.stdlib_module_names - PULLED_IN - {OURS} <= packages
