"""Records of ``files``: the list of partitions, and the files of each.

::

    change   files written ─► {partition: {file: size}}, and the names of these partitions
             files deleted ─► {partition: {file: deleted}}; for a deleted partition, deletes of its record and name
    table    all folders listed ─► files of completed writes

Files of replaced groups stay listed until they are cleaned; the data timeline records the replacement. Source: metadata
reference 2.7, 2.13 and 3.3; HoodieTableMetadataUtil#convertMetadataToFilesPartitionRecords, Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from hudi_fast.metadata_table.keys import NON_PARTITIONED
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.records import ALL_PARTITIONS, FILES, encode_records
from hudi_fast.metadata_table.table_delta import AddedFile, TableDelta
from hudi_fast.metadata_table.updates.produce_base import EncodedRecords, ProducerContext
from hudi_fast.storage.base import FileStat
from hudi_fast.storage.thread_pool import ThreadPool
from hudi_fast.view.file_names import parse_base_file, parse_log_file
from hudi_fast.view.listing import StorageLister
from hudi_fast.view.lost_content import require_content

__all__ = ["FilesOfChange", "FilesOfTable", "is_data_file"]

_PARTITIONS, _FILES = 1, 2
_THREADS = 8


@dataclass(frozen=True)
class FilesOfChange:
    """The records of one action."""

    context: ProducerContext
    change: TableDelta

    @property
    def weight(self) -> int:
        """0: reads no file."""
        return 0

    def read(self, schema: str) -> Iterator[EncodedRecords]:
        """One batch of records, and another batch for deleted partitions."""
        change = self.change
        files = {
            partition: {name: (0, True) if one is None else (self._size(one), False) for name, one in changed.items()}
            for partition, changed in change.files().items()
        }
        deleted = change.emptied
        names = dict.fromkeys((one.partition for one in change.added), False) | dict.fromkeys(deleted, True)
        if names or files or change.operation != "CLEAN":
            yield _encoded(names, files, schema)
        if deleted:
            keys = pa.array([partition or NON_PARTITIONED for partition in deleted], pa.string())
            yield EncodedRecords(PartitionKind.FILES, keys, pa.nulls(len(deleted), pa.binary()))

    def _size(self, file: AddedFile) -> int:
        """The file's size, never 0: read from storage if the write stat has none."""
        if file.size > 0:
            return file.size
        found = self.context.storage.stat(file.path)
        return max(1, 0 if found is None else found.size)


@dataclass(frozen=True)
class FilesOfTable:
    """All records, from listing the table's folders."""

    context: ProducerContext

    @property
    def weight(self) -> int:
        """0: lists folders, reads no data."""
        return 0

    def read(self, schema: str) -> Iterator[EncodedRecords]:
        """One batch of records."""
        known = self.context.view.lister
        lister = known if known.lists_folders else StorageLister(self.context.storage)
        partitions = lister.partitions()
        with ThreadPool(_THREADS) as pool:
            listed = list(pool.map(lister.files, partitions))
        files = {
            partition: {entry.name: (entry.size, False) for entry in entries if is_data_file(self.context, entry)}
            for partition, entries in zip(partitions, listed, strict=True)
        }
        yield _encoded(
            dict.fromkeys(partitions, False), {name: found for name, found in files.items() if found}, schema
        )


def is_data_file(context: ProducerContext, entry: FileStat) -> bool:
    """Whether an entry of a partition folder is a data file or change log of a completed write.

    Raises:
        CorruptTableError: the file is empty, although a completed write has written it.
    """
    file, timeline = parse_base_file(entry) or parse_log_file(entry), context.view.timeline
    if file is None or not timeline.is_completed_or_archived(file.instant):
        return False
    if not entry.size:
        require_content(context.storage, timeline, entry.path, file.instant)
    return entry.size > 0


def _encoded(
    names: Mapping[str, bool], files: Mapping[str, Mapping[str, tuple[int, bool]]], schema: str
) -> EncodedRecords:
    """The record of partitions, if it has entries, and one record per partition's files."""
    rows: list[tuple[str, int, str | None, int | None, bool | None]] = []
    for partition, deleted in sorted(names.items()):
        rows.append((ALL_PARTITIONS, _PARTITIONS, partition or NON_PARTITIONED, 0, deleted))
    if not rows and not files:
        rows.append((ALL_PARTITIONS, _PARTITIONS, None, None, None))
    for partition, found in sorted(files.items()):
        rows += [(partition or NON_PARTITIONED, _FILES, name, *found[name]) for name in sorted(found)]
    keys, values = encode_records(PartitionKind.FILES, _table(rows), schema)
    return EncodedRecords(PartitionKind.FILES, keys, values)


def _table(rows: Iterable[tuple[object, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    arrays = [pa.array(values, field.type) for values, field in zip(columns, FILES, strict=True)]
    return pa.Table.from_arrays(arrays, schema=FILES)
