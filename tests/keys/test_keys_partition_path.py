"""Escaping and splitting of partition paths; expected texts printed by Apache Hudi 1.2.0."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.config.table_config import TableConfig
from hudi_fast.keys.partition_path import (
    decode,
    encode,
    hive_part,
    join,
    partition_values,
    path_fault,
    stored_values,
)
from tests.naive import key_text as naive

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@pytest.mark.parametrize(
    ("value", "escaped"),
    [
        ("a b/0", "a b%2F0"),
        ("x\x7fy", "x%7Fy"),
        ("~!@$&()_+-`|;,.<>", "~!@$&()_+-`|;,.<>"),
        ("%41", "%2541"),
        ("\t", "%09"),
        ("é/日", "é%2F日"),
        ("\"#%'*/:=?\\{[]^", "%22%23%25%27%2A%2F%3A%3D%3F%5C%7B%5B%5D%5E"),
    ],
)
def test_escapes_what_hive_escapes(value, escaped):
    assert encode(value) == escaped
    assert decode(escaped) == value


@given(TEXT)
def test_decoding_undoes_encoding(value):
    assert encode(value) == naive.escape(value)
    assert decode(encode(value)) == value


def test_malformed_escapes_stay():
    assert decode("50%") == "50%"
    assert decode("%4") == "%4"
    assert decode("%zz%2f") == "%zz/"


def test_values_come_back_from_a_hive_style_path():
    assert partition_values("part=p2/name=a b%2F0", ["part", "name"], True, True) == {"part": "p2", "name": "a b/0"}
    assert partition_values("part=p2/name=a=b", ["part", "name"], True, False) == {"part": "p2", "name": "a=b"}


def test_the_default_partition_stands_for_null():
    assert partition_values("__HIVE_DEFAULT_PARTITION__", ["a"], False, False) == {"a": None}
    assert partition_values("a=default/b=default", ["a", "b"], True, True, "default") == {"a": None, "b": None}


@pytest.mark.parametrize(
    ("path", "fields", "hive_style"),
    [
        ("2024/01/02", ["day"], False),
        ("p1", ["a", "b"], False),
        ("", ["a"], False),
        ("p1", [], False),
        ("p1", ["a"], True),
        ("b=1", ["a"], True),
    ],
)
def test_paths_that_do_not_fit_the_fields_tell_nothing(path, fields, hive_style):
    assert partition_values(path, fields, hive_style, True) is None


def test_a_table_without_partitions_has_no_values():
    assert partition_values("", [], False, False) == {}


@given(st.lists(TEXT.filter(bool), min_size=1, max_size=3), st.booleans())
def test_values_survive_the_path(values, hive_style):
    fields = [f"f{index}" for index in range(len(values))]
    parts = [encode(value) for value in values]
    path = join(hive_part(*pair) for pair in zip(fields, parts, strict=True)) if hive_style else join(parts)
    assert path == naive.partition_path(fields, values, hive_style, True)
    assert partition_values(path, fields, hive_style, True) == dict(zip(fields, values, strict=True))


@pytest.mark.parametrize(
    "path", ["..", "a/../b", ".", "a/.", "/etc", "/", "a//b", "a/", ".hoodie", ".hoodie/metadata", "a\0b"]
)
def test_paths_that_leave_the_table_or_change_on_disk_are_faulty(path):
    assert path_fault(path) is not None


@pytest.mark.parametrize("path", ["", "a", "a/b", "x=..", "...", "a..b", ".hidden", "a/.hoodie", "é b"])
def test_ordinary_paths_have_no_fault(path):
    assert path_fault(path) is None


@pytest.mark.parametrize(
    ("version", "style", "path", "expected"),
    [
        (9, "true", "city=default", {"city": "default"}),
        (5, "false", "default", {"city": "default"}),
        (4, "true", "city=default", {"city": None}),
        (4, "false", "city=rome", {"city": "city=rome"}),
        (2, None, "city=rome", {"city": "rome"}),
        (2, None, "rome", {"city": "rome"}),
        (2, None, "default", {"city": None}),
    ],
)
def test_values_in_a_path_depend_on_the_version_of_the_table(
    version: int, style: str | None, path: str, expected: dict[str, str | None]
) -> None:
    props = {"hoodie.table.name": "t", "hoodie.table.version": str(version), "hoodie.table.partition.fields": "city"}
    if style is not None:
        props["hoodie.datasource.write.hive_style_partitioning"] = style
    assert stored_values(path, TableConfig.from_properties(props, "t")) == expected
