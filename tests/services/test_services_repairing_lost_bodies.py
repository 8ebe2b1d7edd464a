"""Bodies of completed writes that a loss of power has emptied: written again if the files are certain, else advice.

Modules: hudi_fast.services.repairing.instants.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state, read_commit
from tests.peer.client import RealHudi
from tests.support.mor_tables import mor_options
from tests.support.small_tables import assert_tidy, options, plain_rows, rows_of, table_rows

METADATA = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "false"}


def settings_of(version: str, mor: bool, **more: str) -> dict[str, Any]:
    return (mor_options if mor else options)(table_version=version) | METADATA | more


def make(path: Path, version: str = "9", mor: bool = False, **more: str) -> hf.HudiTable:
    """A table of an insert, an upsert that also inserts, and an upsert."""
    settings = settings_of(version, mor, **more)
    hf.write(plain_rows(range(6)), path, settings)
    hf.write(plain_rows([0, 1, 7], ts=2), path, settings)
    hf.write(plain_rows([1, 2], ts=3, text="c"), path, settings)
    return hf.HudiTable.open(path)


def completed(path: Path, version: str) -> list[Path]:
    """The files of completed writes, in their order."""
    folder = path / ".hoodie" / ("" if version == "6" else "timeline")
    return sorted([*folder.glob("*commit")], key=lambda one: one.name)


def figures(path: Path) -> list[tuple[str, list[tuple[str, int, str | None]]]]:
    """What bodies say of files."""
    state = load_state(Storage(path))
    found = []
    for one in state.timeline.writes():
        stats = read_commit(state.storage, state.config, one).write_stats()
        found.append((one.requested, sorted((stat.path, stat.file_size, stat.prev_base_file) for stat in stats)))
    return found


@pytest.mark.smoke("9-False-newest")
@pytest.mark.slow
@pytest.mark.parametrize("at", [0, 1, 2], ids=["first", "second", "newest"])
@pytest.mark.parametrize(("version", "mor"), [("6", False), ("8", False), ("9", False), ("8", True), ("9", True)])
def test_a_lost_body_is_written_again_from_the_metadata_table(version: str, mor: bool, at: int, tmp_path: Path) -> None:
    table, rows = make(tmp_path, version, mor), table_rows(tmp_path)
    before, schema = figures(tmp_path), hf.HudiTable.open(tmp_path).schema
    lost = completed(tmp_path, version)[at]
    time_ns = lost.stat().st_mtime_ns // 1_000_000 * 1_000_000
    lost.write_bytes(b"")
    os.utime(lost, ns=(time_ns, time_ns))
    with pytest.raises(hf.CorruptTableError, match="has no content"):
        table_rows(tmp_path)
    (found,) = table.services.plan_repair().findings
    assert (found.kind, found.instant, found.repairable) == ("lost body", lost.name[:17], True)
    result = table.services.repair()
    assert result.repaired == (found,)
    assert result.left == ()
    assert figures(tmp_path) == before
    assert hf.HudiTable.open(tmp_path).schema == schema
    assert table_rows(tmp_path) == rows
    assert version != "6" or lost.stat().st_mtime_ns == time_ns
    assert table.services.validate().differences.num_rows == 0
    assert table.services.plan_repair().findings == ()
    hf.write(plain_rows([3, 9], ts=9, text="d"), tmp_path, settings_of(version, mor))
    if mor:
        table.services.compact({"hoodie.compact.inline.max.delta.commits": "1"})
    assert table.count() == len(rows) + 1
    assert_tidy(tmp_path)


def test_apache_hudi_reads_and_goes_on_after_bodies_were_written_again(hudi_12: RealHudi, tmp_path: Path) -> None:
    for version, mor in (("6", False), ("9", False), ("9", True)):
        path = tmp_path / f"{version}-{mor}"
        table, rows = make(path, version, mor), table_rows(path)
        for lost in completed(path, version):
            lost.write_bytes(b"")
        assert {one.kind for one in table.services.repair().repaired} == {"lost body"}
        found = hudi_12.read(path, {"hoodie.metadata.enable": "true"})
        assert rows_of(found) == rows
        hudi_12.write(plain_rows([1, 50], ts=60), path, settings_of(version, mor))
        assert table_rows(path).keys() == {*rows, *rows_of(plain_rows([50]))}


def test_a_lost_body_of_a_compaction_is_written_again(tmp_path: Path) -> None:
    table, rows = make(tmp_path, mor=True), table_rows(tmp_path)
    table.services.compact({"hoodie.compact.inline.max.delta.commits": "1"})
    (lost,) = (tmp_path / ".hoodie/timeline").glob("*.commit")
    lost.write_bytes(b"")
    assert [one.kind for one in table.services.repair().repaired] == ["lost body"]
    assert table_rows(tmp_path) == rows
    (commit,) = [one for one in load_state(Storage(tmp_path)).timeline.completed() if one.action == "commit"]
    state = load_state(Storage(tmp_path))
    assert read_commit(state.storage, state.config, commit).compacted


def newest_file(path: Path) -> Path:
    instant = completed(path, "9")[-1].name[:17]
    return next(one for one in path.rglob("*.parquet") if one.name.endswith(f"_{instant}.parquet"))


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:100])


def metadata_log(path: Path) -> Path:
    return max((path / ".hoodie/metadata/files").glob(".files*.log.*"), key=lambda one: one.name)


UNCERTAIN: dict[str, tuple[Callable[[Path], object], str]] = {
    "a file is gone": (lambda path: newest_file(path).unlink(), "missing"),
    "a file is cut": (lambda path: cut(newest_file(path)), "shorter than"),
    "the metadata table has lost its part": (lambda path: metadata_log(path).write_bytes(b""), "metadata table"),
    "there is no metadata table": (
        lambda path: hf.HudiTable.open(path).services.drop_index("files"),
        "no metadata table",
    ),
}


@pytest.mark.slow("a file is gone", "a file is cut")
@pytest.mark.filterwarnings("ignore::hudi_fast.HudiWarning")  # the metadata table is not trusted
@pytest.mark.parametrize("case", UNCERTAIN)
def test_a_write_whose_files_are_not_certain_is_left_to_a_person(case: str, tmp_path: Path) -> None:
    table = make(tmp_path)
    harm, why = UNCERTAIN[case]
    harm(tmp_path)
    lost = completed(tmp_path, "9")[-1]
    lost.write_bytes(b"")
    listed = [one for one in table.services.plan_repair().findings if one.instant == lost.name[:17]]
    found = [one for one in listed if one.kind != "metadata table"]
    assert [(one.kind, one.repairable) for one in found] == [("dangling instant", False)]
    assert why in found[0].advice
    assert "services.rollback()" in found[0].advice
    table.services.repair()
    assert lost.read_bytes() == b""


@pytest.mark.slow(but="insert_overwrite-replaced")
@pytest.mark.parametrize(
    ("operation", "why"),
    [("insert_overwrite", "replaced"), ("delete_partition", "replaced"), ("upsert", "which writes")],
)
def test_a_write_that_replaces_groups_or_logs_to_files_of_others_is_left_to_a_person(
    operation: str, why: str, tmp_path: Path
) -> None:
    old = operation == "upsert"
    table = make(tmp_path, "6" if old else "9", mor=old)
    if operation == "insert_overwrite":
        hf.write(plain_rows([0]), tmp_path, settings_of("9", False) | {"hoodie.datasource.write.operation": operation})
    elif operation == "delete_partition":
        table.delete_partitions(["p1"], settings_of("9", False))
    lost = completed(tmp_path, "6" if old else "9")[-1]
    lost.write_bytes(b"")
    (found,) = [one for one in table.services.plan_repair().findings if one.instant == lost.name[:17]]
    assert (found.kind, found.repairable) == ("dangling instant", False)
    assert why in found.advice


def metadata_files(path: Path) -> list[Path]:
    """Data files of the metadata table that its commits name, and files of its completed writes."""
    folder = path / ".hoodie/metadata"
    data = [*folder.glob("files/*.hfile"), *folder.glob("files/.files*_2*.log.1_0-0-0")]
    return [*data, *sorted(folder.glob(".hoodie/timeline/*_*.deltacommit"))[-2:]]


@pytest.mark.filterwarnings("ignore::hudi_fast.HudiWarning")  # the metadata table is not trusted
@pytest.mark.slow
def test_what_the_metadata_table_has_lost_is_named_and_the_way_back_works(tmp_path: Path) -> None:
    table, rows = make(tmp_path), table_rows(tmp_path)
    kept = {file: file.read_bytes() for file in metadata_files(tmp_path)}
    assert len(kept) > 4
    for lost in kept:
        lost.write_bytes(b"")
        found = [one for one in table.services.plan_repair().findings if one.path == str(lost.relative_to(tmp_path))]
        assert [(one.kind, one.repairable) for one in found] == [("metadata table", False)], lost
        assert ("No query needs it" if lost.suffix == ".deltacommit" else "builds it again") in found[0].advice
        lost.write_bytes(kept[lost])
    assert table.services.plan_repair().findings == ()
    next(iter(kept)).write_bytes(b"")
    hf.write(plain_rows([9], ts=9), tmp_path, settings_of("9", False))
    assert table.services.validate().differences.num_rows == 0
    assert table.services.plan_repair().findings == ()
    assert table_rows(tmp_path).keys() > rows.keys()
