"""Small worlds for histories: a table, its writers and what they will try, all of it from one seed.

::

    seed ─► world_of ─► World: table kind, options, rows at the beginning, each writer's operations, faults

Worlds are small on purpose: few keys and few file groups, so that writers meet. Values are unique, so that a row says
which operation wrote it. A world is plain data and travels as JSON.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from tests.naive.bucket_hash import list_hash

__all__ = [
    "FAULT_STEPS",
    "READS",
    "SERVICES",
    "WRITES",
    "Fault",
    "Op",
    "World",
    "apart",
    "bucket_of",
    "partition_of",
    "rows_for",
    "with_late_rows",
    "world_from_json",
    "world_of",
    "world_to_json",
]

WRITES = ("upsert", "insert", "delete", "increment", "insert_overwrite", "delete_partition")
SERVICES = (
    "compact",
    "cluster",
    "schedule_compact",
    "schedule_cluster",
    "clean",
    "archive",
    "index",
    "drop_index",
    "pending",
    "savepoint",
    "drop_savepoint",
    "undo",
    "restore",
)
READS = ("read",)
FAULT_STEPS = (
    "requested",
    "inflight",
    "completed",
    "metadata_requested",
    "metadata_completed",
    "metadata_data",
    "data",
    "marker",
    "heartbeat",
    "delete",
)
"""Names of storage calls that faults aim at: see ``faults.step_of``."""

_L = "hoodie.write.lock."
_IN_PROCESS = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"
_BY_TIME = "EVENT_TIME_ORDERING"
_OCC = "OPTIMISTIC_CONCURRENCY_CONTROL"
_NBCC = "NON_BLOCKING_CONCURRENCY_CONTROL"
_FIRST_TS = 5
_TIMES = (1, 3, 5, 6, 7, 8, 9)
"""Ordering values; rows at the beginning have :data:`_FIRST_TS`."""


@dataclass(frozen=True, slots=True)
class Op:
    """One operation of a writer.

    Attributes:
        verb: one of :data:`WRITES`, :data:`SERVICES` or :data:`READS`.
        keys: record keys that it is about.
        partition: partition path, of ``insert_overwrite`` and ``delete_partition``.
        value: what it writes; unique in its world.
        ts: ordering value of what it writes, in a world with late rows.
    """

    verb: str
    keys: tuple[str, ...] = ()
    partition: str = ""
    value: int = 0
    ts: int = 0


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong for one writer.

    Attributes:
        kind: ``kill``, ``stop``, ``before``, ``after``, ``tear`` (see ``FaultyStorage``), ``skew``, ``step_back``.
        writer: whose.
        step: a name of :data:`FAULT_STEPS`, or "" for any storage call.
        at: which call of that kind, from 0; of ``skew`` and ``step_back`` the operation that it begins with.
        ms: how long a stop lasts, or how far the clock is off.
        late: whether a kill or stop comes after the call.
    """

    kind: str
    writer: int
    step: str = ""
    at: int = 0
    ms: int = 0
    late: bool = False


@dataclass(frozen=True, slots=True)
class World:
    """One history to be.

    Attributes:
        seed: what it was made of.
        options: of all writers.
        first: keys of the rows at the beginning, one tuple for each commit.
        partitions: how many.
        scripts: operations by writer.
        faults: what goes wrong.
        machines: whether each writer is on a machine of its own: then locks of the machine exclude nobody.
        provider: who keeps the lock: ``machine`` (the table's lock file), ``lease`` or the kind of a real provider.
    """

    seed: int
    options: Mapping[str, str]
    first: tuple[tuple[str, ...], ...]
    partitions: int
    scripts: tuple[tuple[Op, ...], ...]
    faults: tuple[Fault, ...] = ()
    machines: bool = False
    provider: str = "machine"

    @property
    def options_alone(self) -> dict[str, str]:
        """Options of who works while no other writer does, before and after: no lock but the machine's."""
        return {**self.options, f"{_L}provider": _IN_PROCESS}

    @property
    def is_mor(self) -> bool:
        """Whether the table is MERGE_ON_READ."""
        return self.options["hoodie.datasource.write.table.type"] == "MERGE_ON_READ"

    @property
    def is_bucket(self) -> bool:
        """Whether keys have their file groups beforehand, so that no key can be there twice."""
        return self.options.get("hoodie.index.type") == "BUCKET"

    def bucket_of(self, key: str) -> int | None:
        """The bucket of a key, whose file group has an id that begins with it; None without a bucket index."""
        return bucket_of(key, int(self.options["hoodie.bucket.index.num.buckets"])) if self.is_bucket else None

    @property
    def blocks(self) -> bool:
        """Whether conflicts are looked for."""
        return self.options["hoodie.write.concurrency.mode"] == _OCC

    @property
    def is_by_time(self) -> bool:
        """Whether rows have ordering values: a row that comes late loses against the stored one."""
        return self.options["hoodie.write.record.merge.mode"] == _BY_TIME

    @property
    def openings(self) -> tuple[Op, ...]:
        """The operations that make the rows at the beginning."""
        return tuple(Op("upsert", keys, value=n + 1, ts=_FIRST_TS) for n, keys in enumerate(self.first))

    def rows(self, op: Op) -> pa.Table:
        """The rows that an operation gives."""
        return rows_for(op.keys, op.value, self.partitions, op.ts if self.is_by_time else None)

    @property
    def version(self) -> int:
        """Table version."""
        return int(self.options["hoodie.write.table.version"])

    @property
    def is_calm(self) -> bool:
        """Whether no sign of life can come late: nobody is stopped or has a clock that is off."""
        return not any(one.kind in ("stop", "skew", "step_back") for one in self.faults)


def partition_of(key: str, partitions: int) -> str:
    """The partition path of a key: by its last digit."""
    return f"p{int(key[-1]) % partitions}"


def bucket_of(key: str, buckets: int) -> int:
    """The bucket of a key of one field: Java's hash of a list of one string."""
    return (list_hash([key]) & 0x7FFFFFFF) % buckets


def rows_for(keys: tuple[str, ...], value: int, partitions: int, ts: int | None = None) -> pa.Table:
    """Rows with these keys: ``id``, ``p``, ``v``; and ``ts``, if it is given."""
    places = [partition_of(key, partitions) for key in keys]
    rows = pa.table(
        {
            "id": pa.array(list(keys), pa.string()),
            "p": pa.array(places, pa.string()),
            "v": pa.array([value] * len(keys), pa.int64()),
        }
    )
    return rows if ts is None else rows.append_column("ts", pa.array([ts] * len(keys), pa.int64()))


def world_of(
    seed: int,
    faults: tuple[str, ...] = (),
    writers: int | None = None,
    steps: int | None = None,
    undoing: bool = False,
    restoring: bool = False,
) -> World:
    """The world of a seed.

    Args:
        seed: any number; the same number gives the same world.
        faults: kinds of faults that may happen; none for a world in which all goes well.
        writers: how many; None: 2 to 4.
        steps: operations of each; None: 3 to 6.
        undoing: whether the newest write is rolled back now and then, and savepoints come and go.
        restoring: whether savepoints are made, and the table is restored to them.
    """
    chance = random.Random(seed)
    options = _options(chance)
    partitions = chance.choice((1, 2, 2))
    keys = tuple(f"k{number}" for number in range(chance.choice((2, 4, 6, 8))))
    first = tuple(keys[start :: chance.choice((1, 2))] for start in range(1))
    if chance.random() < 0.4 and len(keys) > 2:
        first = (keys[::2], keys[1::2])
    count = writers or chance.choice((2, 2, 3, 3, 4))
    verbs = _verbs(chance, options)
    if undoing and options["hoodie.write.concurrency.mode"] == _OCC:
        verbs += ["undo", "undo", "undo", "savepoint", "drop_savepoint"]
    if restoring and options["hoodie.write.concurrency.mode"] == _OCC:
        verbs += ["savepoint", "savepoint", "restore", "restore", "restore"]
    scripts = tuple(
        tuple(
            _op(chance, verbs, keys, partitions, writer, number)
            for number in range(steps or chance.choice((3, 4, 5, 6)))
        )
        for writer in range(count)
    )
    made = World(seed, options, first, partitions, scripts)
    if not faults:
        return made
    rule = {"hoodie.client.heartbeat.interval_in_ms": "3000", "hoodie.client.heartbeat.tolerable.misses": "2"}
    return replace(made, options={**options, **rule}, faults=_faults(chance, faults, count))


def with_late_rows(world: World) -> World:
    """The same world with ordering values: rows come late now and then, or at the same time as the stored one."""
    chance = random.Random(world.seed)
    by_time = {
        "hoodie.write.record.merge.mode": _BY_TIME,
        "hoodie.datasource.write.precombine.field": "ts",
    }
    scripts = tuple(tuple(replace(op, ts=chance.choice(_TIMES)) for op in script) for script in world.scripts)
    return replace(world, options={**world.options, **by_time}, scripts=scripts)


def apart(world: World, provider: str = "lease", options: Mapping[str, str] | None = None) -> World:
    """The same world with each writer on a machine of its own, and a lock that they share.

    Args:
        world: the world.
        provider: who keeps the lock: ``lease``, or the kind of a real provider.
        options: of that provider; none for ``lease``, which stands where the options name any.
    """
    given = options or {
        f"{_L}provider": "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
        f"{_L}zookeeper.url": "nowhere:1",
        f"{_L}zookeeper.base_path": "/nowhere",
    }
    waits = {f"{_L}client.wait_time_ms_between_retry": "20", "hoodie.time.generator.max_expected_clock_skew_ms": "1"}
    return replace(world, options={**world.options, **waits, **given}, machines=True, provider=provider)


def _options(chance: random.Random) -> dict[str, str]:
    kind = chance.choice(("COPY_ON_WRITE", "MERGE_ON_READ"))
    version = chance.choice(("6", "8", "9", "9"))
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.table.version": version,
        "hoodie.write.concurrency.mode": _OCC,
        f"{_L}provider": _IN_PROCESS,
        "hoodie.table.services.enabled": "false",
        "hoodie.index.bloom.num_entries": "20",
        "hoodie.bloom.index.filter.dynamic.max.entries": "60",
        "hoodie.metadata.compact.max.delta.commits": chance.choice(("3", "10")),
        "hoodie.write.num.retries.on.conflict.failures": chance.choice(("0", "1", "4")),
        "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie.cleaner.fileversions.retained": chance.choice(("1", "3")),
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hudi_fast.threads": "1",
    }
    if chance.random() < 0.5:
        options["hoodie.metadata.index.column.stats.enable"] = "false"
    if chance.random() < 0.4:
        options["hoodie.parquet.small.file.limit"] = "0"
    index = chance.choice(("SIMPLE", "BLOOM", "BUCKET", "BUCKET", "RECORD"))
    if index == "BUCKET":
        options |= {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": chance.choice(("1", "2", "3"))}
        if kind == "MERGE_ON_READ" and version != "6" and chance.random() < 0.4:
            options["hoodie.write.concurrency.mode"] = _NBCC
    elif index == "RECORD":
        options |= {
            "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
            "hoodie.metadata.record.index.min.filegroup.count": "1",
        }
    else:
        options["hoodie.index.type"] = index
    if index != "RECORD" and chance.random() < 0.2:
        options["hoodie.metadata.enable"] = "false"  # folders are listed
    return options


def _verbs(chance: random.Random, options: Mapping[str, str]) -> list[str]:
    """Verbs as often as they are to come."""
    if options["hoodie.write.concurrency.mode"] == _NBCC:
        return ["upsert"] * 5 + ["delete", "read", "compact", "compact", "schedule_compact", "pending", "clean"]
    verbs = ["upsert"] * 4 + ["increment"] * 4 + ["insert", "insert", "delete", "read", "read"]
    verbs += ["insert_overwrite", "delete_partition"] if chance.random() < 0.5 else []
    services = ["clean", "pending"]
    if chance.random() < 0.5:
        services += ["archive"]
    if options["hoodie.datasource.write.table.type"] == "MERGE_ON_READ":
        services += ["compact", "compact", "schedule_compact"]
    if options.get("hoodie.index.type") != "BUCKET" and chance.random() < 0.5:
        services += ["cluster", "schedule_cluster"]
    if chance.random() < 0.25 and "hoodie.metadata.enable" not in options:
        services += ["index", "drop_index"]
    return verbs + services


def _op(
    chance: random.Random, verbs: list[str], keys: tuple[str, ...], partitions: int, writer: int, number: int
) -> Op:
    verb = chance.choice(verbs)
    value = 1_000_000 * (writer + 1) + 1000 * (number + 1)
    some = tuple(sorted(chance.sample(keys, chance.choice((1, 1, 2)))))
    if verb in ("upsert", "delete", "increment"):
        return Op(verb, some, value=value)
    if verb == "insert":
        return Op(verb, tuple(f"w{writer}n{number}x{digit}" for digit in range(chance.choice((1, 2)))), value=value)
    if verb in ("insert_overwrite", "delete_partition"):
        place = f"p{chance.randrange(partitions)}"
        inside = tuple(key for key in some if partition_of(key, partitions) == place)
        if verb == "delete_partition" or not inside:
            return Op("delete_partition", (), place, value)
        return Op(verb, inside, place, value)
    return Op(verb, value=value)


def _faults(chance: random.Random, kinds: tuple[str, ...], writers: int) -> tuple[Fault, ...]:
    return tuple(_fault(chance, chance.choice(kinds), writers) for _ in range(chance.choice((1, 1, 2))))


def _fault(chance: random.Random, kind: str, writers: int) -> Fault:
    writer = chance.randrange(writers)
    if kind in ("skew", "step_back"):
        ms = chance.choice((-10_000, -400, -150, 150, 400, 10_000)) if kind == "skew" else -chance.choice((50, 5000))
        return Fault(kind, writer, at=chance.randrange(3), ms=ms)
    ms = chance.choice((100, 400)) if kind == "stop" else 0
    late = chance.random() < 0.5
    if chance.random() < 0.5:
        return Fault(kind, writer, chance.choice(FAULT_STEPS), chance.randrange(4), ms, late)
    return Fault(kind, writer, "", chance.randrange(600), ms, late)


def world_to_json(world: World) -> dict[str, Any]:
    """The world as plain data."""
    return asdict(world)


def world_from_json(data: Mapping[str, Any]) -> World:
    """The world of :func:`world_to_json`."""
    scripts = tuple(tuple(Op(**{**op, "keys": tuple(op["keys"])}) for op in script) for script in data["scripts"])
    faults = tuple(Fault(**fault) for fault in data["faults"])
    first = tuple(tuple(keys) for keys in data["first"])
    return World(**{**data, "scripts": scripts, "faults": faults, "first": first})
