"""Which types of rows real Hudi takes for which columns, and which hudi_fast takes; the page on schemas says why."""

from __future__ import annotations

import datetime as dt
import shutil
from contextlib import suppress
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.schema.assignment import Outcome, outcome_of
from tests.interop.sides import Sides, trip_options
from tests.peer.client import PeerError, RealHudi
from tests.support.rows import assert_same_rows

NOON = dt.datetime(2024, 3, 31, 12, 0, 0, 123456)
SAMPLES: dict[str, tuple[pa.DataType, Any]] = {
    "bool": (pa.bool_(), True),
    "int": (pa.int32(), 7),
    "long": (pa.int64(), 7),
    "float": (pa.float32(), 1.5),
    "double": (pa.float64(), 1.5),
    "string": (pa.string(), "7"),
    "bytes": (pa.binary(), b"7"),
    "date": (pa.date32(), NOON.date()),
    "instant": (pa.timestamp("us", "UTC"), NOON),
    "local": (pa.timestamp("us"), NOON),
    "decimal": (pa.decimal128(5, 2), Decimal("1.25")),
    "wider": (pa.decimal128(9, 4), Decimal("1.25")),
}
KINDS = {name: kind for name, (kind, _) in SAMPLES.items()}
PAIRS = [pair for pair in product(SAMPLES, SAMPLES) if len(set(pair)) == 2]
OUTCOMES = {pair: outcome_of(*(KINDS[name] for name in pair)) for pair in PAIRS}
TAKEN = [pair for pair in PAIRS if OUTCOMES[pair].keeps_column or OUTCOMES[pair] in (Outcome.COLUMN, Outcome.TEXT)]
REFUSED = [pair for pair in PAIRS if pair not in TAKEN]
ONLY_HUDI = {
    ("int", "float"): "a float rounds; hudi_fast.allow.rounding",
    ("long", "float"): "a float rounds; hudi_fast.allow.rounding",
    ("long", "double"): "a double rounds; hudi_fast.allow.rounding",
    ("long", "instant"): "stored numbers would become moments of an unknown unit",
    ("long", "local"): "stored numbers would become moments of an unknown unit",
    **{
        (column, kind): "Hudi casts the rows, and rounds; the user may do so"
        for column in ("decimal", "wider")
        for kind in ("int", "long", "float", "double", "string")
    },
    **{("string", kind): "the rows would become text" for kind in ("decimal", "wider", "date")},
}
"""Pairs (column, rows) that Hudi 1.2.0 takes and hudi_fast refuses, with the reason."""
SOME = [("long", "double"), ("long", "instant"), ("instant", "long"), ("instant", "local"), ("local", "instant")]


def options() -> dict[str, Any]:
    return trip_options(9, hoodie__datasource__write__partitionpath__field="part", hoodie__metadata__enable=False)


def rows(name: str, ts: int, kinds: dict[str, str]) -> pa.Table:
    """One row; ``kinds`` has the kind of each column."""
    keys = {"id": [name], "part": [f"p{ts}"], "ts": pa.array([ts], pa.int64())}
    return pa.table({**keys, **{column: pa.array([SAMPLES[kind][1]], KINDS[kind]) for column, kind in kinds.items()}})


def test_rows_that_are_taken_are_stored_as_by_hudi(hudi_12: RealHudi, tmp_path: Path) -> None:
    old = {f"{column}_{kind}": column for column, kind in TAKEN}
    new = {f"{column}_{kind}": kind for column, kind in TAKEN}
    theirs = Sides(hudi_12, tmp_path / "theirs", options(), plainly=True)
    theirs.hudi_writes(rows("a", 1, old))
    ours = Sides(hudi_12, tmp_path / "ours", options(), plainly=True)
    shutil.copytree(theirs.path, ours.path)
    theirs.hudi_writes(rows("b", 2, new))
    with pytest.warns(hf.HudiWarning, match="'int_string', int32 -> string"):
        ours.we_write(rows("b", 2, new))
    assert ours.table.schema.equals(theirs.table.schema)
    columns = ["id", *old]
    found = ours.table.to_arrow(columns)
    assert_same_rows(found, theirs.table.to_arrow(columns))
    assert_same_rows(found, hudi_12.read(ours.path, columns=columns))


@pytest.mark.parametrize(
    "pairs", [pytest.param(SOME, id="some"), pytest.param(REFUSED, id="all", marks=pytest.mark.long)]
)
def test_rows_that_are_refused_are_refused_by_hudi_but_for_the_listed_pairs(
    pairs: list[tuple[str, str]], hudi_12: RealHudi, tmp_path: Path
) -> None:
    sides = Sides(hudi_12, tmp_path / "t", options(), plainly=True)
    sides.hudi_writes(rows("a", 1, {name: name for name in SAMPLES}))
    taken = set()
    for number, (column, kind) in enumerate(pairs):
        new = rows("b", 2, {name: kind if name == column else name for name in SAMPLES})
        with pytest.raises(hf.SchemaMismatchError, match=f"column '{column}' is"):
            sides.we_write(new)
        copied = Sides(hudi_12, tmp_path / str(number), options(), plainly=True)
        shutil.copytree(sides.path, copied.path)
        with suppress(PeerError):
            copied.hudi_writes(new)
            taken.add((column, kind))
        shutil.rmtree(copied.path)
    assert taken == {pair for pair in pairs if pair in ONLY_HUDI}
