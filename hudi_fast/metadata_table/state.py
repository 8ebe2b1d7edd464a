"""A table's state whose files are found through its metadata table, where that can be trusted.

::

    load_state ─► open_metadata ─► MetadataLister in the place of the one that lists folders
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
    """Load the table's present state, or the one that it had.

    Args:
        storage: the table's storage.
        as_of: newest requested time that counts; None for now.
        use_metadata: whether files may be found through the metadata table.

    Raises:
        TableNotFoundError: there is no table.
        CorruptTableError: a file of its configuration or timeline cannot be understood.

    Warns:
        HudiWarning: there is a metadata table that cannot be trusted; folders are listed.
    """
    state = load_state(storage, as_of)
    table = open_metadata(storage, state.config, state.timeline) if use_metadata else None
    if table is None:
        return state
    return replace(state, view=replace(state.view, lister=MetadataLister(table)))


def metadata_of(state: TableState | TableView) -> MetadataTable | None:
    """The metadata table that the state's files are found through; None when folders are listed."""
    lister = (state.view if isinstance(state, TableState) else state).lister
    return lister.table if isinstance(lister, MetadataLister) else None
