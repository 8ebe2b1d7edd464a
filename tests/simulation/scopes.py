"""All orders of the calls of two actors, but for those that differ in calls that commute only.

::

    run ─► at each call: who goes on? ─► the prescribed beginning, then the first who may
        ─► two calls of two actors touch the same file, folder or lock, one changes it, and nothing else orders them:
           the other order has to be tried, too
    until no order is left

This is dynamic partial-order reduction with sleep sets (Flanagan and Godefroid, 2005). A call is a step on a file, the
names in a folder, or a lock. Two calls that make two names in one folder commute; a listing commutes with neither. Who
waits for a lock of the machine cannot go on; requests of a lock in an object store happen at once. A pause is over at
once, and clocks do not jump, unless a fault says so: it is the order that matters here.

Two grains: ``every call``; or ``timeline``, in which a new data file and a listing of its folder commute. Nobody may
look at a data file before the timeline tells of it, and the order of the calls on the timeline is tried. Deleting a
data file commutes with no listing in either grain.

A run that comes to a state in which an earlier run was ends there. The state is what all files hold, and what each
actor was answered so far: the rest follows from it. What the calls of the rest touch is kept with the state, for the
orders to try because of it (stateful reduction: Yang, Chen, Gopalakrishnan and Kirby, 2008).

Orders that leave the same files, and told the same, are judged once.

What must hold after each run are the invariants of Jack Vanlightly's model of Hudi in TLA+ (``hudi.tla``):
``ConsistentRead`` (what was written is read, at its time and later, until something newer is written) and
``NoDuplicateKeysAcrossFiles``; and that the table goes on.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.simulation.histories import Fault, History, Op, Plan, Setting, told
from tests.simulation.histories import run as run_history
from tests.simulation.kernel import shape_of
from tests.simulation.scheduler import Actor, Call, Scheduler

__all__ = ["GRAINS", "Found", "explore", "interrupted_once"]

Touched = tuple[tuple[str, str], ...]
"""What a call touches, and how: it is read, changed, or gets or loses a name."""

Access = tuple[str, Touched]
"""An actor, and what a call of it touches."""

READ, CHANGE, NAME = "read", "change", "name"
GRAINS = ("timeline", "every call")


@dataclass
class Found:
    """What all orders were.

    Attributes:
        orders: runs that differ in more than calls that commute.
        pruned: runs that turned out to be like an earlier one.
        met: runs that came to a state of an earlier one.
        states: choices between calls: states of the table and of its actors.
        ends: different tables and outcomes that were judged.
        calls: of all runs.
        wrong: what went wrong, with the history.
        is_complete: whether no order is left.
    """

    orders: int = 0
    pruned: int = 0
    met: int = 0
    states: int = 0
    ends: int = 0
    calls: int = 0
    wrong: list[str] = field(default_factory=list)
    is_complete: bool = False

    def __str__(self) -> str:
        rest = "" if self.is_complete else ", and there are more"
        figures = f"{self.orders} orders, {self.states} states, {self.ends} ends, {self.calls} calls"
        return f"{figures}, {self.pruned} pruned, {self.met} met{rest}"


@dataclass
class _Node:
    """A state: who may go on, who did, and who has to be tried."""

    enabled: dict[str, Touched]
    asleep: dict[str, Touched]
    chosen: str = ""
    touched: Touched = ()
    to_try: set[str] = field(default_factory=set)
    tried: set[str] = field(default_factory=set)
    state: int | None = None
    """What tells it from others; None where a run ended that is like an earlier one."""
    below: set[Access] = field(default_factory=set)
    """Calls after this state, in all runs so far, but for those that need a call of the other actor after it."""


@dataclass(frozen=True)
class _Known:
    """A state whose orders were all tried, but for those that begin with an actor that was asleep."""

    asleep: frozenset[str]
    below: frozenset[Access]


class _Taken(NamedTuple):
    """A call of a run.

    Attributes:
        name: of its actor.
        touched: by it.
        needed: the last call of each actor that its actor had to wait for, before it came to this call.
        clock: the same, with the calls that this one conflicts with, and itself.
        releases: whether it gives a lock back.
    """

    name: str
    touched: Touched
    needed: dict[str, int]
    clock: dict[str, int]
    releases: bool


def explore(
    setting: Setting,
    scripts: Mapping[str, tuple[Op, ...]],
    limit: int = 100_000,
    mutation: Callable[[], Any] | None = None,
    until_wrong: bool = False,
    grain: str = "every call",
    faults: tuple[Fault, ...] = (),
    seconds: float = float("inf"),
    begin: str = "",
    remembers: bool = True,
) -> Found:
    """Try all orders.

    Args:
        setting: the table.
        scripts: what two actors do.
        limit: runs after which to end.
        mutation: makes a context in which a part of the product is missing.
        until_wrong: whether to end with the first order in which something went wrong.
        grain: which calls commute; see above.
        faults: what goes wrong, in every order.
        seconds: after which to end.
        begin: who goes on at the first choices of the first run, where possible.
        remembers: whether a run ends in a state of an earlier one.
    """
    found, nodes, ends, known = Found(), list[_Node](), set[int](), dict[int, _Known]()
    deadline = time.monotonic() + seconds
    for _ in range(limit):
        if time.monotonic() > deadline:
            break
        order = _Order(nodes, set(scripts), grain, ends, known, begin)
        plan = Plan(0, setting, scripts, faults, switches=1.0)
        history = run_history(plan, mutation=mutation, prepare=order.prepare, judged=order.is_new)
        found.ends = len(ends)
        found.calls += history.calls
        found.states += order.made
        if order.is_pruned:
            found.pruned, found.met = found.pruned + 1, found.met + order.has_met
        else:
            found.orders += 1
            if history.wrong:
                found.wrong.append("\n".join((f"order {order.names()}", *told(history))))
                if until_wrong:
                    return found
        order.note_below()
        while nodes and not (nodes[-1].to_try - nodes[-1].tried):
            over = nodes.pop()
            if remembers and over.state is not None:
                known[over.state] = _Known(frozenset(over.asleep) - over.tried, frozenset(over.below))
        if not nodes:
            found.is_complete = True
            return found
        last = nodes[-1]
        last.asleep.update({name: last.enabled[name] for name in last.tried})
        last.chosen = sorted(last.to_try - last.tried)[0]
        last.tried.add(last.chosen)
    return found


def interrupted_once(
    setting: Setting,
    scripts: Mapping[str, tuple[Op, ...]],
    mutation: Callable[[], Any] | None = None,
    grain: str = "timeline",
    every: int = 1,
) -> Found:
    """Try the orders in which one actor makes its first calls, then the other all of its own, then the first the rest.

    :func:`explore` comes to most of them late, because it changes the last calls first.

    Args:
        setting: the table.
        scripts: what two actors do; their names are single letters.
        mutation: makes a context in which a part of the product is missing.
        grain: which calls are told apart.
        every: after how many calls the next interruption is tried.

    Returns:
        It ends with the first order in which something went wrong.
    """
    found = Found()
    for first, other in itertools.permutations(scripts):
        states = 1
        while not found.wrong:
            begin = first * states + other
            one = explore(setting, scripts, 1, mutation, until_wrong=True, grain=grain, begin=begin)
            found.orders, found.calls = found.orders + one.orders, found.calls + one.calls
            found.states, found.wrong = max(found.states, one.states), one.wrong
            states += every
            if states > one.states:
                break
    found.is_complete = not found.wrong
    return found


class _Order:
    """One run: a chooser that follows the nodes there are and makes new ones."""

    def __init__(
        self,
        nodes: list[_Node],
        actors: set[str],
        grain: str,
        ends: set[int],
        known: Mapping[int, _Known],
        begin: str,
    ) -> None:
        self._nodes, self._actors, self._grain, self._ends, self._at = nodes, actors, grain, ends, 0
        self._known, self._begin = known, begin
        self._answers = dict.fromkeys(sorted(actors), 0)
        self._prefix = len(nodes)
        self._clocks: dict[str, dict[str, int]] = {name: {} for name in actors}
        self._taken: list[_Taken] = []
        self._met: frozenset[Access] = frozenset()
        """What came after the known state at which this run ended."""
        self.made, self.is_pruned, self.has_met = 0, False, False
        self._world: Any = None

    def is_new(self, history: History) -> bool:
        """Whether no earlier run was like this one, or ended like it."""
        if self.is_pruned:
            return False
        world = self._world
        objects = tuple(sorted((name, one.data) for name, one in world.objects.stored.items()))
        end = hash((shape_of(world.kernel.root), objects, _told_by(history), repr(_errors(world))))
        is_new = end not in self._ends
        self._ends.add(end)
        return is_new

    def names(self) -> str:
        """Who went on, state by state."""
        return "".join(node.chosen for node in self._nodes)

    def note_below(self) -> None:
        """Note for each state which calls of this run came after it, and need no call of the other one after it."""
        new = [(at, one) for at, one in enumerate(self._taken) if at >= self._prefix - 1]
        for state, node in enumerate(self._nodes):
            if node.state is not None:
                node.below.update(
                    (one.name, one.touched) for at, one in new if at >= state > _last_of_other(one.name, one.needed)
                )
                node.below.update(one for one in self._met if state > _last_of_other(one[0], self._clocks[one[0]]))

    def prepare(self, world: Any) -> None:
        """Choose in a world."""
        self._world = world
        world.choose, world.asks_always, world.sleeps, world.tick = self.choose, True, False, 0.0

    def choose(self, world: Scheduler, ready: list[Actor]) -> Actor:
        """Pick the next actor."""
        for one in ready:  # what touches nothing happens at once
            if (
                one.process.dead
                or one.name not in self._actors
                or one.next_call is None
                or self._is_free(one.next_call)
            ):
                self._note_answer(one)
                return one
        held = self._world.kernel.holders
        able = {one.name: one for one in ready if not self._waits(one, held)}
        if not able:  # a lock is polled by who holds another: let it fail
            able = {one.name: one for one in ready}
        if self._at == len(self._nodes):
            self._make({name: self._touched(one.next_call) for name, one in able.items()}, world.current)
        node = self._nodes[self._at]
        if node.chosen not in able:
            raise AssertionError(f"not the same run again: {node.chosen} of {sorted(able)} at {self._at}")
        self._take(node, able[node.chosen])
        self._note_answer(able[node.chosen])
        self._at += 1
        return able[node.chosen]

    def _note_answer(self, actor: Actor) -> None:
        """Note what an actor is about to learn: with its calls before, it tells what the actor will do."""
        call = actor.next_call
        if call is not None and actor.name in self._answers:
            before = self._answers[actor.name]
            self._answers[actor.name] = hash((before, call.name, call.path.partition("#")[0], self._answer(call)))

    def _answer(self, call: Call) -> Any:
        """What a call finds."""
        kernel, stored = self._world.kernel, self._world.objects.stored
        if call.path.startswith("#"):
            return call.name == "lock" and int(call.path[1:]) in kernel.holders
        if call.name == "list":
            above = call.path.rstrip("/") + "/"
            there = [*kernel.names(call.path), *(name for name in stored if name.startswith(above))]
            return tuple(sorted(there))
        found = stored.get(call.path)
        return kernel.content(call.path) if found is None else (found.data, found.mark)

    def _state(self) -> int:
        """What tells this state from others: all files, and what each actor knows."""
        world = self._world
        objects = tuple(
            sorted((name, one.data, one.mark, one.modified_ms) for name, one in world.objects.stored.items())
        )
        actors = tuple((one.process.dead, one.process.paused_until, one.ended) for one in world.actors)
        return hash((shape_of(world.kernel.root), objects, world.now, actors, tuple(self._answers.values())))

    def _is_free(self, call: Call) -> bool:
        return call.name in ("wait", "fsync", "mkdir", "exchange") or not self._touched(call)

    def _touched(self, call: Call | None) -> Touched:
        if call is None or "/.locks" in call.path:
            return ()
        path, folder = call.path, call.path.rpartition("/")[0] + "/"
        if call.name in ("lock", "unlock"):
            return ((path, CHANGE),)
        if call.name == "list":
            return ((f"{path}/", READ),)
        if not call.changes:
            return ((path, READ),)
        if call.name == "rmdir":  # it must be empty
            return ((path, CHANGE), (f"{path}/", READ), (folder, NAME))
        if call.name == "written" or (call.name == "create" and self._grain == "timeline" and _is_data(path)):
            return ((path, CHANGE),)
        return ((path, CHANGE), (folder, NAME)) if call.name in ("link", "unlink", "create", "rename") else ()

    def _waits(self, actor: Actor, held: Mapping[int, int]) -> bool:
        call = actor.next_call
        return call is not None and call.name == "lock" and int(call.path[1:]) in held

    def _make(self, enabled: dict[str, Touched], current: Actor | None) -> None:
        asleep: dict[str, Touched] = {}
        if self._nodes:
            before = self._nodes[-1]
            asleep = {
                name: touched
                for name, touched in before.asleep.items()
                if name != before.chosen and not _conflict(touched, before.touched)
            }
        awake = [name for name in enabled if name not in asleep]
        state: int | None = self._state()
        known = self._known.get(state)
        if not awake or (known is not None and known.asleep <= set(asleep)):
            self.is_pruned = True
            if awake and known is not None:
                self.has_met, self._met = True, known.below
                for name, touched in known.below:
                    self._try_before(name, touched)
            for actor in self._world.actors:
                self._world.kill(actor.process)
            awake, state = list(enabled), None
        wanted = current.name if current is not None else ""
        if len(self._nodes) < len(self._begin):
            wanted = self._begin[len(self._nodes)]
        name = wanted if wanted in awake else awake[0]
        self.made += 1
        self._nodes.append(_Node(enabled, asleep, name, tried={name}, state=state))

    def _take(self, node: _Node, actor: Actor) -> None:
        """Note a call, and the orders to try because of it."""
        if node.state is None:
            return
        assert actor.next_call is not None
        name, touched = actor.name, self._touched(actor.next_call)
        self._try_before(name, touched)
        needed = self._clocks[name]
        clock = dict(needed)
        for one in self._taken:
            if one.name != name and _conflict(touched, one.touched):
                for each, value in one.clock.items():
                    clock[each] = max(clock.get(each, -1), value)
        clock[name] = len(self._taken)
        self._clocks[name] = clock
        node.touched = touched
        self._taken.append(_Taken(name, touched, needed, clock, actor.next_call.name == "unlock"))

    def _try_before(self, name: str, touched: Touched) -> None:
        """Let an actor go on before the newest call of the other one that conflicts with a call of it.

        What it had to wait for before that call stays before it, and a lock comes after it was given back.
        """
        needed = self._clocks[name]
        for at in range(len(self._taken) - 1, -1, -1):
            one = self._taken[at]
            if (
                one.name != name
                and needed.get(one.name, -1) < at
                and not one.releases
                and _conflict(touched, one.touched)
            ):
                there = self._nodes[at]
                there.to_try |= {name} if name in there.enabled else set(there.enabled)
                return


def _last_of_other(name: str, clock: Mapping[str, int]) -> int:
    """The last call of the other actor in a clock of this one; -1 if there is none."""
    return max((last for other, last in clock.items() if other != name), default=-1)


def _told_by(history: History) -> Any:
    """What actors were told, and what was over before what began."""
    steps = history.steps
    over = tuple(one.end is not None and one.end < other.begin for one in steps for other in steps)
    rows = tuple(None if one.rows is None else tuple(sorted(one.rows.items())) for one in steps)
    return tuple((one.process, one.outcome, one.error) for one in steps), rows, over


def _errors(world: Any) -> list[BaseException | None]:
    return [actor.error for actor in world.actors]


def _is_data(path: str) -> bool:
    """Whether a file is no part of a timeline, and nothing that writers agree by."""
    return path.rpartition("/")[2].endswith((".parquet", ".hfile")) or ".log." in path


def _conflict(one: Touched, other: Touched) -> bool:
    """Whether two calls do not commute."""
    return any(name == each and _clash(how, how_too) for name, how in one for each, how_too in other)


def _clash(one: str, other: str) -> bool:
    return CHANGE in (one, other) or (one != other and NAME in (one, other))
