"""Procedures that show the files of a table, and their entries in the metadata table.

Source: ``ShowFileSystemViewProcedure``, ``StatsFileSizeProcedure``, ``ShowInvalidParquetProcedure`` and
``ShowMetadataTable...Procedure`` of Hudi 1.2.0.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from hudi_fast.errors import ConfigError, CorruptTableError
from hudi_fast.formats.parquet.footer import read_footer
from hudi_fast.metadata_table.keys import column_hash
from hudi_fast.metadata_table.read import prefix
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.procedures.values import Rows, Values, refuse_given
from hudi_fast.storage.concurrency import in_threads, reads_at_once
from hudi_fast.table import HudiTable
from hudi_fast.view.bootstrap_index import SourceFile, read_sources
from hudi_fast.view.file_names import BaseFile, LogFile, log_order, parse_base_file, parse_log_file
from hudi_fast.view.slices import FileSlice, latest_slices, past_slices
from hudi_fast.view.table_state import TableState

__all__ = ["FILESYSTEM_COLUMNS", "FILE_PROCEDURES", "filesystem_rows"]

FILESYSTEM_COLUMNS = (
    "File_ID string, Partition_Path string, Base_Instant_Time string, Base_File_Path string, Base_File_Size bigint, "
    "Log_File_Count bigint, Log_File_Size bigint, Log_File_Scheduled bigint, Log_File_Unscheduled bigint"
)
"""Columns of :func:`filesystem_rows`."""

_ALL = "ALL_PARTITIONS"
_COLUMN_STATS = "column_stats"
_QUANTILES = (0.1, 0.5, 0.95)


def _partitions(state: TableState, wanted: str | None) -> list[str]:
    known = sorted(state.view.lister.partitions())
    return known if wanted in (None, "", _ALL) else [one for one in known if one == wanted]


def _root(table: HudiTable) -> str:
    """The base path with a scheme."""
    path = table.path.rstrip("/")
    return path if "://" in path or path.startswith("file:") else f"file:{path}"


def _show_fsview_latest(table: HudiTable, values: Values) -> Rows:
    state = open_state(table._storage)
    slices = [one for path in _partitions(state, values["partition_path"]) for one in latest_slices(state.view, path)]
    for one in slices[: values["limit"]]:
        yield _slice_row(table, one)


def _slice_row(table: HudiTable, one: FileSlice) -> tuple[Any, ...]:
    """Apache Hudi counts all log bytes as scheduled for compaction, and lists all log files as not scheduled."""
    base, root = one.base_file, _root(table)
    logs = _bytes(one.log_files)
    ratio = logs / base.size if base is not None and base.size else 0.0
    return (
        one.partition,
        one.file_id,
        one.base_instant,
        *_base_of(root, base),
        len(one.log_files),
        logs,
        logs,
        0,
        ratio,
        0.0,
        "[]",
        f"[{','.join(_shown_logs(root, one.log_files))}]",
    )


def _shown_logs(root: str, logs: Iterable[LogFile]) -> Iterator[str]:
    """Log files as Apache Hudi prints them, newest first."""
    for log in sorted(logs, key=log_order, reverse=True):
        yield f"HoodieLogFile(pathStr={root}/{log.path}, fileSize={log.size})"


def _show_fsview_all(table: HudiTable, values: Values) -> Rows:
    """All versions of each file group, newest first."""
    switches = ("include_max", "include_in_flight", "exclude_compaction")
    refuse_given("show_fsview_all", values, "max_instant", "filter", *switches)
    root = _root(table)
    rows = (
        (path, file_id, begins, place, size, len(logs), _bytes(logs), f"[{', '.join(_shown_logs(root, logs))}]")
        for path, file_id, begins, place, size, logs in _versions(table, values["path_regex"])
    )
    return islice(rows, values["limit"] if values["limit"] >= 0 else None)


def filesystem_rows(table: HudiTable, partition: str | None) -> Iterator[tuple[Any, ...]]:
    """The rows of ``hudi_filesystem_view``: the file slices of each file group, newest first.

    Args:
        table: the table.
        partition: a partition path; None for all.
    """
    for path, file_id, begins, place, size, logs in _versions(table, partition):
        yield file_id, path, begins, place, size, len(logs), _bytes(logs), 0, _bytes(logs)


def _versions(table: HudiTable, partition: str | None) -> Iterator[tuple[str, str, str, str, int, list[LogFile]]]:
    """(partition path, file id, base instant, base file or empty, its size or -1, log files) of all file slices."""
    state, root = open_state(table._storage), _root(table)
    for path in _partitions(state, partition):
        for file_id, slices in sorted(past_slices(state.view, path).items()):
            for one in slices:
                logs = [log for log in one.log_files if not log.is_cdc]
                base = one.base_files[-1] if one.base_files else None
                yield path, file_id, one.begins, *_base_of(root, base), logs


def _base_of(root: str, base: BaseFile | None) -> tuple[str, int]:
    """The place and the size of a base file, as Apache Hudi shows them."""
    return ("", -1) if base is None else (f"{root}/{base.path}", base.size)


def _bytes(logs: Iterable[LogFile]) -> int:
    return sum(log.size for log in logs)


def _stats_file_sizes(table: HudiTable, values: Values) -> Rows:
    """Sizes of the files of each instant, newest first; then sizes of all files."""
    state = open_state(table._storage)
    sizes: dict[str, list[int]] = {}
    for partition in _partitions(state, values["partition_path"]):
        for entry in state.view.lister.files(partition):
            file: BaseFile | LogFile | None = parse_base_file(entry) or parse_log_file(entry)
            if file is not None:
                sizes.setdefault(file.instant, []).append(file.size)
    rows = [_sizes_row(instant, sizes[instant]) for instant in sorted(sizes, reverse=True)]
    rows.append(_sizes_row("ALL", [size for some in sizes.values() for size in some]))
    return rows[: values["limit"]]


def _sizes_row(instant: str, sizes: Sequence[int]) -> tuple[Any, ...]:
    ordered = sorted(sizes)
    if not ordered:
        return (instant, 0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0.0)
    tenth, half, limit = (_quantile(ordered, one) for one in _QUANTILES)
    spread = statistics.stdev(ordered) if len(ordered) > 1 else 0.0
    return (instant, ordered[0], tenth, half, statistics.fmean(ordered), limit, ordered[-1], len(ordered), spread)


def _quantile(ordered: Sequence[int], quantile: float) -> float:
    """A quantile, computed like the histograms of Apache Hudi (Dropwizard's ``UniformSnapshot``)."""
    position = quantile * (len(ordered) + 1)
    at = int(position)
    if at < 1:
        return float(ordered[0])
    if at >= len(ordered):
        return float(ordered[-1])
    return ordered[at - 1] + (position - at) * (ordered[at] - ordered[at - 1])


def _show_invalid_parquet(table: HudiTable, values: Values) -> Rows:
    """Parquet files whose footer cannot be read."""
    moves = "; HudiTable.services.repair moves them"
    refuse_given("show_invalid_parquet", values, "needDelete", "instants", "filter", advice=moves)
    state = open_state(table._storage)
    wanted = set(filter(None, str(values["partitions"] or "").split(",")))
    files = [
        file
        for path in _partitions(state, None)
        if not wanted or path in wanted
        for entry in state.view.lister.files(path)
        if (file := parse_base_file(entry)) is not None and file.name.endswith(".parquet")
    ]
    broken = in_threads(
        lambda file: _is_broken(table, file), files, reads_at_once(table._storage, [one.size for one in files])
    )
    root = table.path.rstrip("/")
    found = [(f"{root}/{file.path}",) for file, is_broken in zip(files, broken, strict=True) if is_broken]
    return found[: values["limit"]]


def _is_broken(table: HudiTable, file: BaseFile) -> bool:
    try:
        read_footer(table._storage, file.path)
    except CorruptTableError:
        return True
    return False


def _show_metadata_partitions(table: HudiTable, values: Values) -> Rows:
    return [(one,) for one in sorted(_with_metadata(table).view.lister.partitions())]


def _show_metadata_files(table: HudiTable, values: Values) -> Iterator[tuple[str]]:
    partition = values["partition"] or ""
    for entry in sorted(_with_metadata(table).view.lister.files(partition), key=_name)[: values["limit"]]:
        yield (_name(entry),)


def _show_column_stats(table: HudiTable, values: Values) -> Rows:
    """Statistics of columns in the newest base files, with stored values."""
    refuse_given("show_metadata_table_column_stats", values, "filter")
    state = _with_metadata(table)
    metadata = metadata_of(state)
    columns = sorted({one.strip() for one in str(values["targetColumns"] or "").split(",") if one.strip()})
    if metadata is None or _COLUMN_STATS not in metadata.partitions or not columns:
        return []
    partitions = _partitions(state, values["partition"])
    slices = (one for path in partitions for one in latest_slices(state.view, path))
    files = {one.base_file.name for one in slices if one.base_file is not None}
    found = prefix(metadata, _COLUMN_STATS, [column_hash(column) for column in columns])
    rows = [one for one in found.to_pylist() if not one["deleted"] and one["file_name"] in files]
    rows.sort(key=lambda one: (one["column_name"], one["file_name"]))
    return [
        (one["file_name"], one["column_name"], _stored(one["min"]), _stored(one["max"]), one["null_count"])
        for one in rows
    ]


def _stored(value: Mapping[str, Any] | None) -> str | None:
    """A stored value as Apache Hudi prints it: bytes as signed numbers, dates as days."""
    wrapped = next((one for one in (value or {}).values() if one is not None), None)
    if wrapped is None:
        return None
    plain = wrapped["value"] if isinstance(wrapped, Mapping) else wrapped
    return str([one - 256 if one > 127 else one for one in plain]) if isinstance(plain, bytes) else str(plain)


def _show_bootstrap_partitions(table: HudiTable, values: Values) -> Rows:
    refuse_given("show_bootstrap_partitions", values, "filter")
    return [(one,) for one in sorted({one.partition for one in _sources(table)})]


def _show_bootstrap_mapping(table: HudiTable, values: Values) -> Rows:
    refuse_given("show_bootstrap_mapping", values, "filter")
    wanted = {one.strip() for one in str(values["file_ids"] or "").split(",") if one.strip()}
    partition, root = values["partition_path"], table.config.raw.get("hoodie.bootstrap.base.path", "")
    rows = [
        (one.partition, one.file_id, root, one.source_partition, one.uri.rpartition("/")[2])
        for one in _sources(table)
        if partition in (None, "", one.partition) and (not wanted or one.file_id in wanted)
    ]
    at = {"partition": 0, "file_id": 1, "source_base_path": 2, "source_partition": 3, "source_file": 4}
    key = at.get(str(values["sort_by"]).lower(), 0)
    rows.sort(key=lambda row: row[key], reverse=bool(values["desc"]))
    return rows[: values["limit"]]


def _sources(table: HudiTable) -> list[SourceFile]:
    found = list(read_sources(table._storage, table.config).values())
    if not found:
        raise ConfigError(f"The table {table.path} was not bootstrapped: it has no bootstrap index.")
    return found


def _name(entry: Any) -> str:
    return str(entry.path).rpartition("/")[2]


def _with_metadata(table: HudiTable) -> TableState:
    state = open_state(table._storage)
    if metadata_of(state) is None:
        raise ConfigError(f"The table {table.path} has no metadata table; CALL create_metadata_table builds it.")
    return state


FILE_PROCEDURES: Mapping[str, Callable[[HudiTable, Values], Rows]] = {
    "show_bootstrap_mapping": _show_bootstrap_mapping,
    "show_bootstrap_partitions": _show_bootstrap_partitions,
    "show_fsview_all": _show_fsview_all,
    "show_fsview_latest": _show_fsview_latest,
    "show_invalid_parquet": _show_invalid_parquet,
    "show_metadata_table_column_stats": _show_column_stats,
    "show_metadata_table_files": _show_metadata_files,
    "show_metadata_table_partitions": _show_metadata_partitions,
    "stats_file_sizes": _stats_file_sizes,
}
"""By name: (table, values of the parameters) -> rows of the procedure's columns."""
