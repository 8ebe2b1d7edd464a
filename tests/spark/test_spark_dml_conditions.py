"""Updates, deletes and merges change the rows for which Spark says that a generated condition is true.

Each row belongs to one of many conditions; a statement asks all of them, so one job tries them all.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from tests.expressions.test_expressions_comparing import ROWS, TYPES, Texts, answers_of
from tests.spark.sql_sessions import fast

__all__ = ["fast"]

CONDITIONS, ROWS_OF_EACH = 24, 8
W = "hoodie.datasource.write."


class Asked:
    """A table with some rows for each of many conditions, and Spark's answers.

    Attributes:
        path: of the table: partitions ``k``, keys ``id``, a row ``n`` of ``ROWS``, and columns of marks.
        texts: the conditions.
    """

    def __init__(self, spark: Any, path: Path, seed: int, kind: str) -> None:
        self.path, texts, draw = path, Texts(seed), random.Random(seed)
        self.texts = list(dict.fromkeys(texts.condition() for _ in range(CONDITIONS)))
        picks = [(k, n) for k in range(len(self.texts)) for n in sorted(draw.sample(range(len(ROWS)), ROWS_OF_EACH))]
        rows = ROWS.take([n for _, n in picks]).set_column(
            1, "i8", ROWS["i8"].take([n for _, n in picks]).cast("int32")
        )
        rows = rows.append_column("id", pa.array(range(len(picks)), pa.int32()))
        rows = rows.append_column("k", pa.array([k for k, _ in picks], pa.int32()))
        for mark in ("m1", "m2"):
            rows = rows.append_column(mark, pa.array([0] * len(picks), pa.int32()))
        options = {"hoodie.table.name": "t", f"{W}recordkey.field": "id", f"{W}partitionpath.field": "k"}
        stats = {"hoodie.metadata.index.column.stats.enable": "true", f"{W}table.type": kind}
        hf.write(rows, path, {**options, **stats, "hoodie.index.bloom.num_entries": "100"})
        columns = ", ".join(["n int", *(f"{one} {each.replace('tinyint', 'int')}" for one, (_, each) in TYPES.items())])
        answers = answers_of(spark.createDataFrame(ROWS.to_pylist(), columns).coalesce(1), self.texts)
        self.wanted = {at for at, (k, n) in enumerate(picks) if answers[self.texts[k]][n]}
        self.count = len(picks)

    def whole(self, form: str) -> str:
        """All conditions as one."""
        return form.join(f"(k = {k} and ({text}))" for k, text in enumerate(self.texts))

    def clauses(self) -> str:
        """A clause of a merge for each condition."""
        return " ".join(
            f"WHEN MATCHED AND t.k = {k} AND ({text}) THEN UPDATE SET m2 = 1" for k, text in enumerate(self.texts)
        )

    def check(self, column: str) -> None:
        """The rows that are marked are those that Spark chooses."""
        rows = hf.HudiTable.open(self.path).to_arrow(columns=["id", "k", column])
        marked = {row["id"] for row in rows.to_pylist() if row[column]}
        wrong = {self.texts[row["k"]] for row in rows.to_pylist() if row["id"] in marked ^ self.wanted}
        assert not wrong, f"{column}: {wrong}"

    def check_left(self) -> None:
        """The rows that Spark chooses are gone."""
        left = set(hf.HudiTable.open(self.path).to_arrow(columns=["id"]).column("id").to_pylist())
        assert left == set(range(self.count)) - self.wanted


def by_python(spark: Any, asked: Asked) -> None:
    ids = pa.table({"id": pa.array(range(asked.count), pa.int32())})
    source = spark.createDataFrame(ids)
    hf.update(spark, asked.path, asked.whole(" or "), {"m1": 1})
    merge = hf.merge(spark, asked.path, source, aliases=("t", "s")).on("id")
    for k, text in enumerate(asked.texts):
        merge = merge.when_matched_update({"m2": 1}, f"t.k = {k} and ({text})")
    merge.execute()
    asked.check("m1")
    asked.check("m2")
    hf.delete(spark, asked.path, asked.whole(" or "))


def by_sql(spark: Any, asked: Asked) -> None:
    spark.sql(f"CREATE TABLE t USING hudi LOCATION '{asked.path}'")
    spark.sql(f"UPDATE t SET m1 = 1 WHERE {asked.whole(' or ')}")
    source = f"(SELECT cast(id AS int) AS id FROM range({asked.count}))"
    spark.sql(f"MERGE INTO t USING {source} s ON t.id = s.id {asked.clauses()}")
    asked.check("m1")
    asked.check("m2")
    spark.sql(f"DELETE FROM t WHERE {asked.whole(' or ')}")


def in_one_process(spark: Any, asked: Asked) -> None:
    tables = {"t": asked.path, "ids": pa.table({"id": pa.array(range(asked.count), pa.int32())})}
    hf.sql(f"UPDATE t SET m1 = 1 WHERE {asked.whole(' or ')}", tables)
    hf.sql(f"MERGE INTO t USING ids s ON t.id = s.id {asked.clauses()}", tables)
    asked.check("m1")
    asked.check("m2")
    hf.sql(f"DELETE FROM t WHERE {asked.whole(' or ')}", tables)


@pytest.mark.parametrize(
    ("door", "kind"),
    [(by_python, "COPY_ON_WRITE"), (by_sql, "MERGE_ON_READ"), (in_one_process, "MERGE_ON_READ")],
)
def test_the_rows_for_which_spark_says_that_a_condition_is_true_are_changed(
    fast: Any, tmp_path: Path, door: Callable[[Any, Asked], None], kind: str
) -> None:
    with uncompiled(fast):
        asked = Asked(fast, tmp_path / "t", 31, kind)
        door(fast, asked)
        asked.check_left()


@contextmanager
def uncompiled(spark: Any) -> Iterator[None]:
    """Spark computes without compiling, which takes a minute for so many conditions."""
    names = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in names:
            spark.conf.unset(name)
