"""Nulls below null parents: Arrow marks them, a file of rows does not, and all other nulls are refused by name."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from hudi_fast.errors import InvalidDataError
from hudi_fast.formats.column_limits import clear_hidden_nulls, has_required_part, without_hidden_nulls
from hudi_fast.schema.conform import conform

REQUIRED = pa.struct([pa.field("no", pa.int32(), nullable=False)])
SCALARS = {pa.int32(): st.integers(0, 9), pa.string(): st.text("xy", max_size=2), pa.bool_(): st.booleans()}


def fields(name: str, kinds: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.Field]:
    return st.builds(lambda kind, nullable: pa.field(name, kind, nullable), kinds, st.booleans())


KINDS: st.SearchStrategy[pa.DataType] = st.recursive(
    st.sampled_from(list(SCALARS)),
    lambda kinds: st.one_of(
        st.tuples(fields("a", kinds), fields("b", kinds)).map(pa.struct),
        fields("element", kinds).map(pa.list_),
        fields("value", kinds).map(lambda field: pa.map_(pa.string(), field)),
    ),
    max_leaves=5,
)


def values(kind: pa.DataType, nullable: bool = True) -> st.SearchStrategy[Any]:
    """Values of a type, some of them null where it allows nulls."""
    if pa.types.is_struct(kind):
        made: st.SearchStrategy[Any] = st.fixed_dictionaries({one.name: values(one.type, one.nullable) for one in kind})
    elif pa.types.is_map(kind):
        items = values(kind.item_type, kind.item_field.nullable)
        made = st.dictionaries(st.sampled_from("kl"), items, max_size=2).map(lambda found: list(found.items()))
    elif pa.types.is_list(kind):
        made = st.lists(values(kind.value_type, kind.value_field.nullable), max_size=2)
    else:
        made = SCALARS[kind]
    return st.one_of(st.none(), made) if nullable else made


@st.composite
def columns(draw: st.DrawFn) -> tuple[pa.Array, list[Any]]:
    """A column as Arrow makes it when it takes rows, some of them absent, and joins and slices; and its values."""
    kind = draw(KINDS)
    rows = draw(st.lists(values(kind), min_size=1, max_size=5))
    taken = draw(st.lists(st.one_of(st.none(), st.integers(0, len(rows) - 1)), max_size=6))
    array = pa.array(rows, kind)
    joined = pa.concat_arrays([array.take(pa.array(taken, pa.int64())), pa.nulls(2, kind), array])
    start = draw(st.integers(0, len(joined) - 1))
    return joined.slice(start), joined.to_pylist()[start:]


def stored(rows: pa.Table) -> list[Any]:
    """A column, written to Parquet and read."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, store_schema=False)
    read: list[Any] = pq.read_table(pa.BufferReader(sink.getvalue())).column("c").to_pylist()
    return read


@given(columns())
def test_rows_keep_their_values_and_can_be_written(made: tuple[pa.Array, list[Any]]) -> None:
    array, expected = made
    rows = pa.table({"c": pa.chunked_array([array, array.slice(1)])})
    for cleared in (without_hidden_nulls(rows), conform(rows, rows.schema)):
        cleared.validate(full=True)
        assert cleared.column("c").to_pylist() == expected + expected[1:]
        assert stored(cleared) == expected + expected[1:]


def test_arrow_refuses_to_write_what_is_cleared() -> None:
    rows = pa.table({"c": pa.nulls(1, REQUIRED)})
    with pytest.raises(pa.ArrowInvalid, match="non-nullable"):
        stored(rows)
    assert stored(without_hidden_nulls(rows)) == [None]


def test_a_column_without_hidden_nulls_is_not_copied() -> None:
    array = pa.array([{"no": 1}, {"no": 2}], REQUIRED)
    assert clear_hidden_nulls(array, "c") is array


def holding(kind: pa.DataType, parts: list[pa.Array], valid: list[bool] | None = None) -> pa.Array:
    bits = None if valid is None else pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(kind, len(parts[0]), [bits], 0 if valid is None else valid.count(False), 0, parts)


def list_of(element: pa.DataType, offsets: list[int], elements: pa.Array) -> pa.Array:
    kind = pa.list_(pa.field("element", element, nullable=False))
    return pa.Array.from_buffers(
        kind, len(offsets) - 1, [None, pa.array(offsets, pa.int32()).buffers()[1]], 0, 0, [elements]
    )


def map_of(offsets: list[int], entries: pa.Array) -> pa.Array:
    kind = pa.map_(pa.string(), entries.type.field("value"))
    return pa.Array.from_buffers(
        kind, len(offsets) - 1, [None, pa.array(offsets, pa.int32()).buffers()[1]], 0, 0, [entries]
    )


HOLE = holding(REQUIRED, [pa.array([1, None, None], pa.int32())], [True, False, True])
ENTRY = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.int32(), nullable=False)])
ENTRIES = holding(ENTRY, [pa.array(["a", "b", "c"]), pa.array([1, 2, None], pa.int32())])
HOLES = {
    "struct": (HOLE, "c.no", 2),
    "struct of structs": (holding(pa.struct([pa.field("s", REQUIRED)]), [HOLE]), "c.s.no", 2),
    "list of numbers": (list_of(pa.int32(), [0, 1, 3], pa.array([1, 2, None], pa.int32())), "c.element", 1),
    "list of structs": (list_of(REQUIRED, [0, 1, 3], HOLE), "c.element", 1),
    "map": (map_of([0, 2, 3], ENTRIES), "c.value", 1),
}


@pytest.mark.parametrize("shape", HOLES)
def test_a_null_of_a_required_part_below_a_value_is_refused_with_its_row(shape: str) -> None:
    array, path, row = HOLES[shape]
    rows = pa.table({"c": array})
    with pytest.raises(InvalidDataError, match=f"Column '{path}' holds a null"):
        without_hidden_nulls(rows)
    with pytest.raises(InvalidDataError, match=rf"Column '{path}' holds a null.*\(first in row {row + 7}, counted"):
        conform(rows, rows.schema, first_row=7)


@pytest.mark.parametrize(
    ("kind", "has"),
    [
        (pa.int32(), False),
        (REQUIRED, True),
        (pa.struct([("s", REQUIRED)]), True),
        (pa.struct([("n", pa.int32())]), False),
        (pa.list_(pa.int32()), False),
        (pa.list_(REQUIRED), True),
        (pa.map_(pa.string(), pa.int32()), True),  # keys
    ],
)
def test_required_parts_are_found_at_any_depth(kind: pa.DataType, has: bool) -> None:
    assert has_required_part(kind) == has
