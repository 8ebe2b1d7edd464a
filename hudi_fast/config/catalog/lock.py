"""Options of several writers: how they exclude each other, and what becomes of their conflicts.

Keys, defaults and class names are Apache Hudi's. Sources: ``HoodieLockConfig``, ``LockConfiguration``,
``HoodieWriteConfig``, ``StorageBasedLockConfig``, ``DynamoDbBasedLockConfig``, ``HoodieTimeGeneratorConfig`` (1.2.0).
"""

from __future__ import annotations

from hudi_fast.config.option_descriptor import BOTH, Kind, Option

__all__ = ["LOCK_OPTIONS", "LOCK_PROVIDERS"]

_L = "hoodie.write.lock."
_C = "hoodie.write.concurrency."
_CLIENT = "org.apache.hudi.client.transaction."

LOCK_PROVIDERS = {
    f"{_CLIENT}lock.InProcessLockProvider": "in_process",
    f"{_CLIENT}lock.FileSystemBasedLockProvider": "file_system",
    f"{_CLIENT}lock.StorageBasedLockProvider": "storage",
    f"{_CLIENT}lock.ZookeeperBasedLockProvider": "zookeeper",
    f"{_CLIENT}lock.ZookeeperBasedImplicitBasePathLockProvider": "zookeeper_implicit",
    "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider": "dynamodb",
    "org.apache.hudi.aws.transaction.lock.DynamoDBBasedImplicitPartitionKeyLockProvider": "dynamodb_implicit",
    "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider": "hive_metastore",
}
"""Kinds of lock providers by Apache Hudi's class names."""

STRATEGIES = {
    f"{_CLIENT}SimpleConcurrentFileWritesConflictResolutionStrategy": "simple",
    f"{_CLIENT}BucketIndexConcurrentFileWritesConflictResolutionStrategy": "bucket",
    f"{_CLIENT}PreferWriterConflictResolutionStrategy": "prefer_writer",
}
"""Kinds of conflict resolution by Apache Hudi's class names."""


def _count(key: str, default: int, doc: str, unit: str = "ms", minimum: int = 0, *aliases: str) -> Option:
    return Option(key, Kind.INT, default, doc, aliases=aliases, unit=unit, minimum=minimum)


_COMMON = (
    Option(
        f"{_C}mode",
        Kind.ENUM,
        "SINGLE_WRITER",
        "Whether other writers may be at work, and what becomes of conflicts with them.",
        choices=("SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"),
    ),
    Option(
        f"{_L}provider",
        Kind.TEXT,
        None,
        "Lock taken around state changes of the timeline, by class; none = a lock of this machine.",
        choices=tuple(LOCK_PROVIDERS),
        supported=tuple(LOCK_PROVIDERS),
    ),
    _count(f"{_L}wait_time_ms", 60_000, "Longest wait for the lock at one try; of DynamoDB also the lease."),
    _count(f"{_L}client.num_retries", 50, "Further tries for a lock of a provider.", "tries"),
    _count(f"{_L}client.wait_time_ms_between_retry", 5_000, "Wait between two of these tries."),
    _count(f"{_L}num_retries", 15, "Tries of a provider to reach its server.", "tries"),
    _count(f"{_L}wait_time_ms_between_retry", 1_000, "First wait between two tries to reach a provider's server."),
    _count(f"{_L}max_wait_time_ms_between_retry", 16_000, "Longest wait between two such tries."),
    _count(f"{_L}heartbeat_interval_ms", 60_000, "How often a lock in a Hive metastore is renewed.", "ms", 1),
)

_CONFLICTS = (
    Option(
        f"{_L}conflict.resolution.strategy",
        Kind.TEXT,
        None,
        "How conflicts between writers are found, by class; none = by buckets for a BUCKET index, else by file groups.",
        choices=tuple(STRATEGIES),
        supported=tuple(STRATEGIES),
    ),
    _count("hoodie.write.num.retries.on.conflict.failures", 0, "Further tries of a write after a conflict.", "tries"),
    Option(
        f"{_C}schema.conflict.resolution.enable",
        Kind.BOOL,
        True,
        "Settle the schemas of writers that evolve the table at the same time.",
    ),
    Option(
        f"{_C}early.conflict.detection.enable",
        Kind.BOOL,
        False,
        "Look for conflicts before each file is written, by the markers of other writers.",
    ),
    Option(
        f"{_C}early.conflict.check.commit.conflict",
        Kind.BOOL,
        False,
        "Early detection looks at commits that were completed since, too.",
    ),
    Option(
        "hoodie.clustering.fail.on.pending.ingestion.during.conflict.resolution",
        Kind.BOOL,
        False,
        "A clustering that prefers writers gives way to writes that are requested only, too.",
    ),
    Option(
        "hoodie.auto.adjust.lock.configs",
        Kind.BOOL,
        False,
        "Several writers without a lock provider take the one of this process.",
    ),
    Option(
        "hoodie.time.generator.max_expected_clock_skew_ms",
        Kind.INT,
        1,
        "Wait after a time is taken: 1 for writers of one machine; with a lock provider for several, 200 is the "
        "default, as Apache Hudi's.",
        unit="ms",
        minimum=0,
        families=BOTH,
    ),
)

_PROVIDERS = (
    Option(f"{_L}filesystem.path", Kind.TEXT, None, "Folder of the lock file; none = the table's .hoodie."),
    _count(f"{_L}filesystem.expire", 0, "Age at which a lock file is nobody's any more; 0 = never.", "minutes"),
    _count(f"{_L}storage.validity.timeout.secs", 300, "How long a lock in storage lasts unless renewed.", "s", 10),
    _count(
        f"{_L}storage.renew.interval.secs",
        30,
        "How often a lock in storage is renewed.",
        "s",
        1,
        f"{_L}storage.heartbeat.poll.secs",
    ),
    Option(f"{_L}zookeeper.url", Kind.TEXT, None, "Servers, `host:port,...`, and a path below which all is."),
    Option(f"{_L}zookeeper.port", Kind.TEXT, None, "Not used: the url has ports."),
    Option(f"{_L}zookeeper.base_path", Kind.TEXT, None, "Node below which the lock is."),
    Option(f"{_L}zookeeper.lock_key", Kind.TEXT, None, "Name of the lock; none = the table's."),
    _count(f"{_L}zookeeper.session_timeout_ms", 60_000, "How long a holder that went silent keeps the lock.", "ms", 1),
    _count(f"{_L}zookeeper.connection_timeout_ms", 15_000, "Longest wait for a connection.", "ms", 1),
    Option(f"{_L}dynamodb.table", Kind.TEXT, None, "Table of the locks."),
    Option(f"{_L}dynamodb.partition_key", Kind.TEXT, None, "Key of the lock; none = the table's name."),
    Option(f"{_L}dynamodb.region", Kind.TEXT, None, "Region; none = AWS_REGION, or us-east-1."),
    Option(
        f"{_L}dynamodb.billing_mode",
        Kind.ENUM,
        "PAY_PER_REQUEST",
        "Billing of a table of locks that is made.",
        choices=("PAY_PER_REQUEST", "PROVISIONED"),
    ),
    _count(f"{_L}dynamodb.read_capacity", 20, "Read capacity of a provisioned table of locks.", "units", 1),
    _count(f"{_L}dynamodb.write_capacity", 10, "Write capacity of a provisioned table of locks.", "units", 1),
    _count(f"{_L}dynamodb.table_creation_timeout", 600_000, "Longest wait for the table of locks to be made."),
    Option(f"{_L}dynamodb.endpoint_url", Kind.TEXT, None, "Endpoint; none = the service's own."),
    Option(f"{_L}hivemetastore.database", Kind.TEXT, None, "Database of the lock."),
    Option(f"{_L}hivemetastore.table", Kind.TEXT, None, "Table of the lock."),
    Option(f"{_L}hivemetastore.uris", Kind.TEXT, None, "Metastores, `thrift://host:port,...`."),
    Option(f"{_L}azure.connection.string", Kind.TEXT, None, "How to reach Azure's storage for a lock in it."),
    Option(f"{_L}azure.sas.token", Kind.TEXT, None, "Shared access signature for a lock in Azure's storage."),
    Option(f"{_L}azure.managed.identity.client.id", Kind.TEXT, None, "Managed identity for the same."),
    Option(f"{_L}azure.client.tenant.id", Kind.TEXT, None, "Tenant of a client secret for the same."),
    Option(f"{_L}azure.client.id", Kind.TEXT, None, "Client of a client secret for the same."),
    Option(f"{_L}azure.client.secret", Kind.TEXT, None, "Client secret for the same."),
)

LOCK_OPTIONS = _COMMON + _CONFLICTS + _PROVIDERS
