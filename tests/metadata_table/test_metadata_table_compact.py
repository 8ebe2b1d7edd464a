"""The entries of a compacted file group of the metadata table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.formats.hfile.writer import HFileWriter
from hudi_fast.formats.varlen import VarlenBuffers
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.read import scan
from hudi_fast.metadata_table.records import RECORD_SCHEMA, decode_records
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.metadata_table.updates.maintain import OutOfOrderError, all_entries, compact_metadata, compacted_entries
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.writing.threads import ThreadBackend
from tests.support.small_tables import options, plain_rows


def test_entries_of_base_file_and_log_are_folded_in_key_order(tmp_path: Path) -> None:
    more = {"hoodie.metadata.record.index.enable": "true", "hoodie.metadata.record.index.min.filegroup.count": "1"}
    more |= {"hoodie.metadata.record.index.max.filegroup.count": "1"}
    hf.write(plain_rows(range(20)), tmp_path, {**options(), **more})
    hf.write(plain_rows(range(15, 25), ts=2), tmp_path, {**options(), **more})
    hf.write(plain_rows([3], ts=3), tmp_path, {**options(operation="delete"), **more})
    table = metadata_of(open_state(Storage(tmp_path)))
    assert table is not None
    keys: list[str] = []
    for slice_ in table.groups("record_index"):
        assert slice_.log_files
        pieces = list(compacted_entries(table, "record_index", slice_, RECORD_SCHEMA))
        here = [pa.array(piece[0]).cast(pa.string()).to_pylist() for piece in pieces]
        flat = [key for piece in here for key in piece]
        assert flat == sorted(flat)
        keys += flat
        for found, values in pieces:
            texts = pa.array(found).cast(pa.string())
            decoded = decode_records(PartitionKind.RECORD_INDEX, texts, values, RECORD_SCHEMA, "here")
            assert decoded["file_id"].null_count == 0
    assert sorted(keys) == [f"k{number:05d}" for number in range(25) if number != 3]


class AnyOrder(HFileWriter):
    """Writes keys in the order given, as Apache Hudi does with characters above U+DFFF."""

    def _check(self, keys: VarlenBuffers) -> None:
        """Accept all keys."""


def test_a_base_file_in_javas_string_order_is_compacted_into_the_order_of_bytes(tmp_path: Path) -> None:
    more = {"hoodie.metadata.record.index.enable": "true", "hoodie.metadata.record.index.min.filegroup.count": "1"}
    more |= {"hoodie.metadata.record.index.max.filegroup.count": "1"}
    hf.write(plain_rows(range(4)), tmp_path, {**options(), **more})
    hf.write(plain_rows(range(4, 6)), tmp_path, {**options(), **more})
    table = metadata_of(open_state(Storage(tmp_path)))
    assert table is not None
    compact_metadata(table, InstantClock(table.config.timezone), ThreadBackend().map_groups)
    hf.write(plain_rows(range(6, 9)), tmp_path, {**options(), **more})
    table = metadata_of(open_state(Storage(tmp_path)))
    assert table is not None
    (slice_,) = table.groups("record_index")
    assert slice_.base_file is not None
    values = next(iter(compacted_entries(table, "record_index", replace(slice_, log_files=()), RECORD_SCHEMA)))[1]
    keys = pa.array(["a", "\U00010000", "\ue000"])
    with (tmp_path / ".hoodie/metadata" / slice_.base_file.path).open("wb") as sink:
        with AnyOrder(sink, RECORD_SCHEMA, block_size=1) as writer:
            writer.append(keys, values[:3])
    with pytest.raises(OutOfOrderError):
        list(compacted_entries(table, "record_index", slice_, RECORD_SCHEMA))
    found, _ = all_entries(table, "record_index", slice_, RECORD_SCHEMA)
    assert found.to_pylist() == ["a", "k00006", "k00007", "k00008", "\ue000", "\U00010000"]
    compact_metadata(table, InstantClock(table.config.timezone), ThreadBackend().map_groups)
    table = metadata_of(open_state(Storage(tmp_path)))
    assert table is not None
    assert sorted(scan(table, "record_index").column("key").to_pylist()) == sorted(found.to_pylist())


@pytest.mark.slow
def test_streamed_and_sorted_entries_are_the_same(tmp_path: Path) -> None:
    more = {"hoodie.metadata.record.index.enable": "true", "hoodie.metadata.index.bloom.filter.enable": "true"}
    hf.write(plain_rows(range(40)), tmp_path, {**options(), **more})
    table = metadata_of(open_state(Storage(tmp_path)))
    assert table is not None
    compact_metadata(table, InstantClock(table.config.timezone), ThreadBackend().map_groups)
    for ts in range(2, 6):
        hf.write(plain_rows(range(ts * 7, ts * 12), ts=ts), tmp_path, {**options(), **more})
    hf.write(plain_rows([3, 30], ts=9), tmp_path, {**options(operation="delete"), **more})
    table = metadata_of(open_state(Storage(tmp_path)))
    assert table is not None
    assert set(table.partitions) >= {"files", "column_stats", "record_index", "bloom_filters"}
    for name in table.partitions:
        for slice_ in table.groups(name):
            pieces = list(compacted_entries(table, name, slice_, RECORD_SCHEMA))
            keys, values = all_entries(table, name, slice_, RECORD_SCHEMA)
            assert [key for piece in pieces for key in piece[0].to_pylist()] == keys.to_pylist()
            assert [value for piece in pieces for value in piece[1].to_pylist()] == values.to_pylist()
