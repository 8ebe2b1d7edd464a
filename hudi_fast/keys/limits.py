"""The longest record keys and partition paths that a table's storage and its record index can hold.

==================  ======================  =====================================================
storage             one folder name         path below the bucket or the root
==================  ======================  =====================================================
local               255 bytes               4095 bytes (Linux)
HDFS                255 bytes               8000 characters (``dfs.namenode.fs-limits.*``, ``DFSUtil``)
S3, Google, Azure   as the path             1024 bytes
fsspec              unknown                 unknown
==================  ======================  =====================================================

Files below a partition, and their markers below ``.hoodie/.temp``, need room, too. Record keys are limited by HFiles,
of the record index and of log blocks: HBase stores the length of a key as a short.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from hudi_fast.storage.base import Storage
from hudi_fast.storage.places import scheme_of

__all__ = ["LONGEST_KEY", "NO_LIMITS", "KeyLimits", "limits_of"]

_FILES = 200
"""Bytes reserved for ``.hoodie/.temp/<instant>/`` and the name of a file or its marker."""

LONGEST_KEY = 0x7FFF
"""Bytes of the longest key of an HFile."""

_LOCAL, _HDFS, _OBJECTS = (255, 4095), (255, 8000), (0, 1024)
_OF_SCHEME = {
    "file": _LOCAL,
    **dict.fromkeys(("hdfs", "viewfs"), _HDFS),
    **dict.fromkeys(("s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss", "wasb", "wasbs", "az"), _OBJECTS),
}


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """Longest names in bytes; 0 for no known limit.

    Attributes:
        part: for one folder of a partition path.
        path: for a partition path.
        key: for a record key.
    """

    part: int = 0
    path: int = 0
    key: int = 0

    def path_fault(self, path: str) -> str | None:
        """Why a partition path is too long; None if it fits."""
        if len(path) * 4 <= min(self.part or self.path, self.path):  # UTF-8 has four bytes a character at most
            return None
        longest = max(len(part.encode()) for part in path.split("/"))
        if self.part and longest > self.part:
            return f"has a part of {longest} bytes, and the storage of this table takes {self.part}"
        if self.path and len(path.encode()) > self.path:
            return f"has {len(path.encode())} bytes, and the storage of this table leaves {self.path} for it"
        return None


NO_LIMITS = KeyLimits()
"""Limits of keys and paths that are only read: none."""


def limits_of(storage: Storage, metadata_partitions: Collection[str], hfile_blocks: bool = False) -> KeyLimits:
    """The limits of a table.

    Args:
        storage: of the table.
        metadata_partitions: partitions of its metadata table once the write is visible.
        hfile_blocks: whether rows are written to HFile blocks of log files.
    """
    part, whole = _OF_SCHEME.get(scheme_of(storage.uri), (0, 0))
    root = storage.fs_path("")
    taken = root if part else root.partition("/")[2]  # without the bucket
    path = max(1, whole - len(taken.encode()) - _FILES) if whole else 0
    return KeyLimits(part, path, LONGEST_KEY if hfile_blocks or "record_index" in metadata_partitions else 0)
