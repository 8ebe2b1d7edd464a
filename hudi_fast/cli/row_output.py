"""Where rows of a command go: a table on the screen, or lines of JSON, CSV, Parquet or Arrow in a file or a pipe.

::

    --format table|jsonl|csv|parquet|arrow ──┐
    --output FILE, or -                      ├─► Output ─► show(reader)
    --limit, --meta, --json                ──┘
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hudi_fast.cli.shared import json_option
from hudi_fast.values import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FORMATS", "Output", "choosing_options", "columns_of", "output_options"]

FORMATS = ("table", "jsonl", "csv", "parquet", "arrow")
"""How rows are printed or written; all but ``table`` are for programs."""

_META = "_hoodie_"
_META_COLUMNS = 5
_BINARY = ("parquet", "arrow")

Call = TypeVar("Call", bound=Callable[..., Any])


@dataclass(frozen=True)
class Output:
    """Where rows go, and how many.

    Attributes:
        format: one of :data:`FORMATS`.
        file: path of a file; None for standard output.
        limit: number of rows; None for all, or for those that fit a screen.
        meta: whether a table shows Hudi's meta columns.
        as_json: whether what is said about a file is JSON.
        shown: rows of a table without a limit.
    """

    format: str
    file: str | None
    limit: int | None
    meta: bool
    as_json: bool
    shown: int = 20

    def of(self, limit: int) -> Output:
        """The same with another limit."""
        return replace(self, limit=limit)

    @property
    def is_table(self) -> bool:
        """Whether people read the rows."""
        return self.format == "table"

    @property
    def hides_meta(self) -> bool:
        """Whether meta columns that nobody named are left out."""
        return self.is_table and not self.meta

    def shown_columns(self, names: list[str]) -> list[str]:
        """The columns to show: meta columns that come with ``*`` are left out, those that a user named are not."""
        meta = {name for name in names if name.startswith(_META)}
        return [name for name in names if name not in meta] if self.hides_meta and len(meta) >= _META_COLUMNS else names

    def show(self, reader: pa.RecordBatchReader, title: str, source: str, noun: str = "rows") -> None:
        """Print or write the rows of a reader.

        Args:
            reader: the rows.
            title: of the table on the screen.
            source: what is read, for the progress line.
            noun: what a row is.
        """
        if self.is_table:
            self._print(reader, title)
        elif self.file is None:
            self._stream(reader)
        else:
            self._write(reader, source, noun)

    def _print(self, reader: pa.RecordBatchReader, title: str) -> None:
        from hudi_fast.cli.render import limited, show_rows

        wanted = self.shown if self.limit is None else self.limit
        rows = [row for batch in limited(reader, wanted + 1) for row in batch.to_pylist()]
        is_cut = len(rows) > wanted
        more = "--limit shows more." if is_cut and self.limit is None else ""
        count = f"the first {wanted:,}" if is_cut else f"{len(rows):,}"
        show_rows(f"{title} ({count})", rows[:wanted], self.shown_columns(reader.schema.names), more)

    def _stream(self, reader: pa.RecordBatchReader) -> None:
        from hudi_fast.cli.render import limited
        from hudi_fast.cli.row_files import write_stream

        sink = sys.stdout.buffer
        if self.format in _BINARY and sink.isatty():
            raise click.UsageError(f"--format {self.format} is not for a screen. Add --output FILE, or pipe it on.")
        write_stream(self.format, sink, reader.schema, limited(reader, self.limit))

    def _write(self, reader: pa.RecordBatchReader, source: str, noun: str) -> None:
        from hudi_fast.cli.progress import counted, progress_line
        from hudi_fast.cli.render import json_line, limited
        from hudi_fast.cli.row_files import write_file

        assert self.file is not None
        with progress_line(f"Reading {source}", self.limit) as advance:
            count = write_file(self.file, reader.schema, counted(limited(reader, self.limit), advance), self.format)
        click.echo(
            json_line({noun: count, "output": self.file})
            if self.as_json
            else f"{count:,} {noun} written to {self.file}"
        )


def output_options(shown: int = 20) -> Callable[[Call], Call]:
    """The options ``--limit``, ``--format``, ``--output``, ``--meta`` and ``--json`` of a command that has rows.

    The command gets an :class:`Output` as ``out``.

    Args:
        shown: rows on the screen, without ``--limit``.
    """

    def decorate(command: Call) -> Call:
        @click.option(
            "-n",
            "--limit",
            type=click.IntRange(min=0),
            metavar="N",
            help=f"At most N rows; on the screen {shown} if not given.",
        )
        @click.option(
            "--format",
            "row_format",
            type=click.Choice(FORMATS, case_sensitive=False),
            help="table by default; jsonl is one JSON object a line.",
        )
        @click.option(
            "--output", metavar="FILE", help="Write to FILE.parquet, .csv, .json, .jsonl or .arrow; - for a pipe."
        )
        @click.option("--meta", is_flag=True, help="Also print Hudi's meta columns in a table.")
        @json_option
        @functools.wraps(command)
        def call(
            *, limit: int | None, row_format: str | None, output: str | None, meta: bool, as_json: bool, **others: Any
        ) -> Any:
            out = Output(_format(row_format, output, as_json), _file(output), limit, meta, as_json, shown)
            return command(out=out, **others)

        return call  # type: ignore[return-value]

    return decorate


def choosing_options(command: Call) -> Call:
    """The options ``--select`` and ``--where`` of a command that shows rows of a table."""
    where = click.option(
        "--where",
        "condition",
        metavar="CONDITION",
        help="Only matching rows, for example \"city = 'Oslo' and fare > 10\".",
    )
    select = click.option(
        "--select",
        "--columns",
        "select",
        metavar="A,B,...",
        callback=lambda _context, _option, text: columns_of(text),
        help="Only these columns, in this order.",
    )
    return select(where(command))


def columns_of(text: str | None) -> list[str] | None:
    """The names in a text with commas between them."""
    return None if text is None else [name.strip() for name in text.split(",")]


def _file(output: str | None) -> str | None:
    return None if output == "-" else output


def _format(asked: str | None, output: str | None, as_json: bool) -> str:
    """The format of rows, from ``--format``, ``--output`` and ``--json``."""
    if as_json and asked not in (None, "jsonl") and _file(output) is None:
        raise click.UsageError(f"--json cannot be combined with --format {asked}.")
    if _file(output) is None:
        return asked or ("jsonl" if as_json or output == "-" else "table")
    if asked == "table":
        raise click.UsageError(f"--format table is for the screen; a file has one of {', '.join(FORMATS[1:])}.")
    if asked is not None:
        return asked
    from hudi_fast.cli.row_files import row_format_of

    assert output is not None
    return row_format_of(output)
