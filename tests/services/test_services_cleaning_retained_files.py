"""Files that a clean may not delete, and the paths in its plan."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.errors import CorruptTableError
from hudi_fast.services.clean_plan import check_plan, relative_paths, retained_files
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.plans import CleanPlan
from hudi_fast.view.table_state import TableState, load_state
from tests.support.small_tables import options, plain_rows


@pytest.fixture
def state(tmp_path: Path) -> TableState:
    """Two commits of one file group in ``p0``."""
    for ts in (1, 2):
        hf.write(plain_rows([0], ts=ts), tmp_path, {**options(), "hoodie.clean.automatic": "false"})
    return load_state(Storage(tmp_path))


def names(state: TableState) -> list[str]:
    """The base files of ``p0``, oldest first."""
    return sorted(
        (one.name for one in state.storage.list_dir("p0") if one.name.endswith(".parquet")), key=lambda n: n[-20:]
    )


def plan(state: TableState, *files: str) -> CleanPlan:
    return CleanPlan("KEEP_LATEST_COMMITS", files={"p0": tuple(f"{state.storage.uri}/p0/{name}" for name in files)})


def test_paths_of_a_plan_are_relative_to_the_table(state: TableState) -> None:
    old, _ = names(state)
    assert relative_paths(state.storage, plan(state, old), "here") == {"p0": (f"p0/{old}",)}


@pytest.mark.parametrize(
    "path", ["/elsewhere/p0/{old}", "{table}/p1/{old}", "{table}/p0/../p0/{old}", "{table}/p0/notes.txt"]
)
def test_other_files_are_refused(state: TableState, path: str) -> None:
    wrong = path.format(table=state.storage.uri, old=names(state)[0])
    with pytest.raises(CorruptTableError, match="Nothing was"):
        relative_paths(state.storage, CleanPlan("KEEP_LATEST_COMMITS", files={"p0": (wrong,)}), "here")
    with pytest.raises(CorruptTableError, match="Nothing was"):
        relative_paths(state.storage, CleanPlan("KEEP_LATEST_COMMITS", partitions_to_be_deleted=("../x",)), "here")


def test_the_newest_slice_and_savepointed_files_stay(state: TableState) -> None:
    old, new = names(state)
    checked = check_plan(state, plan(state, old, new), "here")
    assert checked.paths == {"p0": (f"p0/{old}",)}
    assert list(checked.kept) == [f"p0/{new}"]
    first = state.timeline.writes()[0].requested
    hf.HudiTable.open(state.storage.uri).services.savepoint(first)
    later = load_state(state.storage)
    assert retained_files(later).saved["p0"] == {old}
    assert check_plan(later, plan(later, old, new), "here").paths == {"p0": ()}
