"""Names in the metadata table, and which file group a key is in."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.metadata_table.layout import PartitionKind, group_file_id, group_numbers, kind_of


@pytest.mark.parametrize(
    ("partition", "kind", "file_id"),
    [
        ("files", PartitionKind.FILES, "files-0007-0"),
        ("column_stats", PartitionKind.COLUMN_STATS, "col-stats-0007-0"),
        ("partition_stats", PartitionKind.PARTITION_STATS, "partition-stats-0007-0"),
        ("bloom_filters", PartitionKind.BLOOM_FILTERS, "bloom-filters-0007-0"),
        ("record_index", PartitionKind.RECORD_INDEX, "record-index-0007-0"),
        ("secondary_index_idx_cat", PartitionKind.SECONDARY_INDEX, "secondary-index-idx-cat-0007-0"),
        ("expr_index_idx_day", PartitionKind.EXPRESSION_INDEX, "expr-index-idx-day-0007-0"),
    ],
)
def test_a_partition_has_a_kind_and_its_groups_a_name(partition, kind, file_id):
    assert kind_of(partition) is kind
    assert group_file_id(partition, 7) == file_id


@pytest.mark.parametrize("name", ["vector_index_x", "", "files2", "secondary_index"])
def test_an_unknown_kind_is_refused_by_name(name):
    with pytest.raises(UnsupportedFeatureError, match=f"partition '{name}'"):
        kind_of(name)


@pytest.mark.parametrize(
    ("data_partition", "file_id"),
    [
        ("p1", "record-index-p1-0000-0"),
        ("day=2026/01", "record-index-day%3D2026%2F01-0000-0"),
        ("2026-01-02", "record-index-2026%2D01%2D02-0000-0"),  # as Hudi 1.2.0 names them
        ("50%_off", "record-index-50%25%5Foff-0000-0"),
        ("", "record-index--0000-0"),
    ],
)
def test_groups_of_a_data_partition_carry_its_escaped_path(data_partition, file_id):
    assert group_file_id("record_index", 0, data_partition) == file_id


def naive_group(key: str, groups: int) -> int:
    """Java, step by step: String.hashCode in 32 bits, Math.abs that keeps the smallest int, a truncating remainder."""
    code = 0
    units = key.encode("utf-16-be")
    for at in range(0, len(units), 2):
        code = (31 * code + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    signed = code - (1 << 32) if code >= 1 << 31 else code
    positive = signed if signed == -(1 << 31) else abs(signed)
    rest = abs(positive) % groups if positive >= 0 else -(abs(positive) % groups)
    return abs(rest)


@given(st.lists(st.text(max_size=12), max_size=20), st.integers(1, 10_000))
def test_a_key_is_in_the_group_that_java_s_hash_says(keys, groups):
    numbers = group_numbers(pa.array(keys, pa.string()), groups)
    assert numbers.tolist() == [naive_group(key, groups) for key in keys]


def test_the_smallest_hash_of_all_has_a_group():
    key = "polygenelubricants"  # its hash is -2**31, whose absolute value Java cannot say
    assert group_numbers(pa.array([key, "x", key]).slice(2), 10).tolist() == [naive_group(key, 10)] == [8]
