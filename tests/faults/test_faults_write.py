"""Whatever call to storage fails, and however: readers see the old table or the new one, and the next write repairs."""

from __future__ import annotations

import random
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from tests.faults import calls as ways
from tests.faults.calls import attempt, faults, interesting
from tests.support.golden import Golden
from tests.support.instrumented_storage import (
    FAULT_KINDS,
    FaultyStorage,
    InjectedFaultError,
    RecordingStorage,
)
from tests.support.small_tables import assert_tidy, options, plain_rows, rows_of, table_rows, write_to

pytestmark = pytest.mark.slow

CHANGE = plain_rows(range(5, 15), ts=3, text="b")
NEXT = plain_rows([1, 40], ts=4, text="c")


@dataclass(frozen=True)
class Case:
    """One kind of write on one kind of table."""

    operation: str
    version: str

    def settings(self) -> dict[str, str]:
        return options(operation=self.operation, table_version=self.version)


CASES = [
    Case("upsert", "9"),
    Case("insert_overwrite", "9"),
    Case("delete", "6"),
    *[
        pytest.param(case, marks=pytest.mark.long)
        for case in (Case("upsert", "6"), Case("insert_overwrite", "6"), Case("delete", "9"))
    ],
]


def make_table(path: Path, version: str) -> None:
    hf.write(plain_rows(range(10)), path, options(table_version=version))
    hf.write(plain_rows(range(5, 20), ts=2), path, options(table_version=version))


def with_next(rows: dict[str, tuple[object, ...]]) -> dict[str, tuple[object, ...]]:
    return {**rows, **rows_of(NEXT)}


def check_after(path: Path, error: BaseException | None, old: dict, new: dict, settings: dict, where: str) -> None:
    seen = table_rows(path)
    if error is None:
        assert seen == new, where
    elif isinstance(error, hf.CommitStateUnknownError):
        assert seen in (old, new), where
    else:
        assert seen == old, where
        assert isinstance(error, hf.HudiError | InjectedFaultError), where
    hf.write(NEXT, path, {**settings, "hoodie.datasource.write.operation": "upsert"})
    assert table_rows(path) == with_next(seen), where
    assert_tidy(path)


@pytest.mark.long("delete-v6", "insert_overwrite-v9")
@pytest.mark.slow
@pytest.mark.smoke("upsert-v9")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.operation}-v{case.version}")
def test_any_failing_call_leaves_the_old_table_or_the_new_one(case: Case, tmp_path: Path) -> None:
    make_table(tmp_path / "base", case.version)
    old = table_rows(tmp_path / "base")
    shutil.copytree(tmp_path / "base", tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole")
    write_to(recorder, CHANGE, case.settings())
    new = table_rows(tmp_path / "whole")
    assert new != old
    landed = 0
    for call, kind, die in faults(recorder.calls):
        path = tmp_path / "try"
        shutil.copytree(tmp_path / "base", path)
        error = attempt(FaultyStorage(path, at=call.number, kind=kind, die=die), CHANGE, case.settings())
        landed += error is None
        where = f"{call} {kind} die={die}: {error!r}"
        if not die and not isinstance(error, hf.CommitStateUnknownError):
            assert load_state(Storage(path)).timeline.pending() == (), where  # the failed write rolls itself back
        check_after(path, error, old, new, case.settings(), where)
        shutil.rmtree(path)
    assert landed > 0  # some faults are survived: lost answers, markers that stay behind


@pytest.mark.slow
def test_a_write_that_creates_the_table_leaves_none_an_empty_one_or_the_new_one(tmp_path: Path) -> None:
    recorder = RecordingStorage(tmp_path / "whole")
    write_to(recorder, CHANGE, options())
    new = table_rows(tmp_path / "whole")
    for call, kind, die in faults(recorder.calls, survive=False):
        path = tmp_path / "try"
        error = attempt(FaultyStorage(path, at=call.number, kind=kind, die=die), CHANGE, options())
        where = f"{call} {kind} die={die}: {error!r}"
        seen = rows_or_nothing(path)
        assert seen == new if error is None else (not seen or isinstance(error, hf.CommitStateUnknownError)), where
        hf.write(NEXT, path, options())
        assert table_rows(path) == with_next(seen), where
        assert_tidy(path)
        shutil.rmtree(path)


@pytest.mark.slow
def test_an_overwrite_leaves_the_old_table_or_the_new_one(tmp_path: Path) -> None:
    make_table(tmp_path / "parent" / "base", "9")
    old = table_rows(tmp_path / "parent" / "base")
    settings = options(ordering=None, table_version="8")  # another kind of table, even
    shutil.copytree(tmp_path / "parent", tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole" / "base")
    write_to(recorder, CHANGE, settings, "overwrite")
    new = table_rows(tmp_path / "whole" / "base")
    for call, kind, die in faults(recorder.calls, survive=False):
        shutil.copytree(tmp_path / "parent", tmp_path / "try")
        path = tmp_path / "try" / "base"
        storage = FaultyStorage(path, at=call.number, kind=kind, die=die)
        error = attempt(storage, CHANGE, settings, "overwrite")
        where = f"{call} {kind} die={die}: {error!r}"
        seen = table_rows(path)
        if isinstance(error, hf.CommitStateUnknownError):
            assert seen in (old, new), where
        else:
            assert seen == (new if error is None else old), where
        hf.write(NEXT, path, options(), mode="overwrite")
        assert table_rows(path) == rows_of(NEXT), where
        assert_tidy(path)
        assert [each.name for each in (tmp_path / "try").iterdir()] == ["base"], where
        shutil.rmtree(tmp_path / "try")


@pytest.mark.slow
def test_a_repair_that_dies_is_repaired(tmp_path: Path) -> None:
    """A write dies, the next one dies while it cleans up, the third one has to settle both."""
    make_table(tmp_path / "base", "9")
    old = table_rows(tmp_path / "base")
    chance = random.Random(7)
    for _ in range(40 if ways.EVERY_WAY else 20):
        path = tmp_path / "try"
        shutil.copytree(tmp_path / "base", path)
        first = FaultyStorage(path, at=chance.randrange(14, 60), kind=chance.choice(FAULT_KINDS), die=True)
        second = FaultyStorage(path, at=chance.randrange(8, 40), kind=chance.choice(FAULT_KINDS), die=True)
        assert attempt(first, CHANGE, options()) is not None
        error = attempt(second, CHANGE, options())
        assert table_rows(path) == old
        check_after(path, error, old, old, options(), f"{first.at} {first.kind}, {second.at} {second.kind}: {error!r}")
        shutil.rmtree(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cow_v9_mixed", "h015_cow"])
def test_dying_while_a_metadata_table_of_apache_hudi_is_dropped_loses_nothing(
    name: str, golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    table = golden(name)
    old = rows_of(hf.HudiTable.open(table.table).to_arrow())
    change = hf.HudiTable.open(table.table).to_arrow().slice(0, 3)
    settings = {
        "hoodie.datasource.write.operation": "delete",
        "hudi_fast.threads": "1",
        "hoodie.metadata.enable": "false",
    }
    shutil.copytree(table.table, tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole")
    write_to(recorder, change, settings)
    calls = [call for call in recorder.calls if call.path.startswith(".hoodie/hoodie.prop") or "metadata" in call.path]
    assert {"delete_dir", "write_bytes", "create_exclusive"} <= {call.name for call in calls}
    for call, kind, die in faults(calls):
        path = tmp_path / "try"
        shutil.copytree(table.table, path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hf.HudiWarning)
            attempt(FaultyStorage(path, at=call.number, kind=kind, die=die), change, settings)
            seen = rows_of(hf.HudiTable.open(path).to_arrow())
            assert set(seen) in (set(old), set(table_rows(tmp_path / "whole")))
            write_to(Storage(path), change, settings)
        assert table_rows(path) == table_rows(tmp_path / "whole"), f"{call} {kind} die={die}"
        assert not (path / ".hoodie" / "metadata").exists()
        shutil.rmtree(path)


def rows_or_nothing(path: Path) -> dict[str, tuple[object, ...]]:
    try:
        return table_rows(path)
    except hf.TableNotFoundError:
        return {}


class InterruptedStorage(RecordingStorage):
    """Ctrl-C comes in or after one call; whoever cleans up then is left in peace."""

    def __init__(self, uri: Path, at: int, done: bool) -> None:
        super().__init__(uri)
        self._at, self._done = at, done

    def _run(self, name: str, path: str, do: Callable[[], Any], tear: Callable[[], object] | None = None) -> Any:
        hit = self._note(name, path).number == self._at
        if hit and not self._done:
            raise KeyboardInterrupt
        answer = do()
        if hit:
            raise KeyboardInterrupt
        return answer


@pytest.mark.slow
@pytest.mark.parametrize("version", ["9", "6"])
def test_an_interrupt_at_any_call_is_an_interrupt_and_harmless(version: str, tmp_path: Path) -> None:
    make_table(tmp_path / "base", version)
    old = table_rows(tmp_path / "base")
    shutil.copytree(tmp_path / "base", tmp_path / "whole")
    recorder = RecordingStorage(tmp_path / "whole")
    write_to(recorder, CHANGE, options())
    new = table_rows(tmp_path / "whole")
    outcomes, chance = set(), random.Random(version)
    for call in interesting(recorder.calls):
        for done in (False, True) if ways.EVERY_WAY else (chance.random() < 0.5,):
            path = tmp_path / f"{call.number}-{done}"
            shutil.copytree(tmp_path / "base", path)
            with pytest.raises(KeyboardInterrupt):
                write_to(InterruptedStorage(path, call.number, done), CHANGE, options())
            seen = table_rows(path)
            assert seen in (old, new), call
            outcomes.add(seen == new)
            hf.write(NEXT, path, options())
            assert table_rows(path) == with_next(seen), call
            assert_tidy(path)
    assert outcomes == {True, False}
