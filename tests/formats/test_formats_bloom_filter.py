"""Bloom filters: equal to the byte to what Apache Hudi wrote, and to a twin where growth is concerned.

``data/bloom_footers.zip`` holds record keys, in row order, and bloom filters of base files that Apache Hudi 0.15.0
(``h015_cow``) and 1.2.0 wrote.
"""

from __future__ import annotations

import base64
import itertools
import json
import struct
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_fast.errors import ConfigError, CorruptTableError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.formats.bloom_filter import BloomFilter
from tests.naive import bloom as naive
from tests.support.examples import examples

FOOTERS = ["cow_v9_complex_keygen", "h015_cow", "mor_v9_alltypes", "mor_v9_log_compacted"]
TEXTS = st.text(st.one_of(st.characters(max_codepoint=127), st.sampled_from("é日￮😀")), min_size=1, max_size=20)


def footer(name):
    with zipfile.ZipFile(Path(__file__).parent / "data" / "bloom_footers.zip") as archive:
        return json.loads(archive.read(f"{name}.json"))


def small(entries=10, max_entries=25, error_rate=0.01):
    return BloomFilter.create(entries, error_rate, max_entries)


def expected_text(filter_, keys):
    raw = [key.encode() for key in keys]
    return naive.dynamic_text(raw, filter_.bit_count, filter_.hash_count, filter_.entries, filter_.max_entries)


@pytest.mark.parametrize("name", FOOTERS)
def test_rebuilding_a_filter_from_the_keys_gives_hudi_s_bytes(name):
    stored = footer(name)
    built = BloomFilter.create()
    built.add(pa.array(stored["keys"]))
    assert built.type_code == stored["type_code"]
    assert built.to_base64() == stored["filter"]


@pytest.mark.parametrize("name", FOOTERS)
def test_stored_filters_hold_their_keys_and_hardly_others(name):
    stored = footer(name)
    loaded = BloomFilter.from_base64(stored["filter"], stored["type_code"], where="p/file.parquet")
    assert loaded.might_contain(pa.array(stored["keys"])).all()
    assert not loaded.might_contain(pa.array([f"absent-{number}" for number in range(2000)])).any()
    assert loaded.to_base64() == stored["filter"]


def test_the_defaults_have_hudi_s_size():
    filter_ = BloomFilter.create()
    assert (filter_.bit_count, filter_.hash_count, filter_.rows.shape) == (2587966, 30, (1, 323496))
    assert filter_.type_code == "DYNAMIC_V0"


@given(
    keys=st.lists(TEXTS, max_size=90),
    cuts=st.lists(st.integers(0, 90), max_size=3),
    entries=st.integers(1, 30),
    max_entries=st.integers(1, 70),
)
def test_dynamic_filters_grow_and_go_round_as_the_twin_whatever_the_batches(keys, cuts, entries, max_entries):
    filter_ = small(entries, max_entries)
    bounds = [0, *sorted(cuts), len(keys)]
    for begin, end in itertools.pairwise(bounds):
        filter_.add(pa.array(keys[begin:end], pa.string()))
    assert filter_.to_base64() == expected_text(filter_, keys)
    assert filter_.might_contain(pa.array(keys, pa.string())).all()


def test_row_count_and_counter_of_filters_beyond_their_maximum():
    filter_ = BloomFilter.create(100, 1e-3, 250)
    filter_.add(pa.array([f"key-{number}" for number in range(900)]))
    assert (len(filter_.rows), filter_.added) == (3, 700)


def test_simple_filters_are_one_row():
    keys = ["one", "two", "ünï", "😀"]
    filter_ = BloomFilter.create(10, 0.01, kind="SIMPLE")
    filter_.add(pa.array(keys))
    raw = naive.row_text([key.encode() for key in keys], filter_.bit_count, filter_.hash_count)
    text = filter_.to_base64()
    assert base64.b64decode(text) == raw
    loaded = BloomFilter.from_base64(text, None)
    assert (loaded.type_code, loaded.to_base64()) == ("SIMPLE", text)
    assert loaded.might_contain(pa.array(keys)).all()


@settings(max_examples=examples(30))
@given(before=st.lists(TEXTS, max_size=40), after=st.lists(TEXTS, max_size=40))
def test_a_loaded_filter_takes_more_keys(before, after):
    filter_ = small()
    filter_.add(pa.array(before, pa.string()))
    loaded = BloomFilter.from_base64(filter_.to_base64(), "DYNAMIC_V0", max_entries=25)
    loaded.add(pa.array(after, pa.string()))
    assert loaded.might_contain(pa.array(before + after, pa.string())).all()


def test_a_copy_is_independent():
    filter_ = small()
    filter_.add(pa.array([f"key-{number}" for number in range(40)]))
    before = filter_.to_base64()
    other = filter_.copy()
    assert other.to_base64() == before
    other.add(pa.array(["more", "and more"]))
    assert filter_.to_base64() == before
    filter_.add(pa.array(["more", "and more"]))
    assert filter_.to_base64() == other.to_base64()


@pytest.mark.parametrize(
    "wrap",
    [
        lambda keys: pa.array(keys).cast(pa.binary()),
        lambda keys: pa.array(keys, pa.large_string()),
        lambda keys: pa.array(keys).dictionary_encode(),
        lambda keys: pa.array(["before", *keys, "after"]).slice(1, len(keys)),
        lambda keys: pa.chunked_array([keys[:1], [], keys[1:]], pa.string()),
        lambda keys: pa.array(keys).cast(pa.string_view()),
    ],
    ids=["binary", "large", "dictionary", "sliced", "chunked", "view"],
)
def test_every_arrow_layout_of_the_keys_gives_the_same_filter(wrap):
    keys = ["kéy", "b", "a", "b" * 50]
    filter_ = small()
    filter_.add(wrap(keys))
    assert filter_.to_base64() == expected_text(filter_, keys)
    assert filter_.might_contain(wrap([*keys, "absent"])).tolist() == [True] * 4 + [False]


def test_null_and_empty_keys_are_in_no_filter():
    full = BloomFilter.create(10, 0.5, kind="SIMPLE")
    full.rows[:] = 255
    answers = full.might_contain(pa.array(["a", None, "", "b"]))
    assert answers.dtype == np.bool_
    assert answers.tolist() == [True, False, False, True]
    assert full.might_contain(pa.array([], pa.string())).tolist() == []


@pytest.mark.parametrize("bad", [None, ""])
def test_null_and_empty_keys_are_refused_and_nothing_is_added(bad):
    filter_ = small()
    empty = filter_.to_base64()
    with pytest.raises(InvalidDataError, match="null or empty"):
        filter_.add(pa.chunked_array([["fine"], ["fine too", bad]], pa.string()))
    assert filter_.to_base64() == empty


def dynamic(version=-1, hashes=3, kind=1, bits=64, entries=5, added=0, rows=1, body=None):
    row = struct.pack(">iibi", -1, hashes, 1, bits) + bytes(8)
    head = struct.pack(">iibiiii", version, hashes, kind, bits, entries, added, rows)
    return base64.b64encode(head + (row * rows if body is None else body)).decode()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no base64!", "not base64"),
        ("é", "not base64"),
        ("", "ends after 0 bytes"),
        (base64.b64encode(struct.pack(">iibi", -1, 3, 1, 64)).decode(), "ends after 13 bytes"),
        (dynamic(version=-2), "version -2"),
        (dynamic(kind=7), "hashes of type 7"),
        (dynamic(hashes=0), "0 hashes"),
        (dynamic(bits=-5), "-5 bits"),
        (dynamic(entries=0), "0 entries a row"),
        (dynamic(added=-1), "-1 keys"),
        (dynamic(rows=0), "0 rows"),
        (dynamic(rows=2**31 - 1, body=b""), "where its header says"),
        (dynamic(body=bytes(3)), "where its header says"),
        (dynamic(body=struct.pack(">iibi", -1, 4, 1, 64) + bytes(8)), "row 0"),
    ],
)
def test_malformed_filters_are_corrupt(text, told):
    with pytest.raises(CorruptTableError, match=told) as caught:
        BloomFilter.from_base64(text, "DYNAMIC_V0", where="p/file.parquet")
    assert caught.value.path == "p/file.parquet"


@given(raw=st.binary(max_size=60), kind=st.sampled_from([None, "SIMPLE", "DYNAMIC_V0"]))
def test_arbitrary_bytes_are_refused_in_our_own_words(raw, kind):
    try:
        BloomFilter.from_base64(base64.b64encode(raw).decode(), kind)
    except (CorruptTableError, UnsupportedFeatureError):
        return
    assert len(raw) > 13


@pytest.mark.parametrize("text", [dynamic(kind=0), base64.b64encode(struct.pack(">ii", 5, 64) + bytes(8)).decode()])
def test_the_jenkins_hash_is_not_supported(text):
    with pytest.raises(UnsupportedFeatureError, match=r"Jenkins.*p/file"):
        BloomFilter.from_base64(text, "DYNAMIC_V0", where="p/file.parquet")


def test_other_kinds_are_not_supported():
    with pytest.raises(UnsupportedFeatureError, match="CUCKOO"):
        BloomFilter.create(kind="CUCKOO")
    with pytest.raises(UnsupportedFeatureError, match=r"CUCKOO.*p/file"):
        BloomFilter.from_base64(dynamic(), "CUCKOO", where="p/file.parquet")


@pytest.mark.parametrize(
    "options", [{"entries": 0}, {"error_rate": 0.0}, {"error_rate": 1.0}, {"entries": 10**9, "error_rate": 1e-9}]
)
def test_sizes_out_of_range_are_refused(options):
    with pytest.raises(ConfigError, match=r"hoodie\.index\.bloom"):
        BloomFilter.create(**options)
