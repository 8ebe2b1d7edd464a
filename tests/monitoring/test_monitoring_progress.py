"""Progress of work in this process: a function, or bars."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.monitoring.progress import progress
from tests.support.small_tables import options, plain_rows

PARTITIONS = 6


def test_a_function_is_told_each_file_group_of_writes_and_services(tmp_path: Path) -> None:
    told: list[tuple[str, int, int, str]] = []
    mor = {**options(), "hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
    with progress(lambda *what: told.append(what)):
        hf.write(plain_rows(range(12), partitions=PARTITIONS), tmp_path, mor)
        hf.write(plain_rows(range(12), ts=2, partitions=PARTITIONS), tmp_path, mor)
        hf.HudiTable.open(tmp_path).services.compact()
    steps = [("write_files", at, PARTITIONS, "file groups") for at in range(1, PARTITIONS + 1)]
    assert told[: 2 * PARTITIONS] == steps * 2
    assert told[2 * PARTITIONS :] == [
        ("rewrite_files", at, PARTITIONS, "file groups") for at in range(1, PARTITIONS + 1)
    ]
    told.clear()
    hf.write(plain_rows(range(12), ts=3, partitions=PARTITIONS), tmp_path, mor)
    assert told == []


def test_bars_are_drawn_on_standard_error_and_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with progress():
        hf.write(plain_rows(range(12), partitions=PARTITIONS), tmp_path, options())
    drawn = capsys.readouterr()
    assert drawn.out == ""
    assert "write files" in drawn.err
    assert f"/{PARTITIONS} " in drawn.err


def test_a_function_that_fails_does_not_fail_the_write(tmp_path: Path) -> None:
    def fail(*what: object) -> None:
        raise ValueError("no")

    with progress(fail):
        assert hf.write(plain_rows(range(4)), tmp_path, options()).inserts == 4


def test_wrong_arguments_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(hf.ConfigError, match="takes a function"), progress(True):  # type: ignore[arg-type]
        pass
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(hf.ConfigError, match=r"hudi-fast\[progress\]"), progress():
        pass
