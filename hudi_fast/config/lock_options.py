"""The options of concurrent writers as one frozen value: their lock and their conflict resolution.

::

    {"hoodie.write.lock...": ...} ─► LockOptions ─► hudi_fast.locking     table lock
                                                └─► hudi_fast.writing     conflict checks at commit
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hudi_fast.config.catalog.lock import LOCK_PROVIDERS, STRATEGIES
from hudi_fast.config.option_fields import normalise_fields, option_field
from hudi_fast.config.option_values import OptionValues
from hudi_fast.errors import ConfigError

__all__ = ["LockOptions"]

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

    mode: str = option_field(f"{_C}mode")
    provider_class: str | None = option_field(_PROVIDER_KEY)
    wait_ms: int = option_field(f"{_L}wait_time_ms")
    client_retries: int = option_field(f"{_L}client.num_retries")
    client_retry_wait_ms: int = option_field(f"{_L}client.wait_time_ms_between_retry")
    retry_wait_ms: int = option_field(f"{_L}wait_time_ms_between_retry")
    max_retry_wait_ms: int = option_field(f"{_L}max_wait_time_ms_between_retry")
    heartbeat_ms: int = option_field(f"{_L}heartbeat_interval_ms")
    # conflicts
    strategy_class: str | None = option_field(f"{_L}conflict.resolution.strategy")
    conflict_retries: int = option_field("hoodie.write.num.retries.on.conflict.failures")
    merges_schemas: bool = option_field(f"{_C}schema.conflict.resolution.enable")
    detects_conflicts_early: bool = option_field(f"{_C}early.conflict.detection.enable")
    early_checks_commits: bool = option_field(f"{_C}early.conflict.check.commit.conflict")
    yields_to_requested_writes: bool = option_field(
        "hoodie.clustering.fail.on.pending.ingestion.during.conflict.resolution"
    )
    adjusts_lock_provider: bool = option_field("hoodie.auto.adjust.lock.configs")
    # providers
    filesystem_path: str | None = option_field(f"{_L}filesystem.path")
    filesystem_expire_minutes: int = option_field(f"{_L}filesystem.expire")
    storage_validity_seconds: int = option_field(f"{_L}storage.validity.timeout.secs")
    storage_renew_seconds: int = option_field(f"{_L}storage.renew.interval.secs")
    zookeeper_url: str | None = option_field(f"{_L}zookeeper.url")
    zookeeper_base_path: str | None = option_field(f"{_L}zookeeper.base_path")
    zookeeper_lock_key: str | None = option_field(f"{_L}zookeeper.lock_key")
    zookeeper_session_ms: int = option_field(f"{_L}zookeeper.session_timeout_ms")
    zookeeper_connection_ms: int = option_field(f"{_L}zookeeper.connection_timeout_ms")
    zookeeper_tls: bool = option_field(f"{_Z}client.secure")
    zookeeper_authorities: str | None = option_field(f"{_Z}ssl.trustStore.location")
    zookeeper_certificate: str | None = option_field(f"{_Z}ssl.keyStore.location")
    zookeeper_key_password: str | None = option_field(f"{_Z}ssl.keyStore.password", secret=True)
    zookeeper_checks_hosts: bool = option_field(f"{_Z}ssl.hostnameVerification")
    zookeeper_sasl: bool = option_field(f"{_Z}sasl.client")
    dynamodb_table: str | None = option_field(f"{_L}dynamodb.table")
    dynamodb_partition_key: str | None = option_field(f"{_L}dynamodb.partition_key")
    dynamodb_region: str | None = option_field(f"{_L}dynamodb.region")
    dynamodb_billing_mode: str = option_field(f"{_L}dynamodb.billing_mode")
    dynamodb_read_capacity: int = option_field(f"{_L}dynamodb.read_capacity")
    dynamodb_write_capacity: int = option_field(f"{_L}dynamodb.write_capacity")
    dynamodb_creation_ms: int = option_field(f"{_L}dynamodb.table_creation_timeout")
    dynamodb_endpoint: str | None = option_field(f"{_L}dynamodb.endpoint_url")
    hive_database: str | None = option_field(f"{_L}hivemetastore.database")
    hive_table: str | None = option_field(f"{_L}hivemetastore.table")
    hive_uris: str | None = option_field(f"{_L}hivemetastore.uris")
    azure_connection_string: str | None = option_field(f"{_L}azure.connection.string", secret=True)
    azure_sas_token: str | None = option_field(f"{_L}azure.sas.token", secret=True)
    azure_managed_identity: str | None = option_field(f"{_L}azure.managed.identity.client.id")
    azure_tenant: str | None = option_field(f"{_L}azure.client.tenant.id")
    azure_client: str | None = option_field(f"{_L}azure.client.id")
    azure_client_secret: str | None = option_field(f"{_L}azure.client.secret", secret=True)
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
