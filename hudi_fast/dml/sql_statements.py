"""``MERGE INTO`` and ``INSERT OVERWRITE`` as writes of either engine.

``INSERT OVERWRITE``: which partitions it replaces (``ProvidesHoodieConfig.deduceOverwriteConfig``, Hudi 1.2.0).

======================================  ==================================================================
the write operation names an overwrite  that operation
the table has no partitions             all rows
DYNAMIC                                 the partitions that receive rows
STATIC, no ``PARTITION`` clause         all rows
STATIC, ``PARTITION (a = 1, b)``        the partitions that match the clause, whether they receive rows or not
======================================  ==================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hudi_fast.dml.statement import MATCHED, NOT_MATCHED, Merge
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.sql_text.statements import MergeInto, equal_columns

__all__ = ["merge_aliases", "merge_of", "overwrite_options"]


def merge_aliases(statement: MergeInto, table: str) -> tuple[str, str]:
    """The names of the table and of the source in the statement.

    Args:
        statement: the statement.
        table: the table's name, for a statement without an alias of it.
    """
    target = statement.alias or table
    return target, statement.source_alias or ("source" if target.lower() != "source" else "given")


def merge_of(
    builder: Merge,
    statement: MergeInto,
    engines: Callable[[str], Any] = str,
) -> Merge:
    """The builder with the match and the clauses of the statement.

    Args:
        builder: a merge with the statement's aliases, and without a match.
        statement: the statement.
        engines: turns the text of a condition or a value into the engine's form.
    """
    pairs = equal_columns(statement.condition, builder.spec.aliases)
    columns = dict(pairs)
    one_each = len({name.lower() for name in columns}) == len(pairs)  # t.id = s.a AND t.id = s.b is a condition
    builder = builder.on(columns if pairs and one_each else engines(statement.condition))
    for clause in statement.clauses:
        when = None if clause.condition is None else engines(clause.condition)
        values = clause.values and {name: engines(text) for name, text in clause.values.items()}
        if clause.kind == NOT_MATCHED:
            builder = builder.when_not_matched_insert(values, when)
        elif clause.kind == MATCHED and clause.effect == "delete":
            builder = builder.when_matched_delete(when)
        elif clause.kind == MATCHED:
            builder = builder.when_matched_update(values, when)
        elif clause.effect == "delete":
            builder = builder.when_not_matched_by_source_delete(when)
        else:
            builder = builder.when_not_matched_by_source_update(values or {}, when)
    return builder


_OPERATION = "hoodie.datasource.write.operation"
_PARTITIONS = "hoodie.static.overwrite.partition.paths"
_OVERWRITES = ("insert_overwrite", "insert_overwrite_table")


def overwrite_options(
    operation: str, mode: str, is_partitioned: bool, clause: Mapping[str, object], matching: Callable[[], Sequence[str]]
) -> dict[str, str]:
    """The options of the write that executes an ``INSERT OVERWRITE``.

    Args:
        operation: as the options name it; ignored if it is not an overwrite.
        mode: ``STATIC`` or ``DYNAMIC``, in any case.
        is_partitioned: whether the table has partition columns.
        clause: the ``PARTITION`` clause; empty without one.
        matching: paths of the partitions that match it.

    Raises:
        ConfigError: an unknown mode.
        UnsupportedFeatureError: the path of a matching partition has a comma.
    """
    if operation.lower() in _OVERWRITES:
        return {_OPERATION: operation.lower()}
    if mode.upper() not in ("STATIC", "DYNAMIC"):
        raise ConfigError(f"hoodie.datasource.overwrite.mode={mode!r} is not valid; valid values: STATIC, DYNAMIC.")
    is_static = mode.upper() == "STATIC"
    if not is_partitioned or (is_static and not clause):
        return {_OPERATION: "insert_overwrite_table"}
    if not is_static:
        return {_OPERATION: "insert_overwrite"}
    paths = matching()
    if odd := [path for path in paths if "," in path]:
        raise UnsupportedFeatureError(
            f"INSERT OVERWRITE of the partitions {odd} is not supported, because their paths have commas; truncate "
            "them and insert, or set hoodie.datasource.overwrite.mode=DYNAMIC."
        )
    return {_OPERATION: "insert_overwrite", _PARTITIONS: ",".join(paths)}
