"""Tables whose base files are Lance: every operation, query and service.

Modules: hudi_fast.view.base_files, hudi_fast.formats.lance.read, hudi_fast.formats.lance.write.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.formats.vectors import vector_type
from tests.support.small_tables import listing, options, plain_rows, rows_of, table_rows
from tests.view.test_view_base_files import FORMAT, INDEXES, KINDS, NOW, SEVERAL, extensions, seen_at


def settings(kind: str, version: str = "9", **more: Any) -> dict[str, Any]:
    table = {FORMAT: "LANCE", "hoodie.datasource.write.table.type": kind, "hoodie.compact.inline": "false"}
    return {**options(table_version=version), **table, **more}


@pytest.mark.parametrize("version", ["9", "6"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_lance_table_goes_through_every_operation_and_query(kind: str, version: str, tmp_path: Path) -> None:
    given = settings(kind, version)
    hf.write(plain_rows(range(20)), tmp_path, {**given, "hoodie.datasource.write.operation": "bulk_insert"})
    first = hf.write(plain_rows(range(10, 30), ts=2, text="b"), tmp_path, {**given, "hoodie.index.type": "BLOOM"})
    expected = {**rows_of(plain_rows(range(20))), **rows_of(plain_rows(range(10, 30), ts=2, text="b"))}
    assert table_rows(tmp_path) == expected
    table = hf.HudiTable.open(tmp_path)
    assert table.count() == 30
    assert rows_of(table.to_arrow(filter="id = 'k00012'")) == {"k00012": expected["k00012"]}
    assert table.to_arrow(["text"], filter=pc.field("ts") == 2).num_rows == 20
    hf.write(plain_rows(range(40, 45)), tmp_path, {**given, "hoodie.datasource.write.operation": "insert"})
    table.delete(plain_rows([1, 12]).select(["id", "part"]), {"hoodie.compact.inline": "false"})
    expected |= rows_of(plain_rows(range(40, 45)))
    gone = {"k00001", "k00012"}
    assert table_rows(tmp_path) == {key: row for key, row in expected.items() if key not in gone}
    added = hf.HudiTable.open(tmp_path).incremental(seen_at(tmp_path, first))
    assert rows_of(added) == rows_of(plain_rows(range(40, 45)))
    whole = plain_rows(range(0, 6, 2), ts=9, text="c")
    hf.write(whole, tmp_path, {**given, "hoodie.datasource.write.operation": "insert_overwrite"})
    table = hf.HudiTable.open(tmp_path)
    odd = {key: row for key, row in expected.items() if row[0] == "p1" and key not in gone}
    assert rows_of(table.to_arrow()) == {**odd, **rows_of(whole)}
    assert rows_of(table.to_arrow(as_of=first.instant)).keys() == rows_of(plain_rows(range(30))).keys()
    assert extensions(tmp_path) == {"lance"}
    assert table.services.validate().ok
    if kind == "MERGE_ON_READ":
        assert rows_of(table.to_arrow(query_type="read_optimized"))["k00011"] in (expected["k00011"], ("p1", 1, "a11"))


@pytest.mark.parametrize("kind", KINDS)
def test_the_services_of_a_lance_table_keep_its_rows_and_its_indexes(kind: str, tmp_path: Path) -> None:
    given = settings(kind, **INDEXES, **{"hoodie.clean.automatic": "false"})
    hf.write(plain_rows(range(30)), tmp_path, given)
    second = hf.write(plain_rows(range(10), ts=2, text="b"), tmp_path, given)
    table = hf.HudiTable.open(tmp_path)
    table.services.savepoint(second.instant, options=given)
    saved = table_rows(tmp_path)
    hf.write(plain_rows(range(5, 35), ts=3, text="c"), tmp_path, given)
    expected = table_rows(tmp_path)
    assert expected == {**saved, **rows_of(plain_rows(range(5, 35), ts=3, text="c"))}
    assert table.services.validate().ok
    if kind == "MERGE_ON_READ":
        table.services.compact({**given, **NOW})
        assert table_rows(tmp_path) == expected
        assert rows_of(hf.HudiTable.open(tmp_path).to_arrow(query_type="read_optimized")) == expected
    table.services.cluster({**given, "hoodie.clustering.plan.strategy.sort.columns": "text"})
    assert table_rows(tmp_path) == expected
    assert hf.HudiTable.open(tmp_path).services.validate().ok
    last = hf.write(plain_rows(range(3), ts=4, text="d"), tmp_path, given)
    table.services.rollback(last.instant, given)
    table.services.clean({**given, **NOW})
    assert table_rows(tmp_path) == expected
    table.services.restore(second.instant, given)
    assert table_rows(tmp_path) == saved
    assert hf.HudiTable.open(tmp_path).services.validate().ok
    assert extensions(tmp_path) == {"lance"}


def test_columns_that_were_added_widened_or_renamed_are_read_from_older_lance_files(tmp_path: Path) -> None:
    given = settings("COPY_ON_WRITE", **{"hoodie.index.type": "SIMPLE"})
    rows = plain_rows(range(4)).append_column("n", pa.array([1, 2, None, 4], pa.int32()))
    hf.write(rows, tmp_path, given)
    other = plain_rows([11], partitions=20).append_column("n", pa.array([2**40], pa.int64()))
    hf.write(other.append_column("added", pa.array(["x"])), tmp_path, given)
    table = hf.HudiTable.open(tmp_path)
    found = {row["id"]: (row["n"], row["added"]) for row in table.to_arrow(["id", "n", "added"]).to_pylist()}
    assert found == {
        "k00000": (1, None),
        "k00001": (2, None),
        "k00002": (None, None),
        "k00003": (4, None),
        "k00011": (2**40, "x"),
    }
    assert table.to_arrow(["id"], filter="n = 4").to_pylist() == [{"id": "k00003"}]
    table.alter(hf.RenameColumn("n", "number"), hf.DropColumn("added"))
    hf.write(plain_rows([1], ts=5), tmp_path, {**given, "hoodie.write.set.null.for.missing.columns": "true"})
    rows = hf.HudiTable.open(tmp_path).to_arrow(["id", "number"]).to_pylist()
    assert {row["id"]: row["number"] for row in rows} == {key: n for key, (n, _) in found.items()} | {"k00001": None}


def test_a_table_may_have_lance_files_beside_others(tmp_path: Path) -> None:
    given = {**settings("COPY_ON_WRITE"), SEVERAL: "true", FORMAT: "PARQUET", **INDEXES}
    hf.write(plain_rows(range(10)), tmp_path, given)
    hf.write(plain_rows([1, 11], ts=2, text="b"), tmp_path, {**given, FORMAT: "LANCE"})
    assert extensions(tmp_path) == {"parquet", "lance"}
    expected = {**rows_of(plain_rows(range(10))), **rows_of(plain_rows([1, 11], ts=2, text="b"))}
    assert table_rows(tmp_path) == expected
    hf.HudiTable.open(tmp_path).services.cluster({**given, FORMAT: "LANCE"})
    assert table_rows(tmp_path) == expected
    assert hf.HudiTable.open(tmp_path).services.validate().ok


def test_change_data_of_a_lance_table(tmp_path: Path) -> None:
    given = settings("COPY_ON_WRITE", **{"hoodie.table.cdc.enabled": "true"})
    first = hf.write(plain_rows(range(4)), tmp_path, given)
    hf.write(plain_rows([1], ts=2, text="b"), tmp_path, given)
    table = hf.HudiTable.open(tmp_path)
    assert table.cdc(seen_at(tmp_path, first)).select(["op"]).to_pylist() == [{"op": "u"}]


def test_vectors_of_a_lance_table_are_searched(tmp_path: Path) -> None:
    numbers = pa.array([[float(at), 1.0] for at in range(6)], vector_type(2, pa.float32()))
    rows = plain_rows(range(6)).append_column(pa.field("v", numbers.type, metadata={"hudi_type": "VECTOR(2)"}), numbers)
    hf.write(rows, tmp_path, settings("COPY_ON_WRITE"))
    table = hf.HudiTable.open(tmp_path)
    assert table.schema.field("v").type == vector_type(2, pa.float32())
    found = table.vector_search("v", [3.0, 1.0], k=1)
    assert found["id"].to_pylist() == ["k00003"]


def test_files_end_at_their_size(tmp_path: Path) -> None:
    given = settings("COPY_ON_WRITE", **{"hoodie.lance.max.file.size": 200_000, "hoodie.parquet.small.file.limit": 0})
    hf.write(
        plain_rows(range(20_000), partitions=1), tmp_path, {**given, "hoodie.datasource.write.operation": "insert"}
    )
    files = hf.HudiTable.open(tmp_path).files()
    assert files.num_rows > 5
    assert hf.HudiTable.open(tmp_path).count() == 20_000


def test_partition_paths_of_any_text_are_found(tmp_path: Path) -> None:
    parts = ["a b", "p%2Fq", "x#y?z", "ü€😀", "a:b", "a&b=c", "~[1]", "p%zz", "line\nbreak"]
    rows = plain_rows(range(len(parts))).set_column(1, "part", pa.array(parts))
    given = settings("COPY_ON_WRITE")
    hf.write(rows, tmp_path, given)
    again = rows.set_column(2, "ts", pa.array([2] * len(parts), pa.int64()))
    hf.write(again, tmp_path, given)
    assert rows_of(hf.HudiTable.open(tmp_path).to_arrow()) == rows_of(again)
    assert {one.name for one in tmp_path.iterdir() if one.name != ".hoodie"} == set(parts)


def test_maps_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    maps = pa.array([[("a", 1)]] * 2, pa.map_(pa.string(), pa.int64()))
    part = pa.StructArray.from_arrays([maps], ["inner"])
    rows = plain_rows(range(2)).append_column("m", maps).append_column("s", part)
    with pytest.raises(hf.UnsupportedFeatureError, match=r"map columns in Lance base files \(\['m', 's'\]\)"):
        hf.write(rows, tmp_path / "t", settings("COPY_ON_WRITE"))
    assert not (tmp_path / "t").exists()


def test_without_the_package_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hf.write(plain_rows(range(4)), tmp_path, settings("COPY_ON_WRITE"))
    before = listing(tmp_path)
    monkeypatch.setitem(sys.modules, "lance.file", None)
    with pytest.raises(hf.ConfigError, match=r"pip install 'hudi-fast\[lance\]'"):
        hf.write(plain_rows([1], ts=2), tmp_path, settings("COPY_ON_WRITE"))
    with pytest.raises(hf.ConfigError, match=r"pip install 'hudi-fast\[lance\]'"):
        hf.HudiTable.open(tmp_path).to_arrow()
    assert listing(tmp_path) == before
