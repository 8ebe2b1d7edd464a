"""The metadata table between several writers of the table that it is about."""

from __future__ import annotations

from pathlib import Path

import pytest
from interleaving import assert_sound, settings_for, write_during
from small_tables import plain_rows, table_rows

import hudi_fast as hf
from hudi_fast.metadata.state import metadata_of, open_state
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.instant import Instant, State
from hudi_fast.timeline.service_plans import CompactionPlan, encode_compaction_plan
from hudi_fast.timeline.transition import create_requested, to_inflight
from hudi_fast.view.pending import operation_of

STATS = {"hoodie.metadata.index.column.stats.enable": "true"}


def begin_compaction(path: Path) -> str:
    """What a writer leaves behind that is killed while it compacts the metadata table."""
    state = open_state(Storage(path))
    table = metadata_of(state)
    assert table is not None
    slices = [one for partition in table.partitions for one in table.groups(partition) if one.log_files]
    requested = InstantClock(table.config.timezone).next_time(table.timeline.newest_time, state.timeline.newest_time)
    instant = Instant(requested, "compaction", State.REQUESTED)
    plan = CompactionPlan(tuple(operation_of(one, 1) for one in slices))
    create_requested(table.storage, table.config, instant, encode_compaction_plan(plan))
    to_inflight(table.storage, table.config, instant)
    return requested


@pytest.mark.parametrize("kind", ["COW", "MOR"])
@pytest.mark.parametrize("version", ["9", pytest.param("6", marks=pytest.mark.long)])
def test_a_compaction_that_died_is_done_again_without_what_was_logged_since(
    tmp_path: Path, kind: str, version: str
) -> None:
    settings = settings_for(kind, version, STATS)
    hf.write(plain_rows(range(4)), tmp_path, settings)
    hf.write(plain_rows(range(2), ts=2), tmp_path, settings)
    left: list[str] = []
    write_during(tmp_path, plain_rows([0], ts=3), settings, lambda: left.append(begin_compaction(tmp_path)))
    hf.write(plain_rows([1], ts=4), tmp_path, settings)
    table = metadata_of(open_state(Storage(tmp_path)))
    assert table is not None
    assert left[0] in {one.requested for one in table.timeline.writes()}
    assert_sound(tmp_path, table_rows(tmp_path))
