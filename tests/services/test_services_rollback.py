"""Instants that are rolled back by name: what goes, what is refused, what the metadata table says afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from metadata_truth import assert_metadata_true
from mor_tables import VERSIONS, mor_options
from small_tables import assert_tidy, options, plain_rows, table_rows

import hudi_fast as hf
from hudi_fast.services.table_services import TableServices

EVERY_INDEX = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.global.record.level.index.min.filegroup.count": "2",
    "hoodie.metadata.global.record.level.index.max.filegroup.count": "2",
}
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")


def settings_of(kind: str, version: str, **changes: Any) -> dict[str, Any]:
    made = (
        mor_options(table_version=version, **changes) if kind == TYPES[1] else options(table_version=version, **changes)
    )
    return {**made, **EVERY_INDEX}


def services(path: Path) -> TableServices:
    return hf.HudiTable.open(path).services


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", TYPES)
def test_the_newest_commit_is_undone_with_all_that_its_indexes_say(kind: str, version: str, tmp_path: Path) -> None:
    settings = settings_of(kind, version)
    hf.write(plain_rows(range(8)), tmp_path, settings)
    hf.write(plain_rows(range(2, 4), ts=2, text="b"), tmp_path, settings)
    before = table_rows(tmp_path)
    indexes = assert_metadata_true(tmp_path)
    assert "record_index" in indexes
    rows = plain_rows([1, 3, 20, 21], ts=3, text="c")
    newest = hf.write(rows, tmp_path, settings).instant
    planned = services(tmp_path).plan_rollback(newest)
    files = planned.to_arrow()
    result = services(tmp_path).rollback(newest, plan=planned)
    assert result.rolled_back == (newest,)
    assert result.files_deleted + result.log_files_answered == files.num_rows
    assert (result.log_files_answered > 0) == (kind == TYPES[1] and version == "6")
    assert table_rows(tmp_path) == before
    assert_tidy(tmp_path)
    assert assert_metadata_true(tmp_path) == indexes
    result = hf.write(plain_rows([1, 20], ts=4, text="d"), tmp_path, settings)
    assert (result.updates, result.inserts) == (1, 1)
    assert table_rows(tmp_path) == {**before, "k00001": ("p1", 4, "d1"), "k00020": ("p0", 4, "d20")}
    assert assert_metadata_true(tmp_path) == indexes
