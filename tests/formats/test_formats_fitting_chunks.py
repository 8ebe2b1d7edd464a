"""Rows of any type are cut so that stored columns fit 32-bit offsets; here the limit is a few bytes."""

from __future__ import annotations

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from hudi_fast.errors import InvalidDataError
from hudi_fast.formats.column_limits import MAX_IN_CHUNK, fitting_slices, in_fitting_chunks, joined_chunks
from hudi_fast.schema.conform import conform
from hudi_fast.schema.normalize import normalize_input_schema

TEXTS = st.one_of(st.none(), st.text("ab", max_size=9))
LISTS = st.one_of(st.none(), st.lists(TEXTS, max_size=3))
CODES = st.one_of(st.none(), st.integers(0, 2))
VALUES = ["", "abcdefgh", "b"]


def _array(kind: pa.DataType, values: st.SearchStrategy) -> st.SearchStrategy[pa.Array]:
    return st.lists(values, min_size=1, max_size=20).map(lambda found: pa.array(found, kind))


def _bytes(kind: pa.DataType) -> st.SearchStrategy[pa.Array]:
    return _array(kind, TEXTS.map(lambda text: None if text is None else text.encode()))


def _coded(codes: list[int | None]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(VALUES, pa.string_view()))


def _runs(lengths: list[int]) -> pa.Array:
    ends = [sum(lengths[: at + 1]) for at in range(len(lengths))]
    return pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()), pa.array([*VALUES, None] * 5)[: len(ends)])


STRUCT = pa.struct([("a", pa.large_string()), ("b", pa.large_list(pa.string_view()))])
MAP = pa.map_(pa.string(), pa.large_string())
SHAPES: dict[str, st.SearchStrategy[pa.Array]] = {
    "large_string": _array(pa.large_string(), TEXTS),
    "string_view": _array(pa.string_view(), TEXTS),
    "large_binary": _bytes(pa.large_binary()),
    "binary_view": _bytes(pa.binary_view()),
    "dictionary": st.lists(CODES, min_size=1, max_size=20).map(_coded),
    "runs": st.lists(st.integers(1, 6), min_size=1, max_size=6).map(_runs),
    "large_list": _array(pa.large_list(pa.large_string()), LISTS),
    "list of views": _array(pa.list_(pa.string_view()), LISTS),
    "list_view": _array(pa.large_list_view(pa.string()), LISTS),
    "list of n": _array(pa.list_(pa.int32(), 3), st.one_of(st.none(), st.just([1, 2, 3]))),
    "struct": _array(STRUCT, st.one_of(st.none(), st.fixed_dictionaries({"a": TEXTS, "b": LISTS}))),
    "map": _array(MAP, st.dictionaries(st.sampled_from("kl"), TEXTS, max_size=2).map(lambda found: [*found.items()])),
}


def held(array: pa.Array) -> list[int]:
    """What 32-bit offsets of a stored column count: bytes of texts, elements of lists, at all levels."""
    kind = array.type
    if kind in (pa.string(), pa.binary()):
        return [sum(len(one.as_buffer() or b"") for one in array if one.is_valid)]
    if pa.types.is_struct(kind):
        return [count for child in array.flatten() for count in held(child)]
    if pa.types.is_map(kind):
        pairs = [pair for one in array.to_pylist() for pair in one or []]
        return [len(pairs), *held(pa.array([text for _, text in pairs], pa.string()))]
    return [len(array.flatten()), *held(array.flatten())] if pa.types.is_list(kind) else []


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data(), limit=st.integers(30, 80), start=st.integers(0, 3))
def test_stored_chunks_fit_and_rows_stay(shape: str, data: st.DataObject, limit: int, start: int) -> None:
    array = data.draw(SHAPES[shape]).slice(start)
    rows = pa.table({"n": pa.array(range(len(array)), pa.int64()), "c": array})
    cut = in_fitting_chunks(rows, limit)
    assert cut.to_pylist() == rows.to_pylist()
    stored = conform(cut, normalize_input_schema(rows.schema))
    joined = joined_chunks(stored, limit)
    joined.validate(full=True)
    assert joined.to_pylist() == rows.to_pylist()
    for table in (stored, joined):
        assert all(count <= limit for chunk in table.column("c").chunks for count in held(chunk))
    assert joined.column("n").num_chunks == 1
    pairs = zip(joined.column("c").chunks, joined.column("c").chunks[1:], strict=False)
    for left, right in pairs:  # no two of them would fit into one
        assert any(a + b > limit for a, b in zip(held(left), held(right), strict=True))


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.large_list(pa.int32())])
def test_a_value_that_does_not_fit_is_refused_with_its_row(kind: pa.DataType) -> None:
    values = [["a"] * 3, ["a"] * 50] if pa.types.is_nested(kind) else ["aaa", "a" * 50]
    batch = pa.record_batch(
        {"c": pa.array([[0] * len(one) if pa.types.is_nested(kind) else one for one in values], kind)}
    )
    with pytest.raises(InvalidDataError, match="Column 'c' has a value of more than 40 bytes or elements in row 6"):
        list(fitting_slices(batch, 40, first_row=5))


def test_rows_that_fit_are_the_same_object() -> None:
    rows = pa.table({"c": pa.array(["a", "b"], pa.string_view()), "n": [1, 2]})
    assert in_fitting_chunks(rows) is rows
    plain = pa.table({"c": ["a" * 50, "b"]})
    assert in_fitting_chunks(plain, 40) is plain  # 32-bit offsets hold them already
    assert MAX_IN_CHUNK == 2**31 - 1


def test_slices_are_no_copies() -> None:
    batch = pa.record_batch({"c": pa.array(["a" * 30, "b" * 30], pa.large_string())})
    first, second = fitting_slices(batch, 40)
    assert [one.column(0).buffers()[2].address for one in (first, second)] == [batch.column(0).buffers()[2].address] * 2
