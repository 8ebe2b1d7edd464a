"""The options of a read as one frozen value.

Data flow: ``{"hoodie.datasource.query.type": ...}`` -> :meth:`ReadOptions.from_options` -> the scan.
:mod:`hudi_fast.config.moments` converts times to instants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from hudi_fast.config.engine_options import EngineOptions
from hudi_fast.config.metadata_options import MetadataOptions
from hudi_fast.config.moments import Moment, Zone, normalise_instant
from hudi_fast.config.option_fields import (
    BOTH,
    READ,
    Kind,
    Option,
    differing_repr,
    given_fields,
    normalise_fields,
    option,
    options_of,
    same_option,
)
from hudi_fast.config.option_names import QUERY_TYPES
from hudi_fast.errors import ConfigError
from hudi_fast.events import warn
from hudi_fast.values import dataclass

__all__ = ["EARLIEST", "QUERY_OPTIONS", "ReadOptions", "query_time"]

_READ = "hoodie.datasource.read."

EARLIEST = "000"
"""Start of an incremental query from the first commit; sorts before every instant."""

_BEGIN_KEY = "hoodie.datasource.read.begin.instanttime"
_END_KEY = "hoodie.datasource.read.end.instanttime"
_AS_OF_KEY = "as.of.instant"


@dataclass(frozen=True, slots=True, repr=False)
class ReadOptions:
    """All options of a read.

    Attributes:
        as_of: instant in the form of :func:`~hudi_fast.config.moments.normalise_instant`, or None for the newest state.
        begin: start of an incremental query, exclusive, in the same form; :data:`EARLIEST` = from the first commit.
        end: end of an incremental query, inclusive; None = the newest commit.
        explicit: newest keys of the options that were given or differ from their defaults.
    """

    path: str | None = option(
        "path", Kind.TEXT, None, "Base path of the table.", aliases=("hoodie.base.path",), families=BOTH
    )
    query_type: str = option(
        "hoodie.datasource.query.type",
        Kind.ENUM,
        "snapshot",
        "Snapshot query, read-optimized query (base files only), or incremental query (rows written in a range).",
        choices=QUERY_TYPES,
        families=READ,
    )
    as_of: str | None = option(
        "as.of.instant",
        Kind.TEXT,
        None,
        "Time travel to this time: `yyyyMMddHHmmss[SSS]`, `yyyy-MM-dd HH:mm:ss[.SSS]`, `yyyy-MM-dd`, ISO 8601 with or "
        "without a zone, or seconds (10 digits) or milliseconds (13 digits) since 1970.",
        families=READ,
    )
    begin: str | None = option(
        f"{_READ}begin.instanttime",
        Kind.TEXT,
        None,
        "Start of an incremental query, exclusive: a completion time (before table version 8 a requested time); "
        "`earliest` = from the first commit.",
        families=READ,
    )
    end: str | None = option(
        f"{_READ}end.instanttime",
        Kind.TEXT,
        None,
        "End of an incremental query, inclusive; default: the newest commit.",
        families=READ,
    )
    incremental_format: str = option(
        "hoodie.datasource.query.incremental.format",
        Kind.ENUM,
        "latest_state",
        "Result of an incremental query: the newest rows, or changes with the images before and after.",
        choices=("latest_state", "cdc"),
        families=READ,
    )
    merge_type: str = option(
        "hoodie.datasource.merge.type",
        Kind.ENUM,
        "payload_combine",
        "MERGE_ON_READ: merge log files into base files, or return all rows unmerged.",
        choices=("payload_combine", "skip_merge"),
        families=READ,
    )
    incremental_path_glob: str = option(
        f"{_READ}incr.path.glob",
        Kind.TEXT,
        "",
        "Incremental: read only files whose path ends with a match of this glob.",
        families=READ,
    )
    incremental_filters: str = option(
        f"{_READ}incr.filters",
        Kind.TEXT,
        "",
        "Incremental: return only rows that fulfil these conditions in SQL, separated by commas.",
        families=READ,
    )
    incremental_full_scan: bool = option(
        f"{_READ}incr.fallback.fulltablescan.enable",
        Kind.BOOL,
        False,
        "Incremental: scan the whole table if files of the range were deleted.",
        families=READ,
    )
    skip_compact: bool = option(
        f"{_READ}incr.skip_compact",
        Kind.BOOL,
        False,
        "Incremental: leave out compactions. Compacted rows always belong to the commits that logged them.",
        families=READ,
    )
    incremental_table_version: int | None = option(
        f"{_READ}incr.table.version",
        Kind.INT,
        None,
        "Incremental: 6 = bounds are requested times, for every table version.",
        supported=(6, 8, 9),
        minimum=0,
        families=READ,
    )
    schema_as_of_end: bool = option(
        f"{_READ}schema.use.end.instanttime",
        Kind.BOOL,
        False,
        "Incremental: return rows in the schema as of the end of the range.",
        families=READ,
    )
    hollow_commit_policy: str = option(
        "hoodie.read.timeline.holes.resolution.policy",
        Kind.ENUM,
        "FAIL",
        "Incremental, table version 6: how to handle a pending commit before a completed one.",
        aliases=(f"{_READ}handle.hollow.commit",),
        choices=("FAIL", "BLOCK", "USE_TRANSITION_TIME"),
        families=READ,
    )
    metadata_enabled: bool = same_option(MetadataOptions, "enabled")
    data_skipping: bool = option(
        "hoodie.enable.data.skipping",
        Kind.BOOL,
        True,
        "Skip files without matching rows, by the indexes of the metadata table.",
        families=READ,
    )
    threads: int = same_option(EngineOptions, "threads")
    values_from_path: bool = option(
        f"{_READ}extract.partition.values.from.path",
        Kind.BOOL,
        False,
        "Read partition columns from folder names instead of rows.",
        families=READ,
    )
    use_positions: bool = option(
        "hoodie.merge.use.record.positions",
        Kind.BOOL,
        False,
        "MERGE_ON_READ: match log records to base file rows by position instead of key, if the log stores positions.",
        families=READ,
    )
    merger: Any = same_option(EngineOptions, "merger")
    explicit: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    @classmethod
    def from_options(cls, options: Mapping[str, Any], zone: Zone | None = None) -> ReadOptions:
        """Resolve a dictionary of options.

        Args:
            options: the dictionary.
            zone: the zone of the table's timeline, for times with a zone.

        Raises:
            ConfigError: a key or value is invalid, or options contradict each other.
            UnsupportedFeatureError: an option requests an unsupported feature.

        Warns:
            HudiWarning: an unknown ``hoodie.`` key; or an option of incremental queries for another query.
        """
        times = {key: query_time(options[key], key, zone) for key in _TIMES if options.get(key) is not None}
        from hudi_fast.config.options import resolve  # it imports all classes of options

        values = resolve({**options, **times}, READ[0])
        given: dict[str, Any] = given_fields(cls, values)
        settings = cls(**given, explicit=frozenset(option.key for option in values))
        settings._warn_of_ranges()
        return settings

    def __post_init__(self) -> None:
        object.__setattr__(self, "explicit", self.explicit | normalise_fields(self))
        for name, key in (("as_of", _AS_OF_KEY), ("begin", _BEGIN_KEY), ("end", _END_KEY)):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, query_time(given, key))
        self._check_times()

    def __repr__(self) -> str:
        return differing_repr(self)

    def _warn_of_ranges(self) -> None:
        """Warn of options that only an incremental query follows; Apache Hudi ignores them in others, too."""
        unused = [key for key in _OF_RANGES if key in self.explicit]
        if unused and self.query_type != "incremental":
            warn(
                f"{', '.join(unused)} {'has' if len(unused) == 1 else 'have'} no effect on a {self.query_type} query. "
                "For the rows of a range of commits set hoodie.datasource.query.type=incremental."
            )

    def _check_times(self) -> None:
        incremental = self.query_type == "incremental"
        if incremental and self.begin is None:
            raise ConfigError(
                f"Specify the start completion time to pull from using option {_BEGIN_KEY} (earliest = from the first "
                "commit; a requested time for tables before version 8)."
            )
        if incremental and self.as_of is not None:
            raise ConfigError(
                "as.of.instant does not apply to an incremental query; use the begin and end of the query instead."
            )
        if self.begin is not None and self.end is not None and self.end < self.begin:
            raise ConfigError(f"The range ({self.begin}, {self.end}] ends before it begins ({_BEGIN_KEY}, {_END_KEY}).")


_TIMES = (_AS_OF_KEY, _BEGIN_KEY, _END_KEY)
_OF_RANGES = (
    _BEGIN_KEY,
    _END_KEY,
    "hoodie.datasource.read.incr.path.glob",
    "hoodie.datasource.read.incr.filters",
)


def query_time(value: Moment, key: str, zone: Zone | None = None) -> str:
    """A time of a query as an instant; the beginning of a timeline as :data:`EARLIEST`.

    Args:
        value: the time, as a caller gives it.
        key: its option or argument, for messages.
        zone: the table's time zone, for times without one.

    Raises:
        ConfigError: it is no time, or an end before the first commit.
    """
    if key != _AS_OF_KEY and isinstance(value, str) and (value == "earliest" or (value and not value.strip("0"))):
        if key == _END_KEY:
            raise ConfigError(f"{key}={value!r}: an end cannot be before the first commit.")
        return EARLIEST
    return normalise_instant(value, key, zone)


QUERY_OPTIONS = (
    *options_of(ReadOptions),
    Option(
        f"{_READ}paths",
        Kind.TEXT,
        None,
        "Several paths in one read; Apache Hudi 1.2 refuses them, too.",
        supported=(),
        families=READ,
        instead="Apache Hudi 1.2 refuses it, too. Read the base path and filter by the partition columns.",
    ),
    Option(
        "hoodie.query.as.ro.table",
        Kind.BOOL,
        False,
        "Set by catalogs for `_ro` tables.",
        supported=(False,),
        families=READ,
    ),
    Option(
        "hoodie.datasource.view.type",
        Kind.TEXT,
        None,
        "Old name of `hoodie.datasource.query.type`, which Apache Hudi ignores.",
        supported=(),
        families=READ,
        instead="Set hoodie.datasource.query.type.",
    ),
    Option(
        f"{_READ}table.valued.function.timeline.relation",
        Kind.BOOL,
        False,
        "Read the timeline as rows.",
        supported=(False,),
        families=READ,
    ),
    Option(
        f"{_READ}create.filesystem.relation",
        Kind.BOOL,
        False,
        "Read file metadata as rows.",
        supported=(False,),
        families=READ,
    ),
    Option(
        "hoodie.read.blob.inline.mode",
        Kind.ENUM,
        "DESCRIPTOR",
        "Form of inline blobs: without effect in tables of Parquet files, which return their bytes.",
        choices=("DESCRIPTOR", "CONTENT"),
        families=READ,
    ),
)
"""Options of reads."""
