"""``make soak``: histories by the thousand, in several processes, until there are enough of them or time is up.

::

    SEED, N, MINUTES ─► families of worlds in turn ─► as many drivers as cores, each with writers of its own ─► Tally

Run it as ``python -m concurrency.soak`` with ``tests`` on the path. What went wrong is told with its family and seed,
which make the same world again (``--only``), and its table is left. The exit code is 1 when something went wrong.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.concurrency.campaign import CLOCKS, CRASHES, PAUSES, Tally, campaign, in_processes, in_threads
from tests.concurrency.history import WriterPool
from tests.concurrency.worlds import World, apart, with_late_rows, world_of
from tests.concurrency.writer_process import Nursery
from tests.support.memory import memory_folder

FAMILIES: dict[str, Callable[[int], World]] = {
    "calm": lambda seed: world_of(seed),
    "small": lambda seed: world_of(seed, writers=2, steps=3),
    "crashes": lambda seed: world_of(seed, CRASHES),
    "clocks": lambda seed: world_of(seed, CLOCKS),
    "machines": lambda seed: apart(world_of(seed)),
    "pauses": lambda seed: apart(world_of(seed, PAUSES)),
    "pauses on one machine": lambda seed: world_of(seed, PAUSES),
    "threads": lambda seed: world_of(seed),
    "undoing": lambda seed: world_of(seed, undoing=True),
    "undoing and crashes": lambda seed: world_of(seed, CRASHES, undoing=True),
    "restoring": lambda seed: world_of(seed, restoring=True),
    "restoring and crashes": lambda seed: world_of(seed, CRASHES, restoring=True),
    "late rows": lambda seed: with_late_rows(world_of(seed)),
    "late rows and crashes": lambda seed: with_late_rows(world_of(seed, CRASHES, undoing=True)),
}
_ONE_TURN = 10
_FIRST = 20


def worlds_of(driver: int, drivers: int, seed: int, count: int) -> Iterator[tuple[str, list[World]]]:
    """Lots of worlds of one family, for one of several drivers."""
    names = list(FAMILIES)
    lots = -(-count // _ONE_TURN)
    for lot in range(driver, lots, drivers):
        name = names[lot % len(names)]
        first = seed + lot * _ONE_TURN
        yield name, [FAMILIES[name](each) for each in range(first, first + min(_ONE_TURN, count - lot * _ONE_TURN))]


def drive(driver: int, drivers: int, seed: int, count: int, deadline: float, folder: str) -> list[tuple[str, Tally]]:
    """Run the worlds of one driver."""
    done = []
    with Nursery() as nursery:
        pool = WriterPool(nursery)
        for name, worlds in worlds_of(driver, drivers, seed, count):
            if time.time() > deadline:
                break
            place = Path(folder) / f"{driver}-{worlds[0].seed}"
            place.mkdir()
            tally = campaign(worlds, place, in_threads if name == "threads" else in_processes(pool))
            done.append((name, tally))
            if tally.wrong:
                print(f"family {name}: {tally}", flush=True)
            else:
                shutil.rmtree(place)
        pool.close()
    return done


def main() -> int:
    """Run it from a command line."""
    parser = argparse.ArgumentParser(description="Histories of several writers, by the thousand.")
    parser.add_argument("--number", type=int, default=10_000, help="how many histories")
    parser.add_argument("--minutes", type=float, default=240, help="end after that time")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**30), help="of the first history")
    parser.add_argument("--drivers", type=int, default=os.cpu_count() or 2, help="histories at a time")
    parser.add_argument("--only", choices=FAMILIES, help="one history: that family, and --seed")
    asked = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="soak", dir=memory_folder())
    print(f"seed {asked.seed}, tables below {folder}", flush=True)
    deadline, started = time.time() + asked.minutes * 60, time.time()
    if asked.only:
        with Nursery() as nursery:
            run = in_threads if asked.only == "threads" else in_processes(WriterPool(nursery))
            found = [(asked.only, campaign([FAMILIES[asked.only](asked.seed)], Path(folder), run))]
    else:
        _compile(Path(folder))
        with ProcessPoolExecutor(asked.drivers) as drivers:
            jobs = [
                drivers.submit(drive, number, asked.drivers, asked.seed, asked.number, deadline, folder)
                for number in range(asked.drivers)
            ]
            found = [one for job in jobs for one in job.result()]
    return _report(found, time.time() - started, folder)


def _compile(folder: Path) -> None:
    """Run some histories that do not count: a kernel that is compiled for seconds keeps signs of life back."""
    for name in ("threads", "undoing"):
        place = folder / f"first-{name}"
        place.mkdir()
        campaign([FAMILIES[name](seed) for seed in range(_FIRST)], place, in_threads)
        shutil.rmtree(place)


def _report(found: list[tuple[str, Tally]], seconds: float, folder: str) -> int:
    total = Tally()
    for name in FAMILIES:
        family = Tally()
        for _, tally in filter(lambda one: one[0] == name, found):
            family.merge(tally)
        total.merge(family)
        print(f"{name:22}{family.summary()}")
    print(f"{'all':22}{total.summary()}, {seconds / 60:.1f} minutes")
    if not total.wrong:
        shutil.rmtree(folder)
    return 1 if total.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
