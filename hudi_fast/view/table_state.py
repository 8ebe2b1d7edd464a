"""A table at one moment: its configuration, its timeline, and the view of its files.

::

    load_timeline_of: hoodie.properties, the timeline ─► state_of: completed replace commits (for replaced file groups),
    pending clusterings and compactions ─► TableState, whose files are listed on demand
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace

import pyarrow as pa

from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError, FileGoneError
from hudi_fast.formats.avro.schema import OPERATION_FIELD, avro_to_arrow, without_meta
from hudi_fast.formats.log.blocks import HeaderKey, scan_log_blocks
from hudi_fast.storage.base import Storage
from hudi_fast.storage.concurrency import MAX_FAR, in_threads
from hudi_fast.storage.untrusted import stored_json
from hudi_fast.timeline.archive.timeline import ArchivedTimeline, ArchivedTimes
from hudi_fast.timeline.commit_metadata import CommitMetadata, decode_commit_metadata
from hudi_fast.timeline.instants import WRITE_ACTIONS, Instant, Timeline, load_timeline, read_instant_body
from hudi_fast.timeline.transition import effective_config
from hudi_fast.values import dataclass
from hudi_fast.view.base_files import open_base, open_file
from hudi_fast.view.bootstrap_index import SourceLookup
from hudi_fast.view.listing import Lister, StorageLister
from hudi_fast.view.pending import compacted_groups, pending_clusterings
from hudi_fast.view.planned_files import LoggedInserts, PlannedSlices
from hudi_fast.view.schema_history import load_history
from hudi_fast.view.slices import TableView, latest_slices

__all__ = [
    "DecodedCommits",
    "TableState",
    "column_defaults",
    "commits_newest_first",
    "load_state",
    "load_timeline_of",
    "looked_again",
    "read_commit",
    "state_of",
    "stores_operations",
    "table_avro",
    "table_schema",
]

_MORE_LOOKS = 3
_FILES_OF_KEPT_COMMITS = 1000
"""A decoded commit with this many files takes about 2 MB."""
_KEEPS_SCHEMA = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT", "INDEX"})


class DecodedCommits:
    """Metadata of completed commits, which never changes; the states of a table hand it on. Not pickled.

    A commit of many files takes long to decode, so the newest is kept at any size. Others are kept while they name few
    files.
    """

    def __init__(self, few: Mapping[Instant, CommitMetadata] | None = None) -> None:
        self._shared = [few or {}]
        self._large: Mapping[Instant, CommitMetadata] = {}

    def __reduce__(self) -> tuple[type[DecodedCommits], tuple[()]]:
        return DecodedCommits, ()

    def __contains__(self, instant: Instant) -> bool:
        return instant in self._shared[0] or instant in self._large

    def read(self, storage: Storage, config: TableConfig, instant: Instant) -> CommitMetadata:
        """The metadata of a completed commit, read unless it is known."""
        found = self._shared[0].get(instant) or self._large.get(instant)
        if found is None:
            found = read_commit(storage, config, instant)
            self._shared[0] = few = _of_few_files({**self._shared[0], instant: found})
            if instant not in few and all(one.requested <= instant.requested for one in self._large):
                self._large = {instant: found}
        return found

    def with_commit(self, instant: Instant, metadata: CommitMetadata) -> DecodedCommits:
        """A copy that also knows a commit, which storage need not have."""
        copy = DecodedCommits(self._shared[0])
        copy._large = {**self._large, instant: metadata}
        return copy

    def of_few_files(self) -> DecodedCommits:
        """The commits of few files, to keep for a long time. What either of the two reads later, both know."""
        kept = DecodedCommits()
        kept._shared = self._shared
        return kept


def _of_few_files(commits: Mapping[Instant, CommitMetadata]) -> dict[Instant, CommitMetadata]:
    kept: dict[Instant, CommitMetadata] = {}
    files = 0
    for instant in sorted(commits, key=lambda one: one.requested, reverse=True):
        count = 1 + sum(map(len, commits[instant].partition_to_write_stats.values()))
        if files + count <= _FILES_OF_KEPT_COMMITS:
            kept[instant] = commits[instant]
            files += count
    return kept


@dataclass(frozen=True, slots=True)
class TableState:
    """A table at one moment.

    Attributes:
        config: ``hoodie.properties``.
        view: its visible files.
        pending_services: pending clusterings.
        uncommitted: requested time of a write that the state shows although it is not committed yet; else empty.
        commits: metadata of completed commits that was decoded before.
    """

    storage: Storage
    config: TableConfig
    timeline: Timeline
    view: TableView
    pending_services: tuple[Instant, ...] = ()
    uncommitted: str = ""
    commits: DecodedCommits = field(default_factory=DecodedCommits, repr=False, compare=False)

    def with_uncommitted(self, done: Instant, metadata: CommitMetadata) -> TableState:
        """The state after a write whose files exist, as if it were committed.

        Args:
            done: the write, completed; storage does not have it.
            metadata: its commit metadata.
        """
        ended = metadata.partition_to_replace_file_ids or {}
        replaced = {(partition, one): done.requested for partition, ids in ended.items() for one in ids}
        timeline, commits = self.timeline.with_instant(done), self.commits.with_commit(done, metadata)
        view = replace(
            self.view,
            timeline=timeline,
            lister=StorageLister(self.storage),  # the metadata table does not have the files yet
            replaced={**self.view.replaced, **replaced},
        )
        return replace(self, timeline=timeline, view=view, uncommitted=done.requested, commits=commits)


def load_state(
    storage: Storage,
    as_of: str | None = None,
    replaced_since: str | None = None,
    known: TableState | None = None,
) -> TableState:
    """Load the table's current or an earlier state; its files are found by listing folders.

    :func:`hudi_fast.metadata_table.state.open_state` does the same with files listed by the metadata table.

    Args:
        storage: the table's storage.
        as_of: the newest visible requested time; None for now.
        replaced_since: ignore file groups that were replaced before, for queries of later writes.
        known: an earlier current state; returned if configuration and timeline are the same.

    Raises:
        TableNotFoundError: the table does not exist.
        CorruptTableError: a file of its configuration or timeline is invalid.
    """

    def load() -> TableState:
        config, timeline = load_timeline_of(storage)
        if known is not None and config == known.config and timeline == known.timeline:
            return known
        commits = None if known is None else known.commits
        return state_of(storage, config, timeline, StorageLister(storage), as_of, replaced_since, commits)

    return looked_again(load)


def looked_again(load: Callable[[], TableState]) -> TableState:
    """The result of ``load``, called again when an instant was archived or rolled back after it listed the timeline."""
    for _ in range(_MORE_LOOKS):
        with contextlib.suppress(FileGoneError):
            return load()
    return load()


def load_timeline_of(storage: Storage) -> tuple[TableConfig, Timeline]:
    """The configuration of a table and its active timeline, from which all else of its state follows.

    Raises:
        TableNotFoundError: the table does not exist.
        CorruptTableError: a file of its configuration or timeline is invalid.
    """
    config = TableConfig.from_properties(load_properties(storage), storage.uri)
    timeline = load_timeline(storage, config)
    return effective_config(storage, config, timeline), timeline


def state_of(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    lister: Lister,
    as_of: str | None = None,
    replaced_since: str | None = None,
    commits: DecodedCommits | None = None,
) -> TableState:
    """The state of a table at the end of a timeline or earlier; reads completed replace commits and pending plans.

    Args:
        storage: the table's storage.
        config: its configuration.
        timeline: its active timeline.
        lister: lists its files.
        as_of: as for :func:`load_state`.
        replaced_since: as for :func:`load_state`.
        commits: those of an earlier state of the table.

    Raises:
        CorruptTableError: a file of the timeline is invalid.
        FileGoneError: an instant was archived or rolled back after the timeline was listed.
    """
    commits = commits or DecodedCommits()
    replaced = _replaced_groups(storage, config, timeline, replaced_since, commits)
    planned, is_mor = list(pending_clusterings(storage, config, timeline)), config.is_mor
    view = TableView(
        timeline=timeline,
        lister=lister,
        replaced=replaced,
        as_of=as_of,
        pending_groups=frozenset(
            (one.partition_path, one.file_id) for _, plan in planned for group in plan.groups for one in group.slices
        ),
        pending_compactions=compacted_groups(storage, config, timeline.pending_compactions),
        pending_log_compactions=compacted_groups(storage, config, timeline.pending_log_compactions),
        table_version=config.version,
        archive=ArchivedTimes(storage, config.history_folder) if config.layout_version > 1 else None,
        history=load_history(storage, config, timeline, as_of),
        sources=None if config.bootstrap_base_path is None else SourceLookup(storage, config),
        planned=PlannedSlices(storage, config.timeline_folder)
        if config.is_mor and config.layout_version == 1
        else None,
        logged=LoggedInserts(storage, config) if is_mor else None,
    )
    return TableState(storage, config, timeline, view, tuple(instant for instant, _ in planned), commits=commits)


def _replaced_groups(
    storage: Storage, config: TableConfig, timeline: Timeline, since: str | None, commits: DecodedCommits
) -> dict[tuple[str, str], str]:
    """Replaced file groups by partition and file id, with the requested time of the replace commit."""
    ends = [
        one
        for one in timeline.writes()
        if one.action == "replacecommit" and (since is None or max(one.requested, one.completion or "") > since)
    ]
    found = in_threads(lambda one: commits.read(storage, config, one), ends, 1 if storage.is_local else MAX_FAR)
    return {
        (partition, file_id): instant.requested
        for instant, commit in zip(ends, found, strict=True)
        for partition, file_ids in (commit.partition_to_replace_file_ids or {}).items()
        for file_id in file_ids
    }


def read_commit(storage: Storage, config: TableConfig, instant: Instant) -> CommitMetadata:
    """The metadata of a completed commit."""
    path = f"{config.timeline_folder}/{instant.file_name}"
    return decode_commit_metadata(read_instant_body(storage, config, instant), path)


def commits_newest_first(state: TableState) -> Iterator[tuple[Instant, CommitMetadata]]:
    """Completed writes of the active timeline, read lazily."""
    for instant in reversed(state.timeline.writes()):
        if state.view.as_of is None or instant.requested <= state.view.as_of:
            yield instant, state.commits.read(state.storage, state.config, instant)


def table_schema(state: TableState) -> pa.Schema | None:
    """The data columns of the table, without meta columns; None for a table without a schema.

    From the newest commit that may have changed it, else from the table's creation, else from a base file. Partition
    columns that only the path stores follow as text (``TableSchemaResolver``, Hudi 1.2.0).
    """
    stored = _with_present_times(state, _stored_schema(state))
    if stored is None or not state.config.drop_partition_columns:
        return stored
    missing = [name for name in state.config.partition_fields if name not in stored.names]
    return pa.schema([*stored, *(pa.field(name, pa.string()) for name in missing)])


def _with_present_times(state: TableState, schema: pa.Schema | None) -> pa.Schema | None:
    """The schema, in which timestamp partition columns have their current type even in time travel.

    An ``UPDATE`` of Hudi 1.0 turns a number that a TIMESTAMP key generator formats into text.
    """
    names = state.config.timestamp_partition_fields
    if schema is None or state.view.as_of is None or not names:
        return schema
    now = _stored_schema(replace(state, view=replace(state.view, as_of=None)))
    kinds = {} if now is None else {field.name: field.type for field in now if field.name in names}
    return pa.schema([field.with_type(kinds.get(field.name, field.type)) for field in schema])


def table_avro(state: TableState) -> str | None:
    """The table's Avro JSON from its newest commit that may have changed it; None before the first."""
    found = _schema_text(state)
    return None if found is None else found[0]


def column_defaults(state: TableState) -> dict[str, object]:
    """Default values of the table's columns, other than null, as JSON values of its Avro schema."""
    text, where = _schema_text(state) or ("{}", "")
    try:
        fields = stored_json(text).get("fields") or []
        return {field["name"]: field["default"] for field in fields if field.get("default") is not None}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptTableError(f"The table's Avro schema is invalid ({error!r}).", where) from error


def stores_operations(state: TableState) -> bool:
    """Whether a data file of the newest commit has the column ``_hoodie_operation`` (``TableSchemaResolver``, 1.2.0).

    No property of the table records this. Opens one file; false for a table without files.
    """
    for _, commit in commits_newest_first(state):
        paths = [stat.path for stat in commit.write_stats() if stat.path and stat.file_size]
        for path in paths[:1]:
            with contextlib.suppress(FileNotFoundError, FileGoneError):  # a clean has deleted the files of this commit
                return _has_operations(state.storage, path)
    return False


def _has_operations(storage: Storage, path: str) -> bool:
    if ".log." not in path:
        with open_file(storage, path) as reader:
            return reader.has(OPERATION_FIELD)
    blocks = scan_log_blocks(storage, path)
    return any(f'"{OPERATION_FIELD}"' in block.headers.get(HeaderKey.SCHEMA, "") for block in blocks)


def _stored_schema(state: TableState) -> pa.Schema | None:
    found = _schema_text(state)
    return _schema_of_a_file(state) if found is None else without_meta(avro_to_arrow(*found))


def _schema_text(state: TableState) -> tuple[str, str] | None:
    """The newest Avro schema of the table, and the path of its file."""
    limit = None if state.view.history is None else state.view.history.as_of
    for instant, commit in commits_newest_first(state):
        if limit is not None and instant.requested > limit:
            continue
        if text := _schema_of_commit(commit):
            return text, f"{state.config.timeline_folder}/{instant.file_name}"
    if text := _archived_schema(state):
        return text, state.config.history_folder
    if state.config.create_schema:
        return state.config.create_schema, ".hoodie/hoodie.properties"
    return None


def _schema_of_commit(commit: CommitMetadata) -> str | None:
    """The schema of a commit; None for operations that do not change it."""
    return None if commit.operation_type in _KEEPS_SCHEMA else commit.extra_metadata.get("schema") or None


def _archived_schema(state: TableState) -> str | None:
    """The schema of the newest archived commit that may have changed it, for a timeline with services only."""
    archive = ArchivedTimeline(state.storage, state.config)
    for instant in reversed(archive.instants(None, state.view.as_of, WRITE_ACTIONS)):
        for one in archive.read(instant.requested, instant.requested):
            if one.action == instant.action and (
                text := _schema_of_commit(decode_commit_metadata(one.metadata or b""))
            ):
                return text
    return None


def _schema_of_a_file(state: TableState) -> pa.Schema | None:
    for partition in state.view.lister.partitions():
        for slice_ in latest_slices(state.view, partition):
            if slice_.base_file is not None:
                with open_base(state.storage, slice_.base_file) as reader:
                    return without_meta(reader.schema)
    return None
