"""Log rows of a slice that are moved to a local file: queries and compactions have the same rows.

How tasks of writes use such a file is tested in tests/spark.

Modules: hudi_fast.merging.row_buffer, hudi_fast.merging.log_entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.merging.row_buffer import BatchedRows
from tests.support.golden import Golden, golden_names
from tests.support.mor_tables import mor_options
from tests.support.small_tables import plain_rows, table_rows

TABLES = [name for name in golden_names() if "mor" in Path(name).name]


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[int]]:
    """All log rows are moved to files; how many rows were taken from them. No file stays."""
    counts: list[int] = []
    folder = tmp_path / "local"
    folder.mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(folder))
    monkeypatch.setattr("hudi_fast.merging.log_entries.LOG_BUDGET", 0)
    take = BatchedRows.take

    def counted(self: BatchedRows, rows: pa.Array, columns: list[str] | None = None) -> pa.Table:
        counts.append(len(rows))
        return take(self, rows, columns)

    monkeypatch.setattr(BatchedRows, "take", counted)
    yield counts
    assert not list(folder.iterdir())


@pytest.mark.parametrize("name", TABLES)
def test_a_snapshot_has_the_same_rows(
    name: str, golden: Callable[[str], Golden], request: pytest.FixtureRequest
) -> None:
    path = golden(name).table
    expected = hf.HudiTable.open(path).to_arrow()
    request.getfixturevalue("taken")
    found = hf.HudiTable.open(path).to_arrow()
    assert found.equals(expected)


@pytest.mark.slow
@pytest.mark.parametrize("operation", ["compact", "compact_logs"])
def test_a_compaction_writes_the_same_rows(operation: str, tmp_path: Path, taken: list[int]) -> None:
    settings = mor_options()
    for ts in range(4):
        hf.write(plain_rows(range(ts, 10 + ts), ts=ts), tmp_path / "t", settings)
    before = table_rows(tmp_path / "t")
    taken.clear()
    services = hf.HudiTable.open(tmp_path / "t").services
    if operation == "compact":
        result = services.compact({"hoodie.compact.inline.max.delta.commits": "1"})
    else:
        result = services.compact_logs({"hoodie.log.compaction.blocks.threshold": "2"})
    assert result is not None
    assert sum(taken) > 0
    assert table_rows(tmp_path / "t") == before


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = mor_options()
    for ts in range(2):
        hf.write(plain_rows(range(10), ts=ts), tmp_path / "t", settings)
    monkeypatch.setattr("hudi_fast.merging.log_entries.LOG_BUDGET", 0)
    monkeypatch.setattr("hudi_fast.merging.row_buffer.spool_folder", lambda: str(tmp_path / "missing"))
    with pytest.raises(OSError, match=r"Log rows of a file slice of .*/t beyond 128 MiB .*missing, which cannot be"):
        hf.HudiTable.open(tmp_path / "t").to_arrow()
