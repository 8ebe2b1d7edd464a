"""Ranged reads of HFiles: look-ups by key and by prefix, what is read for them, the cache, damage."""

from __future__ import annotations

import io
import random
import threading
import zipfile

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.formats.hfile.reader import BlockCache, HFileContent, HFileReader, read_trailer
from tests.formats.format_files import damaged, real_files
from tests.naive import hfile as naive
from tests.naive.hfile_search import java_key
from tests.support.golden import TABLES

REAL = real_files("hfiles")
TEXT = st.lists(st.sampled_from([b"a", b"b", b"ab", b"\0", b"\xc3\xa9"]), max_size=6).map(b"".join)


class WatchedFile(io.BytesIO):
    """A file that notes what is read of it: (position, bytes)."""

    def __init__(self, raw: bytes) -> None:
        super().__init__(raw)
        self.reads: list[tuple[int, int]] = []

    def read(self, size=-1):
        self.reads.append((self.tell(), size))
        return super().read(size)


def opened(raw, cache=None, **where):
    return HFileReader.open(pa.py_buffer(raw), "a.hfile", cache=cache, **where)


def watched(raw, cache=None):
    file = WatchedFile(raw)
    reader = HFileReader.open(pa.PythonFile(file, "r"), "a.hfile", cache=cache)
    opening, file.reads = file.reads, []
    return reader, file, opening


def entries_in(reader):
    return [pair for keys, values in reader.scan() for pair in zip(keys.to_pylist(), values.to_pylist(), strict=True)]


def looked_up(reader, keys):
    positions, values = reader.lookup(pa.array(keys, pa.binary()))
    assert values.type == pa.binary()
    return list(zip(positions.tolist(), values.to_pylist(), strict=True))


def with_prefix(reader, prefixes):
    keys, values = reader.prefix(pa.array(prefixes, pa.binary()))
    return list(zip(keys.to_pylist(), values.to_pylist(), strict=True))


def wide(blocks=40, per_block=10, size=20_000, codec=2, levels=1):
    """A file whose blocks are too large to be read with their neighbours for nothing."""
    entries = [(b"key-%05d" % number, b"%05d" % number * (size // 5)) for number in range(blocks * per_block)]
    parts = [entries[i : i + per_block] for i in range(0, len(entries), per_block)]
    return naive.write(parts, codec, levels, fan_out=8), entries


# ---- real files


@pytest.mark.slow(
    "hudi_1_0_hbase_2_4_13_1KB_GZ_10000_large_keys_deep_index.hfile",
    "hudi_1_0_hbase_2_4_13_16KB_GZ_20000_fake_first_key.hfile",
)
@pytest.mark.parametrize("name", REAL)
def test_every_key_of_a_real_file_is_found_and_no_other(name):
    reader, trailer = opened(REAL[name]), read_trailer(HFileContent.of(REAL[name], name))
    expected = naive.read(REAL[name], trailer.load_on_open_offset, trailer.codec)
    by_key: dict[bytes, list[bytes]] = {}
    for key, value in expected:
        by_key.setdefault(key, []).append(value)
    keys = [*by_key, *(key + b"x" for key in by_key), *(key[:-1] for key in by_key), b"", b"zzz"]
    random.Random(1).shuffle(keys)
    assert looked_up(reader, keys) == [(i, value) for i, key in enumerate(keys) for value in by_key.get(key, [])]
    prefixes = {key[: random.Random(key).randint(1, len(key))] for key in list(by_key)[::97]}
    found = sorted(pair for pair in expected if pair[0].startswith(tuple(prefixes)))
    assert sorted(with_prefix(reader, list(prefixes))) == found


def test_base_files_of_all_real_metadata_tables():
    files = 0
    for archive in sorted(TABLES.glob("*.zip")):
        with zipfile.ZipFile(archive) as opened_archive:
            names = [name for name in opened_archive.namelist() if name.endswith(".hfile")]
            for name in names:
                raw = opened_archive.read(name)
                trailer = read_trailer(HFileContent.of(raw, name))
                expected = naive.read(raw, trailer.load_on_open_offset, trailer.codec)
                reader = opened(raw)
                assert entries_in(reader) == expected
                assert [value for _, value in looked_up(reader, [key for key, _ in expected])] == [
                    v for _, v in expected
                ]
                assert reader.file_info["minRecordKey"] == expected[0][0]
                assert reader.file_info["maxRecordKey"] == expected[-1][0]
                assert "HoodieMetadataRecord" in reader.schema
                assert reader.meta("bloomFilter").startswith(b"/////w")
                assert reader.meta("other") is None
                files += 1
    assert files > 100


def test_a_key_with_several_entries_has_them_all_in_the_order_of_the_file():
    (raw,) = (raw for name, raw in REAL.items() if "non_unique" in name)
    expected = naive.read(raw, read_trailer(HFileContent.of(raw, "")).load_on_open_offset, 1)
    key = expected[30][0]
    values = [value for other, value in expected if other == key]
    assert len(values) == 21
    assert looked_up(opened(raw), [b"no", key]) == [(1, value) for value in values]
    assert with_prefix(opened(raw), [key]) == [(key, value) for value in values]


def test_a_file_that_hudi_sorted_as_java_compares_strings():
    raw = REAL["hudi_1_2_java_order.hfile"]
    expected = naive.read(raw, read_trailer(HFileContent.of(raw, "")).load_on_open_offset, 1)
    keys = [key for key, _ in expected]
    assert keys == sorted(keys, key=java_key) != sorted(keys)
    reader = opened(raw)
    assert sorted(entries_in(reader)) == sorted(expected)
    assert looked_up(reader, keys) == [(i, value) for i, (_, value) in enumerate(expected)]
    for prefix in ("a", "日", "ﬀ", "\ue001", "😀", "a😀", "ﬀ😀", "😀𐍈"):
        wanted = sorted(pair for pair in expected if pair[0].startswith(prefix.encode()))
        assert with_prefix(reader, [prefix.encode()]) == wanted


# ---- what look-ups find


@pytest.mark.slow("1")
@pytest.mark.parametrize("codec", [1, 2])
@given(
    keys=st.sets(TEXT, min_size=1, max_size=40),
    asked=st.lists(st.none() | TEXT, max_size=20),
    per_block=st.integers(1, 9),
    levels=st.integers(1, 3),
)
def test_keys_and_prefixes_in_any_order(codec, keys, asked, per_block, levels):
    entries = [(key, b"v" + key) for key in sorted(keys)]
    raw = naive.write([entries[i : i + per_block] for i in range(0, len(entries), per_block)], codec, levels)
    for reader in (opened(raw), opened(raw, BlockCache())):
        for _ in range(2):
            assert looked_up(reader, asked) == [(i, b"v" + key) for i, key in enumerate(asked) if key in keys]
            prefixes = tuple(prefix for prefix in asked if prefix is not None)
            assert with_prefix(reader, asked) == [pair for pair in entries if pair[0].startswith(prefixes)]


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_keys_of_any_text_type(kind):
    raw = naive.write([[(b"a", b"1"), (b"b", b"2")], [(b"c", b"3")]])
    keys = pa.array(["b", None, "c", "x", "b"]).cast(pa.string()).cast(kind).slice(1)
    positions, values = opened(raw).lookup(keys)
    assert (positions.tolist(), values.to_pylist()) == ([1, 3], [b"3", b"2"])
    prefixes = pa.array(["b", "", "c"]).cast(kind).slice(2)
    assert opened(raw).prefix(prefixes)[0].to_pylist() == [b"c"]


def test_no_keys_and_no_entries():
    (empty,) = (raw for name, raw in REAL.items() if "no_entry" in name)
    for reader in (opened(empty), opened(naive.write([]))):
        assert looked_up(reader, [b"a"]) == with_prefix(reader, [b""]) == entries_in(reader) == []
        assert reader.entry_count == 0
    full = opened(naive.write([[(b"a", b"1")]]))
    assert looked_up(full, []) == looked_up(full, [None]) == with_prefix(full, []) == with_prefix(full, [None]) == []


def test_file_info_says_what_the_writer_left():
    reader = opened(naive.write([[(b"a", b"1")]]))
    assert dict(reader.file_info) == {"schema": b"text"}
    assert (reader.schema, reader.entry_count, reader.path) == ("text", 1, "a.hfile")


# ---- what is read for it


def test_a_small_file_is_read_once():
    reader, file, opening = watched(naive.write([[(b"a", b"1")], [(b"b", b"2")]]))
    assert len(opening) == 1
    assert looked_up(reader, [b"b", b"a"]) == [(0, b"2"), (1, b"1")]
    assert len(entries_in(reader)) == 2
    assert file.reads == []


@pytest.mark.parametrize("levels", [1, 3])
def test_only_blocks_that_can_hold_the_keys_are_read(levels):
    raw, entries = wide(levels=levels)
    reader, file, opening = watched(raw)
    assert sum(size for _, size in opening) < 300_000 < len(raw) / 10
    looked_up(reader, [b"nothing"])  # the lower levels of the index and the last block
    file.reads.clear()
    assert looked_up(reader, [entries[205][0], entries[3][0], entries[204][0]]) == [
        (0, entries[205][1]),
        (1, entries[3][1]),
        (2, entries[204][1]),
    ]
    assert [size for _, size in file.reads] == [pytest.approx(200_000, rel=0.1)] * 2
    file.reads.clear()
    assert with_prefix(reader, [b"key-0020", b"key-00200"]) == entries[200:210]
    assert sum(size for _, size in file.reads) < 500_000


def test_neighbours_are_one_request_and_a_scan_is_a_few():
    raw, entries = wide()
    reader, file, _ = watched(raw)
    assert len(looked_up(reader, [key for key, _ in entries[100:150]])) == 50
    assert len(file.reads) == 1
    file.reads.clear()
    assert entries_in(reader) == entries
    assert len(file.reads) == 1
    assert sum(size for _, size in file.reads) < len(raw)


def test_keys_beyond_the_last_read_nothing():
    raw = next(raw for name, raw in REAL.items() if "16KB_NONE_5000" in name)
    reader, file, _ = watched(raw)
    last = entries_in(reader)[-1][0]
    file.reads.clear()
    assert looked_up(reader, [last + b"0", b"zzz", b"a"]) == []
    assert with_prefix(reader, [last + b"0", b"zzz"]) == []
    assert file.reads == []


def test_blocks_in_the_cache_are_not_read_again():
    raw, entries = wide()
    cache = BlockCache()
    reader, file, _ = watched(raw, cache)
    for _ in range(3):
        assert looked_up(reader, [entries[7][0]]) == [(0, entries[7][1])]
    assert len(file.reads) == len(cache) == 1
    other, other_file, _ = watched(raw, cache)
    assert looked_up(other, [entries[8][0], entries[11][0]]) == [(0, entries[8][1]), (1, entries[11][1])]
    assert len(other_file.reads) == 1
    assert len(cache) == 2


def test_a_scan_uses_the_cache_but_leaves_it_alone():
    raw, entries = wide()
    cache = BlockCache()
    reader, file, _ = watched(raw, cache)
    looked_up(reader, [entries[0][0]])
    file.reads.clear()
    assert entries_in(reader) == entries
    assert min(at for at, _ in file.reads) > 100_000
    assert len(cache) == 1


def test_the_cache_is_bounded_and_the_block_used_longest_ago_goes():
    raw, entries = wide(blocks=6)
    one = BlockCache()
    looked_up(opened(raw, one), [entries[0][0]])
    cache = BlockCache(3 * one.nbytes)
    reader, file, _ = watched(raw, cache)
    for block in (0, 1, 2, 0, 3):
        looked_up(reader, [entries[10 * block][0]])
    assert len(cache) == 3
    assert cache.nbytes <= cache.max_bytes
    file.reads.clear()
    looked_up(reader, [entries[0][0], entries[20][0], entries[30][0]])
    assert file.reads == []
    looked_up(reader, [entries[10][0]])
    assert len(file.reads) == 1
    tiny = BlockCache(10)
    assert len(looked_up(opened(raw, tiny), [key for key, _ in entries])) == len(entries)
    assert (len(tiny), tiny.nbytes) == (0, 0)


def test_hfiles_inside_one_file_do_not_mix_in_the_cache():
    first, second = naive.write([[(b"a", b"1")]]), naive.write([[(b"a", b"2")]])
    source, cache = pa.py_buffer(b"head" + first + second + b"tail"), BlockCache()
    one = HFileReader.open(source, "a.log", 4, len(first), cache)
    two = HFileReader.open(source, "a.log", 4 + len(first), len(second), cache)
    assert [looked_up(reader, [b"a"]) for reader in (one, two, one)] == [[(0, b"1")], [(0, b"2")], [(0, b"1")]]
    assert len(cache) == 2


def test_threads_share_a_reader_and_a_cache():
    raw, entries = wide(blocks=20, codec=1, size=2000)
    cache = BlockCache(100_000)  # smaller than the file: blocks come and go
    reader, _, _ = watched(raw, cache)
    wrong: list[object] = []

    def work(seed):
        dice = random.Random(seed)
        for _ in range(30):
            rows = dice.sample(range(len(entries)), 20)
            found = looked_up(reader, [entries[row][0] for row in rows])
            if found != [(i, entries[row][1]) for i, row in enumerate(rows)]:
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert cache.nbytes <= cache.max_bytes


def test_a_closed_reader_refuses_and_leaves_the_source_open(tmp_path):
    path = tmp_path / "a.hfile"
    path.write_bytes(naive.write([[(b"a", b"1")]]))
    with pa.OSFile(str(path)) as source:
        with HFileReader.open(source, "a.hfile") as reader:
            assert looked_up(reader, [b"a"]) == [(0, b"1")]
        assert not source.closed
        with pytest.raises(ValueError, match=r"a\.hfile is closed"):
            looked_up(reader, [b"a"])


# ---- damage


def test_a_source_that_ends_early_is_refused():
    raw = naive.write([[(b"a", b"1")]])
    with pytest.raises(CorruptTableError, match=r"Expected 9999 bytes of an HFile, found .*a\.hfile, byte 7\]"):
        opened(b"before " + raw, offset=7, length=9999)
    with pytest.raises(CorruptTableError):
        opened(raw, offset=len(raw) + 1)


def test_a_block_that_ends_early_is_refused():
    raw, entries = wide()
    file = WatchedFile(raw)
    reader = HFileReader.open(pa.PythonFile(file, "r"), "a.hfile")
    file.truncate(100_000)
    with pytest.raises(CorruptTableError, match="found 100000"):
        looked_up(reader, [entries[0][0]])


@pytest.mark.parametrize(
    ("blocks", "told"),
    [
        ([[(b"a", b""), (b"c", b"")], [(b"b", b"")]], "HFile block"),
        ([[(b"b", b""), (b"a", b"")]], "HFile block"),
        ([[(b"b", b"")], [(b"a", b"")]], "HFile's index"),
        ([[(b"b", b""), (b"\xf0\x9f\x98\x80", b""), (b"a", b"")]], "HFile block"),
    ],
)
def test_keys_out_of_order_are_refused(blocks, told):
    reader = opened(naive.write(blocks))
    with pytest.raises(CorruptTableError, match=f"Expected ascending keys in an {told}"):
        looked_up(reader, [b"a", b"b", b"c"])
    with pytest.raises(CorruptTableError, match="ascending keys"):
        entries_in(reader)


def test_counts_that_contradict_each_other_are_refused():
    raw = naive.write([[(b"a", b"1")]])
    told = raw.replace(b"\x28\x01\x30\x00\x38\x01", b"\x28\x01\x30\x00\x38\x00")
    assert told != raw
    with pytest.raises(CorruptTableError, match="Expected data blocks for 0 entries, found 1"):
        opened(told)


@pytest.mark.parametrize("part", ["schema", "PBUF"])
def test_a_damaged_file_info_is_refused(part):
    raw = naive.write([[(b"a", b"1")]], codec=2)
    at = raw.index(part.encode())
    with pytest.raises(CorruptTableError, match=r"names and values in the file info.*byte"):
        opened(raw[: at - 1] + b"\xff" + raw[at:] if part == "schema" else raw.replace(b"PBUF", b"PBUG"))


@pytest.mark.parametrize("codec", [1, 2])
@pytest.mark.parametrize("levels", [1, 3])
@given(data=st.data())
def test_damaged_files_never_answer_what_is_not_in_them(codec, levels, data):
    entries = [(b"key-%03d" % n, b"value-%03d" % n) for n in range(24)]
    raw = naive.write([entries[i : i + 4] for i in range(0, 24, 4)], codec, levels)
    body, trailer = raw[:-4096], raw[-4096:]
    raw = data.draw(damaged(body)) + trailer
    keys = [key for key, _ in entries]
    try:
        reader = opened(raw, BlockCache())
        found, begun = looked_up(reader, keys), with_prefix(reader, [b"key-00", b"key-02"])
        scanned = entries_in(reader)
    except (CorruptTableError, UnsupportedFeatureError):
        return
    assert {(keys[i], value) for i, value in found} <= set(scanned)
    assert set(begun) <= set(scanned)
    if codec == 1 and levels == 1 and scanned == entries:
        assert len(found) == len(keys)
