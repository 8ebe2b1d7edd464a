"""Every table service on bootstrapped tables: rows before and after it, indexes, and the folder that stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.bootstrap_services import BOOTSTRAPS, CASES, Boot, boot
from tests.support.small_tables import assert_tidy

OF_MIXED = ("cluster", "clean", "rollback")
"""What a table that has skeletons beside whole files is tried with; one with log files is tried with every service."""


def is_chosen(kind: str, service: Callable[[Boot], None]) -> bool:
    return kind == "mor" or (kind == "mixed" and service.__name__ in OF_MIXED)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "service"),
    [
        pytest.param(
            kind,
            service,
            id=f"{kind}-{service.__name__}",
            marks=() if is_chosen(kind, service) else pytest.mark.long,
        )
        for kind, service in CASES
    ],
)
def test_rows_and_folder_are_as_they_should_be_after_each_service(
    kind: str, service: Callable[[Boot], None], tmp_path: Path
) -> None:
    made = boot(tmp_path, kind)
    made.check()
    service(made)
    made.check()
    assert_tidy(made.table.path)


def test_a_bootstrap_that_is_the_newest_commit_can_be_rolled_back(tmp_path: Path) -> None:
    made = boot(tmp_path, "cow")
    rows = made.rows()
    assert made.services.rollback(BOOTSTRAPS[0]).rolled_back == (BOOTSTRAPS[0],)
    assert made.table.to_arrow().num_rows == 0
    made.table.insert(rows.slice(0, 3))
    made.notes = dict(list(made.notes.items())[:3])
    made.check()
    assert made.skeletons() == 0
