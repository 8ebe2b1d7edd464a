"""Find file groups of incoming keys with the metadata table.

Find the base files that may hold incoming keys with the metadata table, without opening data files.

::

    base files ─► column_stats of the record key: ranges ─► bloom_filters of the remaining ones ─► candidates

A missing entry excludes nothing; the file's footer is read instead. Statistics may be truncated, so a key that starts
with a file's maximum may be in the file. Source: HoodieBloomIndex, HoodieKeyLookupHandle, Hudi 1.2.0, which fails where
a filter is missing.

The record index: finds the file group of each incoming key in the metadata table.

::

    keys ─► their groups of the metadata table (Java hash) ─► lookup there ─► (partition path, file id) of each key

Reads no data files. The result is the file group that the key was inserted into. Callers have to check that the file
group still exists (a replaced group holds nothing) and, where row numbers are needed, that it still holds the key;
otherwise the row is an insert.

The index is global (one location per key in the whole table) or partitioned by data partition; each serves one kind of
index settings. Source: SparkMetadataTableGlobalRecordLevelIndex, SparkMetadataTableRecordLevelIndex, Hudi 1.2.0.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import CorruptTableError
from hudi_fast.events import warn
from hudi_fast.formats.bloom_filter import BloomFilter
from hudi_fast.formats.varlen import single_chunk, varlen_buffers
from hudi_fast.index.tagging import RECORD_KEY, IncomingKeys, IndexSettings, ordered_alike
from hudi_fast.kernels.key_table import KeyTable
from hudi_fast.metadata_table.keys import bloom_key, column_stats_keys
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.read import lookup
from hudi_fast.metadata_table.stat_values import unwrap_values
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.values import dataclass
from hudi_fast.view.slices import FileSlice

__all__ = [
    "RECORD_INDEX",
    "Candidate",
    "KeyLocations",
    "candidates",
    "is_by_partition",
    "keys_inside",
    "locate_keys",
    "missing_index",
    "usable_index",
    "without_records",
]

_FILTERS_AT_ONCE = 32
"""A filter of Hudi's default size takes 430 kB."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A slice that may hold incoming keys.

    Attributes:
        settings: the remaining tests, to be made with its base file.
    """

    slice: FileSlice
    settings: IndexSettings


def candidates(
    table: MetadataTable | None, slices: Sequence[FileSlice], keys: IncomingKeys, settings: IndexSettings
) -> list[Candidate]:
    """The slices that the metadata table does not exclude, in their order.

    All slices are candidates without a metadata table, and for indexes other than a bloom index that uses it.

    Warns:
        HudiWarning: the metadata table cannot be read; footers are read instead.
    """
    everything = [Candidate(one, settings) for one in slices]
    if table is None or not (settings.uses_bloom and settings.use_metadata) or keys.low is None:
        return everything
    try:
        return _by_filters(table, _by_ranges(table, everything, keys, settings))
    except CorruptTableError as error:
        warn(
            f"The metadata table of {table.data_storage.uri} cannot be used to find incoming keys; file footers "
            f"are read instead: {error}"
        )
        return everything


@dataclass(frozen=True, slots=True)
class _Ranged:
    """A candidate and the keys inside its range."""

    candidate: Candidate
    keys: pa.Array


def _by_ranges(
    table: MetadataTable, every: Sequence[Candidate], keys: IncomingKeys, settings: IndexSettings
) -> list[_Ranged]:
    ranges: Mapping[str, tuple[str, str]] = {}
    if settings.prune_by_range and keys.ordered_alike and table.usable(PartitionKind.COLUMN_STATS.value):
        ranges = _key_ranges(table, [one.slice for one in every])
    left: list[_Ranged] = []
    for one in every:
        bounds = None if one.slice.base_file is None else ranges.get(one.slice.base_file.path)
        inside = keys.keys if bounds is None else keys.keys.filter(keys_inside(keys.keys, *bounds))
        if len(inside):
            left.append(_Ranged(one, inside))
    return left


def _key_ranges(table: MetadataTable, slices: Sequence[FileSlice]) -> dict[str, tuple[str, str]]:
    """Minimum and maximum record key of base files, by path, where both are known and compare like bytes."""
    based = [(one.partition, one.base_file) for one in slices if one.base_file is not None]
    if not based:
        return {}
    names = [file.name for _, file in based]
    wanted = column_stats_keys([RECORD_KEY] * len(based), [partition for partition, _ in based], names)
    found = lookup(table, PartitionKind.COLUMN_STATS.value, wanted)
    lows, highs = (_texts(found, name) for name in ("min", "max"))
    stored = dict(zip(found.column("key").to_pylist(), zip(lows, highs, strict=True), strict=True))
    ranges: dict[str, tuple[str, str]] = {}
    for (_, file), key in zip(based, wanted.to_pylist(), strict=True):
        low, high = stored.get(key, (None, None))
        if low is not None and high is not None and ordered_alike(low, high):
            ranges[file.path] = low, high
    return ranges


def _texts(found: pa.Table, name: str) -> list[str | None]:
    """Minimum or maximum keys, decoded from statistics of a single column."""
    if not found.num_rows:
        return []
    values = single_chunk(found.column(name))
    kinds = found.column("value_type").unique().to_pylist()
    texts: list[str | None] = [None] * found.num_rows
    for kind in kinds:
        here = pc.indices_nonzero(
            found.column("value_type").is_null() if kind is None else pc.equal(found.column("value_type"), kind)
        ).to_pylist()
        taken = unwrap_values(values.take(pa.array(here, pa.int64())), kind, None, pa.string()).to_pylist()
        for place, text in zip(here, taken, strict=True):
            texts[place] = text
    return texts


def keys_inside(keys: pa.Array, low: str, high: str) -> pa.Array:
    """Whether each key may be in a file with the (possibly truncated) bounds ``low`` and ``high``."""
    below = pc.or_(pc.less_equal(keys, high), pc.starts_with(keys, pattern=high))
    return pc.and_(pc.greater_equal(keys, low), below)


def _by_filters(table: MetadataTable, ranged: Sequence[_Ranged]) -> list[Candidate]:
    if not table.usable(PartitionKind.BLOOM_FILTERS.value):
        return [one.candidate for one in ranged]
    left: list[Candidate] = []
    for start in range(0, len(ranged), _FILTERS_AT_ONCE):
        part = ranged[start : start + _FILTERS_AT_ONCE]
        names = [_bloom_key(one.candidate.slice) for one in part]
        found = lookup(table, PartitionKind.BLOOM_FILTERS.value, pa.array([one for one in names if one], pa.string()))
        rows = {key: row for row, key in enumerate(found.column("key").to_pylist())}
        for one, name in zip(part, names, strict=True):
            row = None if name is None else rows.get(name)
            if row is None:
                left.append(one.candidate)
            elif _filter(found, row, str(name)).might_contain(one.keys).any():
                left.append(replace(one.candidate, settings=_exact(one.candidate.settings)))
    return left


def _bloom_key(slice_: FileSlice) -> str | None:
    return None if slice_.base_file is None else bloom_key(slice_.partition, slice_.base_file.name)


def _filter(found: pa.Table, row: int, key: str) -> BloomFilter:
    text = found.column("filter")[row].as_py().decode("ascii", "replace")
    return BloomFilter.from_base64(text, found.column("kind")[row].as_py(), where=f"bloom_filters, key {key}")


def _exact(settings: IndexSettings) -> IndexSettings:
    """Settings whose only remaining test is to read the keys."""
    return replace(settings, kind=settings.kind.replace("BLOOM", "SIMPLE"), prune_by_range=False)


RECORD_INDEX = PartitionKind.RECORD_INDEX.value
"""The metadata partition of the record index."""

_PLACE = ("partition", "file_id")

_FALLBACK = {"GLOBAL_RECORD_LEVEL_INDEX": "GLOBAL_SIMPLE", "RECORD_LEVEL_INDEX": "SIMPLE"}


@dataclass(frozen=True)
class KeyLocations:
    """Locations of n keys.

    Attributes:
        groups: (partition path, file id) of the file groups that hold some of the keys.
        numbers: int32[n]: index of each key's file group in ``groups``, -1 for a key that is not stored.
    """

    groups: tuple[tuple[str, str], ...]
    numbers: npt.NDArray[np.int32]

    def split(self, values: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """Split ``values``, one for each of the n keys, by file group; values keep their order."""
        if len(self.groups) == 1:
            return [values if (self.numbers == 0).all() else values[self.numbers == 0]]
        order = np.argsort(self.numbers, kind="stable")
        bounds = np.searchsorted(self.numbers[order], np.arange(len(self.groups) + 1))
        return [values[order[start:end]] for start, end in itertools.pairwise(bounds)]


def is_by_partition(table: MetadataTable) -> bool:
    """Whether the table's record index is partitioned by data partition."""
    return table.is_by_partition(RECORD_INDEX)


def usable_index(settings: IndexSettings, table: MetadataTable | None, where: str) -> IndexSettings:
    """The settings; or settings of a fallback index if the requested record index is missing.

    Warns:
        HudiWarning: why the record index is not used; keys are looked up in all files instead.
    """
    problem = missing_index(settings, table)
    if problem is None:
        return settings
    other = without_records(settings)
    warn(
        f"{where} is written without its record index: {problem}. Keys are looked up in base files, as with "
        f"hoodie.index.type={other.kind}. With hoodie.metadata.enable=true and this index the next write builds it."
    )
    return other


def without_records(settings: IndexSettings) -> IndexSettings:
    """The settings with an index that needs no record index."""
    return replace(settings, kind=_FALLBACK.get(settings.kind, settings.kind))


def missing_index(settings: IndexSettings, table: MetadataTable | None) -> str | None:
    """Why the requested record index cannot be used; None if it can be, or another index is requested."""
    if not settings.uses_records:
        return None
    if table is None:
        return "the table has no usable metadata table"
    if (reason := table.unusable(RECORD_INDEX)) is not None:
        return reason
    if is_by_partition(table) == settings.is_global:
        kind = "partitioned" if settings.is_global else "global"
        return f"it is {kind}, which does not fit hoodie.index.type={settings.kind}"
    return None


def locate_keys(table: MetadataTable, keys: pa.Array, data_partition: str | None = None) -> KeyLocations:
    """Look up keys, which may repeat.

    ``keys`` are string[n] without nulls. ``data_partition`` is the partition path to search, for a partitioned index.

    Raises:
        CorruptTableError: a file of the index is missing or corrupt.
    """
    not_found = np.full(len(keys), -1, dtype=np.int32)
    if not len(keys):
        return KeyLocations((), not_found)
    try:
        found = lookup(table, RECORD_INDEX, keys, data_partition=data_partition)
    except CorruptTableError as error:
        damaged = CorruptTableError(
            f"The record index of {table.data_storage.uri} cannot be read. Drop it: HudiTable.services.drop_index("
            f"{RECORD_INDEX!r}), or hudi-fast index --drop {RECORD_INDEX}; the next write rebuilds it. {error}"
        )
        damaged.path, damaged.offset = error.path, error.offset
        raise damaged from error
    if not found.num_rows:
        return KeyLocations((), not_found)
    stored, wanted = varlen_buffers(single_chunk(found.column("key"))), varlen_buffers(keys)
    hits = KeyTable.build(stored.offsets, stored.data).probe(wanted.offsets, wanted.data)
    groups, numbers = _groups(found)
    return KeyLocations(groups, np.where(hits < 0, np.int32(-1), numbers[hits]))


def _groups(found: pa.Table) -> tuple[tuple[tuple[str, str], ...], npt.NDArray[np.int32]]:
    """The distinct file groups of index rows, and each row's index among them."""
    paths, files = (single_chunk(found.column(name)).fill_null("").dictionary_encode() for name in _PLACE)
    pairs = np.asarray(paths.indices, dtype=np.int64) * len(files.dictionary) + np.asarray(files.indices)
    distinct, numbers = np.unique(pairs, return_inverse=True)
    path_of, file_of = np.divmod(distinct, len(files.dictionary))
    names = paths.dictionary.take(pa.array(path_of)).to_pylist()
    return tuple(zip(names, files.dictionary.take(pa.array(file_of)).to_pylist(), strict=True)), numbers.astype(
        np.int32
    )
