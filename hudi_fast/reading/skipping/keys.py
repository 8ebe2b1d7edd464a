"""Skip file groups by record keys in the filter.

::

    Condition ─► values that a column must have ─► record keys, in every form that the key generator may have used
        ─► record index ─► (partition path, file id)
    Condition on an indexed column ─► secondary index ─► record keys ─► record index ─► (partition path, file id)
    record keys ─► bloom filters ─► slices whose base file may hold one

A result is a superset of the matches, or None when unknown. The record index and secondary indexes describe the table's
current rows, so only queries of current rows may use them.

A secondary index is trusted only for entries that every release writes into an index of its version. An index of
version 1 may lack nulls, which Hudi 1.0 leaves out. Sources: ``SecondaryIndexRecordGenerationUtils`` and
``SecondaryIndexKeyUtils``, Hudi 1.0.0 to 1.2.0.

Skip file groups by record keys in the filter, for tables with a bucket index.

::

    record keys ─► hash, by the rules of all releases ─► buckets ─► slices of these buckets

The table stores the ranges of consistent hashing. It does not store a fixed number of buckets: that number comes from
the read options, and a partition whose file groups do not fit it is not skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import HudiError
from hudi_fast.expressions.conditions import Column, Compare, Condition, Constant, In, IsNull, conjuncts
from hudi_fast.formats.bloom_filter import BloomFilter
from hudi_fast.index.buckets import (
    bucket_count,
    bucket_number,
    bucket_of_keys,
    has_hashing,
    load_bucket_counts,
    load_hashing,
    node_of_keys,
)
from hudi_fast.index.metadata_lookup import is_by_partition, locate_keys
from hudi_fast.index.tagging import BucketSettings
from hudi_fast.kernels.hashes import ANY_COLON, COMMA_AND_COLON
from hudi_fast.keys.key_generator import KINDS, KeyConfig, record_keys
from hudi_fast.keys.value_text import to_text
from hudi_fast.metadata_table.keys import bloom_key, secondary_prefix, split_secondary_keys
from hudi_fast.metadata_table.layout import PartitionKind, index_version
from hudi_fast.metadata_table.read import lookup, prefix
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.reading.skipping.stats import column_type
from hudi_fast.schema.history import SchemaHistory, altered_columns
from hudi_fast.values import dataclass
from hudi_fast.view.slices import FileSlice
from hudi_fast.view.table_state import TableState

__all__ = [
    "Groups",
    "SecondaryLookup",
    "bloom_matches",
    "bucket_matches",
    "bucket_settings",
    "expression_matches",
    "groups_of_keys",
    "keys_by_secondary",
    "record_key_texts",
    "secondary_of",
    "wanted_values",
]

Groups: TypeAlias = frozenset[tuple[str, str]]
"""(partition path, file id) of file groups."""

_RECORD_KEY = "_hoodie_record_key"
_MAX_KEYS = 10_000
_MAX_PARTITIONS = 64
_EXACT = (
    *(pa.types.is_integer, pa.types.is_boolean, pa.types.is_date32),
    *(pa.types.is_timestamp, pa.types.is_decimal),
)
_BLOOM_FILES = 64
"""Filters in memory at once; one filter may take 430 kB."""


def wanted_values(condition: Condition, schema: pa.Schema, column: Column) -> pa.Array | None:
    """Values, in the column's type: each matching row has one of them; None when unknown.

    Only for types whose values and texts are equal in the same cases: strings, integers, booleans, dates, timestamps
    and decimals.
    """
    kind = column_type(schema, column)
    if kind is None or not any(is_kind(kind) for is_kind in (pa.types.is_string, *_EXACT)):
        return None
    for part in conjuncts(condition):
        values = _listed(part, column)
        if values is not None and _same_family(values.type, kind):
            try:
                return pc.unique(values.cast(kind)).drop_null()
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                continue
    return None


def record_key_texts(condition: Condition, schema: pa.Schema, config: TableConfig) -> pa.Array | None:
    """Record keys, string[n]: each matching row has one of them; None when unknown."""
    if config.populate_meta_fields:
        direct = wanted_values(condition, schema, Column((_RECORD_KEY,)))
        if direct is not None:
            return direct if len(direct) <= _MAX_KEYS else None
    names = config.record_key_fields
    if not names or config.key_generator not in KINDS or config.key_generator == "AUTO_RECORD":
        return None
    listed = [_key_values(condition, schema, name) for name in names]
    columns = [values for values in listed if values is not None]
    if len(columns) < len(names) or np.prod([float(len(values)) for values in columns]) > _MAX_KEYS:
        return None
    rows = list(product(*(values.to_pylist() for values in columns)))
    arrays = [pa.array([row[at] for row in rows], values.type) for at, values in enumerate(columns)]
    paths = [(name,) if name in schema.names else tuple(name.split(".")) for name in names]
    table = pa.Table.from_struct_array(_nested(dict(zip(paths, arrays, strict=True)))) if rows else pa.table({})
    return _texts_of(table.filter(_storable(arrays)), config) if rows else pa.array([], pa.string())


def groups_of_keys(table: MetadataTable, keys: pa.Array, partitions: Sequence[str]) -> Groups | None:
    """The file groups that hold the keys, by the record index; None when it would need too many lookups.

    Searches the given data partitions. Requires a usable record index.

    Raises:
        HudiError: the index cannot be read.
    """
    if not is_by_partition(table):
        wanted = set(partitions)
        return frozenset(group for group in locate_keys(table, keys).groups if group[0] in wanted)
    if len(partitions) > _MAX_PARTITIONS:
        return None
    return frozenset(group for path in partitions for group in locate_keys(table, keys, path).groups)


@dataclass(frozen=True, slots=True)
class SecondaryLookup:
    """A lookup in a secondary index.

    Attributes:
        prefixes: key prefixes of the requested values.
    """

    partition: str
    prefixes: tuple[str, ...]


def secondary_of(
    table: MetadataTable, condition: Condition, schema: pa.Schema, altered: Set[str] = frozenset()
) -> SecondaryLookup | None:
    """The secondary index lookup for a condition; None when no index applies.

    None also if record keys are unique only within their data partition: several rows then share one pair of value and
    key, and deleting the first of these rows deletes the pair.

    Args:
        table: the metadata table.
        condition: condition of the rows.
        schema: columns of the table.
        altered: top-level columns that were renamed, retyped or dropped: the index may hold their earlier values.
    """
    if table.is_by_partition(PartitionKind.RECORD_INDEX.value):
        return None
    for partition in table.partitions:
        definition = table.definitions.get(partition)
        if not partition.startswith(PartitionKind.SECONDARY_INDEX.value) or definition is None:
            continue
        if len(definition.source_fields) != 1:
            continue
        name = definition.source_fields[0]
        column = Column((name,) if name in schema.names else tuple(name.split(".")))
        if column.path[0] in altered:
            continue
        first_version = index_version(partition, table.data_version, table.definitions) == "V1"
        prefixes = _secondary_prefixes(condition, schema, column, first_version)
        if prefixes is not None and len(prefixes) <= _MAX_KEYS:
            return SecondaryLookup(partition, tuple(prefixes))
    return None


def keys_by_secondary(table: MetadataTable, asked: SecondaryLookup) -> pa.Array:
    """Record keys, string[n]: each matching row has one of them.

    Raises:
        HudiError: the index cannot be read.
    """
    found = prefix(table, asked.partition, asked.prefixes).column("key")
    return pc.unique(split_secondary_keys(pa.array(found))[1]) if len(found) else pa.array([], pa.string())


def bloom_matches(table: MetadataTable, slices: Sequence[FileSlice], keys: pa.Array) -> npt.NDArray[np.bool_]:
    """bool[n]: slices that may hold one of the keys; always True with log files, since filters cover base files only.

    Raises:
        HudiError: a filter cannot be read.
    """
    keep = np.ones(len(slices), dtype=np.bool_)
    asked = {
        _bloom_key(one): number for number, one in enumerate(slices) if one.base_file is not None and not one.log_files
    }
    for key, holds in _holding(table, PartitionKind.BLOOM_FILTERS.value, list(asked), keys):
        keep[asked[key]] = holds
    return keep


def expression_matches(
    table: MetadataTable,
    partition: str,
    slices: Sequence[FileSlice],
    texts: pa.Array,
    history: SchemaHistory | None,
    column: str,
) -> npt.NDArray[np.bool_]:
    """bool[n]: slices that may hold a row for which the indexed function results in one of the texts.

    Args:
        table: the metadata table.
        partition: an expression index with bloom filters of base files and of log files.
        slices: n slices.
        texts: string[k].
        history: earlier columns of the table.
        column: argument of the function; filters of files in which it had another name or type are not used.

    Raises:
        HudiError: a filter cannot be read.
    """
    asked: dict[str, int] = {}
    open_files = np.zeros(len(slices), dtype=np.int64)
    altered: dict[str, bool] = {}
    for number, one in enumerate(slices):
        open_files[number] = len(one.files)
        for file in one.files:
            if file.instant not in altered:
                altered[file.instant] = column in altered_columns(history, file.instant)
            if not altered[file.instant]:
                asked[bloom_key(one.partition, file.name)] = number
    for key, holds in _holding(table, partition, list(asked), texts):
        open_files[asked[key]] -= not holds
    return open_files > 0


def _holding(table: MetadataTable, partition: str, names: Sequence[str], keys: pa.Array) -> Iterator[tuple[str, bool]]:
    """The stored filters among those named, and whether they may hold one of the keys."""
    for first in range(0, len(names), _BLOOM_FILES):
        wanted = names[first : first + _BLOOM_FILES]
        for row in lookup(table, partition, pa.array(wanted, pa.string())).to_pylist():
            if not row["deleted"] and row["key"] in wanted:
                where = f"the bloom filter {row['key']} of {partition} of the metadata table"
                filter_ = BloomFilter.from_base64(row["filter"].decode("ascii"), row["kind"], where=where)
                yield row["key"], bool(filter_.might_contain(keys).any())


# ---- values


def _listed(part: Condition, column: Column) -> pa.Array | None:
    if isinstance(part, In) and part.value == column and part.null_is is not True:
        return part.values
    if isinstance(part, Compare) and part.sign == "==":
        for side, other in ((part.left, part.right), (part.right, part.left)):
            if side == column and isinstance(other, Constant):
                return _array(other)
    return None


def _array(constant: Constant) -> pa.Array:
    return pa.repeat(constant.value, 1)


def _same_family(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether values of these types are equal exactly if they are equal after a lossless cast."""
    strings = all(pa.types.is_string(kind) or pa.types.is_large_string(kind) for kind in (one, other))
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other) and (one.tz is None) != (other.tz is None):
        return False
    return strings or any(is_kind(one) and is_kind(other) for is_kind in _EXACT)


# ---- keys


def _key_values(condition: Condition, schema: pa.Schema, name: str) -> pa.Array | None:
    """Values of a key field; also None for timestamps, whose text depends on options of the writer."""
    values = wanted_values(condition, schema, Column(tuple(name.split(".")) if name not in schema.names else (name,)))
    return None if values is None or pa.types.is_timestamp(values.type) else values


def _nested(fields: Mapping[tuple[str, ...], pa.Array]) -> pa.StructArray:
    """Rows that hold each field in the structs of its path."""
    outer: dict[str, dict[tuple[str, ...], pa.Array]] = {}
    for path, array in fields.items():
        outer.setdefault(path[0], {})[path[1:]] = array
    columns = {name: inner[()] if () in inner else _nested(inner) for name, inner in outer.items()}
    return pa.StructArray.from_arrays(list(columns.values()), list(columns))


def _storable(arrays: Iterable[pa.Array]) -> pa.Array:
    """bool[n]: rows that can have a key: at least one of their fields is not the empty string."""
    full = [pc.not_equal(array, "") if pa.types.is_string(array.type) else pc.is_valid(array) for array in arrays]
    mask = full[0]
    for other in full[1:]:
        mask = pc.or_(mask, other)
    return mask


def _texts_of(rows: pa.Table, config: TableConfig) -> pa.Array | None:
    """The keys of rows of key fields; a key of one field in both formats that releases have used."""
    made = KeyConfig(config.key_generator, config.record_key_fields, config.partition_fields, config.partition_types)
    if not rows.num_rows:
        return pa.array([], pa.string())
    try:
        texts = [record_keys(replace(made, single_key_prefixed=prefixed), rows) for prefixed in (False, True)]
    except HudiError:
        return None
    return pc.unique(pa.concat_arrays(texts))


def _secondary_prefixes(
    condition: Condition, schema: pa.Schema, column: Column, first_version: bool
) -> list[str] | None:
    if any(isinstance(part, IsNull) and part.value == column and not part.or_nan for part in conjuncts(condition)):
        return None if first_version else [secondary_prefix(None)]
    values = wanted_values(condition, schema, column)
    if values is None or pa.types.is_decimal(values.type):
        return None
    texts = _secondary_texts(values)
    if first_version and any("\0" in text for text in texts):
        return None  # Hudi 1.0 does not escape this character
    return [secondary_prefix(text) for text in texts]


def _secondary_texts(values: pa.Array) -> list[str]:
    """The texts of values in the indexes of all releases.

    A date is its text in Hudi 1.0 and its number in later releases. A timestamp of milliseconds is a number of
    milliseconds if the writer's rows were Avro records, and of microseconds if they were Spark rows.
    """
    forms = [values]
    if pa.types.is_date32(values.type):
        forms = [values.cast(pa.int32()), values]
    elif pa.types.is_timestamp(values.type) and values.type.unit == "ms":
        forms = [values, values.cast(pa.timestamp("us", values.type.tz))]
    return [text for form in forms for text in to_text(form).to_pylist()]


def _bloom_key(slice_: FileSlice) -> str:
    assert slice_.base_file is not None
    return bloom_key(slice_.partition, slice_.base_file.name)


_RULES = (COMMA_AND_COLON, ANY_COLON)
_COUNT = "hoodie.bucket.index.num.buckets"


def bucket_settings(options: Mapping[str, Any]) -> BucketSettings | None:
    """The settings of a fixed number of buckets in read options; None if they are incomplete.

    They are complete with ``hoodie.index.type=BUCKET``, the simple engine, and a number of buckets.
    """
    engine = str(options.get("hoodie.index.bucket.engine", "SIMPLE")).upper()
    count = str(options.get(_COUNT, ""))
    if str(options.get("hoodie.index.type", "")).upper() != "BUCKET" or engine != "SIMPLE" or not count.isdecimal():
        return None
    fields = str(options.get("hoodie.bucket.index.hash.field", ""))
    return BucketSettings(count=int(count), hash_fields=tuple(name.strip() for name in fields.split(",") if name))


def bucket_matches(
    state: TableState, slices: Sequence[FileSlice], keys: pa.Array, settings: BucketSettings | None
) -> npt.NDArray[np.bool_] | None:
    """bool[n]: slices that may hold one of the keys; None if the table's buckets are unknown.

    ``keys`` are string[k], record keys; ``settings`` come from the read options.

    Raises:
        HudiError: the table's stored bucket metadata is invalid.
    """
    fields = state.config.record_key_fields
    partitions = {one.partition for one in slices}
    if settings is not None:
        stored = load_bucket_counts(state.storage, state.timeline)
        overrides = () if stored is None else stored.overrides
        given = replace(settings, hash_fields=settings.hash_fields or fields, overrides=overrides)
        wanted = {path: _simple(path, slices, keys, given) for path in partitions}
    elif state.config.is_mor and len(fields) == 1 and has_hashing(state.storage):
        wanted = {path: _consistent(state, path, keys) for path in partitions}
    else:
        return None
    kept = ((found := wanted[one.partition]) is None or one.file_id in found for one in slices)
    return np.fromiter(kept, dtype=np.bool_, count=len(slices))


def _simple(path: str, slices: Iterable[FileSlice], keys: pa.Array, settings: BucketSettings) -> set[str] | None:
    """File ids of the keys' buckets in a partition; None when its file groups do not fit the number of buckets."""
    numbers = {one.file_id: bucket_number(one.file_id) for one in slices if one.partition == path}
    count = bucket_count(settings, path)
    if count < 1 or any(number is None or number >= count for number in numbers.values()):
        return None
    rules = (replace(settings, key_rule=rule) for rule in _RULES)
    wanted = {int(number) for rule in rules for number in bucket_of_keys(keys, rule, path)}
    return {file_id for file_id, number in numbers.items() if number in wanted}


def _consistent(state: TableState, path: str, keys: pa.Array) -> set[str] | None:
    """File ids of the keys' ranges; None when the partition has no ranges."""
    metadata = load_hashing(state.storage, state.timeline, path)
    if metadata is None:
        return None
    fields = state.config.record_key_fields
    rules = (BucketSettings("CONSISTENT_HASHING", hash_fields=fields, key_rule=rule) for rule in _RULES)
    return {metadata.nodes[number].file_id for rule in rules for number in node_of_keys(keys, rule, metadata)}
