"""The steps of skipping, and columns that have statistics."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow.compute import field

import hudi_fast as hf
from hudi_fast.expressions.arrow_filters import parse_filter
from hudi_fast.expressions.conditions import Column
from hudi_fast.metadata_table.state import open_state
from hudi_fast.reading.scan import ScanQuery, plan_scan
from hudi_fast.reading.skipping import select_files
from hudi_fast.reading.skipping.select_files import SkipReport, SkipRequest, SkipStep, select_slices
from hudi_fast.reading.skipping.stats import column_type
from hudi_fast.storage.base import Storage
from hudi_fast.view.slices import latest_slices
from hudi_fast.view.table_state import table_schema
from tests.support.small_tables import options, plain_rows


def test_a_report_is_a_row_per_step() -> None:
    report = SkipReport(
        (SkipStep("partition path", "partitions", 4, 1), SkipStep("column_stats", "file slices", 3, 2, "x"))
    )
    assert report.to_arrow().to_pylist() == [
        {"index": "partition path", "unit": "partitions", "before": 4, "after": 1, "note": ""},
        {"index": "column_stats", "unit": "file slices", "before": 3, "after": 2, "note": "x"},
    ]
    assert SkipReport().to_arrow().num_rows == 0


def test_slices_that_may_match_are_selected_step_by_step(tmp_path: Path) -> None:
    more = {"hoodie.metadata.index.column.stats.enable": "true", "hoodie.parquet.small.file.limit": "0"}
    for first in (0, 8):
        hf.write(plain_rows(range(first, first + 8)), tmp_path, {**options(operation="insert"), **more})
    state = open_state(Storage(tmp_path))
    schema = table_schema(state)
    assert schema is not None

    def selected(filter_: pa.compute.Expression, use_indexes: bool = True) -> tuple[int, dict[str, int]]:
        request = SkipRequest(state, schema, filter_, parse_filter(filter_), use_indexes=use_indexes)
        found = select_slices(request, lambda path: latest_slices(state.view, path))
        return len(found.slices), {step.index: step.after for step in found.report.steps if not step.note}

    whole, steps = selected((field("part") == "p0") & (field("id") == "k00000"))
    assert whole == 1
    assert steps["partition path"] == 1
    assert steps["column_stats"] == 1
    assert selected((field("part") == "p0") & (field("id") == "k00000"), use_indexes=False)[0] == 2


@pytest.mark.parametrize("few", [0, 64])
@pytest.mark.parametrize(
    ("filter_", "left"),
    [
        (field("part") == "p1", ["p1"]),
        (field("part").isin(["p0", "p2", "p9"]), ["p0", "p2"]),
        (pc.utf8_upper(field("part")) == "P2", ["p2"]),
        ((field("part") > "p0") & (field("id") == "k00001"), ["p1", "p2"]),
        ((field("part") == "p0") | (field("id") == "k00001"), ["p0", "p1", "p2"]),
        (field("id") == "k00001", ["p0", "p1", "p2"]),
        (~(field("part") == "p1"), ["p0", "p2"]),
    ],
    ids=str,
)
def test_few_and_many_partitions_are_left_out_alike(
    filter_: pc.Expression, left: list[str], few: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(select_files, "_FEW_PARTITIONS", few)
    hf.write(plain_rows(range(9), partitions=3), tmp_path, options())
    plan = plan_scan(open_state(Storage(tmp_path)), filter=filter_, query=ScanQuery(use_indexes=False))
    assert [one.partition for one in plan.slices] == left


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("a",), pa.int32()),
        (("s", "b"), pa.string()),
        (("s",), None),
        (("l",), None),
        (("nope",), None),
        (("a", "b"), None),
    ],
)
def test_the_type_of_a_column_is_that_of_a_scalar(path: tuple[str, ...], expected: pa.DataType | None) -> None:
    schema = pa.schema({"a": pa.int32(), "s": pa.struct({"b": pa.string()}), "l": pa.list_(pa.int32())})
    assert column_type(schema, Column(path)) == expected
