"""Writes and services on tables of other projects, and the rows that must follow: computed from the rows before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import hudi_fast as hf
from tests.support.rows import assert_same_rows

__all__ = ["ForeignLife"]

RECORD_KEY, PARTITION_PATH = "_hoodie_record_key", "_hoodie_partition_path"
MADE_BY_WRITES = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"]
BY_HAND = {
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.bloom.index.filter.type": "SIMPLE",
    "hoodie.index.bloom.num_entries": "100",  # small filters: small files
}
NARROW = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.commits.archival.batch": "1",
    "hoodie.timeline.compaction.batch.size": "2",
}
OLDEST_WRITTEN, UPGRADED_TO = 5, 6


@dataclass
class ForeignLife:
    """A table, and the rows that it must have.

    Attributes:
        path: the table's folder.
        layout: version, type, and whether it has a metadata table, partitions and keys of columns; as it came.
        rows: data columns and ``_hoodie_partition_path``; with ``_hoodie_record_key`` where keys are generated.
        last: the instant of the last write.
        before_last: that of the write before it.
    """

    path: str
    layout: tuple[Any, ...] = field(init=False)
    rows: pa.Table = field(init=False)
    last: str = ""
    before_last: str = ""

    def __post_init__(self) -> None:
        table, config = self.table, self.table.config
        parts = config.metadata_partitions, config.partition_fields, config.record_key_fields
        self.layout = (table.version, table.table_type, *map(bool, parts))
        self.rows = self.stored().combine_chunks()

    @property
    def table(self) -> hf.HudiTable:
        """The table as it is now."""
        return hf.HudiTable.open(self.path)

    @property
    def key(self) -> list[str]:
        return list(self.table.config.record_key_fields) or [RECORD_KEY]

    @property
    def has_keys(self) -> bool:
        """Whether record keys come from columns."""
        return bool(self.table.config.record_key_fields)

    def steps(self, *, whole: bool) -> list[tuple[str, Callable[[], Any]]]:
        """What is done, in this order, and how.

        Args:
            whole: with what depends on the table's layout but not on its columns: undone writes, a new metadata
                table, cleaning and archiving. And with more writes.
        """
        services, table = self.table.services, self.table
        upgrade = [("upgrade", lambda: services.upgrade(UPGRADED_TO))] if table.version < OLDEST_WRITTEN else []
        compact = [("compact", lambda: services.compact(BY_HAND))] if table.table_type == "MERGE_ON_READ" else []
        first = [*upgrade, ("delete", self.delete), ("upsert", self.upsert)]
        last = ("last upsert", self.upsert)
        cluster = ("cluster", lambda: services.cluster(BY_HAND))
        if not whole:
            return [*first, *compact, cluster, last]
        return [
            *first,
            ("rollback", self.rollback),
            ("restore", self.restore),
            *compact,
            ("upsert after it", self.upsert),
            cluster,
            ("rebuild of the metadata table", self.rebuild),
            ("clean", lambda: services.clean(NARROW)),
            ("archive", lambda: services.archive(NARROW)),
            ("last delete", self.delete),
            last,
        ]

    def check(self) -> None:
        """The table has the rows."""
        assert_same_rows(self.stored(), self.rows, ignore=(), key=self.key)

    def stored(self) -> pa.Table:
        """The rows of the table, without what writes make."""
        return self.table.to_arrow().drop_columns(MADE_BY_WRITES + ([RECORD_KEY] if self.has_keys else []))

    # ---- steps

    def upsert(self) -> None:
        """Changes all rows, and adds a row like the last one under a new key."""
        rows = self.changed()
        if self.has_keys:
            rows = pa.concat_tables([rows, self.renamed(rows.slice(rows.num_rows - 1))])
        self.written(self.table.upsert(self.given(rows), BY_HAND).instant, rows)

    def delete(self) -> None:
        """Deletes every second row."""
        odd = pa.array([number % 2 == 1 for number in range(self.rows.num_rows)])
        done = self.table.delete(self.given(self.rows.filter(odd)), BY_HAND)
        self.written(done.instant, self.rows.filter(pc.invert(odd)))

    def rollback(self) -> None:
        """A write, and its end."""
        before, instants = self.rows, (self.last, self.before_last)
        self.upsert()
        self.table.services.rollback(self.last)
        self.rows, (self.last, self.before_last) = before, instants

    def restore(self) -> None:
        """Back to a savepoint, past two writes."""
        before, instants = self.rows, (self.last, self.before_last)
        saved = self.table.services.savepoint().instant
        self.upsert()
        self.delete()
        self.table.services.restore(saved)
        self.table.services.delete_savepoint(saved)
        self.rows, (self.last, self.before_last) = before, instants

    def rebuild(self) -> None:
        """The next write builds the metadata table again."""
        if self.table.config.metadata_partitions:
            self.table.services.drop_index("files")
        self.upsert()

    def written(self, instant: str, rows: pa.Table) -> None:
        self.before_last, self.last, self.rows = self.last, instant, rows.combine_chunks()

    # ---- rows

    def given(self, rows: pa.Table) -> pa.Table:
        """What a write gets."""
        return rows.drop_columns([PARTITION_PATH]) if self.has_keys else rows

    def changed(self) -> pa.Table:
        """All rows, with other values in the first column that has no meaning to Hudi; the same rows without one."""
        config, rows = self.table.config, self.rows
        taken = {*config.record_key_fields, *config.partition_fields, *config.ordering_fields, "Op"}
        for at, column in enumerate(rows.schema):
            if column.name in taken or column.name.startswith("_"):
                continue
            number = rows.num_rows
            if pa.types.is_string(column.type):
                return rows.set_column(at, column, pa.array([f"changed {one}" for one in range(number)], column.type))
            if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
                return rows.set_column(at, column, pa.array(range(7, 7 + number)).cast(column.type))
        return rows

    def renamed(self, row: pa.Table) -> pa.Table:
        """The row under a key that no row has."""
        at = row.schema.get_field_index(self.key[0])
        column, limit = row.schema.field(at), pc.max(self.rows[self.key[0]]).as_py()
        return row.set_column(at, column, pa.array([f"{limit}x" if isinstance(limit, str) else limit + 1], column.type))
