"""The sixth meta column, ``_hoodie_operation``: written, read, merged, kept by services; ties of ordering values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.formats.log.blocks import BlockType
from tests.support.mor_tables import blocks_of
from tests.support.small_tables import assert_tidy, options, plain_rows, table_rows

OPERATION = "_hoodie_operation"
ALLOW = "hoodie.allow.operation.metadata.field"


def settings_of(kind: str, **more: Any) -> dict[str, Any]:
    return {
        **options(),
        "hoodie.datasource.write.table.type": kind,
        "hoodie.compact.inline": "false",
        ALLOW: True,
        **more,
    }


def changes(numbers: list[int], ts: int, operations: list[str | None]) -> pa.Table:
    return plain_rows(numbers, ts, text=f"at{ts}-").append_column(OPERATION, pa.array(operations, pa.string()))


def operations_of(path: Path) -> dict[int, str | None]:
    read = hf.HudiTable.open(path).to_arrow(columns=["id", OPERATION])
    return {int(row["id"][1:]): row[OPERATION] for row in read.to_pylist()}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_operations_are_stored_beside_the_rows(kind: str, tmp_path: Path) -> None:
    settings = settings_of(kind)
    hf.write(changes([0, 1, 2, 3, 4], 1, ["I", "I", "I", None, "I"]), tmp_path, settings)
    assert hf.HudiTable.open(tmp_path).schema.names == ["id", "part", "ts", "text"]
    hf.write(changes([1, 2, 3, 4], 2, ["U", "-U", "U", "D"]), tmp_path, settings)
    expected = {0: "I", 1: "U", 3: "U"}
    assert operations_of(tmp_path) == expected
    if kind == "MERGE_ON_READ":
        logged = [row for block in blocks_of(tmp_path) for row in block.rows]
        assert sorted((row["id"][-1], row[OPERATION]) for row in logged) == [
            ("1", "U"),
            ("2", "-U"),
            ("3", "U"),
            ("4", "D"),
        ]
        assert all(block.kind is BlockType.AVRO_DATA for block in blocks_of(tmp_path))
    hf.write(plain_rows([1, 7], ts=3), tmp_path, settings)  # rows without the column
    assert operations_of(tmp_path) == {0: "I", 1: None, 3: "U", 7: None}
    table = hf.HudiTable.open(tmp_path)
    table.update("id = 'k00000'", {"text": "'set'"}, options=settings)
    table.delete(plain_rows([3]), options=settings)
    expected = {0: "U", 1: None, 7: None}
    assert operations_of(tmp_path) == expected
    if kind == "MERGE_ON_READ":
        table.services.compact()
        assert operations_of(tmp_path) == expected
    table.services.cluster()
    assert operations_of(tmp_path) == expected
    assert set(table_rows(tmp_path)) == {"k00000", "k00001", "k00007"}
    assert_tidy(tmp_path)


def test_a_rewrite_that_would_lose_operations_is_refused(tmp_path: Path) -> None:
    settings = settings_of("COPY_ON_WRITE")
    hf.write(changes([0, 1], 1, ["I", "U"]), tmp_path, settings)
    with pytest.raises(hf.UnsupportedFeatureError, match=ALLOW):
        hf.write(plain_rows([0], ts=2), tmp_path, {**settings, ALLOW: False})
    assert operations_of(tmp_path) == {0: "I", 1: "U"}
    changelog = {**settings_of("COPY_ON_WRITE"), "hoodie.table.cdc.enabled": True}
    with pytest.raises(hf.UnsupportedFeatureError, match=r"cdc\.enabled"):
        hf.write(changes([0], 1, ["I"]), tmp_path / "cdc", changelog)
    assert not (tmp_path / "cdc").exists()


@pytest.mark.slow
def test_partial_rows_have_operations(tmp_path: Path) -> None:
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        settings = settings_of(kind)
        hf.write(changes([0, 1], 1, ["I", "I"]), tmp_path / kind, settings)
        some = changes([0, 1], 2, ["U", "D"]).drop_columns(["text"])
        hf.write(some, tmp_path / kind, {**settings, "hudi_fast.partial.update": True})
        assert operations_of(tmp_path / kind) == {0: "U"}
        assert table_rows(tmp_path / kind) == {"k00000": ("p0", 2, "at1-0")}


TIE = "hoodie.payload.update.on.same.ordering.field"


def by_payload(path: Path, kind: str, *more: str) -> dict[str, Any]:
    """A table of version 8 in which the default payload class decides, which no release creates by itself."""
    settings = {**options(table_version="8"), "hoodie.datasource.write.table.type": kind}
    hf.write(plain_rows([0], ts=1, text="first"), path, settings)
    file = path / ".hoodie" / "hoodie.properties"
    changed = [line for line in file.read_text().splitlines() if not line.startswith("hoodie.record.merge.")]
    custom = ["hoodie.record.merge.mode=CUSTOM", "hoodie.record.merge.strategy.id=00000000-0000-0000-0000-000000000000"]
    file.write_text("\n".join([*changed, *custom, *more, ""]))
    return settings


@pytest.mark.slow
def test_a_row_with_an_equal_ordering_value_may_lose(tmp_path: Path) -> None:
    settings = by_payload(tmp_path / "option", "COPY_ON_WRITE")
    hf.write(plain_rows([0], ts=1, text="lost"), tmp_path / "option", {**settings, TIE: False})
    assert table_rows(tmp_path / "option") == {"k00000": ("p0", 1, "first0")}
    hf.write(plain_rows([0], ts=1, text="won"), tmp_path / "option", settings)
    assert table_rows(tmp_path / "option") == {"k00000": ("p0", 1, "won0")}
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):  # a property of the table says it to readers of logs, too
        settings = by_payload(tmp_path / kind, kind, f"hoodie.record.merge.property.{TIE}=false")
        hf.write(plain_rows([0], ts=1, text="lost"), tmp_path / kind, {**settings, TIE: False})
        assert table_rows(tmp_path / kind) == {"k00000": ("p0", 1, "first0")}
    settings = by_payload(tmp_path / "mor", "MERGE_ON_READ")
    with pytest.raises(hf.UnsupportedFeatureError, match="readers of logs"):
        hf.write(plain_rows([0], ts=1), tmp_path / "mor", {**settings, TIE: False})


def test_ties_are_the_payloads_to_decide(tmp_path: Path) -> None:
    hf.write(plain_rows([0], ts=1), tmp_path / "t", options())
    with pytest.raises(hf.UnsupportedFeatureError, match=f"{TIE}=false applies where Default"):
        hf.write(plain_rows([0], ts=1), tmp_path / "t", {**options(), TIE: False})
