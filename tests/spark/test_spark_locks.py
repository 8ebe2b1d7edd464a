"""The table's lock is lost while Spark's tasks write: the write ends before it is visible, and the next one goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from kazoo.client import KazooClient

import hudi_fast as hf
from tests.servers.zookeeper import ZookeeperServer
from tests.spark.spark_writes import batch, frame
from tests.support.small_tables import assert_tidy, options

PROVIDERS = "org.apache.hudi.client.transaction.lock."
NODES = "/hudi/lost"
FILE = ".hoodie/lock"


def waiting(spark: Any, rows: pa.Table, folder: Path) -> Any:
    """Rows whose task says that it runs, and waits until it may go on."""

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        (folder / "runs").touch()
        while not (folder / "go").exists():
            time.sleep(0.05)
        yield from batches

    made = frame(spark, rows).coalesce(1)
    return made.mapInArrow(wait, made.schema)


def write_while(spark: Any, folder: Path, settings: dict[str, str], act: Callable[[], None]) -> None:
    """Write, and act while the task that reads the rows runs."""
    done: list[BaseException | None] = []

    def watch() -> None:
        try:
            deadline = time.monotonic() + 120
            while not (folder / "runs").exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            act()
            done.append(None)
        except BaseException as error:
            done.append(error)
        finally:
            (folder / "go").touch()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        hf.write(waiting(spark, batch(range(5, 60), ts=200), folder), folder / "t", settings)
    finally:
        (folder / "runs").touch()
        watcher.join()
        assert done == [None]


def assert_nothing_happened(folder: Path, spark: Any, settings: dict[str, str], before: pa.Table) -> None:
    """The rows are as before, and the next writer goes on."""
    assert hf.HudiTable.open(folder / "t").to_arrow().equals(before)
    hf.write(frame(spark, batch(range(20, 30), ts=300)), folder / "t", settings)
    after = hf.HudiTable.open(folder / "t").to_arrow()
    assert after.num_rows == 30
    assert set(after["ts"].to_pylist()) == {100, 300}  # none of the lost write
    assert_tidy(folder / "t")


@pytest.mark.parametrize("content", [pytest.param(None, marks=pytest.mark.long), b'{"owner": "somebody"}'])
def test_a_lock_file_that_is_gone_or_of_another_ends_the_write(
    spark: Any, tmp_path: Path, content: bytes | None
) -> None:
    settings = options() | {
        "hudi_fast.plan": "fused",
        "hoodie.write.lock.provider": f"{PROVIDERS}FileSystemBasedLockProvider",
    }
    hf.write(frame(spark, batch(range(20))), tmp_path / "t", settings)
    before = hf.HudiTable.open(tmp_path / "t").to_arrow()
    lock = tmp_path / "t" / FILE

    def take() -> None:
        lock.unlink()
        if content is not None:
            lock.write_bytes(content)

    with pytest.raises(hf.LockError, match=rf"(?s)lost.*{tmp_path}/t.*Run the operation again"):
        write_while(spark, tmp_path, settings, take)
    assert lock.exists() == (content is not None)
    lock.unlink(missing_ok=True)
    assert_nothing_happened(tmp_path, spark, settings, before)


def test_a_session_of_zookeeper_that_ended_ends_the_write(
    spark: Any, zookeeper: ZookeeperServer, tmp_path: Path
) -> None:
    settings = options() | {
        "hudi_fast.plan": "fused",
        "hoodie.write.lock.provider": f"{PROVIDERS}ZookeeperBasedLockProvider",
        "hoodie.write.lock.zookeeper.url": zookeeper.url,
        "hoodie.write.lock.zookeeper.base_path": NODES,
        "hoodie.write.lock.zookeeper.lock_key": "t",
        "hoodie.write.lock.zookeeper.session_timeout_ms": "2000",
    }
    hf.write(frame(spark, batch(range(20))), tmp_path / "t", settings)
    before = hf.HudiTable.open(tmp_path / "t").to_arrow()
    view = KazooClient(zookeeper.url)
    view.start()

    def end_session() -> None:
        (name,) = view.get_children(f"{NODES}/t")
        view.delete(f"{NODES}/t/{name}")  # as the server does when a session ends

    try:
        with pytest.raises(hf.LockError, match=rf"(?s){tmp_path}/t.*Run the operation again"):
            write_while(spark, tmp_path, settings, end_session)
    finally:
        view.stop()
        view.close()
    assert_nothing_happened(tmp_path, spark, settings, before)
