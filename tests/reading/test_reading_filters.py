"""A filter on a read gives what the same filter gives on all rows, whatever is left out by paths and statistics."""

from __future__ import annotations

from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings

import hudi_fast as hf
from tests.support.small_tables import options

NAN = float("nan")
ROWS = pa.table(
    {
        "id": [f"k{number}" for number in range(12)],
        "part": ["a", "b", "c", None] * 3,
        "ts": pa.array(range(12), pa.int64()),
        "f": pa.array([1.0, NAN, 3.0, None, -0.0, 0.0, 1.0, NAN, 1.0, float("inf"), None, 2.0]),
        "g": pa.array([0.1] * 11 + [NAN], pa.float32()),
        "s": ["x", "y", None, "", "x", "xx", "é", "z", None, "x", "y", "part"],
        "b": [True, False, None] * 4,
        "d": pa.array([0, 1, -1, None] * 3, pa.int32()).cast(pa.date32()),
        "n": pa.array([{"v": number} for number in range(12)]),
    }
)
LITERALS = {
    "id": ["k0", "k5", "zz"],
    "part": ["a", "c", "zz", ""],
    "ts": [0, 5, 11, 100],
    "f": [0.0, 1.0, 3.0, 5.0, NAN],
    "g": [0.1, 0.0],
    "s": ["x", "", "zz"],
    "d": [0, 1],
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> hf.HudiTable:
    path = tmp_path_factory.mktemp("filters") / "t"
    for start in range(0, 12, 4):  # several files in each partition
        settings_ = {**options(), "hoodie.parquet.small.file.limit": "0"}
        hf.write(ROWS.slice(start, 4), path, settings_)
    return hf.HudiTable.open(path)


@st.composite
def comparisons(draw: st.DrawFn) -> pc.Expression:
    name = draw(st.sampled_from(sorted(LITERALS)))
    column = pc.field(name)
    literal = pa.scalar(draw(st.sampled_from(LITERALS[name])), pa.int32() if name == "d" else None)
    literal = literal.cast(pa.date32()) if name == "d" else literal
    form = draw(st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "null", "valid", "in", "truth"]))
    return {
        "==": lambda: column == literal,
        "!=": lambda: column != literal,
        "<": lambda: column < literal,
        "<=": lambda: column <= literal,
        ">": lambda: column > literal,
        ">=": lambda: column >= literal,
        "null": column.is_null,
        "valid": column.is_valid,
        "in": lambda: column.isin(pa.array([literal.as_py()], ROWS.schema.field(name).type)),
        "truth": lambda: (column < literal) == pc.scalar(False),
    }[form]()


filters = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        inner.map(lambda one: ~one),
        st.tuples(inner, inner).map(lambda two: two[0] & two[1]),
        st.tuples(inner, inner).map(lambda two: two[0] | two[1]),
    ),
    max_leaves=4,
)


@pytest.mark.slow
@settings(suppress_health_check=list(HealthCheck))
@given(filter_=filters, columns=st.sampled_from([None, ["id"], ["s", "id"], ["_hoodie_file_name", "id"]]))
def test_a_filtered_read_is_a_filtered_table(table: hf.HudiTable, filter_: pc.Expression, columns: list | None) -> None:
    wanted = sorted(ROWS.filter(filter_)["id"].to_pylist())
    found = table.to_arrow(columns=columns, filter=filter_)
    assert sorted(found["id"].to_pylist()) == wanted, str(filter_)
    assert sorted(table.to_batches(columns=columns, filter=filter_).read_all()["id"].to_pylist()) == wanted
    assert columns is None or found.column_names == columns


def test_fields_of_structs_can_be_filtered_by(table: hf.HudiTable) -> None:
    found = table.to_arrow(columns=["id"], filter=pc.field("n", "v") >= 10)
    assert sorted(found["id"].to_pylist()) == ["k10", "k11"]


def test_meta_columns_can_be_filtered_by(table: hf.HudiTable) -> None:
    first = table.history()["instant"][0].as_py()
    assert table.to_arrow(filter=pc.field("_hoodie_commit_time") == first).num_rows == 4


def test_partitions_and_files_that_cannot_match_are_not_opened(tmp_path: Path) -> None:
    from hudi_fast.reading.scan import plan_scan, scan_table
    from hudi_fast.view.table_state import load_state
    from tests.support.instrumented_storage import RecordingStorage

    hf.write(ROWS, tmp_path / "t", options())
    storage = RecordingStorage(tmp_path / "t")
    found = scan_table(plan_scan(load_state(storage), ["id"], pc.field("part") == "b"))
    assert sorted(found["id"].to_pylist()) == ["k1", "k5", "k9"]
    opened = {call.path.partition("/")[0] for call in storage.calls if call.name == "open_input"}
    assert opened == {"b", "__HIVE_DEFAULT_PARTITION__"}  # null and the empty text share a folder, so it says nothing


def test_a_filter_that_does_not_fit_the_columns_is_refused(table: hf.HudiTable) -> None:
    with pytest.raises(hf.ConfigError, match="does not fit"):
        table.to_arrow(filter=pc.field("ts") == "text")
    with pytest.raises(hf.ConfigError, match="does not fit"):
        table.to_arrow(filter=pc.field("nope") == 1)
