"""The entries of a compacted file group of the metadata table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import hudi_fast as hf
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.records import RECORD_SCHEMA, decode_records
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.metadata_table.updates.compact import compacted_entries
from hudi_fast.storage.base import Storage
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
