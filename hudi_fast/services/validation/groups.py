"""Compares the records of one file group of the metadata table at a time: in this process, or in tasks.

::

    source ─► ReadableSource: records; a problem becomes a record of its own ─► by file group
    GroupComparison: expected records of a group, stored records ─► GroupDifferences
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import CorruptTableError, HudiError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.formats.parquet.leaf_columns import leaf_columns
from hudi_fast.merging.log_scan import is_rolled_back
from hudi_fast.metadata_table.keys import NON_PARTITIONED
from hudi_fast.metadata_table.layout import PartitionKind, kind_of
from hudi_fast.metadata_table.read import record_kind, scan
from hudi_fast.metadata_table.records import decode_records, flat_schema
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.metadata_table.updates.commit import log_writer
from hudi_fast.metadata_table.updates.groups import GroupWriter
from hudi_fast.metadata_table.updates.produce import ProducerContext, RecordSource
from hudi_fast.metadata_table.updates.produce_base import EncodedRecords, stored_schema
from hudi_fast.metadata_table.updates.produce_expression import check_expression
from hudi_fast.metadata_table.updates.record_bins import RECORDS, Bin, Entries
from hudi_fast.services.validation.compare import Stored, compare_rows, difference
from hudi_fast.services.validation.stats import StatsSeen
from hudi_fast.services.validation.text import ROWS
from hudi_fast.view.file_names import parse_log_file
from hudi_fast.view.listing import PARTITION_MARKERS

__all__ = ["ANY_INSTANT", "GroupComparison", "GroupDifferences", "ReadableSource", "Validation", "without_harmless"]

ANY_INSTANT = "00000000000000000"
"""The instant of expected records; instants are not compared."""

_PROBLEMS = ""
"""The partition of records that hold problems; its one group is visited before all others."""

_MISSING = frozenset({"missing file", "missing statistics"})
_MISSING_PARTITION = "missing partition"
_STATS = frozenset({PartitionKind.COLUMN_STATS, PartitionKind.PARTITION_STATS, PartitionKind.EXPRESSION_INDEX})


@dataclass(frozen=True)
class Validation:
    """State that all partitions of the metadata table share; picklable."""

    table: MetadataTable
    context: ProducerContext
    stored: Stored


@dataclass(frozen=True)
class GroupDifferences:
    """The result for one file group.

    Attributes:
        expected: number of expected records.
        found: number of stored records.
        differences: number of differences.
        rows: the first of them.
        error: why the comparison ended early; None if it did not.
        seen: files and partitions with statistics.
    """

    expected: int = 0
    found: int = 0
    differences: int = 0
    rows: pa.Table = field(default_factory=ROWS.empty_table)
    error: HudiError | None = None
    seen: StatsSeen = field(default_factory=StatsSeen)


@dataclass(frozen=True)
class ReadableSource:
    """A source whose rows may be impossible to index: the problem then follows the records before it."""

    source: RecordSource
    writer: GroupWriter

    @property
    def weight(self) -> int:
        """Bytes to read."""
        return self.source.weight

    def read(self, schema: str) -> Iterator[EncodedRecords]:
        """The source's records, and its problem if it has one."""
        try:
            for records in self.source.read(schema):
                if not self.writer.has_groups(records):
                    count = f"groups for {len(records.keys)} records"
                    yield _problem(difference("missing file groups", key=records.data_partition, expected=count))
                    return
                yield records
        except InvalidDataError as error:
            yield _problem(difference("rows that cannot be indexed", found=str(error)))


@dataclass(frozen=True)
class GroupComparison:
    """Compares the file groups of one metadata partition; see :class:`runner.GroupVisitor`.

    Attributes:
        types: of values in statistics, by column.
        limit: maximum number of listed differences of a group.
    """

    validation: Validation
    partition: str
    kind: PartitionKind
    writer: GroupWriter
    types: Mapping[str, pa.DataType]
    limit: int

    @classmethod
    def of(cls, validation: Validation, partition: str, limit: int) -> Self:
        """The comparison of a partition.

        Raises:
            CorruptTableError: groups of the partition are missing.
            UnsupportedFeatureError: an unknown kind of partition.
        """
        kind = record_kind(validation.table, partition)
        writer = log_writer(validation.table, ANY_INSTANT, [partition])
        return cls(validation, partition, kind, writer, _types(validation.context, partition), limit)

    @property
    def schema(self) -> str:
        """Avro JSON of expected values."""
        return self.writer.schema

    @property
    def groups(self) -> Sequence[Bin]:
        """All file groups of the partition."""
        return [(self.partition, number) for number in range(len(self.validation.table.groups(self.partition)))]

    def route(self, records: EncodedRecords) -> npt.NDArray[np.int32]:
        """The file group of each record."""
        if records.partition == _PROBLEMS:
            return np.zeros(len(records.keys), np.int32)
        return self.writer.route(records)

    def visit(self, partition: str, group: int, entries: Iterable[Entries]) -> GroupDifferences:
        """Compare the expected records of one group with the stored ones."""
        if partition == _PROBLEMS:
            found = [pa.ipc.open_stream(value).read_all() for _, values in entries for value in values.to_pylist()]
            rows = pa.concat_tables(found).sort_by([("what", "ascending"), ("found", "ascending")])
            return GroupDifferences(differences=rows.num_rows, rows=rows.slice(0, self.limit))
        seen, shown, error = StatsSeen(), [ROWS.empty_table()], None
        records = found_records = differences = 0
        left = self.limit
        try:
            expected, found = self._expected(entries), scan(self.validation.table, self.partition, [group])
            records, found_records = expected.num_rows, found.num_rows
            if self.kind in _STATS:
                seen.add(expected, found)
            shared = self.validation
            tables = (self.types, shared.stored, expected, found)
            for every in compare_rows(self.partition, self.kind, shared.context, *tables):
                rows = without_harmless(shared, every)
                differences += rows.num_rows
                shown.append(rows.slice(0, left))
                left -= shown[-1].num_rows
        except (CorruptTableError, InvalidDataError, UnsupportedFeatureError) as problem:
            error = problem
        return GroupDifferences(records, found_records, differences, pa.concat_tables(shown), error, seen)

    def _expected(self, entries: Iterable[Entries]) -> pa.Table:
        pieces = [pa.Table.from_arrays(list(piece), schema=RECORDS) for piece in entries]
        return _flat(self.kind, pa.concat_tables([RECORDS.empty_table(), *pieces]), self.schema, self.partition)


def _problem(row: pa.Table) -> EncodedRecords:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, row.schema) as stream:
        stream.write_table(row)
    return EncodedRecords(_PROBLEMS, pa.array(["problem"]), pa.array([sink.getvalue().to_pybytes()], pa.binary()))


def without_harmless(validation: Validation, rows: pa.Table) -> pa.Table:
    """Differences without invalid log files, and without partitions that hold nothing else: readers skip them."""
    if validation.context.config.layout_version > 1:
        return rows  # rollbacks delete the log files of failed writes
    named = zip(rows.column("what").to_pylist(), rows.column("key").to_pylist(), strict=True)
    return rows.filter(pa.array([not _is_harmless(validation, *each) for each in named], pa.bool_()))


def _is_harmless(validation: Validation, what: str, key: str) -> bool:
    if what == _MISSING_PARTITION:
        path = key.partition("/")[2]
        files = validation.context.view.lister.files("" if path == NON_PARTITIONED else path)
        return all(one.name in PARTITION_MARKERS or _is_rolled_back(validation, one.name) for one in files)
    return what in _MISSING and _is_rolled_back(validation, key.rpartition("/")[2])


def _is_rolled_back(validation: Validation, name: str) -> bool:
    """Whether it is a log file whose blocks are all invalid, although its writes may be archived by now."""
    lister, storage = validation.context.view.lister, validation.context.storage
    for partition in lister.partitions():
        logs = [one for one in map(parse_log_file, lister.files(partition)) if one is not None]
        for log in logs:
            if log.name == name:
                group = log.file_id, log.instant
                return is_rolled_back(storage, log, [one for one in logs if (one.file_id, one.instant) == group])
    return False


def _types(context: ProducerContext, partition: str) -> Mapping[str, pa.DataType]:
    """The types of values in statistics, by column; for an expression index, the types of its results."""
    if kind_of(partition) is PartitionKind.EXPRESSION_INDEX:
        expression = check_expression(context, partition)
        return {expression.column.name: expression.result}
    return leaf_columns(stored_schema(context))


def _flat(kind: PartitionKind, records: pa.Table, schema: str, partition: str) -> pa.Table:
    rows = records.filter(records.column("value").is_valid()).combine_chunks()
    if not rows.num_rows:
        return flat_schema(kind).empty_table()
    flat = decode_records(kind, rows.column("key").chunk(0), rows.column("value").chunk(0), schema, partition)
    # The partition ``files`` of a table without files has a record that names no file.
    return flat.filter(flat.column("name").is_valid()) if kind is PartitionKind.FILES else flat
