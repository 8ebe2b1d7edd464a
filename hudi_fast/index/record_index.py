"""The record index: finds the file group of each incoming key in the metadata table.

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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import CorruptTableError
from hudi_fast.events import warn
from hudi_fast.formats.varlen import single_chunk, varlen_buffers
from hudi_fast.index.tagging import IndexSettings
from hudi_fast.kernels.key_table import KeyTable
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.read import lookup
from hudi_fast.metadata_table.table import MetadataTable

__all__ = [
    "RECORD_INDEX",
    "KeyLocations",
    "is_by_partition",
    "locate_keys",
    "missing_index",
    "usable_index",
    "without_records",
]

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
