"""Where the batches of a stream of commits end."""

from __future__ import annotations

import pytest

import hudi_fast as hf
from hudi_fast.config.read_options import EARLIEST, ReadOptions
from hudi_fast.reading.incremental.commit_range import BatchLimits, newest_readable, next_offset
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import State
from hudi_fast.view.table_state import load_state
from tests.support.small_tables import options, plain_rows, rows_of


def table_of(path, commits, **changes):
    """A table with that many commits of ten rows each, and their times as a stream counts them."""
    for number in range(commits):
        hf.write(plain_rows(range(10 * number, 10 * number + 10), ts=number), path, options(**changes))
    state = load_state(Storage(path))
    by_completion = state.config.version >= 8
    return state, [one.completion if by_completion else one.requested for one in state.timeline.writes()]


@pytest.mark.slow(but="9")
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_without_limits_a_batch_ends_with_the_newest_commit(tmp_path, version):
    state, times = table_of(tmp_path / "t", 3, table_version=version)
    assert next_offset(state, EARLIEST, BatchLimits()) == times[-1]
    assert next_offset(state, times[0], BatchLimits()) == times[-1]
    assert next_offset(state, times[-1], BatchLimits()) == times[-1]


@pytest.mark.slow("6")
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_batch_takes_as_many_commits_as_it_may(tmp_path, version):
    state, times = table_of(tmp_path / "t", 5, table_version=version)
    limits = BatchLimits(max_commits=2)
    ends = [EARLIEST]
    while (end := next_offset(state, ends[-1], limits)) != ends[-1]:
        ends.append(end)
    assert ends[1:] == [times[1], times[3], times[4]]


def test_a_batch_takes_as_many_bytes_as_it_may_but_one_commit_in_any_case(tmp_path):
    state, times = table_of(tmp_path / "t", 4)
    assert next_offset(state, EARLIEST, BatchLimits(max_bytes=1)) == times[0]
    assert next_offset(state, times[0], BatchLimits(max_bytes=1)) == times[1]
    assert next_offset(state, EARLIEST, BatchLimits(max_bytes=1 << 40)) == times[-1]


def test_a_batch_goes_no_further_than_it_is_told(tmp_path):
    state, times = table_of(tmp_path / "t", 4)
    assert next_offset(state, times[0], BatchLimits(), until=times[2]) == times[2]
    assert next_offset(state, times[2], BatchLimits(), until=times[2]) == times[2]
    assert next_offset(state, times[3], BatchLimits(), until=times[2]) == times[3]


def test_services_do_not_count_as_commits(tmp_path):
    path = tmp_path / "t"
    table_of(path, 2)
    hf.HudiTable.open(path).services.cluster()
    hf.write(plain_rows(range(50, 60), ts=9), path, options())
    state = load_state(Storage(path))
    assert next_offset(state, EARLIEST, BatchLimits(max_commits=3)) == state.timeline.writes()[-1].completion


def test_a_table_without_commits_has_no_offset(tmp_path):
    hf.HudiTable.create(tmp_path / "t", plain_rows([]).schema, options())
    state = load_state(Storage(tmp_path / "t"))
    assert newest_readable(state, ReadOptions()) is None
    assert next_offset(state, EARLIEST, BatchLimits()) == EARLIEST


def test_before_version_8_a_batch_ends_before_a_commit_that_others_have_overtaken(tmp_path):
    path = tmp_path / "t"
    _, times = table_of(path, 3, table_version="6")
    timeline = path / ".hoodie"
    middle = next(timeline.glob(f"{times[1]}.commit"))
    kept = middle.read_bytes()
    middle.unlink()  # pending again
    state = load_state(Storage(path))
    assert state.timeline.find(times[1]).state is State.INFLIGHT
    assert next_offset(state, EARLIEST, BatchLimits()) == times[0]
    assert next_offset(state, EARLIEST, BatchLimits(max_commits=9)) == times[0]
    assert next_offset(state, times[0], BatchLimits()) == times[0]
    middle.write_bytes(kept)
    assert next_offset(load_state(Storage(path)), times[0], BatchLimits()) == times[2]


@pytest.mark.slow
@pytest.mark.parametrize("version", ["6", "9"])
def test_batches_bring_every_row_once(tmp_path, version):
    path = tmp_path / "t"
    state, times = table_of(path, 5, table_version=version)
    table, start, brought = hf.HudiTable.open(path), EARLIEST, []
    for _ in range(3):
        end = next_offset(state, start, BatchLimits(max_commits=2))
        brought += rows_of(table.incremental(start if start != EARLIEST else "earliest", end))
        start = end
    assert start == times[-1]
    assert sorted(brought) == sorted(rows_of(table.to_arrow()))
