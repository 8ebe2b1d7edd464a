"""Paths without a table are answered by a table near them.

Module: hudi_fast.cli.shared.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_fast.cli.shared import nearby_table


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for name in ("trips", "stock"):
        (tmp_path / name / ".hoodie").mkdir(parents=True)
    (tmp_path / "trips" / "Oslo").mkdir()
    (tmp_path / "notes").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("trip", "Did you mean {lake}/trips?"),
        ("", "Tables in it: {lake}/stock, {lake}/trips."),
        ("trips/Oslo", "{lake}/trips/Oslo is in the table {lake}/trips."),
        ("notes", ""),
        ("notes/far/away", ""),
    ],
)
def test_a_path_without_a_table_is_answered_by_a_table_near_it(lake: Path, path: str, hint: str) -> None:
    assert nearby_table(str(lake / path)) == hint.format(lake=lake)


def test_many_tables_are_not_all_named(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"t{number}" / ".hoodie").mkdir(parents=True)
    assert nearby_table(str(tmp_path)).endswith("t4 and more.")


def test_a_path_of_a_store_has_no_hint() -> None:
    assert nearby_table("s3://bucket/trips") == ""


def test_a_command_passes_the_hint_on(run, lake: Path) -> None:
    code, _, err = run("info", lake / "trip")
    assert code == 1
    assert err.endswith(f"Did you mean {lake}/trips?\n")
