"""Instants, and the active timeline as a value.

Instants: one action on the table at one requested time, and the names of its files.

A timeline file name contains requested time, action and state, in layout 2 (table version 8 and later) also the
completion time. :func:`parse_instant_file` parses a name and :func:`instant_file_name` formats one. Two kinds of names
are irregular: the inflight file of a commit is ``T.inflight``, and completed compactions, log compactions and
clusterings have another action name (:data:`COMPLETED_ACTIONS`).

Times are text, ``yyyyMMddHHmmssSSS`` in the timeline's zone, and compare as text. Sources: InstantFileNameGenerator and
-Parser V1/V2, InstantComparators, HoodieInstantTimeGenerator, release 1.2.0.

The active timeline: one listing of its folder, as a value.

Data flow: file names -> ``parse_instant_file`` -> the highest state per instant -> :class:`Timeline`, sorted by
requested time. All steps of a read or write use one :class:`Timeline` and therefore see one table state. Bodies are
read one by one with :func:`read_instant_body`.

Sources: ActiveTimelineV1/V2, BaseHoodieTimeline, TimelineLayout, release 1.2.0.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from enum import IntEnum
from functools import lru_cache

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError, FileGoneError
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.values import dataclass

__all__ = [
    "ACTIONS",
    "COMPLETED_ACTIONS",
    "FULL_BOOTSTRAP_INSTANT",
    "METADATA_BOOTSTRAP_INSTANT",
    "SOLO_TIME",
    "WRITE_ACTIONS",
    "Instant",
    "State",
    "Timeline",
    "comparable_action",
    "explained_plan",
    "instant_file_name",
    "instant_from_ms",
    "listed_instant",
    "load_timeline",
    "ms_from_instant",
    "parse_instant_file",
    "read_instant_body",
    "read_requested_body",
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


_LATER_FOLDER = "timeline"
_FILE_TIME_MS = 1000
"""Object stores give the modification times of files in whole seconds."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """The instants of the active timeline, each in its highest state.

    Attributes:
        instants: sorted by (requested time, action); a savepoint shares the requested time of its commit.
        overlapped: before table version 8, which stores no completion times: requested times of completed compactions
            during which delta commits began, by the modification times of files.
        has_other_folder: before table version 8: the table has the folder of a later version's timeline, too.
        folder: of its files.
        without_body: completed writes whose file is empty.
    """

    instants: tuple[Instant, ...]
    overlapped: frozenset[str] = field(default=frozenset(), compare=False)
    has_other_folder: bool = field(default=False, compare=False)
    folder: str = field(default="", compare=False)
    without_body: tuple[Instant, ...] = ()
    _writes: dict[str, Instant] = field(init=False, repr=False, compare=False)
    _first_write: str | None = field(init=False, repr=False, compare=False)
    _first_regular_write: str | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        writes = {i.requested: i for i in self.instants if comparable_action(i.action) in WRITE_ACTIONS}
        saved = {i.requested for i in self.instants if i.action == "savepoint"}
        # Archiving can keep the commit of a savepoint and archive newer ones: it is not the start of the timeline.
        first = min((time for time in writes if time not in saved), default=min(writes, default=None))
        object.__setattr__(self, "_writes", writes)
        regular = (time for time in writes if time not in saved and not time.startswith(SOLO_TIME))
        object.__setattr__(self, "_first_write", first)
        object.__setattr__(self, "_first_regular_write", min(regular, default=first))

    def completed(self) -> tuple[Instant, ...]:
        """Completed instants of every action."""
        return tuple(i for i in self.instants if i.state is State.COMPLETED)

    def pending(self) -> tuple[Instant, ...]:
        """Requested and inflight instants of every action."""
        return tuple(i for i in self.instants if i.state is not State.COMPLETED)

    def writes(self) -> tuple[Instant, ...]:
        """Completed commits, delta commits and replace commits, including compactions and clusterings."""
        return tuple(i for i in self._writes.values() if i.state is State.COMPLETED)

    def of_action(self, *actions: str) -> tuple[Instant, ...]:
        """Instants with one of these actions, in any state."""
        return tuple(i for i in self.instants if i.action in actions)

    @property
    def pending_writes(self) -> tuple[Instant, ...]:
        """Pending commits, delta commits and replace commits, without compactions, log compactions and clusterings."""
        return tuple(i for i in self.pending() if i.action in WRITE_ACTIONS)

    @property
    def pending_compactions(self) -> tuple[Instant, ...]:
        """Pending compactions; their plans are the bodies of their requested files."""
        return tuple(i for i in self.pending() if i.action == "compaction")

    @property
    def pending_restore(self) -> Instant | None:
        """The pending restore, if any; it blocks all writes."""
        return next((i for i in self.pending() if i.action == "restore"), None)

    @property
    def pending_log_compactions(self) -> tuple[Instant, ...]:
        """Pending log compactions."""
        return tuple(i for i in self.pending() if i.action == "logcompaction")

    @property
    def pending_clusterings(self) -> tuple[Instant, ...]:
        """Pending clusterings of layout 2; in layout 1 they are pending replace commits with a plan."""
        return tuple(i for i in self.pending() if i.action == "clustering")

    @property
    def first_requested(self) -> str | None:
        """Requested time of the oldest instant of any action, or None."""
        return self.instants[0].requested if self.instants else None

    @property
    def first_write_requested(self) -> str | None:
        """Start of the active timeline: the oldest write in any state that is not savepointed."""
        return self._first_write

    @property
    def last_completed_write(self) -> Instant | None:
        """The completed write with the newest requested time."""
        return next((i for i in reversed(self._writes.values()) if i.state is State.COMPLETED), None)

    @property
    def newest_time(self) -> str | None:
        """The largest requested or completion time; new times must be larger."""
        return max((time for i in self.instants for time in (i.requested, i.completion or "")), default=None)

    def with_instant(self, instant: Instant) -> Timeline:
        """The timeline with one instant added, or replaced in a new state."""
        key = instant.requested, comparable_action(instant.action)
        others = [one for one in self.instants if (one.requested, comparable_action(one.action)) != key]
        instants = sorted([*others, instant], key=lambda one: (one.requested, comparable_action(one.action)))
        return replace(self, instants=tuple(instants))

    def find(self, requested: str, action: str | None = None) -> Instant | None:
        """The instant with this requested time and action; without an action, preferably the write."""
        if action is None and requested in self._writes:
            return self._writes[requested]
        wanted = None if action is None else comparable_action(action)
        matches = (i for i in self.instants if i.requested == requested)
        return next((i for i in matches if wanted in (None, comparable_action(i.action))), None)

    def is_completed_or_archived(self, requested: str) -> bool:
        """Whether the write with this requested time is completed, or older than the active timeline.

        Writes older than the active timeline are completed: only completed writes are archived, and the files of failed
        writes are deleted before (``HoodieTimeline.containsOrBeforeTimelineStarts``). The instant that builds a
        partition of a metadata table has a time before all others. It does not count as the start of the timeline,
        because files of other partitions may belong to archived writes. (In Apache Hudi it does.)
        """
        instant = self._writes.get(requested)
        if instant is not None:
            return instant.state is State.COMPLETED
        first = self._first_write if requested.startswith(SOLO_TIME) else self._first_regular_write
        return first is not None and requested < first

    def completion_of(self, requested: str) -> str | None:
        """Completion time of a completed write; None for a pending, archived or unknown write."""
        instant = self._writes.get(requested)
        return None if instant is None else instant.completion


def load_timeline(storage: Storage, config: TableConfig) -> Timeline:
    """Read the active timeline with one listing; empty if its folder does not exist."""
    entries = storage.list_dir(config.timeline_folder)
    found = [(entry, listed_instant(entry, config)) for entry in entries if not entry.is_dir]
    instants, folder = _effective(i for _, i in found if i is not None), config.timeline_folder
    empty = tuple(i for entry, i in found if i is not None and not entry.size and _is_completed_write(i))
    if config.layout_version > 1:
        return Timeline(instants, folder=folder, without_body=empty)
    is_beside = any(entry.is_dir and entry.name == _LATER_FOLDER for entry in entries)
    times = {entry.name: entry.modified_ms for entry in entries}
    overlapped = _overlapped(instants, times) if config.is_mor else frozenset()
    return Timeline(instants, overlapped, is_beside, folder, empty)


def listed_instant(entry: FileStat, config: TableConfig) -> Instant | None:
    """The instant of a listed file; None for other files.

    A completed instant of layout 1 was complete when its file was last modified.
    """
    found = parse_instant_file(entry.name, config.layout_version)
    if found is None or found.state is not State.COMPLETED or found.completion is not None:
        return found
    completion = instant_from_ms(entry.modified_ms, config.timezone)
    return Instant(found.requested, found.action, found.state, completion, found.file_name)  # faster than `replace`


def _is_completed_write(instant: Instant) -> bool:
    return instant.state is State.COMPLETED and instant.action in WRITE_ACTIONS


def _overlapped(instants: Sequence[Instant], times: Mapping[str, int]) -> frozenset[str]:
    begun = [
        (one.requested, times.get(f"{one.requested}.deltacommit.requested", 0))
        for one in instants
        if one.action == "deltacommit"
    ]
    done = [
        (one.requested, times.get(f"{one.requested}.commit", 0) + _FILE_TIME_MS)
        for one in instants
        if one.action == "commit" and one.is_completed
    ]
    return frozenset(
        compaction for compaction, end in done if any(one > compaction and start <= end for one, start in begun)
    )


def read_instant_body(storage: Storage, config: TableConfig, instant: Instant) -> bytes:
    """The content of the instant's file in its state; it may be empty.

    Raises:
        FileGoneError: the file does not exist any more.
    """
    path = f"{config.timeline_folder}/{instant.file_name or instant_file_name(instant, config.layout_version)}"
    try:
        return storage.read_bytes(path)
    except FileNotFoundError as error:
        raise FileGoneError(
            f"Table {storage.uri}: the {instant.state.name.lower()} {instant.action} {instant.requested} has no file; "
            "it was archived or rolled back since the timeline was read. Load the table again.",
            path,
        ) from error


def read_requested_body(storage: Storage, config: TableConfig, instant: Instant) -> bytes:
    """The plan of a pending instant (or a completed one with the same action): content of its requested file.

    Raises:
        FileGoneError: the file does not exist any more.
    """
    return read_instant_body(storage, config, with_state(instant, State.REQUESTED))


@contextlib.contextmanager
def explained_plan(storage: Storage, instant: Instant) -> Iterator[None]:
    """Add a note to errors of the block: the pending instant whose plan is corrupt, and what to do.

    Raises:
        CorruptTableError: the error of the block, with the note.
    """
    try:
        yield
    except CorruptTableError as error:
        error.add_note(
            f"It is the plan of the pending {instant.action} {instant.requested} of {storage.uri}. Restore the file, "
            "or remove the instant from the timeline with services.repair() or `hudi-fast repair`."
        )
        raise


def _effective(instants: Iterable[Instant]) -> tuple[Instant, ...]:
    highest: dict[tuple[str, str], Instant] = {}
    for instant in instants:
        key = instant.requested, comparable_action(instant.action)
        if key not in highest or highest[key].state < instant.state:
            highest[key] = instant
    return tuple(highest[key] for key in sorted(highest))
