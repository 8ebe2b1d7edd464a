"""What excludes writers that name no lock provider, on every kind of storage.

Modules: hudi_fast.locking.provider, hudi_fast.locking.machine, hudi_fast.locking.table_lock.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.config.concurrency_options import LockOptions
from hudi_fast.locking import machine
from hudi_fast.locking.lock_record import STORAGE_LOCK_PATH, decode_record
from hudi_fast.locking.machine import machine_lock
from hudi_fast.locking.provider import provider_of
from hudi_fast.locking.table_lock import table_lock
from hudi_fast.storage.base import Storage
from tests.servers.object_stores import start_azurite, start_fake_gcs
from tests.servers.s3 import S3Server, ServerError
from tests.support.jvm import FETCHED

IN_PROCESS = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"}
ZOOKEEPER = {
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.ZookeeperBasedImplicitBasePathLockProvider",
    "hoodie.write.lock.zookeeper.url": "h:1",
}
TABLE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hudi_fast.threads": "1",
}
KEYS = {"endpoint_url": "http://127.0.0.1:9", "access_key": "a", "secret_key": "b", "region": "r"}
PLACES = {
    "s3://b/t": KEYS,
    "s3a://b/t": KEYS,
    "gs://b/t": {"anonymous": "true"},
    "abfs://c@account.dfs.core.windows.net/t": {"account_key": "aGVsbG8="},
}
EMULATORS = {
    "gcs": (start_fake_gcs, "gs://tables"),
    "azure": (start_azurite, "abfs://tables@devstoreaccount1.dfs.core.windows.net"),
}
WRITER = """
import json, os, signal, sys
import pyarrow as pa
import hudi_fast as hf
from hudi_fast.storage.base import Storage
path, options, storage_options, first, writes, stops = json.loads(sys.argv[1])
create = Storage.create_exclusive
def stopped(storage, path, *args, **named):
    is_completed = path.endswith(".commit") and not storage.fs_path("").endswith("metadata")
    if stops and is_completed:
        os.kill(os.getpid(), signal.SIGSTOP)
    create(storage, path, *args, **named)
Storage.create_exclusive = stopped
print("ready", flush=True)
sys.stdin.readline()
for number in range(first, first + writes):
    try:
        hf.write(pa.table({"id": [0, number], "v": [number] * 2}), path, options, storage_options=storage_options)
    except hf.CommitConflictError as error:
        print("conflict", error, flush=True)
    else:
        print("acknowledged", number, flush=True)
"""


@pytest.mark.parametrize("uri", PLACES)
def test_an_object_store_has_the_lock_in_storage_by_default(uri: str) -> None:
    storage = Storage(uri, PLACES[uri])
    assert provider_of(storage, LockOptions.from_options({})) == "storage"
    assert provider_of(storage, LockOptions.from_options(IN_PROCESS)) is None
    assert provider_of(storage, LockOptions.from_options(ZOOKEEPER)) == "zookeeper_implicit"
    several = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    adjusted = LockOptions.from_options({**several, "hoodie.auto.adjust.lock.configs": "true"})
    assert provider_of(storage, adjusted) == "storage"


def test_a_local_table_has_the_lock_of_the_machine_by_default(tmp_path: Path) -> None:
    (tmp_path / ".hoodie").mkdir()
    assert provider_of(Storage(tmp_path), LockOptions.from_options({})) is None
    with table_lock(Storage(tmp_path), LockOptions.from_options({})) as held:
        assert held.is_exclusive
        with pytest.raises(hf.LockTimeoutError), machine_lock(Storage(tmp_path), 0.0):
            raise AssertionError("it is held")


# ---- the lock of the machine outside of local tables


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files of a machine of its own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_processes_of_one_machine_exclude_each_other_wherever_the_table_is(temporary: Path) -> None:
    names = ("s3://b/t", "s3a://b/t")
    one, same = (Storage(uri, KEYS) for uri in names)
    with machine_lock(one, 0.0):
        with pytest.raises(hf.LockTimeoutError, match=f"process {os.getpid()}"), machine_lock(same, 0.0):
            raise AssertionError("it is the same table")
        with machine_lock(Storage("s3://b/other", KEYS), 0.0):
            pass
    (folder,) = temporary.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700


def test_owners_that_have_ended_are_told_to_the_next_holder(temporary: Path) -> None:
    table = Storage("s3://b/t", KEYS)
    with machine_lock(table, 0.0) as first:
        assert first.ended == frozenset()
        first.note("a", "b")
        first.note("c")
    with machine_lock(table, 0.0) as second:
        assert second.ended == {"c"}


def test_a_folder_that_others_can_change_is_not_trusted(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, folder = Storage("s3://b/t", KEYS), temporary / f"hudi_fast-locks-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(hf.LockError, match="Set TMPDIR"), machine_lock(table, 0.0):
        raise AssertionError("it cannot be had")
    with machine_lock(table, 0.0, required=False) as turn:  # the provider excludes all
        assert turn.file is None
    monkeypatch.setattr(machine, "has_locks", lambda: False)
    with machine_lock(table, 0.0, required=False) as turn:
        assert turn.file is None


# ---- whole writers on an S3 server


@contextlib.contextmanager
def writer(
    table: Storage, first: int, writes: int, options: Mapping[str, Any], temporary: Path, stops: bool = False
) -> Iterator[subprocess.Popen[str]]:
    """A process that upserts key 0 and a new key in each write; folders of temporary files are machines."""
    settings = (table.uri, {**TABLE, **options}, dict(table.options), first, writes, stops)
    temporary.mkdir(exist_ok=True)
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, json.dumps(settings)],
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def rows_of(table: Storage) -> dict[int, int]:
    found = hf.HudiTable.open(table.uri, storage_options=dict(table.options)).to_arrow(columns=["id", "v"])
    rows = found.to_pylist()
    assert len(rows) == len({row["id"] for row in rows})
    return {row["id"]: row["v"] for row in rows}


@pytest.fixture
def table(s3_server: S3Server) -> Storage:
    """A table of one row, by a writer without a lock."""
    storage = Storage(s3_server.path(f"default-{uuid.uuid4().hex}"), s3_server.options)
    first = pa.table({"id": [0], "v": [-1]})
    hf.write(first, storage.uri, {**TABLE, **IN_PROCESS}, storage_options=dict(storage.options))
    return storage


@pytest.mark.parametrize("machines", ["one", "two"])
@pytest.mark.parametrize(
    "writes", [4, pytest.param(200, marks=[pytest.mark.long, pytest.mark.timeout(3600)])], ids=["few", "many"]
)
def test_two_writers_with_default_options_lose_no_acknowledged_write(
    table: Storage, machines: str, writes: int, tmp_path: Path
) -> None:
    assert_two_lose_nothing(table, machines, writes, tmp_path)


def assert_two_lose_nothing(table: Storage, machines: str, writes: int, tmp_path: Path) -> None:
    """Two processes write at the same time."""
    other = tmp_path / ("1" if machines == "one" else "2")
    with writer(table, 1, writes, {}, tmp_path / "1") as one, writer(table, 1001, writes, {}, other) as two:
        for each in (one, two):
            go(each)
        for first, each in ((1, one), (1001, two)):
            out, err = each.communicate(timeout=3000)
            assert out.split("\n")[:-1] == [f"acknowledged {number}" for number in range(first, first + writes)], err
    found = rows_of(table)
    assert found.pop(0) in (writes, 1000 + writes)
    assert found == {number: number for first in (1, 1001) for number in range(first, first + writes)}
    commits = hf.HudiTable.open(table.uri, storage_options=dict(table.options)).history()
    assert commits.num_rows >= min(2 * writes + 1, 20)
    assert decode_record(table.read_bytes(STORAGE_LOCK_PATH)).expired


@pytest.fixture(scope="module")
def emulated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    """A folder on a server that speaks the protocol of Google Cloud Storage, or of Azure Blob Storage."""
    folder = tmp_path_factory.mktemp(request.param)
    start, uri = EMULATORS[request.param]
    try:
        with start(FETCHED, folder) as reach:
            yield Storage(uri, reach)
    except ServerError as error:
        pytest.skip(str(error))


@pytest.mark.server
@pytest.mark.slow
@pytest.mark.parametrize("machines", [pytest.param("one", marks=pytest.mark.long), "two"])
@pytest.mark.parametrize("emulated", EMULATORS, indirect=True)
@pytest.mark.parametrize("writes", [3, pytest.param(50, marks=[pytest.mark.long, pytest.mark.timeout(3600)])])
def test_two_writers_on_other_stores_lose_no_acknowledged_write(
    emulated: Storage, machines: str, writes: int, tmp_path: Path
) -> None:
    table = Storage(f"{emulated.uri}/{uuid.uuid4().hex}", emulated.options)
    first = pa.table({"id": [0], "v": [-1]})
    hf.write(first, table.uri, {**TABLE, **IN_PROCESS}, storage_options=dict(table.options))
    assert_two_lose_nothing(table, machines, writes, tmp_path)


@pytest.mark.parametrize("mode", ["SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL"])
def test_a_writer_stopped_between_check_and_completed_file_loses_no_acknowledged_write(
    table: Storage, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = {
        "hoodie.write.concurrency.mode": mode,
        "hoodie.auto.adjust.lock.configs": "true",
        "hoodie.write.lock.storage.validity.timeout.secs": "10",
        "hoodie.write.lock.storage.renew.interval.secs": "1",
        "hoodie.clean.failed.writes.policy": "LAZY",
    }
    with writer(table, 5, 1, short, tmp_path / "1", stops=True) as process:
        go(process)
        wait_until_stopped(process.pid)
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        ours = pa.table({"id": [0, 7], "v": [7, 7]})
        hf.write(ours, table.uri, {**TABLE, **short}, storage_options=dict(table.options))
        assert rows_of(table) == {0: 7, 7: 7}
        time.sleep(1.1)  # times of the store are whole seconds
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=120)
        assert out.startswith("conflict"), out + err
        assert "without a lock" in out
    assert rows_of(table) == {0: 7, 7: 7}
    hf.write(pa.table({"id": [9], "v": [9]}), table.uri, TABLE, storage_options=dict(table.options))
    assert rows_of(table) == {0: 7, 7: 7, 9: 9}


def test_a_writer_of_this_machine_that_was_killed_is_not_waited_for(
    table: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writer(table, 5, 1, {}, tmp_path / "1", stops=True) as process:
        go(process)
        wait_until_stopped(process.pid)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not decode_record(table.read_bytes(STORAGE_LOCK_PATH)).expired
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "1"))
    started = time.monotonic()
    hf.write(pa.table({"id": [9], "v": [9]}), table.uri, TABLE, storage_options=dict(table.options))
    assert time.monotonic() - started < 60  # the lease has five minutes
    assert rows_of(table) == {0: -1, 9: 9}


def wait_until_stopped(pid: int) -> None:
    deadline = time.monotonic() + 60
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < deadline
        time.sleep(0.02)
