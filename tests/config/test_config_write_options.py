import dataclasses
import pickle

import pytest

from hudi_fast.config.bootstrap_options import BootstrapOptions
from hudi_fast.config.engine_options import EngineOptions
from hudi_fast.config.file_options import BloomOptions, ParquetOptions
from hudi_fast.config.index_options import IndexOptions
from hudi_fast.config.monitoring_options import HookOptions, MetricsOptions
from hudi_fast.config.option_fields import option_of_field
from hudi_fast.config.options import OPTIONS
from hudi_fast.config.rewrite_options import ClusteringOptions, CompactionOptions
from hudi_fast.config.service_options import ArchiveOptions, CleanOptions, ServiceOptions, TtlOptions
from hudi_fast.config.stream_options import SinkOptions
from hudi_fast.config.sync_options import SyncOptions
from hudi_fast.config.table_options import PartitionSpec, TableOptions
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import ConfigError, UnsupportedFeatureError

W = "hoodie.datasource.write."


def test_no_options_mean_hudi_s_defaults_with_zstd_and_the_simple_index():
    options = WriteOptions.from_options({})
    assert options == WriteOptions()
    assert (options.operation, options.table.type, options.table.version) == ("upsert", "COPY_ON_WRITE", 9)
    assert (options.parquet.codec, options.parquet.compression_level, options.index.type) == ("zstd", 1, "SIMPLE")
    assert (options.sizing.max_file_size, options.sizing.small_file_limit) == (125_829_120, 104_857_600)
    assert options.keys.record_key_fields is None
    assert options.keys.partition_spec is None
    assert options.explicit == frozenset()


def test_every_honoured_write_option_has_a_field_or_is_one_of_a_group():
    services = (CompactionOptions, ClusteringOptions, CleanOptions, ArchiveOptions, ServiceOptions, SyncOptions)
    hooks = (HookOptions, MetricsOptions)
    groups = {type(getattr(WriteOptions(), field.name)) for field in dataclasses.fields(WriteOptions)}
    classes = [
        *(WriteOptions, SinkOptions, BootstrapOptions, TtlOptions, *services, *hooks),
        *filter(dataclasses.is_dataclass, groups),
    ]
    bound = {option_of_field(field) for one in classes for field in dataclasses.fields(one)}
    loose = {
        option.key
        for option in OPTIONS
        if "write" in option.families and option.honoured and option not in bound and option.supported is None
    }
    assert {key for key in loose if not key.startswith("hoodie.keygen.")} == {"path", f"{W}commitmeta.key.prefix"}


def test_a_working_dictionary_of_a_user_resolves():
    options = WriteOptions.from_options(
        {
            "hoodie.table.name": "trips",
            f"{W}recordkey.field": "uuid",
            f"{W}partitionpath.field": "city",
            f"{W}precombine.field": "ts",
            f"{W}operation": "UPSERT",
            f"{W}hive_style_partitioning": "true",
            f"{W}table.type": "MERGE_ON_READ",
            "hoodie.upsert.shuffle.parallelism": 2,
            "hoodie.datasource.query.type": "snapshot",
            "path": "/tmp/trips",
        }
    )
    assert options.table.name == "trips"
    assert options.keys.record_key_fields == ("uuid",)
    assert options.keys.partition_spec == PartitionSpec(("city",))
    assert options.merging.ordering_fields == ("ts",)
    assert options.table.type == "MERGE_ON_READ"
    assert f"{W}operation" in options.explicit
    assert f"{W}partitionpath.urlencode" not in options.explicit


def test_repr_shows_what_differs_from_the_defaults_alone():
    assert repr(WriteOptions()) == "WriteOptions()"
    options = WriteOptions(operation="INSERT", engine=EngineOptions(threads=2))
    assert repr(options) == "WriteOptions(operation='insert', engine=EngineOptions(threads=2))"


def test_keyword_construction_is_checked_like_a_dictionary():
    with pytest.raises(ConfigError, match=r"hoodie\.index\.bloom\.fpp"):
        WriteOptions(bloom=BloomOptions(fpp=2.0))
    with pytest.raises(UnsupportedFeatureError, match=r"hoodie\.index\.type.*_LEVEL_INDEX builds an index"):
        WriteOptions(index=IndexOptions(type="HBASE"))
    assert WriteOptions(table=TableOptions(type="merge_on_read")).explicit == {f"{W}table.type"}


def test_options_survive_the_way_to_a_worker():
    options = WriteOptions.from_options({"hoodie.table.name": "t", "_note": "x", f"{W}recordkey.field": "a,b"})
    copy = pickle.loads(pickle.dumps(options))
    assert copy == options
    assert copy.explicit == options.explicit


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("", PartitionSpec(())),
        ("a", PartitionSpec(("a",))),
        ("a, b", PartitionSpec(("a", "b"))),
        ("a:simple,b:TIMESTAMP", PartitionSpec(("a", "b"), ("SIMPLE", "TIMESTAMP"))),
    ],
)
def test_partition_columns_are_split_from_their_types(text, spec):
    assert WriteOptions.from_options({f"{W}partitionpath.field": text}).keys.partition_spec == spec


@pytest.mark.parametrize("text", ["a:SIMPLE,b", "a:DATE", ":SIMPLE"])
def test_partition_columns_with_wrong_types_are_refused(text):
    with pytest.raises(ConfigError, match="name:TIMESTAMP"):
        WriteOptions.from_options({f"{W}partitionpath.field": text})


def test_typed_partition_columns_go_with_the_custom_key_generator_alone():
    given = {f"{W}partitionpath.field": "a:SIMPLE", f"{W}keygenerator.type": "COMPLEX"}
    with pytest.raises(ConfigError, match="COMPLEX"):
        WriteOptions.from_options(given)


def test_the_key_generator_class_goes_before_the_type_and_avro_twins_are_one_kind():
    given = {
        f"{W}keygenerator.type": "SIMPLE",
        f"{W}keygenerator.class": "org.apache.hudi.keygen.ComplexAvroKeyGenerator",
    }
    assert WriteOptions.from_options(given).keys.generator == "COMPLEX"
    assert WriteOptions.from_options({f"{W}keygenerator.type": "simple_avro"}).keys.generator == "SIMPLE"
    assert WriteOptions().keys.generator is None


def test_dropping_duplicates_makes_an_upsert_an_insert():
    by_flag = WriteOptions.from_options({f"{W}insert.drop.duplicates": "true"})
    by_policy = WriteOptions.from_options({"hoodie.datasource.insert.dup.policy": "drop", f"{W}operation": "upsert"})
    for options in (by_flag, by_policy):
        assert (options.operation, options.dup_policy) == ("insert", "drop")
    assert WriteOptions(dup_policy="fail").operation == "insert"
    assert WriteOptions(dup_policy="drop", operation="bulk_insert").operation == "bulk_insert"


def test_a_duplicate_policy_other_than_fail_forces_concatenation():
    key = "hoodie.merge.allow.duplicate.on.inserts"
    policy = "hoodie.datasource.insert.dup.policy"
    assert WriteOptions.from_options({key: False}).merge_allow_duplicate_on_inserts is False
    assert WriteOptions.from_options({key: False, policy: "none"}).merge_allow_duplicate_on_inserts is True
    assert WriteOptions.from_options({key: False, policy: "fail"}).merge_allow_duplicate_on_inserts is False


def test_drop_and_fail_together_are_refused():
    with pytest.raises(ConfigError, match=r"dup\.policy=fail"):
        WriteOptions.from_options({f"{W}insert.drop.duplicates": True, "hoodie.datasource.insert.dup.policy": "fail"})


def test_keys_with_the_metadata_prefix_go_into_the_commit():
    options = WriteOptions.from_options({"_job": 7, "_hoodie.record.size.estimator.max.commits": 3})
    assert options.extra_metadata == {"_job": "7"}
    assert options.sizing.estimator_max_commits == 3
    other = WriteOptions.from_options({f"{W}commitmeta.key.prefix": "x.", "x.job": "a"})
    assert other.extra_metadata == {"x.job": "a"}
    with pytest.raises(ConfigError, match="_job"):
        WriteOptions.from_options({f"{W}commitmeta.key.prefix": "x.", "_job": "a"})


def test_timestamp_options_are_gathered_under_their_newest_keys():
    options = WriteOptions.from_options(
        {
            "hoodie.deltastreamer.keygen.timebased.timestamp.type": "date_string",
            "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
        }
    )
    assert options.timebased == {
        "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    }


def test_merge_properties_lose_their_prefix_and_the_delete_marker_has_fields_of_its_own():
    prefix = "hoodie.record.merge.property."
    options = WriteOptions.from_options(
        {
            f"{prefix}some.name": "v",
            f"{prefix}hoodie.payload.delete.field": "op",
            "hoodie.payload.delete.marker": "D",
        }
    )
    assert options.merge_properties == {"some.name": "v"}
    assert (options.merging.delete_field, options.merging.delete_marker) == ("op", "D")


@pytest.mark.parametrize("part", ["field", "marker"])
def test_half_a_delete_marker_is_refused(part):
    with pytest.raises(ConfigError, match="give both or neither"):
        WriteOptions.from_options({f"hoodie.payload.delete.{part}": "x"})


@pytest.mark.parametrize(
    ("codec", "level", "said"),
    [("zstd", 23, "1 to 22"), ("zstd", 0, "1 to 22"), ("gzip", 10, "1 to 9"), ("snappy", 1, "has no levels")],
)
def test_a_level_outside_the_codec_s_range_is_refused(codec, level, said):
    with pytest.raises(ConfigError, match=said):
        WriteOptions(parquet=ParquetOptions(codec=codec, level=level))


def test_the_level_of_other_codecs_is_their_own_unless_given():
    assert WriteOptions(parquet=ParquetOptions(codec="gzip")).parquet.compression_level is None
    assert WriteOptions(parquet=ParquetOptions(codec="gzip", level=6)).parquet.compression_level == 6


def test_the_wait_for_clock_skew_is_a_millisecond_unless_given():
    assert WriteOptions().failed_writes.clock_skew_ms == 1
    given = WriteOptions.from_options({"hoodie.time.generator.max_expected_clock_skew_ms": 200})
    assert given.failed_writes.clock_skew_ms == 200


@pytest.mark.parametrize(
    ("operation", "expected"),
    [("upsert", True), ("delete", True), ("insert", False), ("bulk_insert", False), ("insert_overwrite", False)],
)
def test_each_operation_has_its_own_rule_for_duplicates_of_a_batch(operation, expected):
    assert WriteOptions(operation=operation).combine_before_write is expected


def test_the_index_decides_reach_moving_of_rows_and_bloom_filters():
    simple = WriteOptions(index=IndexOptions(type="GLOBAL_SIMPLE", simple_update_partition=False))
    assert (simple.index.is_global, simple.index.updates_partition) == (True, False)
    bloom = WriteOptions(
        index=IndexOptions(type="BLOOM", simple_update_partition=False), bloom=BloomOptions(enabled=False)
    )
    assert (bloom.index.is_global, bloom.index.updates_partition, bloom.writes_bloom_filter) == (False, True, True)
    assert WriteOptions(bloom=BloomOptions(enabled=False)).writes_bloom_filter is False
    assert WriteOptions(table=TableOptions(populate_meta_fields=False)).writes_bloom_filter is False
