"""Signs of life of a command that takes long: one line on standard error, and only where that is a terminal.

The line says what is under way, for how long, and how many rows have gone by; it vanishes when the work is done, so
that standard output and logs hold results alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

__all__ = ["counted", "under_way"]

Advance = Callable[[int], None]


@contextmanager
def under_way(what: str, total: int | None = None) -> Iterator[Advance]:
    """Show that ``what`` is under way while the block runs.

    Args:
        what: for people.
        total: rows to come, if known: then there is a bar.

    Yields:
        A function to call with the number of rows that have gone by since it was last called.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda rows: None
        return
    columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()]
    if total:
        columns.insert(2, BarColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=total or None)

        def advance(rows: int) -> None:
            done = int(progress.tasks[task].completed) + rows
            progress.update(task, advance=rows, description=f"{what}: {done:,} rows")

        yield advance


def counted(batches: Iterable[pa.RecordBatch], advance: Advance) -> Iterator[pa.RecordBatch]:
    """The same batches; each is reported once it was taken."""
    for batch in batches:
        yield batch
        advance(batch.num_rows)
