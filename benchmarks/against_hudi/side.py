"""Shared code of all sides: the work, its options, and the timing of a run.

Data flow of one run: copy the starting table, reset the peak memory counters of all processes, time the write from
Parquet input to completed instant, and add up the peaks. The copy of the last run is kept for the comparison of rows. A
compaction or clustering runs in the same way. A read needs no copy: it reads and drops all columns. An untimed second
read stores the rows as Parquet for the comparison. An incremental read works like a read and covers all commits
except the first. A lookup reads all columns of the rows with some keys, and its result names the rows that it found.

Uses the standard library only, because the interpreter of Apache Hudi's virtual environment imports it, too.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

__all__ = [
    "CLUSTER_OPTIONS",
    "COMPACT_OPTIONS",
    "SPARK_SETTINGS",
    "Run",
    "Verbs",
    "Work",
    "hudi_settings",
    "parse_work",
    "process_tree",
    "timed",
    "write_options",
]

# One task per input file, so that a bulk insert writes one file group per file.
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
ENGINES = ("local", "spark", "spark_rows", "hudi_rs", "hudi_rs_simple", "delta_rs", "delta", "iceberg")
OPERATIONS = ("bulk_insert", "cluster", "compact", "delete", "incremental", "insert", "lookup", "read", "upsert")
READS = ("incremental", "read")
SERVICES = ("cluster", "compact")
# Due after one commit; by default compaction is due after five commits and clustering after four.
COMPACT_OPTIONS = {"hoodie.compact.inline.max.delta.commits": "1"}
CLUSTER_OPTIONS = {"hoodie.clustering.inline.max.commits": "1", "hoodie.clustering.async.max.commits": "1"}


def hudi_settings(version: str) -> dict[str, str]:
    """What a session of Spark 3.5 needs for Apache Hudi of that release."""
    return {
        "spark.jars.packages": f"org.apache.hudi:hudi-spark3.5-bundle_2.12:{version}",
        "spark.jars.ivy": os.path.join(os.path.expanduser("~"), ".ivy2"),
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    }


@dataclass(frozen=True, slots=True)
class Work:
    """One measurement.

    Attributes:
        operation: ``bulk_insert``, ``delete``, ``insert``, ``upsert``, ``read``, ``incremental``, ``lookup``,
            ``compact`` or ``cluster``.
        rows: folder of Parquet files to write; None to read, compact or cluster.
        start: table to start from, copied for each run that changes it; None for a new table.
        out: folder for the table of the last run; for a read, folder for its rows.
        codec: Parquet codec, or ``default`` for the side's default.
        table_type: ``COPY_ON_WRITE`` or ``MERGE_ON_READ``.
        index: ``hoodie.index.type``, or ``default`` for the side's default; a record index is also maintained.
        metadata: ``true`` or ``false``: whether the table has a metadata table.
        sort: sort columns of a clustering, separated by commas; empty for none.
        runs: number of timed runs.
        warm_rows: small input for one warm-up run of the same operation, not timed; None for no warm-up.
        warm_start: starting table of the warm-up run; None for a new one.
        cores: number of threads.
        keys: file with the keys of a lookup, one a line; None for other operations.
        options: more options of writes and services.
    """

    operation: str
    rows: str | None
    start: str | None
    out: str
    codec: str = "default"
    table_type: str = "COPY_ON_WRITE"
    index: str = "default"
    metadata: str = "true"
    sort: str = ""
    runs: int = 1
    warm_rows: str | None = None
    warm_start: str | None = None
    cores: int = os.cpu_count() or 1
    keys: str | None = None
    options: dict[str, str] = field(default_factory=dict)


def _cannot(*_: object) -> Any:
    raise SystemExit("This side can only read.")


@dataclass(frozen=True, slots=True)
class Verbs:
    """The calls of a side.

    Attributes:
        read: ``read(table, options)``; reads and drops every row and column.
        keep: ``keep(table, folder, options)``; reads the same and stores it as Parquet in the existing folder.
        write: ``write(rows, table, options)``; returns after the instant is completed.
        compact: ``compact(table, options)``; plans and runs a compaction; returns after the instant is completed.
        cluster: ``cluster(table, sort, options)``; the same for a clustering.
        lookup: ``lookup(table, keys)``; reads all columns of the rows with these keys, and returns the key and the
            ordering value of each.
    """

    read: Callable[[str, dict[str, str]], None]
    keep: Callable[[str, str, dict[str, str]], None]
    write: Callable[[str, str, dict[str, str]], None] = _cannot
    compact: Callable[[str, dict[str, str]], None] = _cannot
    cluster: Callable[[str, str, dict[str, str]], None] = _cannot
    lookup: Callable[[str, list[str]], list[tuple[str, int]]] = _cannot


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a side, printed as JSON on its last line.

    Attributes:
        seconds: median over the runs.
        all_seconds: seconds of every run.
        cpu_seconds: median over the runs of the processor time of all processes of the side. It depends less
            than ``seconds`` on what else the machine does.
        peak_rss_mb: maximum over the runs of the sum of the peak resident memory of all processes of the side. The
            processes may peak at different times, so it is an upper bound.
        peak_since_start: whether the peaks cover the whole life of the processes, because the counters could not be
            reset.
    """

    seconds: float
    all_seconds: list[float]
    cpu_seconds: float
    peak_rss_mb: float
    peak_since_start: bool


def parse_work(description: str) -> tuple[Work, argparse.Namespace]:
    """The work of the command line, and the arguments of one side only (``--engine``, ``--version``)."""
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
    parser.add_argument("--keys")
    parser.add_argument("--options", type=json.loads, default={})
    parser.add_argument("--engine", choices=ENGINES, default="local")
    parser.add_argument("--version", default="1.2.0")
    arguments = vars(parser.parse_args())
    own = argparse.Namespace(engine=arguments.pop("engine"), version=arguments.pop("version"))
    return Work(**arguments), own


def write_options(work: Work) -> dict[str, str]:
    """The write options, the same for all sides."""
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
        # Compaction is measured separately.
        options["hoodie.compact.inline"] = "false"
    return {**options, **work.options}


def timed(work: Work, verbs: Verbs, processes: Callable[[], list[int]]) -> dict[str, Any]:
    """Execute the work; returns a :class:`Run` as a dict, and as ``found`` the rows of a lookup.

    Args:
        work: the measurement.
        verbs: the calls of the side.
        processes: returns the ids of the measured processes; called before and after each run.
    """
    _warm_up(work, verbs)
    seconds, cpu, peaks, reset, found = [], [], [], True, None
    for _ in range(work.runs):
        table = _table_for(work)
        done = [_reset_peak(pid) for pid in processes()]
        reset = reset and all(done)
        cpu_before, begin = _cpu_seconds(processes()), time.perf_counter()
        found = _act(work, verbs, work.rows, table)
        seconds.append(time.perf_counter() - begin)
        cpu.append(_cpu_seconds(processes()) - cpu_before)
        peaks.append(sum(_peak_rss_mb(pid) for pid in processes()))
    if work.operation in READS:
        shutil.rmtree(work.out, ignore_errors=True)
        Path(work.out).mkdir()
        verbs.keep(str(work.start), work.out, _read_options(work, str(work.start)))
    rounded = [round(each, 3) for each in seconds]
    median, cpu_median = round(statistics.median(seconds), 3), round(statistics.median(cpu), 2)
    run = asdict(Run(median, rounded, cpu_median, round(max(peaks), 1), not reset))
    return run if found is None else {**run, "found": found}


def _act(work: Work, verbs: Verbs, rows: str | None, table: str) -> list[tuple[str, int]] | None:
    if work.operation == "lookup":
        return verbs.lookup(table, Path(str(work.keys)).read_text().split())
    if work.operation in READS:
        verbs.read(table, _read_options(work, table))
    elif work.operation == "compact":
        verbs.compact(table, {**write_options(work), **COMPACT_OPTIONS})
    elif work.operation == "cluster":
        verbs.cluster(table, work.sort, {**write_options(work), **CLUSTER_OPTIONS})
    else:
        verbs.write(str(rows), table, write_options(work))
    return None


def _read_options(work: Work, table: str) -> dict[str, str]:
    """None for a snapshot; the bounds of an incremental read, which starts after the first commit of the table."""
    if work.operation != "incremental":
        return {}
    names = os.listdir(f"{table}/.hoodie/timeline")
    done = [name.partition(".")[0].split("_") for name in names if name.endswith(("commit", ".deltacommit"))]
    return {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": min(each[1] for each in done if len(each) == 2),
    }


def _table_for(work: Work) -> str:
    if work.operation in (*READS, "lookup"):
        return str(work.start)
    _place(work.start, Path(work.out))
    return work.out


def _warm_up(work: Work, verbs: Verbs) -> None:
    if work.operation in (*READS, "lookup"):
        if work.warm_start is not None:
            _act(work, verbs, None, work.warm_start)
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
    """Reset the VmHWM of a process to its current memory (``man 5 proc``: clear_refs, 5)."""
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
    # A process that has just ended has no memory values.
    lines = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(lines[0].split()[1]) / 1024 if lines else 0.0


def _cpu_seconds(pids: list[int]) -> float:
    """Processor time of processes and of their children that have ended."""
    ticks = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        ticks += sum(map(int, fields[11:15]))  # utime, stime, cutime, cstime
    return ticks / os.sysconf("SC_CLK_TCK")


def process_tree(root: int) -> list[int]:
    """A process and all its live descendants."""
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
