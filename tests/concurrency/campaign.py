"""Many histories, one after the other: what they found, and how many of what.

::

    seeds ─► world ─► run ─► check ─► Tally: histories, kills, faults, conflicts, and for each that went wrong its seed
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.concurrency.checker import check
from tests.concurrency.history import Done, History, WriterPool, run_in_processes, run_in_threads
from tests.concurrency.site import Site
from tests.concurrency.worlds import World

__all__ = ["CLOCKS", "CRASHES", "PAUSES", "Tally", "campaign", "in_processes", "in_threads"]

CRASHES = ("kill", "kill", "before", "after", "tear")
PAUSES = ("stop", "kill")
CLOCKS = ("skew", "step_back", "kill")

Run = Callable[[World, Path], History]
"""Runs a world whose table, and what is beside it, may be in a folder."""


@dataclass(slots=True)
class Tally:
    """What histories were.

    Attributes:
        histories: how many.
        killed: writers that died.
        faults: faults that were planned; not all of them are met.
        conflicts: operations that were refused because of another writer.
        duplicates: keys that two inserts put there, where the index admits that.
        outcomes: operations by verb and outcome.
        seconds: of the writers at work.
        wrong: by seed, what went wrong.
    """

    histories: int = 0
    killed: int = 0
    faults: int = 0
    conflicts: int = 0
    duplicates: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    wrong: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def add(self, history: History) -> None:
        """Judge a history and count it."""
        verdict = check(history)
        self.histories += 1
        self.killed += history.killed
        self.faults += len(history.world.faults)
        self.conflicts += verdict.conflicts
        self.duplicates += verdict.duplicates
        self.outcomes += verdict.outcomes
        self.seconds += history.seconds
        if verdict.wrong:
            self.wrong[history.world.seed] = verdict.wrong

    def merge(self, other: Tally) -> None:
        """Count those of another one, too."""
        self.histories += other.histories
        self.killed += other.killed
        self.faults += other.faults
        self.conflicts += other.conflicts
        self.duplicates += other.duplicates
        self.outcomes += other.outcomes
        self.seconds += other.seconds
        self.wrong |= other.wrong

    def summary(self) -> str:
        """All figures on a line."""
        operations = sum(self.outcomes.values())
        landed = sum(count for name, count in self.outcomes.items() if name.endswith(" landed"))
        unknown = sum(count for name, count in self.outcomes.items() if name.endswith(" unknown"))
        return (
            f"{self.histories} histories, {operations} operations, {landed} writes landed, {self.conflicts} conflicts, "
            f"{self.faults} faults planned, {self.killed} writers killed, {unknown} outcomes unknown, "
            f"{len(self.wrong)} histories wrong"
        )

    def __str__(self) -> str:
        lines = [self.summary()]
        for seed, wrong in self.wrong.items():
            lines += [f"seed {seed}: {one}" for one in wrong]
        return "\n".join(lines)


def in_processes(
    pool: WriterPool,
    mutations: tuple[str, ...] = (),
    site: Callable[[Path], Site] = Site.on_disk,
    beside: Callable[[str], list[Done]] = lambda _: [],
) -> Run:
    """Histories whose writers are processes.

    Args:
        pool: where writers come from.
        mutations: parts of the product that they do without.
        site: the place of a table, given a folder for what is beside it.
        beside: what happens meanwhile.
    """
    return lambda world, folder: run_in_processes(world, site(folder), pool, mutations, beside)


def in_threads(world: World, folder: Path) -> History:
    """Histories whose writers are threads."""
    return run_in_threads(world, Site.on_disk(folder))


def campaign(
    worlds: Iterable[World], folder: Path, run: Run, enough: Callable[[Tally], bool] = lambda _: False
) -> Tally:
    """Run worlds.

    Args:
        worlds: one after the other.
        folder: for their tables; what went wrong is left there, by seed.
        run: how.
        enough: asked after each whether to end.
    """
    tally = Tally()
    for world in worlds:
        place = folder / str(world.seed)
        place.mkdir()
        tally.add(run(world, place))
        if world.seed not in tally.wrong:
            shutil.rmtree(place)
        if enough(tally):
            break
    return tally
