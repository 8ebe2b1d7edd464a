"""The commands that write rows (``write``, ``update``, ``delete``), and where their rows come from."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, cast

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
    ROW_FORMATS,
    SAVE_MODES,
    TABLE_TYPE_WORDS,
    SaveMode,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_fast.writing.flow import WriteResult

__all__ = ["COMMANDS", "rows_of"]

_PARQUET, _ARROW, _FEATHER, _ORC = b"PAR1", b"ARROW1", b"FEA1", b"ORC"
_STREAM = b"\xff\xff\xff\xff"

input_format_option = click.option(
    "--input-format",
    type=click.Choice(ROW_FORMATS, case_sensitive=False),
    help="Format of the rows, where the ending of the name or the first bytes of a pipe do not tell it.",
)


@click.command(short_help="Write the rows of a file.")
@path_argument
@click.option(
    "--input",
    "source",
    required=True,
    metavar="FILE",
    help="Rows: a .parquet, .csv, .json, .arrow or .orc file, or a folder of them; - for a pipe.",
)
@input_format_option
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
def write(
    path: str,
    source: str,
    input_format: str | None,
    pairs: tuple[str, ...],
    mode: str,
    as_json: bool,
    **words: str | None,
) -> None:
    """Write the rows of a file or a pipe to the table at PATH.

    A missing table is created: give the columns of its --key.
    """
    from hudi_fast.api import write as write_rows
    from hudi_fast.cli.progress import progress_line
    from hudi_fast.config.words import with_words

    options = with_words(options_of(pairs), words)

    rows = rows_of(source, input_format)
    with progress_line(f"Writing {rows.num_rows:,} rows to {path}"):
        result = write_rows(rows, path, options=options, mode=cast(SaveMode, mode), storage_options=storage_options())
    _show_result(result, as_json)


@click.command(short_help="Delete rows.")
@path_argument
@click.option("--where", "condition", metavar="CONDITION", help="Delete matching rows, for example \"city = 'Oslo'\".")
@click.option("--keys", metavar="FILE", help="Delete the rows whose keys are in this file; - for a pipe.")
@input_format_option
@option_option
@json_option
def delete(
    path: str,
    condition: str | None,
    keys: str | None,
    input_format: str | None,
    pairs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Delete rows from the table at PATH."""
    if (condition is None) == (keys is None):
        raise click.UsageError("Give either --where or --keys.")
    from hudi_fast.cli.progress import progress_line

    options, table = options_of(pairs), open_table(path)
    target = rows_of(keys, input_format) if keys is not None else condition or ""
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


COMMANDS = (write, update, delete)
"""The commands of this module."""


def _show_result(result: WriteResult, as_json: bool) -> None:
    names = ("operation", "inserts", "updates", "deletes", "files_written", "bytes_written", "seconds")
    values = {name: getattr(result, name) for name in names}
    show_answer("Committed", "Nothing committed", result.instant, values, as_json)


# ---- where rows come from: a file, a folder of files, or a pipe


def rows_of(source: str, kind: str | None = None) -> pa.Table:
    """All rows of a file, of the files of a folder, or of standard input.

    Args:
        source: a path; ``-`` for standard input. One with a scheme is reached by the options of the table.
        kind: one of :data:`~hudi_fast.config.option_names.ROW_FORMATS`; None: the ending of the name, or the first
            bytes, tell it.

    Raises:
        click.UsageError: standard input is a terminal.
        HudiError: the rows cannot be read.
    """
    import pyarrow as pa

    from hudi_fast.arrow_input import read_rows
    from hudi_fast.cli.progress import counted, progress_line

    if source == "-":
        return _piped(kind)
    reader = read_rows(source, kind, storage_options() if "://" in source else None)
    with progress_line(f"Reading {source}") as advance:
        return pa.Table.from_batches(counted(reader, advance), reader.schema)


def _piped(kind: str | None) -> pa.Table:
    """The rows of standard input."""
    import pyarrow as pa

    from hudi_fast.errors import InvalidDataError

    stream = sys.stdin.buffer
    if stream.isatty():
        raise click.UsageError("- reads rows from a pipe, such as `cat rows.csv | hudi-fast ...`; got a terminal.")
    data = stream.read()
    if not data.strip():
        raise InvalidDataError("Standard input is empty: no row was written.")
    kind = kind or _kind_of(data)
    try:
        return _parsed(data, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, ValueError) as error:
        said = str(error).splitlines()[0].rstrip(".")
        raise InvalidDataError(
            f"Standard input cannot be read as {kind}: {said}. --input-format names another format."
        ) from error


def _kind_of(data: bytes) -> str:
    """The format of rows, from their first bytes; CSV has no mark."""
    if data.startswith(_PARQUET):
        return "parquet"
    if data.startswith((_ARROW, _STREAM, _FEATHER)):
        return "arrow"
    if data.startswith(_ORC):
        return "orc"
    return "json" if data.lstrip()[:1] in (b"{", b"[") else "csv"


def _parsed(data: bytes, kind: str) -> pa.Table:
    import pyarrow as pa

    source = pa.BufferReader(data)
    if kind == "parquet":
        import pyarrow.parquet as pq

        return pq.read_table(source)
    if kind == "csv":
        import pyarrow.csv as pa_csv

        return pa_csv.read_csv(source)
    if kind == "orc":
        import pyarrow.orc as orc

        return orc.read_table(source)
    if kind in ("arrow", "feather"):
        return _of_arrow(data, source)
    if data.lstrip().startswith(b"["):  # an array of objects, as web services answer
        return pa.Table.from_pylist(json.loads(data))
    import pyarrow.json as pa_json

    return pa_json.read_json(source)


def _of_arrow(data: bytes, source: pa.BufferReader) -> pa.Table:
    import pyarrow as pa
    import pyarrow.feather as feather

    if data.startswith(_FEATHER):
        return feather.read_table(source)
    return (pa.ipc.open_file if data.startswith(_ARROW) else pa.ipc.open_stream)(source).read_all()
