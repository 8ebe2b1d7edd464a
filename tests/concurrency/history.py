"""Histories: a world is run, and what its writers told is put together.

::

    World ─► table with its first rows ─► writers, processes or threads, at once ─► events ─► recovery ─► History
                                                                                                  └─► checker

Recovery is what comes after the last writer: signs of life run out (files are made old, nobody waits), a restore that
died is finished, a clean rolls back what died, and what waits on the timeline is carried out.
"""

from __future__ import annotations

import json
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hudi_fast as hf
from hudi_fast.timeline.instants import WRITE_ACTIONS, Instant, parse_instant_file
from hudi_fast.view.table_state import load_state
from tests.concurrency.faults import WitnessStorage
from tests.concurrency.script import Event, Teller, rows_seen, run_first, run_script
from tests.concurrency.site import Site
from tests.concurrency.worlds import Op, World, rows_for, world_to_json
from tests.concurrency.writer_process import Nursery, WriterLink, resume_when_stopped

__all__ = ["FIRST", "Attempt", "Done", "History", "WriterPool", "history_of", "run_in_processes", "run_in_threads"]

FIRST = -1
"""Number of the writer that made the table."""

RECOVERY = -2
"""Number of the writer that comes after all others."""


@dataclass(slots=True)
class Attempt:
    """An instant that an operation put on the timeline.

    Attributes:
        instant: as it was requested.
        pinned: when its requested file was about to be made: it saw what was visible then.
        tried: when its completed file was about to be made; None when it did not come so far.
        published: when that call had returned; None when it did not.
        completion: the completion time that it was to have; "" before table version 8.
        foreign: whether another program made it, of which nobody knows when it looked at the table.
        ended: when its signs of life were taken away; None when they were not, or there were none.
        is_withdrawn: whether its requested file was deleted by who had made it: nothing of it was left.
    """

    instant: Instant
    pinned: int
    tried: int | None = None
    published: int | None = None
    completion: str = ""
    foreign: bool = False
    ended: int | None = None
    is_withdrawn: bool = False

    @property
    def is_write(self) -> bool:
        """Whether it is a write, and not the rollback of one."""
        return self.instant.action in WRITE_ACTIONS


@dataclass(slots=True)
class Done:
    """What became of an operation.

    Attributes:
        writer: number of the writer; :data:`FIRST` for the table's maker.
        number: of the operation.
        op: the operation.
        begin: monotonic nanoseconds.
        end: likewise; None when the writer was killed in its midst.
        outcome: see ``script``; ``unknown`` when it was killed.
        instant: what it was told to have written.
        error: the error, as text.
        rows: what it read.
        attempts: what it put on the timeline, in order.
        taken: completed writes that it took off the timeline: requested time, when it was about to, when it had.
    """

    writer: int
    number: int
    op: Op
    begin: int
    end: int | None = None
    outcome: str = "unknown"
    instant: str = ""
    error: str = ""
    rows: list[list[Any]] | None = None
    attempts: list[Attempt] = field(default_factory=list)
    taken: list[tuple[str, int, int]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """How messages name it."""
        return f"writer {self.writer} op {self.number} {self.op.verb} {','.join(self.op.keys) or self.op.partition}"


@dataclass(slots=True)
class History:
    """What happened in a world.

    Attributes:
        world: the world.
        site: where the table is that is left.
        done: operations that began.
        before_recovery: rows that a reader saw when the last writer had ended.
        warning: what that reader was warned of.
        recovery: what recovery did.
        killed: writers that died.
        seconds: from the first operation to the last.
    """

    world: World
    site: Site
    done: list[Done]
    before_recovery: list[list[Any]]
    warning: str
    recovery: Done
    killed: int
    seconds: float

    @property
    def table(self) -> str:
        """Address of the table."""
        return self.site.address


class WriterPool:
    """Writers that wait for work, as many as a world needs; those that were killed are replaced."""

    def __init__(self, nursery: Nursery) -> None:
        self._nursery = nursery
        self._idle: list[WriterLink] = []

    def take(self, count: int) -> list[WriterLink]:
        """So many writers."""
        return [self._idle.pop() if self._idle else self._nursery.writer() for _ in range(count)]

    def give_back(self, writers: Sequence[WriterLink]) -> None:
        """They live and have nothing to do."""
        self._idle.extend(writers)

    def close(self) -> None:
        """Let all of them end."""
        for writer in self._idle:
            writer.close()
        self._idle.clear()


def run_in_processes(
    world: World,
    site: Site,
    pool: WriterPool,
    mutations: tuple[str, ...] = (),
    beside: Callable[[str], list[Done]] = lambda _: [],
) -> History:
    """Run a world whose writers are processes.

    Args:
        world: the world.
        site: a place without a table.
        pool: where writers come from.
        mutations: parts of the product that its writers do without.
        beside: does what a writer of another program does to the table meanwhile, and says what that was.
    """
    first = list[Event]()
    run_first(world, site, first.append)
    count = len(world.scripts)
    files = [site.folder / f"events{number}" for number in range(count)]
    writers = pool.take(count)
    started, ended = time.monotonic(), threading.Event()
    for number, writer in enumerate(writers):
        job = {"world": world_to_json(world), "writer": number, "site": site.to_json(), "mutations": list(mutations)}
        writer.send({**job, "events": str(files[number])})
    stops = [
        max((one.ms for one in world.faults if (one.kind, one.writer) == ("stop", n)), default=0) for n in range(count)
    ]
    if any(stops):
        threading.Thread(target=resume_when_stopped, args=(writers, stops, ended), daemon=True).start()
    others = beside(site.address)
    alive = [writer for writer in writers if _finished(writer)]
    ended.set()
    seconds = time.monotonic() - started
    pool.give_back(alive)
    events = [_read_events(path) for path in files]
    return history_of(world, site, first, events, count - len(alive), seconds, others)


def run_in_threads(world: World, site: Site) -> History:
    """Run a world whose writers are threads of this process; a kill is an error of all that a writer does then."""
    first = list[Event]()
    run_first(world, site, first.append)
    events: list[list[Event]] = [[] for _ in world.scripts]
    threads = [
        threading.Thread(target=run_script, args=(world, number, site, events[number].append, False))
        for number in range(len(world.scripts))
    ]
    started = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    killed = sum(any(one.kind == "kill" and one.writer == n for one in world.faults) for n in range(len(threads)))
    return history_of(world, site, first, events, killed, time.monotonic() - started)


def _finished(writer: WriterLink) -> bool:
    if writer.wait():
        return True
    writer.close()
    return False


def _read_events(path: Path) -> list[Event]:
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith(b"]")]


def history_of(
    world: World,
    site: Site,
    first: list[Event],
    events: list[list[Event]],
    killed: int = 0,
    seconds: float = 0.0,
    others: Sequence[Done] = (),
) -> History:
    """Put together what writers told, have recovery done, and read the table before it.

    Args:
        world: the world.
        site: where the table is.
        first: events of the table's maker.
        events: of each writer, in the order of their scripts.
        killed: writers that died.
        seconds: from the first operation to the last.
        others: operations of another program.
    """
    scripts = {FIRST: world.openings}
    scripts |= dict(enumerate(world.scripts))
    done = _put_together(FIRST, scripts[FIRST], first)
    for number, told in enumerate(events):
        done += _put_together(number, scripts[number], told)
    done += others
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        seen = rows_seen(site.table().to_arrow(columns=["id", "v"]))
    warning = "; ".join(str(one.message) for one in warned)
    return History(world, site, done, seen, warning, _recover(world, site), killed, seconds)


def _put_together(writer: int, script: Sequence[Op], events: list[Event]) -> list[Done]:
    done: list[Done] = []
    for event in events:
        if event[0] == "begin":
            done.append(Done(writer, event[1], script[event[1]], event[2]))
        elif event[0] == "made":
            _note_file(done[-1], *event[2:])
        elif event[0] == "deleted":
            _note_deleted(done[-1], *event[2:])
        elif event[0] == "end":
            _, _, done[-1].end, done[-1].outcome, done[-1].instant, done[-1].error, done[-1].rows = event
    return done


def _note_file(done: Done, file: str, begun: int, ended: int, sure: bool) -> None:
    instant = parse_instant_file(file, 2)
    if instant is None:
        return
    if file.endswith(".requested"):
        if not sure:
            done.attempts.append(Attempt(instant, begun))
    elif instant.is_completed:
        for attempt in done.attempts:
            if attempt.instant.requested == instant.requested:
                attempt.tried, attempt.completion = begun, instant.completion or ""
                attempt.published = ended if sure else attempt.published


def _note_deleted(done: Done, file: str, begun: int, ended: int, sure: bool) -> None:
    for attempt in done.attempts:
        if attempt.instant.requested == file:
            attempt.ended = begun
        attempt.is_withdrawn |= file.startswith(attempt.instant.requested) and file.endswith(".requested")
    instant = parse_instant_file(file, 2)
    if instant is not None and instant.is_completed and instant.action in WRITE_ACTIONS:
        done.taken.append((instant.requested, begun, ended if sure else begun))


def _recover(world: World, site: Site) -> Done:
    """Finish what the writers left; what went wrong is its error."""
    site.end_signs_of_life()
    events = list[Event]()
    teller, options = Teller(events.append), world.options_alone
    storage = WitnessStorage(site.address, site.options, teller.timeline)
    teller.begin(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if load_state(storage).timeline.pending_restore is not None:
                hf.HudiTable(storage).services.run_pending(options)
            services = hf.HudiTable(storage).services
            services.clean(options)
            services.run_pending(options)
            if world.faults:  # markers of who died after its commit go at the next write: one that finds nothing to do
                nobody = rows_for(("none0",), 0, world.partitions).select(["id", "p"])
                hf.HudiTable(storage).delete(nobody, options)
        teller.end("served")
    except Exception as error:
        teller.end("refused", error=f"{type(error).__name__}: {error}")
    (done,) = _put_together(RECOVERY, (Op("pending"),), events)
    return done
