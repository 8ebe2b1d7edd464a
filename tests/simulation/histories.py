"""A history: two writers, a service and a reader on a small table, with faults; all of it follows from its number.

::

    number ─► Plan: place, table, options, scripts, faults ─► run on a World ─► Told: outcomes, rows that were read
                                                          ─► a day later: clean, finish what is pending, write, read
           ─► serial: is there an order of what was acknowledged that explains all that was read?
"""

from __future__ import annotations

import contextlib
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import hudi_fast as hf
from hudi_fast.errors import CommitStateUnknownError, HudiError
from tests.simulation.installed import LOCAL, S3, World
from tests.simulation.kernel import Folder
from tests.simulation.objects import Stored
from tests.simulation.scheduler import Actor, Call, Died, Process, Scheduler
from tests.simulation.serial import LATER, Step, explained, explained_around_loss

__all__ = ["FAMILIES", "Fault", "History", "Op", "Plan", "Setting", "plan_of", "run"]

_L = "hoodie.write.lock."
_MODE = "hoodie.write.concurrency.mode"
_IN_PROCESS = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"
_IN_STORAGE = "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"
_DAY = 86_400.0
KEYS = ("k0", "k1", "k2", "k3")
AT_SAVEPOINT = {"k0": 3, "k1": 3, "k2": 3, "k3": 1, "d0": 1, "d1": 1}
"""Rows of a table at its beginning."""
DELETED = ("d0", "d1")
"""Keys at the beginning; one writer only writes to the second ones: no index can keep two from bringing a key back."""


@dataclass(frozen=True)
class Setting:
    """A table.

    Attributes:
        place: ``LOCAL`` or ``S3``.
        kind: ``COPY_ON_WRITE`` or ``MERGE_ON_READ``.
        version: of the table.
        metadata: whether it has a metadata table.
        shared: whether writers work at the same time; otherwise they wait for each other.
        index: type of the index.
        retries: after a conflict.
        left: what somebody left on the table: see ``LEFT``.
        small: whether it has one partition only.
    """

    place: str
    kind: str
    version: str
    metadata: bool
    shared: bool = True
    index: str = "SIMPLE"
    retries: int = 1
    left: str = ""
    small: bool = False

    @property
    def options(self) -> dict[str, str]:
        """Options of all writers and services."""
        given = {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "p",
            "hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING",
            "hoodie.datasource.write.table.type": self.kind,
            "hoodie.write.table.version": self.version,
            "hoodie.metadata.enable": str(self.metadata).lower(),
            "hoodie.metadata.index.column.stats.enable": "false",
            "hoodie.table.services.enabled": "false",
            "hoodie.index.bloom.num_entries": "10",
            "hoodie.bloom.index.filter.dynamic.max.entries": "20",
            "hoodie.write.num.retries.on.conflict.failures": str(self.retries),
            "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
            "hoodie.cleaner.fileversions.retained": "3",
            "hoodie.keep.min.commits": "2",
            "hoodie.keep.max.commits": "3",
            "hudi_fast.threads": "1",
            "hoodie.index.type": self.index,
        }
        if self.index == "BUCKET":
            given["hoodie.bucket.index.num.buckets"] = "2"
        if self.shared:
            given[_MODE] = "OPTIMISTIC_CONCURRENCY_CONTROL"
            given[f"{_L}provider"] = _IN_PROCESS if self.place == LOCAL else _IN_STORAGE
        return given


@dataclass(frozen=True)
class Op:
    """What an actor does.

    Attributes:
        verb: ``upsert``, ``insert``, ``delete``, ``increment``, ``read``, or a service.
        keys: of the rows.
        value: of the rows.
    """

    verb: str
    keys: tuple[str, ...] = ()
    value: int = 0

    @property
    def changes_rows(self) -> bool:
        """Whether rows differ after it."""
        return bool(self.keys) or self.verb == "restore"

    def applied(self, rows: Mapping[str, int]) -> dict[str, int]:
        """Rows after it."""
        if self.verb == "restore":
            return {key: value for key, value in AT_SAVEPOINT.items() if key in rows}
        if self.verb in ("upsert", "insert"):
            return {**rows, **dict.fromkeys(self.keys, self.value)}
        if self.verb == "delete":
            return {key: value for key, value in rows.items() if key not in self.keys}
        if self.verb == "increment":
            return {key: value + (key in self.keys) for key, value in rows.items()}
        return dict(rows)


WRITES = ("upsert", "insert", "delete", "increment")


@dataclass(frozen=True)
class Fault:
    """What goes wrong.

    Attributes:
        kind: ``kill``, ``pause``, ``jump`` (of a clock), ``power``, ``before`` or ``after`` (a request without answer).
        process: whom it meets.
        at: number of the step of the process.
        among: which steps ``at`` counts: ``any``, ``timeline`` (changes of timelines and locks), or ``completing`` (a
            write or service becomes visible).
        seconds: of a pause or a jump.
    """

    kind: str
    process: str
    at: int
    among: str = "any"
    seconds: float = 0.0


@dataclass(frozen=True)
class Plan:
    """A history before it happens.

    Attributes:
        number: of the history.
        setting: its table.
        scripts: what each process does.
        faults: what goes wrong.
        switches: how often another process goes on.
    """

    number: int
    setting: Setting
    scripts: Mapping[str, tuple[Op, ...]]
    faults: tuple[Fault, ...] = ()
    switches: float = 0.2


@dataclass
class History:
    """What happened.

    Attributes:
        plan: what was planned.
        steps: what each process did and was told.
        calls: number of calls of storage, clocks and locks.
        wrong: what must not be; empty when nothing was lost.
        trace: the calls, if they were asked for.
        met: the faults that happened.
    """

    plan: Plan
    steps: list[Step] = field(default_factory=list)
    calls: int = 0
    wrong: list[str] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)
    met: int = 0


# ---- plans


def plan_of(family: str, number: int) -> Plan:
    """The plan of a history."""
    chance = random.Random(f"{family} {number}")
    places, kinds = FAMILIES[family]
    place = chance.choice(places)
    setting = Setting(
        place,
        chance.choice(("COPY_ON_WRITE", "MERGE_ON_READ")),
        chance.choice(("6", "8", "9")),
        chance.random() < 0.4,
        place == S3 or chance.random() < 0.8,
        chance.choice(("SIMPLE", "SIMPLE", "BUCKET")),
    )
    scripts = {
        "A": tuple(_write(chance, "A", n) for n in range(chance.choice((1, 1, 2)))),
        "B": tuple(_write(chance, "B", n) for n in range(chance.choice((1, 1, 2)))),
    }
    services = ["clean", "archive", "savepoint", "pending"]
    services += ["compact"] * 3 if setting.kind == "MERGE_ON_READ" else []
    services += ["cluster"] if setting.index != "BUCKET" else []
    services += ["index"] if setting.metadata else []
    if chance.random() < 0.7:
        scripts["S"] = tuple(Op(chance.choice(services)) for _ in range(chance.choice((1, 1, 2))))
    if chance.random() < 0.5:
        scripts["R"] = (Op("read"),) * chance.choice((1, 2))
    faults = (
        tuple(_fault(chance, chance.choice(kinds), sorted(scripts)) for _ in range(chance.choice((1, 1, 2))))
        if kinds
        else ()
    )
    return Plan(number, setting, scripts, faults, chance.choice((0.02, 0.1, 0.3, 0.6)))


def _write(chance: random.Random, who: str, number: int) -> Op:
    verb = chance.choice(("upsert", "upsert", "increment", "insert", *(["delete"] if who == "A" else [])))
    value = 100 * (number + 1) + (1000 if who == "A" else 2000)
    if verb == "insert":
        return Op(verb, (f"{who}{number}",), value)
    if verb == "delete":
        return Op(verb, (chance.choice(DELETED),))
    return Op(verb, tuple(sorted(chance.sample(KEYS, chance.choice((1, 2))))), value)


def _fault(chance: random.Random, kind: str, processes: list[str]) -> Fault:
    among = chance.choice(("any", "timeline", "completing") if kind in ("pause", "kill") else ("any", "timeline"))
    at = chance.randrange({"any": 220, "timeline": 14, "completing": 2}[among])
    seconds = {"pause": chance.choice((30.0, 400.0, 4000.0)), "jump": chance.choice((-_DAY, -2.0, 2.0, _DAY))}
    return Fault(kind, chance.choice(processes), at, among, seconds.get(kind, 0.0))


FAMILIES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "calm": ((LOCAL, S3), ()),
    "deaths": ((LOCAL, S3), ("kill",)),
    "clocks": ((LOCAL,), ("jump",)),
    "pauses": ((LOCAL,), ("pause",)),
    "power": ((LOCAL,), ("power",)),
    "power and deaths": ((LOCAL,), ("power", "kill", "pause")),
    "lost answers": ((S3,), ("before", "after", "after")),
    "lost answers and deaths": ((S3,), ("before", "after", "kill")),
    "leases": ((S3,), ("pause", "jump")),
}
"""Places and faults of each family."""


# ---- the world at the beginning


@dataclass(frozen=True)
class _Begun:
    tree: Folder
    objects: dict[str, Stored]
    now: float
    rows: dict[str, int]


@cache
def begun(setting: Setting) -> _Begun:
    """A table with four commits."""
    world = World(f"begin {setting}", lambda _, ready: ready[0])
    with world.installed(), world.alone(world.process("first")), quiet():
        world.kernel.makedirs(LOCAL.rpartition("/")[0])
        keys = ("k0", "k2", "d0") if setting.small else (*KEYS, *DELETED)
        often = keys[: 2 if setting.small else 3]
        for value in (0, 1, 2, 3):
            hf.write(rows_for(dict.fromkeys(keys if value < 2 else often, value)), setting.place, setting.options)
            world.now += 60
        rows = rows_in(setting.place)
        assert rows == {key: value for key, value in AT_SAVEPOINT.items() if key in keys}
        if setting.left:
            LEFT[setting.left](world, setting)
            world.now += _DAY
            rows = rows_in(setting.place)
    return _Begun(world.kernel.saved(), dict(world.objects.stored), world.now + 600, rows)


def _leave_failed_write(world: World, setting: Setting) -> None:
    """A writer dies before its write is complete."""

    def die(actor: Actor, call: Call) -> None:
        if is_completing(call):
            world.kill(actor.process)

    world.on_step = die
    with contextlib.suppress(Died), world.alone(world.process("dead")):
        hf.HudiTable.open(setting.place).write(rows_for({"k2": 6}), "upsert", setting.options)
    world.on_step = None


def _leave_savepoint(world: World, setting: Setting) -> None:
    """A savepoint, and a write after it."""
    table = hf.HudiTable.open(setting.place)
    table.services.savepoint(options=setting.options)
    world.now += 60
    table.write(rows_for({"k0": 5}), "upsert", setting.options)


LEFT: dict[str, Callable[[World, Setting], None]] = {
    "failed write": _leave_failed_write,
    "savepoint": _leave_savepoint,
}
"""What stands on a table when a history begins."""


def rows_for(values: Mapping[str, int]) -> pa.Table:
    """Rows with keys and values."""
    keys = list(values)
    return pa.table(
        {"id": keys, "p": [f"p{int(key[-1]) % 2}" for key in keys], "v": pa.array(list(values.values()), pa.int64())}
    )


def rows_in(place: str) -> dict[str, int]:
    """Keys and values that a reader sees."""
    found = hf.HudiTable.open(place).to_arrow(columns=["id", "v"])
    rows = dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))
    assert len(rows) == found.num_rows, f"a key is there twice: {sorted(found['id'].to_pylist())}"
    return rows


class quiet(warnings.catch_warnings):
    """No warnings."""

    def __enter__(self) -> None:
        super().__enter__()
        warnings.simplefilter("ignore")


# ---- histories


def run(
    plan: Plan,
    traced: bool = False,
    mutation: Callable[[], Any] | None = None,
    prepare: Callable[[World], None] = lambda _: None,
    judged: Callable[[History], bool] = lambda _: True,
) -> History:
    """Let a history happen, and judge it.

    Args:
        plan: the history.
        traced: whether to keep its calls.
        mutation: makes a context in which a part of the product is missing.
        prepare: is called with the world before it begins.
        judged: whether to look at what came of it, asked at its end with what was told.
    """
    history = History(plan)
    begin = begun(plan.setting)
    world = World(f"{plan.number}", _pick)
    world.kernel.restore(begin.tree)
    world.objects.stored, world.objects.versions = dict(begin.objects), 10_000
    world.now, world.switches = begin.now, plan.switches
    faults = _Faults(plan, world, history, traced)
    world.on_step, world.objects.loses = faults.on_step, faults.fate
    prepare(world)
    with world.installed(), quiet():
        for name, ops in plan.scripts.items():
            process = world.process(name)
            faults.processes[name] = process
            world.spawn(process, name, lambda name=name, ops=ops: _script(plan, name, ops, world, history))
        with (mutation or _whole)():
            world.run()
        history.calls = world.steps
        if not judged(history):
            return history
        for actor in world.actors:
            if actor.error is not None:
                history.wrong.append(f"{actor.name}: {type(actor.error).__name__}: {actor.error}")
        _afterwards(plan, world, history, faults.left)
        if not plan.faults:
            history.wrong += [
                f"A LIVE WRITER WAS ROLLED BACK: {one.error}" for one in history.steps if _was_undone(one)
            ]
    if not history.wrong:
        lost_power = faults.left is not None
        history.wrong += (explained_around_loss if lost_power else explained)(begin.rows, history.steps)
    return history


def _was_undone(step: Step) -> bool:
    return step.outcome == "refused" and ("rolled it back" in step.error or "taken for failed" in step.error)


class _whole:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def _pick(world: Scheduler, ready: list[Actor]) -> Actor:
    return world.chance.choice(ready)


class _Faults:
    """Lets the faults of a plan happen."""

    def __init__(self, plan: Plan, world: World, history: History, traced: bool) -> None:
        self.world, self.history, self.traced = world, history, traced
        self.processes: dict[str, Process] = {}
        self.left: Folder | None = None
        self._faults = list(plan.faults)
        self._counted: Counter[tuple[str, str]] = Counter()
        self._chance = random.Random(f"{plan.number} faults")
        self._fate = ""

    def on_step(self, actor: Actor, call: Call) -> None:
        """Look whether a fault is due."""
        process = actor.process
        if self.traced:
            self.history.trace.append(f"{self.world.now:10.3f} {actor.name}: {call.name} {call.path}")
        if not self._faults:
            return
        kinds = [name for name, matches in _AMONG.items() if matches(call)]
        for fault in self._faults:
            count = self._counted[process.name, fault.among]
            if fault.process == process.name and fault.among in kinds and count == fault.at:
                self._faults = [one for one in self._faults if one is not fault]
                self.history.met += 1
                if self.traced:
                    self.history.trace.append(f"           {fault}")
                self._happens(fault, process)
        for kind in kinds:
            self._counted[process.name, kind] += 1

    def _happens(self, fault: Fault, process: Process) -> None:
        if fault.kind == "kill":
            self.world.kill(process)
        elif fault.kind == "pause":
            process.paused_until = self.world.now + fault.seconds
        elif fault.kind == "jump" and self.world.objects.stored:
            process.off += fault.seconds
        elif fault.kind == "jump":
            self.world.off += fault.seconds
        elif fault.kind == "power":
            self.left = self.world.kernel.after_loss(self._chance)
            for each in self.processes.values():
                self.world.kill(each)
        else:
            self._fate = fault.kind

    def fate(self, call: Call) -> str:
        """What happens to a request."""
        fate, self._fate = self._fate, ""
        return fate if call.changes or fate == "before" else ""


def is_on_timeline(call: Call) -> bool:
    """Whether a call changes a timeline, or a lock."""
    if not call.changes or ("/.hoodie/" not in call.path and not call.path.startswith("#")):
        return False
    return call.name in ("lock", "unlock") or "/.temp/" not in call.path


def is_completing(call: Call) -> bool:
    """Whether a call makes a write or a service of the table itself visible."""
    folder, _, name = call.path.rpartition("/")
    is_instant = folder.endswith(("t/.hoodie", "t/.hoodie/timeline")) and name[:8].isdigit()
    return is_instant and call.name in ("link", "create") and not name.endswith((".requested", ".inflight"))


_AMONG: dict[str, Callable[[Call], bool]] = {
    "any": lambda _: True,
    "timeline": is_on_timeline,
    "completing": is_completing,
}


def _script(plan: Plan, name: str, ops: tuple[Op, ...], world: World, history: History) -> None:
    for op in ops:
        step = Step(name, op, world.steps)
        history.steps.append(step)
        try:
            _do(plan.setting, op, step)
            step.outcome = "done"
        except Died:
            raise
        except CommitStateUnknownError as error:
            step.outcome, step.error = "unknown", f"{error}"
        except HudiError as error:
            step.outcome, step.error = "refused", f"{type(error).__name__}: {error}"
        finally:
            step.end = world.steps


def _do(setting: Setting, op: Op, step: Step) -> None:
    options = setting.options
    if op.verb == "read":
        step.rows = rows_in(setting.place)
        return
    table = hf.HudiTable.open(setting.place)
    if op.verb in SERVICES:
        SERVICES[op.verb](table.services, options)
    elif op.verb == "increment":
        table.update(pc.field("id").isin(list(op.keys)), {"v": pc.field("v") + 1}, options)
    elif op.verb == "delete":
        table.delete(rows_for(dict.fromkeys(op.keys, 0)).select(["id", "p"]), options)
    else:
        table.write(rows_for(dict.fromkeys(op.keys, op.value)), op.verb, options)


_ONE = {"hoodie.cleaner.fileversions.retained": "1"}
_SOON = {"hoodie.compact.inline.max.delta.commits": "1"}
SERVICES: dict[str, Callable[[Any, dict[str, str]], object]] = {
    "clean": lambda services, options: services.clean({**options, **_ONE}),
    "clean_oldest": lambda services, options: services.clean(options),
    "archive": lambda services, options: services.archive(options),
    "savepoint": lambda services, options: services.savepoint(options=options),
    "pending": lambda services, options: services.run_pending(options),
    "compact": lambda services, options: services.compact({**options, **_SOON}),
    "compact_logs": lambda services, options: services.compact_logs(
        {**options, "hoodie.log.compaction.blocks.threshold": "1"}
    ),
    "cluster": lambda services, options: services.cluster(options),
    "restore": lambda services, options: services.restore(services.savepoints()["instant"].to_pylist()[-1], options),
    "index": lambda services, options: services.index("column_stats", options=options),
}


def _afterwards(plan: Plan, world: World, history: History, left: Folder | None) -> None:
    """A day later: what is there is read, cleaned up, written to, and read again."""
    if left is not None:
        world.kernel.restore(left)
    world.actors, world.on_step, world.off = [], None, 0.0
    world.now += 2 * _DAY
    world.objects.loses = lambda _: ""
    setting = plan.setting
    with world.alone(world.process(LATER)):
        try:
            first = rows_in(setting.place)
            table = hf.HudiTable.open(setting.place)
            table.services.clean(setting.options)
            table.services.run_pending(setting.options)
            table.write(rows_for({"z9": 9}), "upsert", setting.options)
            last = rows_in(setting.place)
        except Exception as error:
            history.wrong.append(f"THE TABLE DOES NOT GO ON: {type(error).__name__}: {error}")
            return
    step = Step(LATER, Op("read"), world.steps, world.steps + 1, "done", first)
    history.steps.append(step)
    if last != {**first, "z9": 9}:
        history.wrong.append(f"ROWS CHANGED AFTERWARDS: {first} became {last}")


def told(history: History) -> Iterator[str]:
    """A history in lines, for whoever looks for the mistake."""
    plan = history.plan
    yield f"{plan.number}: {plan.setting}, {plan.faults}, switches {plan.switches}"
    yield f"begins with {begun(plan.setting).rows}"
    for step in history.steps:
        yield f"{step.process} {step.begin}-{step.end} {step.op}: {step.outcome} {step.rows or ''} {step.error}"
    yield from history.wrong
