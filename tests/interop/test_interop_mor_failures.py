"""A delta commit that died on either side: its log files count for nobody, and each clears up behind the other."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_fast.errors import HudiError
from tests.interop.mor_sides import MorSides, mor_options
from tests.interop.sides import after_upsert, data_columns, trips
from tests.support.instrumented_storage import FaultyStorage, StorageCall
from tests.support.rows import assert_same_rows
from tests.support.small_tables import write_to

DIES = """
import os, signal
import pyarrow.parquet as pq
import hudi_fast as hf
{which}
module.publish = lambda *args, **named: os.kill(os.getpid(), signal.SIGKILL)
{call}
"""


@pytest.fixture
def sides(peer: str, version: int, request: pytest.FixtureRequest, tmp_path: Path) -> MorSides:
    return MorSides(request.getfixturevalue(peer), tmp_path / "trips", mor_options(version), plainly=True)


def die_writing(sides: MorSides, rows: pa.Table) -> str:
    """Kill an upsert of ours when all its files are there and its instant is not; that instant."""
    source = sides.path.parent / "rows.parquet"
    pq.write_table(rows, source)
    call = f"hf.write(pq.read_table({str(source)!r}), {str(sides.path)!r}, {dict(sides.options)!r})"
    return die(sides, "from hudi_fast.writing import flow as module", call)


def die_compacting(sides: MorSides) -> str:
    """The same with a compaction of ours."""
    call = f"hf.HudiTable.open({str(sides.path)!r}).services.compact()"
    return die(sides, "from hudi_fast.services import running as module", call)


def die(sides: MorSides, which: str, call: str) -> str:
    done = subprocess.run([sys.executable, "-c", DIES.format(which=which, call=call)], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return pending(sides)


def make_inflight(sides: MorSides, action: str = "deltacommit") -> str:
    """Take the newest completed instant's last file away, as if its writer had died just before."""
    history = sides.table.history().filter(pc.field("action") == action)
    newest = str(pc.max(history["instant"]).as_py())
    files = [path for path in (sides.path / ".hoodie").rglob(f"{newest}*") if "metadata" not in path.parts]
    (completed,) = [path for path in files if path.suffix == f".{action}"]
    completed.unlink()
    return newest


def pending(sides: MorSides) -> str:
    (instant,) = pending_instants(sides)
    return instant


def pending_instants(sides: MorSides) -> list[str]:
    return list(sides.table.history().filter(pc.field("state") != "COMPLETED")["instant"].to_pylist())


def assert_cleared(sides: MorSides, dead: str) -> None:
    """The instant is gone and a completed rollback tells of it; from version 8 on its log files are gone, too."""
    history = sides.table.history()
    assert dead not in history["instant"].to_pylist()
    assert set(history["state"].to_pylist()) == {"COMPLETED"}
    assert "rollback" in history["action"].to_pylist()
    if sides.table.version >= 8:
        assert sides.log_files(dead) == []


@pytest.mark.parametrize(("peer", "version"), [("hudi_12", 9), ("hudi_015", 6)])
def test_hudi_rolls_a_dead_delta_commit_of_ours_back(sides: MorSides) -> None:
    rows = trips(range(40))
    sides.we_write(rows, "bulk_insert")
    new = trips(range(10, 30), ts=2)
    sides.we_write(new)
    rows = after_upsert(rows, new)
    logs = len(sides.log_files())
    dead = die_writing(sides, trips(range(20, 60), ts=5, note="dead"))
    assert len(sides.log_files()) > logs
    sides.agree(rows)
    new = trips(range(30, 50), ts=2, note="by Hudi")
    sides.hudi_writes(new)
    rows = after_upsert(rows, new)
    assert_same_rows(data_columns(sides.table.to_arrow()), rows, key=["id"])
    if not sides.hudi.version.startswith("0."):  # stops at a rollback that began after the newest write, its own too
        sides.agree(rows)
    assert_cleared(sides, dead)
    new = trips(range(35, 55), ts=3, note="by us")
    sides.we_write(new)
    sides.agree(after_upsert(rows, new))


@pytest.mark.long
@pytest.mark.parametrize(("peer", "version"), [("hudi_12", 9), ("hudi_12", 6)])
def test_hudi_understands_our_rollback_of_a_dead_delta_commit_of_ours(sides: MorSides) -> None:
    rows = trips(range(40))
    sides.hudi_writes(rows, "bulk_insert")
    new = trips(range(10, 30), ts=2)
    sides.hudi_writes(new)
    rows = after_upsert(rows, new)
    dead = die_writing(sides, trips(range(20, 60), ts=5, note="dead"))
    new = trips(range(35, 55), ts=3, note="by us")
    sides.we_write(new)
    rows = after_upsert(rows, new)
    sides.agree(rows)
    assert_cleared(sides, dead)
    new = trips(range(38, 58), ts=4, note="by Hudi")
    sides.hudi_writes(new)
    rows = after_upsert(rows, new)
    sides.agree(rows)
    sides.hudi_compacts()
    sides.agree(rows)


def begins_a_log_file(call: StorageCall) -> bool:
    return call.name == "open_output" and ".log." in call.path


@pytest.mark.parametrize(("peer", "version"), [("hudi_015", 6)])
def test_an_empty_log_file_of_ours_does_not_disturb_hudi(sides: MorSides) -> None:
    sides.plainly = False
    rows = trips(range(40))
    sides.we_write(rows, "bulk_insert")
    dying = FaultyStorage(sides.path, at=0, kind="after", die=True, among=begins_a_log_file)
    with pytest.raises(HudiError):
        write_to(dying, trips(range(20, 60), ts=5, note="dead"), dict(sides.options))
    assert any(path.stat().st_size == 0 for path in sides.log_files())
    new = trips(range(30, 50), ts=2, note="by us")
    sides.we_write(new)
    rows = after_upsert(rows, new)
    sides.agree(rows)
    new = trips(range(35, 55), ts=3, note="by Hudi")
    sides.hudi_writes(new)
    sides.agree(after_upsert(rows, new))


@pytest.mark.parametrize(("peer", "version"), [pytest.param("hudi_12", 9, marks=pytest.mark.long), ("hudi_015", 6)])
def test_we_roll_a_dead_delta_commit_of_hudi_back(sides: MorSides) -> None:
    rows = trips(range(40))
    sides.we_write(rows, "bulk_insert")
    new = trips(range(10, 30), ts=2)
    sides.we_write(new)
    rows = after_upsert(rows, new)
    sides.hudi_writes(trips(range(20, 60), ts=5, note="dead"))
    dead = make_inflight(sides)
    sides.agree(rows)
    new = trips(range(30, 50), ts=2, note="by us")
    sides.we_write(new)
    rows = after_upsert(rows, new)
    sides.agree(rows)
    assert_cleared(sides, dead)
    new = trips(range(38, 58), ts=4, note="by Hudi")
    sides.hudi_writes(new)
    rows = after_upsert(rows, new)
    sides.agree(rows)
    sides.we_compact()
    sides.agree(rows)


@pytest.mark.parametrize(("peer", "version"), [("hudi_12", 9), pytest.param("hudi_015", 6, marks=pytest.mark.long)])
def test_a_compaction_that_died_on_either_side_is_carried_out_by_the_other(sides: MorSides) -> None:
    rows = trips(range(40))
    sides.we_write(rows, "bulk_insert")
    new = trips(range(10, 30), ts=2)
    sides.hudi_writes(new)
    rows = after_upsert(rows, new)
    dead = die_compacting(sides)
    new = trips(range(20, 35), ts=3, note="meanwhile")
    sides.we_write(new)
    rows = after_upsert(rows, new)
    sides.agree(rows)
    sides.hudi_compacts("execute")
    assert "COMPACT" in sides.operations()
    assert pending_instants(sides) == []
    sides.agree(rows)

    sides.hudi_compacts()
    assert make_inflight(sides, "commit") != dead
    sides.agree(rows)
    new = trips(range(5, 25), ts=4, note="meanwhile")
    sides.hudi_writes(new)
    rows = after_upsert(rows, new)
    sides.agree(rows)
    done = sides.we_compact()
    assert done.instants
    assert pending_instants(sides) == []
    assert sides.merged_slices() == 0
    sides.agree(rows)
