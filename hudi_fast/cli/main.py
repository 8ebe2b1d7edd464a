"""The command ``hudi-fast``: inspects, reads, writes and maintains a table without Spark.

::

    inspect     info, history, files, explain
    schema      schema
    rows        read, write, delete
    incremental changes
    compaction  compact, cluster
    cleanup     clean, archive, ttl, repair
    recovery    rollback, savepoint, restore
    maintenance index, validate, upgrade, services
    catalogs    sync, check
    kernels     warm-up

Each command parses its arguments, calls one method of :class:`hudi_fast.HudiTable` or one function of the library, and
prints the result. An expected error is one red line and exit code 1; wrong usage is exit code 2. Exit code 3 says that
the write is committed and a service after it failed, 4 that it is unknown whether it is committed. Commands import the
library when they run, so that ``--help`` and ``--version`` are fast.
"""

from __future__ import annotations

import gc
import sys
import warnings
from typing import TextIO

import click

from hudi_fast.cli import (
    catalogs,
    cleanup,
    compaction,
    incremental,
    inspect,
    kernels,
    maintenance,
    recovery,
    rows,
    schema,
)
from hudi_fast.errors import CommitStateUnknownError, HudiError, PostCommitError

__all__ = ["cli", "main"]


_ALLOCATIONS = 1_000_000
"""Allocations between two searches for cyclic garbage. With Python's 700, imports take 30 ms longer."""


def main() -> None:
    """Entry point: run the command line and print expected errors as one line."""
    gc.set_threshold(_ALLOCATIONS)
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            cli.main(prog_name="hudi-fast")
        except Exception as error:
            if not _is_expected(error):
                raise
            from hudi_fast.cli.render import print_note

            notes = getattr(error, "__notes__", [])
            print_note("Error", " ".join([str(error) or type(error).__name__, *notes]), "red")
            sys.exit(_exit_code(error))


def _exit_code(error: Exception) -> int:
    """The exit code of an error. After code 1 a script may run the command again, once the cause is fixed."""
    return 3 if isinstance(error, PostCommitError) else 4 if isinstance(error, CommitStateUnknownError) else 1


def _is_expected(error: Exception) -> bool:
    """Whether the error concerns the call, the table or files, and is not a bug in the program."""
    from_arrow = type(error).__module__.partition(".")[0] == "pyarrow"
    return from_arrow or isinstance(error, HudiError | OSError)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    from hudi_fast.cli.render import print_note

    print_note("Warning", str(message), "yellow")


@click.group()
@click.version_option(package_name="hudi-fast", prog_name="hudi-fast")
@click.option(
    "--storage-option",
    "storage_pairs",
    multiple=True,
    metavar="KEY=VALUE",
    help="Storage option, such as endpoint_url=...; repeatable. Pass credentials through environment variables.",
)
def cli(storage_pairs: tuple[str, ...]) -> None:
    """Read, write and maintain Apache Hudi tables natively."""


for group in (inspect, schema, rows, incremental, compaction, cleanup, recovery, maintenance, catalogs, kernels):
    for command in group.COMMANDS:
        cli.add_command(command)
