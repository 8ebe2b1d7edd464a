"""Properties of a table in another version: as real Hudi 1.2 wrote them, and where ours differ on purpose.

``upgrades_of_hudi_1_2.json`` holds, for each of real Hudi's upgrades and downgrades of the tables in ``tests/tables``
(``CALL upgrade_table``, ``CALL downgrade_table``), the properties before and what became of them; keys that have
nothing to do with it were left out, and the same upgrade of several tables is there once.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.config.merge_mode import BUILT_IN_PAYLOADS, MERGE_MODES
from hudi_fast.config.properties_file import table_checksum
from hudi_fast.config.table_config import NewTable, TableConfig, new_table_properties
from hudi_fast.services.upgrading.properties import PropertyHints, changed_properties, path_between

REAL = json.loads(Path(__file__).with_name("upgrades_of_hudi_1_2.json").read_text())
PAYLOAD = "hoodie.compaction.payload.class"
PRECOMBINE = "hoodie.table.precombine.field"
STRATEGY = "hoodie.record.merge.strategy.id"
MODE = "hoodie.record.merge.mode"
MODEL = "org.apache.hudi.common.model."
KEYGEN = "org.apache.hudi.keygen."
NO_HINTS = PropertyHints()


def made(spec: NewTable) -> dict[str, str]:
    return new_table_properties(spec)


def at(props: dict[str, str], *versions: int, hints: PropertyHints = NO_HINTS) -> dict[str, str]:
    for version in versions:
        props = changed_properties(props, version, hints)
    return props


@pytest.mark.parametrize("case", REAL, ids=lambda case: f"{case['table']}-to-{case['to']}")
def test_properties_are_those_of_real_hudi(case: dict[str, Any]) -> None:
    before, to = case["before"], case["to"]
    real = {**before, **case["changes"]}
    real = {key: value for key, value in real.items() if value is not None}
    ours = at(before, to)
    if to == 6:  # real Hudi leaves out what releases before 1.0 need
        assert real.get(PAYLOAD) in (None, ours[PAYLOAD])
        assert real.get(PRECOMBINE) in (None, ours.get(PRECOMBINE))
        for key in {PAYLOAD, PRECOMBINE} - real.keys():
            ours.pop(key, None)
    if before["hoodie.table.version"] == "6" and to == 9 and STRATEGY not in real:
        ours.pop(STRATEGY, None)  # in one go real Hudi takes it away even where its own two steps leave it
    assert ours == real


def test_real_upgrades_of_every_kind_are_there() -> None:
    steps = {(case["before"]["hoodie.table.version"], case["to"]) for case in REAL}
    assert steps == {("6", 8), ("6", 9), ("8", 6), ("8", 9), ("9", 6), ("9", 8)}
    assert {case["table"].endswith(" metadata") for case in REAL} == {True, False}


def test_steps_lie_between_versions() -> None:
    assert path_between(6, 9) == ((6, 8), (8, 9))
    assert path_between(9, 6) == ((9, 8), (8, 6))
    assert path_between(8, 8) == ()


def test_a_copy_on_write_table_with_the_event_time_payload_stays_by_event_time() -> None:
    spec = NewTable("t", version=6, ordering_fields=("ts",), payload_class=MODEL + "EventTimeAvroPayload")
    assert at(made(spec), 8)[MODE] == "EVENT_TIME_ORDERING"


@pytest.mark.parametrize(
    ("table_type", "ordering", "mode"),
    [
        ("COPY_ON_WRITE", ("ts",), "COMMIT_TIME_ORDERING"),
        ("MERGE_ON_READ", (), "COMMIT_TIME_ORDERING"),
        ("MERGE_ON_READ", ("ts",), "EVENT_TIME_ORDERING"),
    ],
)
def test_latest_wins_of_version_6_depends_on_where_rows_were_merged(
    table_type: str, ordering: tuple[str, ...], mode: str
) -> None:
    payload = MODEL + "OverwriteWithLatestAvroPayload"
    spec = NewTable("t", version=6, table_type=table_type, ordering_fields=ordering, payload_class=payload)
    assert at(made(spec), 8)[MODE] == mode


@pytest.mark.parametrize("release", ["PostgresDebeziumAvroPayload", "MySqlDebeziumAvroPayload"])
def test_change_streams_of_debezium_come_and_go(release: str) -> None:
    payload = f"{MODEL}debezium.{release}"
    before = made(NewTable("t", version=8, ordering_fields=("_event_seq",), payload_class=payload))
    after = at(before, 9)
    folded = BUILT_IN_PAYLOADS[payload]
    assert after[MODE] == folded.mode
    assert after["hoodie.table.legacy.payload.class"] == payload
    assert after["hoodie.table.ordering.fields"] == ",".join(folded.ordering_fields or ())
    assert after["hoodie.record.merge.property.hoodie.payload.delete.marker"] == "d"
    back = at(after, 8)
    assert (back[PAYLOAD], back[MODE]) == (payload, "CUSTOM")
    assert back[PRECOMBINE] == ("_event_seq" if "MySql" in release else "_event_lsn")
    assert not [key for key in back if key.startswith("hoodie.record.merge.property.")]


def test_a_payload_class_of_the_user_stays_on_all_versions() -> None:
    before = made(NewTable("t", version=6, payload_class="com.example.Payload"))
    for versions in ((8,), (9,), (9, 8), (9, 6)):
        after = at(before, *versions)
        assert after[PAYLOAD] == "com.example.Payload"
        assert after.get(MODE) == (None if versions[-1] == 6 else "CUSTOM")


def test_types_of_a_custom_key_generator_come_from_the_options_and_go_with_version_6() -> None:
    spec = NewTable("t", version=6, key_generator="CUSTOM", partition_fields=("a", "b"))
    hints = PropertyHints(partition_fields="a:SIMPLE,b:TIMESTAMP")
    after = at(made(spec), 8, hints=hints)
    assert after["hoodie.table.partition.fields"] == "a:SIMPLE,b:TIMESTAMP"
    assert after["hoodie.table.keygenerator.type"] == "CUSTOM"
    assert at(after, 6)["hoodie.table.partition.fields"] == "a,b"
    assert at(made(spec), 8)["hoodie.table.partition.fields"] == "a,b"


@pytest.mark.parametrize(
    ("class_name", "type_name"),
    [
        (KEYGEN + "SimpleAvroKeyGenerator", "SIMPLE_AVRO"),
        (KEYGEN + "ComplexKeyGenerator", "COMPLEX"),
        ("com.example.Keys", "USER_PROVIDED"),
    ],
)
def test_a_key_generator_class_gets_its_type(class_name: str, type_name: str) -> None:
    before = {**made(NewTable("t", version=6)), "hoodie.table.keygenerator.class": class_name}
    after = at(before, 8)
    assert after["hoodie.table.keygenerator.class"] == class_name
    assert after["hoodie.table.keygenerator.type"] == type_name


def test_a_delete_marker_of_the_options_becomes_a_merge_property() -> None:
    before = made(NewTable("t", version=8, ordering_fields=("ts",)))
    after = at(before, 9, hints=PropertyHints(delete_field="op", delete_marker="D"))
    assert after["hoodie.record.merge.property.hoodie.payload.delete.field"] == "op"
    assert after["hoodie.record.merge.property.hoodie.payload.delete.marker"] == "D"


tables = st.builds(
    NewTable,
    name=st.just("t"),
    table_type=st.sampled_from(["COPY_ON_WRITE", "MERGE_ON_READ"]),
    version=st.just(9),
    record_key_fields=st.sampled_from([(), ("id",), ("id", "sub")]),
    partition_fields=st.sampled_from([(), ("p",), ("p", "q")]),
    ordering_fields=st.sampled_from([(), ("ts",), ("ts", "seq")]),
    merge_mode=st.sampled_from([None, *MERGE_MODES[:2]]),
    hive_style=st.booleans(),
) | st.builds(
    NewTable,
    name=st.just("t"),
    version=st.just(9),
    ordering_fields=st.just(("_event_lsn",)),
    payload_class=st.sampled_from([*(one for one in BUILT_IN_PAYLOADS if "MySql" not in one), "com.example.P"]),
)


@given(tables)
def test_down_to_8_and_up_again_means_the_same_table(spec: NewTable) -> None:
    before = made(spec)
    there, back = at(before, 8), at(before, 8, 9)
    for found in (there, back):
        TableConfig.from_properties(found, "t")
    left, right = (TableConfig.from_properties(one, "t") for one in (before, back))
    for name in (
        "merge_mode partial_update_mode merge_properties ordering_fields partition_fields key_generator version "
        "timeline_folder history_folder hive_style record_key_fields"
    ).split():
        assert getattr(left, name) == getattr(right, name), name


# ---- versions 2 to 6, and back to 5

OLD = {
    "hoodie.table.name": "t",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.version": "2",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.partition.fields": "city,day",
    PRECOMBINE: "ts",
}


def test_the_way_from_version_2_to_6_adds_what_older_releases_do_not_store() -> None:
    hints = PropertyHints(hive_style=True, database="d", has_files_partition=True)
    found = at(OLD, 6, hints=hints)
    assert {key: value for key, value in found.items() if OLD.get(key) != value} == {
        "hoodie.table.version": "6",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "false",
        "hoodie.table.keygenerator.class": KEYGEN + "ComplexKeyGenerator",
        "hoodie.database.name": "d",
        "hoodie.table.checksum": table_checksum("t", "d"),
        "hoodie.table.metadata.partitions": "files",
    }


def test_stored_facts_win_over_hints_and_the_class_of_the_options_over_a_fitting_one() -> None:
    stored = {**OLD, "hoodie.datasource.write.hive_style_partitioning": "true", "hoodie.database.name": "mine"}
    found = at(stored, 5, hints=PropertyHints(key_generator_class="com.shop.Keys", database="other"))
    assert found["hoodie.datasource.write.hive_style_partitioning"] == "true"
    assert (found["hoodie.database.name"], found["hoodie.table.keygenerator.class"]) == ("mine", "com.shop.Keys")


def test_version_5_has_the_names_that_its_releases_know() -> None:
    new = made(NewTable("t", version=9, record_key_fields=("id",), partition_fields=("city",), ordering_fields=("ts",)))
    found = at({**new, "hoodie.table.metadata.partitions": "files,column_stats"}, 5)
    assert (found["hoodie.table.version"], found["hoodie.timeline.layout.version"]) == ("5", "1")
    assert (found[PRECOMBINE], found["hoodie.table.metadata.partitions"]) == ("ts", "")
    assert found["hoodie.table.keygenerator.class"] == KEYGEN + "SimpleKeyGenerator"
    assert found[PAYLOAD] == MODEL + "DefaultHoodieRecordPayload"


def test_a_table_of_version_7_goes_the_way_of_version_6() -> None:
    assert path_between(7, 9) == ((7, 6), (6, 8), (8, 9))
    assert path_between(7, 5) == ((7, 6), (6, 5))
    six = made(NewTable("t", version=6, record_key_fields=("id",)))
    seven = {**six, "hoodie.table.version": "7"}
    assert at(seven, 6) == six
    assert at(seven, 8) == at(six, 8)
