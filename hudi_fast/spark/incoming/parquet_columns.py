"""Columns of a Parquet file that Arrow and Spark read alike: the table of rules.

Spark and Arrow give some stored values other meanings: timestamps of nanoseconds, or without the right zone; dates and
timestamps in the old calendar; unsigned integers; decimals as text; lists in two levels. Spark also reads files whose
columns are missing, have other types, or differ in upper and lower case. Such a file is refused, so Spark reads it.

Timestamps of 96 bits, which Spark writes by default, are in UTC and in the present calendar if Spark 3 or later wrote
them without the mark of the old calendar. Those of other writers are refused.

Source: ``ParquetToSparkSchemaConverter``, ``ParquetRowConverter``, ``ParquetVectorUpdaterFactory`` and
``DataSourceUtils.datetimeRebaseSpec`` of Spark 3.5 to 4.3.
"""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_fast.spark.incoming.refusal import ScanRefusedError

__all__ = [
    "FIRST_DAY",
    "FIRST_TIME",
    "Leaves",
    "ReadRules",
    "is_readable",
    "leaves_to_read",
    "require_present_calendar",
]

_VERSION = b"org.apache.spark.version"
_LEGACY = b"org.apache.spark.legacyDateTime"
_LEGACY_96 = b"org.apache.spark.legacyINT96"
FIRST_DAY = datetime.date(1582, 10, 15)
"""The first day of the present calendar."""

FIRST_TIME = datetime.datetime(1900, 1, 2)
"""Before 1900 Spark may move timestamps that were written by others; a day later than its own bound."""

_FIRST_PROLEPTIC = 3
"""Spark 2 wrote dates in the old calendar."""

_STORED_AS: dict[pa.DataType, frozenset[str]] = {
    pa.bool_(): frozenset({"BOOLEAN"}),
    pa.int8(): frozenset({"INT32 Int(8)"}),
    pa.int16(): frozenset({"INT32 Int(16)"}),
    pa.int32(): frozenset({"INT32", "INT32 Int(32)"}),
    pa.int64(): frozenset({"INT64", "INT64 Int(64)"}),
    pa.float32(): frozenset({"FLOAT"}),
    pa.float64(): frozenset({"DOUBLE"}),
    pa.string(): frozenset({"BYTE_ARRAY String"}),
    pa.binary(): frozenset({"BYTE_ARRAY"}),
    pa.date32(): frozenset({"INT32 Date"}),
    pa.timestamp("us", "UTC"): frozenset({"INT64 Timestamp(microseconds, UTC)", "INT96"}),
    pa.timestamp("us"): frozenset({"INT64 Timestamp(microseconds)"}),
}
"""The forms in which a column of a type may be stored; :func:`_form` names them. Decimals are in :func:`_forms`."""

_DECIMALS = ("INT32", "INT64", "FIXED_LEN_BYTE_ARRAY")


@dataclass(frozen=True, slots=True)
class ReadRules:
    """Settings of the session's Parquet reader.

    Attributes:
        exact_names: whether upper and lower case differ in column names.
        calendar: of dates and timestamps in files that do not name Spark as their writer: ``CORRECTED``, the present
            one; ``LEGACY``, the old one; ``EXCEPTION``: Spark refuses values that may be in either.
    """

    exact_names: bool
    calendar: str


@dataclass(frozen=True, slots=True)
class Leaves:
    """The leaf columns to read from a file.

    Attributes:
        paths: dotted paths.
        unzoned: columns with timestamps of 96 bits, which Arrow reads without their zone, UTC.
        dated: columns of dates and timestamps whose values must not be before :data:`FIRST_DAY` or :data:`FIRST_TIME`.
    """

    paths: list[str]
    unzoned: frozenset[str]
    dated: frozenset[str]


def is_readable(kind: pa.DataType) -> bool:
    """Whether there are rules for a type."""
    if pa.types.is_struct(kind):
        return kind.num_fields > 0 and all(is_readable(field.type) for field in kind)
    if pa.types.is_map(kind):
        return is_readable(kind.key_type) and is_readable(kind.item_type)
    if pa.types.is_list(kind):
        return is_readable(kind.value_type)
    return bool(_forms(kind))


def leaves_to_read(metadata: pq.FileMetaData, stored: pa.Schema, wanted: pa.Schema, rules: ReadRules) -> Leaves:
    """The leaf columns that hold the wanted columns.

    Args:
        metadata: footer of the file.
        stored: columns of the file, as Arrow reads them.
        wanted: columns that Spark's scan would read, in their types; fields of structs may be missing.
        rules: of the session.

    Raises:
        ScanRefusedError: Spark might read other values than Arrow.
    """
    columns = [metadata.schema.column(number) for number in range(metadata.num_columns)]
    by_path = {one.path: one for one in columns}
    if len(by_path) < len(columns):
        raise ScanRefusedError("two of its columns have one path")
    found = _Walk(by_path, rules)
    found.members("", stored, wanted)
    for path in found.paths:
        if any(other.startswith(f"{path}.") for other in by_path):
            raise ScanRefusedError(f"its column {path} has a dot in its name")
    pairs = metadata.metadata or {}
    dated: frozenset[str] = frozenset()
    if found.dated and _VERSION not in pairs and rules.calendar == "EXCEPTION":
        dated = frozenset(found.dated)
        if nested := sorted(name for name in dated if pa.types.is_nested(wanted.field(name).type)):
            raise ScanRefusedError(f"the dates or timestamps in its column {nested[0]} may be in the old calendar")
    elif found.dated and (not _is_proleptic(pairs, rules.calendar == "CORRECTED") or _LEGACY in pairs):
        raise ScanRefusedError("its dates or timestamps may be in the old calendar")
    if found.unzoned and (not _is_proleptic(pairs, False) or _LEGACY_96 in pairs):
        raise ScanRefusedError("its timestamps of 96 bits may be in the old calendar, or in another zone")
    return Leaves(found.paths, frozenset(found.unzoned), dated)


def require_present_calendar(rows: pa.RecordBatch, leaves: Leaves) -> None:
    """Refuse dates and timestamps that Spark refuses, because they may be in the old calendar."""
    for name in leaves.dated:
        column = rows.column(name)
        first: datetime.date = FIRST_DAY
        if pa.types.is_timestamp(column.type):
            first, column = FIRST_TIME, column.cast(pa.timestamp("us"))
        if pc.any(pc.less(column, pa.scalar(first, column.type))).as_py():
            raise ScanRefusedError(f"its column {name} has values before {first:%Y-%m-%d}")


class _Walk:
    """Collects the leaf columns of wanted columns."""

    def __init__(self, by_path: Mapping[str, Any], rules: ReadRules) -> None:
        self.paths: list[str] = []
        self.unzoned: set[str] = set()
        self.dated: set[str] = set()
        self._by_path, self._rules = by_path, rules
        self._root = ""

    def members(self, path: str, stored: Sequence[pa.Field], wanted: Sequence[pa.Field]) -> None:
        """The members of a struct, or the columns of a file."""
        names = [field.name for field in stored]
        same = Counter(names if self._rules.exact_names else [name.lower() for name in names])
        positions = []
        for field in wanted:
            name = f"{path}{field.name}"
            self._root = self._root if path else name
            if field.name not in names:
                raise ScanRefusedError(f"it has no column {name}")
            if same[field.name if self._rules.exact_names else field.name.lower()] > 1:
                raise ScanRefusedError(f"its column {name} has the name of another, in upper or lower case")
            positions.append(names.index(field.name))
            self._column(name, stored[positions[-1]].type, field.type)
        if path and positions != sorted(positions):
            raise ScanRefusedError(f"the fields of its column {path[:-1]} have another order")

    def _column(self, path: str, stored: pa.DataType, wanted: pa.DataType) -> None:
        if pa.types.is_struct(wanted) and pa.types.is_struct(stored):
            self.members(f"{path}.", list(stored), list(wanted))
        elif pa.types.is_map(wanted) and pa.types.is_map(stored):
            self._column(f"{path}.key_value.key", stored.key_type, wanted.key_type)
            self._column(f"{path}.key_value.value", stored.item_type, wanted.item_type)
        elif pa.types.is_list(wanted) and pa.types.is_list(stored):
            self._column(f"{path}.list.element", stored.value_type, wanted.value_type)
        else:
            self._leaf(path, wanted)

    def _leaf(self, path: str, wanted: pa.DataType) -> None:
        if path not in self._by_path:
            raise ScanRefusedError(f"its column {path} is not stored as {wanted}")
        form = _form(self._by_path[path])
        if form not in _forms(wanted):
            raise ScanRefusedError(f"its column {path} is stored as {form}, and read as {wanted}")
        self.paths.append(path)
        if form == "INT96":
            self.unzoned.add(self._root)
        elif pa.types.is_date(wanted) or pa.types.is_timestamp(wanted):
            self.dated.add(self._root)


def _forms(kind: pa.DataType) -> frozenset[str]:
    if pa.types.is_decimal128(kind):
        return frozenset(f"{physical} Decimal({kind.precision}, {kind.scale})" for physical in _DECIMALS)
    return _STORED_AS.get(kind, frozenset())


def _form(column: Any) -> str:
    """How a leaf column is stored: its physical type, and the meaning of its values."""
    said = json.loads(column.logical_type.to_json())
    kind = said["Type"]
    if kind in ("None", "Undefined"):
        return str(column.physical_type)
    details = {
        "Int": lambda: f"({said['bitWidth']})" if said["isSigned"] else f"({said['bitWidth']}, unsigned)",
        "Decimal": lambda: f"({said['precision']}, {said['scale']})",
        "Timestamp": lambda: f"({said['timeUnit']}{', UTC' if said['isAdjustedToUTC'] else ''})",
    }
    return f"{column.physical_type} {kind}{details[kind]() if kind in details else ''}"


def _is_proleptic(pairs: Mapping[bytes, bytes], otherwise: bool) -> bool:
    """Whether the writer is a Spark that uses the present calendar; ``otherwise`` for other writers."""
    version = pairs.get(_VERSION)
    if version is None:
        return otherwise
    major = version.partition(b".")[0]
    return major.isdigit() and int(major) >= _FIRST_PROLEPTIC
