"""Footers of Parquet files: chunks with another type than their column, against Arrow's footers and a slow twin."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_fast.kernels.parquet_footer import foreign_chunk
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive import parquet_footer as naive

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


def found(footer: bytes, columns: int) -> int | str | None:
    try:
        return foreign_chunk(np.frombuffer(footer, np.uint8), columns)
    except ValueError:
        return "malformed"


def expected(footer: bytes, columns: int) -> int | str | None:
    try:
        return naive.foreign_chunk(footer, columns)
    except ValueError:
        return "malformed"


def test_footers_of_arrow_have_no_foreign_chunk() -> None:
    for table in (TABLE, TABLE.slice(0, 0), TABLE.select([]), pa.table({f"c{at}": [at] for at in range(200)})):
        assert found(*footer_of(table)) is None
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
        assert found(changed, LEAVES) == expected(changed, LEAVES) == number


@pytest.mark.parametrize("columns", [0, 1, 3])
def test_a_row_group_without_all_columns_is_found(columns: int) -> None:
    def struct(*fields: tuple[int, int, bytes]) -> bytes:
        return b"".join(bytes([number << 4 | kind]) + content for number, kind, content in fields) + b"\0"

    def structs(*parts: bytes) -> bytes:
        return bytes([len(parts) << 4 | 12]) + b"".join(parts)

    leaf = struct((1, 5, b"\x04"))
    chunk = struct((3, 12, struct((1, 5, b"\x04"))))
    encrypted = struct((8, 12, struct()))
    row_group = struct((1, 9, structs(*[chunk, encrypted, chunk][:columns])))
    footer = struct((2, 9, structs(struct(), leaf, leaf)), (2, 9, structs(row_group)))
    assert found(footer, 2) == expected(footer, 2) == min(columns, 2)


@settings(max_examples=400, deadline=None)
@given(
    changes=st.lists(st.tuples(st.integers(0, len(FOOTER) - 1), st.integers(0, 255)), min_size=1, max_size=3),
    end=st.integers(0, len(FOOTER)) | st.just(len(FOOTER)),
)
def test_damaged_footers_are_judged_as_by_the_twin(changes: list[tuple[int, int]], end: int) -> None:
    content = bytearray(FOOTER)
    for at, value in changes:
        content[at] = value
    assert found(bytes(content[:end]), LEAVES) == expected(bytes(content[:end]), LEAVES)


@settings(max_examples=300, deadline=None)
@given(content=st.binary(max_size=60), columns=st.integers(0, 3))
def test_any_bytes_are_judged_as_by_the_twin(content: bytes, columns: int) -> None:
    assert found(content, columns) == expected(content, columns)
