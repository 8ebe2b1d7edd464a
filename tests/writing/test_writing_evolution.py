"""Schemas that grow while a table is written: old files stay readable, in every version."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from tests.support.small_tables import OPTIONS, assert_tidy, listing, options, plain_rows

INT = pa.int32()
SET_NULL = {"hoodie.write.set.null.for.missing.columns": "true"}
DROP = {"hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true"}
KEEP_FILES = {"hoodie.parquet.small.file.limit": "0", "hudi_fast.threads": "1"}


@pytest.fixture(params=["6", "8", "9"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    rows = plain_rows(range(6)).append_column("n", pa.array(range(6), pa.int32()))
    hf.write(rows, tmp_path / "t", options(table_version=request.param))
    return tmp_path / "t"


def later(numbers: range, n: pa.DataType = INT) -> pa.Table:
    return plain_rows(numbers, ts=2).append_column("n", pa.array(numbers).cast(n))


def column(path: Path, name: str) -> dict[str, object]:
    rows = hf.HudiTable.open(path).to_arrow(columns=["id", name])
    return dict(zip(rows["id"].to_pylist(), rows[name].to_pylist(), strict=True))


def base_types(path: Path, name: str) -> set[str]:
    return {str(pq.read_schema(file).field(name).type) for file in path.glob("*/*.parquet")}


@pytest.mark.slow(but="9")
def test_a_new_column_is_null_for_old_rows(table: Path) -> None:
    rows = later(range(4, 8)).append_column("extra", pa.array([1.5, None, 2.5, 3.5]))
    hf.write(rows, table, OPTIONS)
    assert hf.HudiTable.open(table).schema.names[-1] == "extra"
    wanted: dict[str, object] = dict.fromkeys([f"k0000{number}" for number in range(4)])
    assert column(table, "extra") == wanted | {"k00004": 1.5, "k00005": None, "k00006": 2.5, "k00007": 3.5}
    assert_tidy(table)


@pytest.mark.slow(but="9")
def test_a_new_column_that_no_file_of_a_partition_has_is_null_there(table: Path) -> None:
    rows = later(range(1, 2)).append_column("extra", pa.array(["x"]))
    hf.write(rows, table, {**OPTIONS, **KEEP_FILES})
    assert column(table, "extra")["k00001"] == "x"
    assert list(column(table, "extra").values()).count(None) == 5
    opened = hf.HudiTable.open(table)
    assert opened.to_arrow(filter=pc.field("extra").is_null()).num_rows == 5
    assert opened.to_arrow(filter=pc.field("extra") == "x").num_rows == 1


@pytest.mark.slow(but="9")
def test_an_int_column_becomes_long_and_old_files_are_widened_as_they_are_read(table: Path) -> None:
    hf.write(later(range(1, 2), pa.int64()), table, {**OPTIONS, **KEEP_FILES})
    assert base_types(table, "n") == {"int32", "int64"}
    opened = hf.HudiTable.open(table)
    assert opened.schema.field("n").type == pa.int64()
    assert column(table, "n") == {f"k0000{number}": number for number in range(6)}
    assert opened.to_arrow(filter=pc.field("n") > pa.scalar(2**40)).num_rows == 0
    assert sorted(opened.to_arrow(filter=pc.field("n") >= 4)["id"].to_pylist()) == ["k00004", "k00005"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("narrow", "wide"), [(pa.int32(), pa.float64()), (pa.float32(), pa.float64()), (pa.int32(), pa.string())], ids=str
)
def test_filters_on_a_widened_column_see_the_widened_values(
    narrow: pa.DataType, wide: pa.DataType, tmp_path: Path
) -> None:
    old = plain_rows(range(4)).append_column("x", pa.array([1, 2, 3, 4]).cast(pa.float32()).cast(narrow))
    if pa.types.is_float32(narrow):
        old = old.set_column(4, "x", pa.array([0.1, 0.2, 0.3, 0.4], pa.float32()))
    new = plain_rows([9], ts=2).append_column("x", pa.array([7]).cast(wide))
    hf.write(old, tmp_path / "t", options())
    hf.write(new, tmp_path / "t", {**OPTIONS, **KEEP_FILES})
    opened = hf.HudiTable.open(tmp_path / "t")
    rows = opened.to_arrow(columns=["id", "x"])
    assert rows["x"].type == wide
    for value in rows["x"].unique().to_pylist():
        literal = pa.scalar(value, wide)
        for filter_ in (pc.field("x") == literal, pc.field("x") > literal, pc.field("x") <= literal):
            found = opened.to_arrow(columns=["id", "x"], filter=filter_)
            assert sorted(found["id"].to_pylist()) == sorted(rows.filter(filter_)["id"].to_pylist()), str(filter_)


@pytest.mark.slow(but="9")
def test_narrower_values_are_widened_to_the_table(table: Path) -> None:
    hf.write(later(range(6, 8), pa.int64()), table, OPTIONS)
    hf.write(later(range(8, 10), pa.int16()), table, OPTIONS)
    opened = hf.HudiTable.open(table)
    assert opened.schema.field("n").type == pa.int64()
    assert column(table, "n")["k00009"] == 9


@pytest.mark.slow(but="9")
def test_a_missing_column_is_refused_unless_it_may_be_null(table: Path) -> None:
    rows = later(range(4, 8)).drop_columns(["text"])
    before = listing(table)
    with pytest.raises(hf.SchemaMismatchError, match=r"'text' .* missing"):
        hf.write(rows, table, OPTIONS)
    assert listing(table) == before
    hf.write(rows, table, {**OPTIONS, **SET_NULL})
    found = column(table, "text")
    assert [found[key] for key in ("k00003", "k00004", "k00006")] == ["a3", None, None]


@pytest.mark.slow(but="9")
def test_a_missing_column_may_leave_the_table(table: Path) -> None:
    hf.write(later(range(4, 8)).drop_columns(["text"]), table, {**OPTIONS, **DROP})
    opened = hf.HudiTable.open(table)
    assert "text" not in opened.schema.names
    assert opened.to_arrow().num_rows == 8
    instants = opened.history()["instant"].to_pylist()
    assert column_at(opened, "text", instants[0]) == {f"a{number}" for number in range(6)}


def column_at(opened: hf.HudiTable, name: str, instant: str) -> set[object]:
    return set(opened.to_arrow(columns=[name], as_of=instant)[name].to_pylist())


def test_structs_grow_too(tmp_path: Path) -> None:
    def rows(numbers: range, kind: pa.DataType, value: dict[str, object]) -> pa.Table:
        return plain_rows(numbers, ts=numbers.stop).append_column("s", pa.array([value] * len(numbers), kind))

    small = pa.struct([("a", pa.int32())])
    large = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])
    hf.write(rows(range(4), small, {"a": 1}), tmp_path / "t", options())
    hf.write(rows(range(3, 6), large, {"a": 2, "b": ["x"]}), tmp_path / "t", options())
    found = column(tmp_path / "t", "s")
    assert found["k00000"] == {"a": 1, "b": None}
    assert found["k00003"] == {"a": 2, "b": ["x"]}


@pytest.mark.slow(but="9")
def test_rows_that_were_read_can_be_written_back(table: Path) -> None:
    """Meta columns come with a read; a write leaves them out."""
    opened = hf.HudiTable.open(table)
    rows = opened.to_arrow()
    result = opened.upsert(rows)
    assert (result.inserts, result.updates) == (0, 6)
    assert opened.to_arrow().drop_columns(rows.column_names[:5]).equals(rows.drop_columns(rows.column_names[:5]))


def test_the_ordering_column_may_be_new_to_old_files(tmp_path: Path) -> None:
    """Rows without an ordering value count as the oldest."""
    base = plain_rows(range(4)).drop_columns(["ts"]).append_column("ts", pa.nulls(4, pa.int64()))
    hf.write(base, tmp_path / "t", options())
    result = hf.write(plain_rows(range(2), ts=0), tmp_path / "t", options())
    assert result.updates == 2
    assert hf.write(plain_rows(range(2), ts=-1), tmp_path / "t", options()).updates == 0
