"""Files of a pinned view that a later clean has deleted."""

from __future__ import annotations

from pathlib import Path

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import load_timeline
from hudi_fast.view.lost_files import cleaned_since
from hudi_fast.view.table_state import TableState, load_state
from tests.support.small_tables import options, plain_rows

SETTINGS = {**options(), "hoodie.metadata.enable": "false", "hoodie.clean.automatic": "false"}


def write(path: Path, ts: int) -> None:
    hf.write(plain_rows(range(4), ts=ts), path, SETTINGS)


def found_since(state: TableState) -> list[tuple[str, str]]:
    now = load_timeline(state.storage, state.config)
    return sorted((one.clean.requested, one.path) for one in cleaned_since(state, now))


def test_files_of_the_view_that_a_later_clean_deletes_are_found(tmp_path: Path) -> None:
    write(tmp_path, 1)
    state = load_state(Storage(tmp_path))
    before = sorted(
        path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.parquet") if "hoodie" not in str(path)
    )
    assert before
    write(tmp_path, 2)
    write(tmp_path, 3)
    assert found_since(state) == []
    clean = hf.HudiTable.open(tmp_path).services.clean(options={"hoodie.clean.commits.retained": "1"})
    assert found_since(state) == [(clean.instant, path) for path in before]


def test_a_view_that_the_clean_leaves_whole_has_no_such_file(tmp_path: Path) -> None:
    write(tmp_path, 1)
    write(tmp_path, 2)
    write(tmp_path, 3)
    state = load_state(Storage(tmp_path))
    hf.HudiTable.open(tmp_path).services.clean(options={"hoodie.clean.commits.retained": "1"})
    assert found_since(state) == []
    assert found_since(load_state(Storage(tmp_path))) == []
