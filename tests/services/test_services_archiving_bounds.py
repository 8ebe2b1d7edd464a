"""Bounds of archiving: from which requested time on instants stay, and why."""

from __future__ import annotations

import pytest

from hudi_fast.config.table_config import TableConfig
from hudi_fast.services.archive_bounds import (
    of_compaction,
    of_data_table,
    of_last_clean,
    of_metadata_table,
    of_pending,
    of_replaced,
    of_restore,
    of_savepoint,
)
from hudi_fast.timeline.instants import Instant, State, Timeline


def timeline(*instants: str) -> Timeline:
    """``commit 100``, ``replacecommit 200``, and with a trailing ``?`` pending ones."""
    made = []
    for text in instants:
        action, time = text.rstrip("?").split()
        pending = text.endswith("?")
        made.append(
            Instant(time, action, State.INFLIGHT if pending else State.COMPLETED, None if pending else f"{time}5")
        )
    return Timeline(tuple(made))


def config(kind: str = "COPY_ON_WRITE") -> TableConfig:
    return TableConfig.from_properties(
        {"hoodie.table.name": "t", "hoodie.table.type": kind, "hoodie.table.version": "9"}, "/t"
    )


def time_of(bound: object) -> str | None:
    return None if bound is None else bound.time  # type: ignore[attr-defined]


def test_a_pending_write_keeps_the_write_before_it() -> None:
    assert time_of(of_pending(timeline("commit 100", "commit 200", "commit 300?"))) == "200"
    assert time_of(of_pending(timeline("commit 300?"))) == "300"
    assert of_pending(timeline("commit 100", "clean 200?")) is None


def test_a_pending_restore_keeps_everything() -> None:
    assert time_of(of_restore(timeline("commit 100", "restore 200?"))) == ""
    assert of_restore(timeline("commit 100", "restore 200")) is None


@pytest.mark.parametrize(
    ("instants", "expected"),
    [
        (["deltacommit 100", "deltacommit 200", "deltacommit 300"], "200"),
        (["deltacommit 100"], "100"),
        (["deltacommit 100", "commit 200", "deltacommit 300"], "200"),
        ([], None),
    ],
)
def test_delta_commits_that_compaction_counts_stay(instants: list[str], expected: str | None) -> None:
    assert time_of(of_compaction(config("MERGE_ON_READ"), timeline(*instants), "NUM_COMMITS", 2)) == expected


def test_compaction_counts_in_merge_on_read_tables_and_by_number_alone() -> None:
    instants = timeline("deltacommit 100")
    assert of_compaction(config(), instants, "NUM_COMMITS", 2) is None
    assert of_compaction(config("MERGE_ON_READ"), instants, "TIME_ELAPSED", 2) is None


@pytest.mark.parametrize(
    ("clean", "earliest", "savepoints", "expected"),
    [
        ("", "", [], "200"),
        ("300", "250", [], "400"),
        ("300", "", [], "400"),
        ("300", "250", ["150"], "200"),
        ("500", "450", [], None),
    ],
)
def test_replace_commits_stay_until_their_replaced_files_are_cleaned(
    clean: str, earliest: str, savepoints: list[str], expected: str | None
) -> None:
    instants = timeline("commit 100", "replacecommit 200", "commit 300", "replacecommit 400")
    assert time_of(of_replaced(instants, clean, earliest, savepoints)) == expected


def test_writes_that_the_metadata_table_has_not_compacted_stay() -> None:
    instants = timeline("commit 100", "commit 200", "commit 300")
    assert time_of(of_metadata_table(config(), instants, "2000")) == "200"
    assert of_metadata_table(config(), instants, "999") is None
    assert time_of(of_metadata_table(config(), instants, None)) == ""


def test_a_metadata_table_keeps_what_its_data_table_has() -> None:
    data = timeline("commit 100", "savepoint 100", "commit 200", "clean 300?")
    assert time_of(of_data_table(data, False)) == "100"
    assert time_of(of_data_table(data, True)) == "200"
    assert of_data_table(timeline(), False) is None


def test_savepoints_and_the_last_clean_keep_what_they_name() -> None:
    savepoints = timeline("savepoint 300", "savepoint 200").instants
    assert time_of(of_savepoint(savepoints)) == "200"
    assert of_savepoint([]) is None
    assert time_of(of_last_clean("150")) == "150"
    assert of_last_clean("") is None
