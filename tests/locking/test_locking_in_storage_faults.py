"""Requests for the lock object are lost, answered by errors, or late: the lock is had or not, and nobody is misled."""

from __future__ import annotations

import contextlib
import math
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.locking.in_storage import AUDIT_FOLDER, AUDIT_SWITCH, StorageLock
from hudi_fast.locking.lock_record import STORAGE_LOCK_PATH, LockRecord, decode_record
from hudi_fast.storage.base import Storage
from tests.servers.faulty_proxy import (
    DROP_ANSWER,
    DROP_REQUEST,
    Fault,
    FaultyProxy,
    answer,
    delay,
    late,
    start_faulty_proxy,
)
from tests.servers.s3 import S3Server


def one_more(*faults: Fault) -> list[Any]:
    """Of a kind that is tested already."""
    return [pytest.param(fault, marks=pytest.mark.long) for fault in faults]


@dataclass(frozen=True)
class Site:
    """One table, seen through a network that fails and past it."""

    proxy: FaultyProxy
    faulty: Storage
    sound: Storage

    def lock(self, validity: float = 60.0, renew: float = 5.0) -> StorageLock:
        """Whose requests may fail."""
        return StorageLock(self.faulty, validity, renew)

    def other(self) -> StorageLock:
        """Whose requests do not."""
        return StorageLock(self.sound, 10.0, 1.0)

    def fail(self, method: str, fault: Fault, times: float = 1) -> None:
        """Let requests for the lock object fail."""
        self.proxy.fail(method, fault, "table_lock.json", times)

    @property
    def record(self) -> LockRecord:
        """What the lock object says."""
        return decode_record(self.sound.read_bytes(STORAGE_LOCK_PATH))


@pytest.fixture(scope="module")
def sites(s3_server: S3Server) -> Iterator[tuple[FaultyProxy, Storage, Storage]]:
    """A proxy, and one client on either side of it."""
    with start_faulty_proxy(s3_server.url) as proxy:
        places = [Storage(s3_server.path("faults"), s3_server.options_at(url)) for url in (proxy.url, s3_server.url)]
        for place in places:  # a client asks at its first writes whether the server takes conditions seriously
            lock = StorageLock(place, 10.0, 1.0)
            assert lock.try_lock(5.0)
            lock.unlock()
        yield proxy, places[0], places[1]


@pytest.fixture
def site(sites: tuple[FaultyProxy, Storage, Storage]) -> Iterator[Site]:
    """A table that nobody has ever locked."""
    proxy, faulty, sound = sites
    root = f"{sound.fs_path('')}/{uuid.uuid4().hex}"
    yield Site(proxy, faulty.rooted_at(root), sound.rooted_at(root))
    proxy.heal()
    proxy.settle()


@contextlib.contextmanager
def held(lock: StorageLock) -> Iterator[StorageLock]:
    assert lock.try_lock(30.0)
    try:
        yield lock
    finally:
        lock.unlock()


def use_once(site: Site) -> None:
    """From now on there is an object: taking the lock replaces it."""
    with held(site.other()):
        pass


@pytest.mark.parametrize("used", [False, True])
def test_an_acquisition_whose_answer_is_lost_has_come_through(site: Site, used: bool) -> None:
    if used:
        use_once(site)
    site.fail("PUT", DROP_ANSWER)
    lock = site.lock()
    assert lock.try_lock(0.0)
    lock.require_held()
    assert not site.other().try_lock(0.0)
    lock.unlock()
    assert site.record.expired


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("fault", [DROP_REQUEST, answer(503), *one_more(answer(500), answer(429), answer(409))])
def test_an_acquisition_that_never_arrives_is_tried_again(site: Site, used: bool, fault: Fault) -> None:
    if used:
        use_once(site)
    site.fail("PUT", fault)
    lock = site.lock()
    with pytest.raises(OSError, match=r"S3 did not write .*table_lock.json"):
        lock.try_lock(0.0)
    assert lock.try_lock(30.0)
    assert site.record.owner == lock._owner
    lock.unlock()


@pytest.mark.parametrize("fault", [DROP_REQUEST, answer(500)])
def test_a_lock_that_cannot_be_read_is_not_taken_for_free(site: Site, fault: Fault) -> None:
    with held(site.other()) as other:
        site.fail("GET", fault)
        lock = site.lock()
        with pytest.raises(OSError, match="S3 did not read"):
            lock.try_lock(0.0)
        assert not lock.try_lock(0.0)
        other.require_held()


@pytest.mark.parametrize("used", [False, True])
def test_an_acquisition_that_arrives_late_is_found_by_the_next_try(site: Site, used: bool) -> None:
    if used:
        use_once(site)
    site.fail("PUT", late(0.3))
    lock = site.lock()
    with pytest.raises(OSError, match="S3 did not write"):
        lock.try_lock(0.0)
    site.proxy.settle()
    assert site.record.owner == lock._owner
    assert not site.other().try_lock(0.0)
    assert lock.try_lock(0.0)
    lock.require_held()
    lock.unlock()
    assert site.record.expired


def test_an_acquisition_that_is_overtaken_is_refused(site: Site) -> None:
    use_once(site)
    site.fail("PUT", late(0.3))
    lock = site.lock()
    with pytest.raises(OSError, match="S3 did not write"):
        lock.try_lock(0.0)
    with held(site.other()) as other:
        site.proxy.settle()
        other.require_held()
        assert not lock.try_lock(0.0)
        lock.close()
        other.require_held()


def test_a_written_record_that_nobody_could_look_at_is_given_up_with_the_provider(site: Site) -> None:
    """The write comes through, its answer and the look for it do not."""
    lock = site.lock()
    assert lock._store.read(STORAGE_LOCK_PATH) is None
    site.proxy.fail("PUT", DROP_ANSWER, "table_lock.json")
    site.proxy.fail("GET", Fault(), "table_lock.json")  # the first look is fine
    site.proxy.fail("GET", answer(500), "table_lock.json")
    with pytest.raises(OSError, match="S3 did not read"):
        lock.try_lock(0.0)
    assert not site.record.expired
    lock.close()
    assert site.record.expired


def test_a_renewal_whose_answer_is_lost_has_come_through(site: Site) -> None:
    with held(site.lock()) as lock:
        before = site.record.valid_until
        site.fail("PUT", DROP_ANSWER)
        lock.require_held()
        assert site.record.valid_until > before
        lock.require_held()


@pytest.mark.parametrize("fault", [answer(429), *one_more(DROP_REQUEST, answer(500), answer(503))])
def test_a_lease_is_trusted_while_renewals_fail_and_no_longer(site: Site, fault: Fault) -> None:
    lock = site.lock(validity=2.0, renew=0.5)
    assert lock.try_lock(5.0)
    site.fail("PUT", fault, times=math.inf)
    lock.require_held()
    assert lock._lease is not None
    time.sleep(max(lock._lease.trusted_until - time.monotonic(), 0.0))
    with pytest.raises(hf.LockError, match=r"could not be renewed in time \(S3 did not write"):
        lock.require_held()
    site.proxy.heal()
    lock.require_held()  # nobody has taken it
    lock.unlock()


def test_a_renewal_that_arrives_after_the_lock_was_given_up_is_refused(site: Site) -> None:
    with held(site.lock()) as lock:
        site.fail("PUT", late(0.3))
        lock.require_held()
    assert site.record.expired
    site.proxy.settle()
    assert site.record.expired
    with held(site.other()):
        pass


def test_a_renewal_that_arrives_late_while_the_lock_is_held_is_adopted(site: Site) -> None:
    with held(site.lock()) as lock:
        site.fail("PUT", late(0.2))
        lock.require_held()
        site.proxy.settle()
        lock.require_held()
        assert not site.other().try_lock(0.0)
    assert site.record.expired


def test_a_store_that_takes_too_long_is_not_waited_for(site: Site, s3_server: S3Server) -> None:
    """The client hangs up; what it asked for is done a little later."""
    hasty = Storage(site.faulty.uri, {**s3_server.options_at(site.proxy.url), "timeout": "0.4"})
    lock = StorageLock(hasty.rooted_at(site.faulty.fs_path("")), 60.0, 5.0)
    assert lock.try_lock(30.0)
    before, started = site.record.valid_until, time.monotonic()
    site.fail("PUT", delay(1.0))
    lock.require_held()
    deadline = time.monotonic() + 20
    while site.record.valid_until == before:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert time.monotonic() - started >= 1.0
    lock.require_held()
    lock.unlock()
    assert site.record.expired


def test_giving_up_whose_answer_is_lost_has_come_through(site: Site) -> None:
    lock = site.lock()
    assert lock.try_lock(5.0)
    site.fail("PUT", DROP_ANSWER)
    before = site.proxy.count("PUT")
    lock.unlock()
    assert site.record.expired
    assert site.proxy.count("PUT") == before + 1


@pytest.mark.parametrize("fault", [answer(500), *one_more(DROP_REQUEST, answer(429))])
def test_giving_up_is_tried_again(site: Site, fault: Fault) -> None:
    lock = site.lock()
    assert lock.try_lock(5.0)
    site.fail("PUT", fault)
    started = time.monotonic()
    lock.unlock()
    assert time.monotonic() - started >= 1.0
    assert site.record.expired


@pytest.mark.long
def test_a_lock_that_cannot_be_given_up_goes_with_its_lease(site: Site) -> None:
    lock = site.lock(validity=4.0, renew=0.4)
    assert lock.try_lock(5.0)
    site.fail("PUT", answer(500), times=math.inf)
    with pytest.raises(OSError, match="S3 did not write"):
        lock.unlock()
    lock.close()
    assert not site.record.expired
    with held(site.other()):
        pass


def test_an_audit_that_the_store_refuses_is_left_out(site: Site) -> None:
    site.sound.write_bytes(AUDIT_SWITCH, b'{"STORAGE_LOCK_AUDIT_SERVICE_ENABLED": true}')
    site.proxy.fail("PUT", answer(403), ".jsonl", times=math.inf)
    with held(site.lock()) as lock:
        lock.require_held()
    assert site.record.expired
    assert site.sound.list_dir(AUDIT_FOLDER) == []
