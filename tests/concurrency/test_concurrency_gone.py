"""A writer whose base file a clean removed meanwhile is in conflict with the clean, and lands when it runs again."""

from __future__ import annotations

import itertools
import shutil
import warnings
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.errors import CommitConflictError, ConfigError, FileGoneError, HudiWarning
from hudi_fast.formats.log import blocks
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.heartbeat import heartbeat_path
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.rollback import request_rollback
from hudi_fast.writing.rollback_plan import plan_rollback
from tests.support.interleaving import InterleavedEngine, LateEngine, assert_sound, services, settings_for
from tests.support.sessions import session_of, write_engine
from tests.support.small_tables import plain_rows, table_rows, write_to

ONE_VERSION = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": "1"}


@pytest.mark.slow(but=("1-COW-false", "0-COW-false"))
@pytest.mark.parametrize("metadata", ["true", "false"])
@pytest.mark.parametrize("kind", ["COW", "MOR"])
@pytest.mark.parametrize("retries", [0, 1])
def test_a_file_that_was_cleaned_is_a_conflict(tmp_path: Path, kind: str, retries: int, metadata: str) -> None:
    """Without a metadata table folders do not say that there was one, and the key is not found."""
    retrying = {"hoodie.write.num.retries.on.conflict.failures": str(retries), "hoodie.metadata.enable": metadata}
    settings = settings_for(kind, "9", retrying)
    path = tmp_path / "t"
    write_to(Storage(path), plain_rows([2, 4], text="old"), settings)

    def others() -> None:
        write_to(Storage(path), plain_rows([4], text="new"), settings)
        if kind == "MOR":
            services(path).compact({**settings, "hoodie.compact.inline.max.delta.commits": "1"})
        services(path).clean({**settings, **ONE_VERSION})

    engine = LateEngine(plain_rows([2], text="mine"), others)
    before = hf.HudiTable.open(path).to_arrow()

    def run() -> Any:
        return write_engine(engine, Storage(path), settings, "append")

    if retries:
        assert run().instant
        texts = sorted(table_rows(path).items())
        assert ["mine" in str(row) for _, row in texts] == [True, False]
        return
    message = "Another process removed a file" if metadata == "true" else "may have looked for keys"
    with pytest.raises(CommitConflictError, match=message) as raised:
        run()
    cleaned = hf.HudiTable.open(path).history().filter(pc.field("action") == "clean")["instant"].to_pylist()
    assert raised.value.other == cleaned[-1]
    assert len(raised.value.file_groups) == 1
    assert isinstance(raised.value.__cause__, FileGoneError) == (metadata == "true")
    assert before.num_rows == 2
    assert_sound(path, table_rows(path))


@pytest.mark.slow("true")
@pytest.mark.parametrize("metadata", ["true", "false"])
def test_a_reader_is_told_that_the_file_is_gone(tmp_path: Path, metadata: str) -> None:
    settings = settings_for("COW", "9", {"hoodie.metadata.enable": metadata})
    path = tmp_path / "t"
    write_to(Storage(path), plain_rows([2, 4], text="old"), settings)
    scan = hf.HudiTable.open(path).scan()
    write_to(Storage(path), plain_rows([4], text="new"), settings)
    services(path).clean({**settings, **ONE_VERSION})
    with pytest.raises(FileGoneError, match=r"after the (table was read|query was planned)"):
        scan.to_table()
    assert hf.HudiTable.open(path).scan().to_table().num_rows == 2


@pytest.mark.slow("true")
@pytest.mark.parametrize("metadata", ["true", "false"])
def test_a_reader_is_told_that_an_overwrite_was_rolled_back_while_it_looked(tmp_path: Path, metadata: str) -> None:
    """Its files are gone, and what it replaced is not part of the table that the reader was about to show."""
    settings = settings_for("COW", "9", {"hoodie.metadata.enable": metadata})
    path = tmp_path / "t"
    write_to(Storage(path), plain_rows([2, 4], text="old"), settings)
    overwriting = {**settings, "hoodie.datasource.write.operation": "insert_overwrite"}
    over = write_to(Storage(path), plain_rows([2], text="over"), overwriting).instant

    class Late(Storage):
        """The overwrite is rolled back once the timelines and the bodies of commits were read."""

        def fs_path(self, path: str) -> str:
            """See ``Storage``; log files are those of the metadata table."""
            if ".log." in path:
                self._undo()
            return super().fs_path(path)

        def list_dir(self, path: str, recursive: bool = False) -> list[Any]:
            """See ``Storage``."""
            if path == "p0":
                self._undo()
            return super().list_dir(path, recursive)

        def _undo(self) -> None:
            if list((path / ".hoodie/timeline").glob(f"{over}_*.replacecommit")):
                services(path).rollback(over)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HudiWarning)  # the metadata table lacks the overwrite
        with pytest.raises(FileGoneError, match=f"{over} .* was rolled back after"):
            hf.HudiTable(Late(path)).to_arrow()
    assert hf.HudiTable(Late(path)).to_arrow().num_rows == 2


@pytest.mark.slow(but="9")
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_clean_leaves_an_empty_partition_to_who_is_about_to_fill_it(tmp_path: Path, version: str) -> None:
    """The write began before the clean: what the clean says of the whole partition would come after what it says."""
    settings = settings_for("COW", version)
    path = tmp_path / "t"
    write_to(Storage(path), plain_rows([2, 3]), settings)
    hf.HudiTable.open(path).delete_partitions(["p1"], settings)

    def others() -> None:
        assert services(path).clean({**settings, **ONE_VERSION}).files_deleted == 1

    write_engine(LateEngine(plain_rows([5]), others), Storage(path), settings, "append")
    assert sorted(table_rows(path)) == ["k00002", "k00005"]
    assert_sound(path, table_rows(path))


def test_a_plan_that_is_withdrawn_while_it_is_looked_at_is_nobodys_loss(tmp_path: Path) -> None:
    """Between the listing of the timeline and the reading of a clustering's plan."""
    settings = settings_for("COW", "9")
    path = tmp_path / "t"
    write_to(Storage(path), plain_rows([2, 4]), settings)
    planned = services(path).schedule_cluster(settings)
    assert planned is not None

    class Late(Storage):
        """The plan goes right after the timeline was listed."""

        def list_dir(self, path: str, recursive: bool = False) -> list[Any]:
            """See ``Storage``."""
            found = super().list_dir(path, recursive)
            for file in Path(self.uri).rglob(f"{planned.instant}.*"):
                file.unlink()
            return found

    assert hf.HudiTable(Late(path)).to_arrow().num_rows == 2


@pytest.mark.slow
@pytest.mark.parametrize("metadata", ["true", "false"])
@pytest.mark.parametrize("engine", [LateEngine, InterleavedEngine], ids=["logs after", "logs before"])
def test_what_is_logged_on_a_slice_that_was_rolled_back_is_no_file_group(
    tmp_path: Path, metadata: str, engine: type[InterleavedEngine]
) -> None:
    """Before table version 8, and by the bucket index: the next write makes the bucket anew, and only that one is."""
    bucket = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1", "hoodie.metadata.enable": metadata}
    settings = settings_for("MOR", "6", bucket)
    path = tmp_path / "t"
    write_to(Storage(path), plain_rows([3]), settings)
    first = write_to(Storage(path), plain_rows([2], text="old"), settings).instant
    write = engine(plain_rows([2], text="mine"), lambda: services(path).rollback(first))
    with pytest.raises(CommitConflictError, match="was rolled back in the meantime"):
        write_engine(write, Storage(path), settings, "append")
    assert not list((path / "p0").glob(".*.log.*"))
    for number in range(3):
        write_to(Storage(path), plain_rows([2], text=f"new{number}"), settings)
        services(path).compact({**settings, "hoodie.compact.inline.max.delta.commits": "1"})
    assert sorted("new2" in str(row) for row in table_rows(path).values()) == [False, True]
    assert_sound(path, table_rows(path))


@pytest.mark.slow("compact")
@pytest.mark.parametrize("service", ["compact", "cluster"])
def test_no_plan_names_what_is_logged_on_a_slice_that_was_rolled_back(tmp_path: Path, service: str) -> None:
    """Before table version 8, without a metadata table: the rollback of the write that logged there deletes the log."""
    settings = settings_for("MOR", "6", {"hoodie.metadata.enable": "false"})
    path = tmp_path / "t"
    first = write_to(Storage(path), plain_rows([2], text="old"), settings).instant
    planned = []

    class Late(Storage):
        """What the write logs on is rolled back right before it does."""

        def create_exclusive(self, path: str, data: bytes, *more: Any) -> None:
            """See ``Storage``."""
            if ".log.1_0-0-" in path and ".marker." in path:
                services(Path(self.uri)).rollback(first)
            super().create_exclusive(path, data, *more)

    write = InterleavedEngine(
        plain_rows([2], text="mine"), lambda: planned.append(getattr(services(path), f"schedule_{service}")(settings))
    )
    with pytest.raises(CommitConflictError, match="was rolled back in the meantime"):
        write_engine(write, Late(path), settings, "append")
    assert planned == [None]
    write_to(Storage(path), plain_rows([2], text="new"), settings)
    getattr(services(path), service)(settings)
    assert "new" in str(table_rows(path)["k00002"])
    assert_sound(path, table_rows(path))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "rows", "service"),
    [
        ("6", "inserted", "cluster"),
        ("9", "inserted", "cluster"),
        ("9", "logged", "cluster"),
        ("9", "logged", "compact"),
    ],
)
def test_no_plan_names_what_a_rollback_is_about_to_delete(
    tmp_path: Path, version: str, rows: str, service: str
) -> None:
    """Somebody is at it, without the lock as Apache Hudi is, or died a moment ago: it is left to them."""
    settings = settings_for("MOR", version)
    path = tmp_path / "t"
    write_to(Storage(path), plain_rows([3] if rows == "inserted" else [2, 3]), settings)
    write_to(Storage(path), plain_rows([3], text="logged"), settings)
    last = write_to(Storage(path), plain_rows([2], text="undone"), settings)
    state = load_state(Storage(path))
    undone = state.timeline.find(last.instant)
    assert undone is not None
    session = session_of(path, settings)
    with session.locked():
        rollback = request_rollback(session, plan_rollback(state.storage, state.config, undone))
    state.storage.write_bytes(heartbeat_path(rollback.requested), b"")
    planned = getattr(services(path), f"schedule_{service}")(settings)
    assert planned is not None
    assert planned.file_groups == 1  # that of the other partition
    (path / heartbeat_path(rollback.requested)).unlink()
    services(path).rollback(options=settings)
    getattr(services(path), service)(settings)
    assert len(table_rows(path)) == (1 if rows == "inserted" else 2)
    assert "undone" not in str(table_rows(path))
    assert_sound(path, table_rows(path))


@pytest.mark.slow
@pytest.mark.parametrize("done", [True, False], ids=["completed", "planned"])
def test_what_is_logged_on_a_compaction_that_was_taken_back_does_not_land(tmp_path: Path, done: bool) -> None:
    """Before table version 8 a write logs to the slice that a pending compaction is to begin: nobody would read it."""
    settings = settings_for("MOR", "6", {"hoodie.compact.inline.max.delta.commits": "1"})
    path = tmp_path / "t"
    write_to(Storage(path), plain_rows([2, 3], text="old"), settings)
    write_to(Storage(path), plain_rows([2], text="older"), settings)
    planned = services(path).schedule_compact(settings)
    assert planned is not None

    def others() -> None:
        if done:
            services(path).compact(settings)
        services(path).rollback(planned.instant)

    engine = InterleavedEngine if done else LateEngine
    write = engine(plain_rows([2], text="mine"), others)
    with pytest.raises(CommitConflictError, match=f"compaction {planned.instant}, .* rolled back"):
        write_engine(write, Storage(path), settings, "append")
    assert "older" in str(table_rows(path)["k00002"])
    write_to(Storage(path), plain_rows([2], text="new"), settings)
    assert "new" in str(table_rows(path)["k00002"])
    assert_sound(path, table_rows(path))


@pytest.mark.slow(but="MOR-9")
@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("kind", ["COW", "MOR"])
def test_what_a_pending_write_adds_to_a_file_group_stands_for_nothing_that_was_cleaned(
    tmp_path: Path, kind: str, version: str
) -> None:
    """A file group was ended and cleaned: the write that ended it cannot be undone, whoever may still write to it."""
    settings = settings_for(kind, version)
    path = tmp_path / "t"
    write_to(Storage(path), plain_rows([2, 3], text="old"), settings)

    def others() -> None:
        overwriting = {**settings, "hoodie.datasource.write.operation": "insert_overwrite"}
        ended = write_to(Storage(path), plain_rows([2], text="over"), overwriting).instant
        assert services(path).clean({**settings, **ONE_VERSION}).files_deleted
        with pytest.raises(ConfigError, match="deleted what there was before it"):
            services(path).rollback(ended)

    write = InterleavedEngine(plain_rows([2], text="mine"), others)
    with pytest.raises(CommitConflictError):
        write_engine(write, Storage(path), settings, "append")
    assert sorted("over" in str(row) for row in table_rows(path).values()) == [False, True]
    assert_sound(path, table_rows(path))


READS = {
    "rows": lambda table: table.to_arrow(),
    "one column": lambda table: table.to_arrow(columns=["ts"]),
    "a filter": lambda table: table.to_arrow(filter="ts > 1"),
    "a scan": lambda table: list(table.scan().to_batches()),
    "a count": lambda table: table.count(),
    "changes": lambda table: table.incremental("000"),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("kind", ["COW", "MOR"])
def test_a_reader_is_told_that_a_file_went_whenever_it_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, read: Any
) -> None:
    """A log file is opened for its blocks, and again for the content of each."""
    settings = settings_for(kind, "9", {"hoodie.metadata.enable": "false"})
    for ts in (1, 2, 3):
        write_to(Storage(tmp_path / "t"), plain_rows(range(4), ts=ts), settings)
    told = 0
    for number in itertools.count():
        shutil.copytree(tmp_path / "t", tmp_path / str(number))
        table, opened = hf.HudiTable.open(tmp_path / str(number)), list[str]()

        def first_deleted(call: Any, number: int = number, opened: list[str] = opened) -> Any:
            def open_(storage: Storage, path: str, *rest: Any) -> Any:
                if not path.startswith(".hoodie"):
                    opened.append(path)
                    if len(opened) == number + 1:
                        Path(storage.fs_path(path)).unlink(missing_ok=True)
                return call(storage, path, *rest)

            return open_

        with monkeypatch.context() as patched:
            patched.setattr(blocks, "_open", first_deleted(blocks._open))
            patched.setattr(Storage, "open_input", first_deleted(Storage.open_input))
            try:
                read(table)
            except FileGoneError:
                told += 1
        if len(opened) <= number:
            break
    assert told >= (2 if kind == "COW" else 4)
