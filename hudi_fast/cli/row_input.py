"""Where rows of a command come from: a file, a folder of files, or a pipe."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from hudi_fast.cli.shared import storage_options
from hudi_fast.config.option_names import ROW_FORMATS

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["input_format_option", "rows_of"]

_PARQUET, _ARROW, _FEATHER, _ORC = b"PAR1", b"ARROW1", b"FEA1", b"ORC"
_STREAM = b"\xff\xff\xff\xff"

input_format_option = click.option(
    "--input-format",
    type=click.Choice(ROW_FORMATS, case_sensitive=False),
    help="Format of the rows, where the ending of the name or the first bytes of a pipe do not tell it.",
)


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
