"""``hoodie.properties`` of a table from one version to the next, as pure functions from properties to properties.

The changes of each step (the metadata table's own properties get the same changes):

==========  ============================================================================================================
2 to 3      the style and encoding of partition paths, the key generator's class: from the options, else from the table
3 to 4      the checksum; the metadata table's partition ``files``, if the table has one
4 to 5,     the version alone
5 to 6
6 to 5      no metadata table; key generator's class and ordering field under the names that old releases know
6 to 8      version 8, timeline layout 2, ``timeline.path``, ``initial.version``; the merge mode by payload class, table
            type and ordering field (a MERGE_ON_READ table with an ordering field becomes event time, because its log
            files were merged that way), with the matching payload class and strategy id; the key generator by class
            **and** type, the bootstrap index too; ``field:TYPE`` of a custom key generator where the options give it
8 to 9      Hudi's own payload classes go to ``legacy.payload.class`` and become mode, partial update mode and merge
            properties; no strategy id if the mode is an ordering; ``precombine.field`` becomes ``ordering.fields``
9 to 8      the reverse: ``compaction.payload.class`` from ``legacy.payload.class``, mode CUSTOM where the class is
            more than an ordering, the strategy id; ``ordering.fields`` becomes ``precombine.field``
8 to 6      version 6, timeline layout 1; neither mode nor strategy id; the key generator and the bootstrap index by
            class too, partition fields without types
==========  ============================================================================================================

A table of version 7, which differs from one of version 6 in the number alone, goes to version 6 first. A step keeps
the keys that it does not list, even if the version does not know them, as in Apache Hudi. A strategy id is also written
in its old spelling; only the new spelling is removed.

hudi_fast keeps some facts that Apache Hudi 1.2.0 loses. Going to version 6, a table without payload class gets the one
of its mode, and an ordering field that has only its new name gets the old name too (releases before 1.0 know no other
and would merge by arrival). Going to version 8, ``EventTimeAvroPayload`` means event time on COPY_ON_WRITE too.

Going to version 3, Apache Hudi names ``SimpleKeyGenerator`` if the options name no class. hudi_fast names the one that
fits the key and partition columns, and reads the style of partition paths from the paths.

Sources: TwoToThreeUpgradeHandler, ThreeToFourUpgradeHandler, SixToFiveDowngradeHandler, release 0.15.0;
SevenToEightUpgradeHandler, EightToNineUpgradeHandler, NineToEightDowngradeHandler, EightToSevenDowngradeHandler,
release 1.2.0; and tables that these releases converted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from hudi_fast.config.bootstrap_options import HFILE_INDEX
from hudi_fast.config.merge_mode import (
    BUILT_IN_PAYLOADS,
    COMMIT_TIME,
    COMMIT_TIME_STRATEGY,
    CUSTOM,
    DEFAULT_PAYLOAD,
    EVENT_TIME,
    EVENT_TIME_STRATEGY,
    MERGE_PROPERTY_PREFIX,
    OVERWRITE_PAYLOAD,
    PAYLOAD_STRATEGY,
)
from hudi_fast.config.option_names import (
    class_of_key_generator,
    infer_key_generator,
    key_generator_of_class,
    key_generator_of_type,
)
from hudi_fast.config.properties_file import CHECKSUM_KEY, table_checksum
from hudi_fast.values import dataclass

__all__ = ["TARGETS", "VERSIONS", "PropertyHints", "changed_properties", "path_between"]

VERSIONS = (2, 3, 4, 5, 6, 7, 8, 9)
TARGETS = (5, 6, 8, 9)
"""Table versions that an upgrade or downgrade can begin with, and versions that it can end with."""

_NEXT = {2: 3, 3: 4, 4: 5, 5: 6, 6: 8, 8: 9}
_PREVIOUS = {9: 8, 8: 6, 6: 5}
_BRIDGE = 7

_VERSION = "hoodie.table.version"
_LAYOUT = "hoodie.timeline.layout.version"
_PAYLOAD = "hoodie.compaction.payload.class"
_LEGACY_PAYLOAD = "hoodie.table.legacy.payload.class"
_MODE = "hoodie.record.merge.mode"
_STRATEGY = "hoodie.record.merge.strategy.id"
_OLD_STRATEGY = "hoodie.compaction.record.merger.strategy"
_PARTIAL = "hoodie.table.partial.update.mode"
_ORDERING = "hoodie.table.ordering.fields"
_PRECOMBINE = "hoodie.table.precombine.field"
_GENERATOR_CLASS = "hoodie.table.keygenerator.class"
_GENERATOR_TYPE = "hoodie.table.keygenerator.type"
_INDEX_CLASS = "hoodie.bootstrap.index.class"
_INDEX_TYPE = "hoodie.bootstrap.index.type"
_PARTITION_FIELDS = "hoodie.table.partition.fields"
_KEY_FIELDS = "hoodie.table.recordkey.fields"
_HIVE_STYLE = "hoodie.datasource.write.hive_style_partitioning"
_URL_ENCODE = "hoodie.datasource.write.partitionpath.urlencode"
_DATABASE = "hoodie.database.name"
_METADATA_PARTITIONS = "hoodie.table.metadata.partitions"
_DELETE_FIELD = "hoodie.payload.delete.field"
_DELETE_MARKER = "hoodie.payload.delete.marker"

_PACKAGE = "org.apache.hudi.common.model."
_EVENT_TIME_PAYLOAD = _PACKAGE + "EventTimeAvroPayload"
_MYSQL_PAYLOAD = _PACKAGE + "debezium.MySqlDebeziumAvroPayload"
_MYSQL_ORDERING_BEFORE_9 = "_event_seq"
_PLAIN_PAYLOADS = frozenset({DEFAULT_PAYLOAD, _EVENT_TIME_PAYLOAD, OVERWRITE_PAYLOAD})
"""Payload classes that only order rows."""

_STRATEGY_OF = {EVENT_TIME: EVENT_TIME_STRATEGY, COMMIT_TIME: COMMIT_TIME_STRATEGY}
_PAYLOAD_OF = {EVENT_TIME: DEFAULT_PAYLOAD, COMMIT_TIME: OVERWRITE_PAYLOAD}

_INDEX_PACKAGE = "org.apache.hudi.common.bootstrap.index."
_INDEXES = {"HFILE": HFILE_INDEX, "NO_OP": _INDEX_PACKAGE + "NoOpBootstrapIndex"}
_NAMES_OF_INDEXES = {
    **{class_name: name for name, class_name in _INDEXES.items()},
    _INDEX_PACKAGE + "HFileBootstrapIndex": "HFILE",  # its place before release 1.0
}

Properties = dict[str, str]


@dataclass(frozen=True, slots=True)
class PropertyHints:
    """Facts that the properties of older versions lack, from the options of the call or from the table's files.

    Attributes:
        hive_style: for a table of version 2, whether partition paths are ``field=value``.
        url_encode: for a table of version 2, whether values in partition paths are escaped.
        key_generator_class: for a table of version 2, Java class of the key generator; None for the one that fits the
            columns.
        database: name of the database, for a table of version 3 or older that has none; or None.
        has_files_partition: whether a table of version 3 has a metadata table that is kept.
        partition_fields: ``field:TYPE`` list of a custom key generator: version 6 does not store the types.
        delete_field: column that marks deletes; becomes a merge property on version 9, with ``delete_marker``.
        delete_marker: the value that marks deletes.
    """

    partition_fields: str | None = None
    delete_field: str | None = None
    delete_marker: str | None = None
    hive_style: bool = False
    url_encode: bool = False
    key_generator_class: str | None = None
    database: str | None = None
    has_files_partition: bool = False


def path_between(before: int, after: int) -> tuple[tuple[int, int], ...]:
    """The steps from one table version to another; empty if they are equal.

    Args:
        before: one of :data:`VERSIONS`.
        after: one of :data:`TARGETS`.
    """
    way = [before, 6] if before == _BRIDGE else [before]
    following = _NEXT if after > way[-1] else _PREVIOUS
    while way[-1] != after:
        way.append(following[way[-1]])
    return tuple(pairwise(way))


def changed_properties(props: Mapping[str, str], after: int, hints: PropertyHints) -> Properties:
    """All properties of a table after the change.

    Args:
        props: its properties now; their version is one of :data:`VERSIONS`.
        after: the new version, one of :data:`TARGETS`.
        hints: from the options.
    """
    changed = dict(props)
    for step in path_between(int(props[_VERSION]), after):
        changed = _STEPS[step](changed, hints)
        changed[_VERSION] = str(step[1])
    return changed


# ---- 2 to 6, and back to 5


def _two_to_three(props: Properties, hints: PropertyHints) -> Properties:
    keys, partitions = (
        props.get(key, "").split(",") if props.get(key) else [] for key in (_KEY_FIELDS, _PARTITION_FIELDS)
    )
    fitting = class_of_key_generator(infer_key_generator(keys, partitions)) or ""
    return {
        _HIVE_STYLE: str(hints.hive_style).lower(),
        _URL_ENCODE: str(hints.url_encode).lower(),
        _GENERATOR_CLASS: hints.key_generator_class or fitting,
        **props,
    }


def _three_to_four(props: Properties, hints: PropertyHints) -> Properties:
    changed = dict(props)
    if hints.database and not props.get(_DATABASE):
        changed[_DATABASE] = hints.database
    if hints.has_files_partition:
        changed[_METADATA_PARTITIONS] = "files"
    changed[CHECKSUM_KEY] = table_checksum(props["hoodie.table.name"], changed.get(_DATABASE))
    return changed


def _unchanged(props: Properties, _hints: PropertyHints) -> Properties:
    return dict(props)


def _six_to_five(props: Properties, _hints: PropertyHints) -> Properties:
    changed = {**props, **_generator_keys(props)}
    ordering = _ordering_of(props)
    if ordering:
        changed[_PRECOMBINE] = ordering
    return changed | {key: "" for key in (_METADATA_PARTITIONS, f"{_METADATA_PARTITIONS}.inflight") if key in props}


# ---- 6 to 8


def _six_to_eight(props: Properties, hints: PropertyHints) -> Properties:
    changed = {
        **props,
        _LAYOUT: "2",
        "hoodie.timeline.path": "timeline",
        "hoodie.table.initial.version": props[_VERSION],
        **_merge_keys(*_merging_of_six(props)),
        **_generator_keys(props),
        **_bootstrap_keys(props),
    }
    if _generator_name(props) == "CUSTOM" and hints.partition_fields:
        changed[_PARTITION_FIELDS] = hints.partition_fields
    return changed


def _merging_of_six(props: Mapping[str, str]) -> tuple[str, str, str]:
    """Payload class, mode and strategy id that match a version 6 table."""
    payload = props.get(_PAYLOAD) or DEFAULT_PAYLOAD
    if payload not in _PLAIN_PAYLOADS:
        return payload, CUSTOM, PAYLOAD_STRATEGY
    in_logs = props.get("hoodie.table.type") == "MERGE_ON_READ" and bool(_ordering_of(props))
    mode = EVENT_TIME if in_logs or payload != OVERWRITE_PAYLOAD else COMMIT_TIME
    return _PAYLOAD_OF[mode], mode, _STRATEGY_OF[mode]


def _merge_keys(payload: str, mode: str, strategy: str) -> Properties:
    return {_PAYLOAD: payload, _MODE: mode, **_strategy_keys(strategy)}


def _strategy_keys(strategy: str) -> Properties:
    return {_STRATEGY: strategy, _OLD_STRATEGY: strategy}


def _ordering_of(props: Mapping[str, str]) -> str:
    return props.get(_ORDERING) or props.get(_PRECOMBINE) or ""


# ---- key generators


def _generator_name(props: Mapping[str, str]) -> str | None:
    class_name, type_name = props.get(_GENERATOR_CLASS), props.get(_GENERATOR_TYPE)
    if class_name:
        return key_generator_of_class(class_name) or "USER_PROVIDED"
    return key_generator_of_type(type_name) if type_name else None


def _generator_keys(props: Mapping[str, str]) -> Properties:
    """The key generator as class and as type; empty if the table names none."""
    name, class_name = _generator_name(props), props.get(_GENERATOR_CLASS)
    if name is None:
        return {}
    if class_name:
        known = key_generator_of_class(class_name)
        twin = "_AVRO" if known and "Avro" in class_name.rpartition(".")[2] else ""
        return {_GENERATOR_CLASS: class_name, _GENERATOR_TYPE: name + twin}
    own = class_of_key_generator(name)
    return {} if own is None else {_GENERATOR_CLASS: own, _GENERATOR_TYPE: props[_GENERATOR_TYPE]}


# ---- bootstrapped tables


def _bootstrap_keys(props: Mapping[str, str]) -> Properties:
    """The index of a bootstrapped table as class and as type; empty for another table."""
    class_name = props.get(_INDEX_CLASS, "")
    name = _NAMES_OF_INDEXES.get(class_name) or props.get(_INDEX_TYPE, "")
    return {_INDEX_CLASS: class_name or _INDEXES[name], _INDEX_TYPE: name} if name in _INDEXES else {}


# ---- 8 to 9 and back


def _eight_to_nine(props: Properties, hints: PropertyHints) -> Properties:
    mode = props.get(_MODE)
    payload = props.get(_PAYLOAD) or _PAYLOAD_OF.get(mode or "") or ""
    folded = BUILT_IN_PAYLOADS.get(payload)
    changed = dict(props)
    if mode != CUSTOM:
        changed.pop(_STRATEGY, None)
    if folded is not None:
        if payload not in _PLAIN_PAYLOADS:
            changed |= {_MODE: folded.mode, **_strategy_keys(_STRATEGY_OF[folded.mode])}
        if folded.partial_update_mode is not None:
            changed[_PARTIAL] = folded.partial_update_mode
        changed |= {MERGE_PROPERTY_PREFIX + key: value for key, value in folded.properties.items()}
        changed[_LEGACY_PAYLOAD] = payload
        changed.pop(_PAYLOAD, None)
    if folded is None or not folded.properties:
        changed |= _delete_keys(hints)
    dictated = None if folded is None else folded.ordering_fields
    ordering = ",".join(dictated) if dictated else _ordering_of(props)
    if ordering:
        changed[_ORDERING] = ordering
        changed.pop(_PRECOMBINE, None)
    return changed


def _delete_keys(hints: PropertyHints) -> Properties:
    if hints.delete_field is None or hints.delete_marker is None:
        return {}
    return {
        MERGE_PROPERTY_PREFIX + _DELETE_FIELD: hints.delete_field,
        MERGE_PROPERTY_PREFIX + _DELETE_MARKER: hints.delete_marker,
    }


def _nine_to_eight(props: Properties, _hints: PropertyHints) -> Properties:
    legacy, mode = props.get(_LEGACY_PAYLOAD, ""), props.get(_MODE)
    folded = BUILT_IN_PAYLOADS.get(legacy)
    changed = dict(props)
    changed.pop(_PARTIAL, None)
    if mode in _STRATEGY_OF:
        changed |= _strategy_keys(_STRATEGY_OF[mode])
    if folded is not None:
        changed[_PAYLOAD] = changed.pop(_LEGACY_PAYLOAD)
        if legacy not in _PLAIN_PAYLOADS:
            changed |= {_MODE: CUSTOM, **_strategy_keys(PAYLOAD_STRATEGY)}
        for key in folded.properties:
            changed.pop(MERGE_PROPERTY_PREFIX + key, None)
    ordering = _MYSQL_ORDERING_BEFORE_9 if legacy == _MYSQL_PAYLOAD else _ordering_of(props)
    if ordering:
        changed[_PRECOMBINE] = ordering
        changed.pop(_ORDERING, None)
    return changed


# ---- 8 to 6


def _eight_to_six(props: Properties, _hints: PropertyHints) -> Properties:
    changed = {**props, _LAYOUT: "1", **_generator_keys(props), **_bootstrap_keys(props)}
    mode = changed.pop(_MODE, None)
    changed.pop(_STRATEGY, None)
    if not props.get(_PAYLOAD) and mode in _PAYLOAD_OF:
        changed[_PAYLOAD] = _PAYLOAD_OF[mode]
    ordering = _ordering_of(props)
    if ordering:
        changed[_PRECOMBINE] = ordering
    if _generator_name(props) == "CUSTOM" and props.get(_PARTITION_FIELDS):
        names = (field.partition(":")[0].strip() for field in props[_PARTITION_FIELDS].split(","))
        changed[_PARTITION_FIELDS] = ",".join(names)
    return changed


_STEPS: Mapping[tuple[int, int], Callable[[Properties, PropertyHints], Properties]] = {
    (2, 3): _two_to_three,
    (3, 4): _three_to_four,
    (4, 5): _unchanged,
    (5, 6): _unchanged,
    (6, 8): _six_to_eight,
    (8, 9): _eight_to_nine,
    (9, 8): _nine_to_eight,
    (8, 6): _eight_to_six,
    (7, 6): _unchanged,
    (6, 5): _six_to_five,
}
