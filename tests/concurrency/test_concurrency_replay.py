"""Made-up histories of writers that log beside each other: which row of a key comes last."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_fast.timeline.instants import Instant, State
from tests.concurrency.checker import check
from tests.concurrency.faults import WitnessStorage
from tests.concurrency.history import Attempt, Done, History, history_of
from tests.concurrency.replay import Compaction, Landed, replay, shown
from tests.concurrency.script import Event, Teller, rows_seen, run_first, run_script
from tests.concurrency.site import Site
from tests.concurrency.worlds import Op, World, bucket_of, world_of
from tests.support.interleaving import InterleavedEngine
from tests.support.sessions import write_engine

BUCKETS = 2
MINE, OTHER = (next(f"k{n}" for n in itertools.count() if bucket_of(f"k{n}", BUCKETS) == one) for one in range(BUCKETS))
"""A key of each bucket."""


def beside_each_other(first: tuple[str, ...], *scripts: tuple[Op, ...]) -> World:
    """A world of one partition with a bucket for each of the two keys, and no search for conflicts."""
    world = next(one for one in map(world_of, itertools.count()) if not one.blocks)
    options = {**world.options, "hoodie.bucket.index.num.buckets": str(BUCKETS)}
    return replace(world, options=options, first=(first,), partitions=1, scripts=scripts)


# ---- the replay alone


def landed(number: int, value: int, requested: int, completed: int) -> Landed:
    """An upsert of :data:`MINE` that landed; times are small numbers."""
    instant = Instant(f"{requested:017d}", "deltacommit", State.REQUESTED)
    attempt = Attempt(instant, requested, completed, completed, f"{completed:017d}")
    return Landed(Done(number, 0, Op("upsert", (MINE,), value=value), requested, completed), attempt, completed)


@pytest.mark.parametrize(("bucket", "value"), [(0, 1), (1, 2)], ids=["of its own file group", "of another file group"])
def test_the_row_of_the_newest_slice_wins_and_in_a_slice_the_later_request(bucket: int, value: int) -> None:
    """Requested 1 and 2; the first lands last, after a compaction that was requested when the second had landed."""
    world = beside_each_other((MINE, OTHER))
    planned = Compaction(f"{30:017d}", frozenset({("p0", f"{bucket:08d}-0000-0000-0000-000000000000-0")}))
    states = replay(world, [landed(0, 1, 10, 40), landed(1, 2, 20, 25)], [planned])
    assert shown(states.states[-1]) == [[MINE, value]]
    assert states.moved_on(world, f"{10:017d}") == ({MINE} if bucket == 0 else set())


# ---- a real table


def history_beside_a_compaction_of_another_group(site: Site) -> History:
    """Writer 0 begins, and lands when writer 1 has landed and planned a compaction of the other key's file group."""
    slow = Op("upsert", (MINE,), value=1)
    quick = (Op("upsert", (MINE,), value=2), Op("upsert", (OTHER,), value=3), Op("schedule_compact"))
    world = beside_each_other((MINE,), (slow,), quick)
    first, events = list[Event](), (list[Event](), list[Event]())
    run_first(world, site, first.append)
    # A pending compaction of the key's file group keeps this out of the next plan.
    site.table().services.schedule_compact(world.options_alone)
    teller = Teller(events[0].append)
    teller.begin(0)
    engine = InterleavedEngine(world.rows(slow), lambda: run_script(world, 1, site, events[1].append, can_kill=False))
    result = write_engine(
        engine, WitnessStorage(site.address, site.options, teller.timeline), dict(world.options), "append"
    )
    teller.end("landed", result.instant)
    return history_of(world, site, first, list(events))


@pytest.mark.slow
def test_a_compaction_begins_no_slice_in_other_file_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = history_beside_a_compaction_of_another_group(Site.on_disk(tmp_path))
    assert [one.outcome for one in history.done] == ["landed", "landed", "landed", "landed", "served"]
    rows = rows_seen(history.site.table().to_arrow(columns=["id", "v"]))
    assert rows == sorted([[MINE, 2], [OTHER, 3]])
    assert check(history).wrong == ()
    monkeypatch.setattr(Compaction, "may_concern", lambda *_: True)  # every compaction begins a slice everywhere
    assert any("WRONG ROWS" in one for one in check(history).wrong)
