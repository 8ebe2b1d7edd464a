import pickle

import pytest

from hudi_fast.config.metadata_options import MetadataOptions
from hudi_fast.config.new_table import new_table_properties
from hudi_fast.config.option_conflicts import check_against_table, new_table_from_options
from hudi_fast.config.read_options import ReadOptions
from hudi_fast.config.table_config import TableConfig
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import ConfigError

W = "hoodie.datasource.write."
M = "hoodie.metadata."
BASE = {
    "hoodie.table.name": "trips",
    f"{W}recordkey.field": "id,day",
    f"{W}partitionpath.field": "city",
    f"{W}precombine.field": "ts",
}


def table_of(given: dict[str, object], **properties: str) -> TableConfig:
    spec = new_table_from_options(WriteOptions.from_options({**BASE, **given}), "/lake/trips")
    stored = {key.replace("_", "."): value for key, value in properties.items()}
    return TableConfig.from_properties({**new_table_properties(spec), **stored}, "test table")


def test_no_options_mean_the_defaults_of_hudi_on_spark():
    options = MetadataOptions.from_options({})
    assert options == MetadataOptions() == WriteOptions().metadata
    assert (options.enabled, options.column_stats, options.partition_stats) == (True, True, True)
    assert (options.bloom_filters, options.record_index, options.partitioned_record_index) == (False, False, False)
    assert (options.column_stats_groups, options.partition_stats_groups) == (2, 1)
    assert (options.bloom_groups, options.expression_groups) == (4, 2)
    assert (options.record_index_min_groups, options.record_index_max_groups) == (10, 10_000)
    assert (options.partitioned_index_min_groups, options.partitioned_index_max_groups) == (1, 10)
    assert (options.record_index_group_bytes, options.record_index_growth) == (1 << 30, 2.0)
    assert (options.max_columns, options.column_list, options.compact_after) == (32, (), 10)


@pytest.mark.parametrize(
    ("given", "partitions"),
    [
        ({}, ("column_stats", "files", "partition_stats")),
        ({"hoodie.write.table.version": 8}, ("column_stats", "files", "partition_stats")),
        ({"hoodie.write.table.version": 6}, ("column_stats", "files")),
        ({f"{W}partitionpath.field": ""}, ("column_stats", "files")),
        ({f"{M}enable": False}, ()),
        ({f"{M}index.column.stats.enable": "false"}, ("files",)),
        ({f"{M}index.partition.stats.enable": "false"}, ("column_stats", "files")),
        ({f"{M}index.bloom.filter.enable": "true"}, ("bloom_filters", "column_stats", "files", "partition_stats")),
        ({f"{M}record.index.enable": True}, ("column_stats", "files", "partition_stats", "record_index")),
        ({"hoodie.index.type": "RECORD_INDEX"}, ("column_stats", "files", "partition_stats", "record_index")),
    ],
)
def test_the_partitions_that_a_writer_keeps_follow_from_options_and_table(given, partitions):
    assert WriteOptions.from_options({**BASE, **given}).metadata.wanted_partitions(table_of(given)) == partitions


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("RECORD_INDEX", "record_index"),
        ("global_record_level_index", "record_index"),
        ("RECORD_LEVEL_INDEX", "partitioned_record_index"),
    ],
)
def test_an_index_type_that_goes_by_records_asks_for_its_record_index(name, field):
    options = WriteOptions.from_options({"hoodie.index.type": name})
    assert getattr(options.metadata, field)
    assert options.index.type == ("RECORD_LEVEL_INDEX" if "part" in field else "GLOBAL_RECORD_LEVEL_INDEX")
    assert options.index.is_global == ("part" not in field)
    assert not options.index.updates_partition


def test_a_record_index_that_is_switched_off_stays_off_whatever_the_index_type():
    given = {"hoodie.index.type": "RECORD_INDEX", f"{M}record.index.enable": "false"}
    assert not WriteOptions.from_options(given).metadata.has_record_index


@pytest.mark.parametrize(
    "alias",
    [
        "record.index.min.filegroup.count",
        "global.record.level.index.min.filegroup.count",
    ],
)
def test_both_spellings_of_the_record_index_s_sizes_are_taken(alias):
    assert MetadataOptions.from_options({M + alias: "3"}).record_index_min_groups == 3


def test_options_of_an_index_to_make_are_read_part_by_part():
    options = MetadataOptions.from_options(
        {
            f"{M}index.expression.column": "ts",
            f"{M}index.expression.options": "expr=from_unixtime, format='yyyy-MM-dd'",
            "hoodie.index.name": "day",
        }
    )
    assert options.expression_options == {"expr": "from_unixtime", "format": "yyyy-MM-dd"}
    assert (options.expression_column, options.index_name, options.expression_type) == ("ts", "day", "column_stats")
    assert MetadataOptions(expression_function="upper").expression_options == {"expr": "upper"}
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({f"{M}record.index.enable": True, f"{M}record.level.index.enable": True}, "not both"),
        ({f"{M}record.index.min.filegroup.count": 20, f"{M}record.index.max.filegroup.count": 10}, "is above"),
        ({f"{M}index.expression.options": "upper"}, "expected name=value"),
        ({f"{M}index.secondary.column": "a", f"{M}index.expression.column": "b"}, "one index at a time"),
        ({f"{M}index.column.stats.file.group.count": 0}, "at least 1"),
        ({"hoodie.bucket.index.num.buckets": 0}, "at least 1"),
        (
            {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.max.num.buckets": 8},
            "hoodie.bucket.index.num.buckets=256 is not between",
        ),
    ],
)
def test_options_that_contradict_each_other_are_refused(given, message):
    with pytest.raises(ConfigError, match=message):
        WriteOptions.from_options(given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({f"{M}index.secondary.column": "name"}, "needs a record index"),
        ({"hoodie.index.type": "BUCKET", "hoodie.bucket.index.hash.field": "city"}, "names city"),
        ({"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}, "does not work with"),
    ],
)
def test_options_that_the_table_cannot_follow_are_refused(given, message):
    with pytest.raises(ConfigError, match=message):
        check_against_table(WriteOptions.from_options({**BASE, **given}), table_of({}))


def test_a_secondary_index_may_follow_a_record_index_that_is_there():
    config = table_of({}, hoodie_table_metadata_partitions="files,record_index")
    check_against_table(WriteOptions.from_options({**BASE, f"{M}index.secondary.column": "name"}), config)


def test_a_record_index_needs_meta_fields():
    given = {
        "hoodie.populate.meta.fields": "false",
        f"{M}record.index.enable": True,
        f"{W}keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
    }
    with pytest.raises(ConfigError, match="not supported when meta fields are disabled"):
        check_against_table(WriteOptions.from_options({**BASE, **given}), table_of(given))


@pytest.mark.parametrize("index", ["BUCKET", "RECORD_INDEX"])
def test_an_index_by_keys_needs_key_columns(index):
    given = {"hoodie.table.name": "t", "hoodie.combine.before.insert": False, "hoodie.index.type": index}
    options = WriteOptions.from_options(given)
    config = TableConfig.from_properties(new_table_properties(new_table_from_options(options, "/lake/trips")), "t")
    with pytest.raises(ConfigError, match="no key columns"):
        check_against_table(options, config)


def test_some_of_the_key_columns_may_be_hashed():
    given = {
        "hoodie.index.type": "bucket",
        "hoodie.bucket.index.hash.field": "day",
        "hoodie.bucket.index.num.buckets": "4",
        "hoodie.bucket.index.min.num.buckets": "2",
        "hoodie.bucket.index.max.num.buckets": "8",
        "hoodie.index.bucket.engine": "consistent_hashing",
        f"{W}table.type": "MERGE_ON_READ",
    }
    options = WriteOptions.from_options({**BASE, **given})
    check_against_table(options, table_of(given))
    assert (options.bucket.engine, options.bucket.hash_fields, options.bucket.count) == (
        "CONSISTENT_HASHING",
        ("day",),
        4,
    )


def test_a_read_uses_the_metadata_table_unless_it_is_told_not_to():
    assert ReadOptions.from_options({}).metadata_enabled
    assert ReadOptions.from_options({}).data_skipping
    assert not ReadOptions.from_options({f"{M}enable": "false"}).metadata_enabled
    assert not ReadOptions.from_options({"hoodie.enable.data.skipping": "false"}).data_skipping
