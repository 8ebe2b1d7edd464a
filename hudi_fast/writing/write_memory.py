"""Remembers facts about the writes of this process, so that it need not ask storage for each file.

A process keeps the knowledge of its last few writes, by table and instant; all tasks of a write in one process share
it. Thread-safe.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, field

from hudi_fast.storage.base import Storage
from hudi_fast.storage.forks import new_lock

__all__ = ["WriteMemory", "memory_of"]

_MAX_WRITES = 16


@dataclass(slots=True)
class WriteMemory:
    """Knowledge of one write; mutable.

    Attributes:
        seen_open: when its marker folder was last seen, by the monotonic clock in seconds.
        announced: data files that the task in this process has announced, relative to the table, with the types of
            their markers.
        partitions: partition paths that have a partition marker.
    """

    seen_open: float = -math.inf
    announced: dict[str, str] = field(default_factory=dict)
    partitions: set[str] = field(default_factory=set)


_lock = new_lock()
_memories: OrderedDict[tuple[str, str], WriteMemory] = OrderedDict()


def memory_of(storage: Storage, instant: str) -> WriteMemory:
    """The knowledge of a write.

    Args:
        storage: the table's storage.
        instant: requested time of the write.
    """
    key = storage.fs_path(""), instant
    with _lock:
        found = _memories.setdefault(key, WriteMemory())
        _memories.move_to_end(key)
        while len(_memories) > _MAX_WRITES:
            _memories.popitem(last=False)
    return found
