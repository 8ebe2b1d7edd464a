"""Each kind of lock on its own server, for tests of what all of them have in common.

::

    open_kind("zookeeper", ...) ─► Provider ─► open(), peer()     those who want the lock: here, in another process
                                           ├─► holders()          who has it, as its server tells
                                           └─► heir(), thief()    who gets the lock of a silent holder, of any holder
"""

from __future__ import annotations

import contextlib
import itertools
import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import boto3
import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from hudi_fast.config.concurrency_options import LockOptions
from hudi_fast.locking.dynamodb import DynamoDbLock
from hudi_fast.locking.hive_metastore import Metastore
from hudi_fast.locking.in_storage import StorageLock
from hudi_fast.locking.lock_record import STORAGE_LOCK_PATH, decode_record
from hudi_fast.locking.machine import LOCK_PATH, is_held
from hudi_fast.locking.provider import LockProvider
from hudi_fast.storage.base import Storage
from tests.locking.contention import LinePeer, python_lock
from tests.locking.python_lock import open_lock
from tests.servers.dynamodb import CREDENTIALS
from tests.servers.hdfs import HdfsCluster
from tests.servers.hive_metastore import HiveMetastore
from tests.servers.s3 import S3Server
from tests.servers.zookeeper import ZookeeperServer

__all__ = ["KINDS", "LEASED", "LOCK", "ON_SERVERS", "Provider", "Rounds", "held", "kinds", "open_kind"]

LOCK = "hoodie.write.lock."
CLASSES = "org.apache.hudi.client.transaction.lock."
NUMBERS = itertools.count()


@dataclass(frozen=True)
class Rounds:
    """How often each of some contenders takes a lock, so that all kinds need about as long."""

    threads: int
    processes: int
    many: int


@dataclass(frozen=True)
class Provider:
    """The lock of one table that nobody has taken yet.

    Attributes:
        path: of the table, which has nothing but a folder ``.hoodie`` at most.
        table: its storage.
        options: name the provider, and its lock.
        holders: what identifies each who holds the lock or waits for it, and anything else left at the server.
        heir: opens a lock for which the lease of the present holder is over, or will be if that holder is silent.
        thief: opens a lock for which the lease of the present holder is over whatever that holder does.
        lost: of the message to a holder whose lock a thief has; ``{}`` stands for the thief.
        not_held: of the message to who has no lock.
        lease_seconds: for which a silent holder keeps the lock from its heir.
        soon_seconds: within which a waiter notices that the lock is free.
        rounds: of contentions.
        coarse_seconds: of the times of the table's files.
        varied: options that one of several contenders has beside the others.
    """

    path: str
    table: Storage
    options: Mapping[str, Any]
    holders: Callable[[], list[str]]
    heir: Callable[[], LockProvider]
    thief: Callable[[], LockProvider]
    rounds: Rounds
    lost: str = "was lost.*{}"
    not_held: str = "is not held"
    lease_seconds: float = 0.0
    soon_seconds: float = 5.0
    coarse_seconds: float = 0.0
    varied: Mapping[str, Any] = field(default_factory=dict)

    def open(self) -> LockProvider:
        """A provider of this process."""
        return open_lock(self.table, LockOptions.from_options(dict(self.options)))

    def peer(self, changes: Mapping[str, Any] | None = None) -> LinePeer:
        """A process that takes the lock at command."""
        return python_lock(self.path, {**self.options, **(changes or {})}, dict(self.table.options))


@contextlib.contextmanager
def held(lock: LockProvider, seconds: float = 10.0) -> Iterator[LockProvider]:
    """Hold a lock for the duration of the block; the provider is closed at its end."""
    try:
        assert lock.try_lock(seconds)
        yield lock
        lock.unlock()
    finally:
        lock.close()


# ---- files


def lock_file(table: Storage, path: str, leased: bool, rounds: Rounds) -> Provider:
    """A lock file in the table, which expires after a minute if the lock is leased, and else never."""
    expiry = {f"{LOCK}filesystem.expire": 1}
    options = {f"{LOCK}provider": f"{CLASSES}FileSystemBasedLockProvider", **(expiry if leased else {})}
    table.make_dir(".hoodie")

    def holders() -> list[str]:
        found = [each.name for each in table.list_dir(".hoodie") if each.name.lstrip(".").split(".")[0] == "lock"]
        return [token_of(table) if name == "lock" else name for name in found]

    def late() -> LockProvider:
        table.set_modified(".hoodie/lock", round((time.time() - 61) * 1000))
        return open_lock(table, LockOptions.from_options(options))

    return Provider(path, table, options, holders, late, late, rounds, varied=expiry)


def token_of(table: Storage) -> str:
    return str(json.loads(table.read_bytes(".hoodie/lock"))["token"])


def file_system(request: pytest.FixtureRequest, tmp_path: Path, leased: bool) -> Provider:
    return lock_file(Storage(tmp_path / "t"), str(tmp_path / "t"), leased, Rounds(40, 8, 300))


def hdfs(request: pytest.FixtureRequest, tmp_path: Path, leased: bool) -> Provider:
    cluster: HdfsCluster = request.getfixturevalue("hdfs")
    path = cluster.path(f"contract{next(NUMBERS)}")
    return lock_file(Storage(path), path, leased, Rounds(3, 3, 30))


# ---- objects


def lock_object(table: Storage, path: str) -> Provider:
    """A lock object in the table. Its lease is ten seconds at least: its heirs have clocks that are fast."""
    options = {
        f"{LOCK}provider": f"{CLASSES}StorageBasedLockProvider",
        f"{LOCK}storage.validity.timeout.secs": 10,
        f"{LOCK}storage.renew.interval.secs": 1,
    }

    def holders() -> list[str]:
        found = table.conditional().read(STORAGE_LOCK_PATH)
        record = None if found is None else decode_record(found.data)
        return [] if record is None or record.expired else [record.owner]

    def fast() -> LockProvider:
        return StorageLock(table, 10.0, 1.0, lambda: time.time() + 12.0)

    lost = "was lost: its content is now .*{}"
    coarse = 0.0 if table.is_local else 1.1
    rounds = Rounds(5, 10, 300)
    return Provider(path, table, options, holders, fast, fast, rounds, lost=lost, coarse_seconds=coarse)


def in_storage(request: pytest.FixtureRequest, tmp_path: Path, leased: bool) -> Provider:
    return lock_object(*folder(tmp_path))


def in_storage_s3(request: pytest.FixtureRequest, tmp_path: Path, leased: bool) -> Provider:
    bucket = bucket_of(request.getfixturevalue("s3_server"))
    name = uuid.uuid4().hex
    return lock_object(bucket.rooted_at(f"{bucket.fs_path('')}/{name}"), f"{bucket.uri}/{name}")


@cache
def bucket_of(server: S3Server) -> Storage:
    """One client for all locks: making one takes longer than most tests."""
    return Storage(server.path("contract"), server.options)


# ---- lock servers


def zookeeper(request: pytest.FixtureRequest, tmp_path: Path, leased: bool) -> Provider:
    server: ZookeeperServer = request.getfixturevalue("zookeeper")
    key, seconds = f"contract{next(NUMBERS)}", 1.0 if leased else 4.0
    options = {
        f"{LOCK}provider": f"{CLASSES}ZookeeperBasedLockProvider",
        f"{LOCK}wait_time_ms_between_retry": "100",
        f"{LOCK}zookeeper.url": server.url,
        f"{LOCK}zookeeper.base_path": "/hudi/locks",
        f"{LOCK}zookeeper.lock_key": key,
        f"{LOCK}zookeeper.session_timeout_ms": str(round(seconds * 1000)),
        f"{LOCK}zookeeper.connection_timeout_ms": "5000",
    }
    view = KazooClient(server.url)
    view.start()
    request.addfinalizer(view.close)
    request.addfinalizer(view.stop)

    def nodes() -> list[str]:
        try:
            return [f"/hudi/locks/{key}/{name}" for name in view.get_children(f"/hudi/locks/{key}")]
        except NoNodeError:
            return []

    def holders() -> list[str]:
        return [f"{node.rpartition('/')[2]} {view.get(node)[0].decode()}" for node in nodes()]

    def thief() -> LockProvider:
        for node in nodes():
            view.delete(node)
        return opened()

    table, path = folder(tmp_path)
    opened = partial(open_lock, table, LockOptions.from_options(options))
    return Provider(
        path,
        table,
        options,
        holders,
        opened,
        thief,
        Rounds(10, 25, 1000),
        lost="its node was deleted",
        lease_seconds=seconds,
        soon_seconds=1.0,
    )


def dynamodb(request: pytest.FixtureRequest, tmp_path: Path, leased: bool) -> Provider:
    url: str = request.getfixturevalue("dynamodb")
    environment: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
    for name, value in CREDENTIALS.items():
        environment.setenv(name, value)
    locks, key, seconds = "contract", {"key": {"S": f"contract{next(NUMBERS)}"}}, 1.0 if leased else 3.0
    options = {
        f"{LOCK}provider": "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider",
        f"{LOCK}wait_time_ms": round(seconds * 1000),
        f"{LOCK}dynamodb.table": locks,
        f"{LOCK}dynamodb.partition_key": key["key"]["S"],
        f"{LOCK}dynamodb.endpoint_url": url,
    }
    view = boto3.Session(region_name=CREDENTIALS["AWS_REGION"]).client("dynamodb", endpoint_url=url)

    def holders() -> list[str]:
        try:
            item = view.get_item(TableName=locks, Key=key, ConsistentRead=True).get("Item")
        except view.exceptions.ResourceNotFoundException:
            return []
        return [] if item is None else [item["ownerName"]["S"]]

    def thief() -> LockProvider:
        lock = heir()
        assert isinstance(lock, DynamoDbLock)
        item = {"ownerName": lock._owner, "leaseDuration": "3000", "recordVersionNumber": "stolen"}
        view.put_item(TableName=locks, Item={**key, **{name: {"S": value} for name, value in item.items()}})
        return lock

    table, path = folder(tmp_path)
    heir = partial(open_lock, table, LockOptions.from_options({**options, f"{LOCK}wait_time_ms": 3000}))
    return Provider(
        path,
        table,
        options,
        holders,
        heir,
        thief,
        Rounds(10, 8, 1000),
        lost="was lost: {} has taken it",
        not_held="was lost: it was (never acquired|released)",
        lease_seconds=seconds,
    )


def hive_metastore(request: pytest.FixtureRequest, tmp_path: Path, leased: bool) -> Provider:
    server: HiveMetastore = request.getfixturevalue("hive_metastore")
    database, name = "contract", f"table{next(NUMBERS)}"
    options = {
        f"{LOCK}provider": "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider",
        f"{LOCK}heartbeat_interval_ms": "100",
        f"{LOCK}hivemetastore.uris": server.uri,
        f"{LOCK}hivemetastore.database": database,
        f"{LOCK}hivemetastore.table": name,
    }
    view = Metastore([("127.0.0.1", server.port)], 20)
    request.addfinalizer(view.close)

    def holders() -> list[str]:
        return [f"{each.owner} ({each.agent})" for each in view.entries(database, name)]

    def late() -> LockProvider:
        for each in view.entries(database, name):  # what the metastore does with those that are silent
            view.unlock(each.lock_id)
        return open_lock(table, LockOptions.from_options(options))

    table, path = folder(tmp_path)
    return Provider(path, table, options, holders, late, late, Rounds(3, 5, 60), lost="no longer knows it")


# ---- this machine


def machine(request: pytest.FixtureRequest, tmp_path: Path, leased: bool) -> Provider:
    """No lock that could be lost: a holder keeps it until its process ends."""
    options = {f"{LOCK}provider": f"{CLASSES}InProcessLockProvider"}
    table, path = folder(tmp_path)
    opened = partial(open_lock, table, LockOptions.from_options(options))

    def holders() -> list[str]:
        return [table.read_bytes(LOCK_PATH).decode().strip()] if is_held(table) else []

    return Provider(path, table, options, holders, opened, opened, Rounds(40, 8, 300))


def folder(tmp_path: Path) -> tuple[Storage, str]:
    """A folder on disk that passes for a table."""
    (tmp_path / "t" / ".hoodie").mkdir(parents=True)
    return Storage(tmp_path / "t"), str(tmp_path / "t")


KINDS: dict[str, Callable[[pytest.FixtureRequest, Path, bool], Provider]] = {
    "file_system": file_system,
    "hdfs": hdfs,
    "in_storage": in_storage,
    "in_storage_s3": in_storage_s3,
    "zookeeper": zookeeper,
    "dynamodb": dynamodb,
    "hive_metastore": hive_metastore,
    "machine": machine,
}
LEASED = [kind for kind in KINDS if kind != "machine"]
"""Those whose holder can lose the lock while it lives."""
ON_SERVERS = ("hdfs", "in_storage_s3", "zookeeper", "dynamodb", "hive_metastore")


def kinds(*names: str) -> list[Any]:
    """Kinds as parameters of a test; all of them if none is named."""
    return [pytest.param(name, marks=[pytest.mark.server] * (name in ON_SERVERS)) for name in names or KINDS]


def open_kind(kind: str, request: pytest.FixtureRequest, leased: bool = False) -> Provider:
    """A lock of this kind; ``leased`` asks for one whose lease is short, or that has a lease at all."""
    return KINDS[kind](request, request.getfixturevalue("tmp_path"), leased)
