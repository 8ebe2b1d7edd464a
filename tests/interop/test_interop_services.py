"""Hudi's table services run on files and commits of ours; its reports on our timeline say what happened."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_fast.errors import PostCommitError
from tests.interop.sides import Sides, after_delete, after_upsert, data_columns, trip_options, trips
from tests.support.rows import assert_same_rows

pytestmark = pytest.mark.peer

WRITERS = [("hudi_12", 9), pytest.param(("hudi_015", 6), marks=pytest.mark.long)]


@pytest.fixture(params=WRITERS, ids=lambda one: f"{one[0]}-v{one[1]}")
def sides(request: pytest.FixtureRequest, tmp_path: Path) -> Sides:
    peer, version = request.param
    return Sides(request.getfixturevalue(peer), tmp_path / "trips", trip_options(version), plainly=True)


def count_of(sides: Sides, action: str) -> int:
    return int(pc.sum(pc.equal(sides.table.history()["action"], action)).as_py() or 0)


def test_cleaning_and_archiving_leave_our_snapshot_alone(sides: Sides) -> None:
    keep = {
        "hoodie.clean.automatic": True,
        "hoodie.clean.commits.retained": 1,
        "hoodie.cleaner.commits.retained": 1,
        "hoodie.keep.min.commits": 2,
        "hoodie.keep.max.commits": 3,
        "hoodie.commits.archival.batch": 1,
    }
    rows = trips(range(40))
    first = sides.we_write(rows).instant
    for turn in range(1, 5):
        new = trips(range(turn, 30 + 5 * turn), ts=1 + turn, note=f"by us {turn}")
        sides.we_write(new)
        rows = after_upsert(rows, new)
    gone = trips(range(0, 9, 3))
    sides.table.delete(gone)
    rows = after_delete(rows, gone)
    for turn in range(5, 8):
        new = trips(range(turn, 30 + turn), ts=1 + turn, note=f"by Hudi {turn}")
        sides.hudi_writes(new, more=keep)
        rows = after_upsert(rows, new)
    assert first not in sides.table.history()["instant"].to_pylist()  # archived
    assert count_of(sides, "clean") > 0
    assert not list(sides.path.glob(f"city*/*{first}*.parquet"))  # cleaned
    sides.agree(rows)
    new = trips(range(20, 60), ts=20, note="by us")
    sides.we_write(new)
    rows = after_upsert(rows, new)
    sides.agree(rows)
    sides.hudi_writes(new, more=keep)
    sides.agree(rows)


def test_clustering_replaces_our_files_and_we_write_to_its_files(sides: Sides) -> None:
    rows = trips(range(40))
    sides.we_write(rows, "bulk_insert")
    more = trips(range(40, 80))
    sides.we_write(more, "bulk_insert")
    rows = pa.concat_tables([rows, more])
    assert len(sides.table.files()) == 6
    inline = {"hoodie.clustering.inline": True, "hoodie.clustering.inline.max.commits": 1}
    new = trips(range(30, 50), ts=2, note="by Hudi")
    sides.hudi_writes(new, more={**inline, "hoodie.parquet.small.file.limit": 0})
    rows = after_upsert(rows, new)
    assert "CLUSTER" in sides.table.history()["operation"].to_pylist()
    assert len(sides.table.files()) == 3
    sides.agree(rows)
    new = trips(range(35, 90), ts=3, note="by us")
    assert sides.we_write(new).updates == 45
    rows = after_upsert(rows, new)
    sides.agree(rows)
    sides.hudi_writes(new)
    sides.agree(rows)


@contextlib.contextmanager
def hudi_session(sides: Sides, key: str, value: str) -> Iterator[None]:
    """A setting of Hudi's session, for a while."""
    sides.hudi.sql(f"SET {key}={value}")
    try:
        yield
    finally:
        sides.hudi.sql(f"RESET {key}")


@pytest.mark.smoke("hudi_12-v9")
def test_a_restore_to_a_savepoint_takes_our_commits_back(sides: Sides) -> None:
    rows = trips(range(40))
    kept = sides.we_write(rows).instant
    with hudi_session(sides, "hoodie.metadata.enable", "false"):
        # Release 0.15 would build a metadata table, and then not restore it to a time before it was built.
        name = sides.in_catalog()
        sides.hudi.sql(f"CALL create_savepoint(table => '{name}', commit_time => '{kept}')")
        sides.we_write(trips(range(30, 60), ts=2, note="to be taken back"))
        sides.we_write(trips(range(200, 203)), "insert_overwrite")
        sides.hudi.sql(f"CALL rollback_to_savepoint(table => '{name}', instant_time => '{kept}')")
    assert count_of(sides, "savepoint") == count_of(sides, "restore") == 1
    sides.agree(rows)
    new = trips(range(35, 90), ts=3, note="by us")
    sides.we_write(new)
    rows = after_upsert(rows, new)
    sides.agree(rows)
    sides.hudi_writes(new)
    sides.agree(rows)


def test_hudi_reports_what_our_commits_did(sides: Sides) -> None:
    sides.we_write(trips(range(40)), "bulk_insert")
    written = [
        sides.we_write(trips(range(30, 60), ts=2)),
        sides.table.delete(trips(range(5))),
        sides.we_write(trips(range(100, 110), ts=2), "insert_overwrite_table"),
    ]
    name = sides.in_catalog()
    shown = {row["commit_time"]: row for row in sides.hudi.sql(f"CALL show_commits(table => '{name}')").to_pylist()}
    for result in written:
        row = shown[result.instant]
        assert row["total_files_added"] + row["total_files_updated"] == result.files_written
        assert row["total_update_records_written"] == result.updates
        assert row["total_errors"] == 0
        assert row["total_bytes_written"] == result.bytes_written
    history = {row["instant"]: row for row in sides.table.history().to_pylist()}
    theirs = trips(range(105, 120), ts=4)
    sides.hudi_writes(theirs)
    newest = max(sides.table.history().to_pylist(), key=lambda row: row["instant"])
    assert newest["instant"] not in history
    assert (newest["operation"], newest["inserts"], newest["updates"]) == ("UPSERT", 10, 5)
    assert_same_rows(data_columns(sides.table.to_arrow(as_of=written[0].instant)), seen_then(), key=["id"])


def seen_then() -> pa.Table:
    return after_upsert(trips(range(40)), trips(range(30, 60), ts=2))


def test_what_our_pipeline_finishes_or_withdraws_is_gone_for_hudi_too(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clustering that Hudi has planned is executed before our write; one of ours that fails is withdrawn."""
    inline = {"hoodie.clustering.inline": True, "hoodie.clustering.inline.max.commits": 1}
    rows = trips(range(40))
    sides.we_write(rows, "bulk_insert")
    plans = {"hoodie.clustering.schedule.inline": True, "hoodie.clustering.inline.max.commits": 1}
    new = trips(range(30, 50), ts=2, note="by Hudi")
    sides.hudi_writes(new, more={**plans, "hoodie.clustering.async.max.commits": 1})
    rows = after_upsert(rows, new)
    assert sides.table.services.pending()["service"].to_pylist() == ["cluster"]
    new = trips(range(10, 60), ts=3, note="by us")
    sides.we_write(new, more=inline)
    rows = after_upsert(rows, new)
    assert sides.table.history()["operation"].to_pylist().count("CLUSTER") >= 1
    sides.agree(rows)

    def fail(*_: object) -> None:
        raise ValueError("no such curve")

    monkeypatch.setattr("hudi_fast.services.clustering.cluster.rewrite_group", fail)
    new = trips(range(20, 70), ts=4, note="by us")
    with pytest.raises(PostCommitError):
        sides.we_write(new, more=inline)
    rows = after_upsert(rows, new)
    assert sides.table.services.pending().num_rows == 0
    new = trips(range(5, 90), ts=5, note="by Hudi")
    sides.hudi_writes(new, more=inline)
    rows = after_upsert(rows, new)
    sides.agree(rows)
