"""Real Hudi answers change queries over commits of hudi_fast as over its own: what a replay of the writes says."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from tests.interop.mor_sides import MorSides
from tests.support.change_logs import Replay, change_logs
from tests.support.instrumented_storage import FaultyStorage, InjectedFaultError, RecordingStorage
from tests.support.small_tables import plain_rows, write_to

OPTIONS = {
    "hoodie.table.name": "feed",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.compact.inline": "false",
    "hoodie.table.cdc.enabled": "true",
}
CDC = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.query.incremental.format": "cdc"}
LOGS_ALONE = {"hoodie.parquet.small.file.limit": "0"}
COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
MODES = ("DATA_BEFORE_AFTER", "DATA_BEFORE", "OP_KEY_ONLY")
# Release 1.2 takes the commits of version 6 for Avro when a change query meets a log file, and fails.
SIDES = [("hudi_12", 9, COW), ("hudi_12", 9, MOR), ("hudi_12", 8, COW), ("hudi_12", 6, COW), ("hudi_015", 6, MOR)]
BY_DEFAULT = {
    ("hudi_12", 9, COW, "DATA_BEFORE_AFTER"),
    ("hudi_015", 6, MOR, MODES[0]),
}
CASES = [
    pytest.param(*one, marks=() if one in BY_DEFAULT else pytest.mark.long)
    for one in [(*side, mode) for side in SIDES for mode in MODES]
]


@dataclass
class Feed:
    """A table with change data capture, and what every commit of it changed.

    Attributes:
        sides: those who write to it.
        replay: its rows.
        truth: requested time of a commit to its changes, as :func:`texts` shows them.
    """

    sides: MorSides
    replay: Replay = field(default_factory=Replay)
    truth: dict[str, list[str]] = field(default_factory=dict)

    def write(self, who: str, rows: pa.Table, operation: str = "upsert") -> None:
        """One side writes; the changes are noted with the instant that came with it."""
        before = set(self.instants()) if (self.sides.path / ".hoodie").exists() else set()
        (self.sides.we_write if who == "we" else self.sides.hudi_writes)(rows, operation)
        (instant,) = set(self.instants()) - before
        changes = self.replay.delete(rows["id"].to_pylist()) if operation == "delete" else self.replay.upsert(rows)
        self.truth[instant] = texts(changes)

    def instants(self) -> list[str]:
        return [one.requested for one in load_state(Storage(str(self.sides.path))).timeline.writes()]

    def agree(self, after: int = 0) -> None:
        """Both sides answer what the replay says, for all commits after the number ``after``; and the rows agree."""
        begin, *later = sorted(self.truth)[after:]
        answers = (
            self.sides.hudi.read(self.sides.path, {**CDC, "hoodie.datasource.read.begin.instanttime": begin}),
            self.sides.table.cdc(begin),
        )
        for answer in answers:
            found: dict[str, list[tuple[str, Any, Any]]] = {instant: [] for instant in later}
            for row in answer.to_pylist():
                found[row["ts_ms"]].append((row["op"], image(row["before"]), image(row["after"])))
            assert {instant: texts(changes) for instant, changes in found.items()} == {
                instant: self.truth[instant] for instant in later
            }
        rows = self.sides.table.to_arrow().select(["id", "part", "ts", "text"]).to_pylist()
        assert {row["id"]: row for row in rows} == self.replay.rows


def image(text: str | None) -> dict[str, Any] | None:
    """The row of an image, without meta columns, which some images have."""
    row = json.loads(text or "null")
    return row and {name: row[name] for name in row if not name.startswith("_hoodie_")}


def texts(changes: list[tuple[str, Any, Any]]) -> list[str]:
    return sorted(json.dumps(change, sort_keys=True) for change in changes)


@pytest.fixture
def feed(request: pytest.FixtureRequest, peer: str, version: int, kind: str, mode: str, tmp_path: Path) -> Feed:
    options: Mapping[str, Any] = {
        **OPTIONS,
        "hoodie.write.table.version": version,
        "hoodie.datasource.write.table.type": kind,
        "hoodie.table.cdc.supplemental.logging.mode": mode,
    }
    return Feed(MorSides(request.getfixturevalue(peer), tmp_path / "feed", options, plainly=True))


@pytest.mark.parametrize(("peer", "version", "kind", "mode"), CASES)
@pytest.mark.parametrize("first", ["we", pytest.param("hudi", marks=pytest.mark.long)])
def test_change_queries_over_commits_of_both(feed: Feed, first: str) -> None:
    who = itertools.cycle(["we", "hudi"] if first == "we" else ["hudi", "we"])
    feed.write(next(who), plain_rows(range(20)), "insert")
    feed.write(next(who), plain_rows(range(10, 26), ts=3, text="b"))
    feed.write(next(who), plain_rows(range(5, 12), ts=2, text="late"))
    feed.write(next(who), plain_rows(range(3, 30, 3), ts=5, text="c"))
    feed.write(next(who), plain_rows(range(4), ts=9), "delete")
    feed.write(next(who), plain_rows(range(20, 34), ts=6, text="d"))
    feed.agree()


@pytest.mark.parametrize(("peer", "version", "kind", "mode"), [("hudi_12", 9, MOR, "DATA_BEFORE_AFTER")])
def test_change_queries_after_services_of_both(feed: Feed) -> None:
    sides = feed.sides
    feed.write("we", plain_rows(range(12)), "insert")
    sides.options = {**sides.options, **LOGS_ALONE}
    feed.write("we", plain_rows(range(6), ts=2, text="b"))
    assert sides.we_compact().file_groups == 2
    feed.write("hudi", plain_rows(range(3, 9), ts=3, text="c"))
    sides.hudi_compacts()
    assert len(change_logs(sides.path)) == 4
    feed.agree()
    feed.write("we", plain_rows(range(4, 6), ts=4, text="d"))
    lost = sides.we_write(plain_rows(range(12), ts=5, text="e")).instant
    sides.table.services.rollback(lost)
    assert not [log for log in change_logs(sides.path) if lost in log.name]
    sides.table.services.clean({"hoodie.clean.commits.retained": 2, "hoodie.metadata.enable": False})
    feed.agree(after=3)
    sides.table.services.cluster({"hoodie.metadata.enable": False})
    feed.write("hudi", plain_rows(range(10, 14), ts=6, text="f"))
    feed.write("we", plain_rows(range(13, 15), ts=7, text="g"))
    feed.agree(after=3)


@pytest.mark.smoke("hudi_12-9-COPY_ON_WRITE-DATA_BEFORE_AFTER")
@pytest.mark.parametrize(("peer", "version", "kind", "mode"), [("hudi_12", 9, COW, "DATA_BEFORE_AFTER")])
def test_hudi_takes_change_logs_of_a_dead_write_of_ours_away_and_cleans_old_ones(feed: Feed, tmp_path: Path) -> None:
    sides = feed.sides
    for ts in range(1, 4):
        feed.write("we", plain_rows(range(4), ts=ts))
    settings = {**sides.options, "hoodie.metadata.enable": "false"}
    shutil.copytree(sides.path, tmp_path / "copy")
    recorder = RecordingStorage(tmp_path / "copy")
    write_to(recorder, plain_rows(range(4), ts=5), settings)
    last = max(call.number for call in recorder.calls if call.path.endswith(".commit"))
    with pytest.raises((hf.HudiError, InjectedFaultError)):
        write_to(FaultyStorage(sides.path, at=last, kind="before", die=True), plain_rows(range(4), ts=5), settings)
    (dead,) = [one.requested for one in load_state(Storage(str(sides.path))).timeline.pending_writes]
    assert len([log for log in change_logs(sides.path) if dead in log.name]) == 2
    sides.options = {**sides.options, "hoodie.clean.commits.retained": 1}
    feed.write("hudi", plain_rows(range(4), ts=8))
    instants = {log.name.split("_")[1].partition(".")[0] for log in change_logs(sides.path)}
    assert dead not in instants
    assert min(feed.truth) < min(instants)  # the oldest are gone with their base files
    feed.agree(after=2)
