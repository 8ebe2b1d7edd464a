"""What all sides share: the work to do, its options, and how a run is timed.

Data flow of one run: the table to start from is copied, the peak memory counters of all processes are set back, the
write is timed from Parquet input to completed instant, the peaks are added up. The copy that the last run wrote stays,
for its rows to be compared. A compaction or clustering goes the same way. A read needs no copy: all columns are read
and thrown away; the rows are read once more, not timed, and kept as Parquet for the comparison. So does an incremental
read: of what all commits but the first one wrote.

Standard library only: the interpreter of real Hudi's virtual environment imports it too.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "CLUSTER_OPTIONS",
    "COMPACT_OPTIONS",
    "SPARK_SETTINGS",
    "Run",
    "Verbs",
    "Work",
    "parse_work",
    "process_tree",
    "timed",
    "write_options",
]

# One input file is one task, so that a bulk insert makes one file group of each.
SPARK_SETTINGS = {
    "spark.sql.files.openCostInBytes": str(128 << 20),
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    "spark.driver.memory": "8g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
OPERATIONS = ("bulk_insert", "cluster", "compact", "delete", "incremental", "insert", "read", "upsert")
READS = ("incremental", "read")
SERVICES = ("cluster", "compact")
# One commit is enough: by default compaction waits for five, and clustering for four.
COMPACT_OPTIONS = {"hoodie.compact.inline.max.delta.commits": "1"}
CLUSTER_OPTIONS = {"hoodie.clustering.inline.max.commits": "1", "hoodie.clustering.async.max.commits": "1"}


@dataclass(frozen=True, slots=True)
class Work:
    """One thing to measure.

    Attributes:
        operation: ``bulk_insert``, ``delete``, ``insert``, ``upsert``, ``read``, ``incremental``, ``compact`` or
            ``cluster``.
        rows: folder of Parquet files to write; None to read, compact or cluster.
        start: table to start from, copied for each run that changes it; None for a new table.
        out: folder for the table, which holds what the last run wrote; of a read, for the rows.
        codec: Parquet codec, or ``default`` for the side's own.
        table_type: ``COPY_ON_WRITE`` or ``MERGE_ON_READ``.
        index: ``hoodie.index.type``, or ``default`` for the side's own; a record index is kept as well.
        metadata: ``true`` or ``false``: whether a metadata table is kept.
        sort: columns that a clustering sorts by, comma between; empty for none.
        runs: how often it is timed.
        warm_rows: small input that is written by the same operation once before, not timed; None for no warm-up.
        warm_start: table that it goes into, or that is read or compacted once before; None for a new one.
        cores: threads to use.
    """

    operation: str
    rows: str | None
    start: str | None
    out: str
    codec: str
    table_type: str
    index: str
    metadata: str
    sort: str
    runs: int
    warm_rows: str | None
    warm_start: str | None
    cores: int


def _cannot(*_: object) -> None:
    raise SystemExit("This side can only read.")


@dataclass(frozen=True, slots=True)
class Verbs:
    """What a side can do.

    Attributes:
        read: ``read(table, options)``; reads every row and column, keeps none.
        keep: ``keep(table, folder, options)``; reads the same and puts it into that folder, which is there, as Parquet.
        write: ``write(rows, table, options)``; returns when the instant is completed.
        compact: ``compact(table, options)``; plans a compaction and runs it; returns when the instant is completed.
        cluster: ``cluster(table, sort, options)``; the same with a clustering.
    """

    read: Callable[[str, dict[str, str]], None]
    keep: Callable[[str, str, dict[str, str]], None]
    write: Callable[[str, str, dict[str, str]], None] = _cannot
    compact: Callable[[str, dict[str, str]], None] = _cannot
    cluster: Callable[[str, str, dict[str, str]], None] = _cannot


@dataclass(frozen=True, slots=True)
class Run:
    """What a side answers, as JSON on its last line.

    Attributes:
        seconds: median over the runs.
        all_seconds: of every run.
        peak_rss_mb: largest over the runs of the sum over the side's processes of each one's peak resident memory;
            the peaks need not fall together, so it is an upper bound.
        peak_since_start: the counters could not be set back: the peaks are those of the processes' whole lives.
    """

    seconds: float
    all_seconds: list[float]
    peak_rss_mb: float
    peak_since_start: bool


def parse_work(description: str) -> tuple[Work, argparse.Namespace]:
    """The work from the command line, and the arguments that only one side has (``--engine``, ``--version``)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--operation", choices=OPERATIONS, required=True)
    parser.add_argument("--rows")
    parser.add_argument("--start")
    parser.add_argument("--out", required=True)
    parser.add_argument("--codec", default="default")
    parser.add_argument("--table-type", default="COPY_ON_WRITE")
    parser.add_argument("--index", default="default")
    parser.add_argument("--metadata", choices=("true", "false"), default="true")
    parser.add_argument("--sort", default="")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--warm-rows")
    parser.add_argument("--warm-start")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--engine", choices=("local", "spark", "hudi_rs"), default="local")
    parser.add_argument("--version", default="1.2.0")
    arguments = vars(parser.parse_args())
    own = argparse.Namespace(engine=arguments.pop("engine"), version=arguments.pop("version"))
    return Work(**arguments), own


def write_options(work: Work) -> dict[str, str]:
    """The write's options: the same for both sides."""
    options = {
        "hoodie.table.name": "trips",
        "hoodie.datasource.write.recordkey.field": "uuid",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": work.table_type,
    }
    if work.rows is not None:
        options["hoodie.datasource.write.operation"] = work.operation
    if work.codec != "default":
        options["hoodie.parquet.compression.codec"] = work.codec
    if work.index != "default":
        options["hoodie.index.type"] = work.index
    if work.index == "RECORD_INDEX":
        options["hoodie.metadata.record.index.enable"] = "true"
    if work.metadata != "true":
        options["hoodie.metadata.enable"] = work.metadata
    if work.table_type == "MERGE_ON_READ":
        # Compaction is measured by itself.
        options["hoodie.compact.inline"] = "false"
    return options


def timed(work: Work, verbs: Verbs, processes: Callable[[], list[int]]) -> dict[str, Any]:
    """Do the work and give a :class:`Run` as a dict.

    Args:
        work: what to do.
        verbs: how.
        processes: ids of the processes whose memory counts, asked before and after each run.
    """
    _warm_up(work, verbs)
    seconds, peaks, reset = [], [], True
    for _ in range(work.runs):
        table = _table_for(work)
        done = [_reset_peak(pid) for pid in processes()]
        reset = reset and all(done)
        begin = time.perf_counter()
        _act(work, verbs, work.rows, table)
        seconds.append(time.perf_counter() - begin)
        peaks.append(sum(_peak_rss_mb(pid) for pid in processes()))
    if work.operation in READS:
        shutil.rmtree(work.out, ignore_errors=True)
        Path(work.out).mkdir()
        verbs.keep(str(work.start), work.out, _read_options(work, str(work.start)))
    rounded = [round(each, 3) for each in seconds]
    return asdict(Run(round(statistics.median(seconds), 3), rounded, round(max(peaks), 1), not reset))


def _act(work: Work, verbs: Verbs, rows: str | None, table: str) -> None:
    if work.operation in READS:
        verbs.read(table, _read_options(work, table))
    elif work.operation == "compact":
        verbs.compact(table, {**write_options(work), **COMPACT_OPTIONS})
    elif work.operation == "cluster":
        verbs.cluster(table, work.sort, {**write_options(work), **CLUSTER_OPTIONS})
    else:
        verbs.write(str(rows), table, write_options(work))


def _read_options(work: Work, table: str) -> dict[str, str]:
    """None for a snapshot; for an incremental read, which begins after the table's first commit, its bounds."""
    if work.operation != "incremental":
        return {}
    names = os.listdir(f"{table}/.hoodie/timeline")
    done = [name.partition(".")[0].split("_") for name in names if name.endswith(("commit", ".deltacommit"))]
    return {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": min(each[1] for each in done if len(each) == 2),
    }


def _table_for(work: Work) -> str:
    if work.operation in READS:
        return str(work.start)
    _place(work.start, Path(work.out))
    return work.out


def _warm_up(work: Work, verbs: Verbs) -> None:
    if work.operation in READS:
        if work.warm_start is not None:
            verbs.read(work.warm_start, _read_options(work, work.warm_start))
    elif work.warm_rows is not None or (work.operation in SERVICES and work.warm_start is not None):
        warm = Path(work.out).with_name(Path(work.out).name + "-warm")
        _place(work.warm_start, warm)
        _act(work, verbs, work.warm_rows, str(warm))
        shutil.rmtree(warm)


def _place(start: str | None, out: Path) -> None:
    shutil.rmtree(out, ignore_errors=True)
    if start is not None:
        shutil.copytree(start, out)


def _reset_peak(pid: int) -> bool:
    """Set a process's VmHWM back to what it holds now (``man 5 proc``: clear_refs, 5)."""
    try:
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _peak_rss_mb(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return 0.0
    # A process that has just ended has no memory lines.
    lines = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(lines[0].split()[1]) / 1024 if lines else 0.0


def process_tree(root: int) -> list[int]:
    """A process and all its descendants that are alive."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found
