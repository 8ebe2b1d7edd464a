"""The metadata tables of other projects agree with their tables, whichever release wrote them.

Modules: hudi_fast.services.validation, hudi_fast.formats.hfile.reader.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_fast as hf
from tests.support.foreign import foreign_names, foreign_params, unzip_foreign

CHANGED = {"whole_seconds_v6": "its files were rewritten by hand, and its metadata table was taken away"}


@pytest.mark.slow
@pytest.mark.parametrize("name", foreign_params(foreign_names(), CHANGED))
def test_a_metadata_table_of_another_project_has_no_difference(name: str, tmp_path: Path) -> None:
    table = hf.HudiTable.open(unzip_foreign(name, tmp_path).table)
    result = table.services.validate()
    assert result.ok, result.differences.to_pylist()
    assert {note for note in result.summary["note"].to_pylist() if note} == set()
