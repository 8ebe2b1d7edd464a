"""Merge settings of a table: merge mode, payload class and strategy id.

Tables up to version 8 store a Java payload class and a merge strategy id; version 8 adds the mode. Version 9 stores
only the mode and replaces Hudi's payload classes by a mode and table properties. :func:`infer_merge` interprets the
settings of an existing table, :func:`translate_merge` builds those of a new one.

Sources: HoodieTableConfig.inferMergingConfigs*, SevenToEightUpgradeHandler, EightToNineUpgradeHandler, release 1.2.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from hudi_fast.errors import ConfigError
from hudi_fast.values import dataclass

__all__ = [
    "BUILT_IN_PAYLOADS",
    "COMMIT_TIME",
    "COMMIT_TIME_STRATEGY",
    "CUSTOM",
    "CUSTOM_STRATEGY",
    "DEFAULT_PAYLOAD",
    "EVENT_TIME",
    "EVENT_TIME_STRATEGY",
    "MERGE_MODES",
    "MERGE_PROPERTY_PREFIX",
    "OVERWRITE_PAYLOAD",
    "PARTIAL_UPDATE_PAYLOAD",
    "PAYLOAD_STRATEGY",
    "MergeSettings",
    "infer_merge",
    "translate_merge",
]

COMMIT_TIME = "COMMIT_TIME_ORDERING"
EVENT_TIME = "EVENT_TIME_ORDERING"
CUSTOM = "CUSTOM"
MERGE_MODES = (COMMIT_TIME, EVENT_TIME, CUSTOM)
"""Merge modes of tables (`hoodie.record.merge.mode`)."""

EVENT_TIME_STRATEGY = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
COMMIT_TIME_STRATEGY = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
PAYLOAD_STRATEGY = "00000000-0000-0000-0000-000000000000"
CUSTOM_STRATEGY = "1897ef5f-18bc-4557-939c-9d6a8afd1519"
"""Merge strategy ids: one per merge mode, and one for payload classes."""

MERGE_PROPERTY_PREFIX = "hoodie.record.merge.property."
"""Prefix of table properties that a merge strategy reads."""

_PACKAGE = "org.apache.hudi.common.model."
DEFAULT_PAYLOAD = _PACKAGE + "DefaultHoodieRecordPayload"
OVERWRITE_PAYLOAD = _PACKAGE + "OverwriteWithLatestAvroPayload"
PARTIAL_UPDATE_PAYLOAD = _PACKAGE + "PartialUpdateAvroPayload"
"""Payload classes that decide the merge mode."""

_MODE_OF_PAYLOAD = {
    DEFAULT_PAYLOAD: EVENT_TIME,
    _PACKAGE + "EventTimeAvroPayload": EVENT_TIME,
    OVERWRITE_PAYLOAD: COMMIT_TIME,
}
_MODE_OF_STRATEGY = {EVENT_TIME_STRATEGY: EVENT_TIME, COMMIT_TIME_STRATEGY: COMMIT_TIME}
_STRATEGY_OF_MODE = {EVENT_TIME: EVENT_TIME_STRATEGY, COMMIT_TIME: COMMIT_TIME_STRATEGY}


@dataclass(frozen=True, slots=True)
class MergeSettings:
    """How a table merges rows with one key.

    Attributes:
        mode: one of :data:`MERGE_MODES`.
        payload_class: Java payload class (always set up to version 8; on version 9 only for CUSTOM), or None.
        strategy_id: UUID of the merge strategy, or None if the table version stores none.
        legacy_payload_class: version 9: Hudi's payload class that mode and properties replace, or None.
        partial_update_mode: ``IGNORE_DEFAULTS``, ``FILL_UNAVAILABLE`` or None.
        properties: merge properties without their prefix.
        ordering_fields: ordering fields that the payload class requires, or None.
    """

    mode: str
    payload_class: str | None = None
    strategy_id: str | None = None
    legacy_payload_class: str | None = None
    partial_update_mode: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    ordering_fields: tuple[str, ...] | None = None


_DELETE_OF_DEBEZIUM = {
    "hoodie.payload.delete.field": "_change_operation_type",
    "hoodie.payload.delete.marker": "d",
}
BUILT_IN_PAYLOADS: Mapping[str, MergeSettings] = {
    DEFAULT_PAYLOAD: MergeSettings(EVENT_TIME),
    _PACKAGE + "EventTimeAvroPayload": MergeSettings(EVENT_TIME),
    OVERWRITE_PAYLOAD: MergeSettings(COMMIT_TIME),
    PARTIAL_UPDATE_PAYLOAD: MergeSettings(EVENT_TIME, partial_update_mode="IGNORE_DEFAULTS"),
    _PACKAGE + "OverwriteNonDefaultsWithLatestAvroPayload": MergeSettings(
        COMMIT_TIME, partial_update_mode="IGNORE_DEFAULTS"
    ),
    _PACKAGE + "AWSDmsAvroPayload": MergeSettings(
        COMMIT_TIME, properties={"hoodie.payload.delete.field": "Op", "hoodie.payload.delete.marker": "D"}
    ),
    _PACKAGE + "debezium.PostgresDebeziumAvroPayload": MergeSettings(
        EVENT_TIME,
        partial_update_mode="FILL_UNAVAILABLE",
        properties={
            "hoodie.write.partial.update.unavailable.value": "__debezium_unavailable_value",
            **_DELETE_OF_DEBEZIUM,
        },
        ordering_fields=("_event_lsn",),
    ),
    _PACKAGE + "debezium.MySqlDebeziumAvroPayload": MergeSettings(
        EVENT_TIME, properties=_DELETE_OF_DEBEZIUM, ordering_fields=("_event_bin_file", "_event_pos")
    ),
}
"""Hudi's payload classes, each with the settings that replace it on version 9."""


def infer_merge(
    version: int,
    *,
    mode: str | None,
    payload_class: str | None,
    strategy_id: str | None,
    ordering_fields: Sequence[str],
) -> MergeSettings:
    """Merge settings of an existing table.

    Versions 8 and 9 store the mode (``hoodie.record.merge.mode``). Without it the mode follows from the payload class,
    else from the strategy id, else from whether the table has an ordering field.
    """
    if version >= 9 and mode is not None:
        return MergeSettings(mode, payload_class, strategy_id)
    if version >= 8 and mode is not None:
        return MergeSettings(mode, payload_class or _payload_of_mode(mode), strategy_id or _STRATEGY_OF_MODE.get(mode))
    if payload_class is not None:
        inferred = _MODE_OF_PAYLOAD.get(payload_class, CUSTOM)
        return MergeSettings(inferred, payload_class, _STRATEGY_OF_MODE.get(inferred, PAYLOAD_STRATEGY))
    if strategy_id is not None:
        inferred = _MODE_OF_STRATEGY.get(strategy_id, CUSTOM)
        return MergeSettings(inferred, _payload_of_mode(inferred), strategy_id)
    inferred = EVENT_TIME if ordering_fields else COMMIT_TIME
    return MergeSettings(inferred, _payload_of_mode(inferred), _STRATEGY_OF_MODE[inferred])


def translate_merge(
    version: int,
    *,
    mode: str | None,
    payload_class: str | None,
    strategy_id: str | None,
    ordering_fields: Sequence[str],
) -> MergeSettings:
    """Merge settings of a new table of ``version`` (5, 6, 8 or 9).

    Raises:
        ConfigError: mode, payload class and strategy id contradict each other, or CUSTOM has neither payload class nor
            strategy id.
    """
    if mode is not None and mode not in MERGE_MODES:
        raise ConfigError(f"hoodie.record.merge.mode is {mode!r}; expected one of {', '.join(MERGE_MODES)}.")
    if version >= 9 and payload_class is not None and payload_class in BUILT_IN_PAYLOADS:
        replacement = BUILT_IN_PAYLOADS[payload_class]
        _check_same(mode, replacement.mode, payload_class)
        return replace(replacement, legacy_payload_class=payload_class)
    settings = _explicit(version, mode, payload_class, strategy_id, ordering_fields)
    if version < 9:
        return settings
    if settings.mode != CUSTOM:
        return MergeSettings(settings.mode)
    if payload_class is not None:
        return MergeSettings(CUSTOM, payload_class, PAYLOAD_STRATEGY)
    return MergeSettings(CUSTOM, None, settings.strategy_id)


def _explicit(
    version: int, mode: str | None, payload: str | None, strategy: str | None, ordering_fields: Sequence[str]
) -> MergeSettings:
    """The settings as versions 6 and 8 store them; raises for contradictions."""
    if payload is None and strategy is None:
        if mode == CUSTOM:
            raise ConfigError(
                "hoodie.record.merge.mode=CUSTOM needs hoodie.write.payload.class or hoodie.record.merge.strategy.id."
            )
        if mode is not None:
            return MergeSettings(mode, _payload_of_mode(mode), _STRATEGY_OF_MODE[mode])
    by_payload = None if payload is None else _MODE_OF_PAYLOAD.get(payload, CUSTOM)
    by_strategy = None if strategy is None else _MODE_OF_STRATEGY.get(strategy, CUSTOM)
    if by_payload is not None and by_strategy is not None and version >= 8:
        _check_same(by_strategy, by_payload, payload)
    settings = infer_merge(6, mode=None, payload_class=payload, strategy_id=strategy, ordering_fields=ordering_fields)
    _check_same(mode, settings.mode, payload or strategy)
    if payload is not None and settings.mode == CUSTOM and strategy is not None and version >= 8:
        return replace(settings, strategy_id=strategy)
    return settings


def _check_same(given: str | None, implied: str, source: str | None) -> None:
    if given is not None and given != implied:
        raise ConfigError(f"The merge mode {given} contradicts {source} (mode {implied}); give only one of them.")


def _payload_of_mode(mode: str) -> str:
    return OVERWRITE_PAYLOAD if mode == COMMIT_TIME else DEFAULT_PAYLOAD
