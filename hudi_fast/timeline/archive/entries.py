"""Archived instants as values and as records.

Records of the layout 1 archive (HoodieArchivedMetaEntry): one per state of an instant, bodies as Avro records.

::

    ArchivedInstant ─► {REQUESTED: record, INFLIGHT: record, COMPLETED: record} ─► ArchivedInstant

A record has one field per kind of body. The older Avro schema of commit metadata has no fields for names of log files,
times and change data, which are lost. Hudi 0.15 adds an empty ``ROLLING_STAT`` to its extra metadata; decoding removes
it.

Sources: MetadataConversionUtils, release 0.15.0, and the schema in files of that release, byte for byte.

One archived instant as a value, for both layouts of the archive.

Bodies have the form of the active timeline: commit metadata is JSON in layout 1 and Avro in layout 2. The archive of
layout 1 also stores all states of an instant and the times of their transitions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.avro.container import is_avro_container, read_single_record, write_single_record
from hudi_fast.storage.untrusted import stored_json
from hudi_fast.timeline.avro_models import (
    CLEAN_METADATA,
    CLEANER_PLAN,
    COMPACTION_PLAN,
    INDEX_COMMIT_METADATA,
    REQUESTED_REPLACE_METADATA,
    ROLLBACK_METADATA,
    SAVEPOINT_METADATA,
)
from hudi_fast.timeline.instants import Instant, State, comparable_action
from hudi_fast.values import dataclass

__all__ = ["ENTRY_SCHEMA", "ArchivedInstant", "entries_of", "instant_of"]


@dataclass(frozen=True, slots=True)
class ArchivedInstant:
    """One archived instant.

    Attributes:
        requested: requested time.
        completion: completion time; layout 1: modification time of the completed file.
        action: action of the completed instant (``commit`` for a compaction).
        metadata: body of the completed file; None if empty.
        plan: body of the requested file for actions with a plan, else None. Layout 2: for a replace commit, the body of
            the inflight file if it is not empty.
        inflight: layout 1: body of the inflight file; None if empty.
        requested_at: layout 1: modification time of the requested file; None without the file.
        inflight_at: layout 1: modification time of the inflight file; None without the file.
    """

    requested: str
    completion: str
    action: str
    metadata: bytes | None = None
    plan: bytes | None = None
    inflight: bytes | None = None
    requested_at: str | None = None
    inflight_at: str | None = None

    def instant(self) -> Instant:
        """The instant without its bodies."""
        return Instant(self.requested, self.action, State.COMPLETED, self.completion)


ENTRY_SCHEMA = files("hudi_fast.timeline.archive").joinpath("archived_entry_0_15.avsc").read_text("utf-8").strip()
"""Avro JSON of the records, as Hudi 0.15 stores it."""

_ROLLING_STAT = "ROLLING_STAT"
_TEXT_MEMBERS = ("fileId", "path", "prevCommit", "partitionPath")
_COUNT_MEMBERS = (
    "numWrites numDeletes numUpdateWrites totalWriteBytes totalWriteErrors totalLogRecords "
    "totalUpdatedRecordsCompacted numInserts totalLogBlocks totalCorruptLogBlock totalRollbackBlocks fileSizeInBytes"
).split()
_COMPACTIONS = frozenset({"COMPACT", "LOG_COMPACT"})
# Field and schema of the body per completed action.
_COMPLETED = {
    "clean": ("hoodieCleanMetadata", CLEAN_METADATA),
    "rollback": ("hoodieRollbackMetadata", ROLLBACK_METADATA),
    "savepoint": ("hoodieSavePointMetadata", SAVEPOINT_METADATA),
    "indexing": ("hoodieIndexCommitMetadata", INDEX_COMMIT_METADATA),
}
_PLANS = {
    "clean": ("hoodieCleanerPlan", CLEANER_PLAN),
    "compaction": ("hoodieCompactionPlan", COMPACTION_PLAN),
    "logcompaction": ("hoodieCompactionPlan", COMPACTION_PLAN),
    "replacecommit": ("hoodieRequestedReplaceMetadata", REQUESTED_REPLACE_METADATA),
}
_PENDING_ACTIONS = {"commit": "compaction", "deltacommit": "logcompaction"}

Record = dict[str, Any]


def entries_of(row: ArchivedInstant) -> list[Record]:
    """The records of one instant, in the order of its states; absent fields are null.

    Raises:
        CorruptTableError: a body cannot be decoded.
    """
    pending = _PENDING_ACTIONS.get(row.action, row.action) if row.plan else row.action
    found = []
    if row.requested_at is not None or row.plan:
        found.append(_entry(row, pending, "REQUESTED", row.requested_at or row.requested))
    if row.inflight_at is not None or row.inflight:
        found.append(_entry(row, pending, "INFLIGHT", row.inflight_at or row.requested))
    return [*found, _entry(row, row.action, "COMPLETED", row.completion)]


def instant_of(records: Mapping[str, Record], where: str) -> ArchivedInstant:
    """Build an instant from its records.

    Args:
        records: state to record; must include COMPLETED.
        where: path of the file, for messages.

    Raises:
        CorruptTableError: a record does not match its action.
    """
    try:
        done = records["COMPLETED"]
        action = comparable_action(done["actionType"])
        requested, inflight = records.get("REQUESTED"), records.get("INFLIGHT")
        return ArchivedInstant(
            done["commitTime"],
            done.get("stateTransitionTime") or done["commitTime"],
            action,
            _completed_body(done, action),
            None if requested is None else _plan_body(requested),
            None if inflight is None else _inflight_body(inflight),
            None if requested is None else requested.get("stateTransitionTime") or done["commitTime"],
            None if inflight is None else inflight.get("stateTransitionTime") or done["commitTime"],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptTableError(
            f"A record of the archived timeline has an unexpected form: {error!r}.", where
        ) from error


# ---- to records


def _entry(row: ArchivedInstant, action: str, state: str, reached: str) -> Record:
    record: Record = {
        "commitTime": row.requested,
        "actionType": action,
        "version": None,
        "actionState": state,
        "stateTransitionTime": reached,
    }
    if action in ("commit", "deltacommit"):
        body = {"COMPLETED": row.metadata, "INFLIGHT": row.inflight}.get(state)
        if body or state != "COMPLETED":
            record["hoodieCommitMetadata"] = _commit_record(body)
    elif state == "COMPLETED":
        if action == "replacecommit" and row.metadata:
            record["hoodieReplaceCommitMetadata"] = _replace_record(row.metadata)
        elif action in _COMPLETED and row.metadata:
            record[_COMPLETED[action][0]] = read_single_record(row.metadata)
    elif action == "replacecommit" and state == "INFLIGHT":
        if row.inflight:
            record["HoodieInflightReplaceMetadata"] = _commit_record(row.inflight)
    elif action in _PLANS and (state == "REQUESTED" or action == "clean"):
        body = row.inflight if state == "INFLIGHT" else row.plan
        if body:
            record[_PLANS[action][0]] = read_single_record(body)
    return record


def _members(body: bytes | None) -> Record:
    """The non-null members of commit metadata, from JSON or Avro."""
    if not body:
        return {}
    try:
        record = read_single_record(body) if is_avro_container(body) else stored_json(body)
    except ValueError as error:
        raise CorruptTableError(f"Expected commit metadata as JSON or Avro: {error}.") from error
    return {key: value for key, value in record.items() if value is not None}


def _base_record(members: Mapping[str, Any]) -> Record:
    stats = members.get("partitionToWriteStats", {})
    extra = {key: text for key, text in members.get("extraMetadata", {}).items() if text is not None}
    return {
        "partitionToWriteStats": {partition: [_stat(one) for one in found] for partition, found in stats.items()},
        "extraMetadata": extra,
        "version": None,
        "operationType": members.get("operationType", "UNKNOWN"),
    }


def _commit_record(body: bytes | None) -> Record:
    record = _base_record(_members(body))
    record["extraMetadata"][_ROLLING_STAT] = ""
    return record


def _replace_record(body: bytes) -> Record:
    members = _members(body)
    return {**_base_record(members), "partitionToReplaceFileIds": members.get("partitionToReplaceFileIds", {})}


def _stat(members: Mapping[str, Any]) -> Record:
    texts = {name: members.get(name) for name in _TEXT_MEMBERS}
    counts = {name: members.get(name) or 0 for name in _COUNT_MEMBERS}
    return {**texts, **counts, "totalLogFiles": members.get("totalLogFiles")}


# ---- from records


def _completed_body(record: Record, action: str) -> bytes | None:
    if action == "replacecommit":
        found = record.get("hoodieReplaceCommitMetadata")
        return None if found is None else _json(found, found.get("partitionToReplaceFileIds") or {})
    if action in _COMPLETED:
        field, schema = _COMPLETED[action]
        found = record.get(field)
        return None if found is None else write_single_record(schema, found)
    found = record.get("hoodieCommitMetadata")
    return None if found is None else _json(found)


def _plan_body(record: Record) -> bytes | None:
    field, schema = _PLANS.get(record["actionType"], ("", {}))
    found = record.get(field)
    return None if found is None else write_single_record(schema, found)


def _inflight_body(record: Record) -> bytes | None:
    if record["actionType"] == "clean":
        return _plan_body(record)
    found = record.get("hoodieCommitMetadata") or record.get("HoodieInflightReplaceMetadata")
    return None if found is None else _json(found)


def _json(record: Record, replaced: Mapping[str, list[str]] | None = None) -> bytes:
    operation = record.get("operationType") or "UNKNOWN"
    extra = {key: text for key, text in (record.get("extraMetadata") or {}).items() if key != _ROLLING_STAT}
    members: Record = {
        "partitionToWriteStats": record.get("partitionToWriteStats") or {},
        "compacted": bool(record.get("compacted", operation in _COMPACTIONS)),
        "extraMetadata": extra,
        "operationType": operation,
    }
    if replaced is not None:
        members["partitionToReplaceFileIds"] = replaced
    return json.dumps(members, ensure_ascii=False).encode()
