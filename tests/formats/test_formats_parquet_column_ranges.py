"""Column ranges: the footer, the rows and plain Python agree; bounds bound, whatever the values."""

from __future__ import annotations

import math
import pickle
import re
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.formats.parquet.base_file import open_base_file
from hudi_fast.formats.parquet.column_ranges import (
    ColumnRange,
    merge_ranges,
    ranges_of_file,
    ranges_of_footer,
    ranges_of_rows,
    with_nans,
)
from hudi_fast.formats.parquet.leaf_columns import leaf_columns, nan_columns
from hudi_fast.storage.base import Storage

NAN = float("nan")
ROWS = pa.table(
    {
        "i": pa.array([3, -1, None, 7], pa.int32()),
        "b": pa.array([True, None, False, True]),
        "f": pa.array([1.5, NAN, -2.0, None], pa.float32()),
        "small": pa.array([Decimal("1.25"), None, Decimal("-7.50"), Decimal("0")], pa.decimal128(10, 2)),
        "big": pa.array([Decimal("1e20"), None, Decimal("-99999999999999999999.9"), Decimal(0)], pa.decimal128(23, 1)),
        "t": pa.array([datetime(2020, 1, 1), datetime(1969, 1, 1), None, None], pa.timestamp("us", "UTC")),
        "d": pa.array([date(2020, 1, 1), date(1969, 1, 1), None, None]),
        "s": ["b", "ä", None, "Z"],
        "y": pa.array([b"\xff", b"", None, b"a"], pa.binary()),
        "fixed": pa.array([b"ab", b"\xff\x00", None, None], pa.binary(2)),
        "none": pa.nulls(4, pa.int64()),
        "o": pa.array([{"a": 1, "p": {"q": "x"}}, None, {"a": None, "p": None}, {"a": 5, "p": {"q": "b"}}]),
        "l": pa.array([[3, 1], [], None, [2]]),
        "m": pa.array([[("k", 1)], [], None, [("a", 9)]], pa.map_(pa.string(), pa.int64())),
    }
)
EXPECTED = {
    "i": (-1, 7, 1),
    "b": (False, True, 1),
    "f": (-2.0, NAN, 1),
    "small": (Decimal("-7.50"), Decimal("1.25"), 1),
    "big": (Decimal("-99999999999999999999.9"), Decimal("1e20"), 1),
    "s": ("Z", "ä", 1),
    "y": (b"", b"\xff", 1),
    "fixed": (b"ab", b"\xff\x00", 2),
    "none": (None, None, 4),
    "o.a": (1, 5, 2),
    "o.p.q": ("b", "x", 2),
    "l.list.element": (1, 3, 0),
    "m.key_value.key": ("a", "k", 0),
    "m.key_value.value": (1, 9, 0),
}


def plain(one: ColumnRange) -> tuple[Any, Any, int]:
    low, high = (None if bound is None else bound.as_py() for bound in (one.low, one.high))
    return low, high, one.null_count


def same(left: Any, right: Any) -> bool:
    both_nan = isinstance(left, float) and isinstance(right, float) and math.isnan(left) and math.isnan(right)
    return both_nan or left == right


def write(path: Path, rows: pa.Table, rows_of_a_group: int = 2) -> Storage:
    pq.write_table(rows, path / "f.parquet", row_group_size=rows_of_a_group, store_schema=False)
    return Storage(path)


@pytest.mark.parametrize("name", EXPECTED)
def test_rows_of_every_type_have_the_ranges_that_one_would_say(name: str) -> None:
    found = plain(ranges_of_rows(ROWS)[name])
    assert all(same(left, right) for left, right in zip(found, EXPECTED[name], strict=True)), found


def test_a_file_has_the_ranges_of_its_rows_and_sizes_of_its_footer(tmp_path: Path) -> None:
    with open_base_file(write(tmp_path, ROWS), "f.parquet") as reader:
        found = ranges_of_file(reader)
        metadata = reader.metadata
    assert list(found) == list(leaf_columns(ROWS.schema))
    for name, one in ranges_of_rows(ROWS).items():
        assert all(same(left, right) for left, right in zip(plain(found[name])[:2], plain(one)[:2], strict=True)), name
    assert (found["i"].null_count, found["i"].value_count) == (1, 4)
    chunks = [metadata.row_group(group).column(0) for group in range(2)]
    assert found["i"].total_size == sum(one.total_compressed_size for one in chunks) > 0
    assert found["i"].total_uncompressed_size == sum(one.total_uncompressed_size for one in chunks)


def test_only_columns_that_are_asked_for_and_there_are_looked_at(tmp_path: Path) -> None:
    with open_base_file(write(tmp_path, ROWS), "f.parquet") as reader:
        assert list(ranges_of_file(reader, ["o.a", "absent", "i"])) == ["i", "o.a"]
    assert set(ranges_of_rows(ROWS, ["i", "absent"])) == {"i"}


def test_a_footer_is_told_of_nan(tmp_path: Path) -> None:
    rows = pa.table({"f": [1.0, NAN], "all": pa.array([NAN, NAN], pa.float32()), "g": [1.0, 2.0]})
    metadata = pq.read_metadata(write(tmp_path, rows).fs_path("f.parquet"))
    names = nan_columns(rows)
    assert names == {"f", "all"}
    told = with_nans(ranges_of_footer(metadata, rows.schema), names, rows.schema)
    assert plain(told["f"])[0] == 1.0
    assert math.isnan(plain(told["f"])[1])
    assert all(math.isnan(bound) for bound in plain(told["all"])[:2])
    assert told["all"].low.type == pa.float32()
    assert plain(told["g"]) == (1.0, 2.0, 0)


def test_nan_is_found_in_files_whose_footers_leave_it_out(tmp_path: Path) -> None:
    with open_base_file(write(tmp_path, pa.table({"f": [1.0, NAN, 3.0]}), 1), "f.parquet") as reader:
        assert math.isnan(plain(ranges_of_file(reader)["f"])[1])


@pytest.mark.parametrize("value", ["x" * 5000, "\U0010ffff" * 5000, "é" * 5000, "a" + "\ud7ff" * 5000])
def test_long_texts_are_bounded_by_short_ones(value: str, tmp_path: Path) -> None:
    rows = pa.table({"s": ["m", value]})
    with open_base_file(write(tmp_path, rows), "f.parquet") as reader:
        one = ranges_of_file(reader)["s"]
    if value[0] == "\U0010ffff":
        assert not one.is_known  # no text is larger
        return
    low, high, _ = plain(one)
    assert low.encode() <= min(b"m", value.encode())
    assert high.encode() >= max(b"m", value.encode())
    assert len(high) <= 1024


def test_a_file_without_rows_has_columns_without_values(tmp_path: Path) -> None:
    with open_base_file(write(tmp_path, ROWS.slice(0, 0)), "f.parquet") as reader:
        one = ranges_of_file(reader)["i"]
    assert (*plain(one), one.value_count) == (None, None, 0, 0)
    assert one.is_known


def test_a_bound_that_one_file_does_not_know_is_unknown() -> None:
    known = ranges_of_rows(pa.table({"a": [1, 2]}))
    silent = {"a": ColumnRange(None, None, 0, 5, 10, 20)}
    nulls = ranges_of_rows(pa.table({"a": pa.nulls(3, pa.int64())}))
    assert merge_ranges([known, silent])["a"] == ColumnRange(None, None, 0, 7, 10, 20)
    assert plain(merge_ranges([known, nulls])["a"]) == (1, 2, 3)


VALUES = st.one_of(
    st.lists(st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1))).map(lambda found: pa.array(found, pa.int32())),
    st.lists(st.one_of(st.none(), st.floats())).map(lambda found: pa.array(found, pa.float64())),
    st.lists(st.one_of(st.none(), st.text())).map(lambda found: pa.array(found, pa.string())),
    st.lists(st.one_of(st.none(), st.binary())).map(lambda found: pa.array(found, pa.binary())),
    st.lists(st.one_of(st.none(), st.dates())).map(lambda found: pa.array(found, pa.date32())),
)


def obvious(values: pa.Array) -> tuple[Any, Any, int]:
    known = [one for one in values.to_pylist() if one is not None]
    numbers = [one for one in known if one == one]

    def order(one: Any) -> Any:
        return one.encode() if isinstance(one, str) else one

    low = min(numbers, key=order) if numbers else (NAN if known else None)
    high = NAN if len(numbers) < len(known) else max(numbers, key=order, default=None)
    return low, high, len(values) - len(known)


@given(VALUES, st.integers(0, 5))
def test_ranges_in_parts_are_those_of_the_whole(values: pa.Array, cut: int) -> None:
    parts = [ranges_of_rows(pa.table({"c": part})) for part in (values[:cut], values[cut:])]
    for ranges in (merge_ranges(parts), ranges_of_rows(pa.table({"c": values}))):
        found = plain(pickle.loads(pickle.dumps(ranges))["c"])
        assert all(same(left, right) for left, right in zip(found, obvious(values), strict=True)), found


def test_a_bound_with_more_digits_than_the_column_is_unknown(tmp_path: Path) -> None:
    values = pa.array([Decimal("1.5"), Decimal("2.5")], pa.decimal128(20, 1))
    pq.write_table(pa.table({"a": values}), tmp_path / "a.parquet")
    raw = (tmp_path / "a.parquet").read_bytes()
    start = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    footer = raw[start:].replace((25).to_bytes(9, "big"), (2**70).to_bytes(9, "big"))
    (tmp_path / "a.parquet").write_bytes(raw[:start] + footer)
    with open_base_file(Storage(str(tmp_path)), "a.parquet") as reader:
        found = ranges_of_footer(reader.metadata, reader.schema)["a"]
    assert (found.low, found.high, found.value_count) == (None, None, 2)


def test_bounds_that_arrow_rs_cuts_short_are_those_of_the_rows(tmp_path: Path) -> None:
    """It cuts bounds of bytes of a fixed length after 64 bytes; pyarrow 26 ends the process when asked for them."""
    rows = pa.table({"a": pa.array([b"x" * 100, None, b"y" * 100], pa.binary(100)), "b": [1, 2, 3]})
    pq.write_table(rows, tmp_path / "a.parquet", store_schema=False)
    raw = (tmp_path / "a.parquet").read_bytes()
    start = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    footer = re.sub(rb"\x64(x{64}|y{64})(x{36}|y{36})", lambda found: b"\x40" + found[1], raw[start:-8])
    assert len(footer) == len(raw) - 8 - start - 2 * 36
    (tmp_path / "a.parquet").write_bytes(raw[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with open_base_file(Storage(str(tmp_path)), "a.parquet") as reader:
        assert reader.short_bounds == {(0, 0)}
        assert reader.text_bounds("a") == [None]
        assert pa.Table.from_batches(reader.batches(["a", "b"])).equals(rows)
        found = ranges_of_file(reader)
    for name, one in ranges_of_rows(rows).items():
        assert (found[name].low, found[name].high) == (one.low, one.high)
        assert (found[name].null_count, found[name].value_count) == (one.null_count, 3)
