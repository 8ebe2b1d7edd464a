"""Validators of a commit: SQL queries under Apache Hudi's class names, and Python functions."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import hudi_fast as hf
from hudi_fast.config.monitoring_options import VALIDATOR_CLASSES
from tests.support.mor_tables import VERSIONS, mor_options
from tests.support.small_tables import assert_tidy, options, plain_rows, table_rows

V = "hoodie.precommit.validators"
KEYS = {"equality": "equality", "inequality": "inequality", "single": "single.value"}


def checks(**queries: str) -> dict[str, str]:
    classes = [name for name, kind in VALIDATOR_CLASSES.items() if kind in queries]
    return {V: ",".join(classes), **{f"{V}.{KEYS[kind]}.sql.queries": text for kind, text in queries.items()}}


COUNT = "select count(*) from <TABLE_NAME>"


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_queries_see_the_table_before_and_after_the_write(kind: str, version: str, tmp_path: Path) -> None:
    base = mor_options(table_version=version) if kind == "MERGE_ON_READ" else options(table_version=version)
    total = "select sum(ts) from <TABLE_NAME>"
    hf.write(plain_rows(range(4)), tmp_path, {**base, **checks(inequality=COUNT, single=f"{COUNT}#4;{total}#4")})
    hf.write(plain_rows(range(4), ts=2), tmp_path, {**base, **checks(equality=COUNT, single=f"{total}#8")})
    before = table_rows(tmp_path)
    with pytest.raises(hf.ValidationError) as caught:
        hf.write(plain_rows(range(3, 6), ts=3), tmp_path, {**base, **checks(equality=COUNT)})
    text = str(caught.value)
    assert "SqlQueryEqualityPreCommitValidator" in text
    assert f"the query {COUNT!r} has (6,) after the write; expected the rows before the write, (4,)" in text
    assert str(tmp_path) in text
    assert table_rows(tmp_path) == before
    assert_tidy(tmp_path)
    hf.write(plain_rows(range(3, 6), ts=3), tmp_path, {**base, **checks(single=f"{COUNT}#6")})
    assert len(table_rows(tmp_path)) == 6


@pytest.mark.slow("select text from <TABLE_NAME> where id = 'k00001' and text is null-x-0 rows")
@pytest.mark.parametrize(
    ("query", "expected", "found"),
    [
        (COUNT, "5", "'4'"),
        ("select id from <TABLE_NAME>", "x", "4 rows of 1 columns"),
        ("select max(ts), min(ts) from <TABLE_NAME>", "1", "1 rows of 2 columns"),
        ("select text from <TABLE_NAME> where id = 'k00001' and text is null", "x", "0 rows"),
    ],
)
def test_one_value_is_compared_as_text(query: str, expected: str, found: str, tmp_path: Path) -> None:
    with pytest.raises(hf.ValidationError, match=f"SingleResult.*{found}"):
        hf.write(plain_rows(range(4)), tmp_path, {**options(), **checks(single=f"{query}#{expected}")})
    with pytest.raises(hf.TableNotFoundError):
        hf.HudiTable.open(tmp_path)


@pytest.mark.slow("select max(ts) = 1 from <TABLE_NAME>-true")
@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("select max(ts) = 1 from <TABLE_NAME>", "true"),
        ("select cast(sum(ts) as decimal(10, 2)) from <TABLE_NAME>", "4.00"),
        ("select max(text) from <TABLE_NAME>", "a3"),
        ("select avg(ts) from <TABLE_NAME>", "1.0"),
    ],
)
def test_values_are_written_as_java_does(query: str, value: str, tmp_path: Path) -> None:
    hf.write(plain_rows(range(4)), tmp_path, {**options(), **checks(single=f"{query}#{value}")})


def test_replaced_rows_are_gone_after_the_write(tmp_path: Path) -> None:
    hf.write(plain_rows(range(4)), tmp_path, options())
    more = {**options(operation="insert_overwrite_table"), **checks(single=f"{COUNT}#1")}
    hf.write(plain_rows([9]), tmp_path, more)
    assert list(table_rows(tmp_path)) == ["k00009"]


def test_a_new_column_is_there(tmp_path: Path) -> None:
    hf.write(plain_rows(range(4)), tmp_path, options())
    rows = plain_rows(range(4), ts=2).append_column("more", pa.array([1, 2, 3, 4]))
    hf.write(rows, tmp_path, {**options(), **checks(single="select sum(more) from <TABLE_NAME>#10")})


@pytest.mark.slow
def test_changes_and_deletes_are_validated(tmp_path: Path) -> None:
    hf.write(plain_rows(range(4)), tmp_path, options())
    table, more = hf.HudiTable.open(tmp_path), checks(equality=COUNT)
    assert hf.update(None, tmp_path, "id = 'k00001'", {"text": "'x'"}, more).updates == 1
    with pytest.raises(hf.ValidationError):
        table.delete("id = 'k00001'", more)
    assert len(table_rows(tmp_path)) == 4


def test_a_function_sees_both_states(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    def grows(before: ds.Dataset, after: ds.Dataset) -> None:
        seen.append((before.count_rows(), after.count_rows()))
        if seen[-1][0] > seen[-1][1]:
            raise ValueError("the table shrinks")

    more = {"hudi_fast.precommit.validator": grows}
    hf.write(plain_rows(range(4)), tmp_path, {**options(), **more})
    hf.write(plain_rows(range(6), ts=2), tmp_path, {**options(), **more})
    with pytest.raises(hf.ValidationError, match=r"grows refuses the commit .*ValueError: the table shrinks"):
        hf.HudiTable.open(tmp_path).delete("id = 'k00001'", more)
    assert seen == [(0, 4), (4, 6), (6, 5)]
    assert len(table_rows(tmp_path)) == 6


@pytest.mark.parametrize("query", ["select nothing from <TABLE_NAME>", "selec from <TABLE_NAME>"])
def test_a_query_that_cannot_be_answered_rolls_the_write_back(query: str, tmp_path: Path) -> None:
    hf.write(plain_rows(range(4)), tmp_path, options())
    with pytest.raises(hf.ConfigError, match="query"):
        hf.write(plain_rows(range(6), ts=2), tmp_path, {**options(), **checks(equality=query)})
    assert len(table_rows(tmp_path)) == 4
    assert_tidy(tmp_path)


def test_a_missing_duckdb_is_told_before_the_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(hf.ConfigError, match=r"A SQL validator without Spark .*hudi-fast\[sql\]"):
        hf.write(plain_rows(range(4)), tmp_path, {**options(), **checks(equality=COUNT)})
    assert list(tmp_path.iterdir()) == []
