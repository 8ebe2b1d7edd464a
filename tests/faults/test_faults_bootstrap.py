"""Bootstraps that fail at any call to storage: there is no table then, or a finished one, and the next one succeeds."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.bootstrapping.bootstrap import BootstrapResult
from hudi_fast.storage.base import Storage
from tests.faults.calls import few, interesting
from tests.support.bootstrap_tables import BY_REGEX, bootstrap_options, bootstrapped, data, make_source
from tests.support.instrumented_storage import FAULT_KINDS, FaultyStorage, InjectedFaultError, RecordingStorage

PLAIN = {"hoodie.metadata.enable": "false", "hudi_fast.threads": 1}


def run(source: Path, storage: Storage, options: dict[str, Any], mode: str = "errorifexists") -> BootstrapResult:
    return bootstrapped(source, storage, bootstrap_options(**options), mode)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("errorifexists", {**BY_REGEX, **PLAIN}),
        pytest.param("errorifexists", {"hudi_fast.threads": 1}, marks=pytest.mark.long),
        pytest.param("overwrite", {**BY_REGEX, **PLAIN}, marks=pytest.mark.long),
    ],
)
def test_any_failing_call_leaves_no_table_or_a_finished_one(mode: str, options: dict[str, Any], tmp_path: Path) -> None:
    rows = data(make_source(tmp_path / "source", parts=2, files=1))
    old = rows.slice(0, 3)
    place = tmp_path / "base" / "t"
    place.parent.mkdir()
    if mode == "overwrite":
        hf.write(old, place, bootstrap_options(**PLAIN))
    shutil.copytree(tmp_path / "base", tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole" / "t")
    assert run(tmp_path / "source", recorder, options, mode).inserts == rows.num_rows
    chooser = random.Random(f"{mode} {options}")
    outcomes = set()
    for call in few(interesting(recorder.calls), 24):
        kind = chooser.choice(FAULT_KINDS) if call.changes else "before"
        die = chooser.choice((False, True))
        folder = tmp_path / "try"
        shutil.copytree(tmp_path / "base", folder)
        error: Exception | None = None
        try:
            run(tmp_path / "source", FaultyStorage(folder / "t", at=call.number, kind=kind, die=die), options, mode)
        except Exception as caught:
            error = caught
        where = f"{call} {kind} die={die}: {error!r}"
        assert error is None or isinstance(error, hf.HudiError | InjectedFaultError), where
        found = table_rows(folder / "t")
        before = data(old) if mode == "overwrite" else None
        assert found is not None or before is None, where
        finished = found is not None and found.num_rows == rows.num_rows
        if found is not None:
            assert found.equals(rows if finished else before), where
        assert finished or error is not None, where
        outcomes.add(finished)
        if not finished:
            run(tmp_path / "source", Storage(folder / "t"), options, mode)
            assert table_rows(folder / "t") == rows, where
        assert [one.name for one in folder.iterdir()] == ["t"] or finished, where
        shutil.rmtree(folder)
    assert False in outcomes


def table_rows(path: Path) -> Any:
    """Rows of the table by key; None when there is no table."""
    try:
        return data(hf.HudiTable.open(path).to_arrow())
    except hf.TableNotFoundError:
        return None


def test_a_bootstrap_in_place_that_died_is_made_anew(tmp_path: Path) -> None:
    rows = data(make_source(tmp_path / "source"))
    run(tmp_path / "source", Storage(tmp_path / "t"), {})
    for file in (tmp_path / "t/.hoodie/timeline").glob("*.commit"):
        file.unlink()
    assert run(tmp_path / "source", Storage(tmp_path / "t"), {}).inserts == rows.num_rows
    assert table_rows(tmp_path / "t") == rows


def test_what_a_bootstrap_that_died_left_beside_the_table_goes(tmp_path: Path) -> None:
    rows = data(make_source(tmp_path / "source"))
    left = tmp_path / f".t.bootstrap-{'0' * 32}"
    (left / ".hoodie").mkdir(parents=True)
    run(tmp_path / "source", Storage(tmp_path / "t"), {})
    assert sorted(one.name for one in tmp_path.iterdir()) == ["source", "t"]
    assert table_rows(tmp_path / "t") == rows
