"""The arguments of HoodieStreamer's command line.

Source: ``HoodieStreamer.Config`` (1.2.0).
"""

from __future__ import annotations

from hudi_fast.values import dataclass

__all__ = ["ARGUMENTS", "OF_SESSIONS", "OTHER_FLAGS", "REFUSED", "WITHOUT_EFFECT", "Argument"]

_W = "hoodie.datasource.write."


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of HoodieStreamer's command line.

    Attributes:
        name: as it is written after ``--``.
        text: what it means, for ``--help``.
        is_flag: whether it stands alone.
        others: other names of it.
        option: option of the write that it sets; "" for none.
        default: value without it.
    """

    name: str
    text: str
    is_flag: bool = False
    others: tuple[str, ...] = ()
    option: str = ""
    default: str = ""


ARGUMENTS = (
    Argument("target-base-path", "Path of the table; it is created if it does not exist."),
    Argument("target-table", "Name of the table; by default that of its folder.", option="hoodie.table.name"),
    Argument("table-type", "COPY_ON_WRITE or MERGE_ON_READ.", option=f"{_W}table.type"),
    Argument("base-file-format", "PARQUET, ORC or LANCE.", option="hoodie.table.base.file.format"),
    Argument("source-class", "Class of the source, such as JsonKafkaSource; the package may be left out."),
    Argument(
        "source-ordering-fields",
        "Columns that decide which of two rows with one key is newer.",
        others=("source-ordering-field",),
        option=f"{_W}precombine.field",
    ),
    Argument("payload-class", "Payload class of the table.", option=f"{_W}payload.class"),
    Argument(
        "record-merge-mode", "Merge mode of the table.", others=("merge-mode",), option="hoodie.record.merge.mode"
    ),
    Argument(
        "record-merge-strategy-id",
        "Id of the merge strategy, for the merge mode CUSTOM.",
        others=("merge-strategy-id",),
        option="hoodie.record.merge.strategy.id",
    ),
    Argument(
        "schemaprovider-class",
        "FilebasedSchemaProvider, SchemaRegistryProvider, or ProtoClassBasedSchemaProvider for Protobuf.",
    ),
    Argument("transformer-class", "Classes of transformers, separated by commas."),
    Argument(
        "op", "UPSERT, INSERT, BULK_INSERT, INSERT_OVERWRITE, INSERT_OVERWRITE_TABLE or DELETE.", default="UPSERT"
    ),
    Argument("filter-dupes", "Drop rows whose keys the table has; with INSERT.", True),
    Argument("source-limit", "Most bytes of files, messages of a topic or commits of a table in one turn."),
    Argument("continuous", "Turn after turn, until the process is stopped.", True),
    Argument("min-sync-interval-seconds", "Shortest time from turn to turn.", default="0"),
    Argument("checkpoint", "Position where the stream begins; it counts once."),
    Argument("ignore-checkpoint", "Begin anew; a text, which counts once."),
    Argument("allow-commit-on-no-checkpoint-change", "Commit a turn that leaves the position as it is.", True),
    Argument("disable-compaction", "Do not compact a MERGE_ON_READ table.", True),
    Argument(
        "enable-sync", "Bring catalogs up to date after each turn.", True, option="hoodie.datasource.meta.sync.enable"
    ),
    Argument("enable-hive-sync", "Bring the Hive metastore up to date after each turn.", True),
    Argument("sync-tool-classes", "Classes of the catalogs.", option="hoodie.meta.sync.client.tool.class"),
    Argument("retry-on-source-failures", "Try again if the source fails.", True),
    Argument("retry-interval-seconds", "Pause before the next try.", default="30"),
    Argument("max-retry-count", "Number of further tries.", default="3"),
    Argument("engine", "process (the default), or spark: tasks of Spark read, transform and write the rows."),
    Argument("master", "Master of the Spark session, such as yarn or local[4]; with --engine spark."),
    Argument("name", "Name of the stream, where several feed one table; its position is for this library only."),
    Argument("proto-descriptor-file", "Descriptor file of Protobuf, from protoc; for this library only."),
    Argument("proto-message", "Full name of the Protobuf message type, such as shop.Order; for this library only."),
    Argument(
        "post-write-termination-strategy-class",
        "NoNewDataTerminationStrategy ends --continuous after some turns without rows.",
    ),
)
"""Arguments that are honoured."""

WITHOUT_EFFECT = frozenset(
    """
    spark-master enable-hive-support spark-app-name delta-sync-scheduling-weight compact-scheduling-weight
    cluster-scheduling-weight delta-sync-scheduling-minshare compact-scheduling-minshare cluster-scheduling-minshare
    max-pending-compactions max-pending-clustering retry-last-pending-inline-clustering
    retry-last-pending-inline-compaction force-empty-sync
    """.split()
)
"""Arguments about Spark's scheduling and about services that wait for each other: the result is the same."""

REFUSED = {
    "run-bootstrap": "hf.bootstrap or hudi-fast write with the operation bootstrap makes a table from files",
    "bootstrap-overwrite": "it belongs to --run-bootstrap",
    "bootstrap-index-class": "it belongs to --run-bootstrap",
    "initial-checkpoint-provider": "give the position itself with --checkpoint",
    "commit-on-errors": "a turn is written whole or not at all",
    "config-hot-update-strategy-class": "stop the streamer, and start it with the new settings",
    "ingestion-metrics-class": "hoodie.metrics.* selects a reporter",
    "record-merge-custom-implementation-classes": "Java classes do not run here; HudiTable takes a merger in Python",
    "merge-impl-classes": "Java classes do not run here; HudiTable takes a merger in Python",
}
"""Arguments that are refused, and what to do instead."""

OF_SESSIONS = frozenset({"spark-master", "spark-app-name"})
"""Arguments that have an effect where the command starts a session of Spark."""

OTHER_FLAGS = frozenset(
    """
    enable-hive-support retry-last-pending-inline-clustering retry-last-pending-inline-compaction force-empty-sync
    run-bootstrap bootstrap-overwrite commit-on-errors
    """.split()
)
"""Arguments without effect, and refused ones, that stand alone."""
