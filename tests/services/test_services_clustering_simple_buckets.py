"""Clustering of tables with a simple bucket index: each bucket is sorted, stays one file group, and is written on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.index.buckets import bucket_number, shared_bucket_file_id
from hudi_fast.services.clustering.ordering import are_buckets, new_bucket_prefix, require_buckets
from hudi_fast.timeline.service_plans import decode_requested_replace, encode_requested_replace
from tests.support.mor_tables import mor_options
from tests.support.small_tables import assert_tidy, listing, options, plain_rows, table_rows

SORT = "hoodie.clustering.plan.strategy.sort.columns"
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}
BY_TEXT = {SORT: "text"}
TABLES = [(version, mor) for version in ("9", "6") for mor in (False, True)]
FIRST = "12345678-1234-4234-8234-123456789012-0"


def make(path: Path, version: str = "9", mor: bool = False, **more: Any) -> dict[str, Any]:
    """40 rows in two partitions of three buckets; in a merge-on-read table half of them are changed in log files."""
    settings = {**(mor_options if mor else options)(table_version=version), **BUCKETS, **more}
    settings |= {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
    hf.write(plain_rows(range(40)), path, settings)
    hf.write(plain_rows(range(20), ts=2, text="b"), path, settings)
    return settings


def groups(path: Path) -> dict[tuple[str, int | None], str]:
    """Partition and bucket to the id of its file group; a bucket has one."""
    rows = hf.HudiTable.open(path).files().select(["partition", "file_id"]).to_pylist()
    found = {(row["partition"], bucket_number(row["file_id"])): row["file_id"] for row in rows}
    assert len(found) == len(rows)
    return found


def texts_of_files(path: Path) -> list[list[str]]:
    rows = hf.HudiTable.open(path).to_arrow(["_hoodie_file_name", "text"]).to_pylist()
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row["_hoodie_file_name"], []).append(row["text"])
    return list(found.values())


@pytest.mark.slow
@pytest.mark.parametrize(("version", "mor"), TABLES)
def test_rows_are_sorted_within_their_buckets_and_found_there(version: str, mor: bool, tmp_path: Path) -> None:
    settings = make(tmp_path, version, mor)
    before, rows = groups(tmp_path), table_rows(tmp_path)
    services = hf.HudiTable.open(tmp_path).services
    done = services.cluster(BY_TEXT)
    assert (done.file_groups, done.files_written, done.rows) == (6, 6, 40)
    after = groups(tmp_path)
    assert list(after) == list(before)
    assert not set(after.values()) & set(before.values())
    assert table_rows(tmp_path) == rows
    files = texts_of_files(tmp_path)
    assert len(files) == 6
    assert all(texts == sorted(texts) for texts in files)
    hf.write(plain_rows(range(10, 50), ts=3, text="c"), tmp_path, settings)
    hf.HudiTable.open(tmp_path).delete(plain_rows([0, 1]), settings)
    expected = {**rows, **{f"k{number:05d}": (f"p{number % 2}", 3, f"c{number}") for number in range(10, 50)}}
    assert table_rows(tmp_path) == {key: row for key, row in expected.items() if key not in ("k00000", "k00001")}
    assert groups(tmp_path) == after
    assert services.validate().ok
    services.clean({"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"})
    assert groups(tmp_path) == after
    assert_tidy(tmp_path)


@pytest.mark.slow("SparkSizeBasedClustering")
@pytest.mark.parametrize("strategy", ["SparkSingleFileSort", "SparkSizeBasedClustering"])
def test_strategies_make_one_group_of_each_bucket(strategy: str, tmp_path: Path) -> None:
    make(tmp_path)
    given = {**BY_TEXT, "hoodie.clustering.plan.strategy.class": f"{strategy}PlanStrategy"}
    planned = hf.HudiTable.open(tmp_path).services.schedule_cluster(given)
    assert [(len(one.slices), one.output_groups) for one in planned.plan.groups] == [(1, 1)] * 6
    assert planned.plan.groups[0].slices[0].file_id in groups(tmp_path).values()


@pytest.mark.slow
def test_files_of_a_bucket_are_not_cut_by_size(tmp_path: Path) -> None:
    settings = make(tmp_path)
    small = {"hoodie.clustering.plan.strategy.target.file.max.bytes": "1", "hudi_fast.max.file.rows": "2"}
    assert hf.HudiTable.open(tmp_path).services.cluster({**settings, **BY_TEXT, **small}).files_written == 6
    groups(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("sorts", [True, False])
def test_a_plan_of_others_that_puts_buckets_together_keeps_them_apart(sorts: bool, tmp_path: Path) -> None:
    """As Apache Hudi plans: by size, whatever the index is."""
    settings = make(tmp_path)
    before, rows = groups(tmp_path), table_rows(tmp_path)
    services = hf.HudiTable.open(tmp_path).services
    services.schedule_cluster(BY_TEXT)
    (path,) = (tmp_path / ".hoodie" / "timeline").glob("*.clustering.requested")
    planned = decode_requested_replace(path.read_bytes())
    assert planned.clustering is not None
    of_partition = [planned.clustering.groups[:3], planned.clustering.groups[3:]]
    joined = tuple(
        replace(some[0], slices=tuple(one for group in some for one in group.slices), output_groups=2)
        for some in of_partition
    )
    params = planned.clustering.strategy_params if sorts else {}
    clustering = replace(planned.clustering, groups=joined, strategy_params=params)
    path.write_bytes(encode_requested_replace(replace(planned, clustering=clustering)))
    assert services.cluster(pending_only=True).files_written == 6
    assert list(groups(tmp_path)) == list(before)
    assert table_rows(tmp_path) == rows
    hf.write(plain_rows([3], ts=9, text="d"), tmp_path, settings)
    assert table_rows(tmp_path)["k00003"] == ("p1", 9, "d3")
    assert len(table_rows(tmp_path)) == 40


@pytest.mark.slow
def test_a_bucket_that_is_emptied_is_made_again(tmp_path: Path) -> None:
    settings = make(tmp_path)
    hf.HudiTable.open(tmp_path).delete(plain_rows(range(40)), settings)
    hf.HudiTable.open(tmp_path).services.cluster(BY_TEXT)
    hf.write(plain_rows(range(5), ts=4), tmp_path, settings)
    assert sorted(table_rows(tmp_path)) == [f"k{number:05d}" for number in range(5)]
    assert_tidy(tmp_path)


@pytest.mark.slow("given1")
@pytest.mark.parametrize("given", [{}, BUCKETS])
def test_without_sort_columns_it_is_refused_with_the_way_out(given: dict[str, str], tmp_path: Path) -> None:
    make(tmp_path)
    before = listing(tmp_path)
    with pytest.raises(UnsupportedFeatureError, match=r"has a bucket index.*sort\.columns to sort.*CONSISTENT_HASHING"):
        hf.HudiTable.open(tmp_path).services.cluster(given)
    assert listing(tmp_path) == before


def test_another_table_has_no_buckets(tmp_path: Path) -> None:
    hf.write(plain_rows(range(4)), tmp_path, options())
    with pytest.raises(ConfigError, match="which is no bucket"):
        hf.HudiTable.open(tmp_path).services.schedule_cluster({**BUCKETS, **BY_TEXT})


def test_buckets_are_known_by_the_ids_of_their_file_groups() -> None:
    ids = [f"{number:08d}{FIRST[8:]}" for number in (3, 12_000)]
    assert are_buckets(ids, "SIMPLE")
    assert not are_buckets([*ids, f"a{FIRST[1:]}"], "SIMPLE")
    assert are_buckets([*ids, f"a{FIRST[1:]}"], "BUCKET")
    assert not are_buckets([FIRST], "BLOOM")
    assert not are_buckets([], "BUCKET")
    assert bucket_number(new_bucket_prefix(ids[1])) == 12_000
    assert new_bucket_prefix(ids[0]) != new_bucket_prefix(ids[0])


def test_buckets_of_writers_without_locks_are_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="non-blocking concurrent writers"):
        require_buckets("t", [shared_bucket_file_id(2)])
