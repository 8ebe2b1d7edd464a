"""The page on table services: its program runs as printed, and what it names is there."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from hudi_fast.cli.main import cli
from hudi_fast.table.services import TableServices

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "table-services.md").read_text(encoding="utf-8")


def table_cells(column):
    lines = TEXT.split("| service | call |")[1].split("\n\n")[0].splitlines()[2:]
    return [name for line in lines for name in re.findall("`([^`]+)`", line.split("|")[column])]


def test_every_service_has_a_line():
    named = table_cells(2)
    assert all(callable(getattr(TableServices, name)) for name in named)
    verbs = {name for name in vars(TableServices) | dict.fromkeys(dir(TableServices)) if not name.startswith("_")}
    beside = {"delete_savepoint", "savepoints", "pending", "run_pending", "validate", "indexes", "drop_index"}
    assert verbs - beside - {"pending_indexes"} == set(named)


def test_every_command_of_the_table_is_one():
    for text in table_cells(3):
        help_text = CliRunner().invoke(cli, [text.split()[0], "--help"]).output
        assert help_text.startswith(f"Usage: cli {text.split()[0]} "), text
        assert all(word in help_text for word in text.split() if word.startswith("--"))
