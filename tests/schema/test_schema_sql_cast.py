"""Values that SQL assigns to a column are those of Spark's casts, or are refused."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_fast.errors import InvalidDataError
from hudi_fast.schema.assignment import is_assignable
from hudi_fast.schema.conform import assigned_values

D = Decimal
DAY, NOON = datetime.date(2024, 2, 29), datetime.datetime(1969, 12, 31, 12, 30, 0, 120000)
FLOATS = [0.0, -0.0, 1.0, 1.5, -2.675, 1.005, 0.1, 1e-5, 1e7, 9999999.0, 1.25e20, math.nan, math.inf, None]
SAMPLES: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [True, False, None],
    pa.int32(): [0, 7, -123, 2**31 - 1, None],
    pa.int64(): [0, 7, -123, 2**31, 2**53 + 1, 2**24 + 1, None],
    pa.float32(): [*FLOATS, 16777216.0],
    pa.float64(): [*FLOATS, 2.675, 12345678.905, 5e-324, 1e300, 1e-20],
    pa.decimal128(10, 2): [D("1.50"), D("2.00"), D("-0.05"), D("12345678.99"), None],
    pa.decimal128(20, 9): [D("0.000000001"), D("1.000000000"), D("12345678901.123456789"), D("2.675000000"), None],
    pa.string(): [
        "",
        "7",
        " +12 ",
        "-3",
        "1.5",
        "0x10",
        "1e3",
        "NaN",
        "true",
        "2024-02-29",
        "2024-02-29 01:02:03",
        None,
    ],
    pa.binary(): [b"abc", b"7", None],
    pa.date32(): [DAY, datetime.date(1, 1, 1), None],
    pa.timestamp("us"): [NOON, datetime.datetime(2024, 2, 29), datetime.datetime(2024, 2, 29, 23, 59, 59, 1), None],
    pa.timestamp("us", "UTC"): [NOON, None],
}
REFUSED = {
    "a fraction": (("float", "double", "decimal128(10, 2)", "decimal128(20, 9)", "string"), ("int32", "int64")),
    "digits that a double does not hold": (("int32", "int64"), ("float", "double")),
    "a text in another form than Arrow reads": (
        ("string",),
        (
            *("bool", "float", "double", "decimal128(10, 2)", "decimal128(20, 9)"),
            *("date32[day]", "timestamp[us]", "timestamp[us, tz=UTC]"),
        ),
    ),
}
"""Values that Spark cuts or guesses, and the library refuses, by their types."""


def in_spark(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether Spark's grammar has the cast; the others are refused."""
    return pa.binary() not in (source, target) or pa.string() in (source, target)


def pairs() -> list[tuple[pa.DataType, pa.DataType]]:
    return [(one, other) for one, other in product(SAMPLES, SAMPLES) if one != other and is_assignable(other, one)]


def assigned(value: Any, source: pa.DataType, target: pa.DataType) -> Any:
    return assigned_values(pa.chunked_array([pa.array([value], source)]), target, "c", "SET")[0].as_py()


def is_same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return type(one) is type(other) and bool(one == other)


def may_refuse(source: pa.DataType, target: pa.DataType) -> bool:
    names = str(source), str(target)
    return any(names[0] in some and names[1] in others for some, others in REFUSED.values())


def test_values_are_those_of_casts_of_spark(spark: Any) -> None:
    from pyspark.sql.pandas.types import from_arrow_type

    from hudi_fast.spark.arrow import collect

    wrong = []
    for source in SAMPLES:
        targets = [other for one, other in pairs() if one == source and in_spark(one, other)]
        kinds = [from_arrow_type(each, prefer_timestamp_ntz=True).simpleString() for each in targets]
        values = SAMPLES[source]
        given = pa.table({"n": range(len(values)), "c": pa.array(values, source)})
        spark.createDataFrame(given).createOrReplaceTempView("v")
        casts = ", ".join(["n", *(f"try_cast(c AS {kind}) AS c{number}" for number, kind in enumerate(kinds))])
        answers = collect(spark.sql(f"SELECT {casts} FROM v")).sort_by("n")
        for (number, target), (row, value) in product(enumerate(targets), enumerate(values)):
            wanted = answers.column(f"c{number}")[row].as_py()
            case = f"{value!r} of {source} as {target}: Spark says {wanted!r}"
            try:
                found = assigned(value, source, target)
            except InvalidDataError:
                if wanted is not None and not may_refuse(source, target):
                    wrong.append(f"{case}, refused")
                continue
            if not is_same(found, wanted):
                wrong.append(f"{case}, found {found!r}")
    assert wrong == []


@pytest.mark.parametrize(("source", "target"), pairs(), ids=str)
def test_nothing_is_null_but_null(source: pa.DataType, target: pa.DataType) -> None:
    refused = []
    for value in SAMPLES[source]:
        try:
            made = assigned(value, source, target)
        except InvalidDataError as error:
            refused.append(str(error))
        else:
            assert (made is None) == (value is None)
            assert in_spark(source, target)
    said = f"SET: a value for 'c' is of type {source} and does not fit {target}: "
    assert [text for text in refused if not text.startswith(said)] == []


@pytest.mark.parametrize(
    ("value", "source", "target"),
    [
        (math.nan, pa.float64(), pa.decimal128(10, 2)),
        (1e20, pa.float64(), pa.decimal128(10, 2)),
        (D("99.95"), pa.decimal128(4, 2), pa.decimal128(3, 1)),
        (10**8, pa.int64(), pa.decimal128(10, 2)),
        ("0x10", pa.string(), pa.int64()),
        (1.5, pa.float64(), pa.int32()),
        (2**53 + 1, pa.int64(), pa.float64()),
        (b"\xff", pa.binary(), pa.string()),
    ],
)
def test_values_that_do_not_fit_are_refused(value: Any, source: pa.DataType, target: pa.DataType) -> None:
    with pytest.raises(InvalidDataError, match=r"'c' is of type .* and does not fit"):
        assigned(value, source, target)


def test_doubles_become_the_decimals_that_their_digits_say() -> None:
    random = np.random.default_rng(7)
    numbers = [round(float(one), 3) for one in random.uniform(-1e6, 1e6, 2000)] + [
        n / 1000 for n in range(-50, 3000, 5)
    ]
    made = assigned_values(pa.chunked_array([pa.array(numbers)]), pa.decimal128(12, 2), "c", "SET").to_pylist()
    wanted = [D(str(one)).quantize(D("0.01"), rounding="ROUND_HALF_UP") for one in numbers]
    assert made == wanted


def test_parts_of_nested_values_are_cast_like_columns() -> None:
    parts = pa.chunked_array([pa.array([[{"a": 1.5, "b": 7}], None, [None]])])
    kind = pa.list_(pa.struct([("a", pa.string()), ("b", pa.decimal128(5, 2)), ("c", pa.int32())]))
    made = assigned_values(parts, kind, "c", "SET")
    assert made.type == kind
    assert made.to_pylist() == [[{"a": "1.5", "b": D("7.00"), "c": None}], None, [None]]
    with pytest.raises(InvalidDataError, match=r"'c' is of type .* and does not fit"):
        assigned_values(parts, pa.string(), "c", "SET")


def test_a_dictionary_is_cast_like_its_values() -> None:
    encoded = pc.dictionary_encode(pa.chunked_array([pa.array([1.0, None, 1e10])]))
    assert assigned_values(encoded, pa.string(), "c", "SET").to_pylist() == ["1.0", None, "1.0E10"]
