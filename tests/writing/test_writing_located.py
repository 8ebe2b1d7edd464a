"""Writes whose record index is missing: a small table is searched, a large one is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from tests.support.small_tables import assert_tidy, listing, options, plain_rows, table_rows

INDEX = "GLOBAL_RECORD_LEVEL_INDEX"
LIMIT = "hudi_fast.index.fallback.max.bytes"
DROP = {"hoodie.datasource.insert.dup.policy": "drop"}
OFF = {"hoodie.metadata.enable": "false"}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    hf.write(plain_rows(range(20)), tmp_path, {**options(), **OFF})
    return tmp_path


@pytest.mark.parametrize("operation", ["upsert", "delete"])
def test_a_large_table_is_refused_before_anything_is_written(table: Path, operation: str) -> None:
    size = sum(number for path, number in listing(table).items() if path.endswith(".parquet"))
    before = listing(table), table_rows(table), load_state(Storage(table)).timeline
    settings = {**options(operation=operation, index=INDEX), **OFF, LIMIT: str(size - 1)}
    with pytest.raises(hf.ConfigError) as refused:
        hf.write(plain_rows([3], ts=2), table, settings)
    for text in (str(table), "no usable metadata table", f"{size} bytes", f"{LIMIT}={size - 1}", "services.index"):
        assert text in str(refused.value)
    assert (listing(table), table_rows(table), load_state(Storage(table)).timeline) == before
    assert_tidy(table)


def test_a_table_up_to_the_limit_is_searched_with_a_warning(table: Path) -> None:
    size = sum(number for path, number in listing(table).items() if path.endswith(".parquet"))
    with pytest.warns(hf.HudiWarning, match="without its record index: the table has no usable metadata table"):
        done = hf.write(plain_rows([3, 30], ts=2), table, {**options(index=INDEX), **OFF, LIMIT: str(size)})
    assert (done.updates, done.inserts) == (1, 1)


def test_an_index_that_the_write_builds_is_not_missing(table: Path) -> None:
    done = hf.write(plain_rows([3, 30], ts=2), table, {**options(index=INDEX), LIMIT: "0"})
    assert (done.updates, done.inserts) == (1, 1)


def test_writes_that_look_no_key_up_need_no_index(table: Path) -> None:
    settings = {**options(operation="bulk_insert", index=INDEX), **OFF, LIMIT: "0"}
    assert hf.write(plain_rows([40]), table, settings).inserts == 1
    with pytest.raises(hf.ConfigError, match=LIMIT):
        hf.write(plain_rows([40]), table, {**settings, **options(operation="insert"), **DROP})
