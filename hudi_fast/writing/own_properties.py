"""Changes the properties that users keep with a table, in ``hoodie.properties``; no commit is made.

::

    the table's lock: backup ─► hoodie.properties anew ─► the backup is removed

The next change undoes one that a crash interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping

from hudi_fast.config.own_properties import own_properties
from hudi_fast.config.properties_file import update_properties
from hudi_fast.writing.session import TableSession

__all__ = ["set_own_properties"]


def set_own_properties(session: TableSession, changes: Mapping[str, str | None]) -> dict[str, str]:
    """Set and remove properties; all of them, or none. Returns all that users have set.

    Args:
        session: the call.
        changes: checked by :func:`hudi_fast.config.own_properties.checked_properties`.

    Raises:
        CommitConflictError: another process began a change at the same time.
        LockError: the lock cannot be acquired.
    """
    with session.locked():
        session.require_lock()
        properties = update_properties(session.storage, changes)
        session.changed()
    return own_properties(properties)
