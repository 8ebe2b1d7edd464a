"""Consistent hashing: buckets are ranges of hashes that are split and merged as data grows and shrinks.

::

    .hoodie/.bucket_index/consistent_hashing_metadata/<partition>/
        00000000000000.hashing_meta       the partition's first ranges, which determine their file groups
        <instant>.hashing_meta            the ranges that the clustering of that instant creates
        <instant>.commit                  an empty marker: that clustering is complete

    key ─► xxHash32 of the hashed values ─► the first range whose end is not below it ─► file group ``<prefix>-0``

A range has one file group from the start, so rows of new keys may be written to the log of a group without a base file.
:class:`HashingMetadata` holds the ranges, ascending; hashes above the last one belong to the first.

Sources: ``HoodieConsistentHashingMetadata``, ``ConsistentBucketIdentifier``, ``ConsistentBucketIndexUtils`` (Hudi
1.2.0).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import struct
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.varlen import single_chunk, varlen_buffers
from hudi_fast.index.tagging import BucketSettings
from hudi_fast.kernels.bucket_hash import joined_hashes
from hudi_fast.storage.base import Storage
from hudi_fast.storage.stored_json import stored_json
from hudi_fast.timeline.active import Timeline
from hudi_fast.view.named_files import HASHING_FOLDER

__all__ = [
    "FIRST_INSTANT",
    "HASH_RANGE",
    "HashingMetadata",
    "HashingNode",
    "encode_hashing",
    "first_hashing",
    "has_hashing",
    "hashing_path",
    "load_hashing",
    "load_or_make_hashing",
    "marker_path",
    "node_of_keys",
    "parse_hashing",
    "renewed_hashing",
]

HASH_RANGE = 2147483647
"""The largest hash: the initial end of the last range."""

FIRST_INSTANT = "00000000000000"
"""The instant of a partition's first ranges."""

_META, _MARKER = ".hashing_meta", ".commit"


@dataclass(frozen=True, slots=True)
class HashingNode:
    """One range of hashes.

    Attributes:
        value: the last hash of the range; it starts after the last hash of the previous range.
        prefix: a UUID; the file id of its group without ``-0``.
    """

    value: int
    prefix: str

    @property
    def file_id(self) -> str:
        """The file group."""
        return f"{self.prefix}-0"


@dataclass(frozen=True, slots=True)
class HashingMetadata:
    """The ranges of one partition.

    Attributes:
        instant: of the clustering that created them, or :data:`FIRST_INSTANT`.
        sequence: number of changes so far.
        nodes: ascending by ``value``; at least one.
    """

    partition: str
    instant: str
    sequence: int
    nodes: tuple[HashingNode, ...]


def node_of_keys(keys: pa.Array, settings: BucketSettings, metadata: HashingMetadata) -> npt.NDArray[np.int32]:
    """The range of each key: int32[n], indexes into ``metadata.nodes``.

    ``keys`` are n record keys (string, no nulls), as the table stores them.
    """
    buffers = varlen_buffers(single_chunk(keys))
    hashes = joined_hashes(buffers.offsets, buffers.data, settings.hash_fields, settings.key_rule)
    ends = np.array([node.value for node in metadata.nodes], dtype=np.int32)
    found = np.searchsorted(ends, hashes, "left").astype(np.int32)
    found[found == len(ends)] = 0
    return found


def first_hashing(partition: str, count: int) -> HashingMetadata:
    """The first ranges of a partition with ``count`` buckets; the same for every writer."""
    step = (HASH_RANGE + count - 1) // count
    ends = [min(step * number, HASH_RANGE) for number in range(1, count + 1)]
    starts = [0, *ends]
    nodes = (HashingNode(end, _first_prefix(partition, start, end)) for start, end in zip(starts, ends, strict=False))
    return HashingMetadata(partition, FIRST_INSTANT, 0, tuple(nodes))


def renewed_hashing(before: HashingMetadata, instant: str, table: str) -> HashingMetadata:
    """The same ranges with new file groups, for rows that replace all rows of a partition.

    Args:
        before: the ranges now.
        instant: of the write.
        table: location of the table; tasks of one write make the same file groups.
    """
    seed = f"{table}\n{instant}\n{before.partition}\n"
    nodes = (HashingNode(one.value, _made_prefix(f"{seed}{one.value}".encode(), 4)) for one in before.nodes)
    return HashingMetadata(before.partition, instant, before.sequence + 1, tuple(nodes))


def load_or_make_hashing(storage: Storage, timeline: Timeline, partition: str, count: int) -> HashingMetadata:
    """The ranges of a partition; creates the ranges of :func:`first_hashing` if the partition has none.

    Concurrent tasks are safe: the first one to write wins, and all write the same content.

    Raises:
        CorruptTableError: see :func:`load_hashing`.
    """
    found = load_hashing(storage, timeline, partition)
    if found is not None:
        return found
    made = first_hashing(partition, count)
    with contextlib.suppress(FileExistsError):
        storage.create_exclusive(hashing_path(partition, FIRST_INSTANT), encode_hashing(made))
        return made
    return load_hashing(storage, timeline, partition) or made


def has_hashing(storage: Storage) -> bool:
    """Whether a table has ranges of any partition."""
    return bool(storage.list_dir(HASHING_FOLDER))  # one request; `exists` takes two where there is none


def load_hashing(storage: Storage, timeline: Timeline, partition: str) -> HashingMetadata | None:
    """The newest valid ranges of a partition; None when it has none.

    Ranges of a clustering are valid once it is complete: its marker exists, or the active timeline has it. Leftover
    ranges of a rolled-back clustering are never valid.

    Raises:
        CorruptTableError: the file is damaged, or the partition has files but no valid ranges.
    """
    folder = f"{HASHING_FOLDER}/{partition}" if partition else HASHING_FOLDER
    names = [entry.name for entry in storage.list_dir(folder) if not entry.is_dir]
    written = {name.removesuffix(_META) for name in names if name.endswith(_META)}
    marked = {name.removesuffix(_MARKER) for name in names if name.endswith(_MARKER)}
    complete = {one.requested for one in timeline.writes()}
    count = [one for one in written if one == FIRST_INSTANT or one in marked or one in complete]
    if count:
        return parse_hashing(storage.read_bytes(path := hashing_path(partition, max(count))), path)
    if written or marked:
        raise CorruptTableError(
            f"Partition {partition!r} of {storage.uri} has bucket ranges of the instants {sorted(written | marked)}, "
            "none of which is complete, and its first ranges are missing. Restore the file "
            f"{hashing_path(partition, FIRST_INSTANT)}",
            folder,
        )
    return None


def hashing_path(partition: str, instant: str) -> str:
    """Path of the ranges that an instant created."""
    return f"{HASHING_FOLDER}/{partition}/{instant}{_META}" if partition else f"{HASHING_FOLDER}/{instant}{_META}"


def marker_path(partition: str, instant: str) -> str:
    """Path of the marker that an instant's ranges are valid."""
    return hashing_path(partition, instant).removesuffix(_META) + _MARKER


def encode_hashing(metadata: HashingMetadata) -> bytes:
    """Encode ranges as file content."""
    nodes = [{"value": one.value, "fileIdPrefix": one.prefix, "tag": "NORMAL"} for one in metadata.nodes]
    fields = {
        "version": 0,
        "partitionPath": metadata.partition,
        "instant": metadata.instant,
        "numBuckets": len(nodes),
        "seqNo": metadata.sequence,
        "nodes": nodes,
    }
    return json.dumps(fields, indent=2, ensure_ascii=False).encode()


def parse_hashing(content: bytes, path: str) -> HashingMetadata:
    """Parse ranges from file content.

    Raises:
        CorruptTableError: the content is not such JSON, or the ranges do not ascend.
    """
    try:
        fields: Mapping[str, Any] = stored_json(content)
        nodes = tuple(HashingNode(int(one["value"]), str(one["fileIdPrefix"])) for one in fields["nodes"])
        metadata = HashingMetadata(
            str(fields["partitionPath"]), str(fields["instant"]), int(fields.get("seqNo", 0)), nodes
        )
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(f"Expected JSON with the bucket ranges of a partition: {error!r}", path) from error
    values = [one.value for one in nodes]
    if not values or values != sorted(set(values)) or not 0 <= values[0] <= values[-1] <= HASH_RANGE:
        raise CorruptTableError(f"Expected bucket ranges that ascend up to {HASH_RANGE}, found {values[:20]}", path)
    return metadata


def _first_prefix(partition: str, start: int, end: int) -> str:
    return _made_prefix(struct.pack(">qq", start, end) + partition.encode(), 3)


def _made_prefix(seed: bytes, version: int) -> str:
    return str(uuid.UUID(bytes=hashlib.md5(seed).digest(), version=version))
