"""Key metadata of a base file's footer: bloom filter and key range, collected while rows are written.

A rewritten file keeps the filter of the old one and adds the new keys, because hashing all keys again is slow; without
new keys the filter is copied as text. A filter may hold deleted keys; it must hold every stored key.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.config.file_options import BloomOptions
from hudi_fast.formats.base_file import BaseFileFooter
from hudi_fast.formats.bloom_filter import BloomFilter
from hudi_fast.formats.varlen import single_chunk, varlen_buffers
from hudi_fast.writing.write_plan import FilePlan

__all__ = ["KeyFooter"]

RECORD_KEY = "_hoodie_record_key"


@dataclass(frozen=True, slots=True)
class _Stored:
    """The bloom filter of the file that is rewritten.

    Attributes:
        footer: of that file.
        max_entries: growth limit for added keys.
        path: of that file.
    """

    footer: BaseFileFooter
    max_entries: int
    path: str

    def read(self) -> BloomFilter:
        text, kind = self.footer.bloom_filter, self.footer.bloom_type
        assert text is not None
        return BloomFilter.from_base64(text, kind, self.max_entries, where=self.path)


class KeyFooter:
    """Collects the footer of one file; mutable, lives as long as its writer.

    Args:
        bloom: filter to add new keys to; None when the file gets none.
        bloom_knows_carried: whether the filter holds the keys of carried rows already.
        enabled: whether the table stores record keys at all.
        stored: filter that becomes ``bloom`` with the first new key.
    """

    def __init__(
        self, bloom: BloomFilter | None, bloom_knows_carried: bool, enabled: bool, stored: _Stored | None = None
    ) -> None:
        self._bloom = bloom
        self._stored = stored
        self._bloom_knows_carried = bloom_knows_carried
        self._enabled = enabled
        self._low: str | None = None
        self._high: str | None = None

    @classmethod
    def for_new_file(cls, plan: FilePlan) -> KeyFooter:
        """The footer of the first file of a file group."""
        enabled = plan.config.populate_meta_fields
        return cls(_new_filter(plan.files.bloom) if enabled else None, False, enabled)

    @classmethod
    def for_rewritten_file(cls, plan: FilePlan, old: BaseFileFooter, path: str) -> KeyFooter:
        """The footer of a file that rewrites another."""
        if not plan.config.populate_meta_fields:
            return cls(None, False, False)
        if not plan.files.bloom.enabled or old.bloom_filter is None:
            return cls(_new_filter(plan.files.bloom), False, True)
        return cls(None, True, True, _Stored(old, plan.files.bloom.max_entries, path))

    def carry(self, keys: pa.ChunkedArray) -> None:
        """Add keys of rows of the old file, replaced or not."""
        if not self._enabled:
            return
        self._widen(keys)
        if self._bloom is not None and not self._bloom_knows_carried:
            for chunk in keys.chunks:
                self._bloom.add(chunk)

    def add(self, keys: pa.Array) -> None:
        """Add keys that are new to the file."""
        if not self._enabled:
            return
        self._widen(keys)
        if self._stored is not None and len(keys):
            self._bloom, self._stored = self._stored.read(), None
        if self._bloom is not None:
            self._bloom.add(keys)

    def finish(self) -> BaseFileFooter:
        """The footer keys."""
        if self._stored is not None:
            return replace(self._stored.footer, min_key=self._low, max_key=self._high)
        if self._bloom is None:
            return BaseFileFooter(min_key=self._low, max_key=self._high)
        return BaseFileFooter(self._bloom.to_base64(), self._bloom.type_code, self._low, self._high)

    def _widen(self, keys: pa.Array | pa.ChunkedArray) -> None:
        if len(keys) == 0:
            return
        low, high = _key_range(keys)
        self._low = low if self._low is None else min(self._low, low, key=_java_order)
        self._high = high if self._high is None else max(self._high, high, key=_java_order)


def _new_filter(bloom: BloomOptions) -> BloomFilter | None:
    return BloomFilter.create(bloom.entries, bloom.fpp, bloom.max_entries, bloom.type) if bloom.enabled else None


def _key_range(keys: pa.Array | pa.ChunkedArray) -> tuple[str, str]:
    """Smallest and largest key in the order of Java strings."""
    buffers = varlen_buffers(single_chunk(keys))
    used = buffers.data[buffers.offsets[0] : buffers.offsets[-1]]
    if len(used) and int(used.max()) >= 0xEE:  # beyond U+DFFF the order of UTF-16 units may differ from that of bytes
        texts = keys.to_pylist()
        return min(texts, key=_java_order), max(texts, key=_java_order)
    bounds = pc.min_max(keys).as_py()
    return bounds["min"], bounds["max"]


def _java_order(text: str) -> bytes:
    return text.encode("utf-16-be")
