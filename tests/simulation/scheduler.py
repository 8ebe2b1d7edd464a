"""Processes whose every step is a choice: one of them at a time runs, and a seed says which.

::

    actor ─ step ─► who is ready? ─► the chooser picks ─► itself: it goes on
                                                     └──► another: that one goes on, this one waits

A *process* has a clock of its own that may be off, may be paused, and may die: then each step of its actors raises
:class:`Died`, so that none of its cleanup happens. An *actor* is a thread of a process. Time is simulated: it passes
with each step, and jumps when all wait.

Actors are greenlets of one thread of the operating system: to wake a thread on a busy machine takes longer than all
that it does until it waits again.
"""

from __future__ import annotations

import contextlib
import random
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from greenlet import getcurrent, greenlet

__all__ = ["Actor", "Call", "Died", "Process", "Scheduler", "StuckError"]

EPOCH = 1_760_000_000.0
"""Wall-clock time at which worlds begin."""

_LONGEST = 64.0
"""Times as long as asked for that a sleep takes at most."""


class Died(BaseException):
    """The process of this thread is gone."""


class StuckError(AssertionError):
    """Nobody can go on."""


@dataclass(slots=True, frozen=True)
class Call:
    """What an actor is about to do.

    Attributes:
        name: of the call, such as ``link`` or ``put``.
        path: of its file; of the folder for a listing.
        changes: whether it changes anything.
    """

    name: str
    path: str
    changes: bool


@dataclass(eq=False)
class Process:
    """A process of the world.

    Attributes:
        name: names it.
        chance: its own random numbers, so that they do not depend on what others do.
        off: seconds by which its wall clock is off.
        paused_until: no actor of it runs before that time.
        dead: whether it has died.
        state: what modules of the product keep for a process: see ``installed``.
        open_files: descriptors that the operating system closes when it dies.
    """

    name: str
    chance: random.Random
    off: float = 0.0
    paused_until: float = 0.0
    dead: bool = False
    steps: int = 0
    state: dict[str, Any] = field(default_factory=dict)
    open_files: set[int] = field(default_factory=set)


class Actor:
    """A thread of a process."""

    def __init__(self, process: Process, name: str, work: Callable[[], object]) -> None:
        self.process, self.name, self.work = process, name, work
        self.fiber: greenlet | None = None
        self.until: float | None = None
        self.wakes: Callable[[], bool] | None = None
        self.ended = False
        self.error: BaseException | None = None
        self.next_call: Call | None = None
        self.slept = 1.0
        self.woke = 0

    def __repr__(self) -> str:
        return self.name


Chooser = Callable[["Scheduler", "list[Actor]"], "Actor"]
"""Picks one of the actors that are ready."""


def _never() -> bool:
    return False


class Scheduler:
    """Runs actors one step at a time.

    Args:
        seed: of the passing of time and of random numbers of the processes.
        choose: picks who goes on.
        on_step: called with each step right before it happens: faults, traces.
    """

    def __init__(self, seed: object, choose: Chooser, on_step: Callable[[Actor, Call], None] | None = None) -> None:
        self.seed = seed
        self.choose = choose
        self.on_step = on_step
        self.chance = random.Random(f"{seed} time")
        self.now = 1000.0
        self.tick = 0.004
        self.actors: list[Actor] = []
        self.current: Actor | None = None
        self.steps = 0
        self.on_switch: Callable[[Process], None] = lambda _: None
        self.on_death: Callable[[Process], None] = lambda _: None
        self.switches = 1.0
        """How often the chooser is asked at a step; otherwise the actor goes on."""
        self.off = 0.0
        """Seconds by which the wall clock of all is off."""
        self.sleeps = True
        """Whether a pause lets others go on; without, it is over at once."""
        self.asks_always = False
        """Whether the chooser is asked even if one actor only is ready."""
        self._home = getcurrent()

    # ---- from outside

    def process(self, name: str) -> Process:
        """A new process."""
        return Process(name, random.Random(f"{self.seed} {name}"))

    def spawn(self, process: Process, name: str, work: Callable[[], object]) -> Actor:
        """A new actor; it is ready."""
        actor = Actor(process, name, work)
        actor.fiber = greenlet(lambda: self._run(actor), self._home)
        self.actors.append(actor)
        return actor

    def run(self) -> None:
        """Run until all actors have ended.

        Raises:
            StuckError: some can never go on.
        """
        try:
            while any(not one.ended for one in self.actors):
                self._give(self._chosen())
        finally:
            for actor in self.actors:
                while not actor.ended:  # nobody chooses any more
                    actor.process.dead = True
                    self._give(actor)
            self.current = None

    @contextlib.contextmanager
    def alone(self, process: Process) -> Iterator[None]:
        """Be a process in this very thread, whose steps are not interrupted."""
        actor = Actor(process, process.name, lambda: None)
        before, self.current = self.current, actor
        self.on_switch(process)
        try:
            yield
        finally:
            actor.ended = True
            self.current = before

    # ---- of actors

    def step(self, call: Call) -> None:
        """Let the chooser decide who goes on, before a call; afterwards it is this actor's turn."""
        actor = self.current
        if actor is None:
            return
        if actor.process.dead:
            raise Died
        if self.actors:
            actor.next_call = call
            if self.switches >= 1 or self.chance.random() < self.switches:
                self._pass_on(actor)
        self.steps += 1
        actor.process.steps += 1
        self.now += self.tick * self.chance.random()
        if self.on_step is not None:
            self.on_step(actor, call)
        if actor.process.dead:
            raise Died
        if actor.process.paused_until > self.now and self.actors:
            self._pass_on(actor)
            if actor.process.dead:
                raise Died

    def wait(self, seconds: float | None, wakes: Callable[[], bool] = _never) -> bool:
        """Wait until something holds or time is over; whether it holds."""
        actor = self.current
        assert actor is not None
        if actor.process.dead:
            raise Died
        if not self.actors or (not self.sleeps and seconds is not None and wakes is _never):  # alone
            if seconds is None and not wakes():
                raise StuckError("waits for ever, and is alone")
            self.now += seconds or 0.0
            return wakes()
        if seconds is not None and wakes is _never:
            seconds = self._sleep(actor, seconds)
        actor.until, actor.wakes = (None if seconds is None else self.now + seconds), wakes
        actor.next_call = Call("wait", "", False)
        self._pass_on(actor)
        actor.until, actor.wakes, actor.next_call = None, None, None
        if actor.process.dead:
            raise Died
        return wakes()

    def _sleep(self, actor: Actor, seconds: float) -> float:
        """Seconds of a sleep: longer each time while nobody else does anything, since the same would be found again."""
        others = self.steps - actor.process.steps
        actor.slept, actor.woke = (min(2 * actor.slept, _LONGEST) if others == actor.woke else 1.0), others
        return seconds * actor.slept

    def kill(self, process: Process) -> None:
        """Let a process die."""
        process.dead = True
        self.on_death(process)

    def is_ready(self, actor: Actor) -> bool:
        """Whether an actor can go on."""
        if actor.ended:
            return False
        if actor.process.dead:
            return True
        if actor.process.paused_until > self.now:
            return False
        if actor.wakes is None:
            return True
        return actor.wakes() or (actor.until is not None and actor.until <= self.now)

    def _run(self, actor: Actor) -> None:
        try:
            if not actor.process.dead:
                actor.work()
        except Died:
            pass
        except BaseException as error:
            actor.error = error
        actor.ended = True

    def _pass_on(self, actor: Actor) -> None:
        chosen = self._chosen()
        if chosen is not actor:
            self._give(chosen)

    def _give(self, actor: Actor) -> None:
        """Let an actor go on; returns when it is the turn of the caller again."""
        if self.current is None or self.current.process is not actor.process:
            self.on_switch(actor.process)
        self.current = actor
        assert actor.fiber is not None
        actor.fiber.switch()

    def _chosen(self) -> Actor:
        while True:
            ready = [one for one in self.actors if self.is_ready(one)]
            if ready:
                return ready[0] if len(ready) == 1 and not self.asks_always else self.choose(self, ready)
            times = [self._earliest(one) for one in self.actors if not one.ended]
            known = [time for time in times if time is not None]
            if not known:
                raise StuckError(f"all wait for ever: {self._where()}")
            self.now = max(self.now, min(known)) + 1e-6

    def _earliest(self, actor: Actor) -> float | None:
        if actor.wakes is not None and not actor.wakes():
            return None if actor.until is None else max(actor.until, actor.process.paused_until)
        return actor.process.paused_until

    def _where(self) -> str:
        told = []
        for one in self.actors:
            frame = None if one.fiber is None else one.fiber.gr_frame
            where = "" if frame is None else "".join(traceback.format_stack(frame)[-6:])
            told.append(f"{one.name}: ended {one.ended}, next {one.next_call}\n{where}")
        return "\n".join(told)
