"""Validation finds what is planted in a metadata table, and nothing in those that real Hudi wrote.

Modules: hudi_fast.services.validate, hudi_fast.services.validation.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from hudi_fast.config.properties_file import load_properties, update_properties
from hudi_fast.formats.bloom_filter import BloomFilter
from hudi_fast.formats.log.blocks import command_block
from hudi_fast.metadata_table.keys import bloom_key, column_stats_key, partition_stats_key
from hudi_fast.metadata_table.read import scan
from hudi_fast.metadata_table.state import open_state
from hudi_fast.metadata_table.table import metadata_storage
from hudi_fast.storage.base import Storage
from hudi_fast.writing.write_plan import WriteOutcome, WritePlan
from tests.services.planted import metadata, plant
from tests.support.golden import Golden
from tests.support.interleaving import LateEngine, settings_for, write_during
from tests.support.mor_tables import log_files
from tests.support.sessions import write_engine
from tests.support.small_tables import options, plain_rows

EVERYTHING = {
    "hoodie.metadata.index.bloom.filter.enable": True,
    "hoodie.metadata.global.record.level.index.enable": True,
    "hoodie.metadata.global.record.level.index.min.filegroup.count": 2,
    "hoodie.metadata.index.secondary.column": "text",
    "hoodie.index.name": "words",
}
TABLES = [
    "cow_v6_mixed",
    "cow_v9_cdc",
    "cow_v9_restored",
    "h015_cow_record_index",
    "h015_mor_rollback_compacted",
    "h015_mor_types",
    "mor_v8_secondary_index",
    "mor_v9_alltypes",
    "mor_v9_record_index",
    "mor_v9_schema_evolved_logs",
    "mor_v9_secondary_index",
]


def validate(path: Path, *partitions: str, **more: Any) -> Any:
    return hf.HudiTable.open(path).services.validate(partitions, **more)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Twenty rows in p0 and p1, with every kind of index."""
    hf.write(plain_rows(range(20)), tmp_path, {**options(), **EVERYTHING})
    assert validate(tmp_path).ok
    return tmp_path


def base_file(path: Path, partition: str) -> str:
    (found,) = (path / partition).glob("*.parquet")
    return found.name


def rows_of(path: Path, partition: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = scan(metadata(path), partition).to_pylist()
    return rows


def told(path: Path, partition: str) -> list[tuple[Any, ...]]:
    """What validation says of one metadata partition; all others are as they should be."""
    result = validate(path)
    assert not result.ok
    counts = {row["partition"]: row["differences"] for row in result.summary.to_pylist()}
    assert {name for name, count in counts.items() if count} == {partition}
    assert counts[partition] == result.differences.num_rows
    return [(row["what"], row["key"], row["expected"], row["found"]) for row in result.differences.to_pylist()]


@pytest.mark.slow("h015_cow_record_index", "mor_v8_secondary_index")
@pytest.mark.parametrize("name", TABLES)
def test_tables_of_real_hudi_have_no_differences(name: str, golden: Callable[[str], Golden]) -> None:
    result = validate(golden(name).table)
    assert result.differences.to_pylist() == []
    assert result.ok
    assert result.summary.num_rows
    assert all(row["expected"] and row["note"] is None for row in result.summary.to_pylist())


@pytest.mark.slow(but="6")
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_tables_with_logs_of_ours_have_no_differences(version: str, tmp_path: Path) -> None:
    settings = {
        **options(table_version=version),
        **(EVERYTHING if version != "6" else dict(list(EVERYTHING.items())[:3])),
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    }
    hf.write(plain_rows(range(20)), tmp_path, settings)
    hf.write(plain_rows(range(15, 30), ts=2, text="b"), tmp_path, settings)
    hf.write(plain_rows([3, 16], ts=3), tmp_path, {**settings, "hoodie.datasource.write.operation": "delete"})
    assert validate(tmp_path).differences.to_pylist() == []
    hf.HudiTable.open(tmp_path).services.compact()
    result = validate(tmp_path)
    assert result.differences.to_pylist() == []
    counts = {row["partition"]: row["expected"] for row in result.summary.to_pylist()}
    assert counts["record_index"] == 28
    assert counts["bloom_filters"] == 6  # files that were compacted, and those that came of it


@pytest.mark.slow
def test_a_file_that_is_not_listed(table: Path) -> None:
    name = base_file(table, "p0")
    size = (table / "p0" / name).stat().st_size
    plant(table, "files", [{"key": "p0", "type": 2, "name": name, "size": 0, "deleted": True}])
    assert told(table, "files") == [("missing file", f"p0/{name}", str(size), None)]


@pytest.mark.slow
def test_a_file_with_a_wrong_size_and_one_that_is_not_there(table: Path) -> None:
    name = base_file(table, "p1")
    size = (table / "p1" / name).stat().st_size
    wrong = [(name, size + 1), (name.replace(".parquet", "x.parquet"), 7)]
    plant(
        table,
        "files",
        [{"key": "p1", "type": 2, "name": one, "size": each, "deleted": False} for one, each in wrong],
    )
    assert told(table, "files") == [
        ("size", f"p1/{name}", str(size), str(size + 1)),
        ("no such file", f"p1/{wrong[1][0]}", None, "7"),
    ]


@pytest.mark.slow
def test_partitions_that_are_not_named_or_not_there(table: Path) -> None:
    names = [("p1", True), ("p7", False)]
    plant(
        table,
        "files",
        [{"key": "__all_partitions__", "type": 1, "name": name, "size": 0, "deleted": gone} for name, gone in names],
    )
    found = {(what, key) for what, key, _, _ in told(table, "files")}
    assert found == {
        ("missing partition", "__all_partitions__/p1"),
        ("no such partition", "__all_partitions__/p7"),
    }


def stat_of(path: Path, partition: str, stored_key: str, /, **changes: Any) -> dict[str, Any]:
    (row,) = [row for row in rows_of(path, partition) if row["key"] == stored_key]
    return {**row, "tight": True, **changes}


@pytest.mark.slow
def test_a_wrong_greatest_value(table: Path) -> None:
    name = base_file(table, "p0")
    key = column_stats_key("text", "p0", name)
    plant(table, "column_stats", [stat_of(table, "column_stats", key, max={"StringWrapper": {"value": "a6"}})])
    assert told(table, "column_stats") == [("greatest value", f"text of {name}", "a8", "a6")]


@pytest.mark.slow
def test_wrong_counts_and_no_least_value(table: Path) -> None:
    name = base_file(table, "p0")
    key = column_stats_key("ts", "p0", name)
    plant(table, "column_stats", [stat_of(table, "column_stats", key, min=None, max=None, null_count=3)])
    assert told(table, "column_stats") == [
        ("least value", f"ts of {name}", "1", "none"),
        ("greatest value", f"ts of {name}", "1", "none"),
        ("nulls", f"ts of {name}", "0", "3"),
    ]


@pytest.mark.slow
def test_statistics_of_no_file_and_none_of_a_file(table: Path) -> None:
    name = base_file(table, "p0")
    gone = [row["key"] for row in rows_of(table, "column_stats") if row["file_name"] == name]
    stale = column_stats_key("ts", "p0", "gone.parquet")
    row = stat_of(table, "column_stats", column_stats_key("ts", "p0", name), key=stale, file_name="gone.parquet")
    plant(table, "column_stats", [row], tuple(gone))
    assert told(table, "column_stats") == [
        ("stale statistics", "ts of gone.parquet", None, None),
        ("missing statistics", name, None, None),
    ]


@pytest.mark.slow("True")
@pytest.mark.parametrize("tight", [True, False])
def test_a_partition_whose_range_is_too_narrow(tight: bool, table: Path) -> None:
    key = partition_stats_key("text", "p1")
    narrow = stat_of(table, "partition_stats", key, min={"StringWrapper": {"value": "a2"}})
    plant(table, "partition_stats", [], (key,))
    plant(table, "partition_stats", [{**narrow, "tight": tight}])
    assert told(table, "partition_stats") == [("least value", "text of p1", "a1", "a2")]


@pytest.mark.slow
@pytest.mark.parametrize("tight", [True, False])
def test_a_partition_whose_range_is_wider_misleads_nobody(tight: bool, table: Path) -> None:
    wide = stat_of(table, "partition_stats", partition_stats_key("text", "p1"), max={"StringWrapper": {"value": "b"}})
    plant(table, "partition_stats", [{**wide, "tight": tight}])
    assert validate(table).ok


@pytest.mark.slow
def test_a_filter_that_is_missing_stale_or_lacks_keys(table: Path) -> None:
    names = {partition: base_file(table, partition) for partition in ("p0", "p1")}
    (stored,) = [row for row in rows_of(table, "bloom_filters") if row["key"] == bloom_key("p0", names["p0"])]
    nothing = BloomFilter.create(10).to_base64().encode()
    rows = [{**stored, "filter": nothing}, {**stored, "key": bloom_key("p0", "gone.parquet")}]
    plant(table, "bloom_filters", rows, (bloom_key("p1", names["p1"]),))
    found = told(table, "bloom_filters")
    assert sorted(found, key=str) == sorted(
        [
            ("missing filter", f"p1/{names['p1']}", None, None),
            ("filter", f"p0/{names['p0']}", "a filter of all keys of the file", "one without 10 of them"),
            ("stale filter", bloom_key("p0", "gone.parquet"), None, None),
        ],
        key=str,
    )


@pytest.mark.slow
def test_a_filter_of_a_function_that_lacks_results(table: Path) -> None:
    name, index = base_file(table, "p0"), "expr_index_heard"
    services = hf.HudiTable.open(table).services
    services.index("expr_index", ["text"], "heard", "upper", options={"hoodie.expression.index.type": "bloom_filters"})
    (stored,) = [row for row in rows_of(table, index) if row["key"] == bloom_key("p0", name)]
    other = BloomFilter.create(50)
    other.add(pa.array([f"A{number}" for number in range(20)]))
    plant(table, index, [{**stored, "filter": other.to_base64().encode()}])
    assert validate(table).ok
    plant(table, index, [{**stored, "filter": BloomFilter.create(10).to_base64().encode()}])
    assert told(table, index) == [
        ("filter", f"p0/{name}", "a filter of all keys of the file", "one without 10 of them")
    ]


@pytest.mark.slow
def test_another_filter_that_knows_all_keys_is_none_the_worse(table: Path) -> None:
    name = base_file(table, "p0")
    (stored,) = [row for row in rows_of(table, "bloom_filters") if row["key"] == bloom_key("p0", name)]
    other = BloomFilter.create(50)
    other.add(pq.read_table(table / "p0" / name).column("_hoodie_record_key"))
    plant(table, "bloom_filters", [{**stored, "filter": other.to_base64().encode()}])
    assert validate(table).ok


@pytest.mark.slow
def test_keys_that_are_stale_missing_or_elsewhere(table: Path) -> None:
    rows = {row["key"]: row for row in rows_of(table, "record_index")}
    other = {**rows["k00002"], "file_id": rows["k00001"]["file_id"], "partition": "p1"}
    plant(table, "record_index", [{**rows["k00001"], "key": "k77777"}, other], ("k00005",))
    found = told(table, "record_index")
    place = {
        name: f"p{number}/{rows[key]['file_id']}" for name, number, key in (("a", 0, "k00002"), ("b", 1, "k00001"))
    }
    assert sorted(found, key=str) == sorted(
        [
            ("stale key", "k77777", None, place["b"]),
            ("missing key", "k00005", place["b"], None),
            ("location", "k00002", place["a"], place["b"]),
        ],
        key=str,
    )


@pytest.mark.slow
def test_pairs_of_a_secondary_index_that_are_stale_or_missing(table: Path) -> None:
    plant(table, "secondary_index_words", [{"key": "a4$k00006", "deleted": False}], ("a6$k00006",))
    found = told(table, "secondary_index_words")
    assert sorted(found) == [("missing key", "a6$k00006", None, None), ("stale key", "a4$k00006", None, None)]


@pytest.mark.slow
def test_a_key_in_two_places_is_in_one_too_many(table: Path) -> None:
    hf.HudiTable.open(table).services.drop_index("words")
    storage, named = Storage(table), "hoodie.table.metadata.partitions"
    partitions = load_properties(storage)[named]
    update_properties(storage, {named: partitions.replace(",record_index", "")})
    off = {"hoodie.metadata.global.record.level.index.enable": False}
    hf.write(plain_rows([4, 4], text="again"), table, {**options(operation="bulk_insert"), **off})
    update_properties(storage, {named: partitions})
    (known,) = [row for row in rows_of(table, "record_index") if row["key"] == "k00004"]
    found = told(table, "record_index")
    assert [what for what, *_ in found] == ["rows that cannot be indexed", "location", "location"]
    assert "'k00004' more than once" in found[0][3]
    assert {key for what, key, *_ in found if what == "location"} == {"k00004"}
    assert known["partition"] == "p0"


@pytest.mark.slow
def test_a_log_file_of_a_write_that_was_rolled_back_and_archived_needs_no_statistics(tmp_path: Path) -> None:
    """Before table version 8 it stays, and its write looks like one that is complete."""
    soon = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.commits.archival.batch": 1}
    settings = settings_for("MOR", "6", {**soon, "hoodie.metadata.compact.max.delta.commits": 1})
    hf.write(plain_rows([2]), tmp_path, settings)

    def fail() -> None:
        raise RuntimeError("out of disk")

    with pytest.raises(RuntimeError):
        write_during(tmp_path, plain_rows([2], ts=2), settings, fail)
    for ts in range(3, 8):
        hf.write(plain_rows([2], ts=ts), tmp_path, settings)
    hf.HudiTable.open(tmp_path).services.compact({**settings, "hoodie.compact.inline.max.delta.commits": 1})
    for ts in range(8, 12):
        hf.write(plain_rows([2], ts=ts), tmp_path, settings)
    keep = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": 3}
    hf.HudiTable.open(tmp_path).services.clean({**settings, **keep})
    assert hf.HudiTable.open(tmp_path).services.archive({**settings, **keep}).instants
    assert validate(tmp_path).differences.to_pylist() == []


@pytest.mark.slow
def test_statistics_of_rows_that_were_rolled_back_stay_right_once_that_is_archived(tmp_path: Path) -> None:
    """Before table version 8 a command block in a later log file of the slice says so then, and nothing else."""
    soon = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.commits.archival.batch": 1}
    without = {"hoodie.metadata.index.column.stats.enable": False, "hoodie.metadata.compact.max.delta.commits": 1}
    settings = settings_for("MOR", "6", {**soon, **without})
    hf.write(plain_rows([2]), tmp_path, settings)
    services = hf.HudiTable.open(tmp_path).services
    services.rollback(hf.write(plain_rows([2], ts=2), tmp_path, settings).instant)
    assert len(log_files(tmp_path)) == 2
    for ts in range(3, 8):
        hf.write(plain_rows([2], ts=ts), tmp_path, settings)
    keep = {**settings, "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": 3}
    services.compact({**keep, "hoodie.compact.inline.max.delta.commits": 1})
    services.index("column_stats", options=keep)
    assert services.archive(keep).instants
    assert validate(tmp_path).differences.to_pylist() == []


@pytest.mark.slow
@pytest.mark.parametrize("index", ["SIMPLE", "BUCKET"])
def test_log_blocks_that_were_rolled_back_are_no_differences(index: str, tmp_path: Path) -> None:
    """Before table version 8 their files stay, before and after a compaction and below later writes."""
    settings = settings_for("MOR", "6", {"hoodie.index.type": index, "hoodie.bucket.index.num.buckets": 2})
    hf.write(plain_rows(range(20)), tmp_path, settings)
    services = hf.HudiTable.open(tmp_path).services
    for ts, keys in enumerate((range(10), range(5, 30), range(40)), 2):
        services.rollback(hf.write(plain_rows(keys, ts=10 * ts, text="z"), tmp_path, settings).instant)
        assert validate(tmp_path).differences.to_pylist() == []
        hf.write(plain_rows(range(ts, 12), ts=ts), tmp_path, settings)
        assert validate(tmp_path).differences.to_pylist() == []
        if ts == 3:
            services.compact({**settings, "hoodie.compact.inline.max.delta.commits": 1})
            assert validate(tmp_path).differences.to_pylist() == []
    assert [one for one in tmp_path.rglob("*.log.*") if one.is_file()]


class KeptLogs(LateEngine):
    """Remembers the log files of its write."""

    def execute(self, plan: WritePlan) -> WriteOutcome:
        """Write the rows, and remember."""
        done = super().execute(plan)
        self.storage, self.instant = plan.storage, plan.instant
        folder = Path(plan.storage.uri)
        self.logs = {log.path: (folder / log.path).read_bytes() for log in log_files(folder)}
        return done

    def roll_back_as_apache_hudi_does(self) -> None:
        """They stay, each with a command block at its end."""
        for path, content in self.logs.items():
            self.storage.write_bytes(path, content + command_block(f"{int(self.instant) + 1}", self.instant))


@pytest.mark.slow
def test_a_partition_whose_writes_were_all_rolled_back_and_archived_is_missed_by_nobody(tmp_path: Path) -> None:
    """Before table version 8 its log files, if Apache Hudi rolls them back, look like those of a complete write."""
    soon = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.commits.archival.batch": 1}
    keep = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": 3}
    bucket = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 1}  # no file is looked into
    settings = settings_for("MOR", "6", {**soon, **keep, **bucket})
    hf.write(plain_rows([1]), tmp_path, settings)
    made = hf.write(plain_rows([2], ts=2), tmp_path, settings).instant
    late = KeptLogs(plain_rows([2], ts=3), lambda: hf.HudiTable.open(tmp_path).services.rollback(made, settings))
    with pytest.raises(hf.CommitConflictError, match="was rolled back in the meantime"):
        write_engine(late, Storage(tmp_path), settings, "append")
    late.roll_back_as_apache_hudi_does()
    for ts in range(4, 12):
        hf.write(plain_rows([1], ts=ts), tmp_path, settings)
    services = hf.HudiTable.open(tmp_path).services
    services.clean(settings)
    assert services.archive(settings).instants
    assert [one for one in (tmp_path / "p0").iterdir() if ".log." in one.name]
    assert validate(tmp_path).differences.to_pylist() == []


@pytest.mark.slow
def test_a_damaged_file_is_told(table: Path) -> None:
    slices = metadata(table).groups("record_index")
    path = next(log.path for one in slices for log in one.log_files if log.size > 500)
    storage = metadata_storage(Storage(table))
    content = bytearray(storage.read_bytes(path))
    content[len(content) // 2] ^= 0xFF
    storage.write_bytes(path, bytes(content[:-40]))
    (row,) = told(table, "record_index")
    assert row[0] == "unreadable"
    assert path in row[3]


@pytest.mark.slow
def test_a_table_that_was_written_past_its_metadata_table_is_not_to_be_trusted(table: Path) -> None:
    state = open_state(Storage(table))
    newest = state.timeline.writes()[-1].requested
    inner = table / ".hoodie/metadata/.hoodie/timeline"
    for one in inner.glob(f"{newest}*"):
        one.unlink()
    result = validate(table)
    assert not result.ok
    assert result.differences.to_pylist()[0]["what"] == "not to be trusted"
    assert "missing file" in result.differences.column("what").to_pylist()


@pytest.mark.slow
def test_a_partition_whose_folder_is_gone_is_unusable(table: Path) -> None:
    storage = metadata_storage(Storage(table))
    storage.delete_dir("bloom_filters")
    (row,) = told(table, "bloom_filters")
    assert row[0] == "unusable"


@pytest.mark.slow
def test_one_partition_alone_and_few_of_many_differences(table: Path) -> None:
    plant(table, "record_index", [], tuple(f"k{number:05d}" for number in range(20)))
    assert validate(table, "files", "bloom_filters").ok
    result = validate(table, "record_index", limit=3)
    assert result.differences.num_rows == 3
    assert result.summary.to_pylist()[0]["differences"] == 20
    with pytest.raises(hf.ConfigError, match="no partition 'nothing'"):
        validate(table, "nothing")


def test_an_index_that_is_not_understood_is_not_checked(table: Path) -> None:
    path = table / ".hoodie/.index_defs/index.json"
    path.write_text(path.read_text().replace('"text"', '"text", "ts"'))
    result = validate(table, "secondary_index_words")
    assert result.ok
    assert "not checked" in result.summary.to_pylist()[0]["note"]
