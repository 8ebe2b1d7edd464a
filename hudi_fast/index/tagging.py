"""Find the file groups that hold the incoming keys.

Each file slice is tested in order of cost: the key range in the footer; for bloom indexes the bloom filter; and only if
a key may be inside, the file's key column against a hash table of the incoming keys. The last test is exact, so the
first two only save work. :mod:`hudi_fast.index.metadata_lookup` can make the first two before any file is opened;
:mod:`hudi_fast.index.metadata_lookup` gives the file group of each key directly.

The result is one :class:`SliceMatches` per slice with incoming keys. It names base rows by position, so the following
merge does not compare keys again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.base_file import BaseFileReader
from hudi_fast.formats.bloom_filter import BloomFilter
from hudi_fast.formats.varlen import single_chunk, varlen_buffers
from hudi_fast.kernels.hashes import COMMA_AND_COLON
from hudi_fast.kernels.key_table import KeyTable, first_equal
from hudi_fast.keys.key_generator import KeyConfig, record_keys
from hudi_fast.storage.base import Storage
from hudi_fast.values import cached_property, dataclass
from hudi_fast.view.base_files import open_base
from hudi_fast.view.slices import FileSlice

__all__ = [
    "BucketSettings",
    "IncomingKeys",
    "IndexSettings",
    "SliceMatches",
    "file_keys",
    "match_slice",
    "ordered_alike",
    "rows_with_new_keys",
    "untagged_rows",
]

RECORD_KEY = "_hoodie_record_key"

_FEW_KEYS = 1 << 16
"""Up to this number, keys are sorted to leave out row groups between them."""

_FIRST_AMBIGUOUS_BYTE = 0xEE
"""Since U+E000, Java's string order (UTF-16 units) and the order of UTF-8 bytes may differ."""


@dataclass(frozen=True, slots=True)
class BucketSettings:
    """How a bucket index distributes keys over the file groups of a partition.

    Attributes:
        engine: ``SIMPLE`` (a fixed number of buckets) or ``CONSISTENT_HASHING`` (buckets split and merge).
        count: initial number of buckets of a partition.
        hash_fields: hashed columns: all or some columns of the record key.
        min_count: consistent hashing: minimum number of buckets after merging.
        max_count: consistent hashing: maximum number of buckets after splitting.
        overrides: (pattern, number of buckets) for partition paths; the first pattern found in the path applies.
        is_count_given: whether the caller gave ``count``.
        key_rule: how a key of several fields is parsed, see :mod:`hudi_fast.kernels.hashes`.
        shared_buckets: whether several writers may create a bucket concurrently. Its file group then has a fixed id and
            starts with log files.
    """

    engine: str = "SIMPLE"
    count: int = 256
    hash_fields: tuple[str, ...] = ()
    min_count: int = 256
    max_count: int = 256
    overrides: tuple[tuple[str, int], ...] = ()
    is_count_given: bool = True
    key_rule: int = COMMA_AND_COLON
    shared_buckets: bool = False


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """How keys are looked up.

    Attributes:
        kind: ``SIMPLE``, ``BLOOM``, ``GLOBAL_SIMPLE``, ``GLOBAL_BLOOM``, ``BUCKET``, ``RECORD_LEVEL_INDEX`` or
            ``GLOBAL_RECORD_LEVEL_INDEX``.
        prune_by_range: whether key ranges in footers may exclude a file.
        update_partition_path: global kinds: whether a row moves to its new partition.
        use_metadata: bloom kinds: whether ranges and filters are read from the metadata table where available.
        bucket: of the kind ``BUCKET``; None for others.
    """

    kind: str = "SIMPLE"
    prune_by_range: bool = True
    update_partition_path: bool = True
    use_metadata: bool = False
    bucket: BucketSettings | None = None

    @property
    def is_global(self) -> bool:
        """Whether keys are unique in the whole table, not only in a partition."""
        return self.kind.startswith("GLOBAL")

    @property
    def uses_bloom(self) -> bool:
        """Whether bloom filters are probed before keys are read."""
        return self.kind.endswith("BLOOM")

    @property
    def uses_records(self) -> bool:
        """Whether keys are located by the metadata table's record index."""
        return self.kind.endswith("RECORD_LEVEL_INDEX")


@dataclass(frozen=True)
class IncomingKeys:
    """Record keys to find, with a hash table; shared by the lookups in many slices.

    Attributes:
        keys: string array, no nulls; n keys. Of equal keys only the first is found.
        rows: int64[n]: the incoming row of each key.
        low: smallest key; None for no keys.
        ordered_alike: whether Java's string order and the order of UTF-8 bytes agree on these keys.
    """

    keys: pa.Array
    rows: npt.NDArray[np.int64]
    table: KeyTable
    low: str | None
    high: str | None
    ordered_alike: bool

    @classmethod
    def of(cls, keys: pa.Array, rows: npt.NDArray[np.int64]) -> IncomingKeys:
        """Build the hash table; a write changes few of a table's keys, so most keys looked up in it are absent."""
        buffers = varlen_buffers(keys)
        bounds = pc.min_max(keys).as_py()
        used = buffers.data[buffers.offsets[0] : buffers.offsets[-1]]
        alike = not len(used) or int(used.max()) < _FIRST_AMBIGUOUS_BYTE
        table = KeyTable.build(buffers.offsets, buffers.data, mostly_absent=True)
        return cls(keys, rows, table, bounds["min"], bounds["max"], alike)

    def has_between(self, low: bytes, high: bytes) -> bool:
        """Whether a key may be at least ``low`` and at most ``high``, in the order of UTF-8 bytes."""
        if self._ordered is None:
            return self.low is None or self.high is None or (self.low.encode() <= high and low <= self.high.encode())
        at = bisect_left(self._ordered, low)
        return at < len(self._ordered) and self._ordered[at] <= high

    @cached_property
    def _ordered(self) -> list[bytes] | None:
        """The keys, sorted; None for more than :data:`_FEW_KEYS`."""
        return sorted(key.encode() for key in self.keys.to_pylist()) if len(self.keys) <= _FEW_KEYS else None


@dataclass(frozen=True, slots=True)
class SliceMatches:
    """Rows of one slice whose keys are incoming.

    Attributes:
        base_rows: int64[m], ascending row numbers in the base file.
        incoming_rows: int64[m], the incoming row of each.
    """

    slice: FileSlice
    base_rows: npt.NDArray[np.int64]
    incoming_rows: npt.NDArray[np.int64]


def match_slice(
    storage: Storage, slice_: FileSlice, keys: IncomingKeys, settings: IndexSettings, key_config: KeyConfig | None
) -> SliceMatches | None:
    """Look up the incoming keys in one slice; None when it holds none of them.

    The slice has a base file. ``key_config`` computes keys from columns; None when the table stores keys.

    Raises:
        CorruptTableError: the base file cannot be read, or a bloom index finds a corrupt filter.
    """
    if slice_.base_file is None or keys.low is None:
        return None
    with open_base(storage, slice_.base_file) as reader:
        if reader.num_rows == 0 or not _may_hold(reader, keys, settings, key_config is None):
            return None
        found_base: list[npt.NDArray[np.int32]] = []
        found_key: list[npt.NDArray[np.int32]] = []
        for groups, start in _runs(reader, keys, settings.prune_by_range and key_config is None):
            for stored in file_keys(reader, key_config, groups):
                buffers = varlen_buffers(stored)
                hits = keys.table.probe(buffers.offsets, buffers.data)
                here = np.flatnonzero(hits >= 0)
                if len(here):
                    found_base.append((here + start).astype(np.int32))
                    found_key.append(hits[here])
                start += len(stored)
    if not found_base:
        return None
    base_rows = np.concatenate(found_base, dtype=np.int64)
    return SliceMatches(slice_, base_rows, keys.rows[np.concatenate(found_key)])


def _runs(reader: BaseFileReader, keys: IncomingKeys, prunes: bool) -> list[tuple[list[int] | None, int]]:
    """Consecutive row groups that may hold a key, each run with its first row; None stands for all row groups."""
    if not prunes or len(reader.parts) > 1 or reader.num_row_groups < 2:
        return [(None, 0)]
    runs: list[tuple[list[int], int]] = []
    start = 0
    for number, (rows, bounds) in enumerate(zip(reader.row_group_rows(), reader.text_bounds(RECORD_KEY), strict=True)):
        if bounds is None or keys.has_between(*bounds):
            if runs and runs[-1][0][-1] == number - 1:
                runs[-1][0].append(number)
            else:
                runs.append(([number], start))
        start += rows
    return list(runs)


def file_keys(
    reader: BaseFileReader, key_config: KeyConfig | None, row_groups: Sequence[int] | None = None
) -> Iterator[pa.Array]:
    """The record keys of a base file in row order, in batches of bounded size.

    ``row_groups`` are the numbers of the row groups to read; None for all.

    Raises:
        CorruptTableError: the key column is missing or has nulls although the table stores keys.
    """
    if key_config is not None:
        columns = sorted({name.split(".")[0] for name in key_config.record_key_fields})
        for batch in reader.batches(columns, 1 << 18, row_groups):
            yield record_keys(key_config, pa.Table.from_batches([batch]))
        return
    if not reader.has(RECORD_KEY):
        raise CorruptTableError(
            f"The base file has no column {RECORD_KEY}, but the table stores record keys "
            "(hoodie.populate.meta.fields=true)",
            reader.path,
        )
    for batch in reader.batches([RECORD_KEY], 1 << 18, row_groups):
        keys = single_chunk(batch.column(0))
        if keys.null_count:
            raise CorruptTableError(f"The base file holds {keys.null_count} rows without a record key", reader.path)
        yield keys


def untagged_rows(rows: npt.NDArray[np.int64], matches: Iterable[SliceMatches], total: int) -> npt.NDArray[np.int64]:
    """The ``rows`` without a match.

    ``rows`` are int64[n], incoming row numbers, each below ``total``.
    """
    seen = np.zeros(total, dtype=np.bool_)
    for match in matches:
        seen[match.incoming_rows] = True
    return rows[~seen[rows]]


def rows_with_new_keys(
    keys: pa.Array, rows: npt.NDArray[np.int64], matches: Iterable[SliceMatches], total: int
) -> npt.NDArray[np.int64]:
    """The ``rows`` whose key has no match, including rows that share a key.

    Args:
        keys: string[n], their keys, no nulls.
        rows: int64[n], incoming row numbers, each below ``total``.
        matches: of the first row with each key.
        total: number of incoming rows.
    """
    buffers = varlen_buffers(keys)
    first = rows[first_equal(buffers.offsets, buffers.data)]
    seen = np.zeros(total, dtype=np.bool_)
    for match in matches:
        seen[match.incoming_rows] = True
    return rows[~seen[first]]


def _may_hold(reader: BaseFileReader, keys: IncomingKeys, settings: IndexSettings, stores_keys: bool) -> bool:
    if not stores_keys:
        return True
    footer = reader.footer()
    candidates = keys.keys
    ranged = footer.min_key is not None and footer.max_key is not None and ordered_alike(footer.min_key, footer.max_key)
    if settings.prune_by_range and keys.ordered_alike and ranged:
        if keys.low > footer.max_key or keys.high < footer.min_key:  # type: ignore[operator]
            return False
        if settings.uses_bloom:
            inside = pc.and_(pc.greater_equal(candidates, footer.min_key), pc.less_equal(candidates, footer.max_key))
            candidates = candidates.filter(inside)
    if not settings.uses_bloom or footer.bloom_filter is None:
        return len(candidates) > 0
    bloom = BloomFilter.from_base64(footer.bloom_filter, footer.bloom_type, where=reader.path)
    return bool(bloom.might_contain(candidates).any())


def ordered_alike(low: str, high: str) -> bool:
    """Whether Java's string order and the order of UTF-8 bytes agree on these two texts and all between them."""
    return max((low + high).encode(), default=0) < _FIRST_AMBIGUOUS_BYTE
