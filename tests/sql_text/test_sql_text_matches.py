"""Columns that the condition of a merge sets equal."""

from __future__ import annotations

import pytest

from hudi_fast.sql_text.statements import equal_columns


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("t.id = s.id", (("id", "id"),)),
        ("S.Key = (T.ID) AND (t.day = s.`the day`)", (("ID", "Key"), ("day", "the day"))),
        ("t.id = s.id AND t.v > 3", ()),
        ("t.id = s.id OR t.v = s.v", ()),
        ("id = s.id", ()),
        ("t.id = t.v", ()),
        ("t.id = s.id + 1", ()),
        ("d.t.id = s.id", ()),
        ("t.id <=> s.id", ()),
        ("t.id = (", ()),
    ],
)
def test_pairs_of_equal_columns(condition: str, expected: tuple[tuple[str, str], ...]) -> None:
    assert equal_columns(condition, ("t", "s")) == expected
