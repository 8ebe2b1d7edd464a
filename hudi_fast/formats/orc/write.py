"""Writes ORC base files with Hudi's user metadata.

::

    tables ─► ORC types ─► Arrow's writer ─► sink, stripe by stripe
    close:    last stripe and tail are held back ─► user metadata added to the footer ─► sink

Memory holds one stripe in encoded form. Arrow writes no user metadata, so the tail is changed before it reaches the
file (:mod:`hudi_fast.formats.orc.tail`).

Timestamps are written as local time in UTC, with the zone GMT, like by a Hudi writer on a machine in UTC.

Source: ``HoodieAvroOrcWriter`` (1.2.0).
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import pyarrow as pa

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.base_file import BaseFileFooter, key_pairs
from hudi_fast.formats.orc.read import SCHEMA_KEY, arrow_orc
from hudi_fast.formats.orc.tail import with_metadata
from hudi_fast.formats.orc.types import orc_schema, orc_values
from hudi_fast.formats.varlen import compact
from hudi_fast.storage.base import Storage
from hudi_fast.values import dataclass

__all__ = ["OrcSettings", "OrcWriter"]

_BATCH_ROWS = 4096
_BLOCK_BYTES = 256 << 10
_DICTIONARY_SHARE = 0.8
"""A text column gets a dictionary if at most this share of its values is distinct, as in Apache ORC."""


@dataclass(frozen=True, slots=True)
class OrcSettings:
    """Encoding of ORC base files.

    Attributes:
        codec: ``zstd``, ``zlib``, ``snappy``, ``lz4`` or ``none``.
        stripe_bytes: encoded bytes at which a stripe is closed.
    """

    codec: str = "zstd"
    stripe_bytes: int = 16 << 20
    extension: ClassVar[str] = "orc"


class OrcWriter:
    """Writes one base file; must be closed or aborted.

    Args:
        storage: the table's storage.
        path: relative path of the file; its folder is created if needed.
        schema: all columns, meta columns first.
        settings: encoding.
        avro_schema: Avro JSON of ``schema`` for the footer.
    """

    def __init__(self, storage: Storage, path: str, schema: pa.Schema, settings: OrcSettings, avro_schema: str) -> None:
        self.path = path
        self._storage = storage
        self._avro_schema = avro_schema
        self._schema = orc_schema(schema)
        self._sink = _Sink(storage.open_output(path))
        self._has_rows = False
        self._since_stripe = 0
        self._written = 0
        self._writer = arrow_orc().ORCWriter(
            pa.PythonFile(self._sink, mode="w"),
            batch_size=_BATCH_ROWS,
            stripe_size=settings.stripe_bytes,
            compression="uncompressed" if settings.codec == "none" else settings.codec,
            compression_block_size=_BLOCK_BYTES,
            dictionary_key_size_threshold=_DICTIONARY_SHARE,
        )

    @property
    def bytes_buffered(self) -> int:
        """Approximate Arrow bytes of the stripe in progress."""
        return self._since_stripe

    @property
    def bytes_encoded(self) -> int:
        """Bytes in the file."""
        return self._sink.length

    def write(self, table: pa.Table) -> None:
        """Append rows; ``table`` has exactly the writer's schema (columns may be dictionary-encoded).

        Raises:
            UnsupportedFeatureError: a timestamp before 1970 has a fraction of a second.
        """
        for batch in table.to_batches():
            arrays = [self._values(batch.column(at), one) for at, one in enumerate(self._schema)]
            with self._sink.own_errors():
                self._writer.write(pa.Table.from_batches([pa.RecordBatch.from_arrays(arrays, schema=self._schema)]))
            self._has_rows = True
        self._since_stripe += table.nbytes
        if self._sink.length != self._written:
            self._written, self._since_stripe = self._sink.length, 0

    def _values(self, column: pa.Array, field: pa.Field) -> pa.Array:
        try:
            return compact(orc_values(column, field.type))
        except pa.ArrowException:
            raise
        except ValueError as error:
            raise UnsupportedFeatureError(
                f"The column {field.name} of {self._storage.uri} has a timestamp before 1970 with a fraction of a "
                f"second, {error}. Other readers of ORC would read another one. Round it to seconds, use a timestamp "
                "without a time zone, or write the table with Parquet base files."
            ) from error

    def flush(self) -> None:
        """Does nothing: a stripe ends when it is full."""

    def close(self, footer: BaseFileFooter) -> int:
        """Write the footer and close; return the file's length in bytes."""
        self._sink.hold()
        with self._sink.own_errors():
            if not self._has_rows:  # Arrow writes the schema with the first table
                self._writer.write(self._schema.empty_table())
            self._writer.close()
        pairs = {**key_pairs(footer), SCHEMA_KEY: self._avro_schema.encode()}
        return self._sink.finish(pairs)

    def abort(self) -> None:
        """Close the stream and delete the file."""
        self._writer.is_open = False  # otherwise Arrow writes the footer on garbage collection
        try:
            self._sink.output.close()
        finally:
            self._storage.delete_file(self.path)


class _Sink(io.RawIOBase):
    """An output whose end can be changed: from :meth:`hold` on, bytes are kept in memory until :meth:`finish`."""

    def __init__(self, output: pa.NativeFile) -> None:
        self.output = output
        self.length = 0
        self._held: list[bytes] | None = None
        self._error: OSError | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        content = bytes(data)
        if self._held is None:
            try:
                self.output.write(content)
            except OSError as error:
                self._error = error
                raise
        else:
            self._held.append(content)
        self.length += len(content)
        return len(content)

    def tell(self) -> int:
        return self.length

    def close(self) -> None:
        """Does nothing: Arrow closes the sink before the file is complete."""

    @contextmanager
    def own_errors(self) -> Iterator[None]:
        """Raise the original errors of the output, where Arrow keeps only their text."""
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            if self._error is not None:
                raise self._error from error
            raise

    def hold(self) -> None:
        """Keep all further bytes in memory."""
        self._held = []

    def finish(self, pairs: dict[bytes, bytes]) -> int:
        """Write the held end of an ORC file with this user metadata, and close; return the file's length."""
        assert self._held is not None
        content = b"".join(self._held)
        changed = with_metadata(content, _serialized_tail(content), pairs)
        self.output.write(changed)
        self.output.close()
        return self.length - len(content) + len(changed)


def _serialized_tail(content: bytes) -> bytes:
    """The ``FileTail`` of a file that ends with ``content``."""
    return bytes(arrow_orc().ORCFile(pa.BufferReader(content)).reader.serialized_file_tail())
