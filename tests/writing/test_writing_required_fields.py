"""Structs, lists and maps with required parts: null ones are written, and values that lack a part are refused.

Modules: hudi_fast.formats.column_limits.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from hudi_fast.errors import InvalidDataError
from tests.support.required_fields import SHAPES, rows_with_null_parents
from tests.support.small_tables import OPTIONS, listing

WITHOUT_MAPS = tuple(name for name in SHAPES if name not in ("map", "mapped"))
TYPE, FORMAT = "hoodie.datasource.write.table.type", "hoodie.table.base.file.format"


def stored(path) -> list[dict]:
    table = hf.HudiTable.open(path)
    names = [name for name in table.schema.names if not name.startswith("_hoodie")]
    rows = table.to_arrow(columns=names)
    pq.write_table(rows, pa.BufferOutputStream())  # the caller can, too
    return sorted(rows.to_pylist(), key=lambda row: row["id"])


@pytest.mark.slow
@pytest.mark.smoke("PARQUET-MERGE_ON_READ")
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("base_format", ["PARQUET", "ORC", "LANCE"])
def test_null_parents_go_through_all_writes_and_services(tmp_path, base_format, table_type) -> None:
    shapes = WITHOUT_MAPS if base_format == "LANCE" else tuple(SHAPES)
    options = {**OPTIONS, TYPE: table_type, FORMAT: base_format}
    path = tmp_path / "t"
    rows = rows_with_null_parents(range(8), shapes=shapes)
    assert hf.write(rows, path, options).inserts == 8
    changes = rows_with_null_parents(range(2, 6), ts=2, shapes=shapes)
    assert hf.write(changes, path, options).updates == 4
    expected = [*rows.to_pylist()[:2], *changes.to_pylist(), *rows.to_pylist()[6:]]
    assert stored(path) == expected
    table = hf.HudiTable.open(path)
    if table_type == "MERGE_ON_READ":
        table.services.compact()
        assert stored(path) == expected
    source = rows_with_null_parents(range(7, 10), ts=3, shapes=shapes)
    merge = hf.merge(path, source, options).on("id").when_matched_update().when_not_matched_insert()
    assert merge.execute().inserts == 2
    hf.update(path, "id = 'k0'", {"ts": 9}, options)
    expected = [{**expected[0], "ts": 9}, *expected[1:7], *source.to_pylist()]
    assert stored(path) == expected
    table = hf.HudiTable.open(path)
    table.services.cluster()
    if table_type == "MERGE_ON_READ":
        table.services.compact()
    assert hf.write(changes.slice(0, 1), path, options).updates == 1
    assert stored(path) == expected


@pytest.mark.slow
def test_an_added_column_with_required_parts_is_null_in_old_rows(tmp_path) -> None:
    path, options = tmp_path / "t", {**OPTIONS, TYPE: "MERGE_ON_READ"}
    old = rows_with_null_parents(range(4), shapes=())
    hf.write(old, path, options)
    for name, (kind, _) in SHAPES.items():
        hf.HudiTable.open(path).alter(hf.AddColumn(name, kind))
    new = rows_with_null_parents(range(2, 6), ts=2)
    hf.write(new, path, options)
    hf.HudiTable.open(path).services.compact()
    hf.write(new.slice(0, 1), path, options)
    expected = [{**dict.fromkeys(SHAPES), **row} for row in old.to_pylist()[:2]] + new.to_pylist()
    assert stored(path) == expected


@pytest.mark.slow
def test_a_larger_stream_with_null_parents_is_written(tmp_path) -> None:
    rows = rows_with_null_parents(range(3000))
    small = {**OPTIONS, "hoodie.memory.merge.max.size": 1 << 16}
    assert hf.write(iter(rows.to_batches(500)), tmp_path / "t", small).plan == "spilled"
    assert sorted(stored(tmp_path / "t"), key=lambda row: int(row["id"][1:])) == rows.to_pylist()


def without_part(name: str) -> pa.Array:
    """Values of a column of :data:`SHAPES`, the second of which lacks a required part."""
    kind, value = SHAPES[name]
    loose = _all_nullable(kind)
    array = pa.array([value, _with_nulls(value)], loose)
    return pa.Array.from_buffers(kind, 2, array.buffers()[:1], 0, 0, [array.field(at) for at in range(kind.num_fields)])


def _all_nullable(kind: pa.DataType) -> pa.DataType:
    return pa.struct([pa.field(field.name, field.type) for field in kind])


def _with_nulls(value: dict) -> dict:
    return dict.fromkeys(value)


@pytest.mark.slow("True-mapped")
@pytest.mark.parametrize("name", ["s", "inner", "partial", "held", "mapped"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_value_without_a_required_part_is_refused_before_anything_is_written(tmp_path, name, streamed) -> None:
    path = tmp_path / "t"
    bad = rows_with_null_parents(range(2), shapes=()).append_column(name, without_part(name))
    small = {**OPTIONS, "hoodie.memory.merge.max.size": 1}
    refused = rf"Column '{name}\.\w+' holds a null.* \(first in row 1, counted from 0\)"
    with pytest.raises(InvalidDataError, match=refused):
        hf.write(iter(bad.to_batches()) if streamed else bad, path, small)
    assert not path.exists()
    hf.write(rows_with_null_parents(range(2), shapes=(name,)), path, OPTIONS)
    before = listing(path)
    with pytest.raises(InvalidDataError, match=refused):
        hf.write(iter(bad.to_batches()) if streamed else bad, path, small)
    with pytest.raises(InvalidDataError, match=rf"Column '{name}\.\w+' holds a null"):
        hf.merge(path, bad, OPTIONS).on("id").when_matched_update().execute()
    assert listing(path) == before
