"""HFiles that are written: read back, laid out as both of Hudi's readers need it, and what is refused."""

from __future__ import annotations

import io
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import ConfigError, InvalidDataError
from hudi_fast.formats.bloom_filter import BloomFilter
from hudi_fast.formats.hfile.reader import Codec, HFileContent, HFileReader, data_blocks, read_hfile, read_trailer
from hudi_fast.formats.hfile.writer import HFileWriter, encode_hfile
from tests.formats.format_files import real_files
from tests.naive import hfile as naive

CODECS = pytest.mark.parametrize("codec", [Codec.GZ, Codec.NONE])
BYTES = st.binary(max_size=60)


def bloom():
    return BloomFilter.create(10_000, 1e-9, 100_000)


def encoded(entries, **options):
    keys, values = pa.array([key for key, _ in entries], pa.binary()), pa.array([v for _, v in entries], pa.binary())
    return b"".join(bytes(memoryview(part)) for part in encode_hfile(keys, values, '{"type":"string"}', **options))


def pairs(raw):
    keys, values = read_hfile(pa.py_buffer(raw))
    return list(zip(keys.to_pylist(), values.to_pylist(), strict=True))


def headers(raw):
    """(position, magic, header fields) of every block up to the trailer."""
    at, found = 0, []
    while at < len(raw) - 4096:
        fields = naive.HEADER.unpack_from(raw, at)
        found.append((at, fields[0], fields[1:]))
        at += 33 + fields[1]
    assert at == len(raw) - 4096
    return found


@pytest.mark.slow("1")
@CODECS
@given(
    entries=st.dictionaries(BYTES, BYTES, max_size=40).map(lambda pairs: sorted(pairs.items())),
    block_size=st.sampled_from([1, 50, 100, 1000, 1 << 20]),
    with_bloom=st.booleans(),
    cuts=st.lists(st.integers(0, 40), max_size=4).map(sorted),
)
def test_what_is_written_is_read_back(codec, entries, block_size, with_bloom, cuts):
    entries = [(key or b"0", value) for key, value in entries if key or not with_bloom]
    entries = sorted(dict(entries).items())
    options = {"codec": codec, "block_size": block_size}
    raw = encoded(entries, **options, bloom=bloom() if with_bloom else None)
    assert pairs(raw) == naive.read(raw, read_trailer(HFileContent.of(raw, "")).load_on_open_offset, codec) == entries
    reader = HFileReader.open(pa.py_buffer(raw), "a.hfile")
    assert reader.lookup(pa.array([key for key, _ in entries], pa.binary()))[1].to_pylist() == [v for _, v in entries]
    assert reader.schema == '{"type":"string"}'

    sink = io.BytesIO()
    with HFileWriter(sink, '{"type":"string"}', bloom=bloom() if with_bloom else None, **options) as writer:
        for first, last in zip([0, *cuts], [*cuts, 40], strict=True):
            part = entries[first:last]
            writer.append(pa.array([key for key, _ in part], pa.binary()), pa.array([v for _, v in part], pa.binary()))
    assert sink.getvalue() == raw
    assert (writer.close(), writer.size, writer.entry_count) == (len(raw), len(raw), len(entries))


@CODECS
def test_blocks_are_cut_before_the_entry_that_would_make_them_too_large(codec):
    entries = [(b"%04d" % n, b"v" * (n % 50)) for n in range(500)] + [(b"9", b"w" * 5000), (b"99", b"")]
    raw = encoded(entries, codec=codec, block_size=1000)
    expected, size = [[]], 0
    for key, value in entries:
        entry = len(key) + len(value) + 21
        if size and size + entry > 1000:
            expected.append([])
            size = 0
        expected[-1].append((key, value))
        size += entry
    trailer = read_trailer(HFileContent.of(raw, ""))
    references = data_blocks(HFileContent.of(raw, ""), trailer)
    # The full key, suffix included: HBase's reader fails without it.
    assert [ref.key for ref in references] == [
        struct.pack(">h", len(block[0][0])) + block[0][0] + naive.SUFFIX for block in expected
    ]
    assert trailer.index_count == len(expected) > 10
    found = [fields for _, magic, fields in headers(raw) if magic == b"DATABLK*"]
    assert [fields[1] for fields in found] == [len(b"".join(naive.entry(*e) for e in block)) for block in expected]


@CODECS
@pytest.mark.parametrize("count", [0, 1, 70_000])
def test_no_block_has_more_checksum_bytes_than_its_shortest_entry(codec, count):
    raw = encoded([(b"%06d" % n, b"") for n in range(count)], codec=codec)
    blocks = headers(raw)
    for _, _, (stored, _, _, checksum_type, interval, with_header) in blocks:
        # What Hudi's own reader takes for checksums at the end of a decompressed payload.
        assert 4 * -(-(stored + 33) // interval) == 4 < 21
        assert (checksum_type, stored + 33 - with_header) == (0, 4)
    kinds = [magic for _, magic, _ in blocks]
    data = [b"DATABLK*"] * {0: 0, 1: 1, 70_000: 2}[count]
    assert kinds == [*data, b"IDXROOT2", b"IDXROOT2", b"FILEINF2"]
    at = -1
    for position, magic, fields in blocks:
        if magic == b"DATABLK*":
            assert fields[2] == at
            at = position


def test_file_info_and_trailer_have_what_hbase_needs():
    raw = encoded([(b"ab", b"12345"), (b"abcd", b"6")])
    info = HFileReader.open(pa.py_buffer(raw), "a").file_info
    assert info == {
        "KEY_VALUE_VERSION": b"\0\0\0\1",
        "MAX_MEMSTORE_TS_KEY": bytes(8),
        "hfile.AVG_KEY_LEN": struct.pack(">i", 3 + 12),
        "hfile.AVG_VALUE_LEN": struct.pack(">i", 3),
        "hfile.CREATE_TIME_TS": bytes(8),
        "hfile.LASTKEY": b"\0\x04abcd" + naive.SUFFIX,
        "schema": b'{"type":"string"}',
    }
    assert "hfile.LASTKEY" not in HFileReader.open(pa.py_buffer(encoded([])), "a").file_info
    assert raw[-4:] == b"\x03\0\0\x03"
    assert b"org.apache.hudi.io.storage.HoodieHBaseKVComparator" in raw[-4096:]


def test_a_bloom_filter_is_stored_with_the_range_of_keys():
    filled = bloom()
    raw = encoded([(b"a", b"1"), (b"b", b"2")], bloom=filled)
    reader = HFileReader.open(pa.py_buffer(raw), "a")
    text = reader.meta("bloomFilter").decode()
    assert text == filled.to_base64()
    stored = BloomFilter.from_base64(text, reader.file_info["bloomFilterTypeCode"].decode())
    assert stored.might_contain(pa.array(["a", "b", "c"])).tolist() == [True, True, False]
    assert (reader.file_info["minRecordKey"], reader.file_info["maxRecordKey"]) == (b"a", b"b")
    empty = HFileReader.open(pa.py_buffer(encoded([], bloom=bloom())), "a")
    assert (empty.file_info["minRecordKey"], empty.file_info["maxRecordKey"]) == (b"", b"")


def test_the_same_names_are_written_as_in_files_by_hudi():
    (by_hudi,) = (raw for name, raw in real_files("hfiles").items() if "no_entry" in name)
    theirs = HFileReader.open(pa.py_buffer(by_hudi), "a")
    ours = HFileReader.open(pa.py_buffer(encoded([], bloom=bloom())), "a")
    assert set(ours.file_info) == set(theirs.file_info)
    for name in set(theirs.file_info) - {"schema"}:
        assert ours.file_info[name] == theirs.file_info[name]


@pytest.mark.parametrize(("keys", "values"), [(pa.string(), pa.binary()), (pa.large_string(), pa.large_binary())])
def test_keys_of_any_text_type_and_slices(keys, values):
    table = pa.table({"k": pa.array(["x", "a", "é", "😀"], keys), "v": pa.array([b"", b"1", b"2", b"3"], values)})
    part = table.slice(1, 2)
    raw = b"".join(map(bytes, map(memoryview, encode_hfile(part["k"].chunk(0), part["v"].chunk(0), ""))))
    assert pairs(raw) == [(b"a", b"1"), ("é".encode(), b"2")]


def test_a_key_may_have_32767_bytes_and_no_more():
    keys = [b"k" * 32_767, b"l"]
    assert pairs(encoded([(key, b"v") for key in keys], block_size=100)) == [(key, b"v") for key in keys]
    with pytest.raises(InvalidDataError, match="at most 32767 bytes; found one of 32768, which begins with 'kkk"):
        encoded([(b"k" * 32_768, b"v")])


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        (["a", "c", "b"], "found 'b' after 'c'"),
        (["a", "b", "b", "a"], "found 'b' after 'b'"),
        # In byte order a supplementary character is above all others; Java's strings have it lower.
        (["😀", "ﬀ"], "found 'ﬀ' after '😀'"),
        (["a", None], "no null keys; found one in row 1 of 2"),
    ],
)
def test_keys_that_do_not_ascend_are_refused_by_the_first(keys, told):
    values = pa.array([b"v"] * len(keys), pa.binary())
    with pytest.raises(InvalidDataError, match=told):
        encode_hfile(pa.array(keys), values, "")


def test_keys_must_ascend_from_one_batch_to_the_next_and_a_refused_batch_leaves_no_trace():
    sink, value = io.BytesIO(), pa.array([b"v"])
    with HFileWriter(sink, "") as writer:
        writer.append(pa.array(["b"]), value)
        for key in ("b", "a"):
            with pytest.raises(InvalidDataError, match=f"found '{key}' after 'b'"):
                writer.append(pa.array([key]), value)
        with pytest.raises(InvalidDataError, match="found 'c' after 'd'"):
            writer.append(pa.array(["d", "c"]), pa.array([b"x", b"y"]))
        writer.append(pa.array([], pa.string()), pa.array([], pa.binary()))
        writer.append(pa.array(["c"]), value)
    assert pairs(sink.getvalue()) == [(b"b", b"v"), (b"c", b"v")]


@pytest.mark.parametrize(
    ("values", "told"), [([b"1", None], "no null values; found one in row 1 of 2"), ([b"1"], "found 1 and 2")]
)
def test_values_that_are_missing_are_refused(values, told):
    with pytest.raises(InvalidDataError, match=told):
        encode_hfile(pa.array(["a", "b"]), pa.array(values, pa.binary()), "")


@pytest.mark.parametrize("options", [{"codec": Codec.ZSTD}, {"block_size": 0}, {"block_size": 2**31}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(ConfigError, match=r"hoodie\.hfile\."):
        encode_hfile(pa.array(["a"]), pa.array([b""]), "", **options)


def test_a_writer_whose_body_fails_writes_no_trailer():
    sink = io.BytesIO()

    def fail():
        with HFileWriter(sink, "") as writer:
            writer.append(pa.array(["a"]), pa.array([b""]))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert sink.getvalue() == b""


def test_parts_stay_as_they_were_given():
    keys = pa.array([f"{n:06d}" for n in range(60_000)])
    values = pa.array(np.arange(60_000).astype("S10").tolist(), pa.binary())
    for codec in (Codec.GZ, Codec.NONE):
        raw = b"".join(bytes(memoryview(part)) for part in encode_hfile(keys, values, "", codec))
        assert pairs(raw) == list(zip([k.encode() for k in keys.to_pylist()], values.to_pylist(), strict=True))
