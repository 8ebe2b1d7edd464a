"""MERGE_ON_READ tables: which writes go to log files, and what stands in them, in every table version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.formats.log.blocks import BlockType, HeaderKey
from hudi_fast.storage.base import Storage
from hudi_fast.view.file_names import parse_base_file
from tests.support.mor_tables import VERSIONS, blocks_of, log_files, mor_options, newest_commit, stats_of
from tests.support.small_tables import assert_tidy, plain_rows, table_rows

META = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path"]
DATA_KIND = {"avro": BlockType.AVRO_DATA, "parquet": BlockType.PARQUET_DATA}
FORMAT = "hoodie.logfile.data.block.format"


def with_deletes(rows: pa.Table, flags: list[bool | None]) -> pa.Table:
    return rows.append_column("_hoodie_is_deleted", pa.array(flags, pa.bool_()))


def base_files(path: Path) -> list[Any]:
    found = map(parse_base_file, Storage(path).list_dir("", recursive=True))
    return sorted((one for one in found if one is not None and ".hoodie/" not in one.path), key=lambda one: one.path)


def make(path: Path, version: str, more: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Ten rows, k00000 to k00009, in two partitions; the options to write on with."""
    settings = mor_options(more, table_version=version, **changes)
    hf.write(plain_rows(range(10)), path, settings)
    return settings


@pytest.mark.slow(but=("avro-6", "parquet-6"))
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("form", ["avro", "parquet"])
def test_updates_go_to_a_log_file_beside_the_base_file(version: str, form: str, tmp_path: Path) -> None:
    settings = make(tmp_path, version, {FORMAT: form})
    before = base_files(tmp_path)
    result = hf.write(plain_rows([7, 1, 3], ts=5, text="u"), tmp_path, settings)
    assert (result.inserts, result.updates, result.deletes, result.files_written) == (0, 3, 0, 1)
    assert base_files(tmp_path) == before
    (block,) = blocks_of(tmp_path)
    (base,) = [one for one in before if one.path.startswith("p1/")]
    assert block.kind is DATA_KIND[form]
    assert block.headers[HeaderKey.INSTANT_TIME] == result.instant
    stored = [json.loads(block.headers[HeaderKey.SCHEMA])[each] for each in ("name", "namespace")]
    assert stored == ["t_record", "hoodie.t"]
    names = [field["name"] for field in json.loads(block.headers[HeaderKey.SCHEMA])["fields"]]
    assert names == [*META, "_hoodie_file_name", "id", "part", "ts", "text"]
    assert [row["id"] for row in block.rows] == ["k00001", "k00003", "k00007"]  # as in the base file
    assert [row["_hoodie_record_key"] for row in block.rows] == [row["id"] for row in block.rows]
    assert {row["_hoodie_commit_time"] for row in block.rows} == {result.instant}
    assert len({row["_hoodie_commit_seqno"] for row in block.rows}) == 3
    assert all(row["_hoodie_commit_seqno"].startswith(f"{result.instant}_0_") for row in block.rows)
    assert {row["_hoodie_partition_path"] for row in block.rows} == {"p1"}
    assert {row["_hoodie_file_name"] for row in block.rows} == {base.file_id}
    assert [(row["part"], row["ts"], row["text"]) for row in block.rows] == [("p1", 5, f"u{i}") for i in (1, 3, 7)]
    if version == "6":
        assert block.positions is None
        assert HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS not in block.headers
    else:
        assert block.positions == [0, 1, 3]  # p1 holds k00001, k00003, k00005, k00007, k00009
        assert block.headers[HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS] == base.instant
    assert table_rows(tmp_path)["k00003"] == ("p1", 5, "u3")
    assert_tidy(tmp_path)


@pytest.mark.slow(but="9")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_delta_commit_says_what_it_logged(version: str, tmp_path: Path) -> None:
    settings = make(tmp_path, version)
    (base,) = [one for one in base_files(tmp_path) if one.path.startswith("p1/")]
    rows = with_deletes(plain_rows([1, 3, 5], ts=5), [None, True, False])
    hf.write(rows, tmp_path, {**settings, "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true"})
    instant, commit = newest_commit(tmp_path)
    assert (instant.action, commit.operation_type) == ("deltacommit", "UPSERT")
    (log,) = log_files(tmp_path)
    (stat,) = commit.write_stats()
    old = version == "6"
    assert (stat.file_id, stat.path, stat.partition_path) == (base.file_id, log.path, "p1")
    assert stat.prev_commit == (base.instant if old else instant.requested)
    assert (stat.num_writes, stat.num_update_writes, stat.num_inserts, stat.num_deletes) == (2, 2, 0, 1)
    assert stat.file_size == stat.total_write_bytes == (tmp_path / log.path).stat().st_size
    assert (stat.log_version, stat.log_offset, stat.log_files) == (1, 0, (log.name,))
    assert stat.base_file == (base.name if old else "")
    assert (log.instant, log.version) == (base.instant if old else instant.requested, 1)
    assert "k00003" not in table_rows(tmp_path)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_table_without_positions_when_they_are_not_wanted(version: str, tmp_path: Path) -> None:
    settings = make(tmp_path, version, {"hoodie.write.record.positions": "false"})
    hf.write(plain_rows([1], ts=5), tmp_path, settings)
    (block,) = blocks_of(tmp_path)
    assert set(block.headers) == {HeaderKey.INSTANT_TIME, HeaderKey.SCHEMA}


@pytest.mark.slow(but="9")
@pytest.mark.parametrize("version", VERSIONS)
def test_later_log_files_of_a_slice(version: str, tmp_path: Path) -> None:
    settings = make(tmp_path, version)
    base = {one.path[:2]: one for one in base_files(tmp_path)}["p1"]
    instants = [hf.write(plain_rows([1], ts=ts), tmp_path, settings).instant for ts in (2, 3, 4)]
    logs = log_files(tmp_path)
    stat = stats_of(tmp_path)[0]
    if version == "6":
        assert [(log.instant, log.version) for log in logs] == [(base.instant, number) for number in (1, 2, 3)]
        assert len({log.write_token for log in logs}) == 3
        assert stat.log_files is not None
        assert sorted(stat.log_files) == sorted(log.name for log in logs)
    else:
        assert [(log.instant, log.version) for log in logs] == [(instant, 1) for instant in instants]
        assert stat.log_files == (logs[2].name,)
    assert [block.headers[HeaderKey.INSTANT_TIME] for block in blocks_of(tmp_path)] == instants
    assert table_rows(tmp_path)["k00001"] == ("p1", 4, "a1")


@pytest.mark.slow(but="6")
@pytest.mark.parametrize("version", VERSIONS)
def test_deletes_by_key_are_one_block_without_ordering_values(version: str, tmp_path: Path) -> None:
    settings = make(tmp_path, version)
    result = hf.HudiTable.open(tmp_path).delete(plain_rows([1, 5, 2, 77]))
    assert (result.operation, result.deletes, result.files_written) == ("delete", 3, 2)
    (first,), (second,) = blocks_of(tmp_path, "p0"), blocks_of(tmp_path, "p1")
    assert first.kind is second.kind is BlockType.DELETE
    assert first.deletes == [("k00002", "p0")]
    assert second.deletes == [("k00001", "p1"), ("k00005", "p1")]
    assert second.positions == (None if version == "6" else [0, 2])
    assert HeaderKey.SCHEMA in second.headers
    assert newest_commit(tmp_path)[1].operation_type == "DELETE"
    assert {"k00001", "k00002", "k00005"}.isdisjoint(table_rows(tmp_path))
    hf.write(plain_rows([1], ts=1, text="again"), tmp_path, settings)  # the base file holds it, so it is logged
    assert stats_of(tmp_path)[0].num_update_writes == 1
    assert table_rows(tmp_path)["k00001"] == ("p1", 1, "again1")


@pytest.mark.slow(but="9")
@pytest.mark.parametrize("version", VERSIONS)
def test_marked_rows_are_deletes_with_their_ordering_value(version: str, tmp_path: Path) -> None:
    settings = make(tmp_path, version)
    rows = with_deletes(plain_rows([1, 3, 5, 7, 99], ts=4), [True, False, True, None, True])
    hf.write(rows, tmp_path, settings)
    data, deletes = blocks_of(tmp_path)
    assert (data.kind, deletes.kind) == (BlockType.AVRO_DATA, BlockType.DELETE)
    assert [row["id"] for row in data.rows] == ["k00003", "k00007"]
    assert deletes.deletes == [("k00001", "p1", 4), ("k00005", "p1", 4)]
    if version != "6":
        assert (data.positions, deletes.positions) == ([1, 3], [0, 2])
    late = with_deletes(plain_rows([3, 7], ts=2), [True, True])
    hf.write(late, tmp_path, settings)  # they lose to what is stored, which is found out by whoever reads
    assert [row in table_rows(tmp_path) for row in ("k00001", "k00003", "k00005", "k00007")] == [0, 1, 0, 1]


ORDERING: dict[str, tuple[pa.Array, Any]] = {
    "int": (pa.array([7], pa.int32()), 7),
    "long": (pa.array([7], pa.int64()), 7),
    "float": (pa.array([1.5], pa.float32()), 1.5),
    "double": (pa.array([1.5], pa.float64()), 1.5),
    "text": (pa.array(["z"]), "z"),
    "bool": (pa.array([True]), True),
    "timestamp": (pa.array([1_700_000_000_000_000], pa.timestamp("us", "UTC")), 1_700_000_000_000_000),
    "milliseconds": (pa.array([1_700_000_000_000], pa.timestamp("ms", "UTC")), 1_700_000_000_000_000),
    "local": (pa.array([5], pa.timestamp("us")), 5),
    "date": (pa.array([19_000], pa.date32()), 19_000),
    "null": (pa.array([None], pa.int64()), None),
}


@pytest.mark.slow(but="6-double")
@pytest.mark.parametrize("kind", list(ORDERING))
@pytest.mark.parametrize("version", ["6", "9"])
def test_ordering_values_of_deletes_of_every_type(kind: str, version: str, tmp_path: Path) -> None:
    value, wanted = ORDERING[kind]
    rows = plain_rows([1]).set_column(2, "ts", value)
    settings = mor_options(table_version=version)
    flagged = [with_deletes(rows, [flag]) for flag in (False, True)]
    hf.write(flagged[0], tmp_path, settings)
    hf.write(flagged[1], tmp_path, settings)
    (block,) = blocks_of(tmp_path)
    assert block.deletes == [("k00001", "p1") if wanted is None else ("k00001", "p1", wanted)]
    assert table_rows(tmp_path) == {}
    hf.write(flagged[0], tmp_path, settings)  # ties go to the later one
    assert list(table_rows(tmp_path)) == ["k00001"]


def two_orderings(first: list[int | None], second: list[str | None], flags: list[bool]) -> pa.Table:
    rows = plain_rows(range(1, 2 * len(first), 2))
    rows = rows.set_column(2, "ts", pa.array(first, pa.int64())).append_column("seq", pa.array(second))
    return with_deletes(rows, flags)


@pytest.mark.slow(but="6")
@pytest.mark.parametrize("version", VERSIONS)
def test_deletes_with_two_ordering_values(version: str, tmp_path: Path) -> None:
    settings = mor_options(table_version=version, ordering="ts,seq")
    hf.write(two_orderings([5] * 4, ["m"] * 4, [False] * 4), tmp_path, settings)
    change = two_orderings([5, 5, None, None], ["z", "a", "z", None], [True] * 4)
    hf.write(change, tmp_path, settings)
    blocks = blocks_of(tmp_path)
    if version == "9":  # null: the lowest of its type
        assert [block.deletes for block in blocks] == [
            [("k00001", "p1", 5, "z"), ("k00003", "p1", 5, "a"), ("k00005", "p1", 0, "z"), ("k00007", "p1", 0, "")]
        ]
    else:  # readers of these tables know one value alone: deletes stay rows
        (block,) = blocks
        assert [row["_hoodie_is_deleted"] for row in block.rows] == [True] * 4
        stat = stats_of(tmp_path)[0]
        assert (stat.num_writes, stat.num_deletes) == (0, 4)
    assert sorted(table_rows(tmp_path)) == ["k00003", "k00005", "k00007"]
    hf.HudiTable.open(tmp_path).delete(plain_rows([7]))  # without any ordering value it wins
    assert sorted(table_rows(tmp_path)) == ["k00003", "k00005"]


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_inserts_go_to_the_smallest_files_without_logs(version: str, tmp_path: Path) -> None:
    settings = make(tmp_path, version, {"hoodie.parquet.small.file.limit": "0"})
    hf.write(plain_rows(range(100, 110)), tmp_path, settings)
    groups = {one.path: one for one in base_files(tmp_path)}
    assert len(groups) == 4
    hf.write(plain_rows([1], ts=2), tmp_path, settings)  # gives one of p1's a log
    (logged,) = {log.file_id for log in log_files(tmp_path)}
    settings["hoodie.parquet.small.file.limit"] = "1000000"
    rows = plain_rows([200, 201, 3, 103], ts=3)
    result = hf.write(rows, tmp_path, settings)
    assert (result.inserts, result.updates) == (2, 2)
    by_name = {stat.path.rpartition("/")[2].partition("_")[0]: stat for stat in stats_of(tmp_path)}
    free = next(one.file_id for one in groups.values() if one.path.startswith("p1/") and one.file_id != logged)
    p0 = min((one for one in groups.values() if one.path.startswith("p0/")), key=lambda one: (one.size, one.file_id))
    assert set(by_name) == {f".{logged}", free, p0.file_id}
    assert (by_name[free].num_inserts, by_name[free].num_update_writes, by_name[free].num_writes) == (1, 1, 6)
    assert by_name[free].prev_base_file == next(one.name for one in groups.values() if one.file_id == free)
    assert by_name[p0.file_id].num_writes == 6
    assert newest_commit(tmp_path)[0].action == "deltacommit"
    assert len(table_rows(tmp_path)) == 22
    hf.write(plain_rows([1, 203, 2, 4, 102, 104], ts=4), tmp_path, settings)
    hf.write(plain_rows([103], ts=4), tmp_path, settings)
    hf.write(plain_rows([300, 301]), tmp_path, settings)  # no slice without a log is left: new file groups
    assert {stat.prev_commit for stat in stats_of(tmp_path)} == {"null"}


def test_as_many_files_take_inserts_as_the_limit_says(tmp_path: Path) -> None:
    settings = make(tmp_path, "9", {"hoodie.parquet.small.file.limit": "0"}, partition=None)
    for first in (100, 200):
        hf.write(plain_rows(range(first, first + 10)), tmp_path, settings)
    sizes = {one.file_id: one.size for one in base_files(tmp_path)}
    few = {
        **settings,
        "hoodie.parquet.small.file.limit": "1000000",
        "hoodie.parquet.max.file.size": str(max(sizes.values()) + 300),
        "hoodie.merge.small.file.group.candidates.limit": "2",
    }
    hf.write(plain_rows(range(300, 310)), tmp_path, few)
    changed = [stat for stat in stats_of(tmp_path) if stat.prev_commit != "null"]
    assert len(changed) == 2
    assert len(stats_of(tmp_path)) > 2
    assert len(table_rows(tmp_path)) == 40


@pytest.mark.slow(but=("insert-9", "insert-8"))
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_inserted_rows_go_to_base_files(operation: str, version: str, tmp_path: Path) -> None:
    settings = {**make(tmp_path, version), "hoodie.datasource.write.operation": operation}
    result = hf.write(plain_rows(range(10, 16)), tmp_path, settings)
    assert (result.operation, result.inserts) == (operation, 6)
    assert log_files(tmp_path) == []
    instant, commit = newest_commit(tmp_path)
    assert (instant.action, commit.operation_type) == ("deltacommit", operation.upper())
    assert {stat.prev_commit == "null" for stat in commit.write_stats()} == {operation == "bulk_insert"}
    assert len(table_rows(tmp_path)) == 16


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_overwriting_and_dropping_partitions_end_groups_with_their_logs(version: str, tmp_path: Path) -> None:
    settings = make(tmp_path, version)
    hf.write(plain_rows([1, 2], ts=2), tmp_path, settings)
    hf.write(plain_rows([50], ts=1), tmp_path, {**settings, "hoodie.datasource.write.operation": "insert_overwrite"})
    assert newest_commit(tmp_path)[0].action == "replacecommit"
    assert sorted(table_rows(tmp_path)) == [*(f"k{number:05d}" for number in (1, 3, 5, 7, 9)), "k00050"]
    hf.HudiTable.open(tmp_path).delete_partitions(["p1"])
    assert sorted(table_rows(tmp_path)) == ["k00050"]
    hf.write(plain_rows([1], ts=1, text="new"), tmp_path, settings)  # not an update of what is gone
    assert table_rows(tmp_path)["k00001"] == ("p1", 1, "new1")


@pytest.mark.slow(but="parquet-9")
@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("form", ["avro", "parquet"])
def test_blocks_and_files_roll_over_by_size(form: str, version: str, tmp_path: Path) -> None:
    settings = make(tmp_path, version, {FORMAT: form}, partition=None)
    hf.write(plain_rows(range(2000)), tmp_path, settings)
    small = {"hoodie.logfile.data.block.max.size": "20000", "hoodie.logfile.max.size": "25000"}
    flags = [number % 10 == 0 for number in range(2000)]
    result = hf.write(
        with_deletes(plain_rows(range(2000), ts=2, text="u" * 20), flags), tmp_path, {**settings, **small}
    )
    blocks, logs, stats = blocks_of(tmp_path), log_files(tmp_path), stats_of(tmp_path)
    assert len(logs) > 2
    assert result.files_written == len(logs) == len(stats)
    assert len({block.file for block in blocks}) == len(logs)
    assert [block.kind for block in blocks] == [DATA_KIND[form]] * (len(blocks) - 1) + [BlockType.DELETE]
    ids = [row["id"] for block in blocks for row in block.rows]
    assert ids == [f"k{number:05d}" for number in range(2000) if number % 10]
    assert len({row["_hoodie_commit_seqno"] for block in blocks for row in block.rows}) == 1800
    if version == "9":
        assert [row for block in blocks[:-1] for row in block.positions or ()] == [n for n in range(2000) if n % 10]
        assert blocks[-1].positions == list(range(0, 2000, 10))
    assert all(20_000 > sum(len(str(row)) for row in block.rows) / 4 for block in blocks)
    assert [stat.log_version for stat in stats] == list(range(1, len(logs) + 1))
    assert sum(stat.num_update_writes for stat in stats) == 1800
    assert [stat.num_deletes for stat in stats] == [0] * (len(stats) - 1) + [200]
    assert all(stat.file_size == (tmp_path / stat.path).stat().st_size for stat in stats)
    assert {row[1] for row in table_rows(tmp_path).values()} == {2}
    assert len(table_rows(tmp_path)) == 1800


@pytest.mark.slow(but="9-GLOBAL_BLOOM")
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_row_that_moves_is_deleted_in_the_log_of_the_partition_that_it_leaves(
    index: str, version: str, tmp_path: Path
) -> None:
    settings = make(tmp_path, version, index=index)
    hf.write(plain_rows([1, 3], ts=9, text="u"), tmp_path, settings)
    assert all(block.positions is None for block in blocks_of(tmp_path))
    moving = plain_rows([1, 3, 5], ts=5, text="m").set_column(1, "part", pa.array(["p0"] * 3))
    hf.write(moving, tmp_path, settings)
    # The log holds newer rows of two of them than the base file: they stay where they are.
    assert blocks_of(tmp_path, "p1")[-1].deletes == [("k00005", "p1")]
    rows = table_rows(tmp_path)
    assert [rows[f"k0000{number}"] for number in (1, 3, 5)] == [("p1", 9, "u1"), ("p1", 9, "u3"), ("p0", 5, "m5")]
    hf.HudiTable.open(tmp_path).delete(plain_rows([1]), {"hoodie.index.type": index})
    back = plain_rows([1], ts=2, text="b").set_column(1, "part", pa.array(["p0"]))
    hf.write(back, tmp_path, settings)  # nothing is left to compare with
    assert table_rows(tmp_path)["k00001"] == ("p0", 2, "b1")
    assert len(table_rows(tmp_path)) == 10


def test_rows_without_meta_columns_are_logged_without_them(tmp_path: Path) -> None:
    settings = make(tmp_path, "9", {"hoodie.populate.meta.fields": "false"})
    hf.write(with_deletes(plain_rows([1, 3], ts=5, text="u"), [False, True]), tmp_path, settings)
    data, deletes = blocks_of(tmp_path)
    assert [{name: row[name] for name in row if name.startswith("_hoodie_") and row[name]} for row in data.rows] == [{}]
    assert deletes.deletes == [("k00003", "p1", 5)]
    assert table_rows(tmp_path)["k00001"][:3] == ("p1", 5, "u1")
    assert "k00003" not in table_rows(tmp_path)


@pytest.mark.slow(but="9")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_write_that_changes_nothing_leaves_no_file(version: str, tmp_path: Path) -> None:
    make(tmp_path, version)
    before = {one.path for one in base_files(tmp_path)}
    assert hf.HudiTable.open(tmp_path).delete(plain_rows([77])).files_written == 0
    assert {one.path for one in base_files(tmp_path)} == before
    assert log_files(tmp_path) == []
    assert_tidy(tmp_path)


def test_columns_that_are_added_are_in_the_blocks_from_then_on(tmp_path: Path) -> None:
    settings = make(tmp_path, "9")
    hf.write(plain_rows([1], ts=2), tmp_path, settings)
    wider = plain_rows([3], ts=3).append_column("more", pa.array([7]))
    hf.write(wider, tmp_path, settings)
    first, second = blocks_of(tmp_path)
    assert ("more" in first.headers[HeaderKey.SCHEMA], "more" in second.headers[HeaderKey.SCHEMA]) == (False, True)
    assert table_rows(tmp_path)["k00001"] == ("p1", 2, "a1", None)
    assert table_rows(tmp_path)["k00003"] == ("p1", 3, "a3", 7)


def test_row_size_follows_from_base_files_and_not_from_logs(tmp_path: Path) -> None:
    settings = make(
        tmp_path, "9", {"hoodie.record.size.estimation.threshold": "0", "hoodie.parquet.small.file.limit": "1"}
    )
    size = sum(stat.total_write_bytes for stat in stats_of(tmp_path)) / 10
    hf.write(plain_rows(range(10), ts=2), tmp_path, settings)
    limits = {"hoodie.parquet.max.file.size": str(int(size * 4))}
    hf.write(plain_rows(range(100, 120)), tmp_path, {**settings, **limits})
    assert {stat.num_writes for stat in stats_of(tmp_path)} == {4, 2}
