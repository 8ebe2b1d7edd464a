"""The lock object with Apache Hudi's own provider, whose client for S3 is :file:`S3StorageLockClient.java`."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.locking.in_storage import AUDIT_FOLDER, AUDIT_SWITCH, StorageLock
from hudi_fast.locking.lock_record import STORAGE_LOCK_PATH, LockRecord, encode_record
from hudi_fast.storage.base import Storage
from tests.locking.contention import LinePeer, contend, python_lock
from tests.locking.jvm_lock import jvm_lock
from tests.servers.s3 import ACCESS_KEY, REGION, SECRET_KEY, S3Server

PROVIDER = "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"
OPTIONS = {
    "hoodie.write.lock.provider": PROVIDER,
    "hoodie.write.lock.storage.validity.timeout.secs": 10,
    "hoodie.write.lock.storage.renew.interval.secs": 1,
}


@pytest.fixture(scope="module")
def place(s3_server: S3Server) -> Storage:
    return Storage(s3_server.path("jvm-lock"), s3_server.options)


@pytest.fixture(scope="module")
def jvm(java: str, s3_server: S3Server, place: Storage) -> Iterator[LinePeer]:
    settings = {
        **OPTIONS,
        "hoodie.base.path": place.uri,
        "test.s3.endpoint": s3_server.url,
        "test.s3.access": ACCESS_KEY,
        "test.s3.secret": SECRET_KEY,
        "test.s3.region": REGION,
    }
    client = Path(__file__).with_name("S3StorageLockClient.java")
    with jvm_lock(PROVIDER, settings, sources=[client]) as peer:
        yield peer


def lock_of(place: Storage, ahead: float = 0.0) -> StorageLock:
    return StorageLock(place, 10.0, 1.0, lambda: time.time() + ahead)


def content(place: Storage) -> bytes:
    return place.read_bytes(STORAGE_LOCK_PATH)


def test_both_wait_for_each_other_and_write_the_same(jvm: LinePeer, place: Storage) -> None:
    lock = lock_of(place)
    assert jvm.ask("lock 5") == "locked"
    assert not lock.try_lock(0.0)
    theirs = content(place)
    fields = json.loads(theirs)
    assert theirs == encode_record(LockRecord(fields["expired"], fields["validUntil"], fields["owner"]))
    assert fields["owner"] in lock.holder
    threading.Timer(0.3, jvm.send, ("unlock",)).start()
    assert lock.try_lock(30.0)
    assert jvm.answer() == "unlocked"
    assert jvm.ask("lock 0.1").startswith("busy")
    lock.require_held()
    lock.unlock()
    assert jvm.ask("lock 5") == "locked"
    assert jvm.ask("unlock") == "unlocked"
    assert json.loads(content(place))["expired"] is True


@pytest.mark.long
def test_what_a_jvm_lost_to_a_fast_clock_it_does_not_take_back(jvm: LinePeer, place: Storage) -> None:
    """Its renewal finds that the lock is another's; what it does then stays its own affair."""
    assert jvm.ask("lock 5") == "locked"
    thief = lock_of(place, ahead=30.0)
    assert thief.try_lock(0.0)
    time.sleep(1.5)
    thief.require_held()
    jvm.ask("leave")
    thief.require_held()
    thief.unlock()


def test_what_python_lost_to_a_jvm_it_leaves_alone(jvm: LinePeer, place: Storage) -> None:
    """Python's clock is 11 seconds slow: for the JVM its lease is over when it begins."""
    lock = lock_of(place, ahead=-11.0)
    assert lock.try_lock(5.0)
    assert jvm.ask("lock 5") == "locked"
    theirs = json.loads(content(place))["owner"]
    with pytest.raises(hf.LockError, match=f"was lost.*{theirs}"):
        lock.require_held()
    lock.unlock()
    lock.close()
    assert json.loads(content(place))["owner"] == theirs
    assert jvm.ask("unlock") == "unlocked"


def test_both_audit_alike(jvm: LinePeer, place: Storage) -> None:
    place.write_bytes(AUDIT_SWITCH, b'{"STORAGE_LOCK_AUDIT_SERVICE_ENABLED": true}')
    try:
        assert jvm.ask("leave") == "left"
        assert jvm.ask("lock 5") == "locked"
        time.sleep(1.3)
        assert jvm.ask("unlock") == "unlocked"
        assert jvm.ask("leave") == "left"
        lock = StorageLock(place, 10.0, 0.2)
        assert lock.try_lock(5.0)
        time.sleep(0.5)
        lock.unlock()
    finally:
        place.delete_file(AUDIT_SWITCH)
    theirs, ours = sorted(place.list_dir(AUDIT_FOLDER), key=lambda entry: entry.path)
    assert shape(place, theirs.path) == shape(place, ours.path)


def shape(place: Storage, path: str) -> Any:
    """What is the same in the records of any two acquisitions that were renewed."""
    records = [json.loads(line) for line in place.read_bytes(path).decode().splitlines()]
    (owner,) = {record["ownerId"] for record in records}
    (started,) = {record["transactionStartTime"] for record in records}
    assert path == f"{AUDIT_FOLDER}/{started}_{owner}.jsonl"
    assert records[0]["timestamp"] == started
    facts = [
        (record["state"], record["lockHeld"], record["lockExpiration"] - record["timestamp"], sorted(record))
        for record in records
    ]
    return [fact for place, fact in enumerate(facts) if fact not in facts[:place]]


def test_a_jvm_and_python_never_hold_it_together(jvm: LinePeer, place: Storage, tmp_path: Path) -> None:
    with python_lock(place.uri, OPTIONS, dict(place.options)) as python:
        contend(tmp_path / "c", [jvm, python], rounds=10)
        contend(tmp_path / "c", [jvm, python], rounds=5, fresh=True)


@pytest.mark.long
def test_a_jvm_and_two_pythons_never_hold_it_together(jvm: LinePeer, place: Storage, tmp_path: Path) -> None:
    settings = (place.uri, OPTIONS, dict(place.options))
    with python_lock(*settings) as first, python_lock(*settings) as second:
        contend(tmp_path / "c", [jvm, first, second], rounds=300, fresh=True, seconds=280)
