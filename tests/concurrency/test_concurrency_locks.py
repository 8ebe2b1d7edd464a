"""Histories of writers on machines of their own, whose only lock is that of a real provider.

The table is on disk, or in an object store; a lock server may be restarted in the midst.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.concurrency.campaign import CRASHES, Tally, campaign, in_processes
from tests.concurrency.history import Done, WriterPool
from tests.concurrency.site import Site
from tests.concurrency.worlds import World, apart, with_late_rows, world_of
from tests.locking.jvm_lock import peer_pyspark_jars
from tests.servers.s3 import S3Server, ServerError
from tests.servers.zookeeper import ZookeeperServer, start_zookeeper

LOCK = "hoodie.write.lock."
CLIENT = "org.apache.hudi.client.transaction.lock."
NUMBERS = itertools.count()
HISTORIES = int(os.environ.get("HISTORIES_ON_SERVERS", "12"))
"""``make soak`` asks for more."""
SECONDS_OF_EACH = 30
RESTARTS = 3


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


@pytest.mark.smoke
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


# ---- servers that are restarted


@pytest.fixture
def own_zookeeper(java: str, tmp_path: Path) -> Iterator[ZookeeperServer]:
    """A server that no other test uses."""
    try:
        with start_zookeeper(peer_pyspark_jars(), tmp_path / "zookeeper") as server:
            yield server
    except (FileNotFoundError, ServerError) as error:
        pytest.skip(str(error))


def restarting(server: ZookeeperServer, chance: random.Random) -> Callable[[str], list[Done]]:
    """Ends the server some times while writers are at work, and starts it again; it keeps what it has answered."""

    def act(_table: str) -> list[Done]:
        for _ in range(RESTARTS):
            time.sleep(chance.uniform(0.05, 0.4))
            server.stop()
            time.sleep(chance.uniform(0.0, 0.3))
            server.start()
        return []

    return act


@pytest.mark.long
@pytest.mark.timeout(600 + HISTORIES * SECONDS_OF_EACH)
def test_a_lock_server_that_is_restarted_lets_nothing_be_lost(
    own_zookeeper: ZookeeperServer, writers: WriterPool, scratch: Path
) -> None:
    """A session of two seconds, and so its lock, lasts longer than the server is away; others wait as long."""
    options = {**in_zookeeper(own_zookeeper), f"{LOCK}wait_time_ms": "20000"}
    options[f"{LOCK}zookeeper.session_timeout_ms"] = "4000"
    beside = restarting(own_zookeeper, random.Random(23_000))
    tally = campaign(worlds(23_000, HISTORIES, options), scratch, in_processes(writers, beside=beside))
    assert_nothing_lost(tally)
    assert sum(count for name, count in tally.outcomes.items() if name.endswith(" landed")) > HISTORIES


# ---- tables in an object store


def in_bucket(server: S3Server) -> Callable[[Path], Site]:
    return lambda folder: Site(folder, server.path(f"histories{next(NUMBERS)}"), dict(server.options))


def unhurried(world: World) -> World:
    """Signs of life come later from an object store, in which every call takes its time."""
    beats = {"hoodie.client.heartbeat.interval_in_ms": "40000"} if world.faults else {}
    return replace(world, options={**world.options, **beats})


@pytest.mark.parametrize(
    ("kinds", "count"),
    [
        ((), 1),
        pytest.param((), HISTORIES, marks=pytest.mark.long),
        pytest.param(("kill", "kill", "before", "after"), HISTORIES, marks=pytest.mark.long),
    ],
    ids=["calm", "many", "crashes"],
)
@pytest.mark.timeout(600 + HISTORIES * SECONDS_OF_EACH)
def test_writers_to_a_table_in_s3_lose_nothing(
    kinds: tuple[str, ...], count: int, s3_server: S3Server, writers: WriterPool, scratch: Path
) -> None:
    made = map(unhurried, worlds(24_000 + 1000 * len(kinds), count, in_storage(), kinds))
    late = (with_late_rows(world) if world.seed % 3 == 2 else world for world in made)
    tally = campaign(late, scratch, in_processes(writers, site=in_bucket(s3_server)))
    assert_nothing_lost(tally)
