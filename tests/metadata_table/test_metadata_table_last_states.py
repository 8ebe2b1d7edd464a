"""A process that reads or writes again uses the last state of a table if it is current, and no other one."""

from __future__ import annotations

import random
import shutil
from collections import Counter, OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.config.table_config import TableConfig
from hudi_fast.expressions.sql_filters import sql_filter
from hudi_fast.metadata_table import last_states
from hudi_fast.metadata_table import read as metadata_read
from hudi_fast.metadata_table import state as state_module
from hudi_fast.metadata_table.last_states import keep_state, last_state
from hudi_fast.metadata_table.state import MetadataLister, open_state
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import CommitMetadata
from hudi_fast.timeline.instants import Instant
from hudi_fast.view import table_state
from hudi_fast.view.table_state import commits_newest_first
from tests.support.instrumented_storage import RecordingStorage
from tests.support.small_tables import options, plain_rows

SETTINGS = options()


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_states, "_STATES", type(last_states._STATES)())


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts how often a metadata table is opened, and its list of files read."""
    counts: Counter[str] = Counter()
    open_metadata, load_all = state_module.open_metadata, MetadataLister._load_all

    def opening(*given: Any) -> Any:
        counts["opened"] += 1
        return open_metadata(*given)

    def loading(lister: MetadataLister) -> None:
        counts["listed"] += 1
        load_all(lister)

    monkeypatch.setattr(state_module, "open_metadata", opening)
    monkeypatch.setattr(MetadataLister, "_load_all", loading)
    return counts


def upsert(path: Path, keys: range, ts: int, more: dict[str, str] | None = None) -> None:
    hf.write(plain_rows(keys, ts=ts, partitions=4), path, {**SETTINGS, **(more or {})})


def assert_rows(path: Path, expected: dict[str, int]) -> None:
    rows = hf.HudiTable.open(path).to_arrow(columns=["id", "ts"])
    assert dict(zip(rows["id"].to_pylist(), rows["ts"].to_pylist(), strict=True)) == expected


def expected_after(*writes: tuple[range, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for keys, ts in writes:
        found |= dict.fromkeys(plain_rows(keys, ts=ts, partitions=4).column("id").to_pylist(), ts)
    return found


def test_a_second_write_lists_no_file_again(tmp_path: Path, opened: Counter[str]) -> None:
    upsert(tmp_path, range(40), 1)
    opened.clear()
    upsert(tmp_path, range(10), 2)
    upsert(tmp_path, range(30, 50), 3)
    assert not opened
    assert_rows(tmp_path, expected_after((range(40), 1), (range(10), 2), (range(30, 50), 3)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rows_are_right_over_many_writes_with_all_services(kind: str, tmp_path: Path) -> None:
    more = {
        "hoodie.datasource.write.table.type": kind,
        "hoodie.clean.commits.retained": "1",
        "hoodie.clean.max.commits": "1",
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "3",
        "hoodie.metadata.compact.max.delta.commits": "4",
    }
    writes: list[tuple[range, int]] = []
    for ts in range(1, 16):
        keys = range(ts, ts + 20)
        upsert(tmp_path, keys, ts, more)
        writes.append((keys, ts))
        kept, found = last_state(Storage(tmp_path)), open_state(Storage(tmp_path))
        if kept is not None and kept.timeline == found.timeline:
            for partition in found.view.lister.partitions():
                assert kept.view.lister.files(partition) == found.view.lister.files(partition)
            assert kept.view.lister.partitions() == found.view.lister.partitions()
    assert_rows(tmp_path, expected_after(*writes))
    assert hf.HudiTable.open(tmp_path).services.validate().ok


def test_a_write_after_another_process_has_written_opens_the_table_again(
    tmp_path: Path, opened: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    upsert(tmp_path, range(40), 1)
    mine = last_state(Storage(tmp_path))
    assert mine is not None
    upsert(tmp_path, range(40, 60), 2)  # as if by another process
    keep_state(mine)
    opened.clear()
    upsert(tmp_path, range(50, 55), 3)
    assert opened["opened"] == 1
    assert_rows(tmp_path, expected_after((range(40), 1), (range(40, 60), 2), (range(50, 55), 3)))


@pytest.mark.parametrize(
    "part",
    ["properties", "metadata table", "its properties", "a file of it", "the size of a file", "index definitions"],
)
def test_a_state_is_not_used_after_a_change_of_its(part: str, tmp_path: Path, opened: Counter[str]) -> None:
    upsert(tmp_path, range(40), 1)
    mine = last_state(Storage(tmp_path))
    assert mine is not None
    if part == "properties":
        file = tmp_path / ".hoodie/hoodie.properties"
        file.write_text(file.read_text() + "hoodie.record.merge.property.some=thing\n")
    elif part == "metadata table":
        timeline = tmp_path / ".hoodie/metadata/.hoodie/timeline"
        (timeline / "20990101000000000.clean.requested").write_bytes(b"")
    elif part == "its properties":
        file = tmp_path / ".hoodie/metadata/.hoodie/hoodie.properties"
        file.write_text(file.read_text() + "hoodie.some=thing\n")
    elif part in ("a file of it", "the size of a file"):
        open_state(Storage(tmp_path), known=mine)
        file = max((tmp_path / ".hoodie/metadata/files").iterdir())
        content = file.read_bytes()
        file.unlink()
        if part == "the size of a file":
            file.write_bytes(content + b"more")
    else:
        file = tmp_path / ".hoodie/.index_defs/index.json"
        file.write_text(file.read_text().replace('"text"', '"ts"', 1))
    opened.clear()
    state = open_state(Storage(tmp_path), known=mine)
    assert opened["opened"] == 1
    assert state.view.lister is not mine.view.lister


def test_a_second_read_lists_no_file_and_looks_no_statistics_up_again(
    tmp_path: Path, opened: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    original = metadata_read._read

    def noted(table: Any, partition: str, *given: Any, **more: Any) -> Any:
        read.append(partition)
        return original(table, partition, *given, **more)

    monkeypatch.setattr(metadata_read, "_read", noted)
    upsert(tmp_path, range(40), 1)
    for where, rows in (("ts = 1", 40), ("ts = 2", 0)):
        assert hf.read(tmp_path, filter=where).num_rows == rows
        opened.clear()
        read.clear()
        assert hf.read(tmp_path, filter=where).num_rows == rows
        assert not opened
        assert not read
    upsert(tmp_path, range(10), 2)
    opened.clear()
    read.clear()
    assert hf.read(tmp_path, filter="ts = 2").num_rows == 10
    assert read
    assert not opened


def test_a_read_after_another_process_has_written_opens_the_table_again(tmp_path: Path, opened: Counter[str]) -> None:
    upsert(tmp_path, range(40), 1)
    assert hf.read(tmp_path, filter="ts = 2").num_rows == 0
    mine = last_state(Storage(tmp_path))
    assert mine is not None
    upsert(tmp_path, range(10), 2)  # as if by another process
    keep_state(mine)
    opened.clear()
    assert hf.read(tmp_path, filter="ts = 2").num_rows == 10
    assert opened["opened"] == 1


@pytest.mark.parametrize("version", ["9", pytest.param("8", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(one, marks=pytest.mark.slow) for one in range(1, 6))])
def test_reads_between_changes_by_another_process_see_each_of_them(
    kind: str, version: str, seed: int, tmp_path: Path
) -> None:
    chance, others = random.Random(seed), OrderedDict[str, Any]()
    more = {
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.table.version": version,
        "hoodie.clean.commits.retained": "1",
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
        "hoodie.metadata.compact.max.delta.commits": "2",
        "hoodie.metadata.record.index.enable": "true",
    }

    def change(path: Path, ts: int) -> None:
        table, begin = hf.HudiTable(path), chance.randrange(30)
        kinds: list[Callable[[], object]] = [
            lambda: upsert(path, range(begin, begin + 9), ts, more),
            lambda: table.delete(where=f"ts < {chance.randrange(ts + 1)}"),
            lambda: table.services.cluster({"hoodie.clustering.plan.strategy.sort.columns": "id"}),
            lambda: table.services.clean({"hoodie.clean.commits.retained": "1"}),
            lambda: table.services.rollback() if chance.random() < 0.5 else None,
            lambda: table.services.compact() if kind == "MERGE_ON_READ" else None,
            lambda: table.insert_overwrite(plain_rows(range(begin, begin + 2), ts=ts, partitions=4), more),
        ]
        chance.choices(kinds, [6, 2, 1, 1, 1, 1, 1])[0]()

    upsert(tmp_path, range(20), 1, more)
    for ts in range(2, 12):
        with pytest.MonkeyPatch.context() as other:
            other.setattr(last_states, "_STATES", others)
            change(tmp_path, ts)
            rows = hf.read(tmp_path).sort_by("id")
        assert hf.read(tmp_path).sort_by("id").equals(rows)
        for where in (f"ts = {ts}", f"id = 'k{chance.randrange(40):05}'"):
            found = hf.read(tmp_path, filter=where).sort_by("id")
            assert found.equals(rows.filter(sql_filter(where, rows.schema)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_threads_that_read_beside_a_writer_see_whole_commits(kind: str, tmp_path: Path) -> None:
    more = {"hoodie.datasource.write.table.type": kind, "hoodie.metadata.compact.max.delta.commits": "3"}
    upsert(tmp_path, range(40), 1, more)
    written = Event()

    def read(where: str | None) -> list[int]:
        found: list[int] = []
        while not written.is_set():
            times = hf.read(tmp_path, filter=where)["ts"].to_pylist()
            assert len(times) == 40
            (time,) = set(times)
            found.append(time)
        return found

    with ThreadPoolExecutor(4) as pool:
        reads = [pool.submit(read, where) for where in (None, "ts > 0", "id >= 'k'", "part >= ''")]
        try:
            for ts in range(2, 12):
                upsert(tmp_path, range(40), ts, more)
        finally:
            written.set()
    for one in reads:
        times = one.result()
        assert times
        assert times == sorted(times)


def test_a_table_that_was_deleted_and_made_again_is_opened_again(tmp_path: Path) -> None:
    upsert(tmp_path / "t", range(40), 1)
    shutil.rmtree(tmp_path / "t")
    upsert(tmp_path / "t", range(5), 2)
    upsert(tmp_path / "t", range(3, 8), 3)
    assert_rows(tmp_path / "t", expected_after((range(5), 2), (range(3, 8), 3)))


def test_a_write_after_a_failed_one_uses_no_state_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upsert(tmp_path, range(40), 1)

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("hudi_fast.writing.transaction.complete", fail)
        with pytest.raises(hf.errors.CommitError):
            upsert(tmp_path, range(40, 60), 2)
    upsert(tmp_path, range(10), 3)
    assert_rows(tmp_path, expected_after((range(40), 1), (range(10), 3)))
    assert hf.HudiTable.open(tmp_path).services.validate().ok


@pytest.mark.slow("without completion times")
@pytest.mark.parametrize(
    "settings",
    [{"hoodie.write.table.version": "6"}, {"hoodie.metadata.enable": "false"}],
    ids=["without completion times", "without a metadata table"],
)
def test_no_state_is_kept_of_a_table(settings: dict[str, str], tmp_path: Path) -> None:
    upsert(tmp_path, range(10), 1, settings)
    assert last_state(Storage(tmp_path)) is None
    upsert(tmp_path, range(5), 2, settings)
    assert_rows(tmp_path, expected_after((range(10), 1), (range(5), 2)))


def test_states_of_the_last_four_tables_are_kept(tmp_path: Path) -> None:
    for number in range(6):
        upsert(tmp_path / str(number), range(3), 1)
    kept = [last_state(Storage(tmp_path / str(number))) is not None for number in range(6)]
    assert kept == [False, False, True, True, True, True]


def test_a_state_is_not_given_to_another_kind_of_storage(tmp_path: Path) -> None:
    upsert(tmp_path, range(3), 1)
    assert last_state(RecordingStorage(tmp_path)) is None
    keep_state(open_state(RecordingStorage(tmp_path)))
    kept = last_state(Storage(tmp_path))
    assert kept is not None
    assert type(kept.storage) is Storage


def test_a_kept_state_reads_through_the_storage_of_the_call(tmp_path: Path) -> None:
    """The connection of an earlier call may have credentials that have expired."""
    upsert(tmp_path, range(3), 1)
    known, storage = last_state(Storage(tmp_path)), Storage(tmp_path)
    state = open_state(storage, known=known)
    assert known is not None
    assert state.timeline is known.timeline
    assert state.storage is storage
    lister = state.view.lister
    assert isinstance(lister, MetadataLister)
    assert lister.table.data_storage is storage
    assert lister.table.storage.fs is storage.fs
    assert state.view.archive is not known.view.archive


def test_a_decoded_commit_of_many_files_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, kept in ((5, True), (4, False)):
        monkeypatch.setattr(table_state, "_FILES_OF_KEPT_COMMITS", limit)
        upsert(tmp_path, range(40), limit)  # one file in each of four partitions
        known = last_state(Storage(tmp_path))
        assert known is not None
        list(commits_newest_first(known))
        keep_state(known)
        again = last_state(Storage(tmp_path))
        assert again is not None
        assert (known.timeline.writes()[-1] in again.commits) is kept


@pytest.mark.parametrize("operation", ["upsert", "insert_overwrite"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_stream_of_writes_decodes_each_commit_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, operation: str
) -> None:
    read: list[str] = []
    original = table_state.read_commit

    def noted(storage: Storage, config: TableConfig, instant: Instant) -> CommitMetadata:
        read.append(instant.requested)
        return original(storage, config, instant)

    monkeypatch.setattr(table_state, "read_commit", noted)
    settings = {"hoodie.datasource.write.table.type": kind, "hoodie.datasource.write.operation": operation}
    for ts in range(6):
        upsert(tmp_path, range(8), ts, settings)
    assert len(set(read)) >= 5
    assert len(read) == len(set(read))


def test_a_small_upsert_lists_few_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[str] = []
    original = Storage.list_dir

    def noted(self: Storage, path: str, *given: Any, **more: Any) -> Any:
        listed.append(self.fs_path(path).removeprefix(f"{tmp_path}/"))
        return original(self, path, *given, **more)

    for ts in range(3):
        upsert(tmp_path, range(8), ts)
    monkeypatch.setattr(Storage, "list_dir", noted)
    upsert(tmp_path, range(8), 3)
    (instant,) = [path for path in set(listed) if path.startswith(".hoodie/.temp/")]
    expected = [
        ".hoodie/.temp",  # markers of failed writes
        instant,  # its own markers
        ".hoodie/metadata/.hoodie/timeline",
        ".hoodie/metadata/column_stats",
        ".hoodie/metadata/files",
        ".hoodie/metadata/partition_stats",
        ".hoodie/timeline",
    ]
    assert Counter(listed) == Counter(expected)


@pytest.mark.slow
def test_blocks_of_all_tables_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_states, "_CACHED_BYTES", 0)
    record_index = {"hoodie.metadata.record.index.enable": "true", "hoodie.index.type": "RECORD_INDEX"}
    for number in range(3):
        for ts in range(3):
            upsert(tmp_path / str(number), range(30), ts, record_index)
    kept = [last_state(Storage(tmp_path / str(number))) is not None for number in range(3)]
    assert kept == [False, False, True]
