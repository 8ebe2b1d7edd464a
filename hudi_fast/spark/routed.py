"""The routed plan: stored keys are joined to incoming ones by Spark, then rows go to the task of their file group.

For global indexes, whose keys may be stored in any partition, and for tables without partitions, where one task would
have all the work otherwise.

::

    incoming rows + key ─┐
                         ├─ left join on the key ─► file group of each row, or none ─► one shuffle ─► tasks
    stored keys, files ──┘

A row with a file group goes to the task that owns it; a row without goes to a task by the hash of its key, and that
task fills the small files that it owns before it makes new ones. So up to one partly filled file arises per task.
"""

from __future__ import annotations

from typing import Any

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.writing.plan import WritePlan

__all__ = ["run_routed"]


def run_routed(df: Any, plan: WritePlan) -> list[Any]:
    """Join, shuffle, write; the collected answers."""
    raise UnsupportedFeatureError("routed")
