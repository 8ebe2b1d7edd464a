"""Tables to undo commits of: each kind and version, with every kind of index that a rollback must take back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.table.services import TableServices
from hudi_fast.timeline.instants import Instant
from hudi_fast.view.table_state import TableState, load_state
from tests.support.mor_tables import VERSIONS, mor_options
from tests.support.small_tables import options

__all__ = ["COW", "EVERY_INDEX", "KINDS", "MOR", "instants_of", "services", "services_on", "settings_of", "state_of"]

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
KINDS = [(kind, version) for kind in (COW, MOR) for version in VERSIONS]
EVERY_INDEX = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.global.record.level.index.min.filegroup.count": "2",
    "hoodie.metadata.global.record.level.index.max.filegroup.count": "2",
}
"""Record index, statistics and bloom filters, in few file groups."""

QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


def settings_of(kind: str, version: str, indexes: bool = True, **changes: Any) -> dict[str, Any]:
    """Options of a table of a kind and version; see ``small_tables.options`` for the changes."""
    made = mor_options if kind == MOR else options
    kept = EVERY_INDEX if indexes else {"hoodie.metadata.enable": "false"}
    return {**made(table_version=version, **changes), **kept, **QUIET}


def services(path: str | Path) -> TableServices:
    """The services of the table as it is now."""
    return hf.HudiTable.open(path).services


def services_on(storage: Storage) -> TableServices:
    """Services through a storage of the test's own."""
    return TableServices(storage)


def state_of(path: str | Path) -> TableState:
    """The table as it is now, its folders listed."""
    return load_state(Storage(path))


def instants_of(path: str | Path, *actions: str) -> list[Instant]:
    """Instants of the active timeline with one of these actions."""
    return list(state_of(path).timeline.of_action(*actions))
