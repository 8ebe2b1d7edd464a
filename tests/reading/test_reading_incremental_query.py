"""Incremental queries of tables of our own: which rows, at what cost, and what is refused."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.config.read_options import ReadOptions
from hudi_fast.reading.incremental.commit_range import newest_offset, resolve_range
from hudi_fast.reading.incremental.query import incremental_options, plan_query
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from tests.support.instrumented_storage import RecordingStorage
from tests.support.mor_tables import mor_options
from tests.support.small_tables import options, plain_rows, rows_of

FALLBACK = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"
FILTERS = "hoodie.datasource.read.incr.filters"
GLOB = "hoodie.datasource.read.incr.path.glob"
POLICY = "hoodie.read.timeline.holes.resolution.policy"
AS_VERSION = "hoodie.datasource.read.incr.table.version"
SCHEMA_OF_END = "hoodie.datasource.read.schema.use.end.instanttime"
SKIP_COMPACT = "hoodie.datasource.read.incr.skip_compact"
QUIET = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.metadata.enable": "false",
    "hoodie.archive.async": "false",
}


def settings(kind: str, version: str) -> dict[str, Any]:
    made = mor_options(table_version=version) if kind == "MOR" else options(table_version=version)
    return {**made, **QUIET}


def life(path: Path, given: dict[str, Any]) -> list[str]:
    """Four commits: 20 rows, 4 of them anew, 2 deleted, 4 rows more; where each is in time, oldest first."""
    hf.write(plain_rows(range(20)), path, given)
    hf.write(plain_rows(range(4), ts=2, text="b"), path, given)
    hf.write(plain_rows([3, 4], ts=3), path, {**given, "hoodie.datasource.write.operation": "delete"})
    hf.write(plain_rows(range(18, 22), ts=4, text="c"), path, given)
    return places(path)


def places(path: Path) -> list[str]:
    state = load_state(Storage(path))
    by_completion = state.config.version >= 8
    return sorted(str(one.completion) if by_completion else one.requested for one in state.timeline.writes())


def keys(rows: pa.Table) -> list[str]:
    return sorted(rows["id"].to_pylist())


def named(*numbers: int) -> list[str]:
    return [f"k{number:05d}" for number in numbers]


def pend(path: Path, requested: str, action: str = "commit") -> None:
    folder = path / ".hoodie"
    (folder / f"{requested}.{action}.requested").write_bytes(b"")
    (folder / (f"{requested}.inflight" if action == "commit" else f"{requested}.{action}.inflight")).write_bytes(b"")


def between(first: str, second: str) -> str:
    """A time after the first and before the second."""
    assert first < second
    return first + "0"


@pytest.mark.slow(but="MOR-9")
@pytest.mark.parametrize("version", ["6", pytest.param("8", marks=pytest.mark.long), "9"])
@pytest.mark.parametrize("kind", ["COW", "MOR"])
def test_a_range_holds_what_its_commits_wrote_and_left(kind: str, version: str, tmp_path: Path) -> None:
    times = life(tmp_path, settings(kind, version))
    table = hf.HudiTable.open(tmp_path)
    assert keys(table.incremental(times[0])) == named(0, 1, 2, 18, 19, 20, 21)
    assert keys(table.incremental(times[0], times[1])) == named(0, 1, 2, 3)
    assert keys(table.incremental(times[1], times[2])) == []
    assert keys(table.incremental(times[0], times[2])) == named(0, 1, 2)
    assert keys(table.incremental("000", times[0])) == named(*range(20))
    assert keys(table.incremental("000", times[2])) == named(0, 1, 2, *range(5, 20))
    assert keys(table.incremental(times[3])) == []
    assert rows_of(table.incremental(times[2])) == rows_of(plain_rows(range(18, 22), ts=4, text="c"))
    assert rows_of(table.incremental("earliest")) == rows_of(table.to_arrow())


@pytest.mark.slow("MOR")
@pytest.mark.parametrize("kind", ["COW", "MOR"])
def test_columns_and_filter_are_as_for_a_snapshot(kind: str, tmp_path: Path) -> None:
    times = life(tmp_path, settings(kind, "9"))
    table = hf.HudiTable.open(tmp_path)
    rows = table.incremental(times[0], columns=["ts", "id"], filter=pc.field("text") != "c18")
    assert rows.column_names == ["ts", "id"]
    assert keys(rows) == named(0, 1, 2, 19, 20, 21)
    assert keys(table.incremental(times[0], filter=pc.field("part") == "p1")) == named(1, 19, 21)
    with pytest.raises(hf.ConfigError, match="no column 'idd'"):
        table.incremental(times[0], columns=["idd"])


def test_rows_that_a_compaction_or_a_clustering_moved_belong_to_their_own_commits(tmp_path: Path) -> None:
    given = settings("MOR", "9")
    times = life(tmp_path, given)
    table = hf.HudiTable.open(tmp_path)
    before = [rows_of(table.incremental(begin)) for begin in times]
    table.services.compact({**QUIET, "hoodie.compact.inline.max.delta.commits": "1"})
    table.services.cluster(QUIET)
    assert [rows_of(table.incremental(begin)) for begin in times] == before
    assert table.incremental(times[-1]).num_rows == 0
    for begin, rows in zip(times, before, strict=True):
        assert rows_of(table.incremental(begin, options={SKIP_COMPACT: True})) == rows


def test_replaced_file_groups_are_left_out_from_the_commit_that_replaced_them(tmp_path: Path) -> None:
    given = settings("COW", "9")
    times = life(tmp_path, given)
    over = plain_rows([0, 40], ts=9, text="new")
    hf.write(over, tmp_path, {**given, "hoodie.datasource.write.operation": "insert_overwrite"})
    table, last = hf.HudiTable.open(tmp_path), places(tmp_path)[-1]
    assert keys(table.incremental(times[0], times[3])) == named(0, 1, 2, 18, 19, 20, 21)
    assert keys(table.incremental(times[0], last)) == named(0, 1, 19, 21, 40)
    assert keys(table.incremental(times[3])) == named(0, 40)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["COW", "MOR"])
def test_a_query_lists_no_data_folder_and_opens_the_files_of_its_commits_alone(kind: str, tmp_path: Path) -> None:
    given = {**settings(kind, "9"), "hoodie.parquet.small.file.limit": "0"}
    for first in range(0, 60, 6):
        hf.write(plain_rows(range(first, first + 6), partitions=6), tmp_path, given)
    hf.write(plain_rows([59], ts=5, text="last", partitions=6), tmp_path, given)
    storage = RecordingStorage(tmp_path)
    plan = plan_query(storage, incremental_options(places(tmp_path)[-2], None, None))
    assert len(plan.slices) == 1
    listed = {call.path for call in storage.calls if call.name == "list_dir"}
    assert all(path.startswith(".hoodie") for path in listed)
    read = {call.path for call in storage.calls if call.name == "read_bytes" and call.path.endswith("commit")}
    assert len(read) == 1


def test_replace_commits_of_before_the_range_are_not_read(tmp_path: Path) -> None:
    given = settings("COW", "9")
    hf.write(plain_rows(range(4)), tmp_path, given)
    for ts in (2, 3):
        over = {**given, "hoodie.datasource.write.operation": "insert_overwrite"}
        hf.write(plain_rows(range(4), ts=ts), tmp_path, over)
    hf.write(plain_rows([1], ts=4), tmp_path, given)
    *_, second, last = places(tmp_path)
    storage = RecordingStorage(tmp_path)
    plan_query(storage, incremental_options(second, None, None))
    read = [call.path for call in storage.calls if call.name == "read_bytes" and call.path.endswith("commit")]
    assert {last in path for path in read} == {True}


def test_missing_files_are_named_with_the_option_that_goes_without(tmp_path: Path) -> None:
    given = settings("COW", "9")
    hf.write(plain_rows(range(4)), tmp_path, given)
    hf.write(plain_rows(range(4), ts=2, text="b"), tmp_path, given)
    hf.write(plain_rows(range(2), ts=3, text="c"), tmp_path, given)
    first, second, _ = places(tmp_path)
    table = hf.HudiTable.open(tmp_path)
    versions = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    table.services.clean({**QUIET, **versions})
    with pytest.raises(hf.ConfigError, match=rf"have been cleaned or rolled back: .*\.parquet.*{FALLBACK}=true"):
        table.incremental(first, second)
    assert keys(table.incremental(first)) == named(0, 1, 2, 3)
    assert keys(table.incremental(first, second, options={FALLBACK: "true"})) == named(2, 3)


@pytest.mark.slow("6")
@pytest.mark.parametrize("version", ["6", "9"])
def test_archived_commits_count(version: str, tmp_path: Path) -> None:
    given = settings("COW", version)
    for number in range(8):
        hf.write(plain_rows([number]), tmp_path, given)
    times = places(tmp_path)
    table = hf.HudiTable.open(tmp_path)
    kept = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    table.services.archive({**QUIET, **kept})
    state = load_state(Storage(tmp_path))
    assert len(state.timeline.writes()) < 4
    given_range = ReadOptions(query_type="incremental", begin=times[1], end=times[6])
    found = resolve_range(state, given_range)
    assert found.archived
    places_found = [one.instant.completion if version == "9" else one.instant.requested for one in found.commits]
    assert len(places_found) == 5
    assert places_found == sorted(places_found)
    if version == "9":
        assert places_found == times[2:7]
    assert keys(table.incremental(times[1])) == named(*range(2, 8))
    assert keys(table.incremental(times[1], options={FALLBACK: True})) == named(*range(2, 8))
    assert keys(table.incremental("000")) == named(*range(8))


@pytest.mark.slow("8")
@pytest.mark.parametrize("version", ["8", "9"])
def test_an_archived_commit_counts_that_was_requested_hours_before_the_begin(version: str, tmp_path: Path) -> None:
    given = settings("COW", version)
    for number in range(6):
        hf.write(plain_rows([number], partitions=6), tmp_path, given)
    slow = sorted((tmp_path / ".hoodie/timeline").glob("*.commit"))[1]
    requested, _, completion = slow.stem.partition("_")
    done, begin = (
        f"{datetime.strptime(completion, '%Y%m%d%H%M%S%f') + timedelta(hours=hours):%Y%m%d%H%M%S%f}"[:17]
        for hours in (20, 19)
    )
    slow.rename(slow.with_name(f"{requested}_{done}.commit"))
    table = hf.HudiTable.open(tmp_path)
    assert keys(table.incremental(begin)) == named(1)
    kept = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    table.services.archive({**QUIET, **kept})
    assert requested not in {one.requested for one in load_state(Storage(tmp_path)).timeline.writes()}
    assert keys(table.incremental(begin)) == named(1)
    assert keys(table.incremental(begin, done)) == named(1)
    assert keys(table.incremental(done)) == []


def test_a_hollow_commit_is_refused_waited_for_or_no_matter(tmp_path: Path) -> None:
    given = settings("COW", "6")
    hf.write(plain_rows(range(4)), tmp_path, given)
    hf.write(plain_rows([1], ts=2, text="b"), tmp_path, given)
    hf.write(plain_rows([2], ts=3, text="c"), tmp_path, given)
    first, second, third = places(tmp_path)
    hollow = between(second, third)
    pend(tmp_path, hollow)
    table = hf.HudiTable.open(tmp_path)
    with pytest.raises(hf.ConfigError, match=rf"Found hollow commit: '{hollow}'\. Adjust config `{POLICY}`"):
        table.incremental(first)
    assert keys(table.incremental(first, options={POLICY: "BLOCK"})) == named(1)
    assert keys(table.incremental("earliest", options={POLICY: "BLOCK"})) == named(0, 1, 2, 3)
    state = load_state(Storage(tmp_path))
    done = sorted(str(one.completion) for one in state.timeline.writes())
    assert keys(table.incremental(done[1], options={POLICY: "USE_TRANSITION_TIME"})) == named(2)
    assert newest_offset(state) == third


def test_versions_with_completion_times_have_no_hollow_commits(tmp_path: Path) -> None:
    given = settings("COW", "9")
    hf.write(plain_rows(range(4)), tmp_path, given)
    hf.write(plain_rows([1], ts=2, text="b"), tmp_path, given)
    state = load_state(Storage(tmp_path))
    first, second = sorted(state.timeline.writes(), key=lambda one: one.requested)
    hollow = between(first.requested, second.requested)
    (tmp_path / ".hoodie" / "timeline" / f"{hollow}.commit.requested").write_bytes(b"")
    table = hf.HudiTable.open(tmp_path)
    assert keys(table.incremental(str(first.completion))) == named(1)
    assert newest_offset(state) == second.completion
    # With the rules of version 6 bounds are requested times, and there it is.
    with pytest.raises(hf.ConfigError, match="Found hollow commit"):
        table.incremental(first.requested, options={AS_VERSION: 6})
    assert keys(table.incremental(first.requested, options={AS_VERSION: 6, POLICY: "BLOCK"})) == []


def test_partitions_are_chosen_by_a_pattern_of_paths(tmp_path: Path) -> None:
    times = life(tmp_path, settings("COW", "9"))
    table = hf.HudiTable.open(tmp_path)
    assert keys(table.incremental(times[0], options={GLOB: "/p1/*"})) == named(1, 19, 21)
    assert keys(table.incremental("earliest", options={GLOB: "/p{0,2}/*.parquet"})) == named(0, 2, *range(6, 21, 2))
    assert keys(table.incremental(times[2], options={GLOB: "/p[!1]/?*"})) == named(18, 20)
    assert table.incremental(times[0], options={GLOB: "/p"}).num_rows == 0
    for pattern in ("/p{0,1/*", "/p[01"):
        with pytest.raises(hf.ConfigError, match="is not closed"):
            table.incremental(times[0], options={GLOB: pattern})


@pytest.mark.slow("COW")
@pytest.mark.parametrize("kind", ["COW", "MOR"])
def test_rows_are_chosen_by_conditions_in_sql(kind: str, tmp_path: Path) -> None:
    times = life(tmp_path, settings(kind, "9"))
    table = hf.HudiTable.open(tmp_path)
    assert keys(table.incremental(times[0], options={FILTERS: "text like 'c%'"})) == named(18, 19, 20, 21)
    both = {FILTERS: "substring(text, 1, 1) in ('b', 'c'), part = 'p1'"}
    assert keys(table.incremental(times[0], options=both)) == named(1, 19, 21)
    assert keys(table.incremental("earliest", options=both)) == named(1, 19, 21)
    assert keys(table.incremental(times[0], filter=pc.field("id") > named(1)[0], options=both)) == named(19, 21)
    assert table.incremental(times[0], columns=["id"], options=both).column_names == ["id"]
    assert table.incremental(times[0], options={FILTERS: " "}).num_rows == table.incremental(times[0]).num_rows
    with pytest.raises(hf.ConfigError, match="nothing"):
        table.incremental(times[0], options={FILTERS: "ts = 4, nothing = 1"})
    with pytest.raises(hf.ConfigError, match="character"):
        table.incremental(times[0], options={FILTERS: "text ="})


def test_the_schema_is_todays_or_that_of_the_end(tmp_path: Path) -> None:
    given = settings("COW", "9")
    hf.write(plain_rows(range(4)), tmp_path, given)
    hf.write(plain_rows([1], ts=2), tmp_path, given)
    wider = plain_rows([2], ts=3).append_column("more", pa.array([7]))
    hf.write(wider, tmp_path, given)
    first, second, _ = places(tmp_path)
    table = hf.HudiTable.open(tmp_path)
    assert table.incremental(first, second)["more"].to_pylist() == [None]
    assert "more" not in table.incremental(first, second, options={SCHEMA_OF_END: True}).column_names
    assert table.incremental(second, options={SCHEMA_OF_END: True})["more"].to_pylist() == [7]


def test_queries_that_cannot_be_answered_are_refused(tmp_path: Path) -> None:
    given = {**settings("COW", "9"), "hoodie.populate.meta.fields": "false"}
    hf.write(plain_rows(range(4)), tmp_path, given)
    with pytest.raises(hf.ConfigError, match="not supported when meta fields are disabled"):
        hf.HudiTable.open(tmp_path).incremental("earliest")
    with pytest.raises(hf.ConfigError, match="Specify the start completion time to pull from"):
        ReadOptions.from_options({"hoodie.datasource.query.type": "incremental"})


def test_a_table_without_commits_has_no_changes(tmp_path: Path) -> None:
    table = hf.HudiTable.create(tmp_path / "t", plain_rows([]).schema, options())
    assert table.incremental("earliest").num_rows == 0
    assert table.incremental("20240101000000000").column_names[-4:] == ["id", "part", "ts", "text"]
    assert newest_offset(load_state(Storage(tmp_path / "t"))) is None


def test_the_bounds_may_be_dates_and_times(tmp_path: Path) -> None:
    times = life(tmp_path, settings("COW", "9"))
    moments = [datetime.strptime(time, "%Y%m%d%H%M%S%f") for time in times]
    table = hf.HudiTable.open(tmp_path)
    assert keys(table.incremental(moments[0], moments[1])) == named(0, 1, 2, 3)
    assert keys(table.incremental(f"{moments[2]:%Y-%m-%d %H:%M:%S}.{times[2][14:]}")) == named(18, 19, 20, 21)
    aware = [moment.astimezone() for moment in moments]
    assert keys(table.incremental(aware[0], aware[1].isoformat())) == named(0, 1, 2, 3)


def test_rows_that_were_updated_in_some_columns_come_whole(tmp_path: Path) -> None:
    hf.write(plain_rows(range(10)), tmp_path, mor_options())
    table = hf.HudiTable.open(tmp_path)
    begin = places(tmp_path)[-1]
    table.update(pc.field("id") == "k00003", {"text": "'new'"})
    hf.write(plain_rows([4], ts=2, text="b"), tmp_path, mor_options())
    rows = table.incremental(begin, columns=["id", "part", "ts", "text"]).sort_by("id").to_pylist()
    assert rows == [
        {"id": "k00003", "part": "p1", "ts": 1, "text": "new"},
        {"id": "k00004", "part": "p0", "ts": 2, "text": "b4"},
    ]
    updated = table.incremental(begin, places(tmp_path)[1], columns=["id", "text"], filter=pc.field("ts") == 1)
    assert updated.to_pylist() == [{"id": "k00003", "text": "new"}]
