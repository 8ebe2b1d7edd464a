"""Storage calls that fail: which ones, in which ways, and a write that meets one."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

import pyarrow as pa

from tests.support.instrumented_storage import FAULT_KINDS, FaultyStorage, StorageCall
from tests.support.small_tables import write_to

__all__ = ["EVERY_WAY", "attempt", "faults", "few", "interesting"]

One = TypeVar("One")

NAMES = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4,12}){4}|\d+")
"""File ids, instants and other numbers of a path."""

EVERY_WAY = False
"""Whether all ways to fail are tried: in the tier ``long``."""


def interesting(calls: list[StorageCall]) -> list[StorageCall]:
    """The calls but for those that fail as another one does.

    Of the calls that change files it is the first two of each kind and the last one; a kind is a name with a path
    without numbers. Of the calls that only read it is the first of each kind, and one before every third of those
    changes: when it fails, it leaves the files that any other read at this time would leave, and that a change leaves
    which fails before it begins. In the tier ``long`` it is every call, but for the writes to one stream between the
    first and the last.
    """
    by_kind: dict[tuple[str, str], list[StorageCall]] = {}
    for call in calls:
        by_kind.setdefault((call.name, call.path if EVERY_WAY else NAMES.sub("#", call.path)), []).append(call)
    if EVERY_WAY:
        between = {one.number for (name, _), same in by_kind.items() if name == "stream_write" for one in same[1:-1]}
        return [call for call in calls if call.number not in between]
    kept = {one.number for same in by_kind.values() for one in (same[:2] + same[-1:] if same[0].changes else same[:1])}
    before_changes = [
        before.number for before, call in pairwise(calls) if call.changes and call.number in kept and not before.changes
    ]
    kept.update(before_changes[::3])
    return [call for call in calls if call.number in kept]


def faults(calls: list[StorageCall], survive: bool = True) -> Iterator[tuple[StorageCall, str, bool]]:
    """Each call with one of the ways in which it can fail, and in which the writer dies of it or not.

    Calls that change nothing can only fail; of the others the answer may get lost, or a part be done.
    """
    chance = random.Random(len(calls))
    for call in interesting(calls):
        kinds = FAULT_KINDS if call.changes else FAULT_KINDS[:1]
        ways = [(kind, die) for kind in kinds for die in (True, False) if die or survive or kind == "before"]
        for kind, die in ways if EVERY_WAY else [chance.choice(ways)]:
            yield call, kind, die


def few(found: Sequence[One], limit: int) -> list[One]:
    """At most so many of them in their order, drawn by lot, and the last one; in the tier ``long`` it is all."""
    if EVERY_WAY or len(found) <= limit:
        return list(found)
    drawn = random.Random(len(found)).sample(range(len(found) - 1), limit - 1)
    return [found[at] for at in (*sorted(drawn), -1)]


def attempt(storage: FaultyStorage, rows: pa.Table, settings: dict[str, str], mode: str = "append") -> Exception | None:
    """The error of a write; None if it succeeds."""
    try:
        write_to(storage, rows, settings, mode)
    except Exception as error:
        return error
    return None
