"""Records of the metadata table: those of real tables, and those that are made up."""

from __future__ import annotations

import io
import json

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_fast.errors import CorruptTableError, InvalidDataError, SchemaMismatchError, UnsupportedFeatureError
from hudi_fast.formats.avro.rows import AvroEncoder
from hudi_fast.metadata_table.layout import PartitionKind, kind_of
from hudi_fast.metadata_table.records import (
    BLOOM,
    COLUMN_STATS,
    FILES,
    RECORD_INDEX,
    RECORD_SCHEMA,
    RECORD_SCHEMA_0_15,
    SECONDARY,
    decode_records,
    encode_records,
    flat_schema,
    instant_millis,
    instant_texts,
    schema_of_commits,
)
from hudi_fast.metadata_table.stat_values import STAT_VALUE, wrap_values
from tests.metadata_table.stored_records import stored_records
from tests.support.examples import examples

UUID = "1f2e3d4c-5b6a-4978-8a9b-acbdcedf0011"
NAMES = st.text(st.sampled_from("abé-_.="), min_size=1, max_size=8)
LONGS = st.integers(-(2**63), 2**63 - 1)
QUICK = settings(max_examples=examples(40))


def round_trip(kind, rows, schema=RECORD_SCHEMA, **more):
    keys, values = encode_records(kind, rows, schema, **more)
    keys.validate(full=True)
    values.validate(full=True)
    found = decode_records(kind, keys, values, schema, "a.hfile")
    found.validate(full=True)
    assert found.schema.equals(flat_schema(kind))
    return found


def without_file_name(value, name):
    """A value as log blocks have it: compactions fill the last meta field of base files."""
    head = b"\0\0\0\0\x02" + bytes([2 * len(name)] if len(name) < 64 else [2 * len(name) & 0x7F | 0x80, len(name) >> 6])
    return b"\0" * 5 + value.removeprefix(head + name) if value.startswith(head + name) else value


@pytest.mark.parametrize(
    "name",
    [
        "mor_v9_secondary_index",
        "mor_v8_secondary_index",
        "mor_v9_record_index",
        "h015_cow_record_index",
        "mor_v6_compacted",
        "mor_v9_alltypes",
        "cow_v9_restored",
    ],
)
def test_records_of_real_tables_are_decoded_and_encoded_byte_for_byte(golden, name):
    seen = set()
    for stored in stored_records(golden(name).table):
        kind = kind_of(stored.partition)
        assert stored.schema == (RECORD_SCHEMA_0_15 if name.startswith("h015") else RECORD_SCHEMA)
        rows = decode_records(kind, stored.keys, stored.values, stored.schema, stored.path)
        rows.validate(full=True)
        assert rows.schema.equals(flat_schema(kind))
        keys, values = encode_records(kind, rows, stored.schema)
        assert keys.cast(pa.binary()).equals(stored.keys)
        file = stored.path.rpartition("/")[2].encode()
        assert values.to_pylist() == [without_file_name(each, file) for each in stored.values.to_pylist()]
        seen.add(kind)
    assert PartitionKind.FILES in seen


def test_rows_say_what_an_independent_decoder_reads(golden):
    parsed = fastavro.parse_schema(json.loads(RECORD_SCHEMA))
    for stored in stored_records(golden("mor_v9_secondary_index").table):
        kind = kind_of(stored.partition)
        rows = decode_records(kind, stored.keys, stored.values, stored.schema, "x").to_pylist()
        records = [
            fastavro.schemaless_reader(
                io.BytesIO(each), parsed, None, return_record_name=True, return_record_name_override=True
            )
            for each in stored.values.to_pylist()
        ]
        if kind is PartitionKind.FILES:
            found = {(row["key"], row["name"]): (row["size"], row["deleted"]) for row in rows if row["name"]}
            assert found == {
                (key.decode(), name): (info["size"], info["isDeleted"])
                for key, record in zip(stored.keys.to_pylist(), records, strict=True)
                for name, info in record["filesystemMetadata"].items()
            }
            continue
        for row, record, key in zip(rows, records, stored.keys.to_pylist(), strict=True):
            assert row["key"] == key.decode()
            if kind is PartitionKind.RECORD_INDEX:
                told = record["recordIndexMetadata"]
                assert (row["partition"], row["instant_ms"]) == (told["partitionName"], told["instantTime"])
            elif kind is PartitionKind.SECONDARY_INDEX:
                assert row["deleted"] is record["SecondaryIndexMetadata"]["isDeleted"]
            else:
                told = record["ColumnStatsMetadata"]
                assert row["type"] == record["type"]
                assert (row["file_name"], row["column_name"]) == (told["fileName"], told["columnName"])
                assert (row["tight"], row["value_type"]) == (told["isTightBound"], told["valueType"]["typeOrdinal"])
                for side in ("min", "max"):
                    assert row[side] is not None
                    ((member, value),) = ((name, each) for name, each in row[side].items() if each is not None)
                    assert (f"org.apache.hudi.avro.model.{member}", value) == told[f"{side}Value"]


def test_locations_are_those_of_the_table(golden):
    table = golden("mor_v9_record_index")
    snapshot = table.snapshot()
    where = {
        key: (partition, name)
        for key, partition, name in zip(
            *(snapshot.column(f"_hoodie_{each}").to_pylist() for each in ("record_key", "partition_path", "file_name")),
            strict=True,
        )
    }
    checked = 0
    for stored in stored_records(table.table):
        if stored.partition != "record_index":
            continue
        rows = decode_records(PartitionKind.RECORD_INDEX, stored.keys, stored.values, stored.schema, "x")
        times = instant_texts(rows.column("instant_ms").combine_chunks(), "UTC").to_pylist()
        assert all(len(time) == 17 and time.startswith("20261121") for time in times)
        for row in rows.to_pylist():
            if row["key"] in where:
                partition, name = where[row["key"]]
                assert row["partition"] == partition
                assert name.startswith(row["file_id"])
                checked += 1
    assert checked > 40


# ---- made up


def files_table(rows):
    columns = list(zip(*rows, strict=True)) or [[]] * 5
    return pa.table([pa.array(each, kind) for each, kind in zip(columns, FILES.types, strict=True)], schema=FILES)


@QUICK
@given(
    maps=st.dictionaries(NAMES, st.dictionaries(NAMES, st.tuples(LONGS, st.booleans()), max_size=4), max_size=5),
    data=st.data(),
)
def test_maps_of_files_come_back_wherever_their_rows_stand(maps, data):
    rows = [(key, 2, None, None, None) for key, entries in maps.items() if not entries]
    rows += [(key, 2, name, *info) for key, entries in maps.items() for name, info in entries.items()]
    mixed = data.draw(st.permutations(rows))
    found = round_trip(PartitionKind.FILES, files_table(mixed))
    assert sorted(map(tuple, (row.values() for row in found.to_pylist())), key=str) == sorted(rows, key=str)
    keys, _ = encode_records(PartitionKind.FILES, files_table(mixed))
    assert keys.to_pylist() == list(dict.fromkeys(row[0] for row in mixed))


def test_an_empty_table_has_a_record_with_an_empty_map():
    rows = files_table([("__all_partitions__", 1, None, None, None)])
    _, values = encode_records(PartitionKind.FILES, rows)
    assert values.to_pylist() == [b"\0" * 6 + b"\x02\x02" + b"\0" * 5]
    assert round_trip(PartitionKind.FILES, rows).equals(rows)


@QUICK
@given(
    rows=st.lists(
        st.tuples(
            NAMES,
            NAMES,
            st.sampled_from([UUID, f"{UUID}-0", f"{UUID}-17", UUID.upper(), "group-0", f"{UUID}-007"]) | NAMES,
            LONGS,
            st.none() | LONGS,
        ),
        max_size=8,
    ),
    encoding=st.sampled_from([0, 1]),
)
def test_locations_come_back_in_either_encoding(rows, encoding):
    columns = list(zip(*rows, strict=True)) or [[]] * 5
    table = pa.table(list(columns), schema=RECORD_INDEX)
    assert round_trip(PartitionKind.RECORD_INDEX, table, file_id_encoding=encoding).equals(table)


def test_file_ids_are_stored_as_hudi_does():
    table = pa.table([["k"] * 3, ["p"] * 3, [UUID, f"{UUID}-3", "plain"], [5] * 3, [None] * 3], schema=RECORD_INDEX)
    parsed = fastavro.parse_schema(json.loads(RECORD_SCHEMA))

    def stored(encoding):
        _, values = encode_records(PartitionKind.RECORD_INDEX, table, file_id_encoding=encoding)
        records = [fastavro.schemaless_reader(io.BytesIO(each), parsed, None) for each in values.to_pylist()]
        names = ("fileIdHighBits", "fileIdLowBits", "fileIndex", "fileId", "fileIdEncoding")
        return [tuple(each["recordIndexMetadata"][name] for name in names) for each in records]

    high, low = 0x1F2E3D4C5B6A4978, 0x8A9BACBDCEDF0011 - 2**64
    assert stored(0) == [(high, low, -1, "", 0), (high, low, 3, "", 0), (-1, -1, -1, "plain", 1)]
    assert stored(1) == [(-1, -1, -1, text, 1) for text in (UUID, f"{UUID}-3", "plain")]


def test_statistics_come_back():
    low, value_type, info = wrap_values(pa.array([1, None, 3]), "V2")
    high, _, _ = wrap_values(pa.array(["a", None, "ü"]), "V2")
    columns = [["k1", "k2", "k3"], [3, 6, 3], ["f", None, "g"], ["c", "d", None], low, high]
    columns += [[1, None, -1]] * 4 + [[False, True, False], [True, False, False]]
    columns += [[value_type, None, 1], [info, None, "9,2"]]
    table = pa.table(columns, schema=COLUMN_STATS)
    back = round_trip(PartitionKind.COLUMN_STATS, table).to_pylist()
    assert back[0] == table.to_pylist()[0]
    assert back[1] == table.to_pylist()[1]
    assert back[2] == table.to_pylist()[2]
    for kind in (PartitionKind.PARTITION_STATS, PartitionKind.EXPRESSION_INDEX):
        assert encode_records(kind, table)[1].equals(encode_records(PartitionKind.COLUMN_STATS, table)[1])


def test_filters_and_secondary_keys_come_back():
    bloom = pa.table([["k"], ["DYNAMIC_V0"], ["20240101000000000"], [b"AAAA"], [False]], schema=BLOOM)
    assert round_trip(PartitionKind.BLOOM_FILTERS, bloom).equals(bloom)
    secondary = pa.table([["a$b", "c$d"], [False, True]], schema=SECONDARY)
    assert round_trip(PartitionKind.SECONDARY_INDEX, secondary).equals(secondary)


def test_slices_and_chunks_are_encoded_as_their_rows():
    table = pa.table([[f"k{i}$x" for i in range(9)], [bool(i % 2) for i in range(9)]], schema=SECONDARY)
    parts = pa.concat_tables([table.slice(2, 3), table.slice(5, 2)])
    assert encode_records(PartitionKind.SECONDARY_INDEX, parts)[0].to_pylist() == [f"k{i}$x" for i in range(2, 7)]
    assert round_trip(PartitionKind.SECONDARY_INDEX, parts).equals(table.slice(2, 5))
    for kind in PartitionKind:
        empty = flat_schema(kind).empty_table()
        assert round_trip(kind, empty).num_rows == 0


def test_many_records_are_decoded_in_several_batches():
    count = 70_000
    file_ids = [f"{UUID}-{i % 5}" for i in range(count)]
    columns = [[f"key {i}" for i in range(count)], ["p"] * count, file_ids, range(count), [None] * count]
    table = pa.table(columns, schema=RECORD_INDEX)
    found = round_trip(PartitionKind.RECORD_INDEX, table)
    assert found.equals(table)
    assert all(column.num_chunks == 1 for column in found.columns)


# ---- what is wrong


def test_older_schemas_take_what_they_know():
    low, _, _ = wrap_values(pa.array([7]), "V1")
    columns = [["k"], [3], ["f"], ["c"], low, low, [1], [0], [9], [9], [False], [False], [None], [None]]
    table = pa.table(columns, schema=COLUMN_STATS)
    assert round_trip(PartitionKind.COLUMN_STATS, table, RECORD_SCHEMA_0_15).equals(table)
    for name, value in (("tight", True), ("value_type", 4)):
        at = COLUMN_STATS.names.index(name)
        more = table.set_column(at, COLUMN_STATS.field(at), pa.array([value], COLUMN_STATS.types[at]))
        with pytest.raises(UnsupportedFeatureError, match="has no field ColumnStatsMetadata"):
            encode_records(PartitionKind.COLUMN_STATS, more, RECORD_SCHEMA_0_15)
    located = pa.table([["k"], ["p"], [UUID], [5], [None]], schema=RECORD_INDEX)
    assert round_trip(PartitionKind.RECORD_INDEX, located, RECORD_SCHEMA_0_15).equals(located)
    placed = pa.table([["k"], ["p"], [UUID], [5], [0]], schema=RECORD_INDEX)
    with pytest.raises(UnsupportedFeatureError, match="position"):
        encode_records(PartitionKind.RECORD_INDEX, placed, RECORD_SCHEMA_0_15)
    secondary = pa.table([["a$b"], [False]], schema=SECONDARY)
    with pytest.raises(UnsupportedFeatureError, match="has no SecondaryIndexMetadata"):
        encode_records(PartitionKind.SECONDARY_INDEX, secondary, RECORD_SCHEMA_0_15)


def test_records_of_another_kind_are_told():
    secondary = pa.table([["a$b"], [False]], schema=SECONDARY)
    keys, values = encode_records(PartitionKind.SECONDARY_INDEX, secondary)
    with pytest.raises(CorruptTableError, match=r"'a\$b' in record_index has type 7; expected 5.*some.hfile"):
        decode_records(PartitionKind.RECORD_INDEX, keys, values, RECORD_SCHEMA, "some.hfile")
    typed = AvroEncoder.compile(pa.schema([("key", pa.string()), ("type", pa.int32())]), RECORD_SCHEMA)
    bare = typed.encode_values(pa.record_batch({"key": [""], "type": pa.array([5], pa.int32())}))
    with pytest.raises(CorruptTableError, match="expected 5 with recordIndexMetadata"):
        decode_records(PartitionKind.RECORD_INDEX, keys, bare, RECORD_SCHEMA, "some.hfile")


def test_damaged_values_are_told_with_their_file():
    keys = pa.array(["k"])
    for damaged in (b"", b"\0" * 6, b"\xff" * 20):
        with pytest.raises(CorruptTableError, match=r"file some\.hfile"):
            decode_records(PartitionKind.FILES, keys, pa.array([damaged]), RECORD_SCHEMA, "some.hfile")
    with pytest.raises(CorruptTableError, match=r"not UTF-8.*some.hfile"):
        decode_records(PartitionKind.FILES, pa.array([b"\xff"]), pa.array([b"\0"]), RECORD_SCHEMA, "some.hfile")
    with pytest.raises(ValueError, match="as many values as keys"):
        decode_records(PartitionKind.FILES, keys, pa.array([], pa.binary()), RECORD_SCHEMA, "some.hfile")


def _with_another_record(text):
    schema = json.loads(text)
    for field in schema["fields"]:
        if field["name"] == "ColumnStatsMetadata":
            field["type"][1]["fields"] = [{"name": "minValue", "type": ["null", "long"]}]
    return json.dumps(schema)


@pytest.mark.parametrize("damage", [lambda text: text[:-40], _with_another_record])
def test_damaged_schemas_are_told_with_the_file_that_holds_them(damage):
    rows = pa.Table.from_pylist(
        [{"key": "k", "type": 3, "column_name": "c", "deleted": False, "tight": True}], COLUMN_STATS
    )
    keys, values = encode_records(PartitionKind.COLUMN_STATS, rows)
    with pytest.raises(CorruptTableError, match=r"(?s)schema of the records.*some\.hfile"):
        decode_records(PartitionKind.COLUMN_STATS, keys, values, damage(RECORD_SCHEMA), "some.hfile")


@given(data=st.data())
def test_damaged_values_give_rows_or_an_error_of_their_own(data):
    low, value_type, info = wrap_values(pa.array(["a", "b"]), "V2")
    columns = [["k", "l"], [3, 6], ["f", None], ["c", "d"], low, low, *[[1, None]] * 4, [False, True], [True, False]]
    samples = {
        PartitionKind.COLUMN_STATS: pa.table([*columns, [value_type] * 2, [info] * 2], schema=COLUMN_STATS),
        PartitionKind.FILES: files_table([("k", 2, "a", 5, False), ("k", 2, "b", 0, True), ("l", 1, None, None, None)]),
        PartitionKind.RECORD_INDEX: pa.table(
            [["k", "l"], ["p", "q"], [f"{UUID}-1", "plain"], [5, 6], [None, 7]], schema=RECORD_INDEX
        ),
    }
    kind = data.draw(st.sampled_from(list(samples)))
    keys, values = encode_records(kind, samples[kind])
    damaged = []
    for value in values.to_pylist():
        content = bytearray(value)
        for _ in range(data.draw(st.integers(0, 3))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        damaged.append(bytes(content[: data.draw(st.integers(len(content) - 2, len(content)))]))
    found = decoded_or_error(kind, keys, pa.array(damaged, pa.binary()))
    if isinstance(found, pa.Table):
        found.validate(full=True)
        assert found.schema.equals(flat_schema(kind))
    else:
        assert "some.hfile" in found


def decoded_or_error(kind, keys, values):
    try:
        return decode_records(kind, keys, values, RECORD_SCHEMA, "some.hfile")
    except (CorruptTableError, UnsupportedFeatureError) as error:
        return str(error)


def test_locations_without_a_file_id_are_told():
    member = pa.struct([("partitionName", pa.string()), ("fileId", pa.string()), ("fileIdEncoding", pa.int32())])
    schema = pa.schema([("key", pa.string()), ("type", pa.int32()), ("recordIndexMetadata", member)])
    encoder = AvroEncoder.compile(schema, RECORD_SCHEMA)
    for encoding, expected in ((0, "no file id"), (1, "no file id"), (2, "encoding 0 or 1")):
        told = [{"partitionName": "p", "fileId": None, "fileIdEncoding": encoding}]
        values = encoder.encode_values(pa.record_batch([[""], [5], told], schema=schema))
        with pytest.raises(CorruptTableError, match=f"{expected}.*some.hfile"):
            decode_records(PartitionKind.RECORD_INDEX, pa.array(["k"]), values, RECORD_SCHEMA, "some.hfile")


def test_rows_that_cannot_be_records_are_refused():
    with pytest.raises(SchemaMismatchError, match="Expected rows of files"):
        encode_records(PartitionKind.FILES, SECONDARY.empty_table())
    with pytest.raises(InvalidDataError, match="different types"):
        encode_records(PartitionKind.FILES, files_table([("k", 1, "a", 0, False), ("k", 2, "b", 1, False)]))
    with pytest.raises(InvalidDataError, match="without its size"):
        encode_records(PartitionKind.FILES, files_table([("k", 2, "a", None, False)]))
    nullable = pa.schema([field.with_nullable(True) for field in RECORD_INDEX])
    for row, expected in (([None, "p", UUID, 5, None], "has no key"), (["k", "p", None, 5, None], "no file id")):
        with pytest.raises(InvalidDataError, match=expected):
            encode_records(PartitionKind.RECORD_INDEX, pa.table([[each] for each in row], schema=nullable))


def test_a_statistic_holds_one_value():
    members = {name.name: None for name in STAT_VALUE}
    both = pa.array([{**members, "IntWrapper": {"value": 1}, "LongWrapper": {"value": 1}}], STAT_VALUE)
    columns = [["k"], [3], ["f"], ["c"], both, both, [1], [0], [9], [9], [False], [False], [None], [None]]
    with pytest.raises(InvalidDataError, match="a union holds one"):
        encode_records(PartitionKind.COLUMN_STATS, pa.table(columns, schema=COLUMN_STATS))


# ---- instants and schemas


@pytest.mark.parametrize("zone", ["UTC", "LOCAL"])
def test_instants_become_milliseconds_and_come_back(zone):
    times = pa.array(["20240229123456789", "20240102030405006", "20240229123456789", None])
    millis = instant_millis(times, zone)
    assert instant_texts(millis, zone).equals(times)
    assert millis.type == pa.int64()


def test_instants_are_those_that_hudi_stored():
    assert instant_millis(pa.array(["20261121055230624"]), "UTC").to_pylist() == [1795240350624]
    assert instant_millis(pa.array(["20261121055230"]), "UTC").to_pylist() == [1795240350999]
    with pytest.raises(CorruptTableError, match="not an instant"):
        instant_millis(pa.array(["yesterday"]), "UTC")
    assert len(instant_texts(pa.array(np.empty(0, np.int64)), "UTC")) == 0


def test_commits_name_the_schema_without_meta_fields(golden):
    timeline = golden("h015_cow").table / ".hoodie" / "metadata" / ".hoodie"
    commit = json.loads(min(timeline.glob("*.deltacommit")).read_text())
    assert commit["extraMetadata"]["schema"] == schema_of_commits(RECORD_SCHEMA_0_15)
    names = [each["name"] for each in json.loads(schema_of_commits())["fields"]]
    assert names[:2] == ["key", "type"]
