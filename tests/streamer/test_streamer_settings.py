"""Properties and arguments of HoodieStreamer become the settings of a streamer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hudi_fast.errors import ConfigError, HudiWarning, UnsupportedFeatureError
from hudi_fast.streamer.arguments import ARGUMENTS, REFUSED, WITHOUT_EFFECT
from hudi_fast.streamer.settings import STREAM_KEYS, StreamSettings

OPERATION = "hoodie.datasource.write.operation"
DROP_KEY = "hoodie.datasource.write.insert.drop.duplicates"
FLAGS = sorted(one.name for one in ARGUMENTS if one.is_flag)


def made(properties=None, /, **arguments):
    """The settings of a stream of JSON files into /t."""
    given = {"target_base_path": "/t", "source_class": "JsonDFSSource", **arguments}
    return StreamSettings.of(properties or {}, given)


# ---- properties


def test_each_property_goes_to_the_streamer_or_the_write_or_the_client_of_the_source():
    settings = made(
        {
            "hoodie.streamer.source.dfs.root": "/in",
            "hoodie.datasource.write.recordkey.field": "id",
            "hudi_fast.threads": "2",
            "bootstrap.servers": "broker:9092",
            "hudi_fast.streamer.source-limit": "7",
        }
    )
    assert settings.stream == {"source.dfs.root": "/in"}
    assert settings.client == {"bootstrap.servers": "broker:9092"}
    assert settings.options == {
        "hoodie.datasource.write.recordkey.field": "id",
        "hudi_fast.threads": "2",
        OPERATION: "upsert",
    }
    assert settings.number("source-limit") == 7


def test_the_old_and_the_new_prefix_mean_the_same():
    old = made({"hoodie.deltastreamer.source.dfs.root": "/in", "hoodie.deltastreamer.csv.sep": ";"})
    new = made({"hoodie.streamer.source.dfs.root": "/in", "hoodie.streamer.csv.sep": ";"})
    assert old == new
    assert old.stream == {"source.dfs.root": "/in", "csv.sep": ";"}


def test_both_prefixes_with_one_value_agree_and_with_two_values_contradict_each_other():
    keys = "hoodie.streamer.source.dfs.root", "hoodie.deltastreamer.source.dfs.root"
    assert made(dict.fromkeys(keys, "/in")).stream == {"source.dfs.root": "/in"}
    with pytest.raises(ConfigError, match=r"source\.dfs\.root .* different values") as caught:
        made(dict(zip(keys, ("/in", "/out"), strict=True)))
    assert all(key in str(caught.value) for key in keys)


def test_values_of_other_types_are_their_texts_and_none_is_no_value():
    settings = made({"hoodie.streamer.kafka.source.maxEvents": 10, "hoodie.streamer.source.dfs.root": None})
    assert settings.stream == {"kafka.source.maxEvents": "10"}
    with pytest.raises(ConfigError, match=r"needs the property hoodie\.streamer\.source\.dfs\.root"):
        settings.required("source.dfs.root")


@pytest.mark.parametrize("prefix", ["hoodie.streamer.", "hoodie.deltastreamer."])
@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("source.dfs.rot", "source.dfs.root"),
        ("source.kafka.topics", "source.kafka.topic"),
        ("source.hoodieincr.num_instant", "source.hoodieincr.num_instants"),
    ],
)
def test_an_unknown_key_is_told_with_the_closest_known_one(prefix, wrong, right):
    with pytest.warns(HudiWarning, match=rf"{wrong}\. Did you mean hoodie\.streamer\.{right}\?"):
        made({prefix + wrong: "x"})


def test_an_unknown_key_like_no_other_is_told_without_a_guess():
    with pytest.warns(HudiWarning, match=r"unknown option hoodie.streamer.wxyz\.$"):
        made({"hoodie.streamer.wxyz": "1"})


def test_known_keys_and_those_of_csv_and_of_labelled_transformers_are_taken_in_silence():
    keys = {*STREAM_KEYS, "csv.header", "transformer.sql.one", "transformer.sql.file.two"}
    assert made({f"hoodie.streamer.{key}": "x" for key in keys}).stream.keys() == keys  # warnings are errors here


@pytest.mark.parametrize(("text", "expected"), [("true", True), (" TRUE ", True), ("False", False)])
def test_a_flag_of_the_properties_is_true_or_false_in_any_case(text, expected):
    assert made({"hoodie.streamer.checkpoint.force.skip": text}).flag("checkpoint.force.skip") is expected


def test_a_flag_that_is_not_given_has_its_default_and_another_word_is_refused():
    assert made().flag("checkpoint.force.skip") is False
    assert made().flag("checkpoint.force.skip", True) is True
    with pytest.raises(ConfigError, match=r"hoodie\.streamer\.checkpoint\.force\.skip is true or false; got 'yes'"):
        made({"hoodie.streamer.checkpoint.force.skip": "yes"}).flag("checkpoint.force.skip")


@pytest.mark.parametrize("properties", [{}, {"hoodie.streamer.source.dfs.root": ""}])
def test_a_required_property_that_is_missing_or_empty_is_named_with_the_source(properties):
    with pytest.raises(ConfigError, match=r"JsonDFSSource needs the property hoodie\.streamer\.source\.dfs\.root"):
        made(properties).required("source.dfs.root")


# ---- arguments


def test_dashes_and_underscores_and_a_package_before_a_class_mean_the_same():
    dashed = StreamSettings.of(
        {}, {"target-base-path": "/t", "source-class": "org.apache.hudi.utilities.sources.JsonDFSSource"}
    )
    assert (dashed.path, dashed.source_class) == ("/t", "JsonDFSSource")
    assert (made().path, made().source_class) == ("/t", "JsonDFSSource")


@pytest.mark.parametrize("missing", ["target_base_path", "source_class"])
@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_stream_needs_a_table_and_a_source(missing, value):
    name = missing.replace("_", "-")
    with pytest.raises(ConfigError, match=f"needs --{name}, or the property hudi_fast.streamer.{name}"):
        made(**{missing: value})


def test_arguments_can_be_properties():
    own = {"hudi_fast.streamer.target-base-path": "/p", "hudi_fast.streamer.source_class": "CsvDFSSource"}
    settings = StreamSettings.of({**own, "hudi_fast.streamer.continuous": True})
    assert (settings.path, settings.source_class, settings.is_set("continuous")) == ("/p", "CsvDFSSource", True)
    assert settings.options == {OPERATION: "upsert"}


@pytest.mark.parametrize("name", ["target-base-path", "target_base_path"])
def test_an_argument_wins_over_the_property_of_the_same_name_however_both_are_spelled(name):
    assert made({f"hudi_fast.streamer.{name}": "/other"}).path == "/t"


def test_an_argument_wins_over_a_property_with_another_name_of_it():
    settings = made({"hudi_fast.streamer.merge-mode": "CUSTOM"}, record_merge_mode="EVENT_TIME_ORDERING")
    assert settings.options["hoodie.record.merge.mode"] == "EVENT_TIME_ORDERING"


def test_an_argument_without_a_value_leaves_that_of_the_property():
    assert made({"hudi_fast.streamer.source-limit": "5"}, **{"source-limit": None}).number("source-limit") == 5


@pytest.mark.parametrize(
    ("argument", "option"), [(name, one.option) for one in ARGUMENTS if one.option for name in (one.name, *one.others)]
)
def test_an_argument_that_stands_for_an_option_sets_it_and_wins_over_the_property(argument, option):
    is_flag = argument in FLAGS
    settings = made({option: "false" if is_flag else "before"}, **{argument: "true" if is_flag else "after"})
    assert settings.options[option] == ("true" if is_flag else "after")


def test_two_names_of_an_argument_with_different_values_contradict_each_other():
    assert made(merge_mode="CUSTOM", record_merge_mode="CUSTOM").options["hoodie.record.merge.mode"] == "CUSTOM"
    with pytest.raises(ConfigError, match="--record-merge-mode is given twice"):
        made(merge_mode="CUSTOM", record_merge_mode="COMMIT_TIME_ORDERING")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("source-limits", "source-limit"), ("continous", "continuous"), ("sourceclass", "source-class")],
)
def test_an_unknown_argument_is_refused_with_the_closest_known_one(wrong, right):
    with pytest.raises(ConfigError, match=rf"Unknown argument --{wrong}\. Did you mean --{right}\?"):
        made(**{wrong: "1"})
    with pytest.raises(ConfigError, match=rf"Unknown argument --{wrong}\."):
        made({f"hudi_fast.streamer.{wrong}": "1"})


def test_an_unknown_argument_like_no_other_is_refused_without_a_guess():
    with pytest.raises(ConfigError, match=r"Unknown argument --wxyzq\.$"):
        made(wxyzq=1)


@pytest.mark.parametrize("name", sorted(REFUSED))
@pytest.mark.parametrize("value", [True, "true", "x"])
def test_an_argument_that_would_change_the_result_is_refused_with_what_to_do(name, value):
    with pytest.raises(UnsupportedFeatureError) as caught:
        made(**{name: value})
    assert str(caught.value) == f"--{name} is not supported: {REFUSED[name]}."


@pytest.mark.parametrize("name", sorted(REFUSED))
@pytest.mark.parametrize("value", [None, False, "false"])
def test_a_refused_argument_that_asks_for_nothing_is_accepted(name, value):
    assert made(**{name: value}) == made()


@pytest.mark.parametrize("name", sorted(WITHOUT_EFFECT))
def test_an_argument_about_the_scheduling_of_spark_changes_nothing(name):
    settings = made(**{name: "7"})
    assert settings.without_effect == (name,)
    assert replace(settings, without_effect=()) == made() == made(**{name: None})


def test_no_argument_is_both_honoured_and_refused_or_ignored():
    names = [name for one in ARGUMENTS for name in (one.name, *one.others)]
    assert len(names) == len({*names}) == len({*names} - REFUSED.keys() - WITHOUT_EFFECT)
    assert REFUSED.keys() & WITHOUT_EFFECT == set()


# ---- flags and numbers


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, True), (False, False), ("true", True), ("True", True), (" TRUE", True), ("false", False)],
)
def test_a_flag_is_set_by_true_in_any_form(name, value, expected):
    assert made(op="INSERT", **{name: value}).is_set(name) is expected


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("value", ["yes", 1, ""])
def test_a_flag_that_is_neither_true_nor_false_is_refused(name, value):
    with pytest.raises(ConfigError, match=f"--{name} is true or false"):
        made(**{name: value})


def test_a_flag_that_is_not_given_is_not_set():
    assert [name for name in FLAGS if made().is_set(name)] == []


@pytest.mark.parametrize(("given", "expected"), [("0", 0), (5, 5), (" 2.5 ", 2.5), ("1e3", 1000)])
def test_a_number_is_read_from_text(given, expected):
    assert made(source_limit=given).number("source-limit") == expected


@pytest.mark.parametrize("text", ["-1", "many", "nan", "inf", "-inf", "1,5"])
def test_a_number_that_is_none_or_negative_or_endless_is_refused(text):
    with pytest.raises(ConfigError, match=f"--source-limit is a number, 0 or more; got '{text}'"):
        made(source_limit=text).number("source-limit")


def test_a_number_that_is_not_given_has_the_default_of_the_argument():
    settings = made()
    assert settings.number("source-limit") is None
    assert settings.number("min-sync-interval-seconds") == 0
    assert (settings.number("retry-interval-seconds"), settings.number("max-retry-count")) == (30, 3)


def test_checkpoint_and_name_are_none_unless_they_are_given():
    assert (made().checkpoint, made().ignored, made().name) == (None, None, None)
    assert (made(checkpoint="", ignore_checkpoint="", name="").checkpoint, made(name="").name) == (None, None)
    settings = made(checkpoint="t,0:5", ignore_checkpoint="once", name="second")
    assert (settings.checkpoint, settings.ignored, settings.name) == ("t,0:5", "once", "second")


# ---- what arguments mean for the write


@pytest.mark.parametrize("op", ["INSERT", "bulk_insert", "Insert_Overwrite"])
def test_the_operation_is_that_of_the_argument_in_any_case(op):
    assert made(op=op).options[OPERATION] == op.lower()
    assert made({OPERATION: "delete"}, op=op).options[OPERATION] == op.lower()


def test_without_the_argument_the_operation_is_upsert_whatever_a_property_says():
    assert made({OPERATION: "UPSERT"}).options[OPERATION] == "upsert"
    with pytest.warns(HudiWarning, match=f"{OPERATION}=insert has no effect .* Give --op INSERT"):
        assert made({OPERATION: "insert"}).options[OPERATION] == "upsert"


def test_dropping_rows_that_the_table_has_needs_an_operation_without_updates():
    assert made(op="INSERT", filter_dupes=True).options[DROP_KEY] == "true"
    assert DROP_KEY not in made(op="INSERT", filter_dupes=False).options
    for arguments in ({}, {"op": "upsert"}):
        with pytest.raises(ConfigError, match="--filter-dupes with --op UPSERT would drop updates"):
            made(filter_dupes=True, **arguments)


def test_compaction_can_be_left_to_another_process_and_the_metastore_be_kept_up_to_date():
    key, sync = "hoodie.compact.inline", "hoodie.datasource.hive_sync.enable"
    assert made({key: "true"}, disable_compaction=True).options[key] == "false"
    assert made({key: "true"}, disable_compaction=False).options[key] == "true"
    assert made(enable_hive_sync=True).options[sync] == "true"
    assert sync not in made().options
