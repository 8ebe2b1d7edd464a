"""Whether the file groups of a clustering plan are still as it has them."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.errors import CommitConflictError
from hudi_fast.services.clustering.cluster_work import changed_groups, require_unchanged
from hudi_fast.services.running import stats_by_partition
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.pending import pending_clusterings
from hudi_fast.view.table_state import load_state
from tests.support.small_tables import options, plain_rows

SINGLE = {"hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true"}
ALLOW = {
    "hoodie.clustering.updates.strategy": "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy"
}


def test_a_group_that_a_write_changed_is_named(tmp_path: Path) -> None:
    settings = {**options(), "hoodie.clean.automatic": "false", **ALLOW}
    hf.write(plain_rows(range(4)), tmp_path, settings)
    planned = hf.HudiTable.open(tmp_path).services.schedule_cluster(options=SINGLE)
    assert planned is not None
    state = load_state(Storage(tmp_path))
    ((instant, plan),) = pending_clusterings(state.storage, state.config, state.timeline)
    assert changed_groups(state, instant, plan) == {}
    require_unchanged(state, instant, plan)
    groups = {one.partition_path: one.file_id for group in plan.groups for one in group.slices}
    done = hf.write(plain_rows([1], ts=9), tmp_path, settings)
    now = load_state(state.storage)
    changed = changed_groups(now, instant, plan)
    assert set(changed) == {("p1", groups["p1"])}
    assert done.instant in changed["p1", groups["p1"]]
    with pytest.raises(CommitConflictError, match=groups["p1"]):
        require_unchanged(now, instant, plan)


def test_write_statistics_are_grouped_by_partition_in_the_order_of_paths() -> None:
    stats = [WriteStat(file_id=name, path=name, partition_path=name[0]) for name in ("b/2", "a/1", "b/1")]
    assert {name: [one.path for one in found] for name, found in stats_by_partition(stats).items()} == {
        "a": ["a/1"],
        "b": ["b/1", "b/2"],
    }
