"""The options of a read as one frozen value.

Data flow: ``{"hoodie.datasource.query.type": ...}`` -> :meth:`ReadOptions.from_options` -> the scan.
:mod:`hudi_fast.config.moments` converts times to instants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_fast.config.moments import Moment, Zone, normalise_instant
from hudi_fast.config.option_fields import differing_repr, given_fields, normalise_fields, option_field
from hudi_fast.config.options import READ, resolve
from hudi_fast.errors import ConfigError
from hudi_fast.events import warn

__all__ = ["EARLIEST", "ReadOptions"]

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

    path: str | None = option_field("path")
    query_type: str = option_field("hoodie.datasource.query.type")
    as_of: str | None = option_field(_AS_OF_KEY)
    begin: str | None = option_field(_BEGIN_KEY)
    end: str | None = option_field(_END_KEY)
    incremental_format: str = option_field("hoodie.datasource.query.incremental.format")
    merge_type: str = option_field("hoodie.datasource.merge.type")
    incremental_path_glob: str = option_field("hoodie.datasource.read.incr.path.glob")
    incremental_filters: str = option_field("hoodie.datasource.read.incr.filters")
    incremental_full_scan: bool = option_field("hoodie.datasource.read.incr.fallback.fulltablescan.enable")
    skip_compact: bool = option_field("hoodie.datasource.read.incr.skip_compact")
    incremental_table_version: int | None = option_field("hoodie.datasource.read.incr.table.version")
    schema_as_of_end: bool = option_field("hoodie.datasource.read.schema.use.end.instanttime")
    hollow_commit_policy: str = option_field("hoodie.read.timeline.holes.resolution.policy")
    metadata_enabled: bool = option_field("hoodie.metadata.enable")
    data_skipping: bool = option_field("hoodie.enable.data.skipping")
    threads: int = option_field("hudi_fast.threads")
    values_from_path: bool = option_field("hoodie.datasource.read.extract.partition.values.from.path")
    use_positions: bool = option_field("hoodie.merge.use.record.positions")
    merger: Any = option_field("hudi_fast.merger")  # noqa: RUF009 - a function, or None
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
        times = {key: _time(options[key], key, zone) for key in _TIMES if options.get(key) is not None}
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
                object.__setattr__(self, name, _time(given, key))
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


def _time(value: Moment, key: str, zone: Zone | None = None) -> str:
    """A time of a query as an instant; the beginning of a timeline as :data:`EARLIEST`."""
    if key != _AS_OF_KEY and isinstance(value, str) and (value == "earliest" or (value and not value.strip("0"))):
        if key == _END_KEY:
            raise ConfigError(f"{key}={value!r}: an end cannot be before the first commit.")
        return EARLIEST
    return normalise_instant(value, key, zone)
