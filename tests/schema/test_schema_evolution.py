from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

import pyarrow as pa
import pytest

from hudi_fast.errors import SchemaMismatchError
from hudi_fast.formats.avro.schema import avro_to_arrow, with_meta
from hudi_fast.schema.evolution import EvolutionRules, deduce_writer_schema
from tests.support.commit_schemas import commit_schemas
from tests.support.golden import Golden

DEFAULT = EvolutionRules()
NULLS = EvolutionRules(set_null_for_missing=True)
DROP = EvolutionRules(allow_column_drop=True)
RECONCILE = EvolutionRules(reconcile=True)
VALIDATE = EvolutionRules(validate=True)

UTC_MICROS, UTC_MILLIS = pa.timestamp("us", tz="UTC"), pa.timestamp("ms", tz="UTC")
TABLE = pa.schema([pa.field("id", pa.string(), nullable=False), ("qty", pa.int32()), ("name", pa.string())])


def struct(**fields):
    return pa.struct(list(fields.items()))


def merged_type(table, incoming):
    return deduce_writer_schema(pa.schema([("c", table)]), pa.schema([("c", incoming)]), DEFAULT).field("c").type


@pytest.mark.parametrize(
    ("table", "incoming", "result"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int64(), pa.int32(), pa.int64()),
        (pa.int64(), pa.int8(), pa.int64()),
        (pa.int32(), pa.string(), pa.string()),
        (pa.string(), pa.int32(), pa.string()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.float64(), pa.int64(), pa.float64()),
        (pa.float32(), pa.int64(), pa.float32()),
        (pa.string(), pa.binary(), pa.string()),
        (pa.binary(), pa.string(), pa.binary()),
        (pa.string(), pa.large_string(), pa.string()),
        (pa.string(), pa.dictionary(pa.int32(), pa.string()), pa.string()),
        (pa.decimal128(10, 2), pa.decimal128(12, 3), pa.decimal128(12, 3)),
        (pa.decimal128(12, 3), pa.decimal128(10, 2), pa.decimal128(12, 3)),
        (UTC_MILLIS, UTC_MICROS, UTC_MILLIS),
        (UTC_MICROS, pa.timestamp("ns", "Asia/Tokyo"), UTC_MICROS),
        (pa.time32("ms"), pa.time64("us"), pa.time32("ms")),
        (pa.int32(), pa.null(), pa.int32()),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), pa.list_(pa.int64())),
        (pa.list_(pa.int64()), pa.large_list(pa.int32()), pa.list_(pa.int64())),
        (pa.map_(pa.string(), pa.float32()), pa.map_(pa.string(), pa.float64()), pa.map_(pa.string(), pa.float64())),
        (struct(a=pa.int32(), b=pa.int64()), struct(c=pa.int8(), b=pa.int32(), a=pa.int64()),
         struct(a=pa.int64(), b=pa.int64(), c=pa.int32())),
        (pa.list_(struct(a=pa.int32())), pa.list_(struct(b=pa.int32(), a=pa.int32())),
         pa.list_(struct(a=pa.int32(), b=pa.int32()))),
    ],
)  # fmt: skip
def test_the_wider_type_wins_and_the_table_where_either_would_do(table, incoming, result):
    assert merged_type(table, incoming) == result


@pytest.mark.parametrize(
    ("table", "incoming"),
    [
        (pa.int32(), pa.bool_()),
        (pa.int32(), pa.date32()),
        (pa.date32(), pa.string()),
        (pa.date32(), UTC_MICROS),
        (UTC_MICROS, pa.timestamp("us")),
        (UTC_MICROS, pa.int64()),
        (pa.int64(), UTC_MICROS),
        (pa.int64(), pa.float32()),
        (pa.decimal128(10, 2), pa.decimal128(9, 3)),
        (pa.decimal128(10, 2), pa.float64()),
        (pa.binary(4), pa.binary(5)),
        (pa.int32(), pa.list_(pa.int32())),
        (struct(a=pa.int32()), pa.map_(pa.string(), pa.int32())),
        (pa.list_(pa.int32()), pa.list_(pa.bool_())),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.bool_())),
        (struct(a=pa.int32()), struct(a=pa.bool_())),
    ],
)
@pytest.mark.parametrize("rules", [DEFAULT, NULLS, DROP, RECONCILE, VALIDATE])
def test_types_that_do_not_meet_are_refused_under_all_rules(table, incoming, rules):
    with pytest.raises(SchemaMismatchError, match="column 'c"):
        deduce_writer_schema(pa.schema([("c", table)]), pa.schema([("c", incoming)]), rules)


def test_without_a_table_the_incoming_schema_is_normalised():
    incoming = pa.schema([("_hoodie_file_name", pa.string()), ("n", pa.int8())], metadata={"pandas": "{}"})
    assert deduce_writer_schema(None, incoming, DEFAULT).equals(pa.schema([("n", pa.int32())]), check_metadata=True)


def test_columns_keep_the_tables_order_and_new_ones_come_last():
    incoming = pa.schema([("new", pa.int32()), ("name", pa.string()), ("qty", pa.int32()), ("id", pa.string())])
    assert deduce_writer_schema(with_meta(TABLE), incoming, DEFAULT).names == ["id", "qty", "name", "new"]


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("given", [True, False])
def test_a_column_is_nullable_if_either_side_is(own, given):
    def of(nullable):
        inner = pa.list_(pa.field("element", pa.int32(), nullable))
        return pa.schema([pa.field("c", pa.struct([pa.field("l", inner, nullable)]), nullable)])

    assert deduce_writer_schema(of(own), of(given), DEFAULT) == of(own or given)


WITHOUT_NAME = pa.schema([pa.field("id", pa.string(), nullable=False), ("qty", pa.int64())])
KEPT = pa.schema([pa.field("id", pa.string(), nullable=False), ("qty", pa.int64()), ("name", pa.string())])


@pytest.mark.parametrize(
    ("rules", "result"),
    [
        (DEFAULT, None),
        (VALIDATE, None),
        (NULLS, KEPT),
        (EvolutionRules(set_null_for_missing=True, validate=True), None),
        (DROP, WITHOUT_NAME),
        (EvolutionRules(allow_column_drop=True, validate=True), WITHOUT_NAME),
        (EvolutionRules(allow_column_drop=True, set_null_for_missing=True), WITHOUT_NAME),
        (RECONCILE, KEPT),
        (EvolutionRules(reconcile=True, allow_column_drop=True), KEPT),
        (EvolutionRules(partition_fields=("name",)), None),
        (EvolutionRules(partition_fields=("name",), drop_partition_columns=True), WITHOUT_NAME),
        (EvolutionRules(partition_fields=("qty",), drop_partition_columns=True), None),
    ],
)
def test_the_rules_say_what_becomes_of_a_missing_column(rules, result):
    if result is not None:
        assert deduce_writer_schema(TABLE, WITHOUT_NAME, rules) == result
        return
    with pytest.raises(SchemaMismatchError, match=r"column 'name' \(string\) of the table is missing"):
        deduce_writer_schema(TABLE, WITHOUT_NAME, rules)


@pytest.mark.parametrize(
    ("rules", "result"),
    [(NULLS, struct(a=pa.int32(), b=pa.int32())), (DROP, struct(b=pa.int32())), (DEFAULT, None)],
)
def test_the_rules_for_missing_columns_hold_inside_structs(rules, result):
    table = pa.schema([("l", pa.list_(pa.struct([pa.field("a", pa.int32(), False), ("b", pa.int32())])))])
    incoming = pa.schema([("l", pa.list_(struct(b=pa.int32())))])
    if result is not None:
        assert deduce_writer_schema(table, incoming, rules) == pa.schema([("l", pa.list_(result))])
        return
    with pytest.raises(SchemaMismatchError, match=r"'l\.element\.a'"):
        deduce_writer_schema(table, incoming, rules)


def test_a_partition_column_that_is_there_stays_even_if_files_do_not_hold_it():
    rules = EvolutionRules(partition_fields=("name",), drop_partition_columns=True)
    assert deduce_writer_schema(TABLE, TABLE, rules) == TABLE


@pytest.mark.parametrize("rules", [DEFAULT, NULLS, DROP, RECONCILE, VALIDATE])
def test_a_new_column_must_be_nullable(rules):
    incoming = TABLE.append(pa.field("new", pa.int32(), nullable=False))
    with pytest.raises(SchemaMismatchError, match=r"'new' .* is new and not nullable"):
        deduce_writer_schema(TABLE, incoming, rules)


@pytest.mark.parametrize("rules", [DEFAULT, NULLS, DROP, RECONCILE, VALIDATE])
def test_a_name_that_differs_in_case_only_is_refused_once(rules):
    incoming = pa.schema([("id", pa.string()), ("Qty", pa.int32()), ("name", pa.string())])
    with pytest.raises(SchemaMismatchError, match=re.escape("1 problem")) as caught:
        deduce_writer_schema(TABLE, incoming, rules)
    assert "'Qty'" in str(caught.value)
    assert "'qty'" in str(caught.value)


def test_all_problems_are_told_at_once_with_what_is_allowed():
    incoming = pa.schema([("ID", pa.string()), ("qty", pa.bool_()), pa.field("new", pa.int32(), nullable=False)])
    with pytest.raises(SchemaMismatchError, match=re.escape("4 problem")) as caught:
        deduce_writer_schema(TABLE, incoming, DEFAULT)
    said = str(caught.value)
    assert all(f"'{name}'" in said for name in ("ID", "qty", "name", "new"))
    assert "int32 in the table and bool in the incoming schema" in said
    assert "column.cast(pa.int32()), or CAST(qty AS INT)" in said
    assert "hoodie.write.set.null.for.missing.columns=true" in said


@pytest.mark.parametrize("name", ["cow_v9_schema_evolved", "mor_v9_schema_evolved", "mor_v9_schema_evolved_logs"])
def test_each_step_of_a_table_that_hudi_evolved_is_the_same_here(name, golden: Callable[[str], Golden]):
    steps = [avro_to_arrow(text, instant) for instant, text in commit_schemas(golden(name)).items()]
    assert len(set(map(str, steps))) > 1
    for before, after in pairwise(steps):
        assert deduce_writer_schema(before, after, DEFAULT) == after


def test_what_was_deduced_is_stable():
    incoming = pa.schema([("id", pa.string()), ("qty", pa.int64()), ("s", struct(a=pa.int16()))])
    first = deduce_writer_schema(TABLE, incoming, NULLS)
    assert deduce_writer_schema(first, incoming, NULLS) == first
    assert deduce_writer_schema(first, first, DEFAULT) == first
