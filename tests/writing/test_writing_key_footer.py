"""Bloom filter and key range of a base file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.formats.base_file import BaseFileFooter
from hudi_fast.formats.bloom_filter import BloomFilter
from hudi_fast.writing.output_file import KeyFooter
from hudi_fast.writing.write_plan import WritePlan
from tests.support.small_tables import options, plain_rows
from tests.writing.plans import drafted


@pytest.fixture
def plan(tmp_path: Path) -> WritePlan:
    hf.write(plain_rows([0]), tmp_path, options())
    return drafted(tmp_path, plain_rows([0]), options())[0]


def holds(footer: BaseFileFooter, *keys: str) -> list[bool]:
    assert footer.bloom_filter is not None
    bloom = BloomFilter.from_base64(footer.bloom_filter, footer.bloom_type, where="here")
    return [bool(flag) for flag in bloom.might_contain(pa.array(keys))]


def test_a_new_file_has_its_keys_and_their_range(plan: WritePlan) -> None:
    footer = KeyFooter.for_new_file(plan)
    footer.add(pa.array(["b", "a"]))
    footer.add(pa.array([], pa.string()))
    footer.add(pa.array(["c"]))
    made = footer.finish()
    assert (made.min_key, made.max_key) == ("a", "c")
    assert holds(made, "a", "b", "c", "z") == [True, True, True, False]


def test_a_rewritten_file_keeps_the_filter_and_adds_new_keys(plan: WritePlan) -> None:
    old = KeyFooter.for_new_file(plan)
    old.add(pa.array(["b", "deleted"]))
    footer = KeyFooter.for_rewritten_file(plan, old.finish(), "f.parquet")
    footer.carry(pa.chunked_array([["b"]]))
    footer.add(pa.array(["x"]))
    made = footer.finish()
    assert (made.min_key, made.max_key) == ("b", "x")
    assert holds(made, "b", "deleted", "x", "z") == [True, True, True, False]


def test_a_rewritten_file_without_new_keys_has_the_same_filter(plan: WritePlan) -> None:
    old = KeyFooter.for_new_file(plan)
    old.add(pa.array(["b", "deleted"]))
    stored = old.finish()
    footer = KeyFooter.for_rewritten_file(plan, stored, "f.parquet")
    footer.carry(pa.chunked_array([["b"]]))
    footer.add(pa.array([], pa.string()))
    assert footer.finish() == replace(stored, max_key="b")


def test_a_file_without_a_filter_gets_one_of_all_its_keys(plan: WritePlan) -> None:
    footer = KeyFooter.for_rewritten_file(plan, BaseFileFooter(), "f.parquet")
    footer.carry(pa.chunked_array([["b"], ["a"]]))
    assert holds(footer.finish(), "a", "b", "z") == [True, True, False]


def test_without_filters_the_range_is_all_there_is(plan: WritePlan) -> None:
    files = replace(plan.files, bloom=replace(plan.files.bloom, enabled=False))
    footer = KeyFooter.for_new_file(replace(plan, files=files))
    footer.add(pa.array(["a"]))
    assert footer.finish() == BaseFileFooter(min_key="a", max_key="a")


def test_keys_are_ordered_as_java_orders_strings(plan: WritePlan) -> None:
    footer = KeyFooter.for_new_file(plan)
    footer.add(pa.array(["\uffee", "\U00010000"]))
    made = footer.finish()
    assert (made.min_key, made.max_key) == ("\U00010000", "\uffee")
