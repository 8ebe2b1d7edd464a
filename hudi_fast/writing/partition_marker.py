"""The partition marker: a file that identifies a folder as a partition (``HoodiePartitionMetadata``, Hudi 1.2.0).

A table names one format for its markers. As in Hudi, a marker of another format does not count for a writer, only for
readers.
"""

from __future__ import annotations

import contextlib
import time

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_fast.config.properties import format_properties, parse_properties
from hudi_fast.storage.base import Storage
from hudi_fast.view.listing import PARTITION_MARKERS
from hudi_fast.writing.write_memory import memory_of

__all__ = ["ensure_partition_marker", "partition_created"]

_CREATED = "commitTime"


def ensure_partition_marker(storage: Storage, partition: str, instant: str, in_base_format: bool) -> None:
    """Create the marker if the partition has none in this format; an existing one is never rewritten.

    A process checks once per partition and write.

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


def partition_created(storage: Storage, partition: str) -> str | None:
    """The instant that created a partition: in its properties file, else in its Parquet marker; None if unknown.

    Args:
        storage: the table's storage.
        partition: partition path.
    """
    text, parquet, _ = (f"{partition}/{name}".lstrip("/") for name in PARTITION_MARKERS)
    with contextlib.suppress(FileNotFoundError):
        return parse_properties(storage.read_bytes(text).decode("iso-8859-1")).get(_CREATED)
    with contextlib.suppress(FileNotFoundError):
        found = (pq.read_metadata(pa.BufferReader(storage.read_bytes(parquet))).metadata or {}).get(_CREATED.encode())
        return None if found is None else found.decode()
    return None


def _content(partition: str, instant: str, in_base_format: bool) -> bytes:
    values = {_CREATED: instant, "partitionDepth": str(len(partition.split("/")) if partition else 0)}
    if in_base_format:
        return _as_parquet(values)
    text = format_properties(values, ["partition metadata", time.strftime("%a %b %d %H:%M:%S %Z %Y")])
    return text.encode("iso-8859-1")


def _as_parquet(values: dict[str, str]) -> bytes:
    schema, sink = pa.schema([pa.field("dummyint", pa.int64())]), pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, store_schema=False) as writer:
        writer.add_key_value_metadata(values)
    return bytes(sink.getvalue())
