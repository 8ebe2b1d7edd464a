"""Bring the entries of a table up to date in the catalogs that options name.

::

    TableState ─► catalog_tables ─► for each: is it in the catalog?
        no                                    create ─► all partitions
        yes, at another location              replace ─► all partitions
        yes, and knows the newest write       nothing to do
        yes                                   columns, properties ─► partitions of the commits since
    then the newest write is recorded among its properties: the next sync continues from there

A sync reads a constant number of entries, and the entries of partitions that were written. A sync that fails on its way
is repeated by the next one, because the newest write is recorded last.

Sources: ``HiveSyncTool``, ``HoodieSyncClient#getPartitionEvents`` (Apache Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from hudi_fast.catalogs.entries import (
    PATH_KEY,
    Catalog,
    CatalogColumn,
    CatalogPartition,
    CatalogTable,
    catalog_tables,
    is_old,
)
from hudi_fast.catalogs.glue_catalog import GlueCatalog
from hudi_fast.catalogs.hive_catalog import HiveCatalog
from hudi_fast.config.sync_options import SyncOptions
from hudi_fast.errors import CatalogError, ConfigError, UnsupportedFeatureError
from hudi_fast.hive.client import HiveClient, metastore_addresses, metastore_tls
from hudi_fast.timeline.instants import Instant
from hudi_fast.values import dataclass
from hudi_fast.view.table_state import TableState, read_commit

__all__ = ["EXTRACTORS", "SyncedTable", "default_extractor", "open_catalog", "partition_values", "sync_table"]

_REQUESTED_KEY = "last_commit_time_sync"
_COMPLETION_KEY = "last_commit_completion_time_sync"
_WRITER = {"hudi_writer_version": "1.2.0"}
"""The release of Apache Hudi whose tables hudi_fast writes."""


@dataclass(frozen=True, slots=True)
class SyncedTable:
    """The result of a sync for one table of a catalog.

    Attributes:
        name: ``database.table``.
        action: ``created``, ``replaced``, ``updated``, or ``unchanged`` if the catalog knew the newest write.
        added: number of added partitions.
        moved: number of partitions with a new location.
        dropped: number of dropped partitions.
    """

    name: str
    action: str
    added: int = 0
    moved: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class _PartitionChanges:
    added: Sequence[CatalogPartition] = ()
    moved: Sequence[CatalogPartition] = ()
    dropped: Sequence[tuple[str, ...]] = ()


def sync_table(catalog: Catalog, state: TableState, options: SyncOptions) -> list[SyncedTable]:
    """Bring all entries of a table up to date.

    Args:
        catalog: the catalog.
        state: the table.
        options: names and attributes of the entries.

    Raises:
        CatalogError: the catalog refuses or does not answer; or a column cannot change to its new type there.
        ConfigError: a partition path does not fit the partition columns.
        InvalidDataError: the table has no schema yet.
        UnsupportedFeatureError: a column has a type that catalogs do not have.
    """
    wanted = list(catalog_tables(state, options))
    database = wanted[0].database
    if not catalog.has_database(database):
        if not options.creates_database:
            raise CatalogError(
                f"{catalog.name} has no database {database!r}. Create it, or set "
                "hoodie.datasource.hive_sync.auto_create_database=true."
            )
        catalog.create_database(database)
    return [_sync_one(catalog, state, one, options) for one in wanted]


def _sync_one(catalog: Catalog, state: TableState, wanted: CatalogTable, options: SyncOptions) -> SyncedTable:
    name, newest = f"{wanted.database}.{wanted.name}", _current_point(state)
    stored = catalog.table(wanted.database, wanted.name)
    known, has_changed = None, True
    if stored is None:
        action = "created"
        catalog.create_table(wanted)
    elif _folder(stored.location) != _folder(wanted.location):
        action = "replaced"
        catalog.replace_table(wanted)
    else:
        known = _point_of(stored) if options.incremental else None
        if known is not None and known == newest:
            return SyncedTable(name, "unchanged")
        action, has_changed = _update(catalog, stored, wanted, options)
    table = _required(catalog, wanted)
    changes = _partition_changes(catalog, table, state, known, options)
    catalog.drop_partitions(table, changes.dropped)
    catalog.add_partitions(table, changes.added)
    catalog.move_partitions(table, changes.moved)
    has_changed = has_changed or bool(changes.added or changes.moved or changes.dropped)
    if newest is not None and (has_changed or not options.only_if_changed):
        catalog.update_table(_recorded(table, wanted.location, newest, is_old(state.config)))
    return SyncedTable(name, action, len(changes.added), len(changes.moved), len(changes.dropped))


# ---- the table


def _update(catalog: Catalog, stored: CatalogTable, wanted: CatalogTable, options: SyncOptions) -> tuple[str, bool]:
    """Change columns, formats and properties where they differ; returns the action, and whether anything changed."""
    try:
        columns, has_new_columns = _changed_columns(stored, wanted, options)
    except CatalogError:
        if not options.recreates_table:
            raise
        catalog.replace_table(wanted)
        return "replaced", True
    changed = replace(
        stored,
        columns=columns,
        input_format=wanted.input_format,
        output_format=wanted.output_format,
        serde=wanted.serde,
        serde_properties={**stored.serde_properties, **wanted.serde_properties},
        properties={**stored.properties, **wanted.properties},
    )
    if changed == stored:
        return "updated", False
    catalog.update_table(changed, cascade=has_new_columns and bool(wanted.partition_columns))
    return "updated", True


def _changed_columns(
    stored: CatalogTable, wanted: CatalogTable, options: SyncOptions
) -> tuple[tuple[CatalogColumn, ...], bool]:
    """The columns to store, and whether names or types among them differ from the stored ones."""
    before = {one.name.lower(): one for one in stored.columns}
    types = {one.name.lower(): one.type.lower() for one in wanted.columns}
    for name, column in before.items():
        if name in types and not _may_become(column.type.lower(), types[name]):
            raise CatalogError(
                f"{stored.database}.{stored.name} has the column {name!r} of type {column.type}, which cannot become "
                f"{types[name]}. Drop it from the catalog, or set "
                "hoodie.datasource.hive_sync.recreate_table_on_error=true."
            )
    differs = {name: one.type.lower() for name, one in before.items()} != types
    if not differs and not options.has_comments:
        return tuple(stored.columns), False
    kept = {name: one.comment for name, one in before.items()}
    columns = tuple(replace(one, comment=one.comment or kept.get(one.name.lower(), "")) for one in wanted.columns)
    return (columns, True) if differs else (tuple(map(_lower, columns)), False)


def _lower(column: CatalogColumn) -> CatalogColumn:
    return replace(column, name=column.name.lower())


def _may_become(before: str, after: str) -> bool:
    """Whether Apache Hudi lets a type of a catalog change (``HiveSchemaUtil#isSchemaTypeUpdateAllowed``)."""
    if before == after or (before, after) in {("int", "bigint"), ("float", "double")}:
        return True
    return "struct" in before and "struct" in after


def _required(catalog: Catalog, wanted: CatalogTable) -> CatalogTable:
    found = catalog.table(wanted.database, wanted.name)
    if found is None:
        raise CatalogError(f"{catalog.name} lost {wanted.database}.{wanted.name} while it was synced.")
    return found


def _point_of(table: CatalogTable) -> _SyncPoint | None:
    requested = table.properties.get(_REQUESTED_KEY)
    return None if requested is None else _SyncPoint(requested, table.properties.get(_COMPLETION_KEY))


def _recorded(table: CatalogTable, location: str, newest: _SyncPoint, old: bool) -> CatalogTable:
    times = {_REQUESTED_KEY: newest.requested} if old else {_REQUESTED_KEY: newest.requested, **_WRITER}
    if newest.completion is not None:
        times[_COMPLETION_KEY] = newest.completion
    return replace(
        table,
        location=location,
        serde_properties={**table.serde_properties, PATH_KEY: location},
        properties={**table.properties, **times},
    )


# ---- partitions


def _partition_changes(
    catalog: Catalog, table: CatalogTable, state: TableState, known: _SyncPoint | None, options: SyncOptions
) -> _PartitionChanges:
    """The differences between the partitions of the table and of the catalog."""
    if options.without_partitions or not table.partition_columns:
        return _PartitionChanges()
    since = _partitions_since(state, known)
    if since is None:
        here = _with_values(state.view.lister.partitions(), table, state, options)
        there = catalog.partitions(table, None)
        dropped = [one.values for one in there if one.values not in here]
    else:
        here = _with_values((path for path in since.written if path not in since.dropped), table, state, options)
        gone = _with_values(since.dropped, table, state, options)
        there = catalog.partitions(table, [*here, *gone])
        dropped = [one.values for one in there if one.values in gone]
    known_folders = {one.values: _folder(one.location) for one in there}
    added = [one for values, one in here.items() if values not in known_folders]
    moved = [one for values, one in here.items() if known_folders.get(values, "") not in ("", _folder(one.location))]
    return _PartitionChanges(added, moved, dropped)


def _with_values(
    paths: Iterable[str], table: CatalogTable, state: TableState, options: SyncOptions
) -> dict[tuple[str, ...], CatalogPartition]:
    """Partitions by their values, at their folders."""
    config, columns = state.config, table.partition_columns
    extractor = options.extractor or default_extractor(len(columns), config.hive_style)
    found = {}
    for path in paths:
        values = partition_values(extractor, path)
        if values and len(values) != len(columns):
            raise CatalogError(
                f"The partition path {path!r} has {len(values)} values, and {table.database}.{table.name} has the "
                f"partition columns {[one.name for one in columns]}. Set "
                "hoodie.datasource.hive_sync.partition_extractor_class."
            )
        if values:
            found[values] = CatalogPartition(values, f"{state.storage.uri.rstrip('/')}/{path}")
    return found


def _folder(location: str) -> str:
    """A location without its scheme, which catalogs change."""
    _, has_host, rest = location.partition("://")
    return (rest if has_host else location.removeprefix("file:")).rstrip("/")


# ---- which partitions were written or dropped since a catalog was synced, by the commits on the active timeline
#
# Sources: ``TimelineUtils#getCommitsTimelineAfter``, ``#getWrittenPartitions``, ``#getDroppedPartitions`` (Apache Hudi
# 1.2.0).


@dataclass(frozen=True, slots=True)
class _SyncPoint:
    """The newest write of the timeline that a catalog knows.

    Attributes:
        requested: requested time of the newest completed write.
        completion: newest completion time of a write; None before table version 8.
    """

    requested: str
    completion: str | None = None


@dataclass(frozen=True, slots=True)
class _WrittenPartitions:
    """Partition paths: ``written`` are all paths that a commit names, ``dropped`` the ones among them deleted last."""

    written: Sequence[str]
    dropped: frozenset[str]


def _current_point(state: TableState) -> _SyncPoint | None:
    """The point of the table itself; None without a completed write."""
    writes = state.timeline.writes()
    if not writes:
        return None
    return _SyncPoint(writes[-1].requested, max((one.completion or "" for one in writes), default="") or None)


def _partitions_since(state: TableState, point: _SyncPoint | None) -> _WrittenPartitions | None:
    """The partitions of commits after a point; None if these are not all on the active timeline."""
    first = state.timeline.first_write_requested
    if point is None or first is None or point.requested < first:
        return None
    written: dict[str, str] = {}
    deleted: dict[str, str] = {}
    for instant in state.timeline.writes():
        if not _is_after(instant, point):
            continue
        commit = read_commit(state.storage, state.config, instant)
        replaced = commit.partition_to_replace_file_ids or {}
        if commit.operation_type == "DELETE_PARTITION":
            deleted.update(dict.fromkeys(replaced, instant.requested))
        for partition in (*replaced, *commit.partition_to_write_stats):
            written.setdefault(partition, "")
        written.update(dict.fromkeys(commit.partition_to_write_stats, instant.requested))
    dropped = frozenset(path for path, time in deleted.items() if time > written.get(path, ""))
    return _WrittenPartitions(list(written), dropped)


def _is_after(instant: Instant, point: _SyncPoint) -> bool:
    """Whether a write was requested, or completed, after the point: a slow write may complete after a later one."""
    if instant.requested > point.requested:
        return True
    return bool(point.completion and instant.completion and instant.completion > point.completion)


# ---- partition paths as the values of a catalog's partition columns, by Apache Hudi's extractors
#
# ::
#
#     MultiPartKeys      2026/city=Oslo    ─► ("2026", "Oslo")       one value for each folder
#     HiveStyle          city=Oslo         ─► ("Oslo",)
#     SinglePart         2026/11/26        ─► ("2026-11-26",)        all folders are one value
#     SlashEncodedDay    2026/11/26        ─► ("2026-11-26",)        a date
#     SlashEncodedHour   2026/11/26/13     ─► ("2026-11-26-13",)
#     NonPartitioned     any               ─► ()
#
# Sources: the classes ``org.apache.hudi.hive.*Extractor`` of Apache Hudi 1.2.0.

_HIVE = "org.apache.hudi.hive."


def partition_values(extractor: str, path: str) -> tuple[str, ...]:
    """The values of a partition.

    Args:
        extractor: class of Apache Hudi.
        path: partition path; "" for the partition of an unpartitioned table.

    Returns:
        Empty if the partition does not belong in the catalog.

    Raises:
        UnsupportedFeatureError: an unknown class.
        ConfigError: the path does not fit the extractor.
    """
    if extractor not in EXTRACTORS:
        raise UnsupportedFeatureError(
            f"hoodie.datasource.hive_sync.partition_extractor_class={extractor} is not supported; supported are "
            f"{', '.join(EXTRACTORS)}."
        )
    try:
        return EXTRACTORS[extractor](path)
    except ValueError as error:
        raise ConfigError(
            f"The partition path {path!r} does not fit "
            f"hoodie.datasource.hive_sync.partition_extractor_class={extractor}: {error}."
        ) from error


def default_extractor(partition_columns: int, hive_style: bool) -> str:
    """The class that Apache Hudi chooses.

    Args:
        partition_columns: their number.
        hive_style: whether folders are ``name=value``.
    """
    if partition_columns == 0:
        return f"{_HIVE}NonPartitionedExtractor"
    if partition_columns == 1:
        return f"{_HIVE}HiveStylePartitionValueExtractor" if hive_style else f"{_HIVE}SinglePartPartitionValueExtractor"
    return f"{_HIVE}MultiPartKeysValueExtractor"


def _each_folder(path: str) -> tuple[str, ...]:
    return tuple(_after_equals(one) if "=" in one else one for one in path.split("/")) if path else ()


def _hive_style(path: str) -> tuple[str, ...]:
    return (_after_equals(path),)


def _one_value(path: str) -> tuple[str, ...]:
    return (path.replace("/", "-"),)


def _day(path: str) -> tuple[str, ...]:
    year, month, day = _numbers(path, 3)
    return (f"{datetime(year, month, day):%Y-%m-%d}",)


def _hour(path: str) -> tuple[str, ...]:
    year, month, day, hour = _numbers(path, 4)
    return (f"{datetime(year, month, day, hour):%Y-%m-%d-%H}",)


def _none(path: str) -> tuple[str, ...]:
    return ()


EXTRACTORS: dict[str, Callable[[str], tuple[str, ...]]] = {
    f"{_HIVE}MultiPartKeysValueExtractor": _each_folder,
    f"{_HIVE}HiveStylePartitionValueExtractor": _hive_style,
    f"{_HIVE}SinglePartPartitionValueExtractor": _one_value,
    f"{_HIVE}SlashEncodedDayPartitionValueExtractor": _day,
    f"{_HIVE}SlashEncodedHourPartitionValueExtractor": _hour,
    f"{_HIVE}NonPartitionedExtractor": _none,
}
"""The function of each class."""


def _after_equals(folder: str) -> str:
    parts = folder.split("=")
    if len(parts) != 2 or not parts[1]:
        raise ValueError("expected name=value")
    return parts[1]


def _numbers(path: str, count: int) -> list[int]:
    folders = path.split("/")
    if len(folders) != count:
        raise ValueError(f"expected {count} folders")
    return [int(one.partition("=")[2] or one) for one in folders]


_ANSWER_SECONDS = 60.0


def open_catalog(kind: str, options: SyncOptions) -> Catalog:
    """A catalog; it connects with its first call.

    Args:
        kind: ``hive`` or ``glue``.
        options: its address, and how it is called.

    Raises:
        ConfigError: the address is missing or wrong, or a needed package is not installed.
        CatalogError: boto3 has no region.
        UnsupportedFeatureError: the metastore needs authentication or encryption.
    """
    if kind == "glue":
        return GlueCatalog(options)
    addresses = metastore_addresses(options.metastore_uris, "hoodie.datasource.hive_sync.metastore.uris", "A table")
    return HiveCatalog(HiveClient(addresses, _ANSWER_SECONDS, metastore_tls()), options.batch_size)
