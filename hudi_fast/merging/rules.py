"""Merge rules, and the merge settings of a table's file slices.

Hudi's merge modes as vectorised rules: which of two rows with one key is kept.

:func:`merge_rules_of` derives the rules from a table's configuration. Functions on whole columns
(``BufferedRecordMergerFactory``, ``OrderingValues``; Hudi 1.2.0):

* :func:`delete_mask`: the rows that are deletes;
* :func:`ordering_rank`: a number per row that orders the rows of one batch or one log;
* :func:`default_ordering`: the rows with Hudi's default ordering value, the integer 0;
* :func:`at_least`, :func:`greater`: compare ordering values of incoming and stored rows.

A null ordering value means this default: it compares as 0 with numbers and is the lowest value of other types. A
delete with the default ordering value is a *commit-time delete* and beats every earlier row.

Merge settings of a table's file slices, and the columns that merging has to read.

::

    visible_blocks(merge, slice) ─► read_entries(merge, blocks, schema) ─► fold ─► resolve_slice ─► merged rows

A :class:`SliceMerge` applies to a whole table and is made once. The functions that take it depend only on it and on the
slice, so a retried task returns the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from decimal import Decimal
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.config.merge_mode import (
    BUILT_IN_PAYLOADS,
    COMMIT_TIME,
    CUSTOM,
    EVENT_TIME,
    OVERWRITE_PAYLOAD,
    PARTIAL_UPDATE_PAYLOAD,
    PAYLOAD_STRATEGY,
)
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import ConfigError, InvalidDataError, SchemaMismatchError, UnsupportedFeatureError
from hudi_fast.keys.key_generator import KeyConfig
from hudi_fast.schema.history import SchemaHistory
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import Timeline
from hudi_fast.values import dataclass
from hudi_fast.view.table_state import TableState, column_defaults

__all__ = [
    "COMMIT_TIME",
    "CUSTOM",
    "DELETE_OPERATIONS",
    "EVENT_TIME",
    "FILL_UNAVAILABLE",
    "IGNORE_DEFAULTS",
    "META_COLUMNS",
    "RECORD_KEY",
    "MergeRules",
    "Merger",
    "SliceMerge",
    "at_least",
    "default_ordering",
    "delete_mask",
    "greater",
    "kept_columns",
    "key_columns",
    "merge_rules_of",
    "merge_schema",
    "merging_columns",
    "ordering_columns",
    "ordering_rank",
    "slice_merge",
    "stored_key_config",
    "updates_on_same_ordering",
]

IGNORE_DEFAULTS = "IGNORE_DEFAULTS"
FILL_UNAVAILABLE = "FILL_UNAVAILABLE"
"""Partial update modes (`hoodie.table.partial.update.mode`) that change merged rows."""

DELETED_FLAG = "_hoodie_is_deleted"
OPERATION = "_hoodie_operation"
DELETE_OPERATIONS = pa.array(["D", "-U"], pa.string())
"""Values of ``_hoodie_operation`` that delete the row."""
META_COLUMNS = frozenset(
    f"_hoodie_{name}" for name in ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")
)
"""The five meta columns."""

_SAME_ORDERING_UPDATES = "hoodie.payload.update.on.same.ordering.field"
_UNAVAILABLE = "hoodie.write.partial.update.unavailable.value"
_STRATEGY = "hoodie.record.merge.strategy.id"

Merger: TypeAlias = Callable[[pa.Table, pa.Table], pa.Table]
"""``merge(older, newer)``: row i of both has one key. Returns the merged rows in the same order with the same columns.

The tables have all columns of the table except Hudi's meta columns. Rows where a boolean column ``_hoodie_is_deleted``
is true are deleted. The function receives no deletes: a delete beats every earlier row, and a row after a delete is
new.
"""


@dataclass(frozen=True, slots=True)
class MergeRules:
    """How rows with one key are merged.

    Attributes:
        mode: :data:`COMMIT_TIME`, :data:`EVENT_TIME`, or :data:`CUSTOM` with a merger.
        ordering_fields: columns of the ordering value, possibly nested (``a.b``); empty for none.
        delete_field: column whose text marks a delete; None for none.
        delete_marker: the text of ``delete_field`` in a delete.
        partial_mode: :data:`IGNORE_DEFAULTS`, :data:`FILL_UNAVAILABLE`, or None: whole rows win.
        unavailable_value: the text that marks a value that was not sent.
        same_ordering_updates: whether the incoming row wins over the stored one at equal ordering values.
        log_ordering: whether rows of one log or batch compare ordering values although the mode does not (releases
            before 1.0 with OverwriteWithLatestAvroPayload).
        partial_payload: follow PartialUpdateAvroPayload of tables before version 9: a delete wins at any ordering
            value, a null ordering value does not compare with others, meta columns come from the newer row.
        defaults: column defaults other than null.
        merger: the user's merge function; None for none.
    """

    mode: str
    ordering_fields: tuple[str, ...] = ()
    delete_field: str | None = None
    delete_marker: str | None = None
    partial_mode: str | None = None
    unavailable_value: str | None = None
    same_ordering_updates: bool = True
    log_ordering: bool = False
    partial_payload: bool = False
    defaults: Mapping[str, object] = field(default_factory=dict)
    merger: Merger | None = None

    @property
    def compares(self) -> bool:
        """Whether ordering values are compared between an incoming and a stored row."""
        return self.mode == EVENT_TIME and bool(self.ordering_fields)

    @property
    def orders(self) -> bool:
        """Whether ordering values are compared between rows of one batch or one log."""
        return self.compares or (self.log_ordering and bool(self.ordering_fields))

    @property
    def blends(self) -> bool:
        """Whether a merged row may have values of both rows."""
        return self.partial_mode is not None or self.merger is not None


def merge_rules_of(
    config: TableConfig,
    delete_field: str | None = None,
    delete_marker: str | None = None,
    merger: Merger | None = None,
    defaults: Mapping[str, object] | None = None,
    same_ordering_updates: bool = True,
) -> MergeRules:
    """The rules of a table.

    ``delete_field`` and ``delete_marker`` apply if the configuration names none; ``merger`` is for merge mode CUSTOM.
    ``same_ordering_updates`` is the option ``hoodie.payload.update.on.same.ordering.field``. Like the table's property,
    it applies only where a payload class decides.

    Raises:
        UnsupportedFeatureError: the table's payload class, merge strategy or partial update mode is not supported.
        ConfigError: a merger is given and the table has another merge mode.
    """
    if merger is not None and config.merge_mode != CUSTOM:
        raise ConfigError(
            f"Table {config.name} merges by {config.merge_mode}; hudi_fast.merger is for tables whose merge mode is "
            "CUSTOM. Leave the option out, or create the table with hoodie.write.record.merge.mode=CUSTOM."
        )
    rules = MergeRules(
        config.merge_mode,
        config.ordering_fields,
        config.delete_field or delete_field,
        config.delete_marker or delete_marker,
        defaults=defaults or {},
        merger=merger,
    )
    if config.merge_mode == CUSTOM:
        return rules if merger is not None else _payload_rules(config, rules, same_ordering_updates)
    return replace(
        rules,
        partial_mode=_partial_mode(config),
        unavailable_value=config.merge_properties.get(_UNAVAILABLE),
        log_ordering=_is_overwrite_of_release_0(config),
    )


def _partial_mode(config: TableConfig) -> str | None:
    mode = config.partial_update_mode
    if mode not in (None, IGNORE_DEFAULTS, FILL_UNAVAILABLE):
        raise UnsupportedFeatureError(
            f"Table {config.name} has the partial update mode {mode!r} (hoodie.table.partial.update.mode); supported "
            f"are {IGNORE_DEFAULTS} and {FILL_UNAVAILABLE}."
        )
    return mode


def _is_overwrite_of_release_0(config: TableConfig) -> bool:
    """Whether a release before 1.0 made the table. Later ones store a strategy id and take the latest log record."""
    return config.version < 8 and config.payload_class == OVERWRITE_PAYLOAD and _STRATEGY not in config.raw


def _payload_rules(config: TableConfig, rules: MergeRules, same_ordering_updates: bool) -> MergeRules:
    """The rules of a payload class that Hudi ships."""
    known = BUILT_IN_PAYLOADS.get(config.payload_class or "")
    if known is None or config.merge_strategy_id not in (None, PAYLOAD_STRATEGY):
        by = f"merge strategy {config.merge_strategy_id}"
        if known is None and config.payload_class:
            by = f"payload class {config.payload_class}"
        raise UnsupportedFeatureError(
            f"Table {config.name} merges rows by the {by}, which is Java code that hudi_fast does not run. Pass a "
            "Python function as hudi_fast.merger, or use Apache Hudi."
        )
    partial = config.payload_class == PARTIAL_UPDATE_PAYLOAD
    return replace(
        rules,
        mode=known.mode,
        ordering_fields=known.ordering_fields or rules.ordering_fields,
        delete_field=rules.delete_field or known.properties.get("hoodie.payload.delete.field"),
        delete_marker=rules.delete_marker or known.properties.get("hoodie.payload.delete.marker"),
        partial_mode=known.partial_update_mode,
        unavailable_value=config.merge_properties.get(_UNAVAILABLE) or known.properties.get(_UNAVAILABLE),
        same_ordering_updates=same_ordering_updates and updates_on_same_ordering(config),
        partial_payload=partial,
        defaults={} if partial else rules.defaults,
    )


def updates_on_same_ordering(config: TableConfig) -> bool:
    """Whether the table's property lets a row win over a stored one with an equal ordering value."""
    return config.merge_properties.get(_SAME_ORDERING_UPDATES, "true").lower() != "false"


def merging_columns(rules: MergeRules, columns: Sequence[str]) -> list[str] | None:
    """The ``columns`` that merging reads besides the record key; None for all columns."""
    if rules.merger is not None:
        return None
    wanted = {DELETED_FLAG, OPERATION, rules.delete_field}
    if rules.orders:
        wanted.update(name if name in columns else name.split(".")[0] for name in rules.ordering_fields)
    return [name for name in columns if name in wanted]


def ordering_columns(rules: MergeRules, rows: pa.Table) -> tuple[pa.ChunkedArray, ...]:
    """The ordering columns of ``rows``; empty when ordering values are not compared.

    Raises:
        InvalidDataError: an ordering field is not among the columns.
    """
    return tuple(_column(rows, name) for name in rules.ordering_fields) if rules.orders else ()


def delete_mask(rules: MergeRules, rows: pa.Table) -> npt.NDArray[np.bool_] | None:
    """One flag per row, or None when no row is a delete.

    Raises:
        SchemaMismatchError: ``_hoodie_is_deleted`` is not boolean.
    """
    masks = []
    if DELETED_FLAG in rows.column_names:
        flag = rows.column(DELETED_FLAG)
        if not pa.types.is_boolean(flag.type):
            raise SchemaMismatchError(
                f"{DELETED_FLAG} has to be a boolean column; the incoming rows have {flag.type}. It marks deletes: "
                "cast it, or leave it out."
            )
        masks.append(flag)
    if OPERATION in rows.column_names:
        masks.append(pc.is_in(rows.column(OPERATION), DELETE_OPERATIONS.cast(rows.column(OPERATION).type)))
    if rules.delete_field is not None and rules.delete_field in rows.column_names:
        text = pc.cast(rows.column(rules.delete_field), pa.string())
        masks.append(pc.equal(text, rules.delete_marker))
    if not masks:
        return None
    combined = masks[0]
    for mask in masks[1:]:
        combined = pc.or_kleene(combined, mask)
    flags = pc.fill_null(combined, False).to_numpy()
    return np.asarray(flags, dtype=np.bool_) if flags.any() else None


def default_ordering(columns: Sequence[pa.ChunkedArray | pa.Array], count: int) -> npt.NDArray[np.bool_]:
    """bool[count], rows whose ordering value is Hudi's default, the integer 0.

    True without ordering columns, and for a null or a 32-bit zero in a single ordering column; always False with
    several columns.
    """
    if len(columns) != 1:
        return np.full(count, not columns)
    default = pc.is_null(columns[0])
    if pa.types.is_int32(columns[0].type):
        default = pc.or_(default, pc.fill_null(pc.equal(columns[0], 0), False))
    return np.asarray(default.to_numpy(zero_copy_only=False) if isinstance(default, pa.Array) else default.to_numpy())


def ordering_rank(columns: Sequence[pa.ChunkedArray | pa.Array], count: int) -> npt.NDArray[np.int64]:
    """A number per row that compares as the ordering values do; all zero without ordering columns."""
    if not columns:
        return np.zeros(count, dtype=np.int64)
    if len(columns) == 1:
        direct = _as_int64(columns[0])
        return direct if direct is not None else _dense_rank(_default_filled(columns[0]))
    return _lexicographic_rank([_dense_rank(_default_filled(column)) for column in columns])


def at_least(
    incoming: Sequence[pa.ChunkedArray | pa.Array], stored: Sequence[pa.ChunkedArray | pa.Array]
) -> npt.NDArray[np.bool_]:
    """bool[n], whether the incoming ordering value is equal to or greater than the stored one.

    Both arguments are ordering columns of n values, of the same types.
    """
    return _compare(incoming, stored, equal_counts=True)


def greater(
    incoming: Sequence[pa.ChunkedArray | pa.Array], stored: Sequence[pa.ChunkedArray | pa.Array]
) -> npt.NDArray[np.bool_]:
    """bool[n], whether the incoming ordering value is greater than the stored one.

    Both arguments are ordering columns of n values, of the same types.
    """
    return _compare(incoming, stored, equal_counts=False)


def _compare(
    incoming: Sequence[pa.ChunkedArray | pa.Array], stored: Sequence[pa.ChunkedArray | pa.Array], equal_counts: bool
) -> npt.NDArray[np.bool_]:
    if not incoming:
        raise ValueError("comparing ordering values needs at least one ordering column")
    result: npt.NDArray[np.bool_] = np.full(len(incoming[0]), equal_counts)
    for new, old in zip(reversed(incoming), reversed(stored), strict=True):
        new_rank, old_rank = _as_int64(new), _as_int64(old)
        if new_rank is None or old_rank is None:
            joined = _dense_rank(_default_filled(pa.chunked_array([*_chunks(new), *_chunks(old)])))
            new_rank, old_rank = joined[: len(new)], joined[len(new) :]
        result = (new_rank > old_rank) | ((new_rank == old_rank) & result)
    return result


def _column(rows: pa.Table, name: str) -> pa.ChunkedArray:
    first, *inner = name.split(".")
    if name in rows.column_names:
        return rows.column(name)
    if first not in rows.column_names:
        raise InvalidDataError(
            f"The ordering field {name!r} is not among the incoming columns {rows.column_names}. Add the column, or "
            "create the table without hoodie.table.ordering.fields."
        )
    return pc.struct_field(rows.column(first), inner) if inner else rows.column(first)


def _as_int64(column: pa.ChunkedArray | pa.Array) -> npt.NDArray[np.int64] | None:
    """Integer and boolean values as int64, null as 0; None for other types."""
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        return None  # a null time or date is the lowest value, not the epoch
    return np.asarray(pc.fill_null(pc.cast(column, pa.int64()), 0).to_numpy(), dtype=np.int64)


def _default_filled(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return pc.fill_null(column, pa.scalar(0).cast(kind))
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return pc.fill_null(column, pa.scalar(0 if pa.types.is_floating(kind) else Decimal(0), kind))
    return column


def _dense_rank(column: pa.ChunkedArray | pa.Array) -> npt.NDArray[np.int64]:
    """Rank with null lowest and NaN highest (as ``Double.compare``)."""
    kind = column.type
    if pa.types.is_temporal(kind):
        whole = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
        lowest = np.iinfo(np.int64).min
        return np.asarray(pc.fill_null(whole.cast(pa.int64()), int(lowest)).to_numpy(), dtype=np.int64)
    if pa.types.is_floating(kind):
        values = np.asarray(column.to_numpy(), dtype=np.float64)
        _, ranks = np.unique(values, return_inverse=True)
        return ranks.astype(np.int64)
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(flat, pa.ChunkedArray):
        flat = pa.concat_arrays(flat.chunks)
    ranks = np.array(pc.rank(flat, "ascending", tiebreaker="dense"), dtype=np.int64)
    if flat.null_count:
        ranks[flat.is_null().to_numpy(zero_copy_only=False)] = 0  # other ranks start at 1
    return ranks


def _lexicographic_rank(ranks: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    order = np.lexsort(tuple(reversed(ranks)))
    changed = np.zeros(len(order), dtype=bool)
    for rank in ranks:
        ordered = rank[order]
        changed[1:] |= ordered[1:] != ordered[:-1]
    result = np.empty(len(order), dtype=np.int64)
    result[order] = np.cumsum(changed)
    return result


def _chunks(column: pa.ChunkedArray | pa.Array) -> list[pa.Array]:
    return list(column.chunks) if isinstance(column, pa.ChunkedArray) else [column]


RECORD_KEY, PARTITION_PATH = "_hoodie_record_key", "_hoodie_partition_path"
"""Names of the meta columns of record key and partition path."""

_USER_PROVIDED = "USER_PROVIDED"


@dataclass(frozen=True)
class SliceMerge:
    """Inputs of merging a slice. Picklable.

    Attributes:
        timeline: the active timeline; before table version 8 it decides which blocks are visible.
        as_of: newest requested time that is visible; None for the end of the timeline.
        key_config: how keys are computed from data columns; None for a table whose rows have the meta columns.
        use_positions: whether entries may be matched to rows of the base file by position.
        commit_times: commit times of the base rows that are merged with the log; None for all. Other base rows are
            unchanged, and entries with their keys become rows of their own.
        history: the table's schema history, to read log blocks in current names; None without history.
        config: the table's configuration, for :func:`kept_columns`; None to take all columns from the newer row.
    """

    storage: Storage
    timeline: Timeline
    table_version: int
    rules: MergeRules
    as_of: str | None = None
    key_config: KeyConfig | None = None
    use_positions: bool = False
    commit_times: tuple[str, ...] | None = None
    history: SchemaHistory | None = None
    config: TableConfig | None = None


def slice_merge(state: TableState, merger: Merger | None = None, use_positions: bool = False) -> SliceMerge:
    """The merge settings of a table's slices in the state's view.

    ``merger`` is for merge mode CUSTOM.

    Raises:
        UnsupportedFeatureError: the merge mode is not supported, or rows store no keys and the table's key generator
            cannot recompute them.
        ConfigError: a merger is given and the table has another merge mode.
    """
    return SliceMerge(
        state.storage,
        state.timeline,
        state.config.version,
        merge_rules_of(state.config, merger=merger, defaults=column_defaults(state)),
        state.view.as_of,
        stored_key_config(state.config),
        use_positions,
        history=state.view.history,
        config=state.config,
    )


def stored_key_config(config: TableConfig) -> KeyConfig | None:
    """How the keys of stored rows are computed from their columns; None when the rows store them.

    Raises:
        UnsupportedFeatureError: the table has a key generator of the user, or generated keys.
    """
    if config.populate_meta_fields:
        return None
    if config.key_generator == "USER_PROVIDED" or not config.record_key_fields:
        raise UnsupportedFeatureError(
            f"Table {config.name} stores no record keys (hoodie.populate.meta.fields=false), and they cannot be "
            f"computed from its columns: its key generator is {config.key_generator_class or 'one that invents keys'}."
        )
    return KeyConfig(config.key_generator, config.record_key_fields, config.partition_fields, config.partition_types)


def kept_columns(config: TableConfig, schema: pa.Schema) -> frozenset[str]:
    """The columns of ``schema`` that all rows of one key in one partition share, so that an update keeps their values.

    A single key column is included: the record key is its text, unless the user's key generator made the key.
    """
    kept = {RECORD_KEY, PARTITION_PATH} if config.populate_meta_fields else set()
    fields = config.record_key_fields
    if len(fields) == 1 and fields[0] in schema.names and config.key_generator != _USER_PROVIDED:
        kind = schema.field(fields[0]).type
        if pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_date32(kind):
            kept |= {*fields}
    return frozenset(kept.intersection(schema.names))


def key_columns(merge: SliceMerge) -> list[str]:
    """The columns that a row's key is computed from."""
    if merge.key_config is None:
        return [RECORD_KEY]
    return list(dict.fromkeys(name.split(".")[0] for name in merge.key_config.record_key_fields))


def merge_schema(merge: SliceMerge, wanted: pa.Schema, full: pa.Schema) -> pa.Schema:
    """The columns of ``wanted``, followed by the columns that merging needs: keys, ordering values, delete flags.

    All are nullable: rows of partial blocks lack columns until they are merged. A custom merger needs all columns.

    ``full`` has all columns of the table, with the meta columns if rows store them.
    """
    others = merging_columns(merge.rules, full.names)
    needed = [*key_columns(merge), *(full.names if others is None else others)]
    names = list(dict.fromkeys([*wanted.names, *needed]))
    fields = {**{field.name: field for field in full}, **{field.name: field for field in wanted}}
    return pa.schema([fields.get(name, pa.field(name, pa.string())).with_nullable(True) for name in names])
