"""The options of concurrent writers: locks, failed writes, clocks and conflicts.

The options of concurrent writers as one frozen value: their lock and their conflict resolution.

::

    {"hoodie.write.lock...": ...} ─► LockOptions ─► hudi_fast.locking     table lock
                                                └─► hudi_fast.writing     conflict checks at commit

Options of a write beside failed writes, other writers' clocks and pending clusterings.
"""

from __future__ import annotations

from dataclasses import field

from hudi_fast.config.option_fields import (
    BOTH,
    Kind,
    Option,
    OptionValues,
    bound,
    normalise_fields,
    option,
    options_of,
    same_option,
)
from hudi_fast.config.rewrite_options import ClusteringOptions
from hudi_fast.errors import ConfigError
from hudi_fast.values import dataclass

__all__ = [
    "FAILED_WRITE_OPTIONS",
    "LOCK_OPTIONS",
    "LOCK_PROVIDERS",
    "PENDING_CLUSTERING_OPTIONS",
    "STRATEGIES",
    "FailedWriteOptions",
    "LockOptions",
    "PendingClusteringOptions",
]

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


_L = "hoodie.write.lock."
_C = "hoodie.write.concurrency."
_Z = "hudi_fast.zookeeper."
_PROVIDER_KEY = f"{_L}provider"
_NEEDED = {
    "zookeeper": ("zookeeper_url", "zookeeper_base_path"),
    "zookeeper_implicit": ("zookeeper_url",),
    "dynamodb": ("dynamodb_table",),
    "dynamodb_implicit": ("dynamodb_table",),
    "hive_metastore": ("hive_database", "hive_table"),
}


@dataclass(frozen=True, slots=True, repr=False)
class LockOptions(OptionValues):
    """Concurrency mode, lock provider and conflict resolution. Times are milliseconds unless the name states a unit.

    Attributes:
        mode: ``SINGLE_WRITER``, ``OPTIMISTIC_CONCURRENCY_CONTROL`` or ``NON_BLOCKING_CONCURRENCY_CONTROL``.
        provider_class: Apache Hudi's class; None = the storage decides.
        explicit: newest keys of the options that were given or differ from their defaults.
    """

    mode: str = option(
        f"{_C}mode",
        Kind.ENUM,
        "SINGLE_WRITER",
        "Whether concurrent writers are allowed, and how their conflicts are resolved.",
        choices=("SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"),
    )
    provider_class: str | None = option(
        f"{_L}provider",
        Kind.TEXT,
        None,
        "Class of the table lock; none = the lock in storage in object stores, and elsewhere a lock shared by the "
        "processes of this machine.",
        choices=tuple(LOCK_PROVIDERS),
        supported=tuple(LOCK_PROVIDERS),
    )
    wait_ms: int = bound(
        _count(
            f"{_L}wait_time_ms", 60_000, "Maximum wait of one attempt to lock; also the lease time of DynamoDB locks."
        )
    )
    client_retries: int = bound(
        _count(f"{_L}client.num_retries", 50, "Retries to acquire the lock of a provider.", "retries")
    )
    client_retry_wait_ms: int = bound(
        _count(f"{_L}client.wait_time_ms_between_retry", 5_000, "Wait between two attempts to acquire the lock.")
    )
    retry_wait_ms: int = bound(
        _count(f"{_L}wait_time_ms_between_retry", 1_000, "First wait between two attempts to reach the server.")
    )
    max_retry_wait_ms: int = bound(
        _count(f"{_L}max_wait_time_ms_between_retry", 16_000, "Maximum wait between two attempts to reach the server.")
    )
    heartbeat_ms: int = bound(
        _count(f"{_L}heartbeat_interval_ms", 60_000, "Renewal interval of a Hive metastore lock.", "ms", 1)
    )
    # conflicts
    strategy_class: str | None = option(
        f"{_L}conflict.resolution.strategy",
        Kind.TEXT,
        None,
        "Class that detects conflicts between writers; none = by buckets for a BUCKET index, otherwise by file groups.",
        choices=tuple(STRATEGIES),
        supported=tuple(STRATEGIES),
    )
    conflict_retries: int = bound(
        _count("hoodie.write.num.retries.on.conflict.failures", 0, "Retries of a write after a conflict.", "retries")
    )
    merges_schemas: bool = option(
        f"{_C}schema.conflict.resolution.enable",
        Kind.BOOL,
        True,
        "Resolve the schemas of concurrent writers that evolve the table.",
    )
    detects_conflicts_early: bool = option(
        f"{_C}early.conflict.detection.enable",
        Kind.BOOL,
        False,
        "Check the markers of other writers for conflicts before each file is written.",
    )
    early_checks_commits: bool = option(
        f"{_C}early.conflict.check.commit.conflict",
        Kind.BOOL,
        False,
        "Early conflict detection also checks commits that completed since the write began.",
    )
    yields_to_requested_writes: bool = option(
        "hoodie.clustering.fail.on.pending.ingestion.during.conflict.resolution",
        Kind.BOOL,
        False,
        "`PreferWriterConflictResolutionStrategy`: every active write in state requested also conflicts with a "
        "clustering.",
    )
    adjusts_lock_provider: bool = option(
        "hoodie.auto.adjust.lock.configs",
        Kind.BOOL,
        False,
        "Use InProcessLockProvider if concurrent writers are allowed and no lock provider is given.",
    )
    # providers
    filesystem_path: str | None = option(
        f"{_L}filesystem.path", Kind.TEXT, None, "Folder of the lock file; none = the table's .hoodie."
    )
    filesystem_expire_minutes: int = bound(
        _count(f"{_L}filesystem.expire", 0, "Age at which a lock file expires; 0 = never.", "minutes")
    )
    storage_validity_seconds: int = bound(
        _count(f"{_L}storage.validity.timeout.secs", 300, "Time after which a lock in storage expires.", "s", 10)
    )
    storage_renew_seconds: int = bound(
        _count(
            f"{_L}storage.renew.interval.secs",
            30,
            "Renewal interval of a lock in storage.",
            "s",
            1,
            f"{_L}storage.heartbeat.poll.secs",
        )
    )
    zookeeper_url: str | None = option(
        f"{_L}zookeeper.url", Kind.TEXT, None, "ZooKeeper servers: `host:port,...`, optionally with a root path."
    )
    zookeeper_base_path: str | None = option(f"{_L}zookeeper.base_path", Kind.TEXT, None, "Parent node of the lock.")
    zookeeper_lock_key: str | None = option(
        f"{_L}zookeeper.lock_key", Kind.TEXT, None, "Name of the lock; none = the table name."
    )
    zookeeper_session_ms: int = bound(
        _count(f"{_L}zookeeper.session_timeout_ms", 60_000, "Time after which a silent holder loses the lock.", "ms", 1)
    )
    zookeeper_connection_ms: int = bound(
        _count(f"{_L}zookeeper.connection_timeout_ms", 15_000, "Maximum wait for a connection.", "ms", 1)
    )
    zookeeper_tls: bool = option(
        f"{_Z}client.secure", Kind.BOOL, False, "Connect to ZooKeeper's secure client port, by TLS."
    )
    zookeeper_authorities: str | None = option(
        f"{_Z}ssl.trustStore.location",
        Kind.TEXT,
        None,
        "PEM file of the authorities that sign the certificates of ZooKeeper's servers; none = those of the system.",
    )
    zookeeper_certificate: str | None = option(
        f"{_Z}ssl.keyStore.location",
        Kind.TEXT,
        None,
        "PEM file with our certificate and its key, if ZooKeeper's servers ask for one.",
    )
    zookeeper_key_password: str | None = option(
        f"{_Z}ssl.keyStore.password", Kind.TEXT, None, "Password of that key; none = it is not encrypted.", secret=True
    )
    zookeeper_checks_hosts: bool = option(
        f"{_Z}ssl.hostnameVerification", Kind.BOOL, True, "Servers' certificates must name their hosts."
    )
    zookeeper_sasl: bool = option(
        f"{_Z}sasl.client",
        Kind.BOOL,
        False,
        "Authenticate to ZooKeeper by SASL; not supported.",
        supported=(False,),
    )
    dynamodb_table: str | None = option(f"{_L}dynamodb.table", Kind.TEXT, None, "DynamoDB table of the locks.")
    dynamodb_partition_key: str | None = option(
        f"{_L}dynamodb.partition_key", Kind.TEXT, None, "Key of the lock; none = the table name."
    )
    dynamodb_region: str | None = option(
        f"{_L}dynamodb.region", Kind.TEXT, None, "AWS region; none = AWS_REGION, or us-east-1."
    )
    dynamodb_billing_mode: str = option(
        f"{_L}dynamodb.billing_mode",
        Kind.ENUM,
        "PAY_PER_REQUEST",
        "Billing mode of a new lock table.",
        choices=("PAY_PER_REQUEST", "PROVISIONED"),
    )
    dynamodb_read_capacity: int = bound(
        _count(f"{_L}dynamodb.read_capacity", 20, "Read capacity of a provisioned lock table.", "units", 1)
    )
    dynamodb_write_capacity: int = bound(
        _count(f"{_L}dynamodb.write_capacity", 10, "Write capacity of a provisioned lock table.", "units", 1)
    )
    dynamodb_creation_ms: int = bound(
        _count(f"{_L}dynamodb.table_creation_timeout", 600_000, "Maximum wait for the creation of the lock table.")
    )
    dynamodb_endpoint: str | None = option(
        f"{_L}dynamodb.endpoint_url", Kind.TEXT, None, "DynamoDB endpoint; none = the AWS endpoint of the region."
    )
    hive_database: str | None = option(f"{_L}hivemetastore.database", Kind.TEXT, None, "Hive database of the lock.")
    hive_table: str | None = option(f"{_L}hivemetastore.table", Kind.TEXT, None, "Hive table of the lock.")
    hive_uris: str | None = option(
        f"{_L}hivemetastore.uris", Kind.TEXT, None, "Hive metastores: `thrift://host:port,...`."
    )
    azure_connection_string: str | None = option(
        f"{_L}azure.connection.string", Kind.TEXT, None, "Connection string for a lock in Azure storage.", secret=True
    )
    azure_sas_token: str | None = option(
        f"{_L}azure.sas.token", Kind.TEXT, None, "Shared access signature for a lock in Azure storage.", secret=True
    )
    azure_managed_identity: str | None = option(
        f"{_L}azure.managed.identity.client.id", Kind.TEXT, None, "Managed identity for a lock in Azure storage."
    )
    azure_tenant: str | None = option(
        f"{_L}azure.client.tenant.id", Kind.TEXT, None, "Tenant of the client secret for a lock in Azure storage."
    )
    azure_client: str | None = option(
        f"{_L}azure.client.id", Kind.TEXT, None, "Client id of the client secret for a lock in Azure storage."
    )
    azure_client_secret: str | None = option(
        f"{_L}azure.client.secret", Kind.TEXT, None, "Client secret for a lock in Azure storage.", secret=True
    )
    explicit: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "explicit", self.explicit | normalise_fields(self))
        if self.is_shared and self.provider is None:
            if not self.adjusts_lock_provider:
                raise ConfigError(
                    f"{_C}mode={self.mode} needs a lock shared by all writers; set {_PROVIDER_KEY} to one of "
                    f"{', '.join(LOCK_PROVIDERS)}."
                )
            in_process = next(name for name, kind in LOCK_PROVIDERS.items() if kind == "in_process")
            object.__setattr__(self, "provider_class", in_process)
        if self.detects_conflicts_early and self.mode != "OPTIMISTIC_CONCURRENCY_CONTROL":
            raise ConfigError(
                f"To use early conflict detection ({_C}early.conflict.detection.enable), set "
                f"{_C}mode=OPTIMISTIC_CONCURRENCY_CONTROL; found {self.mode}."
            )
        self._check_provider()

    @property
    def provider(self) -> str | None:
        """Kind of lock provider, a value of ``LOCK_PROVIDERS``; None = the storage decides."""
        return None if self.provider_class is None else LOCK_PROVIDERS[self.provider_class]

    @property
    def strategy(self) -> str | None:
        """Kind of conflict resolution, a value of ``STRATEGIES``; None = derived from the index type."""
        return None if self.strategy_class is None else STRATEGIES[self.strategy_class]

    @property
    def is_shared(self) -> bool:
        """Whether other writers may be active at the same time."""
        return self.mode != "SINGLE_WRITER"

    @property
    def names_provider(self) -> bool:
        """Whether the user chose the provider; otherwise the table's storage decides."""
        return _PROVIDER_KEY in self.explicit

    @property
    def is_distributed(self) -> bool:
        """Whether the lock is shared with writers on other machines."""
        return self.provider not in (None, "in_process")

    def _check_provider(self) -> None:
        missing = [name for name in _NEEDED.get(self.provider or "", ()) if not getattr(self, name)]
        if missing:
            keys = ", ".join(type(self).__dataclass_fields__[name].metadata["option"].key for name in missing)
            raise ConfigError(f"{_PROVIDER_KEY}={self.provider_class} needs {keys}.")
        if self.storage_validity_seconds < 10 * self.storage_renew_seconds:
            raise ConfigError(
                f"{_L}storage.validity.timeout.secs={self.storage_validity_seconds} must be at least ten times "
                f"{_L}storage.renew.interval.secs={self.storage_renew_seconds}."
            )


LOCK_OPTIONS = options_of(LockOptions)
"""Options of locks and conflict detection."""


@dataclass(frozen=True, slots=True, repr=False)
class FailedWriteOptions(OptionValues):
    """Failed writes, heartbeats and the clock. Times are milliseconds."""

    policy: str = option(
        "hoodie.clean.failed.writes.policy",
        Kind.ENUM,
        "EAGER",
        "When failed writes are rolled back: at the start of the next write, by cleaning, or never.",
        aliases=("hoodie.cleaner.policy.failed.writes",),
        choices=("EAGER", "LAZY", "NEVER"),
    )
    heartbeat_interval_ms: int = option(
        "hoodie.client.heartbeat.interval_in_ms",
        Kind.INT,
        60_000,
        "Interval between two heartbeats of a running write or service.",
        unit="ms",
        minimum=1000,
    )
    heartbeat_misses: int = option(
        "hoodie.client.heartbeat.tolerable.misses",
        Kind.INT,
        2,
        "Missed heartbeats before a pending write or service counts as abandoned.",
        unit="heartbeats",
        minimum=1,
    )
    clock_skew_ms: int = option(
        "hoodie.time.generator.max_expected_clock_skew_ms",
        Kind.INT,
        1,
        "Wait after generating an instant time. The default is 200, as in Apache Hudi, with a lock provider that "
        "several machines share.",
        unit="ms",
        minimum=0,
        families=BOTH,
    )


@dataclass(frozen=True, slots=True, repr=False)
class PendingClusteringOptions(OptionValues):
    """What a write does about pending clusterings."""

    updates: str = same_option(ClusteringOptions, "updates_class")
    rolls_back: bool = option(
        "hoodie.clustering.rollback.pending.replacecommit.on.conflict",
        Kind.BOOL,
        False,
        "With `SparkAllowUpdateStrategy`: such a write first rolls back the pending clustering.",
    )
    expire: bool = option(
        "hoodie.clustering.enable.expirations",
        Kind.BOOL,
        False,
        "Roll back expired pending clusterings that no process executes.",
    )
    expire_after_minutes: int = option(
        "hoodie.clustering.expiration.threshold.mins",
        Kind.INT,
        60,
        "Age at which a pending clustering expires.",
        unit="minutes",
        minimum=0,
    )


FAILED_WRITE_OPTIONS = options_of(FailedWriteOptions)
"""Options of failed writes, heartbeats and the clock."""

PENDING_CLUSTERING_OPTIONS = options_of(PendingClusteringOptions)
"""Options of a write that meets pending clusterings, without those of clustering itself."""
