"""Options of Apache Hudi that have no effect here, or that are supported for certain values.

Options of Apache Hudi that hudi_fast accepts without effect, because the result is correct without them.

Key names: the ``Hoodie*Config`` classes of release 1.2.0, and keys of 0.15 that 1.x dropped.

Options of Apache Hudi that hudi_fast supports for certain values only, mostly the default.

Every other value is refused, because ignoring it could change the contents of the table or what others read from it.
"""

from __future__ import annotations

from typing import Any

from hudi_fast.config.option_fields import BOTH, WRITE, Kind, Option

__all__ = ["ACCEPTED_GROUPS", "ACCEPTED_OPTIONS", "ACCEPTED_PREFIXES", "LIMITED_OPTIONS", "MISSED_OPTIONS"]

ACCEPTED_PREFIXES = (
    ("hoodie.metrics", "Settings of reporters that hudi_fast does not have."),
    ("hoodie.gcp.", "BigQuery is not synced."),
    ("hoodie.meta.sync.datahub.", "DataHub is not synced."),
    ("hoodie.write.commit.callback.", "Settings of callbacks that hudi_fast does not have."),
    ("hoodie.embed.timeline.server", "hudi_fast has no timeline server."),
    ("hoodie.filesystem.", "The file view is always in memory."),
    ("hoodie.table.service.manager.", "hudi_fast has no service manager."),
    ("hoodie.metaserver.", "hudi_fast has no metadata server."),
    ("hoodie.errortable.", "`hudi-fast stream` reads them; writes have no error table."),
    ("hoodie.orc.", "Buffers of Apache ORC's writer."),
    ("hoodie.lance.", "Buffers of Lance's reader and writer in a JVM."),
    ("hoodie.streamer.", "Options of HoodieStreamer; `hudi-fast stream` reads them, writes do not."),
    ("hoodie.deltastreamer.", "Options of HoodieStreamer; `hudi-fast stream` reads them, writes do not."),
    ("hoodie.aws.", "The storage layer finds the credentials."),
)
"""(prefix, why its keys have no effect). A defined option takes precedence over its prefix."""

ACCEPTED_GROUPS: tuple[tuple[str, str], ...] = (
    (
        "The plan of a write determines parallelism and memory.",
        """
        hoodie.finalize.write.parallelism hoodie.rollback.parallelism hoodie.markers.delete.parallelism
        hoodie.archive.delete.parallelism hoodie.file.listing.parallelism hoodie.write.buffer.limit.bytes
        hoodie.write.buffer.record.sampling.rate hoodie.write.buffer.record.cache.limit hoodie.write.executor.type
        hoodie.write.executor.disruptor.buffer.limit.bytes hoodie.write.executor.disruptor.wait.strategy
        hoodie.write.status.storage.level hoodie.write.tagged.record.storage.level hoodie.writestatus.class
        hoodie.memory.merge.fraction hoodie.memory.compaction.fraction
        hoodie.memory.writestatus.failure.fraction hoodie.memory.compaction.max.size
        hoodie.memory.dfs.buffer.max.size hoodie.common.spillable.diskmap.type
        hoodie.common.diskmap.compression.enabled hoodie.file.index.cache.use.spillable.map
        hoodie.file.index.cache.spillable.mem hoodie.cdc.file.group.iterator.memory.spill.bytes
        hoodie.release.resource.on.completion.enable
        """,
    ),
    (
        "Internals of Apache Hudi's write and merge code.",
        """
        hoodie.datasource.write.row.writer.enable hoodie.spark.sql.optimized.writes.enable
        hoodie.write.merge.handle.class hoodie.write.concat.handle.class hoodie.compact.merge.handle.class
        hoodie.write.merge.handle.fallback hoodie.merge.data.validation.enabled hoodie.io.factory.class
        hoodie.storage.class hoodie.avro.write.support.class hoodie.parquet.spark.row.write.support.class
        hoodie.parquet.flink.rowdata.write.support.class
        hoodie.parquet.write.utc-timezone.enabled hoodie.hfile.max.file.size hoodie.hfile.block.size
        hoodie.hfile.writes.allow.duplicates hoodie.bulkinsert.schema.ddl
        hoodie.bulkinsert.are.partitioner.records.sorted hoodie.record.size.estimator.class
        hoodie.write.application.id hoodie.write.ignore.failed hoodie.block.writes.on.speculative.execution
        hoodie.sensitive.config.keys hoodie.payload.ordering.field
        hoodie.payload.event.time.field hoodie.is.update.record.for.mor hoodie.write.track.event.time.watermark
        hoodie.auto.commit
        hoodie.datasource.partition_extractor_class
        hoodie.table.partition_extractor_class
        hoodie.spark.polaris.catalog.class
        """,
    ),
    (
        "A write keeps the version and the stored properties of a table.",
        """
        hoodie.write.auto.upgrade hoodie.timeline.layout.version hoodie.table.initial.version hoodie.table.checksum
        hoodie.table.create.schema hoodie.table.metadata.partitions hoodie.table.metadata.partitions.inflight
        hoodie.table.index.defs.path hoodie.table.legacy.payload.class hoodie.table.partial.update.mode
        hoodie.table.secondary.indexes.metadata hoodie.archivelog.folder hoodie.timeline.path
        hoodie.timeline.history.path
        """,
    ),
    (
        "Markers and rollback need no settings.",
        """
        hoodie.write.markers.type hoodie.markers.timeline_server_based.batch.num_threads
        hoodie.markers.timeline_server_based.batch.interval_ms hoodie.rollback.using.markers
        hoodie.rollback.avoid.duplicate.plan hoodie.rollback.instant.backup.enabled
        hoodie.rollback.instant.backup.dir
        hoodie.fail.job.on.duplicate.data.file.detection hoodie.consistency.check.enabled
        hoodie.consistency.check.initial_interval_ms hoodie.consistency.check.max_interval_ms
        hoodie.consistency.check.max_checks hoodie.optimistic.consistency.guard.sleep_time_ms
        _hoodie.optimistic.consistency.guard.enable hoodie.fs.atomic_creation.support
        """,
    ),
    (
        "Early conflict detection checks each marker when it is created; instant times are never reused.",
        """
        hoodie.write.concurrency.early.conflict.detection.strategy
        hoodie.write.concurrency.async.conflict.detector.initial_delay_ms
        hoodie.write.concurrency.async.conflict.detector.period_ms
        _hoodie.time.generator.reuse.enable
        """,
    ),
    (
        "The ZooKeeper lock provider tries to connect until its connection timeout. Its url contains the ports.",
        """
        hoodie.write.lock.num_retries hoodie.write.lock.zookeeper.port
        """,
    ),
    (
        "Inserts go to file slices without log files only, so the size of log files is not estimated.",
        """
        hoodie.logfile.to.parquet.compression.ratio
        """,
    ),
    (
        "Clustered rows belong to the commits that wrote them, with and without clusterings in an incremental query.",
        """
        hoodie.datasource.read.incr.skip_cluster
        """,
    ),
    (
        "The machine determines how many files a clean deletes in parallel. One clean runs at a time.",
        """
        hoodie.clean.parallelism hoodie.cleaner.parallelism
        hoodie.clean.multiple.enabled hoodie.clean.allow.multiple hoodie.clean.optimize.using.local.engine.context
        """,
    ),
    (
        "`hoodie.fail.writes.on.inline.table.service.exception` decides whether archiving that fails after a write "
        "fails the call.",
        """
        hoodie.fail.on.timeline.archiving
        """,
    ),
    (
        "Internals of Apache Hudi's compaction code. `hoodie.log.compaction.inline` enables log compaction.",
        """
        hoodie.compaction.plan.generator hoodie.compaction.lazy.block.read hoodie.compaction.reverse.log.read
        hoodie.log.compaction.enable
        """,
    ),
    (
        "Internals of Apache Hudi's clustering code. Apache Hudi ignores the keys `hoodie.layout.optimize.*`, too.",
        """
        hoodie.clustering.max.parallelism hoodie.clustering.group.read.parallelism
        hoodie.clustering.plan.generation.use.local.engine.context hoodie.layout.optimize.enable
        hoodie.layout.optimize.data.skipping.enable
        """,
    ),
    (
        "Tuning of key lookups; affects their speed, not their result.",
        """
        hoodie.bloom.index.parallelism hoodie.bloom.index.use.caching hoodie.bloom.index.use.treebased.filter
        hoodie.bloom.index.bucketized.checking hoodie.bloom.index.bucketized.checking.enable.dynamic.parallelism
        hoodie.bloom.index.fileid.key.sorting.enable hoodie.bloom.index.keys.per.bucket
        hoodie.bloom.index.input.storage.level hoodie.simple.index.use.caching hoodie.simple.index.parallelism
        hoodie.global.simple.index.parallelism hoodie.simple.index.input.storage.level
        hoodie.global.index.reconcile.parallelism hoodie.record.index.use.caching
        hoodie.record.index.input.storage.level hoodie.bucket.index.remote.partitioner.enable
        hoodie.bucket.index.query.pruning
        hoodie.expression.index.range.metadata.storage.level
        """,
    ),
    (
        "Internals of Apache Hudi's metadata table code; the contents of the metadata table are the same.",
        """
        hoodie.metadata.streaming.write.enabled hoodie.metadata.metrics.enable
        hoodie.metadata.streaming.write.datatable.write.statuses.coalesce.divisor hoodie.metadata.index.async
        hoodie.metadata.table.service.manager.enabled hoodie.metadata.table.service.manager.actions
        hoodie.metadata.compact.max.delta.seconds hoodie.metadata.compact.trigger.strategy
        hoodie.metadata.log.compaction.enable hoodie.metadata.log.compaction.blocks.threshold
        hoodie.metadata.derive.from.datatable.clean.policy hoodie.metadata.dir.filter.regex
        hoodie.metadata.index.bloom.filter.parallelism hoodie.metadata.index.bloom.filter.column.list
        hoodie.metadata.index.column.stats.parallelism hoodie.metadata.index.column.stats.processing.mode.override
        hoodie.metadata.index.column.stats.inMemory.projection.threshold
        hoodie.metadata.index.partition.stats.parallelism hoodie.metadata.index.check.timeout.seconds
        _hoodie.metadata.ignore.spurious.deletes hoodie.metadata.optimized.log.blocks.scan.enable
        hoodie.metadata.max.deltacommits.when_pending hoodie.metadata.record.level.index.defer.init
        hoodie.metadata.record.index.enable.validation.on.initialization hoodie.metadata.max.init.parallelism
        hoodie.metadata.max.reader.memory hoodie.metadata.max.reader.buffer.size hoodie.metadata.spillable.map.path
        hoodie.metadata.max.logfile.size hoodie.metadata.auto.initialize hoodie.metadata.auto.delete.partitions
        hoodie.metadata.index.expression.parallelism hoodie.metadata.index.secondary.parallelism
        hoodie.metadata.range.repartition.sampling.fraction
        hoodie.metadata.range.repartition.target.records.per.partition hoodie.metadata.range.repartition.random.seed
        hoodie.metadata.repartition.min.partitions.threshold hoodie.metadata.repartition.default.partitions
        hoodie.metadata.file.cache.max.size.mb hoodie.metadata.bloom.filter.enable hoodie.metadata.bloom.filter.type
        hoodie.metadata.bloom.filter.num.entries hoodie.metadata.bloom.filter.fpp
        hoodie.metadata.bloom.filter.dynamic.max.entries hoodie.metadata.record.preparation.parallelism
        hoodie.metadata.write.fail.on.table.service.failures hoodie.metadata.fallback.enable
        """,
    ),
    (
        "Internals of Apache Hudi's file listing and readers; the rows are the same.",
        """
        hoodie.fileIndex.dataSkippingFailureMode hoodie.file.index.enable hoodie.file.group.reader.enabled
        hoodie.datasource.read.file.index.listing.mode
        hoodie.datasource.read.file.index.listing.partition-path-prefix.analysis.enabled
        hoodie.datasource.read.file.index.optimize.listing.using.path.filter
        hoodie.datasource.read.file.index.list.partitions.from.catalog
        hoodie.datasource.read.partition.value.extractor.enabled
        hoodie.datasource.read.streaming.table.version hoodie.hfile.block.cache.enabled hoodie.hfile.block.cache.size
        hoodie.hfile.block.cache.ttl.minutes hoodie.datasource.read.table.valued.function.timeline.relation.archived
        hoodie.datasource.read.table.valued.function.filesystem.relation.subpath
        """,
    ),
    (
        "Settings of services and hooks that are disabled.",
        """
        hoodie.precommit.validators.streaming.offset.tolerance.percentage
        hoodie.write.rolling.metadata.timeline.lookback.commits
        """,
    ),
)
"""(why the keys have no effect, keys separated by blanks)."""

MISSED_OPTIONS = (
    Option(
        "hoodie.parquet.outputtimestamptype",
        Kind.ENUM,
        "TIMESTAMP_MICROS",
        "Type of timestamps in base files. Apache Hudi 1.2.0 writes microseconds with every value, too.",
        choices=("TIMESTAMP_MICROS", "TIMESTAMP_MILLIS", "INT96"),
        honoured=False,
        loss="timestamps are stored in microseconds, as by Apache Hudi 1.2.0 with every value. Leave it out.",
    ),
    Option(
        "hoodie.parquet.field_id.write.enabled",
        Kind.BOOL,
        False,
        "Store the field ids of a DataFrame's schema in the files of a bulk_insert (Apache Hudi's default is true).",
        honoured=False,
        loss="hudi_fast stores no field ids; readers find the columns by their names. Leave it out.",
    ),
)
"""Options without effect whose users miss something: a value other than the default raises a warning."""

ACCEPTED_OPTIONS = tuple(
    Option(key, Kind.TEXT, None, doc, families=BOTH, honoured=False)
    for doc, keys in ACCEPTED_GROUPS
    for key in keys.split()
)
"""Options without effect in hudi_fast; the result is correct without them."""


def _off(key: str, doc: str, *aliases: str, families: tuple[str, ...] = WRITE) -> Option:
    """A boolean option that must be false."""
    return Option(key, Kind.BOOL, False, doc, aliases=aliases, supported=(False,), families=families)


def _never(key: str, doc: str, *aliases: str, instead: str = "") -> Option:
    """An option that is refused whenever it is given."""
    return Option(key, Kind.TEXT, None, doc, aliases=aliases, supported=(), instead=instead)


def _only(key: str, doc: str, *values: Any, aliases: tuple[str, ...] = (), instead: str = "") -> Option:
    """A text that must be one of ``values`` (ignoring case); the first is the default."""
    return Option(key, Kind.TEXT, values[0], doc, aliases=aliases, choices=values, supported=values, instead=instead)


_CAST = (
    "Cast the rows to that schema before the write: the table takes its columns from the rows. For rows with fewer "
    "columns than the table, set hoodie.write.set.null.for.missing.columns=true."
)


_SERVICES = (
    _off("hoodie.table.service.manager.enabled", "Delegate table services to a service manager."),
    _off(
        "hoodie.clean.delete.bootstrap.base.file",
        "Let cleaning delete files of the source folder of a bootstrap.",
        "hoodie.cleaner.delete.bootstrap.base.file",
    ),
)

_FORMATS = (
    _only("hoodie.table.log.file.format", "Log file format.", "HOODIE_LOG", aliases=("hoodie.table.rt.file.format",)),
    _off("hoodie.partition.metafile.use.base.format", "Write partition metafiles in the base file format."),
    _only(
        "hoodie.parquet.writelegacyformat.enabled",
        "Legacy Parquet encoding of decimals and lists.",
        "AUTO",
        "false",
        instead="Leave it out: decimals always have the legacy encoding, lists the standard one of three levels. For "
        "legacy lists use Apache Hudi.",
    ),
    _only("hoodie.table.format", "Table format.", "native"),
    _only("hoodie.storage.layout.type", "File layout.", "DEFAULT"),
    _never("hoodie.storage.layout.partitioner.class", "User-defined class for the file layout."),
    _never("hoodie.parquet.write.config.injector.class", "User-defined class for Parquet settings."),
    _never("hoodie.fileid.prefix.provider.class", "User-defined class for file ids."),
)

_ROWS = (
    _only(
        "hoodie.write.partial.update.unavailable.value",
        "Placeholder for a column value that the source did not send.",
        "__debezium_unavailable_value",
        aliases=("hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value",),
    ),
    _never("hoodie.write.partial.update.schema", "Columns of a partial update."),
    _never("hoodie.avro.schema", "Write schema, instead of the schema of the rows.", instead=_CAST),
    _never("hoodie.write.schema", "Write schema, instead of the schema of the rows.", instead=_CAST),
    _never("hoodie.internal.schema", "Write schema, instead of the schema of the rows.", instead=_CAST),
    _never("hoodie.datasource.write.secondarykey.column", "Columns of a secondary key."),
    _only("hoodie.write.rolling.metadata.keys", "Keys of extra metadata to copy from earlier commits.", ""),
    _off("hoodie.errortable.enable", "Write failing rows to an error table."),
    _never("hoodie.bulkinsert.overwrite.operation.type", "Internal to Spark SQL."),
)

_SQL = (
    _only("hoodie.sql.insert.mode", "Key handling of SQL INSERT INTO.", "upsert"),
    _off("hoodie.sql.bulk.insert.enable", "Use bulk_insert for SQL INSERT INTO."),
    _only("hoodie.spark.sql.insert.into.operation", "Operation of SQL INSERT INTO.", "insert"),
    _off("_hoodie.spark.sql.writes.prepped", "Internal to Spark SQL."),
    _off("_hoodie.spark.sql.merge.into.prepped", "Internal to Spark SQL."),
)

_CONCURRENCY = (
    _only("hoodie.time.generator.type", "Generator of instant times.", "WAIT_TO_ADJUST_SKEW"),
    _only("hoodie.metadata.write.concurrency.mode", "Concurrency mode of the metadata table.", "SINGLE_WRITER"),
)

_HOOKS = (
    _only("hoodie.prewrite.validators", "Classes of checks before a write.", ""),
    _never("hoodie.client.init.callback.classes", "User-defined class to call at the start of a write."),
    _never("hoodie.index.class", "User-defined index class."),
    _off("hoodie.metaserver.enabled", "Store the timeline on a metadata server.", families=BOTH),
)

LIMITED_OPTIONS = _SERVICES + _FORMATS + _ROWS + _SQL + _CONCURRENCY + _HOOKS
"""Options of features that hudi_fast supports in part or not at all."""
