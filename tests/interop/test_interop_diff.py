"""Differences between two times, beside the ones of real Hudi's snapshots of both times.

Hudi has no such query: its rows of both times are joined by key here.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from tests.interop.mor_sides import mor_options
from tests.interop.sides import Sides, data_columns, trip_options, trips
from tests.peer.client import RealHudi

pytestmark = pytest.mark.peer

KEPT = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
Rows = dict[tuple[str, str], dict[str, Any]]


def options_of(kind: str, version: int) -> dict[str, Any]:
    made = mor_options(version) if kind == "mor" else trip_options(version)
    return {**made, **KEPT, "hoodie.compact.inline": "false"}


def keyed(rows: pa.Table) -> Rows:
    return {(row["city"], row["id"]): row for row in data_columns(rows).to_pylist()}


def joined(before: Rows, after: Rows) -> list[tuple[str, Any]]:
    """The differences of the rows of two times, sorted."""
    changed = [key for key in before.keys() & after.keys() if before[key] != after[key]]
    found = [
        *(("insert", after[key]) for key in after.keys() - before.keys()),
        *(("delete", before[key]) for key in before.keys() - after.keys()),
        *(("update_before", before[key]) for key in changed),
        *(("update_after", after[key]) for key in changed),
    ]
    return sorted(found, key=str)


def differences(table: hf.HudiTable, begin: str, end: str | None) -> list[tuple[str, Any]]:
    return sorted(((row.pop("change"), row) for row in table.diff(begin, end).to_pylist()), key=str)


def written_in_turns(sides: Sides) -> list[str]:
    """Both sides insert, update and delete rows; the instants of these commits."""
    sides.hudi_writes(trips(range(12)), "insert")
    sides.we_write(trips(range(4, 16), ts=2, note="second"))
    sides.hudi_writes(trips([1, 5, 14], ts=3), "delete")
    sides.we_write(trips([0, 4, 5, 20], ts=4, note="fourth"))
    sides.hudi_writes(trips([5, 6, 7], ts=5, note="fifth"))
    sides.we_write(trips([20, 2], ts=6), "delete")
    return list(sides.table.history()["instant"].to_pylist())


@pytest.mark.parametrize(
    ("peer", "kind", "version"),
    [
        ("hudi_12", "cow", 9),
        ("hudi_12", "mor", 9),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in (("hudi_12", "mor", 6), ("hudi_015", "cow", 6), ("hudi_015", "mor", 6))
        ),
    ],
)
def test_the_difference_of_two_times_is_that_of_hudi_s_snapshots(
    request: pytest.FixtureRequest, peer: str, kind: str, version: int, tmp_path: Path
) -> None:
    hudi: RealHudi = request.getfixturevalue(peer)
    sides = Sides(hudi, tmp_path / "trips", options_of(kind, version))
    instants = written_in_turns(sides)
    assert len(instants) == 6
    snapshots = {time: keyed(hudi.read(sides.path, {"as.of.instant": time})) for time in instants}
    assert len({str(sorted(rows)) for rows in snapshots.values()}) > 2
    for begin, end in itertools.combinations(instants, 2):
        expected = joined(snapshots[begin], snapshots[end])
        assert differences(sides.table, begin, end) == expected, (begin, end)
        assert expected
    assert differences(sides.table, instants[0], None) == joined(snapshots[instants[0]], keyed(hudi.read(sides.path)))
    assert differences(sides.table, "earliest", instants[-1]) == joined({}, snapshots[instants[-1]])
