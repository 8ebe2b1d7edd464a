"""Expression indexes: conditions on a function of a column, checked against statistics of the function's results.

::

    Condition ─► conjuncts that compare an indexed function of a column with literals
        ─► the same comparisons of a stand-in column, and the statistics that bound it

An index is used only where the filter's function and the index's give the same results for every value. Functions that
depend on a time zone do not: the zone of the index is not stored. ``upper`` and ``lower`` of Java and of Arrow differ
beyond ASCII, but agree on the values that map to a given ASCII text (except Arrow's ``utf8_lower`` and the letter i).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from hudi_fast.metadata_table.definitions import IndexDefinition
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.reading.conditions import (
    And,
    Column,
    Compare,
    Condition,
    Constant,
    Function,
    In,
    Value,
    conjuncts,
)
from hudi_fast.reading.skipping.stats import StatsColumn, column_type

__all__ = ["SPARK", "IndexedExpression", "indexed_expressions"]

SPARK = "spark."
"""Prefix of function names with Spark's own semantics, which the index shares."""

_TO_UPPER = frozenset({"utf8_upper", "ascii_upper"})
_TO_LOWER = frozenset({"utf8_lower", "ascii_lower"})
_DATE_PARTS = {"year": "year", "month": "month", "day": "day", "dayofmonth": "day"}
_TRIMS = {"trim": "utf8_trim", "ltrim": "utf8_ltrim", "rtrim": "utf8_rtrim"}
_LENGTHS = frozenset({"length", "char_length", "character_length"})


@dataclass(frozen=True)
class IndexedExpression:
    """An expression index that applies to a filter.

    Attributes:
        partition: of the metadata table.
        condition: condition on a stand-in column, true wherever the filter is true.
        column: the stand-in, the name of the source column, and the type of the results.
    """

    partition: str
    condition: Condition
    column: StatsColumn


def indexed_expressions(table: MetadataTable, condition: Condition, schema: pa.Schema) -> list[IndexedExpression]:
    """The expression indexes of statistics that apply to the condition, with their conditions."""
    found = []
    for partition in table.partitions:
        definition = table.definitions.get(partition)
        if definition is None or not partition.startswith(PartitionKind.EXPRESSION_INDEX.value):
            continue
        if definition.kind != PartitionKind.COLUMN_STATS.value or len(definition.source_fields) != 1:
            continue
        source = Column((definition.source_fields[0],))
        kind = column_type(schema, source)
        result = None if kind is None else _result_type(definition, kind)
        if result is None:
            continue
        stand_in = Column((partition,))
        parts = tuple(
            replaced
            for part in conjuncts(condition)
            if (replaced := _replaced(part, source, definition, stand_in)) is not None
        )
        if parts:
            found.append(IndexedExpression(partition, And(parts), StatsColumn(stand_in, source.name, result)))
    return found


def _result_type(definition: IndexDefinition, kind: pa.DataType) -> pa.DataType | None:
    """The type of an index's values on a column of that type; None for unsupported functions."""
    name = definition.function
    if name in _DATE_PARTS:
        return pa.int32() if pa.types.is_date32(kind) else None
    if not pa.types.is_string(kind):
        return None
    if name in _LENGTHS:
        return pa.int32()
    return pa.string() if name in ("upper", "lower", "substring", *_TRIMS) else None


def _replaced(part: Condition, source: Column, definition: IndexDefinition, stand_in: Column) -> Condition | None:
    """The condition on the index's values that a conjunct implies; None when it does not concern the index."""
    if isinstance(part, In) and part.null_is is False:
        texts = part.values.to_pylist()
        return In(stand_in, part.values) if _is_indexed(part.value, source, definition, texts, True) else None
    if not isinstance(part, Compare):
        return None
    for value, other, turned in ((part.left, part.right, False), (part.right, part.left, True)):
        if isinstance(other, Constant) and _is_indexed(
            value, source, definition, [other.value.as_py()], part.sign == "=="
        ):
            return Compare(part.sign, other, stand_in) if turned else Compare(part.sign, stand_in, other)
    return None


def _is_indexed(
    value: Value, source: Column, definition: IndexDefinition, literals: list[object], equality: bool
) -> bool:
    """Whether the index holds the results of this function of this column, as far as these literals matter."""
    if not isinstance(value, Function) or value.value != source:
        return False
    name, given, options = definition.function, value.name, value.options
    if given.startswith(SPARK):
        return given in (f"{SPARK}{name}", f"{SPARK}{_DATE_PARTS.get(name, name)}") and name not in _TRIMS
    if name in ("upper", "lower"):
        plain = equality and all(isinstance(one, str) and one.isascii() for one in literals)
        if name == "upper":
            return plain and given in _TO_UPPER
        return plain and given in _TO_LOWER and (given == "ascii_lower" or not any("i" in str(one) for one in literals))
    if name in _DATE_PARTS:
        return given == _DATE_PARTS[name]
    if name in _LENGTHS:
        return given == "utf8_length"
    if name in _TRIMS:
        return given == _TRIMS[name] and options.get("characters") == " " and not definition.options.get("trimString")
    return name == "substring" and given == "utf8_slice_codeunits" and _same_slice(definition.options, options)


def _same_slice(index: Mapping[str, str], given: Mapping[str, object]) -> bool:
    """Compare slices: Spark counts characters from 1 and takes a length, Arrow counts from 0 and takes an end."""
    try:
        first, length = int(index["pos"]), int(index["len"])
    except (KeyError, ValueError):
        return False
    wanted = {"start": first - 1, "stop": first - 1 + length, "step": 1}
    return first >= 1 and length >= 0 and {name: given.get(name) for name in wanted} == wanted
