"""The values that a write is made of. They travel between the steps and, pickled, to workers.

::

    WritePlan       what is true for the whole write: pinned table state, schema, rules, sizes
    Incoming        the rows to write, with keys, partition paths and delete flags
    FileGroupWork   which of these rows go into one file group: the unit that is written
    WriteStat       what became of it (hudi_fast.timeline.commit_metadata)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.config.table_config import TableConfig
from hudi_fast.formats.parquet.base_file import ParquetSettings
from hudi_fast.index.record_index import KeyLocations
from hudi_fast.index.tagging import IndexSettings
from hudi_fast.keys.key_generator import KeyConfig
from hudi_fast.merging.rules import MergeRules
from hudi_fast.schema.internal import InternalSchema
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.slices import FileSlice, TableView
from hudi_fast.writing.conflicts.early import EarlyDetection
from hudi_fast.writing.sizing import SizingSettings

__all__ = [
    "PARTITION_PATH",
    "RECORD_KEY",
    "BloomSettings",
    "FileGroupWork",
    "Incoming",
    "LogSettings",
    "PartialColumns",
    "TaskToken",
    "WriteOutcome",
    "WritePlan",
    "stored_keys",
]

RECORD_KEY, PARTITION_PATH = "_hoodie_record_key", "_hoodie_partition_path"


@dataclass(frozen=True, slots=True)
class BloomSettings:
    """Bloom filters of new base files.

    Attributes:
        enabled: whether files get one.
        kind: ``DYNAMIC_V0`` or ``SIMPLE``.
        entries: keys that the filter is sized for.
        error_rate: share of absent keys that pass.
        max_entries: where a dynamic filter stops growing.
    """

    enabled: bool = True
    kind: str = "DYNAMIC_V0"
    entries: int = 60000
    error_rate: float = 1e-9
    max_entries: int = 100000


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Log files of a MERGE_ON_READ table; sizes in bytes.

    Attributes:
        block_format: ``avro`` or ``parquet``, of data blocks.
        max_block_size: a data block is written out when it holds that much.
        max_file_size: a file that holds more than that is followed by another.
        positions: whether blocks say which rows of the base file they are about.
    """

    block_format: str = "avro"
    max_block_size: int = 268435456
    max_file_size: int = 1073741824
    positions: bool = True


@dataclass(frozen=True, slots=True)
class PartialColumns:
    """What rows of a partial update bring.

    Attributes:
        schema: data columns, in the table's order and types.
        file_schema: meta columns, then these.
        avro_schema: Avro JSON of ``file_schema``, under the record name of the whole schema.
    """

    schema: pa.Schema
    file_schema: pa.Schema
    avro_schema: str


@dataclass(frozen=True)
class WritePlan:
    """What is true for a whole write.

    Attributes:
        storage: the table's storage.
        config: the table's configuration.
        view: the pinned state of the table.
        operation: ``upsert``, ``insert``, ``bulk_insert``, ``delete``, ``insert_overwrite`` ...
        schema: data columns of the table once this write is visible.
        file_schema: columns of base files: the five meta columns, then the stored data columns.
        avro_schema: Avro JSON of ``file_schema``.
        key_config: how record keys and partition paths follow from columns.
        rules: how rows with one key merge.
        index: how keys are looked up.
        sizing: file sizes.
        average_record_size: bytes.
        parquet: encoding of base files.
        bloom: filters of base files.
        log: log files.
        combine: whether rows of the input that share a key are combined first.
        duplicates: for ``insert``: ``none`` (keep), ``drop`` or ``fail`` when the table holds the key.
        concat: for ``insert``: whether rows are appended to small files without looking for their keys there.
        sort_mode: for ``bulk_insert``.
        sort_columns: for ``bulk_insert``: user-given order within files.
        partial: the columns that rows bring if they update stored rows in part; None for whole rows.
        changes: whether rows were worked out from stored ones (:mod:`hudi_fast.writing.dml_rows`).
        stats_columns: columns whose ranges go into write stats, for the metadata table's column statistics.
        allows_clustering_updates: whether rows may be changed that a pending clustering is going to rewrite.
        internal: the columns with their ids, on a table with a schema history; None on others.
        cdc: supplemental logging mode of the change logs that go with rewritten base files; None for no change logs.
        threads: how many file groups the local engine writes at once.
        early: how conflicts are looked for before a file group is written; None: they are not.
        instant: requested time of this write; empty until the write has begun.
    """

    storage: Storage
    config: TableConfig
    view: TableView
    operation: str
    schema: pa.Schema
    file_schema: pa.Schema
    avro_schema: str
    key_config: KeyConfig
    rules: MergeRules
    index: IndexSettings
    sizing: SizingSettings
    average_record_size: int
    parquet: ParquetSettings
    bloom: BloomSettings
    log: LogSettings
    combine: bool
    duplicates: str = "none"
    concat: bool = True
    sort_mode: str = "NONE"
    sort_columns: tuple[str, ...] = ()
    partial: PartialColumns | None = None
    changes: bool = False
    stats_columns: tuple[str, ...] = ()
    allows_clustering_updates: bool = False
    internal: InternalSchema | None = None
    cdc: str | None = None
    threads: int = 2
    early: EarlyDetection | None = None
    instant: str = ""

    @property
    def combines(self) -> bool:
        """Whether rows of the input that share a key become one."""
        return self.combine or self.operation in ("upsert", "delete")

    @property
    def takes_stored_keys(self) -> bool:
        """Whether rows bring the keys that the table made for them, and the partition paths where they lie."""
        return RECORD_KEY in self.key_config.record_key_fields

    @property
    def input_schema(self) -> pa.Schema:
        """The columns of incoming rows that the write looks at: :attr:`schema`, and before it keys of stored rows."""
        if not self.takes_stored_keys:
            return self.schema
        return pa.schema([*[pa.field(name, pa.string()) for name in (RECORD_KEY, PARTITION_PATH)], *self.schema])

    @property
    def stored_key_config(self) -> KeyConfig | None:
        """How to compute keys of stored rows; None when base files hold them."""
        return None if self.config.populate_meta_fields else self.key_config


@dataclass(frozen=True)
class Incoming:
    """Rows to write.

    Attributes:
        rows: n rows of the plan's ``schema``; no columns for a delete by key.
        keys: n record keys (string, one chunk, no nulls); None for auto-generated keys not yet made.
        partitions: n partition paths, dictionary<int32, string>.
        deletes: bool[n], rows that delete their key; None when there are none.
        ordering: ordering columns, n values each; empty when ordering values do not decide, and for deletes by key,
            which win over everything stored.
        groups: where the stored rows are that the rows were worked out from; None for rows from outside.
        inserted: of such rows bool[n], whether they are new; None for rows from outside.
        checked: whether a new row may have a stored key, which is refused.
    """

    rows: pa.Table
    keys: pa.Array | None
    partitions: pa.DictionaryArray
    deletes: npt.NDArray[np.bool_] | None
    ordering: tuple[pa.Array, ...]
    groups: KeyLocations | None = None
    inserted: npt.NDArray[np.bool_] | None = None
    checked: bool = False

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.partitions)

    def key_array(self) -> pa.Array:
        """The record keys, which have been made."""
        if self.keys is None:
            raise ValueError("record keys have not been generated yet")
        return self.keys


@dataclass(frozen=True, slots=True)
class TaskToken:
    """Who writes: parts of write tokens and of sequence numbers.

    Attributes:
        task: number of the task within the write; unique among the tasks whose files are committed together.
        stage: number of the stage.
        attempt: number of the attempt; differs between two attempts of one task.
    """

    task: int
    stage: int = 0
    attempt: int = 0

    def __str__(self) -> str:
        return f"{self.task}-{self.stage}-{self.attempt}"


@dataclass(frozen=True)
class FileGroupWork:
    """Rows for one file group.

    A group of a MERGE_ON_READ table without ``inserts`` gets a log file, any other a base file.

    Attributes:
        partition: partition path.
        file_id: the file group, existing or new.
        slice: its newest slice; None for a new file group.
        base_rows: int64[m], ascending: rows of the base file whose keys come in; -1 each where there is no base file.
        incoming_rows: int64[m]: the incoming row for each of them.
        moved: bool[m]: matches whose row moves to another partition, so that the stored row goes; None for none.
        inserts: int64[k]: incoming rows that are appended.
        token: who writes.
        first_sequence: number of the first sequence number to hand out.
    """

    partition: str
    file_id: str
    slice: FileSlice | None
    base_rows: npt.NDArray[np.int64]
    incoming_rows: npt.NDArray[np.int64]
    moved: npt.NDArray[np.bool_] | None
    inserts: npt.NDArray[np.int64]
    token: TaskToken
    first_sequence: int = 0


@dataclass(frozen=True)
class WriteOutcome:
    """What an engine hands back.

    Attributes:
        stats: one per written file.
        plan: name of the physical plan that ran.
        reason: why that one.
        partitions: partition paths that received rows.
    """

    stats: list[WriteStat]
    plan: str
    reason: str
    partitions: frozenset[str] = field(default_factory=frozenset)


def stored_keys(key_config: KeyConfig) -> KeyConfig:
    """How to find rows again that were read from a table which makes its keys itself: by what the rows say of them.

    Args:
        key_config: the table's.
    """
    partitioned = bool(key_config.partition_fields) and key_config.kind != "NON_PARTITION"
    kind, fields = ("SIMPLE", (PARTITION_PATH,)) if partitioned else ("NON_PARTITION", ())
    return KeyConfig(kind, (RECORD_KEY,), fields)
