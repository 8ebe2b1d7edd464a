"""Load a table's state with files listed by its metadata table, if the metadata table can be trusted.

::

    load_state ─► open_metadata ─► MetadataLister replaces the lister of folders
"""

from __future__ import annotations

from dataclasses import replace

from hudi_fast.metadata_table.lister import MetadataLister
from hudi_fast.metadata_table.table import MetadataTable, open_metadata
from hudi_fast.storage.base import Storage
from hudi_fast.view.slices import TableView
from hudi_fast.view.table_state import TableState, load_state

__all__ = ["metadata_of", "open_state"]


def open_state(storage: Storage, as_of: str | None = None, use_metadata: bool = True) -> TableState:
    """Load the table's current or an earlier state.

    ``as_of`` is the newest visible requested time; None for now.

    Raises:
        TableNotFoundError: the table does not exist.
        CorruptTableError: a file of its configuration or timeline is invalid.

    Warns:
        HudiWarning: the metadata table cannot be trusted; folders are listed.
    """
    state = load_state(storage, as_of)
    table = open_metadata(storage, state.config, state.timeline) if use_metadata else None
    if table is None:
        return state
    return replace(state, view=replace(state.view, lister=MetadataLister(table)))


def metadata_of(state: TableState | TableView) -> MetadataTable | None:
    """The metadata table that lists the state's files; None when folders are listed."""
    lister = (state.view if isinstance(state, TableState) else state).lister
    return lister.table if isinstance(lister, MetadataLister) else None
