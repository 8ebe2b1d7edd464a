"""The metadata table is compacted without the lock: whatever other writers do meanwhile, nothing is lost.

Modules: hudi_fast.writing.metadata_commit.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.errors import HudiWarning
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.heartbeat import Heartbeat, HeartbeatRule, heartbeat_path
from hudi_fast.timeline.instants import Instant
from tests.support.interleaving import assert_sound, settings_for
from tests.support.sessions import CompactingBackend
from tests.support.small_tables import plain_rows, table_rows

WITHOUT_LOCK = "hudi_fast.metadata.compact.without.lock"
OFTEN = {
    "hoodie.metadata.compact.max.delta.commits": "3",
    "hoodie.metadata.index.column.stats.enable": "true",
    WITHOUT_LOCK: "true",
}
NEVER = {**OFTEN, "hoodie.metadata.compact.max.delta.commits": "1000"}
KINDS = ["COW", "MOR"]


class _KilledError(BaseException):
    """The process ends here."""


def _die(_: dict[str, Any]) -> None:
    raise _KilledError


def metadata(path: Path) -> MetadataTable:
    found = metadata_of(open_state(Storage(path)))
    assert found is not None
    return found


def compactions(path: Path) -> list[Instant]:
    return [one for one in metadata(path).timeline.writes() if one.action == "commit"]


def table_before_compaction(path: Path, kind: str, version: str = "9") -> dict[str, Any]:
    """A table whose next write compacts its metadata table; returns the settings of that write."""
    settings = settings_for(kind, version, NEVER)
    for ts in range(3):
        hf.write(plain_rows(range(4), ts=ts), path, settings)
    assert not compactions(path)
    return settings_for(kind, version, OFTEN)


def write_while_compacting(path: Path, kind: str, then: Callable[[dict[str, Any]], object]) -> None:
    """The write that compacts; ``then`` runs once the new base files are written."""
    settings = table_before_compaction(path, kind)
    backend = CompactingBackend(lambda: then(settings))
    backend.write(path, plain_rows([0, 9], ts=5), settings)
    assert backend.held == [False]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_others_write_while_the_metadata_table_is_compacted(tmp_path: Path, kind: str) -> None:
    seen: list[int] = []

    def others(settings: dict[str, Any]) -> None:
        hf.write(plain_rows([1, 20], ts=6), tmp_path, settings)
        assert "k00020" in table_rows(tmp_path)
        seen.append(len(metadata(tmp_path).timeline.pending_compactions))

    write_while_compacting(tmp_path, kind, others)
    assert seen == [1]  # they left it to its writer
    assert len(compactions(tmp_path)) == 1
    assert not metadata(tmp_path).timeline.pending()
    assert not Storage(tmp_path).exists(heartbeat_path(compactions(tmp_path)[0].requested))
    assert_sound(tmp_path, table_rows(tmp_path))
    assert {"k00001", "k00009", "k00020"} <= set(table_rows(tmp_path))
    hf.write(plain_rows([2], ts=9), tmp_path, settings_for(kind, "9", OFTEN))
    assert_sound(tmp_path, table_rows(tmp_path))


@pytest.mark.slow(but="version 6")
@pytest.mark.parametrize("case", ["by default", "single writer", "version 6"])
def test_otherwise_it_is_compacted_within_the_commit(tmp_path: Path, case: str) -> None:
    settings = {**table_before_compaction(tmp_path, "COW", "6" if case == "version 6" else "9")}
    if case == "by default":
        del settings[WITHOUT_LOCK]
    if case == "single writer":
        del settings["hoodie.write.concurrency.mode"]
    backend = CompactingBackend(lambda: None)
    backend.write(tmp_path, plain_rows([0]), settings)
    assert backend.held == [True]
    assert len(compactions(tmp_path)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_compaction_is_executed_by_the_next_writer_once_its_heartbeat_ends(tmp_path: Path, kind: str) -> None:
    with pytest.raises(_KilledError):
        write_while_compacting(tmp_path, kind, _die)
    (left,) = metadata(tmp_path).timeline.pending_compactions
    assert "k00009" in table_rows(tmp_path)  # the write itself is complete
    settings = settings_for(kind, "9", OFTEN)
    alive = Heartbeat(Storage(tmp_path), left.requested, HeartbeatRule(shared=True))
    alive.start()
    hf.write(plain_rows([1], ts=7), tmp_path, settings)
    assert metadata(tmp_path).timeline.pending_compactions == (left,)
    alive.stop()
    hf.write(plain_rows([2], ts=8), tmp_path, settings)
    assert [one.requested for one in compactions(tmp_path)] == [left.requested]
    assert_sound(tmp_path, table_rows(tmp_path))


@pytest.mark.slow
def test_a_compaction_that_another_process_completed_first_counts_once(tmp_path: Path) -> None:
    def others(settings: dict[str, Any]) -> None:
        (pending,) = metadata(tmp_path).timeline.pending_compactions
        Storage(tmp_path).delete_file(heartbeat_path(pending.requested))
        hf.write(plain_rows([1], ts=6), tmp_path, settings)
        assert [one.requested for one in compactions(tmp_path)] == [pending.requested]

    write_while_compacting(tmp_path, "MOR", others)
    assert len(compactions(tmp_path)) == 1
    assert_sound(tmp_path, table_rows(tmp_path))


@pytest.mark.slow
def test_a_partition_that_was_dropped_and_built_again_keeps_its_own_files(tmp_path: Path) -> None:
    def others(settings: dict[str, Any]) -> None:
        stats = "hoodie.metadata.index.column.stats.enable"
        hf.write(plain_rows([1], ts=6), tmp_path, {**settings, stats: "false"})
        assert metadata(tmp_path).partitions == ("files",)
        hf.write(plain_rows([2], ts=7), tmp_path, {**settings, stats: "true"})

    write_while_compacting(tmp_path, "MOR", others)
    assert not compactions(tmp_path)
    assert len(metadata(tmp_path).timeline.pending_compactions) == 1
    assert_sound(tmp_path, table_rows(tmp_path))
    hf.write(plain_rows([3], ts=8), tmp_path, settings_for("MOR", "9", OFTEN))
    assert len(compactions(tmp_path)) == 1
    assert_sound(tmp_path, table_rows(tmp_path))


@pytest.mark.slow
def test_files_of_a_compaction_do_not_get_into_a_metadata_table_that_was_built_anew(tmp_path: Path) -> None:
    old: list[str] = []

    def others(settings: dict[str, Any]) -> None:
        old.extend(one.requested for one in metadata(tmp_path).timeline.pending_compactions)
        hf.write(plain_rows([1], ts=6), tmp_path, {**settings, "hoodie.metadata.enable": "false"})
        hf.write(plain_rows([2], ts=7), tmp_path, settings)

    write_while_compacting(tmp_path, "COW", others)
    assert not metadata(tmp_path).timeline.pending()
    assert not list((tmp_path / ".hoodie/metadata").rglob(f"*{old[0]}*"))
    assert_sound(tmp_path, table_rows(tmp_path))


@pytest.mark.slow
def test_a_failed_compaction_is_a_warning_and_is_executed_later(tmp_path: Path) -> None:
    def fail(_: dict[str, Any]) -> None:
        raise RuntimeError("the cluster has gone away")

    with pytest.warns(HudiWarning, match="could not be compacted or cleaned: the cluster has gone away"):
        write_while_compacting(tmp_path, "COW", fail)
    assert "k00009" in table_rows(tmp_path)
    hf.write(plain_rows([1], ts=7), tmp_path, settings_for("COW", "9", OFTEN))
    assert len(compactions(tmp_path)) == 1
    assert_sound(tmp_path, table_rows(tmp_path))


@pytest.mark.slow
def test_an_upgrade_finishes_a_pending_compaction_first(tmp_path: Path) -> None:
    with pytest.raises(_KilledError):
        write_while_compacting(tmp_path / "t", "MOR", _die)
    shutil.copytree(tmp_path / "t", tmp_path / "copy")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hf.HudiTable.open(tmp_path / "copy").services.upgrade(8)
    assert not metadata(tmp_path / "copy").timeline.pending()
    assert_sound(tmp_path / "copy", table_rows(tmp_path / "t"))
