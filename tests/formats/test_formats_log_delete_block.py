"""Delete blocks: real ones, every kind of ordering value, what Hudi could not read, damage."""

from __future__ import annotations

import datetime as dt
import decimal
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_fast.errors import CorruptTableError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.formats.log.blocks import BlockType, read_content, scan_log_blocks
from hudi_fast.formats.log.delete_block import DeleteRecords, decode_delete_block, encode_delete_block
from hudi_fast.storage.base import Storage
from tests.formats.format_files import damaged, log_files, real_files
from tests.naive import delete_records as naive
from tests.support.examples import examples

UTC = dt.UTC
CODES = ["k1", "schlüssel", "日本", "k4"]


def content_of(entries):
    raw = naive.encode(entries)
    return pa.py_buffer(struct.pack(">ii", 3, len(raw)) + raw)


def decoded(entries):
    return decode_delete_block(content_of(entries), "a.log", 100)


def records(ordering, is_default=None, rows=None):
    ordering = tuple(ordering)
    rows = len(ordering[0]) if rows is None else rows
    keys = pa.array([CODES[i % 4] for i in range(rows)], pa.string())
    flags = np.zeros(rows, np.bool_) if is_default is None else np.array(is_default, np.bool_)
    return DeleteRecords(keys, pa.array(["p=1"] * rows, pa.string()), ordering, flags)


def written(found):
    """Entries in an encoded block, by fastavro."""
    raw = found.to_pybytes()
    assert struct.unpack_from(">ii", raw) == (3, len(raw) - 8)
    return naive.decode(raw[8:])


def delete_blocks(folder):
    storage = Storage(str(folder))
    for path in log_files(folder):
        yield from delete_blocks_of(storage, str(path.relative_to(folder)))


def delete_blocks_of(storage, path):
    for block in scan_log_blocks(storage, path):
        if block.kind == BlockType.DELETE:
            yield path, block, read_content(storage, block)


@pytest.mark.parametrize(
    "table",
    ["mor_v6_mixed", "mor_v9_partial_update_logs", "mor_v9_multi_order_logs", "mor_v9_delete_flag_and_rollback"],
)
def test_blocks_of_real_tables_are_read_and_written_byte_for_byte(golden, table):
    blocks = list(delete_blocks(golden(table).table))
    assert len(blocks) >= 2
    for path, block, content in blocks:
        found = decode_delete_block(content, path, block.content_start)
        entries = naive.decode(content.to_pybytes()[8:])
        assert found.keys.to_pylist() == [entry[0] for entry in entries]
        assert found.partitions.to_pylist() == [entry[1] for entry in entries]
        assert found.is_default.tolist() == [entry[2] in (None, ("Int", 0)) for entry in entries]
        for place, column in enumerate(found.ordering):
            values = [entry[2][place] if isinstance(entry[2], list) else entry[2] for entry in entries]
            assert column.to_pylist() == [value[1] for value in values]
        assert encode_delete_block(found).equals(content)


def test_the_single_real_block(tmp_path):
    (name,) = (name for name in real_files("log_files") if "delete" in name)
    (tmp_path / name).write_bytes(real_files("log_files")[name])
    ((path, block, content),) = delete_blocks_of(Storage(str(tmp_path)), name)
    found = decode_delete_block(content, path, block.content_start)
    assert len(found.keys) == 3
    assert found.ordering == ()
    assert found.is_default.all()
    assert encode_delete_block(found).equals(content)


def test_two_ordering_values_of_a_real_entry():
    raw = bytes.fromhex("02 0202 6b 00") + bytes.fromhex("18 02 04 06 d401 0e 06 7a2d36 00") + b"\0"
    found = decode_delete_block(pa.py_buffer(struct.pack(">ii", 3, len(raw)) + raw), "a.log", 0)
    assert [column.to_pylist() for column in found.ordering] == [[106], ["z-6"]]
    assert [column.type for column in found.ordering] == [pa.int64(), pa.string()]
    assert encode_delete_block(found).to_pybytes()[8:] == raw


NATURAL = [
    ("Boolean", True, pa.bool_(), True),
    ("Int", -7, pa.int32(), -7),
    ("Long", 2**62, pa.int64(), 2**62),
    ("Float", 1.5, pa.float32(), 1.5),
    ("Double", -0.1, pa.float64(), -0.1),
    ("Bytes", b"\x00\xff", pa.binary(), b"\x00\xff"),
    ("String", "zöe", pa.string(), "zöe"),
    ("Date", 19_000, pa.date32(), dt.date(2022, 1, 8)),
    ("Decimal", (-12 * 10**14).to_bytes(8, "big", signed=True), pa.decimal128(30, 15), decimal.Decimal("-1.2")),
    ("TimeMicros", 3_600_000_001, pa.time64("us"), dt.time(1, 0, 0, 1)),
    ("TimestampMicros", -1, pa.timestamp("us", tz="UTC"), dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "stored", "kind", "value"), NATURAL)
def test_every_branch_has_its_arrow_type(name, stored, kind, value):
    found = decoded([("a", "p", (name, stored)), ("b", None, ("Int", 0)), ("c", "", None)])
    assert found.ordering[0].type == kind
    assert found.ordering[0].to_pylist() == [value, None, None]
    assert found.is_default.tolist() == [False, True, True]
    assert found.partitions.to_pylist() == ["p", None, ""]


# What HoodieDeleteBlock of Hudi 1.2.0 makes of key k, partition path p and one value, and of that value and the long 7.
BY_HUDI = [
    (
        "Boolean",
        pa.array([True]),
        "000000030000000a0202026b020270020100",
        "00000003000000100202026b0202701802040201060e0000",
    ),
    (
        "Integer",
        pa.array([5], pa.int32()),
        "000000030000000a0202026b020270040a00",
        "00000003000000100202026b020270180204040a060e0000",
    ),
    ("Long", pa.array([5]), "000000030000000a0202026b020270060a00", "00000003000000100202026b020270180204060a060e0000"),
    (
        "Float",
        pa.array([1.5], pa.float32()),
        "000000030000000d0202026b020270080000c03f00",
        "00000003000000130202026b020270180204080000c03f060e0000",
    ),
    (
        "Double",
        pa.array([-0.1]),
        "00000003000000110202026b0202700a9a9999999999b9bf00",
        "00000003000000170202026b0202701802040a9a9999999999b9bf060e0000",
    ),
    (
        "HeapByteBuffer",
        pa.array([b"\1\2"]),
        "000000030000000c0202026b0202700c04010200",
        "00000003000000120202026b0202701802040c040102060e0000",
    ),
    (
        "String",
        pa.array(["s"]),
        "000000030000000b0202026b0202700e027300",
        "00000003000000110202026b0202701802040e0273060e0000",
    ),
    (
        "Date",
        pa.array([dt.date(2022, 1, 8)]),
        "000000030000000c0202026b02027010f0a80200",
        "00000003000000120202026b02027018020410f0a802060e0000",
    ),
    (
        "BigDecimal",
        pa.array([decimal.Decimal("-1.20")], pa.decimal128(30, 15)),
        "00000003000000110202026b020270120efbbc9b3a45000000",
        "00000003000000170202026b020270180204120efbbc9b3a450000060e0000",
    ),
    (
        "Timestamp",
        pa.array([1_234_000], pa.timestamp("us", tz="UTC")),
        "000000030000000d0202026b02027016a0d1960100",
        "00000003000000130202026b02027018020416a0d19601060e0000",
    ),
    ("LocalDate", pa.array([dt.date(2022, 1, 8)]), None, "00000003000000120202026b02027018020418f0a802060e0000"),
]


@pytest.mark.slow("BigDecimal")
@pytest.mark.parametrize(("name", "column", "one", "two"), BY_HUDI, ids=[name for name, *_ in BY_HUDI])
def test_content_that_hudis_own_class_made_is_read_and_but_for_times_made_the_same(name, column, one, two):
    for raw, ordering in ((one, (column,)), (two, (column, pa.array([7])))):
        if raw is not None:
            content = pa.py_buffer(bytes.fromhex(raw))
            found = decode_delete_block(content, "a.log", 0)
            assert found.ordering == ordering
            assert (found.keys.to_pylist(), found.partitions.to_pylist()) == (["k"], ["p"])
            again = encode_delete_block(found)
            assert again.equals(content) == (name not in ("Date", "LocalDate", "Timestamp"))


def test_items_of_arrays_have_the_same_types_and_may_be_null():
    row = [(name, stored) for name, stored, _, _ in NATURAL]
    nulls = [None] * len(NATURAL)
    found = decoded([("a", "p", [*row, ("LocalDate", 1)]), ("b", "p", ("Int", 0)), ("c", "p", [*nulls, None])])
    assert [column.type for column in found.ordering] == [*(kind for _, _, kind, _ in NATURAL), pa.date32()]
    values = [*(value for _, _, _, value in NATURAL), dt.date(1970, 1, 2)]
    assert [column.to_pylist() for column in found.ordering] == [[value, None, None] for value in values]
    assert found.is_default.tolist() == [False, True, False]


def test_a_column_of_arrays_without_any_value_is_null():
    found = decoded([("a", "p", [("Long", 1), None])])
    assert [column.type for column in found.ordering] == [pa.int64(), pa.null()]
    assert found.ordering[1].to_pylist() == [None]


def test_an_empty_block():
    found = decoded([])
    assert (len(found.keys), len(found.partitions), found.ordering, found.is_default.size) == (0, 0, (), 0)
    assert encode_delete_block(found).to_pybytes() == struct.pack(">ii", 3, 1) + b"\0"
    with_columns = records([pa.array([], pa.int64()), pa.array([], pa.decimal128(10, 2))])
    assert encode_delete_block(with_columns).equals(encode_delete_block(found))


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        ([("a", "p", ("Long", 1)), ("b", "p", ("String", "1"))], r"different types \(branches \[3, 7\]\)"),
        ([("a", "p", ("Long", 1)), ("b", "p", [("Long", 1)])], r"different types \(branches \[3, 12\]\)"),
        ([("a", "p", [("Long", 1)]), ("b", "p", [("Int", 1)])], r"different types \(branches \[2, 3\]\)"),
        ([("a", "p", [("Long", 1)]), ("b", "p", [("Long", 1)] * 2)], r"different numbers of ordering values"),
    ],
)
def test_ordering_values_that_fit_no_column_are_refused(entries, told):
    with pytest.raises(UnsupportedFeatureError, match=told + r".*file a.log, byte 108"):
        decoded(entries)


@pytest.mark.parametrize(
    ("head", "kind", "told"),
    [
        (b"\0\0\0", CorruptTableError, r"found 3 bytes.*byte 100\]"),
        (struct.pack(">ii", 1, 1) + b"\0", CorruptTableError, r"array of Java objects.*version 1.*byte 108\]"),
        (struct.pack(">ii", 2, 1) + b"\0", CorruptTableError, r"array of Java objects.*version 2.*byte 108\]"),
        (struct.pack(">ii", 4, 1) + b"\0", CorruptTableError, r"version 1, 2 or 3, found 4.*byte 100\]"),
        (struct.pack(">ii", 3, 2) + b"\0", CorruptTableError, r"Expected 1 as length of the deletes, found 2"),
        (struct.pack(">ii", 3, -1) + b"\0", CorruptTableError, r"found -1.*byte 104\]"),
        (struct.pack(">ii", 3, 0), CorruptTableError, r"byte 108\]"),
        (struct.pack(">ii", 3, 2) + b"\0\0", CorruptTableError, r"list of 0 deletes to end.*byte 109\]"),
        (struct.pack(">ii", 3, 2) + b"\x02\0", CorruptTableError, r"delete entry with a record key.*byte 109\]"),
    ],
)
def test_content_that_is_no_list_of_deletes_is_refused(head, kind, told):
    with pytest.raises(kind, match=told):
        decode_delete_block(pa.py_buffer(head), "a.log", 100)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (("Decimal", (10**31).to_bytes(14, "big")), "precision"),
        (("Decimal", b"\x7f" * 17), "decimal of up to 30 digits"),
        (("Decimal", b""), "decimal of up to 30 digits"),
        (("TimeMicros", 86_400_000_000), "ordering values"),
    ],
)
def test_values_that_their_type_does_not_have_are_refused(value, told):
    with pytest.raises(CorruptTableError, match=told):
        decoded([("a", "p", value)])


def test_texts_that_are_not_utf_8_and_ints_that_are_longs_are_refused():
    raw = content_of([("kkkk", "pppp", ("String", "vvvv"))]).to_pybytes()
    for part, told in ((b"kkkk", "record keys"), (b"pppp", "partition paths"), (b"vvvv", "ordering values")):
        with pytest.raises(CorruptTableError, match=told):
            decode_delete_block(pa.py_buffer(raw.replace(part, b"\xff\xfe\xfd\xfc")), "a.log", 0)
    longs = content_of([("k", "p", ("Long", 2**40))]).to_pybytes()
    with pytest.raises(CorruptTableError, match="32-bit"):
        decode_delete_block(pa.py_buffer(longs.replace(b"\x02p\x06", b"\x02p\x04")), "a.log", 0)


# What is written: the column's Arrow type -> (wrapper, value) that Hudi's Spark reader compares with the column.
WRITTEN = [
    (pa.bool_(), [True, False], [("Boolean", True), ("Boolean", False)]),
    (pa.int32(), [5, -(2**31)], [("Int", 5), ("Int", -(2**31))]),
    (pa.int64(), [0, 2**63 - 1], [("Long", 0), ("Long", 2**63 - 1)]),
    (pa.float32(), [0.0, float("inf")], [("Float", 0.0), ("Float", float("inf"))]),
    (pa.float64(), [-0.5, 1e300], [("Double", -0.5), ("Double", 1e300)]),
    (pa.binary(), [b"", b"\xff"], [("Bytes", b""), ("Bytes", b"\xff")]),
    (pa.large_binary(), [b"", b"\xff"], [("Bytes", b""), ("Bytes", b"\xff")]),
    (pa.string(), ["", "é"], [("String", ""), ("String", "é")]),
    (pa.large_string(), ["", "é"], [("String", ""), ("String", "é")]),
    (pa.date32(), [dt.date(1970, 1, 3), dt.date(1969, 12, 31)], [("Int", 2), ("Int", -1)]),
    (pa.time32("ms"), [dt.time(0, 0, 1), dt.time(1)], [("Int", 1000), ("Int", 3_600_000)]),
    (pa.time64("us"), [dt.time(0, 0, 1), dt.time(1)], [("Long", 1_000_000), ("Long", 3_600_000_000)]),
    (pa.timestamp("us", tz="UTC"), [dt.datetime(1970, 1, 1, 0, 0, 1, 5, UTC)] * 2, [("Long", 1_000_005)] * 2),
    (pa.timestamp("us"), [dt.datetime(1970, 1, 1, 0, 0, 1, 5)] * 2, [("Long", 1_000_005)] * 2),
    (pa.timestamp("ms", tz="UTC"), [dt.datetime(1970, 1, 1, 0, 0, 1, 0, UTC)] * 2, [("Long", 1000)] * 2),
    (
        pa.decimal128(12, 2),
        [decimal.Decimal("1.05"), decimal.Decimal("-0.01")],
        [("Decimal", (105 * 10**13).to_bytes(7, "big")), ("Decimal", (-(10**13)).to_bytes(6, "big", signed=True))],
    ),
]


@pytest.mark.parametrize(("kind", "values", "stored"), WRITTEN, ids=[str(kind) for kind, _, _ in WRITTEN])
def test_what_is_written_for_a_column(kind, values, stored):
    column = pa.array([None, values[0], values[1], None], kind)
    found = written(encode_delete_block(records([column])))
    assert found == [
        ("k1", "p=1", ("Int", 0)),
        ("schlüssel", "p=1", stored[0]),
        ("日本", "p=1", stored[1]),
        ("k4", "p=1", ("Int", 0)),
    ]
    sliced = records([column.slice(1, 2)])
    assert [entry[2] for entry in written(encode_delete_block(sliced))] == stored
    doubled = records([column.slice(1, 2), pa.chunked_array([["x"], ["y"]])])
    assert [entry[2] for entry in written(encode_delete_block(doubled))] == [
        [stored[0], ("String", "x")],
        [stored[1], ("String", "y")],
    ]


def test_default_rows_lose_their_ordering_value():
    found = records([pa.array([1, 2, None], pa.int64()), pa.array(["a", "b", None])], is_default=[False, True, True])
    assert [entry[2] for entry in written(encode_delete_block(found))] == [
        [("Long", 1), ("String", "a")],
        ("Int", 0),
        ("Int", 0),
    ]


def test_without_ordering_columns_every_delete_is_one_in_commit_time_order():
    found = written(encode_delete_block(records([], rows=2, is_default=[False, True])))
    assert [entry[2] for entry in found] == [("Int", 0), ("Int", 0)]


def test_keys_and_partitions_may_be_slices_chunks_and_null():
    keys = pa.chunked_array([["x", "a"], ["b"]]).slice(1)
    partitions = pa.array(["p", None, "é", "q"], pa.large_string()).slice(1, 2)
    found = written(encode_delete_block(DeleteRecords(keys, partitions, (), np.ones(2, np.bool_))))
    assert found == [("a", None, ("Int", 0)), ("b", "é", ("Int", 0))]


@pytest.mark.parametrize(
    ("make", "kind", "told"),
    [
        (lambda: DeleteRecords(pa.array(["a", None]), pa.array(["p", "p"]), (), np.ones(2, np.bool_)),
         InvalidDataError, "1 of 2 are null"),
        (lambda: records([pa.array([1, 2]), pa.array(["x", None])]), InvalidDataError,
         r"null among 2 ordering values; 1 deletes have one, the first for record key 'schlüssel'"),
        (lambda: records([pa.array([decimal.Decimal("1e20")], pa.decimal128(30, 2))]), InvalidDataError, "15 digits"),
        (lambda: records([pa.array([decimal.Decimal("1")], pa.decimal128(30, 16))]), UnsupportedFeatureError, "30, 16"),
        (lambda: records([pa.array([1], pa.timestamp("ns"))]), UnsupportedFeatureError, r"timestamp\[ns\]"),
        (lambda: records([pa.array([1], pa.uint8())]), UnsupportedFeatureError, "uint8"),
        (lambda: records([pa.array([1])], is_default=[True, False]), ValueError, "differ in length"),
    ],
)  # fmt: skip
def test_what_hudi_could_not_read_is_not_written(make, kind, told):
    with pytest.raises(kind, match=told):
        encode_delete_block(make())


COLUMNS = st.sampled_from([pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.binary(), pa.bool_()])
CELLS = {
    pa.int32(): st.integers(-(2**31), 2**31 - 1).filter(bool),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(allow_nan=False),
    pa.string(): st.text(max_size=10),
    pa.binary(): st.binary(max_size=10),
    pa.bool_(): st.booleans(),
}


@given(
    rows=st.lists(st.tuples(st.text(max_size=10), st.none() | st.text(max_size=5), st.booleans()), max_size=10),
    kinds=st.lists(COLUMNS, min_size=1, max_size=3),
    data=st.data(),
)
def test_what_is_written_is_read_again(rows, kinds, data):
    is_default = np.array([default for _, _, default in rows], np.bool_)
    ordering = tuple(
        pa.array([None if default else data.draw(CELLS[kind]) for default in is_default.tolist()], kind)
        for kind in kinds
    )
    keys, partitions = pa.array([row[0] for row in rows], pa.string()), pa.array([row[1] for row in rows], pa.string())
    found = decode_delete_block(encode_delete_block(DeleteRecords(keys, partitions, ordering, is_default)), "a.log", 0)
    assert found.keys.equals(keys)
    assert found.partitions.equals(partitions)
    assert found.is_default.tolist() == is_default.tolist()
    assert found.ordering == (() if is_default.all() else ordering)


@settings(max_examples=examples(200))
@given(data=st.data())
def test_damaged_content_gives_records_or_one_of_two_errors(data):
    entries = [
        ("key-1", "p", [("Long", 5), ("String", "abc")]),
        ("key-2", None, ("Int", 0)),
        ("key-3", "", [("Long", 2**50), None]),
    ]
    whole = content_of(entries).to_pybytes()
    raw = whole[:8] + data.draw(damaged(whole[8:]))
    raw = struct.pack(">ii", 3, len(raw) - 8) + raw[8:] if data.draw(st.booleans()) else data.draw(damaged(whole))
    try:
        found = decode_delete_block(pa.py_buffer(raw), "a.log", 0)
    except (CorruptTableError, UnsupportedFeatureError):
        return
    assert found.keys.null_count == 0
    assert {len(column) for column in (found.keys, found.partitions, found.is_default, *found.ordering)} == {
        len(found.keys)
    }


def test_a_hundred_thousand_deletes_are_read_and_written():
    count = 100_000
    found = DeleteRecords(
        pa.array([f"key-{i:032}" for i in range(count)]),
        pa.array(["2024/01/02"] * count),
        (pa.array(np.arange(count) + 1_700_000_000_000),),
        np.zeros(count, np.bool_),
    )
    content = encode_delete_block(found)
    again = decode_delete_block(content, "a.log", 0)
    assert again.keys.equals(found.keys)
    assert again.ordering[0].equals(found.ordering[0])
    assert len(content) < count * 70
