"""Instants: one action on the table at one requested time, and the names of the files that stand for it.

A timeline file name says requested time, action and state, in layout 2 (table version 8 and later) also the completion
time. :func:`parse_instant_file` reads a name and :func:`instant_file_name` writes one; both are pure. Several names
are not what one would guess: the inflight file of a commit is ``T.inflight``, and a compaction, a log compaction and a
clustering complete under the action that they count as (:data:`COMPLETED_ACTIONS`).

Times are text, ``yyyyMMddHHmmssSSS`` in the timeline's zone, and compare as text. Sources: InstantFileNameGenerator and
-Parser V1/V2, InstantComparators, HoodieInstantTimeGenerator, release 1.2.0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import IntEnum

from hudi_fast.errors import CorruptTableError

__all__ = [
    "ACTIONS",
    "COMPLETED_ACTIONS",
    "FULL_BOOTSTRAP_INSTANT",
    "METADATA_BOOTSTRAP_INSTANT",
    "SOLO_TIME",
    "WRITE_ACTIONS",
    "Instant",
    "State",
    "comparable_action",
    "instant_file_name",
    "instant_from_ms",
    "ms_from_instant",
    "parse_instant_file",
    "with_state",
]


class State(IntEnum):
    """How far an instant has come; states compare in that order."""

    REQUESTED = 0
    INFLIGHT = 1
    COMPLETED = 2


ACTIONS = frozenset(
    "commit deltacommit compaction logcompaction replacecommit clustering clean rollback restore savepoint indexing "
    "schemacommit".split()
)
"""Actions of the timeline."""

# What an action is called once it is complete, where that differs; for comparing, both names are one action.
COMPLETED_ACTIONS = {"compaction": "commit", "logcompaction": "deltacommit", "clustering": "replacecommit"}

WRITE_ACTIONS = frozenset({"commit", "deltacommit", "replacecommit"})
"""Actions that write rows."""

METADATA_BOOTSTRAP_INSTANT = "00000000000001"
"""The write that made a table of a folder without copying its rows."""
FULL_BOOTSTRAP_INSTANT = "00000000000002"
"""The write that copied the rows of a folder into a new table."""
SOLO_TIME = "00000000000000"
"""What the times of delta commits of a metadata table begin with that built a partition, on tables that were empty or
of version 8 on (``SOLO_COMMIT_TIMESTAMP``)."""

_NAME = re.compile(r"(\d+)(?:_(\d+))?\.(\w+)(?:\.(\w+))?")
_TIME_DIGITS = 17


@dataclass(frozen=True, slots=True)
class Instant:
    """One action on the table.

    Attributes:
        requested: requested time, the identity of the instant.
        action: as in the file name (``compaction`` while pending, ``commit`` when complete).
        state: how far it has come.
        completion: completion time; None while pending. In layout 1, and for files that an upgrade left without one
            in the name, the modification time of the completed file, if known.
        file_name: name of the file of that state below the timeline folder, if it was read from there.
    """

    requested: str
    action: str
    state: State
    completion: str | None = None
    file_name: str | None = None

    @property
    def is_completed(self) -> bool:
        """Whether the action is complete."""
        return self.state is State.COMPLETED


def comparable_action(action: str) -> str:
    """The action that it counts as when it is complete: states of one instant share it."""
    return COMPLETED_ACTIONS.get(action, action)


def parse_instant_file(name: str, layout: int) -> Instant | None:
    """The instant and state that a file name stands for; None for a file that is not an instant's.

    Args:
        name: file name without folder.
        layout: timeline layout, 1 or 2. In layout 2 a completed file may lack the completion time ("legacy": it was
            there before an upgrade); the instant then has none either.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    requested, completion, first, second = match.groups()
    if first == "inflight" and second is None:
        action, state = "commit", State.INFLIGHT
    elif second is None:
        action, state = first, State.COMPLETED
    elif second in ("requested", "inflight"):
        action, state = first, State[second.upper()]
    else:
        return None
    if action not in ACTIONS or (state is State.COMPLETED and action in COMPLETED_ACTIONS):
        return None
    if completion is not None and (layout < 2 or state is not State.COMPLETED):
        return None
    return Instant(requested, action, state, completion, name)


def instant_file_name(instant: Instant, layout: int) -> str:
    """The name of the file for the instant in its state.

    Raises:
        ValueError: a completed instant of layout 2 without completion time (unless its file name is known).
    """
    if instant.state is not State.COMPLETED:
        if instant.action == "commit" and instant.state is State.INFLIGHT:
            return f"{instant.requested}.inflight"
        action = "replacecommit" if instant.action == "clustering" and layout < 2 else instant.action
        return f"{instant.requested}.{action}.{instant.state.name.lower()}"
    if instant.file_name is not None:
        return instant.file_name
    action = comparable_action(instant.action)
    if layout < 2:
        return f"{instant.requested}.{action}"
    if instant.completion is None:
        raise ValueError(f"The completed {action} {instant.requested} has no completion time to name its file with.")
    return f"{instant.requested}_{instant.completion}.{action}"


def with_state(instant: Instant, state: State, completion: str | None = None) -> Instant:
    """The instant in another state, under the action name of that state, its file not known."""
    action = comparable_action(instant.action) if state is State.COMPLETED else instant.action
    return replace(instant, action=action, state=state, completion=completion, file_name=None)


def instant_from_ms(ms: int, zone: str) -> str:
    """The 17-digit time for milliseconds since the epoch; ``zone`` is ``LOCAL`` (this process's) or ``UTC``."""
    seconds, millis = divmod(ms, 1000)
    moment = datetime.fromtimestamp(seconds, UTC) if zone == "UTC" else datetime.fromtimestamp(seconds)
    return f"{moment:%Y%m%d%H%M%S}{millis:03d}"


def ms_from_instant(time: str, zone: str) -> int:
    """Milliseconds since the epoch for an instant time.

    A time of 14 digits (whole seconds) counts as the last millisecond of its second; digits beyond the 17th are
    ignored; the special times before year 1 (``00000000000001`` and the like) give their number.

    Raises:
        CorruptTableError: not an instant time.
    """
    digits = time[:_TIME_DIGITS]
    if digits.isdecimal() and digits.startswith("0000"):
        return int(digits)
    try:
        if len(digits) not in (14, _TIME_DIGITS):
            raise ValueError("wrong length")
        moment = datetime.strptime(digits[:14], "%Y%m%d%H%M%S")
        millis = int(digits[14:] or "999")
    except ValueError as error:
        raise CorruptTableError(f"{time!r} is not an instant time; expected yyyyMMddHHmmssSSS.") from error
    seconds = moment.replace(tzinfo=UTC).timestamp() if zone == "UTC" else moment.timestamp()
    return int(seconds) * 1000 + millis
