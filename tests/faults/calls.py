"""Storage calls that fail: which ones, in which ways, and a write that meets one."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyarrow as pa

from tests.support.instrumented_storage import FAULT_KINDS, FaultyStorage, StorageCall
from tests.support.small_tables import write_to

__all__ = ["EVERY_WAY", "attempt", "faults", "interesting"]

EVERY_WAY = False
"""Whether all ways to fail are tried: in the tier ``long``."""


def interesting(calls: list[StorageCall]) -> list[StorageCall]:
    """All calls but for the many writes to one stream: of those the first and the last."""
    by_stream: dict[str, list[StorageCall]] = {}
    for call in calls:
        if call.name == "stream_write":
            by_stream.setdefault(call.path, []).append(call)
    kept = {each[at].number for each in by_stream.values() for at in (0, -1)}
    return [call for call in calls if call.name != "stream_write" or call.number in kept]


def faults(calls: list[StorageCall], survive: bool = True) -> Iterator[tuple[StorageCall, str, bool]]:
    """Each call with a third of the ways in which it can fail, and in which the writer dies of it or not.

    Calls that change nothing can only fail; of the others the answer may get lost, or a part be done.
    """
    chance = random.Random(len(calls))
    for call in interesting(calls):
        kinds = FAULT_KINDS if call.changes else FAULT_KINDS[:1]
        ways = [(kind, die) for kind in kinds for die in (True, False) if die or survive or kind == "before"]
        for kind, die in ways if EVERY_WAY else chance.sample(ways, -(-len(ways) // 3)):
            yield call, kind, die


def attempt(storage: FaultyStorage, rows: pa.Table, settings: dict[str, str], mode: str = "append") -> Exception | None:
    """The error of a write; None if it succeeds."""
    try:
        write_to(storage, rows, settings, mode)
    except Exception as error:
        return error
    return None
