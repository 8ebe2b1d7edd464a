"""Sync catalogs with a table.

A write is committed before catalogs are synced, and stays if that fails. Each enabled catalog is tried.

Source: ``HoodieSparkSqlWriter#metaSync``, ``SyncUtilHelpers`` (Apache Hudi 1.2.0).
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from hudi_fast.catalogs.open_catalog import open_catalog
from hudi_fast.catalogs.sync import SyncedTable, sync_table
from hudi_fast.errors import HudiError
from hudi_fast.writing.session import TableSession

__all__ = ["sync_after_write", "sync_catalogs"]


def sync_catalogs(session: TableSession, kinds: Sequence[str]) -> list[SyncedTable]:
    """Sync catalogs with the session's table; returns the result for each catalog table.

    Args:
        session: the table, and the options of its entries.
        kinds: ``hive``, ``glue``.

    Raises:
        HudiError: see :func:`hudi_fast.catalogs.sync.sync_table`.
    """
    synced = []
    for kind in kinds:
        with contextlib.closing(open_catalog(kind, session.settings.sync)) as catalog:
            synced += sync_table(catalog, session.state, session.settings.sync)
    return synced


def sync_after_write(session: TableSession) -> None:
    """Sync the catalogs that the options of a write enable.

    Args:
        session: of the write.

    Raises:
        HudiError: catalogs were not synced; the first reason.
    """
    failed: list[HudiError] = []
    for kind in session.settings.sync.catalogs:
        try:
            sync_catalogs(session, [kind])
        except HudiError as error:
            failed.append(error)
    if failed:
        raise failed[0]
