"""Histories in which Apache Hudi writes, too: its lock in ZooKeeper is the only one that all writers share."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import Instant, ms_from_instant
from hudi_fast.view.table_state import commits_newest_first, load_state
from tests.concurrency.checker import check
from tests.concurrency.history import Attempt, Done, WriterPool, run_in_processes
from tests.concurrency.script import rows_seen
from tests.concurrency.site import Site
from tests.concurrency.worlds import Op, World, apart, rows_for, world_of
from tests.peer.client import PeerError, RealHudi
from tests.servers.zookeeper import ZookeeperServer

LOCK = "hoodie.write.lock."
JVM = 99
"""Number of the writer that is Apache Hudi."""
NOTE = "history.operation"
NUMBERS = itertools.count()
HISTORIES = int(os.environ.get("HISTORIES_BESIDE_HUDI", "20"))
"""``make soak`` asks for more."""
SECONDS_OF_EACH = 90


def world_beside_jvm(seed: int, server: ZookeeperServer) -> World:
    """Two writers that change rows that are there; Apache Hudi is the third."""
    chance = random.Random(seed)
    world, name = world_of(seed, writers=2, steps=6), f"beside{next(NUMBERS)}"
    keys = sorted({key for some in world.first for key in some})
    verbs = ("upsert", "upsert", "increment", "read")
    scripts = tuple(
        tuple(
            Op(chance.choice(verbs), (chance.choice(keys),), value=1_000_000 * (writer + 1) + number)
            for number in range(6)
        )
        for writer in range(2)
    )
    lock = {
        f"{LOCK}provider": "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
        f"{LOCK}zookeeper.url": server.url,
        f"{LOCK}zookeeper.base_path": "/histories",
        f"{LOCK}zookeeper.lock_key": name,
        f"{LOCK}wait_time_ms": "60000",
    }
    options = {
        **world.options,
        "hoodie.table.name": name,
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    }
    made = apart(replace(world, options=options, scripts=scripts), "server", lock)
    return replace(made, options={**made.options, "hoodie.time.generator.max_expected_clock_skew_ms": "20"})


def as_jvm(peer: RealHudi, world: World, steps: int) -> Callable[[str], list[Done]]:
    """What Apache Hudi does to the table, one upsert after the other."""
    chance = random.Random(world.seed)
    keys = sorted({key for some in world.first for key in some})

    def act(table: str) -> list[Done]:
        done: list[Done] = []
        for number in range(steps):
            op = Op("upsert", (chance.choice(keys),), value=90_000_000 + number)
            one = Done(JVM, number, op, time.monotonic_ns())
            done.append(one)
            options = {
                **world.options,
                "hoodie.datasource.write.operation": "upsert",
                "hoodie.clean.failed.writes.policy": "LAZY",
                "hoodie.datasource.write.commitmeta.key.prefix": NOTE,
                NOTE: str(number),
            }
            try:
                peer.write(rows_for(op.keys, op.value, world.partitions), _address(table), options)
                one.outcome = "landed"
            except PeerError as error:
                one.outcome, one.error = "refused", f"{error}"[:600]
            one.end = time.monotonic_ns()
        _find(table, world, done)
        return done

    return act


def _address(table: str) -> str:
    """With a scheme: without one release 1.2.0 notes log files of a task that ran twice as ``file:p0/...`` (version 6),
    and cannot read its own metadata table then."""
    return f"file://{table}"


def _find(table: str, world: World, done: list[Done]) -> None:
    """Which instants were Apache Hudi's: their commits say so."""
    ahead = time.time_ns() - time.monotonic_ns()
    state = load_state(Storage(table))

    def moment(instant_time: str) -> int:
        return ms_from_instant(instant_time, state.config.timezone) * 1_000_000 - ahead

    for instant, commit in commits_newest_first(state):
        number = commit.extra_metadata.get(NOTE)
        if number is not None:
            one, requested = done[int(number)], Instant(instant.requested, instant.action, instant.state)
            at = moment(instant.completion or instant.requested)
            completion = (instant.completion or "") if world.version >= 8 else ""
            one.attempts.append(Attempt(requested, moment(instant.requested), at, at, completion, foreign=True))
            one.instant = instant.requested


@pytest.mark.long
@pytest.mark.timeout(600 + HISTORIES * SECONDS_OF_EACH)
def test_writers_beside_apache_hudi_lose_nothing(
    hudi_12: RealHudi, zookeeper: ZookeeperServer, writers: WriterPool, scratch: Path
) -> None:
    refused = landed = 0
    wrong: list[str] = []
    for seed in range(30_000, 30_000 + HISTORIES):
        world = world_beside_jvm(seed, zookeeper)
        folder = scratch / str(seed)
        folder.mkdir()
        history = run_in_processes(world, Site.on_disk(folder), writers, beside=as_jvm(hudi_12, world, 3))
        here = rows_seen(hudi_12.read(_address(history.table), columns=["id", "v"]))
        found = list(check(history).wrong)
        if here != history.before_recovery:
            found.append(f"Apache Hudi reads other rows: {here}")
        if found:
            wrong.append("\n".join([f"seed {seed}, {history.table}:", *found, *map(_told, history.done)]))
            print(wrong[-1], flush=True)
        else:
            shutil.rmtree(folder)
        refused += sum(one.outcome == "refused" for one in history.done)
        landed += sum(one.outcome == "landed" and one.writer == JVM for one in history.done)
        hudi_12.rest()
    print(f"{landed} commits of Apache Hudi landed, {refused} operations were refused")
    assert wrong == []
    assert landed >= HISTORIES


def _told(one: Done) -> str:
    attempts = [(each.instant.requested, each.completion, each.tried is not None) for each in one.attempts]
    return f"{one.name} {one.op.value}: {one.outcome} {one.error[:200]} {attempts}"
