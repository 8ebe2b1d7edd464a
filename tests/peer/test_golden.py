"""The tables in ``tests/tables``: each unzips to a Hudi table with the answers that the README promises."""

from __future__ import annotations

import pytest

from tests.support.golden import golden_names


@pytest.mark.parametrize("name", golden_names())
def test_a_golden_table_unzips_with_its_answers(golden, name):
    it = golden(name)
    assert (it.table / ".hoodie" / "hoodie.properties").is_file()
    if name.startswith("hudi_rs/"):
        assert it.expected == {}
    else:
        assert it.snapshot().num_rows == it.expected["rows"]


def test_no_entries_of_another_operating_system_are_left(golden):
    it = golden("hudi_rs/cow_v6_complexkeygen_hivestyle")
    assert not [path for path in it.table.parent.rglob("*") if path.name in {"__MACOSX", ".DS_Store"}]
