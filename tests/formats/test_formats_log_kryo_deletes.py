"""Delete blocks of versions 1 and 2: streams of Kryo, real and made by hand.

Modules: hudi_fast.kernels.kryo_deletes.
"""

from __future__ import annotations

import datetime as dt
import random
import struct
import time
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import CorruptTableError, HudiError, UnsupportedFeatureError
from hudi_fast.formats.log.delete_block import decode_delete_block
from hudi_fast.formats.log.delete_ordering import BlockPlace
from hudi_fast.formats.log.kryo_deletes import read_kryo_deletes
from tests.formats.format_files import DATA
from tests.naive import kryo_deletes as naive
from tests.untrusted.mutations import mutated

UTC = dt.UTC


def content(stream, version=2):
    return pa.py_buffer(struct.pack(">ii", version, len(stream)) + stream)


def read(stream, version=2):
    return decode_delete_block(content(stream, version), "a.log", 100)


def plain(entry):
    """An ordering value as the column has it, and whether it is the default."""
    if entry is None or entry == ("int", 0):
        return None, True
    name, value = entry
    if name == naive.DECIMAL:
        digits = tuple(int(digit) for digit in str(abs(value[0])))
        return Decimal((int(value[0] < 0), digits, -value[1])), False
    if name == naive.DATE:
        return dt.date(*value), False
    if name == naive.TIMESTAMP:
        return dt.datetime(1970, 1, 1, tzinfo=UTC) + dt.timedelta(milliseconds=value), False
    return (np.float32(value) if name == "float" else value), False


def assert_holds(found, entries):
    assert found.keys.to_pylist() == [key for key, _, _ in entries]
    assert found.partitions.to_pylist() == [partition for _, partition, _ in entries]
    values = [plain(value) for _, _, value in entries]
    assert found.is_default.tolist() == [default for _, default in values]
    assert [column.to_pylist() for column in found.ordering] == (
        [] if found.is_default.all() else [[value for value, _ in values]]
    )


_LINES = (line.split() for line in (DATA / "kryo_deletes.txt").read_text().splitlines())
REAL = {name: bytes.fromhex(text) for name, text in _LINES}

VALUES = [
    (("int", -7), pa.int32()),
    (("int", 2**31 - 1), pa.int32()),
    (("long", -(2**63)), pa.int64()),
    (("long", 2**63 - 1), pa.int64()),
    (("float", 1.5), pa.float32()),
    (("double", -0.1), pa.float64()),
    (("boolean", True), pa.bool_()),
    (("String", ""), pa.string()),
    (("String", "x"), pa.string()),
    (("String", "ab" * 40), pa.string()),
    (("String", "zöe 日 \U0001f600"), pa.string()),
    ((naive.UTF8, "zöe"), pa.string()),
    ((naive.UTF8, ""), pa.string()),
    ((naive.REGISTERED, "zöe"), pa.string()),
    ((naive.REGISTERED, ""), pa.string()),
    ((naive.DECIMAL, (-120, 2)), pa.decimal128(38, 2)),
    ((naive.DECIMAL, (0, 0)), pa.decimal128(38, 0)),
    ((naive.DECIMAL, (10**38 - 1, 38)), pa.decimal128(38, 38)),
    ((naive.DATE, (2024, 2, 29)), pa.date32()),
    ((naive.DATE, (1969, 12, 31)), pa.date32()),
    ((naive.TIMESTAMP, 1_700_000_000_123), pa.timestamp("ms", tz="UTC")),
]


# Ordering values of keys key-1 and k; the third key, which is not ASCII, has that of the first.
BY_KRYO = {
    "int": (pa.int32(), 7, -5),
    "long": (pa.int64(), 1_700_000_000_000, -(2**63)),
    "float": (pa.float32(), 1.5, -0.0),
    "double": (pa.float64(), -0.1, 1e300),
    "boolean": (pa.bool_(), True, False),
    "string": (pa.string(), "a", "zöe-text"),
    "string2": (pa.string(), "", "x" * 64),
    "decimal": (pa.decimal128(38, 2), Decimal("-1.20"), Decimal("0.00")),
    "decimal0": (pa.decimal128(38, 2), Decimal("0.00"), Decimal("123456789012345678901.50")),
    "date": (pa.date32(), dt.date(2024, 2, 29), dt.date(1969, 12, 31)),
    "timestamp": (
        pa.timestamp("ms", tz="UTC"),
        dt.datetime(2023, 11, 14, 22, 13, 20, 123_000, UTC),
        dt.datetime(1970, 1, 1, tzinfo=UTC),
    ),
    "utf8": (pa.string(), "zöe", "plain"),
    "utf8_registered": (pa.string(), "zöe", "plain"),
}
REFUSED = {"sqldate": "java.sql.Date", "instant": "java.time.Instant"}


@pytest.mark.slow("keys", "int")
@pytest.mark.parametrize("name", REAL)
def test_arrays_that_hudis_own_serializer_wrote(name):
    if name in REFUSED:
        with pytest.raises(UnsupportedFeatureError, match=f"'{REFUSED[name]}'"):
            read(REAL[name])
        return
    found = read(REAL[name], 1 if name == "keys" else 2)
    if name in BY_KRYO:
        kind, one, other = BY_KRYO[name]
        assert [(column.type, column.to_pylist()) for column in found.ordering] == [(kind, [one, other, one])]
        assert not found.is_default.any()
    else:
        assert found.is_default.tolist() == [name != "same"] * len(found.keys)
    keys, partitions = found.keys.to_pylist(), found.partitions.to_pylist()
    if name == "keys":
        assert (keys, partitions) == (["key-1", "k", "x" * 70], ["p", "", None])
    elif name == "same":
        assert (keys, partitions, found.ordering[0].to_pylist()) == (["same"] * 2, ["p"] * 2, [5, 5])
    elif name != "empty":
        assert (keys, partitions) == (["key-1", "k", "schlüssel \U0001f600"], ["2024/01/02", "2024/01/02", None])


@pytest.mark.parametrize("has_hash", [False, True])
@pytest.mark.parametrize(("value", "kind"), VALUES, ids=[f"{value[0]}-{at}" for at, (value, _) in enumerate(VALUES)])
def test_every_class_of_ordering_values_has_its_arrow_type(value, kind, has_hash):
    again = (value[0], value[1])
    entries = [("key-1", "p", value), ("k", None, ("int", 0)), ("", "", None), ("key-4", "p", value), ("é", "p", again)]
    found = read(naive.encode_records(entries, has_hash))
    assert_holds(found, entries)
    assert found.ordering[0].type == kind


def test_a_partition_path_is_written_once_and_repeated_by_references():
    partition, key = "2024/01/02", "key"
    entries = [(f"key-{at:04}", partition, ("long", at)) for at in range(100)]
    entries += [(key, key, ("String", key)), entries[3]]
    stream = naive.encode_records(entries)
    assert stream.count(partition.encode()[:-1]) == 1
    assert len(stream) < 100 * 25
    with pytest.raises(UnsupportedFeatureError, match=r"different classes \(String, long\)"):
        read(stream)
    del entries[100]
    assert_holds(read(naive.encode_records(entries)), entries)


@pytest.mark.parametrize("name", [naive.KEY, naive.OLD_KEY])
def test_version_1_has_keys_and_no_ordering_values(name):
    entries = [("a-key", "p", None), ("k", "", None), ("schlüssel", None, None)]
    found = read(naive.encode_keys(entries, name), 1)
    assert_holds(found, entries)
    assert found.is_default.all()


def test_an_empty_array():
    for stream, version in ((naive.encode_keys([]), 1), (naive.encode_records([]), 2)):
        found = read(stream, version)
        assert (len(found.keys), found.ordering, found.is_default.size) == (0, (), 0)


@pytest.mark.parametrize(
    ("known", "other", "told"),
    [
        (b"java.time.LocalDat", b"java.evil.LocalDat", r"java\.evil\.LocalDate' .*file a\.log, byte 108"),
        (b"model.HoodieKe", b"model.GoodieKe", r"org\.apache\.hudi\.common\.model\.GoodieKey' "),
        (b"[Lorg", b"[Lorx", r"found an object of class '\[Lorx\.apache\.hudi\.common\.model\.DeleteRecord;'"),
    ],
)
def test_objects_of_other_classes_are_refused_by_name(known, other, told):
    raw = naive.encode_records([("key", "part", (naive.DATE, (2024, 1, 2)))])
    assert raw.count(known) == 1
    with pytest.raises(UnsupportedFeatureError, match=told):
        read(raw.replace(known, other))


@pytest.mark.parametrize("name", ["byte", "char", "short"])
def test_ordering_values_of_other_built_in_classes_are_refused_by_name(name):
    writer = naive.Writer()
    raw = naive.encode_records([("key", "part", ("boolean", True))])
    writer.kind(name)
    assert raw[-2:] == b"\x05\x01"
    with pytest.raises(UnsupportedFeatureError, match=f"few classes; found '{name}' at byte"):
        read(raw[:-2] + bytes(writer.out) + b"\x01")


def test_a_key_within_an_array_of_deletes_and_the_reverse_are_refused():
    with pytest.raises(UnsupportedFeatureError, match=r"Expected \[L.*DeleteRecord;.*found.*HoodieKey"):
        read(naive.encode_keys([("key", "p", None)]), 2)
    with pytest.raises(UnsupportedFeatureError, match=r"Expected \[L.*HoodieKey;.*found.*DeleteRecord"):
        read(naive.encode_records([("key", "p", None)]), 1)


@pytest.mark.slow
def test_references_cannot_make_few_bytes_much_text():
    text = "x" * 1_000_000
    entries = [("key", text, None)] + [(f"k-{at}", text, None) for at in range(20_000)]
    with pytest.raises(UnsupportedFeatureError, match="references repeat long texts"):
        read(naive.encode_keys(entries), 1)


@pytest.mark.parametrize(
    ("stream", "told"),
    [
        (b"", "array of Java objects"),
        (b"\x01", "array of Java objects"),
        (b"\x00", "array of Java objects"),
        (naive.encode_records([])[:-1], "found -2"),
        (naive.encode_records([])[:-1] + b"\xff\xff\xff\xff\x07", r"Expected a number of deletes"),
        (naive.encode_records([("k", "p", None)])[:-1], "entry of a delete block"),
        (naive.encode_records([("k", "p", None)]) + b"\0", "entry of a delete block"),
        (naive.encode_records([("k", "p", (naive.DATE, (2023, 2, 29)))]), "Expected a date"),
        (naive.encode_records([("k", "p", (naive.DATE, (2**31 - 1, 2, 2)))]), "year out of range"),
        (naive.encode_records([("\ud800", "p", None)]), "record keys"),
    ],
)  # fmt: skip
def test_streams_that_are_none_are_refused_with_their_place(stream, told):
    with pytest.raises(CorruptTableError, match=rf"{told}.*a\.log, byte [12]\d\d"):
        read(stream)


def test_decimals_that_no_column_holds_are_refused():
    for value in ((10**38, 0), (1, 39), (1, -1), (2**127, 3)):
        with pytest.raises(UnsupportedFeatureError, match="decimal"):
            read(naive.encode_records([("k", "p", (naive.DECIMAL, value))]))
    both = [("k", "p", (naive.DECIMAL, (10**37, 0))), ("l", "p", (naive.DECIMAL, (1, 20)))]
    with pytest.raises(UnsupportedFeatureError, match="more than 38 digits"):
        read(naive.encode_records(both))


TEXTS = st.text(max_size=70) | st.text(st.characters(max_codepoint=127), max_size=140)
ORDERINGS = [
    st.tuples(st.just("int"), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.just("long"), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just("double"), st.floats(allow_nan=False)),
    st.tuples(st.just("boolean"), st.booleans()),
    st.tuples(st.just("String"), TEXTS),
    st.tuples(st.just(naive.UTF8), TEXTS),
    st.tuples(st.just(naive.REGISTERED), TEXTS),
    st.tuples(st.just(naive.DECIMAL), st.tuples(st.integers(-(10**18), 10**18), st.integers(0, 15))),
    st.tuples(st.just(naive.DATE), st.dates().map(lambda day: (day.year, day.month, day.day))),
    st.tuples(st.just(naive.TIMESTAMP), st.integers(0, 2**42)),
]


@given(data=st.data(), kind=st.sampled_from(ORDERINGS), has_hash=st.booleans())
def test_what_kryo_writes_is_read_again(data, kind, has_hash):
    partitions = data.draw(st.lists(st.none() | TEXTS, min_size=1, max_size=2))
    entries = data.draw(st.lists(st.tuples(TEXTS, st.sampled_from(partitions), st.none() | kind), max_size=8))
    stream = naive.encode_records(entries, has_hash)
    assert naive.decode(stream, 2, has_hash) == entries
    assert_holds(read(stream), entries)
    keys = naive.encode_keys(entries)
    assert_holds(read(keys, 1), [(key, partition, None) for key, partition, _ in naive.decode(keys, 1)])


def seeds():
    """Streams and their versions."""
    shared = "2024/01/02"
    many = [(f"key-{at}", shared, ("long", at)) for at in range(6)]
    return [
        (naive.encode_records([("key", "p", value), ("é", None, value), ("key-2", shared, None)]), 2)
        for value, _ in VALUES
    ] + [
        (naive.encode_records([*many, many[2]]), 2),
        (naive.encode_keys(many), 1),
        *((stream, 1 if name == "keys" else 2) for name, stream in REAL.items()),
    ]


SEEDS = seeds()


def agrees_with_the_twin(stream, version):
    """Both read the same entries, or neither does."""
    expected = None
    for has_hash in (False, True):
        try:
            expected = expected or naive.decode(stream, version, has_hash)
        except (naive.Malformed, UnicodeDecodeError, struct.error, ValueError):
            continue
    try:
        found = read_kryo_deletes(np.frombuffer(stream, np.uint8), version, BlockPlace("a.log", 0))
    except HudiError as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:
        known = any(word in refusal for word in ("different classes", "decimal", "Expected a date"))
        assert expected is None or known or not all(valid(entry) for entry in expected), refusal
        return
    assert expected is not None
    assert found[0].to_pylist() == [key for key, _, _ in expected]
    assert found[1].to_pylist() == [partition for _, partition, _ in expected]


def valid(entry):
    """Whether the texts of an entry are whole characters."""
    texts = [entry[0], entry[1] or "", entry[2][1] if entry[2] and isinstance(entry[2][1], str) else ""]
    try:
        return bool("".join(texts).encode()) or True
    except UnicodeEncodeError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("count", [1500, pytest.param(100_000, marks=pytest.mark.long)])
def test_damaged_streams_give_entries_or_one_of_two_errors(count):
    rng = random.Random(7)
    for at in range(count):
        stream, version = rng.choice(SEEDS)
        agrees_with_the_twin(mutated([stream], random.Random(at)), version)


@pytest.mark.slow
def test_a_million_keys_are_read_in_no_time():
    entries = [(f"key-{at:032}", "2024/01/02", ("long", 1_700_000_000_000 + at)) for at in range(1000)]
    head, one = naive.encode_records([]), naive.encode_records(entries)
    body = one[len(head) + 1 :]
    first = naive.encode_records(entries[:1])
    # the entries again and again: classes and the partition path are known after the first entry
    again = body[len(first) - len(head) :]
    copies = 1000
    count = 1000 + 999 * copies
    writer = naive.Writer()
    writer.number(count + 1)
    stream = head[:-1] + bytes(writer.out) + body + again * copies
    read(first)  # loads the kernels
    begun = time.perf_counter()
    found = read(stream)
    taken = time.perf_counter() - begun
    assert len(found.keys) == count
    assert found.keys[count - 1].as_py() == entries[-1][0]
    assert found.ordering[0][0].as_py() == 1_700_000_000_000
    assert taken < 3  # a million takes 0.2 s on an idle machine; others use it, too
