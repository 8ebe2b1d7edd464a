"""Writing by a bucket index: which file groups rows go to, what commits say of it, and what is refused.

Modules: hudi_fast.writing.bucket.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.errors import ConfigError, DuplicateKeyError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.index.buckets import bucket_number, bucket_of_keys, first_hashing, load_hashing
from hudi_fast.index.tagging import BucketSettings
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from tests.support.mor_tables import VERSIONS, log_files, stats_of
from tests.support.rows import assert_same_rows
from tests.support.small_tables import assert_tidy, options, plain_rows, table_rows

BUCKETS = 3
SIMPLE = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": str(BUCKETS)}
CONSISTENT = {**SIMPLE, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
COW: dict[str, str] = {}
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
KINDS = [(COW, SIMPLE), (MOR, SIMPLE), (MOR, CONSISTENT)]
KIND_NAMES = ["cow", "mor", "consistent"]
DELETED = "_hoodie_is_deleted"


def write(path: Path, rows: pa.Table, settings: dict[str, Any], operation: str = "upsert") -> hf.WriteResult:
    return hf.write(rows, path, {**settings, "hoodie.datasource.write.operation": operation})


def settings_of(kind: dict[str, str], index: dict[str, str], version: str = "9", **changes: Any) -> dict[str, Any]:
    return {**options(table_version=version, **changes), **kind, **index}


def bucket_of(key: str, count: int = BUCKETS) -> int:
    return int(bucket_of_keys(pa.array([key]), BucketSettings("SIMPLE", count, ("id",)))[0])


def assert_keys_are_in_their_buckets(path: Path, index: dict[str, str]) -> None:
    rows = hf.HudiTable.open(path).to_arrow().to_pylist()
    for row in rows:
        name, key = row["_hoodie_file_name"], row["_hoodie_record_key"]
        if index is SIMPLE:
            assert bucket_number(name) == bucket_of(key)
        else:
            nodes = first_hashing(row["_hoodie_partition_path"], BUCKETS).nodes
            assert name[:36] in {node.prefix for node in nodes}


def expected(*writes: tuple[pa.Table, str]) -> dict[str, tuple[Any, ...]]:
    """What the writes leave if the larger ``ts`` wins."""
    found: dict[str, tuple[Any, ...]] = {}
    for rows, operation in writes:
        for row in rows.to_pylist():
            key = row.pop("id")
            if operation == "delete":
                found.pop(key, None)
            elif key not in found or found[key][1] <= row["ts"]:
                found[key] = tuple(row.values())
    return found


@pytest.mark.slow(but="mor-9")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("kind", "index"), KINDS, ids=KIND_NAMES)
def test_every_key_is_once_in_the_table_and_in_its_bucket(kind, index, version, tmp_path):
    settings = settings_of(kind, index, version)
    writes = [
        (plain_rows(range(20)), "insert"),
        (plain_rows(range(15, 30), ts=2, text="b"), "upsert"),
        (plain_rows(range(5), ts=0, text="late"), "upsert"),
        (plain_rows([*range(8, 12), 900]), "delete"),
        (plain_rows(range(30, 33)), "bulk_insert"),
    ]
    for number, (rows, operation) in enumerate(writes):
        write(tmp_path, rows, settings, operation)
        assert table_rows(tmp_path) == expected(*writes[: number + 1])
    assert_keys_are_in_their_buckets(tmp_path, index)
    assert_tidy(tmp_path)


def test_a_merge_on_read_bucket_begins_with_a_base_file_and_goes_on_in_logs(tmp_path):
    settings = settings_of(MOR, SIMPLE, partition=None, key="id") | {"hoodie.datasource.write.partitionpath.field": ""}
    first = write(tmp_path, plain_rows(range(20)), settings)
    assert (first.inserts, first.updates, first.files_written) == (20, 0, BUCKETS)
    stats = stats_of(tmp_path)
    assert all(stat.path.endswith(".parquet") and stat.prev_commit == "null" for stat in stats)
    assert sorted(stat.file_id[:8] for stat in stats) == ["00000000", "00000001", "00000002"]
    # New keys and known ones alike: the log counts all of them as updates, as real Hudi does.
    second = write(tmp_path, plain_rows(range(10, 40), ts=2), settings)
    assert (second.inserts, second.updates, second.files_written) == (0, 30, BUCKETS)
    assert {stat.file_id for stat in stats_of(tmp_path)} == {stat.file_id for stat in stats}
    assert len(log_files(tmp_path)) == BUCKETS
    assert len(table_rows(tmp_path)) == 40


@pytest.mark.slow("6")
@pytest.mark.parametrize("version", ["6", "9"])
def test_consistent_hashing_begins_with_logs_in_the_groups_of_its_ranges(version, tmp_path):
    settings = settings_of(MOR, CONSISTENT, version)
    result = write(tmp_path, plain_rows(range(30)), settings)
    assert (result.inserts, result.updates) == (0, 30)
    ids = {node.file_id for part in ("p0", "p1") for node in first_hashing(part, BUCKETS).nodes}
    assert {stat.file_id for stat in stats_of(tmp_path)} == ids == {log.file_id for log in log_files(tmp_path)}
    hf.HudiTable.open(tmp_path).services.compact({"hoodie.compact.inline.max.delta.commits": "1"})
    assert {stat.file_id for stat in stats_of(tmp_path)} == ids
    write(tmp_path, plain_rows(range(20, 40), ts=2), settings)
    assert table_rows(tmp_path) == expected((plain_rows(range(30)), ""), (plain_rows(range(20, 40), ts=2), ""))


def test_copy_on_write_rewrites_the_buckets_that_rows_belong_to_and_no_others(tmp_path):
    settings = settings_of(COW, SIMPLE)
    write(tmp_path, plain_rows(range(40)), settings)
    known, new = "k00004", next(n for n in range(100, 200, 2) if bucket_of(f"k{n:05d}") == bucket_of("k00004"))
    result = write(tmp_path, plain_rows([4, new], ts=2), settings)
    assert (result.inserts, result.updates, result.files_written) == (1, 1, 1)
    (stat,) = stats_of(tmp_path)
    assert bucket_number(stat.file_id) == bucket_of(known)


def test_inserts_are_not_looked_up(tmp_path):
    cow, mor = settings_of(COW, SIMPLE), settings_of(MOR, SIMPLE)
    for path, settings in ((tmp_path / "cow", cow), (tmp_path / "mor", mor)):
        write(path, plain_rows([1]), settings)
        write(path, plain_rows([1], ts=2), settings, "insert")
    # As with real Hudi: a file of a COPY_ON_WRITE bucket may hold a key twice then; a log is merged.
    assert hf.HudiTable.open(tmp_path / "cow").to_arrow().num_rows == 2
    assert table_rows(tmp_path / "mor") == {"k00001": ("p1", 2, "a1")}


@pytest.mark.slow("cow")
@pytest.mark.parametrize("kind", [COW, MOR], ids=["cow", "mor"])
def test_inserts_of_stored_keys_can_be_dropped_or_refused(kind, tmp_path):
    settings = settings_of(kind, SIMPLE)
    write(tmp_path, plain_rows([1, 2]), settings)
    policy = "hoodie.datasource.insert.dup.policy"
    with pytest.raises(DuplicateKeyError, match="k00001"):
        write(tmp_path, plain_rows([1, 3], ts=2), {**settings, policy: "fail"}, "insert")
    write(tmp_path, plain_rows([1, 3], ts=2), {**settings, policy: "drop"}, "insert")
    assert table_rows(tmp_path) == expected((plain_rows([1, 2]), ""), (plain_rows([3], ts=2), ""))


@pytest.mark.slow(but="mor-insert_overwrite_table")
@pytest.mark.parametrize("operation", ["insert_overwrite", "insert_overwrite_table"])
@pytest.mark.parametrize("kind", [COW, MOR], ids=["cow", "mor"])
def test_overwritten_buckets_get_new_file_groups(operation, kind, tmp_path):
    settings = settings_of(kind, SIMPLE)
    write(tmp_path, plain_rows(range(20)), settings)
    before = set(hf.HudiTable.open(tmp_path).files()["file_id"].to_pylist())
    write(tmp_path, plain_rows([2, 4, 100]), settings, operation)
    kept = {} if operation.endswith("table") else expected((plain_rows(range(1, 20, 2)), ""))
    assert table_rows(tmp_path) == {**kept, **expected((plain_rows([2, 4, 100]), ""))}
    assert_keys_are_in_their_buckets(tmp_path, SIMPLE)
    files = hf.HudiTable.open(tmp_path).files()
    new = {row["file_id"] for row in files.to_pylist() if row["partition"] == "p0"}
    assert not new & before
    write(tmp_path, plain_rows([2, 6], ts=5), settings)
    assert table_rows(tmp_path)["k00006"] == ("p0", 5, "a6")


def test_deletes_of_keys_whose_bucket_is_not_there_leave_no_file(tmp_path):
    settings = settings_of(MOR, SIMPLE)
    flags = pa.array([False, True, True], pa.bool_())
    result = write(tmp_path, plain_rows([0, 2, 4]).append_column(DELETED, flags), settings)
    assert (result.inserts, result.deletes, result.files_written) == (1, 0, 1)
    assert list(table_rows(tmp_path)) == ["k00000"]


@pytest.mark.slow(but="mor")
@pytest.mark.parametrize(("kind", "index"), KINDS, ids=KIND_NAMES)
def test_rows_that_delete_their_key(kind, index, tmp_path):
    settings = settings_of(kind, index)
    write(tmp_path, plain_rows(range(6)), settings)
    flags = pa.array([True, False, True], pa.bool_())
    write(tmp_path, plain_rows([0, 1, 2], ts=3).append_column(DELETED, flags), settings)
    assert sorted(table_rows(tmp_path)) == ["k00001", "k00003", "k00004", "k00005"]


def keys_of_two(numbers: Sequence[int], ts: int = 1) -> pa.Table:
    rows = plain_rows(numbers, ts=ts)
    return rows.append_column("tenant", pa.array([f"t{number % 2}" for number in numbers]))


def test_a_part_of_the_key_can_be_hashed(tmp_path):
    settings = settings_of(MOR, SIMPLE, key="id,tenant") | {"hoodie.bucket.index.hash.field": "tenant"}
    write(tmp_path, keys_of_two(range(0, 30, 2)), settings)
    assert {stat.partition_path for stat in stats_of(tmp_path)} == {"p0"}
    assert len(stats_of(tmp_path)) == 1  # one tenant, one bucket
    write(tmp_path, keys_of_two(range(0, 60, 2), ts=2), settings)
    table = hf.HudiTable.open(tmp_path)
    assert table.to_arrow().num_rows == 30
    assert table.files().num_rows == 1
    with pytest.raises(ConfigError, match=r"do not belong to that bucket.*hash\.field"):
        write(tmp_path, keys_of_two([1]), {**settings, "hoodie.bucket.index.hash.field": "id"})


@pytest.mark.slow(but="1")
@pytest.mark.parametrize("count", [1, 2, 4, 64])
def test_another_number_of_buckets_than_the_table_s_is_refused(count, tmp_path):
    settings = settings_of(COW, SIMPLE)
    write(tmp_path, plain_rows(range(200)), settings)
    with pytest.raises(ConfigError, match=r"num\.buckets"):
        write(tmp_path, plain_rows([1]), {**settings, "hoodie.bucket.index.num.buckets": str(count)})
    assert table_rows(tmp_path) == expected((plain_rows(range(200)), ""))
    assert_tidy(tmp_path)


@pytest.mark.slow("consistent")
@pytest.mark.parametrize("index", [SIMPLE, CONSISTENT], ids=["simple", "consistent"])
def test_a_table_of_another_index_is_refused(index, tmp_path):
    write(tmp_path, plain_rows(range(4)), settings_of(MOR, {}))
    with pytest.raises(ConfigError, match=r"hoodie\.index\.type"):
        write(tmp_path, plain_rows([1]), settings_of(MOR, index))


@pytest.mark.slow("simple")
@pytest.mark.parametrize("index", [SIMPLE, CONSISTENT], ids=["simple", "consistent"])
def test_buckets_are_not_written_to_by_another_index(index, tmp_path):
    settings = settings_of(MOR, index)
    write(tmp_path, plain_rows(range(6)), settings)
    write(tmp_path, plain_rows([7]), settings)
    other = settings_of(MOR, {})
    for operation in ("upsert", "insert", "delete", "bulk_insert", "insert_overwrite"):
        with pytest.raises(ConfigError, match=r"are buckets: the index SIMPLE.*hoodie\.index\.type=BUCKET"):
            write(tmp_path, plain_rows([7]), other, operation)
    write(tmp_path, plain_rows([1]), other, "delete_partition")
    assert set(table_rows(tmp_path)) == {"k00000", "k00002", "k00004"}


def test_what_a_bucket_index_cannot_do_is_refused_by_name(tmp_path):
    with pytest.raises(ConfigError, match="MERGE_ON_READ"):
        write(tmp_path / "cow", plain_rows([1]), settings_of(COW, CONSISTENT))
    with pytest.raises(ConfigError, match="auto generation of record keys"):
        write(tmp_path / "keyless", plain_rows([1]), settings_of(COW, SIMPLE, key=None, ordering=None), "insert")
    with pytest.raises(UnsupportedFeatureError, match="INMEMORY is not supported for MERGE_ON_READ"):
        write(tmp_path / "memory", plain_rows([1]), settings_of(MOR, {"hoodie.index.type": "INMEMORY"}))
    counts = {"hoodie.bucket.index.partition.expressions": "p0,4"}
    for index, says in ((CONSISTENT, "engine CONSISTENT_HASHING"), ({"hoodie.index.type": "BLOOM"}, "BLOOM")):
        with pytest.raises(ConfigError, match=says):
            write(tmp_path / "counts", plain_rows([1]), settings_of(MOR, {**index, **counts}))
    for text, error in (("p0", ConfigError), ("p0,none", ConfigError), ("(?=p),4", UnsupportedFeatureError)):
        given = {**SIMPLE, "hoodie.bucket.index.partition.expressions": text}
        with pytest.raises(error, match="pattern"):
            write(tmp_path / "counts", plain_rows([1]), settings_of(COW, given))
    assert not (tmp_path / "counts").exists()


def ranges(path: Path, partition: str) -> set[str]:
    state = load_state(Storage(path))
    found = load_hashing(state.storage, state.timeline, partition)
    assert found is not None
    return {node.file_id for node in found.nodes}


@pytest.mark.slow(but="insert_overwrite")
@pytest.mark.parametrize("operation", ["insert_overwrite", "insert_overwrite_table", "delete_partition"])
def test_partitions_whose_rows_are_replaced_get_new_file_groups_for_their_ranges(operation, tmp_path):
    settings = settings_of(MOR, CONSISTENT)
    write(tmp_path, plain_rows(range(20)), settings)
    before = ranges(tmp_path, "p0") | ranges(tmp_path, "p1")
    new = plain_rows([2, 4, 100], ts=3)
    write(tmp_path, new, settings, operation)
    kept = {} if operation.endswith("table") else expected((plain_rows(range(1, 20, 2)), ""))
    left = {**kept, **({} if operation == "delete_partition" else expected((new, "")))}
    assert table_rows(tmp_path) == left
    assert not ranges(tmp_path, "p0") & before
    assert bool(ranges(tmp_path, "p1") & before) == bool(kept)
    more = plain_rows([2, 3, 6, 8], ts=5)
    write(tmp_path, more, settings)
    assert table_rows(tmp_path) == {**left, **expected((more, ""))}
    files = hf.HudiTable.open(tmp_path).files().to_pylist()
    assert {one["file_id"] for one in files if one["partition"] == "p0"} <= ranges(tmp_path, "p0")
    assert_tidy(tmp_path)


def test_rows_are_not_written_to_file_groups_that_another_writer_replaced(tmp_path, monkeypatch):
    settings = settings_of(MOR, CONSISTENT)
    write(tmp_path, plain_rows(range(20)), settings)
    with monkeypatch.context() as patched:
        patched.setattr("hudi_fast.writing.flow.renewed_ranges", lambda *_: [])  # as Apache Hudi does
        write(tmp_path, plain_rows([2]), settings, "delete_partition")
    with pytest.raises(ConfigError, match=r"kept its bucket ranges.*insert_overwrite"):
        write(tmp_path, plain_rows([2, 3], ts=4), settings)
    write(tmp_path, plain_rows([2], ts=4), settings, "insert_overwrite")
    write(tmp_path, plain_rows([4], ts=5), settings)
    left = [*range(1, 20, 2)]
    assert set(table_rows(tmp_path)) == {f"k{number:05d}" for number in (*left, 2, 4)}


def test_an_overwrite_of_ranges_that_fails_leaves_them_as_they_were(tmp_path, monkeypatch):
    settings = settings_of(MOR, CONSISTENT)
    write(tmp_path, plain_rows(range(20)), settings)
    before = ranges(tmp_path, "p0")

    def fail(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr("hudi_fast.writing.flow.record_in_metadata", fail)
        with pytest.raises(hf.HudiError):
            write(tmp_path, plain_rows([2, 4]), settings, "insert_overwrite")
    write(tmp_path, plain_rows([2, 30], ts=4), settings)
    assert ranges(tmp_path, "p0") == before
    assert table_rows(tmp_path) == expected((plain_rows(range(20)), ""), (plain_rows([2, 30], ts=4), ""))
    assert not list((tmp_path / ".hoodie/.bucket_index").rglob("2*.hashing_meta"))


@pytest.mark.slow("cow")
@pytest.mark.parametrize("kind", [COW, MOR], ids=["cow", "mor"])
def test_a_new_table_stores_its_bucket_counts(kind, tmp_path):
    sized = {**SIMPLE, "hoodie.bucket.index.partition.expressions": "p0$,40;x,1"}
    settings = settings_of(kind, sized)
    write(tmp_path, plain_rows(range(80)), settings)
    stored = tmp_path / ".hoodie/.bucket_index/partition_bucket_index_meta/configs/00000000000000.hashing_config"
    assert json.loads(stored.read_text()) == {
        "expressions": "p0$,40;x,1",
        "defaultBucketNumber": BUCKETS,
        "rule": "regex",
        "version": 1,
        "instant": "00000000000000",
    }
    write(tmp_path, plain_rows(range(80), ts=2), settings_of(kind, {"hoodie.index.type": "BUCKET"}))
    files = hf.HudiTable.open(tmp_path).files().to_pylist()
    numbers = {part: {bucket_number(f["file_id"]) for f in files if f["partition"] == part} for part in ("p0", "p1")}
    assert max(numbers["p0"]) > 30
    assert numbers["p1"] == set(range(BUCKETS))
    assert table_rows(tmp_path) == expected((plain_rows(range(80), ts=2), ""))
    others = ({"hoodie.bucket.index.partition.expressions": "p0,8"}, {"hoodie.bucket.index.num.buckets": "8"})
    for other, says in zip(others, ("bucket counts 'p0", "3 buckets in partitions without"), strict=True):
        with pytest.raises(ConfigError, match=says):
            write(tmp_path, plain_rows([1], ts=3), settings_of(kind, {**sized, **other}))


@pytest.mark.slow
def test_a_write_that_replaces_all_rows_may_change_the_bucket_counts(tmp_path):
    folder = tmp_path / ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
    settings = settings_of(COW, SIMPLE)
    write(tmp_path, plain_rows(range(40)), settings)
    for counts in ("p0,20;p1,1", "p0,2"):
        sized = {**settings, "hoodie.bucket.index.partition.expressions": counts}
        done = write(tmp_path, plain_rows(range(40), ts=2), sized, "insert_overwrite_table")
        assert (folder / f"{done.instant}.hashing_config").exists()
        last = write(tmp_path, plain_rows(range(50), ts=3), settings)
        assert table_rows(tmp_path) == expected((plain_rows(range(50), ts=3), ""))
    files = hf.HudiTable.open(tmp_path).files().to_pylist()
    numbers = {part: {bucket_number(f["file_id"]) for f in files if f["partition"] == part} for part in ("p0", "p1")}
    assert numbers == {"p0": {0, 1}, "p1": set(range(BUCKETS))}
    services = hf.HudiTable.open(tmp_path).services
    for instant in (last.instant, done.instant):
        assert services.rollback(instant).rolled_back == (instant,)
    assert not (folder / f"{done.instant}.hashing_config").exists()
    write(tmp_path, plain_rows([3], ts=9), settings)
    assert table_rows(tmp_path) == expected((plain_rows(range(50), ts=3), ""), (plain_rows([3], ts=9), ""))


@pytest.mark.slow
def test_partitions_with_their_own_number_of_buckets(tmp_path):
    settings = settings_of(COW, SIMPLE)
    write(tmp_path, plain_rows([1]), settings)
    folder = tmp_path / ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
    folder.mkdir(parents=True)
    content = {"expressions": "p0,40", "defaultBucketNumber": BUCKETS, "rule": "regex", "version": 1, "instant": "0"}
    (folder / "00000000000000000.hashing_config").write_text(json.dumps(content))
    write(tmp_path, plain_rows(range(80)), settings)
    write(tmp_path, plain_rows(range(80), ts=2), settings)
    files = hf.HudiTable.open(tmp_path).files().to_pylist()
    numbers = {part: max(bucket_number(f["file_id"]) for f in files if f["partition"] == part) for part in ("p0", "p1")}
    assert numbers["p0"] > 30
    assert numbers["p1"] == BUCKETS - 1
    assert len(table_rows(tmp_path)) == 80


@pytest.mark.slow("consistent")
@pytest.mark.parametrize("index", [SIMPLE, CONSISTENT], ids=["simple", "consistent"])
def test_partial_updates_need_stored_keys(index, tmp_path):
    settings = settings_of(MOR, index)
    write(tmp_path, plain_rows(range(6)), settings)
    partial = {**settings, "hudi_fast.partial.update": "true"}
    some = plain_rows([1, 2], ts=5).select(["id", "part", "ts"])
    write(tmp_path, some, partial)
    assert table_rows(tmp_path)["k00001"] == ("p1", 5, "a1")
    with pytest.raises(InvalidDataError, match="k00077"):
        write(tmp_path, plain_rows([1, 77], ts=6).select(["id", "part", "ts"]), partial)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mor_v9_bucket", "mor_v9_consistent_bucket"])
def test_tables_of_real_hudi_are_written_on(name, golden):
    table = golden(name)
    settings = {**table.expected["options"], "hoodie.compact.inline": "false"}
    before = hf.HudiTable.open(table.table)
    groups = set(before.files()["file_id"].to_pylist())
    rows = before.to_arrow()
    data = rows.select([column for column in rows.column_names if not column.startswith("_hoodie_")])
    hf.write(data, table.table, settings)
    after = hf.HudiTable.open(table.table)
    assert set(after.files()["file_id"].to_pylist()) == groups
    assert_same_rows(after.to_arrow(), rows)
