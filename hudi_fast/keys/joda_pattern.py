"""Date patterns of Joda-Time, as far as Hudi's options use them: compiled, then used to format and to parse.

::

    "yyyy-MM-dd'T'HH:mm:ss.SSSZ" ──compile_pattern──► Pattern ──format_time──► text
                                                         └──── parse_time ──► (local time, offset or None)

Letters for formatting: ``y Y x M d D e E w a H h K k m s S Z ZZ``. Letters for parsing: the same without ``x D e w``.
Names of months and days are English. Numbers parse as leniently as in Joda-Time: ``MM`` accepts one or two digits,
``yyyy`` up to nine unless a number follows directly.

Source: ``org.joda.time.format.DateTimeFormat`` and ``DateTimeFormatterBuilder`` (Joda-Time 2).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.values import dataclass

__all__ = ["Pattern", "compile_pattern", "format_time", "parse_time", "parser_of", "resolution_ms"]

_MONTHS = "January February March April May June July August September October November December".split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_NUMBERS = frozenset("yYxdDehHkKmsSw")
_TOKEN = re.compile(r"([A-Za-z])\1*|(?:''|'(?:[^']|'')*(?:'|$)|[^A-Za-z'])+")
_QUOTED = re.compile(r"''|'((?:[^']|'')*)(?:'|$)")

# In Joda-Time, a text with a month or day but no year has the year 2000; one without any of them has 1970.
_YEAR_OF_DATES, _YEAR_OF_TIMES = 2000, 1970

_PARSED = {
    "d": r"(\d{1,2}+)",
    "H": r"(\d{1,2}+)",
    "h": r"(\d{1,2}+)",
    "K": r"(\d{1,2}+)",
    "k": r"(\d{1,2}+)",
    "m": r"(\d{1,2}+)",
    "s": r"(\d{1,2}+)",
    "a": r"(?i:(AM|PM))",
    "E": "(?i:(" + "|".join([*_DAYS, *(day[:3] for day in _DAYS)]) + "))",
    "Z": r"([zZ]|[+-]\d{2}(?::\d{2}(?::\d{2})?|\d{2}(?:\d{2})?)?+)",
}
_HALF_DAY_HOURS = {"h": 12, "K": 0}


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled date pattern.

    Attributes:
        text: the pattern as given.
        tokens: ``(letter, length)`` of each field in order, or ``("", text)`` for literal text.
    """

    text: str
    tokens: tuple[tuple[str, int | str], ...]


def compile_pattern(text: str) -> Pattern:
    """Split a pattern into fields and literal text.

    Raises:
        ConfigError: the pattern is empty.
        UnsupportedFeatureError: a letter that is not listed in the module docstring.
    """
    if not text:
        raise ConfigError("A date pattern is empty; set one such as yyyy/MM/dd.")
    tokens: list[tuple[str, int | str]] = []
    for match in _TOKEN.finditer(text):
        letter = match.group(1)
        if letter is None:
            tokens.append(("", _QUOTED.sub(_unquote, match.group())))
            continue
        length = len(match.group())
        if letter not in _PRINTERS or (letter == "Z" and length > 2):
            raise UnsupportedFeatureError(
                f"The letter {letter!r} ({match.group()}) of the date pattern {text!r} is not supported; "
                f"supported are {' '.join(sorted(_PRINTERS))} (Z and ZZ only)."
            )
        tokens.append((letter, length))
    return Pattern(text, tuple(tokens))


def resolution_ms(pattern: Pattern) -> int:
    """The longest interval, in milliseconds of local time, within which the formatted text cannot change."""
    letters = {letter for letter, _ in pattern.tokens}
    for members, step in (("S", 1), ("s", 1000), ("m", 60_000), ("HhKka", 3_600_000)):
        if letters & set(members):
            return step
    return 86_400_000


# ---- formatting


def format_time(pattern: Pattern, local: datetime, offset_ms: int) -> str:
    """Format a local time without zone; ``offset_ms`` is its offset from UTC in milliseconds, for ``Z``."""
    parts: list[str] = []
    for letter, size in pattern.tokens:
        parts.append(size if isinstance(size, str) else _PRINTERS[letter](local, size, offset_ms))
    return "".join(parts)


def _year(year: int, size: int) -> str:
    return f"{year % 100:02d}" if size == 2 else str(year).zfill(size)


def _name(names: list[str], index: int, size: int) -> str:
    return names[index] if size >= 4 else names[index][:3]


def _offset_text(size: int, offset_ms: int) -> str:
    hours, minutes = divmod(abs(offset_ms) // 60_000, 60)
    return f"{'-' if offset_ms < 0 else '+'}{hours:02d}{':' if size == 2 else ''}{minutes:02d}"


def _number(value: Callable[[datetime], int]) -> Callable[[datetime, int, int], str]:
    return lambda local, size, _: str(value(local)).zfill(size)


_PRINTERS: dict[str, Callable[[datetime, int, int], str]] = {
    "y": lambda local, size, _: _year(local.year, size),
    "Y": lambda local, size, _: _year(local.year, size),
    "x": lambda local, size, _: _year(local.isocalendar()[0], size),
    "M": lambda local, size, _: str(local.month).zfill(size) if size < 3 else _name(_MONTHS, local.month - 1, size),
    "E": lambda local, size, _: _name(_DAYS, local.weekday(), size),
    "a": lambda local, size, _: "AM" if local.hour < 12 else "PM",
    "S": lambda local, size, _: f"{local.microsecond // 1000:03d}"[:size].ljust(size, "0"),
    "Z": lambda local, size, offset_ms: _offset_text(size, offset_ms),
    "d": _number(lambda local: local.day),
    "D": _number(lambda local: local.timetuple().tm_yday),
    "e": _number(lambda local: local.isoweekday()),
    "w": _number(lambda local: local.isocalendar()[1]),
    "H": _number(lambda local: local.hour),
    "h": _number(lambda local: local.hour % 12 or 12),
    "K": _number(lambda local: local.hour % 12),
    "k": _number(lambda local: local.hour or 24),
    "m": _number(lambda local: local.minute),
    "s": _number(lambda local: local.second),
}


# ---- parsing


def parse_time(pattern: Pattern, expression: re.Pattern[str], text: str) -> tuple[datetime, int | None] | None:
    """Parse ``text`` with ``expression``, the :func:`parser_of` the pattern.

    Returns:
        The local time without zone, and its offset in milliseconds if the text has one; None if the text does not
        have this form.

    Raises:
        ValueError: the text has the form with invalid values (month 13).
    """
    match = expression.fullmatch(text)
    if match is None:
        return None
    letters = [(letter, size) for letter, size in pattern.tokens if letter]
    found = {letter: (group, size) for (letter, size), group in zip(letters, match.groups(), strict=True)}
    numbers = {letter: int(group) for letter, (group, _) in found.items() if group.isdecimal() and letter != "S"}
    dated = not found.keys().isdisjoint("Md")
    year = numbers.get("y", numbers.get("Y", _YEAR_OF_DATES if dated else _YEAR_OF_TIMES))
    year_group, year_size = found.get("y", found.get("Y", ("", 0)))
    if year_size == 2 and len(year_group) == 2:
        year = _pivoted(year)
    month = numbers["M"] if "M" in numbers else _month_named(found["M"][0]) if "M" in found else 1
    fraction = found["S"][0] if "S" in found else ""
    micros = int(fraction[:3].ljust(3, "0")) * 1000
    hour = _hour(numbers, found["a"][0].upper() if "a" in found else "")
    local = datetime(year, month, numbers.get("d", 1), hour, numbers.get("m", 0), numbers.get("s", 0), micros)
    if "E" in found and _DAYS[local.weekday()][:3].lower() != found["E"][0][:3].lower():
        raise ValueError(f"{local:%Y-%m-%d} is a {_DAYS[local.weekday()]}")
    return local, _offset_ms(found["Z"][0]) if "Z" in found else None


def parser_of(pattern: Pattern) -> re.Pattern[str]:
    """The regular expression of the texts that ``pattern`` parses, with one group per field.

    Raises:
        UnsupportedFeatureError: a letter that can only be formatted.
    """
    parts: list[str] = []
    for index, (letter, size) in enumerate(pattern.tokens):
        if isinstance(size, str):
            parts.append(f"(?i:{re.escape(size)})")
        elif letter in "yY":
            parts.append(_year_digits(size, _is_number(pattern, index + 1)))
        elif letter == "M":
            names = "|".join([*_MONTHS, *(month[:3] for month in _MONTHS)])
            parts.append(r"(\d{1,2}+)" if size < 3 else f"(?i:({names}))")
        elif letter == "S":
            parts.append(rf"(\d{{0,{size}}}+)")
        elif letter in _PARSED:
            parts.append(_PARSED[letter])
        else:
            raise UnsupportedFeatureError(
                f"The letter {letter!r} of the input date pattern {pattern.text!r} is not supported for parsing."
            )
    return re.compile("".join(parts), re.ASCII)


def _year_digits(size: int, number_follows: bool) -> str:
    if number_follows:
        return rf"(\d{{{size}}})" if size == 2 else rf"(\d{{1,{size}}}+)"
    return r"(\d{1,9}+)"


def _is_number(pattern: Pattern, index: int) -> bool:
    if index >= len(pattern.tokens):
        return False
    letter, size = pattern.tokens[index]
    return letter in _NUMBERS or (letter == "M" and isinstance(size, int) and size < 3)


def _pivoted(two_digits: int) -> int:
    """The year that ends in these digits, between 80 years ago and 19 years ahead, as in Joda-Time."""
    earliest = datetime.now().year - 80
    return earliest + (two_digits - earliest) % 100


def _month_named(name: str) -> int:
    return [month[:3].lower() for month in _MONTHS].index(name[:3].lower()) + 1


def _hour(numbers: dict[str, int], half: str) -> int:
    if "H" in numbers:
        return numbers["H"]
    if "k" in numbers:
        if not 1 <= numbers["k"] <= 24:
            raise ValueError(f"hour {numbers['k']} is not within 1 to 24")
        return numbers["k"] % 24
    hour = 0
    for letter, twelve in _HALF_DAY_HOURS.items():
        if letter in numbers:
            hour = numbers[letter]
            if not (hour == twelve or 1 <= hour <= 11):
                raise ValueError(f"hour {hour} is not an hour of half a day")
    return hour % 12 + (12 if half == "PM" else 0)


def _offset_ms(text: str) -> int:
    if text in "zZ":
        return 0
    digits = text[1:].replace(":", "").ljust(6, "0")
    hours, minutes, seconds = int(digits[:2]), int(digits[2:4]), int(digits[4:6])
    if hours > 23 or minutes > 59 or seconds > 59:
        raise ValueError(f"{text} is not an offset from UTC")
    millis = ((hours * 60 + minutes) * 60 + seconds) * 1000
    return -millis if text[0] == "-" else millis


def _unquote(match: re.Match[str]) -> str:
    inner = match.group(1)
    return "'" if inner is None else inner.replace("''", "'")
