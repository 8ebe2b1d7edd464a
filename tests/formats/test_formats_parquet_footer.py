"""Footers of Parquet files: chunks with NaN lose their bounds and nothing else; damage is told."""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.base_file import BaseFileFooter
from hudi_fast.formats.parquet.base_file import BaseFileWriter, ParquetSettings, ParquetStream, open_base_file
from hudi_fast.formats.parquet.footer import change_footer
from hudi_fast.formats.parquet.leaf_columns import leaf_columns, nan_columns
from hudi_fast.storage.base import Storage
from tests.support.examples import examples
from tests.support.golden import Golden

NAN = math.nan
PLAIN = ParquetSettings(codec="none", level=None)
KEYS = {b"some key": b"some value" * 20}


def written(groups: list[pa.Table], keys: dict[bytes, bytes] | None = None) -> bytes:
    """The file that we write of row groups."""
    sink = pa.BufferOutputStream()
    stream = ParquetStream(sink, groups[0].schema, PLAIN)
    for group in groups:
        stream.write(group)
    stream.close(keys or {})
    return bytes(sink.getvalue())


def as_arrow_writes(groups: list[pa.Table], keys: dict[bytes, bytes] | None = None, page_index: bool = False) -> bytes:
    """The file that Arrow writes of row groups."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink, groups[0].schema, compression="none", store_schema=False, write_page_index=page_index
    ) as writer:
        for group in groups:
            writer.write_table(group, row_group_size=max(group.num_rows, 1))
        if keys:
            writer.add_key_value_metadata(keys)
    return bytes(sink.getvalue())


def footer_of(content: bytes) -> bytes:
    length = int.from_bytes(content[-8:-4], "little")
    return content[-8 - length : -8]


def with_footer(content: bytes, footer: bytes) -> bytes:
    kept = content[: len(content) - 8 - len(footer_of(content))]
    return kept + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def opened(content: bytes) -> pq.ParquetFile:
    return pq.ParquetFile(io.BytesIO(content))


def chunks_of(metadata: pq.FileMetaData) -> dict[tuple[int, int], pq.ColumnChunkMetaData]:
    return {
        (group, column): metadata.row_group(group).column(column)
        for group in range(metadata.num_row_groups)
        for column in range(metadata.num_columns)
    }


def described(chunk: pq.ColumnChunkMetaData) -> dict[str, Any]:
    """All that a footer says of a chunk, but for bounds."""
    said = chunk.to_dict()
    counts = said.pop("statistics") or {}
    return said | {name: counts.get(name) for name in ("null_count", "distinct_count", "num_values")}


def bounds_of(chunk: pq.ColumnChunkMetaData) -> tuple[Any, Any] | None:
    found = chunk.statistics
    return (found.min_raw, found.max_raw) if found is not None and found.has_min_max else None


# ---- what a stream writes


def holds_nan(value: Any, kind: pa.DataType, path: str) -> bool:
    """Whether there is NaN in a value of Python at a leaf: the slow twin of ``nan_columns``."""
    if value is None:
        return False
    if not path:
        return isinstance(value, float) and value != value
    head, _, rest = path[1:].partition(".")
    rest = f".{rest}" if rest else ""
    if pa.types.is_struct(kind):
        return holds_nan(value[head], kind.field(head).type, rest)
    inner = rest.partition(".")[2]
    which, _, rest = inner.partition(".")
    rest = f".{rest}" if rest else ""
    if pa.types.is_map(kind):
        part = 0 if which == "key" else 1
        part_kind = kind.item_type if part else kind.key_type
        return any(holds_nan(entry[part], part_kind, rest) for entry in value)
    return any(holds_nan(one, kind.value_type, rest) for one in value)


def nan_leaves(table: pa.Table) -> set[str]:
    return {
        leaf
        for leaf in leaf_columns(table.schema)
        for name in [leaf.partition(".")[0]]
        if any(holds_nan(value, table.schema.field(name).type, leaf[len(name) :]) for value in table[name].to_pylist())
    }


def decimals_of(kind: pa.DataType) -> st.SearchStrategy[Any]:
    return st.decimals(-99, 99, places=kind.scale)


SINGLE = st.sampled_from([0.0, -0.0, 1.5, -2.5, math.inf, -math.inf, NAN, NAN])
LEAVES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.float64(): SINGLE,
    pa.float32(): SINGLE,
    pa.int64(): st.integers(-9, 9),
    pa.string(): st.text(max_size=3),
    pa.bool_(): st.booleans(),
    pa.decimal128(9, 2): decimals_of(pa.decimal128(9, 2)),
}


def nested(kinds: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return st.one_of(
        kinds.map(pa.list_),
        kinds.map(lambda kind: pa.map_(pa.string(), kind)),
        st.lists(kinds, min_size=1, max_size=3).map(
            lambda parts: pa.struct([pa.field(f"m{number}", kind) for number, kind in enumerate(parts)])
        ),
    )


KINDS = st.recursive(st.sampled_from(sorted(LEAVES, key=str)), nested, max_leaves=4)


def values_of(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(kind):
        whole = st.fixed_dictionaries({field.name: values_of(field.type) for field in kind})
    elif pa.types.is_map(kind):
        whole = st.dictionaries(st.text(max_size=2), values_of(kind.item_type), max_size=2).map(
            lambda found: list(found.items())
        )
    elif pa.types.is_list(kind):
        whole = st.lists(values_of(kind.value_type), max_size=3)
    else:
        whole = LEAVES[kind]
    return st.none() | whole


@st.composite
def row_groups(draw: st.DrawFn) -> list[pa.Table]:
    kinds = draw(st.lists(KINDS, min_size=1, max_size=4))
    schema = pa.schema([pa.field(f"c{number}", kind) for number, kind in enumerate(kinds)])
    groups = []
    for rows in draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)):
        columns = [pa.array(draw(st.lists(values_of(kind), min_size=rows, max_size=rows)), kind) for kind in kinds]
        groups.append(pa.Table.from_arrays(columns, schema=schema))
    return groups


@given(groups=row_groups())
@settings(max_examples=examples(25))
def test_chunks_with_nan_have_no_bounds_and_all_else_is_as_arrow_writes_it(groups: list[pa.Table]) -> None:
    ours, theirs = opened(written(groups, KEYS)), opened(as_arrow_writes(groups))
    assert str(ours.read().to_pylist()) == str(theirs.read().to_pylist())
    assert ours.metadata.metadata == KEYS
    assert ours.schema.equals(theirs.schema)
    assert (ours.metadata.num_rows, ours.metadata.created_by) == (theirs.metadata.num_rows, theirs.metadata.created_by)
    leaves = list(leaf_columns(groups[0].schema))
    for one in groups:
        assert nan_columns(one) == nan_leaves(one)
        assert nan_columns(one.slice(1)) == nan_leaves(one.slice(1))
    for (group, column), theirs_chunk in chunks_of(theirs.metadata).items():
        chunk = chunks_of(ours.metadata)[group, column]
        assert described(chunk) == described(theirs_chunk)
        expected = None if leaves[column] in nan_leaves(groups[group]) else bounds_of(theirs_chunk)
        assert bounds_of(chunk) == expected, (group, leaves[column])


def test_nan_behind_nulls_does_not_count() -> None:
    hidden = pa.array([1.0, NAN], mask=pa.array([False, True]).to_numpy(zero_copy_only=False))
    inside = pa.StructArray.from_arrays([pa.array([1.0, NAN])], ["m"], mask=pa.array([False, True]))
    listed = pa.ListArray.from_arrays([0, 1, 2], pa.array([1.0, NAN]), mask=pa.array([False, True]))
    table = pa.table({"hidden": hidden, "inside": inside, "listed": listed})
    assert nan_columns(table) == set()
    assert len([one for one in chunks_of(opened(written([table])).metadata).values() if bounds_of(one)]) == 3


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64(), pa.dictionary(pa.int32(), pa.float64())])
def test_every_kind_of_number_that_may_be_nan_is_looked_at(kind: pa.DataType) -> None:
    numbers = [pa.array(values, pa.float64()) for values in ([1, NAN], [1, 2])]
    coded = pa.types.is_dictionary(kind)
    first, second = (pa.table({"f": one.dictionary_encode() if coded else one.cast(kind)}) for one in numbers)
    assert [nan_columns(one) for one in (first, second)] == [{"f"}, set()]
    with_nan, without = chunks_of(opened(written([first, second])).metadata).values()
    assert bounds_of(with_nan) is None
    assert bounds_of(without) is not None


def test_without_nan_the_file_is_the_one_that_arrow_writes() -> None:
    groups = [pa.table({"f": [1.0, None], "g": pa.array([[1.5], []])})] * 2
    assert written(groups, KEYS) == as_arrow_writes(groups, KEYS)


def test_a_file_without_rows_has_a_footer() -> None:
    empty = pa.table({"f": pa.array([], pa.float64())})
    found = opened(written([empty], KEYS)).metadata
    assert (found.num_rows, found.metadata) == (0, KEYS)


def test_a_base_file_with_nan_has_its_keys_once_and_all_rows(tmp_path: Path) -> None:
    storage, rows = Storage(tmp_path), pa.table({"id": ["a", "b", "c"], "f": [1.0, NAN, None]})
    writer = BaseFileWriter(storage, "p/f.parquet", rows.schema, ParquetSettings(), "{}", ["id"])
    writer.write(rows.slice(0, 1))
    writer.flush()
    assert writer.nan_columns == set()
    writer.write(rows.slice(1))
    footer = BaseFileFooter("filter" * 100, "DYNAMIC_V0", "a", "c")
    assert writer.close(footer) == (tmp_path / "p/f.parquet").stat().st_size
    assert writer.nan_columns == {"f"}
    with open_base_file(storage, "p/f.parquet") as reader:
        assert reader.footer() == footer
        assert reader.read(["id"]).equals(rows.select(["id"]))
        assert str(reader.read(["f"]).to_pylist()) == str(rows.select(["f"]).to_pylist())
        known = {place: bounds_of(chunk) for place, chunk in chunks_of(reader.metadata).items()}
        assert reader.metadata.metadata[b"writer.model.name"] == b"avro"
    assert known == {(0, 0): (b"a", b"a"), (0, 1): (1.0, 1.0), (1, 0): (b"b", b"c"), (1, 1): None}
    assert (tmp_path / "p/f.parquet").read_bytes().count(b"filter" * 100) == 1


# ---- footers


def test_a_page_index_loses_the_bounds_of_its_pages() -> None:
    rows = pa.table({"f": [1.0, NAN], "i": [1, 2]})
    content = as_arrow_writes([rows, rows], page_index=True)
    changed = opened(with_footer(content, change_footer(footer_of(content), {(1, 0)}, {})))
    assert str(changed.read().to_pylist()) == str(rows.to_pylist() * 2)
    found = {place: (chunk.has_column_index, bounds_of(chunk)) for place, chunk in chunks_of(changed.metadata).items()}
    assert found == {(0, 0): (True, (1, 1)), (0, 1): (True, (1, 2)), (1, 0): (False, None), (1, 1): (True, (1, 2))}
    assert all(chunk.has_offset_index for chunk in chunks_of(changed.metadata).values())


@pytest.mark.parametrize("name", ["cow_v9_mixed", "h015_cow", "mor_v6_alltypes"])
def test_footers_of_other_writers(name: str, golden: Callable[[str], Golden]) -> None:
    path = next(one for one in Path(golden(name).table).rglob("*.parquet") if not one.name.startswith("."))
    content = path.read_bytes()
    old = footer_of(content)
    assert change_footer(old, (), {}) == old
    before = opened(content)
    last = before.metadata.num_columns - 1
    after = opened(with_footer(content, change_footer(old, {(0, last), (0, 2)}, KEYS)))
    assert str(after.read().to_pylist()) == str(before.read().to_pylist())
    assert after.metadata.metadata == before.metadata.metadata | KEYS
    for place, chunk in chunks_of(after.metadata).items():
        stays = place not in {(0, last), (0, 2)}
        was = chunks_of(before.metadata)[place]
        assert bounds_of(chunk) == (bounds_of(was) if stays else None)
        assert chunk.has_column_index == (was.has_column_index and stays)
        if chunk.statistics is not None:
            assert chunk.statistics.null_count == was.statistics.null_count


@pytest.mark.slow
def test_many_columns_and_row_groups() -> None:
    rows = pa.table({f"c{number}": [NAN if number % 7 == 0 else 1.0] for number in range(300)})
    found = chunks_of(opened(written([rows] * 20)).metadata)
    assert all((bounds_of(chunk) is None) == (column % 7 == 0) for (_, column), chunk in found.items())


# ---- Thrift's compact protocol at large


def varint(value: int) -> bytes:
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + varint(value >> 7)


def encoded(kind: int, value: Any) -> bytes:
    """A value of a type; structs are lists of (number, type, value), lists and maps name their types."""
    if kind in (4, 5, 6):
        return varint(value)
    if kind == 8:
        return varint(len(value)) + bytes(value)
    if kind in (9, 10):
        inner, parts = value
        head = bytes([len(parts) << 4 | inner]) if len(parts) < 15 else bytes([0xF0 | inner]) + varint(len(parts))
        return head + b"".join(encoded(inner, part) for part in parts)
    if kind == 11:
        (left, right), pairs = value
        body = b"".join(encoded(left, one) + encoded(right, other) for one, other in pairs)
        return varint(len(pairs)) + bytes([left << 4 | right]) + body if pairs else b"\0"
    if kind == 12:
        found, before = b"", 0
        for number, inner, part in value:
            step = number - before
            head = bytes([step << 4 | inner]) if step < 16 else bytes([inner]) + varint(2 * number)
            found, before = found + head + (b"" if inner in (1, 2) else encoded(inner, part)), number
        return found + b"\0"
    return {1: b"\1", 2: b"\2", 3: b"\7", 7: struct.pack("<d", 1.5), 13: bytes(16)}[kind]


SCALARS = st.sampled_from([1, 2, 3, 4, 5, 6, 7, 8, 13])


def thrift_values(kind: int, depth: int = 0) -> st.SearchStrategy[Any]:
    kinds = SCALARS if depth > 2 else SCALARS | st.sampled_from([9, 10, 11, 12])
    if kind in (4, 5, 6):
        return st.integers(0, 2**63)
    if kind == 8:
        return st.binary(max_size=200)
    if kind in (9, 10):
        return kinds.flatmap(lambda one: st.tuples(st.just(one), st.lists(thrift_values(one, depth + 1), max_size=20)))
    if kind == 11:
        return st.tuples(kinds, kinds).flatmap(
            lambda both: st.tuples(
                st.just(both),
                st.lists(st.tuples(*(thrift_values(one, depth + 1) for one in both)), max_size=3),
            )
        )
    if kind == 12:
        numbers = st.lists(st.integers(1, 300), unique=True, max_size=5).map(sorted)
        return numbers.flatmap(
            lambda found: st.tuples(
                *(
                    kinds.flatmap(
                        lambda one, number=number: st.tuples(
                            st.just(number), st.just(one), thrift_values(one, depth + 1)
                        )
                    )
                    for number in found
                )
            )
        )
    return st.none()


@given(fields=thrift_values(12))
@settings(max_examples=examples(40))
def test_what_is_not_known_is_copied(fields: Any) -> None:
    content = encoded(12, fields)
    assert change_footer(content, (), {}) == content
    groups = (9, (12, [((1, 9, (12, [((3, 12, ((12, 12, ((3, 6, 4), (5, 8, b"max"), (9, 8, b"new"))),)),)])),)]))
    others = [(number + 5, kind, value) for number, kind, value in fields]
    changed = change_footer(encoded(12, [(4, *groups), *others]), {(0, 0)}, {})
    kept = (9, (12, [((1, 9, (12, [((3, 12, ((12, 12, ((3, 6, 4), (9, 8, b"new"))),)),)])),)]))
    assert changed == encoded(12, [(4, *kept), *others])


FOOTER = footer_of(as_arrow_writes([pa.table({"f": [1.0, NAN], "s": ["a", None]})] * 2, page_index=True))


def test_a_footer_that_is_cut_short_is_told() -> None:
    for length in range(len(FOOTER)):
        with pytest.raises(CorruptTableError, match=r"footer of a Parquet file .* \[file p/x.parquet\]"):
            change_footer(FOOTER[:length], {(0, 0)}, {}, "p/x.parquet")
    with pytest.raises(CorruptTableError, match="1 bytes after it"):
        change_footer(FOOTER + b"\0", (), {})


@given(place=st.integers(0, len(FOOTER) - 1), byte=st.integers(0, 255))
@settings(max_examples=examples(200))
def test_damage_is_told_or_does_no_harm(place: int, byte: int) -> None:
    damaged = FOOTER[:place] + bytes([byte]) + FOOTER[place + 1 :]
    try:
        changed = change_footer(damaged, {(1, 0)}, KEYS)
    except CorruptTableError:
        return
    assert change_footer(changed, {(1, 0)}, {}) == changed


@pytest.mark.parametrize(
    ("footer", "chunk", "message"),
    [
        (FOOTER, (2, 0), "expected row group 2, found 2 of them"),
        (FOOTER, (-1, 0), "expected row group -1"),
        (FOOTER, (0, 2), "expected column 2, found 2 of them"),
        (b"\0", (0, 0), "expected field 4, found none"),
        (encoded(12, [(4, 8, b"")]), (0, 0), "expected field 4 of type 9, found type 8"),
        (encoded(12, [(4, 9, (5, [1]))]), (0, 0), "expected a list of structs, found elements of type 5"),
        (encoded(12, [(4, 9, (12, [()]))]), (0, 0), "expected field 1, found none"),
        (b"\x1c" * 1000, (0, 0), "at most 64 levels"),
        (b"\x19" * 1000, (0, 0), "more byte|levels"),
        (b"\x15" + b"\xff" * 20, (0, 0), "a number of at most 10 bytes"),
        (b"\x1f", (0, 0), "found type 15"),
        (b"\x19\xfc\xff\xff\xff\xff\x0f", (0, 0), "more byte"),
        (b"\x10\0", (0, 0), "the end of a struct"),
    ],
)
def test_footers_that_cannot_be(footer: bytes, chunk: tuple[int, int], message: str) -> None:
    with pytest.raises(CorruptTableError, match=message):
        change_footer(footer, {chunk}, {})
