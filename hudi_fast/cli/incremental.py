"""The command for change data capture: ``changes``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hudi_fast.cli.shared import json_option, open_table, path_argument

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["COMMANDS"]

_SHOWN = 20
_FILE_FORMATS = ("parquet", "csv", "json", "arrow")


@click.command(short_help="Show row changes of commits.")
@path_argument
@click.option(
    "--begin", metavar="TIME", default="earliest", show_default=True, help="Only commits requested after this time."
)
@click.option("--end", metavar="TIME", help="Only commits requested at or before this time.")
@click.option(
    "--limit", type=click.IntRange(min=0), help=f"Maximum number of changes; {_SHOWN} by default when printed."
)
@click.option("--output", metavar="FILE", help="Write to FILE.parquet, .csv, .json or .arrow.")
@json_option
def changes(path: str, begin: str, end: str | None, limit: int | None, output: str | None, as_json: bool) -> None:
    """Show the row changes of commits to the table at PATH, which needs hoodie.table.cdc.enabled=true.

    Each change has an operation (i, u or d for insert, update, delete), the instant of its commit, and the row before
    and after as JSON.
    """
    from hudi_fast.cli.progress import counted, progress_line
    from hudi_fast.cli.render import format_of, json_line, limited, write_file

    if output is not None:
        format_of(output, _FILE_FORMATS)
    reader = open_table(path).cdc_batches(begin, end)
    if output is not None:
        with progress_line(f"Reading changes of {path}", limit) as advance:
            rows = write_file(output, reader.schema, counted(limited(reader, limit), advance))
        click.echo(json_line({"changes": rows, "output": output}) if as_json else f"{rows} changes written to {output}")
    elif as_json:
        for batch in limited(reader, limit):
            for row in batch.to_pylist():
                click.echo(json_line(row))
    else:
        _show_first(reader, _SHOWN if limit is None else limit)


COMMANDS = (changes,)
"""The commands of this module."""


def _show_first(reader: pa.RecordBatchReader, limit: int) -> None:
    from hudi_fast.cli.render import limited, show_rows

    rows = [row for batch in limited(reader, limit + 1) for row in batch.to_pylist()]
    title = f"Changes ({len(rows):,})" if len(rows) <= limit else f"Changes (the first {limit:,})"
    columns = list(reader.schema.names) if rows else []
    show_rows(title, rows[:limit], columns, unbroken=["ts_ms"])
