"""Who makes the records that an action adds to the metadata table, or that a new partition of it begins with.

::

    TableChange ── sources_of_change ─┐                              one module per kind: produce_files, _stats, _bloom,
    table as it is ─ sources_of_table ┴─► RecordSource, RecordSource ...              _records, _secondary, _expression
                                              └ read() ─► EncodedRecords, EncodedRecords ... ─► runner

A source is a small picklable value; it opens files when it is read, in a thread or in a Spark task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from hudi_fast.config.table_config import TableConfig
from hudi_fast.merge.slice_merge import SliceMerge
from hudi_fast.metadata.change import TableChange
from hudi_fast.storage.base import Storage
from hudi_fast.view.slices import TableView

if TYPE_CHECKING:
    from hudi_fast.metadata.definitions import IndexDefinition
    from hudi_fast.metadata.table import MetadataTable

__all__ = [
    "EncodedRecords",
    "ProducerContext",
    "RecordSource",
    "record_counts",
    "sources_of_change",
    "sources_of_table",
]


@dataclass(frozen=True, slots=True)
class EncodedRecords:
    """Records for one metadata partition, in no order.

    Attributes:
        partition: the metadata partition (folder name).
        keys: string[n].
        values: binary[n], Avro; null where the key is deleted.
        hashed: string[n], what chooses the file group in place of the key; None for the key.
        data_partition: partitioned record index: the data partition whose file groups take them; None for others.
    """

    partition: str
    keys: pa.Array
    values: pa.Array
    hashed: pa.Array | None = None
    data_partition: str | None = None


class RecordSource(Protocol):
    """Makes records when it is read; picklable.

    ``weight`` is about how many bytes of data files it reads: what decides where sources run.
    """

    @property
    def weight(self) -> int:
        """Bytes of data files that are read."""
        ...

    def read(self) -> Iterator[EncodedRecords]:
        """All its records, some at a time."""
        ...


@dataclass(frozen=True)
class ProducerContext:
    """What is true for all sources of one action.

    Attributes:
        storage: the data table's storage.
        config: its configuration.
        view: the table before the action (building: as it is).
        merge: how slices merge, of the same state.
        metadata: the metadata table before the action; None when there is none yet.
        schema: data columns of the table once the action is visible.
        indexed_columns: columns of ``column_stats``, meta columns among them.
        definitions: index definitions by metadata partition.
        file_id_encoding: how the record index stores file ids: 0 as numbers where they are UUIDs, 1 as text.
    """

    storage: Storage
    config: TableConfig
    view: TableView
    merge: SliceMerge
    metadata: MetadataTable | None
    schema: pa.Schema
    indexed_columns: tuple[str, ...] = ()
    definitions: Mapping[str, IndexDefinition] = field(default_factory=dict)
    file_id_encoding: int = 0


def sources_of_change(context: ProducerContext, change: TableChange, partitions: Sequence[str]) -> list[RecordSource]:
    """The sources of what ``change`` adds to these metadata partitions.

    Args:
        context: the table before the action.
        change: the action.
        partitions: metadata partitions to keep up: those that are there and those being built.

    Raises:
        UnsupportedFeatureError: one of them cannot be kept up.
    """
    raise NotImplementedError


def sources_of_table(context: ProducerContext, partition: str, instant: str) -> list[RecordSource]:
    """The sources of all records of one metadata partition, for the table as ``context.view`` has it.

    Args:
        context: the table.
        partition: the metadata partition to build.
        instant: requested time of the build; stands in records that name an instant of their own.

    Raises:
        UnsupportedFeatureError: it cannot be built.
    """
    raise NotImplementedError


def record_counts(context: ProducerContext) -> dict[str, int]:
    """About how many rows each data partition has (footers of base files, sizes of log files): for sizing."""
    raise NotImplementedError
