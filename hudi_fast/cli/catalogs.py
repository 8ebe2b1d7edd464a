"""The commands for catalogs, ``sync``, and for jobs that move, ``check``."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

import click

from hudi_fast.cli.shared import json_option, option_option, options_of, path_argument, services_of, show_table

__all__ = ["COMMANDS"]

_FILE = click.Path(exists=True, dir_okay=False)
_PAIR = re.compile(r"\s*=\s*|\s+")
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


@click.command(short_help="Tell which options and SQL statements of a job are honoured.")
@click.option("--options", "options_file", metavar="FILE", type=_FILE, help="File of key=value lines, or key value.")
@click.option("--sql", "sql_file", metavar="FILE", type=_FILE, help="Script of SQL statements.")
@option_option
@json_option
def check(options_file: str | None, sql_file: str | None, pairs: tuple[str, ...], as_json: bool) -> None:
    """Tell which options and SQL statements of a job hudi_fast honours, and what to do about the others.

    The exit code is 1 if something is missed, refused or unknown.
    """
    import hudi_fast as hf

    options = options_of(pairs)
    if options_file is not None:
        options = {**_pairs_of(Path(options_file).read_text(encoding="utf-8")), **options}
    script = None if sql_file is None else Path(sql_file).read_text(encoding="utf-8")
    if not options and script is None:
        raise click.UsageError("Name options with --option or --options, or a script with --sql.")
    found = hf.check(options, script)
    show_table("Options and statements", found.to_arrow(), as_json, hidden=[])
    if not found.is_ready:
        raise click.exceptions.Exit(1)


def _pairs_of(text: str) -> dict[str, str]:
    """Options of a properties file, or of ``spark-defaults.conf``."""
    lines = (line.strip() for line in text.splitlines())
    pairs = (_PAIR.split(line, maxsplit=1) for line in lines if line and not line.startswith("#"))
    found = {one[0]: one[1] if len(one) > 1 else "" for one in pairs}
    return {key.removeprefix("spark."): value for key, value in found.items() if "hoodie." in key}


COMMANDS = (sync, check)
"""The commands of this module."""
