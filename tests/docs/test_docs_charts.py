"""The charts of the site show the numbers of the tables on the page of benchmarks."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = """Before.

<!-- speed:begin -->
| work | codec | Apache Hudi | hudi_fast, one process | |
|---|---|---|---|---|
| load <of> rows | zstd | 14.50 s (14.00–20.00), 2,119 MB | 2.0 s (1.5–3.0), 994 MB | **7.2 x** |
| snapshot | zstd | - | 1.0 s (1.0–1.0), 100 MB | - |
<!-- speed:end -->

After.
"""


@pytest.fixture(scope="module")
def charts() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_charts", DOCS / "site_charts.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_table_becomes_bars_medians_and_the_whole_table(charts: ModuleType) -> None:
    shown = charts.with_charts(PAGE)
    assert shown.startswith("Before.")
    assert shown.endswith("After.\n")
    assert "load &lt;of&gt; rows" in shown
    assert re.findall(r'bars-bar (\S+)" style="width:([\d.]+)%', shown) == [
        ("bars-other", "72.5"),
        ("bars-ours", "10.0"),
        ("bars-ours", "100.0"),
    ]
    assert 'title="14.5 s, from 14 to 20 s"' in shown
    assert "| load <of> rows | 14.50 s | 2.0 s | **7.2 x** |" in shown
    assert "    | load <of> rows | zstd | 14.50 s (14.00–20.00), 2,119 MB |" in shown


def test_the_range_of_the_runs_is_a_line_on_the_bar(charts: ModuleType) -> None:
    lines = re.findall(r'bars-range" style="left:([\d.]+)%;width:([\d.]+)%', charts.with_charts(PAGE))
    assert lines == [("70.0", "30.0"), ("7.5", "7.5"), ("100.0", "0.4")]


def test_every_chart_of_a_page_names_rows_that_exist(charts: ModuleType) -> None:
    tables = charts.tables_of((DOCS / "benchmarks.md").read_text(encoding="utf-8"))
    assert {"speed", "speed-mor", "others", "others-spark"} <= tables.keys()
    assert all(table.bars_of(row) for table in tables.values() for row in table.rows)
    named = [found for page in DOCS.rglob("*.md") for found in charts.WANTED.finditer(page.read_text(encoding="utf-8"))]
    assert len(named) >= 3
    for found in named:
        assert "bars-row" in charts.with_charts(found.group())
