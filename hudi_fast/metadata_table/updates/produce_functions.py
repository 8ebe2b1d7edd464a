"""The functions of expression indexes, with Spark's results. Each maps a column to a column of results.

=============================================  ====================================================================
identity                                       any column but a nested one
upper, lower, length, trim, ltrim, rtrim,      text, whole numbers and booleans; letters beyond ASCII by Unicode's full
substring, regexp_extract, regexp_replace      mappings
split                                          the same; its results are lists
year, month, day, to_date, date_add,           dates, timestamps, and text that Spark reads as a date; timestamps with
date_sub                                       a zone are converted to that of this process (Spark: of the session)
hour, to_timestamp, unix_timestamp,            timestamps, and text that Spark reads as one; all but ``hour`` also dates
date_format
from_unixtime                                  whole seconds, converted to the same zone
=============================================  ====================================================================

These are all the functions of Hudi 1.2.0. Results are Spark's with ``spark.sql.ansi.enabled=false``. Source:
ExpressionIndexSparkFunctions, Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import InvalidDataError, UnsupportedFeatureError
from hudi_fast.keys.value_text import divide_towards_zero, to_text
from hudi_fast.keys.zones import DAY_MS, MAX_MILLIS, MIN_MILLIS, default_zone, local_to_utc, utc_offsets
from hudi_fast.metadata_table.updates.spark_text import (
    Unknown,
    extract,
    java_pattern,
    print_pattern,
    read_dates,
    read_moments,
    read_pattern,
    replace,
    split,
)
from hudi_fast.values import dataclass

__all__ = ["FUNCTIONS", "Function", "Unknown", "apply_function", "check_function", "has_texts", "result_texts"]

Options: TypeAlias = Mapping[str, str]
_Function: TypeAlias = Callable[[pa.Array, Options, tzinfo], pa.Array]

_EXPRESSION = "expr"
"""The option that repeats the name of the function."""

_FORMAT = "yyyy-MM-dd HH:mm:ss"
_INSTANT = pa.timestamp("us", "UTC")


def apply_function(name: str, values: pa.Array, options: Options, zone: tzinfo | None = None) -> pa.Array:
    """The results of a function that passed :func:`check_function`; null where the value is null.

    Times are in ``zone``; None for the zone of this process.

    Raises:
        Unknown: a value is outside the supported range.
    """
    return FUNCTIONS[name].compute(values, options, zone or default_zone())


def check_function(name: str, kind: pa.DataType, options: Options, where: str) -> pa.DataType:
    """The type of a function's results.

    Raises:
        UnsupportedFeatureError: the function, its column type or its options are not supported.
    """
    if name not in FUNCTIONS:
        raise UnsupportedFeatureError(
            f"{where} uses the function {name!r}; supported are {', '.join(FUNCTIONS)}. Drop the index, or write the "
            "table with Apache Hudi."
        )
    function = FUNCTIONS[name]
    strange = sorted(set(options) - {_EXPRESSION, *function.options})
    if strange:
        raise UnsupportedFeatureError(
            f"{where} uses the function {name!r} with the options {strange}, which Apache Hudi refuses; it takes "
            f"{', '.join(function.options) or 'none'}."
        )
    if not function.takes(kind):
        raise UnsupportedFeatureError(
            f"{where} uses the function {name!r} on a column of type {kind}, which is not supported."
        )
    try:
        return function.compute(pa.array([], kind), options, default_zone()).type
    except (KeyError, ValueError) as error:
        raise UnsupportedFeatureError(
            f"{where} uses the function {name!r} with the options {dict(options)}, which is not supported: {error}."
        ) from error


def has_texts(kind: pa.DataType) -> bool:
    """Whether bloom filters can hold results of this type, as text."""
    if pa.types.is_list(kind):
        return True
    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_time(kind)) and not (
        pa.types.is_timestamp(kind) and kind.tz is None
    )


def result_texts(results: pa.Array, zone: tzinfo | None = None) -> pa.Array:
    """Results as Java prints the values of a Spark row: string[n]. Bloom filters hold these texts.

    Raises:
        Unknown: a date is outside the years 0 to 9999.
    """
    kind = results.type
    if pa.types.is_list(kind):  # as Scala 2.12 prints them
        rows = results.to_pylist()
        return pa.array([None if row is None else f"WrappedArray({', '.join(row)})" for row in rows], pa.string())
    if pa.types.is_timestamp(kind):
        text = print_pattern(_moments(results, zone or default_zone()), f"{_FORMAT}.SSSSSS")
        return pc.replace_substring_regex(text, r"(\.\d+?)0+$", r"\1")
    try:
        return to_text(results)
    except InvalidDataError as error:
        raise Unknown from error


def _as_it_is(values: pa.Array, _: Options, __: tzinfo) -> pa.Array:
    return values


# ---- text


def _on_text(function: _Function) -> _Function:
    """The function, extended to whole numbers and booleans, which it receives as text."""
    return lambda values, options, zone: function(
        values if pa.types.is_string(values.type) else values.cast(pa.string()), options, zone
    )


def _by_text(values: pa.Array, of: Callable[[str], object], kind: pa.DataType) -> pa.Array:
    """The results of a function, called once for each distinct text."""
    texts = values.dictionary_encode()
    found = [None if one is None else of(one) for one in texts.dictionary.to_pylist()]
    return pa.array(found, kind).take(texts.indices)


@_on_text
def _upper(values: pa.Array, _: Options, __: tzinfo) -> pa.Array:
    return _cased(values, pc.utf8_upper, str.upper)


@_on_text
def _lower(values: pa.Array, _: Options, __: tzinfo) -> pa.Array:
    return _cased(values, pc.utf8_lower, str.lower)


def _cased(values: pa.Array, simple: Callable[[pa.Array], pa.Array], full: Callable[[str], str]) -> pa.Array:
    """Change case: Arrow maps texts of ASCII letters; Python maps all others, with the same full mappings as Java."""
    plain = pc.string_is_ascii(values)
    if pc.all(plain).as_py() is not False:
        return simple(values)
    return _by_text(values, full, pa.string())


def _length(values: pa.Array, _: Options, __: tzinfo) -> pa.Array:
    if pa.types.is_binary(values.type):
        return pc.binary_length(values)
    return pc.utf8_length(values if pa.types.is_string(values.type) else values.cast(pa.string()))


def _trimmed(side: Callable[..., pa.Array]) -> _Function:
    return _on_text(lambda values, options, _: side(values, characters=options.get("trimString", " ")))


@_on_text
def _substring(values: pa.Array, options: Options, _: tzinfo) -> pa.Array:
    """Positions count from 1. Position 0 also means the first character; negative positions count from the end."""
    first, length = int(options["pos"]), int(options["len"])
    if length <= 0:
        return pc.utf8_slice_codeunits(values, 0, 0)
    start = first - 1 if first > 0 else first
    end = start + length
    return pc.utf8_slice_codeunits(values, start, None if start < 0 <= end else end)


@_on_text
def _regexp_extract(values: pa.Array, options: Options, _: tzinfo) -> pa.Array:
    return extract(values, java_pattern(options["pattern"]), int(options["idx"]))


@_on_text
def _regexp_replace(values: pa.Array, options: Options, _: tzinfo) -> pa.Array:
    return replace(values, java_pattern(options["pattern"]), options["replacement"])


@_on_text
def _split(values: pa.Array, options: Options, _: tzinfo) -> pa.Array:
    return split(values, java_pattern(options["pattern"]))


# ---- times


def _moments(values: pa.Array, zone: tzinfo) -> pa.Array:
    """Dates, timestamps and their text as local time without a zone, in microseconds."""
    kind = values.type
    if pa.types.is_string(kind):
        return _moments(read_moments(values, zone), zone)
    if pa.types.is_date(kind):
        return values.cast(pa.timestamp("s")).cast(pa.timestamp("us"))
    numbers = values.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
    micros = _checked(numbers, 1000)
    if kind.tz is not None:
        micros = micros + utc_offsets(micros // 1000, zone) * 1000
    return _masked(micros, numbers).cast(pa.timestamp("us"))


def _days(values: pa.Array, zone: tzinfo) -> pa.Array:
    """Dates, timestamps and their text as dates."""
    if pa.types.is_string(values.type):
        return read_dates(values)
    if pa.types.is_date(values.type):
        return values.cast(pa.date32())
    return pc.floor_temporal(_moments(values, zone), unit="day").cast(pa.date32())


def _instants(values: pa.Array, options: Options, zone: tzinfo, pattern: str | None) -> pa.Array:
    """Dates, timestamps and their text as instants. Spark's casts read a text without ``pattern``."""
    kind = values.type
    pattern = options.get("format", pattern)
    if pa.types.is_string(kind):
        if pattern is None:
            return read_moments(values, zone)
        values = read_pattern(values, pattern)
    elif pa.types.is_timestamp(kind) and kind.tz is not None:
        return values.cast(_INSTANT, safe=False)
    local = _moments(values, zone)
    micros = _checked(local.cast(pa.int64()), 1000)
    millis, skipped = local_to_utc(micros // 1000, zone)
    if skipped.any():
        raise Unknown
    return _masked(millis * 1000 + micros % 1000, local).cast(_INSTANT)


def _checked(numbers: pa.Array, per_millisecond: int) -> npt.NDArray[np.int64]:
    found = np.asarray(pc.fill_null(numbers, 0), dtype=np.int64)
    if len(found) and (found.min() // per_millisecond < MIN_MILLIS or found.max() // per_millisecond > MAX_MILLIS):
        raise Unknown
    return found


def _masked(numbers: npt.NDArray[np.int64], like: pa.Array) -> pa.Array:
    return pa.array(numbers, pa.int64(), mask=like.is_null().to_numpy(zero_copy_only=False))


def _part_of_day(of: Callable[[pa.Array], pa.Array]) -> _Function:
    return lambda values, _, zone: of(_days(values, zone)).cast(pa.int32())


def _hour(values: pa.Array, _: Options, zone: tzinfo) -> pa.Array:
    return pc.hour(_moments(values, zone)).cast(pa.int32())


def _to_date(values: pa.Array, options: Options, zone: tzinfo) -> pa.Array:
    if pa.types.is_string(values.type) and "format" in options:
        return _days(read_pattern(values, options["format"]), zone)
    return _days(values, zone)


def _to_timestamp(values: pa.Array, options: Options, zone: tzinfo) -> pa.Array:
    if pa.types.is_timestamp(values.type) and values.type.tz is not None:
        return values
    return _instants(values, options, zone, None)


def _unix_timestamp(values: pa.Array, options: Options, zone: tzinfo) -> pa.Array:
    if pa.types.is_timestamp(values.type) and values.type.tz is None:
        instants = values.cast(pa.timestamp("us"), safe=False)
    else:
        instants = _instants(values, options, zone, _FORMAT)
    micros = instants.cast(pa.int64())
    return _masked(divide_towards_zero(_checked(micros, 1000), 1_000_000), micros)


def _shifted(sign: int) -> _Function:
    def shift(values: pa.Array, options: Options, zone: tzinfo) -> pa.Array:
        days = _days(values, zone).cast(pa.int32())
        return pc.add(days, pa.scalar(sign * int(options["days"]), pa.int32())).cast(pa.date32())

    return shift


def _date_format(values: pa.Array, options: Options, zone: tzinfo) -> pa.Array:
    return print_pattern(_moments(values, zone), options["format"])


def _from_unixtime(values: pa.Array, options: Options, zone: tzinfo) -> pa.Array:
    numbers = values.cast(pa.int64())
    seconds = np.asarray(pc.fill_null(numbers, 0), dtype=np.int64)
    if len(seconds) and (seconds.min() < MIN_MILLIS // 1000 + DAY_MS or seconds.max() > MAX_MILLIS // 1000 - DAY_MS):
        raise Unknown
    millis = seconds * 1000
    local = _masked((millis + utc_offsets(millis, zone)) * 1000, numbers).cast(pa.timestamp("us"))
    return print_pattern(local, options.get("format", _FORMAT))


# ---- column types


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_signed_integer(kind) or pa.types.is_boolean(kind))


def _is_text_or_bytes(kind: pa.DataType) -> bool:
    return _is_text(kind) or bool(pa.types.is_binary(kind))


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date32(kind) or _is_timestamp(kind))


def _is_timestamp(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_string(kind))


def _is_integer(kind: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(kind))


def _is_plain(kind: pa.DataType) -> bool:
    return not pa.types.is_nested(kind)


@dataclass(frozen=True, slots=True)
class Function:
    """A function of one column.

    Attributes:
        takes: whether the function takes a column of a type.
        compute: computes the results from values.
        options: names of the function's options.
    """

    takes: Callable[[pa.DataType], bool]
    compute: _Function
    options: tuple[str, ...] = ()


FUNCTIONS: Mapping[str, Function] = {
    "identity": Function(_is_plain, _as_it_is),
    "upper": Function(_is_text, _upper),
    "lower": Function(_is_text, _lower),
    "length": Function(_is_text_or_bytes, _length),
    "trim": Function(_is_text, _trimmed(pc.utf8_trim), ("trimString",)),
    "ltrim": Function(_is_text, _trimmed(pc.utf8_ltrim), ("trimString",)),
    "rtrim": Function(_is_text, _trimmed(pc.utf8_rtrim), ("trimString",)),
    "substring": Function(_is_text, _substring, ("pos", "len")),
    "regexp_extract": Function(_is_text, _regexp_extract, ("pattern", "idx")),
    "regexp_replace": Function(_is_text, _regexp_replace, ("pattern", "replacement")),
    "split": Function(_is_text, _split, ("pattern",)),
    "year": Function(_is_time, _part_of_day(pc.year)),
    "month": Function(_is_time, _part_of_day(pc.month)),
    "day": Function(_is_time, _part_of_day(pc.day)),
    "hour": Function(_is_timestamp, _hour),
    "to_date": Function(_is_time, _to_date, ("format",)),
    "to_timestamp": Function(_is_time, _to_timestamp, ("format",)),
    "unix_timestamp": Function(_is_time, _unix_timestamp, ("format",)),
    "date_add": Function(_is_time, _shifted(1), ("days",)),
    "date_sub": Function(_is_time, _shifted(-1), ("days",)),
    "date_format": Function(_is_time, _date_format, ("format",)),
    "from_unixtime": Function(_is_integer, _from_unixtime, ("format",)),
}
"""The functions by name."""
