"""Skip file groups by record keys in the filter, for tables with a bucket index.

::

    record keys ─► hash, by the rules of all releases ─► buckets ─► slices of these buckets

The table stores the ranges of consistent hashing. It does not store a fixed number of buckets: that number comes from
the read options, and a partition whose file groups do not fit it is not skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.index.bucket import bucket_count, bucket_number, bucket_of_keys, load_bucket_counts
from hudi_fast.index.consistent import has_hashing, load_hashing, node_of_keys
from hudi_fast.index.tagging import BucketSettings
from hudi_fast.kernels.bucket_hash import ANY_COLON, COMMA_AND_COLON
from hudi_fast.view.slices import FileSlice
from hudi_fast.view.table_state import TableState

__all__ = ["bucket_matches", "bucket_settings"]

_RULES = (COMMA_AND_COLON, ANY_COLON)
_COUNT = "hoodie.bucket.index.num.buckets"


def bucket_settings(options: Mapping[str, Any]) -> BucketSettings | None:
    """The settings of a fixed number of buckets in read options; None if they are incomplete.

    They are complete with ``hoodie.index.type=BUCKET``, the simple engine, and a number of buckets.
    """
    engine = str(options.get("hoodie.index.bucket.engine", "SIMPLE")).upper()
    count = str(options.get(_COUNT, ""))
    if str(options.get("hoodie.index.type", "")).upper() != "BUCKET" or engine != "SIMPLE" or not count.isdecimal():
        return None
    fields = str(options.get("hoodie.bucket.index.hash.field", ""))
    return BucketSettings(count=int(count), hash_fields=tuple(name.strip() for name in fields.split(",") if name))


def bucket_matches(
    state: TableState, slices: Sequence[FileSlice], keys: pa.Array, settings: BucketSettings | None
) -> npt.NDArray[np.bool_] | None:
    """bool[n]: slices that may hold one of the keys; None if the table's buckets are unknown.

    ``keys`` are string[k], record keys; ``settings`` come from the read options.

    Raises:
        HudiError: the table's stored bucket metadata is invalid.
    """
    fields = state.config.record_key_fields
    partitions = {one.partition for one in slices}
    if settings is not None:
        stored = load_bucket_counts(state.storage, state.timeline)
        overrides = () if stored is None else stored.overrides
        given = replace(settings, hash_fields=settings.hash_fields or fields, overrides=overrides)
        wanted = {path: _simple(path, slices, keys, given) for path in partitions}
    elif state.config.is_mor and len(fields) == 1 and has_hashing(state.storage):
        wanted = {path: _consistent(state, path, keys) for path in partitions}
    else:
        return None
    kept = ((found := wanted[one.partition]) is None or one.file_id in found for one in slices)
    return np.fromiter(kept, dtype=np.bool_, count=len(slices))


def _simple(path: str, slices: Iterable[FileSlice], keys: pa.Array, settings: BucketSettings) -> set[str] | None:
    """File ids of the keys' buckets in a partition; None when its file groups do not fit the number of buckets."""
    numbers = {one.file_id: bucket_number(one.file_id) for one in slices if one.partition == path}
    count = bucket_count(settings, path)
    if count < 1 or any(number is None or number >= count for number in numbers.values()):
        return None
    rules = (replace(settings, key_rule=rule) for rule in _RULES)
    wanted = {int(number) for rule in rules for number in bucket_of_keys(keys, rule, path)}
    return {file_id for file_id, number in numbers.items() if number in wanted}


def _consistent(state: TableState, path: str, keys: pa.Array) -> set[str] | None:
    """File ids of the keys' ranges; None when the partition has no ranges."""
    metadata = load_hashing(state.storage, state.timeline, path)
    if metadata is None:
        return None
    fields = state.config.record_key_fields
    rules = (BucketSettings("CONSISTENT_HASHING", hash_fields=fields, key_rule=rule) for rule in _RULES)
    return {metadata.nodes[number].file_id for rule in rules for number in node_of_keys(keys, rule, metadata)}
