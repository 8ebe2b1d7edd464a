"""Versions of records are folded as one would by hand, record by record."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.metadata_table.fold import Layer, fold
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.records import (
    BLOOM,
    COLUMN_STATS,
    FILES,
    RECORD_INDEX,
    RECORD_SCHEMA,
    SECONDARY,
    encode_records,
)

Row = dict[str, Any]
Version = dict[str, list[Row] | None]
"""What one file holds: key to rows, None for a delete."""

SCHEMAS = {
    PartitionKind.FILES: FILES,
    PartitionKind.COLUMN_STATS: COLUMN_STATS,
    PartitionKind.PARTITION_STATS: COLUMN_STATS,
    PartitionKind.BLOOM_FILTERS: BLOOM,
    PartitionKind.RECORD_INDEX: RECORD_INDEX,
    PartitionKind.SECONDARY_INDEX: SECONDARY,
}


def layers_of(kind: PartitionKind, versions: list[Version], empty_values: bool = False) -> list[Layer]:
    """Each version as a file would hold it: a layer of records, then one of deletes (or deletes as empty values)."""
    layers = []
    for version in versions:
        rows = [row for one in version.values() for row in one or ()]
        gone = [key for key, one in version.items() if one is None]
        keys, values = pa.array([], pa.string()), pa.array([], pa.binary())
        if rows:
            keys, values = encode_records(kind, pa.Table.from_pylist(rows, SCHEMAS[kind]), RECORD_SCHEMA)
        if empty_values and gone:
            keys = pa.concat_arrays([keys, pa.array(gone)])
            values = pa.concat_arrays([values, pa.array([b""] * len(gone))])
        layers.append(Layer(keys, values, RECORD_SCHEMA, "file"))
        if gone and not empty_values:
            layers.append(Layer(pa.array(gone), None, "", "file"))
    return layers


def folded(kind: PartitionKind, versions: list[Version], empty_values: bool = False) -> list[Row]:
    return list(fold(kind, layers_of(kind, versions, empty_values)).to_pylist())


# ---- the newest stays

locations = st.builds(
    lambda file, ms: {"partition": "p", "file_id": f"f{file}", "instant_ms": ms, "position": None},
    st.integers(0, 9),
    st.integers(0, 10**12),
)
keys = st.sampled_from(["a", "b", "é", "key 4", ""])
histories = st.lists(st.dictionaries(keys, st.none() | locations, max_size=5), max_size=5)


@given(histories, st.booleans())
def test_of_locations_the_newest_stays_unless_it_was_deleted(history, empty_values):
    wanted: dict[str, Row] = {}
    for version in history:
        for key, row in version.items():
            wanted.pop(key, None)
            if row is not None:
                wanted[key] = {"key": key, **row}
    versions = [{key: None if row is None else [{"key": key, **row}] for key, row in one.items()} for one in history]
    found = folded(PartitionKind.RECORD_INDEX, versions, empty_values)
    assert sorted(found, key=lambda row: row["key"]) == [wanted[key] for key in sorted(wanted)]


def test_records_that_say_that_there_is_nothing_go():
    gone = {"key": "a$k", "deleted": True}
    there = {"key": "b$k", "deleted": False}
    assert folded(PartitionKind.SECONDARY_INDEX, [{"a$k": [gone], "b$k": [there]}]) == [there]
    bloom = {"key": "x", "kind": "", "timestamp": "1", "filter": b"", "deleted": True}
    assert folded(PartitionKind.BLOOM_FILTERS, [{"x": [{**bloom, "deleted": False}]}, {"x": [bloom]}]) == []


# ---- files

entries = st.tuples(st.integers(1, 50), st.booleans())
maps = st.dictionaries(st.sampled_from(["f1", "f2", "f3"]), entries, max_size=3)
folders = st.lists(st.dictionaries(st.sampled_from(["p", "q"]), st.none() | maps, max_size=2), max_size=5)


def files_by_hand(history: list[dict[str, dict[str, tuple[int, bool]] | None]]) -> dict[tuple[str, str], int]:
    state: dict[str, dict[str, tuple[int, bool]]] = {}
    for version in history:
        for key, news in version.items():
            if news is None:
                state.pop(key, None)
                continue
            known = state.setdefault(key, {})
            for name, (size, deleted) in news.items():
                old = known.get(name)
                if not deleted:
                    known[name] = (max(size, old[0] if old else 0), False)
                elif old is None or old[1]:
                    known[name] = (0, True)
                else:
                    del known[name]
    return {(key, name): size for key, one in state.items() for name, (size, gone) in one.items() if not gone}


@given(folders)
def test_maps_of_files_are_united_name_by_name(history):
    versions: list[Version] = [
        {
            key: None
            if news is None
            else [
                {"key": key, "type": 2, "name": name, "size": 0 if gone else size, "deleted": gone}
                for name, (size, gone) in news.items()
            ]
            or [{"key": key, "type": 2, "name": None, "size": None, "deleted": None}]
            for key, news in one.items()
        }
        for one in history
    ]
    found = folded(PartitionKind.FILES, versions)
    assert {(row["key"], row["name"]): row["size"] for row in found} == files_by_hand(history)
    assert not any(row["deleted"] for row in found)


# ---- statistics


def stat(low: object = None, high: object = None, wrapper: str = "IntWrapper", **more: Any) -> Row:
    def union(value: object) -> Row | None:
        return None if value is None else {wrapper: {"value": value}}

    return {
        "key": "k",
        "type": 3,
        "file_name": "f",
        "column_name": "c",
        "min": union(low),
        "max": union(high),
        "value_count": 10,
        "null_count": 1,
        "total_size": 100,
        "total_uncompressed_size": 1000,
        "deleted": False,
        "tight": False,
        "value_type": None,
        "value_type_info": None,
        **more,
    }


def range_of(row: Row) -> tuple[object, object]:
    def value(union: Row | None) -> object:
        return None if union is None else next(one["value"] for one in union.values() if one is not None)

    return value(row["min"]), value(row["max"])


def stats_of(*rows: Row) -> list[Row]:
    return folded(PartitionKind.COLUMN_STATS, [{row["key"]: [row]} for row in rows])


def test_ranges_widen_and_counts_add():
    (row,) = stats_of(stat(5, 9), stat(3, 4), stat(7, 20))
    assert range_of(row) == (3, 20)
    assert (row["value_count"], row["null_count"], row["total_size"]) == (30, 3, 300)


@pytest.mark.parametrize(
    ("wrapper", "values"),
    [
        ("BooleanWrapper", (False, True)),
        ("LongWrapper", (-5, 1 << 40)),
        ("DoubleWrapper", (-1.5, 2.5)),
        ("StringWrapper", ("Z", "a")),
        ("BytesWrapper", (b"\x01", b"\xff")),
        ("DateWrapper", (-1, 20_000)),
    ],
)
def test_values_of_every_kind_widen(wrapper, values):
    low, high = values
    (row,) = stats_of(stat(high, high, wrapper), stat(low, low, wrapper))
    assert range_of(row) == (low, high)


def test_an_exact_row_replaces_what_was_before_it_alone():
    (row,) = stats_of(stat(1, 100), stat(5, 9, tight=True), stat(7, 20))
    assert range_of(row) == (5, 20)
    assert row["value_count"] == 20


def test_a_row_after_a_deletion_stands_alone_and_a_deletion_leaves_nothing():
    gone = stat(deleted=True)
    assert range_of(*stats_of(stat(1, 100), gone, stat(5, 9))) == (5, 9)
    assert stats_of(stat(1, 100), gone) == []


def test_a_file_of_nulls_does_not_narrow_or_hide_the_range():
    (row,) = stats_of(stat(5, 9), stat(value_count=4, null_count=4))
    assert range_of(row) == (5, 9)
    assert (row["value_count"], row["null_count"]) == (14, 5)


@pytest.mark.parametrize(
    "other",
    [
        stat(),  # values, but nobody knows which
        stat(3, 4, "DateWrapper"),
        stat(b"\x01", b"\x02", "BytesWrapper", value_type=10, value_type_info="5,2"),
    ],
)
def test_what_does_not_compare_makes_the_range_unknown(other):
    first = stat(b"\x05", b"\x06", "BytesWrapper", value_type=10) if other["value_type"] else stat(5, 9)
    (row,) = stats_of(first, other)
    assert range_of(row) == (None, None)


def test_keys_are_folded_apart_and_come_in_one_table():
    versions: list[Version] = [
        {"a": [stat(1, 2, key="a")], "b": [stat(5, 6, key="b")]},
        {"b": [stat(3, 4, key="b")], "c": [stat(9, 9, key="c")]},
    ]
    found = folded(PartitionKind.PARTITION_STATS, versions)
    assert {row["key"]: range_of(row) for row in found} == {"a": (1, 2), "b": (3, 6), "c": (9, 9)}


def test_nothing_folds_to_a_table_without_rows():
    for kind, schema in SCHEMAS.items():
        assert fold(kind, []).schema == schema
        assert fold(kind, [Layer(pa.array(["a"]), None, "", "file")]).num_rows == 0
