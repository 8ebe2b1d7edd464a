"""Writes Lance base files with Hudi's keys in the metadata of the schema.

::

    tables ─► types of Lance ─► pylance ─► local file ─► the table, if it is elsewhere

Apache Hudi 1.2.0 writes version 2.0 of the format, which loses nulls of structs, and can read 2.1. pylance collects
pages of each column; memory holds :data:`_CACHE_BYTES` of pages.

Source: ``HoodieBaseLanceWriter``, ``HoodieSparkLanceWriter`` (Hudi 1.2.0).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from hudi_fast.formats.base_file import BaseFileFooter, key_pairs
from hudi_fast.formats.lance.local_file import LocalOutput
from hudi_fast.formats.lance.read import lance_files
from hudi_fast.formats.lance.types import SCHEMA_KEY, lance_schema, lance_values
from hudi_fast.formats.varlen import compact
from hudi_fast.formats.vectors import VECTORS_KEY, vectors_text
from hudi_fast.storage.base import Storage

__all__ = ["LanceSettings", "LanceWriter"]

_BATCH_ROWS = 1 << 14
"""Rows that are passed to pylance at once."""

_CACHE_BYTES = 32 << 20
"""Bytes of pages that pylance collects before it writes them."""

FORMAT_VERSION = "2.1"
"""The first version of the file format that keeps nulls of structs."""


@dataclass(frozen=True, slots=True)
class LanceSettings:
    """Encoding of Lance base files.

    Attributes:
        version: version of the file format.
    """

    version: str = FORMAT_VERSION
    extension: ClassVar[str] = "lance"


class LanceWriter:
    """Writes one base file; must be closed or aborted.

    Args:
        storage: the table's storage.
        path: relative path of the file; its folder is created if needed.
        schema: all columns, meta columns first.
        settings: encoding.
        avro_schema: Avro JSON of ``schema`` for the metadata.

    Raises:
        ConfigError: pylance is not installed.
    """

    def __init__(
        self, storage: Storage, path: str, schema: pa.Schema, settings: LanceSettings, avro_schema: str
    ) -> None:
        files = lance_files()
        self.path = path
        self._avro_schema = avro_schema
        self._vectors = vectors_text(schema)
        self._schema = lance_schema(schema)
        self._written = 0
        self._local = LocalOutput(storage, path)
        self._writer = files.LanceFileWriter(
            self._local.path, self._schema, data_cache_bytes=_CACHE_BYTES, version=settings.version
        )

    @property
    def bytes_buffered(self) -> int:
        """Always 0: rows that pylance still holds count as encoded."""
        return 0

    @property
    def bytes_encoded(self) -> int:
        """Bytes of the rows before encoding, as Apache Hudi measures the size of a Lance file."""
        return self._written

    def write(self, table: pa.Table) -> None:
        """Append rows; ``table`` has exactly the writer's schema (columns may be dictionary-encoded)."""
        for batch in table.to_batches(_BATCH_ROWS):
            arrays = [_values(batch.column(at), one.type) for at, one in enumerate(self._schema)]
            made = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
            self._writer.write_batch(made)
            self._written += made.nbytes

    def flush(self) -> None:
        """Does nothing: pylance writes a page when it is full."""

    def close(self, footer: BaseFileFooter) -> int:
        """Write the footer and close; return the file's length in bytes."""
        pairs = {**key_pairs(footer), SCHEMA_KEY: self._avro_schema.encode()}
        if self._vectors:
            pairs[VECTORS_KEY] = self._vectors.encode()
        for key, value in pairs.items():
            self._writer.add_schema_metadata(key.decode(), value.decode())
        self._writer.close()
        return self._local.finish()

    def abort(self) -> None:
        """Delete the written file."""
        del self._writer
        self._local.discard()


def _values(column: pa.Array, kind: pa.DataType) -> pa.Array:
    values = lance_values(column, kind)
    return compact(values) if pa.types.is_struct(kind) or pa.types.is_list(kind) else values
