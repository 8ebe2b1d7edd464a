"""Early conflict detection of Apache Hudi finds what this library has announced, and knows whether it is at work."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.writing.local import LocalEngine
from hudi_fast.writing.write_plan import WriteOutcome, WritePlan
from tests.interop.sides import Sides, after_upsert, trip_options, trips
from tests.peer.client import PeerError
from tests.support.sessions import write_engine

EARLY = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.concurrency.early.conflict.detection.enable": "true",
    "hoodie.write.markers.type": "DIRECT",
}

IN_PROCESS = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"}
PATIENT = {
    "hoodie.write.lock.client.wait_time_ms_between_retry": "200",
    "hoodie.write.lock.client.num_retries": "400",
}


class Waiting(LocalEngine):
    """Has written its files and waits, before the write lands."""

    def __init__(self, rows: Any) -> None:
        super().__init__(rows)
        self.has_written, self.may_land = threading.Event(), threading.Event()

    def execute(self, plan: WritePlan) -> WriteOutcome:
        outcome = super().execute(plan)
        self.has_written.set()
        assert self.may_land.wait(240)
        return outcome


@contextmanager
def at_work(sides: Sides, rows: Any) -> Iterator[None]:
    """A write of ours has written its files; it lands after the block."""
    engine, failures = Waiting(rows), []

    def write() -> None:
        try:
            write_engine(engine, Storage(sides.path), sides.options, "append")
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        assert engine.has_written.wait(60), failures
        yield
    finally:
        engine.may_land.set()
        thread.join(60)
    assert failures == []


@pytest.mark.long
@pytest.mark.parametrize(("peer", "version"), [("hudi_12", 9), ("hudi_12", 6), ("hudi_015", 6)])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudi_gives_way_to_a_write_of_ours_that_is_at_work(
    request: pytest.FixtureRequest, tmp_path: Path, peer: str, version: int, kind: str
) -> None:
    options = trip_options(version) | EARLY | {"hoodie.datasource.write.table.type": kind}
    sides = Sides(request.getfixturevalue(peer), tmp_path / "trips", options, plainly=True)
    sides.we_write(trips(range(12)))
    first, second = trips([0, 3], 5), trips([0, 6], 9)
    with at_work(sides, first):
        with pytest.raises(PeerError, match="Early conflict detected"):
            sides.hudi_writes(second)
        sides.hudi_writes(trips([1, 4], 7))
    expected = after_upsert(after_upsert(trips(range(12)), first), trips([1, 4], 7))
    sides.hudi_writes(second)
    sides.agree(after_upsert(expected, second))


@pytest.mark.long
@pytest.mark.parametrize("form", ["DIRECT", "TIMELINE_SERVER_BASED"])
def test_we_give_way_to_a_write_of_hudi_that_is_at_work(
    request: pytest.FixtureRequest, tmp_path: Path, form: str
) -> None:
    options = trip_options(9) | EARLY | {"hoodie.write.markers.type": form}
    sides = Sides(request.getfixturevalue("hudi_12"), tmp_path / "trips", options, plainly=True)
    sides.we_write(trips(range(12)))
    theirs, ours = trips([0, 3], 5), trips([0, 6], 9)
    with waiting_for_the_lock(sides, theirs), pytest.raises(hf.CommitConflictError, match="Early conflict detected"):
        # With another lock: theirs is kept from landing by the one that they share.
        sides.we_write(ours, more=IN_PROCESS)
    sides.we_write(ours)
    sides.agree(after_upsert(after_upsert(trips(range(12)), theirs), ours))


@contextmanager
def waiting_for_the_lock(sides: Sides, rows: Any) -> Iterator[None]:
    """A write of Hudi has written its files and wants the lock; it lands after the block."""
    failures: list[BaseException] = []
    lock, temp, timeline = (sides.path / ".hoodie" / name for name in ("lock", ".temp", "timeline"))
    before = set(timeline.glob("*.inflight"))

    def write() -> None:
        try:
            sides.hudi_writes(rows, more=PATIENT)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        until(lambda: set(timeline.glob("*.inflight")) > before)
        until(lambda: made(lock))
        until(lambda: any(temp.rglob("*.marker.*")) or any(temp.rglob("MARKERS[0-9]*")))
        time.sleep(1.0)  # more of them, perhaps
        yield
    finally:
        lock.unlink(missing_ok=True)
        thread.join(120)
    assert failures == []


def made(lock: Path) -> bool:
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return False
    return True


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.002)
