"""Rows that were read from a table which makes its keys itself, written back: they find themselves again."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf

NAME = {"hoodie.table.name": "t"}
META = ["_hoodie_record_key", "_hoodie_partition_path"]


def rows(*ids, v=0):
    return pa.table({"id": ids, "v": [v] * len(ids), "part": [f"p{one % 2}" for one in range(len(ids))]})


@pytest.fixture(params=[("COPY_ON_WRITE", "part"), ("MERGE_ON_READ", "part"), ("COPY_ON_WRITE", "")], ids=str)
def table(request, tmp_path):
    kind, partition = request.param
    options = {
        **NAME,
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.partitionpath.field": partition,
    }
    hf.write(rows("a", "b", "c", "d", v=1), tmp_path / "t", options)
    return hf.HudiTable.open(tmp_path / "t")


def values(table):
    found = table.to_arrow().sort_by("id")
    return dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))


def stored(table, *ids):
    return table.to_arrow(filter=pc.field("id").isin(ids))


def with_value(found, value):
    return found.set_column(found.column_names.index("v"), "v", pa.array([value] * found.num_rows, pa.int64()))


@pytest.mark.slow(but="('MERGE_ON_READ', 'part')")
def test_rows_that_were_read_are_updated_where_they_lie(table):
    before = {one["id"]: one["_hoodie_record_key"] for one in table.to_arrow().to_pylist()}
    done = hf.write(with_value(stored(table, "b"), 20), table.path, NAME)
    assert (done.operation, done.inserts, done.updates) == ("upsert", 0, 1)
    assert values(table) == {"a": 1, "b": 20, "c": 1, "d": 1}
    assert {one["id"]: one["_hoodie_record_key"] for one in table.to_arrow().to_pylist()} == before


@pytest.mark.slow(but="('COPY_ON_WRITE', 'part')")
def test_a_row_stays_in_its_partition_and_shows_it_whatever_its_columns_say(table):
    found = stored(table, "a")
    moved = found.set_column(found.column_names.index("part"), "part", pa.array(["elsewhere"]))
    assert hf.write(moved, table.path, NAME).updates == 1
    (now,) = stored(table, "a").to_pylist()
    folder = found["_hoodie_partition_path"][0].as_py()
    assert (now["_hoodie_partition_path"], now["part"]) == (folder, folder or "elsewhere")


@pytest.mark.slow(but="('MERGE_ON_READ', 'part')")
def test_rows_that_were_read_are_deleted(table):
    done = hf.write(
        stored(table, "a", "c").select(META), table.path, {**NAME, "hoodie.datasource.write.operation": "delete"}
    )
    assert done.deletes == 2
    assert values(table) == {"b": 1, "d": 1}


@pytest.mark.slow(but="('MERGE_ON_READ', 'part')")
def test_an_insert_makes_new_keys_for_rows_that_were_read(table):
    done = hf.write(stored(table, "a"), table.path, {**NAME, "hoodie.datasource.write.operation": "insert"})
    assert done.inserts == 1
    keys = table.to_arrow()["_hoodie_record_key"].to_pylist()
    assert len(keys) == len(set(keys)) == 5


@pytest.mark.slow("('COPY_ON_WRITE', 'part')")
def test_rows_without_keys_are_added(table):
    assert hf.write(rows("x"), table.path, NAME).operation == "bulk_insert"
    assert set(values(table)) == {"a", "b", "c", "d", "x"}


@pytest.mark.slow("('COPY_ON_WRITE', 'part')")
def test_a_row_among_them_without_key_is_refused(table):
    mixed = pa.concat_tables([stored(table, "a"), rows("x")], promote_options="default")
    with pytest.raises(hf.InvalidDataError, match="'_hoodie_record_key' cannot be null or empty: 1 of 2 rows"):
        hf.write(mixed, table.path, NAME)
    assert values(table) == {"a": 1, "b": 1, "c": 1, "d": 1}


def test_an_upsert_or_delete_with_nothing_to_go_by_says_what_would_do(table):
    for operation in ("upsert", "delete"):
        with pytest.raises(hf.ConfigError, match=f"so {operation} cannot match rows by key.*leave _hoodie_record_key"):
            hf.write(rows("a"), table.path, {**NAME, "hoodie.datasource.write.operation": operation})


@pytest.mark.slow("('MERGE_ON_READ', 'part')")
def test_keys_without_partition_paths_are_refused_by_name(table):
    if table.config.partition_fields:
        with pytest.raises(hf.InvalidDataError, match=r"\['_hoodie_partition_path'\] of table t are not among"):
            hf.write(stored(table, "a").drop_columns(["_hoodie_partition_path"]), table.path, NAME)
