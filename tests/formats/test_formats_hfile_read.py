"""HFiles: real ones by HBase and by Hudi, every depth of index, damage."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.formats.hfile.reader import Codec, HFileContent, data_blocks, hfile_arrays, read_hfile, read_trailer
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, read_content, scan_log_blocks
from hudi_fast.storage.base import Storage
from tests.formats.format_files import damaged, log_files, real_files
from tests.naive import hfile as naive
from tests.support.examples import examples

REAL = real_files("hfiles")


def pairs(raw):
    keys, values = read_hfile(pa.py_buffer(raw), "a.log", 50)
    assert (keys.type, values.type) == (pa.binary(), pa.binary())
    return list(zip(keys.to_pylist(), values.to_pylist(), strict=True))


def trailer_of(raw):
    return read_trailer(HFileContent.of(raw, "a.hfile"))


def small(codec=1, **options):
    return naive.write([[(b"a", b"1"), (b"b", b"")], [(b"c", b"3")], [(b"d", b"4"), (b"d", b"5")]], codec, **options)


@pytest.mark.parametrize(
    ("part", "count", "levels", "blocks", "codec"),
    [
        ("16KB_NONE_5000", 5000, 1, 18, Codec.NONE),
        ("16KB_GZ_200_20_non_unique", 4200, 1, 16, Codec.GZ),
        ("16KB_GZ_20000_fake_first_key", 20_000, 1, 86, Codec.GZ),
        ("1KB_GZ_10000_large_keys_deep_index", 10_000, 3, 1429, Codec.GZ),
        ("no_entry", 0, 1, 0, Codec.GZ),
    ],
)
def test_files_that_hbase_wrote(part, count, levels, blocks, codec):
    (raw,) = (raw for name, raw in REAL.items() if name.endswith(f"{part}.hfile"))
    trailer, found = trailer_of(raw), pairs(raw)
    assert (trailer.entry_count, trailer.index_levels, trailer.codec) == (count, levels, codec)
    assert len(data_blocks(HFileContent.of(raw, "a.hfile"), trailer)) == blocks
    assert found == naive.read(raw, trailer.load_on_open_offset, trailer.codec)
    assert len(found) == count
    assert [key for key, _ in found] == sorted(key for key, _ in found)
    for key, value in found[:50]:
        number = key.split(b"-")[-2 if key.endswith(b"-abcdefghij") else -1]
        assert value.startswith(b"hudi-value-" + number)


def test_log_blocks_and_base_files_of_a_real_metadata_table(golden):
    folder = golden("h015_cow_record_index").table
    storage, rows = Storage(str(folder)), 0
    for path in log_files(folder):
        relative = str(path.relative_to(folder))
        for block in scan_log_blocks(storage, relative):
            if block.kind == BlockType.HFILE_DATA:
                content = read_content(storage, block)
                keys, values = read_hfile(content, relative, block.content_start)
                trailer = trailer_of(content)
                expected = naive.read(content.to_pybytes(), trailer.load_on_open_offset, trailer.codec)
                assert list(zip(keys.to_pylist(), values.to_pylist(), strict=True)) == expected
                assert "HoodieMetadataRecord" in block.headers[HeaderKey.SCHEMA]
                rows += len(keys)
    assert rows > 100
    base_files = list(folder.rglob("*.hfile"))
    assert base_files
    for path in base_files:
        raw = path.read_bytes()
        assert pairs(raw) == naive.read(raw, trailer_of(raw).load_on_open_offset, trailer_of(raw).codec)


@pytest.mark.parametrize(
    ("codec", "levels"), [(1, 1), (1, 2), (1, 3), (1, 4), (2, 1), (2, 4), (3, 1), (3, 3), (4, 1), (4, 3), (6, 2)]
)
@settings(max_examples=examples(15))
@given(
    keys=st.lists(st.binary(max_size=200), min_size=1, max_size=40),
    per_block=st.integers(1, 5),
    members=st.integers(1, 3),
    data=st.data(),
)
def test_files_with_an_index_of_any_depth(codec, levels, keys, per_block, members, data):
    entries = [(key, data.draw(st.binary(max_size=20))) for key in sorted(keys)]
    blocks = [entries[i : i + per_block] for i in range(0, len(entries), per_block)]
    raw = naive.write(blocks, codec, levels, members=members)
    assert pairs(raw) == entries
    found = list(hfile_arrays(pa.py_buffer(raw)))
    assert [len(part) for part, _ in found] == [len(block) for block in blocks]
    references = data_blocks(HFileContent.of(raw, "a.hfile"), trailer_of(raw))
    assert [ref.key[2:-10] for ref in references] == [block[0][0] for block in blocks]


def test_a_large_key_has_a_long_length_in_the_index():
    key = b"k" * 32_000
    assert pairs(naive.write([[(key, b"v")], [(key + b"2", b"w")]])) == [(key, b"v"), (key + b"2", b"w")]


def test_a_view_into_a_larger_buffer_is_read_in_place():
    raw = small(codec=2)
    inside = pa.py_buffer(b"before" + raw + b"after").slice(6, len(raw))
    assert read_hfile(inside)[0].to_pylist() == [b"a", b"b", b"c", b"d", b"d"]


def patched(raw, at, number, form=">i"):
    return raw[:at] + struct.pack(form, number) + raw[at + struct.calcsize(form) :]


def trailer_with(**numbers):
    """A small file whose trailer says other numbers: by field name."""
    fields = {"root": 2, "index_count": 5, "entries": 7, "levels": 8, "codec": 12}
    raw = small()
    told = {2: trailer_of(raw).load_on_open_offset, 5: 3, 7: 5, 8: 1, 12: 1}
    told |= {fields[name]: value % 2**64 for name, value in numbers.items()}
    message = b"".join(naive.varint(field << 3) + naive.varint(value) for field, value in told.items())
    return raw[:-4096] + (b'TRABLK"$' + naive.varint(len(message)) + message).ljust(4092, b"\0") + b"\x03\0\0\x03"


@pytest.mark.parametrize(
    ("raw", "kind", "told"),
    [
        (b"", CorruptTableError, "ends with a trailer"),
        (bytes(5000), CorruptTableError, r"ends with a trailer.*byte 954\]"),
        (patched(small(), len(small()) - 4, 0x03000002), UnsupportedFeatureError, "version 3, found 2"),
        (trailer_with(codec=0), UnsupportedFeatureError, "compressed with LZO"),
        (trailer_with(codec=5), UnsupportedFeatureError, "compressed with BZIP2"),
        (trailer_with(codec=99), CorruptTableError, "found 99"),
        (trailer_with(codec=2), CorruptTableError, "Expected .* bytes in an HFile block"),
        (trailer_with(levels=0), CorruptTableError, "index_levels=0"),
        (trailer_with(levels=2**62), CorruptTableError, "trailer of an HFile"),
        (trailer_with(levels=2), CorruptTableError, r"IDXLEAF2.*found b'DATABLK\*'"),
        (trailer_with(root=2**40), CorruptTableError, "trailer of an HFile"),
        (trailer_with(root=-1), CorruptTableError, "trailer of an HFile"),
        (trailer_with(root=0), CorruptTableError, "IDXROOT2"),
        (trailer_with(index_count=2**40), CorruptTableError, "found 3"),
        (trailer_with(index_count=-5), CorruptTableError, "counts of index"),
        (trailer_with(index_count=2), CorruptTableError, "Expected 5 entries in an HFile, found 3"),
        (trailer_with(entries=2**60), CorruptTableError, "found 5"),
        (patched(small(), 0, 0x41414141), CorruptTableError, r"DATABLK\*.*found b'AAAABLK\*'.*byte 50\]"),
        (patched(small(), 8, 2**31 - 1), CorruptTableError, "found 2147483647 with"),
        (patched(small(), 8, -1), CorruptTableError, "found -1 with"),
        (patched(small(), 12, 2**31 - 1), CorruptTableError, "bytes can hold, found 2147483647 bytes"),
        (patched(small(), 12, 3), CorruptTableError, "Expected 3 bytes in an HFile block, found 4"),
        (patched(small(), 29, 10), CorruptTableError, "with 10 of data"),
        (patched(small(), 33, 0), CorruptTableError, "cannot be decompressed"),
        (patched(small(2), 33, 0), CorruptTableError, "Expected an entry at byte 0"),
    ],
)
def test_damaged_files_are_refused_by_what_is_wrong(raw, kind, told):
    with pytest.raises(kind, match=told) as caught:
        pairs(raw)
    assert "file a.log" in str(caught.value)


@pytest.mark.parametrize("levels", [2, 3])
def test_an_index_that_leads_round_in_circles_is_refused(levels):
    raw = bytearray(small(codec=2, levels=levels))
    leaf = raw.index(b"IDXLEAF2")
    first_item = leaf + 33 + 4 * 4
    raw[first_item + 22 + 3 : first_item + 22 + 3 + 8] = bytes(8)  # the second block is the first again
    trailer = trailer_of(bytes(raw))
    with pytest.raises(CorruptTableError, match=r"ascending|inside|DATABLK|IDX"):
        data_blocks(HFileContent.of(bytes(raw), "a.log"), trailer)


@pytest.mark.parametrize("part", ["no_entry", "non_unique", "1", "2", "3"])
@given(data=st.data())
def test_damaged_files_give_entries_or_one_of_two_errors(part, data):
    made = {"1": small(2), "2": small(2, levels=2), "3": small(1, levels=3)}
    raw = made.get(part) or next(raw for name, raw in REAL.items() if part in name)
    body, trailer = raw[:-4096], raw[-4096:]
    raw = data.draw(damaged(body)) + data.draw(damaged(trailer[:120])) + trailer[120:]
    raw = raw[:-4096] + trailer if data.draw(st.booleans()) else raw
    try:
        found = pairs(raw)
    except (CorruptTableError, UnsupportedFeatureError):
        return
    assert len(found) == trailer_of(raw).entry_count
