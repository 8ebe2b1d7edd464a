"""What single actions add to the metadata table: against real Hudi's log blocks, and by what writers noted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.errors import InvalidDataError, UnsupportedFeatureError
from hudi_fast.formats.parquet.column_ranges import ColumnRange
from hudi_fast.metadata_table.keys import bloom_key, column_stats_key
from hudi_fast.metadata_table.layout import IndexDefinition
from hudi_fast.metadata_table.read import scan
from hudi_fast.metadata_table.records import RECORD_SCHEMA, RECORD_SCHEMA_0_15
from hudi_fast.metadata_table.state import AddedFile, change_of_clean, delta_of_commit
from hudi_fast.metadata_table.updates.produce import sources_of_delta, sources_of_table
from hudi_fast.metadata_table.updates.produce_stats import in_types, ranges_of_added
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_fast.view.table_state import read_commit
from hudi_fast.writing.local import LocalEngine
from hudi_fast.writing.write_plan import WriteOutcome, WritePlan
from tests.metadata_table.producer_runs import before, context_of, flat_rows, logged, produced
from tests.support.golden import Golden
from tests.support.sessions import write_engine

TABLES = [
    "cow_v6_mixed",
    "cow_v9_overwrites",
    "h015_mor",
    "mor_v6_compacted",
    "mor_v8_alltypes",
    "mor_v9_cdc",
    "mor_v9_compacted",
    "mor_v9_record_index",
    "mor_v9_secondary_index",
]
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
}


@pytest.mark.slow("mor_v6_compacted", "mor_v9_record_index")
@pytest.mark.parametrize("name", TABLES)
def test_each_commit_adds_what_real_hudi_added(name: str, golden: Callable[[str], Golden]) -> None:
    context, table = context_of(Storage(golden(name).table))
    assert table is not None
    schema = RECORD_SCHEMA_0_15 if name.startswith("h015") else RECORD_SCHEMA
    compared = 0
    for instant in context.view.timeline.writes():
        commit = read_commit(context.storage, context.config, instant)
        change = delta_of_commit(instant.requested, commit)
        for partition in table.partitions:
            if partition == "partition_stats" and commit.operation_type == "INSERT_OVERWRITE":
                continue  # real Hudi still counts the replaced files, until the next commit
            stored, gone_there = logged(table, partition, instant.requested)
            if not stored and not gone_there:
                continue  # the partition is younger than the commit, or the commit has nothing for it
            sources = sources_of_delta(before(context, instant.requested), change, [partition])
            made, gone = produced(sources, partition, schema)
            assert made == stored, (instant.requested, partition)
            assert gone - set(made) == gone_there, (instant.requested, partition)
            compared += 1
    assert compared > 2


def test_change_logs_and_replaced_groups_are_part_of_a_change() -> None:
    base = WriteStat(
        "f", "p/f_0-0-0_1.parquet", partition_path="p", file_size=9, cdc_stats={"p/.f_1.log.1_0-0-0.cdc": 4}
    )
    log = WriteStat("g", ".g_1.log.1_0-0-0", file_size=5)
    change = delta_of_commit("1", CommitMetadata({"p": [base], "": [log]}, {}, "UPSERT", False, {"q": ["h"]}))
    found = [(one.path, one.size, one.file_id, one.is_log, one.is_cdc) for one in change.added]
    assert found == [
        ("p/f_0-0-0_1.parquet", 9, "f", False, False),
        ("p/.f_1.log.1_0-0-0.cdc", 4, "f", True, True),
        (".g_1.log.1_0-0-0", 5, "g", True, False),
    ]
    assert (change.operation, change.replaced) == ("UPSERT", {"q": ("h",)})


def test_a_clean_deletes_what_was_known_of_files(golden: Callable[[str], Golden]) -> None:
    context, _ = context_of(Storage(golden("mor_v9_record_index").table))
    names = ["a_0-0-0_1.parquet", ".a_1.log.1_0-0-0"]
    change = change_of_clean("2", {"p0": [f"p0/{name}" for name in names], "p9": ["p9/z_0-0-0_1.parquet"]}, ["p9"])
    files, gone = produced(sources_of_delta(context, change, ["files"]), "files")
    assert gone == {"p9"}
    assert [(row["name"], row["deleted"]) for row in files["__all_partitions__"]] == [("p9", True)]
    assert sorted((row["name"], row["size"], row["deleted"]) for row in files["p0"]) == [
        (name, 0, True) for name in sorted(names)
    ]
    _, gone = produced(sources_of_delta(context, change, ["bloom_filters"]), "bloom_filters")
    assert gone == {bloom_key("p0", names[0]), bloom_key("p9", "z_0-0-0_1.parquet")}
    _, gone = produced(sources_of_delta(context, change, ["column_stats"]), "column_stats")
    assert len(gone) == 3 * len(context.indexed_columns)
    assert column_stats_key("ts", "p0", names[1]) in gone
    for partition in ("partition_stats", "record_index"):
        assert produced(sources_of_delta(context, change, [partition]), partition) == ({}, set())


class Watched(LocalEngine):
    """The local engine, and what it wrote."""

    stats: list[WriteStat]

    def execute(self, plan: WritePlan) -> WriteOutcome:
        outcome = super().execute(plan)
        self.stats = outcome.stats
        return outcome


@pytest.mark.slow("parquet")
@pytest.mark.parametrize("form", ["avro", "parquet"])
def test_writers_note_the_ranges_that_their_files_have(form: str, tmp_path: Path) -> None:
    settings = OPTIONS | {"hoodie.logfile.data.block.format": form}
    settings["hoodie.datasource.write.table.type"] = "MERGE_ON_READ"
    storage = Storage(tmp_path / "t")
    seen = set()
    for numbers, ts in (([1, 2, 3, 4], 1), ([2, 3], 2), ([4, 5], 3)):
        rows = pa.table(
            {
                "id": [f"k{number}" for number in numbers],
                "part": ["p"] * len(numbers),
                "ts": pa.array([ts] * len(numbers), pa.int64()),
                "size": pa.array([float("nan") if number == 3 else None for number in numbers], pa.float32()),
            }
        )
        engine = Watched(rows)
        write_engine(engine, storage, settings, "append")
        context, _ = context_of(storage)
        for stat in engine.stats:
            (one,) = delta_of_commit("1", CommitMetadata({"p": [stat]})).added
            types = {name: rows.schema.field(name).type for name in rows.column_names}
            noted = ranges_of_added(context, one, context.indexed_columns, types)
            read = ranges_of_added(context, replace(one, stat=None), context.indexed_columns, types)
            assert stat.column_ranges is not None
            assert set(noted) == set(context.indexed_columns)
            assert str(sorted(noted.items())) == str(sorted(read.items()))  # as text, for NaN is not equal to itself
            seen.add(one.is_log)
    assert seen == {True, False}


def test_a_partitioned_record_index_keeps_keys_by_partition(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a", "b", "a"], "part": ["p0", "p0", "p1"], "ts": pa.array([1, 1, 1], pa.int64())})
    hf.write(rows, tmp_path, OPTIONS | {"hoodie.metadata.enable": "false"})
    context, _ = context_of(Storage(tmp_path))
    definition = IndexDefinition("record_index", "record_index", options={"isPartitioned": "true"})
    context = replace(context, definitions={"record_index": definition})
    found = {
        (records.data_partition, key)
        for source in sources_of_table(context, "record_index", "1")
        for records in source.read(RECORD_SCHEMA)
        for key in records.keys.to_pylist()
    }
    assert found == {("p0", "a"), ("p0", "b"), ("p1", "a")}


def test_a_key_that_is_twice_in_a_file_is_refused(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a", "a"], "part": ["p", "p"], "ts": pa.array([1, 1], pa.int64())})
    more = {"hoodie.metadata.enable": "false", "hoodie.datasource.write.operation": "bulk_insert"}
    hf.write(rows, tmp_path, OPTIONS | more)
    context, _ = context_of(Storage(tmp_path))
    with pytest.raises(InvalidDataError, match=r"in partition 'p' holds 1 rows more than distinct keys.*'a'"):
        produced(sources_of_table(context, "record_index", "1"), "record_index")


@pytest.mark.parametrize(
    ("partition", "definition", "text"),
    [
        ("secondary_index_x", None, "over \\[\\]; one column"),
        (
            "secondary_index_x",
            IndexDefinition("x", "secondary_index", "identity", ("absent",)),
            "not a column stored in files",
        ),
        ("expr_index_x", None, "no definition"),
        ("expr_index_x", IndexDefinition("x", "record_index", "upper", ("id",)), "kind record_index"),
        ("expr_index_x", IndexDefinition("x", "column_stats", "split", ("id",)), "function 'split'"),
        ("expr_index_x", IndexDefinition("x", "column_stats", "upper", ("absent",)), "not a top-level column"),
    ],
)
def test_an_index_that_cannot_be_kept_up_is_refused_by_name(
    partition: str, definition: IndexDefinition | None, text: str, golden: Callable[[str], Golden]
) -> None:
    context, _ = context_of(Storage(golden("cow_v9_mixed").table))
    context = replace(context, definitions={} if definition is None else {partition: definition})
    with pytest.raises(UnsupportedFeatureError, match=f"{partition}.*{text}"):
        sources_of_delta(context, change_of_clean("1", {}), [partition])


def test_a_file_whose_size_nobody_said_has_the_one_that_storage_says(golden: Callable[[str], Golden]) -> None:
    context, _ = context_of(Storage(golden("cow_v9_mixed").table))
    entry = next(one for one in context.view.lister.files("p0") if one.name.endswith(".parquet"))
    added = AddedFile("p0", entry.name, 0, "f", False, "1")
    change = replace(change_of_clean("1", {}), operation="UPSERT", added=(added,))
    files, _ = produced(sources_of_delta(context, change, ["files"]), "files")
    assert [row["size"] for row in files["p0"]] == [entry.size]


def test_numbers_that_became_text_are_not_bounded_by_their_numbers() -> None:
    ranges = {"a": ColumnRange(pa.scalar(2, pa.int32()), pa.scalar(10, pa.int32()), 0, 2)}
    assert not in_types(ranges, {"a": pa.string()})["a"].is_known
    assert in_types(ranges, {"a": pa.int64()})["a"].low == pa.scalar(2, pa.int64())
    assert in_types(ranges, {"b": pa.int64()}) == {}


def test_members_of_structs_have_statistics_where_they_are_listed(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "id": ["a", "b", "c"],
            "part": ["p", "p", "q"],
            "ts": pa.array([1, 1, 1], pa.int64()),
            "o": pa.array([{"n": 5, "s": "x"}, None, {"n": 7, "s": "y"}]),
        }
    )
    hf.write(rows, tmp_path, OPTIONS | {"hoodie.metadata.index.column.stats.column.list": "o.n,id"})
    context, table = context_of(Storage(tmp_path))
    assert table is not None
    assert "o.n" in context.indexed_columns
    for partition in ("column_stats", "partition_stats"):
        made, _ = produced(sources_of_table(context, partition, "1"), partition)
        stored = flat_rows(scan(table, partition))
        assert made == stored
        found = {row["max"]["LongWrapper"]["value"] for (row,) in stored.values() if row["column_name"] == "o.n"}
        assert found == {5, 7}
