from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_fast.errors import SchemaMismatchError, UnsupportedFeatureError
from hudi_fast.formats.avro.schema import arrow_to_avro
from hudi_fast.schema.normalize import normalize_input_schema, storable_type

UTC_MICROS = pa.timestamp("us", tz="UTC")
STORED_AS = [
    (pa.bool_(), pa.bool_()),
    (pa.int8(), pa.int32()),
    (pa.int16(), pa.int32()),
    (pa.int32(), pa.int32()),
    (pa.int64(), pa.int64()),
    (pa.uint8(), pa.int32()),
    (pa.uint16(), pa.int32()),
    (pa.uint32(), pa.int64()),
    (pa.float16(), pa.float32()),
    (pa.float64(), pa.float64()),
    (pa.large_string(), pa.string()),
    (pa.string_view(), pa.string()),
    (pa.large_binary(), pa.binary()),
    (pa.binary_view(), pa.binary()),
    (pa.binary(5), pa.binary(5)),
    (pa.date64(), pa.date32()),
    (pa.time32("s"), pa.time32("ms")),
    (pa.time64("ns"), pa.time64("us")),
    *[(pa.timestamp(unit), pa.timestamp("us")) for unit in ("s", "ms", "us", "ns")],
    *[(pa.timestamp(unit, tz="Europe/Berlin"), UTC_MICROS) for unit in ("s", "ms", "us", "ns")],
    (pa.decimal128(38, 10), pa.decimal128(38, 10)),
    (pa.decimal256(20, 2), pa.decimal128(20, 2)),
    (pa.decimal128(5, -2), pa.decimal128(7, 0)),
    (pa.decimal128(3, 5), pa.decimal128(5, 5)),
    (pa.dictionary(pa.int8(), pa.large_string()), pa.string()),
    (pa.run_end_encoded(pa.int32(), pa.uint8()), pa.int32()),
    (pa.large_list(pa.int8()), pa.list_(pa.int32())),
    (pa.list_view(pa.int8()), pa.list_(pa.int32())),
    (pa.list_(pa.int8(), 3), pa.list_(pa.int32())),
    (pa.map_(pa.large_string(), pa.float16()), pa.map_(pa.string(), pa.float32())),
    (pa.struct([("a", pa.list_(pa.uint32()))]), pa.struct([("a", pa.list_(pa.int64()))])),
]


@pytest.mark.parametrize(("given", "stored"), STORED_AS, ids=[str(each[0]) for each in STORED_AS])
def test_each_arrow_type_has_its_storable_form_which_is_its_own_and_avro_can_say(given, stored):
    schema = normalize_input_schema(pa.schema([pa.field("c", given, nullable=False)]))
    assert schema == pa.schema([pa.field("c", stored, nullable=False)])
    assert normalize_input_schema(schema) == schema
    assert arrow_to_avro(schema, "t_record", "hoodie.t")


def test_nullability_of_elements_and_values_stays():
    element, value = pa.field("element", pa.int64(), False), pa.field("value", pa.int64(), False)
    schema = pa.schema([("l", pa.list_(element)), ("m", pa.map_(pa.string(), value))])
    assert normalize_input_schema(schema) == schema


def test_meta_columns_and_metadata_are_dropped():
    own = pa.field("id", pa.struct([pa.field("x", pa.int32(), metadata={"k": "v"})]), metadata={"k": "v"})
    handed = pa.schema([("_hoodie_record_key", pa.string()), ("_hoodie_operation", pa.string()), own], {"k": "v"})
    schema = normalize_input_schema(handed)
    assert schema.equals(pa.schema([("id", pa.struct([("x", pa.int32())]))]), check_metadata=True)


def test_a_column_of_nulls_takes_the_type_that_the_table_has():
    table = pa.schema([pa.field("a", pa.int64(), nullable=False), ("s", pa.struct([("x", pa.list_(pa.date32()))]))])
    handed = pa.schema([("a", pa.null()), ("s", pa.struct([("x", pa.list_(pa.null()))]))])
    schema = normalize_input_schema(handed, table)
    assert schema == pa.schema([("a", pa.int64()), ("s", pa.struct([("x", pa.list_(pa.date32()))]))])


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ([("a", pa.int32()), ("A", pa.int32())], "'A' differs from column 'a' only in case"),
        ([("a", pa.int32()), ("a", pa.int32())], "'a' occurs twice"),
        ([("s", pa.struct([("x", pa.int32()), ("X", pa.int32())]))], r"'s\.X' differs"),
        ([("n", pa.null())], "'n' has no type"),
        ([("s", pa.struct([("n", pa.null())]))], r"'s\.n' has no type"),
        ([("u", pa.uint64())], "'u' has type uint64"),
        ([("s", pa.struct([]))], "'s' is a struct without fields"),
        ([("first name", pa.string())], "'first name'"),
    ],
)
def test_a_schema_that_can_be_mended_is_a_mismatch(columns, said):
    with pytest.raises(SchemaMismatchError, match=said):
        normalize_input_schema(pa.schema(columns))


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (pa.duration("us"), "duration"),
        (pa.month_day_nano_interval(), "interval"),
        (pa.map_(pa.int32(), pa.string()), "keys of type int32"),
        (pa.decimal256(60, 2), "60 digits"),
        (pa.uuid(), "extension type"),
        (pa.dense_union([pa.field("a", pa.int32())]), "union"),
    ],
)
def test_a_type_that_hudi_cannot_hold_is_unsupported(kind, said):
    with pytest.raises(UnsupportedFeatureError, match=said) as caught:
        normalize_input_schema(pa.schema([("s", pa.struct([("x", pa.list_(kind))]))]))
    assert "s.x.element" in str(caught.value)
    with pytest.raises(UnsupportedFeatureError, match=said):
        storable_type(kind, "c")


def test_all_problems_are_told_at_once():
    schema = pa.schema([("u", pa.uint64()), ("d", pa.duration("s")), ("n", pa.null()), ("ok", pa.int8())])
    with pytest.raises(SchemaMismatchError, match="3 problem") as caught:
        normalize_input_schema(schema)
    assert all(f"'{name}'" in str(caught.value) for name in "udn")
