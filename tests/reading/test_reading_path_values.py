"""A row whose stored partition column differs from its path has the value of the path: shown, filtered, changed.

Modules: hudi_fast.reading.prune, hudi_fast.reading.slice_reader, hudi_fast.reading.skipping.select_files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from tests.support.kept_rows import FILTERS, KINDS, ROWS, Row, kept_options, rows_matching, write_kept_rows

EVERY = pytest.mark.parametrize(("kind", "version"), KINDS)
FROM_PATH = {"hoodie.datasource.read.extract.partition.values.from.path": "true"}


def listed(rows: pa.Table) -> list[Row]:
    return sorted((row["id"], row["part"], row["number"]) for row in rows.to_pylist())


def stored_parts(path: Path) -> set[str]:
    """The values in base files."""
    files = list(path.glob("p*/*.parquet"))
    return {value for file in files for value in pq.ParquetFile(file).read(["part"])["part"].to_pylist()}


@pytest.mark.slow
@EVERY
def test_every_query_has_the_values_of_paths(kind: str, version: int, tmp_path: Path) -> None:
    table = write_kept_rows(tmp_path, kind, version)
    assert ("p7" in stored_parts(tmp_path)) == (kind == "COPY_ON_WRITE")
    newest = table.history()["instant"].to_pylist()[-1]
    queries: dict[str, Any] = {
        "snapshot": table.to_arrow(),
        "time travel": table.to_arrow(as_of=newest),
        "incremental": table.incremental("earliest"),
        "columns": table.to_arrow(["id", "number", "part"]),
        "stream": table.to_batches().read_all(),
        "option": hf.read(tmp_path, options=FROM_PATH),
    }
    assert {name: listed(rows) for name, rows in queries.items()} == dict.fromkeys(queries, ROWS)
    assert sorted(table.to_arrow(["part"])["part"].to_pylist()) == ["p0"] * 3 + ["p1"] * 3
    if kind == "MERGE_ON_READ":
        table.services.compact(kept_options(kind, version))
        assert "p7" in stored_parts(tmp_path)
        assert listed(table.to_arrow()) == ROWS


@pytest.mark.slow
@EVERY
def test_every_filter_is_about_the_values_of_paths(kind: str, version: int, tmp_path: Path) -> None:
    table = write_kept_rows(tmp_path, kind, version)
    if (kind, version) == ("MERGE_ON_READ", 9):
        table.services.compact(kept_options(kind, version))
    found = {text: listed(table.to_arrow(filter=text)) for text in FILTERS}
    assert found == {text: rows_matching(text) for text in FILTERS}
    assert {text: table.count(filter=text) for text in FILTERS} == {text: len(rows) for text, rows in found.items()}
    assert {text: listed(table.incremental("earliest", filter=text)) for text in FILTERS} == found
    assert {text: listed(hf.read(tmp_path, filter=text, options=FROM_PATH)) for text in FILTERS} == found


@pytest.mark.slow
@pytest.mark.parametrize("text", ["part = 'p0' and number >= 10", "part <> 'p0'", "part = 'p7'"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_changes_by_condition_are_about_the_values_of_paths(kind: str, text: str, tmp_path: Path) -> None:
    table, options = write_kept_rows(tmp_path, kind, 9), kept_options(kind, 9)
    hf.update(table.path, text, {"number": "number + 100"}, options)
    chosen = rows_matching(text)
    changed = [(key, part, number + 100 * ((key, part, number) in chosen)) for key, part, number in ROWS]
    assert listed(table.to_arrow()) == changed
    hf.delete(table.path, text.replace("number >= 10", "number >= 110"), options=options)
    assert listed(table.to_arrow()) == [row for row in changed if row[2] < 100]


@pytest.mark.slow
def test_an_index_of_the_partition_column_is_not_asked_for_values_of_paths(tmp_path: Path) -> None:
    more = {"hoodie.metadata.global.record.level.index.enable": "true"}
    more |= {"hoodie.metadata.index.secondary.column": "part", "hoodie.index.name": "by_part"}
    table = write_kept_rows(tmp_path, "COPY_ON_WRITE", 9, **more)
    found = {text: listed(table.to_arrow(filter=text)) for text in FILTERS}
    assert found == {text: rows_matching(text) for text in FILTERS}
