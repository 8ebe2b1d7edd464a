"""A write that died, on either side: both keep reading what was there, and either one clears up behind the other."""

from __future__ import annotations

import contextlib
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from hudi_fast.errors import CommitError
from tests.interop.sides import Sides, after_upsert, trip_options, trips

pytestmark = pytest.mark.peer

WRITERS = [("hudi_12", 9), pytest.param(("hudi_015", 6), marks=pytest.mark.long)]

DIES = """
import os, signal, sys
import pyarrow.parquet as pq
import hudi_fast as hf
from hudi_fast.writing import flow, transaction
def die(*args, **named):
    os.kill(os.getpid(), signal.SIGKILL)
setattr({module}, {function!r}, die)
hf.write(pq.read_table({rows!r}), {path!r}, {options!r})
"""


@pytest.fixture(params=WRITERS, ids=lambda one: f"{one[0]}-v{one[1]}")
def sides(request: pytest.FixtureRequest, tmp_path: Path) -> Sides:
    peer, version = request.param
    return Sides(request.getfixturevalue(peer), tmp_path / "trips", trip_options(version))


def die_writing(sides: Sides, rows: pa.Table, operation: str, where: str) -> str:
    """Kill a write of ours for good; the instant that it leaves behind.

    ``where``: ``transaction.to_inflight`` when there is a request only, ``flow.publish`` when all files are there.
    """
    source = sides.path.parent / "rows.parquet"
    pq.write_table(rows, source)
    module, _, function = where.partition(".")
    options = {**sides.options, "hoodie.datasource.write.operation": operation}
    code = DIES.format(module=module, function=function, rows=str(source), path=str(sides.path), options=options)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    (pending,) = sides.table.history().filter(pa.compute.field("state") != "COMPLETED")["instant"].to_pylist()
    return str(pending)


def files_of(sides: Sides, instant: str) -> list[str]:
    found = [path for path in sides.path.rglob(f"*{instant}*") if ".hoodie" not in path.parts]
    return sorted(str(path.relative_to(sides.path)) for path in found if not path.name.endswith(".crc"))


def actions(sides: Sides) -> dict[str, str]:
    history = sides.table.history()
    return dict(zip(history["instant"].to_pylist(), history["action"].to_pylist(), strict=True))


def assert_cleared(sides: Sides, dead: str) -> None:
    """No file, no instant, no marker is left; a completed rollback tells of it."""
    assert files_of(sides, dead) == []
    assert dead not in actions(sides)
    assert not (sides.path / ".hoodie" / ".temp" / dead).exists()
    history = sides.table.history()
    assert set(history["state"].to_pylist()) == {"COMPLETED"}
    assert "rollback" in actions(sides).values()


@pytest.mark.parametrize("operation", [pytest.param("upsert", marks=pytest.mark.long), "insert_overwrite"])
def test_hudi_rolls_a_dead_write_of_ours_back(sides: Sides, operation: str) -> None:
    rows = trips(range(40))
    sides.we_write(rows)
    dead = die_writing(sides, trips(range(20, 60), ts=5, note="dead"), operation, "flow.publish")
    assert files_of(sides, dead)
    sides.agree(rows)
    new = trips(range(30, 50), ts=2, note="by Hudi")
    sides.hudi_writes(new)
    rows = after_upsert(rows, new)
    sides.agree(rows)
    assert_cleared(sides, dead)
    new = trips(range(35, 55), ts=3, note="by us")
    sides.we_write(new)
    sides.agree(after_upsert(rows, new))


def test_hudi_understands_our_rollback_of_a_dead_write(sides: Sides) -> None:
    rows = trips(range(40))
    sides.hudi_writes(rows)
    with_request = die_writing(sides, trips(range(5), ts=5), "upsert", "transaction.to_inflight")
    sides.agree(rows)
    new = trips(range(30, 50), ts=2, note="by us")
    sides.we_write(new)
    rows = after_upsert(rows, new)
    assert_cleared(sides, with_request)
    with_files = die_writing(sides, trips(range(20, 60), ts=5, note="dead"), "upsert", "flow.publish")
    sides.agree(rows)
    new = trips(range(35, 55), ts=3, note="by us again")
    sides.we_write(new)
    rows = after_upsert(rows, new)
    sides.agree(rows)
    assert_cleared(sides, with_files)
    new = trips(range(38, 58), ts=4, note="by Hudi")
    sides.hudi_writes(new)
    sides.agree(after_upsert(rows, new))
    if not sides.hudi.version.startswith("0."):  # reads the metadata of rollbacks
        told = sides.hudi.sql(f"CALL show_rollbacks(table => '{sides.in_catalog()}')")
        assert {with_request, with_files} <= set(told["rollback_instant"].to_pylist())


def test_we_roll_a_dead_write_of_hudi_back(sides: Sides) -> None:
    rows = trips(range(40))
    sides.we_write(rows)
    sides.hudi_writes(trips(range(20, 60), ts=5, note="dead"))
    dead = make_inflight(sides)
    new = trips(range(30, 50), ts=2, note="by us")
    sides.we_write(new)
    rows = after_upsert(rows, new)
    sides.agree(rows)
    assert_cleared(sides, dead)
    new = trips(range(38, 58), ts=4, note="by Hudi")
    sides.hudi_writes(new)
    sides.agree(after_upsert(rows, new))


def make_inflight(sides: Sides) -> str:
    """Take the newest completed instant's last file away, as if its writer had died just before."""
    newest = max(actions(sides))
    files = [path for path in (sides.path / ".hoodie").rglob(f"{newest}*") if "metadata" not in path.parts]
    (completed,) = [path for path in files if path.suffix == ".commit"]
    completed.unlink()
    return newest


@pytest.mark.long
def test_a_write_of_ours_that_fails_leaves_nothing_for_hudi_to_do(sides: Sides) -> None:
    rows = trips(range(40))
    sides.hudi_writes(rows)
    new = trips(range(20, 60), ts=5, note="new")
    with files_limited_to(100_000), pytest.raises(CommitError, match="storage"):
        hf.write(new, sides.path, sides.options)
    assert set(sides.table.history()["state"].to_pylist()) == {"COMPLETED"}
    assert len(list(sides.path.glob("city*/*.parquet"))) == len(sides.table.files())
    sides.agree(rows)
    sides.hudi_writes(new)
    sides.agree(after_upsert(rows, new))


@contextlib.contextmanager
def files_limited_to(size: int) -> Iterator[None]:
    """No file of this process may grow beyond ``size``: like a disk that fills up while base files are written."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
