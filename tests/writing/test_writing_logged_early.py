"""A key that only a log above a base file holds stays one row that writes find.

It was deleted, and written again while a compaction was pending, or another writer has inserted it into the log. Apache
Hudi finds it in no base file and inserts it again: see tests/interop/test_interop_mor_turns.py.

Modules: hudi_fast.view.planned_files, hudi_fast.writing.lookup.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from tests.support.mor_tables import make_key_logged_early, make_key_of_a_log, mor_options
from tests.support.small_tables import plain_rows, table_rows

pytestmark = pytest.mark.slow

OTHER_PARTITION = {
    "hoodie.compaction.strategy": "org.apache.hudi.table.action.compact.strategy.PartitionRegexBasedCompactionStrategy",
    "hoodie.compaction.partition.path.regex": "p1",
}
INDEXES = ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM", "GLOBAL_RECORD_LEVEL_INDEX")


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("index", INDEXES)
def test_an_upsert_finds_it_in_the_log(tmp_path: Path, index: str, version: str) -> None:
    settings = mor_options(table_version=version, index=index)
    make_key_logged_early(tmp_path / "t", settings)
    result = hf.write(plain_rows([4, 8], ts=4, text="later"), tmp_path / "t", settings)
    assert (result.updates, result.inserts) == (1, 1)
    assert hf.HudiTable.open(tmp_path / "t").to_arrow().num_rows == 4
    assert table_rows(tmp_path / "t")["k00004"] == ("p0", 4, "later4")


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_an_upsert_finds_it_when_the_compaction_is_archived(tmp_path: Path, version: str) -> None:
    """Before table version 8 the times of an archived compaction are unknown."""
    path = tmp_path / "t"
    settings = {**mor_options(table_version=version, index="SIMPLE"), "hoodie.metadata.enable": "false"}
    make_key_logged_early(path, settings)
    (compaction,) = load_state(Storage(path)).timeline.of_action("commit")
    for ts in range(10, 16):  # in another partition
        hf.write(plain_rows([1], ts=ts), path, settings)
    services = hf.HudiTable.open(path).services
    services.compact({**settings, "hoodie.compact.inline.max.delta.commits": "1", **OTHER_PARTITION})
    few = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    services.archive({**settings, **few})
    assert load_state(Storage(path)).timeline.find(compaction.requested) is None
    result = hf.write(plain_rows([4, 8], ts=20, text="later"), path, settings)
    assert (result.updates, result.inserts) == (1, 1)
    assert table_rows(path)["k00004"] == ("p0", 20, "later4")


@pytest.mark.parametrize("index", INDEXES)
def test_a_delete_finds_it_in_the_log(tmp_path: Path, index: str) -> None:
    settings = mor_options(index=index)
    make_key_logged_early(tmp_path / "t", settings)
    hf.HudiTable.open(tmp_path / "t").delete(plain_rows([4], ts=5), settings)
    assert sorted(table_rows(tmp_path / "t")) == ["k00002", "k00006"]


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM", "GLOBAL_RECORD_LEVEL_INDEX"])
def test_a_row_that_moves_leaves_the_log(tmp_path: Path, index: str) -> None:
    settings = mor_options(index=index)
    make_key_logged_early(tmp_path / "t", settings)
    rows = plain_rows([4], ts=6)
    hf.write(rows.set_column(rows.column_names.index("part"), "part", [["elsewhere"]]), tmp_path / "t", settings)
    assert hf.HudiTable.open(tmp_path / "t").to_arrow().num_rows == 3
    stays = index == "GLOBAL_RECORD_LEVEL_INDEX"  # by default such an index keeps a row in its partition
    assert table_rows(tmp_path / "t")["k00004"][0] == ("p0" if stays else "elsewhere")


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
def test_a_key_that_another_writer_inserted_into_a_log_is_found(tmp_path: Path, index: str, version: str) -> None:
    settings = mor_options(table_version=version, index=index)
    make_key_of_a_log(tmp_path / "t", settings)
    result = hf.write(plain_rows([4, 8], ts=4, text="later"), tmp_path / "t", settings)
    assert (result.updates, result.inserts) == (1, 1)
    assert hf.HudiTable.open(tmp_path / "t").to_arrow().num_rows == 4
    assert table_rows(tmp_path / "t")["k00004"] == ("p0", 4, "later4")
    hf.HudiTable.open(tmp_path / "t").delete(plain_rows([4], ts=5), settings)
    assert sorted(table_rows(tmp_path / "t")) == ["k00002", "k00006", "k00008"]
