"""Which types of rows real Hudi takes for which columns, and which hudi_fast takes; the page on schemas says why."""

from __future__ import annotations

import datetime as dt
import shutil
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from tests.interop.sides import Sides, trip_options
from tests.peer.client import PeerError, RealHudi

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
TOLD = {("int", "string"), ("long", "string"), ("float", "string"), ("double", "string")}
REFUSED_HERE: dict[tuple[str, str], str] = {}
TAKEN_HERE: dict[tuple[str, str], str] = {}
QUICK = [
    ("int", "long"),
    ("long", "double"),
    ("instant", "local"),
    ("local", "instant"),
    ("instant", "long"),
    ("long", "instant"),
    ("double", "string"),
    ("decimal", "wider"),
    ("bool", "int"),
]
PAIRS = [pair for pair in product(SAMPLES, SAMPLES) if len(set(pair)) == 2]


def rows(name: str, ts: int, changed: str = "", kind: str = "") -> pa.Table:
    """One row with a column for each type; the column ``changed`` has the type ``kind``."""
    keys = {"id": [name], "part": ["p0"], "ts": pa.array([ts], pa.int64())}
    chosen = {f"c_{one}": SAMPLES[kind if one == changed else one] for one in SAMPLES}
    return pa.table({**keys, **{one: pa.array([value], type_) for one, (type_, value) in chosen.items()}})


@pytest.mark.parametrize(
    "pairs", [pytest.param(QUICK, id="some"), pytest.param(PAIRS, id="all", marks=pytest.mark.long)]
)
def test_rows_of_another_type_are_taken_as_by_hudi_but_for_the_listed_pairs(
    pairs: list[tuple[str, str]], hudi_12: RealHudi, tmp_path: Path
) -> None:
    options = trip_options(9, hoodie__datasource__write__partitionpath__field="part", hoodie__metadata__enable=False)
    first = Sides(hudi_12, tmp_path / "first", options, plainly=True)
    first.hudi_writes(rows("a", 1))
    theirs, ours = set(), set()
    wrong = {}
    for table, kind in pairs:
        column, new = f"c_{table}", rows("b", 2, table, kind)
        by_hudi = tmp_path / f"{table}-{kind}-hudi"
        by_us = tmp_path / f"{table}-{kind}-us"
        for path in (by_hudi, by_us):
            shutil.copytree(first.path, path)
        try:
            Sides(hudi_12, by_hudi, options, plainly=True).hudi_writes(new)
            theirs.add((table, kind))
        except PeerError:
            pass
        try:
            if (table, kind) in TOLD:
                with pytest.warns(hf.HudiWarning, match=f"'{column}' as text"):
                    hf.write(new, by_us, options)
            else:
                hf.write(new, by_us, options)
            ours.add((table, kind))
        except hf.SchemaMismatchError as error:
            assert f"column '{column}' is" in str(error)
        if {(table, kind)} <= theirs & ours:
            found = [hf.HudiTable.open(path).to_arrow([column], filter="id = 'b'") for path in (by_hudi, by_us)]
            seen = hudi_12.read(by_us, where="id = 'b'", columns=[column])
            values = [one[column].to_pylist() for one in (*found, seen)]
            if values[0] != values[1] or values[1] != values[2]:
                wrong[table, kind] = values
    assert wrong == {}
    assert theirs - ours == {pair for pair in pairs if pair in REFUSED_HERE}
    assert ours - theirs == {pair for pair in pairs if pair in TAKEN_HERE}
