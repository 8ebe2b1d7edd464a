"""Footers of Parquet files: chunks with another type than their column, against Arrow's footers and a slow twin."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_fast.kernels.parquet_footer import chunk_faults
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_fast.formats.varint import zigzag
from tests.naive import parquet_footer as naive
from tests.support.examples import examples

COLUMNS = {
    "text": ["x", None],
    "number": [1, 2],
    "small": pa.array([1, 2], pa.int32()),
    "truth": [True, False],
    "wide": pa.array([1, None], pa.decimal128(38, 2)),
    "part": [{"a": 1.5, "b": ["x"], "c": [("k", 1)]}, None],
    "half": pa.array([1, 2], pa.float32()),
}
TABLE = pa.table(
    {**COLUMNS, "part": pa.array(COLUMNS["part"], pa.struct([("a", pa.float64()), ("b", pa.list_(pa.string()))]))}
)


def footer_of(table: pa.Table, group_rows: int = 1) -> tuple[bytes, int]:
    """The footer of a file, and the number of its leaf columns."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=group_rows, write_page_index=True)
    content = sink.getvalue().to_pybytes()
    length = int.from_bytes(content[-8:-4], "little")
    return content[-8 - length : -8], pq.read_metadata(pa.BufferReader(content)).num_columns


FOOTER, LEAVES = footer_of(TABLE)


GROUPS = 2
Answer = tuple[int | None, set[int]] | str


def found(footer: bytes, columns: int) -> Answer:
    try:
        unfit, short = chunk_faults(np.frombuffer(footer, np.uint8), GROUPS, columns)
    except ValueError:
        return "malformed"
    return unfit, set(np.flatnonzero(short).tolist())


def expected(footer: bytes, columns: int) -> Answer:
    try:
        unfit, short = naive.chunk_faults(footer, columns)
    except ValueError:
        return "malformed"
    return unfit, {one for one in short if one < GROUPS * columns}


def test_footers_of_arrow_have_no_unfit_chunk() -> None:
    for table in (TABLE, TABLE.slice(0, 0), TABLE.select([]), pa.table({f"c{at}": [at] for at in range(200)})):
        assert found(*footer_of(table)) == (None, set())
    assert found(FOOTER, LEAVES + 1) == found(FOOTER[:-2], LEAVES) == "malformed"


def test_a_chunk_with_another_type_is_found() -> None:
    """The type is the first field of a chunk's metadata: the byte after the headers of both."""
    chunks = [
        at for at in range(len(FOOTER)) if FOOTER[at : at + 1] == b"\x15" and FOOTER[at + 2 : at + 4] == b"\x19\x25"
    ]
    chunks += [
        at for at in range(len(FOOTER)) if FOOTER[at : at + 1] == b"\x15" and FOOTER[at + 2 : at + 4] == b"\x19\x35"
    ]
    assert len(chunks) == 2 * LEAVES
    for number, at in enumerate(sorted(chunks)):
        changed = FOOTER[: at + 1] + bytes([FOOTER[at + 1] ^ 2]) + FOOTER[at + 2 :]
        assert found(changed, LEAVES) == expected(changed, LEAVES) == (number, set())


def struct(*fields: tuple[int, int, bytes]) -> bytes:
    """Fields as (number after the last one, type, content)."""
    return b"".join(bytes([number << 4 | kind]) + content for number, kind, content in fields) + b"\0"


def items(kind: int, *parts: bytes) -> bytes:
    return bytes([len(parts) << 4 | kind]) + b"".join(parts)


def footer_with(*chunks: bytes) -> bytes:
    """A footer of an int64 and a list of texts, with one row group."""
    root = struct((5, 5, zigzag(2)))
    number = struct((1, 5, zigzag(2)), (2, 5, zigzag(0)))
    group = struct((3, 5, zigzag(1)), (2, 5, zigzag(1)))
    texts = struct((1, 5, zigzag(6)), (2, 5, zigzag(2)))
    row_group = struct((1, 9, items(12, *chunks)))
    return struct((2, 9, items(12, root, number, group, texts)), (2, 9, items(12, row_group)))


def chunk(kind: int, *sizes: tuple[int, int, bytes]) -> bytes:
    more = [(15, 12, struct(*sizes))] if sizes else []
    return struct((3, 12, struct((1, 5, zigzag(kind)), *more)))


@pytest.mark.parametrize("columns", [0, 1, 2, 3])
def test_a_row_group_without_all_columns_is_found(columns: int) -> None:
    encrypted = struct((8, 12, struct()))
    footer = footer_with(*[chunk(2), encrypted, chunk(5)][:columns])
    assert found(footer, 2) == expected(footer, 2) == (columns if columns < 2 else None, set())


@pytest.mark.parametrize(
    ("sizes", "fits"),
    [
        ([(2, 9, items(6, b"\2", b"\2")), (1, 9, items(6, b"\2", b"\2", b"\2"))], True),  # 1 repetition, 2 definitions
        ([(1, 6, b"\2"), (1, 9, items(6)), (1, 9, items(6))], True),
        ([(2, 9, items(6, b"\2", b"\2", b"\2"))], False),
        ([(3, 9, items(6, b"\2", b"\2"))], False),
    ],
)
def test_histograms_have_a_number_for_each_level(sizes: list[tuple[int, int, bytes]], fits: bool) -> None:
    footer = footer_with(chunk(2), chunk(6, *sizes))
    assert found(footer, 2) == expected(footer, 2) == (None if fits else 1, set())
    footer = footer_with(chunk(2, (1, 6, b"\2")), chunk(6, *sizes))  # bytes of texts in a column of numbers
    assert found(footer, 2) == expected(footer, 2) == (0, set())


@pytest.mark.parametrize(("size", "fits"), [(0, True), (7, False), (8, True), (9, True)])
@pytest.mark.parametrize("number", [1, 2, 5, 6])
def test_bounds_shorter_than_values_are_found(number: int, size: int, fits: bool) -> None:
    bounds = struct((number, 8, bytes([size]) + bytes(size)))
    number_chunk = struct((3, 12, struct((1, 5, zigzag(2)), (11, 12, bounds))))
    text_chunk = struct((3, 12, struct((1, 5, zigzag(6)), (11, 12, bounds))))
    footer = footer_with(number_chunk, text_chunk)
    assert found(footer, 2) == expected(footer, 2) == (None, set() if fits else {0})


@settings(max_examples=examples(400))
@given(
    changes=st.lists(st.tuples(st.integers(0, len(FOOTER) - 1), st.integers(0, 255)), min_size=1, max_size=3),
    end=st.integers(0, len(FOOTER)) | st.just(len(FOOTER)),
)
def test_damaged_footers_are_judged_as_by_the_twin(changes: list[tuple[int, int]], end: int) -> None:
    content = bytearray(FOOTER)
    for at, value in changes:
        content[at] = value
    assert found(bytes(content[:end]), LEAVES) == expected(bytes(content[:end]), LEAVES)


@settings(max_examples=examples(300))
@given(content=st.binary(max_size=60), columns=st.integers(0, 3))
def test_any_bytes_are_judged_as_by_the_twin(content: bytes, columns: int) -> None:
    assert found(content, columns) == expected(content, columns)
