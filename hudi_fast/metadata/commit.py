"""A change of the table goes into its metadata table: one delta commit there, complete before the table's own.

::

    TableChange ─► producers' sources ─► runner ─► GroupWriter ─► log files ─► deltacommit of the same instant
"""

from __future__ import annotations

from hudi_fast.metadata.groups import GroupTarget, GroupWriter

__all__ = ["GroupTarget", "GroupWriter"]
