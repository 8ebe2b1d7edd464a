"""Every pair of types through every operation: what a write stores reads back equal, or nothing is written."""

from __future__ import annotations

import datetime as dt
import shutil
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.schema.assignment import Outcome, outcome_of
from hudi_fast.schema.conform import conform
from hudi_fast.schema.normalize import storable_type
from tests.support.small_tables import OPTIONS, assert_tidy, listing

NOON = dt.datetime(2024, 3, 31, 12, 0, 0, 123000)
SAMPLES: dict[pa.DataType, tuple[Any, Any]] = {
    pa.bool_(): (True, False),
    pa.int32(): (7, -8),
    pa.int64(): (7, -8),
    pa.float32(): (1.5, -2.0),
    pa.float64(): (1.5, -0.25),
    pa.string(): ("7", "ü"),
    pa.binary(): (b"7", b"8"),
    pa.binary(4): (b"1234", b"5678"),
    pa.date32(): (NOON.date(), dt.date(1582, 10, 4)),
    pa.time32("ms"): (dt.time(1, 2, 3, 4000), dt.time(0)),
    pa.time64("us"): (dt.time(1, 2, 3, 4000), dt.time(0)),
    pa.timestamp("ms", "UTC"): (NOON.replace(tzinfo=dt.UTC), None),
    pa.timestamp("us", "UTC"): (NOON.replace(tzinfo=dt.UTC), None),
    pa.timestamp("ms"): (NOON, None),
    pa.timestamp("us"): (NOON, None),
    pa.decimal128(5, 2): (Decimal("1.25"), None),
    pa.decimal128(7, 4): (Decimal("1.25"), None),
    pa.decimal128(20, 0): (Decimal(3), None),
}
PAIRS = list(product(SAMPLES, SAMPLES))
STORED = [pair for pair in PAIRS if outcome_of(*pair).keeps_column or outcome_of(*pair) is Outcome.COLUMN]
TEXT = [pair for pair in PAIRS if outcome_of(*pair) is Outcome.TEXT]
ROUNDED = [pair for pair in PAIRS if outcome_of(*pair) is Outcome.ROUNDED]
REFUSED = [pair for pair in PAIRS if pair not in STORED + TEXT]
OPERATIONS = ("insert", "upsert", "bulk_insert", "insert_overwrite", "insert_overwrite_table")
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
OPERATION = "hoodie.datasource.write.operation"
KIND = "hoodie.datasource.write.table.type"


def rows(ids: str, part: str, kinds: list[pa.DataType], ts: int = 1) -> pa.Table:
    """One row for each letter, with the columns c0, c1 ... of these types."""
    keys = {"id": list(ids), "part": [part] * len(ids), "ts": pa.array([ts] * len(ids), pa.int64())}
    values = [pa.array([SAMPLES[kind][number % 2] for number in range(len(ids))], kind) for kind in kinds]
    return pa.table({**keys, **{f"c{number}": one for number, one in enumerate(values)}})


def sides(pairs: list[tuple[pa.DataType, pa.DataType]]) -> tuple[list[pa.DataType], list[pa.DataType]]:
    return [one for one, _ in pairs], [other for _, other in pairs]


def check(path: Path, written: list[pa.Table]) -> None:
    """The table holds these rows, each value as the table's type has it."""
    found = hf.HudiTable.open(path).to_arrow()
    found = found.select([name for name in found.column_names if not name.startswith("_hoodie_")]).sort_by("id")
    wanted = pa.concat_tables([conform(one, found.schema) for one in written]).sort_by("id")
    assert found.to_pylist() == wanted.to_pylist()
    for one in written:
        here = found.filter(pa.compute.is_in(found["id"], one["id"]))
        for name in one.column_names:
            for before, after in zip(one.sort_by("id")[name].to_pylist(), here[name].to_pylist(), strict=True):
                assert plain(before) == plain(after), name


def plain(value: Any) -> Any:
    """A value without its type: numbers and texts of numbers are equal, and so are texts and their bytes."""
    if isinstance(value, bytes):
        value = value.decode()
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_is_stored_reads_back_equal(operation: str, kind: str, tmp_path: Path) -> None:
    before, after = sides(STORED)
    path, options = tmp_path / "t", {**OPTIONS, KIND: kind}
    old, new = rows("ab", "p0", before), rows("cd", "p1", after, ts=2)
    hf.write(old, path, options)
    done = hf.write(new, path, {**options, OPERATION: operation})  # no warning
    widened = {f"c{number}" for number, pair in enumerate(STORED) if outcome_of(*pair) is Outcome.COLUMN}
    assert {one.column for one in done.schema_changes} == widened
    assert {(one.change, one.warning) for one in done.schema_changes} == {("retyped", "")}
    check(path, [new] if operation == "insert_overwrite_table" else [old, new])
    assert_tidy(path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_and_an_upsert_over_old_files_are_stored_alike(kind: str, tmp_path: Path) -> None:
    before, after = sides(STORED)
    path, options = tmp_path / "t", {**OPTIONS, KIND: kind, "hoodie.memory.merge.max.size": 1}
    old, new = rows("abc", "p0", before), rows("bd", "p0", after, ts=2)
    hf.write(old, path, options)
    hf.write(iter(new.to_batches()), path, options)
    check(path, [old.take([0, 2]), new])
    back = rows("cd", "p0", before, ts=3)
    hf.write(back, path, options)  # rows of the narrower types again
    check(path, [old.take([0]), new.take([0]), back])


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
def test_columns_become_text_with_a_warning(operation: str, tmp_path: Path) -> None:
    before, after = sides(TEXT)
    path = tmp_path / "t"
    old, new = rows("ab", "p0", before), rows("cd", "p1", after, ts=2)
    hf.write(old, path, OPTIONS)
    with pytest.warns(hf.HudiWarning, match="'c3', double -> string: all readers.*Cast the rows to double") as told:
        done = hf.write(new, path, {**OPTIONS, OPERATION: operation})
    assert str(told[0].message).count(" -> string: all readers") == len(TEXT)
    assert [(one.column, one.before, one.after) for one in done.schema_changes] == [
        (f"c{number}", str(kind), "string") for number, kind in enumerate(before)
    ]
    check(path, [new] if operation == "insert_overwrite_table" else [old, new])


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
def test_columns_round_with_the_option_and_a_warning(operation: str, tmp_path: Path) -> None:
    before, after = sides(ROUNDED)
    path, options = tmp_path / "t", {**OPTIONS, "hudi_fast.allow.rounding": "true", OPERATION: operation}
    hf.write(rows("ab", "p0", before), path, OPTIONS)
    with pytest.warns(hf.HudiWarning, match="'c0', int32 -> float: float rounds large integers"):
        hf.write(rows("cd", "p1", after, ts=2), path, options)
    large = [pa.array([2**kind.bit_width // 2 - 1], kind) for kind in before]
    names = [f"c{number}" for number in range(len(large))]
    wide = pa.table({"id": ["e"], "part": ["p2"], "ts": [3], **dict(zip(names, large, strict=True))})
    with pytest.raises(hf.InvalidDataError, match=r"'c0' holds a value .*hudi_fast\.allow\.rounding=true"):
        hf.write(wide, path, {**OPTIONS, OPERATION: operation})
    hf.write(wide, path, options)
    found = hf.HudiTable.open(path).to_arrow(filter="id = 'e'")
    assert [found[name][0].as_py() for name in names] == [2.0**31, 2.0**63, 2.0**63]


def writes_of(operation: str, new: pa.Table, path: Path) -> None:
    options: dict[str, Any] = {**OPTIONS, KIND: "MERGE_ON_READ"}
    if operation == "partial":
        options["hudi_fast.partial.update"] = "true"
    elif operation == "plan":
        hf.plan_write(new, path, options)
    else:
        options[OPERATION] = operation
    hf.write(new, path, options)


@pytest.mark.slow
@pytest.mark.parametrize("operation", [*OPERATIONS, "partial", "plan"])
def test_all_other_pairs_are_refused_at_once_and_nothing_is_written(operation: str, tmp_path: Path) -> None:
    before, after = sides(REFUSED)
    hf.write(rows("ab", "p0", before), tmp_path / "t", {**OPTIONS, KIND: "MERGE_ON_READ"})
    held = listing(tmp_path / "t")
    with pytest.raises(hf.SchemaMismatchError, match=rf"\({len(REFUSED)} problem") as caught:
        writes_of(operation, rows("ac", "p0", after, ts=2), tmp_path / "t")
    for number, pair in enumerate(REFUSED):
        one, other = (storable_type(kind, "c") for kind in pair)
        assert f"column 'c{number}' is {one} in the table and {other} in the incoming schema" in str(caught.value)
    assert listing(tmp_path / "t") == held


KEYS = (
    pa.int32(),
    pa.int64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.timestamp("us", "UTC"),
    pa.timestamp("us"),
    pa.decimal128(5, 2),
    pa.decimal128(7, 4),
)


@pytest.mark.slow
@pytest.mark.parametrize("table", KEYS, ids=str)
@pytest.mark.parametrize("operation", ["upsert", "delete"])
def test_rows_of_another_key_type_find_the_stored_key_or_are_refused(
    operation: str, table: pa.DataType, tmp_path: Path
) -> None:
    """A row of the same value is the stored one. A column of keys never becomes text."""

    def row(kind: pa.DataType, ts: int) -> pa.Table:
        return pa.table({"id": pa.array([SAMPLES[kind][0]], kind), "part": ["p"], "ts": [ts]})

    hf.write(row(table, 1), tmp_path / "t", OPTIONS)
    found = set()
    for kind in KEYS:
        widens = table == pa.int32() and kind == pa.int64() and operation == "upsert"
        path = tmp_path / str(kind)
        if outcome_of(table, kind).keeps_column or widens:
            shutil.copytree(tmp_path / "t", path)
            done = hf.write(row(kind, 2), path, {**OPTIONS, OPERATION: operation})
            same = plain(SAMPLES[table][0]) == plain(SAMPLES[kind][0])
            assert (done.updates + done.deletes == 1) is same, kind
            found.add(kind)
        else:
            with pytest.raises(hf.SchemaMismatchError, match="column 'id' is"):
                hf.write(row(kind, 2), tmp_path / "t", {**OPTIONS, OPERATION: operation})
    assert table in found
    assert hf.HudiTable.open(tmp_path / "t").to_arrow(["ts"]).to_pylist() == [{"ts": 1}]


def test_a_new_column_is_told_unless_later_writes_may_lack_it(tmp_path: Path) -> None:
    old = rows("ab", "p0", [pa.int64()])
    new = rows("c", "p0", [pa.int64()], ts=2).append_column("extra", pa.array(["x"]))
    for name, more in (
        ("told", {}),
        ("nulls", {"hoodie.write.set.null.for.missing.columns": "true"}),
        ("drops", {"hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true"}),
    ):
        hf.write(old, tmp_path / name, OPTIONS)
        if name == "told":
            with pytest.warns(hf.HudiWarning, match="'extra', new -> string: later writes without 'extra'"):
                done = hf.write(new, tmp_path / name, OPTIONS)
            with pytest.raises(hf.SchemaMismatchError, match=r"'extra' .*is missing"):
                hf.write(old, tmp_path / name, OPTIONS)
        else:
            done = hf.write(new, tmp_path / name, {**OPTIONS, **more})
        assert [(one.change, one.column, one.after) for one in done.schema_changes] == [("added", "extra", "string")]


def test_a_write_that_changes_no_column_says_so(tmp_path: Path) -> None:
    first = hf.write(rows("ab", "p0", [pa.int64()]), tmp_path / "t", OPTIONS)
    again = hf.write(rows("ab", "p0", [pa.int32()], ts=2), tmp_path / "t", OPTIONS)
    assert first.schema_changes == again.schema_changes == ()
