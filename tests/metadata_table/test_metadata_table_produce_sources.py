"""Producers one by one: the records of a whole table, and deletes of removed files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.metadata_table.keys import NON_PARTITIONED, bloom_key, column_stats_key
from hudi_fast.metadata_table.layout import IndexDefinition
from hudi_fast.metadata_table.records import ALL_PARTITIONS
from hudi_fast.metadata_table.state import AddedFile
from hudi_fast.metadata_table.updates.produce_base import BloomOfFiles, BloomOfRemoved, FilesOfTable, ProducerContext
from hudi_fast.metadata_table.updates.produce_expression import ExpressionOfPartition, check_expression
from hudi_fast.metadata_table.updates.produce_records import KeysOfSlice, PairsOfSlice, check_secondary
from hudi_fast.metadata_table.updates.produce_stats import StatsOfFiles, StatsOfRemoved, files_of_slices
from hudi_fast.storage.base import Storage
from hudi_fast.view.file_names import base_file_name, log_file_name
from hudi_fast.view.slices import FileSlice, latest_slices
from tests.metadata_table.producer_runs import context_of, produced
from tests.support.small_tables import options, plain_rows


@pytest.fixture
def context(tmp_path: Path) -> ProducerContext:
    """A table of one partition, ``p0``, with three rows in one file."""
    hf.write(plain_rows([0, 4, 8], text="t"), tmp_path, {**options(), "hoodie.metadata.enable": "false"})
    context, table = context_of(Storage(tmp_path))
    assert table is None
    return context


def slice_of(context: ProducerContext) -> FileSlice:
    (found,) = latest_slices(context.view, "p0")
    return found


def files_of(context: ProducerContext) -> tuple[AddedFile, ...]:
    return files_of_slices(context, "p0")


def with_index(context: ProducerContext, name: str, *fields: str, function: str = "") -> ProducerContext:
    kind, options = ("column_stats", {"expr": function}) if function else ("secondary_index", {})
    definition = IndexDefinition(name, kind, function, fields, options, "V2")
    return replace(context, definitions={name: definition})


def test_files_are_listed_by_partition(context: ProducerContext) -> None:
    rows, gone = produced([FilesOfTable(context)], "files")
    (file,) = slice_of(context).files
    assert [row["name"] for row in rows[ALL_PARTITIONS]] == ["p0"]
    assert [(row["name"], row["size"], row["deleted"]) for row in rows["p0"]] == [(file.name, file.size, False)]
    assert NON_PARTITIONED not in rows
    assert gone == set()


def test_empty_files_are_not_listed(context: ProducerContext) -> None:
    """A writer that ends before its first byte leaves one; release 0.15 of Apache Hudi refuses a size of 0."""
    file = slice_of(context).base_file
    assert file is not None
    names = (base_file_name(file.file_id, "9-9-9", file.instant), log_file_name(file.file_id, file.instant, 1, "9-9-9"))
    for name in names:
        context.storage.write_bytes(f"p0/{name}", b"")
    rows, _ = produced([FilesOfTable(context)], "files")
    assert [(row["name"], row["size"]) for row in rows["p0"]] == [(file.name, file.size)]


def test_each_base_file_has_its_bloom_filter(context: ProducerContext) -> None:
    (file,) = files_of(context)
    rows, gone = produced([BloomOfFiles(context, (file,))], "bloom_filters")
    assert list(rows) == [bloom_key("p0", file.name)]
    assert rows[bloom_key("p0", file.name)][0]["filter"]
    assert produced([BloomOfRemoved((("p0", file.name),))], "bloom_filters") == ({}, {bloom_key("p0", file.name)})
    assert gone == set()


def test_each_column_of_a_file_has_its_range(context: ProducerContext) -> None:
    (file,) = files_of(context)
    rows, _ = produced([StatsOfFiles(context, (file,))], "column_stats")
    (found,) = rows[column_stats_key("text", "p0", file.name)]
    assert [next(one["value"] for one in found[side].values() if one) for side in ("min", "max")] == ["t0", "t8"]
    assert (found["value_count"], found["null_count"]) == (3, 0)
    assert len(rows) == len(context.indexed_columns)
    _, gone = produced([StatsOfRemoved(context, (("p0", file.name),))], "column_stats")
    assert gone == set(rows)


def test_each_key_has_its_file_group(context: ProducerContext) -> None:
    rows, _ = produced([KeysOfSlice(context, slice_of(context), partitioned=False)], "record_index")
    assert sorted(rows) == ["k00000", "k00004", "k00008"]
    assert {(row["partition"], row["file_id"]) for (row,) in rows.values()} == {("p0", slice_of(context).file_id)}


def test_each_value_of_a_secondary_index_has_its_keys(context: ProducerContext) -> None:
    indexed = with_index(context, "secondary_index_text", "text")
    rows, _ = produced([PairsOfSlice(indexed, "secondary_index_text", slice_of(context))], "secondary_index_text")
    assert sorted(rows) == ["t0$k00000", "t4$k00004", "t8$k00008"]


def test_an_expression_index_has_ranges_of_results(context: ProducerContext) -> None:
    name = "expr_index_upper"
    indexed = with_index(context, name, "text", function="upper")
    (file,) = files_of(context)
    source = ExpressionOfPartition(indexed, name, "p0", (file,), frozenset({file.name}))
    rows, _ = produced([source], name)
    (found,) = rows[column_stats_key("text", "p0", file.name)]
    assert [next(one["value"] for one in found[side].values() if one) for side in ("min", "max")] == ["T0", "T8"]
    assert len(rows) == 2  # the file and the partition


@pytest.mark.parametrize("fields", [(), ("text", "ts"), ("nope",)])
def test_an_index_is_over_one_stored_column(context: ProducerContext, fields: tuple[str, ...]) -> None:
    with pytest.raises(UnsupportedFeatureError, match="secondary_index_x"):
        check_secondary(with_index(context, "secondary_index_x", *fields), "secondary_index_x")
    with pytest.raises(UnsupportedFeatureError, match="expr_index_x"):
        check_expression(with_index(context, "expr_index_x", *fields, function="upper"), "expr_index_x")


def test_weights_are_bytes_to_read(context: ProducerContext) -> None:
    (file,) = files_of(context)
    assert FilesOfTable(context).weight == BloomOfRemoved(()).weight == 0
    assert ExpressionOfPartition(context, "x", "p0", (file,), frozenset({file.name})).weight == file.size
    assert PairsOfSlice(context, "x", slice_of(context)).weight == slice_of(context).files[0].size
