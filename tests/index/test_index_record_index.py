"""The record index of tables that real Hudi wrote names the file group of every row, and of no other key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.index.metadata_lookup import RECORD_INDEX, is_by_partition, locate_keys, usable_index
from hudi_fast.index.tagging import IndexSettings
from hudi_fast.metadata_table.layout import IndexDefinition
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.storage.base import Storage
from tests.support.golden import Golden

TABLES = ["mor_v9_record_index", "mor_v9_secondary_index", "mor_v8_secondary_index", "h015_cow_record_index"]
GLOBAL = IndexSettings("GLOBAL_RECORD_LEVEL_INDEX")
BY_PARTITION = IndexSettings("RECORD_LEVEL_INDEX")


def opened(golden: Golden) -> MetadataTable:
    table = metadata_of(open_state(Storage(golden.table)))
    assert table is not None
    return table


def kept_by_partition(table: MetadataTable) -> MetadataTable:
    definition = IndexDefinition(RECORD_INDEX, RECORD_INDEX, options={"isPartitioned": "true"})
    return replace(table, definitions={**table.definitions, RECORD_INDEX: definition})


@pytest.mark.slow("h015_cow_record_index")
@pytest.mark.parametrize("name", TABLES)
def test_every_row_is_where_the_index_says(golden: Callable[[str], Golden], name: str) -> None:
    found = golden(name)
    rows = hf.HudiTable.open(found.table).to_arrow()
    keys = rows["_hoodie_record_key"].combine_chunks()
    where = locate_keys(opened(found), keys)
    assert len(set(where.groups)) == len(where.groups) > 1
    paths, files = rows["_hoodie_partition_path"].to_pylist(), rows["_hoodie_file_name"].to_pylist()
    assert rows.num_rows > 50
    for number, path, file in zip(where.numbers.tolist(), paths, files, strict=True):
        assert number >= 0
        partition, file_id = where.groups[number]
        assert partition == path
        assert file.startswith(file_id)


def test_keys_that_are_not_stored_or_come_twice(golden: Callable[[str], Golden]) -> None:
    found = golden("mor_v9_record_index")
    table = opened(found)
    keys = hf.HudiTable.open(found.table).to_arrow()["_hoodie_record_key"].combine_chunks()
    asked = pa.concat_arrays([pa.array(["nowhere"]), keys.slice(3, 2), pa.array(["", "ä"]), keys.slice(3, 1)])
    where = locate_keys(table, asked)
    assert where.numbers.dtype == np.int32
    assert (where.numbers >= 0).tolist() == [False, True, True, False, False, True]
    assert where.numbers[1] == where.numbers[5]
    assert locate_keys(table, asked.slice(0, 1)).groups == ()
    assert locate_keys(table, asked.slice(0, 0)).numbers.tolist() == []


def test_the_record_index_is_used_where_it_is(golden: Callable[[str], Golden]) -> None:
    table = opened(golden("mor_v9_record_index"))
    assert not is_by_partition(table)
    assert usable_index(GLOBAL, table, "t") is GLOBAL
    other = kept_by_partition(table)
    assert is_by_partition(other)
    assert usable_index(BY_PARTITION, other, "t") is BY_PARTITION
    for kind in ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE"):
        assert usable_index(IndexSettings(kind), None, "t").kind == kind


def test_another_index_stands_in_for_one_that_is_not_there(golden: Callable[[str], Golden]) -> None:
    table = opened(golden("mor_v9_record_index"))
    without = replace(table, partitions=("files",))
    for settings, metadata, text in (
        (GLOBAL, None, "no usable metadata table"),
        (GLOBAL, without, "the table does not have it"),
        (GLOBAL, kept_by_partition(table), "is partitioned"),
        (BY_PARTITION, table, "is global"),
    ):
        with pytest.warns(hf.HudiWarning, match=rf"my/table is written without .*{text}"):
            chosen = usable_index(settings, metadata, "my/table")
        assert chosen == replace(settings, kind="GLOBAL_SIMPLE" if settings is GLOBAL else "SIMPLE")
