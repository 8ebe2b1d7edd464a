"""A lease that ends between the last check of the lock and the completed file: no acknowledged write is lost.

The process is suspended there, as it seems: its clock jumps while another writer takes the lock and writes.

Modules: hudi_fast.writing.unseen_writes, hudi_fast.services.running, hudi_fast.locking.table_lock,
hudi_fast.timeline.transition.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.locking import dynamodb, file_system, hive_metastore, in_storage, table_lock, zookeeper
from hudi_fast.locking.machine import MachineTurn
from hudi_fast.locking.table_lock import HeldLock
from hudi_fast.storage.base import Storage
from hudi_fast.timeline import heartbeat
from hudi_fast.writing import rollback_plan, transaction
from tests.locking.providers import LEASED, Provider, held, kinds, open_kind
from tests.support.small_tables import assert_tidy

pytestmark = pytest.mark.slow
COMPLETED = re.compile(r"\.hoodie/(timeline/)?\d{17}(_\d{17})?\.(commit|deltacommit|replacecommit)")
HOUR = 3600.0
TABLE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.compact.inline": "false",
    "hudi_fast.threads": "1",
}
SINGLE: dict[str, str] = {}
SHARED = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
STRATEGY = "org.apache.hudi.client.transaction.PreferWriterConflictResolutionStrategy"
COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"


@pytest.fixture
def provider(request: pytest.FixtureRequest) -> Provider:
    return open_kind(request.param, request, leased=request.param in ("file_system", "hdfs"))


def on(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("provider", kinds(*names), indirect=True)


class Suspension:
    """Suspends the next write of this process right before its completed file is created, for an hour."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self._passed = 0.0
        self._meanwhile: Callable[[], object] | None = None
        self.pattern = COMPLETED
        clock = SimpleNamespace(**{**vars(time), "monotonic": lambda: time.monotonic() + self._passed})
        for module in (file_system, file_system, file_system, in_storage, dynamodb, zookeeper, hive_metastore):
            patch.setattr(module, "time", clock)
        create = Storage.create_exclusive

        def suspended(storage: Storage, path: str, *args: Any, **named: Any) -> None:
            is_table = not storage.fs_path("").endswith(".hoodie/metadata")
            if self._meanwhile is not None and is_table and self.pattern.fullmatch(path):
                meanwhile, self._meanwhile = self._meanwhile, None
                with elsewhere(patch):
                    meanwhile()
                self._passed += HOUR
            create(storage, path, *args, **named)

        patch.setattr(Storage, "create_exclusive", suspended)

    def during(self, meanwhile: Callable[[], object]) -> None:
        """What others do in that hour."""
        self._meanwhile = meanwhile


@contextlib.contextmanager
def elsewhere(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """As another machine: its writers do not queue for the lock of this one."""

    @contextlib.contextmanager
    def free(*args: Any, **named: Any) -> Iterator[MachineTurn]:
        yield MachineTurn()

    with patch.context() as there:
        there.setattr(table_lock, "machine_lock", free)
        yield


@pytest.fixture
def suspension(monkeypatch: pytest.MonkeyPatch) -> Suspension:
    return Suspension(monkeypatch)


def rows(ids: list[int], ts: int, part: str = "a", **more: list[Any]) -> pa.Table:
    return pa.table({"id": ids, "ts": [ts] * len(ids), "part": [part] * len(ids), **more})


def write(provider: Provider, table: pa.Table, mode: dict[str, str], kind: str = COW, **named: str) -> hf.WriteResult:
    more = {"hoodie.datasource.write.table.type": kind, "hoodie.write.table.version": "9", **named}
    settings = {**TABLE, **provider.options, **mode, **more}
    options = dict(provider.table.options)
    return hf.write(table, provider.path, settings, storage_options=options)


def table_of(provider: Provider) -> dict[int, int]:
    found = hf.HudiTable.open(provider.path, storage_options=dict(provider.table.options)).to_arrow()
    listed = found.select(["id", "ts"]).to_pylist()
    assert len(listed) == len({row["id"] for row in listed}), "a key is stored twice"
    return {row["id"]: row["ts"] for row in listed}


def take_over(provider: Provider, act: Callable[[], object]) -> Callable[[], None]:
    """Take the lock of the suspended writer, give it back, and do something under the same lock."""

    def meanwhile() -> None:
        with held(provider.thief()):
            pass
        act()
        time.sleep(provider.coarse_seconds)

    return meanwhile


@on(*LEASED)
def test_no_acknowledged_write_is_lost_when_a_lease_ends_before_the_completed_file(
    provider: Provider, suspension: Suspension
) -> None:
    write(provider, rows([1, 2], 1), SHARED)
    write(provider, rows([3], 1, "b"), SHARED)
    # nobody took the lock: the write is acknowledged
    suspension.during(lambda: None)
    write(provider, rows([1], 2), SHARED)
    # others took it, and changed other file groups: both are
    suspension.during(take_over(provider, lambda: write(provider, rows([3], 3, "b"), SHARED)))
    with pytest.warns(hf.HudiWarning, match="changed other file groups, so all are valid"):
        write(provider, rows([1], 3), SHARED)
    assert table_of(provider) == {1: 3, 2: 1, 3: 3}
    # they changed the same one: only theirs is
    suspension.during(take_over(provider, lambda: write(provider, rows([1], 4), SHARED)))
    with pytest.raises(hf.CommitConflictError, match="was completed without a lock"):
        write(provider, rows([2], 4), SHARED)
    assert table_of(provider) == {1: 4, 2: 1, 3: 3}
    assert_tidy(provider.table)
    # a write that runs again after a conflict does not lose anything either
    suspension.during(take_over(provider, lambda: write(provider, rows([1], 5), SHARED)))
    write(provider, rows([2], 5), {**SHARED, "hoodie.write.num.retries.on.conflict.failures": "1"})
    assert table_of(provider) == {1: 5, 2: 5, 3: 3}
    assert_tidy(provider.table)
    assert provider.holders() == []


@pytest.mark.long(but=("6-MERGE_ON_READ-file_system", "9-COPY_ON_WRITE-in_storage"))
@on("file_system", "in_storage")
@pytest.mark.parametrize("kind", [COW, MOR])
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_single_writer_that_was_overtaken_is_not_acknowledged(
    provider: Provider, suspension: Suspension, kind: str, version: str
) -> None:
    layout = {"hoodie.write.table.version": version}
    write(provider, rows([1, 2], 1), SINGLE, kind, **layout)
    lazy = {**layout, "hoodie.clean.failed.writes.policy": "LAZY"}
    for others, text in ((lazy, "without a lock"), (layout, "rolled back by another process")):
        # other keys, in another partition: a single writer counts on being alone all the same
        theirs = partial(write, provider, rows([7], 2, "b"), SINGLE, kind, **others)
        suspension.during(take_over(provider, theirs))
        with pytest.raises(hf.CommitConflictError, match=text):
            write(provider, rows([7, 8], 9), SINGLE, kind, **lazy)
        assert table_of(provider) == {1: 1, 2: 1, 7: 2}
        write(provider, rows([9], 1), SINGLE, kind, **layout)
        assert_tidy(provider.table)
        write(provider, rows([9], 1), {"hoodie.datasource.write.operation": "delete"}, kind, **layout)


@on("in_storage")
def test_columns_that_another_writer_added_meanwhile_are_not_lost(provider: Provider, suspension: Suspension) -> None:
    write(provider, rows([1], 1), SHARED)
    suspension.during(take_over(provider, lambda: write(provider, rows([2], 2, "b", text=["new"]), SHARED)))
    with pytest.raises(hf.CommitConflictError, match="or the columns"):
        write(provider, rows([1], 2), SHARED)
    found = hf.HudiTable.open(provider.path).to_arrow(columns=["id", "text"])
    assert sorted(found.to_pylist(), key=lambda row: row["id"]) == [{"id": 1, "text": None}, {"id": 2, "text": "new"}]


class Later:
    """A third writer, which begins after the late completion and before the late writer has its lock again."""

    def __init__(self, patch: pytest.MonkeyPatch, write: Callable[[], object]) -> None:
        self.refused: list[Exception] = []
        take_again = HeldLock.take_again

        def too_late(lock: HeldLock) -> None:
            with elsewhere(patch):
                try:
                    write()
                except hf.CommitConflictError as error:
                    self.refused.append(error)
            take_again(lock)

        patch.setattr(HeldLock, "take_again", too_late)


@on("in_storage")
@pytest.mark.parametrize(("kind", "version"), [(COW, "6"), (COW, "9"), (MOR, "6"), (MOR, "9")])
def test_no_write_begins_on_rows_that_may_be_rolled_back(
    provider: Provider, suspension: Suspension, monkeypatch: pytest.MonkeyPatch, kind: str, version: str
) -> None:
    named = {"kind": kind, "hoodie.write.table.version": version, "hoodie.metadata.enable": "false"}
    mine = pa.concat_tables([rows([1], 2), rows([2], 2, "b")])
    write(provider, pa.concat_tables([rows([1], 1), rows([2], 1, "b")]), SHARED, **named)
    suspension.during(take_over(provider, lambda: write(provider, rows([1], 3), SHARED, **named)))
    later = Later(monkeypatch, lambda: write(provider, rows([2], 4, "b"), SHARED, **named))
    with pytest.raises(hf.CommitConflictError, match=r"completed without a lock.*It is rolled back"):
        write(provider, mine, SHARED, **named)
    assert "Its writer is about to roll it back or to report it" in str(later.refused[0])
    assert table_of(provider) == {1: 3, 2: 1}
    write(provider, rows([2], 4, "b"), SHARED, **named)
    assert table_of(provider) == {1: 3, 2: 4}
    assert_tidy(provider.path)


@on("in_storage")
@pytest.mark.parametrize("kind", [COW, MOR])
def test_writes_go_on_after_a_late_writer_that_died(
    provider: Provider, suspension: Suspension, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    both = pa.concat_tables([rows([1], 1), rows([2], 1, "b")])
    write(provider, both, SHARED, kind)
    suspension.during(take_over(provider, lambda: write(provider, rows([1], 3), SHARED, kind)))
    with monkeypatch.context() as dying:
        dying.setattr(HeldLock, "take_again", lambda lock: exec("raise OSError('dies')"))
        dying.setattr(heartbeat.Heartbeat, "stop", lambda beat: beat._ended.set())
        with pytest.raises(hf.CommitStateUnknownError, match="dies"):
            write(provider, pa.concat_tables([rows([1], 2), rows([2], 2, "b")]), SHARED, kind)
    with pytest.raises(hf.CommitConflictError, match="Its writer is about to roll it back"):
        write(provider, rows([2], 4, "b"), SHARED, kind)
    time.sleep(1.1)
    short = {"hoodie.client.heartbeat.interval_in_ms": "1000", "hoodie.client.heartbeat.tolerable.misses": "1"}
    write(provider, rows([4], 4, "b"), SHARED, kind, **short)
    assert table_of(provider) == {1: 3, 2: 2, 4: 4}


@on("in_storage")
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_compaction_beside_a_write_that_has_just_completed_is_no_conflict(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    named = {"kind": MOR, "hoodie.write.table.version": version}
    write(provider, rows([1, 2], 1), SHARED, **named)
    write(provider, rows([1], 2), SHARED, **named)
    options = {**TABLE, **provider.options, **SHARED, "hoodie.compact.inline.max.delta.commits": "1"}
    table = hf.HudiTable.open(provider.path, storage_options=dict(provider.table.options))
    planned = table.services.schedule_compact(options)
    with monkeypatch.context() as leaving:
        leaving.setattr(heartbeat.Heartbeat, "stop", lambda beat: beat._ended.set())
        write(provider, rows([1], 3), SHARED, **named)
    table.services.run_pending(options)
    write(provider, rows([2], 4), SHARED, **named)
    assert planned is not None
    assert table_of(provider) == {1: 3, 2: 4}


@on("in_storage")
def test_what_a_later_write_may_have_read_is_not_rolled_back(
    provider: Provider, suspension: Suspension, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(provider, rows([1, 2], 1), SHARED)
    suspension.during(take_over(provider, lambda: write(provider, rows([1], 2), SHARED)))
    monkeypatch.setattr(transaction, "refuse_unconfirmed", lambda session: None)  # as Apache Hudi, which does not look
    later = Later(monkeypatch, lambda: write(provider, rows([2], 3), SHARED))
    with pytest.raises(hf.CommitStateUnknownError, match=r"cannot be rolled back, because commit .* may have read"):
        write(provider, rows([2], 2), SHARED)
    assert not later.refused
    assert set(table_of(provider)) == {1, 2}


@on("in_storage")
def test_a_lock_that_cannot_be_taken_again_leaves_the_outcome_open(provider: Provider, suspension: Suspension) -> None:
    write(provider, rows([1], 1), SHARED)
    with contextlib.ExitStack() as others:
        suspension.during(lambda: others.enter_context(held(provider.thief())))
        impatient = {"hoodie.write.lock.wait_time_ms": "100", "hoodie.write.lock.client.num_retries": "0"}
        with pytest.raises(hf.CommitStateUnknownError, match=r"The lock could not be acquired again.*owner"):
            write(provider, rows([1], 2), {**SHARED, **impatient})
    assert table_of(provider) == {1: 2}


@on("in_storage")
@pytest.mark.parametrize("service", ["compact", "cluster", "clean", "savepoint"])
def test_a_service_that_completes_without_a_lock_tells_or_loses_nothing(
    provider: Provider, suspension: Suspension, service: str
) -> None:
    for ts in (1, 2, 3):
        write(provider, rows([1, 2], ts), SHARED, MOR if service == "compact" else COW)
    services = hf.HudiTable.open(provider.path).services
    settings = {**TABLE, **provider.options, **SHARED, "hoodie.clean.commits.retained": "1"}
    settings["hoodie.compact.inline.max.delta.commits"] = "1"
    suffix = {"compact": "commit", "cluster": "replacecommit"}.get(service, service)
    suspension.pattern = re.compile(rf"\.hoodie/timeline/\d{{17}}_\d{{17}}\.{suffix}")
    kind, mode = (
        MOR if service == "compact" else COW,
        {**SHARED, "hoodie.write.lock.conflict.resolution.strategy": STRATEGY},
    )
    suspension.during(take_over(provider, lambda: write(provider, rows([1], 4), mode, kind)))
    if service == "compact":
        with pytest.warns(hf.HudiWarning, match="all are valid"):
            services.compact(settings)
    elif service == "cluster":
        with pytest.raises(hf.CommitConflictError):
            services.cluster(settings)
    else:
        with pytest.raises(hf.CommitStateUnknownError, match="the lock was lost before that"):
            getattr(services, service)(options=settings)
    assert table_of(provider) == {1: 4, 2: 3}


# ---- plans


SAME, OTHER = "same group", "another group"
PLANS = [
    (COW, "cluster", "6", SAME),
    (MOR, "cluster", "9", SAME),
    (MOR, "compact", "6", SAME),
    (MOR, "compact", "9", SAME),
    (MOR, "compact_logs", "8", SAME),
    (MOR, "compact", "6", OTHER),
    (COW, "cluster", "9", OTHER),
    pytest.param(COW, "cluster", "9", SAME, marks=pytest.mark.long),
    pytest.param(MOR, "cluster", "6", SAME, marks=pytest.mark.long),
    pytest.param(MOR, "compact", "8", SAME, marks=pytest.mark.long),
    pytest.param(MOR, "compact_logs", "9", SAME, marks=pytest.mark.long),
    pytest.param(MOR, "compact_logs", "9", OTHER, marks=pytest.mark.long),
]


def settings_of(provider: Provider) -> dict[str, Any]:
    return {
        **TABLE,
        **provider.options,
        **SHARED,
        "hoodie.compact.inline.max.delta.commits": "1",
        "hoodie.log.compaction.blocks.threshold": "1",
        "hoodie.clustering.plan.strategy.partition.selected": "part=a",
    }


@on("in_storage")
@pytest.mark.parametrize(("kind", "service", "version", "where"), PLANS)
def test_a_write_that_a_late_plan_has_not_seen_is_not_lost(
    provider: Provider, suspension: Suspension, kind: str, service: str, version: str, where: str
) -> None:
    layout, settings = {"hoodie.write.table.version": version}, settings_of(provider)
    write(provider, rows([3], 1, "b"), SHARED, kind, **layout)
    for ts in (1, 2):
        write(provider, rows([1, 2], ts), SHARED, kind, **layout)
    services = hf.HudiTable.open(provider.path).services
    suspension.pattern = re.compile(r"\.hoodie/(timeline/)?\d{17}\.\w+\.requested")
    changed = rows([1], 4) if where == SAME else rows([3], 4, "b")
    expected = {1: 4, 2: 2, 3: 1} if where == SAME else {1: 2, 2: 2, 3: 4}
    suspension.during(take_over(provider, lambda: write(provider, changed, SHARED, kind, **layout)))
    if where == SAME:
        with pytest.raises(hf.CommitConflictError, match="which has not seen it"):
            getattr(services, f"schedule_{service}")(settings)
        assert_tidy(provider.table)
    else:
        assert getattr(services, f"schedule_{service}")(settings) is not None
    assert table_of(provider) == expected
    getattr(services, service)(settings)
    assert table_of(provider) == expected
    write(provider, rows([2], 5), SHARED, kind, **layout)
    getattr(services, service)(settings)
    assert table_of(provider) == {**expected, 2: 5}


@on("in_storage")
def test_a_late_plan_that_another_process_executes_already_stays(
    provider: Provider, suspension: Suspension, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, settings = {"hoodie.write.table.version": "9"}, settings_of(provider)
    for ts in (1, 2):
        write(provider, rows([1, 2], ts), SHARED, MOR, **layout)
    services = hf.HudiTable.open(provider.path).services
    suspension.pattern = re.compile(r"\.hoodie/timeline/\d{17}\.compaction\.requested")
    suspension.during(take_over(provider, lambda: write(provider, rows([1], 4), SHARED, MOR, **layout)))
    take_again = HeldLock.take_again

    def too_late(lock: HeldLock) -> None:
        monkeypatch.setattr(HeldLock, "take_again", take_again)
        with elsewhere(monkeypatch):
            assert services.compact(settings) is not None
        take_again(lock)

    monkeypatch.setattr(HeldLock, "take_again", too_late)
    with pytest.raises(hf.CommitStateUnknownError, match="is being executed already"):
        hf.HudiTable.open(provider.path).services.schedule_compact(settings)
    assert table_of(provider) == {1: 4, 2: 2}


LAYOUTS = [
    (MOR, "6"),
    (COW, "9"),
    pytest.param(MOR, "9", marks=pytest.mark.long),
    pytest.param(COW, "6", marks=pytest.mark.long),
]


@on("in_storage")
@pytest.mark.parametrize("service", ["rollback", "restore"])
@pytest.mark.parametrize(("kind", "version"), LAYOUTS)
def test_a_write_that_a_late_undoing_has_not_seen_is_not_lost(
    provider: Provider, suspension: Suspension, kind: str, version: str, service: str
) -> None:
    layout = {"hoodie.write.table.version": version}
    write(provider, rows([1, 2], 1), SHARED, kind, **layout)
    services = hf.HudiTable.open(provider.path).services
    saved = services.savepoint().instant
    undone = write(provider, rows([3], 1, "b"), SHARED, kind, **layout).instant
    suspension.pattern = re.compile(rf"\.hoodie/(timeline/)?\d{{17}}\.{service}\.requested")
    # It continues the file group that is about to go.
    suspension.during(take_over(provider, lambda: write(provider, rows([3], 4, "b"), SHARED, kind, **layout)))
    with pytest.raises(hf.CommitConflictError, match="which has not seen it"):
        getattr(services, service)(undone if service == "rollback" else saved, settings_of(provider))
    assert_tidy(provider.table)
    assert table_of(provider) == {1: 1, 2: 1, 3: 4}
    write(provider, rows([2], 5), SHARED, kind, **layout)
    assert table_of(provider) == {1: 1, 2: 5, 3: 4}
    services.restore(saved, settings_of(provider))
    assert table_of(provider) == {1: 1, 2: 1}


@on("in_storage")
@pytest.mark.parametrize(("kind", "version"), LAYOUTS)
def test_a_late_undoing_beside_nothing_is_done(
    provider: Provider, suspension: Suspension, kind: str, version: str
) -> None:
    layout = {"hoodie.write.table.version": version}
    write(provider, rows([1, 2], 1), SHARED, kind, **layout)
    undone = write(provider, rows([1], 2), SHARED, kind, **layout).instant
    suspension.pattern = re.compile(r"\.hoodie/(timeline/)?\d{17}\.rollback\.requested")
    suspension.during(take_over(provider, lambda: None))
    hf.HudiTable.open(provider.path).services.rollback(undone, settings_of(provider))
    assert table_of(provider) == {1: 1, 2: 1}
    assert_tidy(provider.table)


@on("in_storage")
@pytest.mark.parametrize(("kind", "version"), LAYOUTS)
def test_a_savepoint_that_a_late_clean_has_not_seen_keeps_its_files(
    provider: Provider, suspension: Suspension, kind: str, version: str
) -> None:
    layout, settings = {"hoodie.write.table.version": version}, settings_of(provider)
    instants = [write(provider, rows([1, 2], 1), SHARED, kind, **layout).instant]
    services = hf.HudiTable.open(provider.path).services
    for ts in (2, 3, 4):
        instants.append(write(provider, rows([1, 2], ts), SHARED, kind, **layout).instant)
        if kind == MOR:
            services.compact(settings)
    suspension.pattern = re.compile(r"\.hoodie/(timeline/)?\d{17}\.clean\.requested")
    suspension.during(take_over(provider, lambda: services.savepoint(instants[1])))
    with pytest.warns(hf.HudiWarning, match="a savepoint keeps it"):
        done = services.clean({**settings, "hoodie.clean.commits.retained": "1"})
    assert done.files_deleted > 0
    assert table_of(provider) == {1: 4, 2: 4}
    services.restore(instants[1], settings)
    assert table_of(provider) == {1: 2, 2: 2}


# ---- no lock at all


@pytest.fixture
def unlocked(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Storage:
    """A table whose lock does not reach writers on other machines, as on HDFS without a provider."""
    make = table_lock.HeldLock.__init__

    def not_exclusive(lock: HeldLock, *args: Any, **named: Any) -> None:
        make(lock, *args, **named)
        lock.is_exclusive = False

    monkeypatch.setattr(table_lock.HeldLock, "__init__", not_exclusive)
    storage = Storage(tmp_path)
    hf.write(rows([1, 2], 1), storage.uri, TABLE)
    return storage


@pytest.mark.parametrize("when", ["before the check", "after the check"])
def test_without_a_lock_a_write_does_not_complete_over_one_that_it_has_not_seen(
    unlocked: Storage, suspension: Suspension, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollback_plan, "is_elsewhere", lambda *args: False)
    monkeypatch.setattr(rollback_plan, "_pending", lambda state: [])
    theirs, reconcile = partial(hf.write, rows([1], 2), unlocked.uri, TABLE), transaction._reconcile

    def interrupted(*args: Any) -> set[str]:
        monkeypatch.setattr(transaction, "_reconcile", reconcile)
        with elsewhere(monkeypatch):
            theirs()
        return reconcile(*args)

    if when == "before the check":
        monkeypatch.setattr(transaction, "_reconcile", interrupted)
    else:
        suspension.during(theirs)
    with pytest.raises(hf.CommitConflictError, match=r"has not seen|without a lock"):
        hf.write(rows([2], 2), unlocked.uri, TABLE)
    found = hf.HudiTable.open(unlocked.uri).to_arrow(columns=["id", "ts"]).to_pylist()
    assert sorted((row["id"], row["ts"]) for row in found) == [(1, 2), (2, 1)]


def test_of_two_single_writers_without_a_lock_the_second_does_not_begin(
    unlocked: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one sends heartbeats, as another machine sees them."""
    refused: list[Exception] = []

    def second() -> None:
        with monkeypatch.context() as there, elsewhere(monkeypatch):
            there.setattr(heartbeat.platform, "node", lambda: "another machine")
            with pytest.raises(hf.CommitConflictError, match="is being written") as caught:
                hf.write(rows([1], 3), unlocked.uri, TABLE)
            refused.append(caught.value)

    Suspension(monkeypatch).during(second)
    hf.write(rows([2], 2), unlocked.uri, TABLE)
    assert len(refused) == 1
    found = hf.HudiTable.open(unlocked.uri).to_arrow(columns=["id", "ts"]).to_pylist()
    assert sorted((row["id"], row["ts"]) for row in found) == [(1, 1), (2, 2)]
    assert Storage(unlocked.uri).list_dir(".hoodie/.heartbeat") == []
