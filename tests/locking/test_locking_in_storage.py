"""The lock object: what it says, who has it, how long, and what the audit tells; on local disks and on an S3 server."""

from __future__ import annotations

import contextlib
import json
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hudi_fast as hf
from hudi_fast.config.concurrency_options import LockOptions
from hudi_fast.locking import in_storage
from hudi_fast.locking.in_storage import AUDIT_FOLDER, AUDIT_SWITCH, StorageLock
from hudi_fast.locking.lock_record import STORAGE_LOCK_PATH, LockRecord, decode_record, encode_record, is_taken
from hudi_fast.locking.provider import open_provider
from hudi_fast.storage.base import Storage
from tests.locking.contention import LinePeer, contend_threads, python_lock
from tests.servers.s3 import S3Server
from tests.support.examples import examples

PROVIDER = "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"
OPTIONS = {
    "hoodie.write.lock.provider": PROVIDER,
    "hoodie.write.lock.storage.validity.timeout.secs": 10,
    "hoodie.write.lock.storage.renew.interval.secs": 1,
}


@pytest.fixture(scope="module")
def buckets(s3_server: S3Server) -> Storage:
    """One client for all of these tests: making one takes longer than most of them."""
    return Storage(s3_server.path("locks"), s3_server.options)


@pytest.fixture
def bucket(buckets: Storage) -> Storage:
    """The storage of a table on the S3 server."""
    return buckets.rooted_at(f"{buckets.fs_path('')}/{uuid.uuid4().hex}")


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.server)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """A table's storage."""
    return Storage(tmp_path) if request.param == "local" else request.getfixturevalue("bucket")


def peer_of(place: Storage) -> LinePeer:
    """A process that takes the lock of that table."""
    return python_lock(f"{'' if place.is_local else 's3://'}{place.fs_path('')}", OPTIONS, dict(place.options))


def lock_of(place: Storage, validity: float = 10.0, renew: float = 1.0, ahead: float = 0.0) -> StorageLock:
    """A provider whose wall clock is ``ahead`` seconds fast."""
    return StorageLock(place, validity, renew, lambda: time.time() + ahead)


@contextlib.contextmanager
def held(lock: StorageLock) -> Iterator[StorageLock]:
    assert lock.try_lock(60.0)
    try:
        yield lock
    finally:
        lock.unlock()


def fall_silent(lock: StorageLock) -> None:
    """As if its process were stopped."""
    assert lock._lease is not None
    lock._lease.stop.set()


def record_of(place: Storage) -> LockRecord:
    found = place.conditional().read(STORAGE_LOCK_PATH)
    assert found is not None
    return decode_record(found.data)


def now_ms() -> int:
    return round(time.time() * 1000)


# ---- what the object says


def test_the_content_is_hudis() -> None:
    owner = "0f8fad5b-d9cb-469f-a165-70867728950e"
    text = b'{"expired":false,"validUntil":1795311681690,"owner":"0f8fad5b-d9cb-469f-a165-70867728950e"}'
    assert encode_record(LockRecord(False, 1795311681690, owner)) == text
    assert decode_record(b' {"owner":"a b","x":{},"validUntil":5, "expired":true}') == LockRecord(True, 5, "a b")


@settings(max_examples=examples(25))
@given(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.text())
def test_records_survive_their_bytes(expired: bool, valid_until: int, owner: str) -> None:
    record = LockRecord(expired, valid_until, owner)
    assert decode_record(encode_record(record)) == record


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"expired":null,"validUntil":1,"owner":"a"}',
        b'{"expired":false,"validUntil":"1","owner":"a"}',
        b'{"expired":false,"validUntil":true,"owner":"a"}',
        b'{"expired":false,"validUntil":1}',
        b'{"expired":false,"validUntil":9223372036854775808,"owner":"a"}',
        b'{"expired":false,"validUntil":1' + 5000 * b"0" + b',"owner":"a"}',
        b"\xff\xfe",
    ],
)
def test_what_is_no_record_is_told(data: bytes) -> None:
    with pytest.raises(hf.LockError, match=r"table_lock.json cannot be decoded.*delete the file"):
        decode_record(data)


def test_a_lock_is_taken_half_a_second_beyond_its_time() -> None:
    assert is_taken(LockRecord(False, 1000, "a"), 1500)
    assert not is_taken(LockRecord(False, 1000, "a"), 1501)
    assert not is_taken(LockRecord(True, 10_000, "a"), 0)


def test_the_object_says_until_when_and_stays_when_the_lock_is_given_up(place: Storage) -> None:
    lock, before = open_provider(place, LockOptions.from_options(OPTIONS)), now_ms()
    assert lock.try_lock(0.0)
    taken = record_of(place)
    assert not taken.expired
    assert before + 10_000 <= taken.valid_until <= now_ms() + 10_001
    lock.unlock()
    given_up = record_of(place)
    assert given_up.expired
    assert given_up.owner == taken.owner
    lock.close()
    assert record_of(place) == given_up


def test_an_object_that_cannot_be_understood_is_left_alone(place: Storage) -> None:
    place.conditional().create(STORAGE_LOCK_PATH, b"{}")
    lock = lock_of(place)
    with pytest.raises(hf.LockError, match="cannot be decoded"):
        lock.try_lock(60.0)
    lock.close()
    assert place.read_bytes(STORAGE_LOCK_PATH) == b"{}"


def test_a_lock_without_an_end_is_waited_for(place: Storage) -> None:
    place.conditional().create(STORAGE_LOCK_PATH, encode_record(LockRecord(False, 2**63 - 1, 300 * "x")))
    lock = lock_of(place)
    assert not lock.try_lock(0.0)
    assert lock.holder.startswith(f"owner {100 * 'x'}, valid for another ")
    assert len(lock.holder) < 200


def test_a_bucket_that_is_not_there_is_an_error_at_once(s3_server: S3Server) -> None:
    lock = lock_of(Storage("s3://no-such-bucket/t", s3_server.options))
    with pytest.raises(hf.LockError, match="cannot be acquired"):
        lock.try_lock(60.0)


def test_keys_that_are_wrong_are_an_error_at_once_and_stay_secret(s3_server: S3Server) -> None:
    wrong = {**s3_server.options, "secret_key": "not-to-be-told"}
    if s3_server.kind == "moto":
        pytest.skip("moto asks for no keys")
    with pytest.raises(hf.LockError, match="cannot be acquired") as failure:
        lock_of(Storage(s3_server.path("t"), wrong)).try_lock(60.0)
    assert "not-to-be-told" not in str(failure.value)


# ---- time


def test_a_holder_renews_and_a_silent_one_loses_the_lock(bucket: Storage) -> None:
    place = bucket
    with held(lock_of(place, validity=1.0, renew=0.1)) as lock:
        first = record_of(place).valid_until
        time.sleep(0.4)
        assert record_of(place).valid_until > first
        lock.require_held()
        fall_silent(lock)
        last = record_of(place).valid_until
        other = lock_of(place)
        assert not other.try_lock(0.0)
        assert other.try_lock(20.0)
        assert now_ms() > last + 500
        with pytest.raises(hf.LockError, match=r"was lost: its content is now .*" + record_of(place).owner):
            lock.require_held()
        other.require_held()
        lock.unlock()
        other.require_held()
        other.unlock()


@pytest.mark.slow
def test_a_late_renewal_is_good_if_nobody_has_taken_the_lock(tmp_path: Path) -> None:
    place = Storage(tmp_path)
    with held(lock_of(place, validity=0.4, renew=0.1)) as lock:
        fall_silent(lock)
        time.sleep(1.0)
        lock.require_held()
        assert not lock_of(place).try_lock(0.0)


class SilentStore:
    """A store that does not answer."""

    def read(self, path: str) -> None:
        raise OSError(f"no answer about {path}")

    def replace(self, path: str, data: bytes, version: str) -> None:
        raise OSError(f"no answer about {path}")


def test_a_lease_that_cannot_be_renewed_is_trusted_until_two_renewals_before_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(**vars(time))
    monkeypatch.setattr(in_storage, "time", clock)
    lock = lock_of(Storage(tmp_path), validity=60.0, renew=15.0)

    def require_held(seconds: float) -> None:
        clock.monotonic = lambda: 1000.0 + seconds
        lock.require_held()

    clock.monotonic = lambda: 1000.0
    with held(lock):
        fall_silent(lock)
        with monkeypatch.context() as silence:
            silence.setattr(lock, "_store", SilentStore())
            for seconds in (0.0, 29.9):
                require_held(seconds)
            for seconds in (30.1, 59.0, 61.0):
                with pytest.raises(hf.LockError, match=r"could not be renewed in time \(no answer .*another writer"):
                    require_held(seconds)
        require_held(61.0)  # nobody has taken it


@pytest.mark.slow("0.4")
@pytest.mark.parametrize("ahead", [-0.4, 0.4, *(pytest.param(by, marks=pytest.mark.long) for by in (-10, -0.15, 0.15))])
def test_clocks_that_differ_a_little_do_not_matter(tmp_path: Path, ahead: float) -> None:
    place = Storage(tmp_path)
    with held(lock_of(place, validity=1.0, renew=0.1)) as lock:
        time.sleep(0.2)
        assert not lock_of(place, ahead=ahead).try_lock(0.2)
        lock.require_held()


def test_a_clock_that_steps_back_loses_nothing(place: Storage) -> None:
    offset = 0.0
    with held(StorageLock(place, 10.0, 0.05, lambda: time.time() + offset)) as lock:
        offset = -30.0
        time.sleep(0.2)
        lock.require_held()
        assert not lock_of(place).try_lock(0.0)


@pytest.mark.long
def test_a_killed_holder_is_waited_for_as_long_as_its_lease_lasts(place: Storage) -> None:
    with peer_of(place) as peer:
        assert peer.ask("lock 5") == "locked"
        peer.signal(signal.SIGKILL)
    until = record_of(place).valid_until
    with held(lock_of(place)):
        assert until + 500 < now_ms() < until + 5000


@pytest.mark.long
def test_of_many_that_find_a_silent_holders_lock_one_takes_it(place: Storage, tmp_path: Path) -> None:
    """Every holder falls silent; the others take over half a second after its time."""

    @contextlib.contextmanager
    def falls_silent() -> Iterator[None]:
        lock = lock_of(place, validity=0.5, renew=0.05)
        assert lock.try_lock(60.0)
        yield
        fall_silent(lock)

    contend_threads(tmp_path / "c", falls_silent, threads=4, rounds=3)


# ---- audit


def audits_of(place: Storage, while_written: bool = False) -> list[tuple[str, list[dict[str, Any]]]]:
    """The files of the audit; ``while_written`` leaves out temporary ones, which may go before they are read."""
    return [
        (entry.name, [json.loads(line) for line in place.read_bytes(entry.path).splitlines()])
        for entry in place.list_dir(AUDIT_FOLDER)
        if not (while_written and entry.name.startswith("."))
    ]


def test_the_audit_tells_of_each_acquisition(place: Storage) -> None:
    place.write_bytes(AUDIT_SWITCH, b'{"STORAGE_LOCK_AUDIT_SERVICE_ENABLED": true}')
    with held(lock_of(place, validity=10.0, renew=0.1)):
        owner = record_of(place).owner
        wait_for(lambda: any(len(records) >= 2 for _, records in audits_of(place, while_written=True)))
    ((name, records),) = audits_of(place)
    started = records[0]["transactionStartTime"]
    assert name == f"{started}_{owner}.jsonl"
    states = [record["state"] for record in records]
    assert states == ["START", *["RENEW"] * (len(records) - 2), "END"]
    for record in records:
        assert record["ownerId"] == owner
        assert record["lockHeld"] is True
        assert record["lockExpiration"] == record["timestamp"] + 10_000
        assert list(record) == [
            "ownerId",
            "transactionStartTime",
            "timestamp",
            "state",
            "lockExpiration",
            "lockHeld",
        ]
    times = [record["timestamp"] for record in records]
    assert times == sorted(times)
    assert times[0] == started


@pytest.mark.parametrize("switch", [None, b"{}", b"[]", b"no JSON", b'{"STORAGE_LOCK_AUDIT_SERVICE_ENABLED": false}'])
def test_there_is_no_audit_unless_it_is_asked_for(tmp_path: Path, switch: bytes | None) -> None:
    place = Storage(tmp_path)
    if switch is not None:
        place.write_bytes(AUDIT_SWITCH, switch)
    with held(lock_of(place)):
        pass
    assert audits_of(place) == []


def test_an_audit_that_cannot_be_written_is_left_out(tmp_path: Path) -> None:
    place = Storage(tmp_path)
    place.write_bytes(AUDIT_SWITCH, b'{"STORAGE_LOCK_AUDIT_SERVICE_ENABLED": true}')
    place.write_bytes(AUDIT_FOLDER, b"a file where the folder should be")
    with held(lock_of(place)) as lock:
        lock.require_held()
    assert record_of(place).expired


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
