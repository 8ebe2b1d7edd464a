"""A base file with the current names of its columns.

Its reader has the columns under their current names, without dropped ones, and in their current types; the footer is as
stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_fast.formats.base_file import BaseFileFooter, BaseFileReader
from hudi_fast.schema.conform import ConformPlan
from hudi_fast.schema.history import Renames, renamed_plan
from hudi_fast.storage.base import Storage

__all__ = ["RenamedBase"]


class RenamedBase(BaseFileReader):
    """An open base file that is older than an ALTER."""

    def __init__(self, stored: BaseFileReader, names: Renames) -> None:
        self.path = stored.path
        self._stored = stored
        self._plan = renamed_plan(stored.schema, names)
        self._positions = {name: at for at, name in enumerate(self._plan.target.names)}

    @property
    def schema(self) -> pa.Schema:
        """Its columns under their current names."""
        return self._plan.target

    @property
    def num_rows(self) -> int:
        """Its rows."""
        return self._stored.num_rows

    @property
    def num_row_groups(self) -> int:
        """Its row groups."""
        return self._stored.num_row_groups

    @property
    def metadata(self) -> pq.FileMetaData | None:
        """The footer of a Parquet file, with stored names."""
        return self._stored.metadata

    @property
    def location(self) -> tuple[Storage, str]:
        """The file as stored, with former column names."""
        return self._stored.location

    @cached_property
    def only_renamed(self) -> frozenset[str]:
        """Columns whose values are used as stored, under any name."""
        columns = zip(self.schema.names, self._plan.columns, strict=True)
        return frozenset(name for name, column in columns if column.convert is None)

    @cached_property
    def as_stored(self) -> frozenset[str]:
        """Columns with the file's own name and type."""
        stored = self._stored.schema.names
        places = {name: self._plan.columns[at].position for name, at in self._positions.items()}
        return frozenset(name for name in self.only_renamed if stored[places[name]] == name)

    @property
    def stored_bytes(self) -> int:
        """Approximate bytes of all stored rows before compression."""
        return self._stored.stored_bytes

    @property
    def has_labels(self) -> bool:
        """Whether timestamps are numbers beside a label."""
        return self._stored.has_labels

    def footer(self) -> BaseFileFooter:
        """Hudi's footer keys."""
        return self._stored.footer()

    @property
    def has_nan_safe_bounds(self) -> bool:
        """Whether bounds in the footer cover NaN values too."""
        return self._stored.has_nan_safe_bounds

    def text_bounds(self, column: str) -> list[tuple[bytes, bytes] | None]:
        """Bounds of a text column that is stored under its current name; unknown for others."""
        return self._stored.text_bounds(column) if column in self.as_stored else super().text_bounds(column)

    def row_group_rows(self) -> list[int]:
        """Number of rows of each row group."""
        return self._stored.row_group_rows()

    def read(self, columns: Sequence[str], row_groups: Sequence[int] | None = None) -> pa.Table:
        """Columns of all rows, or of the rows in some row groups."""
        plan = self._part(columns)
        return plan.apply(self._stored.read(plan.source.names, row_groups))

    def batches(
        self, columns: Sequence[str], batch_rows: int = 65536, row_groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Rows in file order, at most ``batch_rows`` at a time."""
        plan = self._part(columns)
        for batch in self._stored.batches(plan.source.names, batch_rows, row_groups):
            yield plan.apply(batch)

    def close(self) -> None:
        """Close the file."""
        self._stored.close()

    def _part(self, names: Sequence[str]) -> ConformPlan:
        """The plan for some columns; its source has them in that order, as stored."""
        plan = self._plan
        chosen = [plan.columns[self._positions[name]] for name in names]
        source = pa.schema([plan.source.field(column.position) for column in chosen])
        target = pa.schema([plan.target.field(self._positions[name]) for name in names])
        return ConformPlan(source, target, tuple(replace(one, position=at) for at, one in enumerate(chosen)))
