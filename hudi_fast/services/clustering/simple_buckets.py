"""Clustering of tables with a simple bucket index: rows are sorted within their buckets, each of which stays one file.

::

    plan       one bucket to a group, one file group each; needs sort columns
    rewrite    bucket by bucket, also where a plan of Apache Hudi has several to a group ─► <bucket number>-<new id>-0

A bucket index finds rows only in the file group whose id begins with the number of their bucket. The new file group of
a bucket has the same number, so index and writers of both libraries find it; the old one is replaced.

Source: ``BucketBulkInsertDataInternalWriterHelper``, ``BucketIdentifier`` (Hudi 1.2.0).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

from hudi_fast.config.clustering_options import ClusteringOptions
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.index.bucket import bucket_file_id, bucket_number, shared_bucket_file_id
from hudi_fast.view.slices import FileSlice

__all__ = ["are_buckets", "new_bucket_prefix", "one_bucket_to_a_group", "require_buckets"]

_MANY = 10_000
"""Ids of other file groups rarely begin with eight digits, and almost never with a number below this one."""

_Groups = list[tuple[tuple[FileSlice, ...], int]]


def are_buckets(file_ids: Sequence[str], index_type: str) -> bool:
    """Whether file groups are buckets of a simple bucket index, by their ids: no property of a table says so.

    Args:
        file_ids: of the file groups of a plan.
        index_type: ``hoodie.index.type`` of the call.
    """
    numbers = [number for one in file_ids if (number := bucket_number(one)) is not None]
    return bool(file_ids) and (index_type == "BUCKET" or (len(numbers) == len(file_ids) and min(numbers) < _MANY))


def require_buckets(where: str, file_ids: Iterable[str]) -> None:
    """Refuse file groups whose buckets cannot get new file groups.

    Args:
        where: the table.
        file_ids: its file groups.

    Raises:
        ConfigError: a file group is not a bucket.
        UnsupportedFeatureError: a bucket's file group has the fixed id that non-blocking writers use.
    """
    for one in file_ids:
        number = bucket_number(one)
        if number is None:
            raise ConfigError(
                f"{where} has the file group {one}, which is no bucket. Give the index that the table was written with "
                "(hoodie.index.type)."
            )
        if one == shared_bucket_file_id(number):
            raise UnsupportedFeatureError(
                f"{where} has buckets of non-blocking concurrent writers, for example the file group {one}. All of "
                "them give a bucket that id, so a bucket that was clustered and then emptied could not be created "
                "again. Compact the table instead."
            )


def one_bucket_to_a_group(where: str, groups: _Groups, options: ClusteringOptions) -> _Groups:
    """Split groups so that each holds one bucket, which becomes one file group.

    Args:
        where: the table.
        groups: file slices, and the number of file groups that they become.
        options: the sort columns.

    Raises:
        ConfigError: a file group is not a bucket.
        UnsupportedFeatureError: there is no sort column, or there are buckets of non-blocking writers.
    """
    slices = [one for group, _ in groups for one in group]
    if not options.sort_columns:
        raise UnsupportedFeatureError(
            f"{where} has a bucket index, for example the file group {slices[0].file_id}: its rows cannot move to "
            "other file groups, because the index would not find them. Name columns in "
            "hoodie.clustering.plan.strategy.sort.columns to sort the rows of each bucket; compact the table instead; "
            "or use hoodie.index.bucket.engine=CONSISTENT_HASHING, whose buckets split and merge."
        )
    require_buckets(where, (one.file_id for one in slices))
    return [((one,), 1) for one in slices]


def new_bucket_prefix(file_id: str) -> str:
    """The id of a new file group for the bucket of a file group, without its last part ``-0``."""
    number = bucket_number(file_id)
    assert number is not None, "the plan was checked"
    return bucket_file_id(number, str(uuid.uuid4())).rpartition("-")[0]
