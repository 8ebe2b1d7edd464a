"""Read with options, for ``hudi_fast.read`` and Spark's readers.

::

    path ─► the table, or the table above it and the folder of partitions ─┐
    options ─► ReadOptions ─► ScanQuery ────────────────────────────────────┴─► a plan: snapshot, range or changes
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from hudi_fast.config.moments import timeline_zone
from hudi_fast.config.read_options import ReadOptions
from hudi_fast.errors import TableNotFoundError
from hudi_fast.reading.scan import Filter, ScanQuery, plan_scan, scan_table
from hudi_fast.reading.time_travel import state_for_query
from hudi_fast.storage.base import Storage

__all__ = ["in_table", "read_rows"]


Result = TypeVar("Result")

_PROPERTIES = ".hoodie/hoodie.properties"


def in_table(storage: Storage, read: Callable[[Storage, str], Result]) -> Result:
    """Read a table, or the partitions in a folder of a table, as Apache Hudi does (``TablePathUtils``, 1.2.0).

    Args:
        storage: the path as given.
        read: reads the partitions of a table in a folder; an empty folder means all partitions.

    Raises:
        TableNotFoundError: neither the path nor a folder above it holds a table.
    """
    try:
        return read(storage, "")
    except TableNotFoundError:
        found = _table_above(storage)
        if found is None:
            raise
        return read(*found)


def read_rows(
    storage: Storage,
    options: Mapping[str, Any],
    columns: Sequence[str] | None = None,
    filter: Filter | None = None,
    folder: str = "",
) -> pa.Table:
    """The rows, or the changes, that a read with options returns.

    Args:
        storage: the table's storage.
        options: options of the read.
        columns: columns to read, in this order; None for all.
        filter: condition of the rows, or of the changes.
        folder: folder of the table whose partitions are read; empty for all.

    Raises:
        HudiError: see :mod:`hudi_fast.errors`.
    """
    settings = ReadOptions.from_options(options, timeline_zone(storage))
    query, threads = ScanQuery.from_options(settings, options, folder), settings.threads or None
    if settings.query_type != "incremental":
        state = state_for_query(storage, settings.as_of, settings.metadata_enabled)
        return scan_table(plan_scan(state, columns, filter, threads, query))
    # A snapshot needs neither, and to import them takes 20 ms.
    from hudi_fast.reading.incremental.cdc import changes_table, plan_cdc
    from hudi_fast.reading.incremental.query import incremental_view, plan_incremental

    if settings.incremental_format != "cdc":
        return scan_table(plan_incremental(incremental_view(storage, settings), columns, filter, threads, query))
    plan = plan_cdc(state_for_query(storage, None, settings.metadata_enabled), settings)
    return changes_table(plan, columns, filter)


def _table_above(storage: Storage) -> tuple[Storage, str] | None:
    """The table that contains a folder, and the path of the folder in it."""
    uri, root, below = storage.uri.rstrip("/"), storage.fs_path("").rstrip("/"), ""
    exists = storage.exists("")
    while exists and "/" in root:
        name = uri.rpartition("/")[2]
        uri, root, below = uri.rpartition("/")[0], root.rpartition("/")[0], f"{name}/{below}".rstrip("/")
        if uri and root and storage.rooted_at(root).exists(_PROPERTIES):
            return Storage(uri, storage.options), below
    return None
