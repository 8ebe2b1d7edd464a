"""``make soak``: histories of the simulated world by the thousand, in several processes, until time is up.

Run it as ``python -m tests.simulation.soak``. A history that went wrong is told with its family and number, which make
the same history again, with its calls: ``--only FAMILY --seed NUMBER``. The exit code is 1 when something went wrong.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from tests.simulation.histories import FAMILIES, plan_of, run, told

__all__ = ["main"]

_REPORT_SECONDS = 600


@dataclass
class Done:
    """Histories of one driver, or of all.

    Attributes:
        histories: by family.
        calls: of all of them.
        met: faults that happened.
        wrong: what went wrong.
    """

    histories: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    met: int = 0
    wrong: list[str] = field(default_factory=list)


def drive(driver: int, drivers: int, seed: int, count: int, deadline: float) -> Done:
    """Run the histories of one of several drivers; their count is printed now and then."""
    names, done, reported = list(FAMILIES), Done(), time.time()
    for number in range(seed + driver, seed + count, drivers):
        if time.time() > deadline:
            break
        family = names[number // drivers % len(names)]
        history = run(plan_of(family, number))
        done.histories[family] += 1
        done.calls, done.met = done.calls + history.calls, done.met + history.met
        if history.wrong:
            done.wrong.append("\n".join((f"--only {family!r} --seed {number}", *told(history))))
            print(done.wrong[-1], flush=True)
        if time.time() - reported > _REPORT_SECONDS:
            reported = time.time()
            print(f"driver {driver}: {done.histories.total():,} histories, {len(done.wrong)} wrong", flush=True)
    return done


def main() -> int:
    """Run it from a command line."""
    parser = argparse.ArgumentParser(description="Histories of a simulated world, by the thousand.")
    parser.add_argument("--number", type=int, default=100_000, help="how many histories")
    parser.add_argument("--minutes", type=float, default=240, help="end after that time")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**30), help="number of the first history")
    parser.add_argument("--drivers", type=int, default=os.cpu_count() or 2, help="histories at a time")
    parser.add_argument("--only", choices=FAMILIES, help="one history, with its calls: that family, and --seed")
    asked = parser.parse_args()
    if asked.only:
        history = run(plan_of(asked.only, asked.seed), traced=True)
        print("\n".join((*history.trace, *told(history))))
        return 1 if history.wrong else 0
    started = time.time()
    print(f"simulated world, first number {asked.seed}", flush=True)
    with ProcessPoolExecutor(asked.drivers) as drivers:
        jobs = [
            drivers.submit(drive, each, asked.drivers, asked.seed, asked.number, started + 60 * asked.minutes)
            for each in range(asked.drivers)
        ]
        found = [job.result() for job in jobs]
    histories = sum((one.histories for one in found), Counter[str]())
    calls, met, wrong = (sum(one) for one in zip(*((one.calls, one.met, len(one.wrong)) for one in found), strict=True))
    seconds = time.time() - started
    for family, count in histories.items():
        print(f"{count:8} {family}")
    print(
        f"{histories.total()} histories of a simulated world, {calls} calls, {met} faults, {wrong} wrong, "
        f"{seconds / 60:.1f} minutes, {histories.total() / seconds:.1f} a second"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
