"""The values of a column with a secondary index as text, and the length of their index entries.

An entry's key holds the value and the record key, both escaped: ``value$key``. HFiles limit its length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import InvalidDataError
from hudi_fast.formats.varlen import single_chunk
from hudi_fast.keys.limits import LONGEST_KEY
from hudi_fast.keys.value_text import to_text
from hudi_fast.metadata_table.keys import secondary_key_lengths

__all__ = ["IndexedColumn", "type_of_column"]

_SHOWN = 50
_NUMBER = 32
"""Upper bound for the bytes of a number, date or time as text."""

_ROWS_AT_ONCE = 16384
"""Rows whose entries are measured together; each entry takes 64 KiB at most."""


@dataclass(frozen=True, slots=True)
class IndexedColumn:
    """A column with a secondary index.

    Attributes:
        index: partition of the metadata table.
        name: name of the column; a dot selects a field of a struct.
    """

    index: str
    name: str

    def root(self, names: list[str]) -> str:
        """The top-level column that holds the values; a column may itself have a dot in its name."""
        return self.name if self.name in names else self.name.partition(".")[0]

    def fields_below(self, root: str) -> list[str]:
        """The names of the fields from the top-level column ``root`` down to the values."""
        return [] if self.name == root else self.name[len(root) + 1 :].split(".")

    def values(self, rows: pa.RecordBatch) -> pa.Array:
        """The column's stored values in ``rows``, which have its top-level column."""
        root = self.root(rows.schema.names)
        values = single_chunk(rows.column(root))
        for part in self.fields_below(root):
            values = pc.struct_field(values, part)
        return values

    def texts(self, values: pa.Array) -> pa.Array:
        """Values as Java prints them, with dates and times as numbers."""
        if pa.types.is_date32(values.type):
            return values.cast(pa.int32()).cast(pa.string())
        return to_text(values, self.name)

    def refuse_long(self, values: pa.Array, keys: pa.Array, table: str, first_row: int | None = None) -> None:
        """Refuse rows whose entries are too long for the index.

        Args:
            values: n values.
            keys: n record keys.
            table: name or location of the table, for messages.
            first_row: number of the first row, for messages; None for rows without numbers.

        Raises:
            InvalidDataError: an entry is too long; names the first such row.
        """
        is_text = pa.types.is_string(values.type)
        lengths = pc.binary_length(keys).to_numpy(zero_copy_only=False).astype(np.int64) + 1
        if is_text:
            lengths += pc.fill_null(pc.binary_length(values), 1).to_numpy(zero_copy_only=False)
        else:
            lengths += _NUMBER
        doubtful = np.flatnonzero(2 * lengths > LONGEST_KEY)  # each byte may be escaped
        if is_text:
            self._refuse(doubtful[lengths[doubtful] > LONGEST_KEY], lengths, values, keys, table, first_row)
        for start in range(0, len(doubtful), _ROWS_AT_ONCE):
            rows = doubtful[start : start + _ROWS_AT_ONCE]
            taken = pa.array(rows)
            lengths[rows] = secondary_key_lengths(self.texts(values.take(taken)), keys.take(taken))
            self._refuse(rows[lengths[rows] > LONGEST_KEY], lengths, values, keys, table, first_row)

    def _refuse(
        self,
        rows: np.ndarray,
        lengths: np.ndarray,
        values: pa.Array,
        keys: pa.Array,
        table: str,
        first_row: int | None,
    ) -> None:
        if not len(rows):
            return
        row = int(rows[0])
        where = "a row" if first_row is None else f"row {first_row + row}"
        raise InvalidDataError(
            f"Column {self.name!r} of {table} has the index {self.index}. Its entries hold the value and the record "
            f"key, {LONGEST_KEY} bytes together, where each backslash, $ and NUL counts twice. That of {where} has "
            f"{lengths[row]} bytes or more: the value begins with {str(values[row].as_py())[:_SHOWN]!r}, the record "
            f"key with {keys[row].as_py()[:_SHOWN]!r}. Shorten them, or drop the index "
            f"(hoodie.metadata.index.drop={self.index})."
        )


def type_of_column(schema: pa.Schema, column: IndexedColumn) -> pa.DataType | None:
    """The type of a column, or of a field inside structs; None if the schema lacks it."""
    root = column.root(schema.names)
    if root not in schema.names:
        return None
    kind = schema.field(root).type
    for part in column.fields_below(root):
        if not pa.types.is_struct(kind) or kind.get_field_index(part) < 0:
            return None
        kind = kind.field(part).type
    return kind
