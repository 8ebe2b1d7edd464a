"""Read HFiles by ranges: all of it block by block, many keys at once, or all keys with one of some prefixes.

Reads are ranged: the end of the file when it is opened, then the data blocks that are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.formats.hfile_cache import BlockCache

__all__ = ["HFileReader"]


class HFileReader:
    """An open HFile; made by :meth:`open`. Threads may share it; equal keys all come, in the order of the file.

    Attributes:
        entry_count: entries of the file.
        file_info: values by name, as the writer left them (``schema``, ``minRecordKey``, ``hfile.LASTKEY`` ...).
        schema: Avro JSON of the values; None when the file does not say.
    """

    entry_count: int
    file_info: Mapping[str, bytes]
    schema: str | None

    @classmethod
    def open(
        cls,
        source: pa.NativeFile | pa.Buffer,
        path: str,
        offset: int = 0,
        length: int | None = None,
        cache: BlockCache | None = None,
    ) -> HFileReader:
        """Read the trailer and the indexes.

        Args:
            source: the file (for random access), or its content; stays the caller's, who closes it.
            path: its path below the root of the table, for messages and the cache.
            offset: byte position in ``source`` at which the HFile begins (log blocks).
            length: bytes of the HFile; None: up to the end of ``source``.
            cache: keeps data blocks for later calls, of this and of other readers; None: nothing is kept.

        Raises:
            CorruptTableError: no HFile, or a damaged one.
            UnsupportedFeatureError: another version than 3, or another compression than GZ or none.
        """
        raise NotImplementedError

    def scan(self) -> Iterator[tuple[pa.Array, pa.Array]]:
        """Keys and values, binary[n] each, per data block in key order."""
        raise NotImplementedError

    def lookup(self, keys: pa.Array) -> tuple[npt.NDArray[np.int64], pa.Array]:
        """The entries of some keys.

        Args:
            keys: string[n] or binary[n], in any order; nulls are not found.

        Returns:
            Positions in ``keys``, int64[hits], ascending (several times where the file has several entries of a
            key), and the entries' values, binary[hits].
        """
        raise NotImplementedError

    def prefix(self, prefixes: pa.Array) -> tuple[pa.Array, pa.Array]:
        """All entries whose key begins with one of ``prefixes`` (string or binary, any order).

        Returns:
            Keys and values, binary[hits] each, in key order; an entry comes once however many prefixes it has.
        """
        raise NotImplementedError

    def meta(self, name: str) -> bytes | None:
        """The content of a meta block, for example ``bloomFilter``; None when there is none of that name."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the source, without closing it; later reads fail."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
