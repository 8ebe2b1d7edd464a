"""The record index: which file group holds each of the incoming keys, as the metadata table says.

::

    keys ─► their groups of the metadata table (Java hash) ─► look-up there ─► (partition path, file id) of each key

Nothing of the data is read. What is found is where the key was inserted; whoever uses it looks whether that file group
still is one of the table's (a replaced group holds nothing), and, where row numbers are needed, whether the key still
is in it: if not, the row is an insert.

The index is global (one place for a key in the whole table) or kept per partition of the data; each serves one kind of
index settings. Source: SparkMetadataTableGlobalRecordLevelIndex, SparkMetadataTableRecordLevelIndex, Hudi 1.2.0.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import CorruptTableError, HudiWarning
from hudi_fast.formats.varlen import single_chunk, varlen_buffers
from hudi_fast.index.tagging import IndexSettings
from hudi_fast.kernels.key_table import KeyTable
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.read import lookup
from hudi_fast.metadata_table.table import MetadataTable

__all__ = ["RECORD_INDEX", "KeyLocations", "is_by_partition", "locate_keys", "usable_index"]

RECORD_INDEX = PartitionKind.RECORD_INDEX.value
"""The metadata table's partition."""

_PLACE = ("partition", "file_id")

_FALLBACK = {"GLOBAL_RECORD_LEVEL_INDEX": "GLOBAL_SIMPLE", "RECORD_LEVEL_INDEX": "SIMPLE"}


@dataclass(frozen=True)
class KeyLocations:
    """Where n keys are stored.

    Attributes:
        groups: (partition path, file id) of the file groups that hold some of them.
        numbers: int32[n]: the place of each key's file group in ``groups``, -1 for a key that is not stored.
    """

    groups: tuple[tuple[str, str], ...]
    numbers: npt.NDArray[np.int32]


def is_by_partition(table: MetadataTable) -> bool:
    """Whether the record index of the table keeps the keys of each data partition apart."""
    return table.is_by_partition(RECORD_INDEX)


def usable_index(settings: IndexSettings, table: MetadataTable | None, where: str) -> IndexSettings:
    """The settings, or where the record index that they ask for is not there, those of the index that stands in for it.

    Args:
        settings: any.
        table: the metadata table that the write is pinned to.
        where: the data table, for the warning.

    Warns:
        HudiWarning: the record index is not used, and why; keys are looked up in all files instead.
    """
    if not settings.uses_records:
        return settings
    problem = _problem(settings, table)
    if problem is None:
        return settings
    other = _FALLBACK[settings.kind]
    warnings.warn(
        f"{where} is written without its record index: {problem}. Keys are looked up in base files, as with "
        f"hoodie.index.type={other}. With hoodie.metadata.enable=true and this index the next write builds it.",
        HudiWarning,
        stacklevel=2,
    )
    return replace(settings, kind=other)


def locate_keys(table: MetadataTable, keys: pa.Array, data_partition: str | None = None) -> KeyLocations:
    """Look keys up; keys may repeat.

    Args:
        table: a metadata table whose record index is usable.
        keys: string[n], without nulls.
        data_partition: the partition path to look in, for an index that is by partition.

    Raises:
        CorruptTableError: a file of the index is gone or cannot be understood.
    """
    nowhere = np.full(len(keys), -1, dtype=np.int32)
    if not len(keys):
        return KeyLocations((), nowhere)
    try:
        found = lookup(table, RECORD_INDEX, keys, data_partition=data_partition)
    except CorruptTableError as error:
        damaged = CorruptTableError(
            f"The record index of {table.data_storage.uri} cannot be read. Drop it: HudiTable.services.drop_index("
            f"{RECORD_INDEX!r}), or hudi-fast index --drop {RECORD_INDEX}; the next write builds it anew. {error}"
        )
        damaged.path, damaged.offset = error.path, error.offset
        raise damaged from error
    if not found.num_rows:
        return KeyLocations((), nowhere)
    stored, wanted = varlen_buffers(single_chunk(found.column("key"))), varlen_buffers(keys)
    hits = KeyTable.build(stored.offsets, stored.data).probe(wanted.offsets, wanted.data)
    groups, numbers = _groups(found)
    return KeyLocations(groups, np.where(hits < 0, np.int32(-1), numbers[hits]))


def _groups(found: pa.Table) -> tuple[tuple[tuple[str, str], ...], npt.NDArray[np.int32]]:
    """The distinct file groups of rows of the index, and the place of each row's one among them."""
    paths, files = (single_chunk(found.column(name)).fill_null("").dictionary_encode() for name in _PLACE)
    pairs = np.asarray(paths.indices, dtype=np.int64) * len(files.dictionary) + np.asarray(files.indices)
    distinct, numbers = np.unique(pairs, return_inverse=True)
    path_of, file_of = np.divmod(distinct, len(files.dictionary))
    names = paths.dictionary.take(pa.array(path_of)).to_pylist()
    return tuple(zip(names, files.dictionary.take(pa.array(file_of)).to_pylist(), strict=True)), numbers.astype(
        np.int32
    )


def _problem(settings: IndexSettings, table: MetadataTable | None) -> str | None:
    if table is None:
        return "there is no metadata table that can be used"
    if (reason := table.unusable(RECORD_INDEX)) is not None:
        return reason
    if is_by_partition(table) == settings.is_global:
        kept = "by partition" if settings.is_global else "for the whole table"
        return f"it is kept {kept}, which does not serve hoodie.index.type={settings.kind}"
    return None
