"""NaN in what is written: Parquet has no bounds where it is, in the metadata table infinity stands for it."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from hudi_fast.formats.log.blocks import BlockType, read_content, scan_log_blocks
from hudi_fast.metadata_table.read import scan
from hudi_fast.metadata_table.table import open_metadata
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from tests.support.mor_tables import mor_options
from tests.support.small_tables import options

NAN = math.nan
STATS = {"hoodie.metadata.index.column.stats.enable": "true"}


def rows(numbers: list[int], values: list[float | None], ts: int = 1) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{number:02d}" for number in numbers],
            "part": ["p"] * len(numbers),
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "ratio": pa.array(values, pa.float64()),
            "whole": pa.array([float(number) for number in numbers], pa.float32()),
        }
    )


def bounds_in(file: Any) -> dict[str, list[tuple[Any, Any, int] | None]]:
    """Bounds and nulls of both columns in each row group of a Parquet file."""
    metadata = pq.read_metadata(file)
    found: dict[str, list[tuple[Any, Any, int] | None]] = {"ratio": [], "whole": []}
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            if chunk.path_in_schema in found:
                said = chunk.statistics
                assert said.has_null_count
                bounds = (said.min, said.max, said.null_count) if said.has_min_max else None
                found[chunk.path_in_schema].append(bounds)
    return found


def newest(path: Path) -> Path:
    return max((path / "p").glob("*.parquet"), key=lambda file: file.name.rpartition("_")[2])


def told(path: Path) -> dict[tuple[str, str], tuple[float, float]]:
    """Bounds of ``ratio`` and ``whole`` in the metadata table, by file."""
    storage = Storage(path)
    state = load_state(storage)
    table = open_metadata(storage, state.config, state.timeline)
    assert table is not None
    return {
        (row["file_name"], row["column_name"]): tuple(
            next(one["value"] for one in row[bound].values() if one is not None) for bound in ("min", "max")
        )
        for row in scan(table, "column_stats").to_pylist()
        if row["column_name"] in ("ratio", "whole") and not row["deleted"]
    }


def test_a_value_that_becomes_nan_and_a_number_again(tmp_path: Path) -> None:
    hf.write(rows([1, 2, 3], [1.0, 2.0, None]), tmp_path, {**options(), **STATS})
    assert bounds_in(newest(tmp_path)) == {"ratio": [(1.0, 2.0, 1)], "whole": [(1.0, 3.0, 0)]}
    hf.write(rows([2], [NAN], ts=2), tmp_path, {**options(), **STATS})
    assert bounds_in(newest(tmp_path)) == {"ratio": [None], "whole": [(1.0, 3.0, 0)]}
    assert told(tmp_path)[newest(tmp_path).name, "ratio"] == (1.0, math.inf)
    assert told(tmp_path)[newest(tmp_path).name, "whole"] == (1.0, 3.0)
    hf.write(rows([4], [-1.0], ts=3), tmp_path, {**options(), **STATS})  # NaN is carried over
    assert bounds_in(newest(tmp_path))["ratio"] == [None]
    hf.write(rows([2], [7.0], ts=4), tmp_path, {**options(), **STATS})
    assert bounds_in(newest(tmp_path))["ratio"] == [(-1.0, 7.0, 1)]
    assert told(tmp_path)[newest(tmp_path).name, "ratio"] == (-1.0, 7.0)


def test_statistics_built_from_files_are_those_that_writers_noted(tmp_path: Path) -> None:
    hf.write(rows([1, 2, 3], [1.0, NAN, None]), tmp_path, {**options(), **STATS})
    hf.write(rows([2, 4], [3.0, NAN], ts=2), tmp_path, {**options(), **STATS})
    noted = told(tmp_path)
    table = hf.HudiTable.open(tmp_path)
    assert len(noted) == 4
    table.services.drop_index("column_stats")
    table.services.index("column_stats")
    assert str(sorted(told(tmp_path).items())) == str(sorted(noted.items()))


@pytest.mark.slow("True")
@pytest.mark.parametrize("compacted", [False, True])
def test_parquet_in_logs_and_compacted_files(compacted: bool, tmp_path: Path) -> None:
    settings = mor_options({"hoodie.logfile.data.block.format": "parquet", **STATS})
    hf.write(rows([1, 2, 3], [1.0, 2.0, None]), tmp_path, settings)
    hf.write(rows([2, 3], [NAN, 5.0], ts=2), tmp_path, settings)
    if compacted:
        hf.HudiTable.open(tmp_path).services.compact()
        assert bounds_in(newest(tmp_path)) == {"ratio": [None], "whole": [(1.0, 3.0, 0)]}
    storage = Storage(tmp_path)
    (log,) = [one.path for one in storage.list_dir("p") if ".log." in one.path]
    (block,) = [one for one in scan_log_blocks(storage, log) if one.kind is BlockType.PARQUET_DATA]
    content = bytes(read_content(storage, block))
    assert bounds_in(io.BytesIO(content)) == {"ratio": [None], "whole": [(2.0, 3.0, 0)]}
    table = hf.HudiTable.open(tmp_path)
    assert table.to_arrow(filter=pc.field("ratio").is_nan())["id"].to_pylist() == ["k02"]
    assert sorted(table.to_arrow(filter=pc.field("ratio") > 0)["id"].to_pylist()) == ["k01", "k03"]
    assert sorted(table.to_arrow(filter=~(pc.field("ratio") < 4))["id"].to_pylist()) == ["k02", "k03"]
