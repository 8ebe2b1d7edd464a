"""Load a table's state with files listed by its metadata table, if the metadata table can be trusted.

::

    configuration, timeline ─► checked ─► open_metadata ─► the lister: MetadataLister, or folders ─► state

A process that writes to a table repeatedly passes its last state as the known one. That state is returned if the
configurations, both timelines, the index definitions and the files of the metadata table are unchanged, because all
else follows from them and from files that never change under their names.
"""

from __future__ import annotations

from dataclasses import replace

from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import HudiError
from hudi_fast.metadata_table.definitions import load_definitions
from hudi_fast.metadata_table.lister import MetadataLister
from hudi_fast.metadata_table.table import MetadataTable, open_metadata
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import load_timeline
from hudi_fast.timeline.archive.timeline import ArchivedTimes
from hudi_fast.view.listing import StorageLister
from hudi_fast.view.lost_content import require_bodies
from hudi_fast.view.moved_instants import require_whole
from hudi_fast.view.slices import TableView
from hudi_fast.view.table_state import TableState, load_timeline_of, looked_again, state_of

__all__ = ["can_be_kept", "metadata_of", "open_state"]

_LAYOUT_WITH_COMPLETION_TIMES = 2


def open_state(
    storage: Storage,
    as_of: str | None = None,
    use_metadata: bool = True,
    known: TableState | None = None,
    may_lack_bodies: bool = False,
) -> TableState:
    """Load the table's current or an earlier state.

    Args:
        storage: the table's storage.
        as_of: the newest visible requested time; None for now.
        use_metadata: whether to list files by the metadata table.
        known: an earlier current state that :func:`can_be_kept`; used if nothing has changed since.
        may_lack_bodies: whether completed writes may have lost their bodies, for example when they are rolled back.

    Raises:
        TableNotFoundError: the table does not exist.
        CorruptTableError: a file of its configuration or timeline is invalid.

    Warns:
        HudiWarning: the metadata table cannot be trusted; folders are listed.
    """
    known = None if known is None else _opened_by(storage, known)

    def load() -> TableState:
        config, timeline = load_timeline_of(storage)
        if known is not None and (config, timeline) == (known.config, known.timeline) and _has_current_metadata(known):
            return known
        require_whole(storage, config, timeline)
        if not may_lack_bodies:
            require_bodies(storage, timeline, as_of)
        table = open_metadata(storage, config, timeline) if use_metadata else None
        lister = StorageLister(storage) if table is None else MetadataLister(table)
        return state_of(storage, config, timeline, lister, as_of)

    return looked_again(load)


def metadata_of(state: TableState | TableView) -> MetadataTable | None:
    """The metadata table that lists the state's files; None when folders are listed."""
    lister = (state.view if isinstance(state, TableState) else state).lister
    return lister.table if isinstance(lister, MetadataLister) else None


def can_be_kept(state: TableState) -> bool:
    """Whether :func:`open_state` can find out that a known state is current without reading all of it again.

    Before table version 8 instants have no completion times, and listings of folders may change at any time.
    """
    view = state.view
    if metadata_of(state) is None or view.lister.lists_folders:
        return False
    if view.as_of is not None or view.history is not None or view.sources is not None:
        return False
    return state.config.layout_version >= _LAYOUT_WITH_COMPLETION_TIMES


def _opened_by(storage: Storage, known: TableState) -> TableState:
    """The state on another storage object, since credentials of the earlier one may have expired."""
    view, lister = known.view, known.view.lister
    if isinstance(lister, MetadataLister):
        lister = lister.on(lister.table.opened_by(storage))
    view = replace(view, lister=lister, archive=ArchivedTimes(storage, known.config.history_folder))
    return replace(known, storage=storage, view=view)


def _has_current_metadata(known: TableState) -> bool:
    """Whether the metadata table is unchanged since the known state, whose data timeline is current.

    Its files are listed as well: a commit on top of a damaged metadata table would hide the damage.
    """
    table = metadata_of(known)
    if table is None:
        return False
    try:
        return (
            TableConfig.from_properties(load_properties(table.storage), table.storage.uri) == table.config
            and load_timeline(table.storage, table.config) == table.timeline
            and load_definitions(table.data_storage, known.config) == table.definitions
            and table.has_all_files()
        )
    except (HudiError, OSError):
        return False  # opening the metadata table again reports why it cannot be trusted
