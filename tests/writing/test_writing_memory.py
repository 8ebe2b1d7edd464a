"""How much memory a file group of full size costs, each step in a process of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

MIB = 1 << 20
SCRIPT = """
import sys
import numpy as np, pyarrow as pa
import hudi_fast as hf

def rows(ids):
    random, count = np.random.default_rng(1), len(ids)
    numbers = {f"c{i}": random.random(count) for i in range(10)}
    return pa.table({"id": pa.array(ids).cast(pa.string()), "ts": np.ones(count, np.int64), **numbers})

path, kind, step = sys.argv[1:]
if step == "create":
    hf.write(rows(np.arange(1_600_000)), path, {
        "hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.precombine.field": "ts", "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.parquet.max.file.size": str(400 << 20), "hudi_fast.threads": "1"})
elif step == "compact":
    assert hf.HudiTable.open(path).services.compact({"hudi_fast.threads": "1"}).rows == 1_600_000
elif step == "read":
    assert sum(batch.num_rows for batch in hf.HudiTable.open(path).to_batches()) == 1_600_000
else:
    changed = rows(np.arange(0, 1_600_000, int(step)))
    assert hf.HudiTable.open(path).upsert(changed, {"hoodie.compact.inline": "false"}).inserts == 0
# Not ru_maxrss, which a new process takes over from the one that started it.
peaks = [line for line in open("/proc/self/status") if line.startswith("VmHWM:")]
print(int(peaks[0].split()[1]) << 10)
"""


def peak(path: Path, step: str, kind: str = "COPY_ON_WRITE") -> int:
    program = [sys.executable, "-c", SCRIPT, str(path), kind, step]
    return int(subprocess.run(program, capture_output=True, text=True, check=True).stdout)


def create(path: Path, kind: str = "COPY_ON_WRITE") -> Path:
    peak(path, "create", kind)
    (file,) = path.glob("*.parquet")
    assert 110 * MIB < file.stat().st_size < 140 * MIB
    return path


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return create(tmp_path_factory.mktemp("memory") / "t")


@pytest.fixture(scope="module")
def table_with_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table that has none yet."""
    return create(tmp_path_factory.mktemp("memory") / "t", "MERGE_ON_READ")


@pytest.mark.slow
@pytest.mark.parametrize(("every", "limit"), [(100, 700 * MIB), (1, 1024 * MIB)], ids=["1 %", "100 %"])
def test_a_merge_of_a_full_file_group_stays_below_a_gibibyte(every: int, limit: int, table: Path) -> None:
    assert peak(table, str(every)) < limit


@pytest.mark.slow
def test_a_stream_of_rows_holds_a_few_batches(table: Path) -> None:
    assert peak(table, "read") < 500 * MIB


@pytest.mark.slow
def test_a_log_of_every_row_of_a_full_file_group_stays_below_a_gibibyte(tmp_path: Path, table_with_logs: Path) -> None:
    shutil.copytree(table_with_logs, tmp_path / "t")
    assert peak(tmp_path / "t", "1") < 1024 * MIB
    (log,) = (tmp_path / "t").glob(".*.log.*")
    assert log.stat().st_size > 256 * MIB  # more than one block


@pytest.mark.slow
def test_a_compaction_of_a_full_file_group_with_as_much_log_stays_below_a_gibibyte(
    tmp_path: Path, table_with_logs: Path
) -> None:
    shutil.copytree(table_with_logs, tmp_path / "t")
    peak(tmp_path / "t", "2")
    (log,) = (tmp_path / "t").glob(".*.log.*")
    assert log.stat().st_size > 120 * MIB
    assert peak(tmp_path / "t", "compact") < 1024 * MIB
