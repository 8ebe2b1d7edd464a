"""Reading with Spark: the core plans the read, Spark reads base rows (:mod:`hudi_fast.spark.reading.scan`), the core
reads log rows.

A filter argument of the read skips files before the scan is planned. The filters of a query on the DataFrame skip files
when Spark plans the query (:mod:`hudi_fast.spark.reading.file_index`). Both use partition paths and the indexes of the
metadata table, and only skip. A partition path need not equal the stored column values (with a global index a row may
stay in its partition when its partition column changes): where the path gives values, the rows have these values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import and_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from hudi_fast.config.moments import timeline_zone
from hudi_fast.config.read_options import ReadOptions
from hudi_fast.events import without_secrets
from hudi_fast.reading.incremental.cdc import CHANGE_SCHEMA, CdcPlan, plan_cdc, read_changes, with_images
from hudi_fast.reading.incremental.query import (
    COMMIT_TIME,
    IncrementalView,
    incremental_view,
    plan_incremental,
    plan_view,
)
from hudi_fast.reading.scan import ScanPlan, ScanQuery, narrowed, plan_scan, readable_schema
from hudi_fast.reading.shown_columns import ShownColumns, shown_columns
from hudi_fast.reading.time_travel import state_for_query
from hudi_fast.spark.arrow import names_are_exact, spark_schema
from hudi_fast.spark.reading.filters import understand_filter
from hudi_fast.spark.reading.python_scan import Query, UnitRows, prunes_columns, python_frame
from hudi_fast.spark.reading.scan import scan_slices
from hudi_fast.storage.base import Storage
from hudi_fast.storage.failures import told_while_read
from hudi_fast.values import dataclass
from hudi_fast.view.table_state import TableState

__all__ = ["frame_of", "incremental_frame", "read"]

_FEW = 0.1


def read(
    storage: Storage,
    spark: Any,
    options: Mapping[str, Any],
    columns: Sequence[str] | None = None,
    filter: Any = None,
    folder: str = "",
) -> Any:
    """A lazy DataFrame of the table; meta columns first.

    Args:
        storage: the table's storage.
        spark: the session.
        options: of the read.
        columns: columns to read, in this order; None for all.
        filter: row filter: a ``pyarrow.compute`` expression, SQL text or a Spark column.
        folder: of the table, to read only its partitions; empty for all.

    Raises:
        HudiError: as the local reader.
    """
    settings = ReadOptions.from_options(options, timeline_zone(storage))
    query = ScanQuery.from_options(settings, options, folder)
    if settings.query_type == "incremental" and settings.incremental_format == "cdc":
        return _changes(
            spark, plan_cdc(state_for_query(storage, None, settings.metadata_enabled), settings), columns, filter
        )
    if settings.query_type == "incremental":
        return _incremental(spark, incremental_view(storage, settings), query, columns, filter)
    state = state_for_query(storage, settings.as_of, settings.metadata_enabled)
    shown = _shown(spark, state, columns)
    wanted = None if shown is None else shown.roots
    if filter is None or isinstance(filter, pc.Expression):
        plan = plan_scan(state, wanted, filter, query=query)
        return _select(frame_of(spark, plan, needs_all=columns is not None), shown)
    asked = understand_filter(spark, spark_schema(readable_schema(state)), filter)
    if wanted is not None:
        wanted = list(dict.fromkeys([*wanted, *asked.columns]))
    plan = plan_scan(state, wanted, query=query, condition=asked.condition)
    return _select(frame_of(spark, plan).filter(filter), shown)


def _incremental(
    spark: Any, view: IncrementalView, query: ScanQuery, columns: Sequence[str] | None, filter_: Any
) -> Any:
    """The rows of the view's range; Spark filters by range, so that its own scan can read base files.

    The core's reader handles small ranges: it decodes Parquet faster than Spark and returns only these rows. Where it
    does not learn the columns of the query, the call must name them.
    """
    shown = _shown(spark, view.state, columns)
    wanted = None if shown is None else shown.roots
    if isinstance(filter_, pc.Expression):
        return _select(frame_of(spark, plan_incremental(view, wanted, filter_, query=query)), shown)
    filters = [*(F.expr(one) for one in view.conditions), *(() if filter_ is None else (_column(filter_),))]
    filter_ = reduce(and_, filters) if filters else None
    asked = None if filter_ is None else understand_filter(spark, spark_schema(readable_schema(view.state)), filter_)
    if wanted is not None:
        looked_at = [*(() if asked is None else asked.columns), *(() if view.instants is None else (COMMIT_TIME,))]
        wanted = list(dict.fromkeys([*wanted, *looked_at]))
    condition = None if asked is None else asked.condition
    few = view.share <= _FEW and (columns is not None or prunes_columns(spark))
    frame = frame_of(
        spark, plan_view(view, wanted, view.range_filter() if few else None, query=query, condition=condition)
    )
    if view.instants and not few:
        frame = frame.filter(F.col(COMMIT_TIME).isin(*view.instants))
    if filter_ is not None:
        frame = frame.filter(filter_)
    return _select(frame, shown)


def _shown(spark: Any, state: TableState, columns: Sequence[str] | None) -> ShownColumns | None:
    """The requested columns; None for all."""
    if columns is None:
        return None
    return shown_columns(columns, readable_schema(state, columns), state.storage.uri, names_are_exact(spark))


def _select(frame: Any, shown: ShownColumns | None) -> Any:
    if shown is None or (shown.is_plain and frame.columns == shown.roots):
        return frame
    columns = zip(shown.paths, shown.schema.names, strict=True)
    return frame.select(*(F.col(".".join(f"`{part}`" for part in path)).alias(name) for path, name in columns))


def _column(filter_: Any) -> Any:
    return F.expr(filter_) if isinstance(filter_, str) else filter_


def _changes(spark: Any, plan: CdcPlan, columns: Sequence[str] | None, filter_: Any) -> Any:
    """A CDC query; the core applies ``pyarrow.compute`` filters, Spark applies its own."""
    own = filter_ if isinstance(filter_, pc.Expression) else None
    named = columns
    if columns is not None and filter_ is not None and own is None:
        named = [*columns, *understand_filter(spark, spark_schema(CHANGE_SCHEMA), filter_).columns]
    frame = incremental_frame(spark, with_images(plan, named, own), own, columns is not None)
    if filter_ is not None and own is None:
        frame = frame.filter(filter_)
    return frame if columns is None else frame.select(*(F.col(f"`{name}`") for name in columns))


def frame_of(spark: Any, plan: ScanPlan, needs_all: bool = False) -> Any:
    """A lazy DataFrame of a planned scan.

    Args:
        spark: the session.
        plan: the scan.
        needs_all: whether the query is known to need all columns of all rows.
    """
    slices = [one for one in plan.slices if one.base_file is not None or plan.scan.merge is not None]
    if not slices:
        return spark.createDataFrame([], spark_schema(plan.scan.output))
    return scan_slices(spark, plan.scan, slices, narrow=partial(narrowed, plan), needs_all=needs_all)


# ---- CDC queries as Spark DataFrames: the core's reader in Python workers, in tasks of about equal bytes


_TASK_BYTES = 64 << 20  # each Python task has an overhead of about 0.05 s


def incremental_frame(spark: Any, plan: CdcPlan, filter: pc.Expression | None = None, needs_all: bool = False) -> Any:
    """A lazy DataFrame of the changes: op, ts_ms, before, after.

    Args:
        spark: the session.
        plan: of the CDC query.
        filter: on changes; None for all.
        needs_all: whether the query is known to need all images of the plan.
    """
    if not plan.units:
        return spark.createDataFrame([], spark_schema(CHANGE_SCHEMA))
    return python_frame(spark, _ChangeRows(plan, filter), needs_all)


@dataclass(frozen=True)
class _ChangeRows:
    """The rows of a CDC query, for :func:`~hudi_fast.spark.reading.python_scan.python_frame`.

    Attributes:
        plan: of the query.
        filter: on changes; None for all.
    """

    plan: CdcPlan
    filter: pc.Expression | None
    schema: pa.Schema = CHANGE_SCHEMA
    filterable: pa.Schema = CHANGE_SCHEMA

    @property
    def name(self) -> str:
        return f"hudi_fast changes of {without_secrets(self.plan.storage.uri)}"

    @property
    def size(self) -> int:
        return sum(unit.weight for unit in self.plan.units)

    def rows(self, query: Query) -> UnitRows:
        filters = [one for one in (self.filter, query.filter) if one is not None]
        condition = reduce(and_, filters) if filters else None
        plan, columns = with_images(self.plan, query.columns, condition), list(query.columns)
        shared = replace(plan, units=())  # a task gets its units apart

        def read(unit: Any) -> Iterator[pa.RecordBatch]:
            for changes in told_while_read(read_changes(shared, unit), shared.storage.uri):
                yield (changes if condition is None else changes.filter(condition)).select(columns)

        weights = [unit.weight for unit in plan.units]
        return UnitRows(plan.units, weights, _TASK_BYTES, read)
