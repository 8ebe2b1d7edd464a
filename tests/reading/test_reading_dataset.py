"""Scans that others drive: duckdb, polars and Arrow read a table, and hand down what they ask for."""

import pickle

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import hudi_fast as hf
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.reading.dataset import Scan
from tests.support.mor_tables import mor_options
from tests.support.small_tables import options

ROWS = pa.table(
    {
        "id": list(range(40)),
        "part": ["ab"[i % 2] for i in range(40)],
        "ts": [1] * 40,
        "fare": [i / 2 for i in range(40)],
    }
)
NEWER = pa.table({"id": [3, 4, 40], "part": ["b", "a", "a"], "ts": [2] * 3, "fare": [-3.0, -4.0, -40.0]})
TRUTH = {**{i: i / 2 for i in range(40)}, 3: -3.0, 4: -4.0, 40: -40.0}


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request, tmp_path):
    chosen = mor_options() if request.param == "MERGE_ON_READ" else options()
    hf.write(ROWS, tmp_path / "t", chosen)
    hf.write(NEWER, tmp_path / "t", chosen)
    return hf.HudiTable.open(tmp_path / "t")


@pytest.mark.slow
def test_duckdb_queries_a_merged_table_by_the_name_of_the_variable(table):
    trips = table.scan()  # noqa: F841 - duckdb finds it by its name
    assert dict(duckdb.sql("select id, fare from trips").fetchall()) == TRUTH
    assert duckdb.sql("select count(*) from trips where part = 'a' and fare < 0").fetchall() == [(2,)]
    assert duckdb.sql("select fare from trips where id in (3, 5)").fetchall() == [(-3.0,), (2.5,)]
    found = duckdb.sql("select part, sum(fare) s from trips where id >= 10 group by part order by part").fetchall()
    sums = {part: sum(fare for i, fare in TRUTH.items() if i >= 10 and "ab"[i % 2] == part) for part in "ab"}
    assert dict(found) == sums


@pytest.mark.slow
def test_polars_queries_it_lazily(table):
    lazy = pl.scan_pyarrow_dataset(table.scan())
    rows = lazy.filter(pl.col("fare") < 0).select("id", "fare").sort("id").collect()
    assert rows.rows() == [(3, -3.0), (4, -4.0), (40, -40.0)]
    assert lazy.select(pl.len()).collect().item() == len(TRUTH)
    assert dict(pl.DataFrame(table.scan(["id", "fare"])).rows()) == TRUTH


class Watched(Scan):
    """Notes what it is asked for."""

    def scanner(self, columns=None, filter=None, **options):
        self.asked = (columns, str(filter))
        return super().scanner(columns, filter, **options)


@pytest.fixture
def watched(table):
    return Watched(table.scan()._state, None, None, table.scan()._query)


@pytest.mark.slow("COPY_ON_WRITE")
def test_columns_and_filters_reach_the_scan(watched):
    trips = watched
    assert duckdb.sql("select fare from trips where id = 3").fetchall() == [(-3.0,)]
    assert trips.asked == (["fare", "id"], "(id == 3)") or trips.asked == (["fare"], "(id == 3)")
    pl.scan_pyarrow_dataset(trips).select("fare").collect()
    assert trips.asked[0] == ["fare"]
    pl.scan_pyarrow_dataset(trips).filter(pl.col("id") == 3).select("fare").collect()
    assert trips.asked[1] == "(id == 3)"


@pytest.mark.slow("COPY_ON_WRITE")
def test_anything_that_takes_arrow_takes_a_scan(table):
    scan = table.scan(["id", "fare"], pc.field("fare") < 0)
    rows = {"id": [3, 4, 40], "fare": [-3.0, -4.0, -40.0]}
    assert pa.table(scan).sort_by("id").to_pydict() == rows
    assert pa.RecordBatchReader.from_stream(scan).read_all().sort_by("id").to_pydict() == rows
    assert pa.schema(scan) == pa.schema({"id": pa.int64(), "fare": pa.float64()})
    assert scan.to_table().to_pandas().sort_values("id")["id"].to_list() == rows["id"]


@pytest.mark.slow("COPY_ON_WRITE")
def test_a_scan_can_be_written_to_another_table(table, tmp_path):
    data = table.scan(["id", "part", "ts", "fare"], pc.field("part") == "a")
    assert hf.write(data, tmp_path / "other", options()).inserts == 21


@pytest.mark.slow
def test_the_methods_of_a_dataset(table):
    scan = table.scan()
    assert isinstance(scan, ds.Dataset)
    assert scan.count_rows() == 41
    assert scan.count_rows(filter=pc.field("id") < 10) == 10
    assert scan.head(3).num_rows == 3
    assert scan.filter(pc.field("id") < 10).filter(pc.field("fare") > 0).count_rows() == 7
    doubled = scan.to_table({"double": pc.field("fare") * 2}, pc.field("id") == 5)
    assert doubled.to_pydict() == {"double": [5.0]}
    first = scan.to_table(["id"]).take([0, 1])
    assert scan.take([0, 1], ["id"]) == first
    assert scan.sort_by("id").to_table()["id"].to_pylist() == sorted(TRUTH)
    names = ds.dataset(pa.table({"id": [3, 4], "name": ["x", "y"]}))
    assert table.scan(["id", "fare"]).join(names, keys="id", join_type="inner").to_table().num_rows == 2
    assert sum(batch.num_rows for batch in scan.to_batches(columns=["id"], batch_size=7)) == 41


@pytest.mark.slow("COPY_ON_WRITE")
def test_arrow_writes_its_rows(table, tmp_path):
    ds.write_dataset(table.scan(["id", "fare"]), tmp_path / "copy", format="parquet")
    assert dict(zip(*ds.dataset(tmp_path / "copy").to_table().to_pydict().values(), strict=True)) == TRUTH


@pytest.mark.slow("COPY_ON_WRITE")
def test_it_stays_at_its_moment(table):
    before = table.scan(["id"])
    table.upsert(pa.table({"id": [99], "part": ["a"], "ts": [3], "fare": [1.0]}), {"hoodie.compact.inline": "false"})
    assert before.count_rows() == 41
    assert table.scan(["id"]).count_rows() == 42
    first = table.history()["instant"][0].as_py()
    assert table.scan(as_of=first).count_rows() == 40


@pytest.mark.slow("MERGE_ON_READ")
def test_read_optimized_leaves_the_log_out(table):
    fares = table.scan(["fare"], query_type="read_optimized").to_table()["fare"].to_pylist()
    assert (-3.0 in fares) == (table.table_type == "COPY_ON_WRITE")


@pytest.mark.slow("COPY_ON_WRITE")
def test_it_travels_to_other_processes(table):
    again = pickle.loads(pickle.dumps(table.scan(["id"], pc.field("id") < 5)))
    assert again.to_table().sort_by("id")["id"].to_pylist() == [0, 1, 2, 3, 4]


@pytest.mark.slow("MERGE_ON_READ")
def test_what_arrow_would_do_by_itself_is_refused_and_not_answered_wrongly(table):
    scan = table.scan()
    with pytest.raises(UnsupportedFeatureError, match=r"the scan's own to_table\(\)"):
        ds.Scanner.from_dataset(scan).to_table()
    with pytest.raises(UnsupportedFeatureError, match=r"scan of .* has the table's schema"):
        ds.dataset([scan])
    with pytest.raises(UnsupportedFeatureError, match="table's schema"):
        scan.replace_schema(pa.schema([]))


def test_unknown_columns_are_named(table):
    with pytest.raises(ConfigError, match="no column 'nope'"):
        table.scan(["nope"])
    with pytest.raises(ConfigError, match="no column 'nope'"):
        table.scan().to_table(["nope"])
    with pytest.raises(ConfigError, match="nope"):
        table.scan().filter(pc.field("nope") == 1)


@pytest.mark.slow("duckdb")
@pytest.mark.parametrize("make", ["polars", "duckdb", "pandas"])
def test_frames_of_others_are_written_as_they_are(make, tmp_path):
    rows = pa.table({"id": [1, 2], "part": ["a", "b"], "ts": [1, 1], "name": ["Åse", None]})
    frame = {
        "polars": lambda: pl.from_arrow(rows).with_columns(pl.col("part").cast(pl.Categorical)),
        "duckdb": lambda: duckdb.from_arrow(rows),
        "pandas": rows.to_pandas,
    }[make]()
    assert hf.write(frame, tmp_path / "t", options()).inserts == 2
    stored = hf.HudiTable.open(tmp_path / "t").to_arrow(["id", "part", "ts", "name"]).sort_by("id")
    assert stored.to_pylist() == rows.to_pylist()


def test_a_path_is_scanned_without_a_table_object(tmp_path):
    assert not hf.is_table(tmp_path / "t")
    hf.write(pa.table({"id": [1, 2], "fare": [9.5, 3.0]}), tmp_path / "t", key="id")
    assert hf.is_table(tmp_path / "t")
    scan = hf.scan(tmp_path / "t", columns=["id"], filter="fare > 5")
    assert scan.to_table().to_pylist() == [{"id": 1}]
    with pytest.raises(hf.TableNotFoundError):
        hf.scan(tmp_path / "u")
