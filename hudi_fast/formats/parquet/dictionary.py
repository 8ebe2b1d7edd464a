"""Select the columns to dictionary-encode, by a sample of the first rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

__all__ = ["dictionary_columns"]

_SAMPLE_ROWS = 8192
_DICTIONARY_SHARE = 0.25


def dictionary_columns(table: pa.Table, always: Sequence[str], never: Sequence[str]) -> list[str]:
    """Top-level columns whose values repeat enough for a dictionary, judged by the first rows of ``table``.

    Args:
        table: rows to write.
        always: columns that always get a dictionary (constant meta columns).
        never: columns that never get a dictionary (keys).
    """
    chosen = list(always)
    sample = table.slice(0, _SAMPLE_ROWS)
    for name, column in zip(sample.column_names, sample.columns, strict=True):
        if name in chosen or name in never or pa.types.is_nested(column.type):
            continue
        if pa.types.is_boolean(column.type) or sample.num_rows == 0:
            continue
        distinct = len(column.unique())
        if distinct <= max(1, int(sample.num_rows * _DICTIONARY_SHARE)):
            chosen.append(name)
    return chosen
