from __future__ import annotations

from dataclasses import replace

import pytest

from hudi_fast.config.service_options import ArchiveOptions, CleanOptions
from hudi_fast.config.table_config import TableConfig
from hudi_fast.services.archive import ArchivePlan, Facts, Rules, at_most, limits, may_be_due, plan_of
from hudi_fast.services.retention import LastClean
from hudi_fast.timeline.instants import Instant, State, Timeline

RULES = Rules(
    ArchiveOptions(min_commits=3, max_commits=5),
    CleanOptions(policy="KEEP_LATEST_COMMITS", commits_retained=1),
    "NUM_COMMITS",
    2,
)


def config(version: str = "9", table_type: str = "COPY_ON_WRITE") -> TableConfig:
    raw = {"hoodie.table.name": "t", "hoodie.table.type": table_type, "hoodie.table.version": version}
    return TableConfig.from_properties(raw, "t")


def at(number: int) -> str:
    """Ten minutes lie between numbers."""
    return f"202601{number // 100 + 1:02d}{number // 6 % 24:02d}{number % 6 * 10:02d}00000"


def instant(number: int, action: str = "commit", state: State = State.COMPLETED, after: int = 0) -> Instant:
    done = f"{at(number + after)[:-1]}5" if state is State.COMPLETED else None
    return Instant(at(number), action, state, done)


def timeline(*instants: Instant | int) -> Timeline:
    """Plain numbers are complete commits."""
    each = [instant(one) if isinstance(one, int) else one for one in instants]
    return Timeline(tuple(sorted(each, key=lambda one: (one.requested, one.action))))


def plan(found: Timeline, rules: Rules = RULES, facts: Facts | None = None, **of: str) -> ArchivePlan:
    return plan_of(config(**of), found, rules, facts or Facts())


def times(found: ArchivePlan) -> list[str]:
    return [one.requested for one in found.instants]


def test_the_oldest_leave_until_the_smaller_limit_stays_once_the_larger_is_passed():
    assert plan(timeline(*range(5))).instants == ()
    found = plan(timeline(*range(6)))
    assert times(found) == [at(0), at(1), at(2)]
    assert (found.blocked_by, found.active, found.keep_min, found.keep_max) == ("", 6, 3, 5)


@pytest.mark.parametrize(("retained", "expected"), [(1, (3, 5)), (2, (3, 5)), (3, (4, 6)), (5, (6, 8)), (9, (3, 5))])
def test_the_limits_rise_with_what_cleaning_retains(retained: int, expected: tuple[int, int]):
    rules = replace(RULES, clean=CleanOptions(policy="KEEP_LATEST_COMMITS", commits_retained=retained))
    assert limits(config(), timeline(*range(9)), rules) == expected


def test_the_limits_rise_with_the_hours_that_cleaning_retains():
    rules = replace(RULES, clean=CleanOptions(policy="KEEP_LATEST_BY_HOURS", hours_retained=1))
    assert limits(config(), timeline(*range(9)), rules) == (8, 10)  # the newest is from 01:20


def test_a_plan_is_a_table_too():
    found = plan(timeline(*range(6), instant(1, "clean"))).to_arrow()
    assert found.column_names == ["instant", "action", "completion"]
    assert found.column("instant").to_pylist() == [at(0), at(1), at(1), at(2)]
    assert found.column("action").to_pylist() == ["commit", "clean", "commit", "commit"]
    assert None not in found.column("completion").to_pylist()


@pytest.mark.parametrize("action", ["commit", "compaction", "clustering", "replacecommit", "logcompaction"])
@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_a_pending_write_or_service_holds_the_write_before_it(action: str, state: State):
    rules = replace(RULES, clean=CleanOptions(policy="KEEP_LATEST_FILE_VERSIONS"))  # else the limits rise, too
    found = plan(timeline(0, 1, instant(2, action, state), *range(3, 9)), rules)
    assert times(found) == [at(0)]
    assert found.blocked_by == f"the {action} {at(2)} is {state.name.lower()}"


def test_a_pending_write_that_is_the_oldest_holds_everything():
    found = plan(timeline(instant(0, state=State.INFLIGHT), *range(1, 9)))
    assert times(found) == []
    assert at(0) in found.blocked_by


def test_a_pending_clean_holds_nothing():
    assert len(times(plan(timeline(instant(1, "clean", State.REQUESTED), *range(2, 8))))) == 3


def test_a_pending_restore_holds_everything():
    found = plan(timeline(*range(9), instant(10, "restore", State.INFLIGHT)))
    assert times(found) == []
    assert found.blocked_by == f"the restore {at(10)} is not done"


def deltas(*numbers: int) -> list[Instant]:
    return [instant(number, "deltacommit") for number in numbers]


def test_the_delta_commits_that_the_next_compaction_is_counted_by_stay():
    rules = replace(RULES, delta_commits=6)
    found = plan(timeline(*deltas(*range(8))), rules, table_type="MERGE_ON_READ")
    assert times(found) == [at(0), at(1)]
    assert f"the 6 delta commits from {at(2)} on" in found.blocked_by
    assert len(times(plan(timeline(*range(8)), rules))) == 5


def test_the_last_compaction_stays_while_too_few_delta_commits_came_after_it():
    found = plan(
        timeline(*deltas(0, 1, 2, 3), 4, *deltas(5, 6, 7)), replace(RULES, delta_commits=4), table_type="MERGE_ON_READ"
    )
    assert times(found) == [at(0), at(1), at(2), at(3)]
    assert f"{at(4)} is where they begin" in found.blocked_by


def test_without_compaction_by_number_no_delta_commit_is_held():
    rules = replace(RULES, trigger="TIME_ELAPSED", delta_commits=6)
    assert len(times(plan(timeline(*deltas(*range(8))), rules, table_type="MERGE_ON_READ"))) == 5


def test_a_replace_commit_stays_until_a_clean_has_passed_it():
    found = timeline(0, 1, instant(2, "replacecommit"), *range(3, 9))
    assert times(plan(found)) == [at(0), at(1)]
    assert "there has been no clean" in plan(found).blocked_by
    before = plan(found, facts=Facts(LastClean(at(6), at(2))))
    assert times(before) == [at(0), at(1)]
    assert f"retained {at(2)}" in before.blocked_by
    passed = plan(found, facts=Facts(LastClean(at(6), at(3))))
    assert times(passed) == [at(number) for number in range(6)]
    assert passed.blocked_by == ""


def test_a_clean_by_file_versions_has_passed_all_that_came_before_it():
    found = timeline(0, 1, instant(2, "replacecommit"), instant(4, "replacecommit"), *range(5, 11))
    plans = [plan(found, facts=Facts(LastClean(at(number), ""))) for number in (1, 3)]
    assert [times(one)[-1] for one in plans] == [at(1), at(2)]
    assert f"the last clean ({at(3)}) came before it" in plans[1].blocked_by


def test_replaced_files_that_a_savepoint_kept_hold_their_replace_commit():
    found = timeline(0, 1, instant(2, "replacecommit"), *range(3, 9))
    kept = plan(found, facts=Facts(LastClean(at(7), at(5), savepoints=frozenset({at(1)}))))
    assert times(kept) == [at(0), at(1)]
    assert f"kept files of the savepoint {at(1)}" in kept.blocked_by
    later = plan(found, facts=Facts(LastClean(at(7), at(5), savepoints=frozenset({at(3)}))))
    assert len(times(later)) == 6


def test_nothing_leaves_before_the_metadata_table_has_been_compacted():
    found = plan(timeline(*range(9)), facts=Facts(has_metadata=True))
    assert times(found) == []
    assert "metadata table has not been compacted" in found.blocked_by


def test_what_completed_after_the_metadata_table_was_compacted_stays():
    found = timeline(0, instant(1, after=5), *range(2, 9))
    of_9 = plan(found, facts=Facts(has_metadata=True, compacted=at(4)))
    assert times(of_9) == [at(0)]
    assert of_9.blocked_by == f"the metadata table was last compacted at {at(4)}"
    of_6 = plan(found, facts=Facts(has_metadata=True, compacted=f"{at(4)}001"), version="6")
    assert times(of_6) == [at(number) for number in range(5)]


def test_a_metadata_table_keeps_what_its_data_table_has():
    data = timeline(instant(1, "clean"), 4, 5)
    found = plan(timeline(*deltas(*range(9))), replace(RULES, trigger="TIME_ELAPSED"), Facts(data=data))
    assert times(found) == [at(number) for number in range(4)]
    assert found.blocked_by == f"the commit {at(4)} is on the data table's active timeline"
    pending = timeline(instant(2, "clean", State.REQUESTED), 4, 5)
    assert times(plan(timeline(*deltas(*range(9))), facts=Facts(data=pending))) == [at(0), at(1)]


@pytest.mark.parametrize("version", ["6", "9"])
def test_the_first_savepoint_holds_its_commit_and_all_later_ones(version: str):
    found = plan(timeline(*range(9), instant(2, "savepoint")), version=version)
    assert times(found) == [at(0), at(1)]
    assert found.blocked_by == f"the first savepoint is of {at(2)}"


@pytest.mark.parametrize("version", ["6", "9"])
def test_beyond_savepoints_only_what_is_saved_stays(version: str):
    rules = replace(RULES, options=replace(RULES.options, beyond_savepoint=True))
    found = plan(timeline(*range(9), instant(2, "savepoint")), rules, version=version)
    assert times(found) == [at(number) for number in (0, 1, 3, 4, 5, 6)]


def test_cleans_and_rollbacks_go_along_with_the_writes_around_them():
    others = [instant(1, "clean"), instant(2, "rollback"), instant(4, "savepoint", State.INFLIGHT), instant(5, "clean")]
    found = plan(timeline(*range(0, 14, 2), *others))
    assert [(one.requested, one.action) for one in found.instants] == [
        (at(0), "commit"),
        (at(1), "clean"),
        (at(2), "commit"),
        (at(2), "rollback"),
        (at(4), "commit"),
        (at(5), "clean"),
        (at(6), "commit"),
    ]


def test_restores_and_index_builds_stay():
    found = plan(timeline(instant(0, "restore"), instant(1, "indexing"), *range(2, 9)))
    assert {one.action for one in found.instants} == {"commit"}


def test_before_layout_2_cleans_and_rollbacks_are_counted_by_themselves():
    cleans = [instant(number, "clean") for number in range(0, 12, 2)]
    rollbacks = [instant(number, "rollback") for number in (1, 3)]
    found = plan(timeline(20, 21, *cleans, *rollbacks), version="6")
    assert [(one.requested, one.action) for one in found.instants] == [(at(n), "clean") for n in (0, 2, 4)]
    assert may_be_due(config("6"), timeline(20, 21, *cleans), RULES)
    assert plan(timeline(20, 21, *cleans)).instants == ()
    bounded = plan(timeline(20, 21, *cleans), facts=Facts(has_metadata=True, compacted=f"{at(3)}001"), version="6")
    assert times(bounded) == [at(0), at(2)]


@pytest.mark.parametrize(
    ("limit", "left", "said"),
    [(0, [], "limit.instants=0"), (2, [0, 1], "limit.instants=2"), (4, [0, 1, 2, 3], ""), (None, [0, 1, 2, 3], "")],
)
def test_before_layout_2_a_run_may_be_limited_and_counts_instants_of_all_kinds(
    limit: int | None, left: list[int], said: str
):
    cleans = [instant(1, "clean"), *(instant(number, "clean") for number in range(20, 25))]
    found = plan(timeline(0, 2, 3, 4, 5, 6, *cleans), version="6")
    assert times(found)[:4] == [at(number) for number in range(4)]
    found = replace(found, instants=found.instants[:4])
    limited = at_most(config("6"), found, limit)
    assert times(limited) == [at(number) for number in left]
    assert said in limited.blocked_by
    assert at_most(config("9"), found, limit) is found


def test_before_layout_2_archiving_can_stop_where_cleaning_did():
    rules = replace(RULES, options=replace(RULES.options, block_on_clean=True))
    facts = Facts(LastClean(at(6), at(2)))
    found = plan(timeline(*range(9)), rules, facts, version="6")
    assert times(found) == [at(0), at(1)]
    assert found.blocked_by == f"the last clean retained {at(2)}"
    assert len(times(plan(timeline(*range(9)), rules, facts))) == 6


def test_the_smallest_of_several_bounds_counts():
    found = plan(
        timeline(*range(12), instant(5, "savepoint"), instant(9, "deltacommit", State.INFLIGHT)),
        facts=Facts(has_metadata=True, compacted=at(3)),
    )
    assert times(found) == [at(0), at(1), at(2)]
    assert "metadata table" in found.blocked_by


@pytest.mark.parametrize(
    ("found", "due"),
    [
        (timeline(*range(5)), False),
        (timeline(*range(6)), True),
        (timeline(*range(6), instant(0, "savepoint")), False),
        (timeline(*range(6), instant(1, "savepoint")), True),
        (timeline(instant(0, state=State.REQUESTED), *range(1, 9)), False),
        (timeline(instant(0, "replacecommit"), *range(1, 9)), False),
        (timeline(instant(0, "replacecommit"), instant(0, "clean"), *range(1, 9)), True),
        (timeline(), False),
    ],
)
def test_the_timeline_alone_tells_most_tables_that_are_not_due(found: Timeline, due: bool):
    assert may_be_due(config(), found, RULES) is due
