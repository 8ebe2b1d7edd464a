"""The table's lock as writers take it: this machine's first, then the provider's, tried and tried again."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.config.concurrency_options import LockOptions
from hudi_fast.locking.file_system import FileSystemLock
from hudi_fast.locking.lock_record import STORAGE_LOCK_PATH, decode_record
from hudi_fast.locking.machine import LOCK_PATH, is_held, machine_lock
from hudi_fast.locking.table_lock import no_lock, table_lock, writer_turn
from hudi_fast.storage.base import Storage
from tests.servers.faulty_proxy import DROP_REQUEST, start_faulty_proxy
from tests.servers.s3 import S3Server

CLASSES = "org.apache.hudi.client.transaction.lock."
FILE, OBJECT = f"{CLASSES}FileSystemBasedLockProvider", f"{CLASSES}StorageBasedLockProvider"
ZOOKEEPER = f"{CLASSES}ZookeeperBasedLockProvider"
DYNAMODB = "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider"
HIVE = "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"
SHARED = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
}


@pytest.fixture
def table(tmp_path: Path) -> Storage:
    """A folder that passes for a table."""
    (tmp_path / "t" / ".hoodie").mkdir(parents=True)
    return Storage(tmp_path / "t")


def options(provider: str = FILE, **changes: Any) -> LockOptions:
    keys = {name.replace("__", "."): value for name, value in changes.items()}
    settings = {"provider": provider, "wait_time_ms": 50, "client.num_retries": 2, **keys}
    settings.setdefault("client.wait_time_ms_between_retry", 20)
    return LockOptions.from_options({f"hoodie.write.lock.{name}": value for name, value in settings.items()})


def lock_file(table: Storage) -> Path:
    return Path(table.fs_path(".hoodie/lock"))


@contextlib.contextmanager
def held_by_another_machine(table: Storage) -> Iterator[FileSystemLock]:
    """The provider's lock alone, as a writer elsewhere has it."""
    other = FileSystemLock(os.fspath(lock_file(table)))
    assert other.try_lock(5.0)
    try:
        yield other
    finally:
        other.close()


# ---- the loop


def test_both_locks_are_held_for_the_block_and_nothing_is_left(table: Storage) -> None:
    with table_lock(table, options()) as held:
        assert is_held(table)
        assert lock_file(table).exists()
        held.require()
    assert not is_held(table)
    assert not lock_file(table).exists()


def test_a_wait_in_vain_tells_who_has_the_lock_and_what_was_tried(table: Storage) -> None:
    with held_by_another_machine(table) as other:
        started = time.monotonic()
        with pytest.raises(hf.LockTimeoutError) as failure, table_lock(table, options()):
            raise AssertionError("it is held by somebody else")
        assert 3 * 0.05 + 2 * 0.02 <= time.monotonic() - started < 20
        text = str(failure.value)
        for part in (
            table.uri,
            FILE,
            "3 attempts",
            f'"process": {os.getpid()}',
            "hoodie.write.lock.client.num_retries",
        ):
            assert part in text
        other.require_held()
        assert not is_held(table)


def test_a_later_try_gets_what_the_first_did_not(table: Storage) -> None:
    with contextlib.ExitStack() as elsewhere:
        elsewhere.enter_context(held_by_another_machine(table))
        threading.Timer(0.3, elsewhere.close).start()
        with table_lock(table, options(client__num_retries=1000)) as held:
            held.require()


def test_what_no_try_can_mend_is_raised_at_once(table: Storage) -> None:
    table.write_bytes(STORAGE_LOCK_PATH, b"no record")
    started = time.monotonic()
    with (
        pytest.raises(hf.LockError, match="cannot be decoded") as failure,
        table_lock(table, options(OBJECT, wait_time_ms=60_000)),
    ):
        raise AssertionError("it cannot be had")
    assert not isinstance(failure.value, hf.LockTimeoutError)
    assert time.monotonic() - started < 20
    assert not is_held(table)


def test_a_provider_that_cannot_be_reached_is_tried_again_and_its_last_failure_told(s3_server: S3Server) -> None:
    with start_faulty_proxy(s3_server.url) as proxy:
        storage = Storage(s3_server.path("unreachable"), s3_server.options_at(proxy.url))
        proxy.fail("GET", DROP_REQUEST, "table_lock.json", times=2)
        with table_lock(storage, options(OBJECT, wait_time_ms=0)) as held:
            held.require()
        storage = Storage(s3_server.path("unreachable-too"), s3_server.options_at(proxy.url))  # its lock is not known
        proxy.fail("GET", DROP_REQUEST, "table_lock.json", times=3)
        text = r"3 attempts.*information: unknown\. The last attempt failed: S3 did not read"
        with pytest.raises(hf.LockTimeoutError, match=text), table_lock(storage, options(OBJECT, wait_time_ms=0)):
            raise AssertionError("it cannot be had")


# ---- two locks


def test_this_machines_lock_comes_first(table: Storage) -> None:
    """Who queues here takes nothing from writers elsewhere."""
    turn, entered = threading.Event(), threading.Event()

    def write() -> None:
        with table_lock(table, options(wait_time_ms=30_000)):
            entered.set()
            turn.wait(30.0)

    with machine_lock(table, 5.0):
        writer = threading.Thread(target=write)
        writer.start()
        time.sleep(0.1)
        assert not lock_file(table).exists()
        with held_by_another_machine(table):
            pass
    assert entered.wait(30.0)
    assert lock_file(table).exists()
    turn.set()
    writer.join()


def test_who_waits_for_others_elsewhere_holds_this_machines_lock(table: Storage) -> None:
    with contextlib.ExitStack() as elsewhere:
        elsewhere.enter_context(held_by_another_machine(table))
        waiting = threading.Thread(target=lambda: table_lock(table, options(client__num_retries=1000)).__enter__())
        waiting.start()
        deadline = time.monotonic() + 20
        while not is_held(table):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        with pytest.raises(hf.LockTimeoutError, match="being written by another writer"), machine_lock(table, 0.0):
            raise AssertionError("it is held")
    waiting.join()


@pytest.mark.parametrize("settings", [{}, {"hoodie.write.lock.provider": f"{CLASSES}InProcessLockProvider"}])
def test_a_lock_of_this_machine_is_no_file_for_others(table: Storage, settings: dict[str, Any]) -> None:
    with table_lock(table, LockOptions.from_options(settings)) as held:
        held.require()
        assert not lock_file(table).exists()
        assert is_held(table)


def test_no_table_no_lock(tmp_path: Path) -> None:
    with pytest.raises(hf.TableNotFoundError), table_lock(Storage(tmp_path / "t"), options()):
        raise AssertionError("there is no table")
    assert os.listdir(tmp_path) == []


# ---- the end


@pytest.mark.parametrize("provider", [FILE, OBJECT])
def test_an_exception_leaves_nothing_behind(table: Storage, provider: str) -> None:
    with pytest.raises(ZeroDivisionError), table_lock(table, options(provider, filesystem__expire=1)):
        raise ZeroDivisionError
    assert not is_held(table)
    assert not lock_file(table).exists()
    if provider == OBJECT:
        assert decode_record(table.read_bytes(STORAGE_LOCK_PATH)).expired
    assert not any(thread.name == "hudi_fast-lock" for thread in threading.enumerate())
    left = {entry.path for entry in table.list_dir("", recursive=True) if not entry.is_dir}
    assert left <= {LOCK_PATH, STORAGE_LOCK_PATH}


def test_a_lock_that_cannot_be_given_up_is_a_warning(table: Storage) -> None:
    """What was done under it is done."""
    with pytest.warns(hf.HudiWarning, match=rf"The lock of {table.uri} could not be released: .*descriptor"):
        with table_lock(table, options()) as held:
            os.close(held._provider._own.file.descriptor)  # type: ignore[union-attr]
    assert not is_held(table)


def test_a_lock_that_was_lost_is_given_up_in_silence(table: Storage) -> None:
    with warnings.catch_warnings(), table_lock(table, options()) as held:
        warnings.simplefilter("error")
        lock_file(table).write_bytes(b"another's")
        os.replace(lock_file(table), f"{lock_file(table)}.moved")
        lock_file(table).write_bytes(b"another's")
        with pytest.raises(hf.LockError, match="another's"):
            held.require()
    assert lock_file(table).read_bytes() == b"another's"


def test_last_acts_are_done_while_the_lock_is_held_and_then_it_is_not(table: Storage) -> None:
    seen: list[bool] = []

    def look() -> None:
        seen.append(lock_file(table).exists() and is_held(table))

    with table_lock(table, options()) as held:
        held.before_end(look)
        held.before_end(look)  # once is enough
    assert seen == [True]
    with pytest.raises(hf.LockError, match="already released"):
        held.require()


def test_a_last_act_that_fails_does_not_keep_the_lock(table: Storage) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), table_lock(table, options()) as held:
        held.before_end(fail)
    assert not lock_file(table).exists()
    assert not is_held(table)


def test_who_needs_no_lock_may_always_go_on() -> None:
    with no_lock() as held:
        held.require()


# ---- turns


def test_a_single_writers_sections_are_all_in_one_lock(table: Storage) -> None:
    with writer_turn(table, options()) as section:
        assert lock_file(table).exists()
        inode = lock_file(table).stat().st_ino
        for _ in range(2):
            with section() as held:
                held.require()
        assert lock_file(table).stat().st_ino == inode
    assert not lock_file(table).exists()


def test_several_writers_take_the_lock_for_each_section(table: Storage) -> None:
    settings = {**SHARED, "hoodie.write.lock.provider": FILE}
    with writer_turn(table, LockOptions.from_options(settings)) as section:
        for _ in range(2):
            assert not lock_file(table).exists()
            with section() as held:
                held.require()
                assert lock_file(table).exists()
        with held_by_another_machine(table):
            pass


# ---- what a provider needs


@pytest.mark.parametrize(
    ("provider", "settings", "module", "extra"),
    [
        (ZOOKEEPER, {"zookeeper__url": "h:1", "zookeeper__base_path": "/l"}, "kazoo", "zookeeper"),
        (DYNAMODB, {"dynamodb__table": "l", "dynamodb__partition_key": "k"}, "boto3.session", "aws"),
        (HIVE, {"hivemetastore__database": "d", "hivemetastore__table": "t"}, "thriftpy2", "hive"),
    ],
)
def test_a_package_that_is_missing_is_named(
    table: Storage, monkeypatch: pytest.MonkeyPatch, provider: str, settings: dict[str, Any], module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # as Python has what cannot be imported
    with (
        pytest.raises(hf.ConfigError, match=rf"pip install 'hudi-fast\[{extra}\]'"),
        table_lock(table, options(provider, wait_time_ms=60_000, **settings)),
    ):
        raise AssertionError("it cannot be had")
    assert not is_held(table)
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert extra in project["optional-dependencies"]
