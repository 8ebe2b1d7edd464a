"""Writers that died, and those that did not but were taken for dead: signs of life, rollbacks, clocks."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.metadata_table.state import open_state
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.heartbeat import heartbeat_path
from hudi_fast.timeline.instants import Instant, State
from hudi_fast.timeline.plans import RollbackPlan
from hudi_fast.timeline.transition import create_requested
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.rollback import request_rollback, roll_back
from hudi_fast.writing.rollback_plan import plan_rollback
from tests.support.interleaving import assert_sound, pending_of, services, settings_for, write_during
from tests.support.sessions import PartlyBackend, session_of
from tests.support.small_tables import plain_rows, table_rows


def test_a_lazy_clean_leaves_a_live_writer_alone_and_rolls_a_dead_one_back(tmp_path: Path) -> None:
    settings = settings_for("MOR", "9")
    hf.write(plain_rows(range(4)), tmp_path, settings)
    seen: list[list[str]] = []

    def others() -> None:
        services(tmp_path).clean(settings)
        services(tmp_path).rollback(options=settings)
        hf.write(plain_rows([0], 6), tmp_path, settings)
        seen.append(pending_of(tmp_path))
        (tmp_path / heartbeat_path(seen[0][0])).unlink()  # nobody gives signs of life any more
        services(tmp_path).clean(settings)
        seen.append(pending_of(tmp_path))

    with pytest.raises(hf.CommitConflictError, match="is no longer inflight"):
        write_during(tmp_path, plain_rows([1], 5), settings, others)
    assert [len(one) for one in seen] == [1, 0]
    assert_sound(tmp_path, {**table_rows(tmp_path), "k00001": ("p1", 1, "a1")})


def test_a_write_whose_rollback_is_planned_does_not_land(tmp_path: Path) -> None:
    """Apache Hudi plans a rollback under the lock and carries it out without."""
    settings = settings_for("COW", "9")
    hf.write(plain_rows(range(4)), tmp_path, settings)
    planned: list[Instant] = []

    def others() -> None:
        session = session_of(tmp_path, settings)
        with session.locked():
            planned.append(request_rollback(session, RollbackPlan(pending_of(tmp_path)[0], "commit")))

    with pytest.raises(hf.CommitConflictError, match="was taken for failed") as caught:
        write_during(tmp_path, plain_rows([1], 5), settings, others)
    assert caught.value.other == planned[0].requested
    hf.write(plain_rows([0], 6), tmp_path, settings)
    assert_sound(tmp_path, {**table_rows(tmp_path), "k00001": ("p1", 1, "a1")})


@pytest.mark.slow(but="MOR-False")
@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize("kind", ["COW", "MOR"])
def test_a_write_does_not_land_on_top_of_one_that_was_rolled_back(tmp_path: Path, kind: str, finished: bool) -> None:
    """Else rows come back that were rolled back: the file that it made of theirs holds them."""
    settings = settings_for(kind, "9", {"hoodie.parquet.small.file.limit": "104857600"})
    hf.write(plain_rows([2]), tmp_path, settings)
    undone = hf.write(plain_rows([4]), tmp_path, settings).instant
    made: list[str] = []

    def others() -> None:
        if finished:
            made.append(services(tmp_path).rollback(undone, settings).instant)
            return
        session = session_of(tmp_path, settings)
        with session.locked() as state:
            written = state.timeline.find(undone, "commit" if kind == "COW" else "deltacommit")
            assert written is not None
            plan = plan_rollback(state.storage, state.config, written)
            made.append(request_rollback(session, plan).requested)

    with pytest.raises(hf.CommitConflictError, match=f"{undone}, which .* saw, was rolled back") as caught:
        write_during(tmp_path, plain_rows([6]), settings, others)
    assert caught.value.other == made[0]
    hf.write(plain_rows([6]), tmp_path, settings)
    assert sorted(table_rows(tmp_path)) == ["k00002", "k00006"]
    assert_sound(tmp_path, table_rows(tmp_path))


@pytest.mark.slow("False")
@pytest.mark.parametrize("alive", [True, False])
def test_a_rollback_that_somebody_carries_out_is_left_to_them(alive: bool, tmp_path: Path) -> None:
    settings = settings_for("COW", "9")
    hf.write(plain_rows(range(4)), tmp_path, settings)
    state = load_state(Storage(tmp_path))
    clock = InstantClock(state.config.timezone)
    failed = Instant(clock.next_time(state.timeline.newest_time), "commit", State.REQUESTED)
    create_requested(state.storage, state.config, failed)
    session = session_of(tmp_path, settings)
    with session.locked():
        rollback = request_rollback(session, RollbackPlan(failed.requested, "commit"))
    if alive:
        state.storage.write_bytes(heartbeat_path(rollback.requested), b"")
    hf.write(plain_rows([0], 6), tmp_path, settings)
    services(tmp_path).clean(settings)
    assert (rollback.requested in pending_of(tmp_path)) is alive
    assert (failed.requested in pending_of(tmp_path)) is alive


def test_rollbacks_beside_other_writers_give_signs_of_life(tmp_path: Path) -> None:
    settings = settings_for("COW", "9")
    hf.write(plain_rows(range(4)), tmp_path, settings)
    state = load_state(Storage(tmp_path))
    clock = InstantClock(state.config.timezone)
    failed = Instant(clock.next_time(state.timeline.newest_time), "commit", State.REQUESTED)
    create_requested(state.storage, state.config, failed)
    beats: list[bool] = []

    def delete(_storage: Storage, paths: Any) -> list[bool]:
        beats.append(state.storage.exists(heartbeat_path(pending_of(tmp_path)[-1])))
        return [True for _ in paths]

    session = session_of(tmp_path, settings, PartlyBackend(delete=delete))
    with session.locked():
        done = roll_back(session, failed)
    assert beats == [True]
    assert not state.storage.exists(heartbeat_path(done.requested))


def test_a_clock_that_was_set_back_gives_times_after_all_that_others_took(tmp_path: Path) -> None:
    """The clock of a write starts anew in each section, from what is on the timeline by then."""
    settings = settings_for("COW", "9")
    hf.write(plain_rows(range(4)), tmp_path, settings)
    ahead = InstantClock("UTC", now_ms=lambda: time.time_ns() // 1_000_000 + 3_600_000)

    def others() -> None:
        state = open_state(Storage(tmp_path))
        point = Instant(ahead.next_time(), "clean", State.REQUESTED)
        create_requested(state.storage, state.config, point)

    result = write_during(tmp_path, plain_rows([1], 5), settings, others)
    timeline = load_state(Storage(tmp_path)).timeline
    done = timeline.completion_of(result.instant)
    assert done is not None
    assert done > max(one.requested for one in timeline.of_action("clean"))
