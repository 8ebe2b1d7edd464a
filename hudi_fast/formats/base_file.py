"""Base files of any format: the common interfaces of readers and writers.

::

    .parquet ─► formats/parquet/base_file.py ─┐
    .orc ─────► formats/orc/read.py ──────────┼─► BaseFileReader: columns of row groups, in file order
    .hfile ───► formats/hfile/base_file.py ───┤                   Hudi's keys: bloom filter, key range
    .lance ───► formats/lance/base_file.py ────────┘

A row group is the part of a file that is read at once: a row group of Parquet, a stripe of ORC, a whole HFile, a range
of rows of a Lance file. :attr:`BaseFileReader.metadata` has features of Parquet only (statistics of row groups, bytes
that can be copied). It is None for other formats; code that uses it also works without it.

A :class:`FileWriter` writes Parquet, ORC or Lance.

Source: ``HoodieBloomFilterWriteSupport``, ``HoodieAvroOrcWriter``, ``HoodieBaseLanceWriter`` (1.2.0).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_fast.errors import CorruptTableError, FileGoneError
from hudi_fast.storage.base import Storage
from hudi_fast.storage.conditional import ExpiredCredentialsError
from hudi_fast.storage.failures import is_failure
from hudi_fast.values import cached_property, dataclass

__all__ = [
    "BaseFileFooter",
    "BaseFileReader",
    "FileWriter",
    "file_errors",
    "footer_of",
    "key_pairs",
    "rows_without_columns",
]

BLOOM_KEY = b"org.apache.hudi.bloomfilter"
OLD_BLOOM_KEY = b"com.uber.hoodie.bloomfilter"
BLOOM_TYPE_KEY = b"hoodie_bloom_filter_type_code"
MIN_KEY = b"hoodie_min_record_key"
MAX_KEY = b"hoodie_max_record_key"


@dataclass(frozen=True, slots=True)
class BaseFileFooter:
    """Hudi's own keys in a base file's footer.

    Attributes:
        bloom_filter: base64 text; None without a filter.
        bloom_type: ``DYNAMIC_V0``; None means a simple filter.
        min_key: smallest record key; None if unknown or the file has no rows.
        max_key: largest record key.
    """

    bloom_filter: str | None = None
    bloom_type: str | None = None
    min_key: str | None = None
    max_key: str | None = None


def key_pairs(footer: BaseFileFooter) -> dict[bytes, bytes]:
    """Hudi's keys as key-value pairs of a footer."""
    values = {
        BLOOM_KEY: footer.bloom_filter,
        BLOOM_TYPE_KEY: footer.bloom_type,
        MIN_KEY: footer.min_key,
        MAX_KEY: footer.max_key,
    }
    return {key: value.encode() for key, value in values.items() if value is not None}


def footer_of(pairs: Mapping[bytes, bytes]) -> BaseFileFooter:
    """Hudi's keys among the key-value pairs of a footer.

    Raises:
        UnicodeDecodeError: a value is not UTF-8.
    """

    def text(*keys: bytes) -> str | None:
        return next((pairs[key].decode() for key in keys if key in pairs), None)

    return BaseFileFooter(text(BLOOM_KEY, OLD_BLOOM_KEY), text(BLOOM_TYPE_KEY), text(MIN_KEY), text(MAX_KEY))


ShortBounds: TypeAlias = frozenset[tuple[int, int]]
"""Row group and column of chunks with bounds shorter than values. Reading such bounds makes pyarrow 26 end the process.
"""


class BaseFileReader(ABC):
    """One open base file.

    Attributes:
        path: path of the file, for messages.
    """

    path: str

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of the file."""

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self.schema.names)

    def has(self, column: str) -> bool:
        """Whether the file has a column of that name."""
        return column in self._names

    @property
    @abstractmethod
    def num_rows(self) -> int:
        """Number of rows."""

    @property
    @abstractmethod
    def num_row_groups(self) -> int:
        """Number of row groups."""

    @property
    def metadata(self) -> pq.FileMetaData | None:
        """The footer of a Parquet file as Arrow represents it; None for another format."""
        return None

    @property
    @abstractmethod
    def location(self) -> tuple[Storage, str]:
        """The file that holds the row groups: its storage, and its path there."""

    @property
    def parts(self) -> tuple[BaseFileReader, ...]:
        """The files that hold the columns: this file, or several files that each hold some columns."""
        return (self,)

    @property
    @abstractmethod
    def stored_bytes(self) -> int:
        """Approximate bytes of all rows before compression."""

    @property
    def has_labels(self) -> bool:
        """Whether timestamps are numbers with a label, which may be wrong (``schema.mislabelled``)."""
        return False

    @property
    def has_nan_safe_bounds(self) -> bool:
        """Whether bounds in the footer cover all values: chunks with NaN have no bounds."""
        return False

    @property
    def short_bounds(self) -> ShortBounds:
        """Column chunks of a Parquet file whose statistics pyarrow cannot decode."""
        return frozenset()

    @abstractmethod
    def footer(self) -> BaseFileFooter:
        """Hudi's footer keys.

        Raises:
            CorruptTableError: a value is not UTF-8.
        """

    @abstractmethod
    def row_group_rows(self) -> list[int]:
        """Number of rows of each row group."""

    def text_bounds(self, column: str) -> list[tuple[bytes, bytes] | None]:
        """Smallest and largest value of a text column in each row group, in UTF-8; None where unknown."""
        return [None] * self.num_row_groups

    @abstractmethod
    def read(self, columns: Sequence[str], row_groups: Sequence[int] | None = None) -> pa.Table:
        """Read whole columns, of all or some row groups."""

    @abstractmethod
    def batches(
        self, columns: Sequence[str], batch_rows: int = 65536, row_groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Rows in file order, at most ``batch_rows`` at a time."""

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    def __enter__(self) -> BaseFileReader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class FileWriter(Protocol):
    """Writes one base file; must be closed or aborted.

    Attributes:
        path: relative to the table.
    """

    path: str

    @property
    def bytes_buffered(self) -> int:
        """Approximate Arrow bytes of rows that are not encoded yet."""
        ...

    @property
    def bytes_encoded(self) -> int:
        """Bytes in the file."""
        ...

    def write(self, table: pa.Table) -> None:
        """Append rows; ``table`` has exactly the writer's schema (columns may be dictionary-encoded)."""
        ...

    def flush(self) -> None:
        """Encode the buffered rows, if the format supports it."""
        ...

    def close(self, footer: BaseFileFooter) -> int:
        """Write the footer and close; return the file's length in bytes."""
        ...

    def abort(self) -> None:
        """Close the stream and delete the file."""
        ...


def rows_without_columns(count: int) -> pa.RecordBatch:
    """A batch that has a number of rows and no columns."""
    return pa.RecordBatch.from_struct_array(pa.nulls(count, pa.struct([])))


@contextmanager
def file_errors(path: str, storage: Storage | None, format_name: str) -> Iterator[None]:
    """Raise Arrow's errors as errors of the file.

    Args:
        path: the file, for messages.
        storage: storage of the file; None if unknown.
        format_name: ``Parquet``, ``ORC``, ``HFile`` or ``Lance``.
    """
    try:
        yield
    except ExpiredCredentialsError:
        raise
    except FileNotFoundError as error:
        table = "" if storage is None else f" of {storage.uri}"
        text = "no longer exists: a clean or a rollback deleted it after the table was read. Read again; if the error"
        raise FileGoneError(f"A base file{table} {text} remains, restore the file.", path) from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if is_failure(error):
            raise
        raise CorruptTableError(
            f"{_named(path, storage)} cannot be read as {format_name} ({error}). It is cut off or damaged; "
            "services.validate() compares its size with its commit. Restore the file, or restore the table to a "
            "savepoint.",
            path,
        ) from error


def _named(path: str, storage: Storage | None) -> str:
    """The subject of a message: a base file, with its table and size if they are known."""
    if storage is None:
        return "The base file"
    size = ""
    with suppress(OSError):
        found = storage.stat(path)
        size = "" if found is None else f" of {found.size} bytes"
    return f"Table {storage.uri}: a base file{size}"
