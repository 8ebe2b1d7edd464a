"""A pinned state is checked after the files of a query have been listed."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.errors import FileGoneError
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, LogBlock
from hudi_fast.reading.scan import require_files_present
from hudi_fast.reading.slice_reader import has_partial_rows
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from tests.support.small_tables import options, plain_rows

SETTINGS = {**options(), "hoodie.metadata.enable": "false", "hoodie.clean.automatic": "false"}


def test_a_state_that_nobody_changed_is_complete(tmp_path: Path) -> None:
    hf.write(plain_rows([0]), tmp_path, SETTINGS)
    state = load_state(Storage(tmp_path))
    hf.write(plain_rows([1]), tmp_path, SETTINGS)
    require_files_present(state, {"p0"})


def test_a_write_that_was_rolled_back_is_named(tmp_path: Path) -> None:
    hf.write(plain_rows([0]), tmp_path, SETTINGS)
    done = hf.write(plain_rows([1]), tmp_path, SETTINGS)
    state = load_state(Storage(tmp_path))
    hf.HudiTable.open(tmp_path).services.rollback(done.instant)
    with pytest.raises(FileGoneError, match=done.instant):
        require_files_present(state, set())


def test_files_that_a_clean_deleted_matter_in_the_listed_partitions(tmp_path: Path) -> None:
    hf.write(plain_rows(range(4)), tmp_path, SETTINGS)
    state = load_state(Storage(tmp_path))
    for ts in (2, 3):
        hf.write(plain_rows([0], ts=ts), tmp_path, SETTINGS)
    clean = hf.HudiTable.open(tmp_path).services.clean(options={"hoodie.clean.commits.retained": "1"})
    with pytest.raises(FileGoneError, match=clean.instant):
        require_files_present(state, {"p0"})
    require_files_present(state, {"p1"})


@pytest.mark.parametrize(("header", "expected"), [({HeaderKey.IS_PARTIAL: "TRUE"}, True), ({}, False)])
def test_partial_rows_are_known_by_a_header(header: dict[HeaderKey, str], expected: bool) -> None:
    block = LogBlock("f.log", 0, BlockType.AVRO_DATA, header, 0, 0)
    assert has_partial_rows([LogBlock("f.log", 0, BlockType.DELETE, {}, 0, 0), block]) is expected
