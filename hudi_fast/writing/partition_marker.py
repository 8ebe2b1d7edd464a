"""The partition marker: a file that identifies a folder as a partition (``HoodiePartitionMetadata``, Hudi 1.2.0).

A table names one format for its markers. As in Hudi, a marker of another format does not count for a writer, only for
readers.
"""

from __future__ import annotations

import contextlib
import time

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_fast.config.properties import format_properties
from hudi_fast.storage.base import Storage
from hudi_fast.view.listing import PARTITION_MARKERS
from hudi_fast.writing.write_memory import memory_of

__all__ = ["ensure_partition_marker"]


def ensure_partition_marker(storage: Storage, partition: str, instant: str, in_base_format: bool) -> None:
    """Create the marker if the partition has none in this format; an existing one is never rewritten.

    A process looks once per partition and write.

    Args:
        storage: the table's storage.
        partition: partition path; ``""`` for a table without partitions.
        instant: the write that creates the partition.
        in_base_format: write an empty Parquet file instead of a properties file.
    """
    known = memory_of(storage, instant).partitions
    if partition in known:
        return
    path = f"{partition}/{PARTITION_MARKERS[in_base_format]}".lstrip("/")
    if not storage.has_file(path):
        with contextlib.suppress(FileExistsError):  # another task was first
            storage.create_exclusive(path, _content(partition, instant, in_base_format))
    known.add(partition)


def _content(partition: str, instant: str, in_base_format: bool) -> bytes:
    values = {"commitTime": instant, "partitionDepth": str(len(partition.split("/")) if partition else 0)}
    if in_base_format:
        return _as_parquet(values)
    text = format_properties(values, ["partition metadata", time.strftime("%a %b %d %H:%M:%S %Z %Y")])
    return text.encode("iso-8859-1")


def _as_parquet(values: dict[str, str]) -> bytes:
    schema, sink = pa.schema([pa.field("dummyint", pa.int64())]), pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, store_schema=False) as writer:
        writer.add_key_value_metadata(values)
    return bytes(sink.getvalue())
