"""What is Lance's own: vectors, sizes, paths, maps, a missing package. The rest is in test_view_base_files.

Modules: hudi_fast.view.base_files, hudi_fast.formats.lance.base_file.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.formats.logical_types import vector_type
from tests.support.small_tables import listing, plain_rows, rows_of, table_rows
from tests.view.test_view_base_files import FORMAT, INDEXES, SEVERAL, extensions, settings


def lance_settings(**more: Any) -> dict[str, Any]:
    return settings("COPY_ON_WRITE", base="LANCE", **more)


@pytest.mark.slow
def test_a_table_may_have_lance_files_beside_others(tmp_path: Path) -> None:
    given = {**lance_settings(), SEVERAL: "true", FORMAT: "PARQUET", **INDEXES}
    hf.write(plain_rows(range(10)), tmp_path, given)
    hf.write(plain_rows([1, 11], ts=2, text="b"), tmp_path, {**given, FORMAT: "LANCE"})
    assert extensions(tmp_path) == {"parquet", "lance"}
    expected = {**rows_of(plain_rows(range(10))), **rows_of(plain_rows([1, 11], ts=2, text="b"))}
    assert table_rows(tmp_path) == expected
    hf.HudiTable.open(tmp_path).services.cluster({**given, FORMAT: "LANCE"})
    assert table_rows(tmp_path) == expected
    assert hf.HudiTable.open(tmp_path).services.validate().ok


def test_vectors_of_a_lance_table_are_searched(tmp_path: Path) -> None:
    numbers = pa.array([[float(at), 1.0] for at in range(6)], vector_type(2, pa.float32()))
    rows = plain_rows(range(6)).append_column(pa.field("v", numbers.type, metadata={"hudi_type": "VECTOR(2)"}), numbers)
    hf.write(rows, tmp_path, lance_settings())
    table = hf.HudiTable.open(tmp_path)
    assert table.schema.field("v").type == vector_type(2, pa.float32())
    found = table.vector_search("v", [3.0, 1.0], k=1)
    assert found["id"].to_pylist() == ["k00003"]


@pytest.mark.slow
def test_files_end_at_their_size(tmp_path: Path) -> None:
    given = lance_settings(**{"hoodie.lance.max.file.size": 200_000, "hoodie.parquet.small.file.limit": 0})
    hf.write(
        plain_rows(range(20_000), partitions=1), tmp_path, {**given, "hoodie.datasource.write.operation": "insert"}
    )
    files = hf.HudiTable.open(tmp_path).files()
    assert files.num_rows > 5
    assert hf.HudiTable.open(tmp_path).count() == 20_000


@pytest.mark.slow
def test_partition_paths_of_any_text_are_found(tmp_path: Path) -> None:
    parts = ["a b", "p%2Fq", "x#y?z", "ü€😀", "a:b", "a&b=c", "~[1]", "p%zz", "line\nbreak"]
    rows = plain_rows(range(len(parts))).set_column(1, "part", pa.array(parts))
    given = lance_settings()
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
        hf.write(rows, tmp_path / "t", lance_settings())
    assert not (tmp_path / "t").exists()


def test_without_the_package_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hf.write(plain_rows(range(4)), tmp_path, lance_settings())
    before = listing(tmp_path)
    monkeypatch.setitem(sys.modules, "lance", None)
    monkeypatch.setitem(sys.modules, "lance.file", None)
    with pytest.raises(hf.ConfigError, match=r"pip install 'hudi-fast\[lance\]'"):
        hf.write(plain_rows([1], ts=2), tmp_path, lance_settings())
    with pytest.raises(hf.ConfigError, match=r"pip install 'hudi-fast\[lance\]'"):
        hf.HudiTable.open(tmp_path).to_arrow()
    assert listing(tmp_path) == before
