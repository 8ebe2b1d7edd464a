"""Histories of writers on machines of their own, whose only lock is that of a real provider."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.concurrency.campaign import CRASHES, Tally, campaign, in_processes
from tests.concurrency.history import WriterPool
from tests.concurrency.worlds import World, apart, world_of
from tests.servers.zookeeper import ZookeeperServer

LOCK = "hoodie.write.lock."
CLIENT = "org.apache.hudi.client.transaction.lock."
NUMBERS = itertools.count()


def worlds(start: int, count: int, options: Mapping[str, str], kinds: tuple[str, ...] = ()) -> Iterator[World]:
    """Each with a lock of its own: ``{}`` in an option stands for its name."""
    for seed in range(start, start + count):
        name = f"table{next(NUMBERS)}"
        world = apart(
            world_of(seed, kinds, writers=3, steps=3), "server", {k: v.format(name) for k, v in options.items()}
        )
        yield replace(world, options={**world.options, "hoodie.table.name": name})


def assert_nothing_lost(tally: Tally) -> None:
    print(tally)
    assert not tally.wrong, str(tally)


def in_zookeeper(server: ZookeeperServer) -> dict[str, str]:
    return {
        f"{LOCK}provider": f"{CLIENT}ZookeeperBasedLockProvider",
        f"{LOCK}zookeeper.url": server.url,
        f"{LOCK}zookeeper.base_path": "/histories",
        f"{LOCK}zookeeper.lock_key": "{}",
        f"{LOCK}zookeeper.session_timeout_ms": "1000",
    }


def in_dynamodb(url: str) -> dict[str, str]:
    return {
        f"{LOCK}provider": "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider",
        f"{LOCK}dynamodb.table": "locks",
        f"{LOCK}dynamodb.partition_key": "{}",
        f"{LOCK}dynamodb.endpoint_url": url,
        f"{LOCK}dynamodb.region": "us-east-1",
        f"{LOCK}wait_time_ms": "2000",
    }


def in_storage() -> dict[str, str]:
    return {
        f"{LOCK}provider": f"{CLIENT}StorageBasedLockProvider",
        f"{LOCK}storage.validity.timeout.secs": "10",
        f"{LOCK}storage.renew.interval.secs": "1",
    }


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kinds", [(), CRASHES], ids=["calm", "crashes"])
def test_writers_that_share_a_lock_in_zookeeper_lose_nothing(
    kinds: tuple[str, ...], zookeeper: ZookeeperServer, writers: WriterPool, scratch: Path
) -> None:
    made = worlds(20_000, 40, in_zookeeper(zookeeper), kinds)
    assert_nothing_lost(campaign(made, scratch, in_processes(writers)))


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kinds", [(), CRASHES], ids=["calm", "crashes"])
def test_writers_that_share_a_lock_in_dynamodb_lose_nothing(
    kinds: tuple[str, ...], dynamodb: str, writers: WriterPool, scratch: Path
) -> None:
    made = worlds(21_000, 40, in_dynamodb(dynamodb), kinds)
    assert_nothing_lost(campaign(made, scratch, in_processes(writers)))


@pytest.mark.long
@pytest.mark.timeout(900)
def test_writers_that_share_a_lock_in_storage_lose_nothing(writers: WriterPool, scratch: Path) -> None:
    """Few, and without crashes: who waits asks once a second, and a dead one has the lock for ten."""
    assert_nothing_lost(campaign(worlds(22_000, 8, in_storage()), scratch, in_processes(writers)))
