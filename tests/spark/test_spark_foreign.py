"""Tables of other projects on Spark: ``hf.read`` and ``format("hudi")`` have the rows that real Apache Hudi answers.

Modules: hudi_fast.spark.reading.native_scan, hudi_fast.spark_api.dropin.tables.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.spark.arrow import collect
from tests.support.foreign import OTHER_COLUMNS, Foreign, foreign_names, unzip_foreign
from tests.support.rows import assert_same_rows

TYPE = "hoodie.datasource.query.type"


@pytest.fixture(scope="module")
def fast(spark: Any) -> Any:
    """A session of its own, switched on."""
    session = spark.newSession()
    hf.accelerate(session)
    return session


def asked(table: Foreign) -> dict[str, dict[str, str]]:
    """Options of the queries; of those back in time, the one in the middle."""
    found = {query: {TYPE: query} for query in table.queries if not query.startswith("asof_")}
    if "incremental" in found:
        found["incremental"]["hoodie.datasource.read.begin.instanttime"] = "000"
    past = [query for query in table.queries if query.startswith("asof_")]
    for query in past[len(past) // 2 :][:1]:
        found[query] = {"as.of.instant": query.removeprefix("asof_")}
    return found


@pytest.mark.filterwarnings("ignore:.*:hudi_fast.HudiWarning")
@pytest.mark.parametrize(
    "name",  # the tables of a project are neighbours, and much alike to Spark; a process of its own reads them all
    [pytest.param(name, marks=pytest.mark.long) if number % 2 else name for number, name in enumerate(foreign_names())],
)
def test_every_query_has_the_rows_that_apache_hudi_answers(name: str, fast: Any, tmp_path: Path) -> None:
    table, others = unzip_foreign(name, tmp_path), tuple(OTHER_COLUMNS.get(name, ()))
    for query, options in asked(table).items():
        wanted = table.answer(query)
        frame = fast.read.format("hudi").options(**options).load(str(table.table))
        assert sorted(frame.columns) == sorted(wanted.column_names), query
        assert_same_rows(collect(frame), wanted, ignore=others)
        assert hf.read(fast, table.table, options).schema == frame.schema, query
        if query == "snapshot":
            assert_same_rows(collect(hf.read(fast, table.table)), wanted, ignore=others)
