"""The demo: load a year of flights into a Hudi table, update, delete, add a column, and query it.

::

    rows ─► hudi_fast.write, on Spark or in this process ─► tables in a temporary folder
                                                             │
             every row compared with the expected rows ◄─────┘ read back, with Spark and without it

The demo uses two tables. The copy-on-write table rewrites files. Its queries then skip files by the metadata table, a
restore to a savepoint reverts a mistake, a clean deletes old files, and a clustering sorts the rows. The merge-on-read
table logs changes until a compaction merges the log files into new base files.

With Java and PySpark the demo runs on Spark (two cores); otherwise it runs in one process. It exits with code 1 if a
table does not hold the expected rows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import flight_data as data
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from flight_tables import Asked, Logged, asked_shown, history_shown, logged_shown, writes_shown
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

import hudi_fast as hf

TABLE_OPTIONS = {
    "hoodie.table.name": "flights",
    "hoodie.datasource.write.recordkey.field": ",".join(data.KEY),
    "hoodie.datasource.write.partitionpath.field": "month",
    "hoodie.datasource.write.precombine.field": "revision",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.metadata.record.index.enable": "true",  # the file group of each key
    "hoodie.write.set.null.for.missing.columns": "true",  # writes may leave out the distance in kilometres
}
LOG_OPTIONS = {
    **TABLE_OPTIONS,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "false",  # the demo compacts itself
}
OPERATION = "hoodie.datasource.write.operation"
STEPS = 21
QUIET_LOG = """rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c: %m%n
"""


@dataclass(frozen=True)
class Engine:
    """How to write and count rows: on Spark, or in this process.

    Attributes:
        name: display name.
        rows: converts a name and Arrow rows to the input of ``hf.write``.
        count: counts the rows of the table at a path.
        stop: stops the engine.
        session: the Spark session for services; None for this process.
    """

    name: str
    rows: Callable[[str, pa.Table], Any]
    count: Callable[[Path], int]
    stop: Callable[[], None]
    session: Any = None


@dataclass(frozen=True)
class Check:
    """An expected and a found value."""

    what: str
    expected: object
    found: object


class Story:
    """Shows the steps while they run, and keeps the results for the report."""

    def __init__(self, console: Console, progress: Progress) -> None:
        self.console = console
        self.progress = progress
        self.task = progress.add_task("", total=STEPS)
        self.writes: list[tuple[str, int, hf.WriteResult, int]] = []
        self.logged: list[Logged] = []
        self.asked: list[Asked] = []
        self.checks: list[Check] = []

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Show the current step, and its duration when it is done."""
        self.progress.update(self.task, description=text)
        started = time.monotonic()
        yield
        self.progress.advance(self.task)
        self.console.print(f"  [green]done[/] {time.monotonic() - started:6.2f} s  {text}", highlight=False)

    def check(self, what: str, expected: object, found: object) -> None:
        """Record an expected and a found value."""
        self.checks.append(Check(what, expected, found))


def main() -> int:
    """Run the demo; the exit code."""
    arguments = _arguments()
    console = Console()
    warnings.simplefilter("ignore", FutureWarning)  # PySpark with new releases of pandas
    scratch = Path(tempfile.mkdtemp(prefix="hudi_fast-demo-"))
    path = Path(arguments.keep).absolute() if arguments.keep else scratch / "flights"
    log_path = path.with_name(f"{path.name}-log")
    for each in (path, log_path):
        if arguments.keep and each.exists():
            console.print(f"{each} exists already; choose a folder that does not exist.", style="red")
            return 2
    try:
        engine = _engine(arguments.engine, scratch, console)
        console.print(f"[bold]Writing to {path}, {engine.name}[/]", highlight=False)
        try:
            with _progress(console) as progress:
                story = Story(console, progress)
                year = tell(story, engine, path)
                tell_of_logs(story, engine, log_path, year)
        finally:
            engine.stop()
        return _report(story, path, log_path, bool(arguments.keep))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def tell(story: Story, engine: Engine, path: Path) -> pa.Table:
    """Run and check all steps on the copy-on-write table; returns the flights."""
    with story.step("Read the flights of 2013"):
        year = data.load_year()
    with story.step("Load the kernels (the first run compiles them)"):
        from hudi_fast.kernels import warm_up

        warm_up()
    load, changes, keys = data.first_load(year), data.changes(year), data.cancelled(year)
    corrected, widened = data.after_changes(year), data.widened(year)
    left = data.after_deletes(year)

    first = _write(story, engine, path, "bulk_insert", "January to November", load)
    story.check("rows inserted by the first load", load.num_rows, first.inserts)
    _compare(story, path, "the first load", load)

    result = _write(story, engine, path, "upsert", "December and corrections", changes)
    story.check("new flights", year.num_rows - load.num_rows, result.inserts)
    _compare(story, path, "corrections", corrected)

    result = _write(story, engine, path, "delete", "cancelled flights", keys)
    story.check("cancelled flights deleted", keys.num_rows, result.deletes)
    _compare(story, path, "deletes", left)

    result = _write(story, engine, path, "upsert", "every flight, with a new column", widened)
    story.check("flights changed", widened.num_rows, result.updates)
    _compare(story, path, "the new column", widened)

    table = hf.HudiTable.open(path)
    story.check("flights of the first load, by time travel", load.num_rows, _rows_at(table, first.instant))
    story.check("partitions", data.LAST_MONTH, table.partitions().num_rows)
    _ask(story, table, widened)
    _serve(story, engine, table, path, widened)
    return year


def _ask(story: Story, table: hf.HudiTable, expected: pa.Table) -> None:
    """Run queries for which an index skips eleven of twelve months; check their rows."""
    late, key = pc.field("dep_delay") > 1200, "2013,7,4,US,1431,EWR"
    names = [f"{name}:{value}" for name, value in zip(data.KEY, key.split(","), strict=True)]
    one = pc.field("_hoodie_record_key") == ",".join(names)
    with story.step("Query one flight by its key, and the flights with a delay of 20 hours"):
        for what, index, filter_, wanted in (
            ("one flight, by its record key", "record_index", one, data.flight_of(expected, key)),
            ("more than 20 hours late", "partition_stats", late, expected.filter(late)),
        ):
            started = time.monotonic()
            found = table.to_arrow(filter=filter_)
            seconds = time.monotonic() - started
            steps = table.explain(filter_)
            files = steps["after"][-1].as_py()
            story.asked.append(Asked(what, index, table.files().num_rows, files, found.num_rows, seconds))
            story.check(
                f"{what}: every value is as expected", True, wanted.num_rows > 0 and data.same_rows(found, wanted)
            )
            story.check(f"{what}: files read, index used", (1, True), (files, index in steps["index"].to_pylist()))


def _serve(story: Story, engine: Engine, table: hf.HudiTable, path: Path, expected: pa.Table) -> None:
    """Revert a mistake by restoring a savepoint; then clean old files and cluster the newest."""
    services = table.services
    with story.step("Create a savepoint, delete July by mistake, restore"):
        saved = services.savepoint(comment="before the mistake")
        mistake = table.delete_partitions(["month=7"])
        without = _rows_at(table, mistake.instant)
        restored = services.restore(saved.instant, spark=engine.session)
    story.check("the mistake deleted rows", True, without < expected.num_rows)
    story.check("the restore rolled back the mistake", (mistake.instant,), restored.rolled_back)
    groups = table.files().num_rows
    with story.step("Clean all but the newest commit; cluster: sort rows by delay"):
        services.delete_savepoint(saved.instant)
        cleaned = services.clean({"hoodie.clean.commits.retained": 1}, spark=engine.session)
        clustered = services.cluster(
            {"hoodie.clustering.plan.strategy.sort.columns": "dep_delay"}, spark=engine.session
        )
    story.check("old files are deleted", True, cleaned.files_deleted >= data.LAST_MONTH)
    found = (clustered.file_groups, clustered.rows)
    story.check("file groups and rows clustered", (groups, expected.num_rows), found)
    _compare_rows(story, path, "the restore and the clustering", expected, engine.count(path))


def tell_of_logs(story: Story, engine: Engine, path: Path, year: pa.Table) -> None:
    """Run and check the same changes on the merge-on-read table, and compact it at the end."""
    load, changes, keys = data.first_load(year), data.changes(year), data.cancelled(year)
    corrected, left = data.after_changes(year), data.after_deletes(year)

    def log(operation: str, what: str, rows: pa.Table) -> None:
        source = engine.rows(f"log-{operation}-{len(story.logged)}", rows)
        with story.step(f"merge-on-read, {operation}: {what} ({rows.num_rows:,} rows)"):
            result = hf.write(source, path, {**LOG_OPTIONS, OPERATION: operation})
        story.logged.append(_logged(path, operation, engine.count(path), result.seconds))

    log("bulk_insert", "January to November", load)
    log("upsert", "December and corrections", changes)
    _compare_merged(story, path, "corrections in log files", corrected)
    log("delete", "cancelled flights", keys)
    _compare_merged(story, path, "deletes in log files", left)
    first, upsert, delete = story.logged
    story.check("log files of the first load", 0, first.log_files)
    story.check("months with logged corrections, months with logged deletes", (11, 12), (upsert.months, delete.months))
    story.check("rows of base files, which log files do not change", year.num_rows, delete.base_rows)

    with story.step("merge-on-read, compaction: merge log files into base files"):
        done = hf.HudiTable.open(path).services.compact(spark=engine.session)
    story.logged.append(_logged(path, "compaction", engine.count(path), done.seconds))
    _compare_merged(story, path, "the compaction", left)
    story.check("flights removed by the compaction", keys.num_rows, done.deletes)
    story.check("remaining log files, rows of base files", (0, left.num_rows), _files_now(story))


def _files_now(story: Story) -> tuple[int, int]:
    return story.logged[-1].log_files, story.logged[-1].base_rows


def _logged(path: Path, step: str, merged_rows: int, seconds: float) -> Logged:
    table = hf.HudiTable.open(path)
    logged = table.files().filter(pc.field("log_files") > 0)
    count, months = sum(logged["log_files"].to_pylist()), len(set(logged["partition"].to_pylist()))
    size = sum(file.stat().st_size for file in path.glob("month=*/.*.log.*")) if count else 0
    optimized = table.to_batches(columns=["month"], query_type="read_optimized")
    return Logged(step, count, months, size, merged_rows, sum(batch.num_rows for batch in optimized), seconds)


def _write(story: Story, engine: Engine, path: Path, operation: str, what: str, rows: pa.Table) -> hf.WriteResult:
    source = engine.rows(f"{operation}-{len(story.writes)}", rows)
    with story.step(f"{operation}: {what} ({rows.num_rows:,} rows)"):
        result = hf.write(source, path, {**TABLE_OPTIONS, OPERATION: operation})
    story.writes.append((what, rows.num_rows, result, engine.count(path)))
    return result


def _compare(story: Story, path: Path, after: str, expected: pa.Table) -> None:
    _compare_rows(story, path, after, expected, story.writes[-1][3])


def _compare_merged(story: Story, path: Path, after: str, expected: pa.Table) -> None:
    _compare_rows(story, path, after, expected, story.logged[-1].merged_rows)


def _compare_rows(story: Story, path: Path, after: str, expected: pa.Table, counted: int) -> None:
    with story.step(f"Compare every row after {after}"):
        found = hf.HudiTable.open(path).to_arrow()
        story.check(f"rows after {after}", expected.num_rows, counted)
        story.check(f"every value after {after} is as expected", True, data.same_rows(found, expected))


def _rows_at(table: hf.HudiTable, instant: str) -> int:
    return sum(batch.num_rows for batch in table.to_batches(columns=["month"], as_of=instant))


def _report(story: Story, path: Path, log_path: Path, kept: bool) -> int:
    console = story.console
    console.print()
    console.print(writes_shown(story.writes))
    for number, (what, _, result, _) in enumerate(story.writes, 1):
        console.print(f" {number} {what}: plan [bold]{result.plan}[/] ({result.reason})", highlight=False)
    console.print()
    console.print(history_shown("History of the copy-on-write table", path))
    console.print(asked_shown(story.asked))
    console.print(logged_shown(story.logged))
    console.print(history_shown("History of the merge-on-read table", log_path))
    wrong = [check for check in story.checks if check.expected != check.found]
    for check in wrong:
        console.print(f"WRONG: {check.what}: expected {check.expected}, found {check.found}", style="bold red")
    right = len(story.checks) - len(wrong)
    console.print(f"{right} of {len(story.checks)} checks passed.", style="bold red" if wrong else "bold green")
    if kept:
        console.print(f"The tables are kept at {path} and {log_path}.", highlight=False)
        console.print(f"To inspect one, run: hudi-fast info {path}", highlight=False)
    else:
        console.print("The tables are deleted; make demo KEEP=folder keeps them.", highlight=False)
    return 1 if wrong else 0


# ---- engines


def _engine(wanted: str, scratch: Path, console: Console) -> Engine:
    """The Spark engine if it can start; otherwise the local engine, with the reason printed."""
    if wanted != "local":
        reason = _why_no_spark()
        if reason is None:
            console.print("Starting Spark ...")
            try:
                return _spark_engine(scratch)
            except Exception as error:  # Spark fails to start in many ways, for example with an old Java
                reason = f"Spark does not start ({str(error).splitlines()[0]})"
        if wanted == "spark":
            raise SystemExit(f"{reason}.")
        console.print(f"{reason}, so everything runs in this process.", style="yellow", highlight=False)
    return Engine("in this process", lambda name, rows: rows, _count_locally, lambda: None)


def _why_no_spark() -> str | None:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    if java is None or subprocess.run([java, "-version"], capture_output=True, check=False).returncode:
        return "There is no Java" + (f" in JAVA_HOME={home}" if home else "")
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "PySpark is not installed (pip install 'hudi-fast[spark]')"
    return None


def _spark_engine(scratch: Path) -> Engine:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # by default workers use the first python3 of the path
    quiet = scratch / "log4j2.properties"
    quiet.write_text(QUIET_LOG)
    settings = {
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet.as_uri()}",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(scratch / "spark"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("hudi_fast demo")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()

    def rows(name: str, table: pa.Table) -> Any:
        file = scratch / f"{name}.parquet"
        pq.write_table(table, file, row_group_size=1 << 15)
        return spark.read.parquet(str(file))

    def count(path: Path) -> int:
        return int(hf.read(spark, path).where("_hoodie_record_key is not null").count())

    return Engine(f"on Spark {spark.version}, two cores", rows, count, spark.stop, spark)


def _count_locally(path: Path) -> int:
    return sum(batch.num_rows for batch in hf.HudiTable.open(path).to_batches(columns=["_hoodie_record_key"]))


def _progress(console: Console) -> Progress:
    columns = (
        SpinnerColumn(),
        MofNCompleteColumn(),
        BarColumn(20),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    return Progress(*columns, console=console, transient=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Load, change and query a year of flights as a Hudi table.")
    parser.add_argument("--keep", metavar="PATH", help="create the tables at PATH and PATH-log and keep them")
    parser.add_argument("--engine", choices=("auto", "spark", "local"), default="auto")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Interrupted; the tables are deleted unless --keep is given.")
