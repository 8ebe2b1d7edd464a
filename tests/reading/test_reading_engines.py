"""Engines that drive scans get the rows that they would pick from all rows, whatever they push down.

Modules: hudi_fast.reading.dataset, hudi_fast.reading.polars_scan.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import multiprocessing
import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hudi_fast as hf
from hudi_fast.errors import FileGoneError
from hudi_fast.reading.dataset import Scan, Split
from hudi_fast.reading.polars_scan import arrow_condition
from tests.support.examples import examples
from tests.support.mor_tables import mor_options
from tests.support.small_tables import options

NAN, INF = math.nan, math.inf
UTC = dt.UTC
CLOSED = ["both", "left", "right", "none"]
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int32(), [None, -(2**31), -1, 0, 1, 7, 2**31 - 1]),
    "n": (pa.int64(), [None, -(2**62), 0, 1, 7, 2**62]),
    "f": (pa.float32(), [None, NAN, -INF, -0.0, 0.0, 0.1, 7.0]),
    "d": (pa.float64(), [None, NAN, INF, -0.0, 0.0, 0.1, 7.0]),
    "s": (pa.string(), [None, "", "a", "A", "ab", "ä", "b%", "\U0001f600"]),
    "y": (pa.binary(), [None, b"", b"a", b"\xff"]),
    "b": (pa.bool_(), [None, True, False]),
    "day": (pa.date32(), [None, dt.date(1960, 1, 1), dt.date(1970, 1, 1), dt.date(2024, 2, 29)]),
    "moment": (
        pa.timestamp("us", "UTC"),
        [None, dt.datetime(1969, 12, 31, 23, tzinfo=UTC), dt.datetime(2024, 1, 1, tzinfo=UTC)],
    ),
    "naive": (pa.timestamp("us"), [None, dt.datetime(1969, 12, 31, 23), dt.datetime(2024, 1, 1, 0, 0, 0, 1)]),
    "e": (pa.decimal128(10, 2), [None, Decimal("-1.50"), Decimal("0.00"), Decimal("7.00"), Decimal("99999999.99")]),
}
NESTED = {
    "z": (pa.struct([("x", pa.int64()), ("t", pa.string())]), [None, {"x": None, "t": "a"}, {"x": 7, "t": None}]),
    "l": (pa.list_(pa.int64()), [None, [], [1, None], [7]]),
}
ALL = {**VALUES, **NESTED}
COUNT = 48
NAMES = ["id", "part", *ALL]


def rows(shift: int, ids: range) -> pa.Table:
    """Each column goes through its values at its own pace."""
    columns: dict[str, Any] = {
        "id": pa.array(ids, pa.int64()),
        "part": [f"p{at % 4}" for at in ids],
        "ts": pa.array([shift] * len(ids), pa.int64()),
    }
    for place, (name, (kind, values)) in enumerate(ALL.items()):
        picked = [values[(at * (place + 1) // 4 + shift * place) % len(values)] for at in ids]
        columns[name] = pa.array(picked, kind)
    return pa.table(columns)


KINDS = {f"{kind} {version}": (kind, version) for kind in ("cow", "mor") for version in ("6", "9")}


ONE_KIND = pytest.mark.parametrize("table", ["mor 9"], indirect=True)


@pytest.fixture(scope="module", params=list(KINDS))
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> hf.HudiTable:
    """Rows in four partitions; a third of them was updated, and two were deleted."""
    kind, version = KINDS[request.param]
    chosen = {**(options() if kind == "cow" else mor_options()), "hoodie.write.table.version": version}
    path = tmp_path_factory.mktemp("engines") / "t"
    hf.write(rows(0, range(COUNT)), path, chosen)
    hf.write(rows(1, range(0, COUNT, 3)), path, chosen)
    found = hf.HudiTable.open(path)
    found.delete("id in (5, 6)", chosen)
    return found


def shown(found: pa.Table) -> list[str]:
    """Rows as texts, in which NaN equals itself and zeros have signs."""
    return sorted(repr(list(row.values())) for row in found.to_pylist())


# ---- polars


@st.composite
def leaf(draw: st.DrawFn) -> pl.Expr:
    name = draw(st.sampled_from(list(VALUES)))
    column = pl.col(name)
    values = [value for value in VALUES[name][1] if value is not None]
    value = draw(st.sampled_from(values))
    orders = [
        lambda: column == value,
        lambda: column != value,
        lambda: column < value,
        lambda: column >= value,
        lambda: value < column,
        lambda: column.eq_missing(value),
        # A plain text would be the name of a column.
        lambda: column.is_between(pl.lit(value), pl.lit(max(values)), closed=draw(st.sampled_from(CLOSED))),
    ]
    others = [
        lambda: column.is_null(),
        lambda: column.is_not_null(),
        lambda: column.is_in(draw(st.lists(st.sampled_from(VALUES[name][1]), min_size=1, max_size=3))),
        lambda: pl.col("b"),
        lambda: pl.col("s").str.starts_with(draw(st.sampled_from(["", "a", "b%"]))),
        lambda: pl.col("s").str.contains("a"),
        lambda: pl.col("s").str.to_lowercase() == "a",
        lambda: pl.col("z").struct.field("x") == 7,
        lambda: pl.col("z").struct.field("t").is_null(),
        lambda: pl.col("z").is_null(),
        lambda: pl.col("l").list.len() > 1,
        lambda: pl.col("d").is_nan(),
        lambda: pl.col("i") > pl.col("n"),
        lambda: pl.col("d") < pl.col("f"),
        lambda: pl.col("f") < 0.1,
        lambda: pl.col("i") + 1 > 1,
        lambda: pl.col("i") > 0.5,
        lambda: pl.col("e") > 0.5,
        lambda: pl.col("day") > dt.datetime(1969, 12, 31, 12),
        lambda: pl.col("i").cast(pl.Int8, strict=False) == 7,
        lambda: pl.col("part") == "p1",
        lambda: pl.col("id").is_between(10, 20),
    ]
    comparable = orders if name != "b" else orders[:2]
    made: pl.Expr = draw(st.sampled_from(comparable + others))()
    return made


PREDICATES = st.recursive(
    leaf(),
    lambda parts: st.one_of(
        st.tuples(parts, parts).map(lambda two: two[0] & two[1]),
        st.tuples(parts, parts).map(lambda two: two[0] | two[1]),
        parts.map(lambda part: ~part),
    ),
    max_leaves=5,
)


@pytest.mark.slow
@settings(max_examples=examples(20))
@given(
    predicate=PREDICATES, columns=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True), data=st.data()
)
def test_polars_gets_the_rows_that_it_picks_from_all_rows(
    table: hf.HudiTable, predicate: pl.Expr, columns: list[str], data: st.DataObject
) -> None:
    lazy, whole = _lazy(table), _whole(table)
    picked, count = whole.filter(predicate).select(columns), data.draw(st.integers(0, COUNT))
    engine: Any = data.draw(st.sampled_from(["in-memory", "streaming"]))
    found = lazy.filter(predicate).select(columns).collect(engine=engine)
    assert shown(found.to_arrow()) == shown(picked.to_arrow()), predicate
    assert lazy.filter(predicate).head(count).select("id").collect().height == min(count, picked.height)
    first = lazy.head(count).select("id").collect()
    assert first.n_unique() == first.height == min(count, whole.height)
    assert lazy.filter(predicate).select(pl.len()).collect().item() == picked.height


@settings(max_examples=examples(60))
@given(predicate=PREDICATES)
def test_what_is_pushed_down_is_true_wherever_polars_says_so(predicate: pl.Expr) -> None:
    every = pa.concat_tables([rows(0, range(COUNT)), rows(1, range(COUNT))])
    pushed = arrow_condition(predicate, every.schema)
    wanted = pl.from_arrow(every).with_row_index("at").filter(predicate)["at"].to_list()  # type: ignore[union-attr, call-overload]
    if pushed is not None:
        from hudi_fast.expressions.arrow_trees import as_engines_compare

        kept = every.append_column("at", pa.array(range(every.num_rows)))
        kept = kept.filter(as_engines_compare(pushed, every.schema))
        assert set(wanted) <= set(kept["at"].to_pylist()), (predicate, pushed)


@pytest.mark.parametrize(
    ("predicate", "pushed"),
    [
        (pl.col("i") > 1, "(i > 1)"),
        (pl.lit(1) > pl.col("n"), "(1 > n)"),
        ((pl.col("i") > 1) & pl.col("s").str.contains("a"), "(i > 1)"),
        ((pl.col("i") > 1) | pl.col("b"), "((i > 1) or b)"),
        (~(pl.col("s") == "a") & pl.col("s").is_not_null(), None),
        (pl.col("s").str.starts_with("a"), "starts_with"),
        (pl.col("z").struct.field("x") == 7, "z"),
        (pl.col("e") > Decimal("0.5"), "(e > 0.50)"),
        (pl.col("n").is_in([1, 7]), "is_in"),
        (pl.col("moment") > dt.datetime(2020, 1, 1, tzinfo=UTC), "moment > 2020-01-01"),
    ],
    ids=str,
)
def test_what_means_the_same_is_pushed_down(predicate: pl.Expr, pushed: str | None) -> None:
    found = str(arrow_condition(predicate, rows(0, range(1)).schema))
    assert found != "None"
    assert pushed is None or pushed in found


@pytest.mark.parametrize(
    "predicate",
    [
        pl.col("s").str.to_lowercase() == "a",
        pl.col("i").eq_missing(None),
        pl.col("i").cast(pl.Int8, strict=False) == 1,
        (pl.col("i") > 1) | pl.col("s").str.contains("a"),
        ~pl.col("i").is_in([1]),
        pl.col("i") > pl.col("i").mean(),
        pl.col("i") > pl.lit(None),
        pl.col("nobody") > 1,
        pl.lit(True),
        (pl.col("i") > 1).over("b"),
    ],
    ids=str,
)
def test_what_may_mean_something_else_is_left_to_polars(predicate: pl.Expr) -> None:
    assert arrow_condition(predicate, rows(0, range(1)).schema) is None


@ONE_KIND
def test_a_lazy_frame_plans_when_it_is_collected_and_skips_files(
    table: hf.HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hudi_fast.reading import dataset

    slices: list[int] = []
    plan_scan = dataset.plan_scan

    def planning(*args: Any, **kwargs: Any) -> Any:
        plan = plan_scan(*args, **kwargs)
        slices.append(len(plan.slices))
        return plan

    monkeypatch.setattr(dataset, "plan_scan", planning)
    lazy = table.to_polars(lazy=True)
    assert slices == []
    assert lazy.filter(pl.col("part") == "p1").select("id").collect().height == 11
    assert slices == [1]


@ONE_KIND
def test_a_lazy_frame_of_named_columns_is_filtered_by_the_names_of_the_result(table: hf.HudiTable) -> None:
    lazy = table.to_polars(["ID", "z.x"], lazy=True)
    assert lazy.filter((pl.col("x") == 7) & (pl.col("ID") < 20)).collect().height
    picked = table.to_polars(["ID", "z.x"]).filter(pl.col("x") == 7)
    assert lazy.filter(pl.col("x") == 7).sort("ID").collect().equals(picked.sort("ID"))


@ONE_KIND
def test_a_number_of_rows_ends_the_reading(table: hf.HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    from hudi_fast.reading import scan

    read: list[Any] = []
    read_slice = scan.read_slice
    monkeypatch.setattr(scan, "read_slice", lambda *given: read.append(given) or read_slice(*given))
    assert table.to_polars(lazy=True).head(3).select("id").collect().height == 3
    assert len(read) == 1


# ---- engines of SQL

CONDITIONS = [
    *(f"i {sign} {value}" for sign in ("=", "<>", "<", ">=") for value in (0, 7)),
    *(f"d {sign} {value}" for sign in ("=", "<>", "<", ">=") for value in ("cast('nan' as double)", "7.0", "-0.0")),
    *(f"f {sign} cast({value} as float)" for sign in ("=", "<", ">") for value in ("'nan'", "0.1")),
    *(f"s {sign} 'a'" for sign in ("=", "<>", "<", ">=")),
    *("s like 'a%'", "s like 'b\\%'", "lower(s) = 'a'", "s in ('a', 'ab')", "s not in ('a')", "s in ('a', null)"),
    *(
        "i in (0, 1)",
        "i not in (0, 1)",
        "d in (0.0, 7.0)",
        "i is null",
        "d is not null",
        "b",
        "not b",
        "i between 0 and 7",
    ),
    *(
        "e > 0.5",
        "e = 7",
        "day > date '1969-12-31'",
        "naive < timestamp '2024-01-01 00:00:00.000001'",
        "i > 0.5",
        "i + 1 > 1",
    ),
    *("i > n", "d < f", "part = 'p1'", "id between 10 and 20", "(s is distinct from 'a')", "n > 4611686018427387903"),
]
OF_DUCKDB = ["z.x = 7", "z.t is null", "z is null", "len(l) > 1", "l[1] = 7", "y = 'a'::blob", "s ilike 'A%'"]
OF_DUCKDB += ["moment > timestamptz '2020-01-01 00:00:00+00'", "starts_with(s, 'a')"]


def texts(leaves: list[str]) -> st.SearchStrategy[str]:
    return st.recursive(
        st.sampled_from(leaves),
        lambda parts: st.one_of(
            st.tuples(parts, st.sampled_from(["and", "or"]), parts).map(" ".join).map("({})".format),
            parts.map("(not {})".format),
        ),
        max_leaves=4,
    )


@pytest.mark.slow
@settings(max_examples=examples(20))
@given(text=texts(CONDITIONS + OF_DUCKDB), columns=st.sets(st.sampled_from(NAMES), min_size=1, max_size=3))
def test_duckdb_gets_the_rows_that_it_picks_from_all_rows(table: hf.HudiTable, text: str, columns: set[str]) -> None:
    query = f"select {', '.join(sorted(columns))} from {{}} where {text}"
    with duckdb.connect() as connection:
        connection.register("scan", table.scan())
        connection.register("whole", _whole(table).to_arrow())
        found, picked = (connection.sql(query.format(name)).to_arrow_table() for name in ("scan", "whole"))
        assert shown(found) == shown(picked), text
        counted = connection.sql(f"select count(*) from scan where {text}").fetchall()
        assert counted == [(picked.num_rows,)], text
        some = connection.sql(f"select id from scan where {text} limit 3").to_arrow_table()
        assert some.num_rows == min(3, picked.num_rows)


@pytest.mark.slow
@settings(max_examples=examples(20))
@given(
    text=texts([one for one in CONDITIONS if "\\" not in one]),
    columns=st.sets(st.sampled_from(NAMES), min_size=1, max_size=3),
)
def test_datafusion_gets_the_rows_that_it_picks_from_all_rows(
    table: hf.HudiTable, text: str, columns: set[str]
) -> None:
    datafusion = pytest.importorskip("datafusion")
    context = datafusion.SessionContext()
    context.register_dataset("scan", table.scan())
    context.register_record_batches("whole", [_whole(table).to_arrow().to_batches()])
    query = f"select {', '.join(sorted(columns))} from {{}} where {text}"
    found, picked = (context.sql(query.format(name)).to_arrow_table() for name in ("scan", "whole"))
    assert shown(found) == shown(picked), text
    assert context.sql(f"select count(*) as c from scan where {text}").to_pydict() == {"c": [picked.num_rows]}


@ONE_KIND
def test_an_engine_that_reads_fragments_gets_columns_and_rows_of_each(table: hf.HudiTable) -> None:
    """The calls that datafusion makes."""
    scan, where = table.scan(), pc.field("part") == "p1"
    found = [
        batch
        for fragment in scan.get_fragments(where)
        for batch in fragment.scanner(scan.schema, columns=["id"], filter=where, batch_size=8192).to_reader()
    ]
    assert pa.Table.from_batches(found).sort_by("id")["id"].to_pylist() == [1, *range(9, COUNT, 4)]
    assert not any(batch.num_rows for batch in scan.scanner(["id"], pa.scalar(False)).to_reader())
    counted = [
        fragment.scanner(scan.schema, columns=[], filter=None).to_table().num_rows for fragment in scan.get_fragments()
    ]
    assert sum(counted) == COUNT - 2


@ONE_KIND
def test_a_scanner_reads_in_the_thread_that_asks(table: hf.HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread of Arrow that reads ahead would keep the process from ending."""
    asking: set[threading.Thread] = set()
    to_batches = table.scan()._reader

    def noting(self: Any, *given: Any) -> pa.RecordBatchReader:
        reader = to_batches(*given)
        noted = (asking.add(threading.current_thread()) or batch for batch in reader)  # type: ignore[func-returns-value]
        return pa.RecordBatchReader.from_batches(reader.schema, noted)

    monkeypatch.setattr(Scan, "_reader", noting)
    scan = table.scan()
    asked = [{}, {"columns": ["id"]}, {"columns": {"two": pc.field("id") * 2}, "filter": pc.field("i") > 0}]
    for one in asked:
        assert scan.scanner(**one).head(1).num_rows == 1
        assert isinstance(scan.scanner(**one), ds.Scanner)
        assert scan.scanner(**one).count_rows() == scan.scanner(**one).to_table().num_rows
        assert scan.scanner(**one).projected_schema == scan.scanner(**one).to_table().schema
    assert asking == {threading.current_thread()}


# ---- processes that read splits


def _ids(split: Split) -> list[int]:
    found: list[int] = split.read(["id"], "i is not null").read_all()["id"].to_pylist()
    return found


@pytest.mark.slow
@ONE_KIND
def test_processes_read_the_splits_of_a_scan(table: hf.HudiTable) -> None:
    splits = table.scan(filter="id >= 10").splits()
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        found = sorted(one for part in pool.map(_ids, splits) for one in part)
    assert found == sorted(table.to_arrow(["id"], "id >= 10 and i is not null")["id"].to_pylist())


@ONE_KIND
def test_splits_have_all_rows_once_and_take_columns_and_filters(table: hf.HudiTable) -> None:
    scan = table.scan(["ID", "part", "z.x", "d"], "id >= 10")
    splits = pickle.loads(pickle.dumps(scan.splits()))
    assert shown(pa.concat_tables(map(pa.table, splits))) == shown(scan.to_table())
    assert {one.schema for one in splits} == {scan.schema}
    assert sorted(one.partition for one in splits) == ["p0", "p1", "p2", "p3"]
    assert all(one.size > 0 for one in splits)
    for filter_ in (pc.field("ID") < 20, pc.field("x") == 7, "z.x = 7", pc.field("d") > 0.1, pc.field("part") == "p1"):
        parts = [one.read(["x", "ID"], filter_).read_all() for one in scan.splits(filter_)]
        assert shown(pa.concat_tables(parts)) == shown(scan.to_table(["x", "ID"], filter_)), filter_
    assert [one.partition for one in scan.splits(pc.field("part") == "p1")] == ["p1"]
    assert len(pickle.dumps(splits[0])) < 10_000
    with pytest.raises(hf.ConfigError, match="no column 'nope'"):
        splits[0].read(["nope"])


# ---- a table that changes while it is read


def _of_polars(table: hf.HudiTable) -> Callable[[], Iterator[pa.RecordBatch]]:
    lazy = table.to_polars(["id", "ts"], lazy=True)
    return lambda: (batch for frame in lazy.collect_batches() for batch in frame.to_arrow().to_batches())


def _of_splits(table: hf.HudiTable) -> Callable[[], Iterator[pa.RecordBatch]]:
    splits = table.scan(["id", "ts"]).splits()
    return lambda: (batch for one in splits for batch in one.read())


def _of_duckdb(table: hf.HudiTable) -> Callable[[], Iterator[pa.RecordBatch]]:
    relation = table.to_duckdb(["id", "ts"])
    return lambda: iter(relation.to_arrow_reader(1))


def _of_scan(table: hf.HudiTable) -> Callable[[], Iterator[pa.RecordBatch]]:
    return table.scan(["id", "ts"]).to_batches


def _of_pandas(table: hf.HudiTable) -> Callable[[], Iterator[pa.RecordBatch]]:
    chunks = table.to_pandas(["id", "ts"], chunksize=1)
    return lambda: (pa.RecordBatch.from_pandas(one) for one in chunks)


OTHER_ENGINES = ("polars", "splits", "duckdb", "pandas")
"""The scan itself reads both types of table, and these what the scan hands them."""


@pytest.mark.slow
@pytest.mark.long(*(f"{moment}-cow-_of_{engine}" for moment in ("before", "within") for engine in OTHER_ENGINES))
@pytest.mark.parametrize("drive", [_of_polars, _of_splits, _of_duckdb, _of_scan, _of_pandas])
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("moment", ["before", "within"])
def test_a_table_that_is_overwritten_and_cleaned_meanwhile_gives_its_snapshot_or_an_error(
    drive: Callable[[hf.HudiTable], Callable[[], Iterator[pa.RecordBatch]]], kind: str, moment: str, tmp_path: Path
) -> None:
    chosen = options() if kind == "cow" else mor_options()
    count = 40
    before = pa.table({"id": range(count), "part": [f"p{at}" for at in range(count)], "ts": [1] * count})
    hf.write(before, tmp_path / "t", chosen)
    if kind == "mor":
        hf.write(before, tmp_path / "t", chosen)
    begin = drive(hf.HudiTable.open(tmp_path / "t"))
    found: list[pa.RecordBatch] = []
    batches = begin() if moment == "within" else None
    if batches is not None:
        found.append(next(batches))
    newer = before.set_column(2, "ts", pa.array([2] * count))
    table = hf.HudiTable.open(tmp_path / "t")
    table.overwrite(newer)
    keep_one = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": "1"}
    assert table.services.clean(keep_one).files_deleted >= count
    complete = False
    with contextlib.suppress(FileGoneError, duckdb.InvalidInputException):
        found += batches if batches is not None else begin()
        complete = True
    assert not complete or pa.Table.from_batches(found).num_rows == count
    assert all(batch["ts"].to_pylist() == [1] * batch.num_rows for batch in found)


# ----


_frames: dict[str, Any] = {}


def _once(name: str, table: hf.HudiTable, make: Callable[[], Any]) -> Any:
    key = f"{name} {table._storage.uri}"
    if key not in _frames:
        _frames[key] = make()
    return _frames[key]


def _whole(table: hf.HudiTable) -> pl.DataFrame:
    return _once("whole", table, partial(table.to_polars))  # type: ignore[no-any-return]


def _lazy(table: hf.HudiTable) -> pl.LazyFrame:
    return _once("lazy", table, partial(table.to_polars, lazy=True))  # type: ignore[no-any-return]
