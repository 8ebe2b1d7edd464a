"""The power is cut at every call of an action: the table is as before or as after, and goes on.

::

    a table on the disk ─► the action, once ─ at each call ─► trees that a loss of power may leave, different ones only
                                                           ─► each: read, clean up, write, read
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import hudi_fast as hf
from tests.simulation.histories import Setting, begun, quiet, rows_for, rows_in
from tests.simulation.installed import World
from tests.simulation.kernel import Folder, shape_of
from tests.simulation.scheduler import Actor, Call

__all__ = ["ACTIONS", "Cuts", "cut_everywhere"]

_HOUR = 3600.0

Act = Callable[[hf.HudiTable, dict[str, str]], object]


@dataclass(frozen=True)
class Action:
    """What is cut.

    Attributes:
        act: does it.
        before: makes the table ready for it.
        again: finishes it after a cut, before anything else may be done.
        kinds: table types that have it.
        metadata: whether it needs a metadata table.
    """

    act: Act
    before: Act = lambda _table, _options: None
    again: Act = lambda _table, _options: None
    kinds: tuple[str, ...] = ("COPY_ON_WRITE", "MERGE_ON_READ")
    metadata: bool = False


@dataclass
class Cuts:
    """What cuts were.

    Attributes:
        calls: of the action.
        trees: different trees that were left.
        wrong: what went wrong, with the number of the call and of the loss.
    """

    calls: int = 0
    trees: int = 0
    wrong: list[str] = field(default_factory=list)


def _write(verb: str, rows: Mapping[str, int]) -> Act:
    return lambda table, options: table.write(rows_for(rows), verb, options)


def _overwrite(table: hf.HudiTable, options: dict[str, str]) -> object:
    return hf.write(rows_for({"k0": 7, "k1": 7}), table.path, options, mode="overwrite")


def _newest(table: hf.HudiTable) -> str:
    done = table.history().to_pylist()
    actions = ("commit", "deltacommit")
    return max(one["instant"] for one in done if one["state"] == "COMPLETED" and one["action"] in actions)


def _savepoint_and_write(table: hf.HudiTable, options: dict[str, str]) -> None:
    table.services.savepoint(options=options)
    table.write(rows_for({"k0": 5, "k1": 5}), "upsert", options)


def _restore(table: hf.HudiTable, options: dict[str, str]) -> None:
    for instant in table.services.savepoints()["instant"].to_pylist()[-1:]:
        table.services.restore(instant, options)


ACTIONS: dict[str, Action] = {
    "insert": Action(_write("insert", {"n0": 7, "n1": 7})),
    "upsert": Action(_write("upsert", {"k0": 7, "n1": 7})),
    "bulk_insert": Action(_write("bulk_insert", {"n0": 7})),
    "delete": Action(lambda table, options: table.delete(rows_for({"k0": 0, "d1": 0}).select(["id", "p"]), options)),
    "insert_overwrite": Action(_write("insert_overwrite", {"k0": 7})),
    "delete_partition": Action(lambda table, options: table.delete_partitions(["p1"], options)),
    "overwrite": Action(_overwrite),
    "compact": Action(
        lambda table, options: table.services.compact({**options, "hoodie.compact.inline.max.delta.commits": "1"}),
        kinds=("MERGE_ON_READ",),
    ),
    "compact_logs": Action(
        lambda table, options: table.services.compact_logs({**options, "hoodie.log.compaction.blocks.threshold": "1"}),
        kinds=("MERGE_ON_READ",),
    ),
    "cluster": Action(lambda table, options: table.services.cluster(options)),
    "clean": Action(
        lambda table, options: table.services.clean({**options, "hoodie.cleaner.fileversions.retained": "1"}),
        before=lambda table, options: (
            table.services.compact({**options, "hoodie.compact.inline.max.delta.commits": "1"})
            if "MERGE" in options["hoodie.datasource.write.table.type"]
            else None
        ),
    ),
    "archive": Action(lambda table, options: table.services.archive(options)),
    "rollback": Action(lambda table, options: table.services.rollback(_newest(table), options)),
    "restore": Action(_restore, before=_savepoint_and_write, again=_restore),
    "savepoint": Action(lambda table, options: table.services.savepoint(options=options)),
    "index": Action(lambda table, options: table.services.index("column_stats", options=options), metadata=True),
}
"""Actions by name."""


def cut_everywhere(
    name: str, setting: Setting, seed: int = 0, losses: int = 2, limit: int | None = None, without_sync: bool = False
) -> Cuts:
    """Cut the power at every call of an action.

    Args:
        name: of the action.
        setting: the table; local.
        seed: of what is lost.
        losses: at each call.
        limit: trees to look at; None for all.
        without_sync: whether the action does without syncing its files.
    """
    action, found, begin = ACTIONS[name], Cuts(), begun(setting)
    options = {**setting.options, **({"hudi_fast.fsync": "false"} if without_sync else {})}
    world = World(f"power {seed}", lambda _, ready: ready[0])
    world.kernel.restore(begin.tree)
    world.now = begin.now
    chance = random.Random(f"{name} {setting} {seed}")
    left: dict[Any, tuple[Folder, str]] = {}

    def cut(_: Actor | None, call: Call) -> None:
        found.calls += 1
        if call.changes:
            for _ in range(losses):
                tree = world.kernel.after_loss(chance)
                left.setdefault(shape_of(tree), (tree, f"call {found.calls}, {call.name} {call.path}"))

    with world.installed(), quiet():
        with world.alone(world.process("before")):
            action.before(hf.HudiTable.open(setting.place), setting.options)
            world.kernel.restore(world.kernel.saved())
            world.now += _HOUR
            before = rows_in(setting.place)
        with world.alone(world.process("act")):
            world.on_step = cut
            action.act(hf.HudiTable.open(setting.place), options)
            world.on_step = None
        with world.alone(world.process("reader")):
            after = rows_in(setting.place)
        trees = list(left.values())
        if limit is not None:
            trees = chance.sample(trees, min(limit, len(trees)))
        ended = [(world.kernel.after_loss(chance), "after its end") for _ in range(3 * losses)]
        for tree, where in [*trees, *ended]:
            found.trees += 1
            world.kernel.restore(tree)
            allowed = [after] if where == "after its end" else [before, after]
            with world.alone(world.process(f"later {found.trees}")):
                trouble = _goes_on(world, setting, action, allowed, after)
            if trouble:
                found.wrong.append(f"{name} of {setting}, {where}: {trouble}")
    return found


def _goes_on(
    world: World, setting: Setting, action: Action, allowed: list[dict[str, int]], after: dict[str, int]
) -> str:
    world.now += _HOUR
    options = setting.options
    try:
        first = rows_in(setting.place)
        if first not in allowed:
            return f"rows are {first}, expected {' or '.join(map(str, allowed))}"
        table = hf.HudiTable.open(setting.place)
        action.again(table, options)
        first = rows_in(setting.place) if first != after else first
        table.services.clean(options)
        table.services.run_pending(options)
        table.write(rows_for({"z9": 9}), "upsert", options)
        last = rows_in(setting.place)
    except Exception as error:
        return f"the table does not go on: {type(error).__name__}: {error}"
    expected = [{**rows, "z9": 9} for rows in (first, after)]  # what was planned, such as a rollback, is finished
    return "" if last in expected else f"rows {first} became {last}"
