"""The lock file: who has it, who may take it over, what is left of it, and what a JVM does to it.

Attempts and renewals are those of ``hudi_fast.locking.file_system``.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.config.concurrency_options import LockOptions
from hudi_fast.locking.file_system import FileSystemLock, open_file_system_lock
from hudi_fast.locking.provider import open_provider
from hudi_fast.storage.base import Storage
from tests.locking.contention import LinePeer, contend_threads, python_lock
from tests.locking.jvm_lock import jvm_lock

PROVIDER = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"


def options(**settings: Any) -> dict[str, Any]:
    names = {key.replace("__", "."): value for key, value in settings.items()}
    return {"hoodie.write.lock.provider": PROVIDER} | {f"hoodie.write.lock.{key}": names[key] for key in names}


def lock_of(folder: Path, expire: float = 0.0) -> FileSystemLock:
    return FileSystemLock(f"{folder}/lock", expire)


@contextlib.contextmanager
def held(lock: FileSystemLock) -> Iterator[FileSystemLock]:
    assert lock.try_lock(60.0)
    try:
        yield lock
    finally:
        lock.unlock()


def python(folder: Path, **settings: Any) -> LinePeer:
    return python_lock(folder, options(**settings))


# ---- one holder


def test_the_file_is_where_hudi_has_it_and_goes_with_the_lock(tmp_path: Path) -> None:
    lock = open_provider(Storage(tmp_path), LockOptions.from_options(options()))
    assert lock.try_lock(0.0)
    lock.require_held()
    assert sorted(os.listdir(tmp_path / ".hoodie")) == ["lock"]
    lock.unlock()
    assert os.listdir(tmp_path / ".hoodie") == []
    lock.close()


@pytest.mark.parametrize("form", ["{}", "file://{}", "file:{}/"])
def test_a_folder_of_its_own_takes_any_form_of_a_local_path(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "locks" / "of t"
    lock = open_provider(Storage(tmp_path), LockOptions.from_options(options(filesystem__path=form.format(folder))))
    assert lock.try_lock(0.0)
    assert os.listdir(folder) == ["lock"]
    lock.close()
    assert os.listdir(folder) == []


def test_a_table_that_is_made_beside_its_place_has_its_lock_there(tmp_path: Path) -> None:
    storage = Storage(tmp_path / "t").rooted_at(f"{tmp_path}/beside")
    with held(open_file_system_lock(storage, LockOptions())):
        assert os.listdir(tmp_path) == ["beside"]


@pytest.mark.parametrize("path", ["memory://t", "s3://b/t", "gs://b/t"])
def test_folders_elsewhere_are_refused_by_name(tmp_path: Path, path: str) -> None:
    with pytest.raises(hf.UnsupportedFeatureError, match=f"{PROVIDER} on {path.split(':')[0]}://"):
        open_file_system_lock(Storage(tmp_path), LockOptions.from_options(options(filesystem__path=path)))


def test_the_file_tells_who_holds_the_lock(tmp_path: Path) -> None:
    with held(lock_of(tmp_path)):
        told = json.loads((tmp_path / "lock").read_text())
        assert (told["writer"], told["process"]) == ("hudi_fast", os.getpid())
        other = lock_of(tmp_path)
        assert not other.try_lock(0.0)
        assert "no process" not in other.holder


def test_a_holder_whose_process_has_ended_is_said_to_have(tmp_path: Path) -> None:
    script = "import sys; from hudi_fast.locking.lock_record import lock_content; print(lock_content('x').decode())"
    ended = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    (tmp_path / "lock").write_bytes(ended.communicate()[0])
    other = lock_of(tmp_path)
    assert not other.try_lock(0.0)
    assert f"This machine has no process {ended.pid}: if no writer is running, delete the file" in other.holder


def test_a_folder_that_cannot_be_is_an_error_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(hf.LockError, match="cannot be acquired"):
        lock_of(tmp_path / "file").try_lock(60.0)


# ---- what others do to the file


@pytest.mark.parametrize("content", [None, b"", b'{"owner": "somebody"}'])
def test_a_file_that_is_not_ours_any_more_is_lost_and_left_alone(tmp_path: Path, content: bytes | None) -> None:
    lock, path = lock_of(tmp_path), tmp_path / "lock"
    assert lock.try_lock(0.0)
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(hf.LockError, match="was lost"):
        lock.require_held()
    lock.unlock()
    assert path.exists() == (content is not None)
    if content is not None:
        assert path.read_bytes() == content


def test_a_file_that_a_jvm_opened_at_the_same_moment_is_lost(tmp_path: Path) -> None:
    """It opens the file that is there by now and empties it: the same file, with another's content."""
    lock, path = lock_of(tmp_path), tmp_path / "lock"
    assert lock.try_lock(0.0)
    os.truncate(path, 0)
    with pytest.raises(hf.LockError, match="no owner"):
        lock.require_held()
    lock.close()
    assert path.read_bytes() == b""


def test_publishing_waits_until_a_jvm_would_have_been_seen(tmp_path: Path) -> None:
    lock, started = lock_of(tmp_path), time.monotonic()
    with held(lock):
        lock.require_held()
        assert time.monotonic() - started >= 0.05


def test_who_has_met_a_jvm_looks_before_it_goes_on(tmp_path: Path) -> None:
    """A JVM gives up by deleting twice, the second time whatever is there."""
    lock, path = lock_of(tmp_path), tmp_path / "lock"
    path.write_bytes(b"")
    assert not lock.try_lock(0.0)

    def delete_twice() -> None:
        path.unlink()
        while not path.exists():
            time.sleep(0.001)
        path.unlink()

    jvm = threading.Thread(target=delete_twice)
    jvm.start()
    assert lock.try_lock(30.0)
    jvm.join()
    lock.require_held()
    lock.unlock()
    assert os.listdir(tmp_path) == []


def test_the_checksum_of_an_older_lock_file_goes(tmp_path: Path) -> None:
    (tmp_path / ".lock.crc").write_bytes(b"crc\0\0\0\2\0")
    with held(lock_of(tmp_path)):
        assert os.listdir(tmp_path) == ["lock"]


# ---- age


def make_old(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_a_lock_lasts_for_ever_unless_it_may_expire(tmp_path: Path) -> None:
    (tmp_path / "lock").write_bytes(b"")
    make_old(tmp_path / "lock", 1e7)
    assert not lock_of(tmp_path).try_lock(0.0)
    with held(lock_of(tmp_path, expire=60.0)) as lock:
        lock.require_held()
    assert os.listdir(tmp_path) == []


def test_minutes_are_minutes(tmp_path: Path) -> None:
    path = tmp_path / ".hoodie" / "lock"
    path.parent.mkdir()
    path.write_bytes(b"")
    for age, free in ((50, False), (70, True)):
        make_old(path, age)
        lock = open_provider(Storage(tmp_path), LockOptions.from_options(options(filesystem__expire=1)))
        assert lock.try_lock(0.0) is free
        lock.close()


def test_of_many_that_find_an_old_lock_one_takes_it(tmp_path: Path) -> None:
    for _ in range(8):
        (tmp_path / "lock").write_bytes(b"")
        make_old(tmp_path / "lock", 100)
        locks, start = [lock_of(tmp_path, expire=60.0) for _ in range(6)], threading.Barrier(6)
        taken: list[FileSystemLock] = []

        def take(lock: FileSystemLock, start: threading.Barrier = start, taken: list[FileSystemLock] = taken) -> None:
            start.wait()
            if lock.try_lock(0.0):
                taken.append(lock)

        threads = [threading.Thread(target=take, args=(lock,)) for lock in locks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (holder,) = taken
        holder.unlock()
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_a_holder_stays_young(tmp_path: Path) -> None:
    with held(lock_of(tmp_path, expire=1.2)) as lock:
        time.sleep(1.4)
        assert not lock_of(tmp_path, expire=1.2).try_lock(0.0)
        lock.require_held()


@pytest.mark.slow
def test_a_lock_that_was_not_renewed_for_half_its_time_is_not_relied_on(tmp_path: Path) -> None:
    lock = lock_of(tmp_path, expire=1.0)
    assert lock.try_lock(0.0)
    lock._end_renewal()  # as if the process had been held up
    lock.require_held()
    time.sleep(0.55)
    with pytest.raises(hf.LockError, match="suspended or too slow"):
        lock.require_held()
    lock.unlock()
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_threads_that_take_over_old_locks_never_hold_one_together(tmp_path: Path) -> None:
    """Every section ends as if its process had died; the next one waits until the lock is too old."""

    @contextlib.contextmanager
    def dies() -> Iterator[None]:
        lock = lock_of(tmp_path, expire=0.3)
        while not lock.try_lock(30.0):
            pass
        yield
        lock._end_renewal()
        assert lock._own is not None
        lock._own.file.close()

    contend_threads(tmp_path / "t", dies, threads=3, rounds=1)


# ---- Apache Hudi's provider


@pytest.fixture(scope="module")
def jvm(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LinePeer, Path]]:
    """Apache Hudi's provider, a lock file being nobody's after a minute, and the folder of the file."""
    folder = tmp_path_factory.mktemp("jvm")
    settings = {"hoodie.write.lock.filesystem.path": folder, "hoodie.write.lock.filesystem.expire": 1}
    with jvm_lock(PROVIDER, settings) as peer:
        yield peer, folder


def test_a_jvm_waits_for_python_and_tells_who_it_is(jvm: tuple[LinePeer, Path]) -> None:
    peer, folder = jvm
    with held(lock_of(folder, 60.0)) as lock:
        answer = peer.ask("lock 0")
        assert answer.startswith("busy")
        assert f'"process": {os.getpid()}' in answer
        lock.require_held()
    assert peer.ask("lock 0") == "locked"
    assert peer.ask("leave") == "left"
    assert os.listdir(folder) == []


def test_python_waits_for_a_jvm(jvm: tuple[LinePeer, Path]) -> None:
    peer, folder = jvm
    assert peer.ask("lock 0") == "locked"
    lock = lock_of(folder, 60.0)
    assert not lock.try_lock(0.05)
    assert "no owner" in lock.holder
    threading.Timer(0.1, peer.send, ("leave",)).start()
    with held(lock):
        lock.require_held()
        assert os.listdir(folder) == ["lock"]
    assert peer.answer() == "left"


def test_what_a_jvm_took_over_is_its_own(jvm: tuple[LinePeer, Path]) -> None:
    peer, folder = jvm
    lock = lock_of(folder, 60.0)
    assert lock.try_lock(0.0)
    make_old(folder / "lock", 61)
    assert peer.ask("lock 0") == "locked"
    with pytest.raises(hf.LockError, match="was lost"):
        lock.require_held()
    lock.close()
    assert sorted(os.listdir(folder)) == [".lock.crc", "lock"]
    make_old(folder / "lock", 61)
    with held(lock):
        assert os.listdir(folder) == ["lock"]
        assert peer.ask("leave") == "left"  # deletes the lock file, whoever made it
        with pytest.raises(hf.LockError, match="was lost"):
            lock.require_held()
