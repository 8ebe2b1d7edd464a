r"""Text functions with Spark's results: regular expressions, dates and times.

Java's regular expressions, as Spark's functions use them: find, replace and split on arrays.

::

    pattern in Java's grammar ─ java_pattern ─► the same in RE2's grammar ─┬─ extract ─► one group of the first match
                                                                           ├─ replace ─► all matches replaced
                                                                           └─ split ───► the parts between matches

Patterns and texts come from a table, so matching must take linear time; pyarrow's RE2 does. The grammars share most of
their forms. Where they differ, the pattern is rewritten (``.``, ``\s``, named groups). Forms that RE2 lacks or reads
differently are refused: look-around, backreferences, possessive counts, classes within classes, ``\p``, ``\b``,
``\Q`` and more.

Sources: ``java.util.regex.Pattern`` and ``Matcher#appendReplacement`` (JDK 17); ``RegExpExtract``, ``RegExpReplace``
and ``StringSplit`` of Spark 3.5.

Read dates and times from text, and print them as text, as Spark does.

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
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.values import dataclass

__all__ = [
    "JavaPattern",
    "Unknown",
    "extract",
    "java_pattern",
    "print_pattern",
    "read_dates",
    "read_moments",
    "read_pattern",
    "replace",
    "split",
]

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


_ANY = "[^\n\r\x85\u2028\u2029]"
_ENDS_WITH_LINE = "[\n\r\x85\u2028\u2029]\\z"
_SPACE = "\\t\\n\\v\\f\\r "
"""Java's white space. RE2's white space lacks the vertical tab."""

_FOLDED = "[\u017f\u212a]"
"""Letters that RE2, but not Java, matches with s or k when it ignores case."""

_ESCAPES = frozenset("dDsSwWtnrf\\.[]{}()*+-?^$|/#&~!\"%',:;<=>@`_ ")
_NAMED = re.compile(r"\?<([A-Za-z][A-Za-z0-9]*)>")
_COUNT = re.compile(r"\{\d+(,\d*)?\}")
_FLAGS = re.compile(r"\(\?([ims]+)\)")
_MAX_GROUPS = 9
"""RE2's replacements refer to a group by one digit."""


@dataclass(frozen=True, slots=True)
class JavaPattern:
    """A Java pattern.

    Attributes:
        java: the pattern in Java's grammar.
        re2: the pattern in RE2's grammar; each group is named ``g`` and its number.
        groups: number of groups.
        names: numbers of the groups that have a name.
        ignores_case: whether it ignores the case of ASCII letters.
        sees_end: whether it has a ``$``.
    """

    java: str
    re2: str
    groups: int = 0
    names: Mapping[str, int] = field(default_factory=dict)
    ignores_case: bool = False
    sees_end: bool = False

    @property
    def matches_once(self) -> bool:
        """Whether the pattern matches at most once in a text."""
        return self.java == "$" or (self.java.startswith("^") and "|" not in self.java)


@lru_cache(64)
def java_pattern(text: str) -> JavaPattern:
    """Parse a Java pattern.

    Raises:
        ValueError: the pattern is invalid, or has an unsupported form.
    """
    return _Translation(text).pattern()


def extract(texts: pa.Array, pattern: JavaPattern, group: int) -> pa.Array:
    """The text of a group of the first match; empty without a match, and for a group that did not match.

    Args:
        texts: string[n].
        pattern: the pattern to find.
        group: number of the group; 0 for the whole match.

    Returns:
        string[n], null for null.

    Raises:
        Unknown: see :func:`_require_same`.
        ValueError: the pattern has no such group.
    """
    if not 0 <= group <= pattern.groups:
        raise ValueError(f"the pattern {pattern.java!r} has {pattern.groups} groups; there is no group {group}")
    _require_same(texts, pattern)
    found = pc.struct_field(pc.extract_regex(texts, f"(?P<g0>{pattern.re2})"), f"g{group}")
    return pc.if_else(texts.is_valid(), pc.fill_null(found, ""), None)


def replace(texts: pa.Array, pattern: JavaPattern, replacement: str) -> pa.Array:
    """The texts with each match replaced; ``$1`` and ``${name}`` in the replacement are groups, ``\\`` quotes.

    Arguments and result as for :func:`extract`.

    Raises:
        Unknown: see :func:`_require_same`.
        ValueError: the replacement is invalid, or names a group that the pattern lacks; or the pattern may match the
            empty text several times.
    """
    parts = _replacement(pattern, replacement)
    if not pattern.matches_once:
        _require_longer_matches(pattern)
    _require_same(texts, pattern)
    made = (one.replace("\\", "\\\\") if isinstance(one, str) else f"\\{one}" for one in parts)
    return pc.replace_substring_regex(texts, pattern.re2, "".join(made))


def split(texts: pa.Array, pattern: JavaPattern) -> pa.Array:
    """The parts of each text between matches, also empty ones: list<string>[n]. An empty pattern separates characters.

    Raises:
        Unknown: see :func:`_require_same`.
        ValueError: the pattern matches the empty text.
    """
    kind = pa.list_(pa.string())
    if not pattern.java:
        return pa.array([None if text is None else list(text) or [""] for text in texts.to_pylist()], kind)
    _require_longer_matches(pattern)
    _require_same(texts, pattern)
    return pc.split_pattern_regex(texts, pattern.re2).cast(kind)


def _require_longer_matches(pattern: JavaPattern) -> None:
    """Refuse patterns with empty matches: Java and RE2 disagree on where an empty match follows another match.

    Raises:
        ValueError: the pattern matches the empty text.
    """
    if pc.match_substring_regex(pa.array([""]), pattern.re2)[0].as_py():
        raise ValueError(f"the pattern {pattern.java!r} also matches the empty text, which is not supported here")


def _require_same(texts: pa.Array, pattern: JavaPattern) -> None:
    """Refuse texts in which RE2 may find other matches than Java.

    Java's ``$`` also matches before the line end that ends a text; for the ignored case see ``_FOLDED``.

    Raises:
        Unknown: RE2 may find another match than Java in one of the texts.
    """
    for form, applies in ((_ENDS_WITH_LINE, pattern.sees_end), (_FOLDED, pattern.ignores_case)):
        if applies and pc.any(pc.match_substring_regex(texts, form)).as_py():
            raise Unknown


# ---- the grammar


class _Translation:
    """Translates one pattern, piece by piece.

    Args:
        text: the pattern in Java's grammar.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        flags = _FLAGS.match(text)
        if flags and flags[1] != "i":
            raise ValueError(f"the pattern {text!r} has the flags {flags[1]!r}; only i is supported")
        self._ignores_case = flags is not None
        self._body = text[flags.end() :] if flags else text
        self._names: dict[str, int] = {}
        self._groups = 0
        self._sees_end = False
        if self._ignores_case and not text.isascii():
            raise ValueError(f"the pattern {text!r} has letters beyond ASCII, whose case Java does not ignore")

    def pattern(self) -> JavaPattern:
        """The pattern in RE2's grammar.

        Raises:
            ValueError: see :func:`java_pattern`.
        """
        parts: list[str] = []
        at = 0
        while at < len(self._body):
            part, at = self._piece(at)
            parts.append(part)
        made = "".join(parts)
        re2 = f"(?i:{made})" if self._ignores_case else made
        try:
            pc.match_substring_regex(pa.array([""]), re2)
        except pa.ArrowInvalid as error:
            raise ValueError(f"the pattern {self._text!r} is not supported: {error}") from error
        return JavaPattern(self._text, re2, self._groups, self._names, self._ignores_case, self._sees_end)

    def _piece(self, at: int) -> tuple[str, int]:
        """One piece of the pattern in RE2's grammar, and the position of the next piece."""
        letter = self._body[at]
        if letter == "\\":
            return self._escape(at), at + 2
        if letter == "[":
            return self._class(at)
        if letter == ".":
            return _ANY, at + 1
        if letter == "$":
            self._sees_end = True
            return "\\z", at + 1
        if letter == "(":
            return self._group(at)
        if letter == "{":
            found = _COUNT.match(self._body, at)
            if found is None:
                raise ValueError(f"the pattern {self._text!r} has a brace that begins no count")
            return found[0], found.end()
        return letter, at + 1

    def _escape(self, at: int, in_class: bool = False) -> str:
        following = self._body[at + 1 : at + 2]
        if following not in _ESCAPES or not following or (following == "S" and in_class):
            raise ValueError(f"the pattern {self._text!r} has the form \\{following}, which is not supported")
        if following in "sS":
            return _SPACE if in_class else f"[{'^' * (following == 'S')}{_SPACE}]"
        return following if following in "_ " else f"\\{following}"

    def _group(self, at: int) -> tuple[str, int]:
        rest = self._body[at + 1 :]
        if rest.startswith("?:"):
            return "(?:", at + 3
        named = _NAMED.match(rest)
        if rest.startswith("?") and named is None:
            raise ValueError(
                f"the pattern {self._text!r} has a group that begins with ({rest[:3]}, which is not supported"
            )
        self._groups += 1
        if named and self._names.setdefault(named[1], self._groups) != self._groups:
            raise ValueError(f"the pattern {self._text!r} has two groups of the name {named[1]!r}")
        return f"(?P<g{self._groups}>", at + 1 + (named.end() if named else 0)

    def _class(self, at: int) -> tuple[str, int]:
        """A class of characters; characters that have a meaning in only one of the grammars are escaped or refused."""
        body, parts, at = self._body, ["["], at + 1
        if body[at : at + 1] == "^":
            parts.append("^")
            at += 1
        if body[at : at + 1] == "]":
            raise ValueError(f"the pattern {self._text!r} has a class that begins with a bracket")
        while at < len(body) and body[at] != "]":
            if body[at] == "[" or body.startswith("&&", at):
                raise ValueError(f"the pattern {self._text!r} has a class within a class")
            if body[at] == "\\":
                parts.append(self._escape(at, in_class=True))
                at += 2
                continue
            parts.append(f"\\{body[at]}" if body[at] in "^&~|" else body[at])
            at += 1
        if at >= len(body):
            raise ValueError(f"the pattern {self._text!r} has a class that does not end")
        return "".join([*parts, "]"]), at + 1


def _replacement(pattern: JavaPattern, text: str) -> list[str | int]:
    """The literal parts of a replacement, and the numbers of its groups."""
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        letter, following = text[at], text[at + 1 : at + 2]
        if letter not in "\\$":
            parts.append(letter)
            at += 1
            continue
        if not following:
            raise ValueError(f"the replacement {text!r} ends with {letter}")
        if letter == "\\":
            parts.append(following)
            at += 2
            continue
        number, at = _reference(pattern, text, at + 1)
        parts.append(number)
    return parts


def _reference(pattern: JavaPattern, text: str, at: int) -> tuple[int, int]:
    """The number of a group, and the position after it; a digit belongs to the number if such a group exists."""
    if text[at] == "{":
        name, closed, _ = text[at + 1 :].partition("}")
        if not closed or name not in pattern.names:
            raise ValueError(f"the replacement {text!r} names the group {name!r}, which {pattern.java!r} lacks")
        return _small(pattern.names[name], text), at + len(name) + 2
    if not ("0" <= text[at] <= "9") or int(text[at]) > pattern.groups:
        raise ValueError(f"the replacement {text!r} has a $ that names no group of {pattern.java!r}")
    number, at = int(text[at]), at + 1
    while at < len(text) and "0" <= text[at] <= "9" and number * 10 + int(text[at]) <= pattern.groups:
        number, at = number * 10 + int(text[at]), at + 1
    return _small(number, text), at


def _small(number: int, text: str) -> int:
    if number > _MAX_GROUPS:
        raise ValueError(f"the replacement {text!r} names the group {number}; up to {_MAX_GROUPS} are supported")
    return number
