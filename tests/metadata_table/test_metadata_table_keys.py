"""Texts of keys as real Hudi stored them."""

from __future__ import annotations

import base64
import hashlib

import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import CorruptTableError
from hudi_fast.metadata_table import keys
from tests.naive import secondary_keys as naive

TEXTS = st.text(st.sampled_from("ab\\$\0é😀"), max_size=12)


def short(text):
    return base64.b64encode(xxhash.xxh64_digest(text.encode(), 0xFFFFFFFFDABADABA)).decode()


def long(text):
    return base64.b64encode(hashlib.md5(text.encode()).digest()).decode()


def test_columns_and_partitions_are_the_hashes_that_hudi_stored():
    assert keys.column_hash("d") == "4/hcUlKiZ3Y="
    assert keys.partition_hash("p0") == "Z+KNMU8CLlo="
    assert keys.partition_hash("") == keys.partition_hash(".") == short(".")
    assert keys.file_hash(["65123310-d751-4175-b910-d500445973a1-0_0-16-19_20261121054535015.parquet"]) == [
        "ksLsjPt/Jp8GggSEpJympQ=="
    ]


def test_keys_are_hashes_one_after_another():
    assert keys.column_stats_key("name", "p0", "f") == short("name") + short("p0") + long("f")
    assert keys.partition_stats_key("name", "") == short("name") + short(".")
    assert keys.bloom_key("p0", "f") == short("p0") + long("f")
    assert keys.expression_partition_key("ts", "p2") == "oyTjviKHuhI=2CMHrhWVE9w=iBsANRlvpYk="
    assert keys.expression_partition_prefix("ts") == "oyTjviKHuhI=2CMHrhWVE9w="


@given(rows=st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["", "p/1"]), st.text(max_size=5)), max_size=9))
def test_many_keys_are_those_of_one_at_a_time(rows):
    columns = [pa.array([row[i] for row in rows], pa.string()) for i in range(3)]
    expected = [keys.column_stats_key(*row) for row in rows]
    assert keys.column_stats_keys(*columns).to_pylist() == expected
    assert keys.column_stats_keys(*(each.to_pylist() for each in columns)).to_pylist() == expected


@pytest.mark.parametrize(
    ("value", "key", "text"),
    [("c$1", "k$1", "c\\$1$k\\$1"), (None, "k3", "\0$k3"), ("", "k4", "$k4"), ("b", "k", "b$k")],
)
def test_secondary_keys_are_those_that_hudi_stored(value, key, text):
    made = keys.secondary_keys(pa.array([value], pa.string()), pa.array([key]))
    assert made.to_pylist() == [text]
    values, record_keys = keys.split_secondary_keys(made)
    assert (values.to_pylist(), record_keys.to_pylist()) == ([value], [key])
    assert text.startswith(keys.secondary_prefix(value))


@given(rows=st.lists(st.tuples(st.none() | TEXTS, TEXTS), max_size=12), skipped=st.integers(0, 3))
def test_secondary_keys_of_slices_come_back(rows, skipped):
    values = pa.array([value for value, _ in rows], pa.string()).slice(skipped)
    record_keys = pa.array([key for _, key in rows], pa.string()).slice(skipped)
    made = keys.secondary_keys(values, record_keys)
    made.validate(full=True)
    assert made.to_pylist() == [naive.joined(*row) for row in rows[skipped:]]
    for stored in (made, made.cast(pa.binary()), pa.concat_arrays([pa.array(["x$"]), made]).slice(1)):
        found = keys.split_secondary_keys(stored)
        assert [each.to_pylist() for each in found] == [values.to_pylist(), record_keys.to_pylist()]
        for each in found:
            each.validate(full=True)
        routed = keys.secondary_routing(stored)
        assert routed.to_pylist() == [keys.secondary_prefix(value) for value in values.to_pylist()]
        routed.validate(full=True)


def test_keys_that_are_not_secondary_keys_are_told():
    for wrong in ("plain", "esc\\$aped", ""):
        with pytest.raises(CorruptTableError, match="value\\$record key"):
            keys.split_secondary_keys(pa.array(["a$b", wrong]))
        with pytest.raises(CorruptTableError, match="value\\$record key"):
            keys.secondary_routing(pa.array([wrong]))
    with pytest.raises(ValueError, match="a record key for each value"):
        keys.secondary_keys(pa.array(["a"]), pa.array([None], pa.string()))
