"""File locks: those of POSIX, systems that have none, and children of ``fork``."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.storage.file_locks import LockableFile, has_locks
from hudi_fast.storage.forks import PerProcess, new_lock
from tests.spark.programs import PROJECT
from tests.support.forks import in_children
from tests.support.small_tables import options, plain_rows

PROGRAM = """
import importlib, pkgutil, sys
import numba, numpy, pyarrow.dataset, pyarrow.parquet, fastavro, multiprocessing.util, tempfile, subprocess
sys.modules["fcntl"] = None
import hudi_fast as hf
table = hf.HudiTable.open(sys.argv[1])
print(sorted(table.to_arrow(["id"])["id"].to_pylist()), table.history().num_rows, table.files().num_rows)
for act in (
    lambda: table.upsert(table.to_arrow(["id", "part", "ts", "text"])),
    lambda: hf.write(table.to_arrow(["id", "part", "ts", "text"]), sys.argv[1] + "-new", {"hoodie.table.name": "n"}),
    lambda: table.services.clean(),
):
    try:
        act()
    except hf.UnsupportedFeatureError as error:
        print(error)
print(len(list(pkgutil.iter_modules(hf.__path__))) > 5)
"""


@pytest.mark.slow
def test_a_system_without_file_locks_reads_and_refuses_to_write(tmp_path: Path) -> None:
    hf.write(plain_rows([1, 2]), tmp_path / "t", options())
    before = sorted(os.walk(tmp_path))
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "t")]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    rows, *refused, _ = done.stdout.splitlines()
    assert rows.startswith("['k00001', 'k00002'] 1 ")
    assert len(refused) == 3
    assert all("fcntl" in one and "Reading works" in one for one in refused)
    assert sorted(os.walk(tmp_path)) == before


def test_a_lock_excludes_another_opening_of_the_file(tmp_path: Path) -> None:
    assert has_locks()
    first, second = (LockableFile(str(tmp_path / "lock"), os.O_RDWR | os.O_CREAT) for _ in range(2))
    first.lock(shared=True)
    second.lock(shared=True)
    with pytest.raises(BlockingIOError):
        second.lock()
    first.close()
    second.lock()
    second.close()


def test_a_child_of_fork_neither_keeps_a_lock_nor_takes_it_away(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    held, other = (LockableFile(path, os.O_RDWR | os.O_CREAT) for _ in range(2))
    held.lock()
    ended, end = os.pipe()
    with in_children(3, lambda: (held.close(), os.close(end), os.read(ended, 1))):
        with pytest.raises(BlockingIOError):
            other.lock()
        held.close()
        other.lock()
        os.close(end)
    os.close(ended)
    other.close()


def free_and_own(lock: threading.Lock, connection: PerProcess[str]) -> None:
    assert lock.acquire(timeout=5)
    assert connection.get() is None


def test_a_lock_that_another_thread_holds_is_free_in_a_child_of_fork() -> None:
    lock, connection = new_lock(), PerProcess[str]()
    assert connection.set("parent's") == connection.get()
    with lock, in_children(1, lambda: free_and_own(lock, connection)):
        pass


class Connection:
    pass


def test_the_last_connection_is_closed_with_its_owner_and_a_replaced_one_is_forgotten() -> None:
    closed: list[Connection] = []
    owner = PerProcess[Connection](closed.append)
    first, last = Connection(), Connection()
    owner.set(first)
    owner.set(last)
    replaced = weakref.ref(first)
    del first
    assert replaced() is None
    assert closed == []
    del owner
    assert closed == [last]
