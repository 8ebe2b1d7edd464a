"""What becomes of a metadata table when a write begins: kept, extended, reduced, built anew or dropped.

Modules: hudi_fast.writing.metadata_commit.
"""

from __future__ import annotations

import shutil
import warnings
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.config.properties_file import load_properties, update_properties
from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.metadata_table import last_states as sessions
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.storage.base import Storage
from tests.support.golden import Golden
from tests.support.metadata_checks import assert_metadata_true
from tests.support.mor_tables import mor_options
from tests.support.small_tables import listing, options, plain_rows, table_rows

RECORD_INDEX = {"hoodie.metadata.record.index.enable": "true"}


def not_trusted(damaged: bool) -> AbstractContextManager[object]:
    """Expects the warning about a metadata table that cannot be read."""
    return pytest.warns(hf.HudiWarning, match="metadata table") if damaged else nullcontext()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    hf.write(plain_rows(range(10)), tmp_path / "t", {**options(), **RECORD_INDEX})
    return tmp_path / "t"


def upsert(path: Path, **more: str) -> None:
    settings = {f"hoodie.metadata.{key}": value for key, value in more.items()}
    hf.write(plain_rows(range(3), ts=5), path, {**options(), **settings})


def test_partitions_that_are_there_are_kept_up_unasked(table: Path) -> None:
    upsert(table)
    assert assert_metadata_true(table) == ("column_stats", "files", "partition_stats", "record_index")


def test_without_a_metadata_table_the_property_goes_and_the_folder(table: Path) -> None:
    upsert(table, enable="false")
    assert not (table / ".hoodie/metadata").exists()
    props = load_properties(Storage(table))
    assert props["hoodie.table.metadata.partitions"] == props["hoodie.table.metadata.partitions.inflight"] == ""
    upsert(table)
    assert assert_metadata_true(table) == ("column_stats", "files", "partition_stats")


@pytest.mark.slow(but="record.index.enable-false-left2")
@pytest.mark.parametrize(
    ("key", "value", "left"),
    [
        ("index.column.stats.enable", "false", ("files", "record_index")),
        ("index.partition.stats.enable", "false", ("column_stats", "files", "record_index")),
        ("record.index.enable", "false", ("column_stats", "files", "partition_stats")),
        ("index.drop", "record_index", ("column_stats", "files", "partition_stats")),
        ("index.drop", "column_stats", ("files", "record_index")),
    ],
)
def test_partitions_that_are_told_to_go_go(key: str, value: str, left: tuple[str, ...], table: Path) -> None:
    upsert(table, **{key: value})
    assert assert_metadata_true(table) == left
    folders = {entry.name for entry in (table / ".hoodie/metadata").iterdir()} - {".hoodie"}
    assert folders == set(left)


def test_a_secondary_index_goes_with_the_record_index(tmp_path: Path) -> None:
    path = tmp_path / "t"
    hf.write(plain_rows(range(6)), path, options())
    upsert(path, **{"index.secondary.column": "text", "record.index.enable": "true"})
    with_index = ("column_stats", "files", "partition_stats", "record_index", "secondary_index_text")
    assert assert_metadata_true(path) == with_index
    upsert(path)
    assert assert_metadata_true(path) == with_index
    upsert(path, **{"index.drop": "record_index"})
    assert assert_metadata_true(path) == ("column_stats", "files", "partition_stats")


def test_a_secondary_index_goes_if_secondary_indexes_are_off(tmp_path: Path) -> None:
    path = tmp_path / "t"
    hf.write(plain_rows(range(6)), path, options())
    upsert(path, **{"index.secondary.column": "text", "record.index.enable": "true"})
    upsert(path, **{"index.expression.enable": "false"})
    assert "secondary_index_text" in assert_metadata_true(path)
    upsert(path, **{"index.secondary.enable": "false"})
    assert assert_metadata_true(path) == ("column_stats", "files", "partition_stats", "record_index")


@pytest.mark.slow("True")
@pytest.mark.parametrize("damaged", [False, True])
def test_an_index_of_an_unknown_kind_is_dropped_only_if_an_option_says_so(damaged: bool, table: Path) -> None:
    storage = Storage(table)
    named = load_properties(storage)["hoodie.table.metadata.partitions"]
    update_properties(storage, {"hoodie.table.metadata.partitions": f"{named},zz_future"})
    shutil.copytree(table / ".hoodie/metadata/record_index", table / ".hoodie/metadata/zz_future")
    if damaged:
        shutil.rmtree(table / ".hoodie/metadata/files")
    before = listing(table)
    for change in (lambda: upsert(table), lambda: hf.HudiTable.open(table).update(None, {"text": "'new'"})):
        with (
            pytest.raises(UnsupportedFeatureError, match=r"hoodie\.metadata\.index\.drop=zz_future"),
            not_trusted(damaged),
        ):
            change()
        assert listing(table) == before
    with not_trusted(damaged):
        upsert(table, **{"index.drop": "zz_future"})
    assert assert_metadata_true(table) == ("column_stats", "files", "partition_stats", "record_index")
    assert not (table / ".hoodie/metadata/zz_future").exists()


@pytest.mark.slow
def test_one_that_missed_a_commit_is_built_anew(table: Path) -> None:
    upsert(table)
    for file in (table / ".hoodie/metadata/.hoodie/timeline").glob("2*"):
        file.unlink()
    with pytest.warns(hf.HudiWarning, match="is not used"):
        upsert(table)
    assert assert_metadata_true(table) == ("column_stats", "files", "partition_stats", "record_index")


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["folder", "properties", "files", "bytes"])
def test_one_that_is_damaged_is_built_anew(damage: str, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table_rows(table)
    inner = table / ".hoodie/metadata"
    if damage == "folder":
        shutil.rmtree(inner)
    elif damage == "properties":
        (inner / ".hoodie/hoodie.properties").write_text("nonsense")
    elif damage == "files":
        shutil.rmtree(inner / "files")
    else:
        for file in (inner / "files").glob("*.hfile"):
            whole = file.read_bytes()
            file.write_bytes(whole[:45] + bytes(64) + whole[109:])
        monkeypatch.setattr(sessions, "_STATES", OrderedDict())  # a process that has read the files need not see it
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        upsert(table)
    assert len([one for one in told if "metadata table" in str(one.message)]) == 1
    assert "files" in assert_metadata_true(table)
    assert set(table_rows(table)) == set(rows)


def test_a_damaged_index_is_built_anew_and_the_others_stay(table: Path) -> None:
    index = table / ".hoodie/metadata/record_index"
    before = {entry.name for entry in index.iterdir()}
    shutil.rmtree(table / ".hoodie/metadata/column_stats")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        upsert(table)
    dropped = [str(one.message).split()[2] for one in told if "is dropped" in str(one.message)]
    assert dropped == ["column_stats", "partition_stats"]
    assert assert_metadata_true(table) == ("column_stats", "files", "partition_stats", "record_index")
    assert before <= {entry.name for entry in index.iterdir()}


@pytest.mark.slow
def test_a_record_index_that_cannot_be_read_is_told_with_the_way_out(table: Path) -> None:
    for file in (table / ".hoodie/metadata/record_index").glob(".*.log.*"):
        file.write_bytes(file.read_bytes().replace(b"DATABLK*", b"damaged!"))
    by_index = {**options(), "hoodie.index.type": "RECORD_INDEX"}
    with pytest.raises(CorruptTableError, match=r"drop_index\('record_index'\).*\.log"):
        hf.write(plain_rows(range(10), ts=5), table, by_index)
    hf.HudiTable.open(table).services.drop_index("record_index")
    assert hf.write(plain_rows(range(10), ts=5), table, by_index).updates == 10
    assert assert_metadata_true(table) == ("column_stats", "files", "partition_stats", "record_index")


@pytest.mark.slow
def test_before_version_8_nothing_is_built_while_a_compaction_waits(tmp_path: Path) -> None:
    settings = {**mor_options(table_version="6"), "hoodie.metadata.enable": "false"}
    hf.write(plain_rows(range(6)), tmp_path / "t", settings)
    hf.write(plain_rows(range(3), ts=2), tmp_path / "t", settings)
    opened = hf.HudiTable.open(tmp_path / "t")
    planned = opened.services.schedule_compact({"hoodie.compact.inline.max.delta.commits": "1"})
    assert planned is not None
    with_metadata = {**settings, "hoodie.metadata.enable": "true"}
    hf.write(plain_rows(range(3), ts=3), tmp_path / "t", with_metadata)
    assert not (tmp_path / "t/.hoodie/metadata").exists()
    opened.services.compact(plan=planned)
    hf.write(plain_rows(range(3), ts=4), tmp_path / "t", with_metadata)
    assert assert_metadata_true(tmp_path / "t") == ("column_stats", "files")


@pytest.mark.slow
def test_from_version_8_on_it_is_built_around_a_waiting_compaction(tmp_path: Path) -> None:
    settings = {**mor_options(), "hoodie.metadata.enable": "false"}
    hf.write(plain_rows(range(6)), tmp_path / "t", settings)
    hf.write(plain_rows(range(3), ts=2), tmp_path / "t", settings)
    opened = hf.HudiTable.open(tmp_path / "t")
    planned = opened.services.schedule_compact({"hoodie.compact.inline.max.delta.commits": "1"})
    assert planned is not None
    hf.write(plain_rows(range(3), ts=3), tmp_path / "t", {**settings, "hoodie.metadata.enable": "true"})
    opened.services.compact({"hoodie.metadata.enable": "true"}, plan=planned)
    assert assert_metadata_true(tmp_path / "t") == ("column_stats", "files", "partition_stats")


@pytest.mark.slow
def test_a_metadata_table_that_cannot_be_compacted_is_a_warning_and_built_anew_by_the_next_write(table: Path) -> None:
    log = next(one for one in (table / ".hoodie/metadata/record_index").glob(".*_2*.log.1_*") if one.suffix != ".crc")
    content = log.read_bytes()
    log.write_bytes(content.replace(b"TRABLK", b"BROKEN"))
    often = {"compact.max.delta.commits": "1"}
    with pytest.warns(hf.HudiWarning, match="could not be compacted"):
        upsert(table, **often)
    assert table_rows(table)["k00000"] == ("p0", 5, "a0")
    with pytest.warns(hf.HudiWarning, match="is built again"):
        upsert(table)
    assert assert_metadata_true(table) == ("column_stats", "files", "partition_stats", "record_index")


@pytest.mark.parametrize("name", ["mor_v9_secondary_index", "mor_v8_secondary_index"])
def test_indexes_of_apache_hudi_stay(name: str, golden: Callable[[str], Golden]) -> None:
    path = golden(name).table
    opened = hf.HudiTable.open(path)
    before = set(opened.config.metadata_partitions)
    opened.write(opened.to_arrow().slice(0, 4), "delete")
    found = metadata_of(open_state(Storage(path)))
    assert found is not None
    assert set(found.partitions) == before
    assert all(found.usable(one) for one in before)
