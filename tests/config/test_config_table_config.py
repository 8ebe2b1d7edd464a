import pytest

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from tests.config.stored_properties import stored_properties

STORED = stored_properties()
MODEL = "org.apache.hudi.common.model."


def config(name, **changes):
    props = {**STORED[name], **{key.replace("__", "."): value for key, value in changes.items()}}
    return TableConfig.from_properties({k: v for k, v in props.items() if v is not None}, "/table")


def test_a_version_9_table():
    found = config("mor_v9_mixed")
    assert (found.name, found.database, found.table_type, found.version) == ("t", None, "MERGE_ON_READ", 9)
    assert (found.record_key_fields, found.partition_fields, found.ordering_fields) == (("id",), ("part",), ("ts",))
    assert (found.key_generator, found.key_generator_class, found.partition_types) == ("SIMPLE", None, ())
    assert (found.merge_mode, found.payload_class, found.merge_strategy_id) == ("EVENT_TIME_ORDERING", None, None)
    assert (found.layout_version, found.timeline_folder) == (2, ".hoodie/timeline")
    assert found.history_folder == ".hoodie/timeline/history"
    assert found.metadata_partitions == ("column_stats", "files", "partition_stats")
    assert found.metadata_partitions_inflight == ()
    assert (found.timezone, found.base_file_format, found.populate_meta_fields) == ("LOCAL", "PARQUET", True)
    assert (found.hive_style, found.url_encode, found.cdc_enabled, found.drop_partition_columns) == (False,) * 4
    assert found.is_mor
    assert found.is_partitioned


def test_a_table_of_release_0_15():
    found = config("h015_mor")
    assert (found.version, found.layout_version, found.timeline_folder) == (6, 1, ".hoodie")
    assert found.history_folder == ".hoodie/archived"
    assert (found.key_generator, found.ordering_fields) == ("SIMPLE", ("ts",))
    assert (found.merge_mode, found.payload_class) == (
        "COMMIT_TIME_ORDERING",
        MODEL + "OverwriteWithLatestAvroPayload",
    )
    assert found.database is None


def test_key_generators_and_flags():
    timestamp = config("cow_v9_timestamp_keygen")
    assert timestamp.key_generator == "TIMESTAMP"
    assert timestamp.keygen_properties == {
        "hoodie.keygen.timebased.timezone": "GMT",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    }
    composite = config("cow_v9_complex_keygen")
    assert (composite.key_generator, composite.partition_fields) == ("COMPLEX", ("part", "name"))
    assert composite.hive_style
    assert composite.url_encode
    assert config("cow_v6_complexkeygen_hivestyle").key_generator == "COMPLEX"
    assert config("mor_v9_nonpartitioned_multi_order").partition_fields == ()
    assert not config("cow_v9_nometa").populate_meta_fields
    assert config("cow_v9_cdc").cdc_mode == "DATA_BEFORE_AFTER"
    assert config("mor_v9_merge_into_partial").create_schema.startswith('{"type":"record","name":"tmi_record"')


def test_the_metadata_table():
    for name in ("mor_v9_mixed_metadata", "cow_v6_mixed_metadata"):
        found = config(name)
        assert (found.key_generator, found.base_file_format) == ("HOODIE_TABLE_METADATA", "HFILE")
        assert (found.merge_mode, found.populate_meta_fields) == ("CUSTOM", False)


@pytest.mark.parametrize(
    ("payload", "v6_mode", "v9_mode", "partial"),
    [
        ("DefaultHoodieRecordPayload", "EVENT_TIME_ORDERING", "EVENT_TIME_ORDERING", None),
        ("EventTimeAvroPayload", "EVENT_TIME_ORDERING", "EVENT_TIME_ORDERING", None),
        ("OverwriteWithLatestAvroPayload", "COMMIT_TIME_ORDERING", "COMMIT_TIME_ORDERING", None),
        ("PartialUpdateAvroPayload", "CUSTOM", "EVENT_TIME_ORDERING", "IGNORE_DEFAULTS"),
        ("OverwriteNonDefaultsWithLatestAvroPayload", "CUSTOM", "COMMIT_TIME_ORDERING", "IGNORE_DEFAULTS"),
    ],
)
def test_merge_settings_of_payload_tables(payload, v6_mode, v9_mode, partial):
    old, new = config(f"mor_v6_{payload}"), config(f"mor_v9_{payload}")
    assert (old.merge_mode, old.payload_class, old.partial_update_mode) == (v6_mode, MODEL + payload, None)
    assert (new.merge_mode, new.payload_class) == (v9_mode, None)
    assert (new.legacy_payload_class, new.partial_update_mode) == (MODEL + payload, partial)


def test_custom_partition_fields_carry_types():
    found = config("mor_v9_mixed", hoodie__table__partition__fields="part:simple,ts:TIMESTAMP")
    assert (found.partition_fields, found.partition_types) == (("part", "ts"), ("SIMPLE", "TIMESTAMP"))


def test_a_delete_marker_is_a_merge_property():
    found = TableConfig.from_properties(
        {
            **STORED["mor_v9_mixed"],
            "hoodie.record.merge.property.hoodie.payload.delete.field": "Op",
            "hoodie.record.merge.property.hoodie.payload.delete.marker": "D",
        },
        "/table",
    )
    assert (found.delete_field, found.delete_marker) == ("Op", "D")


def test_the_old_prefix_of_key_generator_options_is_accepted_and_the_new_one_wins():
    found = TableConfig.from_properties(
        {
            **STORED["cow_v9_timestamp_keygen"],
            "hoodie.deltastreamer.keygen.timebased.timezone": "UTC",
            "hoodie.deltastreamer.keygen.timebased.input.timezone": "CET",
        },
        "/table",
    )
    assert found.keygen_properties["hoodie.keygen.timebased.timezone"] == "GMT"
    assert found.keygen_properties["hoodie.keygen.timebased.input.timezone"] == "CET"


@pytest.mark.parametrize(
    ("class_name", "expected"),
    [
        ("org.apache.hudi.keygen.ComplexAvroKeyGenerator", ("COMPLEX", None)),
        ("org.apache.hudi.keygen.GlobalAvroDeleteKeyGenerator", ("GLOBAL_DELETE", None)),
        ("com.example.Mine", ("USER_PROVIDED", "com.example.Mine")),
    ],
)
def test_the_class_of_a_key_generator_beats_its_type(class_name, expected):
    found = config("mor_v9_mixed", hoodie__table__keygenerator__class=class_name)
    assert (found.key_generator, found.key_generator_class) == expected


@pytest.mark.parametrize(
    ("keys", "partitions", "expected"),
    [("id", "", "NON_PARTITION"), ("id", "p", "SIMPLE"), ("a,b", "p", "COMPLEX"), ("id", "p:SIMPLE", "CUSTOM")],
)
def test_a_key_generator_that_is_not_named_is_inferred(keys, partitions, expected):
    found = config(
        "mor_v9_mixed",
        hoodie__table__keygenerator__type=None,
        hoodie__table__recordkey__fields=keys,
        hoodie__table__partition__fields=partitions,
    )
    assert found.key_generator == expected


def test_a_simple_key_generator_without_partition_fields_makes_no_partitions():
    found = config(
        "mor_v9_mixed",
        hoodie__table__keygenerator__class="org.apache.hudi.keygen.SimpleKeyGenerator",
        hoodie__table__recordkey__fields="id",
        hoodie__table__partition__fields="",
    )
    assert found.key_generator == "NON_PARTITION"


@pytest.mark.parametrize("version", ["0", "1", "10"])
def test_versions_that_are_not_read_are_named(version):
    with pytest.raises(UnsupportedFeatureError, match=f"has table version {version};"):
        config("mor_v9_mixed", hoodie__table__version=version)


@pytest.mark.parametrize("version", ["2", "3", "4", "5", "7"])
def test_versions_2_to_5_and_7_are_read_like_6(version):
    found = config("h015_mor", hoodie__table__version=version)
    assert (found.version, found.timeline_folder) == (int(version), ".hoodie")


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        ("hoodie.table.version", "nine", CorruptTableError),
        ("hoodie.table.type", "LOG", CorruptTableError),
        ("hoodie.table.timeline.timezone", "CET", CorruptTableError),
        ("hoodie.record.merge.mode", "BEST", UnsupportedFeatureError),
        ("hoodie.table.keygenerator.type", "MAGIC", UnsupportedFeatureError),
        ("hoodie.timeline.layout.version", "1", UnsupportedFeatureError),
        ("hoodie.timeline.path", "../../elsewhere", CorruptTableError),
    ],
)
def test_values_that_are_not_understood_are_named(key, value, error):
    with pytest.raises(error, match=value.replace(".", r"\.")):
        TableConfig.from_properties({**STORED["mor_v9_mixed"], key: value}, "/table")
