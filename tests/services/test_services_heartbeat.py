"""Signs of life: given while somebody is at work, believed from others, and noticed when they have ceased."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.heartbeat import (
    Heartbeat,
    HeartbeatRule,
    heartbeat_path,
    is_alive,
    is_fresh,
    sending_heartbeats,
)
from hudi_fast.timeline.instants import Instant, State
from hudi_fast.timeline.transition import create_requested, to_inflight
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.rollback_plan import FailedWrites, abandoned_writes, expired_writes
from hudi_fast.writing.settings import Settings
from tests.support.instrumented_storage import FaultyStorage
from tests.support.mor_tables import mor_options
from tests.support.small_tables import assert_tidy, listing, options, plain_rows, rows_of, table_rows, write_to

POLICY = "hoodie.clean.failed.writes.policy"
RULE = HeartbeatRule()


class SilentStorage(Storage):
    """Signs of life go unheard while ``silent``; they are counted."""

    silent = False
    beats = 0

    def write_bytes(self, path: str, data: bytes) -> None:
        """See ``Storage``."""
        if "/.heartbeat/" in path:
            self.beats += 1
            if self.silent:
                raise OSError("no")
        super().write_bytes(path, data)


class SlowStorage(SilentStorage):
    """Storage that takes its time once the first sign of life is given, and takes no more of them."""

    def create_exclusive(self, path: str, data: bytes, *more: Any) -> None:
        """See ``Storage``."""
        if self.beats == 1 and ".marker." in path:
            self.silent = True
            wait_for(lambda: self.beats > 1)
        super().create_exclusive(path, data, *more)


def wait_for(true: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def grow_old(path: Path, instant: str, seconds: float) -> None:
    long_ago = time.time() - seconds
    os.utime(path / heartbeat_path(instant), (long_ago, long_ago))


def left_by_another(path: Path, requested: str, action: str = "commit") -> None:
    """A write of another program that is under way, or has died."""
    storage = Storage(path)
    config = load_state(storage).config
    instant = Instant(requested, action, State.REQUESTED)
    create_requested(storage, config, instant)
    to_inflight(storage, config, instant)
    storage.write_bytes(heartbeat_path(requested), b"")


def pending(path: Path) -> list[str]:
    return [one.requested for one in load_state(Storage(path)).timeline.pending()]


def test_signs_are_given_again_and_again_and_the_file_goes(tmp_path: Path) -> None:
    storage = SilentStorage(tmp_path)
    with sending_heartbeats(storage, "1", HeartbeatRule(5, 10_000)) as heart:
        assert is_fresh(storage, "1", RULE)
        wait_for(lambda: storage.beats >= 4)
        heart.require_alive()
    assert not storage.exists(heartbeat_path("1"))
    assert not any("heartbeat 1" in thread.name for thread in threading.enumerate())


def test_a_sign_that_fails_is_a_warning_and_too_long_a_silence_is_noticed(tmp_path: Path) -> None:
    storage = SilentStorage(tmp_path)
    with sending_heartbeats(storage, "1", HeartbeatRule(20, 3)) as heart:
        with pytest.warns(hf.HudiWarning, match="could not be written"):  # noqa: PT031 - the thread warns meanwhile
            storage.silent = True
            wait_for(lambda: storage.beats >= 8)
            time.sleep(0.1)
        with pytest.raises(hf.CommitConflictError, match=r"Heartbeat for instant 1 .* has expired"):
            heart.require_alive()
        storage.silent = False
        done = storage.beats
        wait_for(lambda: storage.beats >= done + 2)
        with pytest.raises(hf.CommitConflictError, match="has expired"):  # others may have acted in between
            heart.require_alive()


def test_work_does_not_begin_without_a_first_sign(tmp_path: Path) -> None:
    storage = FaultyStorage(tmp_path, at=0)
    with pytest.raises(hf.CommitError, match="Nothing was changed"):
        Heartbeat(storage, "1", RULE).start()


def test_signs_count_for_interval_times_misses(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    storage.write_bytes(heartbeat_path("1"), b"")
    grow_old(tmp_path, "1", 30)
    assert is_alive(storage, "1", HeartbeatRule(20_000, 2))
    assert not is_alive(storage, "1", HeartbeatRule(20_000, 1))
    assert not is_alive(storage, "2", RULE)


def test_of_this_machine_locks_tell_and_not_the_file_of_one_that_was_killed(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    heart = Heartbeat(storage, "1", RULE)
    heart.start()
    assert is_fresh(storage, "1", RULE)
    assert not is_alive(storage, "1", RULE)
    heart.stop()


def test_with_concurrent_writers_signs_of_this_machine_count_too(tmp_path: Path) -> None:
    storage, shared = Storage(tmp_path), HeartbeatRule(shared=True)
    with sending_heartbeats(storage, "1", shared):
        assert is_alive(storage, "1", shared)
        grow_old(tmp_path, "1", 200)
        assert not is_alive(storage, "1", shared)
    assert not is_alive(storage, "1", shared)


@pytest.mark.slow("OPTIMISTIC_CONCURRENCY_CONTROL")
@pytest.mark.parametrize("mode", ["SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL"])
def test_a_clean_rolls_back_a_write_of_this_machine_only_where_it_cannot_be_running(mode: str, tmp_path: Path) -> None:
    lock = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"
    several = {"hoodie.write.concurrency.mode": mode, "hoodie.write.lock.provider": lock}
    settings = {**options(), POLICY: "LAZY", **several}
    hf.write(plain_rows(range(4)), tmp_path, settings)
    running = "20240101000000000"
    left_by_another(tmp_path, running)
    with sending_heartbeats(Storage(tmp_path), running):
        hf.HudiTable.open(tmp_path).services.clean(settings)
        assert pending(tmp_path) == ([] if mode == "SINGLE_WRITER" else [running])
    hf.HudiTable.open(tmp_path).services.clean(settings)
    assert_tidy(tmp_path)


@pytest.mark.slow("compact_logs")
@pytest.mark.parametrize("service", ["compact", "compact_logs"])
def test_the_option_says_how_long_a_service_of_others_is_left_alone(service: str, tmp_path: Path) -> None:
    settings = mor_options({"hoodie.log.compaction.blocks.threshold": "1"})
    for ts in (1, 2):
        hf.write(plain_rows(range(4), ts=ts), tmp_path, settings)
    services = hf.HudiTable.open(tmp_path).services
    planned = getattr(services, f"schedule_{service}")(settings)
    storage = Storage(tmp_path)
    to_inflight(storage, load_state(storage).config, Instant(planned.instant, planned.action, State.REQUESTED))
    storage.write_bytes(heartbeat_path(planned.instant), b"")
    grow_old(tmp_path, planned.instant, 30)
    with pytest.raises(hf.ServiceTakenError, match=r"in the last 120 s|not pending"):
        getattr(services, service)(settings, plan=planned)
    assert pending(tmp_path) == [planned.instant]
    short = {**settings, "hoodie.client.heartbeat.interval_in_ms": "10000"}
    result = getattr(services, service)(short)
    assert result.file_groups == 2
    assert not storage.exists(heartbeat_path(result.instant))
    assert_tidy(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_eager_rolls_back_what_lazy_leaves_to_the_clean_and_never_leaves_alone(table_type: str, tmp_path: Path) -> None:
    settings = {**options(), "hoodie.datasource.write.table.type": table_type}
    action = "commit" if table_type == "COPY_ON_WRITE" else "deltacommit"
    hf.write(plain_rows(range(4)), tmp_path, settings)
    left_by_another(tmp_path, "20240101000000000", action)
    change = plain_rows([1], ts=2, text="b")
    for policy in ("LAZY", "NEVER"):
        hf.write(change, tmp_path, {**settings, POLICY: policy})
        assert pending(tmp_path) == ["20240101000000000"]
    assert table_rows(tmp_path) == {**rows_of(plain_rows(range(4))), **rows_of(change)}
    services = hf.HudiTable.open(tmp_path).services
    services.clean({**settings, POLICY: "LAZY"})  # still alive
    assert pending(tmp_path) == ["20240101000000000"]
    grow_old(tmp_path, "20240101000000000", 200)
    services.clean({**settings, POLICY: "NEVER"})
    assert pending(tmp_path) == ["20240101000000000"]
    services.clean({**settings, POLICY: "LAZY"})
    assert pending(tmp_path) == []
    left_by_another(tmp_path, "20240101000000001", action)
    grow_old(tmp_path, "20240101000000001", 200)
    hf.write(change, tmp_path, settings)
    assert_tidy(tmp_path)


def test_policies_choose_among_pending_writes(tmp_path: Path) -> None:
    hf.write(plain_rows(range(4)), tmp_path, options())
    for requested in ("20240101000000000", "20240101000000002"):
        left_by_another(tmp_path, requested)
    grow_old(tmp_path, "20240101000000000", 200)
    state = load_state(Storage(tmp_path))
    newest_first = ["20240101000000002", "20240101000000000"]

    def chosen(policy: str) -> list[list[str]]:
        rules = FailedWrites(policy)
        return [[one.requested for one in choose(state, rules)] for choose in (abandoned_writes, expired_writes)]

    assert [chosen("LAZY"), chosen("NEVER")] == [[[], newest_first[1:]], [[], []]]
    with pytest.raises(hf.CommitConflictError, match=newest_first[0]):
        chosen("EAGER")
    grow_old(tmp_path, "20240101000000002", 200)
    assert chosen("EAGER") == [newest_first] * 2


@pytest.mark.slow("COPY_ON_WRITE")
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_single_writer_leaves_a_live_write_of_another_program_alone(table_type: str, tmp_path: Path) -> None:
    settings = {**options(), "hoodie.datasource.write.table.type": table_type}
    action = "commit" if table_type == "COPY_ON_WRITE" else "deltacommit"
    hf.write(plain_rows(range(4)), tmp_path, settings)
    running = "20240101000000001"
    left_by_another(tmp_path, running, action)
    before = listing(tmp_path)
    calls = (
        lambda: hf.write(plain_rows([1], ts=2), tmp_path, settings),
        lambda: hf.HudiTable.open(tmp_path).services.clean(settings),
    )
    for call in calls:
        with pytest.raises(
            hf.CommitConflictError, match=rf"{running} .* is being written.*Nothing was changed"
        ) as error:
            call()
        assert error.value.other == running
    assert listing(tmp_path) == before
    Storage(tmp_path).delete_file(heartbeat_path(running))
    hf.write(plain_rows([1], ts=2), tmp_path, settings)
    assert_tidy(tmp_path)


@pytest.mark.slow
def test_a_lazy_writer_does_not_commit_after_too_long_a_silence(tmp_path: Path) -> None:
    settings = {**options(), POLICY: "LAZY"}
    hf.write(plain_rows(range(4)), tmp_path, settings)
    assert list((tmp_path / ".hoodie" / ".heartbeat").iterdir()) == []
    rows = table_rows(tmp_path)
    times = {"hoodie.client.heartbeat.interval_in_ms": "1000", "hoodie.client.heartbeat.tolerable.misses": "1"}
    with pytest.warns(hf.HudiWarning, match="could not be written"), pytest.raises(hf.CommitConflictError) as caught:
        write_to(SlowStorage(tmp_path), plain_rows([9]), {**settings, **times})
    assert "has expired" in str(caught.value)
    assert table_rows(tmp_path) == rows
    hf.write(plain_rows([9]), tmp_path, options())
    assert_tidy(tmp_path)


def test_the_default_costs_no_signs_of_life(tmp_path: Path) -> None:
    hf.write(plain_rows(range(4)), tmp_path, options())
    assert not list((tmp_path / ".hoodie").glob(".heartbeat/*"))
    assert Settings.from_options({}).failed_writes == FailedWrites("EAGER", RULE)
