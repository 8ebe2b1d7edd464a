"""Timestamp-based partition paths: times of several types as text in the output pattern.

::

    numbers, dates, decimals, timestamps ──unit──┐
                                                 ├─► milliseconds, offset of the zone ─► local time ─► text
    strings ──input patterns, input zone─────────┘        (one text per distinct local time)

Numbers become local times by arithmetic on whole columns, rounded to the resolution of the output pattern: a million
instants with the pattern ``yyyy/MM/dd`` format only as many texts as there are days. Strings with all digits of the
first input pattern are parsed by column too, others one by one.

Source: Hudi's ``TimestampBasedAvroKeyGenerator`` and ``HoodieDateTimeParser``, release 1.2.0.

Date strings of fixed width, parsed by column.

::

    "2024-01-15 11:45:00"    bytes as a matrix   ──► digits of each field ──► milliseconds of local time
    "2024-01-16 09:30:00"    one row per string      checked against its range

Most date strings are written with all their digits (``yyyy-MM-dd HH:mm:ss``): then each field has the same position in
every string. All other strings, including invalid ones, are left to :func:`hudi_fast.keys.joda_pattern.parse_time`,
which also reports errors; results are the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import ConfigError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.keys.joda_pattern import Pattern, compile_pattern, format_time, parse_time, parser_of, resolution_ms
from hudi_fast.keys.value_text import divide_towards_zero, stored_number
from hudi_fast.keys.zones import MAX_MILLIS, MIN_MILLIS, default_zone, distinct_codes, local_to_utc, utc_offsets, zone
from hudi_fast.values import dataclass

__all__ = [
    "TIMEBASED_PREFIX",
    "TimestampOptions",
    "parse_fixed",
    "timestamp_options",
    "timestamp_paths",
    "whole_numbers",
]

_WIDTHS = {"y": 4, "Y": 4, "M": 2, "d": 2, "H": 2, "m": 2, "s": 2}
_LIMITS = {"y": (2, 9998), "M": (1, 12), "d": (1, 31), "H": (0, 23), "m": (0, 59), "s": (0, 59)}
_STEPS = {"H": 3_600_000, "m": 60_000, "s": 1_000}
_OFFSET_WIDTHS = (1, 5, 6)  # Z, +hhmm, +hh:mm
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class _Layout:
    """Positions of the fields in a string of ``width`` bytes."""

    width: int
    fields: tuple[tuple[str, int, int], ...]
    literals: tuple[tuple[int, bytes], ...]


def parse_fixed(
    pattern: Pattern, texts: pa.Array
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Parse the strings that have every digit of the pattern.

    Args:
        pattern: the expected form.
        texts: ``pa.string()`` or ``pa.large_string()`` array.

    Returns:
        ``(parsed, local_ms, offset_ms)``, each of the array's length: whether this function parsed the string; its
        local time in milliseconds since 1970-01-01 local; its offset from UTC in milliseconds, 0 if the pattern has
        none.
    """
    parsed = np.zeros(len(texts), dtype=np.bool_)
    local = np.zeros(len(texts), dtype=np.int64)
    offset = np.zeros(len(texts), dtype=np.int64)
    zoned = any(letter == "Z" for letter, _ in pattern.tokens)
    lengths = pc.fill_null(pc.binary_length(texts), -1).to_numpy(zero_copy_only=False)
    for zone_width in _OFFSET_WIDTHS if zoned else (0,):
        layout = _layout(pattern, zone_width)
        rows = np.flatnonzero(lengths == layout.width) if layout is not None else np.empty(0, np.int64)
        if layout is None or not len(rows):
            continue
        matrix = _matrix(texts if len(rows) == len(texts) else texts.take(pa.array(rows)), layout.width)
        fine, millis, away = _parse_matrix(matrix, layout)
        parsed[rows], local[rows], offset[rows] = fine, millis, away
    return parsed, local, offset


def _layout(pattern: Pattern, zone_width: int) -> _Layout | None:
    """Positions of fields and literal text; None if the pattern has no fixed width."""
    position = 0
    fields: list[tuple[str, int, int]] = []
    literals: list[tuple[int, bytes]] = []
    for letter, size in pattern.tokens:
        if isinstance(size, str):
            # A digit after a year would be parsed as part of the year.
            if not size.isascii() or size[:1].isdecimal():
                return None
            literals.append((position, size.encode()))
            position += len(size)
            continue
        width = zone_width if letter == "Z" else size
        if letter not in "ZS" and _WIDTHS.get(letter) != size:
            return None
        fields.append(("y" if letter == "Y" else letter, position, width))
        position += width
    names = [name for name, _, _ in fields]
    # The offset must come last: following digits could be parsed as part of it.
    if len(set(names)) < len(names) or ("Z" in names and names[-1] != "Z"):
        return None
    return _Layout(position, tuple(fields), tuple(literals))


def _matrix(texts: pa.Array, width: int) -> npt.NDArray[np.uint8]:
    """uint8[n, width] of strings of exactly ``width`` bytes."""
    _, ends, data = texts.buffers()
    offsets = np.frombuffer(ends, dtype=np.int64 if pa.types.is_large_string(texts.type) else np.int32)
    start = int(offsets[texts.offset])
    content = np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, np.uint8)
    return content[start : start + len(texts) * width].reshape(len(texts), width)


def _parse_matrix(
    matrix: npt.NDArray[np.uint8], layout: _Layout
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    fine = np.ones(len(matrix), dtype=np.bool_)
    for place, text in layout.literals:
        for index, byte in enumerate(text):
            fine &= matrix[:, place + index] == byte
    offset = np.zeros(len(matrix), dtype=np.int64)
    values: dict[str, npt.NDArray[np.int64]] = {}
    for name, place, width in layout.fields:
        part = matrix[:, place : place + width]
        if name == "Z":
            good, offset = _offset(part)
        else:
            good, values[name] = _digits(part)
            low, high = _LIMITS.get(name, (0, 10**18))
            good &= (values[name] >= low) & (values[name] <= high)
            if name == "S":
                values[name] = values[name] // 10 ** (width - 3) if width > 3 else values[name] * 10 ** (3 - width)
        fine &= good
    dated = not values.keys().isdisjoint("Md")
    days, real = _days(values, 2000 if dated else 1970, len(matrix))
    millis = days * _DAY_MS + values.get("S", 0)
    for name, step in _STEPS.items():
        millis = millis + values.get(name, 0) * step
    return fine & real, millis, offset


def _digits(part: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    good = np.ones(len(part), dtype=np.bool_)
    number = np.zeros(len(part), dtype=np.int64)
    for index in range(part.shape[1]):
        digit = part[:, index] - np.uint8(ord("0"))  # wraps around below "0", so one comparison is enough
        good &= digit <= 9
        number = number * 10 + digit
    return good, number


def _offset(part: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Offsets written ``Z``, ``+hhmm`` or ``+hh:mm``, in milliseconds."""
    first = part[:, 0]
    width = part.shape[1]
    if width == 1:
        return (first == ord("Z")) | (first == ord("z")), np.zeros(len(part), dtype=np.int64)
    good_hours, hours = _digits(part[:, 1:3])
    good_minutes, minutes = _digits(part[:, width - 2 :])
    good = good_hours & good_minutes & (hours <= 23) & (minutes <= 59) & ((first == ord("+")) | (first == ord("-")))
    if width == 6:
        good &= part[:, 3] == ord(":")
    millis = (hours * 60 + minutes) * 60_000
    return good, np.where(first == ord("-"), -millis, millis)


def _days(
    values: dict[str, npt.NDArray[np.int64]], default_year: int, rows: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Days since 1970-01-01, and whether the month has that day."""
    year = values.get("y", np.full(rows, default_year, dtype=np.int64))
    month = values.get("M", np.ones(rows, dtype=np.int64))
    day = values.get("d", np.ones(rows, dtype=np.int64))
    months = (year - 1970) * 12 + month - 1
    first = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
    following = (months + 1).astype("M8[M]").astype("M8[D]").astype(np.int64)
    return first + day - 1, day <= following - first


TIMEBASED_PREFIX = "hoodie.keygen.timebased."
"""Prefix of the options of timestamp partition columns."""

_OLD_PREFIX = "hoodie.deltastreamer.keygen.timebased."
_PARSER_KEY = "hoodie.keygen.datetime.parser.class"
_PARSER_NAMES = ("HoodieDateTimeParser", "org.apache.hudi.keygen.parser.HoodieDateTimeParser")
_OLD_PARSER_KEY = "hoodie.deltastreamer.keygen.datetime.parser.class"

_EPOCH = datetime(1970, 1, 1)
_MILLISECOND = timedelta(milliseconds=1)

# Milliseconds in one unit; if negative, units in one millisecond.
_UNITS = {
    "NANOSECONDS": -1_000_000,
    "MICROSECONDS": -1_000,
    "MILLISECONDS": 1,
    "SECONDS": 1_000,
    "MINUTES": 60_000,
    "HOURS": 3_600_000,
    "DAYS": 86_400_000,
}
_TYPES = {
    "UNIX_TIMESTAMP": "SECONDS",
    "EPOCHMILLISECONDS": "MILLISECONDS",
    "EPOCHMICROSECONDS": "MICROSECONDS",
    "SCALAR": "",
    "DATE_STRING": "",
    "MIXED": "",
}


@dataclass(frozen=True, slots=True)
class TimestampOptions:
    """The parsed ``hoodie.keygen.timebased.*`` options.

    Attributes:
        kind: the ``timestamp.type``.
        unit: milliseconds in one unit of a number; if negative, units in one millisecond; None if numbers are not
            allowed (DATE_STRING, MIXED).
        inputs: patterns of strings with their regular expressions, in the order of trial.
        output: pattern of the partition path.
        input_zone: zone of strings without an offset; None: the default zone, and an offset in the string is kept.
        output_zone: zone of the partition path; None: the zone of the string, the default zone for numbers.
        default_zone: Java's default zone.
    """

    kind: str
    unit: int | None
    inputs: tuple[tuple[Pattern, re.Pattern[str]], ...]
    output: Pattern
    input_zone: tzinfo | None
    output_zone: tzinfo | None
    default_zone: tzinfo


def timestamp_options(timebased: Mapping[str, str], default: str | None = None) -> TimestampOptions:
    """Parse the options of a TIMESTAMP key generator.

    Args:
        timebased: options by their full key (``hoodie.keygen.timebased.output.dateformat``, also under its old prefix)
            or by the part after the prefix (``output.dateformat``).
        default: name of Java's default zone; None: the zone of this process.

    Raises:
        ConfigError: a required option is missing, or a value is invalid.
        UnsupportedFeatureError: a user's date parser, or a pattern letter that is not supported.
    """
    given = {key.removeprefix(_OLD_PREFIX).removeprefix(TIMEBASED_PREFIX): value for key, value in timebased.items()}
    for key in (_PARSER_KEY, _OLD_PARSER_KEY):
        if given.get(key, _PARSER_NAMES[0]) not in _PARSER_NAMES:
            raise UnsupportedFeatureError(f"{key}={given[key]}: date parser classes of users are unsupported.")
    kind = _required(given, "timestamp.type", f"one of {', '.join(_TYPES)}")
    if kind not in _TYPES:
        raise ConfigError(f"{TIMEBASED_PREFIX}timestamp.type is {kind!r}; expected one of {', '.join(_TYPES)}.")
    unit_name = _TYPES[kind]
    if kind == "SCALAR":
        unit_name = given.get("timestamp.scalar.time.unit", "SECONDS").upper()
        if unit_name not in _UNITS:
            raise ConfigError(
                f"{TIMEBASED_PREFIX}timestamp.scalar.time.unit is {unit_name!r}; expected one of {', '.join(_UNITS)}."
            )
    both = given.get("timezone")
    return TimestampOptions(
        kind=kind,
        unit=_UNITS[unit_name] if unit_name else None,
        inputs=_inputs(given) if kind in ("DATE_STRING", "MIXED") else (),
        output=compile_pattern(_required(given, "output.dateformat", "a date pattern such as yyyy/MM/dd")),
        input_zone=_zone_or_none(given.get("input.timezone", "") if both is None else both),
        output_zone=_zone_or_none(given.get("output.timezone", "") if both is None else both),
        default_zone=default_zone() if default is None else zone(default),
    )


def timestamp_paths(
    options: TimestampOptions, values: pa.Array, field: str, consistent_logical_timestamp: bool = False
) -> tuple[npt.NDArray[np.int32], list[str]]:
    """The partition path text of each value, before escaping and hive prefix.

    Args:
        options: the parsed options.
        values: a column, or better its distinct values: numbers, decimals, dates, timestamps or strings. Null counts
            as 1 in the configured unit (strings: as the first millisecond of 1970).
        field: the column's name, for messages.
        consistent_logical_timestamp: whether a timestamp column is an instant; otherwise its raw number is used in the
            configured unit.

    Returns:
        ``(codes, texts)``: int32[n] and the distinct texts; row ``i`` has ``texts[codes[i]]``.

    Raises:
        ConfigError: numbers or strings do not match the configured type.
        InvalidDataError: a string matches no input pattern, or a time is outside the years 2 to 9998.
        UnsupportedFeatureError: the column's type has no time.
    """
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return _paths_of_strings(options, values, field)
    millis = _millis(options, values, field, consistent_logical_timestamp)
    _check_range(millis, values, field, _unit_of(values.type))
    offsets = utc_offsets(millis, options.output_zone or options.default_zone)
    return _print_distinct(options.output, millis + offsets, offsets)


def whole_numbers(values: pa.Array, field: str) -> pa.Array:
    """The numbers in a column of text: an ``UPDATE`` of Apache Hudi 1.0 turns a number that it partitions by into text.

    Args:
        values: strings.
        field: the column's name, for messages.

    Raises:
        InvalidDataError: a text is not a number.
    """
    bad = pc.fill_null(pc.invert(pc.match_substring_regex(values, r"^-?[0-9]{1,18}$")), False)
    if pc.any(bad).as_py():
        raise InvalidDataError(
            f"The partition field {field!r} holds {values.filter(bad)[0].as_py()!r} where "
            f"{TIMEBASED_PREFIX}timestamp.type expects a whole number; give the number, or its digits as text."
        )
    return values.cast(pa.int64())


# ---- numbers


def _millis(options: TimestampOptions, values: pa.Array, field: str, consistent: bool) -> npt.NDArray[np.int64]:
    """Milliseconds since the epoch, int64[n], saturated as in Java."""
    kind = values.type
    if consistent and pa.types.is_timestamp(kind) and kind.tz is not None:
        per_unit = {"s": 1000, "ms": 1, "us": -1000, "ns": -1_000_000}[kind.unit]
        millis = _to_millis(_long(values.cast(pa.int64()), 0), per_unit)
        # Null counts as the number 1 in the configured unit, even here.
        millis[values.is_null().to_numpy(zero_copy_only=False)] = _to_millis(np.ones(1, np.int64), options.unit or 1)[0]
        return millis
    if options.unit is None:
        raise ConfigError(
            f"The partition field {field!r} is of type {kind}, but {TIMEBASED_PREFIX}timestamp.type={options.kind} "
            f"accepts strings only; set it to UNIX_TIMESTAMP, EPOCHMILLISECONDS, EPOCHMICROSECONDS or SCALAR."
        )
    return _to_millis(_raw_number(values, field), options.unit)


def _raw_number(values: pa.Array, field: str) -> npt.NDArray[np.int64]:
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_null(kind):
        return _long(values.cast(pa.int64()), 1)
    if pa.types.is_date(kind):
        return _long(values.cast(pa.date32()).cast(pa.int32()).cast(pa.int64()), 1)
    if pa.types.is_timestamp(kind):
        return _long(stored_number(values), 1)
    if pa.types.is_decimal(kind):
        return _long(pc.trunc(values).cast(pa.decimal128(38, 0)).cast(pa.int64()), 1)
    if pa.types.is_floating(kind):
        return _floats_as_long(values)
    raise UnsupportedFeatureError(f"The partition field {field!r} of type {kind} holds no time.")


def _floats_as_long(values: pa.Array) -> npt.NDArray[np.int64]:
    """Convert as Java casts to long: fractions are dropped, NaN is 0, out-of-range values saturate."""
    numbers = np.nan_to_num(values.cast(pa.float64()).fill_null(1.0).to_numpy(zero_copy_only=False), nan=0.0)
    ends = np.iinfo(np.int64)
    inside = np.clip(numbers, -(2.0**62), 2.0**62).astype(np.int64)
    result: npt.NDArray[np.int64] = np.where(
        np.abs(numbers) <= 2.0**62, inside, np.where(numbers < 0, ends.min, ends.max)
    )
    return result


def _long(values: pa.Array, null: int) -> npt.NDArray[np.int64]:
    result: npt.NDArray[np.int64] = values.fill_null(null).to_numpy(zero_copy_only=False)
    return result


def _to_millis(numbers: npt.NDArray[np.int64], unit: int) -> npt.NDArray[np.int64]:
    """As Java's ``TimeUnit.convert``: divides towards zero, saturates on overflow."""
    if unit < 0:
        return divide_towards_zero(numbers, -unit)
    ends = np.iinfo(np.int64)
    low, high = ends.min // unit, ends.max // unit
    scaled = np.clip(numbers, low, high) * unit
    return np.where(numbers > high, ends.max, np.where(numbers < low, ends.min, scaled))


def _unit_of(kind: pa.DataType) -> str:
    """The unit of a timestamp's number, with advice, for messages; empty for other types."""
    if not pa.types.is_timestamp(kind):
        return ""
    stored, name = ("milliseconds", "MILLISECONDS") if kind.unit == "ms" else ("microseconds", "MICROSECONDS")
    return (
        f". A timestamp counts as its stored number, in {stored} as in Apache Hudi: set "
        f"{TIMEBASED_PREFIX}timestamp.type=EPOCH{name}, or take its time with "
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled=true"
    )


def _check_range(millis: npt.NDArray[np.int64], values: pa.Array, field: str, unit: str = "") -> None:
    bad = np.flatnonzero((millis < MIN_MILLIS) | (millis > MAX_MILLIS))
    if len(bad):
        raise InvalidDataError(
            f"The partition field {field!r} holds {values[int(bad[0])]!s}, which is outside the years 2 to 9998 "
            f"({len(bad)} of {len(values)} values are); check {TIMEBASED_PREFIX}timestamp.type and the unit of the "
            f"values{unit}."
        )


def _print_distinct(
    output: Pattern, local_ms: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int32], list[str]]:
    step = resolution_ms(output)
    codes, locals_ = distinct_codes(local_ms // step)
    if any(letter == "Z" for letter, _ in output.tokens):
        zone_codes, zones = distinct_codes(offsets)
        codes, pairs = distinct_codes(codes.astype(np.int64) * len(zones) + zone_codes)
        pairs_of = [(int(locals_[pair // len(zones)]), int(zones[pair % len(zones)])) for pair in pairs]
    else:
        pairs_of = [(int(local), 0) for local in locals_]
    return codes, [format_time(output, _EPOCH + local * step * _MILLISECOND, offset) for local, offset in pairs_of]


# ---- strings


def _paths_of_strings(
    options: TimestampOptions, values: pa.Array, field: str
) -> tuple[npt.NDArray[np.int32], list[str]]:
    if not options.inputs:
        raise ConfigError(
            f"The partition field {field!r} is a string, but {TIMEBASED_PREFIX}timestamp.type={options.kind} accepts "
            f"numbers only; set it to DATE_STRING and set {TIMEBASED_PREFIX}input.dateformat."
        )
    if values.null_count:
        values = values.fill_null(_null_text(options))
    parsed, local, offset = parse_fixed(options.inputs[0][0], values)
    has_offset = parsed & any(letter == "Z" for letter, _ in options.inputs[0][0].tokens)
    for row in np.flatnonzero(~parsed):
        time, away = _parse_one(options, values[int(row)].as_py(), field)
        local[row] = (time - _EPOCH) // _MILLISECOND
        has_offset[row], offset[row] = away is not None, away or 0
    _check_range(local, values, field)
    local, offset = _shifted(options, values, field, local, offset, has_offset)
    return _print_distinct(options.output, local, offset)


def _null_text(options: TimestampOptions) -> str:
    """The text of null: the first millisecond of 1970 in the first input pattern."""
    where = options.input_zone or options.output_zone or UTC
    offset = int(utc_offsets(np.ones(1, np.int64), where)[0])
    return format_time(options.inputs[0][0], _EPOCH + (1 + offset) * _MILLISECOND, offset)


def _parse_one(options: TimestampOptions, text: str, field: str) -> tuple[datetime, int | None]:
    for pattern, expression in options.inputs:
        try:
            parsed = parse_time(pattern, expression, text)
        except (ValueError, OverflowError) as error:
            raise InvalidDataError(
                f"The partition field {field!r} holds {text!r}, which fits {pattern.text!r} but is not a time: {error}."
            ) from error
        if parsed is not None:
            return parsed
    patterns = ", ".join(repr(pattern.text) for pattern, _ in options.inputs)
    raise InvalidDataError(
        f"The partition field {field!r} holds {text!r}, which matches no pattern of "
        f"{TIMEBASED_PREFIX}input.dateformat: {patterns}."
    )


def _shifted(
    options: TimestampOptions,
    values: pa.Array,
    field: str,
    local: npt.NDArray[np.int64],
    offset: npt.NDArray[np.int64],
    has_offset: npt.NDArray[np.bool_],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Local time and offset in the zone of the partition path, both int64[n] milliseconds."""
    instants = local - offset
    rows = np.flatnonzero(~has_offset)
    if len(rows):
        source = options.input_zone or options.default_zone
        instants[rows], skipped = local_to_utc(local[rows], source)
        if skipped.any():
            text = values[int(rows[np.argmax(skipped)])].as_py()
            raise InvalidDataError(
                f"The partition field {field!r} holds {text!r}, a local time that {source} skips; correct it or set "
                f"{TIMEBASED_PREFIX}input.timezone."
            )
    target = options.output_zone or options.input_zone
    if target is None:
        # Strings keep their own offset; strings without an offset are in the default zone.
        away = offset.copy()
        away[rows] = local[rows] - instants[rows]
    else:
        away = utc_offsets(instants, target)
    return instants + away, away


# ---- options


def _inputs(given: Mapping[str, str]) -> tuple[tuple[Pattern, re.Pattern[str]], ...]:
    text = _required(given, "input.dateformat", "a comma-separated list of date patterns")
    delimiter = given.get("input.dateformat.list.delimiter.regex", ",")
    try:  # RE2, whose time is linear: pattern and text come from the table
        pieces = pc.replace_substring_regex(text, delimiter, "\0").as_py().split("\0") if delimiter else [text]
    except pa.ArrowInvalid as error:
        raise ConfigError(
            f"{TIMEBASED_PREFIX}input.dateformat.list.delimiter.regex={delimiter!r} is not a regular expression: "
            f"{error}."
        ) from error
    patterns = [compile_pattern(piece.strip()) for piece in pieces if piece.strip()]
    return tuple((pattern, parser_of(pattern)) for pattern in patterns)


def _required(given: Mapping[str, str], name: str, expected: str) -> str:
    value = given.get(name, "").strip()
    if not value:
        raise ConfigError(f"A TIMESTAMP partition field needs the option {TIMEBASED_PREFIX}{name}: {expected}.")
    return value


def _zone_or_none(name: str) -> tzinfo | None:
    return zone(name) if name.strip() else None
