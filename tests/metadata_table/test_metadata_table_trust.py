"""Whether a metadata table is up to date, decided from two timelines."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_fast.config.table_config import TableConfig
from hudi_fast.metadata_table.table import distrust_of, missing_writes, unknown_commit
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import SOLO_TIME, Instant, State, Timeline


def time(number: int) -> str:
    return f"202401010000{number:05d}"


def data(*numbers: int, action: str = "commit") -> list[Instant]:
    """Writes of the data table, each complete five ticks after its start."""
    return [Instant(time(number), action, State.COMPLETED, time(number + 5)) for number in numbers]


def own(*numbers: int, initial: int | None = 5) -> Timeline:
    """Delta commits of the metadata table, with the times of the writes; ``initial``: when it was built."""
    first = [] if initial is None else [Instant(f"{SOLO_TIME}010", "deltacommit", State.COMPLETED, time(initial))]
    return Timeline((*first, *data(*numbers, action="deltacommit")))


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    (tmp_path / ".hoodie" / "timeline").mkdir(parents=True)
    return Storage(tmp_path)


CONFIG = TableConfig.from_properties(
    {"hoodie.table.name": "t", "hoodie.table.type": "COPY_ON_WRITE", "hoodie.table.version": "9"}, "/t"
)


def never(commit: Instant) -> bool:
    return False


def test_every_write_since_the_start_has_its_delta_commit(storage: Storage) -> None:
    timeline = Timeline(tuple(data(10, 20)))
    assert distrust_of(storage, CONFIG, timeline, own(10, 20), never) is None
    assert missing_writes(timeline, own(10), 2) == data(20)
    reason = distrust_of(storage, CONFIG, timeline, own(10), never)
    assert reason is not None
    assert time(20) in reason


def test_a_metadata_table_without_commits_is_not_trusted(storage: Storage) -> None:
    assert distrust_of(storage, CONFIG, Timeline(tuple(data(10))), Timeline(()), never) is not None


def test_writes_before_the_metadata_table_was_built_need_no_delta_commit() -> None:
    timeline = Timeline(tuple(data(10, 20)))
    assert missing_writes(timeline, own(20, initial=17), 2) == []
    assert missing_writes(timeline, own(20, initial=14), 2) == data(10)
    assert missing_writes(timeline, own(20, initial=None), 1) == []


def test_a_metadata_table_ahead_of_the_timeline_is_not_trusted(storage: Storage) -> None:
    timeline = Timeline(tuple(data(10)))
    ahead = unknown_commit(timeline, own(10, 20))
    assert ahead is not None
    assert ahead.requested == time(20)
    assert unknown_commit(timeline, own(10)) is None
    reason = distrust_of(storage, CONFIG, timeline, own(10, 20), never)
    assert reason is not None
    assert time(20) in reason


def test_a_commit_ahead_of_the_timeline_that_names_no_file_does_not_count(storage: Storage) -> None:
    timeline = Timeline(tuple(data(10)))
    assert distrust_of(storage, CONFIG, timeline, own(10, 20), lambda one: one.requested == time(20)) is None
    reason = distrust_of(storage, CONFIG, timeline, own(10, 20, 30), lambda one: one.requested == time(30))
    assert reason is not None
    assert time(20) in reason
