"""Tables with timestamps under a wrong label: read, filtered, written to, compacted, clustered.

Real Hudi answers for the same kind of tables in :mod:`tests.interop.test_interop_mislabelled`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from tests.support.foreign import needs_foreign, unzip_foreign
from tests.support.mislabelled_tables import (
    MILLIS,
    PAIRS,
    UTC_MS,
    UTC_US,
    asked,
    column_name,
    counts,
    labelled_rows,
    moments,
    retype,
    table_of,
    typed,
)

BLOCKS = "hoodie__logfile__data__block__format"
TABLES = [
    pytest.param("COPY_ON_WRITE", 9, None, id="cow-9"),
    pytest.param("COPY_ON_WRITE", 6, None, id="cow-6"),
    pytest.param("MERGE_ON_READ", 9, "avro", id="mor-9-avro"),
    pytest.param("MERGE_ON_READ", 9, "parquet", id="mor-9-parquet"),
    pytest.param("MERGE_ON_READ", 8, "avro", id="mor-8-avro"),
    pytest.param("MERGE_ON_READ", 6, "parquet", id="mor-6-parquet"),
    pytest.param("MERGE_ON_READ", 6, "hfile", id="mor-6-hfile"),
]
OPERATION = "hoodie.datasource.write.operation"
BULK = {OPERATION: "bulk_insert"}
Numbers = dict[str, dict[str, int | None]]


def make(path: Path, kind: str, version: int, blocks: str | None, pairs: Any = PAIRS, **more: Any) -> dict[str, Any]:
    """A table of the rows k0 to k9 under the labels of a file; logs have new values of k2 to k5. Returns options."""
    options = asked(kind, version, **more) | ({} if blocks is None else {BLOCKS.replace("__", "."): blocks})
    hf.write(labelled_rows(range(10), pairs, 0, 1), path, options | BULK)
    if blocks is not None:
        hf.write(labelled_rows(range(2, 6), pairs, 0, 2, MILLIS + 500_000), path, options)
    retype(path, typed(labelled_rows([0], pairs, 1, 1)))
    return options


def expected(blocks: str | None, pairs: Any = PAIRS) -> Numbers:
    found: Numbers = {}
    for n in range(10):
        start = MILLIS + (500_000 if blocks is not None and 2 <= n < 6 else 0)
        number = None if n % 5 == 4 else start + 1000 * n
        found[f"k{n}"] = {column_name(*pair): counts(pair, number) for pair in pairs}
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "version", "blocks"), TABLES)
def test_old_files_are_read_by_the_tables_types(kind: str, version: int, blocks: str | None, tmp_path: Path) -> None:
    options = make(tmp_path / "t", kind, version, blocks)
    table, right = table_of(tmp_path / "t"), expected(blocks)
    assert moments(table.to_arrow(), PAIRS) == right
    # New rows, updates and deletes; what is kept of old files is written with the right types.
    new = labelled_rows([1, 6, 11], PAIRS, 1, 3, MILLIS + 700_000)
    hf.write(new, tmp_path / "t", options)
    hf.write(labelled_rows([7], PAIRS, 1, 4), tmp_path / "t", options | {OPERATION: "delete"})
    del right["k7"]
    for n in (1, 6, 11):
        right[f"k{n}"] = {column_name(*pair): MILLIS + 700_000 + 1000 * n for pair in PAIRS}
    assert moments(table.to_arrow(), PAIRS) == right
    if kind == "MERGE_ON_READ":
        table.services.compact()
        assert moments(table.to_arrow(query_type="read_optimized"), PAIRS) == right
    table.services.cluster()
    assert moments(table.to_arrow(), PAIRS) == right
    for file in table.files().to_pylist():
        schema = pq.read_schema(tmp_path / "t" / file["partition"] / file["base_file"])
        for pair in PAIRS:
            assert schema.field(column_name(*pair)).type == pair[1], file


WRONG = [(UTC_US, UTC_MS), (pa.int64(), pa.timestamp("ms")), (UTC_MS, UTC_US)]
INDEXED = {
    "hoodie__metadata__enable": True,
    "hoodie__metadata__index__column__stats__enable": True,
    "hoodie__metadata__index__partition__stats__enable": True,
}


@pytest.mark.slow
@pytest.mark.long("mor-9-parquet", "mor-8-avro", "cow-6")
@pytest.mark.parametrize(("kind", "version", "blocks"), TABLES)
def test_filters_find_rows_by_the_tables_types(kind: str, version: int, blocks: str | None, tmp_path: Path) -> None:
    make(tmp_path / "t", kind, version, blocks, WRONG, **INDEXED)
    table, right = table_of(tmp_path / "t"), expected(blocks, WRONG)
    for pair in WRONG:
        name = column_name(*pair)
        for key, row in right.items():
            if row[name] is None:
                continue
            value = pa.scalar(row[name], pa.int64()).cast(pair[1])
            for condition in (pc.field(name) == value, pc.field(name) >= value, pc.field(name) <= value):
                found = set(table.to_arrow(["id"], condition)["id"].to_pylist())
                assert key in found, (name, key, condition)


@pytest.mark.slow
def test_statistics_that_are_built_later_have_the_tables_unit(tmp_path: Path) -> None:
    make(tmp_path / "t", "COPY_ON_WRITE", 9, None, WRONG)
    table, name = table_of(tmp_path / "t"), column_name(UTC_US, UTC_MS)
    options = asked("COPY_ON_WRITE", 9, **INDEXED)
    hf.write(labelled_rows([20], WRONG, 1, 1, MILLIS + 86_400_000), tmp_path / "t", options)
    first = pa.scalar(MILLIS, pa.int64()).cast(UTC_MS)
    assert set(table.to_arrow(["id"], pc.field(name) == first)["id"].to_pylist()) == {"k0"}
    steps = table.explain(pc.field(name) < first).to_pylist()
    assert min(step["after"] for step in steps if step["index"] in ("column_stats", "partition_stats")) == 0
    assert table.to_arrow(["id"], pc.field(name) < first).num_rows == 0


# ---- tables of Apache Hudi, with its answers

LABELLED = [
    *(f"hudi-spark__trips_logical_types_json_cow_read_v{version}" for version in (6, 8, 9)),
    *(f"hudi-spark__trips_logical_types_json_mor_read_v{version}" for version in (6, 8, 9)),
    *(f"hudi-spark__trips_logical_types_json_mor_read_v{version}_parquet_log" for version in (6, 8, 9)),
    "hudi-utilities__trips_logical_types_json_cow_write",
    "hudi-utilities__trips_logical_types_json_mor_write_avro_log",
    "hudi-utilities__trips_logical_types_json_mor_write_parquet_log",
]
TIMES = ["ts_millis", "ts_micros", "local_ts_millis", "local_ts_micros"]


def like(rows: pa.Table, answer: pa.Table) -> list[dict[str, Any]]:
    """Rows with the columns and types of Hudi's answer, whose timestamps are in UTC and have no zone."""
    columns = []
    for field in answer.schema:
        values = rows[field.name]
        if pa.types.is_timestamp(field.type) and values.type.tz is not None:
            values = values.cast(pa.timestamp(values.type.unit, "UTC")).cast(pa.timestamp("us", "UTC"))
            values = values.cast(pa.int64()).cast(pa.timestamp("us"))
        columns.append(values.cast(field.type))
    found = pa.table(columns, names=answer.column_names)
    return list(found.sort_by([("_row_key", "ascending"), ("_hoodie_commit_time", "ascending")]).to_pylist())


@pytest.mark.slow
@needs_foreign
@pytest.mark.parametrize("name", LABELLED)
def test_tables_of_hudi_give_its_answers(name: str, tmp_path: Path) -> None:
    table = unzip_foreign(name, tmp_path)
    assert {"snapshot", "read_optimized", "incremental"} <= set(table.queries)
    for query in table.queries:
        answer = table.answer(query)
        assert like(table.read(query), answer) == like(answer, answer), query
