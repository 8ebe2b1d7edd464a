"""Plans a repair: finds files and instants that do not belong to a table.

::

    inspect_table ─► instants (first: a lost plan leaves its data files unclear) ─► data files ─► leftovers ─► plan

Nothing is written. A metadata table that cannot be used is a finding; validation compares its contents with the table.
"""

from __future__ import annotations

from collections.abc import Sequence

from hudi_fast.errors import CorruptTableError
from hudi_fast.services.repairing.data_files import find_data_files
from hudi_fast.services.repairing.findings import FINDING_KINDS, Finding, RepairPlan
from hudi_fast.services.repairing.inspection import Inspection, inspect_table
from hudi_fast.services.repairing.instants import find_instants
from hudi_fast.services.repairing.leftovers import find_leftovers
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.heartbeat import HeartbeatRule

__all__ = ["plan_repair"]


def plan_repair(storage: Storage, heartbeat: HeartbeatRule, locked: bool = False) -> RepairPlan:
    """Find everything below the table's folder that does not belong; nothing is written.

    Args:
        storage: the table's storage.
        heartbeat: when a heartbeat expires.
        locked: whether the caller holds the table's lock: no other process of this machine writes then.

    Raises:
        TableNotFoundError: there is no table.
        CorruptTableError: ``hoodie.properties`` is damaged.
    """
    inspection = inspect_table(storage, heartbeat, locked)
    instants = list(find_instants(inspection))
    findings = [*instants, *_data_files(inspection, instants), *find_leftovers(inspection)]
    findings.sort(key=lambda one: (FINDING_KINDS.index(one.kind), one.instant, one.path))
    return RepairPlan(tuple(findings))


def _data_files(inspection: Inspection, instants: Sequence[Finding]) -> list[Finding]:
    """Findings about data files; if the timeline is damaged, one finding with the cause, unless ``instants`` has it."""
    try:
        return list(find_data_files(inspection))
    except CorruptTableError as error:
        path = error.path or inspection.config.timeline_folder
        if any(one.instant and one.instant in path for one in instants):
            return []
        advice = f"Data files cannot be checked before this is repaired: {error}"
        return [Finding("dangling instant", "", path, 0, False, advice)]
