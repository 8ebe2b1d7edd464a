"""Writes on a cluster whose processes fail, against a model of the rows.

::

    seed ─► works and faults ─► driver process ─► table ─► rows of the model, before or after an unanswered write
                                    ▲ SIGKILL, SIGSTOP  └─► tidy; the same without the metadata table

Faults: executors, Python workers and drivers are killed; executors and Python workers are stopped and go on later, when
speculation or the network timeout has given their tasks to others; shuffle files are deleted.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

import hudi_fast as hf
from tests.cluster.driver_process import NETWORK_SECONDS, Work
from tests.servers.spark_cluster import SparkCluster, processes_below
from tests.spark.programs import environment_of
from tests.support.small_tables import assert_tidy

__all__ = ["Tally", "run_history"]

FAULTS = ("none", "executor", "python worker", "driver", "stopped executor", "stopped python worker", "shuffle files")
WORKS = 5
LONGEST = 6.0
"""Seconds after the beginning of a write in which a fault may come."""

STOPPED = {"stopped executor": NETWORK_SECONDS + 5.0, "stopped python worker": 5.0}
"""Seconds until a stopped process goes on."""

LATE_SECONDS = 15.0
"""For so long tasks of a write that has ended may be active: they then delete their files."""


@dataclass
class Tally:
    """What happened: number of writes by fault and outcome."""

    counts: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, fault: str, outcome: str) -> None:
        """Count one write."""
        self.counts[fault, outcome] = self.counts.get((fault, outcome), 0) + 1

    def __str__(self) -> str:
        return ", ".join(f"{fault}: {count} {outcome}" for (fault, outcome), count in sorted(self.counts.items()))


class Driver:
    """The driver's process; ends with SIGKILL."""

    def __init__(self, url: str, table: Path) -> None:
        command = [sys.executable, "-m", "tests.cluster.driver_process", url, str(table)]
        pipe = subprocess.PIPE
        self._log = open(table.parent / "driver.log", "ab")
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=self._log, text=True, env=environment_of()
        )
        self.answer()

    def begin(self, work: Work) -> None:
        """Ask for a write; returns when it begins."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asdict(work)) + "\n")
        self._process.stdin.flush()
        assert self.answer() == "begin"

    def answer(self) -> str:
        """The next line; empty once the process has ended."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def kill(self) -> None:
        """End the process and its JVM at once."""
        for each in processes_below(self._process.pid):
            each.send(signal.SIGKILL)
        self._process.kill()
        self._process.communicate()
        self._log.close()


def run_history(cluster: SparkCluster, folder: Path, seed: int, tally: Tally) -> None:
    """Write to one table, with faults, and check it.

    Args:
        cluster: the workers.
        folder: for the table; empty.
        seed: of works and faults.
        tally: is added to.
    """
    rng = random.Random(seed)
    table = folder / "table"
    options = _options(rng)
    rows: dict[int, int] = {}
    driver = Driver(cluster.url, table)
    try:
        for number in range(WORKS + 1):
            work = _work(rng, number, options)
            fault = "none" if number in (0, WORKS) else rng.choice(FAULTS)
            after = applied(rows, work)
            outcome = _do(cluster, driver, work, fault, rng.uniform(0.0, LONGEST))
            tally.add(fault, outcome.split(" ")[0] or "no answer")
            assert outcome or fault == "driver", f"seed {seed}: the driver has ended by itself"
            if not outcome:
                driver = Driver(cluster.url, table)
            assert outcome.startswith("done") or fault != "none", f"seed {seed}: {outcome}"
            found = stored(table)
            if outcome.startswith("done"):
                assert found == after, f"seed {seed}, write {number}, {fault}: {_difference(found, after)}"
            elif found != after:
                assert found == rows, f"seed {seed}, write {number}, {fault}: {_difference(found, rows)}"
            rows = found
    finally:
        driver.kill()
    assert_tidy(table)
    assert hf.HudiTable.open(table).services.validate().ok
    plain = folder / "listed"
    shutil.copytree(table, plain)
    hf.HudiTable.open(plain).services.drop_index("files")
    assert stored(plain) == rows, f"seed {seed}: other rows without the metadata table"


def applied(rows: Mapping[int, int], work: Work) -> dict[int, int]:
    """The model after a write: ordering value by number."""
    after = {**rows, **dict.fromkeys(work.numbers, work.ts)}
    return {number: ts for number, ts in after.items() if not (work.deleted and _is_deleted(number, work))}


def stored(table: Path) -> dict[int, int]:
    """Ordering value by number, of all rows that the table has; each row is checked to be one that was written."""
    if not (table / ".hoodie").exists():
        return {}
    found = hf.HudiTable.open(table).to_arrow(columns=["id", "ts", "value"])
    numbers = np.array([int(text[4:]) for text in found["id"].to_pylist()], dtype=np.int64)
    assert len(np.unique(numbers)) == len(numbers), "a key is there twice"
    times = found["ts"].to_numpy()
    assert pa.array(numbers * 1000 + times).equals(found["value"].combine_chunks()), "a row was never written"
    return dict(zip(numbers.tolist(), times.tolist(), strict=True))


def _do(cluster: SparkCluster, driver: Driver, work: Work, fault: str, seconds: float) -> str:
    driver.begin(work)
    if fault != "none":
        time.sleep(seconds)
    if fault == "driver":
        driver.kill()
        return ""
    if fault == "shuffle files":
        cluster.delete_shuffle_files()
        return driver.answer()
    kind = fault.removeprefix("stopped ")
    victims = {"executor": cluster.executors, "python worker": cluster.python_workers, "none": list}[kind]()
    if not victims:
        return driver.answer()
    victim = random.Random(seconds).choice(victims)
    if fault not in STOPPED:
        victim.send(signal.SIGKILL)
        return driver.answer()
    stopped = [victim, *processes_below(victim.pid)]
    for each in stopped:
        each.send(signal.SIGSTOP)
    until = time.monotonic() + STOPPED[fault]
    goes_on = threading.Timer(STOPPED[fault], lambda: [each.send(signal.SIGCONT) for each in stopped])
    goes_on.start()
    outcome = driver.answer()
    goes_on.join()
    time.sleep(max(0.0, until + LATE_SECONDS - time.monotonic()))
    return outcome


def _is_deleted(number: int, work: Work) -> bool:
    return number in work.numbers and number % work.deleted == 0


def _work(rng: random.Random, number: int, options: Mapping[str, str]) -> Work:
    if number == 0:
        return Work(0, 30_000, 1, 1, 0, {**options, "hoodie.datasource.write.operation": "bulk_insert"})
    plan = rng.choice(["fused", "routed"])
    return Work(
        first=rng.randrange(40_000),
        count=rng.randrange(1000, 30_000),
        step=rng.randint(1, 3),
        ts=number + 1,
        deleted=rng.choice([0, 0, 7]),
        options={**options, "hudi_fast.plan": plan},
    )


def _options(rng: random.Random) -> dict[str, str]:
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": rng.choice(["COPY_ON_WRITE", "MERGE_ON_READ"]),
        "hoodie.index.type": rng.choice(["SIMPLE", "BLOOM"]),
        "hoodie.compact.inline": "false",
        "hoodie.parquet.max.file.size": str(rng.choice([300_000, 120 << 20])),
        "hoodie.parquet.small.file.limit": str(rng.choice([0, 200_000])),
    }


def _difference(found: Mapping[int, int], expected: Mapping[int, int]) -> str:
    missing = sorted(expected.keys() - found.keys())
    more = sorted(found.keys() - expected.keys())
    other = [number for number in expected.keys() & found.keys() if expected[number] != found[number]]
    return (
        f"{len(missing)} rows missing {missing[:3]}, {len(more)} too many {more[:3]}, {len(other)} differ {other[:3]}"
    )
