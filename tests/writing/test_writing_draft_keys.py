"""Writes go on with the form of record keys that a table has.

Modules: hudi_fast.writing.draft.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf


@pytest.mark.slow
@pytest.mark.parametrize("upgraded", [False, True])
@pytest.mark.parametrize("plain", [False, True])
def test_a_complex_key_of_one_column_has_the_form_of_stored_keys(plain: bool, upgraded: bool, tmp_path: Path) -> None:
    """Hudi 0.14.1 to 1.0.2 leave out the name of the column, and an upgrade to version 9 keeps such keys."""
    options: dict[str, Any] = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "a,b",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
        "hoodie.write.complex.keygen.validation.enable": "false",
        "hoodie.write.table.version": "8",
    }
    rows = pa.table({"id": ["k"], "ts": [1], "a": ["x"], "b": ["y"]})
    hf.write(rows, tmp_path, {**options, "hoodie.write.complex.keygen.new.encoding": str(plain).lower()})
    table = hf.HudiTable.open(tmp_path)
    if upgraded:
        table.services.upgrade(9, {"hoodie.write.complex.keygen.validation.enable": "false"})
    table.upsert(rows.set_column(1, "ts", pa.array([2])), {"hoodie.write.complex.keygen.validation.enable": "false"})
    assert table.version == (9 if upgraded else 8)
    stored = table.to_arrow()
    assert stored["ts"].to_pylist() == [2]
    assert stored["_hoodie_record_key"].to_pylist() == ["k" if plain else "id:k"]
