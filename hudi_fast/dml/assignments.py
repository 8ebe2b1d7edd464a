"""Assignments of a DML statement: columns of the table and their values, checked against the table.

Key columns cannot be set, because the key identifies the row; a merge may assign a key column that its condition makes
equal to the source column. A row whose partition columns change moves: it is deleted in the old partition and inserted
into the new one, in one commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from hudi_fast.config.table_config import TableConfig
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.dml.expressions import evaluate, parse_value
from hudi_fast.dml.statement import BY_SOURCE, MATCHED, NOT_MATCHED, Clause, MergeSpec, all_columns
from hudi_fast.dml.target import check_columns, roots
from hudi_fast.errors import ConfigError
from hudi_fast.merging.rules import MergeRules, merge_rules_of
from hudi_fast.schema.names import resolve_name
from hudi_fast.writing.write_plan import WritePlan

__all__ = ["assigned", "is_upsert", "order_values", "partial_columns_of", "unset_columns", "values_of"]

_FIRST_PARTIAL = 8


def assigned(
    clause: Clause, config: TableConfig, names: Sequence[str], source: Sequence[str], spec: MergeSpec
) -> Mapping[str, Any]:
    """Column of the table -> value, for each column that a clause sets.

    Args:
        clause: an update or an insert.
        config: of the table.
        names: columns of the table.
        source: columns of the source; empty without a source.
        spec: the merge; an update has no pairs.

    Raises:
        ConfigError: an unknown column, or a key column.
    """
    where = f"when {clause.kind} {clause.effect}"
    keys = roots(config.record_key_fields)
    equal = {target: name for target, name in spec.pairs if target in keys}
    if clause.values is None:
        named = all_columns(names, source, spec.exact_names)
        values: dict[str, Any] = {name: f"{spec.aliases[1]}.{other}" for name, other in named.items()}
    else:
        check_columns(clause.values, names, where)
        values = dict(clause.values)
    if clause.kind == NOT_MATCHED:
        return values
    for name in keys:
        if name in values and equal.get(name) is not None and values[name] == f"{spec.aliases[1]}.{equal[name]}":
            del values[name]
    set_keys = [name for name in values if name in keys]
    if set_keys and clause.values is None:
        raise ConfigError(
            f"{where}: `*` would set the record key columns {set_keys} of table {config.name}, which identify "
            "the row. Name them in `on`, as columns that are equal, or name the columns to set."
        )
    if set_keys:
        raise ConfigError(
            f"{where}: the record key columns {set_keys} of table {config.name} cannot be set, because they identify "
            "the row. Delete the row and insert another, or match on these columns."
        )
    if not values:
        raise ConfigError(f"{where}: there are no columns to set besides those that the merge matches on.")
    return values


def partial_columns_of(
    config: TableConfig, options: WriteOptions, spec: MergeSpec, source: Sequence[str], names: Sequence[str]
) -> list[str] | None:
    """The columns that all updated rows set, if they can be written as a partial update; None for whole rows.

    As in Apache Hudi's MERGE INTO, for MERGE_ON_READ tables of version 8 and later, unless
    ``hoodie.spark.sql.merge.into.partial.updates`` is false. Here also only without inserts, and if all updates set the
    same columns.
    """
    updates = [clause for clause in spec.clauses if clause.effect == "update"]
    inserts = any(clause.effect == "insert" for clause in spec.clauses)
    if not updates or inserts or not options.merge_partial_updates:
        return None
    sets = {frozenset(assigned(clause, config, names, source, spec)) for clause in updates}
    moves = config.is_partitioned and any(set(roots(config.partition_fields)) & one for one in sets)
    if len(sets) > 1 or moves or not config.is_mor or config.version < _FIRST_PARTIAL:
        return None
    rules: MergeRules = merge_rules_of(
        config, options.merging.delete_field, options.merging.delete_marker, options.engine.merger
    )
    if rules.blends or (options.index.is_global and options.index.updates_partition):
        return None
    (columns,) = sets
    return [name for name in names if name in columns]


def order_values(
    clause: Clause,
    config: TableConfig,
    names: Sequence[str],
    source: Sequence[str],
    spec: MergeSpec,
    comparable: Callable[[str, str], bool],
) -> Mapping[str, Any] | None:
    """Ordering field -> the value that decides between source rows of one key; None where no order decides.

    It is the value that the clause sets, else the source's column of that name, as in Apache Hudi's MERGE INTO.
    Fields of structs do not decide.

    Args:
        clause: any clause.
        config: of the table.
        names: columns of the table.
        source: columns of the source; empty without a source.
        spec: the merge.
        comparable: whether a column of the table and one of the source have values that can be compared.
    """
    fields = config.ordering_fields
    if clause.kind == BY_SOURCE or not source or not fields or any(name not in names for name in fields):
        return None
    values = {} if clause.effect == "delete" else assigned(clause, config, names, source, spec)
    found: dict[str, Any] = {}
    for name in fields:
        if name in values:
            found[name] = values[name]
            continue
        own = resolve_name(name, source, "columns of the source", spec.exact_names)
        if own is not None and comparable(name, own):
            found[name] = f"{spec.aliases[1]}.{own}"
    return found


def unset_columns(config: TableConfig, spec: MergeSpec, source: Sequence[str], names: Sequence[str]) -> frozenset[str]:
    """The columns of the table that no update of the statement sets: updated rows keep their values.

    Arguments as for :func:`assigned`.
    """
    updates = [clause for clause in spec.clauses if clause.effect == "update"]
    return frozenset(names).difference(*(assigned(clause, config, names, source, spec) for clause in updates))


def is_upsert(plan: WritePlan, spec: MergeSpec, source: Sequence[str]) -> bool:
    """Whether a merge by key sets every column of matched and unmatched rows from the source.

    Then the table need not be read, unless a row may be stored in another partition than the source row's.

    Args:
        plan: the write.
        spec: the merge.
        source: columns of the source.
    """
    kinds = sorted(clause.kind for clause in spec.clauses)
    if kinds != [MATCHED, NOT_MATCHED] or any(clause.condition is not None for clause in spec.clauses):
        return False
    keys, named = set(plan.config.record_key_fields), {one for one, _ in spec.pairs}
    places = set(plan.config.partition_fields) if plan.config.is_partitioned else set()
    if not keys or spec.condition is not None or named != keys | places or (places and plan.index.is_global):
        return False
    update, insert = (spec.of_kind(kind)[0] for kind in (MATCHED, NOT_MATCHED))
    if update.effect != "update":
        return False
    names = plan.schema.names
    new = assigned(insert, plan.config, names, source, spec)
    old = {**{one: f"{spec.aliases[1]}.{other}" for one, other in spec.pairs}}
    old.update(assigned(update, plan.config, names, source, spec))
    columns = {f"{spec.aliases[1]}.{name}" for name in source}
    copies = all(isinstance(value, str) and value in columns for value in (*old.values(), *new.values()))
    return copies and old == new and set(new) == set(names)


def values_of(values: Mapping[str, Any], rows: pa.Table, schema: pa.Schema, clause: Clause) -> pa.Table:
    """The values that a clause sets.

    Args:
        values: of :func:`assigned`.
        rows: n rows selected by the clause; texts and expressions name their columns.
        schema: of the table.
        clause: for messages.

    Returns:
        n rows of the columns set, in the table's types.
    """
    where = f"when {clause.kind} {clause.effect}"
    expressions = {
        name: parse_value(value, rows.column_names, f"{where}, column {name!r}") for name, value in values.items()
    }
    return evaluate(rows, expressions, {name: schema.field(name).type for name in values}, where, assigns=True)
