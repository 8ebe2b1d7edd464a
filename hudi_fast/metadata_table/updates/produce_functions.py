"""The functions of expression indexes, with Spark's results: a column in, a column of results out.

=============================================  ====================================================================
identity                                       any column
upper, lower, length, trim, ltrim, rtrim,      text; letters beyond ASCII by Unicode's full mappings
substring
year, month, day, to_date, date_add,           dates and timestamps; timestamps with a zone are converted to the
date_sub, date_format                          time zone of this process (Spark: the session's)
hour, to_timestamp, unix_timestamp             timestamps
from_unixtime                                  whole seconds, converted to the same zone
=============================================  ====================================================================

Others are not supported: ``regexp_replace`` and ``regexp_extract`` use Java's expressions, ``split`` has no statistics,
and Spark parses times in text by its own rules. Source: ExpressionIndexSparkFunctions, Hudi 1.2.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.keys.zones import DAY_MS, MAX_MILLIS, MIN_MILLIS, default_zone, utc_offsets

__all__ = ["FUNCTIONS", "Unknown", "apply_function", "check_function"]

Options: TypeAlias = Mapping[str, str]
_Function: TypeAlias = Callable[[pa.Array, Options, tzinfo], pa.Array]

_FORMAT = "yyyy-MM-dd HH:mm:ss"
_LETTERS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']")


class Unknown(Exception):
    """Results cannot be computed here, for example for years beyond 9999: the file's range is unknown."""


def apply_function(name: str, values: pa.Array, options: Options, zone: tzinfo | None = None) -> pa.Array:
    """The results of a function that passed :func:`check_function`; null where the value is null.

    Times are in ``zone``; None for that of this process.

    Raises:
        Unknown: a value outside the supported range.
    """
    return FUNCTIONS[name][1](values, options, zone or default_zone())


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
    takes, compute = FUNCTIONS[name]
    if not takes(kind):
        raise UnsupportedFeatureError(
            f"{where} uses the function {name!r} on a column of type {kind}, which is not supported."
        )
    try:
        return compute(pa.array([], kind), options, default_zone()).type
    except (KeyError, ValueError) as error:
        raise UnsupportedFeatureError(
            f"{where} uses the function {name!r} with the options {dict(options)}, which is not supported: {error}."
        ) from error


def _as_it_is(values: pa.Array, _: Options, __: tzinfo) -> pa.Array:
    return values


# ---- text


def _upper(values: pa.Array, _: Options, __: tzinfo) -> pa.Array:
    return _cased(values, pc.utf8_upper, str.upper)


def _lower(values: pa.Array, _: Options, __: tzinfo) -> pa.Array:
    return _cased(values, pc.utf8_lower, str.lower)


def _cased(values: pa.Array, simple: Callable[[pa.Array], pa.Array], full: Callable[[str], str]) -> pa.Array:
    """Change case: Arrow maps ASCII letters; Python maps others, with the same full mappings as Java."""
    plain = pc.string_is_ascii(values)
    if pc.all(plain).as_py() is not False:
        return simple(values)
    texts = values.dictionary_encode()
    mapped = pa.array([None if one is None else full(one) for one in texts.dictionary.to_pylist()], pa.string())
    return mapped.take(texts.indices)


def _length(values: pa.Array, _: Options, __: tzinfo) -> pa.Array:
    if pa.types.is_binary(values.type):
        return pc.binary_length(values)
    return pc.utf8_length(values)


def _trimmed(side: Callable[..., pa.Array]) -> _Function:
    return lambda values, options, _: side(values, characters=options.get("trimString", " "))


def _substring(values: pa.Array, options: Options, _: tzinfo) -> pa.Array:
    """Positions count from 1, 0 also means the first character, negative ones count from the end."""
    first, length = int(options["pos"]), int(options["len"])
    if length <= 0:
        return pc.utf8_slice_codeunits(values, 0, 0)
    start = first - 1 if first > 0 else first
    end = start + length
    return pc.utf8_slice_codeunits(values, start, None if start < 0 <= end else end)


# ---- times


def _moments(values: pa.Array, zone: tzinfo) -> pa.Array:
    """Dates and timestamps as local time without a zone, in microseconds."""
    kind = values.type
    if pa.types.is_date(kind):
        return values.cast(pa.timestamp("s")).cast(pa.timestamp("us"))
    numbers = values.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
    micros = _checked(numbers, 1000)
    if kind.tz is not None:
        micros = micros + utc_offsets(micros // 1000, zone) * 1000
    return _masked(micros, numbers).cast(pa.timestamp("us"))


def _checked(numbers: pa.Array, per_millisecond: int) -> npt.NDArray[np.int64]:
    found = np.asarray(pc.fill_null(numbers, 0), dtype=np.int64)
    if len(found) and (found.min() // per_millisecond < MIN_MILLIS or found.max() // per_millisecond > MAX_MILLIS):
        raise Unknown
    return found


def _masked(numbers: npt.NDArray[np.int64], like: pa.Array) -> pa.Array:
    return pa.array(numbers, pa.int64(), mask=like.is_null().to_numpy(zero_copy_only=False))


def _part(of: Callable[[pa.Array], pa.Array]) -> _Function:
    return lambda values, _, zone: of(_moments(values, zone)).cast(pa.int32())


def _to_date(values: pa.Array, options: Options, zone: tzinfo) -> pa.Array:
    return pc.floor_temporal(_moments(values, zone), unit="day").cast(pa.date32())


def _unix_timestamp(values: pa.Array, options: Options, zone: tzinfo) -> pa.Array:
    micros = values.cast(pa.timestamp("us", values.type.tz), safe=False).cast(pa.int64())
    return _masked(_checked(micros, 1000) // 1_000_000, micros)


def _shifted(sign: int) -> _Function:
    def shift(values: pa.Array, options: Options, zone: tzinfo) -> pa.Array:
        days = _to_date(values, options, zone).cast(pa.int32())
        return pc.add(days, pa.scalar(sign * int(options["days"]), pa.int32())).cast(pa.date32())

    return shift


def _date_format(values: pa.Array, options: Options, zone: tzinfo) -> pa.Array:
    return _printed(_moments(values, zone), options["format"])


def _from_unixtime(values: pa.Array, options: Options, zone: tzinfo) -> pa.Array:
    numbers = values.cast(pa.int64())
    seconds = np.asarray(pc.fill_null(numbers, 0), dtype=np.int64)
    if len(seconds) and (seconds.min() < MIN_MILLIS // 1000 + DAY_MS or seconds.max() > MAX_MILLIS // 1000 - DAY_MS):
        raise Unknown
    millis = seconds * 1000
    local = _masked((millis + utc_offsets(millis, zone)) * 1000, numbers).cast(pa.timestamp("us"))
    return _printed(local, options.get("format", _FORMAT))


def _printed(moments: pa.Array, pattern: str) -> pa.Array:
    return pc.strftime(pc.floor_temporal(moments, unit="second").cast(pa.timestamp("s")), _strftime(pattern))


def _strftime(pattern: str) -> str:
    """Translate Java's date pattern to C's."""
    parts, at = [], 0
    while at < len(pattern):
        match = _TOKEN.match(pattern, at)
        if match is None or (match[2] and match[0] not in _LETTERS):
            raise ValueError(f"the format {pattern!r} has parts other than {', '.join(_LETTERS)}")
        text = match[0]
        if match[1] is not None:
            text = match[1].replace("''", "'") or "'"
        parts.append(_LETTERS[text] if match[2] else text.replace("%", "%%"))
        at = match.end()
    return "".join(parts)


# ---- column types


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind))


def _is_text_or_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date32(kind) or pa.types.is_timestamp(kind))


def _is_timestamp(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind))


def _is_instant(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.tz is not None)


def _is_integer(kind: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(kind))


def _is_plain(kind: pa.DataType) -> bool:
    return not pa.types.is_nested(kind)


FUNCTIONS: Mapping[str, tuple[Callable[[pa.DataType], bool], _Function]] = {
    "identity": (_is_plain, _as_it_is),
    "upper": (_is_text, _upper),
    "lower": (_is_text, _lower),
    "length": (_is_text_or_bytes, _length),
    "trim": (_is_text, _trimmed(pc.utf8_trim)),
    "ltrim": (_is_text, _trimmed(pc.utf8_ltrim)),
    "rtrim": (_is_text, _trimmed(pc.utf8_rtrim)),
    "substring": (_is_text, _substring),
    "year": (_is_time, _part(pc.year)),
    "month": (_is_time, _part(pc.month)),
    "day": (_is_time, _part(pc.day)),
    "hour": (_is_timestamp, _part(pc.hour)),
    "to_date": (_is_time, _to_date),
    "to_timestamp": (_is_timestamp, _as_it_is),
    "unix_timestamp": (_is_instant, _unix_timestamp),
    "date_add": (_is_time, _shifted(1)),
    "date_sub": (_is_time, _shifted(-1)),
    "date_format": (_is_time, _date_format),
    "from_unixtime": (_is_integer, _from_unixtime),
}
"""By name: the test of a supported column type, and the computation."""
