import pytest

from hudi_fast.config.new_table import new_table_properties
from hudi_fast.config.option_conflicts import check_against_table, effective_operation, new_table_from_options
from hudi_fast.config.table_config import TableConfig
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import ConfigError

W = "hoodie.datasource.write."
MODEL = "org.apache.hudi.common.model."
BASE = {
    "hoodie.table.name": "trips",
    f"{W}recordkey.field": "id",
    f"{W}partitionpath.field": "city",
    f"{W}precombine.field": "ts",
}


def table_of(given):
    spec = new_table_from_options(WriteOptions.from_options(given), "/lake/trips")
    return TableConfig.from_properties(new_table_properties(spec), "test table")


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {f"{W}recordkey.field": "a,b", f"{W}partitionpath.field": "p,q"},
        {f"{W}partitionpath.field": ""},
        {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"},
        {f"{W}payload.class": f"{MODEL}PartialUpdateAvroPayload"},
        {f"{W}payload.class": f"{MODEL}OverwriteWithLatestAvroPayload"},
        {f"{W}hive_style_partitioning": True, f"{W}partitionpath.urlencode": True},
        {f"{W}keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator"},
        {"hoodie.payload.delete.field": "op", "hoodie.payload.delete.marker": "D"},
        {
            f"{W}keygenerator.type": "TIMESTAMP",
            "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
            "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
        },
        {f"{W}partitionpath.field": "city:SIMPLE"},
    ],
)
def test_the_options_that_made_a_table_go_with_it(version, table_type, more):
    given = {**BASE, "hoodie.write.table.version": version, f"{W}table.type": table_type, **more}
    check_against_table(WriteOptions.from_options(given), table_of(given))


def test_options_that_were_not_given_take_the_table_s_settings():
    config = table_of({**BASE, f"{W}table.type": "MERGE_ON_READ", f"{W}hive_style_partitioning": True})
    check_against_table(WriteOptions.from_options({"hoodie.table.name": "TRIPS"}), config)


def test_all_conflicts_are_listed_at_once_in_hudi_s_form():
    given = {
        "hoodie.table.name": "other",
        f"{W}recordkey.field": "uuid",
        f"{W}partitionpath.field": "country,city",
        f"{W}precombine.field": "seq",
        f"{W}keygenerator.type": "COMPLEX",
        f"{W}table.type": "MERGE_ON_READ",
        f"{W}hive_style_partitioning": "true",
        f"{W}partitionpath.urlencode": "true",
        "hoodie.populate.meta.fields": "false",
        "hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING",
    }
    with pytest.raises(ConfigError) as caught:
        check_against_table(WriteOptions.from_options(given), table_of(BASE))
    lines = str(caught.value).split("\n")
    assert lines[0] == "Config conflict(key\tcurrent value\texisting value):"
    assert lines[1:-1] == [
        "RecordKey:\tuuid\tid",
        "PreCombineKey:\tseq\tts",
        "KeyGenerator:\tCOMPLEX\tSIMPLE",
        "PartitionPath:\tcountry,city\tcity",
        "hoodie.table.name:\tother\ttrips",
        f"{W}table.type:\tMERGE_ON_READ\tCOPY_ON_WRITE",
        f"{W}hive_style_partitioning:\ttrue\tfalse",
        f"{W}partitionpath.urlencode:\ttrue\tfalse",
        "hoodie.populate.meta.fields:\tfalse\ttrue",
        "hoodie.write.record.merge.mode:\tCOMMIT_TIME_ORDERING\tEVENT_TIME_ORDERING",
    ]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_payload_class_that_merges_otherwise_is_a_conflict(version):
    config = table_of({**BASE, "hoodie.write.table.version": version})
    options = WriteOptions.from_options({f"{W}payload.class": f"{MODEL}PartialUpdateAvroPayload"})
    with pytest.raises(ConfigError, match="Config conflict"):
        check_against_table(options, config)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_another_name_for_the_same_merge_rule_is_no_conflict(version):
    config = table_of({**BASE, "hoodie.write.table.version": version})
    for same in (
        {f"{W}payload.class": f"{MODEL}DefaultHoodieRecordPayload"},
        {f"{W}payload.class": f"{MODEL}EventTimeAvroPayload"},
        {"hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING"},
        {"hoodie.write.record.merge.strategy.id": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"},
    ):
        check_against_table(WriteOptions.from_options(same), config)


def test_partition_types_of_a_custom_key_generator_must_be_the_table_s():
    config = table_of({**BASE, f"{W}partitionpath.field": "city:SIMPLE"})
    check_against_table(WriteOptions.from_options({f"{W}partitionpath.field": "city"}), config)
    with pytest.raises(ConfigError, match="PartitionPath:\tcity:TIMESTAMP\tcity:SIMPLE"):
        check_against_table(WriteOptions.from_options({f"{W}partitionpath.field": "city:TIMESTAMP"}), config)


@pytest.mark.parametrize(
    ("keys", "partitions", "generator"),
    [
        ("id", "", "NON_PARTITION"),
        ("a,b", "", "NON_PARTITION"),
        ("id", "p", "SIMPLE"),
        ("a,b", "p", "COMPLEX"),
        ("id", "p,q", "COMPLEX"),
        ("id", "p:SIMPLE,q:SIMPLE", "CUSTOM"),
        ("", "p", "SIMPLE"),
        ("", "", "NON_PARTITION"),
    ],
)
def test_the_key_generator_follows_from_the_columns(keys, partitions, generator):
    given = {"hoodie.table.name": "t", f"{W}recordkey.field": keys, f"{W}partitionpath.field": partitions}
    assert new_table_from_options(WriteOptions.from_options(given), "/lake/trips").key_generator == generator


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, r"no table at /lake/trips.*'hoodie\.table\.name' must be set"),
        ({**BASE, f"{W}keygenerator.type": "SIMPLE", f"{W}recordkey.field": "a,b"}, "one key column"),
        ({**BASE, f"{W}keygenerator.type": "SIMPLE", f"{W}partitionpath.field": "a,b"}, "one partition column"),
        ({**BASE, f"{W}keygenerator.type": "CUSTOM"}, "name:SIMPLE"),
        ({**BASE, f"{W}keygenerator.type": "TIMESTAMP"}, r"timebased\.timestamp\.type"),
        ({**BASE, f"{W}partitionpath.field": "city:TIMESTAMP"}, r"timebased\.timestamp\.type"),
        (
            {**BASE, f"{W}partitionpath.field": "city:SIMPLE", "hoodie.populate.meta.fields": False},
            "Only simple, non-partitioned or complex",
        ),
        ({"hoodie.table.name": "t", "hoodie.combine.before.insert": True}, "auto generation of record keys"),
        ({"hoodie.table.name": "t", f"{W}insert.drop.duplicates": True}, "auto generation of record keys"),
        ({"hoodie.table.name": "t", "hoodie.populate.meta.fields": False}, "auto generation of record keys"),
    ],
)
def test_a_new_table_that_could_not_work_is_refused(given, said):
    with pytest.raises(ConfigError, match=said):
        new_table_from_options(WriteOptions.from_options(given), "/lake/trips")


def test_partition_columns_stay_in_the_files_of_merge_on_read_tables():
    given = {**BASE, f"{W}drop.partition.columns": True}
    assert new_table_from_options(WriteOptions.from_options(given), "/lake/trips").drop_partition_columns is True
    mor = WriteOptions.from_options({**given, f"{W}table.type": "MERGE_ON_READ"})
    assert new_table_from_options(mor, "/lake/trips").drop_partition_columns is False


def test_a_write_without_keys_is_a_bulk_insert_unless_told_otherwise():
    default, told = WriteOptions(), WriteOptions.from_options({f"{W}operation": "upsert"})
    assert effective_operation(default, (), has_key_column=False) == "bulk_insert"
    assert effective_operation(default, ("id",), has_key_column=False) == "upsert"
    assert effective_operation(default, (), has_key_column=True) == "upsert"
    assert effective_operation(told, (), has_key_column=False) == "upsert"


def test_a_table_with_record_keys_has_the_name_of_its_folder_by_default():
    options = WriteOptions.from_options({f"{W}recordkey.field": "id"})
    assert new_table_from_options(options, "s3://lake/trips/").name == "trips"


@pytest.mark.parametrize("generator", ["NON_PARTITION", "GLOBAL_DELETE"])
def test_partition_columns_mean_nothing_to_a_key_generator_without_partitions(generator):
    given = WriteOptions.from_options({**BASE, f"{W}keygenerator.type": generator})
    spec = new_table_from_options(given, "/lake/trips")
    assert (spec.key_generator, spec.partition_fields) == (generator, ())
    config = TableConfig.from_properties(new_table_properties(spec), "t")
    check_against_table(given, config)
    with pytest.raises(ConfigError, match="PartitionPath:\tcity\t"):
        check_against_table(WriteOptions.from_options({f"{W}partitionpath.field": "city"}), config)


def test_slash_separated_dates_are_a_conflict_only_where_the_table_stores_its_choice():
    given = WriteOptions.from_options({f"{W}slash.separated.date.partitioning": "true"})
    check_against_table(given, table_of(BASE))  # a table of Apache Hudi, which stores nothing
    stored = table_of({**BASE, f"{W}slash.separated.date.partitioning": "true"})
    check_against_table(given, stored)
    other = WriteOptions.from_options({f"{W}slash.separated.date.partitioning": "false"})
    with pytest.raises(ConfigError, match=r"slash\.separated\.date\.partitioning:\tfalse\ttrue"):
        check_against_table(other, stored)
