import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.config.option_fields import Kind
from hudi_fast.config.options import OPTIONS, find_option, resolve
from hudi_fast.errors import ConfigError, HudiWarning, UnsupportedFeatureError


def test_every_default_is_a_supported_value_of_its_own_option():
    for option in OPTIONS:
        if option.default is not None:
            parsed = option.parse(option.default)
            assert parsed == option.default, option.key
            option.check_supported(parsed)


def test_enum_defaults_and_supported_values_are_among_the_choices():
    for option in OPTIONS:
        if option.kind is Kind.ENUM:
            assert option.choices, option.key
            assert set(option.supported or ()) <= set(option.choices), option.key
            assert option.default is None or option.default in option.choices, option.key


def test_every_option_says_what_it_does_in_a_sentence():
    assert [option.key for option in OPTIONS if not option.doc.endswith(".")] == []


def test_values_come_as_text_or_typed_and_mean_the_same():
    as_text = {
        "hoodie.combine.before.insert": "TRUE",
        "hoodie.parquet.max.file.size": " 1024 ",
        "hoodie.index.bloom.fpp": "0.01",
        "hoodie.datasource.write.recordkey.field": "a, b",
    }
    typed = {
        "hoodie.combine.before.insert": True,
        "hoodie.parquet.max.file.size": 1024,
        "hoodie.index.bloom.fpp": 0.01,
        "hoodie.datasource.write.recordkey.field": ["a", "b"],
    }
    assert resolve(as_text, "write") == resolve(typed, "write")
    assert set(resolve(typed, "write").values()) == {True, 1024, 0.01, ("a", "b")}


@pytest.mark.parametrize("option", [o for o in OPTIONS if o.aliases], ids=lambda o: o.key)
def test_every_spelling_finds_the_same_option(option):
    assert {find_option(key) for key in option.keys} == {option}


def test_two_spellings_with_one_value_agree():
    both = {"hoodie.datasource.write.precombine.field": "ts", "hoodie.table.ordering.fields": ["ts"]}
    assert list(resolve(both, "write").values()) == [("ts",)]


def test_two_spellings_with_different_values_are_refused_by_both_names():
    both = {"hoodie.datasource.write.precombine.field": "ts", "hoodie.table.ordering.fields": "seq"}
    with pytest.raises(ConfigError) as caught:
        resolve(both, "write")
    assert "hoodie.datasource.write.precombine.field" in str(caught.value)
    assert "hoodie.table.ordering.fields" in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("hoodie.combine.before.insert", "yes", "true, false"),
        ("hoodie.parquet.max.file.size", "120MB", "not an integer"),
        ("hoodie.parquet.max.file.size", True, "not an integer"),
        ("hoodie.parquet.max.file.size", 0, "at least 1 bytes"),
        ("hoodie.index.bloom.fpp", 0, "more than 0 and less than 1"),
        ("hoodie.index.bloom.fpp", 1.0, "more than 0 and less than 1"),
        ("hoodie.index.bloom.fpp", "nan", "finite"),
        ("hoodie.datasource.write.operation", "merge", "upsert, insert, bulk_insert, delete"),
        ("hoodie.index.type", "HASH", "SIMPLE, GLOBAL_SIMPLE, BLOOM, GLOBAL_BLOOM"),
        ("hoodie.datasource.write.recordkey.field", "a,,b", "empty entry"),
        ("hoodie.datasource.write.recordkey.field", "a,b,a", "more than once"),
        ("hoodie.table.name", None, "NoneType"),
        ("hoodie.table.name", {"a": 1}, "dict"),
    ],
)
def test_a_value_that_means_nothing_is_refused_by_key(key, value, said):
    with pytest.raises(ConfigError) as caught:
        resolve({key: value}, "write")
    assert key in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.index.type", "HBASE"),
        ("hoodie.index.class", "com.example.Index"),
        ("hoodie.datasource.write.operation", "bootstrap"),
        ("hoodie.write.lock.provider", "com.example.LockProvider"),
        ("hoodie.compaction.payload.class", "com.example.Payload"),
        ("hoodie.write.record.merge.custom.implementation.classes", "com.example.Merger"),
        ("hoodie.datasource.write.keygenerator.class", "com.example.KeyGen"),
        ("hoodie.datasource.write.keygenerator.type", "USER_PROVIDED"),
        ("hoodie.bulkinsert.user.defined.partitioner.class", "com.example.Partitioner"),
        ("hoodie.sql.insert.mode", "strict"),
        ("hoodie.write.table.version", 4),
        ("hoodie.table.base.file.format", "HFILE"),
        ("hoodie.meta.sync.client.tool.class", "org.apache.hudi.gcp.bigquery.BigQuerySyncTool"),
        ("hoodie.precommit.validators", "com.example.Validator"),
    ],
)
def test_a_value_that_would_change_the_result_is_refused_by_key_and_value(key, value):
    with pytest.raises(UnsupportedFeatureError) as caught:
        resolve({key: value}, "write")
    assert f"{key}=".lower() in str(caught.value).lower()
    assert str(value).lower() in str(caught.value).lower()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.upsert.shuffle.parallelism", 200),
        ("hoodie.write.markers.type", "DIRECT"),
        ("hoodie.clean.automatic", "true"),
        ("hoodie.cleaner.commits.retained", "10"),
        ("hoodie.archive.automatic", True),
        ("hoodie.metrics.on", "false"),
        ("hoodie.metadata.enable", "false"),
        ("hoodie.write.auto.upgrade", "false"),
        ("hoodie.datasource.hive_sync.database", "db"),
        ("hoodie.datasource.hive_sync.enable", "false"),
        ("hoodie.clustering.inline", "false"),
        ("hoodie.table.base.file.format", "parquet"),
    ],
)
def test_a_key_that_cannot_change_the_result_is_taken_silently(key, value):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert set(resolve({key: value}, "write")) <= {find_option(key)}


@pytest.mark.parametrize("family", ["read", "write"])
def test_an_option_whose_effect_would_be_missed_is_a_warning(family):
    with pytest.warns(HudiWarning, match=r"hoodie\.metrics\.lock\.enable=true has no effect: hudi_fast reports no"):
        assert resolve({"hoodie.metrics.lock.enable": "true", "hoodie.metrics.datadog.api.key": "x"}, family) == {}


def test_the_type_of_timestamps_is_a_warning_unless_it_is_what_is_written():
    with pytest.warns(HudiWarning, match=r"outputtimestamptype=INT96 has no effect: timestamps are stored in micro"):
        assert resolve({"hoodie.parquet.outputtimestamptype": "INT96"}, "write") == {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resolve({"hoodie.parquet.outputtimestamptype": "timestamp_micros"}, "write")


@pytest.mark.parametrize(
    ("key", "value", "way_out"),
    [
        ("hoodie.write.schema", "{}", "Cast the rows to that schema before the write"),
        ("hoodie.avro.schema", "{}", "Cast the rows to that schema before the write"),
        ("hoodie.parquet.writelegacyformat.enabled", "true", "supported: AUTO, false. Leave it out"),
        (
            "hoodie.table.base.file.format",
            "HFILE",
            "supported: PARQUET, ORC, LANCE. Tables with HFile base files are read",
        ),
        ("hoodie.index.class", "x", "Remove the option, or use Apache Hudi"),
    ],
)
def test_a_refusal_names_the_way_out(key, value, way_out):
    with pytest.raises(UnsupportedFeatureError) as caught:
        resolve({key: value}, "write")
    assert str(caught.value).startswith(f"{key}={value} is not supported")
    assert way_out in str(caught.value)


def test_an_unknown_hudi_key_is_ignored_with_a_warning_that_names_the_closest():
    with pytest.warns(HudiWarning, match=r"hoodie\.parquet\.max\.filesize.*hoodie\.parquet\.max\.file\.size"):
        assert resolve({"hoodie.parquet.max.filesize": "1"}, "write") == {}


def test_an_unknown_hudi_key_warns_once_per_process_under_the_default_filter():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            resolve({"hoodie.no.such.key.twice": "1"}, "write")
            resolve({"hoodie.no.such.key.either": "1"}, "write")
    assert len(caught) == 2


def test_an_unknown_key_of_our_own_is_an_error_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"hudi_fast\.thread\..*Did you mean hudi_fast\.threads"):
        resolve({"hudi_fast.thread": 2}, "write")


def test_a_foreign_key_is_an_error_unless_it_has_the_free_prefix():
    with pytest.raises(ConfigError, match=r"Unknown option pathh\. Did you mean path"):
        resolve({"pathh": "x"}, "read")
    assert resolve({"_note": "x"}, "write", free_prefix="_") == {}
    with pytest.raises(ConfigError, match="_note"):
        resolve({"_note": "x"}, "write")


def test_a_setting_of_hadoop_among_the_options_is_an_error_that_says_where_it_belongs():
    with pytest.raises(ConfigError, match="Pass settings of Hadoop as storage_options"):
        resolve({"parquet.crypto.factory.class": "x"}, "write")


def test_options_of_the_other_family_are_not_looked_at():
    assert resolve({"hoodie.datasource.query.type": "no such type"}, "write") == {}
    assert resolve({"hoodie.index.type": "BUCKET", "hoodie.table.name": "t"}, "read") == {}


@given(st.sampled_from([o for o in OPTIONS if o.honoured]), st.text(max_size=12))
def test_any_text_is_parsed_or_refused_as_a_config_error_naming_the_key(option, text):
    try:
        value = option.parse(text)
    except ConfigError as error:
        message = str(error)
    else:
        message = option.key if option.parse(value) == value else "parsed twice, it is another value"
    assert option.key in message
