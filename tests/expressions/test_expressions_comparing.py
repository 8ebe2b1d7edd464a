"""Comparisons in SQL text answer as Spark does, for every type and at the borders of each.

Modules: hudi_fast.expressions.sql_values.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import ConfigError
from hudi_fast.expressions.arrow_filters import parse_filter
from hudi_fast.expressions.conditions import Anything, Condition
from hudi_fast.expressions.sql_filters import sql_filter, sql_value
from tests.naive import sql_rows

NAN, INF = math.nan, math.inf
SINGLE = float(np.float32(0.1))
TYPES = {
    "i8": (pa.int8(), "tinyint"),
    "i32": (pa.int32(), "int"),
    "i64": (pa.int64(), "bigint"),
    "f": (pa.float32(), "float"),
    "d": (pa.float64(), "double"),
    "p": (pa.decimal128(5, 2), "decimal(5,2)"),
    "w": (pa.decimal128(38, 10), "decimal(38,10)"),
    "s": (pa.string(), "string"),
    "day": (pa.date32(), "date"),
    "utc": (pa.timestamp("us", "UTC"), "timestamp"),
    "ntz": (pa.timestamp("us"), "timestamp_ntz"),
    "ok": (pa.bool_(), "boolean"),
}
POOLS: dict[str, list[Any]] = {
    "i8": [-128, -1, 0, 1, 2, 127],
    "i32": [-(2**31), -5, 0, 1, 2, 2**24 + 1, 2**30 + 1, 2**31 - 1],
    "i64": [-(2**63), 0, 1, 2, 2**24 + 1, 2**53, 2**53 + 1, 99999999999, 2**63 - 1],
    "f": [-INF, -1.5, -0.0, 0.0, SINGLE, 0.5, 1.0, 2.0**24, INF, NAN],
    "d": [-INF, -1.5, -0.0, 0.0, 0.1, SINGLE, 0.5, 1.0, 2.0**53, 1e300, INF, NAN],
    "p": [Decimal(one) for one in ("-999.99", "-1.20", "0.00", "0.10", "0.50", "1.00", "1.20", "1.21", "999.99")],
    "w": [Decimal(one) for one in ("-99999999999999999999.5", "0", "0.1", "1.2", "1.2000000001", "9007199254740993")],
    "s": ["", "a", "A", "ab", "a\\b", "1", "é", "😀", "b'c"],
    "day": [date(1969, 12, 31), date(2024, 1, 31), date(2024, 2, 29)],
    "utc": [
        datetime(2024, 1, 31, tzinfo=UTC),
        datetime(2024, 1, 31, 12, 0, 0, 5, tzinfo=UTC),
        datetime(1969, 1, 1, tzinfo=UTC),
    ],
    "ntz": [datetime(2024, 1, 31), datetime(2024, 1, 31, 12, 0, 0, 5), datetime(1969, 1, 1)],
    "ok": [True, False],
}
NUMBERS = ["i8", "i32", "i64", "f", "d", "p", "w"]
NUMBER_LITERALS = [
    *("0", "1", "-1", "2", "127", "128", "-129", "16777217", "2147483648", "99999999999", "9007199254740993"),
    *(
        "9223372036854775808",
        "-99999999999999999999",
        "0.0",
        "0.1",
        "0.5",
        "-128.5",
        "1.20",
        "1.205",
        "999.994",
        "1000.00",
    ),
    *(
        "0e0",
        "1e-1",
        "5e-1",
        "1.6777217e7",
        "9.007199254740992e15",
        "1e300",
        "0.1F",
        "0.1D",
        "0.5BD",
        "1L",
        "-1L",
        "2S",
    ),
    *("double('NaN')", "float('NaN')", "double('Infinity')", "double('-inf')", "cast('1' as int)", "null"),
]
LITERALS = {
    **dict.fromkeys(NUMBERS, NUMBER_LITERALS),
    "s": [
        "''",
        "'a'",
        "'A'",
        "'ab'",
        r"'a\\b'",
        r"r'a\b'",
        r"'\u00e9'",
        r"'b\'c'",
        r"'b''c'",
        r"'\141'",
        r"'a\tb'",
        "null",
    ],
    "day": ["'2024-01-31'", "date '2024-02-29'", "'2024-01'", "'2024-1-31'", "timestamp '2024-01-31 12:00:00'", "null"],
    "utc": [
        "'2024-01-31'",
        "'2024-01-31 12:00:00.000005'",
        "timestamp '2024-01-31 12:00:00'",
        "date '2024-01-31'",
        "null",
    ],
    "ntz": [
        "'2024-01-31'",
        "'2024-01-31 12:00:00.000005'",
        "timestamp_ntz '2024-01-31 12:00:00'",
        "date '2024-01-31'",
        "null",
    ],
    "ok": ["true", "false", "'yes'", "null"],
}
WHOLE_TEXTS, REAL_TEXTS = ["'1'", "' 2 '", "'-128'"], ["'1'", "'0.1'", "'1.2'", "'NaN'", "'-Infinity'", "'1e300'"]
BEYOND_LONG = ["9223372036854775808", "-99999999999999999999"]
"""Beside a whole number, Spark takes a comparison with one of these for true or false even of a null
(``DecimalPrecisionTypeCoercion.integralAndDecimalLiteral``); here it is null, as SQL has it.
"""
SIGNS = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def some_rows(count: int = 60) -> pa.Table:
    """Every value of every column at least once, beside others; a fifth is null."""
    draw = random.Random(1)
    columns: dict[str, Any] = {"n": pa.array(range(count), pa.int32())}
    for name, (kind, _) in TYPES.items():
        values = [*POOLS[name], *(draw.choice([*POOLS[name], None]) for _ in range(count))][:count]
        draw.shuffle(values)
        columns[name] = pa.array(values, kind)
    return pa.table(columns)


ROWS = some_rows()


class Texts:
    """Conditions and values in SQL text, drawn at random; Spark accepts each, and none fails for a row of ``ROWS``."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def condition(self, depth: int = 2) -> str:
        pick = self.draw.random()
        if depth and pick < 0.25:
            joined = self.draw.choice([" and ", " or "]).join(self.condition(depth - 1) for _ in range(2))
            return f"({joined})"
        if depth and pick < 0.35:
            return f"not {self.condition(depth - 1)}"
        return self.leaf()

    def leaf(self) -> str:
        name = self.draw.choice(list(TYPES))
        form = self.draw.choice(
            ["sign", "sign", "sign", "turned", "in", "between", "null", "columns", "value", "value"]
        )
        sign = self.draw.choice([*SIGNS, "<=>"])
        if form == "sign":
            return f"{name} {sign} {self.literal(name)}"
        if form == "turned":
            return f"{self.literal(name)} {sign} {name}"
        if form == "in":
            inside = ", ".join(self.literal(name, texts=False) for _ in range(self.draw.randint(1, 4)))
            return f"{name} {self.draw.choice(['', 'not '])}in ({inside})"
        if form == "between":
            return f"{name} {self.draw.choice(['', 'not '])}between {self.literal(name)} and {self.literal(name)}"
        if form == "null":
            return self.draw.choice([f"{name} is null", f"({name} = {self.literal(name)}) is not true"])
        if form == "value" or name not in NUMBERS:
            number = self.draw.choice(NUMBERS)
            return f"{self.value(number)} {sign} {self.literal(number)}"
        return f"{name} {sign} {self.draw.choice(NUMBERS)}"

    def value(self, name: str) -> str:
        one, other = self.literal(name, texts=False), self.literal(name, texts=False)
        forms = [
            *(f"coalesce({name}, {one})", f"greatest({name}, {one}, {other})", f"least({name}, {one})"),
            *(f"nullif({name}, {one})", f"case when {name} > {one} then {name} else {other} end"),
            *(f"case {name} when {one} then 1 when {other} then 2.5 end", f"if({name} = {one}, {name}, {other})"),
        ]
        if name in ("i8", "f", "d", "p"):
            number = self.draw.choice(["1", "2", "0.1", "1.50", "3", "0.5e0", "0.1F", "-7"])
            forms += [f"{name} {self.draw.choice(['+', '-', '*', '/'])} {number}"] * 4
            forms += [f"abs({name} - 1.5)", f"-{name} * 1.0"] if name != "i8" else ["i8 % 3", "i8 + 1"]
        if name in ("i32", "i64"):
            forms += [f"{name} {self.draw.choice(['+', '*', '/'])} {self.draw.choice(['0.5', '1e0', '1.25'])}"] * 2
        return self.draw.choice(forms)

    def literal(self, name: str, texts: bool = True) -> str:
        is_whole = name.startswith("i")
        more = [] if not texts or name not in NUMBERS else WHOLE_TEXTS if is_whole else REAL_TEXTS
        return self.draw.choice([one for one in (*LITERALS[name], *more) if not (is_whole and one in BEYOND_LONG)])


def truths(text: str) -> list[bool | None]:
    """The truth value of each row, in each form in which a condition reaches the rows."""
    values = computed(text)
    chosen = set(ROWS.filter(sql_filter(text, ROWS.schema)).column("n").to_pylist())
    assert chosen == {number for number, truth in enumerate(values) if truth}, text
    return values


def computed(text: str) -> list[Any]:
    import pyarrow.dataset as ds

    found: list[Any] = ds.dataset(ROWS).to_table(columns={"it": sql_value(text, ROWS.schema)})["it"].to_pylist()
    return found


# ---- Spark


@pytest.fixture(scope="module")
def frame(spark: Any) -> Iterator[Any]:
    """The rows in Spark, in mode ANSI, which is the default since Spark 4."""
    wanted = {"spark.sql.ansi.enabled": "true", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    wanted["spark.sql.codegen.wholeStage"] = "false"  # to compile hundreds of columns takes a minute
    before = {name: spark.conf.get(name) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    columns = ", ".join(["n int", *(f"{name} {kind}" for name, (_, kind) in TYPES.items())])
    yield spark.createDataFrame(ROWS.to_pylist(), columns).coalesce(1)
    for name, value in before.items():
        spark.conf.set(name, value)


def answers_of(frame: Any, texts: list[str]) -> dict[str, list[Any]]:
    """Spark's value of each text for each row, in the order of the rows."""
    rows = frame.selectExpr("n", *(f"{text} as `{at}`" for at, text in enumerate(texts))).collect()
    rows = sorted(rows, key=lambda row: row["n"])
    return {text: [row[at + 1] for row in rows] for at, text in enumerate(texts)}


def check_against_spark(frame: Any, seeds: range) -> None:
    for seed in seeds:
        texts = Texts(seed)
        asked = list(dict.fromkeys(texts.condition() for _ in range(400)))
        wrong = {
            text: (found, wanted)
            for text, wanted in answers_of(frame, asked).items()
            if (found := truths(text)) != wanted
        }
        assert not wrong, "\n".join(map(str, list(wrong.items())[:20]))


def test_spark_answers_some_hundred_generated_conditions_alike(frame: Any) -> None:
    check_against_spark(frame, range(1))


@pytest.mark.long
def test_spark_answers_thousands_of_generated_conditions_alike(frame: Any) -> None:
    check_against_spark(frame, range(1, 13))


def test_spark_computes_generated_numbers_alike(frame: Any) -> None:
    texts = Texts(99)
    asked = list(dict.fromkeys(texts.value(texts.draw.choice(NUMBERS)) for _ in range(300)))
    for text, wanted in answers_of(frame, asked).items():
        assert list(map(str, map(_plain, computed(text)))) == list(map(str, map(_plain, wanted))), text


def _plain(value: Any) -> Any:
    """A number without trailing zeros, which the scale of a decimal decides, and without the sign of zero."""
    if isinstance(value, float):
        return value + 0.0
    return value.normalize() + 0 if isinstance(value, Decimal) else value


# ---- the slow twin


@given(
    st.sampled_from(NUMBERS),
    st.sampled_from(list(SIGNS)),
    st.one_of(
        st.integers(-(10**20), 10**20),
        st.decimals(-1000, 1000, places=3, allow_nan=False),
        st.floats(),
        st.sampled_from([0, 127, 128, -128, 2**31, 2**63, -(2**63) - 1, 0.5, -0.0, NAN, INF, Decimal("1.20")]),
    ),
    st.booleans(),
)
def test_a_comparison_with_a_number_is_that_of_the_slow_twin(name: str, sign: str, number: Any, negated: bool) -> None:
    text = (
        f"double('{number!r}')"
        if isinstance(number, float)
        else f"{number:f}"
        if isinstance(number, Decimal)
        else str(number)
    )
    values = ROWS[name].to_pylist()
    wanted = [sql_rows.compared(SIGNS[sign], value, number) for value in values]
    assert truths(f"not ({name} {sign} {text})" if negated else f"{name} {sign} {text}") == [
        None if one is None else one != negated for one in wanted
    ]
    assert truths(f"{name} in ({text}, 1)") == [sql_rows.listed(value, [number, 1]) for value in values]


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("other", NUMBERS)
def test_a_comparison_of_columns_is_that_of_the_slow_twin(name: str, other: str) -> None:
    pairs = list(zip(ROWS[name].to_pylist(), ROWS[other].to_pylist(), strict=True))
    for sign, meant in SIGNS.items():
        assert truths(f"{name} {sign} {other}") == [sql_rows.compared(meant, *pair) for pair in pairs], sign


# ---- what a condition means to indexes, and what it costs


@pytest.mark.parametrize(
    "text",
    [
        "d > 1",
        "not d <= 1",
        "f >= 0.5",
        "f > 0.1",
        "i64 > 0.5",
        "i32 < 99999999999",
        "p in (1.2, 7)",
        "d <=> 1",
        "i8 not in (1, null)",
    ],
)
def test_a_comparison_is_understood_by_data_skipping(text: str) -> None:
    condition = parse_filter(sql_filter(text, ROWS.schema))
    assert Anything() not in parts_of(condition)


def parts_of(condition: Condition) -> list[Condition]:
    inside = getattr(condition, "parts", None) or ([condition.part] if hasattr(condition, "part") else [])
    return [condition, *(one for part in inside for one in parts_of(part))]


@pytest.mark.slow
def test_a_chain_is_as_long_as_it_likes() -> None:
    for join in ("or", "and"):
        text = f" {join} ".join(f"i64 <> {number}" for number in range(1000))
        truth = [
            None if value is None else join == "or" or value not in range(1000) for value in ROWS["i64"].to_pylist()
        ]
        assert truths(text) == truth
        assert truths(f"not ({text})") == [None if one is None else not one for one in truth]
    inside = ", ".join(map(str, range(5000)))
    assert truths(f"i64 in ({inside})") == [
        None if value is None else value in range(5000) for value in ROWS["i64"].to_pylist()
    ]


def test_what_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(ConfigError, match="nested too deeply"):
        sql_filter("(" * 5000 + "i32 = 1" + ")" * 5000, ROWS.schema)


def test_division_by_zero_is_null_and_an_overflow_is_an_error() -> None:
    assert set(computed("1 / i8")) >= {None, 1.0}
    assert computed("case when i8 <> 0 then 1 / i8 > 0 else false end") == [
        value is not None and value > 0 for value in ROWS["i8"].to_pylist()
    ]
    with pytest.raises(pa.ArrowInvalid, match="overflow"):
        computed("i64 + 1")


@pytest.mark.parametrize(
    "text", ["i32 = 'x'", "i32 = '1.5'", "ok = 1", "day > 5", "s > 1", "p in ('x')", "d = 'one'", "i8 = " + "9" * 39]
)
def test_a_literal_that_is_no_value_of_the_type_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"cannot be compared|38"):
        sql_filter(text, ROWS.schema)
