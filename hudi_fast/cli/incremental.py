"""The commands for changes of rows: ``changes``, ``diff``."""

from __future__ import annotations

import click

from hudi_fast.cli.row_output import Output, choosing_options, output_options
from hudi_fast.cli.shared import open_table, path_argument

__all__ = ["COMMANDS"]


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


COMMANDS = (changes, diff)
"""The commands of this module."""
