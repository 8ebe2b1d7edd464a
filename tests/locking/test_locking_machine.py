"""Writers of one machine queue for a table: threads and processes, each commit lands, nobody waits for ever."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.locking.machine import LOCK_PATH, is_held, machine_lock
from hudi_fast.storage.base import Storage
from hudi_fast.storage.file_locks import LockableFile
from tests.support.small_tables import assert_tidy, options, plain_rows, table_rows

WRITER = """
import sys
sys.path[:0] = {path!r}
from tests.support.small_tables import options, plain_rows
import hudi_fast as hf
sys.stdin.readline()
for turn in range({turns}):
    hf.write(plain_rows([{number} * 100 + turn], text="w{number}-"), {table!r}, options())
"""
HOLDER = """
import sys, time
from hudi_fast.storage.base import Storage
from hudi_fast.locking.machine import machine_lock
with machine_lock(Storage({table!r}), 5):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    hf.write(plain_rows(range(4)), tmp_path / "t", options())
    return tmp_path / "t"


@pytest.mark.slow
def test_threads_that_write_at_once_all_commit(table: Path) -> None:
    def write(number: int) -> str:
        rows = plain_rows([2, 100 + number], ts=10 + number, text=f"t{number}-")
        return hf.write(rows, table, options()).instant

    with ThreadPoolExecutor(4) as pool:
        instants = list(pool.map(write, range(12)))
    assert len(set(instants)) == 12
    rows = table_rows(table)
    assert set(rows) == {f"k{number:05d}" for number in (*range(4), *range(100, 112))}
    assert rows["k00002"] == ("p0", 21, "t11-2")
    assert_tidy(table)


@pytest.mark.slow
def test_processes_that_write_at_once_all_commit(table: Path) -> None:
    writers = []
    for number in (1, 2):
        code = WRITER.format(path=sys.path, table=str(table), number=number, turns=8)
        writers.append(subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, text=True))
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.close()
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert len(table_rows(table)) == 4 + 16
    assert_tidy(table)


def test_writers_that_find_no_table_make_one_between_them(tmp_path: Path) -> None:
    path = tmp_path / "new"
    barrier = threading.Barrier(4)

    def write(number: int) -> int:
        barrier.wait()
        return hf.write(plain_rows([number]), path, options()).inserts

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(write, range(4))) == [1, 1, 1, 1]
    assert len(table_rows(path)) == 4
    assert_tidy(path)


@pytest.mark.slow
def test_readers_see_whole_commits_while_a_writer_works(table: Path) -> None:
    """Every commit gives all rows one text."""
    hf.write(plain_rows(range(20), ts=2, text="0-"), table, options())
    stop = threading.Event()
    torn = []

    def look() -> None:
        while not stop.is_set():
            texts = {row[2].partition("-")[0] for row in table_rows(table).values()}
            if len(texts) != 1:
                torn.append(texts)

    reader = threading.Thread(target=look)
    reader.start()
    try:
        for turn in range(1, 25):
            settings = options(operation="insert_overwrite" if turn % 3 == 0 else "upsert")
            hf.write(plain_rows(range(20), ts=2 + turn, text=f"{turn}-"), table, settings)
    finally:
        stop.set()
        reader.join()
    assert torn == []


def test_a_lock_on_a_table_that_was_replaced_locks_nothing(table: Path) -> None:
    """A writer that waits while the table is overwritten goes on with the new table."""
    entered = threading.Event()

    def append() -> int:
        entered.set()
        return hf.write(plain_rows([50]), table, options()).inserts

    with ThreadPoolExecutor(1) as pool:
        with machine_lock(Storage(table), 1):
            waiting = pool.submit(append)
            entered.wait()
            time.sleep(0.05)
            fresh = table.with_name("fresh")
            hf.write(plain_rows([7]), fresh, options())
            Storage(table).exchange(Storage(fresh))
        assert waiting.result(30) == 1
    assert set(table_rows(table)) == {"k00007", "k00050"}


def test_a_lock_file_that_was_replaced_before_it_was_locked_does_not_count(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is overwritten, and the new one is locked, after a writer has opened the lock file of the old one."""
    fresh = table.with_name("fresh")
    hf.write(plain_rows([7]), fresh, options())
    with contextlib.ExitStack() as others:

        def after_an_overwrite(file: LockableFile) -> None:
            monkeypatch.setattr(LockableFile, "lock", as_it_is)
            Storage(table).exchange(Storage(fresh))
            others.enter_context(machine_lock(Storage(table), 1))
            file.lock()

        as_it_is = LockableFile.lock
        monkeypatch.setattr(LockableFile, "lock", after_an_overwrite)
        with pytest.raises(hf.LockTimeoutError, match="being written by another writer"):
            others.enter_context(machine_lock(Storage(table), 0.05))
    with machine_lock(Storage(table), 0):
        assert is_held(Storage(table))
        assert not is_held(Storage(fresh))


def test_a_table_that_went_away_is_said_to_be_gone(tmp_path: Path) -> None:
    with pytest.raises(hf.TableNotFoundError, match="was deleted"), machine_lock(Storage(tmp_path / "none"), 1):
        pass
    assert not (tmp_path / "none" / LOCK_PATH).exists()
