"""Change queries over tables that either side has written: both give the same changes, byte for byte."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.reading.incremental.cdc import change_options
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from tests.interop.all_types import all_types
from tests.peer.client import RealHudi

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
MODES = ("OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER")
DECIMAL = re.compile(r'("dec\d+":|"when":-?\d+,"d":)(?:-?[\d.]+|\{"zero":(?:false|true)\})')


def some_types(ids: list[int], ts: int) -> pa.Table:
    """Without the type that real Hudi cannot rewrite: a list of structs with one member."""
    return all_types(ids, ts).drop(["singles"])


def cdc_options(kind: str, mode: str, version: str) -> dict[str, Any]:
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.table.version": version,
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": mode,
        "hoodie.metadata.enable": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.bulkinsert.shuffle.parallelism": "2",
        "hoodie.upsert.shuffle.parallelism": "2",
        "hoodie.delete.shuffle.parallelism": "2",
    }


def texts(changes: pa.Table) -> Counter[tuple[str | None, ...]]:
    """Changes as they are, but for decimals of rows: real Hudi writes ``{"zero":false}`` in their place."""
    rows = (row.values() for row in changes.select(["op", "ts_ms", "before", "after"]).to_pylist())
    return Counter(tuple(one and DECIMAL.sub(r"\1#", one) for one in row) for row in rows)


def assert_both_answer_alike(peer: RealHudi, path: Path) -> None:
    table, instants = hf.HudiTable.open(path), [one.requested for one in load_state(Storage(path)).timeline.writes()]
    for begin, end in (("000", None), (instants[1], None), (instants[0], instants[-2])):
        ours = texts(table.cdc(begin, end))
        assert sum(ours.values()) > 0
        assert ours == texts(peer.read(path, change_options(begin, end)))


def turns(peer: RealHudi, path: Path, given: dict[str, Any], ours_first: bool) -> None:
    """Either side writes in turn: inserts, updates, late rows, deletes, a compaction, an overwritten partition."""
    operation = "hoodie.datasource.write.operation"
    steps = [("insert", range(9), 1), ("upsert", range(5, 14), 2), ("upsert", range(4, 8), 1), ("delete", [1, 6, 7], 3)]
    steps += [("upsert", range(0, 16, 2), 4), ("insert_overwrite", [0, 20], 5), ("upsert", [0, 1, 3], 6)]
    for number, (verb, ids, ts) in enumerate(steps):
        rows, options = some_types(list(ids), ts), {**given, operation: verb}
        if (number % 2 == 0) == ours_first:
            hf.write(rows, path, {**options, "hoodie.compact.inline": "false"})
        else:
            peer.write(rows, path, {**options, "hoodie.compact.inline": "false"})
        if number == 3 and given["hoodie.datasource.write.table.type"] == MOR:
            hf.HudiTable.open(path).services.compact()


@pytest.mark.smoke("MERGE_ON_READ-DATA_BEFORE_AFTER-9-True")
@pytest.mark.parametrize(
    ("kind", "mode", "version", "ours_first"),
    [
        (MOR, "DATA_BEFORE_AFTER", "9", True),
        *(
            pytest.param(kind, mode, version, ours, marks=pytest.mark.long)
            for kind, mode, version, ours in (
                (COW, MODES[0], "9", False),
                (COW, MODES[1], "9", True),
                (COW, MODES[2], "6", True),
                (MOR, MODES[0], "9", False),
                (MOR, MODES[1], "8", True),
            )
        ),
    ],
)
def test_both_sides_give_the_changes_of_a_table_that_both_wrote(
    hudi_12: RealHudi, tmp_path: Path, kind: str, mode: str, version: str, ours_first: bool
) -> None:
    turns(hudi_12, tmp_path / "t", cdc_options(kind, mode, version), ours_first)
    assert_both_answer_alike(hudi_12, tmp_path / "t")
