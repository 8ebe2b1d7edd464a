"""The partition marker: a file that identifies a folder as a partition (``HoodiePartitionMetadata``, Hudi 1.2.0)."""

from __future__ import annotations

import time

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_fast.config.properties import format_properties
from hudi_fast.storage.base import Storage
from hudi_fast.view.listing import PARTITION_MARKERS

__all__ = ["ensure_partition_marker"]


def ensure_partition_marker(storage: Storage, partition: str, instant: str, in_base_format: bool) -> None:
    """Create the marker if the partition has none; an existing one is never rewritten.

    Args:
        storage: the table's storage.
        partition: partition path; ``""`` for a table without partitions.
        instant: the write that creates the partition.
        in_base_format: write an empty Parquet file instead of a properties file.
    """
    folder = f"{partition}/" if partition else ""
    if any(storage.exists(folder + name) for name in PARTITION_MARKERS):
        return
    values = {"commitTime": instant, "partitionDepth": str(len(partition.split("/")) if partition else 0)}
    if in_base_format:
        name, content = PARTITION_MARKERS[1], _as_parquet(values)
    else:
        text = format_properties(values, ["partition metadata", time.strftime("%a %b %d %H:%M:%S %Z %Y")])
        name, content = PARTITION_MARKERS[0], text.encode("iso-8859-1")
    try:
        storage.create_exclusive(folder + name, content)
    except FileExistsError:
        return  # another task was first


def _as_parquet(values: dict[str, str]) -> bytes:
    schema, sink = pa.schema([pa.field("dummyint", pa.int64())]), pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, store_schema=False) as writer:
        writer.add_key_value_metadata(values)
    return bytes(sink.getvalue())
