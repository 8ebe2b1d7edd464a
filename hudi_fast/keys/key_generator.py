"""Record keys and partition paths of whole batches, and how long they may be.

Record keys and partition paths of whole batches, as Hudi's key generators build them.

::

    columns ──to_text──► text ──► record_keys      "value" or "f1:v1,f2:v2" for each row
    columns ──distinct values──► codes + texts ──► partition_paths      one code per row into few paths

Every row has a key of its own: a single string key is the column itself, all others take a few passes of Arrow kernels.
Partition paths repeat: their text is built for distinct values only, and rows carry integer codes.

:attr:`KeyConfig.kind` selects the generator. As in Hudi, a config without key fields has generated keys, for any kind.

Source: Hudi's ``SimpleAvroKeyGenerator``, ``ComplexAvroKeyGenerator``, ``CustomAvroKeyGenerator``,
``NonpartitionedAvroKeyGenerator``, ``GlobalAvroDeleteKeyGenerator`` and ``KeyGenUtils``, release 1.2.0.

The longest record keys and partition paths that a table's storage and its record index can hold.

==================  ======================  =====================================================
storage             one folder name         path below the bucket or the root
==================  ======================  =====================================================
local               255 bytes               4095 bytes (Linux)
HDFS                255 bytes               8000 characters (``dfs.namenode.fs-limits.*``, ``DFSUtil``)
S3, Google, Azure   as the path             1024 bytes
fsspec              unknown                 unknown
==================  ======================  =====================================================

Files below a partition, and their markers below ``.hoodie/.temp``, need room, too. Record keys are limited by HFiles,
of the record index and of log blocks: HBase stores the length of a key as a short.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import ConfigError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.formats.varlen import varlen_buffers
from hudi_fast.keys.partition_path import DEFAULT_PARTITION, encode, hive_part, join, path_fault
from hudi_fast.keys.timestamps import timestamp_options, timestamp_paths, whole_numbers
from hudi_fast.keys.value_text import to_text
from hudi_fast.keys.zones import distinct_codes, zone
from hudi_fast.storage.base import Storage
from hudi_fast.storage.places import scheme_of
from hudi_fast.values import dataclass

__all__ = [
    "KINDS",
    "LONGEST_KEY",
    "NO_LIMITS",
    "STAND_INS",
    "KeyConfig",
    "KeyLimits",
    "infer_kind",
    "limits_of",
    "parse_partition_spec",
    "partition_paths",
    "record_keys",
    "refuse_stand_ins",
]

_FILES = 200
"""Bytes reserved for ``.hoodie/.temp/<instant>/`` and the name of a file or its marker."""

LONGEST_KEY = 0x7FFF
"""Bytes of the longest key of an HFile."""

_LOCAL, _HDFS, _OBJECTS = (255, 4095), (255, 8000), (0, 1024)
_OF_SCHEME = {
    "file": _LOCAL,
    **dict.fromkeys(("hdfs", "viewfs"), _HDFS),
    **dict.fromkeys(("s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss", "wasb", "wasbs", "az"), _OBJECTS),
}


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """Longest names in bytes; 0 for no known limit.

    Attributes:
        part: for one folder of a partition path.
        path: for a partition path.
        key: for a record key.
    """

    part: int = 0
    path: int = 0
    key: int = 0

    def path_fault(self, path: str) -> str | None:
        """Why a partition path is too long; None if it fits."""
        if len(path) * 4 <= min(self.part or self.path, self.path):  # UTF-8 has four bytes a character at most
            return None
        longest = max(len(part.encode()) for part in path.split("/"))
        if self.part and longest > self.part:
            return f"has a part of {longest} bytes, and the storage of this table takes {self.part}"
        if self.path and len(path.encode()) > self.path:
            return f"has {len(path.encode())} bytes, and the storage of this table leaves {self.path} for it"
        return None


NO_LIMITS = KeyLimits()
"""Limits of keys and paths that are only read: none."""


def limits_of(storage: Storage, metadata_partitions: Collection[str], hfile_blocks: bool = False) -> KeyLimits:
    """The limits of a table.

    Args:
        storage: of the table.
        metadata_partitions: partitions of its metadata table once the write is visible.
        hfile_blocks: whether rows are written to HFile blocks of log files.
    """
    part, whole = _OF_SCHEME.get(scheme_of(storage.uri), (0, 0))
    root = storage.fs_path("")
    taken = root if part else root.partition("/")[2]  # without the bucket
    path = max(1, whole - len(taken.encode()) - _FILES) if whole else 0
    return KeyLimits(part, path, LONGEST_KEY if hfile_blocks or "record_index" in metadata_partitions else 0)


KINDS = ("SIMPLE", "COMPLEX", "TIMESTAMP", "CUSTOM", "NON_PARTITION", "GLOBAL_DELETE", "AUTO_RECORD")
"""Key generators that hudi_fast supports."""

_PARTITION_TYPES = ("SIMPLE", "TIMESTAMP")
_NULL_KEY, _EMPTY_KEY = "__null__", "__empty__"
STAND_INS = {_NULL_KEY: "null", _EMPTY_KEY: "the empty text"}
"""Texts that stand for values without text in a record key of several fields."""

_SHOWN = 100
_ENCODE = "set hoodie.datasource.write.partitionpath.urlencode=true on a new table."

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class KeyConfig:
    """How a table builds record keys and partition paths. Picklable.

    Attributes:
        kind: one of ``KINDS``: ``hoodie.table.keygenerator.type`` without ``_AVRO``.
        record_key_fields: in order; a dot selects a field of a struct. Empty: keys are generated.
        partition_fields: in order, without types.
        partition_types: CUSTOM: ``SIMPLE`` or ``TIMESTAMP`` for each partition field.
        hive_style: whether path parts read ``field=value``.
        url_encode: whether values are escaped in paths.
        slash_separated_dates: whether ``-`` in a single partition value becomes ``/``.
        consistent_logical_timestamp: whether timestamps are written as dates and times rather than raw numbers.
        single_key_prefixed: COMPLEX with one key field: ``f:value``, else the bare value (releases 0.14.1 to 1.0.2).
        null_partition: path part of null and of the empty string (``default`` in tables of releases before 0.12).
        timebased: the ``hoodie.keygen.timebased.*`` options, by full key or by the part after the prefix.
        default_zone: name of the JVM's default zone for Hudi; None: the zone of this process. Set it if processes may
            run in several zones.
        limits: how long keys and paths may be.
        sql_timestamps: whether timestamps are written in paths as Apache Hudi's SQL writes them, to the second.
        numbers_as_text: whether a TIMESTAMP field that is a number of time units may hold the number as text.
    """

    kind: str
    record_key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...]
    partition_types: tuple[str, ...] = ()
    hive_style: bool = False
    url_encode: bool = False
    slash_separated_dates: bool = False
    consistent_logical_timestamp: bool = False
    single_key_prefixed: bool = True
    null_partition: str = DEFAULT_PARTITION
    timebased: Mapping[str, str] = field(default_factory=dict, hash=False)
    default_zone: str | None = None
    limits: KeyLimits = NO_LIMITS
    sql_timestamps: bool = False
    numbers_as_text: bool = False

    def is_timestamp_field(self, name: str) -> bool:
        """Whether the time of a partition field is formatted by the ``hoodie.keygen.timebased.*`` options."""
        if self.partition_types:
            return self.partition_types[self.partition_fields.index(name)] == "TIMESTAMP"
        return self.kind == "TIMESTAMP"


def infer_kind(record_key_fields: Sequence[str], partition_fields_spec: str) -> str:
    """The kind of key generator that Hudi uses if none is configured.

    Source: ``KeyGenUtils.inferKeyGeneratorType``.
    """
    partition_fields = [name for name in partition_fields_spec.split(",") if name.strip()]
    if not partition_fields:
        return "NON_PARTITION"
    if ":" in partition_fields[0]:
        return "CUSTOM"
    return "SIMPLE" if len(partition_fields) == 1 and len(record_key_fields) <= 1 else "COMPLEX"


def parse_partition_spec(spec: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split ``"a:SIMPLE,b:TIMESTAMP"`` into fields and their types; no types for ``"a,b"``.

    Raises:
        ConfigError: only some fields have a type, or a type is unknown.
    """
    pieces = [piece.strip() for piece in spec.split(",") if piece.strip()]
    split = [piece.partition(":") for piece in pieces]
    fields = tuple(name.strip() for name, _, _ in split)
    types = tuple(kind.strip().upper() for _, _, kind in split)
    if not any(types):
        return fields, ()
    unknown = [kind for kind in types if kind not in _PARTITION_TYPES]
    if unknown or "" in fields:
        raise ConfigError(
            f"The partition fields {spec!r} must read field:SIMPLE or field:TIMESTAMP, separated by commas, or all "
            f"be without a type."
        )
    return fields, types


# ---- record keys


def record_keys(
    config: KeyConfig, table: pa.Table | pa.RecordBatch, auto_prefix: str | None = None, first_row: int = 0
) -> pa.Array:
    """The record key of each row.

    Args:
        config: the key configuration.
        table: rows with the key fields among their columns.
        auto_prefix: ``<instant>_<task>`` for generated keys, which are ``<auto_prefix>_<row>``.
        first_row: number of the first row, for generated keys and for messages.

    Returns:
        ``pa.string()`` array without nulls, one key per row; a single string key column with one chunk is returned
        unchanged.

    Raises:
        InvalidDataError: a key field is missing, rows have no key, or a key is too long.
        ConfigError: generated keys without ``auto_prefix``, or several fields for a kind that accepts one.
        UnsupportedFeatureError: a key field's type has no text form.
    """
    _check(config)
    if config.kind == "AUTO_RECORD" or not config.record_key_fields:
        return _generated_keys(auto_prefix, first_row, table.num_rows)
    fields = config.record_key_fields
    texts = [_text(config, _column(table, name, "Record key"), name) for name in fields]
    prefixed = (
        len(fields) > 1 or config.kind == "GLOBAL_DELETE" or (config.kind == "COMPLEX" and config.single_key_prefixed)
    )
    if not prefixed:
        _refuse_rows(_null_or_empty(texts[0]), fields, first_row)
    keys = _prefixed_keys(fields, texts, first_row) if prefixed else texts[0]
    if config.limits.key:
        _refuse_long_keys(config, keys, first_row)
    return keys


def refuse_stand_ins(config: KeyConfig, table: pa.Table | pa.RecordBatch, first_row: int = 0) -> None:
    """Refuse new rows with a text that stands for another value in record keys, because two rows would share a key.

    A key of several fields is the same for null and ``__null__``, and for empty text and ``__empty__``, as in Hudi
    (``KeyGenUtils``). A key of one field cannot be null or empty. Stored rows keep their keys.

    Args:
        config: the key configuration.
        table: rows with the key fields among their columns.
        first_row: number of the first row, for messages.

    Raises:
        InvalidDataError: there are such rows; names the field, the text and the first row.
    """
    for name in config.record_key_fields if len(config.record_key_fields) > 1 else ():
        values = _column(table, name, "Record key")
        if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
            continue
        lengths = np.diff(varlen_buffers(values).offsets)
        for text, meaning in STAND_INS.items():
            if not (lengths == len(text)).any():  # comparing texts takes several times longer
                continue
            found = pc.fill_null(pc.equal(values, text), False)
            if count := pc.sum(found).as_py():
                raise InvalidDataError(
                    f"Record key field {name!r} is {text!r} in {count} of {len(values)} rows, the first of them row "
                    f"{first_row + pc.index(found, True).as_py()}. In a record key of several fields this text stands "
                    f"for {meaning}, so two different rows would share a key. Change the value, or choose other key "
                    "fields."
                )


def _generated_keys(auto_prefix: str | None, first_row: int, rows: int) -> pa.Array:
    if auto_prefix is None:
        raise ConfigError(
            "The table has no record key fields, and no prefix for generated keys was given; set "
            "hoodie.datasource.write.recordkey.field, or write through an operation that generates keys."
        )
    numbers = pa.array(np.arange(first_row, first_row + rows)).cast(pa.string())
    return pc.binary_join_element_wise(auto_prefix, numbers, "_")


def _prefixed_keys(fields: Sequence[str], texts: Sequence[pa.Array], first_row: int) -> pa.Array:
    gaps = [_null_or_empty(text) for text in texts]
    if all(gap is not None for gap in gaps):
        nowhere = gaps[0]
        for gap in gaps[1:]:
            nowhere = pc.and_(nowhere, gap)
        _refuse_rows(nowhere, fields, first_row)
    parts: list[object] = []
    for index, (name, text, gap) in enumerate(zip(fields, texts, gaps, strict=True)):
        parts.append(f"{',' if index else ''}{name}:")
        parts.append(text if gap is None else pc.if_else(gap, pc.if_else(text.is_null(), _NULL_KEY, _EMPTY_KEY), text))
    return pc.binary_join_element_wise(*parts, "")


def _null_or_empty(text: pa.Array) -> pa.Array | None:
    """A mask of the rows that are null or ``""``; None without such rows."""
    lengths = pc.binary_length(text)
    shortest = pc.min(lengths).as_py()
    if not text.null_count and shortest != 0:
        return None
    return pc.fill_null(pc.equal(lengths, 0), True)


def _refuse_rows(mask: pa.Array | None, fields: Sequence[str], first_row: int) -> None:
    count = 0 if mask is None else pc.sum(mask).as_py() or 0
    if mask is None or not count:
        return
    row = first_row + pc.index(mask, True).as_py()
    several = len(fields) > 1
    raise InvalidDataError(
        f"Record key field{'s' if several else ''} {', '.join(map(repr, fields))} cannot be null or empty"
        f"{' all at once' if several else ''}: {count} of {len(mask)} rows, the first of them row {row}. "
        f"Fill or drop these rows, or choose other key fields."
    )


def _refuse_long_keys(config: KeyConfig, keys: pa.Array, first_row: int) -> None:
    lengths = pc.binary_length(keys)
    longest = pc.max(lengths).as_py() or 0
    if longest > config.limits.key:
        row = pc.index(lengths, longest).as_py()
        raise InvalidDataError(
            f"The record key of row {first_row + row}, of the fields {list(config.record_key_fields)}, has {longest} "
            f"bytes and begins with {keys[row].as_py()[:_SHOWN]!r}; the record index and HFile log blocks hold keys of "
            f"up to {config.limits.key}. Shorten the key, or use another index "
            "(hoodie.metadata.index.drop=record_index) and other blocks (hoodie.logfile.data.block.format=avro)."
        )


# ---- partition paths


def partition_paths(config: KeyConfig, table: pa.Table | pa.RecordBatch, first_row: int = 0) -> pa.DictionaryArray:
    """The partition path of each row.

    Args:
        config: the key configuration.
        table: rows with the partition fields among their columns.
        first_row: number of the first row, for messages.

    Returns:
        dictionary<int32, string> without nulls or duplicate paths; ``""`` for all rows of a table without partitions.

    Raises:
        InvalidDataError: a partition field is missing, a value results in a path that leaves the table or that file
            systems change, or a time cannot be parsed.
        ConfigError: the options of a TIMESTAMP field are missing or wrong, or do not fit the kind.
        UnsupportedFeatureError: a partition field's type has no text form.
    """
    _check(config)
    if config.kind in ("NON_PARTITION", "GLOBAL_DELETE") or not config.partition_fields:
        return _dictionary(np.zeros(table.num_rows, dtype=np.int32), [""])
    codes, parts = _field_parts(config, table, 0)
    columns = [parts]
    for index in range(1, len(config.partition_fields)):
        other, parts = _field_parts(config, table, index)
        # Combine two codes into one; renumbering the pairs keeps the products within 64 bits.
        codes, pairs = distinct_codes(codes.astype(np.int64) * len(parts) + other)
        left, right = pairs // max(len(parts), 1), pairs % max(len(parts), 1)
        columns = [[column[code] for code in left] for column in columns]
        columns.append([parts[code] for code in right])
    paths = [join(parts_of_path) for parts_of_path in zip(*columns, strict=True)]
    _refuse_paths(config, codes, paths, first_row)
    return _dictionary(codes, paths)


def _dictionary(codes: Codes, paths: Sequence[str]) -> pa.DictionaryArray:
    """Codes into ``paths``, which may contain duplicates (``a/b`` + ``c`` and ``a`` + ``b/c``)."""
    renumbered: dict[str, int] = {}
    for path in paths:
        renumbered.setdefault(path, len(renumbered))
    if len(renumbered) < len(paths):
        codes = np.array([renumbered[path] for path in paths], dtype=np.int32)[codes]
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(list(renumbered), pa.string()))


def _field_parts(config: KeyConfig, table: pa.Table | pa.RecordBatch, index: int) -> tuple[Codes, list[str]]:
    """``(codes, parts)`` of one partition field: row ``i`` has the path part ``parts[codes[i]]``."""
    name = config.partition_fields[index]
    column = _column(table, name, "Partition")
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_nested(column.type):
        to_text(column, name)  # raises the error
    if config.is_timestamp_field(name):
        codes, parts = _timestamp_parts(config, column, name)
    else:
        encoded = column.dictionary_encode("encode")
        codes = encoded.indices.to_numpy()
        in_sql = config.sql_timestamps and pa.types.is_timestamp(column.type) and column.type.tz is not None
        texts = _sql_times(config, encoded.dictionary, name) if in_sql else _text(config, encoded.dictionary, name)
        parts = [text or config.null_partition for text in texts.to_pylist()]
    if config.url_encode:
        parts = [encode(part) for part in parts]
    if config.hive_style:
        parts = [hive_part(name, part) for part in parts]
    if config.slash_separated_dates and len(config.partition_fields) == 1 and config.kind != "TIMESTAMP":
        # A leading dash would become a leading slash; such a value is not a date.
        parts = [part if part.startswith("-") else part.replace("-", "/") for part in parts]
    return codes, parts


def _timestamp_parts(config: KeyConfig, column: pa.Array, name: str) -> tuple[Codes, list[str]]:
    options = timestamp_options(config.timebased, config.default_zone)
    if config.numbers_as_text and options.unit is not None and pa.types.is_string(column.type):
        column = whole_numbers(column, name)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        # Arithmetic on the whole column is cheaper than finding its distinct values.
        return timestamp_paths(options, column, name, config.consistent_logical_timestamp)
    encoded = column.dictionary_encode("encode")
    codes, parts = timestamp_paths(options, encoded.dictionary, name)
    return codes[encoded.indices.to_numpy()], parts


def _refuse_paths(config: KeyConfig, codes: Codes, paths: Sequence[str], first_row: int) -> None:
    for code, path in enumerate(paths):
        fault, long = path_fault(path), config.limits.path_fault(path)
        if fault is not None or long is not None:
            shown = path if len(path) <= _SHOWN else f"{path[:_SHOWN]}..."
            rows = np.flatnonzero(codes == code)
            raise InvalidDataError(
                f"The partition field{'s' if len(config.partition_fields) > 1 else ''} "
                f"{', '.join(map(repr, config.partition_fields))} result in the path {shown!r}, which {fault or long}: "
                f"{len(rows)} rows, the first of them row {first_row + rows[0]}. Change these values, or "
                + (_ENCODE if fault is not None else "partition the table by other fields.")
            )


# ---- both


def _check(config: KeyConfig) -> None:
    kind, keys, parts = config.kind, config.record_key_fields, config.partition_fields
    if kind not in KINDS:
        raise UnsupportedFeatureError(f"The key generator {kind!r} is not supported; supported are {', '.join(KINDS)}.")
    if kind in ("SIMPLE", "TIMESTAMP") and (len(keys) > 1 or len(parts) != 1):
        raise ConfigError(
            f"The key generator {kind} requires one record key field and one partition field, found "
            f"{list(keys)} and {list(parts)}; use COMPLEX, CUSTOM or NON_PARTITION."
        )
    typed = len(config.partition_types)
    if (kind == "CUSTOM" and typed != len(parts)) or (kind not in ("CUSTOM", "AUTO_RECORD") and typed):
        raise ConfigError(
            f"The key generator {kind} with partition fields {list(parts)} has the types "
            f"{list(config.partition_types)}; CUSTOM requires field:SIMPLE or field:TIMESTAMP for each field, other "
            f"generators require fields without types."
        )
    if config.slash_separated_dates and kind == "CUSTOM":
        raise UnsupportedFeatureError(
            "hoodie.datasource.write.slash.separated.date.partitioning is not supported together with the CUSTOM key "
            "generator."
        )


def _sql_times(config: KeyConfig, values: pa.Array, name: str) -> pa.Array:
    """The text of timestamps as Apache Hudi's SQL writes it, whatever the path options (``SqlKeyGenerator``, 1.2.0)."""
    where = zone(config.default_zone) if config.default_zone else None
    texts = to_text(values, name, True, where).to_pylist()
    return pa.array([None if text is None else _escaped_once(config, text.partition(".")[0]) for text in texts])


def _escaped_once(config: KeyConfig, text: str) -> str:
    return text if config.url_encode else encode(text)


def _text(config: KeyConfig, values: pa.Array, name: str) -> pa.Array:
    where = zone(config.default_zone) if config.default_zone else None
    return to_text(values, name, config.consistent_logical_timestamp, where)


def _column(table: pa.Table | pa.RecordBatch, name: str, role: str) -> pa.Array:
    """One column as one array; ``a.b`` is the field ``b`` of the struct ``a``."""
    outer, *inner = name.split(".")
    indices = table.schema.get_all_field_indices(outer)
    kind = table.schema.field(indices[0]).type if len(indices) == 1 else None
    for step in inner:
        found = pa.types.is_struct(kind) and kind.get_field_index(step) >= 0 if kind is not None else False
        kind = kind.field(step).type if kind is not None and found else None
    if kind is None:
        raise InvalidDataError(
            f"{role} field {name!r} must exist exactly once in the input, whose columns are {table.schema.names}."
        )
    column = table.column(indices[0])
    if inner:
        column = pc.struct_field(column, inner)
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        raise UnsupportedFeatureError(
            f"The field {name!r} has more than 2 GiB of text in one batch; pass smaller ones."
        )
    return column
