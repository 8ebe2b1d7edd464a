"""Ranged reads of one HFile inside a file or a buffer: no byte is read before it is asked for.

The end of the HFile, which has the trailer and mostly the indexes, is read at once and kept; so a small HFile is one
request as a whole. Neighbours among wanted blocks become one request (:meth:`HFileSource.parts`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from hudi_fast.formats.hfile.blocks import BlockReference, HFileContent

__all__ = ["HFileSource"]

_END = 128 << 10  # read when the file is opened: costs an object store hardly more than the trailer alone
_GAP = 64 << 10  # bytes between wanted blocks that are read for nothing rather than asking twice
_REQUEST = 8 << 20  # of several blocks; bounds what is held in memory


class HFileSource:
    """One HFile; threads may share it.

    Args:
        source: the file (for random access), or its content.
        path: for messages.
        offset: byte position in ``source`` at which the HFile begins.
        length: bytes of the HFile; None: up to the end of ``source``.
        told: position of the HFile for messages, where ``source`` is a part of a larger file.

    Attributes:
        end: the end of the HFile, all of it if it is small.

    Raises:
        CorruptTableError: the source ends before that.
    """

    def __init__(
        self, source: pa.NativeFile | pa.Buffer, path: str, offset: int, length: int | None, told: int | None = None
    ) -> None:
        self.path = path
        self.offset = offset
        self.told = offset if told is None else told
        self._source: pa.NativeFile | pa.Buffer | None = source
        total = source.size if isinstance(source, pa.Buffer) else source.size()
        self.length = total - offset if length is None else length
        nothing = HFileContent.of(b"", path, self.told)
        if offset < 0 or not 0 <= self.length <= total - offset:
            raise nothing.corrupt(f"Expected {length} bytes of an HFile, found {total - offset}.", 0)
        self.end = nothing
        self.end = self.read(0 if isinstance(source, pa.Buffer) else max(0, self.length - _END), self.length)

    def read(self, first: int, last: int) -> HFileContent:
        """The bytes from position ``first`` up to ``last``.

        Raises:
            CorruptTableError: that is not inside the HFile.
            ValueError: the source was let go.
        """
        if self._source is None:
            raise ValueError(f"the HFile {self.path} is closed")
        if not 0 <= first <= last <= self.length:
            raise self.end.corrupt(f"Expected a block inside the HFile, found bytes {first} to {last}.", self.length)
        if self.end.data and first >= self.end.start:
            return self.end.cut(first, last)
        at, size = self.offset + first, last - first
        if isinstance(self._source, pa.Buffer):
            content = self._source.slice(at, size)
        else:
            content = self._source.read_at(size, at)
        part = HFileContent.of(content, self.path, self.told, first)
        if len(part.data) != size:
            raise part.corrupt(f"Expected {size} bytes, found {len(part.data)}.", first)
        return part

    def parts(self, references: Sequence[BlockReference]) -> Iterator[HFileContent]:
        """For each block, in the order of the file, bytes that have it; neighbours share one read."""
        at = 0
        while at < len(references):
            first, stop = references[at].offset, references[at].end
            following = at + 1
            while following < len(references):
                block = references[following]
                if block.offset - stop > _GAP or block.end - first > _REQUEST:
                    break
                stop = max(stop, block.end)
                following += 1
            part = self.read(first, stop)
            for _ in range(at, following):
                yield part
            at = following

    def close(self) -> None:
        """Let go of the source, without closing it."""
        self._source = None
