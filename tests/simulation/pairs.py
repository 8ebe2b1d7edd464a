"""All orders of pairs: two writers, and a writer beside each service, on small tables.

Run it as ``python -m tests.simulation.pairs``: a line for each pair, and the exit code 1 when something went wrong.
``make soak`` does. A pair that is not complete within its time says so.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

from tests.simulation.histories import Fault, Op, Setting
from tests.simulation.installed import LOCAL, S3
from tests.simulation.scopes import GRAINS, Found, explore

__all__ = ["PAIRS", "Pair", "main"]

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
_SHORT = {COW: "cow", MOR: "mor"}

WRITE = Op("upsert", ("k0",), 7)
SAME_GROUP = Op("upsert", ("k2",), 8)
OTHER_GROUP = Op("upsert", ("k1",), 8)
ASLEEP = (Fault("pause", "A", 0, "completing", 4000.0),)
"""The first one stops between its check of the lock and its completed file, for longer than its lease."""


@dataclass(frozen=True)
class Pair:
    """Two that work at the same time.

    Attributes:
        setting: their table.
        other: what the second one does; the first one upserts a row.
        first: what the first one does.
        faults: what goes wrong, in every order.
    """

    setting: Setting
    other: Op
    first: Op = WRITE
    faults: tuple[Fault, ...] = ()

    @property
    def scripts(self) -> Mapping[str, tuple[Op, ...]]:
        """What each of them does."""
        return {"A": (self.first,), "B": (self.other,)}

    def explored(self, grain: str, seconds: float = float("inf")) -> Found:
        """All orders of its calls."""
        return explore(self.setting, self.scripts, grain=grain, faults=self.faults, seconds=seconds)


_SERVICES = {
    "clean": ((COW, MOR), ""),
    "rollback": ((COW, MOR), "failed write"),
    "compact": ((MOR,), ""),
    "compact_logs": ((MOR,), ""),
    "cluster": ((COW, MOR), ""),
    "archive": ((COW, MOR), ""),
    "savepoint": ((COW, MOR), ""),
    "restore": ((COW, MOR), "savepoint"),
}
"""Services without a metadata table: table types, and what was left on the table."""

_VERBS = {"clean": "clean_oldest", "rollback": "clean_oldest"}
"""A clean rolls failed writes back first. It deletes one file here."""


def _pairs() -> Iterator[tuple[str, Pair]]:
    for kind, short in _SHORT.items():
        for version in ("9", "6"):
            table = Setting(LOCAL, kind, version, metadata=False, retries=0, small=True)
            name = f"{short} {version}"
            yield f"{name}: two writers of a file group", Pair(table, SAME_GROUP)
            if version == "9":
                yield f"{name}: two writers of two file groups", Pair(table, OTHER_GROUP)
                yield f"{name}: two inserts", Pair(table, Op("insert", ("b0",), 8), Op("insert", ("a0",), 7))
                yield f"{name}: a writer and a delete", Pair(table, Op("delete", ("d0",)))
                yield f"{name}: a writer and a reader", Pair(table, Op("read"))
            for service, (kinds, left) in _SERVICES.items():
                if kind in kinds and (version == "9" or service in ("clean", "rollback", "compact", "cluster")):
                    op = Op(_VERBS.get(service, service))
                    yield f"{name}: a writer and {service}", Pair(replace(table, left=left), op)
        indexed = Setting(LOCAL, kind, "9", metadata=True, retries=0, small=True)
        shared = Setting(S3, kind, "9", metadata=False, retries=0, small=True)
        yield f"{short} 9, S3: two writers, one outlives its lease", Pair(shared, SAME_GROUP, faults=ASLEEP)
        yield f"{short} 9, metadata table: two writers of a file group", Pair(indexed, SAME_GROUP)
        yield f"{short} 9, metadata table: a writer and index", Pair(indexed, Op("index"))
        yield f"{short} 9, metadata table: a writer and clean", Pair(indexed, Op("clean_oldest"))


PAIRS = dict(_pairs())
"""Pairs by name."""


def _explored(name: str, grain: str, seconds: float) -> tuple[Found, float]:
    started = time.monotonic()
    return PAIRS[name].explored(grain, seconds), time.monotonic() - started


def main() -> int:
    """Run it from a command line."""
    parser = argparse.ArgumentParser(description="All orders of the calls of two, for each pair.")
    parser.add_argument("--minutes", type=float, default=10, help="for each pair, at most")
    parser.add_argument("--grain", choices=GRAINS, default="timeline", help="which calls are told apart")
    parser.add_argument("--drivers", type=int, default=os.cpu_count() or 2, help="pairs at a time")
    parser.add_argument("--only", default="", help="pairs whose names have this word")
    asked = parser.parse_args()
    names = [name for name in PAIRS if asked.only in name]
    wrong = complete = 0
    print(f"| {'pair':55} | orders | states | ends | complete | wrong | seconds |", flush=True)
    with ProcessPoolExecutor(asked.drivers) as drivers:
        jobs = {name: drivers.submit(_explored, name, asked.grain, 60 * asked.minutes) for name in names}
        for name, job in jobs.items():
            found, seconds = job.result()
            wrong, complete = wrong + len(found.wrong), complete + found.is_complete
            done = "yes" if found.is_complete else "no"
            print(
                f"| {name:55} | {found.orders:6} | {found.states:6} | {found.ends:4} | {done:8} "
                f"| {len(found.wrong):5} | {seconds:7.0f} |",
                flush=True,
            )
            for text in found.wrong[:1]:
                print(text, flush=True)
    print(f"{complete} of {len(names)} pairs complete, {wrong} orders wrong; grain: {asked.grain}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
