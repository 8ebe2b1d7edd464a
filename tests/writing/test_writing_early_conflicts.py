"""Conflicts that show before a file group is written: whose markers count, and what becomes of the write."""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CommitConflictError, ConfigError
from hudi_fast.storage.base import Storage
from hudi_fast.table.services import TableServices
from hudi_fast.timeline.heartbeat import HeartbeatRule, heartbeat_path
from hudi_fast.timeline.instants import Instant, State, load_timeline
from hudi_fast.timeline.transition import complete, create_requested, to_inflight
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.early_conflicts import EarlyDetection, FileGroup, require_no_earlier_writer
from hudi_fast.writing.local import LocalEngine
from hudi_fast.writing.markers import create_marker, make_marker_folder, marked_in_partition, marker_instants
from hudi_fast.writing.write_plan import WriteOutcome, WritePlan
from tests.support.mor_tables import mor_options
from tests.support.sessions import write_engine
from tests.support.small_tables import assert_tidy, listing, options, plain_rows, table_rows

EARLIER, OWN, LATER = "20200101000000400", "20200101000000500", "20200101000000600"
SHARED = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    "hoodie.clean.failed.writes.policy": "LAZY",
}
EARLY = SHARED | {"hoodie.write.concurrency.early.conflict.detection.enable": "true"}
KINDS = [(kind, version) for kind in ("COW", "MOR") for version in ("6", "8", "9")]
DIRECT, BATCHED = "DIRECT", "TIMELINE_SERVER_BASED"
RULE = HeartbeatRule(60_000, 2)


@dataclass(frozen=True)
class Table:
    """A table with a file group in each of its partitions.

    Attributes:
        storage: where it is.
        config: its configuration.
        settings: what it is written with.
    """

    storage: Storage
    config: TableConfig
    settings: dict[str, Any]

    def slices(self) -> list[FileSlice]:
        view = load_state(self.storage).view
        return [one for partition in view.lister.partitions() for one in latest_slices(view, partition)]

    def upsert(self, ids: Sequence[int], **more: Any) -> Any:
        return hf.write(plain_rows(ids, ts=9), self.storage.uri, self.settings | more)

    def another(
        self, slice_: FileSlice, requested: str = EARLIER, action: str = "", form: str = DIRECT, beats: bool = True
    ) -> Instant:
        """Another writer that has announced a file of a slice."""
        write = action or ("deltacommit" if self.config.is_mor else "commit")
        instant = create_requested(self.storage, self.config, Instant(requested, write, State.REQUESTED), b"")
        instant = to_inflight(self.storage, self.config, instant)
        self.announce(slice_, requested, form)
        if beats:
            self.storage.write_bytes(heartbeat_path(requested), b"")
        return instant

    def announce(self, slice_: FileSlice, requested: str, form: str = DIRECT) -> None:
        make_marker_folder(self.storage, requested)
        name = f"{slice_.file_id}_0-1-0_{requested}.parquet"
        if self.config.is_mor:
            name = f".{slice_.file_id}_{requested}.log.1_0-1-0"
        path = f"{slice_.partition}/{name}" if slice_.partition else name
        if form == DIRECT:
            create_marker(self.storage, requested, path, "MERGE")
            return
        folder = f".hoodie/.temp/{requested}"
        self.storage.write_bytes(f"{folder}/MARKERS.type", form.encode())
        self.storage.write_bytes(f"{folder}/MARKERS0", f"elsewhere/{name}x.marker.MERGE\n".encode())
        self.storage.write_bytes(f"{folder}/MARKERS7", f"other.marker.MERGE\n{path}.marker.MERGE\n".encode())


def make(path: Path, kind: str = "COW", version: str = "9", **more: Any) -> Table:
    settings = (mor_options if kind == "MOR" else options)(table_version=version) | EARLY | more
    hf.write(plain_rows(range(4)), path, settings)
    storage = Storage(path)
    return Table(storage, load_state(storage).config, settings)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return make(tmp_path / "t")


def is_ahead(table: Table, group: FileGroup, detection: EarlyDetection | None = None, instant: str = OWN) -> bool:
    """Whether somebody is in the way of a write to a file group."""
    try:
        require_no_earlier_writer(detection or EarlyDetection(RULE), table.storage, table.config, instant, group)
    except CommitConflictError as error:
        return (error.instant, error.file_groups) == (instant, (group,))
    return False


def group_of(slice_: FileSlice) -> FileGroup:
    return slice_.partition, slice_.file_id


# ---- whose markers count


@pytest.mark.parametrize("form", [DIRECT, BATCHED])
@pytest.mark.parametrize(("kind", "version"), [("COW", "6"), ("MOR", "8")])
def test_a_marker_of_somebody_earlier_who_is_at_work_counts_for_its_file_group_alone(
    tmp_path: Path, kind: str, version: str, form: str
) -> None:
    table = make(tmp_path / "t", kind, version)
    first, second = table.slices()[:2]
    table.another(first, form=form)
    assert is_ahead(table, group_of(first))
    assert not is_ahead(table, group_of(second))
    assert not is_ahead(table, (second.partition, first.file_id))
    assert not is_ahead(table, (first.partition, first.file_id[:-1]))


@pytest.mark.parametrize("form", [DIRECT, BATCHED])
def test_tables_without_partitions_have_their_markers_at_the_top(tmp_path: Path, form: str) -> None:
    table = make(tmp_path / "t", **{"hoodie.datasource.write.partitionpath.field": ""})
    table.another(table.slices()[0], form=form)
    assert is_ahead(table, group_of(table.slices()[0]))


def test_a_later_one_gives_way_and_not_the_earlier(table: Table) -> None:
    slice_ = table.slices()[0]
    table.another(slice_, LATER)
    assert not is_ahead(table, group_of(slice_))
    assert not is_ahead(table, group_of(slice_), instant=LATER)


def test_a_writer_without_signs_of_life_does_not_count(table: Table) -> None:
    slice_ = table.slices()[0]
    table.another(slice_, beats=False)
    assert not is_ahead(table, group_of(slice_))
    table.storage.write_bytes(heartbeat_path(EARLIER), b"")
    assert is_ahead(table, group_of(slice_))
    long_ago = time.time() - 121
    os.utime(table.storage.fs_path(heartbeat_path(EARLIER)), (long_ago, long_ago))
    assert not is_ahead(table, group_of(slice_))
    assert is_ahead(table, group_of(slice_), EarlyDetection(HeartbeatRule(60_000, 3)))


@pytest.mark.parametrize(
    ("kind", "version", "action"),
    [("MOR", "6", "compaction"), ("MOR", "9", "compaction"), ("COW", "9", "clustering"), ("COW", "8", "replacecommit")],
)
def test_services_and_replacements_do_not_count(tmp_path: Path, kind: str, version: str, action: str) -> None:
    table = make(tmp_path / "t", kind, version)
    slice_ = table.slices()[0]
    table.another(slice_, action=action)
    assert not is_ahead(table, group_of(slice_))


def test_leftover_markers_of_a_write_that_is_complete_do_not_count(table: Table) -> None:
    slice_ = table.slices()[0]
    instant = table.another(slice_)
    assert is_ahead(table, group_of(slice_))
    complete(table.storage, table.config, instant, b"{}", lambda: LATER)
    assert not is_ahead(table, group_of(slice_))


def test_folders_that_no_instant_has_are_passed_over(table: Table) -> None:
    slice_ = table.slices()[0]
    table.announce(slice_, EARLIER)
    table.storage.write_bytes(heartbeat_path(EARLIER), b"")
    table.storage.make_dir(".hoodie/.temp/not_an_instant")
    assert not is_ahead(table, group_of(slice_))


def test_buckets_are_told_apart_by_the_beginning_of_their_file_ids(table: Table) -> None:
    slice_ = table.slices()[0]
    table.another(slice_)
    same_bucket = slice_.partition, f"{slice_.file_id[:8]}-another"
    assert not is_ahead(table, same_bucket)
    assert is_ahead(table, same_bucket, EarlyDetection(RULE, by_bucket=True))
    assert not is_ahead(table, (slice_.partition, f"x{same_bucket[1][1:]}"), EarlyDetection(RULE, by_bucket=True))


def test_a_batch_of_markers_that_is_being_written_is_read_as_far_as_it_goes(table: Table) -> None:
    folder = f".hoodie/.temp/{EARLIER}"
    table.storage.write_bytes(f"{folder}/MARKERS3", b"p/a_0-1-0_1.parquet.marker.MERGE\np/b_0-1-0_1.parq")
    assert marked_in_partition(table.storage, EARLIER, "p") == ["a_0-1-0_1.parquet"]
    assert marked_in_partition(table.storage, EARLIER, "") == []
    assert marked_in_partition(table.storage, LATER, "p") == []


# ---- writes that were completed since


@pytest.mark.parametrize(("kind", "version"), [("COW", "6"), ("MOR", "9")])
def test_what_was_completed_since_counts_where_that_is_wanted(tmp_path: Path, kind: str, version: str) -> None:
    table = make(tmp_path / "t", kind, version)
    seen = frozenset(one.requested for one in load_timeline(table.storage, table.config).writes())
    first, second = table.slices()[:2]
    wanted = EarlyDetection(RULE, seen=seen)
    assert not is_ahead(table, group_of(first), wanted, LATER)
    table.upsert([0])
    touched = [one for one in (first, second) if one.partition == table.slices()[0].partition]
    assert is_ahead(table, group_of(touched[0]), wanted, LATER)
    assert is_ahead(
        table, (touched[0].partition, f"{touched[0].file_id[:8]}x"), EarlyDetection(RULE, True, seen), LATER
    )
    assert not is_ahead(table, group_of(second), wanted, LATER)
    assert not is_ahead(table, group_of(first), EarlyDetection(RULE), LATER)
    now = frozenset(one.requested for one in load_timeline(table.storage, table.config).writes())
    assert not is_ahead(table, group_of(first), EarlyDetection(RULE, seen=now), LATER)


def test_a_compaction_that_was_completed_since_does_not_count(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "MOR", "9")
    table.upsert([0, 1, 2, 3])
    seen = frozenset(one.requested for one in load_timeline(table.storage, table.config).writes())
    services = TableServices(table.storage)
    assert services.compact({"hoodie.compact.inline.max.delta.commits": "1"}).instants
    assert not is_ahead(table, group_of(table.slices()[0]), EarlyDetection(RULE, seen=seen), LATER)


# ---- writes


def data_files(table: Table) -> set[str]:
    return {path for path in listing(table.storage.uri) if not path.startswith(".hoodie")}


class Waiting(LocalEngine):
    """Has written its files and waits, before the write lands."""

    def __init__(self, rows: Any) -> None:
        super().__init__(rows)
        self.has_written, self.may_land = threading.Event(), threading.Event()

    def execute(self, plan: WritePlan) -> WriteOutcome:
        outcome = super().execute(plan)
        self.has_written.set()
        assert self.may_land.wait(60)
        return outcome


@pytest.mark.slow(but="MOR-9")
@pytest.mark.parametrize(("kind", "version"), KINDS)
def test_of_two_writers_the_later_gives_way_before_it_has_written_anything(
    tmp_path: Path, kind: str, version: str
) -> None:
    table = make(tmp_path / "t", kind, version)
    slow, failures = Waiting(plain_rows([0, 1], ts=5)), []

    def write_slowly() -> None:
        try:
            write_engine(slow, Storage(table.storage.uri), table.settings, "append")
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=write_slowly, daemon=True)
    thread.start()
    assert slow.has_written.wait(60)
    before = data_files(table)
    with pytest.raises(CommitConflictError, match="Early conflict detected") as caught:
        table.upsert([0])
    after = data_files(table)
    slow.may_land.set()
    thread.join(60)
    assert failures == []
    assert after == before
    first = load_timeline(table.storage, table.config).last_completed_write
    assert first is not None
    assert caught.value.other == first.requested
    assert caught.value.file_groups[0] in map(group_of, table.slices())
    table.upsert([0])
    assert {key: row[1] for key, row in table_rows(table.storage.uri).items()} == {
        "k00000": 9,
        "k00001": 5,
        "k00002": 1,
        "k00003": 1,
    }
    assert_tidy(table.storage.uri)


def test_without_early_detection_the_later_of_two_writes_and_may_land(table: Table) -> None:
    table.another(table.slices()[0])
    table.upsert([0], **{"hoodie.write.concurrency.early.conflict.detection.enable": "false"})


def test_new_file_groups_and_others_are_written_beside_what_is_announced(table: Table) -> None:
    table.another(next(one for one in table.slices() if one.partition == "p0"))
    table.upsert([1, 3])
    table.upsert([50], **{"hoodie.datasource.write.operation": "insert", "hoodie.parquet.small.file.limit": "0"})
    with pytest.raises(CommitConflictError):
        table.upsert([1, 2])


def test_early_detection_needs_optimistic_writers(tmp_path: Path) -> None:
    single = options() | {"hoodie.write.concurrency.early.conflict.detection.enable": "true"}
    with pytest.raises(ConfigError, match="early conflict detection"):
        hf.write(plain_rows(range(4)), tmp_path / "t", single)


def test_the_write_that_gave_way_leaves_nothing(table: Table) -> None:
    before = data_files(table)
    table.another(next(one for one in table.slices() if one.partition == "p1"))
    with pytest.raises(CommitConflictError):
        table.upsert([0, 1, 2, 3])
    assert data_files(table) == before
    assert [one.requested for one in load_timeline(table.storage, table.config).pending()] == [EARLIER]
    assert marker_instants(table.storage) == [EARLIER]


def test_what_is_looked_at_travels_to_tasks() -> None:
    detection = EarlyDetection(RULE, True, frozenset({EARLIER}))
    assert pickle.loads(pickle.dumps(detection)) == detection
