"""Rows of the table for DML, and the engine that computes rows from them.

Reads rows of the table for DML, with the file group of each row.

::

    pinned state, columns, filter ─► slices that may match ─► rows + record key, partition path, file group

The engine of DML: its rows are computed from stored rows.

::

    pinned state ─► read matching rows ─► changed rows ─► an ordinary engine writes them

Reading and writing use one pinned table state. Conflicts with later commits are checked before the commit: in
single-writer mode any commit of another writer conflicts; with concurrency control only commits to the same file groups
do (:mod:`hudi_fast.writing.conflicts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.dml.statement import MergeSpec
from hudi_fast.errors import CommitConflictError, ConfigError, InvalidDataError
from hudi_fast.keys.key_generator import record_keys
from hudi_fast.reading.scan import ScanQuery, plan_scan
from hudi_fast.reading.slice_reader import read_slice
from hudi_fast.storage.concurrency import units_at_once
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.view.slices import FileSlice
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.backend import Engine
from hudi_fast.writing.dml_rows import ACTION, GROUP, KEY, PATH
from hudi_fast.writing.write_plan import WriteOutcome, WritePlan

__all__ = [
    "PLACES",
    "DmlEngine",
    "check_columns",
    "dml_schema",
    "identity_columns",
    "key_filter",
    "names_rows",
    "pinned_state",
    "read_rows",
    "roots",
]


class DmlEngine:
    """Passes the changed rows of a DML statement to the engine that writes them.

    Args:
        columns: data columns of these rows, in the types of the table.
        make_engine: creates the engine with the rows, from the plan of the write.
        unset: columns that no update of the statement sets.
    """

    def __init__(
        self,
        columns: pa.Schema,
        make_engine: Callable[[WritePlan], Engine],
        unset: frozenset[str],
    ) -> None:
        self._columns = columns
        self._make_engine = make_engine
        self._unset = unset
        self._inner: Engine | None = None

    def input_schema(self, state: TableState) -> pa.Schema:
        """The data columns and the action column."""
        return dml_schema(self._columns)

    def prepare(self, plan: WritePlan) -> None:
        """Compute the changed rows.

        Raises:
            CommitConflictError: the columns of the table have changed since the statement was resolved.
        """
        known = {field.name: field.type for field in plan.schema}
        if any(known.get(field.name) != field.type for field in self._columns):
            raise CommitConflictError(
                f"The columns of {plan.storage.uri} changed while this write waited for the lock: they are now "
                f"{plan.schema.names}. The table is as before; run the operation again."
            )
        self._inner = self._make_engine(plan)
        self._inner.prepare(plan)

    def execute(self, plan: WritePlan) -> WriteOutcome:
        """Write the rows."""
        assert self._inner is not None, "write requires prepare"
        return self._inner.execute(replace(plan, unset=self._unset))


def dml_schema(columns: pa.Schema) -> pa.Schema:
    """The schema of changed rows for a write."""
    return columns.append(pa.field(ACTION, pa.int8()))


def pinned_state(plan: WritePlan) -> TableState:
    """The table state that a write pins."""
    return TableState(plan.storage, plan.config, plan.view.timeline, plan.view)


PLACES = (KEY, PATH, GROUP)
"""Columns that identify a stored row: record key, partition path, file group."""


def roots(names: Iterable[str]) -> list[str]:
    """The top-level columns of dotted names."""
    return list(dict.fromkeys(name.split(".")[0] for name in names))


def identity_columns(plan: WritePlan) -> list[str]:
    """Columns that every changed row has: for its key, partition path and ordering value."""
    ordering = [name for name in roots(plan.config.ordering_fields) if name in plan.schema.names]
    partitioned = roots(plan.config.partition_fields) if plan.config.is_partitioned else []
    return list(dict.fromkeys([*roots(plan.config.record_key_fields), *partitioned, *ordering]))


def read_rows(plan: WritePlan, columns: Sequence[str], filter_: pc.Expression | None) -> pa.Table:
    """Rows of the pinned table.

    Args:
        plan: the write.
        columns: data columns to read.
        filter_: row filter; None for all rows.

    Returns:
        The columns, and the columns :data:`PLACES`.

    Raises:
        ConfigError: the filter does not fit the table.
        CorruptTableError: a file cannot be read.
    """
    keyed = plan.config.populate_meta_fields
    if not keyed:
        columns = list(dict.fromkeys([*columns, *roots(plan.config.record_key_fields)]))
    wanted = [*columns, KEY] if keyed else list(columns)
    scan = plan_scan(pinned_state(plan), wanted, filter_, plan.files.threads, ScanQuery(merger=plan.rules.merger))

    def read(one: FileSlice) -> pa.Table:
        rows = pa.Table.from_batches(read_slice(scan.scan, one), scan.scan.output)
        keys = rows.column(KEY) if keyed else pa.chunked_array([record_keys(plan.key_config, rows)], pa.string())
        places = [keys, *(_repeated(text, rows.num_rows) for text in (one.partition, one.file_id))]
        return pa.table([*rows.select(list(columns)).columns, *places], names=[*columns, *PLACES])

    sizes = [one.weight for one in scan.slices]
    with ThreadPool(units_at_once(sizes, plan.files.threads, plan.files.max_threads)) as pool:
        parts = list(pool.map(read, scan.slices))
    if parts:
        return pa.concat_tables(parts)
    fields = [plan.schema.field(name) for name in columns]
    return pa.schema([*fields, *(pa.field(name, pa.string()) for name in PLACES)]).empty_table()


def key_filter(plan: WritePlan, source: pa.Table, pairs: Sequence[tuple[str, str]]) -> pc.Expression | None:
    """A filter for rows of the table whose key fields equal the key fields of a source row.

    Args:
        plan: the write.
        source: rows with columns in the table's types.
        pairs: (column of the table, column of the source), covering all key fields.
    """
    sources = dict(pairs)
    fields = plan.config.record_key_fields
    if any("." in name for name in fields):
        return None
    rows = pa.table({name: source.column(sources[name]) for name in fields})
    for name in fields:
        rows = rows.filter(pc.field(name).is_valid())
    if not plan.config.populate_meta_fields:
        return pc.field(fields[0]).isin(pc.unique(rows.column(0)))
    try:
        keys = record_keys(plan.key_config, rows)
    except InvalidDataError:  # keys that cannot be stored; join without the filter
        return None
    return pc.field(KEY).isin(pc.unique(keys))


def _repeated(text: str, count: int) -> pa.ChunkedArray:
    return pa.chunked_array([pa.repeat(pa.scalar(text, pa.string()), count)])


def check_columns(names: Iterable[str], known: Sequence[str], where: str) -> None:
    """Refuse unknown columns.

    Raises:
        ConfigError: a column is unknown; the message names it.
    """
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ConfigError(f"{where}: there are no columns {unknown}; there are {list(known)}.")


def names_rows(plan: WritePlan, spec: MergeSpec) -> bool:
    """Whether unmatched source rows are known to have keys that are not stored.

    Args:
        plan: the write.
        spec: the merge.
    """
    keys = set(plan.config.record_key_fields)
    named = {one for one, _ in spec.pairs}
    if not keys:
        return True
    besides = set() if plan.index.is_global or not plan.config.is_partitioned else set(plan.config.partition_fields)
    return spec.condition is None and keys <= named <= keys | besides
