"""Rows that describe a difference: its kind, its key, the expected and the found value."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["ROWS", "difference", "differences"]

ROWS = pa.schema([pa.field(name, pa.string()) for name in ("what", "key", "expected", "found")])
"""Columns of the differences that validation reports."""


def difference(what: str, key: str | None = None, expected: str | None = None, found: str | None = None) -> pa.Table:
    """One row of :data:`ROWS`.

    Args:
        what: kind of difference.
        key: file, record key, column ...
        expected: value according to the table.
        found: value in the metadata table.
    """
    return pa.Table.from_pylist([{"what": what, "key": key, "expected": expected, "found": found}], ROWS)


def differences(
    what: str | pa.Array, keys: pa.Array, expected: pa.Array | None = None, found: pa.Array | None = None
) -> pa.Table:
    """Rows of :data:`ROWS`.

    Args:
        what: kind of difference: one for all, or string[n].
        keys: string[n].
        expected: string[n], or None.
        found: string[n], or None.
    """
    count = len(keys)
    nothing = pa.nulls(count, pa.string())
    kinds = pa.repeat(pa.scalar(what, pa.string()), count) if isinstance(what, str) else what
    columns = [kinds, keys, nothing if expected is None else expected, nothing if found is None else found]
    return pa.Table.from_arrays(columns, schema=ROWS)
