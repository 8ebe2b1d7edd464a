"""Every pair of types: what a write makes of rows of one type in a column of the other."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hudi_fast.errors import InvalidDataError, SchemaMismatchError
from hudi_fast.schema.assignment import KINDS, PAIRS, Outcome, kind_of, outcome_of, require_assignable
from hudi_fast.schema.conform import conform
from hudi_fast.schema.evolution import EvolutionRules, deduce_writer_schema, require_fit
from hudi_fast.schema.normalize import storable_type

NOON = dt.datetime(2024, 3, 31, 12, 0, 0, 123456)
SAMPLES: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [True, False, None],
    pa.int32(): [0, -(2**31), 2**31 - 1, None],
    pa.int64(): [0, -(2**63), 2**63 - 1, None],
    pa.float32(): [0.0, 1.5, -(2.0**100), None],
    pa.float64(): [0.0, 0.1, 1e300, None],
    pa.string(): ["", "7", "ü", None],
    pa.binary(): [b"", b"7", b"\xff", None],
    pa.binary(4): [b"1234", None],
    pa.date32(): [dt.date(1582, 10, 4), dt.date(2024, 3, 31), None],
    pa.time32("ms"): [dt.time(1, 2, 3, 4000), None],
    pa.time64("us"): [dt.time(1, 2, 3, 4), None],
    pa.timestamp("ms", "UTC"): [NOON.replace(microsecond=123000, tzinfo=dt.UTC), None],
    pa.timestamp("us", "UTC"): [NOON.replace(tzinfo=dt.UTC), None],
    pa.timestamp("ms"): [NOON.replace(microsecond=123000), None],
    pa.timestamp("us"): [NOON, None],
    pa.decimal128(5, 2): [Decimal("-999.99"), None],
    pa.decimal128(7, 4): [Decimal("999.9999"), None],
    pa.decimal128(20, 0): [Decimal(10**20 - 1), None],
}
ALL = list(product(SAMPLES, SAMPLES))
ROUNDING = EvolutionRules(allow_rounding=True)
NEST = {
    "list": pa.list_,
    "map": lambda kind: pa.map_(pa.string(), kind),
    "struct": lambda kind: pa.struct([("x", kind)]),
}


def merged(table: pa.DataType, rows: pa.DataType, rules: EvolutionRules | None = None) -> pa.DataType:
    schemas = [pa.schema([("c", kind)]) for kind in (table, rows)]
    return deduce_writer_schema(*schemas, rules or EvolutionRules()).field("c").type


def stored(values: list[Any], kind: pa.DataType, column: pa.DataType, rounds: bool = False) -> list[Any]:
    """Values as a column of another type has them."""
    rows = pa.table({"c": pa.array(values, kind)})
    return list(conform(rows, pa.schema([("c", column)]), rounds=rounds)["c"].to_pylist())


def same(before: Any, after: Any) -> bool:
    """Whether a value is the same in another type: as a number, a moment or a text."""
    if isinstance(before, bytes) and isinstance(after, str):
        return before == after.encode()
    if isinstance(after, bytes) and isinstance(before, str):
        return before.encode() == after
    if isinstance(before, int):
        return after == (str(before) if isinstance(after, str) else before)
    if isinstance(before, float):  # of 32 bits, it becomes the double with the same digits
        return float(after) == before or bool(np.float32(after) == np.float32(before))
    return type(before) is type(after) and before == after


def test_the_table_of_pairs_has_each_pair_once() -> None:
    assert set(PAIRS) == set(product(KINDS, KINDS))
    assert {kind_of(kind) for kind in SAMPLES} == {*KINDS, None}


@pytest.mark.parametrize("table", SAMPLES, ids=str)
def test_values_are_kept_or_the_rows_are_refused(table: pa.DataType) -> None:
    for rows in SAMPLES:
        check(table, rows)


def check(table: pa.DataType, rows: pa.DataType) -> None:
    outcome = outcome_of(table, rows)
    if outcome in (Outcome.ROUNDED, Outcome.ZONED, Outcome.CAST, Outcome.NEVER):
        given = storable_type(rows, "c")
        said = rf"'c' is {re.escape(str(table))} in the table and {re.escape(str(given))} in the incoming.*(cast|zone)"
        with pytest.raises(SchemaMismatchError, match=said):
            merged(table, rows)
        return
    column = merged(table, rows)
    assert column == (table if outcome.keeps_column else storable_type(rows, "c"))
    for value, after in zip(SAMPLES[table], stored(SAMPLES[table], table, column, rounds=True), strict=True):
        assert after is None if value is None else same(value, after), (value, after)
    for value in SAMPLES[rows]:
        if fits(value, table, rows):
            (after,) = stored([value], rows, column)
            assert after is None if value is None else same(value, after), (value, after)
        else:
            with pytest.raises(InvalidDataError, match="'c' holds a value that does not fit"):
                stored([value], rows, column)


def fits(value: Any, table: pa.DataType, rows: pa.DataType) -> bool:
    """Whether a value of the rows has an equal one in the column."""
    if value is None or outcome_of(table, rows) is not Outcome.CHECKED:
        return True
    if pa.types.is_floating(table):
        return bool(abs(value) <= (2**24 if table == pa.float32() else 2**53))
    if table == pa.string():
        return bool(value != b"\xff")
    return not (getattr(table, "unit", "") == "ms" and getattr(value, "microsecond", 0) % 1000)


@pytest.mark.parametrize("nest", NEST)
def test_parts_of_nested_columns_follow_the_same_table(nest: str) -> None:
    for table, rows in ALL:
        try:
            column = NEST[nest](merged(table, rows))
        except SchemaMismatchError:
            with pytest.raises(SchemaMismatchError, match=r"'c\.\w+' is"):
                merged(NEST[nest](table), NEST[nest](rows))
        else:
            assert merged(NEST[nest](table), NEST[nest](rows)).equals(column), (table, rows)


@pytest.mark.parametrize("role", ["record key", "partition path"])
def test_a_column_of_a_role_keeps_the_text_of_its_values(role: str) -> None:
    rules = EvolutionRules(allow_rounding=True, roles={"c": role})
    for table, rows in ALL:
        try:
            column = merged(table, rows, rules)
        except SchemaMismatchError:
            continue
        assert column == table or column == rows
        if column != table:
            before = stored(SAMPLES[table], table, pa.string()) if table in (pa.int32(), pa.float32()) else []
            widened = pa.table({"c": pa.array(SAMPLES[table], table)})
            after = conform(widened, pa.schema([("c", column)]))["c"].to_pylist()
            assert not before or before == stored(after, column, pa.string())
            assert (table, rows) in {
                (pa.int32(), pa.int64()),
                (pa.float32(), pa.float64()),
            }
    wider = pa.decimal128(5, 2), pa.decimal128(9, 2)
    assert merged(*wider, rules) == wider[1]


def test_an_ordering_column_may_become_a_wider_number_and_no_text() -> None:
    rules = EvolutionRules(allow_rounding=True, roles={"c": "ordering"})
    for table, rows in ALL:
        allowed = outcome_of(table, rows).keeps_column or outcome_of(table, rows) is Outcome.COLUMN
        if allowed:
            merged(table, rows, rules)
        else:
            with pytest.raises(SchemaMismatchError, match="'c' is"):
                merged(table, rows, rules)


ROUNDED = [(pa.int32(), pa.float32()), (pa.int64(), pa.float32()), (pa.int64(), pa.float64())]


@pytest.mark.parametrize(("table", "rows"), ROUNDED, ids=str)
def test_rounding_needs_its_option_in_both_directions(table: pa.DataType, rows: pa.DataType) -> None:
    with pytest.raises(SchemaMismatchError, match=r"hudi_fast\.allow\.rounding=true"):
        merged(table, rows)
    assert merged(table, rows, ROUNDING) == rows
    large = 2**62 + 1 if table == pa.int64() else 2**30 + 1
    with pytest.raises(InvalidDataError, match=r"hudi_fast\.allow\.rounding=true"):
        stored([large], table, rows)
    assert stored([large], table, rows, rounds=True) == [float(rows.to_pandas_dtype()(large))]
    assert stored([2**24], table, rows) == [2.0**24]


def test_a_write_that_changes_no_column_refuses_what_would_change_one() -> None:
    for table, rows in ALL:
        schemas = [pa.schema([("c", kind), ("other", pa.int64())]) for kind in (table, rows)]
        if outcome_of(table, rows).keeps_column:
            require_fit(schemas[0], schemas[1].remove(1), EvolutionRules())
        else:
            with pytest.raises(SchemaMismatchError, match="'c' is"):
                require_fit(*schemas, EvolutionRules())
    small, large = pa.struct([("x", pa.int64())]), pa.struct([("x", pa.int64()), ("y", pa.int64())])
    require_fit(pa.schema([("c", large)]), pa.schema([("c", small)]), EvolutionRules())
    with pytest.raises(SchemaMismatchError, match=r"no field 'c\.y': leave it out"):
        require_fit(pa.schema([("c", small)]), pa.schema([("c", large)]), EvolutionRules())


@pytest.mark.parametrize("zone", [True, False])
def test_a_cast_of_sql_is_refused_only_where_it_gives_another_meaning(zone: bool) -> None:
    for table, rows in ALL:
        refused = outcome_of(table, rows) is Outcome.NEVER or (outcome_of(table, rows) is Outcome.ZONED and not zone)
        for of in (lambda kind: kind, *NEST.values()):
            if refused:
                with pytest.raises(SchemaMismatchError, match="UPDATE t: column 'c"):
                    require_assignable(of(table), of(rows), "c", "UPDATE t", has_zone=zone)
            else:
                require_assignable(of(table), of(rows), "c", "UPDATE t", has_zone=zone)


@pytest.mark.parametrize("rows", [pa.null(), pa.int8(), pa.large_string(), pa.duration("s"), pa.list_(pa.int8())])
def test_a_value_of_a_type_that_tables_lack_counts_as_the_stored_one(rows: pa.DataType) -> None:
    require_assignable(pa.string(), rows, "c", "UPDATE t")
    if rows == pa.int8():
        with pytest.raises(SchemaMismatchError, match="the value is int32"):
            require_assignable(pa.timestamp("us"), rows, "c", "UPDATE t")
