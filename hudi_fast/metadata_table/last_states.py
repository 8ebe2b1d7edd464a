"""The last states of the tables that this process reads and writes.

::

    end of a write, or a read ─► keep_state ─► last_state ─► open_state(known=...) of the next: used if nothing changed

Small reads and writes of one table would otherwise read its commits, list its files and read the same records of the
metadata table before each of them.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

from hudi_fast.metadata_table.state import can_be_kept, metadata_of, open_state
from hudi_fast.storage.base import Storage
from hudi_fast.storage.forks import new_lock
from hudi_fast.view.table_state import TableState

__all__ = ["current_state", "keep_state", "last_state"]

_TABLES = 4
_CACHED_BYTES = 128 << 20
"""Maximum bytes of decompressed HFile blocks of all kept tables; the last table is kept at any size."""
_LOCK = new_lock()
_STATES: OrderedDict[str, TableState] = OrderedDict()
"""By folder of the table; the most recently used one is the last."""


def current_state(storage: Storage) -> TableState:
    """The table now, for a read: the last state of this process if nothing has changed since.

    Raises:
        HudiError: as :func:`hudi_fast.metadata_table.state.open_state`.
    """
    state = open_state(storage, known=last_state(storage))
    keep_state(state)
    return state


def keep_state(state: TableState) -> None:
    """Keep the state of a table in place of an earlier one, if it can be used again."""
    if type(state.storage) is not Storage or not can_be_kept(state):
        return
    folder = state.storage.fs_path("")
    with _LOCK:
        _STATES[folder] = replace(state, commits=state.commits.of_few_files())
        _STATES.move_to_end(folder)
        while len(_STATES) > _TABLES or (len(_STATES) > 1 and _cached_bytes() > _CACHED_BYTES):
            _STATES.popitem(last=False)


def last_state(storage: Storage) -> TableState | None:
    """The last state of the table at a storage; None if none was kept, or with other connection options."""
    if type(storage) is not Storage:
        return None
    with _LOCK:
        found = _STATES.get(storage.fs_path(""))
    if found is None or (found.storage.uri, found.storage.options) != (storage.uri, storage.options):
        return None
    return found


def _cached_bytes() -> int:
    tables = map(metadata_of, _STATES.values())
    return sum(table.blocks.nbytes for table in tables if table is not None)
