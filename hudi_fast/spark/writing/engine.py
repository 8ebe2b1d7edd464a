"""The Spark engine: chooses a physical plan, then moves rows to the tasks that write them.

======== =========================================================================== ===================================
plan     moved rows                                                                  used for
======== =========================================================================== ===================================
driver   all rows, to the driver; the local engine writes them                       input below a bound, few files
broadcast the same rows; the driver assigns them to file groups, tasks write them    the same, many bytes on a cluster
direct   none: each task writes the rows that it reads                               bulk_insert
fused    full rows, one shuffle by table partition; a task tags, assigns, writes     many partitions of similar size
routed   keys looked up or joined to stored keys, then one shuffle by file group     all other writes
bucketed full rows, one shuffle by the bucket of the key; a task assigns, writes     bucket index, few partitions
======== =========================================================================== ===================================

Each full row is sent to Python once and never returned; rows of Parquet files are read there
(:mod:`hudi_fast.spark.incoming`). The source runs once for its rows, and once more for its partition columns to count
the rows of each partition, unless a plan is forced. If it is larger than Spark's optimizer estimated, some of its rows
are read once more. Nothing is persisted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.spark.arrow import (
    ARROW_GROWTH,
    arrow_batches_of,
    arrow_schema,
    collect,
    estimated_bytes,
    first_rows,
    is_local,
    parallelism,
    reads_files,
    running_parallelism,
)
from hudi_fast.spark.incoming.chosen_scan import (
    ChosenScan,
    chosen_scan,
    first_rows_of_scan,
    refused_scan,
    rows_by_footers,
    rows_of_scan,
)
from hudi_fast.spark.incoming.expressions import ScanRefusedError
from hudi_fast.spark.incoming.file_scan import FileScan
from hudi_fast.spark.job_errors import explained_job_errors
from hudi_fast.spark.writing import routed, unrouted_plans
from hudi_fast.spark.writing.broadcast import bytes_to_read, run_broadcast
from hudi_fast.spark.writing.columns import in_table_kinds
from hudi_fast.spark.writing.counting import count_changes, count_pieces, count_rows
from hudi_fast.spark.writing.stored import ChangeShape
from hudi_fast.spark.writing.tasks import Answer
from hudi_fast.spark.writing.unrouted_plans import (
    Arrangement,
    arrangement,
    bulk_files,
    few_tasks,
    run_bucketed,
    run_direct,
    takes_any_rows,
)
from hudi_fast.spark.writing.workload import (
    PARTITIONS_TASK_BYTES,
    stored_sizes,
    task_count,
)
from hudi_fast.values import dataclass
from hudi_fast.view.table_state import TableState, table_schema
from hudi_fast.writing.backend import WritePreview, rows_by_partition
from hudi_fast.writing.dml_rows import ACTION, GROUP, INSERT
from hudi_fast.writing.local import LocalEngine
from hudi_fast.writing.located import with_usable_index
from hudi_fast.writing.prepare import columns_for
from hudi_fast.writing.profile import (
    WorkloadProfile,
    encoded_row_size,
    load_factor,
    may_need_row_size,
    needs_row_size,
    rows_to_encode,
    sizing_of,
    with_row_size,
)
from hudi_fast.writing.write_plan import WriteOutcome, WritePlan

__all__ = ["PLANS", "SparkEngine"]

PLANS = ("auto", "driver", "broadcast", "fused", "routed")
"""Values of `hudi_fast.plan`."""

DRIVER_ROWS = 262_144
"""The driver collects at most this many rows."""

TINY = 1000
"""Input estimated below this fraction of the bound is collected without a limit, which would cost a shuffle: Spark's
estimate would have to be wrong by a factor of a thousand."""

_TAGGED = frozenset({"upsert", "delete"})

_UNEVEN = {True: 2.2, False: 1.3}
"""Tasks for whole partitions may keep the busiest core busy for this many times an even share; True: for a write that
looks keys up, which takes a further shuffle."""

_EVEN_FROM = 32 << 20
"""With fewer Arrow bytes than this, uneven tasks cost less than a join."""

_UNMEASURED_ROWS = 15_000
"""Up to this many rows are collected without measuring their width. Spark assumes 20 bytes for a computed string."""

_ROW_BYTES = 256
"""Assumed Arrow size of a row while no rows have been measured."""

_MAX_GROWTH = 16
"""Ratio of the size of rows in memory to Spark's estimate that compressed files hardly exceed."""

_SAMPLE_ROWS, _ENCODED_ROWS = 2000, 20_000
"""Rows that are collected to measure the size of a row in memory, and in a base file."""

_WORTH_COUNTING = 8 << 20
"""Rows of files of this size are counted before they are collected: Spark counts rows of Parquet files from footers,
while a limit moves all rows through one task."""


@dataclass(frozen=True)
class _Choice:
    name: str
    reason: str


class SparkEngine:
    """Writes a PySpark DataFrame.

    Args:
        df: the rows.
        options: physical plan to force, and the bounds of the driver plan.
        changes: facts about changed rows that have a file group; None for other rows.
    """

    def __init__(self, df: Any, options: WriteOptions, changes: ChangeShape | None = None) -> None:
        self._source = df
        self._changes = changes
        self._df = df
        self._options = options
        self._choice: _Choice | None = None
        self._local: LocalEngine | None = None
        self._sample: pa.Table | None = None
        self._sample_of = 0
        self._profile: WorkloadProfile | None = None
        self._row_size: float | None = None
        self._direct_tasks = 0
        self._too_large = ""
        self._scan = ChosenScan()

    def input_schema(self, state: TableState) -> pa.Schema:
        """Columns of the DataFrame, in Python's types, with the table's kinds of timestamps."""
        return arrow_schema(in_table_kinds(self._source, table_schema(state)))

    def prepare(self, plan: WritePlan) -> None:
        """Choose the physical plan; rows collected on the driver are checked here, others by the tasks."""
        if self._choice is None:
            wanted, rows = columns_for(plan, self._source.columns), in_table_kinds(self._source, plan.schema)
            self._df = rows if wanted == rows.columns else rows.select(*[f"`{name}`" for name in wanted])
            with explained_job_errors(self._df.sparkSession, plan.storage.uri):
                if self._changes is None and plan.operation != "delete_partition":
                    self._scan = chosen_scan(self._df, self._options.engine.scan)
                self._choice = self._choose_or_leave(plan)
        if self._local is not None:
            self._local.prepare(plan)

    def preview(self, plan: WritePlan) -> WritePreview:
        """How the rows would be written."""
        choice, profile = self._choice, self._profile
        assert choice is not None, "preview requires prepare"
        if self._local is not None:
            return replace(self._local.preview(plan), plan=choice.name, reason=choice.reason + self._scan.remark)
        partitions = None if profile is None else dict(sorted(profile.rows.items()))
        tasks = None if choice.name == "direct" else self._tasks(plan)
        reason = choice.reason + self._scan.remark
        return WritePreview(plan.operation, choice.name, reason, partitions, self._expected_bytes() or None, tasks)

    def execute(self, plan: WritePlan) -> WriteOutcome:
        """Write all rows."""
        choice = self._choice
        assert choice is not None, "write requires prepare"
        plan = with_usable_index(plan)
        if self._row_size is not None:
            plan = with_row_size(plan, self._row_size)
        if self._local is not None and choice.name == "driver":
            return replace(self._local.execute(plan), plan=choice.name, reason=choice.reason + self._scan.remark)
        try:
            answers = self._run(choice.name, plan)
        except ScanRefusedError as error:  # the files of these tasks are deleted before the commit
            self._leave_to_spark(error)
            answers = self._run(choice.name, plan)
        return _outcome(answers, choice.name, choice.reason + self._scan.remark)

    def close(self) -> None:
        """Nothing is open."""

    def _row_bytes(self) -> int:
        """Average Arrow size of a row from the JVM; 0 if it is unknown and the first rows may be costly to compute."""
        if self._scan.files is not None:  # Spark moves batches as bytes, whose number says nothing
            return 0
        if self._profile is not None:
            return self._profile.row_bytes
        if self._sample is None and not reads_files(self._df):
            return 0
        return _bytes_of_a_row(self._sampled(_SAMPLE_ROWS))

    def _run(self, name: str, plan: WritePlan) -> list[Answer]:
        spark = self._df.sparkSession
        with explained_job_errors(spark, plan.storage.uri), arrow_batches_of(spark, self._row_bytes()):
            return self._run_plan(name, plan)

    def _run_plan(self, name: str, plan: WritePlan) -> list[Answer]:
        if name == "broadcast":
            assert self._local is not None
            incoming = self._local.incoming
            stats = run_broadcast(self._df.sparkSession, self._local.sized(plan), incoming)
            return [Answer(stats, frozenset(rows_by_partition(incoming)))]
        if name == "direct":
            return run_direct(self._df, plan, self._direct_tasks, self._scan.files)
        tasks = self._tasks(plan)
        if name == "routed":
            scanned = None if self._changes is None else self._changes.scanned
            return routed.run_routed(self._df, plan, self._profile, tasks, scanned, self._scan.files)
        if name == "bucketed":
            return run_bucketed(self._df, plan, tasks)
        return unrouted_plans.run_fused(self._df, plan, self._profile, tasks, self._scan.files)

    def _choose_or_leave(self, plan: WritePlan) -> _Choice:
        """The physical plan; Spark reads the files if the plan needs its rows, or Arrow might read other values."""
        try:
            choice = self._choose(plan)
            files = self._scan.files
            if files is not None and not self._takes_files(choice.name, plan, files):
                raise ScanRefusedError(f"the plan {choice.name} needs Spark's rows")
            return choice
        except ScanRefusedError as error:
            self._leave_to_spark(error)
        return self._choose(plan)

    def _takes_files(self, name: str, plan: WritePlan, files: FileScan) -> bool:
        """Whether a plan takes rows that Python reads."""
        if name == "fused":
            return unrouted_plans.takes_files(self._df.sparkSession, plan, self._profile, files)
        if name == "routed":
            return routed.takes_files(self._df.sparkSession, plan, self._profile, self._tasks(plan))
        return name in ("driver", "broadcast") or (name == "direct" and takes_any_rows(plan))

    def _leave_to_spark(self, error: ScanRefusedError) -> None:
        if self._options.engine.scan == "files":
            raise refused_scan(error.reason) from error
        self._scan = ChosenScan(reason=error.reason)

    def _requested_tasks(self, plan: WritePlan) -> int:
        """The number of tasks that the options set; 0 if they set none."""
        given = self._options
        named = {
            "upsert": given.upsert_parallelism,
            "delete": given.delete_parallelism,
            "bulk_insert": given.bulk_insert_parallelism,
        }
        return named.get(plan.operation, given.insert_parallelism)

    def _tasks(self, plan: WritePlan) -> int:
        """The number of tasks of a shuffle."""
        spark, requested = self._df.sparkSession, self._requested_tasks(plan)
        return task_count(spark, self._expected_bytes(), requested, self._stored_bytes(plan))

    def _stored_bytes(self, plan: WritePlan) -> int:
        """Bytes of the stored files that tasks may rewrite; 0 if they are unknown, or if all executors are there."""
        spark = self._df.sparkSession
        if self._profile is None or plan.operation not in _TAGGED or parallelism(spark) <= running_parallelism(spark):
            return 0
        return sum(stored_sizes(plan, None if plan.index.is_global else self._profile.rows).values())

    def _expected_bytes(self) -> int:
        """Arrow size of all rows, as far as it is known; otherwise 0."""
        if self._profile is not None:
            return self._profile.total_bytes
        return (self._estimate(self._source) or 0) * ARROW_GROWTH

    def _estimate(self, df: Any) -> int | None:
        """Spark's estimate of the size of the rows; None if unknown."""
        return estimated_bytes(df) if self._changes is None else self._changes.size

    def _choose(self, plan: WritePlan) -> _Choice:
        forced = self._options.engine.plan
        if forced not in PLANS:
            raise ConfigError(f"hudi_fast.plan={forced!r} is unknown; use one of {', '.join(PLANS)}.")
        if plan.operation == "delete_partition":
            self._local = LocalEngine(_distinct_partitions(self._df, plan))
            return _Choice("driver", "only partition paths are needed")
        if forced in ("auto", "driver", "broadcast") and (choice := self._choose_small(plan, forced)) is not None:
            return choice
        if plan.index.bucket is not None:
            return self._choose_for_buckets(plan, forced)
        if self._changes is not None:
            if forced == "fused":
                raise ConfigError("hudi_fast.plan=fused cannot serve DML rows; use routed.")
            return self._choose_for_changes(plan, self._changes)
        if plan.operation == "bulk_insert":
            return self._choose_for_bulk_insert(plan, forced)
        needs_routing = plan.index.is_global and plan.operation in _TAGGED
        if needs_routing and forced == "fused":
            raise ConfigError(f"hudi_fast.plan=fused cannot serve the global index {plan.index.kind}; use routed.")
        if needs_routing and plan.rules.blends:
            raise UnsupportedFeatureError(
                f"Table {plan.config.name} makes one row of two (hoodie.table.partial.update.mode, or a payload class "
                f"that does), which is supported with the global index {plan.index.kind} only for rows that fit into "
                f"the driver ({self._too_large or 'hudi_fast.plan=routed'}). Write fewer rows at once, raise "
                "hudi_fast.driver.max.bytes, or use an index that is not global."
            )
        by_partition = plan.index.uses_records and not plan.index.is_global and _is_partitioned(plan)
        if by_partition and plan.operation in _TAGGED and forced == "routed":
            raise ConfigError(f"hudi_fast.plan=routed cannot serve the index {plan.index.kind}; use fused.")
        compares_inserts = plan.operation == "insert" and plan.duplicates != "none"
        if compares_inserts and forced == "routed":
            raise ConfigError("hudi_fast.plan=routed cannot serve hoodie.datasource.insert.dup.policy; use fused.")
        if forced == "fused":
            return _Choice(forced, f"hudi_fast.plan={forced}")
        if (by_partition and plan.operation in _TAGGED) or compares_inserts:
            return _Choice("fused", self._too_large)
        self._profile = self._count(plan)
        self._row_size = self._measured_row_size(plan, self._profile)
        if forced == "routed":
            return _Choice(forced, f"hudi_fast.plan={forced}")
        if needs_routing:
            where = "finds keys by the metadata table" if plan.index.uses_records else "looks in all partitions"
            return _Choice("routed", f"the index {plan.index.kind} {where}")
        if not _is_partitioned(plan):
            return _Choice("routed", f"the table is not partitioned; {self._too_large}")
        return self._choose_by_profile(plan, self._profile)

    def _choose_for_bulk_insert(self, plan: WritePlan, forced: str) -> _Choice:
        """Write rows in the tasks that read them, unless these would make many small files."""
        how = arrangement(plan)
        self._direct_tasks = self._requested_tasks(plan)
        if self._direct_tasks or how is Arrangement.PARTITIONS:
            self._direct_tasks = self._tasks(plan)
            return _Choice("direct", f"bulk_insert needs no tagging; a task writes {how.value}")
        if forced != "routed" and (few := few_tasks(self._df)):
            self._direct_tasks = few
            return _Choice("direct", "bulk_insert needs no tagging; one or two tasks write few rows")
        row_bytes = _ROW_BYTES
        if may_need_row_size(plan):
            sample = self._sampled(rows_to_encode(_ROW_BYTES))
            row_bytes = _bytes_of_a_row(sample)
            self._row_size = encoded_row_size(plan, sample) if sample.num_rows else None
        sized = plan if self._row_size is None else with_row_size(plan, self._row_size)
        before_full = sizing_of(sized).records_before_full(sized.files.average_record_size)
        rows, inputs, files = count_pieces(self._df, plan, before_full, self._scan.files)
        self._profile = profile = WorkloadProfile(rows, max(row_bytes, sized.files.average_record_size), {}, inputs)
        allowed = bulk_files(sized, profile)
        shape = f"{profile.total:,} rows in {allowed.partitions:,} partitions ask for {allowed.asked:,} files"
        if how is Arrangement.RANGES:
            self._direct_tasks = allowed.range_tasks(self._tasks(plan))
            return _Choice("direct", f"{shape}; a task writes {how.value}")
        if forced == "fused" or (files <= allowed.limit and not plan.combine and forced != "routed"):
            self._direct_tasks = inputs
            return _Choice("direct", f"{shape}; tasks that write the rows they read make {files:,}")
        return _Choice("routed", f"{shape}; tasks that write the rows they read would make {files:,}")

    def _choose_for_changes(self, plan: WritePlan, changes: ChangeShape) -> _Choice:
        """Route by the file group that each row was read from; new rows are counted to plan their files."""
        why = self._too_large or "hudi_fast.plan=routed"
        if not changes.may_insert:
            return _Choice("routed", f"changed rows go to their file groups; {why}")
        rows, new = count_changes(self._df, plan)
        shares = {name: new[name] / count for name, count in rows.items()}
        sample = self._sampled(_SAMPLE_ROWS) if changes.source is None else first_rows(changes.source, _SAMPLE_ROWS)
        measured = max(_bytes_of_a_row(sample), plan.files.average_record_size)
        self._profile = WorkloadProfile(rows, measured, shares)
        if needs_row_size(plan, max(new.values(), default=0)):
            sample = first_rows(self._df.filter(F.col(ACTION) == F.lit(INSERT)), rows_to_encode(measured))
            self._row_size = encoded_row_size(plan, sample) if sample.num_rows else None
        partitions = sum(count > 0 for count in new.values())
        shape = f"{sum(rows.values()):,} changed rows go to their file groups, {sum(new.values()):,} of them are new"
        return _Choice("routed", f"{shape}, in {partitions:,} partitions; {why}")

    def _choose_by_profile(self, plan: WritePlan, profile: WorkloadProfile) -> _Choice:
        """Choose tasks for whole partitions if each has few rows and together they keep all cores busy."""
        looks_up = plan.operation in _TAGGED
        largest = profile.largest * profile.row_bytes
        shape = f"{profile.total:,} rows in {len(profile.rows):,} partitions, {profile.largest:,} in the largest"
        if largest > PARTITIONS_TASK_BYTES:
            return _Choice("routed", f"{shape}, about {largest:,} bytes in memory; {self._too_large}")
        rewrites = looks_up and not plan.config.is_mor
        weights = unrouted_plans.partition_sizes(plan, profile) if rewrites else profile.rows
        load = load_factor(weights.values(), parallelism(self._df.sparkSession))
        if load > _UNEVEN[looks_up] and profile.total_bytes > _EVEN_FROM:
            return _Choice("routed", f"{shape}: tasks for whole partitions would be uneven; {self._too_large}")
        return _Choice("fused", f"{shape}; {self._too_large}")

    def _count(self, plan: WritePlan) -> WorkloadProfile:
        """Count the rows of each partition, and measure the size of a row unless it cannot matter."""
        rows, inputs = count_rows(self._df, plan, self._scan.files)
        counted = WorkloadProfile(rows, _ROW_BYTES, {}, inputs)
        estimate = estimated_bytes(self._df)
        if estimate is not None and estimate * _MAX_GROWTH * counted.largest <= PARTITIONS_TASK_BYTES * counted.total:
            return replace(counted, row_bytes=max(_ROW_BYTES, ARROW_GROWTH * estimate // max(1, counted.total)))
        return replace(counted, row_bytes=_bytes_of_a_row(self._sampled(_SAMPLE_ROWS)))

    def _sampled(self, count: int) -> pa.Table:
        """The first rows, to measure their size; Spark's estimate of it ignores filters."""
        if self._sample is None or self._sample_of < count:
            files = self._scan.files
            found = None if files is None else first_rows_of_scan(files, count)
            self._sample, self._sample_of = first_rows(self._df, count) if found is None else found, count
        return self._sample

    def _measured_row_size(self, plan: WritePlan, profile: WorkloadProfile) -> float | None:
        """Bytes of a stored row; None if the table's commits or the options give it, or it does not matter.

        Apache Hudi assumes 1024 bytes until a commit has written enough.
        """
        if not needs_row_size(plan, profile.largest):
            return None
        sample = self._sampled(rows_to_encode(profile.row_bytes))
        return encoded_row_size(plan, sample) if sample.num_rows else None

    def _choose_for_buckets(self, plan: WritePlan, forced: str) -> _Choice:
        """Route by table partition if there are enough partitions: this needs no keys in Python before the shuffle."""
        if forced == "routed":
            return _Choice("bucketed", f"hudi_fast.plan={forced}, and the hash of a key is its route")
        if forced == "fused":
            return _Choice(forced, f"hudi_fast.plan={forced}")
        lanes = self._tasks(plan)
        if _is_partitioned(plan) and len(plan.view.lister.partitions()) >= lanes:
            return _Choice("fused", f"{lanes} tasks have table partitions of their own; {self._too_large}")
        return _Choice("bucketed", f"fewer table partitions than {lanes} tasks; {self._too_large}")

    def _collect_few(self, bound: int, estimate: int | None) -> tuple[pa.Table, bool]:
        """Rows up to the bounds of the driver plan, and whether these are all rows.

        A limit costs a shuffle, so none is set where Spark's estimate is far below the bound. Without an estimate, or
        with many rows that may be wider than Spark assumes, the size of the first rows limits the number of rows to
        collect.
        """
        if self._scan.files is not None:
            return self._read_few(self._scan.files, bound)
        if estimate is not None and estimate <= bound // TINY:
            return collect(self._df), True
        maximum = DRIVER_ROWS
        if estimate is None or estimate > _UNMEASURED_ROWS * _assumed_width(arrow_schema(self._df)):
            first = self._sampled(_SAMPLE_ROWS)
            if first.num_rows < _SAMPLE_ROWS or first.nbytes > bound:
                return first, first.num_rows < _SAMPLE_ROWS
            maximum = min(maximum, 2 * bound * first.num_rows // max(1, first.nbytes))
        if estimate is not None and estimate > _WORTH_COUNTING and reads_files(self._df):
            few = self._df.count() <= maximum
            return (collect(self._df), True) if few else (self._sampled(_SAMPLE_ROWS), False)
        rows = collect(self._df.limit(maximum + 1))
        return rows, rows.num_rows <= maximum

    def _read_few(self, files: FileScan, bound: int) -> tuple[pa.Table, bool]:
        """:meth:`_collect_few` of files that Python reads."""
        total, maximum = rows_by_footers(files), DRIVER_ROWS
        if total is None or (total > maximum and files.filters):
            total = self._df.count()
        if _UNMEASURED_ROWS < total <= maximum:
            first = self._sampled(_SAMPLE_ROWS)
            maximum = min(maximum, 2 * bound * first.num_rows // max(1, first.nbytes))
        return (rows_of_scan(files), True) if total <= maximum else (self._sampled(_SAMPLE_ROWS), False)

    def _choose_small(self, plan: WritePlan, forced: str) -> _Choice | None:
        """Collect the rows if they are few enough; None if they are not."""
        bound = self._options.engine.driver_max_bytes
        estimate = self._estimate(self._df)
        if forced == "auto" and estimate is not None and estimate * ARROW_GROWTH > bound:
            in_memory = f"perhaps {estimate * ARROW_GROWTH:,} in memory, more than {bound:,}"
            self._too_large = f"Spark expects {estimate:,} bytes of input, {in_memory}"
            return None
        if forced == "driver":
            rows, complete = collect(self._df) if self._scan.files is None else rows_of_scan(self._scan.files), True
        else:
            rows, complete = self._collect_few(bound, estimate)
        if forced != "driver" and (not complete or rows.num_rows > DRIVER_ROWS or rows.nbytes > bound):
            if forced == "broadcast":
                raise ConfigError(
                    f"hudi_fast.plan=broadcast takes at most {DRIVER_ROWS} rows and {bound} bytes; the input is larger."
                )
            self._too_large = f"more than {DRIVER_ROWS:,} rows or {bound:,} bytes of input"
            if complete or rows.num_rows > self._sample_of:
                known = _ENCODED_ROWS if complete else min(rows.num_rows, _ENCODED_ROWS)
                self._sample, self._sample_of = rows.slice(0, _ENCODED_ROWS), known
            return None
        self._local = LocalEngine(rows)
        reason = f"{rows.num_rows:,} rows, {rows.nbytes:,} bytes"
        if forced == "broadcast":
            return _Choice("broadcast", f"{reason}, hudi_fast.plan=broadcast")
        if forced == "driver" or is_local(self._df.sparkSession):
            return _Choice("driver", reason)
        return self._choose_on_cluster(plan, self._local, reason)

    def _choose_on_cluster(self, plan: WritePlan, local: LocalEngine, reason: str) -> _Choice:
        """Let the driver of a cluster write few rows only if few bytes of files are read for them."""
        if _is_partitioned(plan) and not plan.index.is_global and GROUP not in self._df.columns:
            return _Choice("broadcast", f"{reason}, on a cluster")
        local.prepare(plan)
        read = bytes_to_read(plan, local.incoming)
        name = "driver" if read <= self._options.engine.driver_max_bytes else "broadcast"
        return _Choice(name, f"{reason}, for which up to {read:,} bytes of files are read, on a cluster")


def _assumed_width(schema: pa.Schema) -> float:
    """Bytes that Spark assumes for a row with computed strings; infinite without columns of variable width."""
    fixed = [pa.types.is_primitive(field.type) or pa.types.is_decimal(field.type) for field in schema]
    return float("inf") if all(fixed) else 8 + sum(8 if one else 20 for one in fixed)


def _bytes_of_a_row(sample: pa.Table) -> int:
    """Arrow bytes of a row, at least 1."""
    return max(1, sample.nbytes // sample.num_rows) if sample.num_rows else _ROW_BYTES


def _outcome(found: list[Answer], plan: str, reason: str) -> WriteOutcome:
    stats = [stat for answer in found for stat in answer.stats]
    partitions = frozenset(name for answer in found for name in answer.partitions)
    return WriteOutcome(stats, plan, reason, partitions)


def _distinct_partitions(df: Any, plan: WritePlan) -> pa.Table:
    roots = [root for root in df.columns if root in {name.split(".")[0] for name in plan.key_config.partition_fields}]
    return collect(df.select(*[f"`{name}`" for name in roots]).distinct()) if roots else pa.table({})


def _is_partitioned(plan: WritePlan) -> bool:
    return plan.config.is_partitioned
