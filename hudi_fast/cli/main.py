"""The command ``hudi-fast``: inspects, reads, writes and maintains a table without Spark.

Each command parses its arguments, calls one method of :class:`hudi_fast.HudiTable` or one function of the library, and
prints the result. :mod:`hudi_fast.cli.failures` lists the exit codes. Commands import the library when they run, so
that ``--help`` and ``--version`` are fast.
"""

from __future__ import annotations

import difflib
import gc
import sys
import warnings
from types import ModuleType
from typing import Any, TextIO

import click

from hudi_fast.cli import inspect, installation, maintenance, queries, recovery, rows, stream
from hudi_fast.cli.failures import noting_closed_pipes, print_note, reported
from hudi_fast.cli.shared import Common, refuse_pandas, storage_option, traceback_option
from hudi_fast.storage.allocator import choose_allocator

__all__ = ["SECTIONS", "cli", "main", "program"]

SECTIONS = {
    "Look at a table": ("info", "schema", "properties", "history", "files", "explain"),
    "Read rows": ("head", "read", "sql", "diff", "changes"),
    "Write rows": ("write", "update", "delete", "stream"),
    "Keep a table fast and small": ("compact", "cluster", "clean", "archive", "ttl", "index", "services"),
    "Undo, check and repair": ("rollback", "savepoint", "restore", "validate", "repair"),
    "Move and connect": ("check", "sync", "upgrade"),
    "This program": ("completion", "warm-up"),
}
"""Names of the commands by task, as ``hudi-fast --help`` lists them."""

_ALLOCATIONS = 1_000_000
"""Allocations between two searches for cyclic garbage. With Python's 700, imports take 30 ms longer."""

_WIDTH = 80


def program() -> None:
    """Entry point of a process that only runs a command.

    Arrow imports pandas where it makes its first array of Python values, which takes longer than many a command.
    """
    refuse_pandas()
    choose_allocator()
    main()


def main() -> None:
    """Run the command line and print errors as one line."""
    gc.set_threshold(_ALLOCATIONS)
    common = Common()
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            code = cli.main(prog_name="hudi-fast", standalone_mode=False, obj=common)
        except (Exception, KeyboardInterrupt) as error:
            code = reported(error, common.traceback)
        sys.exit(code or 0)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print_note("Warning", str(message), "yellow")


class Commands(click.Group):
    """The commands, by task."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; see :func:`hudi_fast.cli.failures.noting_closed_pipes`."""
        with noting_closed_pipes():
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that an argument names.

        Raises:
            click.UsageError: there is none; the message has the closest name.
        """
        name = args[0]
        if name.startswith("-") or name in self.commands or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        close = difflib.get_close_matches(name, self.commands, 1)
        meant = f" Did you mean {close[0]}?" if close else ""
        raise click.UsageError(f"There is no command {name!r}.{meant}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands and what they do, by task."""
        indent = max(map(len, self.commands))
        for title, names in SECTIONS.items():
            with formatter.section(title):
                helps = [(name, self.commands[name].get_short_help_str(_WIDTH)) for name in names]
                formatter.write_dl([(name.ljust(indent), text) for name, text in helps])


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="hudi-fast COMMAND --help lists the options of a command. The docs have examples: docs/reference/cli.md.",
)
@click.version_option(package_name="hudi-fast", prog_name="hudi-fast")
@storage_option
@traceback_option
def cli() -> None:
    """Read, write and maintain Apache Hudi tables natively."""


_MODULES: tuple[ModuleType, ...] = (inspect, queries, rows, stream, maintenance, recovery, installation)

for module in _MODULES:
    for command in module.COMMANDS:
        takes_path = any(one.name == "path" for one in command.params)
        traceback_option(storage_option(command) if takes_path else command)
        cli.add_command(command)
