"""Partitions of a metadata table from which completed actions cannot be removed."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.metadata_table.updates.rollback import drop_lost_partitions, lost_partitions
from hudi_fast.storage.base import Storage
from tests.support.small_tables import options, plain_rows

INDEXES = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(tmp_path)


def config(storage: Storage) -> TableConfig:
    return TableConfig.from_properties(load_properties(storage), storage.uri)


def write(storage: Storage, ts: int, **more: str) -> str:
    return hf.write(plain_rows(range(4), ts=ts), storage.uri, {**options(), **INDEXES, **more}).instant


def test_commits_on_top_of_base_files_can_be_removed(storage: Storage) -> None:
    write(storage, 1)
    assert lost_partitions(storage, config(storage), [write(storage, 2)]) == ()
    assert lost_partitions(storage, config(storage), []) == ()


def test_commits_in_base_files_lose_every_partition(storage: Storage) -> None:
    first = write(storage, 1)
    names = set(config(storage).metadata_partitions)
    assert "files" in names
    compacted = write(storage, 2, **{"hoodie.metadata.compact.max.delta.commits": "1"})
    assert set(lost_partitions(storage, config(storage), [first, compacted])) == names
    assert set(drop_lost_partitions(storage, config(storage), [first, compacted])) == names
    assert not config(storage).metadata_partitions


def test_without_a_metadata_table_nothing_is_lost(storage: Storage) -> None:
    hf.write(plain_rows([0]), storage.uri, {**options(), "hoodie.metadata.enable": "false"})
    assert lost_partitions(storage, config(storage), ["20240101000000000"]) == ()
