"""What does not belong in a table: looked for, named, left alone.

::

    look_at ─► instants (first: where plans are lost, data files cannot be judged) ─► data files ─► leftovers ─► plan

Nothing is written. Differences between the metadata table and the table are looked for by validation, which reads a
good part of both; here it is only told when the metadata table cannot be used at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from hudi_fast.errors import CorruptTableError
from hudi_fast.services.repairing.data_files import find_data_files
from hudi_fast.services.repairing.findings import FINDING_KINDS, Finding, RepairPlan
from hudi_fast.services.repairing.inspection import Look, look_at
from hudi_fast.services.repairing.instants import find_instants
from hudi_fast.services.repairing.leftovers import find_leftovers
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.heartbeat import HeartbeatRule

__all__ = ["plan_repair"]


def plan_repair(storage: Storage, heartbeat: HeartbeatRule, locked: bool = False) -> RepairPlan:
    """Look at everything below the table's folder; nothing is written.

    Args:
        storage: the table's storage.
        heartbeat: for how long signs of life count.
        locked: whether the caller holds the table's lock, so that nobody alive is at work on a write.

    Raises:
        TableNotFoundError: there is no table.
        CorruptTableError: ``hoodie.properties`` cannot be understood.
    """
    look = look_at(storage, heartbeat, locked)
    instants = list(find_instants(look))
    findings = [*instants, *_data_files(look, instants), *find_leftovers(look)]
    findings.sort(key=lambda one: (FINDING_KINDS.index(one.kind), one.instant, one.path))
    return RepairPlan(tuple(findings))


def _data_files(look: Look, instants: Sequence[Finding]) -> list[Finding]:
    """Findings about data files; where the timeline cannot be read, one that says why, if none has said it yet."""
    try:
        return list(find_data_files(look))
    except CorruptTableError as error:
        path = error.path or look.config.timeline_folder
        if any(one.instant and one.instant in path for one in instants):
            return []
        advice = f"Data files cannot be judged before this is mended: {error}"
        return [Finding("dangling instant", "", path, 0, False, advice)]
