"""The commands for rows: ``read``, ``write``, ``update``, ``delete``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

import click

from hudi_fast.cli.shared import (
    json_option,
    open_table,
    option_option,
    options_of,
    path_argument,
    show_answer,
    storage_options,
)
from hudi_fast.config.option_names import (
    INDEX_WORDS,
    OPERATIONS,
    SAVE_MODES,
    TABLE_TYPE_WORDS,
    SaveMode,
    SnapshotType,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_fast.writing.flow import WriteResult

__all__ = ["COMMANDS"]

_SHOWN_ROWS = 20
_FILE_FORMATS = ("parquet", "csv", "json", "arrow")


@click.command(short_help="Read rows.")
@path_argument
@click.option("--columns", metavar="A,B,...", help="Only these columns, in this order.")
@click.option(
    "--where", "condition", metavar="CONDITION", help="Only matching rows, for example \"city = 'Oslo' and fare > 10\"."
)
@click.option(
    "--as-of", metavar="TIME", help="Time travel, for example 20240131120000000, 2024-01-31 or 2024-01-31T12:00:00Z."
)
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
@click.option(
    "--limit", type=click.IntRange(min=0), help=f"Maximum number of rows; {_SHOWN_ROWS} by default when printed."
)
@click.option("--output", metavar="FILE", help="Write to FILE.parquet, .csv, .json or .arrow.")
@click.option("--meta", is_flag=True, help="Also print Hudi's meta columns.")
@json_option
def read(
    path: str,
    columns: str | None,
    condition: str | None,
    as_of: str | None,
    query: str,
    changes: str | None,
    limit: int | None,
    output: str | None,
    meta: bool,
    as_json: bool,
) -> None:
    """Read rows of the table at PATH.

    Files and JSON contain all columns, Hudi's meta columns first. Printed tables leave out the meta columns unless
    --meta is given.
    """
    from hudi_fast.cli.progress import counted, progress_line
    from hudi_fast.cli.render import format_of, json_line, limited, write_file

    if output is not None:
        format_of(output, _FILE_FORMATS)
    if changes is not None and (as_of is not None or query != "snapshot"):
        raise click.UsageError("--incremental cannot be combined with --as-of or --query.")
    table = open_table(path)
    printed = output is None and not as_json
    wanted = table.schema.names if columns is None and printed and not meta else None
    if columns is not None:
        wanted = [name.strip() for name in columns.split(",")]
    where = condition
    if changes is None:
        reader = table.to_batches(wanted, where, as_of, cast(SnapshotType, query))
    else:
        begin, _, end = changes.partition("..")
        reader = table.incremental(begin, end or None, wanted, where).to_reader()
    if output is not None:
        with progress_line(f"Reading {path}", limit) as advance:
            rows = write_file(output, reader.schema, counted(limited(reader, limit), advance))
        click.echo(json_line({"rows": rows, "output": output}) if as_json else f"{rows} rows written to {output}")
    elif as_json:
        for batch in limited(reader, limit):
            for row in batch.to_pylist():
                click.echo(json_line(row))
    else:
        _show_first_rows(reader, limit)


@click.command(short_help="Write the rows of a file.")
@path_argument
@click.option("--input", "source", required=True, metavar="FILE", help="Rows: FILE.parquet, .csv, .json or .arrow.")
@option_option
@click.option(
    "--mode",
    type=click.Choice(SAVE_MODES, case_sensitive=False),
    default="append",
    show_default=True,
    help="Save mode if the table exists.",
)
@click.option("--operation", type=click.Choice(OPERATIONS, case_sensitive=False), help="Write operation.")
@click.option("--key", metavar="A,B,...", help="Columns whose values identify a row.")
@click.option("--partition-by", metavar="A,B,...", help="Columns whose values make folders.")
@click.option("--order-by", metavar="A,B,...", help="Columns that decide which of two rows with one key is newer.")
@click.option("--table-type", type=click.Choice(TABLE_TYPE_WORDS, case_sensitive=False), help="Of a new table.")
@click.option("--index", type=click.Choice(INDEX_WORDS, case_sensitive=False), help="How to find the file of a key.")
@click.option("--name", help="Of a new table; by default the name of its folder.")
@json_option
def write(path: str, source: str, pairs: tuple[str, ...], mode: str, as_json: bool, **words: str | None) -> None:
    """Write the rows of a file to the table at PATH.

    A missing table is created: give the columns of its --key.
    """
    from hudi_fast.api import write as write_rows
    from hudi_fast.cli.progress import progress_line
    from hudi_fast.config.words import with_words

    options = with_words(options_of(pairs), words)

    rows = _file_rows(source)
    with progress_line(f"Writing {rows.num_rows:,} rows to {path}"):
        result = write_rows(rows, path, options=options, mode=cast(SaveMode, mode), storage_options=storage_options())
    _show_result(result, as_json)


@click.command(short_help="Delete rows.")
@path_argument
@click.option("--where", "condition", metavar="CONDITION", help="Delete matching rows, for example \"city = 'Oslo'\".")
@click.option("--keys", metavar="FILE", help="Delete the rows whose keys are in FILE.parquet, .csv, .json or .arrow.")
@option_option
@json_option
def delete(path: str, condition: str | None, keys: str | None, pairs: tuple[str, ...], as_json: bool) -> None:
    """Delete rows from the table at PATH."""
    if (condition is None) == (keys is None):
        raise click.UsageError("Give either --where or --keys.")
    from hudi_fast.cli.progress import progress_line

    options, table = options_of(pairs), open_table(path)
    target = _file_rows(keys) if keys is not None else condition or ""
    with progress_line(f"Deleting from {path}"):
        result = table.delete(target, options)
    _show_result(result, as_json)


@click.command(short_help="Update columns of rows.")
@path_argument
@click.option(
    "--set",
    "settings",
    multiple=True,
    required=True,
    metavar="COLUMN=VALUE",
    help="Set a column to a value in SQL: 'text' in quotes, a number, null, a column, or fare * 2.",
)
@click.option("--where", "condition", metavar="CONDITION", help="Only matching rows, for example \"city = 'Oslo'\".")
@option_option
@json_option
def update(path: str, settings: tuple[str, ...], condition: str | None, pairs: tuple[str, ...], as_json: bool) -> None:
    """Update columns of rows of the table at PATH, in one commit."""
    from hudi_fast.cli.progress import progress_line

    values = {}
    for text in settings:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise click.UsageError(f"--set takes COLUMN=VALUE, got {text!r}.")
        values[name.strip()] = value
    options, table = options_of(pairs), open_table(path)
    where = condition
    with progress_line(f"Updating {path}"):
        result = table.update(where, values, options)
    _show_result(result, as_json)


COMMANDS = (read, write, update, delete)
"""The commands of this module."""


def _file_rows(path: str) -> pa.Table:
    """All rows of a file."""
    import pyarrow as pa

    from hudi_fast.arrow_input import read_rows
    from hudi_fast.cli.progress import counted, progress_line

    reader = read_rows(path)
    with progress_line(f"Reading {path}") as advance:
        return pa.Table.from_batches(counted(reader, advance), reader.schema)


def _show_first_rows(reader: pa.RecordBatchReader, limit: int | None) -> None:
    """Print the first rows, with a note if there are more."""
    from hudi_fast.cli.render import limited, show_rows

    wanted = _SHOWN_ROWS if limit is None else limit
    rows = list(_rows(limited(reader, wanted + (limit is None))))
    more = f"The first {_SHOWN_ROWS} rows; --limit shows more." if len(rows) > wanted else ""
    show_rows("Rows", rows[:wanted], reader.schema.names, more)


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from batch.to_pylist()


def _show_result(result: WriteResult, as_json: bool) -> None:
    names = ("operation", "inserts", "updates", "deletes", "files_written", "bytes_written", "seconds")
    values = {name: getattr(result, name) for name in names}
    show_answer("Committed", "Nothing committed", result.instant, values, as_json)
