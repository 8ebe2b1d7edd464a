"""The lock file on HDFS: one holder, renewal, expiry, and what is detected."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

import hudi_fast as hf
from hudi_fast.config.concurrency_options import LockOptions
from hudi_fast.locking.file_system import RemoteFileLock
from hudi_fast.locking.provider import open_provider
from hudi_fast.storage.base import Storage
from tests.servers.hdfs import HdfsCluster
from tests.support.small_tables import assert_tidy, options, plain_rows, table_rows

PROVIDER = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
SHARED = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": PROVIDER,
    "hoodie.write.num.retries.on.conflict.failures": "20",  # both put rows into the small file that is there
}
WRITER = """
import sys
sys.path[:0] = {path!r}
from tests.locking.test_locking_remote_file import SHARED
from tests.support.small_tables import options, plain_rows
import hudi_fast as hf
for turn in range(2):
    hf.write(plain_rows([{number} * 10 + turn], ts=turn), {table!r}, {{**options(operation="insert"), **SHARED}})
"""


def lock(hdfs: HdfsCluster, name: str, expire: float = 0.0) -> RemoteFileLock:
    return RemoteFileLock(Storage(hdfs.path(name)), expire)


def test_an_expired_file_is_taken_over_and_its_writer_notices(hdfs: HdfsCluster) -> None:
    folder = Storage(hdfs.path("expired"))
    folder.create_exclusive("lock", b"of a writer that has ended")
    folder.set_modified("lock", round((time.time() - 100) * 1000))
    assert not lock(hdfs, "expired", 1000.0).try_lock(0.0)
    own = lock(hdfs, "expired", 10.0)
    assert own.try_lock(0.0)
    assert [one.name for one in folder.list_dir("")] == ["lock"]
    folder.write_bytes("lock", b"of another")
    with pytest.raises(hf.LockError, match="of another"):
        own.require_held()
    own.close()
    assert folder.read_bytes("lock") == b"of another"


def test_a_held_file_is_renewed(hdfs: HdfsCluster) -> None:
    own = lock(hdfs, "renewed", 4.0)
    assert own.try_lock(0.0)
    before = Storage(hdfs.path("renewed")).stat("lock")
    time.sleep(1.2)
    after = Storage(hdfs.path("renewed")).stat("lock")
    assert before is not None
    assert after is not None
    assert after.modified_ms > before.modified_ms
    own.require_held()
    own.close()


def test_writers_of_several_processes_take_turns(hdfs: HdfsCluster) -> None:
    path = hdfs.path("shared")
    hf.write(plain_rows([0]), path, {**options(), **SHARED})
    provider = open_provider(Storage(path), LockOptions.from_options(SHARED))
    assert isinstance(provider, RemoteFileLock)
    codes = [WRITER.format(path=sys.path, number=number, table=path) for number in (1, 2)]
    writers = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) for code in codes]
    said = [writer.communicate()[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0], said
    assert len(table_rows(path)) == 5
    assert Storage(path).stat(".hoodie/lock") is None
    assert_tidy(path)
