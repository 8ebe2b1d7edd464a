"""What a user gets who hands in the wrong thing: an error that names it, and a table that is as before."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from small_tables import OPTIONS, listing, plain_rows

import hudi_fast as hf


@pytest.fixture
def table(tmp_path):
    hf.write(plain_rows(range(4)), tmp_path / "t", OPTIONS)
    return hf.HudiTable.open(tmp_path / "t")


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda table: table.to_arrow(columns="id"), hf.ConfigError, "list of names; got the text 'id'"),
        (lambda table: table.to_arrow(columns=["idd"]), hf.ConfigError, "no column 'idd'"),
        (lambda table: table.to_arrow(filter="id = 1"), hf.ConfigError, "pyarrow.compute expression"),
        (lambda table: table.to_arrow(filter=pc.field("x") == 1), hf.ConfigError, "FieldRef.Name(x); the table has"),
        (lambda table: table.to_arrow(as_of="yesterday"), hf.ConfigError, "yyyy-MM-dd"),
        (lambda table: table.to_arrow(query_type="newest"), hf.ConfigError, "snapshot or read_optimized"),
        (lambda table: table.delete_partitions("p0"), hf.ConfigError, "list of paths; got the text 'p0'"),
        (lambda table: table.delete(["k00000"]), hf.InvalidDataError, "got list"),
        (lambda table: table.upsert("rows.parquet"), hf.InvalidDataError, "got str"),
        (lambda table: table.write(plain_rows(range(1)), "merge"), hf.ConfigError, "valid values: upsert, insert"),
        (lambda table: table.incremental("yesterday"), hf.ConfigError, "Unsupported query instant time format"),
        (lambda table: hf.read("spark", table.path), hf.ConfigError, "without Spark use HudiTable.open"),
        (lambda table: hf.write(plain_rows(range(1)), table.path, mode="upsert"), hf.ConfigError, "append, overwrite"),
        (lambda table: hf.write(pa.table({"a": [1]}), f"{table.path}2"), hf.ConfigError, "a new one needs a name"),
        (lambda table: hf.HudiTable.open(f"{table.path}/.hoodie/hoodie.properties"), hf.TableNotFoundError, "No Hudi"),
    ],
)
def test_wrong_input_is_named_and_changes_nothing(table, call, error, said):
    before = listing(table.path)
    with pytest.raises(error) as caught:
        call(table)
    assert said in str(caught.value)
    assert listing(table.path) == before


def test_an_object_store_is_refused_before_anything_is_asked_of_it():
    with pytest.raises(hf.UnsupportedFeatureError, match="Writing to s3://bucket/t is not supported yet"):
        hf.write(plain_rows(range(1)), "s3://bucket/t", OPTIONS, storage_options={"region": "us-east-1"})
