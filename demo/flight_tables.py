"""The result tables of the demo, 80 characters wide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table

import hudi_fast as hf

__all__ = ["Asked", "Logged", "asked_shown", "history_shown", "logged_shown", "writes_shown"]


@dataclass(frozen=True)
class Asked:
    """A query and the files that its filter left out.

    Attributes:
        what: description of the filter.
        index: partition of the metadata table that left out the files.
        files: number of files of the table.
        read: number of files read.
        rows: number of rows found.
        seconds: duration.
    """

    what: str
    index: str
    files: int
    read: int
    rows: int
    seconds: float


@dataclass(frozen=True)
class Logged:
    """State of the merge-on-read table after a step.

    Attributes:
        step: name of the step.
        log_files: number of log files in the newest file slices.
        months: number of partitions with log files.
        log_bytes: size of the log files in bytes.
        merged_rows: rows of a snapshot query, which merges the log files.
        base_rows: rows of a read-optimized query, which reads base files only.
        seconds: duration of the step.
    """

    step: str
    log_files: int
    months: int
    log_bytes: int
    merged_rows: int
    base_rows: int
    seconds: float


def writes_shown(writes: Sequence[tuple[str, int, hf.WriteResult, int]]) -> Table:
    """One line per write: (description, input rows, result, rows of the table afterwards)."""
    names = ("write", "rows in", "inserted", "updated", "deleted", "rows after", "seconds")
    shown = _table("Writes", names, right=names[1:])
    for number, (_, rows, result, count) in enumerate(writes, 1):
        counts = (rows, result.inserts, result.updates, result.deletes, count)
        shown.add_row(f"{number} {result.operation}", *(f"{one:,}" for one in counts), f"{result.seconds:.2f}")
    return shown


def logged_shown(steps: Sequence[Logged]) -> Table:
    """One line per step."""
    names = ("merge-on-read", "log files", "log MB", "rows", "in base files", "seconds")
    shown = _table("Changes in log files", names, right=names[1:])
    for one in steps:
        sizes = (f"{one.log_files}", f"{one.log_bytes / 1e6:.1f}")
        shown.add_row(one.step, *sizes, f"{one.merged_rows:,}", f"{one.base_rows:,}", f"{one.seconds:.2f}")
    return shown


def asked_shown(queries: Sequence[Asked]) -> Table:
    """One line per query."""
    names = ("query", "index", "files", "read", "rows", "seconds")
    shown = _table("Data skipping with the metadata table", names, right=names[2:])
    for one in queries:
        shown.add_row(one.what, one.index, f"{one.files}", f"{one.read}", f"{one.rows}", f"{one.seconds:.2f}")
    return shown


def history_shown(title: str, path: Path) -> Table:
    """One line per instant of a table."""
    names = ["instant", "action", "ms", "inserted", "updated", "deleted", "files"]
    shown = _table(title, names, right=names[2:])
    for row in hf.HudiTable.open(path).history().to_pylist():
        files = row["files_deleted"] if row["files"] is None else row["files"]
        counts = (row["duration_ms"], row["inserts"], row["updates"], row["deletes"], files)
        texts = ("" if count is None else f"{count:,}" for count in counts)
        shown.add_row(row["instant"], (row["operation"] or row["action"]).lower(), *texts)
    return shown


def _table(title: str, names: Sequence[str], right: Sequence[str]) -> Table:
    """An empty table that fits into 80 characters."""
    shown = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in names:
        shown.add_column(name, justify="right" if name in right else "left", overflow="fold", no_wrap=name in right)
    return shown
