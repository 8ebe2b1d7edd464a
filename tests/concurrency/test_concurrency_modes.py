"""The modes of several writers: what is refused, who waits for whom, retries, columns, new tables."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.storage.base import Storage
from tests.support.interleaving import (
    IN_PROCESS,
    NBCC,
    OCC,
    InterleavedEngine,
    assert_sound,
    pending_of,
    settings_for,
    write_during,
)
from tests.support.sessions import write_engine
from tests.support.small_tables import assert_tidy, options, plain_rows, table_rows

NUMBER_OF_WRITERS = 3
ROUNDS = 4


# ---- what is refused


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"hoodie.write.lock.provider": None}, "needs a lock shared by all writers"),
        ({"hoodie.clean.failed.writes.policy": "EAGER"}, "EAGER would roll back the running writes of other writers"),
        (
            {**NBCC, "hoodie.write.concurrency.early.conflict.detection.enable": "true"},
            "To use early conflict detection",
        ),
    ],
)
def test_options_that_cannot_go_together_are_refused(more: dict[str, Any], message: str) -> None:
    given = {**options(), **OCC, **more}
    with pytest.raises(hf.ConfigError, match=message):
        WriteOptions.from_options({key: value for key, value in given.items() if value is not None})


def test_without_a_provider_the_one_of_the_process_is_taken_if_that_is_wanted() -> None:
    given = {**options(), **OCC, "hoodie.auto.adjust.lock.configs": "true"}
    del given["hoodie.write.lock.provider"]
    found = WriteOptions.from_options(given)
    assert (found.lock.provider_class, found.failed_writes.policy) == (IN_PROCESS, "LAZY")


@pytest.mark.parametrize(
    ("kind", "version", "more", "message"),
    [
        ("COW", "9", {"hoodie.index.type": "BUCKET"}, "requires the MOR table with simple bucket index"),
        ("MOR", "9", {}, "requires the MOR table with simple bucket index"),
        ("MOR", "6", {"hoodie.index.type": "BUCKET"}, "requires table version 8"),
    ],
)
def test_without_blocking_file_groups_have_to_be_known_beforehand(
    kind: str, version: str, more: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(hf.ConfigError, match=message):
        hf.write(plain_rows(range(4)), tmp_path, settings_for(kind, version, {**more, **NBCC}))


# ---- who waits for whom


@pytest.mark.slow
def test_one_of_several_writers_holds_no_lock_while_it_writes_files(tmp_path: Path) -> None:
    settings = settings_for("COW", "9")
    hf.write(plain_rows(range(4)), tmp_path, settings)
    write_during(tmp_path, plain_rows([1], 5), settings, lambda: hf.write(plain_rows([0], 6), tmp_path, settings))
    assert_sound(tmp_path, {**table_rows(tmp_path), "k00000": ("p0", 6, "a0"), "k00001": ("p1", 5, "a1")})


def test_a_single_writer_holds_its_lock_throughout(tmp_path: Path) -> None:
    alone = {**settings_for("COW", "9"), "hoodie.write.concurrency.mode": "SINGLE_WRITER"}
    hf.write(plain_rows(range(4)), tmp_path, alone)
    impatient = {**alone, "hoodie.write.lock.wait_time_ms": "20"}

    def others() -> None:
        with pytest.raises(hf.LockTimeoutError):
            hf.write(plain_rows([0], 6), tmp_path, impatient)

    write_during(tmp_path, plain_rows([1], 5), alone, others)
    assert_tidy(tmp_path)


# ---- retries


@pytest.mark.slow
def test_a_conflict_is_retried_and_the_write_done_again_on_what_is_there_then(tmp_path: Path) -> None:
    settings = settings_for("COW", "9", {"hoodie.write.num.retries.on.conflict.failures": "2"})
    hf.write(plain_rows(range(4)), tmp_path, settings)
    left = [6, 7]

    def others() -> None:
        if left:
            hf.write(plain_rows([3], left.pop(0), "B"), tmp_path, settings)

    engine = InterleavedEngine(plain_rows([1], 5, "A"), others)
    result = write_engine(engine, Storage(tmp_path), settings, "append")
    instants = [plan.instant for plan in engine.plans]
    assert instants == sorted(set(instants))
    assert (len(instants), result.instant) == (3, instants[-1])
    assert_sound(tmp_path, {**table_rows(tmp_path), "k00001": ("p1", 5, "A1"), "k00003": ("p1", 7, "B3")})


def test_as_many_tries_are_made_as_the_options_say_and_one_writer_makes_one(tmp_path: Path) -> None:
    settings = settings_for("COW", "9", {"hoodie.write.num.retries.on.conflict.failures": "1"})
    hf.write(plain_rows(range(4)), tmp_path, settings)
    engine = InterleavedEngine(plain_rows([1], 5), lambda: hf.write(plain_rows([3], 6), tmp_path, settings))
    with pytest.raises(hf.CommitConflictError):
        write_engine(engine, Storage(tmp_path), settings, "append")
    assert len(engine.plans) == 2
    assert pending_of(tmp_path) == []


COUNTING = """
import sys
sys.path[:0] = {paths!r}
from tests.concurrency.test_concurrency_modes import count
count(sys.argv[1], int(sys.argv[2]), 2)
"""


def count(path: str | Path, writer: int, rounds: int) -> None:
    """Add one to the counter in the table, again and again; each round reads what it adds to."""
    settings = settings_for("COW", "9", {"hoodie.write.lock.wait_time_ms": "60000"})
    for _ in range(rounds):
        while True:
            try:
                write_engine(_Counter(Path(path), writer), Storage(path), settings, "append")
                break
            except hf.CommitConflictError:
                time.sleep(0.01 * writer)


class _Counter(InterleavedEngine):
    """Reads the row once its write has begun, so that whatever comes later is a conflict."""

    def __init__(self, path: Path, writer: int) -> None:
        self.path, self.writer = path, writer
        super().__init__(plain_rows([0]), lambda: None)

    def execute(self, plan: Any) -> Any:
        """Write what is there, and one more."""
        found = hf.HudiTable.open(self.path).to_arrow()
        value = found.column("ts")[0].as_py()
        self.source = plain_rows([0], value + 1, f"w{self.writer}-")
        self._incoming = None
        self.prepare(plan)
        return super().execute(plan)


@pytest.mark.slow
@pytest.mark.parametrize("across", ["threads", pytest.param("processes", marks=pytest.mark.long)])
def test_no_update_of_several_writers_is_lost(across: str, tmp_path: Path) -> None:
    table = tmp_path / "t"
    hf.write(plain_rows([0], ts=1), table, settings_for("COW", "9"))
    if across == "threads":
        errors: list[BaseException] = []

        def run(writer: int) -> None:
            try:
                count(table, writer, ROUNDS)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=run, args=(writer,)) for writer in range(NUMBER_OF_WRITERS)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert errors == []
    else:
        code = COUNTING.format(paths=[str(Path(__file__).parents[2])])
        command = [sys.executable, "-c", code, str(table)]
        running = [subprocess.Popen([*command, str(writer)]) for writer in range(2)]
        assert [one.wait(120) for one in running] == [0, 0]
    assert table_rows(table)["k00000"][1] == 1 + (NUMBER_OF_WRITERS * ROUNDS if across == "threads" else 4)
    assert_tidy(table)


# ---- schemas


def with_column(rows: pa.Table, name: str) -> pa.Table:
    return rows.append_column(name, pa.array([7] * rows.num_rows, pa.int64()))


def test_who_changed_no_columns_commits_those_that_another_writer_added(tmp_path: Path) -> None:
    settings = settings_for("COW", "9")
    hf.write(plain_rows(range(4)), tmp_path, settings)
    write_during(
        tmp_path,
        plain_rows([1], 5, "A"),
        settings,
        lambda: hf.write(with_column(plain_rows([0], 6, "B"), "more"), tmp_path, settings),
    )
    assert table_rows(tmp_path)["k00000"] == ("p0", 6, "B0", 7)
    assert table_rows(tmp_path)["k00001"] == ("p1", 5, "A1", None)
    assert_tidy(tmp_path)


@pytest.mark.slow("True")
@pytest.mark.parametrize("same", [True, False])
def test_two_who_add_columns_land_if_they_are_the_same(same: bool, tmp_path: Path) -> None:
    settings = settings_for("COW", "9")
    hf.write(plain_rows(range(4)), tmp_path, settings)
    rows = with_column(plain_rows([1], 5, "A"), "more" if same else "other")

    def others() -> None:
        hf.write(with_column(plain_rows([0], 6, "B"), "more"), tmp_path, settings)

    if same:
        write_during(tmp_path, rows, settings, others)
        assert table_rows(tmp_path)["k00001"] == ("p1", 5, "A1", 7)
    else:
        with pytest.raises(hf.CommitConflictError, match=r"incompatible concurrent schema evolution.*more, other"):
            write_during(tmp_path, rows, settings, others)
        assert table_rows(tmp_path)["k00001"] == ("p1", 1, "a1", None)
    assert_tidy(tmp_path)


@pytest.mark.slow
def test_columns_are_not_added_behind_a_write_that_began_later(tmp_path: Path) -> None:
    """Readers take the columns from the newest commit by requested time, whichever was completed last."""
    settings = settings_for("COW", "9", {"hoodie.write.num.retries.on.conflict.failures": "1"})
    hf.write(plain_rows(range(4)), tmp_path, settings)
    left = [6]

    def others() -> None:
        if left:
            hf.write(plain_rows([0], left.pop(), "B"), tmp_path, settings)

    once = {**settings, "hoodie.write.num.retries.on.conflict.failures": "0"}
    with pytest.raises(hf.CommitConflictError, match=r"incompatible concurrent schema evolution.*more"):
        write_during(tmp_path, with_column(plain_rows([1], 5, "A"), "more"), once, others)
    left.append(7)
    write_during(tmp_path, with_column(plain_rows([1], 5, "A"), "more"), settings, others)
    assert table_rows(tmp_path)["k00001"] == ("p1", 5, "A1", 7)
    assert table_rows(tmp_path)["k00000"] == ("p0", 7, "B0", None)


# ---- new tables


def test_a_new_table_that_somebody_else_writes_to_is_not_taken_away(tmp_path: Path) -> None:
    """Who made it fails while the other one is at work."""
    table = tmp_path / "t"
    settings = settings_for("COW", "9")

    def fails() -> None:
        raise ValueError("on purpose")

    def first_fails() -> None:
        with pytest.raises(ValueError, match="on purpose"):
            write_during(table, plain_rows([1], 5), settings, second_begins)

    def second_begins() -> None:
        second.start()
        begun.wait(30)
        fails()

    begun, failed = threading.Event(), threading.Event()

    def at_work() -> None:
        begun.set()
        failed.wait(30)

    second = threading.Thread(target=lambda: write_during(table, plain_rows([2], 6), settings, at_work))
    first_fails()
    failed.set()
    second.join()
    assert_sound(table, {"k00002": ("p0", 6, "a2")})


def test_a_new_table_whose_only_write_fails_is_taken_away(tmp_path: Path) -> None:
    table = tmp_path / "t"

    def fails() -> None:
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        write_during(table, plain_rows([1], 5), settings_for("COW", "9"), fails)
    assert not table.exists()


@pytest.mark.slow
@pytest.mark.parametrize("lock", ["InProcessLockProvider", "FileSystemBasedLockProvider"])
def test_a_write_to_a_table_that_was_replaced_meanwhile_does_not_land(lock: str, tmp_path: Path) -> None:
    table, provider = tmp_path / "t", IN_PROCESS.replace("InProcessLockProvider", lock)
    settings = settings_for("COW", "9", {"hoodie.write.lock.provider": provider})
    hf.write(plain_rows(range(4)), table, settings)
    with pytest.raises(hf.CommitConflictError):
        write_during(
            table,
            plain_rows([1], 5),
            settings,
            lambda: hf.write(plain_rows([9], 6), table, settings, mode="overwrite"),
        )
    assert_sound(table, {"k00009": ("p1", 6, "a9")})
