"""The Avro schemas of instant bodies, as Python data.

Each constant is the schema of one record of package ``org.apache.hudi.avro.model``, as Apache Hudi 1.2.0 writes it into
file headers: Java resolves records by full name, and strings have ``avro.java.string``. Field order is the order on
disk. The schemas are used for writing only, because readers use the schema in the file; tests compare them with headers
written by Apache Hudi.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "CLEANER_PLAN",
    "CLEAN_METADATA",
    "COMMIT_METADATA",
    "COMPACTION_PLAN",
    "INDEX_COMMIT_METADATA",
    "INDEX_PLAN",
    "REPLACE_COMMIT_METADATA",
    "REQUESTED_REPLACE_METADATA",
    "RESTORE_METADATA",
    "RESTORE_PLAN",
    "ROLLBACK_METADATA",
    "ROLLBACK_PLAN",
    "SAVEPOINT_METADATA",
]

Schema = dict[str, Any]

_JAVA = {"avro.java.string": "String"}
_STRING: Schema = {"type": "string", **_JAVA}


def _array(items: Any, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


def _map(values: Any, **more: Any) -> Schema:
    return {"type": "map", "values": values, **_JAVA, **more}


def _field(name: str, kind: Any) -> Schema:
    return {"name": name, "type": kind}


def _opt(name: str, kind: Any, **more: Any) -> Schema:
    return {"name": name, "type": ["null", kind], **more, "default": None}


def _opts(kind: Any, *names: str) -> list[Schema]:
    return [_opt(name, kind) for name in names]


def _version(default: int = 1, **more: Any) -> Schema:
    return {"name": "version", "type": ["int", "null"], **more, "default": default}


def _nested(name: str, *fields: Schema) -> Schema:
    return {"type": "record", "name": name, "fields": list(fields)}


def _record(name: str, *fields: Schema) -> Schema:
    return {"type": "record", "name": name, "namespace": "org.apache.hudi.avro.model", "fields": list(fields)}


_RUNTIME_STATS = _nested("HoodieRuntimeStats", *_opts("long", "totalScanTime", "totalCreateTime", "totalUpsertTime"))
_WRITE_STAT = _nested(
    "HoodieWriteStat",
    *_opts(_STRING, "fileId", "path", "prevCommit"),
    *_opts("long", "numWrites", "numDeletes", "numUpdateWrites", "totalWriteBytes", "totalWriteErrors"),
    _opt("partitionPath", _STRING),
    *_opts("long", "totalLogRecords", "totalLogFiles", "totalUpdatedRecordsCompacted", "numInserts"),
    *_opts("long", "totalLogBlocks", "totalCorruptLogBlock", "totalRollbackBlocks", "fileSizeInBytes"),
    _opt("logVersion", "int"),
    _opt("logOffset", "long"),
    _opt("baseFile", _STRING),
    _opt("logFiles", _array(_STRING, default=None)),
    _opt("cdcStats", _map("long", default=None)),
    _opt("prevBaseFile", _STRING),
    *_opts("long", "minEventTime", "maxEventTime"),
    _opt("runtimeStats", _RUNTIME_STATS),
    *_opts("long", "totalLogFilesCompacted", "totalLogReadTimeMs", "totalLogSizeCompacted"),
    _opt("tempPath", _STRING),
    _opt("numUpdates", "long"),
)
_STATS = _opt("partitionToWriteStats", _map(_array(_WRITE_STAT)))

COMMIT_METADATA = _record(
    "HoodieCommitMetadata",
    _STATS,
    _opt("compacted", "boolean"),
    _opt("extraMetadata", _map(_STRING, default=None)),
    _version(),
    _opt("operationType", _STRING),
)
REPLACE_COMMIT_METADATA = _record(
    "HoodieReplaceCommitMetadata",
    _STATS,
    _opt("compacted", "boolean"),
    _opt("extraMetadata", _map(_STRING)),
    _version(),
    _opt("operationType", _STRING),
    _opt("partitionToReplaceFileIds", _map(_array(_STRING))),
)
"""Bodies of commits and of replace commits."""

_SLICE_INFO = _nested(
    "HoodieSliceInfo",
    _opt("dataFilePath", _STRING),
    _opt("deltaFilePaths", _array(_STRING)),
    _field("fileId", ["null", _STRING]),
    *_opts(_STRING, "partitionPath", "bootstrapFilePath"),
    _version(),
)
_CLUSTERING_GROUP = _nested(
    "HoodieClusteringGroup",
    _opt("slices", _array(_SLICE_INFO)),
    _opt("metrics", _map("double")),
    {"name": "numOutputFileGroups", "type": ["int", "null"], "default": 1},
    _opt("extraMetadata", _map(_STRING)),
    _version(),
)
_CLUSTERING_STRATEGY = _nested(
    "HoodieClusteringStrategy", _opt("strategyClassName", _STRING), _opt("strategyParams", _map(_STRING)), _version()
)
_CLUSTERING_PLAN = _nested(
    "HoodieClusteringPlan",
    _opt("inputGroups", _array(_CLUSTERING_GROUP)),
    _opt("strategy", _CLUSTERING_STRATEGY),
    _opt("extraMetadata", _map(_STRING)),
    _version(),
    _opt("preserveHoodieMetadata", "boolean"),
    _opt("missingSchedulePartitions", _array(_STRING)),
)
REQUESTED_REPLACE_METADATA = _record(
    "HoodieRequestedReplaceMetadata",
    _opt("operationType", _STRING),
    _opt("clusteringPlan", _CLUSTERING_PLAN),
    _opt("extraMetadata", _map(_STRING)),
    _version(),
)
"""Plan of a clustering or another replace commit."""

_COMPACTION_OPERATION = _nested(
    "HoodieCompactionOperation",
    _field("baseInstantTime", ["null", _STRING]),
    _opt("deltaFilePaths", _array(_STRING)),
    _opt("dataFilePath", _STRING),
    _field("fileId", ["null", _STRING]),
    _opt("partitionPath", _STRING),
    _opt("metrics", _map("double")),
    _opt("bootstrapFilePath", _STRING),
)
_COMPACTION_STRATEGY = _nested(
    "HoodieCompactionStrategy",
    _opt("compactorClassName", _STRING),
    _opt("strategyParams", _map(_STRING)),
    _version(),
)
COMPACTION_PLAN = _record(
    "HoodieCompactionPlan",
    _opt("operations", _array(_COMPACTION_OPERATION)),
    _opt("extraMetadata", _map(_STRING)),
    _version(),
    _opt("strategy", _COMPACTION_STRATEGY),
    {"name": "preserveHoodieMetadata", "type": ["boolean", "null"], "default": False},
    _opt("missingSchedulePartitions", _array(_STRING)),
)
"""Plan of a compaction or log compaction."""

_ACTION_INSTANT = _nested("HoodieActionInstant", *(_field(name, _STRING) for name in ("timestamp", "action", "state")))
_CLEAN_FILE_INFO = _nested("HoodieCleanFileInfo", _opt("filePath", _STRING), _opt("isBootstrapBaseFile", "boolean"))
CLEANER_PLAN = _record(
    "HoodieCleanerPlan",
    _opt("earliestInstantToRetain", _ACTION_INSTANT),
    {"name": "lastCompletedCommitTimestamp", "type": _STRING, "default": ""},
    _field("policy", _STRING),
    _opt("filesToBeDeletedPerPartition", _map(_array(_STRING))),
    _version(),
    _opt("filePathsToBeDeletedPerPartition", _map(_array(_CLEAN_FILE_INFO))),
    _opt("partitionsToBeDeleted", _array(_STRING)),
    _opt("extraMetadata", _map(_STRING, default=None)),
)
"""Plan of a clean."""

_CLEAN_PARTITION = _nested(
    "HoodieCleanPartitionMetadata",
    _field("partitionPath", _STRING),
    _field("policy", _STRING),
    *(_field(name, _array(_STRING)) for name in ("deletePathPatterns", "successDeleteFiles", "failedDeleteFiles")),
    _opt("isPartitionDeleted", "boolean"),
)
CLEAN_METADATA = _record(
    "HoodieCleanMetadata",
    _field("startCleanTime", _STRING),
    _field("timeTakenInMillis", "long"),
    _field("totalFilesDeleted", "int"),
    _field("earliestCommitToRetain", _STRING),
    {"name": "lastCompletedCommitTimestamp", "type": _STRING, "default": ""},
    _field("partitionMetadata", _map(_CLEAN_PARTITION)),
    _version(),
    _opt("bootstrapPartitionMetadata", _map("HoodieCleanPartitionMetadata", default=None)),
    _opt("extraMetadata", _map(_STRING, default=None)),
)
"""Body of a completed clean."""

_INSTANT_INFO = _nested("HoodieInstantInfo", _field("commitTime", _STRING), _field("action", _STRING))
_ROLLBACK_REQUEST = _nested(
    "HoodieRollbackRequest",
    _field("partitionPath", _STRING),
    *_opts(_STRING, "fileId", "latestBaseInstant"),
    {"name": "filesToBeDeleted", "type": _array(_STRING, default=[]), "default": []},
    _opt("logBlocksToBeDeleted", _map("long")),
)
ROLLBACK_PLAN = _record(
    "HoodieRollbackPlan",
    _opt("instantToRollback", _INSTANT_INFO),
    _opt("RollbackRequests", _array(_ROLLBACK_REQUEST)),
    _version(),
)
"""Plan of a rollback."""

_ROLLBACK_PARTITION = _nested(
    "HoodieRollbackPartitionMetadata",
    _field("partitionPath", _STRING),
    *(_field(name, _array(_STRING)) for name in ("successDeleteFiles", "failedDeleteFiles")),
    *_opts(_map("long"), "rollbackLogFiles", "logFilesFromFailedCommit"),
)
_ROLLBACK_FIELDS = (
    _field("startRollbackTime", _STRING),
    _field("timeTakenInMillis", "long"),
    _field("totalFilesDeleted", "int"),
    _field("commitsRollback", _array(_STRING)),
    _field("partitionMetadata", _map(_ROLLBACK_PARTITION)),
    _version(),
    {"name": "instantsRollback", "type": _array(_INSTANT_INFO, default=[]), "default": []},
)
ROLLBACK_METADATA = _record("HoodieRollbackMetadata", *_ROLLBACK_FIELDS)
RESTORE_PLAN = _record(
    "HoodieRestorePlan",
    {"name": "instantsToRollback", "type": _array(_INSTANT_INFO, default=None), "default": []},
    _version(2),
    _opt("savepointToRestoreTimestamp", _STRING),
)
RESTORE_METADATA = _record(
    "HoodieRestoreMetadata",
    _field("startRestoreTime", _STRING),
    _field("timeTakenInMillis", "long"),
    _field("instantsToRollback", _array(_STRING)),
    _field(
        "hoodieRestoreMetadata",
        _map(_array(["null", _nested("HoodieRollbackMetadata", *_ROLLBACK_FIELDS)], default=None)),
    ),
    _version(),
    {"name": "restoreInstantInfo", "type": _array("HoodieInstantInfo", default=None), "default": []},
)
_SAVEPOINT_PARTITION = _nested(
    "HoodieSavepointPartitionMetadata", _field("partitionPath", _STRING), _field("savepointDataFile", _array(_STRING))
)
SAVEPOINT_METADATA = _record(
    "HoodieSavepointMetadata",
    _field("savepointedBy", _STRING),
    _field("savepointedAt", "long"),
    _field("comments", _STRING),
    _field("partitionMetadata", _map(_SAVEPOINT_PARTITION)),
    _version(),
)
"""Body of a savepoint."""

_INDEX_PARTITION = _nested(
    "HoodieIndexPartitionInfo",
    _version(),
    *_opts(_STRING, "metadataPartitionPath", "indexUptoInstant"),
    _opt("extraMetadata", _map(_STRING)),
)
INDEX_PLAN = _record("HoodieIndexPlan", _version(), _opt("indexPartitionInfos", _array(_INDEX_PARTITION)))
INDEX_COMMIT_METADATA = _record(
    "HoodieIndexCommitMetadata",
    _version(),
    _opt("operationType", _STRING),
    _opt("indexPartitionInfos", _array(_INDEX_PARTITION)),
)
"""Plan and body of an indexing action."""
