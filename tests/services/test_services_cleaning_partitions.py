"""Partitions that a clean looks into."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.config.service_options import CleanOptions
from hudi_fast.services.clean_plan import chosen_partitions, touched_partitions
from hudi_fast.services.retention import LastClean
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from tests.support.small_tables import options, plain_rows


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ["a/1", "a/2", "b"]),
        ({"hoodie.clean.partition.filter.selected": "b,c"}, ["b"]),
        ({"hoodie.clean.partition.filter.regex": "a/.*"}, ["a/1", "a/2"]),
        ({"hoodie.clean.partition.filter.regex": "a"}, []),
    ],
)
def test_options_choose_partitions(given: dict[str, str], expected: list[str]) -> None:
    settings = CleanOptions.from_options({**given, "hoodie.clean.incremental.enabled": "false"})
    assert chosen_partitions(["b", "a/2", "a/1"], settings) == expected


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    """Three commits: of all partitions, then an update of ``p0``, then an insert into ``p1``."""
    settings = {**options(), "hoodie.parquet.small.file.limit": "0", "hoodie.clean.automatic": "false"}
    for ids in (range(4), [0], [101]):
        hf.write(plain_rows(ids), tmp_path, settings)
    return Storage(tmp_path)


def touched(storage: Storage, last: LastClean, earliest: int, **given: str) -> set[str] | None:
    state = load_state(storage)
    found = CleanOptions.from_options(given)
    writes = state.timeline.writes()
    return touched_partitions(
        storage, state.config, state.timeline, found, last, writes[earliest] if earliest < 3 else None
    )


def test_commits_since_the_last_clean_name_the_partitions(storage: Storage) -> None:
    first, second, third = load_state(storage).timeline.writes()
    assert touched(storage, LastClean(instant=third.requested, earliest=first.requested), 2) == {"p0"}
    assert touched(storage, LastClean(instant=third.requested, earliest=second.requested), 2) == {"p0"}
    assert touched(storage, LastClean(), 1) == set()  # the first commit has new file groups alone


def test_without_incremental_cleaning_every_partition_is_looked_into(storage: Storage) -> None:
    assert touched(storage, LastClean(), 3) is None
    assert touched(storage, LastClean(), 2, **{"hoodie.clean.incremental.enabled": "false"}) is None
    assert touched(storage, LastClean(instant="99990101000000000"), 2) is None
