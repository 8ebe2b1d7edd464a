"""Metadata tables of real Hudi are read: what they say is what the data files say."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from hudi_fast.errors import ConfigError, CorruptTableError
from hudi_fast.formats.bloom_filter import BloomFilter
from hudi_fast.metadata_table import read as read_module
from hudi_fast.metadata_table.keys import column_stats_key, secondary_prefix, split_secondary_keys
from hudi_fast.metadata_table.layout import group_numbers
from hudi_fast.metadata_table.read import lookup, prefix, scan
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.storage.base import Storage
from tests.support.golden import Golden, golden_names

Unzip = Callable[[str], Golden]
WITH_INDEXES = [
    "h015_cow_record_index",
    "hudi_rs/cow_v9_txns_simple_meta",
    "mor_v6_compacted",
    "mor_v8_secondary_index",
    "mor_v9_bucket",
    "mor_v9_record_index",
    "mor_v9_secondary_index",
]


def opened(path: Path) -> MetadataTable:
    table = metadata_of(open_state(Storage(path)))
    assert table is not None
    return table


def in_order(rows: pa.Table) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in ("key", "name") if name in rows.column_names])


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_INDEXES)
def test_a_look_up_of_all_keys_finds_what_a_scan_does(name: str, golden: Unzip) -> None:
    table = opened(golden(name).table)
    for partition in table.partitions:
        rows = scan(table, partition)
        keys = rows.column("key").combine_chunks()
        hashed = None
        if table.hashes_secondary_values(partition):
            hashed = pc.binary_join_element_wise(pc.replace_substring_regex(keys, r"\$[^$]*$", ""), "", "$")
        there = lookup(table, partition, pa.concat_arrays([keys, keys[:3]]), _twice(hashed, 3))
        assert in_order(there).equals(in_order(rows)), partition
        some = keys.filter(pa.array(np.arange(len(keys)) % 3 == 0))
        some_hashed = None if hashed is None else hashed.filter(pa.array(np.arange(len(keys)) % 3 == 0))
        found = lookup(table, partition, some, some_hashed)
        assert in_order(found).equals(in_order(rows.filter(pc.is_in(rows["key"], some)))), partition


def _twice(hashed: pa.Array | None, first: int) -> pa.Array | None:
    return None if hashed is None else pa.concat_arrays([hashed, hashed[:first]])


@pytest.mark.parametrize("name", WITH_INDEXES)
def test_keys_that_are_not_there_bring_no_rows(name: str, golden: Unzip) -> None:
    table = opened(golden(name).table)
    for partition in table.partitions:
        absent = pa.array(["", "nowhere", None, "\U0001f600", "~" * 300])
        assert lookup(table, partition, absent, absent).num_rows == 0
        assert lookup(table, partition, pa.array([], pa.string())).schema == scan(table, partition).schema
        assert prefix(table, partition, ["nowhere$", "~"]).num_rows == 0
        assert prefix(table, partition, []).num_rows == 0


@pytest.mark.parametrize("name", WITH_INDEXES)
def test_a_prefix_finds_the_keys_that_begin_so(name: str, golden: Unzip) -> None:
    table = opened(golden(name).table)
    for partition in table.partitions:
        if partition.startswith("secondary_index_"):
            continue
        rows = scan(table, partition)
        beginnings = sorted({key[:4] for key in rows["key"].to_pylist()})[::2]
        wanted = [any(key.startswith(one) for one in beginnings) for key in rows["key"].to_pylist()]
        assert in_order(prefix(table, partition, beginnings)).equals(in_order(rows.filter(pa.array(wanted))))


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_INDEXES)
def test_groups_are_read_one_by_one(name: str, golden: Unzip) -> None:
    table = opened(golden(name).table)
    for partition in table.partitions:
        groups = range(len(table.groups(partition)))
        parts = [scan(table, partition, [number]) for number in groups]
        assert pa.concat_tables(parts).equals(scan(table, partition))
        if not table.hashes_secondary_values(partition):
            for number, part in zip(groups, parts, strict=True):
                assert set(group_numbers(part["key"].combine_chunks(), len(groups)).tolist()) <= {number}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mor_v6_compacted", "mor_v9_secondary_index"])
def test_large_log_blocks_are_read_by_ranges(name: str, golden: Unzip, monkeypatch: pytest.MonkeyPatch) -> None:
    path = golden(name).table
    whole = {partition: scan(opened(path), partition) for partition in opened(path).partitions}
    monkeypatch.setattr(read_module, "_WHOLE_BYTES", 0)
    table = opened(path)
    for partition, rows in whole.items():
        assert scan(table, partition).equals(rows)
        if not table.hashes_secondary_values(partition):
            assert in_order(lookup(table, partition, rows["key"].combine_chunks())).equals(in_order(rows))


# ---- what it says is true


@pytest.mark.parametrize("name", ["h015_cow_record_index", "mor_v8_secondary_index", "mor_v9_record_index"])
def test_each_key_is_in_the_file_group_that_the_record_index_names(name: str, golden: Unzip) -> None:
    path = golden(name).table
    rows = hf.HudiTable.open(path).to_arrow()
    wanted = {
        (key, partition, file.split("_")[0])
        for key, partition, file in zip(
            rows["_hoodie_record_key"].to_pylist(),
            rows["_hoodie_partition_path"].to_pylist(),
            rows["_hoodie_file_name"].to_pylist(),
            strict=True,
        )
    }
    found = scan(opened(path), "record_index")
    assert {(row["key"], row["partition"], row["file_id"]) for row in found.to_pylist()} == wanted


@pytest.mark.parametrize(
    "name", ["mor_v8_secondary_index", "mor_v9_secondary_index", "hudi_rs/cow_v9_txns_simple_meta"]
)
def test_a_secondary_index_holds_the_value_of_each_row(name: str, golden: Unzip) -> None:
    path = golden(name).table
    table = opened(path)
    (first, *_) = [one for one in table.partitions if one.startswith("secondary_index_")]
    (column,) = table.definitions[first].source_fields
    rows = hf.HudiTable.open(path).to_arrow()
    wanted = set(
        zip(pc.cast(rows[column], pa.string()).to_pylist(), rows["_hoodie_record_key"].to_pylist(), strict=True)
    )
    values, keys = split_secondary_keys(scan(table, first)["key"].combine_chunks())
    assert set(zip(values.to_pylist(), keys.to_pylist(), strict=True)) == wanted
    value = next(iter(wanted))[0]
    _, keys = split_secondary_keys(prefix(table, first, [secondary_prefix(value)])["key"].combine_chunks())
    assert set(keys.to_pylist()) == {key for other, key in wanted if other == value}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["h015_cow_record_index", "cow_v6_mixed", "cow_v9_mixed"])
def test_column_stats_are_those_of_the_files(name: str, golden: Unzip) -> None:
    path = golden(name).table
    table = opened(path)
    for file in [one for one in path.rglob("*.parquet") if ".hoodie" not in one.parts]:
        stored = pq.read_table(file, partitioning=None, columns=["id", "name"])
        for column in ("id", "name"):
            key = column_stats_key(column, str(file.parent.relative_to(path)), file.name)
            (row,) = lookup(table, "column_stats", pa.array([key])).to_pylist()
            assert (row["column_name"], row["file_name"]) == (column, file.name)
            values = [one for one in stored[column].to_pylist() if one is not None]
            assert (row["value_count"], row["null_count"]) == (stored.num_rows, stored.num_rows - len(values))
            bounds = [next(one["value"] for one in row[side].values() if one) for side in ("min", "max")]
            assert bounds == [min(values), max(values)]


@pytest.mark.parametrize("name", ["h015_cow_record_index", "mor_v9_record_index"])
def test_bloom_filters_know_the_keys_of_their_files(name: str, golden: Unzip) -> None:
    path = golden(name).table
    footers = {}
    for file in [one for one in path.rglob("*.parquet") if ".hoodie" not in one.parts]:
        metadata = pq.read_metadata(file).metadata
        keys = pq.read_table(file, partitioning=None, columns=["_hoodie_record_key"]).column(0).combine_chunks()
        footers[metadata[b"org.apache.hudi.bloomfilter"]] = keys
    rows = scan(opened(path), "bloom_filters").to_pylist()
    assert {row["filter"] for row in rows} == set(footers)
    for row in rows:
        bloom = BloomFilter.from_base64(row["filter"].decode(), row["kind"], where="metadata table")
        assert bloom.might_contain(footers[row["filter"]]).all()


def test_keys_are_looked_up_in_their_data_partition_where_they_are_unique_there_alone(tmp_path: Path) -> None:
    keys, partitions = [f"k{at % 7}" for at in range(21)], [f"day={at % 3}/x" for at in range(21)]
    rows = pa.table({"id": keys, "part": partitions, "ts": list(range(21))})
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.index.type": "RECORD_LEVEL_INDEX",
    }
    hf.write(rows, tmp_path, options)
    table = opened(tmp_path)
    assert table.is_by_partition("record_index")
    assert len(table.groups("record_index")) == 3
    assert scan(table, "record_index").num_rows == 21
    for partition in set(partitions):
        found = lookup(table, "record_index", pa.array(keys), data_partition=partition)
        assert found["key"].to_pylist() == sorted(set(keys))
        assert set(found["partition"].to_pylist()) == {partition}
    assert lookup(table, "record_index", pa.array(keys), data_partition="day=9/x").num_rows == 0
    with pytest.raises(ConfigError, match="pass data_partition"):
        lookup(table, "record_index", pa.array(keys))


# ---- only what is needed, and what is damaged


def without_other_groups(table: MetadataTable, path: Path, partition: str, keep: int) -> None:
    """All files of a partition go, but for those of one group."""
    for number, slice_ in enumerate(table.groups(partition)):
        for file in () if number == keep else (slice_.base_file, *slice_.log_files):
            if file is not None:
                (path / ".hoodie/metadata" / file.path).unlink()


def test_only_groups_that_can_hold_a_key_are_opened(golden: Unzip) -> None:
    path = golden("mor_v8_secondary_index").table
    table = opened(path)
    row = scan(table, "record_index").slice(7, 1)
    key = row["key"].combine_chunks()
    number = int(group_numbers(key, 10)[0])
    without_other_groups(table, path, "record_index", number)
    assert lookup(table, "record_index", key).equals(row)
    with pytest.raises(CorruptTableError, match="was cleaned"):
        scan(table, "record_index", [(number + 1) % 10])


@pytest.mark.parametrize("name", ["mor_v8_secondary_index", "mor_v9_secondary_index"])
def test_a_value_of_a_secondary_index_is_looked_for_in_one_group_from_version_9_on(name: str, golden: Unzip) -> None:
    path = golden(name).table
    table = opened(path)
    values, _ = split_secondary_keys(scan(table, "secondary_index_idx_name")["key"].combine_chunks())
    wanted = secondary_prefix(values[0].as_py())
    before = prefix(table, "secondary_index_idx_name", [wanted])
    table = opened(path)  # without the answer
    assert table.groups("secondary_index_idx_name")
    without_other_groups(table, path, "secondary_index_idx_name", int(group_numbers(pa.array([wanted]), 10)[0]))
    if table.hashes_secondary_values("secondary_index_idx_name"):
        assert prefix(table, "secondary_index_idx_name", [wanted]).equals(before)
        return
    with pytest.raises(CorruptTableError, match="was cleaned"):
        prefix(table, "secondary_index_idx_name", [wanted])


@pytest.mark.parametrize("pattern", ["files-0000-0*.hfile", ".files-0000-0_2*.log*"])
def test_a_damaged_file_is_an_error_that_names_it(pattern: str, golden: Unzip) -> None:
    path = golden("mor_v9_compacted", own=True).table
    table = opened(path)
    for file in (path / ".hoodie/metadata/files").glob(pattern):
        content = bytearray(file.read_bytes())
        content[len(content) // 2 :] = b"\x00" * (len(content) - len(content) // 2)
        file.write_bytes(content)
    with pytest.raises(hf.HudiError, match="files-0000-0"):
        scan(table, "files")


@pytest.mark.parametrize("kept", [0, 3, 200])
def test_a_log_file_that_was_cut_short_is_an_error_that_names_it(kept: int, golden: Unzip) -> None:
    """Of a completed delta commit nothing may be missing; elsewhere a cut block is what a dead writer left."""
    path = golden("cow_v9_mixed", own=True).table
    table = opened(path)
    file = path / ".hoodie/metadata" / table.groups("files")[0].log_files[-1].path
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(CorruptTableError, match=re.escape(file.name)):
        scan(table, "files")


def test_a_cut_block_of_a_dead_writer_is_passed_over_before_version_8(golden: Unzip) -> None:
    path = golden("h015_cow", own=True).table
    rows = scan(opened(path), "files")
    file = path / ".hoodie/metadata" / opened(path).groups("files")[0].log_files[-1].path
    whole = file.read_bytes()
    file.write_bytes(whole + whole[:200])
    assert scan(opened(path), "files").equals(rows)
    file.write_bytes(whole[:-100])
    with pytest.raises(CorruptTableError, match="found a truncated one"):
        scan(opened(path), "files")


def test_a_base_file_that_was_cleaned_is_an_error_that_names_it(golden: Unzip) -> None:
    path = golden("mor_v9_compacted").table
    table = opened(path)
    table.groups("files")
    for file in (path / ".hoodie/metadata/files").glob("*.hfile"):
        file.unlink()
    with pytest.raises(CorruptTableError, match="a base file was cleaned"):
        scan(table, "files")


def test_a_data_partition_is_named_where_keys_are_unique_in_theirs_alone(golden: Unzip) -> None:
    table = opened(golden("mor_v9_record_index").table)
    with pytest.raises(ConfigError, match="unique in the whole table"):
        lookup(table, "record_index", pa.array(["a"]), data_partition="p0")


def test_there_are_tables_with_each_kind_of_partition() -> None:
    assert set(WITH_INDEXES) <= set(golden_names())
