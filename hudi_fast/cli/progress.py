"""Progress line of a long command, on standard error and only if that is a terminal.

The line shows the step, the phase that works, how many of its file groups are done, the duration, and the processed
rows. It disappears at the end; standard output and logs contain results only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from hudi_fast.monitoring.progress import progress

__all__ = ["counted", "progress_line"]

Advance = Callable[[int], None]


@contextmanager
def progress_line(step: str, total: int | None = None) -> Iterator[Advance]:
    """Show a progress line while the block runs.

    Args:
        step: text of the line.
        total: expected rows; if known, a bar is shown.

    Yields:
        A function that takes the number of rows processed since its last call.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda rows: None
        return
    columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()]
    if total:
        columns.insert(2, BarColumn())
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(step, total=total or None)

        def advance(rows: int) -> None:
            done = int(shown.tasks[task].completed) + rows
            shown.update(task, advance=rows, description=f"{step}: {done:,} rows")

        def tell(phase: str, done: int, units: int, unit: str) -> None:
            shown.update(task, description=f"{step}: {phase.replace('_', ' ')}, {done:,} of {units:,} {unit}")

        with progress(tell):
            yield advance


def counted(batches: Iterable[pa.RecordBatch], advance: Advance) -> Iterator[pa.RecordBatch]:
    """The same batches; reports the rows of each after its consumer has processed it."""
    for batch in batches:
        yield batch
        advance(batch.num_rows)
