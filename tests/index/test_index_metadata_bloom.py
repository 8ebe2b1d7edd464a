"""A bloom index that asks the metadata table first: it rules files out, and never one that holds a key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.formats.parquet.base_file import open_base_file
from hudi_fast.index.metadata_lookup import candidates, keys_inside
from hudi_fast.index.tagging import IncomingKeys, IndexSettings, file_keys, match_slice
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.storage.base import Storage
from hudi_fast.view.slices import FileSlice, latest_slices
from tests.support.golden import Golden
from tests.support.instrumented_storage import RecordingStorage

BLOOM = IndexSettings("GLOBAL_BLOOM", use_metadata=True)
TABLES = ["mor_v9_record_index", "h015_cow_record_index"]


def opened(path: Path) -> tuple[RecordingStorage, MetadataTable, list[FileSlice]]:
    storage = RecordingStorage(path)
    state = open_state(storage)
    table = metadata_of(state)
    assert table is not None
    slices = [one for name in state.view.lister.partitions() for one in latest_slices(state.view, name)]
    return storage, table, slices


def incoming(keys: list[str]) -> IncomingKeys:
    return IncomingKeys.of(pa.array(keys, pa.string()), np.arange(len(keys), dtype=np.int64))


def keys_of(storage: Storage, slice_: FileSlice) -> list[str]:
    assert slice_.base_file is not None
    with open_base_file(storage, slice_.base_file.path) as reader:
        return [key for part in file_keys(reader, None) for key in part.to_pylist()]


def data_files(storage: RecordingStorage) -> list[str]:
    return [call.path for call in storage.calls if call.name == "open_input" and call.path.endswith(".parquet")]


@pytest.mark.parametrize("name", TABLES)
def test_files_that_hold_a_key_are_left_and_others_are_not_opened(golden: Callable[[str], Golden], name: str) -> None:
    path = golden(name).table
    _, table, slices = opened(path)
    stored = {one.file_id: keys_of(Storage(path), one) for one in slices}
    assert len(stored) > 1
    for chosen in stored.values():
        keys = incoming([chosen[0], chosen[-1], "aaaa", "zzzz"])
        storage, table, slices = opened(path)
        left = candidates(table, slices, keys, BLOOM)
        assert data_files(storage) == []
        expected = {file for file, held in stored.items() if {chosen[0], chosen[-1]} & set(held)}
        assert {one.slice.file_id for one in left} == expected
        assert all(not one.settings.uses_bloom for one in left)
        found = [match_slice(storage, one.slice, keys, one.settings, None) for one in left]
        assert {match.slice.file_id for match in found if match is not None} == expected
    assert candidates(table, slices, incoming(["aaaa", "zzzz"]), BLOOM) == []


def test_what_the_metadata_table_does_not_say_is_asked_of_the_files(golden: Callable[[str], Golden]) -> None:
    path = golden("mor_v9_record_index").table
    _, table, slices = opened(path)
    keys = incoming(["aaaa", *(sorted(keys_of(Storage(path), one))[0] + "!" for one in slices)])  # inside every range
    everything = [(one, BLOOM) for one in slices]

    def left(table: MetadataTable | None, settings: IndexSettings = BLOOM) -> list[tuple[FileSlice, IndexSettings]]:
        return [(one.slice, one.settings) for one in candidates(table, slices, keys, settings)]

    assert left(None) == everything
    assert left(replace(table, partitions=("files",))) == everything
    plain = replace(BLOOM, use_metadata=False)
    assert left(table, plain) == [(one, plain) for one in slices]
    assert left(replace(table, partitions=("column_stats", "files"))) == everything
    logs_alone = [replace(one, base_file=None) for one in slices]
    assert [one.slice for one in candidates(table, logs_alone, keys, BLOOM)] == logs_alone
    only = replace(BLOOM, prune_by_range=False)
    assert left(replace(table, partitions=("bloom_filters", "files")), only) == []


def test_ranges_alone_rule_files_out(golden: Callable[[str], Golden]) -> None:
    _, table, slices = opened(golden("mor_v9_record_index").table)
    stats = replace(table, partitions=("column_stats", "files"))
    assert candidates(stats, slices, incoming(["zzzz", "zzzzz"]), BLOOM) == []
    assert len(candidates(stats, slices, incoming(["zzzz\uffee"]), BLOOM)) == len(slices)  # Java orders it elsewhere


def test_a_metadata_table_that_cannot_be_read_rules_nothing_out(golden: Callable[[str], Golden]) -> None:
    path = golden("mor_v9_record_index", own=True).table
    _, table, slices = opened(path)
    for file in (path / ".hoodie/metadata/column_stats").glob("*col-stats*"):
        content = bytearray(file.read_bytes())
        content[len(content) // 3 : len(content) // 2] = bytes(len(content) // 2 - len(content) // 3)
        file.write_bytes(bytes(content))
    with pytest.warns(hf.HudiWarning, match="file footers are read instead"):
        left = candidates(table, slices, incoming(["aaaa"]), BLOOM)
    assert [(one.slice, one.settings) for one in left] == [(one, BLOOM) for one in slices]


def test_a_greatest_key_that_was_cut_short_rules_out_no_key_that_begins_with_it() -> None:
    keys = pa.array(["abb", "abc", "abcd", "abd", "b"])
    assert keys.filter(keys_inside(keys, "abc", "abc")).to_pylist() == ["abc", "abcd"]
