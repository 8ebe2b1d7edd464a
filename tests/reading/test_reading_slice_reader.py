"""Which files a filtered read opens a second time, to ask for the bounds of their row groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.reading.prune import matching_row_groups

COUNTS = {"little": 10, "large": 20_000}


@pytest.mark.slow("copy_on_write")
@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read"])
def test_only_files_with_much_to_skip_are_asked_for_bounds(
    kind: Literal["copy_on_write", "merge_on_read"], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [part for part, count in COUNTS.items() for _ in range(count)]
    rows = pa.table({"id": range(len(parts)), "part": parts, "n": [at * 7 % 1000 for at in range(len(parts))]})
    hf.write(rows, tmp_path, key="id", partition_by="part", table_type=kind)
    asked: list[str] = []

    def recorded(storage: Any, path: str, *others: Any) -> list[int] | None:
        asked.append(path.partition("/")[0])
        return matching_row_groups(storage, path, *others)

    monkeypatch.setattr("hudi_fast.reading.slice_reader.matching_row_groups", recorded)
    found = hf.HudiTable(tmp_path).to_arrow(filter="n >= 50 and n < 60").select(rows.column_names).sort_by("id")
    assert found == rows.filter((pc.field("n") >= 50) & (pc.field("n") < 60)).cast(found.schema)
    assert set(found["part"].to_pylist()) == {"little", "large"}
    assert asked == ["large"]
