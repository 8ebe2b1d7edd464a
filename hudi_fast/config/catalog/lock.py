"""Options of concurrent writers: concurrency mode, lock providers and conflict resolution.

Keys, defaults and class names are Apache Hudi's. Sources: ``HoodieLockConfig``, ``LockConfiguration``,
``HoodieWriteConfig``, ``StorageBasedLockConfig``, ``DynamoDbBasedLockConfig``, ``HoodieTimeGeneratorConfig`` (1.2.0).
"""

from __future__ import annotations

from hudi_fast.config.option_descriptor import BOTH, Kind, Option

__all__ = ["LOCK_OPTIONS", "LOCK_PROVIDERS"]

_L = "hoodie.write.lock."
_C = "hoodie.write.concurrency."
# ZooKeeper's names of the properties that its Java client takes from the JVM (ZKClientConfig, ClientX509Util 3.9).
_Z = "hudi_fast.zookeeper."
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
        "Whether concurrent writers are allowed, and how their conflicts are resolved.",
        choices=("SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"),
    ),
    Option(
        f"{_L}provider",
        Kind.TEXT,
        None,
        "Class of the table lock; none = the lock in storage in object stores, and elsewhere a lock shared by the "
        "processes of this machine.",
        choices=tuple(LOCK_PROVIDERS),
        supported=tuple(LOCK_PROVIDERS),
    ),
    _count(f"{_L}wait_time_ms", 60_000, "Maximum wait of one attempt to lock; also the lease time of DynamoDB locks."),
    _count(f"{_L}client.num_retries", 50, "Retries to acquire the lock of a provider.", "retries"),
    _count(f"{_L}client.wait_time_ms_between_retry", 5_000, "Wait between two attempts to acquire the lock."),
    _count(f"{_L}wait_time_ms_between_retry", 1_000, "First wait between two attempts to reach the server."),
    _count(f"{_L}max_wait_time_ms_between_retry", 16_000, "Maximum wait between two attempts to reach the server."),
    _count(f"{_L}heartbeat_interval_ms", 60_000, "Renewal interval of a Hive metastore lock.", "ms", 1),
)

_CONFLICTS = (
    Option(
        f"{_L}conflict.resolution.strategy",
        Kind.TEXT,
        None,
        "Class that detects conflicts between writers; none = by buckets for a BUCKET index, otherwise by file groups.",
        choices=tuple(STRATEGIES),
        supported=tuple(STRATEGIES),
    ),
    _count("hoodie.write.num.retries.on.conflict.failures", 0, "Retries of a write after a conflict.", "retries"),
    Option(
        f"{_C}schema.conflict.resolution.enable",
        Kind.BOOL,
        True,
        "Resolve the schemas of concurrent writers that evolve the table.",
    ),
    Option(
        f"{_C}early.conflict.detection.enable",
        Kind.BOOL,
        False,
        "Check the markers of other writers for conflicts before each file is written.",
    ),
    Option(
        f"{_C}early.conflict.check.commit.conflict",
        Kind.BOOL,
        False,
        "Early conflict detection also checks commits that completed since the write began.",
    ),
    Option(
        "hoodie.clustering.fail.on.pending.ingestion.during.conflict.resolution",
        Kind.BOOL,
        False,
        "`PreferWriterConflictResolutionStrategy`: every active write in state requested also conflicts with a "
        "clustering.",
    ),
    Option(
        "hoodie.auto.adjust.lock.configs",
        Kind.BOOL,
        False,
        "Use InProcessLockProvider if concurrent writers are allowed and no lock provider is given.",
    ),
    Option(
        "hoodie.time.generator.max_expected_clock_skew_ms",
        Kind.INT,
        1,
        "Wait after generating an instant time. The default is 200, as in Apache Hudi, with a lock provider that "
        "several machines share.",
        unit="ms",
        minimum=0,
        families=BOTH,
    ),
)

_PROVIDERS = (
    Option(f"{_L}filesystem.path", Kind.TEXT, None, "Folder of the lock file; none = the table's .hoodie."),
    _count(f"{_L}filesystem.expire", 0, "Age at which a lock file expires; 0 = never.", "minutes"),
    _count(f"{_L}storage.validity.timeout.secs", 300, "Time after which a lock in storage expires.", "s", 10),
    _count(
        f"{_L}storage.renew.interval.secs",
        30,
        "Renewal interval of a lock in storage.",
        "s",
        1,
        f"{_L}storage.heartbeat.poll.secs",
    ),
    Option(f"{_L}zookeeper.url", Kind.TEXT, None, "ZooKeeper servers: `host:port,...`, optionally with a root path."),
    Option(f"{_L}zookeeper.base_path", Kind.TEXT, None, "Parent node of the lock."),
    Option(f"{_L}zookeeper.lock_key", Kind.TEXT, None, "Name of the lock; none = the table name."),
    _count(f"{_L}zookeeper.session_timeout_ms", 60_000, "Time after which a silent holder loses the lock.", "ms", 1),
    _count(f"{_L}zookeeper.connection_timeout_ms", 15_000, "Maximum wait for a connection.", "ms", 1),
    Option(f"{_Z}client.secure", Kind.BOOL, False, "Connect to ZooKeeper's secure client port, by TLS."),
    Option(
        f"{_Z}ssl.trustStore.location",
        Kind.TEXT,
        None,
        "PEM file of the authorities that sign the certificates of ZooKeeper's servers; none = those of the system.",
    ),
    Option(
        f"{_Z}ssl.keyStore.location",
        Kind.TEXT,
        None,
        "PEM file with our certificate and its key, if ZooKeeper's servers ask for one.",
    ),
    Option(f"{_Z}ssl.keyStore.password", Kind.TEXT, None, "Password of that key; none = it is not encrypted."),
    Option(f"{_Z}ssl.hostnameVerification", Kind.BOOL, True, "Servers' certificates must name their hosts."),
    Option(
        f"{_Z}sasl.client",
        Kind.BOOL,
        False,
        "Authenticate to ZooKeeper by SASL; not supported.",
        supported=(False,),
    ),
    Option(f"{_L}dynamodb.table", Kind.TEXT, None, "DynamoDB table of the locks."),
    Option(f"{_L}dynamodb.partition_key", Kind.TEXT, None, "Key of the lock; none = the table name."),
    Option(f"{_L}dynamodb.region", Kind.TEXT, None, "AWS region; none = AWS_REGION, or us-east-1."),
    Option(
        f"{_L}dynamodb.billing_mode",
        Kind.ENUM,
        "PAY_PER_REQUEST",
        "Billing mode of a new lock table.",
        choices=("PAY_PER_REQUEST", "PROVISIONED"),
    ),
    _count(f"{_L}dynamodb.read_capacity", 20, "Read capacity of a provisioned lock table.", "units", 1),
    _count(f"{_L}dynamodb.write_capacity", 10, "Write capacity of a provisioned lock table.", "units", 1),
    _count(f"{_L}dynamodb.table_creation_timeout", 600_000, "Maximum wait for the creation of the lock table."),
    Option(f"{_L}dynamodb.endpoint_url", Kind.TEXT, None, "DynamoDB endpoint; none = the AWS endpoint of the region."),
    Option(f"{_L}hivemetastore.database", Kind.TEXT, None, "Hive database of the lock."),
    Option(f"{_L}hivemetastore.table", Kind.TEXT, None, "Hive table of the lock."),
    Option(f"{_L}hivemetastore.uris", Kind.TEXT, None, "Hive metastores: `thrift://host:port,...`."),
    Option(f"{_L}azure.connection.string", Kind.TEXT, None, "Connection string for a lock in Azure storage."),
    Option(f"{_L}azure.sas.token", Kind.TEXT, None, "Shared access signature for a lock in Azure storage."),
    Option(f"{_L}azure.managed.identity.client.id", Kind.TEXT, None, "Managed identity for a lock in Azure storage."),
    Option(f"{_L}azure.client.tenant.id", Kind.TEXT, None, "Tenant of the client secret for a lock in Azure storage."),
    Option(f"{_L}azure.client.id", Kind.TEXT, None, "Client id of the client secret for a lock in Azure storage."),
    Option(f"{_L}azure.client.secret", Kind.TEXT, None, "Client secret for a lock in Azure storage."),
)

LOCK_OPTIONS = _COMMON + _CONFLICTS + _PROVIDERS
"""Options of locks and conflict detection."""
