"""Skipping on tables of our own: each index alone, what must not use it, and damage."""

from __future__ import annotations

import math
import shutil
import warnings
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hudi_fast as hf
from hudi_fast.errors import HudiWarning
from hudi_fast.expressions.arrow_filters import parse_filter
from hudi_fast.metadata_table.keys import partition_stats_key
from hudi_fast.metadata_table.read import scan
from hudi_fast.reading.scan import ScanPlan, ScanQuery, plan_scan, scan_table
from hudi_fast.reading.skipping.keys import secondary_of
from hudi_fast.reading.time_travel import state_for_query
from hudi_fast.storage.base import Storage
from tests.services.planted import metadata, plant
from tests.support.examples import examples
from tests.support.instrumented_storage import RecordingStorage
from tests.support.mor_tables import VERSIONS, mor_options
from tests.support.small_tables import plain_rows

M = "hoodie.metadata."
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "bulk_insert",
    "hoodie.index.bloom.num_entries": "100",
    "hudi_fast.threads": "1",
}
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
UPSERT = {"hoodie.datasource.write.operation": "upsert"}
RECORDS = {f"{M}global.record.level.index.enable": "true"}


def rows(ids: Any, ts: int = 1, **columns: Any) -> pa.Table:
    """Rows whose id, number and name grow together; two partitions by the id's parity."""
    ids = list(ids)
    made: dict[str, Any] = {
        "id": [f"k{one:03d}" for one in ids],
        "part": [f"p{one % 2}" for one in ids],
        "ts": pa.array([ts] * len(ids), pa.int64()),
        "number": pa.array(ids, pa.int64()),
        "ratio": [one + 0.5 for one in ids],
        "name": [f"Name {one:03d}" for one in ids],
    }
    return pa.table({**made, **columns})


def six_files(path: Path, **options: str) -> hf.HudiTable:
    """Three commits of ten ids each: two partitions with three files each."""
    for first in (0, 10, 20):
        hf.write(rows(range(first, first + 10)), path, {**OPTIONS, **options})
    return hf.HudiTable.open(path)


def steps(table: hf.HudiTable, filter_: pc.Expression, **query: Any) -> dict[str, tuple[int, int]]:
    """What each step left of what there was; of steps of one index the last."""
    return {one["index"]: (one["before"], one["after"]) for one in table.explain(filter_, **query).to_pylist()}


def plan(path: Path, filter_: pc.Expression, query: ScanQuery | None = None, as_of: str | None = None) -> ScanPlan:
    return plan_scan(state_for_query(Storage(path), as_of), ["id"], filter_, query=query)


def ids_of(plan_: ScanPlan) -> list[int]:
    return sorted(int(one[1:]) for one in scan_table(plan_).column("id").to_pylist())


def test_ranges_of_columns_leave_out_files(tmp_path: Path) -> None:
    table = six_files(tmp_path)
    filter_ = (pc.field("number") >= 14) & (pc.field("ratio") < 17)
    assert steps(table, filter_)["column_stats"] == (6, 2)
    assert ids_of(plan(tmp_path, filter_)) == [14, 15, 16]


def test_partitions_are_left_out_by_their_ranges(tmp_path: Path) -> None:
    hf.write(rows(range(0, 20, 2)), tmp_path, OPTIONS)
    hf.write(rows(range(101, 121, 2)), tmp_path, OPTIONS)
    found = steps(hf.HudiTable.open(tmp_path), pc.field("number") > 50)
    assert found["partition_stats"] == (2, 1)
    assert found["read"] == (1, 1)


def test_partitions_that_are_gone_have_no_ranges(tmp_path: Path) -> None:
    made = six_files(tmp_path)
    made.delete_partitions(["p0", "p1"])
    assert made.to_arrow(filter=pc.field("ts") == 1).num_rows == 0


def test_only_files_that_hold_the_keys_are_opened(tmp_path: Path) -> None:
    table = six_files(tmp_path, **RECORDS)
    assert steps(table, pc.field("id") == "k017")["record_index"] == (3, 1)
    storage = RecordingStorage(tmp_path)
    found = plan_scan(state_for_query(storage, None), ["id"], pc.field("id").isin(["k017", "k003", "nobody"]))
    assert ids_of(found) == [3, 17]
    opened = {call.path for call in storage.calls if call.name in ("open_input", "read_bytes")}
    assert {path for path in opened if path.endswith(".parquet")} == {one.base_file.path for one in found.slices}
    assert len(found.slices) == 2
    assert not [call for call in storage.calls if call.name == "list_dir" and call.path in ("", "p0", "p1")]


def test_a_key_that_is_not_there_reads_nothing(tmp_path: Path) -> None:
    six_files(tmp_path, **RECORDS)
    assert plan(tmp_path, pc.field("id") == "nobody").slices == ()


def test_keys_of_an_index_by_partition(tmp_path: Path) -> None:
    table = six_files(tmp_path, **{f"{M}record.level.index.enable": "true"})
    assert steps(table, pc.field("id") == "k017")["record_index"] == (3, 1)
    assert ids_of(plan(tmp_path, (pc.field("id") == "k017") & (pc.field("part") == "p0"))) == []


@pytest.mark.slow
def test_keys_of_several_fields_need_all_of_them(tmp_path: Path) -> None:
    keys = {"hoodie.datasource.write.recordkey.field": "id,number"}
    table = six_files(tmp_path, **RECORDS, **keys)
    both = (pc.field("id") == "k017") & (pc.field("number").isin([17, 18]))
    assert steps(table, both)["record_index"] == (3, 1)
    assert ids_of(plan(tmp_path, both)) == [17]
    assert "record_index" not in steps(table, pc.field("id") == "k017")


def test_bloom_filters_leave_out_files_whose_keys_only_surround_the_one(tmp_path: Path) -> None:
    options = {**OPTIONS, f"{M}index.bloom.filter.enable": "true"}
    for first in (0, 2, 4):
        hf.write(rows([first, first + 100]), tmp_path, options)
    table = hf.HudiTable.open(tmp_path)
    found = steps(table, pc.field("id") == "k102")
    assert found["column_stats"] == (3, 2)
    assert found["bloom_filters"] == (2, 1)
    assert ids_of(plan(tmp_path, pc.field("id") == "k102")) == [102]


@pytest.mark.slow
def test_values_of_an_indexed_column_lead_to_their_files(tmp_path: Path) -> None:
    options = {**RECORDS, f"{M}index.secondary.column": "name", "hoodie.index.name": "by_name"}
    table = six_files(tmp_path, **options)
    found = steps(table, pc.field("name").isin(["Name 017", "Name 003"]))
    assert found["secondary_index_by_name"] == (2, 1)
    assert found["read"] == (2, 2)
    assert ids_of(plan(tmp_path, pc.field("name").isin(["Name 017", "Name 003"]))) == [3, 17]


@pytest.mark.slow
def test_nulls_of_an_indexed_column_lead_to_their_files(tmp_path: Path) -> None:
    options = {**RECORDS, f"{M}index.secondary.column": "name", "hoodie.index.name": "by_name"}
    six_files(tmp_path, **options)
    without = rows([40, 42], name=pa.array([None, "x$y"]))
    hf.write(without, tmp_path, {**OPTIONS, **options})
    for filter_, ids in ((pc.field("name").is_null(), [40]), (pc.field("name") == "x$y", [42])):
        found = plan(tmp_path, filter_)
        assert (ids_of(found), len(found.slices)) == (ids, 1)


INDEXED = {
    "name": (pa.array(["a", None, "a", None]), pc.field("name").is_null(), [1, 3]),
    "text": (pa.array(["a\0b", "c", "a\0b", None]), pc.field("text") == "a\0b", [0, 2]),
    "day": (pa.array([1, None, 19724, 19724], pa.date32()), pc.field("day") == date(2024, 1, 2), [2, 3]),
    "at": (
        pa.array([1, 2, None, 1], pa.timestamp("ms", "UTC")),
        pc.field("at") == pa.scalar(1, pa.timestamp("ms", "UTC")),
        [0, 3],
    ),
}
"""Values of indexed columns, a filter, and the ids that match it."""


def as_hudi_1_0_wrote_it(key: str) -> str | None:
    """The entry of a secondary index in Hudi 1.0.0, for that of later releases; None where it has none."""
    value, _, record = key.partition("$")
    if value == "\\\0":
        return None
    if "\0" in value:
        return key.replace("\\\0", "\0")
    return f"{date.fromordinal(int(value) + date(1970, 1, 1).toordinal())}${record}" if value == "19724" else key


@pytest.mark.slow
@pytest.mark.parametrize("column", INDEXED)
def test_an_index_of_version_1_is_trusted_for_what_every_release_writes(column: str, tmp_path: Path) -> None:
    values, filter_, ids = INDEXED[column]
    options = {**OPTIONS, **RECORDS, "hoodie.write.table.version": "8"}
    options |= {f"{M}index.secondary.column": column, "hoodie.index.name": "by_it"}
    hf.write(rows(range(4), **{column: values}), tmp_path, options)
    index = "secondary_index_by_it"
    stored = scan(metadata(tmp_path), index)["key"].to_pylist()
    assert len(stored) == 4
    wanted = [(key, as_hudi_1_0_wrote_it(key)) for key in stored]
    gone = tuple(key for key, other in wanted if other != key)
    plant(
        tmp_path, index, [{"key": other, "deleted": False} for key, other in wanted if other not in (None, key)], gone
    )
    assert ids_of(plan(tmp_path, filter_)) == ids
    table = hf.HudiTable.open(tmp_path)
    table.delete(filter_)
    assert sorted(int(one[1:]) for one in table.to_arrow()["id"].to_pylist()) == sorted({*range(4)} - {*ids})


def test_an_index_is_not_asked_for_a_column_that_has_the_name_of_an_older_one(tmp_path: Path) -> None:
    """After a rename by Apache Hudi the index has the values of the older one, and no null of the new one."""
    options = {**OPTIONS, **RECORDS, f"{M}index.secondary.column": "name", "hoodie.index.name": "by_name"}
    hf.write(rows(range(2)), tmp_path, options)
    schema = hf.HudiTable.open(tmp_path).schema
    for filter_ in (pc.field("name").is_null(), pc.field("name") == "Name 001"):
        asked = (metadata(tmp_path), parse_filter(filter_), schema)
        assert secondary_of(*asked, frozenset({"number"})) is not None
        assert secondary_of(*asked, frozenset({"name"})) is None


def test_bounds_of_a_file_whose_nulls_are_not_counted_are_not_trusted(tmp_path: Path) -> None:
    """Hudi 0.14 to 1.0 store zero for both bounds where a Parquet file has no statistics."""
    hf.write(rows([2, 4]), tmp_path, OPTIONS)
    (found,) = scan(metadata(tmp_path), "column_stats").filter(pc.field("column_name") == "number").to_pylist()
    zero = {name: one and {"value": 0} for name, one in found["min"].items()}
    for nulls, ids in ((-1, [2]), (0, [])):
        plant(tmp_path, "column_stats", [{**found, "min": zero, "max": zero, "null_count": nulls, "tight": True}])
        assert ids_of(plan(tmp_path, pc.field("number") == 2)) == ids


def test_a_value_of_one_key_in_two_partitions_is_found_after_one_of_its_rows_is_deleted(tmp_path: Path) -> None:
    """A secondary index has one entry for both rows, and none once one of them is gone."""
    options = {
        **OPTIONS,
        f"{M}record.level.index.enable": "true",
        f"{M}index.secondary.column": "name",
        "hoodie.index.name": "by_name",
        "hoodie.index.type": "RECORD_LEVEL_INDEX",
    }
    both = rows([1, 1], part=pa.array(["p0", "p1"]), name=pa.array(["same", "same"]))
    hf.write(both, tmp_path, options)
    hf.write(both.slice(0, 1), tmp_path, {**options, "hoodie.datasource.write.operation": "delete"})
    found = hf.HudiTable.open(tmp_path).to_arrow(filter=pc.field("name") == "same")
    assert found["part"].to_pylist() == ["p1"]


@pytest.mark.slow
def test_results_of_an_indexed_expression_leave_out_files(tmp_path: Path) -> None:
    options = {
        f"{M}index.expression.column": "name",
        "hoodie.expression.index.function": "upper",
        "hoodie.index.name": "shout",
    }
    table = six_files(tmp_path, **options)
    assert steps(table, pc.utf8_upper(pc.field("name")) == "NAME 017")["expr_index_shout"] == (6, 2)
    assert ids_of(plan(tmp_path, pc.utf8_upper(pc.field("name")) == "NAME 017")) == [17]
    for other in (pc.utf8_upper(pc.field("name")) > "NAME 017", pc.utf8_lower(pc.field("name")) == "name 017"):
        assert "expr_index_shout" not in steps(table, other)


def test_a_row_that_its_log_changed_is_found_by_what_it_is_now(tmp_path: Path) -> None:
    six_files(tmp_path, **MOR)
    hf.write(rows([4], ts=2, number=pa.array([999])), tmp_path, {**OPTIONS, **MOR, **UPSERT})
    assert ids_of(plan(tmp_path, pc.field("number") == 999)) == [4]
    assert ids_of(plan(tmp_path, pc.field("number") == 4)) == []
    assert ids_of(plan(tmp_path, pc.field("number") == 4, ScanQuery(read_optimized=True))) == [4]


@pytest.mark.slow("8")
@pytest.mark.parametrize("version", ["8", "9"])
def test_a_partition_with_a_pending_compaction_is_kept_whatever_its_ranges(version: str, tmp_path: Path) -> None:
    """The ranges of Apache Hudi then are those of later log files alone."""
    settings = {**OPTIONS, **MOR, "hoodie.write.table.version": version}
    hf.write(rows(range(20)), tmp_path, settings)
    hf.write(rows([4], ts=2), tmp_path, {**settings, **UPSERT})
    services = hf.HudiTable.open(tmp_path).services
    assert services.schedule_compact({**settings, "hoodie.compact.inline.max.delta.commits": "1"}) is not None
    hf.write(rows([4], ts=3, number=pa.array([999])), tmp_path, {**settings, **UPSERT})
    of_p0 = pc.field("key") == partition_stats_key("number", "p0")
    (found,) = scan(metadata(tmp_path), "partition_stats").filter(of_p0).to_pylist()
    plant(tmp_path, "partition_stats", [{**found, "min": found["max"]}])
    for number, wanted in ((2, [2]), (999, [4])):
        filter_ = pc.field("number") == number
        assert "partition_stats" in steps(hf.HudiTable.open(tmp_path), filter_)
        assert ids_of(plan(tmp_path, filter_)) == wanted


@pytest.mark.slow(but="9")
@pytest.mark.parametrize("version", VERSIONS)
def test_bloom_filters_say_nothing_of_keys_that_a_log_alone_holds(version: str, tmp_path: Path) -> None:
    more = {f"{M}index.bloom.filter.enable": "true", "hoodie.bucket.index.num.buckets": "1"}
    settings = mor_options(more, index="BUCKET", table_version=version)
    for ids in ([0, 8, 1, 9], [4]):
        hf.write(plain_rows(ids), tmp_path, settings)
    table = hf.HudiTable.open(tmp_path)
    filter_ = pc.field("id") == "k00004"
    assert table.to_arrow(filter=filter_)["text"].to_pylist() == ["a4"]
    assert steps(table, filter_)["bloom_filters"] == (2, 1)


@pytest.mark.slow
def test_the_past_and_what_is_not_merged_ask_no_index_of_present_rows(tmp_path: Path) -> None:
    table = six_files(tmp_path, **MOR, **RECORDS)
    before = table.history()["instant"][-1].as_py()
    hf.write(rows([4]), tmp_path, {**OPTIONS, **MOR, "hoodie.datasource.write.operation": "delete"})
    filter_ = pc.field("id") == "k004"
    assert ids_of(plan(tmp_path, filter_)) == []
    for found in (
        plan(tmp_path, filter_, as_of=before),
        plan(tmp_path, filter_, ScanQuery(read_optimized=True)),
        plan(tmp_path, filter_, ScanQuery(unmerged=True)),
    ):
        assert {one.index for one in found.skipping.steps} == {"partition path", "column_stats"}
        assert ids_of(found) == [4]


def test_indexes_can_be_left_alone(tmp_path: Path) -> None:
    six_files(tmp_path)
    found = plan(tmp_path, pc.field("number") == 17, ScanQuery(use_indexes=False))
    assert len(found.slices) == 6
    assert ids_of(found) == [17]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [{}, MOR])
def test_a_column_that_came_later_keeps_old_files(tmp_path: Path, kind: dict[str, str]) -> None:
    six_files(tmp_path, **kind)
    hf.write(rows(range(30, 40), color=["red"] * 10), tmp_path, {**OPTIONS, **kind})
    assert ids_of(plan(tmp_path, pc.field("color").is_null())) == list(range(30))
    assert ids_of(plan(tmp_path, pc.field("color") == "red")) == list(range(30, 40))


def test_a_column_that_was_indexed_later_keeps_old_partitions(tmp_path: Path) -> None:
    six_files(tmp_path, **{f"{M}index.column.stats.column.list": "name"})
    hf.write(rows([31, 32]), tmp_path, {**OPTIONS, f"{M}index.column.stats.column.list": "name,number"})
    assert ids_of(plan(tmp_path, pc.field("number") < 3)) == [0, 1, 2]


def test_nan_and_zero_are_not_taken_for_bounds(tmp_path: Path) -> None:
    hf.write(rows([1, 3, 5], ratio=[1.0, math.nan, 2.0]), tmp_path, OPTIONS)
    hf.write(rows([7, 9], ratio=[-0.0, 0.0]), tmp_path, OPTIONS)
    assert ids_of(plan(tmp_path, pc.field("ratio") != 1.0)) == [3, 5, 7, 9]
    assert ids_of(plan(tmp_path, ~(pc.field("ratio") < 100))) == [3]
    assert ids_of(plan(tmp_path, pc.field("ratio") == -0.0)) == [7, 9]
    assert ids_of(plan(tmp_path, pc.field("ratio").is_nan())) == [3]


def test_a_damaged_index_is_left_aside_with_a_warning(tmp_path: Path) -> None:
    six_files(tmp_path)
    for file in (tmp_path / ".hoodie/metadata/column_stats").iterdir():
        if file.name.startswith((".col-stats", "col-stats")) and not file.name.endswith(".crc"):
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.warns(HudiWarning, match="column_stats"):
        found = plan(tmp_path, pc.field("number") == 17)
    assert len(found.slices) == 6
    assert ids_of(found) == [17]
    assert "cannot be read" in found.skipping.steps[-1].note


def test_an_index_without_files_is_left_aside_with_a_warning(tmp_path: Path) -> None:
    six_files(tmp_path, **RECORDS)
    shutil.rmtree(tmp_path / ".hoodie/metadata/record_index")
    with pytest.warns(HudiWarning, match="record_index, which cannot be used"):
        found = plan(tmp_path, pc.field("id") == "k017")
    assert ids_of(found) == [17]
    assert "cannot be used" in {one.index: one.note for one in found.skipping.steps}["record_index"]


def test_what_a_filter_reads_is_listed(tmp_path: Path) -> None:
    table = six_files(tmp_path)
    assert table.files().num_rows == 6
    assert table.files(pc.field("number") == 17).column("rows").to_pylist() == [5, 5]
    read = table.explain(pc.field("number") == 17).to_pylist()[-1]
    assert (read["index"], read["unit"], read["after"]) == ("read", "file slices", 2)


def test_stats_name_the_partitions_of_the_metadata_table(tmp_path: Path) -> None:
    table = six_files(tmp_path, **RECORDS)
    (found,) = table.stats().column("metadata_table").to_pylist()
    by_name = {one["partition"]: one for one in found}
    assert set(by_name) == {"column_stats", "files", "partition_stats", "record_index"}
    assert all(one["usable"] and one["reason"] is None and one["bytes"] > 0 for one in found)
    assert (by_name["files"]["kind"], by_name["files"]["file_groups"]) == ("files", 1)
    assert by_name["files"]["last_instant"] == table.history()["instant"][-1].as_py()


# ---- any rows, any filter


NAMES = ["", "a", "ab", "b", "Å", "\ue000", "😀", None]
NUMBERS = [-2, 0, 1, 2**53 + 1, None]
RATIOS = [-1.5, -0.0, 0.0, 2.5, math.nan, math.inf, None]
ROW = st.tuples(st.integers(0, 7), st.sampled_from(NUMBERS), st.sampled_from(RATIOS), st.sampled_from(NAMES))
BATCHES = st.lists(st.lists(ROW, min_size=1, max_size=6, unique_by=lambda row: row[0]), min_size=1, max_size=3)


def table_of(batch: list[tuple[int, Any, Any, Any]], ts: int) -> pa.Table:
    columns = list(zip(*batch, strict=True))
    return pa.table(
        {
            "id": [f"k{one}" for one in columns[0]],
            "part": [f"p{one % 2}" for one in columns[0]],
            "ts": pa.array([ts] * len(batch), pa.int64()),
            "number": pa.array(columns[1], pa.int64()),
            "ratio": pa.array(columns[2], pa.float64()),
            "name": pa.array(columns[3], pa.string()),
        }
    )


def every_filter() -> Iterator[pc.Expression]:
    for name, values in (("number", NUMBERS), ("ratio", RATIOS), ("name", NAMES), ("id", ["k1", "k6", "k9"])):
        column = pc.field(name)
        yield from (column.is_null(), column.is_valid())
        for value in values:
            if value is not None:
                yield from (column == value, column != value, column < value, column >= value, ~(column > value))
        yield column.isin(pa.array(values[:3]))
        yield ~column.isin(pa.array([values[1]]))
    for pattern in ("a%", "", "😀%"):
        yield pc.match_like(pc.field("name"), pattern)


FILTERS = list(every_filter())


PICKS = st.lists(st.sampled_from(range(len(FILTERS))), max_size=9)


@pytest.mark.slow
@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=BATCHES, kind=st.sampled_from([{}, MOR]), picks=PICKS)
def test_rows_are_the_same_with_and_without_indexes(
    tmp_path_factory: pytest.TempPathFactory, batches: list[Any], kind: dict[str, str], picks: list[int]
) -> None:
    path = tmp_path_factory.mktemp("any") / "t"
    options = {**OPTIONS, **UPSERT, **RECORDS, **kind, f"{M}index.secondary.column": "name"}
    for number, batch in enumerate(batches):
        hf.write(table_of(batch, number), path, options)
    chosen = [FILTERS[one] for one in picks]
    pairs = zip(chosen, reversed(chosen), strict=True)
    for filter_ in [*chosen, *(one & other for one, other in pairs), *(one | ~other for one, other in pairs)]:
        with warnings.catch_warnings():
            warnings.simplefilter("error", HudiWarning)
            assert ids_of(plan(path, filter_)) == ids_of(plan(path, filter_, ScanQuery(use_indexes=False))), filter_
