from dataclasses import replace
from pathlib import Path

import pytest

from hudi_fast.config.new_table import create_table_layout
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.rewrite_options import CompactionOptions
from hudi_fast.config.table_config import NewTable, TableConfig, new_table_properties
from hudi_fast.services.compact_plan import (
    compaction_is_due,
    last_compaction,
    log_compaction_is_due,
    written_since,
)
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import Instant, State, Timeline

V6, V9 = 6, 9


def at(seconds: int) -> str:
    return f"202601010000{seconds:02d}000"


def done(seconds: int, action: str = "deltacommit", ended: int | None = None) -> Instant:
    return Instant(at(seconds), action, State.COMPLETED, at(seconds + 1 if ended is None else ended))


def pending(seconds: int, action: str = "compaction") -> Instant:
    return Instant(at(seconds), action, State.REQUESTED)


@pytest.fixture
def configs(tmp_path: Path) -> dict[int, TableConfig]:
    found = {}
    for version in (V6, V9):
        storage = Storage(tmp_path / str(version))
        properties = new_table_properties(NewTable("t", table_type="MERGE_ON_READ", version=version))
        create_table_layout(storage, properties, 1 if version < 8 else 2)
        found[version] = TableConfig.from_properties(load_properties(storage), storage.uri)
    return found


def due(config: TableConfig, instants: list[Instant], now: int = 59, **settings: object) -> bool:
    timeline = Timeline(tuple(sorted(instants, key=lambda one: one.requested)))
    return compaction_is_due(config, timeline, at(now), CompactionOptions(**settings))


def test_so_many_delta_commits_since_the_last_compaction(configs):
    deltas = [done(number) for number in range(1, 6)]
    for config in configs.values():
        assert due(config, deltas)
        assert not due(config, deltas[:4])
        assert not due(config, [*deltas, done(10, "commit"), done(11)])
        assert due(config, [*deltas, done(10, "commit"), done(12)], max_delta_commits=1)


def test_without_any_delta_commit_compaction_is_never_due(configs):
    for trigger in ("NUM_COMMITS", "TIME_ELAPSED", "NUM_OR_TIME"):
        assert not due(configs[V9], [done(1, "commit")], trigger=trigger, max_delta_seconds=0, max_delta_commits=1)
        assert not due(configs[V9], [], trigger=trigger, max_delta_seconds=0)


def test_a_delta_commit_that_began_before_a_compaction_and_ended_after_it_counts_as_after_it(configs):
    instants = [done(1), done(5, ended=20), done(10, "commit", ended=12)]
    assert due(configs[V9], instants, max_delta_commits=1)
    assert not due(configs[V6], instants, max_delta_commits=1)  # there completion times are those of files
    assert due(configs[V6], [*instants, done(13)], max_delta_commits=1)


def test_counted_since_the_last_request_pending_compactions_count(configs):
    instants = [done(1), done(2), pending(5), done(7)]
    assert due(configs[V9], instants, max_delta_commits=3)
    assert not due(configs[V9], instants, trigger="NUM_COMMITS_AFTER_LAST_REQUEST", max_delta_commits=3)
    assert due(configs[V9], instants, trigger="NUM_COMMITS_AFTER_LAST_REQUEST", max_delta_commits=1)


def test_pending_delta_commits_do_not_count(configs):
    assert not due(configs[V9], [done(1), pending(2, "deltacommit")], max_delta_commits=2)


def test_time_since_the_last_compaction_or_the_first_delta_commit(configs):
    first = [done(10), done(20)]
    assert due(configs[V9], first, now=40, trigger="TIME_ELAPSED", max_delta_seconds=30)
    assert not due(configs[V9], first, now=39, trigger="TIME_ELAPSED", max_delta_seconds=30)
    later = [*first, done(25, "commit"), done(30)]
    assert not due(configs[V9], later, now=40, trigger="TIME_ELAPSED", max_delta_seconds=30)
    assert due(configs[V9], later, now=55, trigger="TIME_ELAPSED", max_delta_seconds=30)


def test_number_and_time_together(configs):
    deltas = [done(10), done(20)]
    many, late = {"max_delta_commits": 2}, {"max_delta_seconds": 5}
    few, early = {"max_delta_commits": 3}, {"max_delta_seconds": 500}
    assert due(configs[V9], deltas, trigger="NUM_OR_TIME", **many, **early)
    assert due(configs[V9], deltas, trigger="NUM_OR_TIME", **few, **late)
    assert not due(configs[V9], deltas, trigger="NUM_OR_TIME", **few, **early)
    assert due(configs[V9], deltas, trigger="NUM_AND_TIME", **many, **late)
    assert not due(configs[V9], deltas, trigger="NUM_AND_TIME", **few, **late)


def test_the_last_compaction_and_what_was_written_since(configs):
    instants = [done(1), done(2, "commit", ended=3), done(4), done(5, "replacecommit"), pending(6), done(7)]
    timeline = Timeline(tuple(instants))
    assert last_compaction(timeline) == instants[1]
    assert last_compaction(timeline, requested_counts=True) == instants[4]
    assert written_since(configs[V9], timeline, instants[1]) == [instants[2], instants[3], instants[5]]
    assert written_since(configs[V9], timeline, None) == [one for one in instants if one.is_completed]
    assert last_compaction(Timeline(())) is None


def test_log_compaction_is_due_after_so_many_delta_commits_since_both_kinds_of_compaction(configs, tmp_path):
    config = configs[V9]
    storage = Storage(tmp_path / str(V9))
    deltas = [done(number * 2) for number in range(1, 4)]

    def is_due(instants: list[Instant], threshold: int) -> bool:
        return log_compaction_is_due(storage, config, Timeline(tuple(instants)), threshold)

    assert is_due(deltas, 3)
    assert not is_due(deltas, 4)
    logged = replace(done(8), requested=at(8))
    storage.create_exclusive(f"{config.timeline_folder}/{at(8)}.logcompaction.requested", b"")
    assert not is_due([*deltas, logged, done(10)], 2)
    assert is_due([*deltas, logged, done(10), done(12)], 2)
    assert not is_due([*deltas, logged, done(10), done(12), done(14, "commit")], 1)
