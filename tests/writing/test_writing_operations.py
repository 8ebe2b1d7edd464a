"""What each operation does to rows, files and the timeline, and what it reports."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from hudi_fast.formats.bloom_filter import BloomFilter
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import commits_newest_first, load_state
from tests.support.instrumented_storage import RecordingStorage
from tests.support.mor_tables import mor_options
from tests.support.small_tables import OPTIONS, assert_tidy, listing, options, plain_rows, table_rows, write_to

INSERT = {"hoodie.datasource.write.operation": "insert"}
BULK = {"hoodie.datasource.write.operation": "bulk_insert"}


def newest(path: Path) -> Any:
    return next(commits_newest_first(load_state(Storage(path))))


def counts(result: hf.WriteResult) -> tuple[int, int, int, int]:
    return result.inserts, result.updates, result.deletes, result.files_written


def ids(path: Path) -> Counter[str]:
    return Counter(hf.HudiTable.open(path).to_arrow(columns=["id"])["id"].to_pylist())


UNIQUE = {**INSERT, "hoodie.merge.allow.duplicate.on.inserts": "false"}
STATIC = "hoodie.static.overwrite.partition.paths"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    hf.write(plain_rows(range(10)), tmp_path / "t", options())
    return tmp_path / "t"


def test_a_result_counts_rows_and_files(table: Path) -> None:
    result = hf.write(plain_rows(range(5, 12), ts=2), table, OPTIONS)
    assert counts(result) == (2, 5, 0, 2)
    assert result.operation == "upsert"
    assert (result.plan, result.reason) == ("local", "the rows are in this process")
    files = [path for path in table.glob("*/*.parquet") if result.instant in path.name]
    assert result.bytes_written == sum(path.stat().st_size for path in files)
    assert 0 < result.seconds < 60
    assert counts(hf.HudiTable.open(table).delete(plain_rows([0, 1, 99]))) == (0, 0, 2, 2)


@pytest.mark.slow
def test_late_rows_lose_ties_win_and_a_null_is_the_oldest(table: Path) -> None:
    for ts, wins in ((0, False), (1, True), (2, True), (1, False)):
        result = hf.write(plain_rows([3], ts=ts, text=f"at{ts}-"), table, OPTIONS)
        assert result.updates == wins
    assert table_rows(table)["k00003"] == ("p1", 2, "at2-3")
    nothing = plain_rows([3], text="null").set_column(2, "ts", pa.nulls(1, pa.int64()))
    assert hf.write(nothing, table, OPTIONS).updates == 0
    assert table_rows(table)["k00003"] == ("p1", 2, "at2-3")


def test_the_last_write_wins_without_an_ordering_field(tmp_path: Path) -> None:
    hf.write(plain_rows([1], ts=9), tmp_path / "t", options(ordering=None))
    twice = pa.concat_tables([plain_rows([1], ts=5, text="x"), plain_rows([1], ts=3, text="y")])
    assert hf.write(twice, tmp_path / "t", options(ordering=None)).updates == 1
    assert table_rows(tmp_path / "t") == {"k00001": ("p1", 3, "y1")}


def test_rows_of_a_batch_with_one_key_are_combined(tmp_path: Path) -> None:
    batch = pa.concat_tables(
        [plain_rows([1], ts=ts, text=text) for ts, text in ((2, "a"), (5, "b"), (5, "c"), (1, "d"))]
    )
    assert counts(hf.write(batch, tmp_path / "t", options())) == (1, 0, 0, 1)
    assert table_rows(tmp_path / "t") == {"k00001": ("p1", 5, "c1")}


@pytest.mark.slow
def test_two_ordering_fields_compare_one_after_the_other(tmp_path: Path) -> None:
    def row(ts: int, second: int | None, text: str) -> pa.Table:
        return plain_rows([1], ts=ts, text=text).append_column("second", pa.array([second], pa.int64()))

    settings = options(ordering="ts,second")
    hf.write(row(5, 5, "base"), tmp_path / "t", settings)
    for ts, second, wins in (
        (5, 4, False),
        (4, 9, False),
        (5, None, False),
        (5, 5, True),
        (6, None, True),
        (6, 0, True),
    ):
        assert hf.write(row(ts, second, "x"), tmp_path / "t", settings).updates == wins, (ts, second)


@pytest.mark.slow(but="date32[day]")
@pytest.mark.parametrize(
    "kind", [pa.string(), pa.float64(), pa.timestamp("us"), pa.date32(), pa.decimal128(12, 2)], ids=str
)
def test_ordering_fields_of_other_types(kind: pa.DataType, tmp_path: Path) -> None:
    def row(value: int | None) -> pa.Table:
        values = pa.array([value], pa.int32())
        column = values.cast(pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else values.cast(kind)
        return plain_rows([1]).set_column(2, "ts", column)

    hf.write(row(5), tmp_path / "t", options())
    for value, wins in ((4, False), (None, False), (5, True), (7, True), (6, False)):
        assert hf.write(row(value), tmp_path / "t", options()).updates == wins, value


def test_rows_can_delete_rows(table: Path) -> None:
    def flagged(numbers: list[int], ts: int | None) -> pa.Table:
        rows = plain_rows(numbers).set_column(2, "ts", pa.array([ts] * len(numbers), pa.int64()))
        return rows.append_column("_hoodie_is_deleted", pa.array([True] * len(numbers)))

    assert counts(hf.write(flagged([1, 50], 0), table, OPTIONS))[:3] == (0, 0, 0)  # too late, and unknown
    assert hf.write(flagged([1], 1), table, OPTIONS).deletes == 1
    assert hf.write(flagged([2], None), table, OPTIONS).deletes == 1  # no ordering value: always
    assert set(table_rows(table)) == {f"k{number:05d}" for number in (0, 3, 4, 5, 6, 7, 8, 9)}


def test_a_marker_of_ones_own_deletes_rows(tmp_path: Path) -> None:
    settings = {**options(), "hoodie.payload.delete.field": "text", "hoodie.payload.delete.marker": "gone"}
    hf.write(plain_rows(range(3)), tmp_path / "t", settings)
    rows = plain_rows(range(2), ts=2).set_column(3, "text", pa.array(["gone", "here"]))
    assert counts(hf.write(rows, tmp_path / "t", settings))[:3] == (0, 1, 1)
    assert set(table_rows(tmp_path / "t")) == {"k00001", "k00002"}


def test_a_file_whose_rows_are_all_deleted_stays_as_an_empty_one(table: Path) -> None:
    opened = hf.HudiTable.open(table)
    assert opened.delete(plain_rows(range(10))).deletes == 10
    assert opened.to_arrow().num_rows == 0
    assert opened.files()["rows"].to_pylist() == [0, 0]
    assert hf.write(plain_rows(range(4)), table, OPTIONS).inserts == 4
    assert len(opened.files()) == 2
    assert_tidy(table)


# ---- inserts


def test_an_insert_appends_to_small_files_and_looks_for_nothing(table: Path) -> None:
    before = set(hf.HudiTable.open(table).files()["file_id"].to_pylist())
    result = hf.write(plain_rows(range(8, 12)), table, {**OPTIONS, **INSERT})
    assert counts(result) == (4, 0, 0, 2)
    assert ids(table)["k00008"] == 2
    assert set(hf.HudiTable.open(table).files()["file_id"].to_pylist()) == before
    _, commit = newest(table)
    assert {stat.num_writes for stat in commit.write_stats()} == {7}  # copies count


def test_an_insert_without_small_file_limit_makes_new_files(table: Path) -> None:
    hf.write(plain_rows([20]), table, {**OPTIONS, **INSERT, "hoodie.parquet.small.file.limit": "0"})
    assert len(hf.HudiTable.open(table).files()) == 3


@pytest.mark.slow("false-3")
@pytest.mark.parametrize(("combine", "expected"), [("true", 1), ("false", 3)])
def test_inserts_are_combined_when_asked(combine: str, expected: int, tmp_path: Path) -> None:
    for number, operation in enumerate(("insert", "bulk_insert", "insert_overwrite")):
        batch = pa.concat_tables([plain_rows([1], ts=ts) for ts in (3, 9, 1)])
        settings = {**options(operation=operation), "hoodie.combine.before.insert": combine}
        assert hf.write(batch, tmp_path / str(number), settings).inserts == expected
        found = hf.HudiTable.open(tmp_path / str(number)).to_arrow()["ts"].to_pylist()
        assert sorted(found) == ([9] if combine == "true" else [1, 3, 9])


@pytest.mark.slow
def test_duplicates_are_kept_dropped_or_refused(table: Path) -> None:
    policy = "hoodie.datasource.insert.dup.policy"
    rows = plain_rows(range(8, 12), text="new")
    with pytest.raises(hf.DuplicateKeyError, match=r"k0000[89]"):
        hf.write(rows, table, {**OPTIONS, **INSERT, policy: "fail"})
    assert len(table_rows(table)) == 10
    assert hf.write(rows, table, {**OPTIONS, **INSERT, policy: "drop"}).inserts == 2
    assert table_rows(table)["k00008"] == ("p0", 1, "a8")
    assert hf.write(plain_rows([50]), table, {**OPTIONS, **INSERT, policy: "fail"}).inserts == 1
    old_name = {"hoodie.datasource.write.insert.drop.duplicates": "true"}
    result = hf.write(plain_rows([8, 60]), table, {**OPTIONS, **old_name})
    assert (result.operation, result.inserts) == ("insert", 1)
    assert hf.write(rows, table, {**OPTIONS, **INSERT, policy: "none"}).inserts == 4
    assert_tidy(table)


def test_inserts_fill_small_files_and_then_new_ones(tmp_path: Path) -> None:
    sizes = {
        "hoodie.parquet.max.file.size": "20480",
        "hoodie.parquet.small.file.limit": "15000",
        "hoodie.copyonwrite.record.size.estimate": "1024",
    }
    path = tmp_path / "t"
    hf.write(plain_rows(range(50), partitions=1), path, {**options(), **sizes})
    opened = hf.HudiTable.open(path)
    assert sorted(opened.files()["rows"].to_pylist()) == [10, 20, 20]
    assert len(set(opened.files()["file_id"].to_pylist())) == 3
    size = {row["file_id"]: row["bytes"] for row in opened.files().to_pylist()}
    room = {file_id: (20480 - bytes_) // 1024 for file_id, bytes_ in size.items()}
    hf.write(plain_rows(range(100, 160), partitions=1), path, {**options(), **sizes})
    grown = {row["file_id"]: row["rows"] for row in opened.files().to_pylist()}
    for file_id in size:
        small = size[file_id] < 15000
        assert grown[file_id] in ((10 + room[file_id], 20 + room[file_id]) if small else (10, 20))
    assert sum(grown.values()) == 110
    assert_tidy(path)


@pytest.mark.slow(but="NONE")
@pytest.mark.parametrize("mode", ["NONE", "GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION"])
def test_a_bulk_insert_sorts_as_asked_and_always_makes_new_files(mode: str, table: Path) -> None:
    rows = plain_rows([27, 21, 29, 23, 25, 24, 22])
    result = hf.write(rows, table, {**OPTIONS, **BULK, "hoodie.bulkinsert.sort.mode": mode})
    assert counts(result) == (7, 0, 0, 2)
    (odd,) = (path for path in table.glob("p1/*.parquet") if result.instant in path.name)
    keys = pq.read_table(odd, partitioning=None)["id"].to_pylist()
    given = ["k00027", "k00021", "k00029", "k00023", "k00025"]
    assert keys == (sorted(given) if "SORT" in mode else given)


def test_a_bulk_insert_sorts_by_columns_of_ones_own(table: Path) -> None:
    rows = plain_rows([21, 23, 25]).set_column(3, "text", pa.array(["c", "a", "b"]))
    settings = {**OPTIONS, **BULK, "hoodie.bulkinsert.user.defined.partitioner.sort.columns": "text"}
    result = hf.write(rows, table, settings)
    (file,) = (path for path in table.glob("*/*.parquet") if result.instant in path.name)
    assert pq.read_table(file, partitioning=None)["text"].to_pylist() == ["a", "b", "c"]


def placed_rows(numbers: list[int | None]) -> pa.Table:
    """Rows of one partition with a struct; its field is the number, null within a null struct for None."""
    places = [None if number is None else {"at": {"x": number}} for number in numbers]
    kind = pa.struct([("at", pa.struct([("x", pa.int32())]))])
    return plain_rows(range(len(numbers)), partitions=1).append_column("place", pa.array(places, kind))


SORTED_BY = "hoodie.bulkinsert.user.defined.partitioner.sort.columns"


def test_a_bulk_insert_sorts_by_fields_of_structs(tmp_path: Path) -> None:
    settings = {**options(), **BULK, SORTED_BY: "place.at.x,text"}
    hf.write(placed_rows([3, 1, None, 2, 1]), tmp_path, settings)
    (file,) = tmp_path.glob("p0/*.parquet")
    rows = pq.read_table(file, partitioning=None)
    assert rows["place"].to_pylist() == [{"at": {"x": one}} for one in (1, 1, 2, 3)] + [None]
    assert rows["id"].to_pylist() == ["k00001", "k00004", "k00003", "k00000", "k00002"]


@pytest.mark.parametrize(
    ("column", "error", "said"),
    [
        ("place.at.y", hf.ConfigError, r"no column 'place\.at\.y' to sort by; the rows have id, part, ts, text, place"),
        ("nowhere", hf.ConfigError, "no column 'nowhere'"),
        ("place.at", hf.UnsupportedFeatureError, r"sorted by 'place\.at', whose type is struct<x: int32>"),
    ],
)
def test_sort_columns_that_do_not_fit_are_refused_before_anything_is_written(
    column: str, error: type[Exception], said: str, tmp_path: Path
) -> None:
    hf.write(placed_rows([1]), tmp_path, options())
    before = listing(tmp_path)
    with pytest.raises(error, match=said):
        hf.write(placed_rows([1, 2]), tmp_path, {**options(), **BULK, SORTED_BY: column})
    assert listing(tmp_path) == before


def test_the_record_key_may_follow_the_sort_columns(table: Path) -> None:
    rows = plain_rows([25, 23, 21]).set_column(3, "text", pa.array(["a", "b", "a"]))
    settings = {
        **OPTIONS,
        **BULK,
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns": "text",
        "hoodie.bulkinsert.sort.suffix.record_key": "true",
    }
    result = hf.write(rows, table, settings)
    (file,) = (path for path in table.glob("*/*.parquet") if result.instant in path.name)
    assert pq.read_table(file, partitioning=None)["id"].to_pylist() == ["k00021", "k00025", "k00023"]


@pytest.mark.slow
@pytest.mark.parametrize("random", [True, False], ids=["incompressible", "compressible"])
def test_a_bulk_insert_rolls_to_the_next_file_when_one_is_full(random: bool, tmp_path: Path) -> None:
    import numpy as np

    count, limit = 60_000, 1 << 20
    made = np.random.default_rng(3)
    text = [made.bytes(40).hex() if random else "the same text again and again " * 3 for _ in range(count)]
    rows = plain_rows(range(count), partitions=1).set_column(3, "text", pa.array(text))
    result = hf.write(rows, tmp_path / "t", {**options(), **BULK, "hoodie.parquet.max.file.size": str(limit)})
    files = hf.HudiTable.open(tmp_path / "t").files()
    sizes, names = files["bytes"].to_pylist(), files["file_id"].to_pylist()
    assert sum(files["rows"].to_pylist()) == result.inserts == count
    assert max(sizes) < 1.4 * limit
    assert len(sizes) <= 1 + sum(sizes) / (0.5 * limit)
    assert sorted(int(name.rpartition("-")[2]) for name in names) == list(range(len(names)))
    assert len({name.rpartition("-")[0] for name in names}) == 1
    assert len(table_rows(tmp_path / "t")) == count


# ---- replacing


def test_insert_overwrite_replaces_the_partitions_it_meets(table: Path) -> None:
    opened = hf.HudiTable.open(table)
    first = opened.history()["instant"][0].as_py()
    result = opened.insert_overwrite(plain_rows([1, 101]))
    assert counts(result) == (2, 0, 0, 1)
    assert set(table_rows(table)) == {"k00000", "k00002", "k00004", "k00006", "k00008", "k00001", "k00101"}
    instant, commit = newest(table)
    assert instant.action == "replacecommit"
    assert {name: len(each) for name, each in commit.partition_to_replace_file_ids.items()} == {"p1": 1}
    assert opened.to_arrow(as_of=first).num_rows == 10
    hf.write(plain_rows([3], ts=5), table, OPTIONS)
    assert len(table_rows(table)) == 8


def test_insert_overwrite_table_replaces_all_and_keeps_history_in_every_mode(table: Path) -> None:
    opened = hf.HudiTable.open(table)
    first = opened.history()["instant"][0].as_py()
    for mode in ("append", "overwrite"):
        hf.write(plain_rows([7]), table, options(operation="insert_overwrite_table"), mode=mode)
        assert set(table_rows(table)) == {"k00007"}
        assert opened.to_arrow(as_of=first).num_rows == 10


def test_partitions_are_deleted_by_rows_that_name_them(table: Path) -> None:
    result = hf.write(plain_rows([1, 3]).select(["part"]), table, options(operation="delete_partition"))
    assert counts(result) == (0, 0, 0, 0)
    assert set(table_rows(table)) == {"k00000", "k00002", "k00004", "k00006", "k00008"}


def test_overwrite_makes_a_new_table_of_another_kind(table: Path) -> None:
    settings = options(key="text", partition=None, ordering=None, table_version="6")
    hf.write(plain_rows([1, 2]), table, settings, mode="overwrite")
    opened = hf.HudiTable.open(table)
    assert (opened.version, opened.config.record_key_fields, opened.config.partition_fields) == (6, ("text",), ())
    assert len(opened.history()) == 1
    assert not (table / "p0").exists()
    assert_tidy(table)


# ---- commits


@pytest.mark.slow(but="upsert")
@pytest.mark.parametrize("operation", ["upsert", "insert", "delete", "bulk_insert"])
def test_a_write_without_rows_commits_unless_told_not_to(operation: str, table: Path) -> None:
    opened = hf.HudiTable.open(table)
    nothing = plain_rows([])
    result = opened.write(nothing, operation, {"hoodie.allow.empty.commit": "false"})
    assert (result.instant, *counts(result)) == ("", 0, 0, 0, 0)
    assert len(opened.history()) == 1
    result = opened.write(nothing, operation)
    assert opened.history()["instant"].to_pylist()[-1] == result.instant
    assert len(opened.history()) == 2
    assert opened.to_arrow().num_rows == 10
    assert_tidy(table)


def test_extra_metadata_goes_into_the_commit(table: Path) -> None:
    hf.write(plain_rows([1], ts=2), table, {**OPTIONS, "_job": "nightly"})
    _, commit = newest(table)
    assert commit.extra_metadata["_job"] == "nightly"
    assert commit.operation_type == "UPSERT"
    assert json.loads(commit.extra_metadata["schema"])["name"] == "t_record"


@pytest.mark.parametrize("version", ["6", "9"])
def test_write_stats_say_what_was_written(version: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    hf.write(plain_rows(range(6), partitions=1), path, options(table_version=version))
    first, commit = newest(path)
    (created,) = commit.write_stats()
    assert (created.num_writes, created.num_inserts, created.num_update_writes, created.num_deletes) == (6, 6, 0, 0)
    assert created.prev_commit == "null"
    rows = pa.concat_tables([plain_rows([0], ts=2, partitions=1), plain_rows([1], ts=0, partitions=1)])
    rows = pa.concat_tables([rows, plain_rows([9], partitions=1)])
    gone = rows.append_column("_hoodie_is_deleted", pa.array([False] * 3))
    last = plain_rows([2], ts=3, partitions=1).append_column("_hoodie_is_deleted", pa.array([True]))
    hf.write(pa.concat_tables([gone, last]), path, options())
    _, commit = newest(path)
    (merged,) = commit.write_stats()
    assert (merged.num_writes, merged.num_inserts, merged.num_update_writes, merged.num_deletes) == (6, 1, 1, 1)
    assert merged.prev_commit == first.requested
    assert merged.prev_base_file == created.path.rpartition("/")[2]
    assert merged.file_id == created.file_id
    assert merged.file_size == merged.total_write_bytes == (path / merged.path).stat().st_size


def test_sequence_numbers_are_unique_within_a_write(table: Path) -> None:
    result = hf.write(plain_rows(range(5, 40), ts=2), table, {**OPTIONS, "hoodie.parquet.max.file.size": "12000"})
    rows = hf.HudiTable.open(table).to_arrow(columns=["_hoodie_commit_time", "_hoodie_commit_seqno"])
    numbers = [row["_hoodie_commit_seqno"] for row in rows.to_pylist() if row["_hoodie_commit_time"] == result.instant]
    assert len(set(numbers)) == len(numbers) == 35
    assert all(number.startswith(f"{result.instant}_") and number.count("_") == 2 for number in numbers)


@pytest.mark.slow
def test_footers_hold_the_keys_of_their_files_after_every_kind_of_write(table: Path) -> None:
    opened = hf.HudiTable.open(table)
    hf.write(plain_rows([*range(3), 77, 78], ts=2), table, OPTIONS)
    opened.delete(plain_rows([4, 5]))
    opened.insert(plain_rows([90, 91]))
    opened.bulk_insert(plain_rows([95, 96]))
    for row in opened.files().to_pylist():
        path = table / row["partition"] / row["base_file"]
        footer = {key.decode(): value.decode() for key, value in pq.read_metadata(path).metadata.items()}
        keys = pq.read_table(path, columns=["_hoodie_record_key"], partitioning=None).column(0)
        assert footer["hoodie_min_record_key"] == min(keys.to_pylist())
        assert footer["hoodie_max_record_key"] == max(keys.to_pylist())
        bloom = BloomFilter.from_base64(
            footer["org.apache.hudi.bloomfilter"], footer["hoodie_bloom_filter_type_code"], where=str(path)
        )
        assert bloom.might_contain(keys.combine_chunks()).all()
        schema = fastavro.parse_schema(json.loads(footer["parquet.avro.schema"]))
        assert [field["name"] for field in schema["fields"]] == pq.read_schema(path).names


# ---- indexes


@pytest.mark.slow("BLOOM")
@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM"])
def test_keys_are_unique_in_a_partition(index: str, table: Path) -> None:
    moved = plain_rows([1], ts=2).set_column(1, "part", pa.array(["p0"]))
    assert counts(hf.write(moved, table, options(index=index)))[:3] == (1, 0, 0)
    assert ids(table)["k00001"] == 2


@pytest.mark.slow("GLOBAL_BLOOM")
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
def test_keys_are_unique_in_a_table_and_rows_move(index: str, table: Path) -> None:
    def moved(ts: int, part: str) -> pa.Table:
        return plain_rows([1], ts=ts, text=part).set_column(1, "part", pa.array([part]))

    assert counts(hf.write(moved(2, "p0"), table, options(index=index)))[:3] == (1, 0, 1)
    assert counts(hf.write(moved(1, "new"), table, options(index=index)))[:3] == (0, 0, 0)  # late
    assert table_rows(table)["k00001"] == ("p0", 2, "p01")
    stays = {f"hoodie.{index.removeprefix('GLOBAL_').lower()}.index.update.partition.path": "false"}
    assert counts(hf.write(moved(3, "p1"), table, {**options(index=index), **stays}))[:3] == (0, 1, 0)
    rows = hf.HudiTable.open(table).to_arrow(columns=["_hoodie_partition_path", "id", "ts"]).to_pylist()
    assert [row for row in rows if row["id"] == "k00001"] == [{"_hoodie_partition_path": "p0", "id": "k00001", "ts": 3}]
    gone = moved(9, "elsewhere").select(["id", "part"])
    assert hf.HudiTable.open(table).delete(gone, {"hoodie.index.type": index}).deletes == 1
    assert_tidy(table)


@pytest.mark.slow(but="false-INMEMORY")
@pytest.mark.parametrize("index", ["SIMPLE", "INMEMORY", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
@pytest.mark.parametrize("ranges", ["true", "false"])
def test_every_index_finds_every_key(index: str, ranges: str, tmp_path: Path) -> None:
    settings = {
        **options(index=index),
        "hoodie.bloom.index.prune.by.ranges": ranges,
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.parquet.max.file.size": "40960",
    }
    names = ["", "a", "zz", "é", "鍵", "😀", "\uffee", "a,b:c", "x" * 300]
    for number in range(3):
        rows = plain_rows(range(number * 40, number * 40 + 40))
        hf.write(
            rows.set_column(0, "id", pa.array([f"{names[i % 9]}{number}-{i}" for i in range(40)])),
            tmp_path / "t",
            settings,
        )
    stored = hf.HudiTable.open(tmp_path / "t").to_arrow()
    result = hf.write(stored, tmp_path / "t", settings)
    assert counts(result)[:3] == (0, 120, 0)


def test_key_ranges_and_bloom_filters_spare_reading_keys(tmp_path: Path) -> None:
    settings = {**options(index="BLOOM"), "hoodie.parquet.small.file.limit": "0"}
    for start in (0, 100, 200):
        hf.write(plain_rows(range(start, start + 50), partitions=1), tmp_path / "t", settings)
    storage = RecordingStorage(tmp_path / "t")
    write_to(storage, plain_rows([110, 160], ts=2, partitions=1), settings)
    opens = (call.path for call in storage.calls if call.name == "open_input")
    opened = Counter(path for path in opens if path.endswith(".parquet"))
    assert sorted(opened.values()) == [1, 1, 2]  # every footer, and the one file that holds a key again


def test_a_key_that_was_in_two_partitions_is_in_one_after_a_global_upsert(table: Path) -> None:
    hf.write(plain_rows([1]).set_column(1, "part", pa.array(["p0"])), table, OPTIONS)
    assert ids(table)["k00001"] == 2
    result = hf.write(plain_rows([1], ts=5), table, options(index="GLOBAL_SIMPLE"))
    assert counts(result)[:3] == (0, 1, 1)
    assert table_rows(table)["k00001"] == ("p1", 5, "a1")
    assert_tidy(table)


@pytest.mark.slow("True")
@pytest.mark.parametrize("mor", [False, True])
def test_an_insert_is_merged_with_its_key_in_the_file_that_takes_it(mor: bool, tmp_path: Path) -> None:
    settings = mor_options() if mor else options()
    hf.write(plain_rows([0, 1, 2], ts=5), tmp_path, settings)
    late, new, twice = plain_rows([0], ts=1, text="late"), plain_rows([2], ts=9, text="new"), plain_rows([4, 4], ts=9)
    done = hf.write(pa.concat_tables([late, new, twice]), tmp_path, {**settings, **UNIQUE})
    assert done.inserts == 1
    assert table_rows(tmp_path) == {
        "k00000": ("p0", 5, "a0"),
        "k00001": ("p1", 5, "a1"),
        "k00002": ("p0", 9, "new2"),
        "k00004": ("p0", 9, "a4"),
    }
    hf.write(plain_rows([0, 0]), tmp_path, {**settings, **INSERT})
    assert ids(tmp_path)["k00000"] == 3
    assert_tidy(tmp_path)


def test_an_insert_into_a_bucket_is_merged_too(tmp_path: Path) -> None:
    settings = {**options(index="BUCKET"), "hoodie.bucket.index.num.buckets": "2"}
    hf.write(plain_rows([0, 1], ts=5), tmp_path, settings)
    hf.write(plain_rows([0, 2], ts=9, text="new"), tmp_path, {**settings, **UNIQUE})
    assert table_rows(tmp_path)["k00000"] == ("p0", 9, "new0")
    assert len(ids(tmp_path)) == 3


def test_inserts_into_new_files_are_not_compared(tmp_path: Path) -> None:
    settings = {**options(), "hoodie.parquet.small.file.limit": "0"}
    hf.write(plain_rows([0], ts=5), tmp_path, settings)
    hf.write(plain_rows([0], ts=9), tmp_path, {**settings, **UNIQUE})
    assert ids(tmp_path)["k00000"] == 2


def test_an_overwrite_replaces_the_partitions_that_are_named(table: Path) -> None:
    overwrite = {**options(), "hoodie.datasource.write.operation": "insert_overwrite"}
    hf.write(plain_rows([20], partitions=2), table, {**overwrite, STATIC: "p1,none"})
    assert ids(table) == Counter(f"k{number:05d}" for number in (0, 2, 4, 6, 8, 20))
    hf.write(plain_rows([]), table, {**overwrite, STATIC: "p0"})
    assert ids(table) == Counter()
    assert_tidy(table)


@pytest.mark.parametrize("operation", ["upsert", "delete"])
def test_keys_stay_unique_if_upserts_are_not_to_be_combined(operation: str, tmp_path: Path) -> None:
    settings = {**options(), f"hoodie.combine.before.{operation}": "false"}
    hf.write(plain_rows([0, 0, 1]), tmp_path, settings)
    assert ids(tmp_path) == Counter(["k00000", "k00001"])
    hf.write(plain_rows([0, 0], ts=2), tmp_path, {**settings, "hoodie.datasource.write.operation": operation})
    assert ids(tmp_path) == Counter(["k00000", "k00001"][operation == "delete" :])


def test_dictionary_encoding_can_be_switched_off(tmp_path: Path) -> None:
    rows = plain_rows(range(200), partitions=1).set_column(3, "text", pa.array(["same"] * 200))
    found = {}
    for switch in ("true", "false"):
        hf.write(rows, tmp_path / switch, {**options(), "hoodie.parquet.dictionary.enabled": switch})
        (file,) = (tmp_path / switch).glob("p0/*.parquet")
        group = pq.ParquetFile(file).metadata.row_group(0)
        chunks = [group.column(at) for at in range(group.num_columns)]
        found[switch] = [one.path_in_schema for one in chunks if one.has_dictionary_page]
    assert "text" in found["true"]
    assert found["false"] == []


def test_the_compression_ratio_is_how_far_a_file_may_exceed_its_size(tmp_path: Path) -> None:
    rows = plain_rows(range(100), partitions=1)
    few = {**options(), **BULK, "hudi_fast.max.file.rows": "20"}
    for ratio, files in (("0.0", 5), ("1.0", 3)):
        done = hf.write(rows, tmp_path / ratio, {**few, "hoodie.parquet.compression.ratio": ratio})
        assert done.files_written == files
