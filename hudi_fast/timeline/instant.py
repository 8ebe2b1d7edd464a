"""Instants: one action on the table at one requested time, and the names of its files.

A timeline file name contains requested time, action and state, in layout 2 (table version 8 and later) also the
completion time. :func:`parse_instant_file` parses a name and :func:`instant_file_name` formats one. Two kinds of names
are irregular: the inflight file of a commit is ``T.inflight``, and completed compactions, log compactions and
clusterings have another action name (:data:`COMPLETED_ACTIONS`).

Times are text, ``yyyyMMddHHmmssSSS`` in the timeline's zone, and compare as text. Sources: InstantFileNameGenerator and
-Parser V1/V2, InstantComparators, HoodieInstantTimeGenerator, release 1.2.0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import IntEnum
from functools import lru_cache

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
    """State of an instant; states are ordered."""

    REQUESTED = 0
    INFLIGHT = 1
    COMPLETED = 2


ACTIONS = frozenset(
    "commit deltacommit compaction logcompaction replacecommit clustering clean rollback restore savepoint indexing "
    "schemacommit".split()
)
"""Actions of the timeline."""

# Pending action -> its name in the completed state, where the two differ. Comparisons treat both names as one action.
COMPLETED_ACTIONS = {"compaction": "commit", "logcompaction": "deltacommit", "clustering": "replacecommit"}

WRITE_ACTIONS = frozenset({"commit", "deltacommit", "replacecommit"})
"""Actions that write rows."""

METADATA_BOOTSTRAP_INSTANT = "00000000000001"
"""Instant of a bootstrap without copied rows."""
FULL_BOOTSTRAP_INSTANT = "00000000000002"
"""Instant of a bootstrap that copies rows."""
SOLO_TIME = "00000000000000"
"""Prefix of instants that build a partition of a metadata table, for empty tables and from version 8 on
(``SOLO_COMMIT_TIMESTAMP``)."""

_NAME = re.compile(r"(\d+)(?:_(\d+))?\.(\w+)(?:\.(\w+))?", re.ASCII)
_TIME_DIGITS = 17
_CACHED_NAMES = 1 << 15
"""A process that uses a table repeatedly lists the same file names each time; the cache takes about 10 MB."""


@dataclass(frozen=True, slots=True)
class Instant:
    """One action on the table.

    Attributes:
        requested: requested time, which identifies the instant.
        action: as in the file name (``compaction`` while pending, ``commit`` once completed).
        state: state of the instant.
        completion: completion time; None while pending. In layout 1, and for files from before an upgrade, the
            modification time of the completed file, if known.
        file_name: name of the file in the timeline folder, if the instant was read from there.
    """

    requested: str
    action: str
    state: State
    completion: str | None = None
    file_name: str | None = None

    @property
    def is_completed(self) -> bool:
        """Whether the instant is completed."""
        return self.state is State.COMPLETED


def comparable_action(action: str) -> str:
    """The name of an action in the completed state, which all states of an instant share."""
    return COMPLETED_ACTIONS.get(action, action)


@lru_cache(_CACHED_NAMES)
def parse_instant_file(name: str, layout: int) -> Instant | None:
    """Parse a timeline file name; None for a file that does not belong to an instant.

    Args:
        name: file name without folder.
        layout: timeline layout, 1 or 2. In layout 2, a completed file from before an upgrade has no completion time;
            its instant has none either.
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
    """The file name of the instant in its state.

    Raises:
        ValueError: a completed instant of layout 2 has neither completion time nor file name.
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
    """The instant in another state, with the action name of that state and without file name."""
    action = comparable_action(instant.action) if state is State.COMPLETED else instant.action
    return replace(instant, action=action, state=state, completion=completion, file_name=None)


def instant_from_ms(ms: int, zone: str) -> str:
    """Format milliseconds since the epoch as a 17-digit time; ``zone`` is ``LOCAL`` (of this process) or ``UTC``."""
    seconds, millis = divmod(ms, 1000)
    at = datetime.fromtimestamp(seconds, UTC) if zone == "UTC" else datetime.fromtimestamp(seconds)
    # less than half the time of strftime, in listings of thousands of files
    return f"{at.year:04d}{at.month:02d}{at.day:02d}{at.hour:02d}{at.minute:02d}{at.second:02d}{millis:03d}"


def ms_from_instant(time: str, zone: str) -> int:
    """Convert an instant time to milliseconds since the epoch.

    A time of 14 digits means the last millisecond of its second. Digits after the 17th are ignored. Special times
    before year 1 (``00000000000001``) give their number.

    Raises:
        CorruptTableError: the text is not an instant time.
    """
    digits = time[:_TIME_DIGITS]
    if digits.isdecimal() and digits.startswith("0000"):
        return int(digits)
    try:
        if len(digits) not in (14, _TIME_DIGITS):
            raise ValueError("wrong length")
        moment = datetime.strptime(digits[:14], "%Y%m%d%H%M%S")
        millis = int(digits[14:] or "999")
        seconds = moment.replace(tzinfo=UTC).timestamp() if zone == "UTC" else moment.timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise CorruptTableError(f"{time!r} is not an instant time; expected yyyyMMddHHmmssSSS.") from error
    return int(seconds) * 1000 + millis
