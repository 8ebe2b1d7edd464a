"""Tables of other projects beside the checkout, with the answers of real Hudi; no test fails where they are absent.

``../shared/golden/foreign/README.md`` says where they come from.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf

__all__ = [
    "OTHER_COLUMNS",
    "Foreign",
    "filters_of_values",
    "foreign_names",
    "foreign_params",
    "needs_foreign",
    "unzip_foreign",
]

FOLDER = Path(__file__).parents[3] / "shared" / "golden" / "foreign"

OTHER_COLUMNS = {
    "hudi-trino__hudi_multi_pt_v8_mor": {
        "part_timestamp": "the folder has whole seconds; hudi_fast shows the stored value, which has milliseconds"
    },
}
"""Columns that hudi_fast shows in another way, and why."""

needs_foreign = pytest.mark.skipif(not FOLDER.is_dir(), reason="needs the tables of other projects beside the checkout")


@dataclass(frozen=True, slots=True)
class Foreign:
    """One of them.

    Attributes:
        table: its folder, which the test may change.
        answers: the folder of real Hudi's answers, one Parquet file a query.
    """

    name: str
    table: Path
    answers: Path

    @property
    def queries(self) -> list[str]:
        """The queries that real Hudi answers: ``snapshot``, ``read_optimized``, ``incremental``, ``asof_<instant>``."""
        return sorted(file.stem for file in self.answers.glob("*.parquet"))

    @property
    def facts(self) -> dict[str, Any]:
        """What is right, in words; empty for most."""
        file = self.answers / "facts.json"
        return dict(json.loads(file.read_text())) if file.exists() else {}

    def answer(self, query: str) -> pa.Table:
        """Rows of a query."""
        return pq.read_table(self.answers / f"{query}.parquet", partitioning=None).replace_schema_metadata(None)

    def read(self, query: str) -> pa.Table:
        """Rows that hudi_fast reads for a query of :attr:`queries`."""
        opened = hf.HudiTable.open(self.table)
        if query == "incremental":
            return opened.incremental("000")
        if query.startswith("asof_"):
            return opened.to_arrow(as_of=query.removeprefix("asof_"))
        return opened.to_arrow(query_type=query)  # type: ignore[arg-type]


def filters_of_values(rows: pa.Table) -> Iterator[pc.Expression]:
    """For each plain column: null, one of its values, not that value."""
    for name in rows.column_names:
        kind, column = rows.schema.field(name).type, pc.field(name)
        if pa.types.is_nested(kind) or pa.types.is_binary(kind):
            continue
        yield column.is_null()
        values = pc.unique(rows[name]).drop_null()
        if len(values):
            value = pc.scalar(values[len(values) // 2])
            yield column == value
            yield ~(column <= value)


def foreign_names() -> list[str]:
    """Names of the tables; none where the folder is absent."""
    return sorted(path.stem for path in FOLDER.glob("*.zip"))


def foreign_params(names: list[str], failing: dict[str, str]) -> list[Any]:
    """The names as parameters; those that fail for a known reason are expected to."""
    return [
        pytest.param(name, marks=pytest.mark.xfail(reason=failing[name], strict=True)) if name in failing else name
        for name in names
    ]


def unzip_foreign(name: str, folder: Path) -> Foreign:
    """Unzip a table into a new folder below ``folder``."""
    target = folder / name
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as archive:
        archive.extractall(target)
    return Foreign(name, target / "table", target / "answers")
