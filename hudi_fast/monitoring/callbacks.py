"""Callbacks after a commit: a service over HTTP, and a Python function.

::

    commit metadata ─► message: JSON, as from Apache Hudi ─► POST, with key and headers
    WriteResult     ─► the function

They are called once per committed write, after the services that follow it. An error is logged and warned about; the
commit stays.

Sources: ``HoodieWriteCommitHttpCallbackClient``, ``HoodieWriteCommitCallbackMessage`` (1.2.0).
"""

from __future__ import annotations

import json
import logging
import urllib.request
from typing import Any

from hudi_fast.config.monitoring_options import HookOptions
from hudi_fast.events import note, warn, without_secrets
from hudi_fast.timeline.commit_metadata import CommitMetadata, RuntimeStats, WriteStat

__all__ = ["call_back", "message_of"]

_KEY_HEADER = "HUDI-CALLBACK-KEY"
_SET, _EMPTY = {"empty": False, "present": True}, {"empty": True, "present": False}
"""Apache Hudi's JSON of a Java ``Option``: it says whether there is a value, but not which one."""


def call_back(hooks: HookOptions, uri: str, message: bytes | None, result: Any) -> None:
    """Call the callbacks that the options name, after a commit.

    Args:
        hooks: the options.
        uri: base path of the table.
        message: the body for the service over HTTP; None if the options name no service.
        result: the result for the Python function.

    Warns:
        HudiWarning: a callback failed.
    """
    if message is not None:
        try:
            _post(hooks, message)
        except OSError as error:
            _failed(uri, result.instant, f"The commit callback to {hooks.url}", error)
    if hooks.callback is not None:
        try:
            hooks.callback(result)
        except Exception as error:
            _failed(uri, result.instant, "The function hudi_fast.commit.callback", error)


def message_of(instant: str, metadata: CommitMetadata, table: str, uri: str, has_ranges: bool) -> bytes:
    """The JSON body for a committed write.

    Args:
        instant: its requested time.
        metadata: its commit metadata.
        table: name of the table.
        uri: base path of the table.
        has_ranges: whether the metadata table has column ranges; writes of log files collect them then.
    """
    body = {
        "commitTime": instant,
        "tableName": table,
        "basePath": uri,
        "hoodieWriteStat": [_stat(one, has_ranges) for one in metadata.write_stats()],
        "commitActionType": _SET,
        "extraMetadata": _SET,
    }
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def _post(hooks: HookOptions, body: bytes) -> None:
    headers = {_KEY_HEADER: hooks.api_key, "Content-Type": "application/json; charset=UTF-8", **hooks.headers}
    request = urllib.request.Request(str(hooks.url), body, headers, method="POST")
    with urllib.request.urlopen(request, timeout=hooks.timeout_seconds) as answer:
        note(
            "callbacks",
            logging.DEBUG,
            "The commit callback to %s was answered with status %d.",
            hooks.url,
            answer.status,
        )


def _failed(uri: str, instant: str, what: str, error: Exception) -> None:
    said = f"{what} failed after the commit {instant} of {uri}: {type(error).__name__}: {error}."
    note("callbacks", logging.ERROR, "%s", said, table=uri, instant=instant)
    warn(f"{without_secrets(said)} The commit stays.")


def _stat(stat: WriteStat, has_ranges: bool) -> dict[str, Any]:
    """One file, in the order of Apache Hudi's fields."""
    runtime = stat.runtime_stats or RuntimeStats()
    members: dict[str, Any] = {
        "numInserts": stat.num_inserts,
        "numUpdates": stat.num_updates,
        "numDeletes": stat.num_deletes,
        "totalLogReadTimeMs": stat.total_log_read_time_ms,
        "totalLogRecords": stat.total_log_records,
        "totalLogFilesCompacted": stat.total_log_files_compacted,
        "totalLogSizeCompacted": stat.total_log_size_compacted,
        "totalUpdatedRecordsCompacted": stat.total_updated_records_compacted,
        "totalLogBlocks": stat.total_log_blocks,
        "totalValidLogBlocks": 0,
        "totalLogBlocksSize": 0,
        "totalLogBlocksScanTimeMs": 0,
        "totalCorruptLogBlock": stat.total_corrupt_log_blocks,
        "totalRollbackBlocks": stat.total_rollback_blocks,
        "fileId": stat.file_id,
        "path": stat.path,
        "cdcStats": None if stat.cdc_stats is None else dict(stat.cdc_stats),
        "prevCommit": stat.prev_commit,
        "numWrites": stat.num_writes,
        "numUpdateWrites": stat.num_update_writes,
        "totalWriteBytes": stat.total_write_bytes,
        "totalWriteErrors": stat.total_write_errors,
        "tempPath": stat.temp_path,
        "partitionPath": stat.partition_path,
        "fileSizeInBytes": stat.file_size,
        "minEventTime": stat.min_event_time,
        "maxEventTime": stat.max_event_time,
        "prevBaseFile": stat.prev_base_file,
        "runtimeStats": {
            "totalScanTime": runtime.total_scan_time,
            "totalUpsertTime": runtime.total_upsert_time,
            "totalCreateTime": runtime.total_create_time,
        },
    }
    if stat.log_version is not None:
        members |= {
            "logVersion": stat.log_version,
            "logOffset": stat.log_offset,
            "baseFile": stat.base_file,
            "logFiles": list(stat.log_files or ()),
        }
    return {**members, "columnStats": _SET if has_ranges and stat.log_version is not None else _EMPTY}
