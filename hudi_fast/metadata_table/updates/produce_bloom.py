"""Records of ``bloom_filters``: the bloom filter in the footer of each base file.

::

    base file ─ footer ─► filter's text, its type ─► one record          no filter: no record
    deleted base file ──► a delete

Source: metadata reference 3.7; HoodieTableMetadataUtil#convertMetadataToBloomFilterRecords, Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from hudi_fast.metadata_table.keys import bloom_key
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.records import BLOOM, encode_records
from hudi_fast.metadata_table.table_delta import AddedFile
from hudi_fast.metadata_table.updates.produce_base import EncodedRecords, ProducerContext, removals
from hudi_fast.view.base_files import open_file

__all__ = ["BloomOfFiles", "BloomOfRemoved", "FilterRow", "filter_records"]

FilterRow: TypeAlias = tuple[str, str, str, bytes, bool]
"""A filter's key, its type, its instant, the filter as Base64, and whether it is deleted."""

_SIMPLE = "SIMPLE"
_FOOTER_BYTES = 1 << 19
"""Approximate size of a footer with a filter of default size."""


@dataclass(frozen=True)
class BloomOfFiles:
    """The filters of base files."""

    context: ProducerContext
    files: tuple[AddedFile, ...]

    @property
    def weight(self) -> int:
        """Size of the footers."""
        return len(self.files) * _FOOTER_BYTES

    def read(self, schema: str) -> Iterator[EncodedRecords]:
        """One batch of records."""
        rows = []
        for one in self.files:
            with open_file(self.context.storage, one.path) as reader:
                footer = reader.footer()
            if footer.bloom_filter is not None:
                kind = footer.bloom_type or _SIMPLE
                text = footer.bloom_filter.encode()
                rows.append((bloom_key(one.partition, one.name), kind, one.instant, text, False))
        if rows:
            yield filter_records(PartitionKind.BLOOM_FILTERS, rows, schema)


@dataclass(frozen=True)
class BloomOfRemoved:
    """Deletes for removed base files.

    Attributes:
        files: (partition path, name) of each file.
    """

    files: tuple[tuple[str, str], ...]

    @property
    def weight(self) -> int:
        """0: reads no file."""
        return 0

    def read(self, schema: str) -> Iterator[EncodedRecords]:
        """One batch of records."""
        yield from removals(PartitionKind.BLOOM_FILTERS, [bloom_key(partition, name) for partition, name in self.files])


def filter_records(partition: str, rows: Sequence[FilterRow], schema: str) -> EncodedRecords:
    """Records of bloom filters in a partition of the metadata table; ``rows`` is not empty."""
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), BLOOM, strict=True)]
    keys, values = encode_records(PartitionKind.BLOOM_FILTERS, pa.Table.from_arrays(columns, schema=BLOOM), schema)
    return EncodedRecords(partition, keys, values)
