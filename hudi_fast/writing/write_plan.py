"""The values of a write. Steps exchange them, and tasks receive them pickled.

::

    TableSpec      pinned view, schemas, keys, merge rules ────────────────────┐
    FileSettings   sizes, encodings and filters of files ──────────────────────┴─► FilePlan ─► WritePlan: this write
    Incoming       the rows to write, with keys, partition paths and delete flags
    FileGroupWork  the rows of one file group: the unit of writing
    WriteStat      the result (hudi_fast.timeline.commit_metadata)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.config.file_options import BloomOptions, LogOptions, SizingOptions
from hudi_fast.config.table_config import TableConfig
from hudi_fast.formats.avro.schema import OPERATION_FIELD
from hudi_fast.formats.lance.base_file import LanceSettings
from hudi_fast.formats.orc.write import OrcSettings
from hudi_fast.formats.parquet.base_file import ParquetSettings
from hudi_fast.index.metadata_lookup import KeyLocations
from hudi_fast.index.tagging import IndexSettings, SliceMatches
from hudi_fast.keys.key_generator import KeyConfig
from hudi_fast.merging.row_buffer import BatchedRows, take_rows
from hudi_fast.merging.rules import MergeRules, SliceMerge
from hudi_fast.metadata_table.keys import IndexedColumn
from hudi_fast.schema.evolution import SchemaChange
from hudi_fast.schema.internal import InternalSchema
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.values import dataclass
from hudi_fast.view.slices import FileSlice, TableView
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.early_conflicts import EarlyDetection

__all__ = [
    "PARTITION_PATH",
    "PART_BYTES",
    "PART_ROWS",
    "RECORD_KEY",
    "FileGroupWork",
    "FilePlan",
    "FileSettings",
    "Incoming",
    "PartialColumns",
    "TableSpec",
    "TaskToken",
    "WriteOutcome",
    "WritePlan",
    "stored_keys",
]

RECORD_KEY, PARTITION_PATH = "_hoodie_record_key", "_hoodie_partition_path"
"""Names of the meta columns of record key and partition path."""

PART_ROWS, PART_BYTES = 65536, 32 << 20
"""Maximum rows, and approximate Arrow bytes, that are written at a time."""


@dataclass(frozen=True, slots=True)
class PartialColumns:
    """The columns of a partial update.

    Attributes:
        schema: data columns, in the table's order and types.
        file_schema: meta columns, then the data columns.
        avro_schema: Avro JSON of ``file_schema``, under the record name of the whole schema.
        completes: whether rows are completed from stored rows before they are written
            (:mod:`hudi_fast.writing.whole_rows`); else log blocks hold the partial rows.
    """

    schema: pa.Schema
    file_schema: pa.Schema
    avro_schema: str
    completes: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class TableSpec:
    """The table, as the whole write uses it.

    Attributes:
        storage: the table's storage.
        config: ``hoodie.properties``.
        view: the pinned view of the table's files.
        schema: data columns of the table once the write is visible.
        file_schema: columns of base files: the five meta columns, perhaps ``_hoodie_operation``, then the stored data
            columns.
        avro_schema: Avro JSON of ``file_schema``.
        key_config: how record keys and partition paths are computed.
        rules: how rows with one key merge.
        internal: columns with their ids, for a table with a schema history; else None.
        cdc: supplemental logging mode of change logs; None for a table without them.
        indexed_columns: columns with secondary indexes.
    """

    storage: Storage
    config: TableConfig
    view: TableView
    schema: pa.Schema
    file_schema: pa.Schema
    avro_schema: str
    key_config: KeyConfig
    rules: MergeRules
    internal: InternalSchema | None = None
    cdc: str | None = None
    indexed_columns: tuple[IndexedColumn, ...] = ()

    @property
    def stores_operations(self) -> bool:
        """Whether data files have the column ``_hoodie_operation``."""
        return OPERATION_FIELD in self.file_schema.names


@dataclass(frozen=True, kw_only=True, slots=True)
class FileSettings:
    """Settings of new files.

    Attributes:
        sizing: file sizes.
        average_record_size: bytes.
        record_size_is_given: whether the options say it for a table without usable commits.
        parquet: encoding of Parquet base files.
        other: encoding of base files in ORC or Lance; None where new base files are Parquet.
        bloom: bloom filters of base files, enabled if this table has them.
        log: log files, with row positions if this table has them.
        threads: number of file groups that one process writes in parallel.
        max_threads: the same for small file groups, whose threads mostly wait for an object store.
        stats_columns: columns whose ranges are recorded for the metadata table's column statistics.
    """

    sizing: SizingOptions
    average_record_size: int
    parquet: ParquetSettings
    bloom: BloomOptions
    log: LogOptions
    threads: int = 2
    max_threads: int = 2
    stats_columns: tuple[str, ...] = ()
    record_size_is_given: bool = False
    other: OrcSettings | LanceSettings | None = None

    @property
    def extension(self) -> str:
        """Extension of new base files."""
        return "parquet" if self.other is None else self.other.extension


@dataclass(frozen=True, kw_only=True)
class FilePlan:
    """The table and the file settings of a write or a table service.

    Attributes:
        table: the table.
        files: settings of new files.
        instant: requested time; empty until the write or service has begun.
    """

    table: TableSpec
    files: FileSettings
    instant: str = ""

    @property
    def storage(self) -> Storage:
        """The table's storage."""
        return self.table.storage

    @property
    def config(self) -> TableConfig:
        """``hoodie.properties``."""
        return self.table.config

    @property
    def view(self) -> TableView:
        """The pinned view of the table's files."""
        return self.table.view

    @property
    def schema(self) -> pa.Schema:
        """Data columns of the table once the write is visible."""
        return self.table.schema

    @property
    def file_schema(self) -> pa.Schema:
        """Columns of base files."""
        return self.table.file_schema

    @property
    def avro_schema(self) -> str:
        """Avro JSON of :attr:`file_schema`."""
        return self.table.avro_schema

    @property
    def key_config(self) -> KeyConfig:
        """Settings for computing record keys and partition paths."""
        return self.table.key_config

    @property
    def rules(self) -> MergeRules:
        """Merge rules for rows with one key."""
        return self.table.rules

    @property
    def stored_key_config(self) -> KeyConfig | None:
        """Settings for computing keys of stored rows; None when base files store the keys."""
        return None if self.config.populate_meta_fields else self.key_config

    def merge_of(self, state: TableState) -> SliceMerge:
        """The merge settings of the table's file slices.

        Args:
            state: the table.
        """
        return SliceMerge(
            storage=state.storage,
            timeline=state.timeline,
            table_version=self.config.version,
            rules=self.rules,
            key_config=self.stored_key_config,
            history=self.view.history,
        )


@dataclass(frozen=True, kw_only=True)
class WritePlan(FilePlan):
    """A :class:`FilePlan` and the settings of one write.

    Attributes:
        operation: ``upsert``, ``insert``, ``bulk_insert``, ``delete``, ``insert_overwrite`` ...
        index: how keys are looked up.
        combine: whether rows of the input that share a key are combined first.
        duplicates: for ``insert``: ``none`` (keep), ``drop`` or ``fail`` when the table holds the key.
        merges_inserts: for ``insert``: whether a row is merged with the row of its key in the file that takes it.
        sort_mode: for ``bulk_insert``.
        sort_columns: for ``bulk_insert``: the user's sort columns.
        sorts_by_key: whether the record key follows the sort columns.
        partial: the columns of a partial update; None for whole rows.
        rounds: whether integers that become floating-point numbers may be rounded.
        schema_changes: of the table's columns, by this write.
        is_dml: whether rows are computed from stored rows (:mod:`hudi_fast.writing.dml_rows`).
        unset: columns whose values updated rows keep.
        allows_clustering_updates: whether rows in a pending clustering may change.
        early: early conflict detection, before a file group is written; None if disabled.
        overwrites: whether the write replaces the whole table, with its columns and configuration. The view then shows
            a new, empty table.
    """

    operation: str
    index: IndexSettings
    combine: bool
    duplicates: str = "none"
    merges_inserts: bool = False
    sort_mode: str = "NONE"
    sort_columns: tuple[str, ...] = ()
    sorts_by_key: bool = False
    partial: PartialColumns | None = None
    is_dml: bool = False
    rounds: bool = False
    schema_changes: tuple[SchemaChange, ...] = ()
    unset: frozenset[str] = frozenset()
    allows_clustering_updates: bool = False
    early: EarlyDetection | None = None
    overwrites: bool = False

    @property
    def row_schema(self) -> pa.Schema:
        """The columns of rows to write: the operation column, then the columns of the table or the partial update."""
        data = self.schema if self.partial is None else self.partial.schema
        if not self.table.stores_operations:
            return data
        return pa.schema([pa.field(OPERATION_FIELD, pa.string()), *data])

    @property
    def committed_as(self) -> str:
        """The operation in commit metadata, in lower case."""
        return "insert_overwrite_table" if self.overwrites else self.operation

    @property
    def combines(self) -> bool:
        """Whether rows of the input that share a key become one."""
        return self.combine or self.operation in ("upsert", "delete")

    @property
    def needs_origins(self) -> bool:
        """Whether a row that moves to another partition is written with values of the stored row."""
        moves = self.index.is_global and self.index.update_partition_path and self.operation == "upsert"
        return moves and (self.partial is not None or self.rules.blends)

    @property
    def takes_stored_keys(self) -> bool:
        """Whether rows have columns with the record keys that the table generated, and with their partition paths."""
        return RECORD_KEY in self.key_config.record_key_fields

    @property
    def input_schema(self) -> pa.Schema:
        """The columns of incoming rows that the write reads: :attr:`schema`, after the meta columns that it takes."""
        names = (RECORD_KEY, PARTITION_PATH) if self.takes_stored_keys else ()
        names = (*names, OPERATION_FIELD) if self.table.stores_operations else names
        return pa.schema([*[pa.field(name, pa.string()) for name in names], *self.schema]) if names else self.schema


@dataclass(frozen=True)
class Incoming:
    """Rows to write.

    Attributes:
        rows: n rows of the plan's ``schema``; no columns for a delete by key.
        keys: n record keys (string, one chunk, no nulls); None for auto-generated keys not yet made.
        partitions: n partition paths, dictionary<int32, string>.
        deletes: bool[n], rows that delete their key; None without deletes.
        ordering: ordering columns, n values each; empty when ordering values do not decide, and for deletes by key,
            which win over all stored rows.
        groups: file ids of the stored rows that DML rows were computed from; None for other writes.
        inserted: bool[n], DML rows that are new; None for other writes.
        checked: whether a new row may have a stored key, which is refused.
        order: struct[n], ordering values of the source rows of DML rows; None where no order decides between them.
        batched: ``rows`` if they stay in batches; None for rows in one chunk.
    """

    rows: pa.Table
    keys: pa.Array | None
    partitions: pa.DictionaryArray
    deletes: npt.NDArray[np.bool_] | None
    ordering: tuple[pa.Array, ...]
    groups: KeyLocations | None = None
    inserted: npt.NDArray[np.bool_] | None = None
    checked: bool = False
    order: pa.Array | None = None
    batched: BatchedRows | None = None

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.partitions)

    def key_array(self) -> pa.Array:
        """The record keys; they must have been generated."""
        if self.keys is None:
            raise ValueError("record keys have not been generated yet")
        return self.keys

    @property
    def row_bytes(self) -> float:
        """Average Arrow size of a row, at least 1."""
        return max(1.0, float(self.rows.nbytes / max(1, self.count)))

    def take(self, rows: npt.NDArray[np.int64], columns: Sequence[str] | None = None) -> pa.Table:
        """Some of the rows.

        Args:
            rows: int64[n], positions, in any order.
            columns: names of the columns; None for all.
        """
        return take_rows(self.rows, self.batched, rows, columns)

    def subset(self, rows: npt.NDArray[np.int64]) -> Incoming:
        """Some of the rows, as rows to write.

        Args:
            rows: int64[n], positions, in any order.
        """
        chosen = pa.array(rows)
        return replace(
            self,
            rows=self.take(rows),
            keys=None if self.keys is None else self.keys.take(chosen),
            partitions=self.partitions.take(chosen),
            deletes=None if self.deletes is None else self.deletes[rows],
            ordering=tuple(column.take(chosen) for column in self.ordering),
            groups=None if self.groups is None else KeyLocations(self.groups.groups, self.groups.numbers[rows]),
            inserted=None if self.inserted is None else self.inserted[rows],
            order=None if self.order is None else self.order.take(chosen),
            batched=None,
        )

    def parts(
        self, rows: npt.NDArray[np.int64], max_rows: int = PART_ROWS, max_bytes: int = PART_BYTES
    ) -> Iterator[npt.NDArray[np.int64]]:
        """Split ``rows`` into parts; each part is written at a time.

        Args:
            rows: int64[n], positions, in any order.
            max_rows: maximum rows of a part.
            max_bytes: approximate maximum Arrow size of a part.
        """
        max_rows = max(1, int(min(max_rows, max_bytes / self.row_bytes)))
        if self.batched is not None:
            yield from self.batched.parts(rows, max_rows, max_bytes)
            return
        for start in range(0, len(rows), max_rows):
            yield rows[start : start + max_rows]


@dataclass(frozen=True, slots=True)
class TaskToken:
    """Identifies a task in write tokens and sequence numbers.

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
        base_rows: int64[m], ascending: rows of the base file with incoming keys; -1 each where there is no base file.
        incoming_rows: int64[m]: the incoming row of each base row.
        moved: bool[m]: matches whose row moves to another partition: the stored row is deleted; None without moves.
        inserts: int64[k]: incoming rows that are appended.
        token: write token.
        first_sequence: first sequence number to assign.
        origins: the stored rows, in other partitions, of rows of ``inserts`` that move here, if they are needed.
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
    origins: tuple[SliceMatches, ...] = ()

    def rows(self) -> npt.NDArray[np.int64]:
        """The incoming rows of the work, int64[n], ascending."""
        return np.unique(np.concatenate([self.incoming_rows, self.inserts]))

    def renumbered(self, numbers: npt.NDArray[np.int64]) -> FileGroupWork:
        """The same work for a subset of the incoming rows.

        Args:
            numbers: int64[n]: the position in the subset of each incoming row.
        """
        return replace(
            self,
            incoming_rows=numbers[self.incoming_rows],
            inserts=numbers[self.inserts],
            origins=tuple(replace(one, incoming_rows=numbers[one.incoming_rows]) for one in self.origins),
        )


@dataclass(frozen=True)
class WriteOutcome:
    """The result of an engine.

    Attributes:
        stats: one per written file.
        plan: name of the physical plan that ran.
        reason: why this plan was chosen.
        partitions: partition paths that received rows.
    """

    stats: list[WriteStat]
    plan: str
    reason: str
    partitions: frozenset[str] = field(default_factory=frozenset)


def stored_keys(key_config: KeyConfig) -> KeyConfig:
    """Settings for finding stored rows of a table with generated keys: their meta columns give key and partition path.

    Args:
        key_config: the table's.
    """
    partitioned = bool(key_config.partition_fields) and key_config.kind != "NON_PARTITION"
    kind, fields = ("SIMPLE", (PARTITION_PATH,)) if partitioned else ("NON_PARTITION", ())
    return KeyConfig(kind, (RECORD_KEY,), fields)
