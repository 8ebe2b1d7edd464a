"""Skip files that cannot match a filter, with the metadata table.

::

    partition paths ─► partition_stats ─► record index | secondary index ─► slices of remaining file groups
        ─► buckets ─► expression indexes ─► column_stats ─► bloom filters ─► slices that may hold matching rows

Each step takes the remaining partitions or slices and returns those that may match; the :class:`SkipReport` records the
counts. A step excludes only files that certainly do not match; the filter is still applied to rows. Statistics of a
file are valid while the file exists, so every query may use them. The other indexes describe the table's current rows,
so only a merged query of the current table uses them. An index that cannot be read is ignored with a warning.

Source for the order: ``HoodieFileIndex``, Hudi 1.2.0, where bloom filters precede the cheaper ``column_stats``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import HudiError
from hudi_fast.events import warn
from hudi_fast.expressions.conditions import Anything, Column, Condition, columns_of
from hudi_fast.index.tagging import BucketSettings
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.state import metadata_of
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.reading.prune import matching_partitions, of_stored_values, partition_columns
from hudi_fast.reading.skipping.bounds import Bounds, may_match
from hudi_fast.reading.skipping.expressions import filtered_expressions, indexed_expressions
from hudi_fast.reading.skipping.keys import (
    Groups,
    bloom_matches,
    bucket_matches,
    expression_matches,
    groups_of_keys,
    keys_by_secondary,
    record_key_texts,
    secondary_of,
)
from hudi_fast.reading.skipping.stats import StatsColumn, partition_bounds, slice_bounds, stats_columns
from hudi_fast.schema.history import altered_columns
from hudi_fast.values import dataclass
from hudi_fast.view.slices import FileSlice, by_partition
from hudi_fast.view.table_state import TableState

__all__ = ["Selection", "SkipReport", "SkipRequest", "SkipStep", "narrow_slices", "select_slices"]

_PARTITIONS, _SLICES = "partitions", "file slices"
_FEW_PARTITIONS = 64
"""For up to this many partitions, evaluating the whole filter for each one is faster."""


@dataclass(frozen=True, slots=True)
class SkipStep:
    """One skipping step.

    Attributes:
        index: ``partition path``, ``bucket``, or a partition of the metadata table.
        unit: what is counted: ``partitions`` or ``file slices``.
        before: count before the step.
        after: count that may match.
        note: details, or why the index was not used; may be empty.
    """

    index: str
    unit: str
    before: int
    after: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class SkipReport:
    """The skipping steps of a filter."""

    steps: tuple[SkipStep, ...] = ()

    def to_arrow(self) -> pa.Table:
        """One row per step: index, unit, before, after, note."""
        schema = pa.schema([(name, pa.string()) for name in ("index", "unit")])
        for name in ("before", "after"):
            schema = schema.append(pa.field(name, pa.int64()))
        rows = [{name: getattr(step, name) for name in SkipStep.__slots__} for step in self.steps]
        return pa.Table.from_pylist(rows, schema.append(pa.field("note", pa.string())))


@dataclass(frozen=True)
class SkipRequest:
    """The query to skip files for.

    Attributes:
        schema: columns of the query, meta columns first.
        filter: condition of the rows as an expression, if available; used for partition paths.
        condition: the same condition as a tree; :class:`Anything` if unknown.
        merged: whether the query merges log files into base files.
        columns: top-level columns of the condition, possibly more; None if unknown.
        mixes_rows: whether a user function merges rows, so that merged rows may have values that no file holds.
        bucket: bucket settings of the table, if the caller knows them.
        folder: folder of the table whose partitions are read; empty for all.
        from_path: partition columns that are read from paths.
    """

    state: TableState
    schema: pa.Schema
    filter: pc.Expression | None = None
    condition: Condition = field(default_factory=Anything)
    columns: frozenset[str] | None = None
    threads: int = 1
    merged: bool = True
    mixes_rows: bool = False
    use_indexes: bool = True
    bucket: BucketSettings | None = None
    folder: str = ""
    from_path: frozenset[str] = frozenset()

    @property
    def of_stored_values(self) -> Condition:
        """The condition for stored values, which indexes describe."""
        return of_stored_values(self.condition, self.from_path)

    @property
    def reads_current_rows(self) -> bool:
        """Whether the query reads the rows that row indexes describe."""
        return self.merged and self.state.view.as_of is None and not self.mixes_rows


@dataclass(frozen=True)
class Selection:
    """The remaining slices."""

    slices: tuple[FileSlice, ...]
    partitions: int
    report: SkipReport


def select_slices(request: SkipRequest, slices_of: Callable[[str], list[FileSlice]]) -> Selection:
    """The slices that may hold matching rows.

    ``slices_of`` returns the slices of a partition.

    Warns:
        HudiWarning: an index cannot be read and is ignored.
    """
    view = request.state.view

    def slices_in(paths: list[str]) -> list[FileSlice]:
        return [one for found in by_partition(view, paths, slices_of, request.threads) for one in found]

    paths = view.lister.partitions()
    if request.folder:
        paths = [path for path in paths if f"{path}/".startswith(f"{request.folder}/")]
    return _select(request, paths, slices_in)


def narrow_slices(request: SkipRequest, slices: Sequence[FileSlice]) -> Selection:
    """The given slices that may hold matching rows; the report counts their partitions.

    Warns:
        HudiWarning: an index cannot be read and is ignored.
    """
    found: dict[str, list[FileSlice]] = {}
    for one in slices:
        found.setdefault(one.partition, []).append(one)
    return _select(request, list(found), lambda paths: [one for path in paths for one in found[path]])


def _select(
    request: SkipRequest, everything: list[str], slices_in: Callable[[list[str]], list[FileSlice]]
) -> Selection:
    state = request.state
    paths = _by_paths(request, everything)
    steps = _Steps(state.storage.uri)
    if state.config.is_partitioned and (request.filter is not None or not isinstance(request.condition, Anything)):
        steps.add("partition path", _PARTITIONS, len(everything), len(paths))
    table = metadata_of(state) if request.use_indexes and not isinstance(request.condition, Anything) else None
    groups = None
    if table is not None and paths:
        paths = _by_partition_stats(request, table, paths, steps)
        groups = _by_keys(request, table, paths, steps)
        if groups is not None:
            holding = {path for path, _ in groups}
            paths = [path for path in paths if path in holding]
    slices = slices_in(paths)
    if request.use_indexes and groups is None:
        slices = _by_buckets(request, slices, steps)
    if table is not None and slices:
        slices = _by_files(request, table, slices, groups, steps)
    return Selection(tuple(slices), len(everything), SkipReport(tuple(steps.done)))


class _Steps:
    """Records the steps."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.done: list[SkipStep] = []

    def add(self, index: str, unit: str, before: int, after: int, note: str = "") -> None:
        self.done.append(SkipStep(index, unit, before, after, note))

    @contextmanager
    def reading(self, index: str, unit: str, count: int) -> Iterator[None]:
        """Ignore an index that fails, with a warning."""
        try:
            yield
        except (HudiError, OSError, pa.ArrowException) as error:
            self._ignore(index, unit, count, f"cannot be read: {error}")

    def usable(self, table: MetadataTable, index: str, unit: str, count: int) -> bool:
        """Whether the metadata table has the index and can read it; warns about one that it cannot read."""
        if index not in table.partitions:
            return False
        reason = table.unusable(index)
        if reason is not None:
            self._ignore(index, unit, count, f"cannot be used: {reason}")
        return reason is None

    def _ignore(self, index: str, unit: str, count: int, why: str) -> None:
        text = f"{self.where}: no file is skipped by the index {index}, which {why}"
        warn(text)
        self.add(index, unit, count, count, why)


# ---- partitions


def _by_paths(request: SkipRequest, paths: list[str]) -> list[str]:
    config = request.state.config
    names = frozenset(config.partition_fields)
    if not config.is_partitioned or (request.columns and names.isdisjoint(request.columns)):
        return paths
    if request.filter is None or len(paths) > _FEW_PARTITIONS:
        paths = _by_path_values(request, paths)
    return matching_partitions(config, request.schema, paths, request.filter)


def _by_path_values(request: SkipRequest, paths: list[str]) -> list[str]:
    """Decide about all paths at once, by the parts of the condition that are understood."""
    columns = {Column((name,)) for name in request.state.config.partition_fields}
    if columns_of(request.condition).isdisjoint(columns):
        return paths
    keep = may_match(request.condition, _path_bounds(request, paths), len(paths))
    return [path for path, kept in zip(paths, keep, strict=True) if kept]


def _path_bounds(request: SkipRequest, paths: Sequence[str]) -> dict[Column, Bounds]:
    """Bounds of the columns with values in paths: both bounds are the value."""
    values, bounds = partition_columns(request.state.config, request.schema, paths), {}
    for name, found in values.items():
        is_known = pc.if_else(found.is_valid(), True, pa.scalar(None, pa.bool_()))
        bounds[Column((name,))] = Bounds(found, found, pc.invert(is_known), is_known)
    return bounds


def _by_partition_stats(request: SkipRequest, table: MetadataTable, paths: list[str], steps: _Steps) -> list[str]:
    index = PartitionKind.PARTITION_STATS.value
    altered = altered_columns(request.state.view.history)
    columns = [one for one in _with_stats(request, table) if one.name.partition(".")[0] not in altered]
    if len(paths) < 2 or not columns or not request.reads_current_rows:
        return paths
    config = request.state.config
    if config.base_file_format != "PARQUET" or config.has_several_formats:
        return paths  # Apache Hudi has no statistics of base files in other formats: its records cover only log files
    if not steps.usable(table, index, _PARTITIONS, len(paths)):
        return paths
    with steps.reading(index, _PARTITIONS, len(paths)):
        bounds = partition_bounds(table, paths, columns) | _path_bounds(request, paths)
        keep = may_match(request.condition, bounds, len(paths))
        # Statistics of a group in a pending compaction may cover only later log files.
        pending = {path for path, _ in request.state.view.pending_compactions}
        left = [path for path, kept in zip(paths, keep, strict=True) if kept or path in pending]
        steps.add(index, _PARTITIONS, len(paths), len(left))
        return left
    return paths


def _with_stats(request: SkipRequest, table: MetadataTable) -> list[StatsColumn]:
    """The filter's columns that have statistics."""
    definition = table.definitions.get(PartitionKind.COLUMN_STATS.value)
    columns = stats_columns(request.schema, sorted(columns_of(request.of_stored_values), key=lambda one: one.path))
    return [one for one in columns if definition is None or one.name in definition.source_fields]


# ---- file groups


def _by_keys(request: SkipRequest, table: MetadataTable, paths: list[str], steps: _Steps) -> Groups | None:
    """File groups that hold the keys or values named in the filter; None for all."""
    index = PartitionKind.RECORD_INDEX.value
    if not paths or not request.reads_current_rows:
        return None
    keys = record_key_texts(request.condition, request.schema, request.state.config)
    altered = altered_columns(request.state.view.history)
    secondary = None if keys is not None else secondary_of(table, request.of_stored_values, request.schema, altered)
    by = index if secondary is None else secondary.partition
    if keys is None and secondary is None:
        return None
    if not all(steps.usable(table, one, _PARTITIONS, len(paths)) for one in dict.fromkeys((index, by))):
        return None
    with steps.reading(by, _PARTITIONS, len(paths)):
        if secondary is not None:
            keys = keys_by_secondary(table, secondary)
        assert keys is not None
        groups = groups_of_keys(table, keys, paths)
        if groups is not None:
            left = len({path for path, _ in groups})
            steps.add(by, _PARTITIONS, len(paths), left, f"{len(keys)} keys in {len(groups)} file groups")
        return groups
    return None


def _by_files(
    request: SkipRequest, table: MetadataTable, slices: list[FileSlice], groups: Groups | None, steps: _Steps
) -> list[FileSlice]:
    if groups is not None:
        left = [one for one in slices if (one.partition, one.file_id) in groups]
        steps.add("record_index", _SLICES, len(slices), len(left))
        slices = left
    slices = _by_expressions(request, table, slices, steps)
    slices = _by_column_stats(request, table, slices, steps)
    return slices if groups is not None else _by_blooms(request, table, slices, steps)


# ---- file slices


def _by_buckets(request: SkipRequest, slices: list[FileSlice], steps: _Steps) -> list[FileSlice]:
    if len(slices) < 2 or request.state.view.as_of is not None:
        return slices
    with steps.reading("bucket", _SLICES, len(slices)):
        keys = record_key_texts(request.condition, request.schema, request.state.config)
        keep = None if keys is None else bucket_matches(request.state, slices, keys, request.bucket)
        if keep is not None:
            left = [one for one, kept in zip(slices, keep, strict=True) if kept]
            steps.add("bucket", _SLICES, len(slices), len(left))
            return left
    return slices


def _by_expressions(
    request: SkipRequest, table: MetadataTable, slices: list[FileSlice], steps: _Steps
) -> list[FileSlice]:
    for one in indexed_expressions(table, request.of_stored_values, request.schema):
        if not slices or not steps.usable(table, one.partition, _SLICES, len(slices)):
            continue
        with steps.reading(one.partition, _SLICES, len(slices)):
            bounds = slice_bounds(table, one.partition, slices, [one.column], request.state.view.history)
            slices = _kept(request, may_match(one.condition, bounds, len(slices)), slices, one.partition, steps)
    definitions = table.definitions
    for filters in filtered_expressions(table, request.of_stored_values, request.schema):
        name, history = filters.partition, request.state.view.history
        if not slices or not steps.usable(table, name, _SLICES, len(slices)):
            continue
        with steps.reading(name, _SLICES, len(slices)):
            column = definitions[name].source_fields[0]
            keep = expression_matches(table, name, slices, filters.texts, history, column)
            slices = _kept(request, keep, slices, name, steps)
    return slices


def _by_column_stats(
    request: SkipRequest, table: MetadataTable, slices: list[FileSlice], steps: _Steps
) -> list[FileSlice]:
    index = PartitionKind.COLUMN_STATS.value
    columns = _with_stats(request, table)
    if not slices or not columns or not steps.usable(table, index, _SLICES, len(slices)):
        return slices
    with steps.reading(index, _SLICES, len(slices)):
        bounds = slice_bounds(table, index, slices, columns, request.state.view.history)
        bounds |= _path_bounds(request, [one.partition for one in slices])
        return _kept(request, may_match(request.condition, bounds, len(slices)), slices, index, steps)
    return slices


def _kept(
    request: SkipRequest, keep: npt.NDArray[np.bool_], slices: list[FileSlice], index: str, steps: _Steps
) -> list[FileSlice]:
    """The slices that may match; with a user's merge function also all slices with log files."""
    if request.mixes_rows:
        keep |= np.array([bool(one.log_files) for one in slices])
    left = [one for one, kept in zip(slices, keep, strict=True) if kept]
    steps.add(index, _SLICES, len(slices), len(left))
    return left


def _by_blooms(request: SkipRequest, table: MetadataTable, slices: list[FileSlice], steps: _Steps) -> list[FileSlice]:
    index = PartitionKind.BLOOM_FILTERS.value
    keys = record_key_texts(request.condition, request.schema, request.state.config)
    if len(slices) < 2 or keys is None or not steps.usable(table, index, _SLICES, len(slices)):
        return slices
    with steps.reading(index, _SLICES, len(slices)):
        left = [one for one, kept in zip(slices, bloom_matches(table, slices, keys), strict=True) if kept]
        steps.add(index, _SLICES, len(slices), len(left))
        return left
    return slices
