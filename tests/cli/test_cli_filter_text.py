import operator
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_fast.cli.filter_text import parse_where
from hudi_fast.errors import ConfigError

ROWS = pa.table(
    {
        "id": [1, 2, 3],
        "name": ["a", "o'b", None],
        "day": [date(2024, 1, n) for n in (1, 2, 3)],
        "fare": [1.5, 2.0, 3.0],
        "ok": [True, False, None],
        "price": pa.array([Decimal("1.20"), Decimal("1.25"), Decimal("2.00")]),
        "inner": [{"k": 1}, {"k": 2}, {"k": 3}],
        "a.b": [1, 2, 3],
        "utc": pa.array([datetime(2024, 1, n) for n in (1, 2, 3)], pa.timestamp("us", "UTC")),
        "local": pa.array([datetime(2024, 1, n) for n in (1, 2, 3)], pa.timestamp("ms")),
    }
)


def chosen(text):
    return ROWS.filter(parse_where(text, ROWS.schema)).column("id").to_pylist()


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("id = 1", [1]),
        ("id==1", [1]),
        ("id <> 2", [1, 3]),
        ("id > 1.5", [2, 3]),
        ("fare >= 2", [2, 3]),
        ("fare < 2e0 and id <= 3", [1]),
        ("name = 'o''b'", [2]),
        ("name != 'a'", [2]),
        ("name in ('a', 'x')", [1]),
        ("name not in ('a')", [2]),
        ("id in (1.5, 2)", [2]),
        ("id in (2, 1.5)", [2]),
        ("name is null", [3]),
        ("name IS NOT NULL AND id < 3", [1, 2]),
        ("ok = true", [1]),
        ("ok = FALSE", [2]),
        ("price = 1.2", [1]),
        ("price > 1", [1, 2, 3]),
        ("inner.k >= 2", [2, 3]),
        ("a.b = 2", [2]),
        ('"a.b" = 3 and "id" = 3', [3]),
        ("day >= '2024-01-02'", [2, 3]),
        ("utc < '2024-01-02'", [1]),
        ("utc <= '2024-01-02 02:00:00+02:00'", [1, 2]),
        ("local > '2024-01-01 00:00:00'", [2, 3]),
    ],
)
def test_a_condition_selects_its_rows(text, ids):
    assert chosen(text) == ids


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.integers(-5, 5)), max_size=20),
    st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
    st.integers(-5, 5),
)
def test_comparisons_agree_with_python_s_and_leave_nulls_out(values, sign, number):
    python = {"=": operator.eq, "!=": operator.ne}.get(sign) or {
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
    }[sign]
    rows = pa.table({"x": pa.array(values, pa.int32())})
    found = rows.filter(parse_where(f"x {sign} {number}", rows.schema)).column("x").to_pylist()
    assert found == [value for value in values if value is not None and python(value, number)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a column, found the end"),
        ("nope = 1", "Column 'nope' does not exist; columns: id, name"),
        ("inner.z = 1", r"Column 'inner\.z' does not exist"),
        ("id.k = 1", r"Column 'id\.k' does not exist"),
        ("id", "expected a comparison"),
        ("id ==", "expected a literal"),
        ("id = null", "is null"),
        ("id = 1 or id = 2", "character 8: expected `and` or the end, found 'or'"),
        ("id not 1", "expected `in`"),
        ("id is 1", "expected `null`"),
        ("id in 1", r"expected `\(`"),
        ("id in (1, 2", r"expected `,` or `\)`, found the end"),
        ("id = 1 ; drop", "character 8: unexpected ';'"),
        ("id = 'x'", "of type int64 and cannot be compared with 'x'"),
        ("id = true", "int64"),
        ("name = 1", "string"),
        ("ok = 1", "bool"),
        ("day = 'soon'", "date32"),
        ("inner = 1", "struct"),
        ("id = 99999999999999999999", "int64"),
        ("name = 'open", "unexpected"),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused_with_its_place(text, said):
    with pytest.raises(ConfigError, match=said):
        parse_where(text, ROWS.schema)


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="id name='\"()<>!,.0123456789 and in is not null true", max_size=30))
def test_any_text_is_a_filter_or_a_config_error(text):
    try:
        chosen(text)
    except ConfigError as error:
        refusal = str(error)
    else:
        refusal = None
    assert refusal is None or refusal.endswith(".")
