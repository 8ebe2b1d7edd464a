"""Timestamps that count milliseconds although their file says microseconds.

Apache Hudi before 1.1 has one type of timestamp where it compares schemas, and calls it ``timestamp-micros``. A writer
of ``timestamp-millis`` then stores milliseconds under the label of microseconds, in its files and in the table's
schema. Releases from 1.1 on give new files and the table the right label, and read the numbers of older files as
milliseconds::

    file             table's column     the stored number is
    ───────────────  ─────────────────  ──────────────────────────────────────────────
    timestamp[us]    timestamp[ms]      in milliseconds: the label of the file is wrong
    timestamp[ms]    timestamp[us]      in milliseconds, as the file says
    int64            timestamp          in the unit of the column

Only files that store numbers beside a label can have a wrong one: Parquet, and Avro records in logs and HFiles. ORC and
Lance store moments.

Sources: ``SchemaRepair``, ``HoodieSchemaRepair`` (1.2.0); ``AvroInternalSchemaConverter`` (0.15.0).
"""

from __future__ import annotations

import pyarrow as pa

__all__ = ["counts_milliseconds"]


def counts_milliseconds(stored: pa.DataType, current: pa.DataType) -> bool:
    """Whether values that a file stores as ``stored`` count milliseconds, by the column's type in the table.

    Timestamps without a zone keep their unit: no release gave them the wrong one.
    """
    if not (pa.types.is_timestamp(stored) and pa.types.is_timestamp(current)):
        return False
    return bool(stored.unit == "us" and current.unit == "ms" and stored.tz is not None and current.tz is not None)
