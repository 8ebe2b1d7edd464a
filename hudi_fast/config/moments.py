"""Points in time that a caller gives, as instants.

::

    20240131120000[000], 2024-01-31 12:00:00[.000], 2024-01-31, datetime, date ─────────────────────────┐
    2024-01-31T12:00:00+01:00, 1706698800, 1706698800000, datetime with a zone ─► zone of the timeline ─┴─► instant

Instants are digits that compare as text. They are in the zone of the table's timeline
(``hoodie.table.timeline.timezone``): ``UTC``, or ``LOCAL``, the zone of the processes that write. For ``LOCAL`` the
zone of this process is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import TypeAlias

from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import ConfigError
from hudi_fast.storage.base import Storage

__all__ = ["Moment", "Zone", "normalise_instant", "timeline_zone"]

Moment: TypeAlias = str | int | date
"""A point in time, as :func:`normalise_instant` takes it; a ``datetime`` is a ``date``."""

Zone: TypeAlias = Callable[[], str]
"""The zone of a table's timeline, ``LOCAL`` or ``UTC``; called only for a time with a zone."""

_SHAPES = (
    "yyyyMMddHHmmss, yyyyMMddHHmmssSSS, yyyy-MM-dd HH:mm:ss, yyyy-MM-dd HH:mm:ss.SSS, yyyy-MM-dd; ISO 8601 such as "
    "2024-01-31T12:00:00Z or 2024-01-31T12:00:00+01:00; seconds (10 digits) or milliseconds (13 digits) since 1970; a "
    "datetime or a date"
)
_BOOTSTRAPS = ("00000000000001", "00000000000002")
"""Instants of bootstraps, which are not times."""

_DIGITS = re.compile(r"(\d{14})(\d{3})?", re.ASCII)
_EPOCH = re.compile(r"(\d{10})(\d{3})?", re.ASCII)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_ISO = re.compile(
    r"(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))? ?(Z|[+-]\d{2}(?::?\d{2})?)?", re.ASCII | re.IGNORECASE
)


def timeline_zone(storage: Storage) -> Zone:
    """The zone of a table's timeline; a call reads the table's properties.

    The call raises TableNotFoundError if there is no table.
    """
    return lambda: TableConfig.from_properties(load_properties(storage), storage.uri).timezone


def normalise_instant(value: Moment, key: str = "as.of.instant", zone: Zone | None = None) -> str:
    """Convert a point in time to the form of instants: 14 or 17 digits, ``yyyyMMddHHmmss[SSS]``.

    A time without a zone is in the zone of the timeline and is not converted. A time without milliseconds means the end
    of its second (``...999``), a date its midnight; digits after the milliseconds are cut off. An instant of 14 digits
    stays one, and sorts before every 17-digit instant of its second.

    Args:
        value: an instant; a text as Hudi accepts it for ``as.of.instant``, or of ISO 8601 with or without a zone;
            seconds (10 digits) or milliseconds (13 digits) since 1970; a ``date``; a ``datetime`` with or without zone.
            An int stands for its digits.
        key: option to name in the message.
        zone: the zone of the table's timeline.

    Raises:
        ConfigError: another form, a day or time that does not exist, or a time with a zone where ``zone`` is None.
    """
    if isinstance(value, datetime):
        moment = value if value.tzinfo is None else _in_zone(value, key, value.isoformat(), zone)
        return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}"
    if not isinstance(value, str | date | int) or isinstance(value, bool):
        raise ConfigError(f"{key}={value!r} is not a time; expected one of: {_SHAPES}.")
    text = str(value).strip()
    if text in _BOOTSTRAPS:
        return text
    try:
        return _of_text(text, key, zone)
    except ValueError:
        raise ConfigError(
            f"Unsupported query instant time format: {key}={value!r}; expected one of: {_SHAPES}."
        ) from None


def _of_text(text: str, key: str, zone: Zone | None) -> str:
    """The instant of a text.

    Raises:
        ValueError: another form, or a day or time that does not exist.
    """
    if found := _DIGITS.fullmatch(text):
        datetime.strptime(found[1], "%Y%m%d%H%M%S")
        return text
    if _DAY.fullmatch(text):
        return f"{datetime.fromisoformat(text):%Y%m%d%H%M%S}000"
    if found := _EPOCH.fullmatch(text):
        local, millis = _in_zone(datetime.fromtimestamp(int(found[1]), UTC), key, text, zone), found[2]
    elif found := _ISO.fullmatch(text):
        day, time, fraction, offset = found.groups()
        local = datetime.fromisoformat(f"{day} {time}{(offset or '').upper()}")
        millis = None if fraction is None else fraction.ljust(3, "0")[:3]
        if offset is not None:
            local = _in_zone(local, key, text, zone)
    else:
        raise ValueError(text)
    return f"{local:%Y%m%d%H%M%S}{'999' if millis is None else millis}"


def _in_zone(moment: datetime, key: str, text: str, zone: Zone | None) -> datetime:
    """A moment with a zone, in the zone of the timeline."""
    if zone is None:
        raise ConfigError(f"{key}={text} has a time zone, and there is no table whose timeline could give another.")
    return moment.astimezone(UTC if zone() == "UTC" else None)
