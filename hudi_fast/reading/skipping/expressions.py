"""Expression indexes: conditions on a function of a column, checked against stored facts about its results.

::

    Condition ─► conjuncts that compare an indexed function of a column with literals
        ─► statistics: the same comparisons of a stand-in column, and the statistics that bound it
        ─► bloom filters: the texts of the literals; the result of each matching row has one of these texts

An index is used only where the filter's function and the index's give the same results for every value. Functions that
depend on a time zone may not: the zone of the index is not stored. ``upper`` and ``lower`` of Java and of Arrow differ
beyond ASCII, but agree on the values that map to a given ASCII text (except Arrow's ``utf8_lower`` and the letter i).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.expressions.conditions import And, Column, Compare, Condition, Constant, Function, In, Value, conjuncts
from hudi_fast.metadata_table.layout import IndexDefinition, PartitionKind
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.reading.skipping.stats import StatsColumn, column_type
from hudi_fast.values import dataclass

__all__ = ["SPARK", "FilteredExpression", "IndexedExpression", "filtered_expressions", "indexed_expressions"]

SPARK = "spark."
"""Prefix of function names with Spark's own semantics, which the index shares."""

_IDENTITY = "identity"
_TO_UPPER = frozenset({"utf8_upper", "ascii_upper"})
_TO_LOWER = frozenset({"utf8_lower", "ascii_lower"})
_DATE_PARTS = {"year": "year", "month": "month", "day": "day", "dayofmonth": "day"}
_TRIMS = {"trim": "utf8_trim", "ltrim": "utf8_ltrim", "rtrim": "utf8_rtrim"}
_DATES = frozenset({"date_add", "date_sub"})
_TEXTS = frozenset({"upper", "lower", "substring", "regexp_extract", "regexp_replace", *_TRIMS})
_ARGUMENTS = frozenset({"trimString", "pos", "len", "days", "pattern", "idx", "replacement"})
"""Options of an index that are arguments of its function."""
_LENGTHS = frozenset({"length", "char_length", "character_length"})


@dataclass(frozen=True)
class IndexedExpression:
    """An expression index that applies to a filter.

    Attributes:
        partition: partition of the metadata table.
        condition: condition on a stand-in column, true wherever the filter is true.
        column: the stand-in, the name of the source column, and the type of the results.
    """

    partition: str
    condition: Condition
    column: StatsColumn


@dataclass(frozen=True)
class FilteredExpression:
    """An expression index of bloom filters that applies to a filter.

    Attributes:
        partition: partition of the metadata table.
        texts: string[n], not empty: the result of each matching row has one of these texts.
    """

    partition: str
    texts: pa.Array


def filtered_expressions(table: MetadataTable, condition: Condition, schema: pa.Schema) -> list[FilteredExpression]:
    """The expression indexes of bloom filters that apply to the condition."""
    found = []
    for partition, definition, source, kind in _indexes(table, schema, PartitionKind.BLOOM_FILTERS):
        result = kind if definition.function == _IDENTITY else _result_type(definition, kind)
        if result is None or not (pa.types.is_string(result) or pa.types.is_integer(result)):
            continue
        for part in conjuncts(condition):
            texts = _texts(_equal_to(part, source, definition), result)
            if texts is not None:
                found.append(FilteredExpression(partition, texts))
    return found


def indexed_expressions(table: MetadataTable, condition: Condition, schema: pa.Schema) -> list[IndexedExpression]:
    """The expression indexes of statistics that apply to the condition, with their conditions."""
    found = []
    for partition, definition, source, kind in _indexes(table, schema, PartitionKind.COLUMN_STATS):
        result = _result_type(definition, kind)
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


def _indexes(
    table: MetadataTable, schema: pa.Schema, holding: PartitionKind
) -> Iterator[tuple[str, IndexDefinition, Column, pa.DataType]]:
    """The expression indexes of kind ``holding``, with their column and its type."""
    for partition in table.partitions:
        definition = table.definitions.get(partition)
        if definition is None or not partition.startswith(PartitionKind.EXPRESSION_INDEX.value):
            continue
        if definition.kind != holding.value or len(definition.source_fields) != 1:
            continue
        source = Column((definition.source_fields[0],))
        kind = column_type(schema, source)
        if kind is not None:
            yield partition, definition, source, kind


def _equal_to(part: Condition, source: Column, definition: IndexDefinition) -> pa.Array | None:
    """The literals, one of which the function's result must equal by a conjunct; None for any other conjunct."""
    if isinstance(part, In) and part.null_is is not True:
        value, literals = part.value, part.values
    elif isinstance(part, Compare) and part.sign == "==":
        sides = (part.left, part.right) if isinstance(part.right, Constant) else (part.right, part.left)
        if not isinstance(sides[1], Constant):
            return None
        value, literals = sides[0], pa.array([sides[1].value.as_py()], sides[1].value.type)
    else:
        return None
    if definition.function == _IDENTITY:
        return literals if value == source else None
    return literals if _is_indexed(value, source, definition, literals.to_pylist(), True) else None


def _texts(literals: pa.Array | None, result: pa.DataType) -> pa.Array | None:
    """The texts of literals as filters hold them; None if a filter may lack one."""
    alike = (pa.types.is_string, pa.types.is_integer)
    if literals is None or not any(one(literals.type) and one(result) for one in alike):
        return None
    texts = literals.drop_null().cast(pa.string())
    return texts if len(texts) and pc.all(pc.not_equal(texts, "")).as_py() else None


def _result_type(definition: IndexDefinition, kind: pa.DataType) -> pa.DataType | None:
    """The type of an index's values on a column of that type; None for unsupported functions."""
    name = definition.function
    if name in _DATE_PARTS:
        return pa.int32() if pa.types.is_date32(kind) else None
    if name in _DATES:
        return kind if pa.types.is_date32(kind) else None
    if not pa.types.is_string(kind):
        return None
    if name in _LENGTHS:
        return pa.int32()
    return pa.string() if name in _TEXTS else None


def _replaced(part: Condition, source: Column, definition: IndexDefinition, stand_in: Column) -> Condition | None:
    """The condition on the index's values that a conjunct implies; None when the index does not apply to it."""
    if isinstance(part, In) and part.null_is is not True:
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
        arguments = {key: one for key, one in definition.options.items() if key in _ARGUMENTS}
        return given in (f"{SPARK}{name}", f"{SPARK}{_DATE_PARTS.get(name, name)}") and arguments == options
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
