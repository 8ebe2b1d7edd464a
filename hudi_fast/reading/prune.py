"""Prune partitions and row groups, and find partitions by names.

Prune partitions by their paths and row groups by their statistics.

Both exclude only data that certainly does not match; the filter is still applied to the remaining rows.

A file may store another value of a partition column than its path: an update by Hudi before 1.0 leaves a row in its
partition. Queries and filters then take the value of the path if the path has one, as Apache Hudi does.

Partitions of a table by the values of their columns, as SQL names them: ``PARTITION (day = '2024-05-01')``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import ConfigError
from hudi_fast.expressions.conditions import And, Anything, Condition, Not, Or, columns_of
from hudi_fast.formats.parquet.encryption import encryption_of
from hudi_fast.keys.partition_path import DEFAULT_PARTITION, OLD_DEFAULT_PARTITION, stored_values
from hudi_fast.storage.base import Storage
from hudi_fast.view.slices import TableView, latest_slices

__all__ = [
    "known_partition_values",
    "live_partitions",
    "matching_partitions",
    "matching_row_groups",
    "of_stored_values",
    "partition_columns",
    "partitions_of_clause",
    "path_columns",
    "typed_partition_values",
]

_SLASHED_DATE = re.compile(r"\d{4}/\d\d/\d\d$")
"""A date with slashes. The column may hold dashes: a table may not record that a writer replaced them."""

_PATH_KINDS = frozenset({"SIMPLE", "COMPLEX"})
_READABLE = (pa.types.is_string, pa.types.is_integer, pa.types.is_date, pa.types.is_boolean, pa.types.is_decimal)
"""Kinds of types whose text in a path is the value. A timestamp's may be less precise; NaN has no bounds."""


def matching_partitions(
    config: TableConfig, schema: pa.Schema, partitions: Sequence[str], filter_: pc.Expression | None
) -> list[str]:
    """The ``partitions`` whose rows may match."""
    if filter_ is None or not config.is_partitioned:
        return list(partitions)
    file_format = ds.ParquetFileFormat()
    filesystem = pa.fs.LocalFileSystem()
    fragments = [
        file_format.make_fragment(
            str(number),
            filesystem,
            partition_expression=_all_equal(known_partition_values(config, schema, partition)),
        )
        for number, partition in enumerate(partitions)
    ]
    dataset = ds.FileSystemDataset(fragments, schema, file_format, filesystem)
    return [partitions[int(fragment.path)] for fragment in dataset.get_fragments(filter_)]


def typed_partition_values(config: TableConfig, schema: pa.Schema, partition: str) -> dict[str, pa.Scalar]:
    """Partition columns whose value follows from the path unambiguously.

    Text columns are left out where the path stands for both null and the empty string; in other columns that path means
    null. Columns of a time-based path are left out, since the path is less precise.
    """
    typed: dict[str, pa.Scalar] = {}
    for name, text in _texts(config, path_columns(config, schema), partition).items():
        kind = schema.field(name).type
        if text is None and pa.types.is_string(kind):
            continue
        try:
            typed[name] = pc.cast(pa.scalar(text, pa.string()), kind)
        except pa.ArrowInvalid:
            continue
    return typed


def known_partition_values(config: TableConfig, schema: pa.Schema, partition: str) -> dict[str, pa.Scalar]:
    """:func:`typed_partition_values`, without columns in which stored rows may hold null instead."""
    values = typed_partition_values(config, schema, partition)
    return {name: value for name, value in values.items() if not _may_be_null(config, value.as_py())}


def path_columns(config: TableConfig, schema: pa.Schema) -> frozenset[str]:
    """The partition columns whose values may be read from paths."""
    if config.key_generator not in _PATH_KINDS or config.slash_separated_dates:
        return frozenset()
    present = [schema.field(name) for name in config.partition_fields if name in schema.names]
    return frozenset(field.name for field in present if any(is_kind(field.type) for is_kind in _READABLE))


def of_stored_values(condition: Condition, from_path: Set[str]) -> Condition:
    """The condition for the values in files: parts on columns that are read from paths become unknown."""
    match condition:
        case And():
            return And(tuple(of_stored_values(part, from_path) for part in condition.parts))
        case Or():
            return Or(tuple(of_stored_values(part, from_path) for part in condition.parts))
        case Not():
            return Not(of_stored_values(condition.part, from_path))
    return condition if from_path.isdisjoint(one.path[0] for one in columns_of(condition)) else Anything()


def partition_columns(config: TableConfig, schema: pa.Schema, partitions: Sequence[str]) -> dict[str, pa.Array]:
    """:func:`known_partition_values` of n partitions: by column name, n values; null where the value is unknown."""
    fields = path_columns(config, schema)
    found = [_texts(config, fields, partition) for partition in partitions]

    def text(name: str, texts: Mapping[str, str | None]) -> str | None:
        value = texts.get(name)
        return None if _may_be_null(config, value) else value

    return {name: _cast([text(name, texts) for texts in found], schema.field(name).type) for name in fields}


def _may_be_null(config: TableConfig, value: object) -> bool:
    """Whether rows of the partition with this value may hold null instead.

    A table that was upgraded from a version before 5 may hold nulls in the partition ``default``.
    """
    return value == OLD_DEFAULT_PARTITION and not config.drop_partition_columns


def _cast(texts: list[str | None], kind: pa.DataType) -> pa.Array:
    values = pa.array(texts, pa.string())
    try:
        return pc.cast(values, kind)
    except pa.ArrowInvalid:  # some text is not a value of the type
        distinct = values.dictionary_encode()
        typed = [_value(text, kind) for text in distinct.dictionary]
        return pa.array(typed, kind).take(distinct.indices)


def _value(text: pa.Scalar, kind: pa.DataType) -> object:
    try:
        return pc.cast(text, kind).as_py()
    except pa.ArrowInvalid:
        return None


def _texts(config: TableConfig, fields: Set[str], partition: str) -> dict[str, str | None]:
    """The texts of ``fields`` in a path; None for null and the empty string."""
    if not fields:
        return {}
    texts = stored_values(partition, config) or {}
    wanted = {name: None if text == DEFAULT_PARTITION else text for name, text in texts.items() if name in fields}
    return {name: text for name, text in wanted.items() if text is None or not _SLASHED_DATE.match(text)}


def matching_row_groups(
    storage: Storage, path: str, filter_: pc.Expression | None, known: Mapping[str, pa.Scalar]
) -> list[int] | None:
    """Row groups of a base file that may match; None for all of them.

    ``known`` are values of columns in all rows, whatever the file stores.
    """
    if filter_ is None:
        return None
    encryption = encryption_of(storage)
    keys = {} if encryption is None else {"decryption_properties": encryption.for_reading()}
    format_ = ds.ParquetFileFormat(**keys)
    fragment = format_.make_fragment(storage.fs_path(path), storage.fs, partition_expression=_all_equal(known))
    try:
        return [group.id for group in fragment.subset(filter_).row_groups]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None  # the file lacks a column or has an older type, so its statistics cannot be used
    except FileNotFoundError:
        return None  # the file was just cleaned; a reader that has it open may continue


def _all_equal(known: Mapping[str, pa.Scalar]) -> pc.Expression:
    condition = pc.scalar(True)
    for name, value in known.items():
        condition = condition & (pc.field(name) == value if value.is_valid else pc.field(name).is_null())
    return condition


def live_partitions(view: TableView) -> list[str]:
    """Paths of the partitions that have rows, sorted."""
    replaced = {partition for partition, _ in view.replaced}
    return sorted(path for path in view.lister.partitions() if path not in replaced or latest_slices(view, path))


def partitions_of_clause(
    config: TableConfig,
    paths: Iterable[str],
    clause: Mapping[str, str | None],
    constant: Callable[[str], object],
    table: str,
) -> list[str]:
    """The partition paths that a ``PARTITION`` clause matches.

    Args:
        config: configuration of the table.
        paths: partition paths.
        clause: columns, in upper or lower case, with their values as expressions; without a value, any value matches.
        constant: the value of an expression.
        table: name of the table in messages.

    Raises:
        ConfigError: the table is not partitioned by one of the columns.
    """
    names = list(config.partition_fields)
    by_lower = {name.lower(): name for name in names}
    unknown = [name for name in clause if name.lower() not in by_lower]
    if unknown:
        raise ConfigError(f"The table {table} is partitioned by {names}, not by {unknown}.")
    wanted = {by_lower[name.lower()]: _text(constant(said)) for name, said in clause.items() if said is not None}
    if not wanted:
        return list(paths)
    found = []
    for path in paths:
        stored = stored_values(path, config)
        if stored is not None and all(stored[name] == text for name, text in wanted.items()):
            found.append(path)
    return found


def _text(value: object) -> str | None:
    """The text of a value in a path; None for null."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)
