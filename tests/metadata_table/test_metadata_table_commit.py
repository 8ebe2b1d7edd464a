"""Every kind of action leaves a metadata table that tells the truth, in commits like Apache Hudi's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.view.table_state import read_commit
from tests.metadata_table.stored_metadata import metadata_at
from tests.support.metadata_checks import assert_metadata_true
from tests.support.small_tables import assert_tidy, options, plain_rows

INDEXES = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.compact.inline": "false",
}
TABLES = [(kind, version) for kind in ("COPY_ON_WRITE", "MERGE_ON_READ") for version in ("9", "8", "6")]


def settings_of(kind: str, version: str, **changes: Any) -> dict[str, Any]:
    return {
        **options(table_version=version, **changes),
        **INDEXES,
        "hoodie.datasource.write.table.type": kind,
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "version"),
    [
        pytest.param(*one, marks=pytest.mark.long) if one in (("COPY_ON_WRITE", "8"), ("MERGE_ON_READ", "6")) else one
        for one in TABLES
    ],
)
def test_every_operation_keeps_it_true(kind: str, version: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    steps: list[tuple[str, pa.Table]] = [
        ("bulk_insert", plain_rows(range(12))),
        ("upsert", plain_rows(range(4, 16), ts=2)),
        ("insert", plain_rows(range(20, 24))),
        ("delete", plain_rows(range(6), ts=3)),
        ("insert_overwrite", plain_rows([1, 3, 31], ts=4)),
        ("upsert", plain_rows(range(40, 44), partitions=4)),
    ]
    for operation, rows in steps:
        hf.write(rows, path, settings_of(kind, version, operation=operation))
        built = assert_metadata_true(path)
        assert set(built) >= {"files", "column_stats", "record_index", "bloom_filters"}, operation
    table = hf.HudiTable.open(path)
    table.delete_partitions(["p0"])
    assert assert_metadata_true(path)
    if kind == "MERGE_ON_READ":
        table.services.compact_logs({"hoodie.log.compaction.blocks.threshold": "1"})
        assert assert_metadata_true(path)
        hf.write(plain_rows([3, 31], ts=6), path, settings_of(kind, version))
        assert table.services.compact({"hoodie.compact.inline.max.delta.commits": "1"}).instant
        assert assert_metadata_true(path)
    hf.write(plain_rows(range(3), ts=9), path, settings_of(kind, version, operation="insert_overwrite_table"))
    assert assert_metadata_true(path)
    assert_tidy(path)


@pytest.mark.slow("part")
@pytest.mark.parametrize("partition", ["part", ""])
def test_an_empty_commit_is_recorded(partition: str, tmp_path: Path) -> None:
    settings = options(partition=partition)
    hf.write(plain_rows(range(3)), tmp_path / "t", settings)
    hf.write(plain_rows([]), tmp_path / "t", settings)
    table = metadata_at(tmp_path / "t")
    assert assert_metadata_true(tmp_path / "t")
    data = {one.requested for one in table.data_timeline.writes()}
    assert len(data) == 2
    assert data <= {one.requested for one in table.timeline.writes()}


@pytest.mark.slow("8")
@pytest.mark.parametrize("version", ["9", "8"])
def test_its_commits_complete_before_those_of_the_table(version: str, tmp_path: Path) -> None:
    for turn in range(3):
        hf.write(plain_rows(range(4), ts=turn), tmp_path / "t", options(table_version=version))
    table = metadata_at(tmp_path / "t")
    for instant in table.data_timeline.writes():
        own = table.timeline.find(instant.requested)
        assert own is not None
        assert str(own.completion) < str(instant.completion)


def test_write_stats_name_log_files_of_their_own_from_version_8_on(tmp_path: Path) -> None:
    for turn in range(2):
        hf.write(plain_rows(range(4), ts=turn), tmp_path / "t", options())
    table = metadata_at(tmp_path / "t")
    instant = table.timeline.writes()[-1]
    stats = list(read_commit(table.storage, table.config, instant).write_stats())
    assert {stat.partition_path for stat in stats} == {"column_stats", "files", "partition_stats"}
    for stat in stats:
        name = stat.path.rpartition("/")[2]
        assert name.startswith(f".{stat.file_id}_{instant.requested}.log.1_")
        assert stat.log_files == (name,)
        assert (stat.prev_commit, stat.base_file, stat.log_version, stat.log_offset) == (instant.requested, "", 1, 0)
        size = (tmp_path / "t/.hoodie/metadata" / stat.path).stat().st_size
        assert stat.file_size == stat.total_write_bytes == size
        assert stat.num_writes == stat.num_update_writes > 0


def test_before_version_8_log_files_count_up_on_their_slice(tmp_path: Path) -> None:
    for turn in range(3):
        hf.write(plain_rows(range(4), ts=turn), tmp_path / "t", options(table_version="6"))
    table = metadata_at(tmp_path / "t")
    (slice_,) = table.groups("files")
    assert slice_.base_file is not None
    for version, instant in enumerate(table.timeline.writes()[2:], 2):
        (stat,) = read_commit(table.storage, table.config, instant).partition_to_write_stats["files"]
        assert stat.prev_commit == slice_.base_instant == "00000000000000010"
        assert (stat.log_version, stat.base_file) == (version, slice_.base_file.name)
        assert stat.log_files == (f".files-0000-0_00000000000000010.log.{version}_0-0-0",)


@pytest.mark.slow
def test_the_metadata_table_is_compacted_and_cleaned_as_writes_go_on(tmp_path: Path) -> None:
    often = {"hoodie.metadata.compact.max.delta.commits": "4"}
    for turn in range(30):
        hf.write(plain_rows([turn % 7], ts=turn, partitions=1), tmp_path / "t", {**options(), **often})
    assert assert_metadata_true(tmp_path / "t")
    table = metadata_at(tmp_path / "t")
    actions = [one.action for one in table.timeline.completed()]
    assert actions.count("commit") >= 5
    assert "clean" in actions
    assert all(len(one.log_files) <= 5 for name in table.partitions for one in table.groups(name))
