"""What a table's configuration says about merging becomes rules, or is refused by name."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hudi_fast.config.new_table import NewTable, new_table_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.merging.rules import (
    COMMIT_TIME,
    CUSTOM,
    EVENT_TIME,
    FILL_UNAVAILABLE,
    IGNORE_DEFAULTS,
    MergeRules,
    merge_rules_of,
    merging_columns,
)

MODEL = "org.apache.hudi.common.model."
DEBEZIUM = MODEL + "debezium."
MARKER = "__debezium_unavailable_value"


def config(version: int, payload: str | None = None, drop: tuple[str, ...] = (), **more: str) -> TableConfig:
    """The configuration of a new merge-on-read table ordered by ``ts``, changed."""
    spec = NewTable(
        name="t",
        table_type="MERGE_ON_READ",
        record_key_fields=("id",),
        ordering_fields=("ts",),
        version=version,
        payload_class=payload,
    )
    props = new_table_properties(spec) | {f"hoodie.{key}": value for key, value in more.items()}
    return TableConfig.from_properties({key: value for key, value in props.items() if key not in drop}, "t")


PAYLOADS: dict[str, dict[str, Any]] = {
    MODEL + "DefaultHoodieRecordPayload": {"mode": EVENT_TIME},
    MODEL + "EventTimeAvroPayload": {"mode": EVENT_TIME},
    MODEL + "OverwriteWithLatestAvroPayload": {"mode": COMMIT_TIME},
    MODEL + "OverwriteNonDefaultsWithLatestAvroPayload": {"mode": COMMIT_TIME, "partial_mode": IGNORE_DEFAULTS},
    MODEL + "PartialUpdateAvroPayload": {"mode": EVENT_TIME, "partial_mode": IGNORE_DEFAULTS},
    MODEL + "AWSDmsAvroPayload": {"mode": COMMIT_TIME, "delete_field": "Op", "delete_marker": "D"},
    DEBEZIUM + "PostgresDebeziumAvroPayload": {
        "mode": EVENT_TIME,
        "ordering_fields": ("_event_lsn",),
        "delete_field": "_change_operation_type",
        "delete_marker": "d",
        "partial_mode": FILL_UNAVAILABLE,
        "unavailable_value": MARKER,
    },
    DEBEZIUM + "MySqlDebeziumAvroPayload": {
        "mode": EVENT_TIME,
        "ordering_fields": ("_event_bin_file", "_event_pos"),
        "delete_field": "_change_operation_type",
        "delete_marker": "d",
    },
}


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("payload", PAYLOADS)
def test_hudis_own_payload_classes_mean_the_same_in_every_version(version: int, payload: str) -> None:
    expected = {"ordering_fields": ("ts",), **PAYLOADS[payload]}
    if version < 9 and payload.endswith("PartialUpdateAvroPayload"):
        expected["partial_payload"] = True
    assert merge_rules_of(config(version, payload)) == MergeRules(**expected)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_other_payload_classes_are_refused_by_name(version: int) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"Table t merges rows by the payload class com\.example\.Mine"):
        merge_rules_of(config(version, "com.example.Mine"))


def test_an_unknown_merge_strategy_is_refused_by_its_id() -> None:
    strange = config(9, "com.example.Mine", ("hoodie.compaction.payload.class",), **{"record.merge.strategy.id": "1-2"})
    with pytest.raises(UnsupportedFeatureError, match="merge strategy 1-2"):
        merge_rules_of(strange)


def test_an_unknown_partial_update_mode_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match="partial update mode 'KEEP_VALUES'"):
        merge_rules_of(config(9, **{"table.partial.update.mode": "KEEP_VALUES"}))


def test_a_merger_stands_in_for_code_that_cannot_run_and_for_nothing_else() -> None:
    def merger(older: pa.Table, newer: pa.Table) -> pa.Table:
        return newer

    rules = merge_rules_of(config(9, "com.example.Mine"), merger=merger)
    assert (rules.mode, rules.merger, rules.blends, rules.compares) == (CUSTOM, merger, True, False)
    assert merging_columns(rules, ["a", "b"]) is None
    with pytest.raises(ConfigError, match=r"Table t merges by EVENT_TIME_ORDERING; hudi_fast\.merger is for tables"):
        merge_rules_of(config(9), merger=merger)


def test_log_records_of_release_0_with_the_overwriting_payload_compare_among_themselves() -> None:
    overwrite = MODEL + "OverwriteWithLatestAvroPayload"
    assert not merge_rules_of(config(6, overwrite)).orders
    old = merge_rules_of(config(6, overwrite, ("hoodie.record.merge.strategy.id",)))
    assert (old.orders, old.compares, old.mode) == (True, False, COMMIT_TIME)


def test_ties_may_keep_the_stored_row_where_a_payload_class_decides() -> None:
    tie = {
        "record.merge.property.hoodie.payload.update.on.same.ordering.field": "false",
        "record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
        "compaction.payload.class": MODEL + "DefaultHoodieRecordPayload",
    }
    assert not merge_rules_of(config(8, **tie, **{"record.merge.mode": "CUSTOM"})).same_ordering_updates
    assert merge_rules_of(config(8, **tie)).same_ordering_updates


def test_the_tables_delete_marker_goes_before_the_callers() -> None:
    assert merge_rules_of(config(9), "op", "gone").delete_marker == "gone"
    dms = merge_rules_of(config(9, MODEL + "AWSDmsAvroPayload"), "op", "gone")
    assert (dms.delete_field, dms.delete_marker) == ("Op", "D")


def test_merging_looks_at_ordering_and_delete_columns() -> None:
    columns = ["id", "ts", "s", "a.b", "op", "_hoodie_is_deleted"]
    rules = MergeRules(EVENT_TIME, ("ts", "s.t", "a.b"), "op", "D")
    assert merging_columns(rules, columns) == ["ts", "s", "a.b", "op", "_hoodie_is_deleted"]
    assert merging_columns(MergeRules(COMMIT_TIME, ("ts",)), columns) == ["_hoodie_is_deleted"]
