"""Metadata tables of real Hudi are opened; those that cannot be trusted are not, and why is said."""

from __future__ import annotations

import pickle
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_fast.config.properties_file import load_properties, update_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError, HudiWarning
from hudi_fast.metadata_table.table import MetadataTable, metadata_storage, open_metadata
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import load_timeline
from tests.support.golden import Golden

Unzip = Callable[[str], Golden]


def opened(table: Path) -> MetadataTable | None:
    storage = Storage(table)
    config = TableConfig.from_properties(load_properties(storage), storage.uri)
    return open_metadata(storage, config, load_timeline(storage, config))


def trusted(table: Path) -> MetadataTable:
    found = opened(table)
    assert found is not None
    return found


def refused(table: Path, why: str) -> None:
    with pytest.warns(HudiWarning, match=why):
        assert opened(table) is None


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("h015_cow_record_index", {"bloom_filters": 4, "column_stats": 2, "files": 1, "record_index": 10}),
        ("mor_v6_compacted", {"column_stats": 2, "files": 1}),
        (
            "mor_v8_secondary_index",
            {
                "column_stats": 2,
                "expr_index_idx_day": 2,
                "files": 1,
                "partition_stats": 1,
                "record_index": 10,
                "secondary_index_idx_name": 10,
            },
        ),
        (
            "mor_v9_record_index",
            {"bloom_filters": 4, "column_stats": 2, "files": 1, "partition_stats": 1, "record_index": 10},
        ),
    ],
)
def test_partitions_have_their_groups_in_the_order_of_their_numbers(
    name: str, groups: dict[str, int], golden: Unzip
) -> None:
    table = trusted(golden(name).table)
    assert {partition: len(table.groups(partition)) for partition in table.partitions} == groups
    for partition in table.partitions:
        assert [int(one.file_id.rsplit("-", 2)[1]) for one in table.groups(partition)] == list(range(groups[partition]))
        assert table.usable(partition)


def test_a_slice_is_the_newest_base_file_with_the_logs_since(golden: Unzip) -> None:
    (files,) = trusted(golden("mor_v9_compacted").table).groups("files")
    assert files.base_file is not None
    assert files.base_file.name.endswith(".hfile")
    assert len(files.log_files) == 3
    (old,) = trusted(golden("mor_v6_compacted").table).groups("files")
    assert old.base_instant == "20261121054620691001"
    assert [log.version for log in old.log_files] == [1]


def test_a_copy_in_another_process_reads_the_same(golden: Unzip) -> None:
    table = trusted(golden("mor_v9_record_index").table)
    slices = table.groups("record_index")
    data = pickle.dumps(table)
    copy = pickle.loads(data)
    assert (copy.timeline, copy.definitions, copy.partitions) == (table.timeline, table.definitions, table.partitions)
    assert copy.groups("record_index") == slices
    assert len(data) < 20_000


def test_a_table_without_metadata_table_is_no_reason_for_a_warning(golden: Unzip) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert opened(golden("mor_v9_log_compacted").table) is None


def test_the_metadata_table_s_storage_is_below_the_table(golden: Unzip) -> None:
    storage = Storage(golden("cow_v9_mixed").table)
    inside = metadata_storage(storage)
    assert inside.uri == f"{storage.uri}/.hoodie/metadata"
    assert inside.exists("files")
    assert not storage.exists("files")
    assert pickle.loads(pickle.dumps(inside)).exists("files")


# ---- what counts


def test_a_delta_commit_whose_instant_is_pending_does_not_count(golden: Unzip) -> None:
    table = golden("cow_v9_mixed").table
    (newest,) = sorted(table.glob(".hoodie/timeline/*_*.commit"))[-1:]
    instant = newest.name.split("_")[0]
    assert trusted(table).is_visible(instant)
    newest.unlink()
    found = trusted(table)
    assert not found.is_visible(instant)
    assert instant not in {log.instant for log in found.groups("files")[0].log_files}


def test_initial_delta_commits_and_rollbacks_count(golden: Unzip) -> None:
    table = trusted(golden("mor_v9_delete_flag_and_rollback").table)
    assert table.is_visible("00000000000000000")
    assert table.is_visible("20261121055024017")
    assert not table.is_visible("20261121055024018")
    assert not table.is_visible("29991231000000000")


def test_a_delta_commit_that_began_on_the_newest_write_counts(golden: Unzip) -> None:
    """On version 6 a partition that was built later is named after the newest write, with three more digits."""
    path = golden("h015_cow").table
    newest = max(file.name[:17] for file in (path / ".hoodie").glob("*.commit"))
    for state in ("", ".inflight", ".requested"):
        (path / f".hoodie/metadata/.hoodie/{newest}010.deltacommit{state}").write_bytes(b"")
    assert trusted(path).is_visible(f"{newest}010")
    assert not trusted(path).is_visible(f"{newest}011")


def test_archived_delta_commits_count(golden: Unzip) -> None:
    table = trusted(golden("cow_v9_archived").table)
    assert table.is_visible("20261121054908901")
    assert not table.is_visible("20261121054928175")


# ---- what cannot be trusted


def test_a_folder_that_is_gone(golden: Unzip) -> None:
    table = golden("cow_v9_mixed").table
    shutil.rmtree(table / ".hoodie" / "metadata")
    refused(table, "folders are listed: No Hudi table at")


@pytest.mark.parametrize("damage", [b"", b"hoodie.table.version=9\n", b"\xff\xfe\n"])
def test_properties_that_make_no_sense(damage: bytes, golden: Unzip) -> None:
    table = golden("cow_v9_mixed", own=True).table
    (table / ".hoodie/metadata/.hoodie/hoodie.properties").write_bytes(damage)
    refused(table, "hoodie.properties")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"hoodie.table.version": "6", "hoodie.timeline.layout.version": "1"}, "timeline layout differs"),
        ({"hoodie.table.version": "77"}, "table version 77"),
        ({"hoodie.table.base.file.format": "PARQUET"}, "found PARQUET"),
    ],
)
def test_properties_of_another_kind_of_table(changes: dict[str, str], why: str, golden: Unzip) -> None:
    table = golden("cow_v9_mixed").table
    update_properties(metadata_storage(Storage(table)), changes)
    refused(table, why)


def test_a_partition_files_without_groups(golden: Unzip) -> None:
    table = golden("cow_v9_mixed").table
    shutil.rmtree(table / ".hoodie/metadata/files")
    refused(table, "no file groups in its partition files")


def test_partitions_without_one_of_files(golden: Unzip) -> None:
    table = golden("cow_v9_mixed").table
    update_properties(Storage(table), {"hoodie.table.metadata.partitions": "column_stats"})
    refused(table, "its partition files cannot be read: the table does not have it")


def test_a_timeline_without_commits(golden: Unzip) -> None:
    table = golden("h015_cow").table
    for path in (table / ".hoodie/metadata/.hoodie").glob("*.deltacommit"):
        path.unlink()
    refused(table, "no completed commit")


@pytest.mark.parametrize("name", ["h015_cow", "cow_v6_mixed", "cow_v8_mixed", "cow_v9_clustered", "cow_v9_archived"])
def test_a_write_that_the_metadata_table_was_not_told_of(name: str, golden: Unzip) -> None:
    """Apache Hudi does not notice, and loses the rows."""
    table = golden(name).table
    metadata = table / ".hoodie/metadata/.hoodie"
    folder = metadata / "timeline" if (metadata / "timeline").exists() else metadata
    data = {path.name[:17] for path in table.glob(".hoodie/**/*commit") if "metadata" not in path.parts}
    instant = sorted(path.name[:17] for path in folder.glob("2*.deltacommit") if path.name[:17] in data)[-2]
    for path in folder.glob(f"{instant}*"):
        path.unlink()
    refused(table, f"{instant} of the table .* has no delta commit in it")


def test_a_timeline_that_was_set_back(golden: Unzip) -> None:
    table = golden("cow_v9_mixed").table
    (newest,) = sorted(table.glob(".hoodie/timeline/*_*.commit"))[-1:]
    for path in table.glob(f".hoodie/timeline/{newest.name.split('_')[0]}*"):
        path.unlink()
    refused(table, "the table's timeline was set back")


def test_a_write_between_the_two_listings_is_no_reason_to_distrust(golden: Unzip) -> None:
    """The state is that of the data timeline: what came after it does not count."""
    table = golden("cow_v9_mixed").table
    storage = Storage(table)
    config = TableConfig.from_properties(load_properties(storage), storage.uri)
    (newest,) = sorted(table.glob(".hoodie/timeline/*_*.commit"))[-1:]
    instant = newest.name.split("_")[0]
    hidden = {path: path.read_bytes() for path in table.glob(f".hoodie/timeline/{instant}*")}
    for path in hidden:
        path.unlink()
    before = load_timeline(storage, config)
    for path, content in hidden.items():
        path.write_bytes(content)
    found = open_metadata(storage, config, before)
    assert found is not None
    assert not found.is_visible(instant)
    assert instant not in {log.instant for log in found.groups("files")[0].log_files}


# ---- other partitions than files


def test_a_partition_that_lacks_a_group_is_unusable_and_says_so(golden: Unzip) -> None:
    table = golden("mor_v9_record_index").table
    for path in (table / ".hoodie/metadata/record_index").glob("*record-index-0004-0*"):
        path.unlink()
    found = trusted(table)
    assert "record-index-0004 among" in str(found.unusable("record_index"))
    assert found.usable("column_stats")
    with pytest.raises(CorruptTableError, match="lacks file groups of its partition record_index"):
        found.groups("record_index")


def test_partitions_that_are_not_there_or_not_ready_or_unknown_are_unusable(golden: Unzip) -> None:
    table = golden("cow_v9_mixed").table
    update_properties(
        Storage(table),
        {
            "hoodie.table.metadata.partitions": "column_stats,files,vector_index_v",
            "hoodie.table.metadata.partitions.inflight": "partition_stats",
        },
    )
    found = trusted(table)
    assert found.building == ("partition_stats",)
    assert found.unusable("partition_stats") == "it is being built"
    assert found.unusable("record_index") == "the table does not have it"
    assert "later release" in str(found.unusable("vector_index_v"))
    assert found.usable("column_stats")
