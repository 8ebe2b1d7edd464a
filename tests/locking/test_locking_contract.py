"""What every kind of lock does: one holder, waiters who are told about it, and holders who know when they lost it.

What is particular to a kind (formats, names, faults, Apache Hudi beside it) is tested in the module of that kind.

Modules: hudi_fast.locking.provider.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.config.concurrency_options import LockOptions
from hudi_fast.locking.table_lock import HeldLock, table_lock
from tests.locking.contention import contend, contend_threads
from tests.locking.providers import LEASED, LOCK, ON_SERVERS, Provider, held, kinds, open_kind
from tests.support.descriptors import open_things
from tests.support.forks import wait_for

EACH = pytest.mark.parametrize("provider", kinds(), indirect=True)
TABLE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hudi_fast.threads": "1",
}
SINGLE: dict[str, str] = {}
SHARED = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
}


@pytest.fixture
def provider(request: pytest.FixtureRequest) -> Provider:
    """A lock that its holder does not lose in a test by being slow."""
    return open_kind(request.param, request)


@pytest.fixture
def leased(request: pytest.FixtureRequest) -> Provider:
    """A lock whose lease is short, or whose file expires."""
    return open_kind(request.param, request, leased=True)


def leases(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("leased", kinds(*names), indirect=True)


# ---- one holder


@EACH
def test_a_lock_is_taken_and_given_back(provider: Provider) -> None:
    lock = provider.open()
    assert provider.holders() == []
    assert lock.try_lock(0.0)
    (first,) = provider.holders()
    lock.require_held()
    lock.unlock()
    assert provider.holders() == []
    lock.close()
    with held(provider.open()) as other:
        other.require_held()
        (second,) = provider.holders()
        lock.close()
        assert provider.holders() == [second]
    assert provider.holders() == []
    assert first != second or "process" in first


@EACH
def test_a_lock_that_is_taken_again_and_again_leaves_nothing_open(provider: Provider) -> None:
    found = []
    for _ in range(15):
        with held(provider.open()):
            pass
        found.append(open_things())
    assert all(last <= early + 4 for early, last in zip(found[4], found[-1], strict=True)), found


@EACH
def test_a_child_of_fork_neither_has_the_lock_nor_takes_it_away(provider: Provider) -> None:
    """It leaves the block as well, as a child does whose work fails."""
    options = LockOptions.from_options(dict(provider.options))
    child, refused = -1, False
    try:
        with table_lock(provider.table, options) as lock:
            before = provider.holders()
            child = os.fork()
            if not child:
                lock.require()
            assert wait_for(child) == 0
            assert len(before) == 1
            assert provider.holders() == before
            lock.require()
    except hf.LockError as error:
        refused = "was forked" in str(error)
    finally:
        if not child:
            os._exit(0 if refused else 1)
    assert provider.holders() == []


@pytest.mark.parametrize("provider", kinds(*LEASED), indirect=True)
def test_a_lock_that_is_not_held_is_not_relied_on(provider: Provider) -> None:
    lock = provider.open()
    with held(provider.open()):
        assert not lock.try_lock(0.0)
        with pytest.raises(hf.LockError, match=provider.not_held):
            lock.require_held()
    with held(lock):
        lock.require_held()
    with pytest.raises(hf.LockError, match=provider.not_held):
        lock.require_held()


@pytest.mark.parametrize("provider", kinds(*LEASED), indirect=True)
def test_a_lock_is_not_taken_twice_by_one_provider(provider: Provider) -> None:
    with held(provider.open()) as lock:
        with pytest.raises(hf.LockError, match="already holds"):
            lock.try_lock(0.0)
        lock.require_held()
        assert len(provider.holders()) == 1
    assert provider.holders() == []


@pytest.mark.smoke(*ON_SERVERS)
@leases()
def test_others_wait_and_are_told_the_holder(leased: Provider) -> None:
    other = leased.open()
    with held(leased.open()) as lock:
        (holder,) = leased.holders()
        assert not other.try_lock(0.0)
        started = time.monotonic()
        assert not other.try_lock(0.2)
        assert 0.2 <= time.monotonic() - started < 2.0 + leased.lease_seconds
        assert holder in other.holder
        assert leased.holders() == [holder]
        other.unlock()
        assert leased.holders() == [holder]
        lock.require_held()
    assert other.try_lock(0.0)
    other.require_held()
    other.close()
    assert leased.holders() == []


@pytest.mark.slow("in_storage")
@EACH
def test_a_waiter_goes_on_when_the_lock_is_free(provider: Provider) -> None:
    with held(provider.open()) as holder:
        timer = threading.Timer(0.2, holder.unlock)
        started = time.monotonic()
        timer.start()
        with held(provider.open(), 30.0) as waiter:
            assert 0.15 < time.monotonic() - started < provider.soon_seconds
            waiter.require_held()
        timer.join()
    assert provider.holders() == []


# ---- contention


@EACH
def test_threads_never_hold_it_together(provider: Provider, tmp_path: Path) -> None:
    contend_threads(tmp_path / "c", lambda: held(provider.open(), 60.0), 4, provider.rounds.threads)
    assert provider.holders() == []


@pytest.mark.slow(but="few-machine")
@EACH
@pytest.mark.parametrize("number", ["few", pytest.param("many", marks=[pytest.mark.long, pytest.mark.timeout(600)])])
def test_processes_never_hold_it_together(provider: Provider, tmp_path: Path, number: str) -> None:
    rounds = provider.rounds.processes if number == "few" else provider.rounds.many
    with provider.peer() as one, provider.peer() as two, provider.peer(provider.varied) as three:
        contend(tmp_path / "c", [one, two, three], rounds, 500.0)
    assert provider.holders() == []


# ---- holders that end


@pytest.mark.slow(but="in_storage")
@leases()
def test_the_lock_of_a_killed_holder_is_free_after_its_lease(leased: Provider) -> None:
    waiter = leased.open()
    with leased.peer() as peer:
        assert peer.ask("lock 10") == "locked"
        assert not waiter.try_lock(0.0)
        (holder,) = leased.holders()
        assert holder in waiter.holder
        peer.signal(signal.SIGKILL)
        started = time.monotonic()
        with held(leased.heir()) as heir:
            assert time.monotonic() - started < leased.lease_seconds + 2.0
            heir.require_held()
            assert len(leased.holders()) == 1
    assert leased.holders() == []


@pytest.mark.parametrize("provider", kinds("file_system", "hdfs"), indirect=True)
def test_the_lock_of_a_killed_holder_is_kept_where_it_never_expires(provider: Provider) -> None:
    with provider.peer() as peer:
        assert peer.ask("lock 10") == "locked"
        peer.signal(signal.SIGKILL)
    waiter = provider.open()
    assert not waiter.try_lock(0.05)
    assert provider.holders()[0] in waiter.holder
    assert f'"process": {peer.process.pid}' in waiter.holder


@pytest.mark.long
@leases("zookeeper", "dynamodb")
def test_holders_that_are_killed_again_and_again_stand_in_nobodys_way(leased: Provider, tmp_path: Path) -> None:
    for _ in range(10):
        with leased.peer() as dying, leased.peer() as living:
            assert dying.ask("lock 10") == "locked"
            living.send(f"contend 20 {tmp_path}")
            dying.signal(signal.SIGKILL)
            assert living.answer(30.0) == "done 20"


# ---- holders that lose the lock


@pytest.mark.slow("hold_it-file_system")
@leases(*LEASED)
@pytest.mark.parametrize("heirs", ["hold_it", pytest.param("are_done", marks=pytest.mark.long)])
def test_a_holder_that_was_suspended_past_its_lease_does_not_publish(leased: Provider, heirs: str) -> None:
    with leased.peer() as sleeper:
        assert [sleeper.ask("lock 10"), sleeper.ask("held")] == ["locked", "held"]
        sleeper.signal(signal.SIGSTOP)
        with held(leased.heir()) as heir:
            (holder,) = leased.holders()
            if heirs == "are_done":
                heir.unlock()
            sleeper.signal(signal.SIGCONT)
            answer = sleeper.ask("held")
            assert answer.startswith("error LockError: The lock")
            assert "Nothing was published" in answer
            if heirs == "hold_it" and "{}" in leased.lost:
                assert re.search(leased.lost.format(re.escape(holder)), answer)
            assert sleeper.ask("unlock") == "unlocked"
            if heirs == "hold_it":
                heir.require_held()
                assert leased.holders() == [holder]
        assert [sleeper.ask("lock 10"), sleeper.ask("held"), sleeper.ask("unlock")] == ["locked", "held", "unlocked"]
    assert leased.holders() == []


@leases(*LEASED)
@pytest.mark.parametrize("knows", [True, False], ids=["that_knows_it", "that_does_not_know_it"])
def test_giving_up_a_lost_lock_leaves_the_thiefs_alone(leased: Provider, knows: bool) -> None:
    victim = leased.open()
    assert victim.try_lock(10.0)
    with held(leased.thief()) as thief:
        (holder,) = leased.holders()
        if knows:
            with pytest.raises(hf.LockError, match=leased.lost.format(re.escape(holder))):
                victim.require_held()
        victim.unlock()
        victim.close()
        thief.require_held()
        assert leased.holders() == [holder]
    assert leased.holders() == []


# ---- the lock of a table


@EACH
def test_the_lock_of_a_table_is_that_of_its_provider(provider: Provider) -> None:
    with table_lock(provider.table, LockOptions.from_options(dict(provider.options))) as lock:
        lock.require()
        (holder,) = provider.holders()
        waiter = provider.open()
        assert not waiter.try_lock(0.0)
        assert holder in waiter.holder
        waiter.close()
    assert provider.holders() == []


def write(provider: Provider, ids: list[int], changes: dict[str, Any], mode: Any = "append") -> None:
    """Write rows with these keys, and nothing else in them."""
    settings = {**TABLE, **provider.options, **changes}
    options = dict(provider.table.options)
    hf.write(pa.table({"id": ids, "v": ids}), provider.path, settings, mode=mode, storage_options=options)


def keys_of(provider: Provider) -> list[int]:
    rows = hf.HudiTable.open(provider.path, storage_options=dict(provider.table.options)).to_arrow()
    return sorted(rows.column("id").to_pylist())


def files_of(provider: Provider) -> dict[str, int | None]:
    """All but locks."""
    found = provider.table.list_dir("", recursive=True)
    return {each.path: each.size for each in found if "lock" not in each.name and "/.locks/" not in each.path}


@pytest.mark.slow(but="machine")
@leases()
def test_who_does_not_get_the_tables_lock_is_told_the_holder_and_writes_nothing(leased: Provider) -> None:
    patient = {f"{LOCK}wait_time_ms": 3000}
    write(leased, [1], patient)
    before = files_of(leased)
    with held(leased.open()) as lock:
        (holder,) = leased.holders()
        started = time.monotonic()
        with pytest.raises(hf.LockTimeoutError) as failure:
            write(leased, [2], {f"{LOCK}wait_time_ms": 150, f"{LOCK}client.num_retries": 0})
        assert 0.1 < time.monotonic() - started < 5.0
        for part in (leased.path, holder, "wait_time_ms"):
            assert part in str(failure.value)
        assert re.search(r"(after|within) \d\.\d+ s", str(failure.value))
        assert files_of(leased) == before
        lock.require_held()
    write(leased, [2], patient)
    assert keys_of(leased) == [1, 2]


WRITES = [
    pytest.param(*kind.values, mode, id=f"{name}-{kind.values[0]}", marks=[*kind.marks, *[pytest.mark.long] * is_long])
    for kind in kinds()
    for name, mode in (("single", SINGLE), ("shared", SHARED))
    for is_long in [(kind.values[0], name) not in (("file_system", "shared"), ("in_storage", "single"))]
]


@pytest.mark.slow("shared-file_system")
@pytest.mark.parametrize(("provider", "mode"), WRITES, indirect=["provider"])
def test_writers_of_a_table_take_the_lock(
    provider: Provider, mode: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    end = HeldLock.end

    def look(lock: HeldLock) -> None:
        seen.append(len(provider.holders()))
        end(lock)

    monkeypatch.setattr(HeldLock, "end", look)
    for save_mode, first in (("append", 0), ("append", 2), ("overwrite", 7)):
        seen.clear()
        write(provider, [first, first + 1], mode, save_mode)
        if save_mode == "append":  # the lock in a table goes with it when another replaces it
            assert {*seen} == {1}
        assert provider.holders() == []
    assert keys_of(provider) == [7, 8]
