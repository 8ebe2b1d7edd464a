"""A plan that is put on the timeline after its lock was lost: it loses no write that it has not seen.

Modules: hudi_fast.services.running.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.locking.table_lock import HeldLock
from tests.locking.providers import Provider
from tests.support.small_tables import assert_tidy
from tests.writing.test_writing_unseen_writes import (
    COW,
    MOR,
    SHARED,
    TABLE,
    Suspension,
    elsewhere,
    on,
    provider,
    rows,
    suspension,
    table_of,
    take_over,
    write,
)

__all__ = ["provider", "suspension"]

pytestmark = pytest.mark.slow
SAME, OTHER = "same group", "another group"
PLANS = [
    (COW, "cluster", "6", SAME),
    (MOR, "cluster", "9", SAME),
    (MOR, "compact", "6", SAME),
    (MOR, "compact", "9", SAME),
    (MOR, "compact_logs", "8", SAME),
    (MOR, "compact", "6", OTHER),
    (COW, "cluster", "9", OTHER),
    pytest.param(COW, "cluster", "9", SAME, marks=pytest.mark.long),
    pytest.param(MOR, "cluster", "6", SAME, marks=pytest.mark.long),
    pytest.param(MOR, "compact", "8", SAME, marks=pytest.mark.long),
    pytest.param(MOR, "compact_logs", "9", SAME, marks=pytest.mark.long),
    pytest.param(MOR, "compact_logs", "9", OTHER, marks=pytest.mark.long),
]


def settings_of(provider: Provider) -> dict[str, Any]:
    return {
        **TABLE,
        **provider.options,
        **SHARED,
        "hoodie.compact.inline.max.delta.commits": "1",
        "hoodie.log.compaction.blocks.threshold": "1",
        "hoodie.clustering.plan.strategy.partition.selected": "part=a",
    }


@on("in_storage")
@pytest.mark.parametrize(("kind", "service", "version", "where"), PLANS)
def test_a_write_that_a_late_plan_has_not_seen_is_not_lost(
    provider: Provider, suspension: Suspension, kind: str, service: str, version: str, where: str
) -> None:
    layout, settings = {"hoodie.write.table.version": version}, settings_of(provider)
    write(provider, rows([3], 1, "b"), SHARED, kind, **layout)
    for ts in (1, 2):
        write(provider, rows([1, 2], ts), SHARED, kind, **layout)
    services = hf.HudiTable.open(provider.path).services
    suspension.pattern = re.compile(r"\.hoodie/(timeline/)?\d{17}\.\w+\.requested")
    changed = rows([1], 4) if where == SAME else rows([3], 4, "b")
    expected = {1: 4, 2: 2, 3: 1} if where == SAME else {1: 2, 2: 2, 3: 4}
    suspension.during(take_over(provider, lambda: write(provider, changed, SHARED, kind, **layout)))
    if where == SAME:
        with pytest.raises(hf.CommitConflictError, match="which has not seen it"):
            getattr(services, f"schedule_{service}")(settings)
        assert_tidy(provider.table)
    else:
        assert getattr(services, f"schedule_{service}")(settings) is not None
    assert table_of(provider) == expected
    getattr(services, service)(settings)
    assert table_of(provider) == expected
    write(provider, rows([2], 5), SHARED, kind, **layout)
    getattr(services, service)(settings)
    assert table_of(provider) == {**expected, 2: 5}


@on("in_storage")
def test_a_late_plan_that_another_process_executes_already_stays(
    provider: Provider, suspension: Suspension, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, settings = {"hoodie.write.table.version": "9"}, settings_of(provider)
    for ts in (1, 2):
        write(provider, rows([1, 2], ts), SHARED, MOR, **layout)
    services = hf.HudiTable.open(provider.path).services
    suspension.pattern = re.compile(r"\.hoodie/timeline/\d{17}\.compaction\.requested")
    suspension.during(take_over(provider, lambda: write(provider, rows([1], 4), SHARED, MOR, **layout)))
    take_again = HeldLock.take_again

    def too_late(lock: HeldLock) -> None:
        monkeypatch.setattr(HeldLock, "take_again", take_again)
        with elsewhere(monkeypatch):
            assert services.compact(settings) is not None
        take_again(lock)

    monkeypatch.setattr(HeldLock, "take_again", too_late)
    with pytest.raises(hf.CommitStateUnknownError, match="is being executed already"):
        hf.HudiTable.open(provider.path).services.schedule_compact(settings)
    assert table_of(provider) == {1: 4, 2: 2}
