"""The state of a table that a query is to see, and the times that cannot be travelled to.

Sources: ``TimelineUtils.validateTimestampAsOf``, ``HoodieTimeTravelException`` (Hudi 1.2.0).
"""

from __future__ import annotations

from hudi_fast.errors import ConfigError
from hudi_fast.metadata.state import open_state
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import read_instant_body
from hudi_fast.timeline.plans import decode_clean_metadata
from hudi_fast.view.table_state import TableState

__all__ = ["state_for_query"]


def state_for_query(storage: Storage, as_of: str | None, use_metadata: bool = True) -> TableState:
    """The table now, or as it was.

    Args:
        storage: the table's storage.
        as_of: newest requested time that counts, as digits; None for now.
        use_metadata: whether files may be found through the table's metadata table.

    Raises:
        ConfigError: a write was under way at that time, or the cleaner has removed what it needs.
    """
    state = open_state(storage, as_of, use_metadata)
    if as_of is None:
        return state
    _refuse_pending(state, as_of)
    _refuse_cleaned(state, as_of)
    return state


def _refuse_pending(state: TableState, as_of: str) -> None:
    services = {instant.requested for instant in state.pending_services}
    pending = [one.requested for one in state.timeline.pending_writes if one.requested not in services]
    first = min(pending, default=None)
    if first is not None and as_of >= first:
        raise ConfigError(
            f"Time travel's timestamp '{as_of}' must be earlier than the first incomplete commit timestamp '{first}' "
            f"of {state.storage.uri}."
        )


def _refuse_cleaned(state: TableState, as_of: str) -> None:
    cleans = [one for one in state.timeline.of_action("clean") if one.completion is not None]
    if not cleans:
        return
    path = f"{state.config.timeline_folder}/{cleans[-1].file_name}"
    clean = decode_clean_metadata(read_instant_body(state.storage, state.config, cleans[-1]), path)
    retained = clean.earliest_instant_to_retain or state.timeline.first_write_requested or ""
    saved = {one.requested for one in state.timeline.of_action("savepoint")}
    if as_of < retained and as_of not in saved:
        raise ConfigError(
            f"Cleaner cleaned up the timestamp of interest: {as_of} is older than {retained}, the earliest instant "
            f"that {state.storage.uri} retains. Travel to a later time, or retain more commits."
        )
