"""The metadata table lists the files that its table's folders hold."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.errors import HudiWarning
from hudi_fast.metadata_table import state as lister_module
from hudi_fast.metadata_table.state import MetadataLister, metadata_of, open_state
from hudi_fast.storage.base import Storage
from hudi_fast.view.listing import PARTITION_MARKERS, StorageLister
from tests.support.golden import Golden, golden_names
from tests.support.instrumented_storage import RecordingStorage

Unzip = Callable[[str], Golden]
WITHOUT = (
    "hudi_rs/cow_v6",
    "hudi_rs/cow_v8",
    "hudi_rs/mor_parquet_v6",
    "hudi_rs/trips_mor_avro_v6",
    "mor_v9_log_compacted",
)
NAMES = [name for name in golden_names() if not name.startswith(WITHOUT)]


def lister_of(path: Path) -> MetadataLister:
    lister = open_state(Storage(path)).view.lister
    assert isinstance(lister, MetadataLister)
    return lister


def stored_files(folders: StorageLister, partition: str) -> dict[str, int]:
    return {
        one.path: one.size
        for one in folders.files(partition)
        if one.name not in PARTITION_MARKERS and not one.name.endswith(".crc")
    }


def test_most_tables_have_a_metadata_table() -> None:
    assert len(NAMES) == 63


@pytest.mark.parametrize("name", NAMES)
def test_partitions_files_and_sizes_are_those_of_the_folders(name: str, golden: Unzip) -> None:
    path = golden(name).table
    lister, folders = lister_of(path), StorageLister(Storage(path))
    assert lister.partitions() == folders.partitions()
    for partition in folders.partitions():
        assert {one.path: one.size for one in lister.files(partition)} == stored_files(folders, partition)
    assert lister.files("no such partition") == []


@pytest.mark.parametrize("name", ["cow_v9_archived", "h015_mor", "mor_v9_nonpartitioned_multi_order"])
def test_large_ones_are_looked_up_partition_by_partition(
    name: str, golden: Unzip, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = golden(name).table
    whole = lister_of(path)
    monkeypatch.setattr(lister_module, "_WHOLE_BYTES", 0)
    for few in (1, 100):
        monkeypatch.setattr(lister_module, "_FEW_LOOKUPS", few)
        single = lister_of(path)
        assert single.files("nowhere") == []
        for partition in whole.partitions():
            assert single.files(partition) == whole.files(partition)
        assert single.partitions() == whole.partitions()


@pytest.mark.parametrize("share", [0, 100])
@pytest.mark.parametrize("name", ["cow_v9_archived", "h015_mor", "mor_v9_nonpartitioned_multi_order"])
def test_announced_partitions_have_the_same_files(
    name: str, share: int, golden: Unzip, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = golden(name).table
    whole = lister_of(path)
    monkeypatch.setattr(lister_module, "_WHOLE_BYTES", 0)
    monkeypatch.setattr(lister_module, "_SHARE", share)
    announced = lister_of(path)
    announced.expect([*whole.partitions(), "nowhere"])
    for partition in [*whole.partitions(), "nowhere"]:
        assert announced.files(partition) == whole.files(partition)
    assert announced.partitions() == whole.partitions()


@pytest.mark.parametrize("name", ["h015_mor", "mor_v9_compacted"])
def test_checksum_files_beside_the_metadata_table_s_are_no_files_of_it(name: str, golden: Unzip) -> None:
    """Hadoop's local file system keeps them."""
    path = golden(name).table
    before = {one: lister_of(path).files(one) for one in lister_of(path).partitions()}
    for file in [one for one in (path / ".hoodie").rglob("*") if one.is_file()]:
        file.with_name(f".{file.name}.crc").write_bytes(b"crc\0")
    lister = lister_of(path)
    assert {one: lister.files(one) for one in lister.partitions()} == before


def test_threads_and_processes_get_the_same_answers(golden: Unzip) -> None:
    path = golden("mor_v9_compacted").table
    lister = lister_of(path)
    partitions = lister.partitions() * 20
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lister_of(path).files, partitions))
    assert answers == [lister.files(one) for one in partitions]
    copy = pickle.loads(pickle.dumps(lister))
    assert [copy.files(one) for one in partitions] == answers


@pytest.mark.parametrize(
    "name", ["cow_v6_mixed", "cow_v9_clustered", "mor_v6_mixed", "mor_v9_compacted", "h015_cow_record_index"]
)
def test_a_query_lists_no_folder_of_data(name: str, golden: Unzip) -> None:
    table = golden(name)
    storage = RecordingStorage(table.table)
    partitions = set(StorageLister(Storage(table.table)).partitions())
    rows = hf.HudiTable(storage).to_arrow()
    assert rows.num_rows == table.expected["rows"]
    listed = {call.path for call in storage.calls if call.name == "list_dir"}
    assert listed
    assert not listed & {*partitions, ""}


@pytest.mark.parametrize("pattern", ["files-0000-0*.hfile", ".files-0000-0_2*.log*"])
@pytest.mark.parametrize("gone", [True, False])
def test_folders_are_listed_when_the_metadata_table_turns_out_to_be_damaged(
    pattern: str, gone: bool, golden: Unzip
) -> None:
    table = golden("mor_v9_compacted", own=True)
    lister = lister_of(table.table)
    lister.table.groups("files")
    for file in (table.table / ".hoodie/metadata/files").glob(pattern):
        if gone:
            file.unlink()
        else:
            file.write_bytes(b"not what it was")
    with pytest.warns(HudiWarning, match="cannot be read; folders are listed instead"):
        partitions = lister.partitions()
    folders = StorageLister(Storage(table.table))
    assert partitions == folders.partitions()
    lister.expect(partitions)
    assert lister.files(partitions[0]) == folders.files(partitions[0])


def test_a_damaged_metadata_table_costs_a_warning_and_no_rows(golden: Unzip) -> None:
    table = golden("cow_v9_mixed", own=True)
    for file in (table.table / ".hoodie/metadata/files").glob("*.hfile"):
        file.write_bytes(b"")
    with pytest.warns(HudiWarning, match="folders are listed"):
        rows = hf.HudiTable.open(table.table).to_arrow()
    assert rows.num_rows == table.expected["rows"]


def test_a_state_without_metadata_table_has_none(golden: Unzip) -> None:
    assert metadata_of(open_state(Storage(golden("mor_v9_log_compacted").table))) is None
