"""A lock in DynamoDB: who has it, who may take it over, and what answers that are lost do to it."""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from hudi_fast.config.concurrency_options import LockOptions
from hudi_fast.config.properties_file import create_properties
from hudi_fast.errors import ConfigError, LockError
from hudi_fast.locking.dynamodb import DynamoDbLock
from hudi_fast.locking.dynamodb_table import LockItem, open_lock_table
from hudi_fast.locking.provider import open_provider, path_hash
from hudi_fast.storage.base import Storage
from tests.locking.contention import LinePeer, python_lock
from tests.servers.dynamodb import CREDENTIALS
from tests.servers.faulty_http import LOSE, REFUSE, Answer, FaultyHttp, faulty_http

PROVIDER = "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider"
IMPLICIT = "org.apache.hudi.aws.transaction.lock.DynamoDBBasedImplicitPartitionKeyLockProvider"
KEY, LEASE_MS = "trips", 900
ATTRIBUTES = {"key", "ownerName", "leaseDuration", "recordVersionNumber"}
TABLES = itertools.count()

LOCK = "hoodie.write.lock."


class Locks:
    """One table of locks on the server.

    Attributes:
        url: of the server, or of something before it.
        client: of the server.
        name: of the table; nobody has made it yet.
    """

    def __init__(self, url: str, client: Any) -> None:
        self.url, self.client, self.name = url, client, f"locks{next(TABLES)}"

    def options(self, lease_ms: int = LEASE_MS, **more: Any) -> dict[str, Any]:
        return {
            f"{LOCK}provider": PROVIDER,
            f"{LOCK}wait_time_ms": lease_ms,
            f"{LOCK}dynamodb.table": self.name,
            f"{LOCK}dynamodb.partition_key": KEY,
            f"{LOCK}dynamodb.endpoint_url": self.url,
        } | {f"{LOCK}dynamodb.{name}": value for name, value in more.items()}

    def lock(self, lease_ms: int = LEASE_MS, **more: Any) -> DynamoDbLock:
        options = LockOptions.from_options(self.options(lease_ms, **more))
        return DynamoDbLock(open_lock_table(options), KEY, options.wait_ms)

    def item(self) -> dict[str, Any] | None:
        return self.client.get_item(TableName=self.name, Key={"key": {"S": KEY}}, ConsistentRead=True).get("Item")

    def put(self, **attributes: str) -> None:
        self.client.put_item(TableName=self.name, Item={name: {"S": value} for name, value in attributes.items()})

    def foreign(self, lease_ms: int = LEASE_MS, **more: str) -> None:
        """The item of a holder that died, or of a thief."""
        self.put(key=KEY, ownerName="other", leaseDuration=str(lease_ms), recordVersionNumber="theirs", **more)

    def make(self) -> None:
        with held(self.lock()):
            pass


@contextlib.contextmanager
def held(lock: DynamoDbLock) -> Iterator[DynamoDbLock]:
    try:
        assert lock.try_lock(5.0)
        yield lock
        lock.unlock()
    finally:
        lock.close()


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def client(dynamodb: str) -> Any:
    keys = {"aws_access_key_id": "tests", "aws_secret_access_key": "tests", "region_name": CREDENTIALS["AWS_REGION"]}
    return boto3.Session(**keys).client("dynamodb", endpoint_url=dynamodb)


@pytest.fixture
def locks(dynamodb: str, client: Any) -> Locks:
    return Locks(dynamodb, client)


@pytest.fixture(scope="module")
def server_between(dynamodb: str) -> Iterator[FaultyHttp]:
    with faulty_http(dynamodb) as server:
        yield server


@pytest.fixture
def between(server_between: FaultyHttp) -> FaultyHttp:
    server_between.fault = lambda name: "pass"
    return server_between


@pytest.fixture
def faulty(between: FaultyHttp, client: Any) -> Locks:
    """The same behind something that loses answers; the table is there."""
    locks = Locks(between.url, client)
    locks.make()
    between.seen.clear()
    return locks


def peer(locks: Locks, lease_ms: int = LEASE_MS) -> LinePeer:
    return python_lock("/nowhere", locks.options(lease_ms), environment=CREDENTIALS)


# ---- one holder


def test_a_lock_is_one_item_of_text_that_goes_with_it(locks: Locks) -> None:
    with held(locks.lock()) as lock:
        item = locks.item()
        assert item is not None
        assert {name: list(value) for name, value in item.items()} == {name: ["S"] for name in ATTRIBUTES}
        assert item["leaseDuration"]["S"] == str(LEASE_MS)
        lock.require_held()
    assert locks.item() is None


def test_a_table_of_locks_is_made_once_by_however_many_need_it(locks: Locks) -> None:
    found: list[bool] = []

    def take() -> None:
        with held(locks.lock()):
            found.append(True)

    threads = [threading.Thread(target=take) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 6
    table = locks.client.describe_table(TableName=locks.name)["Table"]
    assert table["KeySchema"] == [{"AttributeName": "key", "KeyType": "HASH"}]
    assert table["AttributeDefinitions"] == [{"AttributeName": "key", "AttributeType": "S"}]
    assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"


def test_a_table_of_locks_is_made_with_the_capacity_that_the_options_give(locks: Locks) -> None:
    with held(locks.lock(billing_mode="PROVISIONED", read_capacity=7, write_capacity=3)):
        capacity = locks.client.describe_table(TableName=locks.name)["Table"]["ProvisionedThroughput"]
    assert (capacity["ReadCapacityUnits"], capacity["WriteCapacityUnits"]) == (7, 3)


def test_the_key_is_the_name_of_the_table_or_follows_from_its_path(locks: Locks, tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    (tmp_path / ".hoodie").mkdir()
    create_properties(storage, {"hoodie.table.name": "rides"})
    options = locks.options()
    del options[f"{LOCK}dynamodb.partition_key"]
    locks.make()
    for provider, key in ((PROVIDER, "rides"), (IMPLICIT, path_hash(storage.uri))):
        lock = open_provider(storage, LockOptions.from_options(options | {f"{LOCK}provider": provider}))
        assert lock.try_lock(1.0)
        items = locks.client.scan(TableName=locks.name)["Items"]
        assert [item["key"]["S"] for item in items] == [key]
        lock.unlock()
        lock.close()


def test_region_and_endpoint_have_hudis_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    def metadata(**more: Any) -> Any:
        options = {f"{LOCK}provider": PROVIDER, f"{LOCK}dynamodb.table": "t"}
        options |= {f"{LOCK}dynamodb.{name}": value for name, value in more.items()}
        return open_lock_table(LockOptions.from_options(options))._client.meta

    assert metadata(endpoint_url="db.example.org:8000").endpoint_url == "https://db.example.org:8000"
    assert metadata(region="eu-west-1").endpoint_url == "https://dynamodb.eu-west-1.amazonaws.com"
    assert metadata().region_name == CREDENTIALS["AWS_REGION"]
    monkeypatch.delenv("AWS_REGION")
    assert metadata().region_name == "us-east-1"


def test_connections_are_kept_from_one_acquisition_to_the_next(locks: Locks) -> None:
    tables = [open_lock_table(LockOptions.from_options(locks.options())) for _ in range(2)]
    assert tables[0]._client is tables[1]._client


def test_without_boto3_the_message_names_the_extra(locks: Locks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3.session", None)
    with pytest.raises(ConfigError, match=r"hudi-fast\[aws\]"):
        locks.lock(lease_ms=LEASE_MS + 7001)


# ---- several


def test_a_holder_that_renews_keeps_the_lock_beyond_its_lease(locks: Locks) -> None:
    with held(locks.lock(300)) as lock:
        versions = {(locks.item() or {})["recordVersionNumber"]["S"]}
        assert not locks.lock(300).try_lock(0.6)
        versions.add((locks.item() or {})["recordVersionNumber"]["S"])
        assert len(versions) == 2
        lock.require_held()


def test_a_dead_holder_is_taken_over_after_its_own_lease(locks: Locks) -> None:
    locks.make()
    locks.foreign(lease_ms=600)
    started = time.monotonic()
    with held(locks.lock(3_000)):
        assert 0.6 <= time.monotonic() - started < 3.0
        assert (locks.item() or {})["leaseDuration"]["S"] == "3000"


def test_a_dead_holder_is_taken_over_across_tries(locks: Locks) -> None:
    locks.make()
    locks.foreign(lease_ms=300)
    lock = locks.lock()
    assert not lock.try_lock(0.0)
    time.sleep(0.35)
    assert lock.try_lock(0.0)
    lock.close()
    assert locks.item() is None


def test_a_holder_of_which_something_is_heard_is_not_dead(locks: Locks) -> None:
    locks.make()
    locks.foreign(lease_ms=300)
    lock = locks.lock()
    assert not lock.try_lock(0.0)
    time.sleep(0.35)
    locks.put(key=KEY, ownerName="other", leaseDuration="300", recordVersionNumber="renewed")
    assert not lock.try_lock(0.0)


def test_a_lock_that_was_left_behind_is_free(locks: Locks) -> None:
    locks.make()
    locks.foreign(lease_ms=60_000, isReleased="1")
    with held(locks.lock()):
        assert set(locks.item() or {}) == ATTRIBUTES


# ---- a lock that is lost


def test_a_lock_whose_item_was_deleted_is_lost_and_not_made_again(locks: Locks) -> None:
    lock = locks.lock(3_000)
    assert lock.try_lock(1.0)
    locks.client.delete_item(TableName=locks.name, Key={"key": {"S": KEY}})
    with pytest.raises(LockError, match="item was deleted"):
        lock.require_held()
    lock.unlock()
    lock.close()
    assert locks.item() is None


def test_a_table_of_locks_that_was_deleted_holds_none_and_is_not_made_by_who_had_one(locks: Locks) -> None:
    lock = locks.lock(3_000)
    assert lock.try_lock(1.0)
    locks.client.delete_table(TableName=locks.name)
    with pytest.raises(LockError, match="item was deleted"):
        lock.require_held()
    lock.unlock()
    lock.close()
    assert locks.name not in locks.client.list_tables()["TableNames"]


def test_a_lease_that_cannot_be_renewed_in_time_is_refused(locks: Locks) -> None:
    with pytest.raises(ConfigError, match="wait_time_ms=99"):
        locks.lock(99)


# ---- answers that do not arrive


@pytest.mark.parametrize("request_name", ["PutItem", "UpdateItem", "DeleteItem"])
@pytest.mark.parametrize("fault", [LOSE, REFUSE])
def test_a_lost_answer_loses_no_lock(faulty: Locks, between: FaultyHttp, request_name: str, fault: str) -> None:
    lock = faulty.lock(3_000)
    between.once(request_name, fault)
    assert lock.try_lock(5.0)
    lock.require_held()
    lock.require_held()
    lock.unlock()
    assert faulty.item() is None
    lock.close()


def test_a_lock_that_came_after_its_taker_had_given_up_is_given_back(faulty: Locks, between: FaultyHttp) -> None:
    lock = faulty.lock(3_000)
    asked = itertools.count()
    # The put is carried out, and from then on nothing is heard for a while.
    between.fault = lambda name: LOSE if name == "PutItem" else REFUSE if next(asked) else "pass"
    with pytest.raises(OSError, match="not reached"):
        lock.try_lock(1.0)
    between.fault = lambda name: "pass"
    assert faulty.item() is not None
    lock.close()
    assert faulty.item() is None


def test_a_lock_that_came_late_is_the_takers_at_the_next_try(faulty: Locks, between: FaultyHttp) -> None:
    lock = faulty.lock(3_000)
    asked = itertools.count()
    between.fault = lambda name: LOSE if name == "PutItem" else REFUSE if next(asked) else "pass"
    with pytest.raises(OSError, match="not reached"):
        lock.try_lock(1.0)
    between.fault = lambda name: "pass"
    with held(lock):
        lock.require_held()
    assert faulty.item() is None


def test_a_holder_that_hears_nothing_holds_the_lock_as_long_as_enough_of_its_lease_is_left(
    faulty: Locks, between: FaultyHttp
) -> None:
    lock = faulty.lock(1500)
    assert lock.try_lock(1.0)
    between.fault = lambda name: REFUSE
    lock.require_held()
    time.sleep(1.1)
    with pytest.raises(LockError, match="may be lost before"):
        lock.require_held()
    between.fault = lambda name: "pass"
    lock.require_held()
    lock.unlock()
    lock.close()


def test_a_renewal_that_failed_is_tried_again_before_the_lease_ends(faulty: Locks, between: FaultyHttp) -> None:
    with held(faulty.lock(600)) as lock:
        between.once("UpdateItem", REFUSE)
        assert not faulty.lock(600).try_lock(0.9)
        lock.require_held()


def test_a_lock_that_cannot_be_given_up_says_so_and_goes_with_its_lease(faulty: Locks, between: FaultyHttp) -> None:
    lock = faulty.lock(300)
    assert lock.try_lock(1.0)
    between.fault = lambda name: REFUSE
    with pytest.raises(OSError, match="not reached"):
        lock.unlock()
    lock.close()
    between.fault = lambda name: "pass"
    with held(faulty.lock(300)):
        pass


ERRORS: list[tuple[int, str, type[Exception]]] = [
    (400, "ProvisionedThroughputExceededException", OSError),
    (400, "ThrottlingException", OSError),
    (500, "InternalServerError", OSError),
    (503, "SlowDown", OSError),
    (400, "AccessDeniedException", LockError),
    (400, "UnrecognizedClientException", LockError),
    (400, "InvalidSignatureException", LockError),
]


@pytest.mark.parametrize(("status", "code", "expected"), ERRORS, ids=[one[1] for one in ERRORS])
def test_what_may_pass_is_tried_again_and_what_will_not_is_not(
    faulty: Locks, between: FaultyHttp, status: int, code: str, expected: type[Exception]
) -> None:
    body = json.dumps({"__type": f"com.amazonaws#{code}", "message": "x-amz-security-token:secret"}).encode()
    between.once("GetItem", Answer(status, body))
    with pytest.raises(expected, match=code if status != 503 else "DynamoDB answered") as caught:
        faulty.lock().try_lock(1.0)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_requests_are_not_repeated_by_the_client(faulty: Locks, between: FaultyHttp) -> None:
    between.fault = lambda name: REFUSE
    with pytest.raises(OSError, match="not reached"):
        faulty.lock().try_lock(0.0)
    assert between.seen == ["GetItem"]


def test_requests_that_arrive_late_or_twice_change_nothing(locks: Locks) -> None:
    locks.make()
    table = open_lock_table(LockOptions.from_options(locks.options()))
    first, second = (LockItem(KEY, "me", LEASE_MS, version) for version in ("1", "2"))
    assert table.create(first)
    assert not table.create(first)
    assert not table.replace_released(second)
    assert not table.replace(second, "another")
    assert table.renew(second, "1")
    assert not table.renew(second, "1")
    assert not table.delete(KEY, "me", "1")
    assert not table.delete(KEY, "thief", "2")
    assert not table.renew(LockItem(KEY, "thief", LEASE_MS, "3"), "2")
    assert table.read(KEY) == second
    assert table.delete(KEY, "me", "2")
    assert not table.renew(first, "2")
    assert not table.replace(first, "2")
    assert not table.replace_released(first)
    assert table.read(KEY) is None


# ---- what is no table of locks


def test_an_item_that_is_no_lock_is_refused(locks: Locks) -> None:
    locks.make()
    locks.put(key=KEY, color="blue")
    with pytest.raises(LockError, match="found color, key"):
        locks.lock().try_lock(1.0)


def test_a_table_with_another_key_is_refused(locks: Locks) -> None:
    locks.client.create_table(
        TableName=locks.name,
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    with pytest.raises(LockError, match=f"ValidationException to get_item on the lock table {locks.name}"):
        locks.lock().try_lock(1.0)


def test_a_table_that_does_not_get_ready_is_waited_for_so_long_only(faulty: Locks, between: FaultyHttp) -> None:
    missing = Answer(400, b'{"__type": "com.amazonaws#ResourceNotFoundException"}')
    creating = Answer(200, b'{"Table": {"TableStatus": "CREATING"}}')
    answers = {"GetItem": missing, "PutItem": missing, "DescribeTable": creating}
    between.fault = lambda name: answers.get(name, "pass")
    with pytest.raises(LockError, match=r"CREATING after 0\.2 s.*table_creation_timeout"):
        faulty.lock(table_creation_timeout=200).try_lock(1.0)


def test_no_thread_is_left_and_nothing_warns(locks: Locks) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = threading.active_count()
        with held(locks.lock()):
            assert threading.active_count() == before + 1
        assert threading.active_count() == before


def test_a_free_lock_is_had_and_given_back_in_no_time(locks: Locks) -> None:
    locks.make()
    assert fastest(lambda: cycle(locks)) < 0.020


def fastest(run: Callable[[], object], times: int = 30) -> float:
    found = []
    for _ in range(times):
        started = time.perf_counter()
        run()
        found.append(time.perf_counter() - started)
    return min(found)


def cycle(locks: Locks) -> None:
    with held(locks.lock()):
        pass
