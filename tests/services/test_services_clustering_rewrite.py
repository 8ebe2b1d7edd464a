"""Groups of a clustering become new file groups: the same rows, in the order asked for, copied or decoded.

Modules: hudi_fast.services.clustering.new_files, hudi_fast.services.clustering.rows.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Generator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudi_fast as hf
from hudi_fast.errors import ConfigError, CorruptTableError, UnsupportedFeatureError
from hudi_fast.formats.bloom_filter import BloomFilter
from hudi_fast.formats.parquet.base_file import open_base_file
from hudi_fast.formats.parquet.footer import read_footer
from hudi_fast.services.clustering.cluster import rewrite_group, rewrite_rows
from hudi_fast.services.clustering.cluster_work import Ordering
from hudi_fast.services.clustering.ordering import coordinate, is_sortable, order_rows, places, sort_planes
from hudi_fast.services.clustering.rows import ahead, group_input
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import WriteStat, decode_commit_metadata
from hudi_fast.timeline.service_plans import decode_requested_replace
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.markers import marked_files
from hudi_fast.writing.write_plan import TaskToken
from tests.services.clustering_work import INSTANT, GroupedWork, work_of, written
from tests.support.golden import Golden
from tests.support.mor_tables import make_logs_alone, mor_options
from tests.support.small_tables import options, plain_rows

KEY, FILE = "_hoodie_record_key", "_hoodie_file_name"
TOKEN = TaskToken(7, 1, 2)
ONE_PARTITION = {"partition": "", "operation": "bulk_insert"}
PLAIN = {"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator"}
NAN = math.nan


def settings_of(**changes: Any) -> dict[str, Any]:
    return {**options(**ONE_PARTITION, **changes), **PLAIN}


def typed_rows(numbers: range, seed: int = 0) -> pa.Table:
    """Rows with columns of many types, nulls and NaN among the values."""
    random = np.random.default_rng(seed)
    count = len(numbers)
    values = random.normal(0, 100, count).round(1)
    texts = [None if one % 7 == 0 else f"text {one % 13} {'long ' * (one % 4)}" for one in numbers]
    return pa.table(
        {
            "id": [f"k{one:05d}" for one in numbers],
            "ts": pa.array([1] * count, pa.int64()),
            "amount": pa.array(
                [None if one % 11 == 0 else NAN if one % 5 == 0 else values[at] for at, one in enumerate(numbers)],
                pa.float64(),
            ),
            "qty": pa.array([None if one % 9 == 0 else int(random.integers(-5, 5)) for one in numbers], pa.int32()),
            "name": pa.array(texts, pa.string()),
            "price": pa.array([Decimal(int(one * 7919 % 1000)) / 100 for one in numbers], pa.decimal128(20, 2)),
            "place": pa.array([{"x": one * 31 % 17, "y": {"z": one * 17 % 5}} for one in numbers]),
        }
    )


def make(path: Path, files: int = 3, rows: int = 40, more: dict[str, Any] | None = None) -> dict[str, Any]:
    """A COPY_ON_WRITE table without partitions: as many file groups as said, one row group each."""
    settings = {**settings_of(), **(more or {})}
    for number in range(files):
        hf.write(typed_rows(range(number * rows, (number + 1) * rows), number), path, settings)
    return settings


def stored(path: Path) -> pa.Table:
    return hf.HudiTable.open(path).to_arrow()


def same_rows(before: pa.Table, after: pa.Table) -> bool:
    """Whether two tables have the same rows but for the file that they are in; NaN is NaN."""
    left, right = (one.drop_columns([FILE]).sort_by(KEY) for one in (before, after))
    return repr(left.to_pylist()) == repr(right.cast(left.schema).to_pylist())


def run(work: GroupedWork, copies: bool = True) -> list[WriteStat]:
    """Rewrite all groups; row groups are copied where they can be, unless ``copies`` is false."""

    def rewrite(number: int) -> list[WriteStat]:
        group = work.groups[number]
        return rewrite_group(work, group, TOKEN) if copies else rewrite_rows(group_input(work, group), TOKEN, 1 << 30)

    return [stat for number in range(len(work.groups)) for stat in rewrite(number)]


# ---- what is written


@pytest.mark.slow(but="1-True")
@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("outputs", [1, 2])
def test_rows_keep_their_order_and_all_but_the_file_name(copies: bool, outputs: int, tmp_path: Path) -> None:
    settings = make(tmp_path, files=4)
    work = work_of(tmp_path, settings, outputs=outputs)
    before = pa.concat_tables([pq.read_table(tmp_path / one.base_path) for one in work.groups[0].slices])
    stats = run(work, copies)
    files = written(tmp_path, stats)
    after = pa.concat_tables(files)
    assert repr(after.drop_columns([FILE]).to_pylist()) == repr(before.drop_columns([FILE]).to_pylist())
    assert len(stats) == outputs
    assert [one.column(FILE).unique().to_pylist() for one in files] == [[Path(stat.path).name] for stat in stats]
    assert sum(stat.copied_row_groups for stat in stats) == (4 if copies else 0)
    assert {stat.decoded_because for stat in stats} == {""}


@pytest.mark.slow("False-50-counts0")
@pytest.mark.parametrize(("copies", "limit", "counts"), [(False, 50, [50, 50, 20]), (True, 80, [80, 40])])
def test_new_files_have_the_maximum_of_rows(copies: bool, limit: int, counts: list[int], tmp_path: Path) -> None:
    settings = make(tmp_path, files=3)
    work = work_of(tmp_path, {**settings, "hudi_fast.max.file.rows": str(limit)})
    before = pa.concat_tables([pq.read_table(tmp_path / one.base_path) for one in work.groups[0].slices])
    stats = run(work, copies)
    assert [stat.num_writes for stat in stats] == counts
    assert bool(sum(stat.copied_row_groups for stat in stats)) == copies
    assert same_rows(before, pa.concat_tables(written(tmp_path, stats)))


def test_stats_are_those_of_new_file_groups(tmp_path: Path) -> None:
    settings = make(tmp_path)
    work = work_of(tmp_path, settings, outputs=2, measured=["qty", "name"])
    stats = run(work)
    for stat, rows in zip(stats, written(tmp_path, stats), strict=True):
        assert re.fullmatch(r"[0-9a-f-]{36}-0", stat.file_id)
        assert stat.path == f"{stat.file_id}_{TOKEN}_{INSTANT}.parquet"
        size = os.path.getsize(tmp_path / stat.path)
        assert (stat.num_writes, stat.num_inserts, stat.num_update_writes) == (rows.num_rows, rows.num_rows, 0)
        assert (stat.prev_commit, stat.prev_base_file, stat.file_size, stat.total_write_bytes) == (
            "null",
            None,
            size,
            size,
        )
        assert stat.column_ranges is not None
        assert stat.column_ranges["qty"].null_count == rows.column("qty").null_count
    assert marked_files(Storage(tmp_path), INSTANT) == {stat.path: "CREATE" for stat in stats}


@pytest.mark.slow("False")
@pytest.mark.parametrize("copies", [False, True])
def test_files_end_at_their_size(copies: bool, tmp_path: Path) -> None:
    settings = make(tmp_path, files=4, rows=400)
    footers = [read_footer(Storage(tmp_path), one.name) for one in tmp_path.glob("*.parquet")]
    size = max(footer.groups[0].size for footer in footers)
    stats = run(work_of(tmp_path, settings, target=int(size * 1.5)), copies)
    assert len(stats) == 4 if copies else len(stats) > 2
    assert sum(stat.num_writes for stat in stats) == 1600
    if not copies:
        assert len({stat.file_id[:36] for stat in stats}) == 1
        assert [stat.file_id[36:] for stat in stats] == [f"-{number}" for number in range(len(stats))]


def test_partitions_and_groups_are_rewritten_one_by_one(tmp_path: Path) -> None:
    settings = options(operation="bulk_insert")
    hf.write(plain_rows(range(20)), tmp_path, settings)
    hf.write(plain_rows(range(20, 30)), tmp_path, settings)
    before = stored(tmp_path)
    stats = run(work_of(tmp_path, settings))
    after = pa.concat_tables(written(tmp_path, stats))
    assert same_rows(before, after)
    assert sorted(stat.partition_path for stat in stats) == sorted(before.column("part").unique().to_pylist())
    assert all(stat.path.startswith(f"{stat.partition_path}/") for stat in stats)


@pytest.mark.slow(but="columns0-9")
@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("columns", [(), ("name",)])
def test_logs_are_merged(version: str, columns: tuple[str, ...], tmp_path: Path) -> None:
    settings = mor_options(table_version=version)
    hf.write(plain_rows(range(20)), tmp_path, settings)
    hf.write(plain_rows(range(5, 15), ts=2, text="b"), tmp_path, settings)
    hf.write(plain_rows([0, 1], ts=3), tmp_path, {**settings, "hoodie.datasource.write.operation": "delete"})
    before = stored(tmp_path)
    ordering = Ordering(tuple("id" if one == "name" else one for one in columns))
    stats = run(work_of(tmp_path, settings, ordering))
    assert same_rows(before, pa.concat_tables(written(tmp_path, stats)))
    assert {stat.decoded_because for stat in stats} == {
        "rows are sorted" if columns else "there are log files to merge"
    }


@pytest.mark.slow("columns1-1073741824-6")
@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("memory", [1, 1 << 30])
@pytest.mark.parametrize("columns", [(), ("id",)])
def test_slices_of_log_files_alone_are_rewritten(
    version: str, memory: int, columns: tuple[str, ...], tmp_path: Path
) -> None:
    settings = make_logs_alone(tmp_path, version)
    before = stored(tmp_path)
    work = work_of(tmp_path, settings, Ordering(columns), outputs=2)
    assert any(not one.base_path for group in work.groups for one in group.slices)
    sources = [group_input(work, group) for group in work.groups]
    stats = [stat for source in sources for stat in rewrite_rows(source, TOKEN, memory)]
    assert same_rows(before, pa.concat_tables(written(tmp_path, stats)))


@pytest.mark.parametrize("ordering", [Ordering(), Ordering(("id",)), Ordering(("id", "ts"), "HILBERT")])
def test_a_group_whose_rows_are_all_deleted_leaves_no_file(ordering: Ordering, tmp_path: Path) -> None:
    settings = mor_options()
    rows = plain_rows(range(6), partitions=1)
    hf.write(rows, tmp_path, settings)
    hf.write(rows, tmp_path, {**settings, "hoodie.datasource.write.operation": "delete"})
    work = work_of(tmp_path, settings, ordering)
    assert work.groups[0].slices[0].log_paths
    assert run(work) == []
    assert rewrite_rows(group_input(work, work.groups[0]), TOKEN, 1) == []


def test_a_table_without_meta_columns_is_copied_and_decoded(tmp_path: Path) -> None:
    settings = make(tmp_path, more={"hoodie.populate.meta.fields": "false"})
    before = pa.concat_tables([pq.read_table(one) for one in tmp_path.glob("*.parquet")]).sort_by("id")
    for copies in (False, True):
        (stat,) = run(work_of(tmp_path, settings), copies)
        (rows,) = written(tmp_path, [stat])
        assert repr(rows.sort_by("id").to_pylist()) == repr(before.to_pylist())
        assert stat.copied_row_groups == (3 if copies else 0)


def test_older_files_are_decoded_into_the_schema_of_today(tmp_path: Path) -> None:
    settings = settings_of()
    hf.write(typed_rows(range(10)).drop_columns(["qty"]), tmp_path, settings)
    hf.write(typed_rows(range(10, 20)), tmp_path, settings)
    before = stored(tmp_path)
    (stat,) = run(work_of(tmp_path, settings))
    assert (stat.copied_row_groups, stat.decoded_because) == (0, "a file has another schema than the table")
    assert same_rows(before, written(tmp_path, [stat])[0])


@pytest.mark.slow
def test_many_small_row_groups_are_decoded_into_large_ones(tmp_path: Path) -> None:
    settings = make(tmp_path, files=17, rows=2)
    work = work_of(tmp_path, settings)
    (stat,) = run(work)
    assert stat.decoded_because == "row groups are small"
    assert pq.read_metadata(tmp_path / stat.path).num_row_groups == 1
    (stat,) = run(replace(work, copies=True))
    assert (stat.copied_row_groups, stat.decoded_because) == (17, "")


def test_files_of_apache_hudi_are_copied(golden: Any) -> None:
    table: Golden = golden("cow_v9_clustered")
    path = table.table
    before = stored(path)
    work = work_of(path, {"hoodie.metadata.enable": "false"}, measured=["amount", "name"])
    stats = run(work)
    assert same_rows(before, pa.concat_tables(written(path, stats)))
    assert all(stat.copied_row_groups >= 2 for stat in stats)
    decoded = run(work, copies=False)
    for copy, other in zip(stats, decoded, strict=True):
        assert copy.column_ranges is not None
        assert other.column_ranges is not None
        for name, found in copy.column_ranges.items():
            expected = other.column_ranges[name]
            assert (found.low, found.high, found.null_count) == (expected.low, expected.high, expected.null_count)


def test_ranges_of_columns_are_the_same_however_a_file_is_made(tmp_path: Path) -> None:
    settings = make(tmp_path)
    work = work_of(tmp_path, settings, measured=["amount", "qty", "name", "price", "place.x", KEY])
    (copied,), (decoded,) = run(work), run(work, copies=False)
    assert copied.column_ranges is not None
    assert decoded.column_ranges is not None
    assert copied.copied_row_groups == 3
    assert set(copied.column_ranges) == set(work.plan.files.stats_columns)
    for name, one in copied.column_ranges.items():
        other = decoded.column_ranges[name]
        assert repr((one.low, one.high, one.null_count, one.value_count)) == repr(
            (other.low, other.high, other.null_count, other.value_count)
        )
    assert math.isnan(copied.column_ranges["amount"].high.as_py())


def test_rows_are_made_ahead_and_given_up_in_time() -> None:
    made: list[int] = []

    def numbers() -> Generator[int]:
        try:
            for number in range(100):
                made.append(number)
                yield number
        finally:
            made.append(-1)

    for threads in (1, 2):
        made.clear()
        assert list(ahead(numbers(), threads)) == list(range(100))
        assert made == [*range(100), -1]
        made.clear()
        some = ahead(numbers(), threads)
        assert [next(some), next(some)] == [0, 1]
        some.close()
        assert made[-1] == -1
        assert len(made) < 8


def test_an_error_in_rows_that_are_made_ahead_is_raised() -> None:
    def numbers() -> Generator[int]:
        yield 1
        raise CorruptTableError("the second one")

    for threads in (1, 2):
        some = ahead(numbers(), threads)
        assert next(some) == 1
        with pytest.raises(CorruptTableError, match="the second one"):
            next(some)


# ---- what the footer says of keys


@pytest.mark.slow(but="True-1-SIMPLE")
@pytest.mark.parametrize("kind", ["SIMPLE", "DYNAMIC_V0"])
@pytest.mark.parametrize(("copies", "outputs"), [(False, 1), (False, 2), (True, 1), (True, 2)])
def test_filters_and_ranges_of_keys_cover_each_file(kind: str, copies: bool, outputs: int, tmp_path: Path) -> None:
    settings = make(tmp_path, files=3, rows=60, more={"hoodie.bloom.index.filter.type": kind})
    stats = run(work_of(tmp_path, settings, outputs=outputs), copies)
    for stat, rows in zip(stats, written(tmp_path, stats), strict=True):
        with open_base_file(Storage(tmp_path), stat.path) as reader:
            footer = reader.footer()
        keys = rows.column(KEY)
        assert footer.bloom_filter is not None
        bloom = BloomFilter.from_base64(footer.bloom_filter, footer.bloom_type)
        assert bloom.type_code == kind
        assert bloom.might_contain(keys).all()
        others = pa.array([f"x{number}" for number in range(2000)])
        assert bloom.might_contain(others).sum() <= 2
        assert (footer.min_key, footer.max_key) == (min(keys.to_pylist()), max(keys.to_pylist()))


def test_filters_of_another_size_are_made_anew(tmp_path: Path) -> None:
    make(tmp_path)
    settings = settings_of() | {"hoodie.index.bloom.num_entries": "5000"}
    for copies in (False, True):
        (stat,) = run(work_of(tmp_path, settings), copies)
        with open_base_file(Storage(tmp_path), stat.path) as reader:
            footer = reader.footer()
        assert footer.bloom_filter is not None
        bloom = BloomFilter.from_base64(footer.bloom_filter, footer.bloom_type)
        assert (bloom.entries, bloom.added) == (5000, 120)
        assert bloom.might_contain(written(tmp_path, [stat])[0].column(KEY)).all()


# ---- order


def plain(value: Any) -> tuple[Any, ...]:
    """Sorts values as Spark does: nulls first, NaN last, texts by their bytes."""
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (2,) if value != value else (1, value)
    return (1, value.encode()) if isinstance(value, str) else (1, value)


SORTED = [("qty",), ("amount", "name"), ("name", "qty"), ("price",), ("place.y.z", "place.x"), ("ts",)]


@pytest.mark.slow(but="columns1")
@pytest.mark.parametrize("columns", SORTED)
def test_rows_are_sorted_within_and_across_files(columns: tuple[str, ...], tmp_path: Path) -> None:
    settings = make(tmp_path, rows=60)
    before = stored(tmp_path)
    stats = run(work_of(tmp_path, settings, Ordering(columns), outputs=3))
    after = pa.concat_tables(written(tmp_path, stats))
    assert [stat.num_writes for stat in stats] == [60, 60, 60]
    assert same_rows(before, after)

    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        found = []
        for column in columns:
            value: Any = row
            for part in column.split("."):
                value = value[part]
            found.append(plain(value))
        return tuple(found)

    rows = after.to_pylist()
    assert [key(row) for row in rows] == sorted(key(row) for row in rows)


@pytest.mark.slow(but="False-ordering4")
@pytest.mark.parametrize(
    "ordering",
    [
        Ordering(("amount", "name")),
        Ordering(("qty", "amount"), "ZORDER"),
        Ordering(("qty", "name", "price"), "HILBERT"),
        Ordering(("amount", "name"), "ZORDER", "SAMPLE", 16),
        Ordering(("qty", "place.x"), "HILBERT", "SAMPLE"),
    ],
)
@pytest.mark.parametrize("mor", [False, True])
def test_rows_that_do_not_fit_into_memory_come_out_the_same(ordering: Ordering, mor: bool, tmp_path: Path) -> None:
    more = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"} if mor else {}
    settings = make(tmp_path, rows=80, more=more)
    if mor:
        upsert = {**settings, "hoodie.datasource.write.operation": "upsert"}
        hf.write(typed_rows(range(30, 90), 9), tmp_path, upsert)
    work = work_of(tmp_path, settings, ordering, outputs=2)
    assert any(one.log_paths for one in work.groups[0].slices) == mor
    source = group_input(work, work.groups[0])
    whole = written(tmp_path, rewrite_rows(source, TOKEN, 1 << 30))
    spilled = written(tmp_path, rewrite_rows(source, TOKEN, 20_000))
    for left, right in zip(whole, spilled, strict=True):
        assert repr(left.drop_columns([FILE]).to_pylist()) == repr(right.drop_columns([FILE]).to_pylist())
    assert same_rows(stored(tmp_path), pa.concat_tables(spilled))


@pytest.mark.parametrize("build", ["DIRECT", "SAMPLE"])
@pytest.mark.parametrize("curve", ["ZORDER", "HILBERT"])
def test_curves_keep_ranges_of_every_column_small(curve: str, build: str) -> None:
    random = np.random.default_rng(3)
    columns = [pa.array(random.integers(0, 1000, 4096)), pa.array(random.integers(-(10**9), 10**9, 4096))]
    order = order_rows(columns, Ordering(("a", "b"), curve, build))
    assert sorted(order.tolist()) == list(range(4096))
    for column in columns:
        values = column.to_numpy()[order].reshape(16, -1)
        spans = values.max(axis=1) - values.min(axis=1)
        assert spans.mean() < 0.45 * (values.max() - values.min())


WORDS = st.one_of(
    st.none(),
    st.text(max_size=12),
    st.sampled_from(["common beginning " * 2, "common beginning \0", "common beginning"]),
)


@given(st.lists(st.tuples(WORDS, st.one_of(st.none(), st.floats(), st.sampled_from([0.0, -0.0]))), max_size=30))
def test_texts_and_numbers_have_the_order_of_spark(rows: list[tuple[str | None, float | None]]) -> None:
    values = [pa.array([row[0] for row in rows], pa.string()), pa.array([row[1] for row in rows], pa.float64())]
    order = order_rows(values, Ordering(("text", "number")))
    expected = sorted(range(len(rows)), key=lambda at: (plain(rows[at][0]), plain(rows[at][1])))
    assert order.tolist() == expected


@pytest.mark.parametrize(
    "values",
    [
        pa.array([3, None, 1, 255], pa.uint8()),
        pa.array([3, None, -(2**63), 2**63 - 1], pa.int64()),
        pa.array([2**64 - 1, 0, None, 2**63], pa.uint64()),
        pa.array([True, None, False]),
        pa.array([1.5, -2.0, NAN, None, -math.inf], pa.float32()),
        pa.array([Decimal("99999999999999999999.5"), Decimal("-1.5"), None, Decimal("2.0")], pa.decimal128(30, 1)),
        pa.array([Decimal("-7.25"), None, Decimal("3.5")], pa.decimal128(9, 2)),
        pa.array([5, None, -3], pa.date32()),
        pa.array([5, None, -3], pa.timestamp("us", "UTC")),
        pa.array([5, None, 3], pa.time64("us")),
        pa.array([b"\xff", b"", None, b"\x00", b"\x00\x00"]),
        pa.array([b"ab", None, b"aa"], pa.binary(2)),
        pa.array(["b", None, "a"], pa.large_string()),
        pa.array(["b", None, "a", "b"]).dictionary_encode(),
        pa.array(["x" * 600 + "b", "x" * 600, None, "a" + "x" * 600 + "b"]),
        pa.array([f"{number % 3} few" for number in range(5000)]),
    ],
    ids=lambda values: str(values.type),
)
def test_every_type_that_has_an_order_is_sorted(values: pa.Array) -> None:
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    assert is_sortable(values.type)
    items = (
        values.to_pylist()
        if not pa.types.is_temporal(kind)
        else values.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist()
    )
    expected = sorted(range(len(items)), key=lambda at: plain(items[at]))
    assert order_rows([values], Ordering(("x",))).tolist() == expected
    for curve in ("ZORDER", "HILBERT"):
        for build in ("DIRECT", "SAMPLE"):
            found = order_rows([values, values], Ordering(("x", "x"), curve, build))
            assert sorted(found.tolist()) == list(range(len(items)))


@pytest.mark.parametrize("build", ["DIRECT", "SAMPLE"])
@pytest.mark.parametrize("curve", ["LINEAR", "ZORDER", "HILBERT"])
def test_columns_of_nulls_alone_leave_rows_as_they_are(curve: str, build: str) -> None:
    for kind in (pa.int32(), pa.float64(), pa.string(), pa.decimal128(30, 2), pa.bool_()):
        for count in (0, 1, 5):
            order = order_rows([pa.nulls(count, kind)] * 2, Ordering(("a", "b"), curve, build))
            assert order.tolist() == list(range(count))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.large_binary()])
def test_texts_that_fill_no_single_array_are_sorted_where_they_are(kind: pa.DataType) -> None:
    texts = pa.chunked_array([["b", None, "a"], ["a", "", None], ["longer than eight bytes", "b"]], pa.string()).cast(
        kind
    )
    assert places(texts, 5).tolist() == places(texts).tolist()
    planes = sort_planes(texts, 5)
    assert len(planes) == 1
    keys = [(plain(value), value) for value in texts.cast(pa.string()).to_pylist()]
    expected = sorted(range(len(keys)), key=lambda at: keys[at][0])
    assert np.argsort(planes[0], kind="stable").tolist() == expected
    assert np.argsort(coordinate(texts, 5), kind="stable").tolist() == expected


def test_a_plan_of_apache_hudi_gives_the_files_that_it_made_of_it(golden: Any) -> None:
    path = golden("cow_v9_clustered").table
    state = load_state(Storage(path))
    work = work_of(path, {"hoodie.metadata.enable": "false"}, Ordering(("amount",)))
    compared = 0
    for instant in state.timeline.completed():
        if instant.action != "replacecommit":
            continue
        requested = Path(path, ".hoodie/timeline", f"{instant.requested}.clustering.requested").read_bytes()
        plan = decode_requested_replace(requested).clustering
        assert plan is not None
        stats = run(replace(work, groups=plan.groups))
        (completed,) = Path(path, ".hoodie/timeline").glob(f"{instant.requested}_*.replacecommit")
        theirs = list(decode_commit_metadata(completed.read_bytes()).write_stats())
        for mine, stat in zip(stats, sorted(theirs, key=lambda one: one.partition_path), strict=True):
            assert mine.partition_path == stat.partition_path
            assert (mine.num_writes, mine.num_inserts, mine.prev_commit) == (stat.num_writes, stat.num_inserts, "null")
            left, right = written(path, [mine, stat])
            assert left.column("amount").to_pylist() == right.column("amount").to_pylist()
            assert same_rows(left, right)
            compared += 1
    assert compared == 6


# ---- what is refused


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    settings = make(tmp_path)
    work = work_of(tmp_path, settings)
    os.unlink(work.groups[0].slices[0].base_path)
    with pytest.raises(CorruptTableError, match="a file of it is missing"):
        run(work)


def test_a_damaged_file_leaves_nothing_behind(tmp_path: Path) -> None:
    settings = make(tmp_path)
    work = work_of(tmp_path, settings)
    damaged = Path(work.groups[0].slices[1].base_path)
    damaged.write_bytes(damaged.read_bytes()[:-20])
    for one, copies in ((work, True), (work, False), (replace(work, ordering=Ordering(("qty",))), False)):
        with pytest.raises(CorruptTableError):
            run(one, copies)
    assert not list(tmp_path.glob(f"*{INSTANT}*"))


@pytest.mark.parametrize("column", ["nothing", "place.nothing", "place.x.y"])
def test_a_sort_column_that_is_not_there_is_told(column: str, tmp_path: Path) -> None:
    settings = make(tmp_path, files=1)
    with pytest.raises(ConfigError, match=re.escape(column)):
        run(work_of(tmp_path, settings, Ordering((column,))))


def test_a_column_without_an_order_is_refused(tmp_path: Path) -> None:
    settings = make(tmp_path, files=1)
    with pytest.raises(UnsupportedFeatureError, match="struct"):
        run(work_of(tmp_path, settings, Ordering(("place",))))


def test_a_group_of_several_partitions_is_refused(tmp_path: Path) -> None:
    settings = options(operation="bulk_insert")
    hf.write(plain_rows(range(20)), tmp_path, settings)
    work = work_of(tmp_path, settings)
    slices = tuple(one for group in work.groups for one in group.slices)
    joined = replace(work, groups=(replace(work.groups[0], slices=slices),))
    with pytest.raises(UnsupportedFeatureError, match="2 partitions"):
        run(joined)
