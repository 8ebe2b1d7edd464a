"""Lazy ranged reads of one HFile inside a file or a buffer.

The end of the HFile, which has the trailer and usually the indexes, is read at once and cached; a small HFile is read
in a single request. Neighbouring required blocks share a request (:meth:`HFileSource.parts`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from hudi_fast.formats.hfile.blocks import BlockReference, HFileContent

__all__ = ["HFileSource"]

_END = 128 << 10  # read on open; on an object store this is hardly slower than reading only the trailer
_GAP = 64 << 10  # unneeded bytes between two blocks that are read to save a request
_REQUEST = 8 << 20  # maximum bytes of a request for several blocks; bounds memory
_LEAST = 1 << 10  # minimum bytes of a request: pyarrow takes S3's refusal of a smaller one for data, and does not retry


class HFileSource:
    """One HFile; thread-safe.

    Args:
        source: the file (for random access), or its content.
        path: path of the file, for messages.
        offset: byte position of the HFile in ``source``.
        length: bytes of the HFile; None: up to the end of ``source``.
        message_offset: byte position of the HFile for messages, if ``source`` is a part of a larger file.

    Attributes:
        end: the end of the HFile; the whole HFile if it is small.

    Raises:
        CorruptTableError: the source ends before the HFile does.
    """

    def __init__(
        self,
        source: pa.NativeFile | pa.Buffer,
        path: str,
        offset: int,
        length: int | None,
        message_offset: int | None = None,
    ) -> None:
        self.path = path
        self.offset = offset
        self.message_offset = offset if message_offset is None else message_offset
        self._source: pa.NativeFile | pa.Buffer | None = source
        total = source.size if isinstance(source, pa.Buffer) else source.size()
        self.length = total - offset if length is None else length
        nothing = HFileContent.of(b"", path, self.message_offset)
        if offset < 0 or not 0 <= self.length <= total - offset:
            raise nothing.corrupt(f"Expected {length} bytes of an HFile, found {total - offset}.", 0)
        self.end = nothing
        self.end = self.read(0 if isinstance(source, pa.Buffer) else max(0, self.length - _END), self.length)

    def read(self, first: int, last: int) -> HFileContent:
        """The bytes from position ``first`` up to ``last``.

        Raises:
            CorruptTableError: the range is outside the HFile.
            ValueError: the source is closed.
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
            content = self._source.read_at(max(size, min(_LEAST, self.length - first)), at)[:size]
        part = HFileContent.of(content, self.path, self.message_offset, first)
        if len(part.data) != size:
            raise part.corrupt(f"Expected {size} bytes, found {len(part.data)}.", first)
        return part

    def parts(self, references: Sequence[BlockReference]) -> Iterator[HFileContent]:
        """Bytes that contain each block, in file order; neighbouring blocks share one read."""
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
        """Release the source without closing it."""
        self._source = None
