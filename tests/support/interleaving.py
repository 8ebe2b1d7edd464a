"""Two writers whose steps come in a known order: one of them goes on while the other is between its two sections.

::

    A: lock, begin, unlock ─► write its files ─► ........ ─► lock, conflicts, commit
                                               meanwhile()

Nothing waits for anything: where several writers may be at work no lock is held there, so the other one runs to its end
in the same thread.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.table.services import TableServices
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.flow import WriteResult
from hudi_fast.writing.local import LocalEngine
from hudi_fast.writing.write_plan import WriteOutcome, WritePlan
from tests.support.mor_tables import mor_options
from tests.support.sessions import InjectedServices, MeanwhileBackend, write_engine
from tests.support.small_tables import assert_tidy, options, table_rows

__all__ = [
    "NBCC",
    "OCC",
    "PREFER_WRITER",
    "InterleavedEngine",
    "LateEngine",
    "assert_sound",
    "pending_of",
    "services",
    "services_during",
    "settings_for",
    "write_during",
]

_CLIENT = "org.apache.hudi.client.transaction."
IN_PROCESS = f"{_CLIENT}lock.InProcessLockProvider"
OCC = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": IN_PROCESS,
    "hoodie.time.generator.max_expected_clock_skew_ms": "1",
}
NBCC = {**OCC, "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}
PREFER_WRITER = {
    "hoodie.write.lock.conflict.resolution.strategy": f"{_CLIENT}PreferWriterConflictResolutionStrategy",
}
_QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


class InterleavedEngine(LocalEngine):
    """Lets others go on once its files are written, each time that it is asked to write them.

    Args:
        source: the rows.
        meanwhile: what others do.
    """

    def __init__(self, source: pa.Table, meanwhile: Callable[[], object]) -> None:
        super().__init__(source)
        self._meanwhile = meanwhile
        self.plans: list[WritePlan] = []

    def execute(self, plan: WritePlan) -> WriteOutcome:
        """Write the rows, and wait for the others."""
        self.plans.append(plan)
        outcome = super().execute(plan)
        self._meanwhile()
        return outcome


class LateEngine(InterleavedEngine):
    """Lets others go on before it reads what the table holds, the first time that it is asked to."""

    def execute(self, plan: WritePlan) -> WriteOutcome:
        """Wait for the others, and write the rows."""
        meanwhile, self._meanwhile = self._meanwhile, lambda: None
        meanwhile()
        return super().execute(plan)


def settings_for(kind: str, version: str, more: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Options of one of several writers to a table of kind ``COW`` or ``MOR``; nothing runs beside its writes."""
    base = mor_options(**changes, table_version=version) if kind == "MOR" else options(**changes, table_version=version)
    return {**base, **OCC, **_QUIET, **(more or {})}


def write_during(
    path: Path, rows: pa.Table, settings: dict[str, Any], meanwhile: Callable[[], object], mode: str = "append"
) -> WriteResult:
    """Write rows; ``meanwhile`` runs between the two sections of the write."""
    engine = InterleavedEngine(rows, meanwhile)
    return write_engine(engine, Storage(path), settings, mode)


def services_during(path: Path, meanwhile: Callable[[], object]) -> TableServices:
    """The services of a table; called with ``spark=True`` they let others go on between their work and its commit."""
    return InjectedServices(Storage(path), MeanwhileBackend(meanwhile))


def pending_of(path: Path) -> list[str]:
    """Requested times of pending instants."""
    return [one.requested for one in load_state(Storage(path)).timeline.pending()]


def services(path: Path) -> TableServices:
    """The services of a table."""
    return hf.HudiTable.open(path).services


def assert_sound(path: Path, rows: dict[str, tuple[Any, ...]]) -> None:
    """Nothing is left over, the metadata table says what there is, and the table holds these rows."""
    assert_tidy(path)
    assert sum(services(path).validate().summary.column("differences").to_pylist()) == 0
    assert table_rows(path) == rows
