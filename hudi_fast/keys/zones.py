"""Time zones by the names in Hudi's options, and the offsets of many instants at once.

::

    "America/New_York", "GMT+8:00", "UTC", "PST"     ──zone──────────►  tzinfo
    int64 milliseconds since the epoch  ──utc_offsets───►  int64 milliseconds to add for local time
    int64 milliseconds of local time    ──local_to_utc──►  int64 milliseconds since the epoch

Apache Hudi passes a name to ``java.util.TimeZone`` and the result to Joda-Time. Three-letter names have their meaning
of JDK 1.1 there (``EST`` is New York, with daylight saving). A name that Java does not know (``UTC+8``, ``+08:00``)
silently becomes GMT; here it is an error, so a misspelt zone does not move rows to other partitions.

Offsets are looked up once per day and used for all instants of that day. Only days on which the offset changes, and
their neighbours, are looked up instant by instant.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import ConfigError

__all__ = [
    "DAY_MS",
    "MAX_MILLIS",
    "MIN_MILLIS",
    "default_zone",
    "distinct_codes",
    "local_to_utc",
    "utc_offsets",
    "zone",
]

DAY_MS = 86_400_000
"""Milliseconds of a day."""

MIN_MILLIS = -62_103_715_200_000
MAX_MILLIS = 253_370_764_799_999
"""Years 2 to 9998, in milliseconds since the epoch: local time is in the range of datetime for any offset."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OFFSET = re.compile(r"GMT([+-])(\d{1,2})(?::?([0-5]\d))?")

# Joda-Time's meaning of the JDK 1.1 names; zoneinfo gives some of them another meaning.
_OLD_NAMES = {
    "GMT": "UTC",
    "MET": "CET",
    "ECT": "CET",
    "MIT": "Pacific/Apia",
    "HST": "Pacific/Honolulu",
    "AST": "America/Anchorage",
    "PST": "America/Los_Angeles",
    "MST": "America/Denver",
    "PNT": "America/Phoenix",
    "CST": "America/Chicago",
    "EST": "America/New_York",
    "PRT": "America/Puerto_Rico",
    "BET": "America/Sao_Paulo",
    "IST": "Asia/Kolkata",
    "CTT": "Asia/Shanghai",
    "JST": "Asia/Tokyo",
    "AET": "Australia/Sydney",
    "NST": "Pacific/Auckland",
}


def zone(name: str) -> tzinfo:
    """The zone with a name.

    Args:
        name: a region (``Europe/Berlin``), ``UTC``, ``GMT``, an offset (``GMT+8``, ``GMT+08:00``), or a three-letter
            name of JDK 1.1.

    Raises:
        ConfigError: the zone does not exist.

    Source: ``org.joda.time.DateTimeZone.forTimeZone``.
    """
    text = name.strip()
    if text in ("UTC", "GMT"):
        return UTC
    offset = _OFFSET.fullmatch(text)
    if offset:
        return _fixed(offset, name)
    try:
        return ZoneInfo(_OLD_NAMES.get(text, text))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(
            f"There is no time zone {name!r}. Set a region such as Europe/Berlin, UTC, or an offset such as GMT+8:00."
        ) from error


def default_zone() -> tzinfo:
    """The zone of this process, which replaces Java's default zone.

    Raises:
        ConfigError: the machine's zone is unknown.
    """
    name = os.environ.get("TZ", "").lstrip(":")
    if name and not name.startswith("/"):
        return zone(name)
    local = Path(name or "/etc/localtime")
    if not local.exists():
        return UTC
    _, found, region = os.path.realpath(local).partition("/zoneinfo/")
    if found:
        return zone(region.removeprefix("posix/").removeprefix("right/"))
    try:
        with local.open("rb") as data:
            return ZoneInfo.from_file(data)
    except (ValueError, OSError) as error:
        raise ConfigError(f"The zone of this machine cannot be read from {local}; set TZ to its name.") from error


def utc_offsets(millis: npt.NDArray[np.int64], where: tzinfo) -> npt.NDArray[np.int64]:
    """The offset from UTC of each instant, to add for local time.

    Args:
        millis: int64[n], milliseconds since the epoch, within ``MIN_MILLIS`` and ``MAX_MILLIS``.
        where: the zone.

    Returns:
        int64[n], milliseconds.
    """
    if isinstance(where, timezone):
        return np.full(len(millis), _offset_ms(where, 0), dtype=np.int64)
    codes, days = distinct_codes(millis // DAY_MS)
    first = np.array([_offset_ms(where, int(day) * DAY_MS) for day in days], dtype=np.int64)
    last = np.array([_offset_ms(where, int(day) * DAY_MS + DAY_MS - 1000) for day in days], dtype=np.int64)
    result: npt.NDArray[np.int64] = first[codes]
    # No zone changes its offset twice within a day and back to the same offset.
    changing = np.flatnonzero((first != last)[codes])
    if len(changing):
        seconds, instants = distinct_codes(millis[changing] // 1000)
        exact = np.array([_offset_ms(where, int(instant) * 1000) for instant in instants], dtype=np.int64)
        result[changing] = exact[seconds]
    return result


def local_to_utc(local_ms: npt.NDArray[np.int64], where: tzinfo) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """The instants of local times in a zone.

    Args:
        local_ms: int64[n], milliseconds since 1970-01-01 of local time, within ``MIN_MILLIS`` and ``MAX_MILLIS``.
        where: the zone.

    Returns:
        ``(millis, skipped)``: int64[n] milliseconds since the epoch, the earlier instant of an ambiguous time; bool[n],
        whether the zone skips that local time, which makes the instant meaningless.
    """
    skipped = np.zeros(len(local_ms), dtype=np.bool_)
    if isinstance(where, timezone):
        return local_ms - _offset_ms(where, 0), skipped
    codes, days = distinct_codes(local_ms // DAY_MS)
    before = np.array([_offset_ms(where, int(day) * DAY_MS - DAY_MS) for day in days], dtype=np.int64)
    after = np.array([_offset_ms(where, int(day) * DAY_MS + 2 * DAY_MS) for day in days], dtype=np.int64)
    millis: npt.NDArray[np.int64] = local_ms - before[codes]
    changing = np.flatnonzero((before != after)[codes])
    if len(changing):
        places, times = distinct_codes(local_ms[changing])
        exact = [_instant_ms(where, int(time)) for time in times]
        millis[changing] = np.array([instant for instant, _ in exact], dtype=np.int64)[places]
        skipped[changing] = np.array([skip for _, skip in exact], dtype=np.bool_)[places]
    return millis, skipped


def distinct_codes(values: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """``(codes, distinct)`` with ``distinct[codes] == values``: int32[n] and int64[number of distinct values]."""
    encoded = pa.array(values).dictionary_encode()
    return encoded.indices.to_numpy(), encoded.dictionary.to_numpy()


def _fixed(match: re.Match[str], name: str) -> timezone:
    sign, hours, minutes = match.groups()
    offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
    if offset >= timedelta(hours=24):
        raise ConfigError(f"The time zone {name!r} is a day or more away from GMT.")
    return timezone(-offset if sign == "-" else offset)


def _instant_ms(where: tzinfo, local_ms: int) -> tuple[int, bool]:
    local = (_EPOCH + timedelta(milliseconds=local_ms)).replace(tzinfo=where)
    instant = local.astimezone(UTC)
    skipped = instant.astimezone(where).replace(tzinfo=None) != local.replace(tzinfo=None)
    return (instant - _EPOCH) // timedelta(milliseconds=1), skipped


def _offset_ms(where: tzinfo, millis: int) -> int:
    offset = (_EPOCH + timedelta(milliseconds=millis)).astimezone(where).utcoffset()
    return 0 if offset is None else offset // timedelta(milliseconds=1)
