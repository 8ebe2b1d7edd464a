"""Read dates and times from text, and print them as text, as Spark does.

::

    "2024-2-9", "2024-02-29T23:59:59.5+01:00" ─ read_dates, read_moments ─► days; microseconds
    text ─ read_pattern("dd.MM.yyyy HH:mm") ──────────────────────────────► microseconds of local time
    local time ─ print_pattern("yyyy-MM-dd") ─────────────────────────────► text

Each distinct text is read once. Text that Spark reads as null is null here. Text whose result cannot be known here
raises :class:`Unknown`: times without a date (Spark takes the current day), years beyond 9999, names of time zones, and
text that does not fit a pattern (``spark.sql.legacy.timeParserPolicy`` decides whether Spark refuses it or reads null).

Sources: ``SparkDateTimeUtils`` and ``DateTimeFormatterHelper`` of Spark 3.5, and Spark's page on datetime patterns.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Unknown", "print_pattern", "read_dates", "read_moments", "read_pattern"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BLANKS = "".join(map(chr, range(0x21))) + "\x7f"
"""Characters that Spark removes around dates: white space and control characters of ASCII."""

_DAY = re.compile(r"([+-]?)(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.ASCII | re.DOTALL)
_MOMENT = re.compile(
    r"([+-]?)(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d*))?([ ]?(?:Z|UTC|GMT|[+-]\d{1,2}:\d{1,2}))?)?)?)?",
    re.ASCII,
)
_ZONED = re.compile(r"([+-])(\d{1,2}):(\d{1,2})", re.ASCII)
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']")
_READ = {"yyyy": r"(\d{4})", "MM": r"(\d{2})", "dd": r"(\d{2})", "HH": r"(\d{2})", "mm": r"(\d{2})", "ss": r"(\d{2})"}
_NOTHING_TO_READ = re.compile(r"[^0-9]*")
_PLACES = {"yyyy": 1970, "MM": 1, "dd": 1, "HH": 0, "mm": 0, "ss": 0}
"""Letters of the parts that a pattern may read, in the order of ``datetime``'s arguments, with their default values."""

_MONTHS = ("January February March April May June July August September October November December").split()
_DAYS = ("Monday Tuesday Wednesday Thursday Friday Saturday Sunday").split()


class Unknown(Exception):
    """A result cannot be computed here, for example for years beyond 9999; the results of its file are then unknown."""


def read_dates(texts: pa.Array) -> pa.Array:
    """Text as dates, like ``CAST(... AS DATE)``: date32[n], null for text that is no date.

    Raises:
        Unknown: see the module.
    """
    return _by_text(texts, _date, pa.date32())


def read_moments(texts: pa.Array, zone: tzinfo) -> pa.Array:
    """Text as instants, like ``CAST(... AS TIMESTAMP)``: timestamp[us, UTC][n], null for text that is no timestamp.

    Raises:
        Unknown: see the module.
    """
    return _by_text(texts, lambda text: _moment(text, zone), pa.timestamp("us", "UTC"))


def read_pattern(texts: pa.Array, pattern: str) -> pa.Array:
    """Text of a pattern as local time: timestamp[us][n], null for text without digits.

    Raises:
        Unknown: see the module.
        ValueError: the pattern is not supported.
    """
    form, places = _reader(pattern)

    def read(text: str) -> datetime | None:
        found = form.fullmatch(text)
        if found is None:
            if _NOTHING_TO_READ.fullmatch(text):
                return None
            raise Unknown
        parts = dict(zip(places, found.groups(), strict=True))
        year, month, day, hour, minute, second = (int(parts.get(name, first)) for name, first in _PLACES.items())
        micros = int(parts.get("S", "0").ljust(6, "0")[:6])
        try:
            return datetime(year, month, day, hour, minute, second, micros)
        except ValueError:
            raise Unknown from None

    return _by_text(texts, read, pa.timestamp("us"))


def print_pattern(moments: pa.Array, pattern: str) -> pa.Array:
    """Local times, timestamp[us][n], as text of a pattern.

    Raises:
        ValueError: the pattern is not supported.
    """
    parts = [literal if token is None else _PRINT[token[0]](moments, len(token)) for literal, token in _tokens(pattern)]
    if not any(isinstance(one, pa.Array) for one in parts):
        return pc.if_else(moments.is_valid(), pa.scalar("".join(parts)), pa.scalar(None, pa.string()))
    return pc.binary_join_element_wise(*[one if isinstance(one, pa.Array) else pa.scalar(one) for one in parts], "")


# ---- reading


def _by_text(texts: pa.Array, read: Callable[[str], object], kind: pa.DataType) -> pa.Array:
    coded = texts.dictionary_encode()
    found = [None if text is None else read(text) for text in coded.dictionary.to_pylist()]
    return pa.array(found, kind).take(coded.indices)


def _date(text: str) -> date | None:
    found = _DAY.fullmatch(text.strip(_BLANKS))
    if found is None:
        return None
    return _day(found)


def _day(found: re.Match[str]) -> date | None:
    year = int(found[2])
    month, day = int(found[3] or 1), int(found[4] or 1)
    if found[1] == "-" or not 1 <= year <= 9999:
        raise Unknown
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _moment(text: str, zone: tzinfo) -> datetime | None:
    text = text.strip(_BLANKS)
    found = _MOMENT.fullmatch(text)
    if found is None:
        if _NOTHING_TO_READ.fullmatch(text):
            return None
        raise Unknown
    day = _day(found)
    if day is None:
        return None
    hour, minute, second = (int(found[at] or 0) for at in (5, 6, 7))
    if hour > 23 or minute > 59 or second > 59:
        return None
    fraction = (found[8] or "").ljust(6, "0")[:6]
    where = _offset(found[9].strip()) if found[9] else zone
    if where is None:
        return None
    local = datetime(day.year, day.month, day.day, hour, minute, second, int(fraction), tzinfo=where)
    if not 2 <= day.year <= 9998:
        raise Unknown
    return local.astimezone(UTC)


def _offset(text: str) -> tzinfo | None:
    found = _ZONED.fullmatch(text)
    if found is None:
        return UTC
    hours, minutes = int(found[2]), int(found[3])
    if hours > 18 or minutes > 59 or (hours == 18 and minutes):
        return None
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if found[1] == "-" else offset)


# ---- patterns


def _tokens(pattern: str) -> list[tuple[str, str | None]]:
    """Tokens of a pattern: (literal text, None), or ("", a run of one letter)."""
    found: list[tuple[str, str | None]] = []
    at = 0
    while at < len(pattern):
        match = _TOKEN.match(pattern, at)
        if match is None or match[0] in "[]{}#":
            raise ValueError(f"the format {pattern!r} has {pattern[at]!r}, which is not supported")
        if match[2]:
            if match[0] not in _WIDTHS.get(match[2], ()):
                raise ValueError(f"the format {pattern!r} has {match[0]!r}, which is not supported")
            found.append(("", match[0]))
        elif match[1] is not None:
            found.append((match[1].replace("''", "'") or "'", None))
        else:
            found.append((match[0], None))
        at = match.end()
    return found


@lru_cache(64)
def _reader(pattern: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    parts, places = [], []
    for literal, token in _tokens(pattern):
        if token is None:
            parts.append(re.escape(literal))
            continue
        name = "S" if token[0] == "S" else token
        if name in places or (name != "S" and token not in _READ):
            raise ValueError(f"the format {pattern!r} has {token!r}, which is not supported for reading")
        parts.append(rf"(\d{{{len(token)}}})" if name == "S" else _READ[token])
        places.append(name)
    return re.compile("".join(parts), re.ASCII), tuple(places)


def _number(of: Callable[[pa.Array], pa.Array]) -> Callable[[pa.Array, int], pa.Array]:
    return lambda moments, width: pc.utf8_lpad(of(moments).cast(pa.string()), width, "0")


def _year(moments: pa.Array, width: int) -> pa.Array:
    found = pc.utf8_lpad(pc.year(moments).cast(pa.string()), width if width != 2 else 4, "0")
    return pc.utf8_slice_codeunits(found, 2) if width == 2 else found


def _named(names: list[str], of: Callable[[pa.Array], pa.Array], short: int) -> Callable[[pa.Array, int], pa.Array]:
    def name(moments: pa.Array, width: int) -> pa.Array:
        texts = [one if width == 4 else one[:short] for one in names]
        return pa.array(texts, pa.string()).take(of(moments).cast(pa.int64()))

    return name


def _month(moments: pa.Array, width: int) -> pa.Array:
    if width <= 2:
        return _number(pc.month)(moments, width)
    return _named(_MONTHS, lambda values: pc.subtract(pc.month(values), 1), 3)(moments, width)


def _weekday(moments: pa.Array, width: int) -> pa.Array:
    return _named(_DAYS, pc.day_of_week, 3)(moments, width)


def _twelve(moments: pa.Array) -> pa.Array:
    hours = pc.hour(moments)
    hours = pc.if_else(pc.greater_equal(hours, 12), pc.subtract(hours, 12), hours)
    return pc.if_else(pc.equal(hours, 0), 12, hours)


def _half(moments: pa.Array, _: int) -> pa.Array:
    return pc.if_else(pc.greater_equal(pc.hour(moments), 12), "PM", "AM")


def _fraction(moments: pa.Array, width: int) -> pa.Array:
    micros = pc.add(pc.multiply(pc.millisecond(moments), 1000), pc.microsecond(moments))
    text = pc.utf8_lpad(micros.cast(pa.string()), 6, "0")
    return pc.utf8_slice_codeunits(pc.utf8_rpad(text, 9, "0"), 0, width)


_PRINT: dict[str, Callable[[pa.Array, int], pa.Array]] = {
    "y": _year,
    "M": _month,
    "d": _number(pc.day),
    "D": _number(pc.day_of_year),
    "E": _weekday,
    "H": _number(pc.hour),
    "h": _number(_twelve),
    "m": _number(pc.minute),
    "s": _number(pc.second),
    "S": _fraction,
    "a": _half,
}
_WIDTHS = {
    "y": ("y", "yy", "yyy", "yyyy"),
    "M": ("M", "MM", "MMM", "MMMM"),
    "d": ("d", "dd"),
    "D": ("D", "DDD"),
    "E": ("E", "EE", "EEE", "EEEE"),
    "H": ("H", "HH"),
    "h": ("h", "hh"),
    "m": ("m", "mm"),
    "s": ("s", "ss"),
    "S": tuple("S" * width for width in range(1, 10)),
    "a": ("a",),
}
