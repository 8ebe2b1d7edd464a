"""The command for catalogs: ``sync``."""

from __future__ import annotations

from dataclasses import asdict

import click

from hudi_fast.cli.shared import json_option, option_option, options_of, path_argument, services_of, show_table

__all__ = ["COMMANDS"]

_HIVE = "hoodie.datasource.hive_sync."


@click.command(short_help="Bring the table's entries in a Hive metastore up to date.")
@path_argument
@click.option("--metastore", metavar="URI", help="thrift://host:port; default: that of hive-site.xml in HIVE_CONF_DIR.")
@click.option("--database", metavar="NAME", help="Database of the catalog; default: the table's, else 'default'.")
@click.option("--table", "name", metavar="NAME", help="Table of the catalog; default: the table's name.")
@click.option("--full", is_flag=True, help="Compare all partitions, not only those written since the last sync.")
@option_option
@json_option
def sync(
    path: str,
    metastore: str | None,
    database: str | None,
    name: str | None,
    full: bool,
    pairs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Bring the entries of the table at PATH in a Hive metastore up to date.

    Creates database and tables that are missing there, changes columns and properties, and adds, moves and drops
    partitions. The table at PATH is not changed.
    """
    import pyarrow as pa

    given = {f"{_HIVE}metastore.uris": metastore, f"{_HIVE}database": database, f"{_HIVE}table": name}
    options = {key: value for key, value in given.items() if value is not None}
    if full:
        options["hoodie.meta.sync.incremental"] = "false"
    synced = services_of(path).sync({**options_of(pairs), **options})
    show_table("Tables of the catalog", pa.Table.from_pylist([asdict(one) for one in synced]), as_json, hidden=[])


COMMANDS = (sync,)
"""The commands of this module."""
