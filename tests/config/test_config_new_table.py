from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.config.table_config import NewTable, TableConfig, new_table_properties
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from tests.config.stored_properties import stored_properties

STORED = stored_properties()
MODEL = "org.apache.hudi.common.model."
MOR = NewTable(
    "t",
    table_type="MERGE_ON_READ",
    record_key_fields=("id",),
    partition_fields=("part",),
    ordering_fields=("ts",),
)
COW = replace(MOR, table_type="COPY_ON_WRITE")
# Put there by catalogue sync and by the metadata table, after creation.
LATER = {
    "hoodie.table.partition_extractor_class",
    "hoodie.table.metadata.partitions",
    "hoodie.table.metadata.partitions.inflight",
    "hoodie.table.index.defs.path",
}
# Version 6: for release 0.15, which does not know ordering.fields and keygenerator.type.
FOR_OLD_RELEASES = {"hoodie.table.precombine.field", "hoodie.table.keygenerator.class"}
# Apache Hudi 1.2.0 writes these into older tables although their releases do not know them.
HARMLESS = {"hoodie.timeline.path", "hoodie.timeline.history.path", "hoodie.table.format"}
PAYLOADS = [
    "DefaultHoodieRecordPayload",
    "EventTimeAvroPayload",
    "OverwriteWithLatestAvroPayload",
    "PartialUpdateAvroPayload",
    "OverwriteNonDefaultsWithLatestAvroPayload",
]


def without(props, keys):
    return {key: value for key, value in props.items() if key not in keys}


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("mor_v9_mixed", MOR),
        ("mor_v9_log_compacted", MOR),
        ("mor_v9_commit_time", replace(MOR, merge_mode="COMMIT_TIME_ORDERING")),
        (
            "mor_v9_nonpartitioned_multi_order",
            replace(MOR, partition_fields=(), ordering_fields=("ts", "qty")),
        ),
        ("cow_v9_cdc", replace(COW, cdc_enabled=True)),
        ("cow_v9_nometa", replace(COW, populate_meta_fields=False)),
        (
            "cow_v9_complex_keygen",
            replace(
                COW,
                record_key_fields=("id", "qty"),
                partition_fields=("part", "name"),
                hive_style=True,
                url_encode=True,
            ),
        ),
        (
            "cow_v9_timestamp_keygen",
            replace(
                COW,
                partition_fields=("ts",),
                key_generator="TIMESTAMP",
                keygen_properties={
                    "hoodie.keygen.timebased.timezone": "GMT",
                    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
                    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
                },
            ),
        ),
        *((f"mor_v9_{name}", replace(MOR, payload_class=MODEL + name)) for name in PAYLOADS),
    ],
)
def test_a_version_9_table_has_exactly_the_keys_of_apache_hudi(name, spec):
    assert new_table_properties(spec) == without(STORED[name], LATER)


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("cow_v6_mixed", replace(COW, version=6)),
        ("mor_v8_mixed", replace(MOR, version=8)),
        *((f"mor_v6_{name}", replace(MOR, version=6, payload_class=MODEL + name)) for name in PAYLOADS),
    ],
)
def test_older_versions_differ_in_known_keys_alone(name, spec):
    ours, theirs = new_table_properties(spec), STORED[name]
    assert without(ours, FOR_OLD_RELEASES) == without(theirs, LATER | (HARMLESS - ours.keys()))
    assert ours["hoodie.table.precombine.field"] == "ts"


def test_version_6_has_what_release_0_15_writes():
    ours = new_table_properties(
        replace(
            MOR,
            version=6,
            database="",
            archive_folder="archived",
            payload_class=MODEL + "OverwriteWithLatestAvroPayload",
        )
    )
    theirs = without(STORED["h015_mor"], LATER | {"hoodie.compaction.record.merger.strategy"})
    assert theirs.items() <= ours.items()


def test_custom_partition_types_are_stored_from_version_8_on():
    spec = replace(MOR, partition_fields=("part", "ts"), partition_types=("SIMPLE", "TIMESTAMP"))
    new, old = new_table_properties(spec), new_table_properties(replace(spec, version=6))
    assert new["hoodie.table.partition.fields"] == "part:SIMPLE,ts:TIMESTAMP"
    assert old["hoodie.table.partition.fields"] == "part,ts"
    assert new["hoodie.table.keygenerator.type"] == old["hoodie.table.keygenerator.type"] == "CUSTOM"


def test_database_payloads_bring_their_delete_marker_and_ordering():
    postgres = new_table_properties(replace(MOR, payload_class=MODEL + "debezium.PostgresDebeziumAvroPayload"))
    prefix = "hoodie.record.merge.property."
    assert postgres["hoodie.table.partial.update.mode"] == "FILL_UNAVAILABLE"
    assert postgres["hoodie.table.ordering.fields"] == "_event_lsn"
    assert postgres[prefix + "hoodie.payload.delete.marker"] == "d"
    assert postgres[prefix + "hoodie.write.partial.update.unavailable.value"] == "__debezium_unavailable_value"
    dms = TableConfig.from_properties(
        new_table_properties(replace(MOR, payload_class=MODEL + "AWSDmsAvroPayload")), "t"
    )
    assert (dms.delete_field, dms.delete_marker, dms.merge_mode) == ("Op", "D", "COMMIT_TIME_ORDERING")


def test_a_user_payload_stays_on_version_9():
    props = new_table_properties(replace(MOR, payload_class="com.example.Mine"))
    assert props["hoodie.record.merge.mode"] == "CUSTOM"
    assert props["hoodie.compaction.payload.class"] == "com.example.Mine"
    assert props["hoodie.record.merge.strategy.id"] == "00000000-0000-0000-0000-000000000000"


def test_a_user_merger_stays_on_version_9():
    props = new_table_properties(replace(MOR, merge_mode="CUSTOM", merge_strategy_id="11111111-aaaa-bbbb-cccc-1"))
    assert props["hoodie.record.merge.mode"] == "CUSTOM"
    assert props["hoodie.record.merge.strategy.id"] == "11111111-aaaa-bbbb-cccc-1"
    assert "hoodie.compaction.payload.class" not in props


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"version": 7}, UnsupportedFeatureError, "version=7"),
        ({"version": 10}, UnsupportedFeatureError, "version=10"),
        ({"name": ""}, ConfigError, "needs a name"),
        ({"table_type": "MOR"}, ConfigError, "'MOR'"),
        ({"timezone": "CET"}, ConfigError, "'CET'"),
        ({"delete_field": "op"}, ConfigError, "one is missing"),
        ({"version": 8, "slash_separated_dates": True}, ConfigError, "needs table version 9"),
        ({"partition_types": ("SIMPLE", "SIMPLE")}, ConfigError, "1 partition fields have 2 types"),
        ({"merge_mode": "CUSTOM"}, ConfigError, "needs hoodie.write.payload.class"),
        ({"merge_mode": "NEWEST"}, ConfigError, "'NEWEST'"),
        (
            {"merge_mode": "COMMIT_TIME_ORDERING", "payload_class": MODEL + "EventTimeAvroPayload"},
            ConfigError,
            "contradicts",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(change, error, words):
    with pytest.raises(error, match=words):
        new_table_properties(replace(MOR, **change))


names = st.lists(st.sampled_from(["id", "part", "ts", "a.b", "x"]), max_size=3, unique=True).map(tuple)
SPECS = st.builds(
    NewTable,
    name=st.text(min_size=1, max_size=8),
    database=st.none() | st.text(min_size=1, max_size=5),
    table_type=st.sampled_from(["COPY_ON_WRITE", "MERGE_ON_READ"]),
    version=st.sampled_from([5, 6, 8, 9]),
    record_key_fields=names,
    partition_fields=names,
    ordering_fields=names,
    key_generator=st.sampled_from(["SIMPLE", "COMPLEX", "TIMESTAMP", "NON_PARTITION"]),
    hive_style=st.booleans(),
    url_encode=st.booleans(),
    populate_meta_fields=st.booleans(),
    drop_partition_columns=st.booleans(),
    cdc_enabled=st.booleans(),
    cdc_mode=st.sampled_from(["OP_KEY_ONLY", "DATA_BEFORE"]),
    timezone=st.sampled_from(["LOCAL", "UTC"]),
    create_schema=st.none() | st.just('{"type":"record"}'),
    partition_metafile_in_base_format=st.booleans(),
)
SAME = (
    "name database table_type version record_key_fields partition_fields ordering_fields key_generator hive_style "
    "url_encode populate_meta_fields drop_partition_columns cdc_enabled timezone create_schema "
    "partition_metafile_in_base_format"
).split()


@given(SPECS)
def test_what_is_created_is_read_back(spec):
    properties = new_table_properties(spec)
    found = TableConfig.from_properties(properties, "/table")
    is_unpartitioned = len(spec.record_key_fields) == 1 and not spec.partition_fields
    if spec.key_generator == "SIMPLE" and is_unpartitioned and "hoodie.table.keygenerator.class" in properties:
        spec = replace(spec, key_generator="NON_PARTITION")  # Hudi 0.10 names the default class for such tables
    assert {name: getattr(found, name) for name in SAME} == {name: getattr(spec, name) for name in SAME}
    assert found.merge_mode == ("EVENT_TIME_ORDERING" if spec.ordering_fields else "COMMIT_TIME_ORDERING")
    if spec.cdc_enabled:
        assert found.cdc_mode == spec.cdc_mode
