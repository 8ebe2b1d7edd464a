"""``HudiTable.services``: syncing catalogs."""

from __future__ import annotations

from typing import Any

from hudi_fast.catalogs.sync import SyncedTable
from hudi_fast.services.syncing.run import sync_catalogs
from hudi_fast.services.verbs import Options, ServiceVerbs

__all__ = ["SyncVerbs"]


class SyncVerbs(ServiceVerbs):
    """Bringing the entries of a table in catalogs up to date."""

    def sync(self, options: Options | None = None, *, spark: Any = None) -> list[SyncedTable]:
        """Bring the table's entries in a Hive metastore up to date; the table itself is not changed.

        Args:
            options: ``hoodie.datasource.hive_sync.*``, ``hoodie.datasource.meta.sync.*``, ``hoodie.meta.sync.*``. The
                catalogs need not be enabled.
            spark: a Spark session: its metastore is the default one.

        Returns:
            What was done to each table of the catalog.

        Raises:
            CatalogError: the catalog refuses or does not answer.
            ConfigError: no metastore is named, or a partition path does not fit the partition columns.
            UnsupportedFeatureError: a column has a type that catalogs do not have.
        """
        session = self._session({"hoodie.datasource.meta.sync.enable": "true", **(options or {})}, spark)
        return sync_catalogs(session, session.settings.sync.named_catalogs)
