"""What completes an instant stops when the lock is lost, leaves all as it is, and somebody else clears it up."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.schema.alter import AddColumn
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.table.services import TableServices
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.alter import alter_table
from tests.support.interleaving import services, settings_for
from tests.support.sessions import session_of
from tests.support.small_tables import assert_tidy, listing, options, plain_rows, table_rows, write_to

FOREIGN = '{"owner": "somebody else"}'
LOCK = ".hoodie/lock"
FILE_LOCK = {
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.wait_time_ms": "50",
    "hoodie.write.lock.client.num_retries": "0",
}
EAGER_SERVICES = {
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.log.compaction.blocks.threshold": "1",
    "hoodie.clustering.plan.strategy.small.file.limit": "1000000000",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.commits.archival.batch": "1",
}


class ThiefStorage(Storage):
    """Somebody else has the lock as soon as a file is made whose path the pattern finds."""

    pattern = ""

    def create_exclusive(self, path: str, data: bytes, *more: Any) -> None:
        """See ``Storage``."""
        super().create_exclusive(path, data, *more)
        if re.search(self.pattern, self.fs_path(path)):
            steal_lock(Path(self.uri.removesuffix("/.hoodie/metadata")))


class PlanThiefStorage(Storage):
    """Somebody else has the lock as soon as the files of a partition are listed."""

    def list_dir(self, path: str, recursive: bool = False) -> list[FileStat]:
        """See ``Storage``."""
        found = super().list_dir(path, recursive)
        if path == "p1":
            steal_lock(Path(self.uri))
        return found


def steal_lock(table: Path) -> None:
    """It is somebody else's, if anybody has it."""
    lock = table / LOCK
    if lock.exists():
        lock.unlink()
        lock.write_text(FOREIGN)


@dataclass(frozen=True)
class Case:
    """Something that completes an instant.

    Attributes:
        run: does it.
        pattern: of the file at which the lock is lost.
        completes: of the file that must not appear.
        kind: of the table.
    """

    run: Callable[[ThiefStorage, dict[str, Any]], object]
    pattern: str
    completes: str
    kind: str = "COW"


def serve(call: Callable[[Any, dict[str, Any]], object]) -> Callable[[ThiefStorage, dict[str, Any]], object]:
    return lambda storage, given: call(TableServices(storage), {**given, **EAGER_SERVICES})


def first_write(storage: Storage) -> str:
    return load_state(storage).timeline.writes()[0].requested


def add_column(storage: Storage, given: dict[str, Any]) -> object:
    return alter_table(session_of(storage, given), [AddColumn("more", pa.int64())])


METADATA = r"metadata/.hoodie/timeline/\d+\.deltacommit\.inflight$"
CASES = {
    "write": Case(lambda at, given: write_to(at, plain_rows([1], 3), given), METADATA, r"_\d+\.commit$"),
    "logged": Case(
        lambda at, given: write_to(at, plain_rows([1], 3), given), METADATA, r"/timeline/\d+_\d+\.deltacommit$", "MOR"
    ),
    "alter": Case(add_column, METADATA, r"_\d+\.commit$"),
    "compaction": Case(
        serve(lambda table, given: table.compact(given)), r"\d\.compaction\.inflight$", r"_\d+\.commit$", "MOR"
    ),
    "log compaction": Case(
        serve(lambda table, given: table.compact_logs(given)), METADATA, r"/timeline/\d+_\d+\.deltacommit$", "MOR"
    ),
    "clustering": Case(serve(lambda table, given: table.cluster(given)), METADATA, r"_\d+\.replacecommit$"),
    "clean": Case(serve(lambda table, given: table.clean(given)), METADATA, r"_\d+\.clean$"),
    "savepoint": Case(
        serve(lambda table, given: table.savepoint(options=given)), r"\.savepoint\.inflight$", r"_\d+\.savepoint$"
    ),
    "rollback": Case(
        serve(lambda table, given: table.rollback(load_state(table._storage).timeline.writes()[-1].requested, given)),
        r"\.rollback\.inflight$",
        r"_\d+\.rollback$",
    ),
    "indexing": Case(
        serve(lambda table, given: table.index("record_index", options=given)),
        r"\.indexing\.inflight$",
        r"_\d+\.indexing$",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CASES))
def test_whoever_loses_the_lock_completes_nothing_and_touches_nothing(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    plain = {**settings_for(case.kind, "9"), "hoodie.write.concurrency.mode": "SINGLE_WRITER"}
    hf.write(plain_rows(range(4)), tmp_path, plain)
    hf.write(plain_rows([0, 1], ts=2), tmp_path, plain)
    hf.write(plain_rows([0, 1], ts=2), tmp_path, plain)
    rows, complete = table_rows(tmp_path), completed(tmp_path, case.completes)
    thief = ThiefStorage(tmp_path)
    thief.pattern = case.pattern
    shared = {**settings_for(case.kind, "9"), **FILE_LOCK, "hoodie.clean.failed.writes.policy": "LAZY"}
    with pytest.raises(hf.LockError) as caught:
        case.run(thief, shared)
    assert "lock" in str(caught.value).lower()
    assert completed(tmp_path, case.completes) == complete
    assert (tmp_path / LOCK).read_text() == FOREIGN
    if name != "rollback":
        assert table_rows(tmp_path) == rows
    (tmp_path / LOCK).unlink()
    for file in (tmp_path / ".hoodie" / ".heartbeat").glob("*"):
        file.unlink()
    services(tmp_path).run_pending({**plain, **EAGER_SERVICES})
    hf.write(plain_rows([2], ts=9, text="z"), tmp_path, plain)
    if name == "savepoint":  # one that was begun keeps nothing, and is made again
        services(tmp_path).savepoint(completed(tmp_path, r"\.savepoint\.inflight$")[0].split("/")[-1].split(".")[0])
    assert table_rows(tmp_path)["k00002"] == ("p0", 9, "z2")
    assert_tidy(tmp_path)
    assert sum(services(tmp_path).validate().summary.column("differences").to_pylist()) == 0


def completed(path: Path, pattern: str) -> list[str]:
    """Instants of the data table, by file."""
    return [name for name in listing(path) if not name.startswith(".hoodie/metadata") and re.search(pattern, name)]


@pytest.mark.parametrize(
    ("call", "pattern"),
    [
        pytest.param(lambda table, given: table.drop_index("column_stats", given), "drop", id="drop_index"),
        pytest.param(lambda table, given: table.archive(given), "archive", id="archive"),
    ],
)
def test_a_lock_that_was_never_ours_lets_nothing_begin(
    call: Callable[[Any, dict[str, Any]], object], pattern: str, tmp_path: Path
) -> None:
    hf.write(plain_rows(range(4)), tmp_path, options())
    (tmp_path / LOCK).write_text(FOREIGN)
    before = listing(tmp_path)
    with pytest.raises(hf.LockTimeoutError, match="somebody else"):
        call(services(tmp_path), {**settings_for("COW", "9"), **FILE_LOCK})
    assert listing(tmp_path) == before


@pytest.mark.slow(but="6-schedule_compact")
@pytest.mark.parametrize("verb", ["schedule_compact", "schedule_compact_logs", "schedule_cluster"])
@pytest.mark.parametrize("version", ["6", "9"])
def test_whoever_loses_the_lock_while_planning_puts_no_plan_on_the_timeline(
    verb: str, version: str, tmp_path: Path
) -> None:
    """Its time may be older than what others have completed meanwhile, of which it knows nothing."""
    shared = {**settings_for("MOR", version), **EAGER_SERVICES, "hoodie.metadata.enable": "false"}
    for ts in (1, 2, 3):
        hf.write(plain_rows(range(4), ts=ts), tmp_path, shared)
    before = listing(tmp_path)
    planning = getattr(TableServices(PlanThiefStorage(tmp_path)), verb)
    with pytest.raises(hf.LockError, match="lock"):
        planning({**shared, **FILE_LOCK, "hoodie.clean.failed.writes.policy": "LAZY"})
    assert (tmp_path / LOCK).read_text() == FOREIGN
    (tmp_path / LOCK).unlink()
    assert listing(tmp_path) == before
    assert getattr(services(tmp_path), verb)(shared) is not None
