"""Opens the catalogs that options name."""

from __future__ import annotations

from hudi_fast.catalogs.entries import Catalog
from hudi_fast.catalogs.glue_catalog import GlueCatalog
from hudi_fast.catalogs.hive_catalog import HiveCatalog
from hudi_fast.config.sync_options import SyncOptions
from hudi_fast.hive.client import HiveClient
from hudi_fast.hive.site import metastore_addresses, metastore_tls

__all__ = ["open_catalog"]

_ANSWER_SECONDS = 60.0


def open_catalog(kind: str, options: SyncOptions) -> Catalog:
    """A catalog; it connects with its first call.

    Args:
        kind: ``hive`` or ``glue``.
        options: its address, and how it is called.

    Raises:
        ConfigError: the address is missing or wrong, or a needed package is not installed.
        CatalogError: boto3 has no region.
        UnsupportedFeatureError: the metastore needs authentication or encryption.
    """
    if kind == "glue":
        return GlueCatalog(options)
    addresses = metastore_addresses(options.metastore_uris, "hoodie.datasource.hive_sync.metastore.uris", "A table")
    return HiveCatalog(HiveClient(addresses, _ANSWER_SECONDS, metastore_tls()), options.batch_size)
