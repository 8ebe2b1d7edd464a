"""Any call to storage that is about a change log may fail: the write is there with its log, or neither of them is."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.table.services import TableServices
from tests.faults.calls import faults
from tests.support.change_logs import change_logs, entries_of, stats_by_instant
from tests.support.instrumented_storage import FaultyStorage, InjectedFaultError, RecordingStorage
from tests.support.small_tables import assert_tidy, options, plain_rows, rows_of, table_rows, write_to

pytestmark = pytest.mark.slow

CHANGE = plain_rows(range(5, 15), ts=3, text="b", partitions=1)
NEXT = plain_rows([1, 40], ts=4, text="c", partitions=1)
DUE = {"hoodie.compact.inline.max.delta.commits": "1"}


@dataclass(frozen=True)
class Case:
    """What writes change logs, on a table of which version."""

    service: str
    version: str

    def settings(self) -> dict[str, str]:
        more = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
        small = {"hoodie.parquet.small.file.limit": "0"}
        kind = {**more, **small} if self.service == "compact" else {}
        return {**options(table_version=self.version), "hoodie.table.cdc.enabled": "true", **kind}

    def make(self, path: Path) -> None:
        hf.write(plain_rows(range(10), partitions=1), path, self.settings())
        hf.write(plain_rows(range(3, 10), ts=2, partitions=1), path, self.settings())

    def run(self, storage: Storage) -> None:
        if self.service == "compact":
            settings: dict[str, Any] = {key: value for key, value in self.settings().items() if "inline" not in key}
            TableServices(storage).compact({**settings, **DUE})
        else:
            write_to(storage, CHANGE, self.settings())


CASES = [
    Case("upsert", "9"),
    Case("compact", "6"),
    pytest.param(Case("upsert", "6"), marks=pytest.mark.long),
    pytest.param(Case("compact", "9"), marks=pytest.mark.long),
]


def named_logs(path: Path) -> set[str]:
    """Change logs that commits name; each can be read."""
    stats = [stat for found in stats_by_instant(path).values() for stat in found]
    names = {name for stat in stats for name in stat.cdc_stats or ()}
    assert all(entries_of(path, name) for name in names)
    return {name.rpartition("/")[2] for name in names}


def failure_of(work: Callable[[], None]) -> Exception | None:
    try:
        work()
    except (hf.HudiError, InjectedFaultError) as error:
        return error
    return None


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.service}-v{case.version}")
def test_a_failing_call_leaves_a_write_with_its_change_log_or_neither(case: Case, tmp_path: Path) -> None:
    case.make(tmp_path / "base")
    old = table_rows(tmp_path / "base")
    shutil.copytree(tmp_path / "base", tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole")
    case.run(recorder)
    new = table_rows(tmp_path / "whole")
    tried = failed = 0
    for call, kind, die in faults([one for one in recorder.calls if ".cdc" in one.path]):
        path, where = tmp_path / "try", f"{call} {kind} {die}"
        shutil.copytree(tmp_path / "base", path)
        storage = FaultyStorage(path, at=call.number, kind=kind, die=die)
        error = failure_of(lambda storage=storage: case.run(storage))  # type: ignore[misc]
        assert table_rows(path) == (new if error is None else old), where
        hf.write(NEXT, path, case.settings())  # cleans up
        TableServices(Storage(path)).compact(DUE) if case.service == "compact" else None
        assert table_rows(path) == {**(new if error is None else old), **rows_of(NEXT)}, where
        assert {log.name for log in change_logs(path)} == named_logs(path), where
        assert_tidy(path)
        tried, failed = tried + 1, failed + (error is not None)
        shutil.rmtree(path)
    assert tried > 5
    assert failed > tried / 2
