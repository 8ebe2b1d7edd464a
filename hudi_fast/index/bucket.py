"""The bucket index: the hash of a key gives the file group in its partition, without a lookup.

::

    record key ─► values of the hashed fields ─► hash ─► bucket number ─► the file group whose id starts with it

With the engine ``SIMPLE`` a partition has a fixed number of buckets: the table's, or one that a file of the table sets
for partition paths that match a pattern. A bucket's file group is created with its first row. For
``CONSISTENT_HASHING`` see :mod:`hudi_fast.index.consistent`.

Sources: ``BucketIdentifier``, ``HoodieSimpleBucketIndex``, ``PartitionBucketIndexHashingConfig`` (Hudi 1.2.0).
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import ConfigError, CorruptTableError, UnsupportedFeatureError
from hudi_fast.formats.varlen import single_chunk, varlen_buffers
from hudi_fast.index.tagging import BucketSettings
from hudi_fast.kernels.bucket_hash import list_hashes
from hudi_fast.storage.base import Storage
from hudi_fast.storage.stored_json import stored_json
from hudi_fast.timeline.active import Timeline
from hudi_fast.view.slices import FileSlice

__all__ = [
    "BucketCounts",
    "bucket_count",
    "bucket_counts_path",
    "bucket_file_id",
    "bucket_number",
    "bucket_of_keys",
    "load_bucket_counts",
    "parse_bucket_expressions",
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
