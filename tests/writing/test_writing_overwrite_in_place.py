"""Save mode overwrite where the folder cannot be exchanged: one commit brings new rows, columns and configuration."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.transition import ANNOUNCED_KEY
from hudi_fast.view.table_state import load_state
from hudi_fast.writing import flow
from hudi_fast.writing.open_table import changed_properties
from tests.faults import calls
from tests.faults.calls import attempt, faults
from tests.support.instrumented_storage import FaultyStorage, RecordingStorage
from tests.support.sessions import session_of
from tests.support.small_tables import assert_tidy, options, plain_rows, rows_of, table_rows, write_to

pytestmark = pytest.mark.usefixtures("in_place")

OLD = plain_rows(range(10))
NEW = plain_rows(range(5, 8), ts=3, text="new")


@pytest.fixture
def in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Local folders as those that cannot be exchanged."""
    monkeypatch.setattr(flow, "stage", lambda storage, deletes_others: None)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    hf.write(OLD, tmp_path / "t", options())
    return tmp_path / "t"


def overwrite(rows: pa.Table, path: Path, settings: dict[str, Any]) -> hf.HudiTable:
    hf.write(rows, path, settings, mode="overwrite")
    assert_tidy(path)
    found = hf.HudiTable.open(path)
    assert found.services.validate().differences.num_rows == 0
    return found


def properties(path: Path) -> dict[str, str]:
    return dict(load_state(Storage(path)).config.raw)


def test_one_commit_replaces_the_rows_and_the_history_stays(table: Path) -> None:
    before = properties(table)
    found = overwrite(NEW, table, options())
    assert rows_of(found.to_arrow()) == rows_of(NEW)
    history = found.history()
    assert history["action"].to_pylist() == ["commit", "replacecommit"]
    assert rows_of(found.to_arrow(as_of=history["instant"][0].as_py())) == rows_of(OLD)
    assert properties(table) == before


@pytest.mark.slow("bulk_insert")
@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "upsert"])
def test_rows_are_written_as_the_operation_writes_them_to_a_new_table(table: Path, operation: str) -> None:
    twice = pa.concat_tables([NEW, plain_rows([5], ts=9, text="newest")])
    hf.write(twice, table, options(operation=operation), mode="overwrite")
    keys = hf.HudiTable.open(table).to_arrow(["id", "text"]).sort_by("text").to_pylist()
    both = [row["text"] for row in keys if row["id"] == "k00005"]
    assert both == (["newest5"] if operation == "upsert" else ["new5", "newest5"])


@pytest.mark.slow
def test_columns_and_configuration_become_those_of_the_options(table: Path) -> None:
    rows = pa.table({"key": [1, 2], "part": ["d1", "d2"], "text": [1.5, 2.5]})
    settings = {**options(key="key", ordering=None), "hoodie.table.name": "another"}
    settings |= {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.index.type": "RECORD_INDEX",
    }
    found = overwrite(rows, table, settings)
    assert found.to_arrow(["key", "part", "text"]).sort_by("key").equals(rows)
    assert (found.config.name, found.table_type) == ("another", "MERGE_ON_READ")
    assert "record_index" in properties(table)["hoodie.table.metadata.partitions"]
    assert "hoodie.table.ordering.fields" not in properties(table)
    found.upsert(rows.slice(1), settings)
    assert found.to_arrow().num_rows == 2
    with pytest.raises(hf.ConfigError, match="RecordKey"):
        found.upsert(plain_rows([1]), options())


@pytest.mark.slow
def test_an_index_that_the_options_do_not_name_is_not_kept(table: Path) -> None:
    indexed = {**options(), "hoodie.metadata.record.index.enable": "true"}
    hf.write(OLD, table, indexed)
    assert "record_index" in properties(table)["hoodie.table.metadata.partitions"]
    overwrite(NEW, table, indexed)
    assert "record_index" in properties(table)["hoodie.table.metadata.partitions"]
    overwrite(NEW, table, options())
    assert "record_index" not in properties(table)["hoodie.table.metadata.partitions"]


def test_no_rows_replace_all_rows(table: Path) -> None:
    assert overwrite(OLD.slice(0, 0), table, options()).to_arrow().num_rows == 0


@pytest.mark.slow
def test_columns_of_a_table_with_a_schema_history_are_replaced(table: Path) -> None:
    found = hf.HudiTable.open(table)
    found.alter(hf.RenameColumn("text", "words"))
    instant = found.history()["instant"].to_pylist()[-1]
    rows = NEW.drop_columns(["text"]).append_column("words", pa.array([1, 2, 3], pa.int32()))
    assert overwrite(rows, table, options()).to_arrow(["words"]).sort_by("words")["words"].to_pylist() == [1, 2, 3]
    assert found.to_arrow(["words"], as_of=instant).sort_by("words")["words"][0].as_py() == "a0"
    again = rows.set_column(3, "words", pa.array([4, 5, 6], pa.int32()))
    assert found.upsert(again, options()).updates == 3
    assert overwrite(rows, table, options()).to_arrow(["words"]).sort_by("words")["words"].to_pylist() == [1, 2, 3]


@pytest.mark.slow
def test_a_pending_clustering_is_rolled_back(table: Path) -> None:
    hf.HudiTable.open(table).services.schedule_cluster()
    assert load_state(Storage(table)).pending_services
    assert rows_of(overwrite(NEW, table, options()).to_arrow()) == rows_of(NEW)


def test_bad_rows_and_options_leave_the_table_as_it_is(table: Path) -> None:
    before = properties(table)
    with pytest.raises(hf.InvalidDataError, match="'ts'"):
        hf.write(NEW.drop_columns(["ts"]), table, options(), mode="overwrite")
    with pytest.raises(hf.UnsupportedFeatureError, match="version is 9 in the table and 6 in the options"):
        hf.write(NEW, table, options(table_version="6"), mode="overwrite")
    with pytest.raises(hf.UnsupportedFeatureError, match="timezone is LOCAL in the table and UTC"):
        hf.write(NEW, table, {**options(), "hoodie.table.timeline.timezone": "UTC"}, mode="overwrite")
    with pytest.raises(hf.UnsupportedFeatureError, match=r"partition\.fields is 'part' in the table and 'text' in the"):
        hf.write(NEW, table, options(partition="text"), mode="overwrite")
    with pytest.raises(hf.UnsupportedFeatureError, match="partition column part is string in the table and int64"):
        hf.write(NEW.set_column(1, "part", pa.array([1, 2, 3])), table, options(), mode="overwrite")
    assert (properties(table), rows_of(OLD)) == (before, table_rows(table))
    assert_tidy(table)


def test_a_table_of_an_earlier_version_keeps_it(tmp_path: Path) -> None:
    hf.write(OLD, tmp_path, options(table_version="6"))
    found = overwrite(NEW, tmp_path, options(key="id", ordering=None))
    assert (found.version, rows_of(found.to_arrow())) == (6, rows_of(NEW))


@pytest.mark.slow
def test_a_compaction_is_finished_before_the_table_type_changes(tmp_path: Path) -> None:
    mor = {**options(), "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    hf.write(OLD, tmp_path, mor)
    hf.write(NEW, tmp_path, mor)
    found = hf.HudiTable.open(tmp_path)
    found.services.schedule_compact({"hoodie.compact.inline.max.delta.commits": "1"})
    with pytest.raises(hf.ConfigError, match="is pending"):
        hf.write(NEW, tmp_path, options(), mode="overwrite")
    found.services.run_pending()
    assert overwrite(NEW, tmp_path, options()).table_type == "COPY_ON_WRITE"


@pytest.mark.slow
def test_a_table_whose_properties_are_damaged_is_written_anew(table: Path) -> None:
    (table / ".hoodie" / "hoodie.properties").write_bytes(b"nothing")
    assert rows_of(overwrite(NEW, table, options()).to_arrow()) == rows_of(NEW)


@pytest.mark.slow
def test_any_failing_call_leaves_the_old_table_or_the_new_one(tmp_path: Path) -> None:
    hf.write(OLD, tmp_path / "base", options())
    old, settings = table_rows(tmp_path / "base"), options(ordering=None)
    shutil.copytree(tmp_path / "base", tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole")
    write_to(recorder, NEW, settings, "overwrite")
    new = rows_of(NEW)
    changes = [call for call in recorder.calls if call.changes][:: 1 if calls.EVERY_WAY else 3]
    for call, kind, die in faults(changes, survive=False):
        path = tmp_path / "try"
        shutil.copytree(tmp_path / "base", path)
        error = attempt(FaultyStorage(path, at=call.number, kind=kind, die=die), NEW, settings, "overwrite")
        where = f"{call} {kind} die={die}: {error!r}"
        seen = table_rows(path)
        assert seen in ((new,) if error is None else (old, new)), where
        late = plain_rows([5, 40], ts=0, text="late")
        hf.write(late, path, options(ordering=None) if seen == new else options())  # the options that fit the rows
        expected = {**seen, **rows_of(late)} if seen == new else {**rows_of(late), **seen}
        assert table_rows(path) == expected, where
        assert_tidy(path)
        assert ANNOUNCED_KEY not in properties(path), where
        shutil.rmtree(path)


def test_the_same_options_change_nothing(table: Path) -> None:
    state = load_state(Storage(table))
    assert changed_properties(state, session_of(table, options()).settings.write) == {}
