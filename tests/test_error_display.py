"""Errors in notebooks: the lines of the caller and the message, without the calls inside.

Module: hudi_fast.errors.
"""

from __future__ import annotations

import linecache
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_fast as hf


@pytest.fixture
def table(tmp_path: Path) -> hf.HudiTable:
    hf.write(pa.table({"id": [1]}), tmp_path / "t", key="id")
    return hf.HudiTable(tmp_path / "t")


def cell(code: str, file: str, names: dict[str, object]) -> None:
    """Run a cell of a notebook, whose lines are known to ``linecache`` as IPython makes them known."""
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    exec(compile(code, file, "exec"), names)


def test_a_typo_in_a_filter_shows_the_line_of_the_cell_and_the_message(table: hf.HudiTable) -> None:
    names: dict[str, object] = {"table": table}
    cell("def rows():\n    return table.to_arrow(filter='idd = 1')\n", "/tmp/ipykernel_7/1.py", names)
    with pytest.raises(hf.ConfigError) as raised:
        cell("rows()\n", "/tmp/ipykernel_7/2.py", names)
    shown = raised.value._render_traceback_()
    assert shown[-3:-1] == [
        "In this notebook, line 1\n    rows()",
        "In this notebook, line 2\n    return table.to_arrow(filter='idd = 1')",
    ]
    assert shown[-1] == f"ConfigError: {raised.value}"
    assert not any("hudi_fast/" in line for line in shown)


def test_a_line_of_a_file_has_the_name_of_the_file_and_notes_are_kept(table: hf.HudiTable) -> None:
    with pytest.raises(hf.HudiError) as raised:
        table.head(-1)
    raised.value.add_note("A note.")
    shown = raised.value._render_traceback_()
    assert shown[0].startswith(f"In {__file__}, line ")
    assert shown[0].endswith("table.head(-1)")
    assert shown[-1] == "A note."
