"""Pools that work while the interpreter ends: all reads in functions of ``atexit``."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.reading import scan
from hudi_fast.storage.forks import ThreadPool
from tests.support.small_tables import options, plain_rows

PACKAGE = Path(hf.__file__).parent

PROGRAM = """
import atexit, sys
import hudi_fast as hf
from tests.support.small_tables import options, plain_rows

@atexit.register
def at_the_end():
    table = hf.HudiTable.open(sys.argv[1])
    reads = {
        "all": table.to_arrow().num_rows,
        "batches": sum(batch.num_rows for batch in table.to_batches()),
        "one column": table.to_arrow(columns=["id"]).num_rows,
        "count": table.count(),
        "files": table.files().num_rows > 0,
        "partitions": table.partitions().num_rows,
        "stats": table.stats().num_rows > 0,
        "incremental": table.incremental("0").num_rows,
        "write": hf.write(plain_rows(range(40), ts=9, partitions=4), sys.argv[1], options()).updates,
    }
    print(reads)
"""
EXPECTED = {
    "all": 40,
    "batches": 40,
    "one column": 40,
    "count": 40,
    "files": True,
    "partitions": 4,
    "stats": True,
    "incremental": 40,
    "write": 40,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_reads_and_writes_work_while_the_interpreter_ends(tmp_path: Path, kind: str) -> None:
    own = {**options(), "hoodie.datasource.write.table.type": kind}
    for ts in (1, 2):
        hf.write(plain_rows(range(40), ts=ts, partitions=4), tmp_path / "t", own)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "t")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Error" not in done.stderr
    assert ast.literal_eval(done.stdout.splitlines()[-1]) == EXPECTED


def test_the_caller_does_the_work_where_no_thread_can_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    import concurrent.futures.thread as pools

    monkeypatch.setattr(pools, "_shutdown", True)
    with ThreadPool(4) as pool:
        assert list(pool.map(lambda number: number + 1, range(3))) == [1, 2, 3]
        failed = pool.submit(lambda: 1 // 0)
        assert isinstance(failed.exception(), ZeroDivisionError)
    with pytest.raises(RuntimeError, match="after"):
        pool.submit(lambda: 1)


def test_readers_read_in_the_caller_where_no_thread_can_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: object) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(scan.threading.Thread, "start", refused)
    assert list(scan.in_threads([1, 2, 3], lambda unit: iter([unit, unit]), 2)) == [1, 1, 2, 2, 3, 3]


def test_no_module_makes_another_kind_of_pool() -> None:
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if "kernels" not in path.parts and "ThreadPoolExecutor" in path.read_text()
    }
    assert found == {"storage/forks.py"}
