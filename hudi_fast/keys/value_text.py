"""The text of values in record keys and partition paths, by column.

::

    Arrow array ──to_text──► pa.string() array, nulls kept

The text is as in Hudi's Avro path: Java's ``toString`` of the value in the Avro record. So floats look like Java's
(``1.0E10``), and a timestamp is the stored raw number unless *consistent logical timestamps* are on. Strings, integers,
booleans, dates and decimals use Arrow's own casts, which agree with Java; the rest is built from the columns' buffers.
Only floats outside 0.001 to 10 million are converted one by one.

Floats have the shortest form that parses to the same number (the ``Double.toString`` of JDK 19 and later; older JDKs
give some numbers one more digit).

Source: ``HoodieAvroUtils.getNestedFieldValAsString`` and ``convertValueForAvroLogicalTypes``, release 1.2.0.
"""

from __future__ import annotations

from datetime import tzinfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import InvalidDataError, UnsupportedFeatureError
from hudi_fast.keys.zones import default_zone, utc_offsets

__all__ = ["divide_towards_zero", "stored_number", "to_text"]

_FIRST_DAY, _LAST_DAY = -719_528, 2_932_896  # 0000-01-01 and 9999-12-31
# Before 15 October 1582, java.sql.Timestamp counts days by the Julian calendar.
_GREGORIAN_MS, _LAST_MS = -12_219_206_400_000, 253_370_764_799_999
_HEX_PAIRS = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), dtype=np.uint16)


def to_text(
    values: pa.Array,
    field: str = "",
    consistent_logical_timestamp: bool = False,
    where: tzinfo | None = None,
) -> pa.Array:
    """The text of each value.

    Args:
        values: any column but a nested one.
        field: its name, for messages.
        consistent_logical_timestamp: whether timestamps with a zone read ``2016-12-29 09:54:00.0`` instead of the raw
            number of micro- or milliseconds.
        where: the zone of such text; None: the zone of this process (Hudi uses the JVM's).

    Returns:
        ``pa.string()`` array of the same length; null for null. A string column is returned unchanged.

    Raises:
        UnsupportedFeatureError: fixed-size binary, lists, maps, structs and other types without a defined text; text
            of more than 2 GiB.
        InvalidDataError: dates outside the years 0 to 9999.
    """
    kind = values.type
    if pa.types.is_dictionary(kind):
        return to_text(values.dictionary, field, consistent_logical_timestamp, where).take(values.indices)
    if pa.types.is_string(kind):
        return values
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
        return values.cast(pa.string())
    if pa.types.is_large_string(kind) or str(kind) == "string_view":
        return _narrow(values.cast(pa.large_string()), field)
    if pa.types.is_date(kind):
        return _dates(values.cast(pa.date32()), field)
    if pa.types.is_timestamp(kind):
        # A timestamp without zone is a local-timestamp in Avro; the option does not apply to it.
        if consistent_logical_timestamp and kind.tz is not None:
            return _timestamps(values, field, where or default_zone())
        return stored_number(values).cast(pa.string())
    if pa.types.is_time(kind):
        return _times(values).cast(pa.string())
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return _floats(values)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _narrow(_hex(values.cast(pa.large_binary())), field)
    raise UnsupportedFeatureError(
        f"The field {field!r} is of type {kind}, which cannot be part of a record key or partition path; use a string, "
        f"number, boolean, decimal, date, timestamp or binary field, or a field inside a struct as 'struct.field'."
    )


def stored_number(values: pa.Array) -> pa.Array:
    """The int64 that a table stores for each timestamp: milliseconds for ``timestamp[ms]``, else microseconds."""
    numbers = values.cast(pa.int64())
    unit = values.type.unit
    if unit == "s":
        return pc.multiply_checked(numbers, 1_000_000)
    if unit == "ns":
        return _masked(_int64(numbers) // 1000, numbers)
    return numbers


def divide_towards_zero(numbers: npt.NDArray[np.int64], divisor: int) -> npt.NDArray[np.int64]:
    """Integer division as in Java, towards zero; numpy rounds down. int64[n], positive divisor."""
    result: npt.NDArray[np.int64] = numbers // divisor + ((numbers < 0) & (numbers % divisor != 0))
    return result


def _times(values: pa.Array) -> pa.Array:
    """Milliseconds of a time32, microseconds of a time64, as stored."""
    if pa.types.is_time32(values.type):
        return values.cast(pa.time32("ms")).cast(pa.int32())
    return values.cast(pa.time64("us"), safe=False).cast(pa.int64())


def _dates(values: pa.Array, field: str) -> pa.Array:
    limits = pc.min_max(values.cast(pa.int32())).as_py()
    if limits["min"] is not None and (limits["min"] < _FIRST_DAY or limits["max"] > _LAST_DAY):
        raise InvalidDataError(f"The field {field!r} holds a date outside the years 0 to 9999; correct it.")
    return values.cast(pa.string())


def _timestamps(values: pa.Array, field: str, where: tzinfo) -> pa.Array:
    numbers = _int64(values.cast(pa.int64()))
    unit = values.type.unit
    if unit in ("us", "ns"):
        numbers = divide_towards_zero(numbers, 1000 if unit == "us" else 1_000_000)
    elif unit == "s":
        numbers = np.clip(numbers, _GREGORIAN_MS, _LAST_MS) * 1000
    if len(numbers) and (numbers.min() < _GREGORIAN_MS or numbers.max() > _LAST_MS):
        raise UnsupportedFeatureError(
            f"The field {field!r} holds a timestamp before 1582-10-15 or after 9998, whose text form is not supported."
        )
    local = _masked(numbers + utc_offsets(numbers, where), values).cast(pa.timestamp("ms"))
    # Arrow prints three digits; Java drops trailing zeros, except for the first digit.
    return pc.replace_substring_regex(local.cast(pa.string()), r"(\.\d+?)0+$", r"\1")


def _floats(values: pa.Array) -> pa.Array:
    text = values.cast(pa.string())
    size = pc.abs(values.cast(pa.float64()))
    plain = pc.or_(pc.and_(pc.greater_equal(size, 1e-3), pc.less(size, 1e7)), pc.equal(size, 0.0))
    whole = pc.invert(pc.match_substring(text, "."))
    text = pc.if_else(whole, pc.binary_join_element_wise(text, ".0", ""), text)
    scientific = pc.invert(plain)
    if not pc.any(scientific).as_py():
        return text
    numbers = values.filter(scientific).to_numpy(zero_copy_only=False)
    return pc.replace_with_mask(
        text, scientific, pa.array([_java_scientific(number) for number in numbers], pa.string())
    )


def _java_scientific(number: np.floating) -> str:
    """Java's scientific notation of a number."""
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    mantissa, _, exponent = np.format_float_scientific(number, unique=True, trim="-").partition("e")
    if "." not in mantissa:
        # Java prints at least two digits, the nearest number with two: 4.9E-324 where one digit would be 5.
        mantissa, _, exponent = f"{float(number):.1e}".partition("e")
    return f"{mantissa}E{int(exponent)}"


def _hex(values: pa.Array) -> pa.Array:
    """Lower-case hexadecimal digits of a large_binary array, as large_string."""
    _, ends, data = values.buffers()
    offsets = np.frombuffer(ends, dtype=np.int64)[values.offset : values.offset + len(values) + 1]
    start, end = int(offsets[0]), int(offsets[-1])
    content = np.frombuffer(data, dtype=np.uint8)[start:end] if data is not None else np.empty(0, np.uint8)
    digits = pa.py_buffer(_HEX_PAIRS[content])
    valid = None
    if values.null_count:
        valid = pa.py_buffer(np.packbits(values.is_valid().to_numpy(zero_copy_only=False), bitorder="little"))
    return pa.Array.from_buffers(
        pa.large_string(), len(values), [valid, pa.py_buffer((offsets - start) * 2), digits], values.null_count
    )


def _narrow(values: pa.Array, field: str) -> pa.Array:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise UnsupportedFeatureError(
            f"The field {field!r} has more than 2 GiB of key text in one batch; pass smaller batches."
        ) from error


def _int64(values: pa.Array) -> npt.NDArray[np.int64]:
    result: npt.NDArray[np.int64] = values.fill_null(0).to_numpy(zero_copy_only=False)
    return result


def _masked(numbers: npt.NDArray[np.int64], like: pa.Array) -> pa.Array:
    mask = like.is_null().to_numpy(zero_copy_only=False) if like.null_count else None
    return pa.array(numbers, mask=mask)
