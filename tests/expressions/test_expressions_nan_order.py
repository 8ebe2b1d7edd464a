"""NaN equals NaN and is above every number, whoever asks for rows, and whatever is skipped before they are read.

Modules: hudi_fast.expressions.arrow_trees.
"""

from __future__ import annotations

import json
import math
import sys
from functools import reduce
from operator import and_, or_
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hudi_fast as hf
from hudi_fast.cli.main import main
from hudi_fast.expressions.arrow_filters import RowFilter
from hudi_fast.expressions.arrow_trees import as_engines_compare, expression_of, on_safe_bounds, tree_of
from tests.naive import sql_rows
from tests.support.examples import examples
from tests.support.mor_tables import mor_options
from tests.support.small_tables import options

NAN, INF = math.nan, math.inf
PARTS = {
    "nan": [NAN, NAN],
    "mixed": [0.25, NAN, None],
    "low": [0.5, 0.75, 1.0],
    "high": [15.0, 16.5],
    "zero": [-0.0, 0.0],
    "null": [None],
    "ends": [-INF, INF],
}
VALUES = [(f"{part}{at}", part, value) for part, values in PARTS.items() for at, value in enumerate(values)]
ROWS = pa.table(
    {
        "id": [one for one, _, _ in VALUES],
        "part": [part for _, part, _ in VALUES],
        "ts": pa.array([1] * len(VALUES), pa.int64()),
        "d": pa.array([value for _, _, value in VALUES], pa.float64()),
        "f": pa.array([value for _, _, value in VALUES], pa.float32()),
        "n": pa.array(range(len(VALUES)), pa.int32()),
    }
)
ASKED = [(sign, number) for sign in ("==", "!=", "<", "<=", ">", ">=") for number in (NAN, 15.0)]
ASKED += [("==", 0.0), (">", INF), ("<", -0.0)]
KINDS: dict[str, dict[str, Any]] = {
    "cow": options(),
    "mor": mor_options({"hoodie.logfile.data.block.format": "parquet"}),
    "mor 6": {**mor_options(), "hoodie.write.table.version": "6"},
}


@pytest.fixture(scope="module", params=list(KINDS))
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> hf.HudiTable:
    """A file group for each part; the values of a merge-on-read table are in its log files."""
    path = tmp_path_factory.mktemp("nan") / "t"
    if request.param.startswith("mor"):
        earlier = ROWS.set_column(3, "d", pa.array([0.6] * len(VALUES)))
        hf.write(earlier.set_column(2, "ts", pa.array([0] * len(VALUES))), path, KINDS[request.param])
    hf.write(ROWS, path, KINDS[request.param])
    return hf.HudiTable.open(path)


def wanted(sign: str, number: float) -> list[str]:
    return sorted(one for one, _, value in VALUES if sql_rows.compared(sign, value, number))


def text_of(sign: str, number: float, column: str = "d") -> str:
    return f"{column} {'<>' if sign == '!=' else sign} double('{number}')"


def ids(rows: Any) -> list[str]:
    return sorted(rows["id"].to_pylist())


@pytest.mark.slow
def test_text_finds_the_rows_that_spark_finds(table: hf.HudiTable) -> None:
    for at, (sign, number) in enumerate(ASKED):
        text = text_of(sign, number, "df"[at % 2])
        assert ids(table.to_arrow(["id"], filter=text)) == wanted(sign, number), text
        text, rest = text_of(sign, number), sorted(one for one, _, value in VALUES if value is not None)
        assert ids(table.to_arrow(["id"], filter=f"not ({text})")) == sorted(set(rest) - set(wanted(sign, number))), (
            text
        )


@pytest.mark.slow
def test_polars_and_duckdb_find_them_in_what_they_push_down(table: hf.HudiTable) -> None:
    duckdb = pytest.importorskip("duckdb")
    lazy, trips = pl.scan_pyarrow_dataset(table.scan()), table.scan()  # noqa: F841 - duckdb finds it by its name
    signs: dict[str, Any] = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
    for sign, number in ASKED:
        condition = getattr(pl.col("d"), signs[sign])(number)
        condition = condition & (pl.col("n") >= 0) if sign == ">" else condition
        assert sorted(lazy.filter(condition).collect()["id"].to_list()) == wanted(sign, number), condition
        found = duckdb.sql(
            f"select id from trips where {text_of(sign, number).replace('double', '')}::double".replace("==", "=")
        )
        assert sorted(one for (one,) in found.fetchall()) == wanted(sign, number), condition
    assert sorted(lazy.filter(pl.col("d").is_in([0.0, 15.0])).collect()["id"].to_list()) == ["high0", "zero0", "zero1"]


def test_files_without_a_match_are_still_left_out(tmp_path: Path) -> None:
    hf.write(ROWS, tmp_path, options())
    table = hf.HudiTable.open(tmp_path)
    for text, parts in {
        "d > 15": {"nan", "mixed", "high", "zero", "null", "ends"},
        "not d <= 15": {"nan", "mixed", "high", "zero", "null", "ends"},
        "d < 0.4": {"nan", "mixed", "zero", "null", "ends"},
        "d <=> double('NaN')": {"nan", "mixed", "zero", "null", "ends"},
        "d > 15 and part <> 'null'": {"nan", "mixed", "high", "zero", "ends"},
    }.items():
        read = {Path(one).parts[0] for one in table.files(text)["partition"].to_pylist()}
        assert read <= parts, text


@pytest.mark.slow("False")
@pytest.mark.parametrize("safe", [True, False])
def test_row_groups_are_left_out_by_bounds_that_tell_of_nan_alone(safe: bool, tmp_path: Path) -> None:
    rows = pa.table({"id": [f"k{at}" for at in range(4)], "part": ["p"] * 4, "ts": [1] * 4, "d": [1.0, NAN, 2.0, 3.0]})
    hf.write(rows, tmp_path, options())
    (path,) = tmp_path.glob("p/*.parquet")
    stored = pq.read_table(path)
    others = {name: value for name, value in stored.schema.metadata.items() if name != b"hudi_fast.nan"}
    if safe:  # the writer says that a group with NaN has no bounds; here none has any
        pq.write_table(stored, path, row_group_size=2, write_statistics=["id"])
    else:  # the bounds of the first group are 1 and 1
        pq.write_table(stored.replace_schema_metadata(others), path, row_group_size=2)
    table = hf.HudiTable.open(tmp_path)
    asked = {"d > 2": ["k1", "k3"], "d = double('NaN')": ["k1"], "d <> 1": ["k1", "k2", "k3"], "d < 2": ["k0"]}
    assert {text: ids(table.to_arrow(filter=text)) for text in asked} == asked


def test_bounds_of_our_files_leave_row_groups_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hudi_fast.reading import slice_reader

    hf.write(ROWS, tmp_path, options())
    monkeypatch.setattr(slice_reader, "_LITTLE_GROUP", 0)
    groups: list[Any] = []
    plain = slice_reader.matching_row_groups
    monkeypatch.setattr(slice_reader, "matching_row_groups", lambda *asked: groups.append(plain(*asked)) or groups[-1])
    table = hf.HudiTable.open(tmp_path)
    assert ids(table.scan(["id"], "d > 15 and part in ('low', 'nan')").to_table()) == ["nan0", "nan1"]
    assert groups == [[0]]  # the file of the others is not opened


@pytest.mark.slow
def test_the_command_line_finds_changes_and_deletes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hf.write(ROWS, tmp_path / "t", options())

    def run(*arguments: Any) -> str:
        monkeypatch.setattr(sys, "argv", ["hudi-fast", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code == 0
        return capsys.readouterr().out

    shown = run("read", tmp_path / "t", "--where", "d > 15", "--json").splitlines()
    assert sorted(json.loads(row)["id"] for row in shown) == wanted(">", 15.0)
    run("update", tmp_path / "t", "--where", "d >= double('NaN')", "--set", "n=-1")
    table = hf.HudiTable.open(tmp_path / "t")
    assert ids(table.to_arrow(filter="n = -1")) == wanted("==", NAN)
    run("delete", tmp_path / "t", "--where", "d = double('NaN')")
    assert ids(table.to_arrow()) == sorted(set(ROWS["id"].to_pylist()) - set(wanted("==", NAN)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_updates_merges_and_deletes_take_nan_for_the_greatest_number(kind: str, tmp_path: Path) -> None:
    hf.write(ROWS, tmp_path, KINDS[kind])
    table = hf.HudiTable.open(tmp_path)
    table.update("d > 15", {"n": "if(d > 100, 1000, 500)", "f": "greatest(f, 20)", "ts": "ts + 1"})
    rows = {row["id"]: row for row in table.to_arrow(filter="n >= 500").to_pylist()}
    assert sorted(rows) == wanted(">", 15.0)
    assert {key: row["n"] for key, row in rows.items()} == {
        key: 500 if key.startswith("high") else 1000 for key in wanted(">", 15.0)
    }
    assert math.isnan(rows["nan0"]["f"])
    assert rows["high1"]["f"] == 20.0
    source = pa.table({"d": [NAN, 0.0, 0.5], "m": pa.array([7, 8, 9], pa.int32())})
    merge = table.merge(source, aliases=("t", "s")).on("t.d = s.d").when_matched_update({"n": "s.m", "ts": "t.ts + 1"})
    merge.execute()
    found = {row["id"]: row["n"] for row in table.to_arrow(filter="n in (7, 8, 9)").to_pylist() if row["ts"] > 1}
    assert found == {**dict.fromkeys(wanted("==", NAN), 7), "zero0": 8, "zero1": 8, "low0": 9}
    table.delete("d >= double('Infinity')")
    assert ids(table.to_arrow()) == sorted(set(ROWS["id"].to_pylist()) - set(wanted(">=", INF)))


# ---- any expression


NUMBERS = st.sampled_from([NAN, -INF, -1.5, -0.0, 0.0, 0.1, 2.0, None])
ORDERS = {"==": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}


@settings(max_examples=examples(60))
@given(
    rows=st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=8),
    sign=st.sampled_from(list(ORDERS)),
    number=NUMBERS,
)
def test_an_engines_comparison_is_that_of_the_slow_twin(rows: list[tuple[Any, Any]], sign: str, number: Any) -> None:
    table = pa.table(
        {"a": pa.array([one for one, _ in rows], pa.float64()), "b": pa.array([one for _, one in rows], pa.float64())}
    )
    literal = pa.scalar(number, pa.float64())
    for expression, pairs in (
        (getattr(pc.field("a"), ORDERS[sign])(pc.field("b")), rows),
        (getattr(pc.field("a"), ORDERS[sign])(literal), [(one, number) for one, _ in rows]),
        (getattr(pc.scalar(literal), ORDERS[sign])(pc.field("a")), [(number, one) for one, _ in rows]),
    ):
        truths = [sql_rows.compared(sign, *pair) for pair in pairs]
        for asked, answers in (
            (expression, truths),
            (~expression, [None if one is None else not one for one in truths]),
        ):
            kept = table.append_column("n", pa.array(range(len(rows)))).filter(as_engines_compare(asked, table.schema))
            assert kept["n"].to_pylist() == [at for at, answer in enumerate(answers) if answer], asked


LEAVES = st.sampled_from(
    [
        *(
            pc.field("a") > 1,
            pc.field("a") <= 2,
            pc.field("s", "x") != 3,
            pc.field("t") == "x",
            pc.field("a").is_null(),
        ),
        *(
            pc.field("a").isin([0.0, 1.0]),
            pc.is_nan(pc.field("a")),
            pc.match_like(pc.field("t"), "a%"),
            pc.field("a.b") == 1,
        ),
        *(
            pc.field("a").cast(pa.float32()) > 1,
            pc.coalesce(pc.field("a"), pc.scalar(1.0)) > 1,
            pc.field("t").is_valid(),
        ),
    ]
)
TREES = st.recursive(
    LEAVES,
    lambda parts: st.one_of(
        st.tuples(parts, parts).map(lambda two: two[0] & two[1]),
        st.tuples(parts, parts).map(lambda two: two[0] | two[1]),
        parts.map(lambda part: ~part),
    ),
    max_leaves=6,
)


@settings(max_examples=examples(60))
@given(TREES)
def test_an_expression_survives_its_tree(expression: pc.Expression) -> None:
    tree = tree_of(expression)
    assert tree is not None
    assert expression_of(tree).equals(expression)


@pytest.mark.slow("or_")
@pytest.mark.parametrize("join", [and_, or_])
def test_chains_as_deep_as_they_are_long_are_read(join: Any) -> None:
    expression = reduce(join, [pc.field("a") > number for number in range(3000)])
    schema = pa.schema({"a": pa.float64()})
    assert len(RowFilter.of(expression, schema).condition.parts) == 3000  # type: ignore[union-attr]
    assert str(on_safe_bounds(expression)) == str(expression)
    assert "is_nan" in str(as_engines_compare(expression, schema))
