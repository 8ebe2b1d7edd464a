"""New ranges of consistent hashing and new bucket counts, written with the replace commit that needs them.

::

    a resize, or an overwrite and the partitions whose groups it replaces
        ─► save_ranges: <instant>.hashing_meta with a marker, before the commit completes
        ─► confirm_ranges: <instant>.commit, after it

A replaced file group is never visible again, whatever is written to it. The ranges of an emptied partition therefore
get new file groups: :func:`renewed_ranges`. A rollback deletes the files, as it deletes data files.

Sources: ``ConsistentBucketIndexUtils``, ``HoodieSparkConsistentBucketIndex.updateLocation`` (Hudi 1.2.0). Releases of
Apache Hudi keep the ranges when they delete or overwrite a partition, and lose the rows that are written to it later.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence

from hudi_fast.errors import CommitConflictError
from hudi_fast.index.bucket import bucket_counts_path, save_bucket_counts
from hudi_fast.index.consistent import (
    HashingMetadata,
    encode_hashing,
    has_hashing,
    hashing_path,
    load_hashing,
    load_or_make_hashing,
    marker_path,
    renewed_hashing,
)
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline
from hudi_fast.writing.markers import create_marker

__all__ = ["change_counts", "confirm_ranges", "overwritten_ranges", "renewed_ranges", "save_ranges"]


def overwritten_ranges(storage: Storage, timeline: Timeline, partition: str, instant: str) -> HashingMetadata | None:
    """The ranges that an overwrite writes a partition's rows to; None if the partition has none yet.

    Raises:
        CorruptTableError: the stored ranges are damaged.
    """
    before = load_hashing(storage, timeline, partition)
    return None if before is None else renewed_hashing(before, instant, storage.uri)


def renewed_ranges(
    storage: Storage,
    timeline: Timeline,
    instant: str,
    replaced: Iterable[str],
    written: Mapping[str, Iterable[str]],
    count: int,
) -> list[HashingMetadata]:
    """The new ranges of an overwrite or a deletion of partitions; none for tables without ranges.

    Creates the first ranges of partitions that the write begins.

    Args:
        storage: of the table.
        timeline: of the table, under its lock.
        instant: of the write.
        replaced: partitions whose file groups it replaces.
        written: file ids that it wrote by consistent hashing, by partition.
        count: buckets of a new partition.

    Raises:
        CommitConflictError: the ranges of a partition were changed since the write began.
        CorruptTableError: the stored ranges are damaged.
    """
    if not written and not has_hashing(storage):
        return []
    found = []
    for partition in sorted({*replaced, *written}):
        ranges = overwritten_ranges(storage, timeline, partition, instant)
        if ranges is None:
            if partition in written:
                load_or_make_hashing(storage, timeline, partition, count)
            continue
        others = set(written.get(partition, ())) - {node.file_id for node in ranges.nodes}
        if others:
            raise CommitConflictError(
                f"The buckets of partition {partition!r} of {storage.uri} were split or merged while the write "
                f"{instant} ran: it wrote the file groups {sorted(others)[:5]}. Run the write again."
            )
        found.append(ranges)
    return found


def save_ranges(storage: Storage, instant: str, ranges: Sequence[HashingMetadata]) -> None:
    """Write new ranges, with a marker as for a data file, so that a rollback deletes them."""
    for one in ranges:
        path = hashing_path(one.partition, instant)
        create_marker(storage, instant, path, "CREATE")
        storage.write_bytes(path, encode_hashing(one))


def change_counts(storage: Storage, instant: str, expressions: str, default: int) -> None:
    """Write bucket counts by partition for a write that replaces all rows, with a marker as for a data file."""
    create_marker(storage, instant, bucket_counts_path(instant), "CREATE")
    save_bucket_counts(storage, expressions, default, instant)


def confirm_ranges(storage: Storage, instant: str, partitions: Iterable[str]) -> None:
    """Mark new ranges as valid, once their commit is complete."""
    for partition in partitions:
        with contextlib.suppress(OSError):  # the completed instant also shows it
            storage.write_bytes(marker_path(partition, instant), b"")
