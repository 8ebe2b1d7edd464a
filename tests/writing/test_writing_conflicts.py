"""Which instants count when a write lands, and what they changed: timelines and bodies made by hand, and real ones."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat, encode_commit_metadata
from hudi_fast.timeline.instants import Instant, State, Timeline, load_timeline
from hudi_fast.timeline.service_plans import RequestedReplace, encode_requested_replace
from hudi_fast.timeline.transition import create_requested, to_inflight
from hudi_fast.writing.conflicts import OwnWrite, candidates, require_no_conflict
from hudi_fast.writing.early_conflicts import touched_groups
from tests.support.mor_tables import mor_options
from tests.support.small_tables import options, plain_rows

VERSIONS = ("6", "8", "9")
OWN = "20300101000000500"
EARLIER, LATER = "20300101000000400", "20300101000000600"
COMPLETED, INFLIGHT, REQUESTED = State.COMPLETED, State.INFLIGHT, State.REQUESTED


Tables = Callable[[str, str], tuple[Storage, TableConfig]]


def make(path: Path, kind: str = "COW", version: str = "9") -> tuple[Storage, TableConfig]:
    settings = mor_options(table_version=version) if kind == "MOR" else options(table_version=version)
    hf.write(plain_rows(range(4)), path, settings)
    storage = Storage(path)
    return storage, TableConfig.from_properties(load_properties(storage), storage.uri)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """A table of each kind and version, made when it is first asked for; nobody changes it."""
    made: dict[tuple[str, str], tuple[Storage, TableConfig]] = {}

    def table(kind: str, version: str) -> tuple[Storage, TableConfig]:
        if (kind, version) not in made:
            made[kind, version] = make(tmp_path_factory.mktemp("t"), kind, version)
        return made[kind, version]

    return table


def at(requested: str, action: str, state: State) -> Instant:
    return Instant(requested, action, state, LATER[:-1] + "9" if state is COMPLETED else None)


def counted(table: tuple[Storage, TableConfig], one: Instant, strategy: str = "simple") -> bool:
    """Whether an instant counts that came since the write began."""
    storage, config = table
    own = Instant(OWN, "deltacommit" if config.is_mor else "commit", INFLIGHT)
    now = Timeline(tuple(sorted((own, one), key=lambda each: each.requested)))
    return candidates(storage, config, own, Timeline(()), now, strategy) == [one]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("requested", [EARLIER, LATER])
@pytest.mark.parametrize(("kind", "action"), [("COW", "commit"), ("MOR", "deltacommit"), ("COW", "replacecommit")])
def test_whatever_was_completed_since_counts_whenever_it_was_requested(
    kind: str, action: str, requested: str, version: str, tables: Tables
) -> None:
    assert counted(tables(kind, version), at(requested, action, COMPLETED))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("requested", [EARLIER, LATER])
@pytest.mark.parametrize(("action", "state"), [("commit", COMPLETED), ("compaction", REQUESTED)])
def test_compactions_planned_since_count_before_version_8_whatever_their_time(
    action: str, state: State, requested: str, version: str, tables: Tables
) -> None:
    found = counted(tables("MOR", version), at(requested, action, state))
    assert found is (version == "6")


@pytest.mark.parametrize("action", ["commit", "deltacommit"])
def test_pending_writes_do_not_count_since_the_first_to_complete_wins(action: str, tables: Tables) -> None:
    assert not counted(tables("MOR", "9"), at(LATER, action, INFLIGHT))


@pytest.mark.parametrize("requested", [EARLIER, LATER])
def test_pending_clusterings_count_unless_writers_are_preferred(requested: str, tables: Tables) -> None:
    one, table = at(requested, "clustering", REQUESTED), tables("COW", "9")
    assert counted(table, one)
    assert counted(table, one, "bucket")
    assert not counted(table, one, "prefer_writer")


@pytest.mark.slow("False-20300101000000600")
@pytest.mark.parametrize("requested", [EARLIER, LATER])
@pytest.mark.parametrize("clusters", [False, True])
def test_pending_replace_commits_count_if_they_came_later_or_have_a_plan(
    clusters: bool, requested: str, tmp_path: Path
) -> None:
    storage, config = make(tmp_path, version="6")
    hf.write(plain_rows(range(4), ts=2), tmp_path, options(operation="bulk_insert"))
    plan = hf.HudiTable.open(tmp_path).services.schedule_cluster({"hoodie.clustering.plan.strategy.sort.columns": "id"})
    assert plan is not None
    body = RequestedReplace("CLUSTER", plan.plan, {}) if clusters else RequestedReplace()
    one = create_requested(
        storage, config, Instant(requested, "replacecommit", REQUESTED), encode_requested_replace(body)
    )
    own = Instant(OWN, "commit", INFLIGHT)
    found = candidates(storage, config, own, Timeline(()), Timeline((one,)), "simple")
    assert bool(found) is (clusters or requested == LATER)


def test_what_was_there_when_the_write_began_does_not_count(tables: Tables) -> None:
    storage, config = tables("COW", "9")
    timeline = load_timeline(storage, config)
    assert candidates(storage, config, Instant(OWN, "commit", INFLIGHT), timeline, timeline, "simple") == []


# ---- file groups


def test_the_file_groups_of_a_pending_plan_are_those_that_it_names(tmp_path: Path) -> None:
    storage, config = make(tmp_path, "MOR")
    hf.write(plain_rows(range(4), ts=2), tmp_path, mor_options())
    services = hf.HudiTable.open(tmp_path).services
    planned = services.schedule_compact({"hoodie.compact.inline.max.delta.commits": "1"})
    wanted = {(one.partition_path, one.file_id) for one in planned.plan.operations}
    pending = load_timeline(storage, config).pending_compactions[0]
    assert touched_groups(storage, config, pending) == wanted
    assert len(wanted) == 2
    inflight = to_inflight(storage, config, pending)
    assert touched_groups(storage, config, inflight) == wanted


def test_an_overwrite_that_is_at_work_says_itself_what_it_writes_to(tmp_path: Path) -> None:
    storage, config = make(tmp_path)
    one = Instant(LATER, "replacecommit", REQUESTED)
    create_requested(storage, config, one, encode_requested_replace(RequestedReplace()))
    assert touched_groups(storage, config, one) == frozenset()
    stat = WriteStat(file_id="f0", path="", prev_commit="", partition_path="p0")
    profile = CommitMetadata({"p0": [stat]}, operation_type="INSERT_OVERWRITE", partition_to_replace_file_ids={})
    inflight = to_inflight(storage, config, one, encode_commit_metadata(profile, config.layout_version, True))
    assert touched_groups(storage, config, inflight) == {("p0", "f0")}


def lands(path: Path, groups: set[tuple[str, str]], strategy: str = "simple") -> None:
    """The write of ``groups`` against the table's newest write, which came since."""
    storage = Storage(path)
    config = TableConfig.from_properties(load_properties(storage), storage.uri)
    now = load_timeline(storage, config)
    before = Timeline(now.instants[:-1])
    own = OwnWrite(Instant(OWN, "commit", INFLIGHT), "UPSERT", frozenset(groups))
    require_no_conflict(storage, config, own, before, now, strategy)


def groups_of(path: Path) -> list[tuple[str, str]]:
    storage = Storage(path)
    config = TableConfig.from_properties(load_properties(storage), storage.uri)
    return sorted(touched_groups(storage, config, load_timeline(storage, config).writes()[-1]))


def test_a_conflict_says_who_did_what_to_which_file_groups(tmp_path: Path) -> None:
    make(tmp_path)
    hf.write(plain_rows(range(4), ts=2), tmp_path, options())
    groups = groups_of(tmp_path)
    lands(tmp_path, {("p0", "somebody-else's")})
    with pytest.raises(hf.CommitConflictError, match="Cannot resolve conflicts for overlapping writes") as caught:
        lands(tmp_path, {groups[0], ("p7", "own")})
    error = caught.value
    newest = load_timeline(Storage(tmp_path), make(tmp_path)[1]).writes()[1]
    assert (error.instant, error.other, error.file_groups) == (OWN, newest.requested, (groups[0],))
    for part in (str(tmp_path), "UPSERT", OWN, newest.requested, f"p0/{groups[0][1]}", "num.retries.on.conflict"):
        assert part in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.instant, again.other, again.file_groups) == (str(error), OWN, error.other, (groups[0],))


def test_of_many_file_groups_an_error_names_five_and_carries_all(tmp_path: Path) -> None:
    hf.write(plain_rows(range(32), partitions=8), tmp_path, options())
    hf.write(plain_rows(range(32), ts=2, partitions=8), tmp_path, options())
    with pytest.raises(hf.CommitConflictError, match="and 3 more") as caught:
        lands(tmp_path, set(groups_of(tmp_path)))
    assert len(caught.value.file_groups) == 8


def test_buckets_are_compared_by_their_number(tmp_path: Path) -> None:
    make(tmp_path)
    hf.write(plain_rows(range(4), ts=2), tmp_path, options())
    partition, file_id = groups_of(tmp_path)[0]
    twin = (partition, file_id[:8] + "-of-another-writer")
    lands(tmp_path, {twin}, "simple")
    with pytest.raises(hf.CommitConflictError):
        lands(tmp_path, {twin}, "bucket")
    lands(tmp_path, {("p9", twin[1])}, "bucket")


@pytest.mark.slow
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_write_does_not_land_when_what_was_pending_is_archived_by_now(tmp_path: Path, version: str) -> None:
    storage, config = make(tmp_path, version=version)
    settings = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.clean.commits.retained": 1}
    first = load_timeline(storage, config).writes()[0]
    for ts in range(2, 9):
        hf.write(plain_rows(range(4), ts=ts), tmp_path, {**options(table_version=version), **settings})
    now = load_timeline(storage, config)
    assert now.find(first.requested) is None
    own = OwnWrite(Instant(OWN, "commit", INFLIGHT), "UPSERT", frozenset())
    before = Timeline((replace(first, state=INFLIGHT, completion=None, file_name=None),))
    with pytest.raises(hf.CommitConflictError, match="completed and archived by now") as caught:
        require_no_conflict(storage, config, own, before, now, "simple")
    assert caught.value.other == first.requested
    rolled_back = Timeline((replace(before.instants[0], requested="20200101000000000"),))
    require_no_conflict(storage, config, own, rolled_back, now, "simple")


def test_a_write_does_not_land_on_what_was_rolled_back_since(tmp_path: Path) -> None:
    storage, config = make(tmp_path)
    hf.write(plain_rows(range(4), ts=2), tmp_path, options())
    before = load_timeline(storage, config)
    gone = before.writes()[-1].requested
    hf.HudiTable.open(tmp_path).services.rollback(gone)
    own = OwnWrite(Instant(OWN, "commit", INFLIGHT), "UPSERT", frozenset({("p0", "f")}))
    with pytest.raises(hf.CommitConflictError, match="was rolled back since") as caught:
        require_no_conflict(storage, config, own, before, load_timeline(storage, config), "simple")
    assert caught.value.other == gone


@pytest.mark.slow
def test_archived_writes_are_no_writes_that_were_rolled_back(tmp_path: Path) -> None:
    storage, config = make(tmp_path)
    before = load_timeline(storage, config)
    few: dict[str, Any] = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.clean.commits.retained": "1",
        "hoodie.commits.archival.batch": "1",
    }
    for ts in range(2, 7):
        hf.write(plain_rows(range(4), ts=ts), tmp_path, {**options(), **few})
    now = load_timeline(storage, config)
    assert before.writes()[0].requested < (now.first_write_requested or "")
    own = OwnWrite(Instant(OWN, "commit", INFLIGHT), "UPSERT", frozenset({("p0", "f")}))
    require_no_conflict(storage, config, own, before, now, "simple")


# ---- size


@pytest.mark.parametrize("since", [0, 100])
def test_a_long_timeline_is_looked_through_at_once(since: int, tmp_path: Path) -> None:
    """Of ten thousand instants those are read that came since."""
    storage, config = make(tmp_path)
    first = load_timeline(storage, config).writes()[0]
    old = [replace(first, requested=f"2029{number:013d}") for number in range(10_000)]
    new = [replace(first, requested=f"2030{number:013d}") for number in range(since)]
    before, now = Timeline(tuple(old)), Timeline((*old, *new))
    own = OwnWrite(Instant(OWN, "commit", INFLIGHT), "UPSERT", frozenset({("p0", "f")}))
    began = time.perf_counter()
    require_no_conflict(storage, config, own, before, now, "simple")
    assert time.perf_counter() - began < 2.0  # some 0.05; looking at all pairs takes a minute
