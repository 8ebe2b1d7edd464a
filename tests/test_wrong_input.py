"""What a user gets who hands in the wrong thing: an error that names it, and a table that is as before."""

import inspect
from datetime import date

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.table.services import TableServices
from tests.support.small_tables import OPTIONS, listing, plain_rows

BASE = "hoodie.bootstrap.base.path"
END = "hoodie.datasource.read.end.instanttime"
FORMAT = "hoodie.datasource.query.incremental.format"
OPERATION = "hoodie.datasource.write.operation"
PATHS = "hoodie.datasource.read.paths"


@pytest.fixture
def table(tmp_path):
    return made_at(tmp_path / "t")


@pytest.fixture(scope="module")
def kept_table(tmp_path_factory):
    """A table for tests that leave it as it is."""
    return made_at(tmp_path_factory.mktemp("kept") / "t")


def made_at(path):
    hf.write(plain_rows(range(4)), path, OPTIONS)
    return hf.HudiTable.open(path)


def streamer(table, **arguments):
    properties = {**OPTIONS, "hoodie.streamer.source.dfs.root": f"{table.path}/no/folder"}
    given = {"source_class": "JsonDFSSource", "target_base_path": table.path, **arguments}
    return hf.Streamer(properties, **given)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda table: table.to_arrow(columns="id"), hf.ConfigError, "list of names; got the text 'id'"),
        (lambda table: table.to_arrow(columns=["idd"]), hf.ConfigError, "no column 'idd'"),
        (lambda table: table.to_arrow(filter="id = 1"), hf.ConfigError, "type string cannot be compared with 1"),
        (lambda table: table.to_arrow(filter=1), hf.ConfigError, "pyarrow.compute expression"),
        (lambda table: table.to_arrow(filter=pc.field("x") == 1), hf.ConfigError, "FieldRef.Name(x); the table has"),
        (lambda table: table.to_arrow(as_of="yesterday"), hf.ConfigError, "yyyy-MM-dd"),
        (lambda table: table.to_arrow(query_type="newest"), hf.ConfigError, "snapshot or read_optimized"),
        (lambda table: table.delete_partitions("p0"), hf.ConfigError, "list of paths; got the text 'p0'"),
        (lambda table: table.delete_partitions([1]), hf.ConfigError, "list of paths; got [1]"),
        (lambda table: table.delete_partitions(None), hf.ConfigError, "list of paths; got None"),
        (lambda table: table.to_arrow(columns=[1]), hf.ConfigError, "list of names; got 1 in it"),
        (lambda table: table.services.savepoint(123), hf.ConfigError, "An instant is the text that history() shows"),
        (lambda table: table.services.rollback(123), hf.ConfigError, "got 123, of the type int"),
        (lambda table: table.services.restore(123), hf.ConfigError, "got 123, of the type int"),
        (lambda table: table.services.delete_savepoint(123), hf.ConfigError, "got 123, of the type int"),
        (
            lambda table: hf.HudiTable.create(f"{table.path}2", {"id": "int"}, key="id"),
            hf.ConfigError,
            "pyarrow.Schema",
        ),
        (lambda table: hf.read_rows(3), hf.ConfigError, "path of a file or folder; got 3"),
        (lambda table: hf.bootstrap(3, f"{table.path}2", OPTIONS), hf.ConfigError, "non-empty text or a pathlib.Path"),
        (lambda table: table.upsert(plain_rows(range(1)), {1: 2}), hf.ConfigError, "got the key 1"),
        (lambda table: table.to_arrow(columns=["id", "id"]), hf.ConfigError, "['id'] more than once"),
        (lambda table: table.to_arrow(as_of=1.5), hf.ConfigError, "as.of.instant=1.5 is not a time"),
        (lambda table: table.to_arrow(as_of=2024), hf.ConfigError, "as.of.instant=2024; expected one of"),
        (lambda table: table.history(begin=True), hf.ConfigError, "begin=True is not a time"),
        (lambda table: table.delete(["k00000"]), hf.InvalidDataError, "got list"),
        (lambda table: table.upsert([{"id": "a"}, 5]), hf.InvalidDataError, "row 1 is int"),
        (lambda table: table.upsert(pd.Series([1])), hf.InvalidDataError, "got Series"),
        (lambda table: table.upsert(pl.col("id")), hf.InvalidDataError, "got Expr"),
        (lambda table: table.upsert(iter(["a"])), hf.InvalidDataError, "yields pyarrow record batches"),
        (lambda table: table.upsert(pl.Series(["a"])), hf.InvalidDataError, "got Series"),
        (lambda table: table.append(["a"]), hf.InvalidDataError, "got list"),
        (
            lambda table: table.insert(plain_rows(range(1)), {OPERATION: "upsert"}),
            hf.ConfigError,
            "operation='insert' contradicts the option hoodie.datasource.write.operation='upsert'",
        ),
        (
            lambda table: hf.write(plain_rows(range(1)), __file__, OPTIONS),
            hf.ConfigError,
            "is a file; a table is a folder",
        ),
        (lambda table: table.upsert([{"id": "a", "part": 1}, {"id": 2}]), hf.InvalidDataError, "one type"),
        (lambda table: table.upsert("rows.parquet"), hf.InvalidDataError, "got str"),
        (lambda table: table.write(plain_rows(range(1)), "merge"), hf.ConfigError, "valid values: upsert, insert"),
        (lambda table: table.incremental("yesterday"), hf.ConfigError, "Unsupported query instant time format"),
        (lambda table: table.incremental(None), hf.ConfigError, "`earliest` includes the first commit"),
        (lambda table: table.incremental("0", options={END: "2024-01-01"}), hf.ConfigError, "contradicts the call"),
        (lambda table: table.incremental("2024-01-01", filter=pc.field("x") == 1), hf.ConfigError, "filter (x == 1) "),
        (lambda table: table.cdc("0", options={FORMAT: "latest_state"}), hf.ConfigError, "use HudiTable.incremental"),
        (lambda table: table.alter("text"), hf.ConfigError, "must be one of AddColumn, DropColumn"),
        (lambda table: table.alter(hf.AddColumn("n", "string")), hf.ConfigError, "such as pa.int64(); got 'string'"),
        (lambda table: table.alter(hf.ChangeType("ts", "int")), hf.ConfigError, "such as pa.int64(); got 'int'"),
        (lambda table: hf.HudiTable.open(None), hf.ConfigError, "A path must be a non-empty text or a pathlib.Path"),
        (
            lambda table: hf.write(plain_rows(range(1)), "", OPTIONS),
            hf.ConfigError,
            "non-empty text or a pathlib.Path; got ''",
        ),
        (
            lambda table: hf.merge(table.path, plain_rows(range(1)), "id"),
            hf.ConfigError,
            "A Spark session is given as spark=",
        ),
        (
            lambda table: hf.register_data_source("spark"),
            hf.ConfigError,
            "needs a SparkSession, got str",
        ),
        (lambda table: hf.bootstrap("rows", f"{table.path}2", OPTIONS, spark="spark"), hf.ConfigError, "got str"),
        (
            lambda table: hf.bootstrap("a", f"{table.path}2", OPTIONS | {BASE: "b"}),
            hf.ConfigError,
            "differs from the source folder",
        ),
        (lambda table: hf.bootstrap(__file__, f"{table.path}2", OPTIONS), hf.ConfigError, "is a file; give the folder"),
        (
            lambda table: hf.sink(f"{table.path}2", OPTIONS)(plain_rows(range(1)), 0),
            hf.ConfigError,
            "foreachBatch calls",
        ),
        (lambda table: hf.sink(None, OPTIONS), hf.ConfigError, "A path must be"),
        (lambda table: hf.write(plain_rows(range(1)), table.path, mode=None), hf.ConfigError, "append, overwrite"),
        (lambda table: hf.read("spark", table.path), hf.ConfigError, "A Spark session is given as spark="),
        (lambda table: hf.read(table.path, spark="local"), hf.ConfigError, "spark is a SparkSession, or None"),
        (lambda table: hf.read([table.path, "other"]), hf.ConfigError, "takes one path, as in Apache Hudi 1.2; got 2"),
        (lambda table: hf.read(f"{table.path}/*"), hf.ConfigError, "Glob paths are not supported, as in Apache Hudi"),
        (lambda table: hf.read(f"{table.path}-none"), hf.TableNotFoundError, "No Hudi table at"),
        (lambda table: hf.read(table.path, {PATHS: "a,b"}), hf.UnsupportedFeatureError, "filter by the partition"),
        (lambda table: table.delete(), hf.ConfigError, "delete takes the keys of rows, or a filter"),
        (lambda table: table.delete("id = 1", where="id = 1"), hf.ConfigError, "delete takes the keys of rows"),
        (lambda table: table.upsert([]), hf.InvalidDataError, "An empty list has no columns"),
        (lambda table: table.upsert({"id": [1], 2: [3]}), hf.InvalidDataError, "they are texts; got 2"),
        (lambda table: table.upsert({"id": [1], "n": 3}), hf.InvalidDataError, "cannot be converted to Arrow columns"),
        (lambda table: table.upsert([{"id": 1}, 5]), hf.InvalidDataError, "row 1 is int"),
        (lambda table: table.upsert(plain_rows(range(1)), primary_key="id"), hf.ConfigError, "did you mean 'key'?"),
        (lambda table: table.upsert(plain_rows(range(1)), key="other"), hf.ConfigError, "RecordKey:\tother\tid"),
        (lambda table: table.head(-1), hf.ConfigError, "0 or more; got -1"),
        (lambda table: table.head("5"), hf.ConfigError, "got '5'"),
        (lambda table: table.count("nothing = 1"), hf.ConfigError, "nothing"),
        (lambda table: table.count(query_type="incremental"), hf.ConfigError, "use incremental or cdc"),
        (lambda table: table.count(as_of=1706698800.5), hf.ConfigError, "seconds (10 digits)"),
        (lambda table: hf.write(plain_rows(range(1)), table.path, mode="upsert"), hf.ConfigError, "append, overwrite"),
        (
            lambda table: hf.write(pa.table({"a": [1]}), f"{table.path}2"),
            hf.ConfigError,
            "For a new table give its record key",
        ),
        (lambda table: hf.HudiTable.open(f"{table.path}/.hoodie/hoodie.properties"), hf.TableNotFoundError, "No Hudi"),
        (lambda table: hf.Streamer(["x"]), hf.ConfigError, "is a mapping of hoodie.* keys to values; got ['x']"),
        (lambda table: hf.Streamer(), hf.ConfigError, "A streamer needs --target-base-path"),
        (lambda table: streamer(table, sourceclass="x"), hf.ConfigError, "Did you mean --source-class?"),
        (
            lambda table: streamer(table, source_class="KinesisSource"),
            hf.UnsupportedFeatureError,
            "KinesisSource is not supp",
        ),
        (lambda table: streamer(table, commit_on_errors=True), hf.UnsupportedFeatureError, "a turn is written whole"),
        (lambda table: streamer(table, source="x"), hf.ConfigError, "'x' lacks fetch"),
        (
            lambda table: streamer(table, transforms=["x"]),
            hf.ConfigError,
            "functions of a pyarrow.RecordBatch; got 'x'",
        ),
        (lambda table: streamer(table, continuous="maybe"), hf.ConfigError, "--continuous is true or false"),
        (
            lambda table: streamer(table, source_limit=-1).turn(),
            hf.ConfigError,
            "--source-limit is a number, 0 or more",
        ),
        (lambda table: streamer(table, op="merge"), hf.ConfigError, "operation='merge' is not valid"),
        (lambda table: streamer(table).turn(), hf.ConfigError, "no/folder of the stream does not exist"),
    ],
)
def test_wrong_input_is_named_and_changes_nothing(kept_table, call, error, said):
    before = listing(kept_table.path)
    with pytest.raises(error) as caught:
        call(kept_table)
    assert said in str(caught.value)
    assert listing(kept_table.path) == before


OWNERS = {"hudi_fast": hf, "table": hf.HudiTable, "services": TableServices}
NEED_SPARK = {"accelerate", "sink", "stream_changes"}
ARGUMENTS = {
    "begin": "earliest",
    "data": plain_rows([1]),
    "df": plain_rows([1]),
    "instant": "20240101000000000",
    "kind": "record_index",
    "name": "record_index",
    "partitions": ["p0"],
    "properties": {"owner": "team"},
    "rows": plain_rows([1]),
    "savepoint": "20240101000000000",
    "schema": plain_rows([1]).schema,
    "set": {"ts": 1},
    "source": plain_rows([1]),
    "text": "SELECT 1",
    "version": 9,
    "where": "id = 'k00001'",
}


def calls_with_options():
    """Every public call that takes options: where it is, its name, and its other arguments."""
    found = []
    for owner, place in OWNERS.items():
        for name in sorted(set(dir(place)) - NEED_SPARK):
            call = getattr(place, name)
            if name.startswith("_") or not inspect.isroutine(call):
                continue
            parameters = inspect.signature(call).parameters
            if "options" in parameters:
                others = [one for one in parameters if one in {*ARGUMENTS, "path", "source_path"}]
                found.append(pytest.param(owner, name, others, id=f"{owner}.{name}"))
    return found


@pytest.mark.slow("hudi_fast.read")
@pytest.mark.parametrize(("owner", "name", "others"), calls_with_options())
def test_options_that_are_a_list_are_refused_by_every_call(kept_table, owner, name, others):
    before = listing(kept_table.path)
    paths = {
        "path": f"{kept_table.path}2" if name in ("create", "bootstrap") else kept_table.path,
        "source_path": kept_table.path,
    }
    place = {"hudi_fast": hf, "table": kept_table, "services": kept_table.services}[owner]
    with pytest.raises(hf.ConfigError, match=r"options is a mapping of hoodie\.\* keys to values; got \['x'\]"):
        getattr(place, name)(**{one: {**ARGUMENTS, **paths}[one] for one in others}, options=["x"])
    assert listing(kept_table.path) == before


def test_a_table_is_made_from_the_path_of_a_table_only(table, tmp_path):
    assert hf.HudiTable(table.path).count() == table.count()
    assert hf.HudiTable.exists(table.path)
    assert not hf.HudiTable.exists(tmp_path / "none")
    with pytest.raises(hf.TableNotFoundError, match="No Hudi table at"):
        hf.HudiTable(tmp_path / "none")


def test_times_are_dates_and_digits_too(table):
    first = int(table.history()["instant"][0].as_py())
    assert table.to_arrow(as_of=first).num_rows == 4
    assert table.to_arrow(as_of=date(2020, 1, 1)).num_rows == 0
    assert table.incremental(date(2020, 1, 1)).num_rows == 4


def test_a_named_index_of_pandas_is_a_column(table):
    frame = table.to_arrow(["id", "part", "ts", "text"]).to_pandas()
    for one in (frame.set_index("id"), frame.set_index("id", drop=False), frame.set_index(["id", "part"]), frame):
        assert table.upsert(one).updates == 4
    assert sorted(table.schema.names) == ["id", "part", "text", "ts"]


def test_a_warning_names_the_line_of_the_program(tmp_path):
    with pytest.warns(hf.HudiWarning, match="hoodie.no.such.option is ignored") as caught:
        hf.write(plain_rows(range(2)), tmp_path / "t", {**OPTIONS, "hoodie.no.such.option": "1"})
    assert {one.filename for one in caught} == {__file__}
