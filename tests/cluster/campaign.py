"""Writes on a cluster whose processes fail, against a model of the rows.

::

    seed ─► works and faults ─► driver ─► table ─► rows of the model; after a kill, those before or after the write
                                  ▲ SIGKILL, SIGSTOP                └─► archive, list folders, rebuild: the same rows

Faults: the driver's Python process is killed at a stage of its write, and the application lives on with its tasks; or
its JVM is killed, too. Executors and Python workers are killed at any time, or when the first data file is begun; or
they are stopped and go on when the write has ended without them. Executors are decommissioned. Shuffle files are
deleted.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

import hudi_fast as hf
from tests.cluster.application import NETWORK_SECONDS
from tests.cluster.driver_process import Work, is_visible_at
from tests.cluster.processes import Application, Driver
from tests.servers.spark_cluster import Process, processes_below
from tests.support.small_tables import assert_tidy

__all__ = ["FAULTS", "STAGES", "Tally", "run_history"]

STAGES = ("begun", "mid-file", "answered", "reconciled", "metadata", "recorded", "completed", "cleaning")
"""Stages of a write at which its driver is killed. ``mid-file``: a task has begun a data file. ``rolling back`` is
another one; it needs a failed write before it."""

_WEIGHTS = {
    **{f"driver: {stage}": 5 for stage in (*STAGES, "rolling back")},
    "driver: mid-file": 15,
    **{f"application: {stage}": 1 for stage in ("mid-file", "metadata", "recorded")},
    "executor: mid-file": 8,
    "executor": 4,
    "python worker: mid-file": 14,
    "python worker": 8,
    "stopped executor": 1,
    "decommissioned executor: mid-file": 4,
    "decommissioned executor": 2,
    "stopped python worker": 6,
    "shuffle files": 5,
}
FAULTS = tuple(_WEIGHTS)
"""What may happen to a write."""

_WRITES = 12
"""Writes with a fault to one table."""
_ROWS = 12_000
_STOPPED_SECONDS = {"stopped executor": NETWORK_SECONDS + 12.0, "stopped python worker": 12.0}
"""A stopped process goes on when the write has ended, but no later than this."""
_STAGE_SECONDS = 120.0
_LATE_SECONDS = 30.0
"""For so long tasks of writes that have ended may be active: they then delete their files."""


@dataclass
class Tally:
    """What happened: number of writes by fault and outcome, and how long writes take."""

    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    seconds: float = 4.0

    def add(self, fault: str, outcome: str) -> None:
        """Count one write."""
        self.counts[fault, outcome] = self.counts.get((fault, outcome), 0) + 1

    @property
    def faulted(self) -> int:
        """Number of writes that were under way when their fault came."""
        return sum(count for (fault, what), count in self.counts.items() if fault != "none" and what != "missed")

    def __str__(self) -> str:
        each = [f"{fault}: {count} {outcome}" for (fault, outcome), count in sorted(self.counts.items())]
        return f"{self.faulted} faulted writes ({', '.join(each)})"


def run_history(
    application: Application,
    folder: Path,
    seed: int,
    tally: Tally,
    faults: Sequence[str] = (),
    among: Sequence[str] = FAULTS,
) -> None:
    """Write to one table, with faults, and check it.

    Args:
        application: writes.
        folder: for the table; empty.
        seed: of works and faults.
        tally: is added to.
        faults: of the writes, in order; chosen by the seed if there are none.
        among: the faults to choose from.
    """
    rng = random.Random(seed)
    table = folder / "table"
    options = _options(rng)
    chosen = [*faults] or rng.choices(among, [_WEIGHTS[fault] for fault in among], k=_WRITES)
    rows: dict[int, int] = {}
    for number, fault in enumerate(["none", *chosen, "none"]):
        work = _work(rng, number, table, options, fault)
        after = applied(rows, work)
        outcome, known = _do(application, work, fault, rng, tally)
        where = f"seed {seed}, write {number}, {fault}, {outcome}"
        tally.add(fault, outcome.split(" ")[0])
        assert outcome.startswith("done") or fault != "none", where
        found = stored(table)
        if known is not None:
            assert found == (after if known else rows), f"{where}: {_difference(found, after if known else rows)}"
        elif found != after:
            assert found == rows, f"{where}: {_difference(found, rows)}"
        rows = found
    _await_tidy(table)
    _check_in_other_ways(table, rows, f"seed {seed}")


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


# ---- faults


def _do(application: Application, work: Work, fault: str, rng: random.Random, tally: Tally) -> tuple[str, bool | None]:
    """Write with a fault; returns the outcome, and whether the rows must be visible (None: they may be)."""
    driver = application.driver
    driver.begin(work)
    started = time.monotonic()
    if fault == "none":
        outcome = driver.answer()
        tally.seconds = time.monotonic() - started
        return outcome, True
    who, _, stage = fault.partition(": ")
    if not _await_moment(application, work, fault, rng.uniform(0.0, tally.seconds)):
        outcome = driver.answer()
        assert outcome.startswith("done"), outcome
        return f"missed {outcome}", True
    if who in ("driver", "application"):
        (application.new_driver if who == "driver" else application.restart)()
        return "killed", is_visible_at(stage)
    outcome = _harm(application, who, driver, rng)
    return outcome, True if "done" in outcome else None


def _await_moment(application: Application, work: Work, fault: str, seconds: float) -> bool:
    """Wait until the fault may come; False if the write ended before."""
    driver, begun = application.driver, time.time()
    if work.stage:
        return driver.reaches_stage()
    if fault == "shuffle files":
        return driver.wait(_STAGE_SECONDS, lambda: bool(application.cluster.shuffle_files(begun)))
    if fault.endswith(": mid-file"):
        return driver.wait(_STAGE_SECONDS, lambda: _has_begun_a_file(Path(work.table), begun))
    return not driver.has_answer(seconds)


def _has_begun_a_file(table: Path, since: float) -> bool:
    """Whether a task has announced a data file since a time, in seconds since 1970."""
    try:
        return any(marker.stat().st_mtime >= since for marker in table.glob(".hoodie/.temp/*/**/*.marker.*"))
    except OSError:  # a folder was deleted meanwhile
        return False


def _harm(application: Application, who: str, driver: Driver, rng: random.Random) -> str:
    """Let the fault come to a process of the cluster; returns the write's answer."""
    cluster = application.cluster
    if who == "shuffle files":
        for file in cluster.shuffle_files(0.0):
            file.unlink(missing_ok=True)
        return driver.answer()
    victims = cluster.executors() if who.endswith("executor") else cluster.python_workers()
    if not victims:
        return f"missed {driver.answer()}"
    victim = rng.choice(victims)
    if who not in _STOPPED_SECONDS:
        # At SIGPWR an executor takes no more tasks, copies its shuffle files to another one, and ends.
        victim.send(signal.SIGPWR if who.startswith("decommissioned") else signal.SIGKILL)
        return driver.answer()
    stopped = [victim, *processes_below(victim.pid)]
    _signal(stopped, signal.SIGSTOP)
    driver.has_answer(_STOPPED_SECONDS[who])
    if rng.random() < 0.5:  # else it goes on while the next write begins
        time.sleep(rng.uniform(0.0, 0.5))
    _signal(stopped, signal.SIGCONT)
    return driver.answer()


def _signal(processes: Sequence[Process], number: signal.Signals) -> None:
    for each in processes:
        each.send(number)


# ---- works and checks


def _is_deleted(number: int, work: Work) -> bool:
    return number in work.numbers and number % work.deleted == 0


def _work(rng: random.Random, number: int, table: Path, options: Mapping[str, str], fault: str) -> Work:
    """The first work fills the table; each work's ordering value is higher than those before."""
    who, _, stage = fault.partition(": ")
    stops_at = stage if who in ("driver", "application") and stage != "mid-file" else ""
    if number == 0:
        first = {**options, "hoodie.datasource.write.operation": "bulk_insert"}
        return Work(str(table), 0, _ROWS, 1, 1, 0, first)
    plans = ["routed"] if "RECORD" in options["hoodie.index.type"] else ["fused", "routed"]
    plan = rng.choice(plans if fault == "shuffle files" else ["auto", *plans])
    return Work(
        table=str(table),
        first=rng.randrange(_ROWS),
        count=rng.randrange(300, _ROWS // 2),
        step=rng.randint(1, 3),
        ts=number + 1,
        deleted=rng.choice([0, 0, 7]),
        options={**options, "hudi_fast.plan": plan},
        stage=stops_at,
    )


def _options(rng: random.Random) -> dict[str, str]:
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": rng.choice(["COPY_ON_WRITE", "MERGE_ON_READ"]),
        "hoodie.index.type": rng.choice(["SIMPLE", "BLOOM", "SIMPLE", "BLOOM", "GLOBAL_RECORD_LEVEL_INDEX"]),
        "hoodie.index.bloom.num_entries": "2000",
        "hoodie.compact.inline": rng.choice(["false", "true"]),
        "hoodie.compact.inline.max.delta.commits": "4",
        "hoodie.clean.commits.retained": "2",
        "hoodie.keep.min.commits": "4",
        "hoodie.keep.max.commits": rng.choice(["6", "30"]),
        "hoodie.parquet.max.file.size": str(rng.choice([200_000, 120 << 20])),
        "hoodie.parquet.small.file.limit": str(rng.choice([0, 100_000])),
    }


def _await_tidy(table: Path) -> None:
    """Check that nothing is left over, once tasks of writes that have ended are gone, too."""
    deadline = time.monotonic() + _LATE_SECONDS
    while True:
        try:
            assert_tidy(table)
        except (AssertionError, OSError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
        else:
            return


def _check_in_other_ways(table: Path, rows: Mapping[int, int], where: str) -> None:
    """The same rows after archiving, without the metadata table, and after a write that builds it from folders."""
    assert hf.HudiTable.open(table).services.validate().ok, where
    hf.HudiTable.open(table).services.archive(
        {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    )
    found = stored(table)
    assert found == rows, f"{where}, archived: {_difference(found, rows)}"
    hf.HudiTable.open(table).services.drop_index("files")
    found = stored(table)
    assert found == rows, f"{where}, without the metadata table: {_difference(found, rows)}"
    more = pa.table(
        {
            "id": ["key-999999999999"],
            "part": ["p0"],
            "ts": [1],
            "value": [999_999_999_999_001],
            "text": ["more"],
            "_hoodie_is_deleted": [False],
        }
    )
    hf.HudiTable.open(table).upsert(more, {"hoodie.datasource.write.precombine.field": "ts"})
    found = stored(table)
    assert found == {**rows, 999_999_999_999: 1}, f"{where}, built again: {_difference(found, rows)}"
    assert hf.HudiTable.open(table).services.validate().ok, where
    assert_tidy(table)


def _difference(found: Mapping[int, int], expected: Mapping[int, int]) -> str:
    missing = sorted(expected.keys() - found.keys())
    more = sorted(found.keys() - expected.keys())
    other = [number for number in expected.keys() & found.keys() if expected[number] != found[number]]
    return (
        f"{len(missing)} rows missing {missing[:3]}, {len(more)} too many {more[:3]}, {len(other)} differ {other[:3]}"
    )
