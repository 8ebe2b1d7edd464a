"""The options of a read as one frozen value.

Data flow: ``{"hoodie.datasource.query.type": ...}`` -> :meth:`ReadOptions.from_options` -> the scan.
:func:`normalise_instant` converts times to the form of instants, which compare as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from hudi_fast.config.option_fields import differing_repr, given_fields, normalise_fields, option_field
from hudi_fast.config.options import READ, resolve
from hudi_fast.errors import ConfigError

__all__ = ["EARLIEST", "ReadOptions", "normalise_instant"]

EARLIEST = "000"
"""Start of an incremental query from the first commit; sorts before every instant."""

_BEGIN_KEY = "hoodie.datasource.read.begin.instanttime"
_END_KEY = "hoodie.datasource.read.end.instanttime"
_FORMATS = {
    10: ("%Y-%m-%d", "000"),
    14: ("%Y%m%d%H%M%S", ""),
    17: ("%Y%m%d%H%M%S", ""),
    19: ("%Y-%m-%d %H:%M:%S", "999"),
    23: ("%Y-%m-%d %H:%M:%S", ""),
}
_SHAPES = "yyyyMMddHHmmss, yyyyMMddHHmmssSSS, yyyy-MM-dd HH:mm:ss, yyyy-MM-dd HH:mm:ss.SSS, yyyy-MM-dd"


@dataclass(frozen=True, slots=True, repr=False)
class ReadOptions:
    """All options of a read.

    Attributes:
        as_of: instant in the form of :func:`normalise_instant`, or None for the newest state.
        begin: start of an incremental query, exclusive, in the same form; :data:`EARLIEST` = from the first commit.
        end: end of an incremental query, inclusive; None = the newest commit.
        explicit: newest keys of the options that were given or differ from their defaults.
    """

    path: str | None = option_field("path")
    query_type: str = option_field("hoodie.datasource.query.type")
    as_of: str | None = option_field("as.of.instant")
    begin: str | None = option_field(_BEGIN_KEY)
    end: str | None = option_field(_END_KEY)
    incremental_format: str = option_field("hoodie.datasource.query.incremental.format")
    merge_type: str = option_field("hoodie.datasource.merge.type")
    incremental_path_glob: str = option_field("hoodie.datasource.read.incr.path.glob")
    incremental_full_scan: bool = option_field("hoodie.datasource.read.incr.fallback.fulltablescan.enable")
    skip_compact: bool = option_field("hoodie.datasource.read.incr.skip_compact")
    incremental_table_version: int | None = option_field("hoodie.datasource.read.incr.table.version")
    schema_as_of_end: bool = option_field("hoodie.datasource.read.schema.use.end.instanttime")
    hollow_commit_policy: str = option_field("hoodie.read.timeline.holes.resolution.policy")
    metadata_enabled: bool = option_field("hoodie.metadata.enable")
    data_skipping: bool = option_field("hoodie.enable.data.skipping")
    threads: int = option_field("hudi_fast.threads")
    use_positions: bool = option_field("hoodie.merge.use.record.positions")
    merger: Any = option_field("hudi_fast.merger")  # noqa: RUF009 - a function, or None
    explicit: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> ReadOptions:
        """Resolve a dictionary of options.

        Raises:
            ConfigError: a key or value is invalid, or options contradict each other.
            UnsupportedFeatureError: an option requests an unsupported feature.

        Warns:
            HudiWarning: an unknown ``hoodie.`` key.
        """
        times = {key: normalise_instant(value, key) for key, value in options.items() if isinstance(value, date)}
        values = resolve({**options, **times}, READ[0])
        given: dict[str, Any] = given_fields(cls, values)
        return cls(**given, explicit=frozenset(option.key for option in values))

    def __post_init__(self) -> None:
        object.__setattr__(self, "explicit", self.explicit | normalise_fields(self))
        if self.as_of is not None:
            object.__setattr__(self, "as_of", normalise_instant(self.as_of))
        for name, key in (("begin", _BEGIN_KEY), ("end", _END_KEY)):
            bound = getattr(self, name)
            if bound is not None:
                object.__setattr__(self, name, _incremental_bound(bound, key))
        self._check_times()

    def __repr__(self) -> str:
        return differing_repr(self)

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


_BOOTSTRAPS = ("00000000000001", "00000000000002")
"""Instants of bootstraps, which are not times."""


def normalise_instant(value: str | date | int, key: str = "as.of.instant") -> str:
    """Convert a point in time to the form of instants: 14 or 17 digits, ``yyyyMMddHHmmss[SSS]``.

    No time zone is applied. A time without milliseconds means the end of its second (``...999``), a date its midnight.
    14 digits stay 14 digits and sort before every 17-digit instant of that second.

    Args:
        value: one of the five forms that Hudi accepts for ``as.of.instant`` (an int stands for its digits), a ``date``,
            or a ``datetime`` without zone.
        key: option to name in the message.

    Raises:
        ConfigError: another form, a day or time that does not exist, or a ``datetime`` with a zone.
    """
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            raise ConfigError(
                f"{key}={value.isoformat()} has a time zone; give a time without zone, in the zone of the timeline."
            )
        return value.strftime("%Y%m%d%H%M%S") + f"{value.microsecond // 1000:03d}"
    if not isinstance(value, str | date | int) or isinstance(value, bool):
        raise ConfigError(f"{key}={value!r} is not a time; expected one of: {_SHAPES}, or a datetime without zone.")
    text = str(value).strip()
    if text in _BOOTSTRAPS:
        return text
    pattern, millis = _FORMATS.get(len(text), ("", ""))
    seconds = text
    if len(text) in (17, 23):
        cut = 14 if len(text) == 17 else 19
        seconds, millis = text[:cut], text[cut:].removeprefix("." if cut == 19 else "")
    try:
        if not pattern or not (millis + "0").isdecimal() or len(millis) not in (0, 3) or not text.isascii():
            raise ValueError(text)
        return _strict(seconds, pattern) + millis
    except ValueError:
        raise ConfigError(
            f"Unsupported query instant time format: {key}={value!r}; expected one of: {_SHAPES}."
        ) from None


def _strict(text: str, pattern: str) -> str:
    moment = datetime.strptime(text, pattern)
    # strptime accepts one digit for two; formatting the result again detects such a text.
    if moment.strftime(pattern) != text:
        raise ValueError(text)
    return moment.strftime("%Y%m%d%H%M%S")


def _incremental_bound(text: str, key: str) -> str:
    if text == "earliest" or (text and not text.strip("0")):
        if key == _END_KEY:
            raise ConfigError(f"{key}={text!r}: an end cannot be before the first commit.")
        return EARLIEST
    return normalise_instant(text, key)
