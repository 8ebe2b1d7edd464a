"""The command ``hudi-fast``: looks at a table, reads it, writes it, deletes from it, serves it, without Spark.

Every command is one call of the table object (:class:`hudi_fast.HudiTable`) or of :func:`hudi_fast.write`, between
parsing arguments and showing the answer; those of table services are in :mod:`hudi_fast.cli.services`. An error of ours
is one red line and exit code 1; wrong usage is exit code 2. The library is imported when a command runs, so that
``--help`` and ``--version`` answer at once.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TextIO

import click

from hudi_fast import __version__
from hudi_fast.cli import services
from hudi_fast.cli.shared import (
    json_option,
    open_table,
    option_option,
    options_of,
    path_argument,
    show_answer,
    show_table,
)
from hudi_fast.config.option_names import OPERATIONS
from hudi_fast.errors import HudiError

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_fast.table import HudiTable
    from hudi_fast.writing.flow import WriteResult

__all__ = ["cli", "main"]

_SHOWN_ROWS = 20
_OPERATION_KEY = "hoodie.datasource.write.operation"
_FILE_FORMATS = ("parquet", "csv", "json", "arrow")
_META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)


def main() -> None:
    """Entry point: run the command line, and turn errors that a user can act on into one line."""
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            cli.main(prog_name="hudi-fast")
        except Exception as error:
            if not _is_expected(error):
                raise
            from hudi_fast.cli.render import print_note

            print_note("Error", str(error) or type(error).__name__, "red")
            sys.exit(1)


def _is_expected(error: Exception) -> bool:
    """Whether it speaks of the call, the table or the files, and not of a fault of the program."""
    from_arrow = type(error).__module__.partition(".")[0] == "pyarrow"
    return from_arrow or isinstance(error, HudiError | OSError)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    from hudi_fast.cli.render import print_note

    print_note("Warning", str(message), "yellow")


@click.group()
@click.version_option(__version__, prog_name="hudi-fast")
def cli() -> None:
    """Read and write Apache Hudi tables, natively."""


for command in services.COMMANDS:
    cli.add_command(command)


@cli.command()
@path_argument
@json_option
def info(path: str, as_json: bool) -> None:
    """Show what the table at PATH is: configuration, schema, size."""
    from hudi_fast.cli.render import json_line, show_rows, show_values

    table = open_table(path)
    config, schema = _config_values(table), _schema_rows(table.schema)
    stats = table.stats().to_pylist()
    if as_json:
        click.echo(json_line({"path": path, "config": config, "schema": schema, "stats": stats}))
        return
    show_values(f"{table.config.name} ({path})", config)
    show_rows("Columns", schema, ["name", "type", "nullable"])
    _show_stats(stats)


@cli.command()
@path_argument
@click.option("--limit", type=click.IntRange(min=0), help="Only the newest so many instants.")
@json_option
def history(path: str, limit: int | None, as_json: bool) -> None:
    """List the instants of the timeline of the table at PATH."""
    table = open_table(path).history()
    start = 0 if limit is None else max(0, table.num_rows - limit)
    show_table("History", table.slice(start), as_json, hidden=["completion"])


@cli.command()
@path_argument
@click.option("--where", "condition", metavar="CONDITION", help='Only files that may hold rows like: "fare > 10".')
@click.option("--limit", type=click.IntRange(min=0), help="Only the first so many files.")
@json_option
def files(path: str, condition: str | None, limit: int | None, as_json: bool) -> None:
    """List the files of the newest state of the table at PATH."""
    opened = open_table(path)
    table = opened.files(None if condition is None else _condition(condition, opened))
    show_table("Files", table if limit is None else table.slice(0, limit), as_json, hidden=["base_file"])


@cli.command()
@path_argument
@click.option("--where", "condition", metavar="CONDITION", required=True, help="Rows like: \"city = 'Oslo'\".")
@json_option
def explain(path: str, condition: str, as_json: bool) -> None:
    """Show how a condition leaves out files of the table at PATH: which indexes help, and what is read."""
    opened = open_table(path)
    show_table("Steps", opened.explain(_condition(condition, opened)), as_json, hidden=[])


@cli.command()
@path_argument
@click.option("--columns", metavar="A,B,...", help="Only these columns, in this order.")
@click.option("--where", "condition", metavar="CONDITION", help="Only rows like: \"city = 'Oslo' and fare > 10\".")
@click.option("--as-of", metavar="TIME", help="The table as it was, for example 20240131120000000 or 2024-01-31.")
@click.option(
    "--query",
    type=click.Choice(["snapshot", "read_optimized"], case_sensitive=False),
    default="snapshot",
    show_default=True,
    help="read_optimized: base files alone, without what is logged since.",
)
@click.option("--limit", type=click.IntRange(min=0), help=f"So many rows at most; on screen {_SHOWN_ROWS} by default.")
@click.option("--output", metavar="FILE", help="Write to FILE.parquet, .csv, .json or .arrow.")
@click.option("--meta", is_flag=True, help="On screen: show Hudi's meta columns too.")
@json_option
def read(
    path: str,
    columns: str | None,
    condition: str | None,
    as_of: str | None,
    query: str,
    limit: int | None,
    output: str | None,
    meta: bool,
    as_json: bool,
) -> None:
    """Read rows of the table at PATH.

    Files and JSON get all columns, Hudi's meta columns first; on screen these stay away unless they are asked for.
    """
    from hudi_fast.cli.progress import counted, under_way
    from hudi_fast.cli.render import format_of, json_line, limited, write_file

    if output is not None:
        format_of(output, _FILE_FORMATS)
    table = open_table(path)
    on_screen = output is None and not as_json
    wanted = table.schema.names if columns is None and on_screen and not meta else None
    reader = table.to_batches(
        columns=wanted if columns is None else [name.strip() for name in columns.split(",")],
        filter=None if condition is None else _condition(condition, table),
        as_of=as_of,
        query_type=query,
    )
    if output is not None:
        with under_way(f"Reading {path}", limit) as advance:
            rows = write_file(output, reader.schema, counted(limited(reader, limit), advance))
        click.echo(json_line({"rows": rows, "output": output}) if as_json else f"{rows} rows written to {output}")
    elif as_json:
        for batch in limited(reader, limit):
            for row in batch.to_pylist():
                click.echo(json_line(row))
    else:
        _show_first_rows(reader, limit)


@cli.command()
@path_argument
@click.option("--input", "source", required=True, metavar="FILE", help="Rows: FILE.parquet, .csv, .json or .arrow.")
@option_option
@click.option(
    "--mode",
    type=click.Choice(["append", "overwrite", "errorifexists", "ignore"], case_sensitive=False),
    default="append",
    show_default=True,
    help="What to do when there is a table.",
)
@click.option("--operation", type=click.Choice(OPERATIONS, case_sensitive=False), help="What to do with the rows.")
@json_option
def write(path: str, source: str, pairs: tuple[str, ...], mode: str, operation: str | None, as_json: bool) -> None:
    """Write rows of a file to the table at PATH.

    The table is created if it is not there; a new table needs -o hoodie.table.name=NAME, and for upserts
    -o hoodie.datasource.write.recordkey.field=COLUMN.
    """
    options = options_of(pairs)
    if operation is not None:
        options[_OPERATION_KEY] = operation
    from hudi_fast.api import write as write_rows
    from hudi_fast.cli.progress import under_way

    rows = _source(source)
    with under_way(f"Writing {rows.num_rows:,} rows to {path}"):
        result = write_rows(rows, path, options=options, mode=mode)
    _show_result(result, as_json)


@cli.command()
@path_argument
@click.option("--where", "condition", metavar="CONDITION", help="Delete rows like: \"city = 'Oslo'\".")
@click.option(
    "--keys", metavar="FILE", help="Delete rows whose key columns are in FILE.parquet, .csv, .json or .arrow."
)
@option_option
@json_option
def delete(path: str, condition: str | None, keys: str | None, pairs: tuple[str, ...], as_json: bool) -> None:
    """Delete rows of the table at PATH."""
    if (condition is None) == (keys is None):
        raise click.UsageError("Give either --where or --keys.")
    from hudi_fast.cli.progress import under_way

    options, table = options_of(pairs), open_table(path)
    target = _source(keys) if keys is not None else _condition(condition or "", table)
    with under_way(f"Deleting from {path}"):
        result = table.delete(target, options)
    _show_result(result, as_json)


def _condition(text: str, table: HudiTable) -> Any:
    """A filter on the table's columns, Hudi's meta columns among them."""
    import pyarrow as pa

    from hudi_fast.cli.where import parse_where

    meta = [pa.field(name, pa.string()) for name in _META_COLUMNS if table.config.populate_meta_fields]
    return parse_where(text, pa.schema([*meta, *table.schema]))


def _source(path: str) -> pa.Table:
    """All rows of a file."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    from hudi_fast.cli.progress import counted, under_way
    from hudi_fast.cli.render import format_of

    kind = format_of(path, _FILE_FORMATS)
    if not os.path.exists(path):
        raise FileNotFoundError(f"There is no file {path}.")
    reader = ds.dataset(path, format=kind).scanner().to_reader()
    with under_way(f"Reading {path}") as advance:
        return pa.Table.from_batches(counted(reader, advance), reader.schema)


def _config_values(table: HudiTable) -> dict[str, Any]:
    config = table.config
    names = ("record_key_fields", "partition_fields", "ordering_fields")
    lists = {name: list(getattr(config, name)) for name in names}
    return {
        "name": config.name,
        "database": config.database,
        "table_type": table.table_type,
        "version": table.version,
        **lists,
        "key_generator": config.key_generator_class or config.key_generator,
        "merge_mode": config.merge_mode,
        "hive_style": config.hive_style,
        "url_encode": config.url_encode,
        "populate_meta_fields": config.populate_meta_fields,
        "timezone": config.timezone,
        "metadata_partitions": list(config.metadata_partitions),
    }


def _schema_rows(schema: pa.Schema) -> list[dict[str, Any]]:
    return [{"name": field.name, "type": str(field.type), "nullable": field.nullable} for field in schema]


def _show_stats(stats: list[dict[str, Any]]) -> None:
    from hudi_fast.cli.render import show_rows, show_values

    if len(stats) == 1:
        values = dict(stats[0])
        indexes = values.pop("metadata_table")
        show_values("Size", values)
        if indexes:
            show_rows("Metadata table", indexes, list(indexes[0]))
    elif stats:
        show_rows("Size", stats, list(stats[0]))


def _show_first_rows(reader: pa.RecordBatchReader, limit: int | None) -> None:
    """On screen: no more rows than fit a look, and whether there are more."""
    from hudi_fast.cli.render import limited, show_rows

    wanted = _SHOWN_ROWS if limit is None else limit
    rows = list(_rows(limited(reader, wanted + (limit is None))))
    more = f"There are more rows; --limit shows more than {_SHOWN_ROWS}." if len(rows) > wanted else ""
    show_rows("Rows", rows[:wanted], reader.schema.names, more)


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from batch.to_pylist()


def _show_result(result: WriteResult, as_json: bool) -> None:
    names = ("operation", "inserts", "updates", "deletes", "files_written", "bytes_written", "seconds")
    values = {name: getattr(result, name) for name in names}
    show_answer("Committed", "Nothing committed", result.instant, values, as_json)
