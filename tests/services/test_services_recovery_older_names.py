"""Undoing on a table that was downgraded: log files of before have names that version 6 does not understand."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_fast as hf
from tests.support.mor_tables import mor_options
from tests.support.small_tables import assert_tidy, listing, plain_rows, rows_of, table_rows

AUTO = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


def make(path: Path) -> hf.HudiTable:
    settings = mor_options(AUTO)
    hf.write(plain_rows(range(6)), path, settings)
    hf.write(plain_rows(range(2, 4), ts=2, text="b"), path, settings)
    return hf.HudiTable.open(path)


@pytest.mark.slow
def test_the_compaction_of_a_downgrade_is_not_rolled_back_and_writes_after_it_are(tmp_path: Path) -> None:
    table = make(tmp_path)
    rows = table_rows(tmp_path)
    table.services.upgrade(6)
    compaction = table.history().to_pylist()[-1]["instant"]
    hf.write(plain_rows([0], ts=9, text="z"), tmp_path, mor_options(AUTO, table_version="6"))
    table.services.rollback(table.history().to_pylist()[-1]["instant"])
    assert table_rows(tmp_path) == rows
    files = listing(tmp_path)
    with pytest.raises(hf.ConfigError, match="downgraded to version 6"):
        table.services.rollback(compaction)
    assert listing(tmp_path) == files
    assert table_rows(tmp_path) == rows


def test_a_clustering_of_before_a_downgrade_stays(tmp_path: Path) -> None:
    table = make(tmp_path)
    clustering = table.services.cluster({**AUTO, "hoodie.clustering.plan.strategy.sort.columns": "text"}).instant
    rows = table_rows(tmp_path)
    table.services.upgrade(6)
    with pytest.raises(hf.ConfigError, match="downgraded to version 6"):
        table.services.rollback(clustering)
    assert table_rows(tmp_path) == rows


@pytest.mark.slow
def test_a_savepoint_of_before_a_downgrade_is_restored_once_the_table_is_upgraded_again(tmp_path: Path) -> None:
    table = make(tmp_path)
    rows = table_rows(tmp_path)
    saved = table.services.savepoint().instant
    table.services.upgrade(6)
    hf.write(plain_rows([0], ts=9, text="z"), tmp_path, mor_options(AUTO, table_version="6"))
    with pytest.raises(hf.ConfigError, match="downgraded to version 6"):
        table.services.restore(saved)
    assert table_rows(tmp_path) == {**rows, **rows_of(plain_rows([0], ts=9, text="z"))}
    table.services.upgrade(9)
    table.services.restore(saved)
    assert table_rows(tmp_path) == rows
    table.services.delete_savepoint(saved)
    hf.write(plain_rows([0], ts=9, text="z"), tmp_path, mor_options(AUTO))
    assert_tidy(tmp_path)


@pytest.mark.slow
def test_times_of_before_a_downgrade_are_read_where_log_files_are_needed(tmp_path: Path) -> None:
    table = make(tmp_path)
    first, second = (row["instant"] for row in table.history().to_pylist())
    earlier = rows_of(table.to_arrow(as_of=first))
    rows = table_rows(tmp_path)
    table.services.upgrade(6)
    compaction = table.history().to_pylist()[-1]["instant"]
    assert rows_of(table.to_arrow(as_of=first)) == earlier
    assert rows_of(table.to_arrow(as_of=compaction)) == rows
    assert rows_of(table.to_arrow(as_of=second)) == rows
    table.services.upgrade(9)
    assert rows_of(table.to_arrow(as_of=second)) == rows
