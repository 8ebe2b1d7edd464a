"""Bodies of indexing instants as values, to and from Avro.

::

    [IndexPart] ─► indexing.requested ─► execution (empty inflight file) ─► indexing, with the same parts

A part names a partition of the metadata table and the newest write that the index build includes; later writes log to
the partition themselves. Sources: HoodieIndexPlan, HoodieIndexPartitionInfo, HoodieIndexCommitMetadata, release 1.2.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hudi_fast.formats.avro.container import write_single_record
from hudi_fast.timeline.avro_models import INDEX_COMMIT_METADATA, INDEX_PLAN
from hudi_fast.timeline.plans import decode_body

__all__ = [
    "IndexPart",
    "decode_index_metadata",
    "decode_index_plan",
    "encode_index_metadata",
    "encode_index_plan",
]

_Record = dict[str, Any]
_VERSION = 1


@dataclass(frozen=True, slots=True)
class IndexPart:
    """One partition of the metadata table to index.

    Attributes:
        partition: folder of the partition, such as ``record_index``.
        upto: requested time of the newest write that the index build includes; empty for a table without writes.
        extra_metadata: free keys.
    """

    partition: str
    upto: str = ""
    extra_metadata: Mapping[str, str] = field(default_factory=dict)


def encode_index_plan(parts: Sequence[IndexPart]) -> bytes:
    """The body of ``indexing.requested``."""
    record = {"version": _VERSION, "indexPartitionInfos": [_part_record(one) for one in parts]}
    return write_single_record(INDEX_PLAN, record)


def decode_index_plan(data: bytes, path: str | None = None) -> tuple[IndexPart, ...]:
    """Decode ``indexing.requested``; raises CorruptTableError for another body."""
    return decode_body(data, path, _parts)


def encode_index_metadata(parts: Sequence[IndexPart]) -> bytes:
    """The body of a completed indexing."""
    infos = [_part_record(one) for one in parts]
    record = {"version": _VERSION, "operationType": None, "indexPartitionInfos": infos}
    return write_single_record(INDEX_COMMIT_METADATA, record)


def decode_index_metadata(data: bytes, path: str | None = None) -> tuple[IndexPart, ...]:
    """Decode a completed indexing; raises CorruptTableError for another body."""
    return decode_body(data, path, _parts)


def _part_record(one: IndexPart) -> _Record:
    return {
        "version": _VERSION,
        "metadataPartitionPath": one.partition,
        "indexUptoInstant": one.upto,
        "extraMetadata": dict(one.extra_metadata),
    }


def _parts(record: _Record) -> tuple[IndexPart, ...]:
    return tuple(
        IndexPart(one["metadataPartitionPath"], one.get("indexUptoInstant") or "", one.get("extraMetadata") or {})
        for one in record["indexPartitionInfos"] or ()
    )
