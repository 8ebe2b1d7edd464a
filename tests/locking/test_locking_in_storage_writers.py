"""Whole writers whose lock is an object on an S3 server: all their rows are there; who was overtaken lands nothing."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.locking.in_storage import StorageLock
from hudi_fast.locking.lock_record import STORAGE_LOCK_PATH, decode_record
from hudi_fast.storage.base import Storage
from tests.servers.s3 import S3Server

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider",
    "hoodie.write.lock.storage.validity.timeout.secs": "10",
    "hoodie.write.lock.storage.renew.interval.secs": "1",
    "hoodie.write.lock.wait_time_ms": "60000",
    "hoodie.write.num.retries.on.conflict.failures": "30",
    "hudi_fast.threads": "1",
}
WRITER = """
import json, sys
import pyarrow as pa
import hudi_fast as hf
path, options, storage_options, first, writes = json.loads(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for number in range(first, first + writes):
    hf.write(pa.table({"id": [number], "v": [number]}), path, options, storage_options=storage_options)
print("done", flush=True)
"""


@pytest.fixture
def table(s3_server: S3Server) -> Storage:
    """A table of one row."""
    storage = Storage(s3_server.path(f"writers-{uuid.uuid4().hex}"), s3_server.options)
    hf.write(pa.table({"id": [-1], "v": [0]}), storage.uri, OPTIONS, storage_options=dict(storage.options))
    return storage


@contextlib.contextmanager
def writer(table: Storage, first: int, writes: int) -> Iterator[subprocess.Popen[str]]:
    """A process that is ready to insert rows, one in a write, from key ``first`` on."""
    settings: tuple[str, Mapping[str, Any], Mapping[str, str], int, int]
    settings = (table.uri, OPTIONS, dict(table.options), first, writes)
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, json.dumps(settings)], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def keys_of(table: Storage) -> list[int]:
    rows = hf.HudiTable.open(table.uri, storage_options=dict(table.options)).to_arrow()
    return sorted(rows.column("id").to_pylist())


@pytest.mark.smoke
@pytest.mark.long
def test_two_writers_lose_no_row(table: Storage) -> None:
    with writer(table, 0, 5) as first, writer(table, 100, 5) as second:
        for each in (first, second):
            assert each.stdin is not None
            each.stdin.write("go\n")
            each.stdin.flush()
        for each in (first, second):
            out, err = each.communicate(timeout=240)
            assert out == "done\n", err
    assert keys_of(table) == [-1, *range(5), *range(100, 105)]
    assert decode_record(table.read_bytes(STORAGE_LOCK_PATH)).expired


@pytest.mark.long
def test_a_writer_that_was_paused_beyond_its_lease_lands_nothing(table: Storage) -> None:
    before = decode_record(table.read_bytes(STORAGE_LOCK_PATH)).owner
    with writer(table, 0, 1) as process:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        owners = {before}
        deadline = time.monotonic() + 60
        while len(owners) < 3:  # one has the lock where a write begins, the next where it lands
            assert time.monotonic() < deadline
            record = decode_record(table.read_bytes(STORAGE_LOCK_PATH))
            if not record.expired:
                owners.add(record.owner)
        process.send_signal(signal.SIGSTOP)
        taken = StorageLock(table, 10.0, 1.0, lambda: time.time() + 12.0)  # as if so much time had gone by
        assert taken.try_lock(30.0)
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=120)
        assert out == ""
        assert "LockError" in err
        taken.require_held()
        taken.unlock()
    assert keys_of(table) == [-1]
    with writer(table, 7, 1) as process:
        assert process.communicate("go\n", timeout=120)[0] == "done\n"
    assert keys_of(table) == [-1, 7]
