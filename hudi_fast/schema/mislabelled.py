"""Timestamps that count milliseconds although their file says microseconds.

Where Apache Hudi before 1.1 compares schemas, it knows one type of timestamp, ``timestamp-micros``. A writer of
``timestamp-millis`` then stores milliseconds under the label of microseconds, in its files and in the table's schema.
Since 1.1, releases write the right label to new files and to the table's schema, and read the numbers of older files
as milliseconds::

    file             table's column     the stored number is
    ───────────────  ─────────────────  ──────────────────────────────────────────────
    timestamp[us]    timestamp[ms]      in milliseconds: the label of the file is wrong
    timestamp[ms]    timestamp[us]      in milliseconds, as the file says
    int64            timestamp          in the unit of the column

Only formats that store numbers with a label can have a wrong label: Parquet, and Avro records in logs and HFiles. ORC
and Lance store points in time.

Sources: ``SchemaRepair``, ``HoodieSchemaRepair`` (1.2.0); ``AvroInternalSchemaConverter`` (0.15.0).
"""

from __future__ import annotations

import pyarrow as pa

__all__ = ["counts_milliseconds"]


def counts_milliseconds(stored: pa.DataType, current: pa.DataType) -> bool:
    """Whether values that a file stores as ``stored`` count milliseconds, given the column's type in the table.

    Timestamps without a zone keep their unit: no release gave them a wrong label.
    """
    if not (pa.types.is_timestamp(stored) and pa.types.is_timestamp(current)):
        return False
    return bool(stored.unit == "us" and current.unit == "ms" and stored.tz is not None and current.tz is not None)
