"""Every type that Spark has goes into a table and comes out as it was, through inserts, merges and rewrites."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

import hudi_fast as hf
from tests.support.examples import examples
from tests.support.rows import assert_same_rows
from tests.support.small_tables import options

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
MICROS = st.integers(-(10**15), 4 * 10**15)
STRUCT = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string())), ("c", pa.struct([("d", pa.date32())]))])


def decimals(precision: int, scale: int) -> st.SearchStrategy[Any]:
    limit = 10**precision - 1
    return st.integers(-limit, limit).map(lambda digits: Decimal(f"{digits}E-{scale}"))


def values_of(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of a type, one in a few of them null."""
    return st.one_of(st.none(), _present(kind))


def _present(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({field.name: values_of(field.type) for field in kind})
    if pa.types.is_list(kind):
        return st.lists(values_of(kind.value_type), max_size=3)
    if pa.types.is_map(kind):
        entries = st.dictionaries(TEXTS, values_of(kind.item_type), max_size=3)
        return entries.map(lambda found: list(found.items()))
    if pa.types.is_decimal(kind):
        return decimals(kind.precision, kind.scale)
    return PLAIN[kind]


PLAIN: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.string(): TEXTS,
    pa.binary(): st.binary(max_size=5),
    pa.date32(): st.dates(dt.date(1, 1, 1)),
    pa.timestamp("us", "UTC"): MICROS,
    pa.timestamp("us"): MICROS,
}

KINDS: dict[str, pa.DataType] = {
    **{str(kind): kind for kind in PLAIN},
    **{f"decimal({p},{s})": pa.decimal128(p, s) for p, s in ((1, 0), (9, 2), (10, 3), (18, 18), (19, 5), (38, 10))},
    "list<int>": pa.list_(pa.int32()),
    "list<list<string>>": pa.list_(pa.list_(pa.string())),
    "map<string,long>": pa.map_(pa.string(), pa.int64()),
    "map<string,struct>": pa.map_(pa.string(), STRUCT),
    "struct": STRUCT,
    "list<struct>": pa.list_(STRUCT),
    "list<map<string,decimal>>": pa.list_(pa.map_(pa.string(), pa.decimal128(12, 4))),
}


def column(kind: pa.DataType, values: list[Any]) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)


def rows(kind: pa.DataType, values: list[Any], first: int = 0) -> pa.Table:
    count = len(values)
    return pa.table(
        {
            "id": [f"k{number}" for number in range(first, first + count)],
            "part": ["p"] * count,
            "ts": pa.array([first] * count, pa.int64()),
            "x": column(kind, values),
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=examples(6), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_values_survive_inserts_merges_and_rewrites(name: str, data: st.DataObject, tmp_path_factory: Any) -> None:
    kind = KINDS[name]
    path = tmp_path_factory.mktemp("types") / "t"
    drawn = st.lists(values_of(kind), min_size=5, max_size=5)
    first, second = rows(kind, data.draw(drawn)), rows(kind, data.draw(drawn), first=2)
    hf.write(first, path, options(table_version=data.draw(st.sampled_from(["6", "9"]))))
    opened = hf.HudiTable.open(path)
    assert opened.schema.field("x").type == first.schema.field("x").type
    check(opened, first)
    opened.upsert(second, {"hudi_fast.threads": "1"})
    check(opened, pa.concat_tables([first.slice(0, 2), second]))
    opened.delete(second.slice(1, 1), {"hudi_fast.threads": "1"})
    check(opened, pa.concat_tables([first.slice(0, 2), second.slice(0, 1), second.slice(2)]))


def check(opened: hf.HudiTable, wanted: pa.Table) -> None:
    assert_same_rows(opened.to_arrow(columns=wanted.column_names), wanted, ignore=(), key=["id"])


def test_all_types_in_one_table_in_one_file(tmp_path: Path) -> None:
    columns = {"id": pa.array(["a", "b"]), "part": pa.array(["p", "p"]), "ts": pa.array([1, 1])}
    fixed = {
        "bool": ([True, None], pa.bool_()),
        "before 1970": ([dt.date(1582, 10, 4), dt.date(1, 1, 1)], pa.date32()),
        "instant": ([dt.datetime(1899, 12, 31, 23, 59, 59, 999999), None], pa.timestamp("us", "UTC")),
        "local": ([dt.datetime(9999, 12, 31), dt.datetime(1969, 12, 31, 23, 59, 59)], pa.timestamp("us")),
        "millis": ([dt.datetime(2020, 1, 1, 0, 0, 0, 123000), None], pa.timestamp("ms", "UTC")),
        "bytes": ([b"\x00\xff", b""], pa.binary()),
        "money": ([Decimal("-1.05"), None], pa.decimal128(7, 2)),
        "nothing": ([None, None], pa.string()),
        "nested": ([[{"k": [1, None]}, None], []], pa.list_(pa.struct([("k", pa.list_(pa.int64()))]))),
    }
    columns |= {name: pa.array(values, kind) for name, (values, kind) in fixed.items()}
    table = pa.table({name.replace(" ", "_"): values for name, values in columns.items()})
    hf.write(table, tmp_path / "t", options())
    opened = hf.HudiTable.open(tmp_path / "t")
    check(opened, table)
    opened.upsert(table.slice(1))
    check(opened, table)


@pytest.mark.parametrize(
    ("given_type", "stored"),
    [
        (pa.int8(), pa.int32()),
        (pa.int16(), pa.int32()),
        (pa.uint8(), pa.int32()),
        (pa.uint16(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.large_binary(), pa.binary()),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (pa.timestamp("s"), pa.timestamp("ms")),
        (pa.large_list(pa.int64()), pa.list_(pa.int64())),
    ],
    ids=str,
)
def test_types_that_hudi_lacks_are_stored_as_the_next_wider_one(
    given_type: pa.DataType, stored: pa.DataType, tmp_path: Path
) -> None:
    samples = {"string": ["a", None], "binary": [b"a", None], "list": [[1], None]}
    kind = next((name for name in samples if name in str(stored)), None)
    values = samples[kind] if kind else [1, None]
    incoming = pa.array(values, stored if kind else pa.int64()).cast(given_type)
    table = rows(pa.int64(), [None, None]).set_column(3, "x", incoming)
    hf.write(table, tmp_path / "t", options())
    opened = hf.HudiTable.open(tmp_path / "t")
    found = opened.to_arrow(columns=["x"])["x"]
    assert pa.types.is_timestamp(stored) or found.type == stored
    assert found.cast(table["x"].type if not pa.types.is_dictionary(given_type) else stored).to_pylist() == (
        table["x"].to_pylist()
    )


def test_frames_of_pandas_and_polars_are_written_as_they_are(tmp_path: Path) -> None:
    import polars

    table = rows(pa.float64(), [1.5, None, 2.5])
    hf.write(table.to_pandas(), tmp_path / "pandas", options())
    hf.write(polars.from_arrow(table), tmp_path / "polars", options())
    for name in ("pandas", "polars"):
        check(hf.HudiTable.open(tmp_path / name), table)


@pytest.mark.long
def test_texts_of_more_than_two_gib_in_a_polars_column_are_written(tmp_path: Path) -> None:
    texts = pl.Series([chr(97 + number) * 2_000_000 for number in range(4)])
    count = 2148  # 4 GiB, of which polars stores four texts: 32-bit offsets would begin again
    frame = pl.DataFrame({"id": list(range(count)), "v": texts.gather([number % 4 for number in range(count)])})
    plain = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    assert hf.write(frame, tmp_path / "t", plain).inserts == count
    found = 0
    for batch in hf.HudiTable.open(tmp_path / "t").to_batches(columns=["id", "v"]):
        for number, text in zip(batch["id"].to_pylist(), batch["v"], strict=True):
            assert (text.as_buffer().size, text.as_buffer()[0]) == (2_000_000, 97 + number % 4)
        found += batch.num_rows
    assert found == count
