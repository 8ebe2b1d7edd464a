"""Incremental queries: the rows that the commits of a range wrote, as of its end.

::

    options ─► ChangeRange ─► files of its commits, from their metadata ─► their slices ─► rows with its commit times
                         └──► range from the start, or missing files and fallback enabled: all files of the table ─┘

No folder is listed and no index is read: the cost depends on what the commits wrote, not on the size of the table.
Slices contain only the range's files, and a log file is merged only with rows that the range wrote. Late data that lost
against an older row is therefore returned as a separate row. Rows that a rewrite copied keep their commit time and are
left out. For each key the newest row in the range is returned, or none if it was deleted.

Sources: ``MergeOnReadIncrementalRelationV1/V2``, which Hudi uses for both table types (Hudi 1.2.0).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from hudi_fast.config.moments import Moment, timeline_zone
from hudi_fast.config.read_options import EARLIEST, ReadOptions
from hudi_fast.config.words import checked_options
from hudi_fast.errors import ConfigError
from hudi_fast.expressions.conditions import Condition
from hudi_fast.reading.incremental.commit_range import ChangeRange, readable_until, resolve_range
from hudi_fast.reading.scan import Filter, ScanPlan, ScanQuery, check_filter, filter_of, plan_scan, readable_schema
from hudi_fast.reading.time_travel import state_for_query
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.values import dataclass
from hudi_fast.view.slices import FileSlice
from hudi_fast.view.table_state import TableState, load_state

__all__ = [
    "COMMIT_TIME",
    "IncrementalView",
    "incremental_options",
    "incremental_view",
    "plan_incremental",
    "plan_query",
    "plan_view",
]

COMMIT_TIME = "_hoodie_commit_time"
"""Name of the commit time meta column."""

_BEGIN_KEY = "hoodie.datasource.read.begin.instanttime"
_END_KEY = "hoodie.datasource.read.end.instanttime"
_FALLBACK_KEY = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"
_NAMED = 3


@dataclass(frozen=True)
class IncrementalView:
    """The files and commits of an incremental query.

    Attributes:
        state: the table, with only the files of the range.
        instants: requested times of the range's commits: rows with one of these commit times belong to the range; None
            for all rows.
        path_glob: pattern that the path of a file slice must end with; empty for all.
        whole: whether the files are all files of the table.
        conditions: further conditions of the rows, in SQL.
        share: fraction of rows in these files that the range wrote, from commit statistics; the others were copied.
    """

    state: TableState
    instants: tuple[str, ...] | None
    path_glob: str = ""
    whole: bool = False
    conditions: tuple[str, ...] = ()
    share: float = 1.0

    def row_filter(self) -> pc.Expression | None:
        """The condition of the query's rows; None for all rows.

        Raises:
            ConfigError: a condition does not fit the table.
            UnsupportedFeatureError: a condition calls a function that has no counterpart here.
        """
        written = self.range_filter()
        filters = [] if written is None else [written]
        filters += [filter_of(one, self.state) for one in self.conditions]
        return reduce(and_, filters) if filters else None

    def range_filter(self) -> pc.Expression | None:
        """The condition that a row was written by the range, without :attr:`conditions`; None for all rows."""
        if self.instants is None:
            return None
        time = pc.field(COMMIT_TIME)
        if len(self.instants) < 2:
            return time == (self.instants[0] if self.instants else "")
        # Arrow skips row groups by comparisons with bounds, not by a set of values.
        return (time >= self.instants[0]) & (time <= self.instants[-1]) & time.isin(pa.array(self.instants))


@dataclass(frozen=True, slots=True)
class _FilesOfRange:
    """Lists the files that the commits of a range wrote."""

    by_partition: dict[str, dict[str, FileStat]]
    lists_folders = False

    def partitions(self) -> list[str]:
        return sorted(self.by_partition)

    def files(self, partition: str) -> list[FileStat]:
        return list(self.by_partition.get(partition, {}).values())

    def expect(self, partitions: Sequence[str]) -> None:
        pass  # the files are known already


def incremental_view(storage: Storage, options: ReadOptions) -> IncrementalView:
    """The files and commits of the query in ``options``, whose type is incremental.

    Raises:
        ConfigError: the table has no meta columns, the range is not available, or files of it are missing.
        CorruptTableError: a commit in the range cannot be read.
    """
    state = load_state(storage, replaced_since=None if options.begin == EARLIEST else options.begin)
    if not state.config.populate_meta_fields:
        raise ConfigError(
            f"Incremental queries are not supported when meta fields are disabled: {storage.uri} has "
            "hoodie.populate.meta.fields=false, so its rows do not store their commit."
        )
    glob, conditions = options.incremental_path_glob, _conditions(options.incremental_filters)
    if options.begin == EARLIEST and options.end is None and readable_until(state, options) is None:
        return IncrementalView(state_for_query(storage, None, options.metadata_enabled), None, glob, True, conditions)
    changes = resolve_range(state, options)
    instants = tuple(sorted(one.instant.requested for one in changes.commits))
    files = _files_of(changes)
    if options.incremental_full_scan and (changes.archived or _missing(storage, files)):
        return IncrementalView(
            state_for_query(storage, None, options.metadata_enabled), instants, glob, True, conditions
        )
    view = replace(
        state.view,
        lister=_FilesOfRange(files),
        replaced=_replaced(state, changes),
        as_of=changes.last if options.schema_as_of_end else None,
    )
    return IncrementalView(replace(state, view=view), instants, glob, False, conditions, _written_share(changes))


def _conditions(text: str) -> tuple[str, ...]:
    """The parts of a list of conditions."""
    if not text.strip():
        return ()
    from hudi_fast.sql_text.cursor import (
        Cursor,
        read_items,  # sqlglot takes 0.1 s to import
    )

    return tuple(read_items(Cursor(text)))


def plan_view(
    view: IncrementalView,
    columns: Sequence[str] | None = None,
    filter: pc.Expression | None = None,
    threads: int | None = None,
    query: ScanQuery | None = None,
    condition: Condition | None = None,
) -> ScanPlan:
    """Plan like :func:`hudi_fast.reading.scan.plan_scan`; does not filter out rows of other commits.

    Raises:
        ConfigError: files of the range are missing, or an unknown column.
        UnsupportedFeatureError: as for a snapshot.
    """
    plan = plan_scan(view.state, columns, filter, threads, query, condition)
    if view.path_glob:
        matches = re.compile(_glob_pattern(view.path_glob), re.DOTALL)
        storage = view.state.storage
        plan = replace(plan, slices=tuple(one for one in plan.slices if matches.fullmatch(_path_of(storage, one))))
    if not view.whole:
        _require_files(plan)
    merge = plan.scan.merge
    if merge is None or view.instants is None:
        return plan
    until = None if view.whole or not view.instants else view.instants[-1]  # a log file may have been appended to since
    return replace(plan, scan=replace(plan.scan, merge=replace(merge, commit_times=view.instants, as_of=until)))


def plan_incremental(
    view: IncrementalView,
    columns: Sequence[str] | None = None,
    filter: Filter | None = None,
    threads: int | None = None,
    query: ScanQuery | None = None,
) -> ScanPlan:
    """Plan the rows of the range; engines read the plan like the plan of a snapshot.

    The arguments are the same as for :func:`hudi_fast.reading.scan.plan_scan`, for the rows of the range.

    Raises:
        ConfigError: files of the range are missing, or an unknown column.
        UnsupportedFeatureError: as for a snapshot.
    """
    rows, filter = view.row_filter(), filter_of(filter, view.state)
    if rows is not None and filter is not None:
        full = readable_schema(view.state)
        check_filter(filter, full, full.names)  # alone, for a clear message
        rows = rows & filter
    return plan_view(view, columns, filter if rows is None else rows, threads, query)


def incremental_options(begin: Moment, end: Moment | None, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options of an incremental query between two times, with further ``options``.

    Raises:
        ConfigError: ``begin`` is missing, or the options contradict the times or the query type.
    """
    options = checked_options(options)
    if begin is None:
        raise ConfigError(
            f"The query needs a begin time ({_BEGIN_KEY}), exclusive; `earliest` includes the first commit."
        )
    for key, value in ((_BEGIN_KEY, begin), (_END_KEY, end), ("hoodie.datasource.query.type", "incremental")):
        if options and key in options and options[key] != value:
            raise ConfigError(f"{key}={options[key]!r} contradicts the call ({value!r}); leave the option out.")
    given: dict[str, Any] = {**(options or {}), "hoodie.datasource.query.type": "incremental", _BEGIN_KEY: begin}
    return given if end is None else {**given, _END_KEY: end}


def plan_query(
    storage: Storage,
    options: Mapping[str, Any],
    columns: Sequence[str] | None = None,
    filter: Filter | None = None,
) -> ScanPlan:
    """:func:`plan_incremental` with user options.

    Raises:
        HudiError: as :class:`~hudi_fast.config.read_options.ReadOptions` and :func:`plan_incremental`.
    """
    settings = ReadOptions.from_options(options, timeline_zone(storage))
    if settings.incremental_format == "cdc":
        raise ConfigError(
            "An incremental query returns rows; for changes (hoodie.datasource.query.incremental.format=cdc) use "
            "HudiTable.cdc."
        )
    query = ScanQuery.from_options(settings, options)
    return plan_incremental(incremental_view(storage, settings), columns, filter, settings.threads or None, query)


# ---- files


def _files_of(changes: ChangeRange) -> dict[str, dict[str, FileStat]]:
    """The files of the range's commits by partition and path; a file written to twice has its newest size."""
    found: dict[str, dict[str, FileStat]] = {}
    for one in changes.commits:
        for partition, stats in one.metadata.partition_to_write_stats.items():
            files = found.setdefault(partition, {})
            files.update({stat.path: FileStat(stat.path, stat.file_size, 0, False) for stat in stats if stat.path})
    return found


def _written_share(changes: ChangeRange) -> float:
    stats = [stat for one in changes.commits for stat in one.metadata.write_stats()]
    written = sum(stat.num_inserts + stat.num_update_writes for stat in stats)
    return min(1.0, written / max(1, sum(stat.num_writes for stat in stats)))


def _replaced(state: TableState, changes: ChangeRange) -> dict[tuple[str, str], str]:
    """The file groups replaced by the end of the range."""
    replaced = dict(state.view.replaced)
    for one in changes.commits:
        for partition, file_ids in (one.metadata.partition_to_replace_file_ids or {}).items():
            replaced |= {(partition, file_id): one.instant.requested for file_id in file_ids}
    last = changes.last or ""
    return {group: requested for group, requested in replaced.items() if requested <= last}


def _missing(storage: Storage, files: dict[str, dict[str, FileStat]]) -> list[str]:
    return _not_found(storage, [path for some in files.values() for path in some])


def _require_files(plan: ScanPlan) -> None:
    missing = _not_found(plan.state.storage, [file.path for one in plan.slices for file in one.files])
    if missing:
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        raise ConfigError(
            f"Files that the commits of the range wrote to {plan.state.storage.uri} have been cleaned or rolled back: "
            f"{', '.join(missing[:_NAMED])}{more}. Begin later, or set {_FALLBACK_KEY}=true: this reads the whole "
            "table, without rows that later commits changed."
        )


def _not_found(storage: Storage, paths: list[str]) -> list[str]:
    infos = storage.fs.get_file_info([storage.fs_path(path) for path in paths])
    return [path for path, info in zip(paths, infos, strict=True) if info.type == pafs.FileType.NotFound]


# ---- paths


def _path_of(storage: Storage, one: FileSlice) -> str:
    """The path of a slice's base file, or of its newest log file if it has no base file."""
    return storage.absolute(one.base_file.path if one.base_file is not None else one.log_files[-1].path)


def _glob_pattern(glob: str) -> str:
    """Translate a Hadoop ``GlobPattern`` to a regular expression for the end of a path; ``*`` matches across
    folders.
    """
    parts, depth, letters = [".*"], 0, iter(glob)
    for letter in letters:
        if letter == "\\":
            parts.append(re.escape(next(letters, "\\")))
        elif letter == "*":
            parts.append(".*")
        elif letter == "?":
            parts.append(".")
        elif letter == "{":
            depth += 1
            parts.append("(?:")
        elif letter == "}" and depth:
            depth -= 1
            parts.append(")")
        elif letter == "," and depth:
            parts.append("|")
        elif letter == "[":
            inside = ""
            for letter in letters:
                if letter == "]" and inside not in ("", "!", "^"):
                    break
                inside += letter
            else:
                raise ConfigError(f"hoodie.datasource.read.incr.path.glob={glob!r}: a bracket is not closed.")
            parts.append("[" + ("^" + inside[1:] if inside[0] in "!^" else inside).replace("\\", r"\\") + "]")
        else:
            parts.append(re.escape(letter))
    if depth:
        raise ConfigError(f"hoodie.datasource.read.incr.path.glob={glob!r}: a brace is not closed.")
    return "".join(parts)
