"""The bucket indexes: a hash of the key gives the file group.

The bucket index: the hash of a key gives the file group in its partition, without a lookup.

::

    record key ─► values of the hashed fields ─► hash ─► bucket number ─► the file group whose id starts with it

With the engine ``SIMPLE`` a partition has a fixed number of buckets: the table's, or one that a file of the table sets
for partition paths that match a pattern. A bucket's file group is created with its first row. For
``CONSISTENT_HASHING`` see :mod:`hudi_fast.index.buckets`.

Sources: ``BucketIdentifier``, ``HoodieSimpleBucketIndex``, ``PartitionBucketIndexHashingConfig`` (Hudi 1.2.0).

Consistent hashing: buckets are ranges of hashes that are split and merged as data grows and shrinks.

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
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import ConfigError, CorruptTableError, UnsupportedFeatureError
from hudi_fast.formats.varlen import single_chunk, varlen_buffers
from hudi_fast.index.tagging import BucketSettings
from hudi_fast.kernels.hashes import joined_hashes, list_hashes
from hudi_fast.storage.base import Storage
from hudi_fast.storage.untrusted import stored_json
from hudi_fast.timeline.instants import Timeline
from hudi_fast.values import dataclass
from hudi_fast.view.planned_files import HASHING_FOLDER
from hudi_fast.view.slices import FileSlice

__all__ = [
    "FIRST_INSTANT",
    "HASH_RANGE",
    "BucketCounts",
    "HashingMetadata",
    "HashingNode",
    "bucket_count",
    "bucket_counts_path",
    "bucket_file_id",
    "bucket_number",
    "bucket_of_keys",
    "encode_hashing",
    "first_hashing",
    "has_hashing",
    "hashing_path",
    "load_bucket_counts",
    "load_hashing",
    "load_or_make_hashing",
    "marker_path",
    "node_of_keys",
    "parse_bucket_expressions",
    "parse_hashing",
    "renewed_hashing",
    "save_bucket_counts",
    "shared_bucket_file_id",
    "slices_by_bucket",
]

_CONFIG_FOLDER = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
_CONFIG_SUFFIX = ".hashing_config"
_NEVER_PENDING = "00000000000000"
"""Prefix of instants for files of a table without writes."""

_DIGITS = 8


def bucket_of_keys(keys: pa.Array, settings: BucketSettings, partition: str = "") -> npt.NDArray[np.int32]:
    """The bucket of each key, for the engine ``SIMPLE``: int32[n], from 0.

    ``keys`` are n record keys (string, no nulls), as the table stores them.
    """
    buffers = varlen_buffers(single_chunk(keys))
    hashes = list_hashes(buffers.offsets, buffers.data, settings.hash_fields, settings.key_rule)
    return (hashes & np.int32(0x7FFFFFFF)) % np.int32(bucket_count(settings, partition))


def bucket_count(settings: BucketSettings, partition: str) -> int:
    """Number of buckets of a partition: of the first pattern found in its path, else the table's."""
    found = (count for pattern, count in settings.overrides if _matches(pattern, partition))
    return next(found, settings.count)


def _matches(pattern: str, partition: str) -> bool:
    """Whether the pattern is found in the path: by RE2, whose time is linear, because both come from the table."""
    return bool(pc.match_substring_regex(pa.scalar(partition, pa.string()), pattern).as_py())


def bucket_number(file_id: str) -> int | None:
    """The bucket of a file group; None when its id does not start with a number."""
    head = file_id[:_DIGITS]
    return int(head) if len(head) == _DIGITS and head.isascii() and head.isdigit() else None


def bucket_file_id(number: int, *seed: str) -> str:
    """The id of a new file group for a bucket; equal for equal ``seed``, which identifies its purpose."""
    random = uuid.UUID(bytes=hashlib.md5("\n".join([*seed, str(number)]).encode()).digest(), version=4)
    return f"{number:0{_DIGITS}d}{str(random)[_DIGITS:]}-0"


def shared_bucket_file_id(number: int) -> str:
    """The fixed id of a bucket's file group that several writers may create concurrently.

    Source: ``BucketIdentifier#newBucketFileIdForNBCC`` (Hudi 1.2.0).
    """
    return f"{number:0{_DIGITS}d}-0000-0000-0000-000000000000-0"


def slices_by_bucket(slices: Iterable[FileSlice], count: int, where: str) -> dict[int, FileSlice]:
    """The slice of each bucket with rows in a partition.

    ``slices`` are the partition's newest slices.

    Raises:
        ConfigError: a file group's bucket is outside that number: the table was written with other settings.
        CorruptTableError: two file groups for one bucket.
    """
    found: dict[int, FileSlice] = {}
    for one in slices:
        number = bucket_number(one.file_id)
        if number is None or number >= count:
            raise ConfigError(
                f"The partition {one.partition!r} of {where} has the file group {one.file_id}, which is not one of "
                f"{count} buckets. The table was written with another hoodie.bucket.index.num.buckets or another "
                "hoodie.index.type; use those values. A table's number of buckets does not change."
            )
        if number in found:
            raise CorruptTableError(
                f"The partition {one.partition!r} of {where} has two file groups for bucket {number}: "
                f"{found[number].file_id} and {one.file_id}. Two concurrent writers created the bucket, or bulk_insert "
                "ran twice. Delete one of them with Apache Hudi and write its rows again."
            )
        found[number] = one
    return found


@dataclass(frozen=True, slots=True)
class BucketCounts:
    """The bucket counts that a table stores.

    Attributes:
        expressions: patterns and counts as text: ``pattern,count;pattern,count``.
        overrides: the same as values, in order of precedence.
        default: count of partitions that no pattern is found in.
    """

    expressions: str
    overrides: tuple[tuple[str, int], ...]
    default: int


def load_bucket_counts(storage: Storage, timeline: Timeline) -> BucketCounts | None:
    """The table's bucket counts by partition; None if all partitions have the same.

    Raises:
        CorruptTableError: the file is invalid.
        UnsupportedFeatureError: a rule other than ``regex``, or a pattern that RE2 does not support.
    """
    names = [entry.name for entry in storage.list_dir(_CONFIG_FOLDER) if entry.name.endswith(_CONFIG_SUFFIX)]
    complete = [name for name in names if _is_complete(timeline, name.removesuffix(_CONFIG_SUFFIX))]
    if not complete:
        return None
    path = f"{_CONFIG_FOLDER}/{max(complete)}"
    try:
        stored = stored_json(storage.read_bytes(path))
        rule, expressions = str(stored["rule"]), str(stored["expressions"])
        default = int(stored["defaultBucketNumber"])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(f"Expected JSON with rule and expressions of bucket counts: {error}", path) from error
    if rule.lower() != "regex":
        raise UnsupportedFeatureError(
            f"Table {storage.uri} has bucket counts by partition with the rule {rule!r} [file {path}]; only "
            "regex is supported."
        )
    try:
        overrides = parse_bucket_expressions(expressions)
    except ConfigError as error:
        raise CorruptTableError(str(error), path) from error
    except UnsupportedFeatureError as error:
        raise UnsupportedFeatureError(f"{error} [file {path}]") from error
    return BucketCounts(expressions, overrides, default)


def save_bucket_counts(storage: Storage, expressions: str, default: int, instant: str = _NEVER_PENDING) -> None:
    """Store bucket counts where Apache Hudi finds them.

    Args:
        storage: of the table.
        expressions: patterns and counts as text.
        default: count of partitions that no pattern is found in.
        instant: of the replace commit that changes the counts; by default the counts are for a new table.

    Source: ``PartitionBucketIndexHashingConfig#saveHashingConfig`` (Hudi 1.2.0).
    """
    stored = {
        "expressions": expressions,
        "defaultBucketNumber": default,
        "rule": "regex",
        "version": 1,
        "instant": instant,
    }
    content = json.dumps(stored, indent=2, ensure_ascii=False).encode()
    storage.write_bytes(bucket_counts_path(instant), content)


def bucket_counts_path(instant: str) -> str:
    """Path of the bucket counts that an instant stores."""
    return f"{_CONFIG_FOLDER}/{instant}{_CONFIG_SUFFIX}"


def parse_bucket_expressions(text: str) -> tuple[tuple[str, int], ...]:
    """Patterns of partition paths and their bucket counts, from ``pattern,count;pattern,count``.

    Raises:
        ConfigError: the text has another form.
        UnsupportedFeatureError: a pattern that RE2 does not support.
    """
    return tuple(_override(one) for one in text.split(";") if one.strip())


def _is_complete(timeline: Timeline, instant: str) -> bool:
    return instant.startswith(_NEVER_PENDING) or timeline.is_completed_or_archived(instant)


def _override(text: str) -> tuple[str, int]:
    pattern, _, count = (part.strip() for part in text.partition(","))
    if not pattern or not count.isdecimal() or int(count) < 1:
        raise ConfigError(
            f"Expected a pattern of partition paths, a comma and a bucket count, between semicolons; found {text!r}. "
            "A pattern holds no comma."
        )
    try:
        _matches(pattern, "")
    except pa.ArrowInvalid as error:
        raise UnsupportedFeatureError(
            f"The pattern {pattern!r} of partitions with their own bucket count is not supported: {error}"
        ) from error
    return pattern, int(count)


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
