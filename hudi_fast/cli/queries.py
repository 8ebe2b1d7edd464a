"""The commands that show rows, and changes of rows.

The commands that show rows: ``read``, ``head``, ``sql``.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, cast

import click

from hudi_fast.cli.row_output import Output, choosing_options, output_options
from hudi_fast.cli.shared import open_table, option_option, options_of, path_argument, storage_options
from hudi_fast.config.option_names import SnapshotType

if TYPE_CHECKING:
    from hudi_fast.table import HudiTable

__all__ = ["COMMANDS"]

_HEAD_ROWS = 10

as_of_option = click.option(
    "--as-of", metavar="TIME", help="Time travel, for example 20240131120000000, 2024-01-31 or 2024-01-31T12:00:00Z."
)


@click.command(short_help="Show or export rows: columns, conditions, times.")
@path_argument
@choosing_options
@as_of_option
@click.option(
    "--query",
    type=click.Choice(["snapshot", "read_optimized"], case_sensitive=False),
    default="snapshot",
    show_default=True,
    help="read_optimized reads base files only and ignores log files.",
)
@click.option(
    "--incremental",
    "changes",
    metavar="BEGIN[..END]",
    help="Only rows written after BEGIN, up to END, for example 20240131120000000.. or earliest..2024-01-31.",
)
@output_options()
def read(
    path: str,
    select: list[str] | None,
    condition: str | None,
    as_of: str | None,
    query: str,
    changes: str | None,
    out: Output,
) -> None:
    """Read rows of the table at PATH.

    Files, pipes and JSON contain all columns, Hudi's meta columns first. Tables on the screen leave out the meta
    columns unless --meta is given.
    """
    if changes is not None and (as_of is not None or query != "snapshot"):
        raise click.UsageError("--incremental cannot be combined with --as-of or --query.")
    table = open_table(path)
    columns = _columns(table, select, out, as_of)
    if changes is None:
        reader = table.to_batches(columns, condition, as_of, cast(SnapshotType, query))
    else:
        begin, _, end = changes.partition("..")
        reader = table.incremental(begin, end or None, columns, condition).to_reader()
    out.show(reader, "Rows", path)


@click.command(short_help="Show some rows.")
@path_argument
@choosing_options
@as_of_option
@output_options(shown=_HEAD_ROWS)
def head(path: str, select: list[str] | None, condition: str | None, as_of: str | None, out: Output) -> None:
    """Show some rows of the table at PATH: 10, or as many as --limit says. Reading stops after them."""
    table = open_table(path)
    count = _HEAD_ROWS if out.limit is None else out.limit
    rows = table.head(count, _columns(table, select, out, as_of), condition, as_of)
    out.of(count).show(rows.to_reader(), "Rows", path)


@click.command(short_help="Execute a SQL statement, such as a SELECT.")
@click.argument("statement")
@click.argument("paths", nargs=-1, metavar="[NAME=]PATH...")
@option_option
@output_options()
def sql(statement: str, paths: tuple[str, ...], pairs: tuple[str, ...], out: Output) -> None:
    """Execute a SQL STATEMENT on the tables at PATHs.

    The name of a table is the name of its folder, or the NAME before its path:

    \b
      hudi-fast sql "SELECT city, avg(fare) FROM trips GROUP BY city" lake/trips
      hudi-fast sql "SELECT * FROM a JOIN b USING (id)" a=lake/trips b=lake/riders

    A query computes with duckdb (pip install 'hudi-fast[sql]') and reads only the columns and files that it needs. The
    statement may also be an INSERT, UPDATE, DELETE, MERGE INTO, CALL, DESCRIBE or SHOW. `-` reads it from a pipe.
    """
    if statement == "-":
        statement = sys.stdin.read()
    elif len(statement.split()) == 1 and any(len(path.split()) > 1 for path in paths):
        raise click.UsageError('The statement comes first: hudi-fast sql "SELECT ..." PATH.')
    from hudi_fast.local_sql.sql import sql as execute

    rows = execute(statement, _named(paths), options_of(pairs), storage_options())
    out.show(rows.to_reader(), "Rows", "the tables")


def _columns(table: HudiTable, select: list[str] | None, out: Output, as_of: str | None = None) -> list[str] | None:
    """The columns to read: no others than those to show."""
    if select is not None or not out.hides_meta:
        return select
    return out.shown_columns(table.scan(as_of=as_of).schema.names)


def _named(paths: tuple[str, ...]) -> dict[str, HudiTable]:
    """The tables of a statement by the names that it may use."""
    named: dict[str, HudiTable] = {}
    for path in paths:
        name, separator, place = path.partition("=")
        if not separator or "/" in name:
            name, place = path.rstrip("/").rpartition("/")[2], path
        if name in named:
            raise click.UsageError(f"Two tables have the name {name}. Name them: {name}1=PATH {name}2=PATH.")
        named[name] = open_table(place)
    return named


@click.command(short_help="Show the change feed of commits.")
@path_argument
@click.option(
    "--begin", metavar="TIME", default="earliest", show_default=True, help="Only commits requested after this time."
)
@click.option("--end", metavar="TIME", help="Only commits requested at or before this time.")
@choosing_options
@output_options()
def changes(
    path: str, begin: str, end: str | None, select: list[str] | None, condition: str | None, out: Output
) -> None:
    """Show the row changes of commits to the table at PATH, which needs hoodie.table.cdc.enabled=true.

    Each change has an operation (op: i, u or d for insert, update, delete), the instant of its commit (ts_ms), and the
    row before and after as JSON. These are the columns of --select and --where. `hudi-fast diff` needs no change log.
    """
    reader = open_table(path).cdc_batches(begin, end, columns=select, filter=condition)
    out.show(reader, "Changes", f"changes of {path}", "changes")


@click.command(short_help="Show what differs between two times.")
@path_argument
@click.argument("begin")
@click.argument("end", required=False)
@choosing_options
@output_options()
def diff(path: str, begin: str, end: str | None, select: list[str] | None, condition: str | None, out: Output) -> None:
    """Show the rows of the table at PATH that differ between the times BEGIN and END, or BEGIN and now.

    A time is an instant of `hudi-fast history`, a date, or a date and time; `earliest` stands for a table without
    rows. The first column says what happened: insert, delete, or update_before and update_after for the two rows of an
    update. --where "change = 'delete'" shows deleted rows only.
    """
    out.show(open_table(path).diff_batches(begin, end, select, condition), "Differences", path, "differences")


COMMANDS = (read, head, sql, changes, diff)
"""The commands of this module."""
