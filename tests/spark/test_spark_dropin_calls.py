"""What a program tells a reader or writer, read back as one value, and what hudi_fast makes of it; no session."""

import pytest

import hudi_fast as hf
from hudi_fast.spark_api.dropin.calls import (
    Call,
    Request,
    begin_notes,
    final_calls,
    is_hudi,
    note,
    notes_of,
    read_calls,
    read_options,
    save_mode,
    stream_options,
    table_path,
    write_options,
)

PARTITIONS = "hoodie.datasource.write.partitionpath.field"


class Writer:
    """Has the methods' names and parameters, and nothing behind them."""

    def save(self, path=None, format=None, mode=None, partitionBy=None, **options):
        raise AssertionError("only its parameters are looked at")


def request(*calls, args=(), **kwargs):
    return read_calls([*calls, *final_calls(Writer.save, Writer(), args, kwargs)])


def options(*names):
    return Request(options={name.lower(): (name, "v") for name in names})


def test_calls_are_noted_in_the_object_itself():
    one, other = Writer(), Writer()
    begin_notes(one, ("frame",))
    note(one, Call("format", ("hudi",)))
    note(other, Call("format", ("hudi",)))
    assert notes_of(one) == (("frame",), (Call("format", ("hudi",)),))
    assert notes_of(other) is None


def test_every_way_to_say_one_thing_is_the_same():
    builder = request(
        Call("format", ("hudi",)),
        Call("mode", ("append",)),
        Call("partitionBy", ("a", "b")),
        Call("options", (), {"hoodie.table.name": "t"}),
        args=("/t",),
    )
    at_once = request(
        args=("/t", "hudi", "append", ["a", "b"]),
        **{"hoodie.table.name": "t"},
    )
    by_name = request(path="/t", format="hudi", mode="append", partitionBy=("a", "b"), **{"hoodie.table.name": "t"})
    assert builder == at_once == by_name
    assert (builder.source, builder.mode, builder.path, builder.partition_columns) == (
        "hudi",
        "append",
        "/t",
        ("a", "b"),
    )


def test_later_calls_count_and_none_says_nothing():
    found = request(
        Call("format", ("parquet",)),
        Call("format", (), {"source": "hudi"}),
        Call("mode", ("append",)),
        Call("mode", (None,)),
        Call("option", ("hoodie.Table.name", "a")),
        Call("option", (), {"key": "hoodie.table.name", "value": "b"}),
        Call("option", ("hoodie.table.type", None)),
    )
    assert (found.source, found.mode) == ("hudi", "append")
    assert write_options(found) == {"hoodie.table.name": "b"}


def test_values_become_text_as_in_pyspark():
    given = Call(
        "options", (), {"hoodie.metadata.enable": False, "hoodie.cleaner.commits.retained": 3, "hoodie.table.name": 1.5}
    )
    assert list(write_options(request(given)).values()) == ["false", "3", "1.5"]


def test_options_are_known_in_any_case_and_in_old_spellings():
    found = request(
        Call("option", ("HOODIE.TABLE.NAME", "t")), Call("option", ("Path", "/t")), Call("option", ("_Note", "n"))
    )
    assert write_options(found) == {"hoodie.table.name": "t", "_Note": "n"}
    assert table_path(found, "save()") == "/t"


def test_partition_columns_come_from_partition_by_unless_an_option_names_them():
    assert write_options(request(Call("partitionBy", (["a", "b"],))))[PARTITIONS] == "a,b"
    assert write_options(request(Call("option", (PARTITIONS, "c")), Call("partitionBy", ("a",))))[PARTITIONS] == "c"


@pytest.mark.parametrize(
    "generator",
    [
        ("hoodie.datasource.write.keygenerator.class", "org.apache.hudi.keygen.CustomKeyGenerator"),
        ("hoodie.datasource.write.keygenerator.type", "custom"),
    ],
)
def test_the_custom_key_generator_gets_types(generator):
    found = write_options(request(Call("option", generator), Call("partitionBy", ("a", "b:TIMESTAMP"))))
    assert found[PARTITIONS] == "a:SIMPLE,b:TIMESTAMP"


def test_what_is_not_hudis_is_named():
    with pytest.warns(hf.HudiWarning, match=r"The option header is not a Hudi option and is ignored\.$"):
        assert write_options(options("header")) == {}
    with pytest.warns(hf.HudiWarning, match=r"hodie.table.name .* Did you mean hoodie.table.name\?"):
        read_options(options("hodie.table.name"), {})


def test_names_of_the_source():
    known = ["hudi", "HUDI", "Hudi", "org.apache.hudi", "org.apache.hudi.DefaultSource"]
    assert [is_hudi(name) for name in [*known, "parquet", "hudi_v1", "hoodie"]] == [True] * 5 + [False] * 3


def test_modes():
    assert [save_mode(mode) for mode in (None, "error", "default", "ErrorIfExists", "APPEND")] == [
        *["errorifexists"] * 4,
        "append",
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Request(), "'path' must be set: give load"),
        (Request(path=""), "'path' must be set"),
        (Request(path=["/a", "/b"]), "takes one path, got 2: load each table separately"),
        (Request(path="/a", options={"path": ("path", "/a")}), "The option 'path' is set ('/a'), and load() is called"),
        (Request(path="/a/*"), "Glob paths are not supported, as in Apache Hudi 1.2: load the base path"),
    ],
)
def test_paths_that_say_nothing_or_too_much_are_refused(given, said):
    with pytest.raises(hf.ConfigError) as caught:
        table_path(given, "load()")
    assert said in str(caught.value)
    assert table_path(Request(path=["/a"]), "load()") == "/a"


def test_settings_of_the_session_are_defaults_of_reads_alone():
    session = {
        "hoodie.datasource.query.type": "read_optimized",
        "spark.hoodie.datasource.query.type": "incremental",
        "spark.hoodie.datasource.read.begin.instanttime": "earliest",
        "as.of.instant": "20200101",
        "hoodie.datasource.write.operation": "delete",
        "spark.sql.shuffle.partitions": "2",
    }
    found = read_options(Request(), session)
    assert found["hoodie.datasource.query.type"] == "read_optimized"
    assert found["hoodie.datasource.read.begin.instanttime"] == "earliest"
    assert not {"as.of.instant", "spark.sql.shuffle.partitions"} & set(found)
    assert write_options(Request()) == {}
    marked = request(Call("option", ("spark.hoodie.datasource.query.type", "snapshot")))
    assert read_options(marked, {}) == {"hoodie.datasource.query.type": "snapshot"}


def test_an_option_counts_before_the_session_whatever_its_spelling():
    old, new = "hoodie.datasource.read.handle.hollow.commit", "hoodie.read.timeline.holes.resolution.policy"
    assert read_options(request(Call("option", (old, "BLOCK"))), {new: "FAIL"}) == {old: "BLOCK"}
    assert read_options(Request(), {f"spark.{old}": "FAIL"}) == {new: "FAIL"}


def test_what_means_nothing_to_a_hudi_table_is_refused():
    with pytest.raises(hf.ConfigError, match=r"takes no bucketBy\(\) and sortBy\(\)"):
        write_options(request(Call("bucketBy", (2, "id")), Call("sortBy", ("id",))))
    with pytest.raises(hf.UnsupportedFeatureError, match="a stream from a Hudi table, which has its own schema"):
        stream_options(request(Call("schema", ("id string",))))
    assert request(Call("schema", ("id string",))).schema == "id string"


def test_options_of_a_stream_are_parted():
    found = request(
        Call("option", ("checkpointLocation", "/c")),
        Call("option", ("path", "/t")),
        Call("option", ("hoodie.table.name", "t")),
        Call("partitionBy", ("p",)),
    )
    assert stream_options(found) == ({"hoodie.table.name": "t", PARTITIONS: "p"}, {"checkpointLocation": "/c"})


def test_rows_that_go_to_a_function_go_to_no_source():
    assert read_calls([Call("format", ("hudi",)), Call("foreachBatch", (print,))]).elsewhere
    assert not read_calls([Call("foreachBatch", (print,)), Call("format", ("hudi",))]).elsewhere
    assert read_calls([Call("trigger", (), {"once": True}), Call("queryName", ("q",))]).trigger == {"once": True}
