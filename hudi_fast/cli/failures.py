"""Errors on the command line: one line on standard error that says what to do, and an exit code.

::

    0    done                                    4    it is unknown whether the write is committed
    1    an error; or a check found something    70   a fault of hudi-fast itself
    2    wrong usage                             130  interrupted by Ctrl-C
    3    the write is committed, and a           141  the reader of the output closed the pipe
         service after it failed
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import os
import sys
import traceback
from collections.abc import Iterator

import click

from hudi_fast.errors import CommitStateUnknownError, HudiError, PostCommitError

__all__ = ["PipeClosed", "noting_closed_pipes", "print_note", "reported"]

_ERROR, _USAGE, _COMMITTED, _UNKNOWN, _FAULT, _INTERRUPTED, _PIPE_CLOSED = 1, 2, 3, 4, 70, 130, 141


class PipeClosed(Exception):
    """The program that reads standard output has ended, such as ``head``."""


@contextlib.contextmanager
def noting_closed_pipes() -> Iterator[None]:
    """Raise :class:`PipeClosed` where a write to standard output fails because nobody reads it."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        if error.errno != errno.EPIPE:
            raise
        raise PipeClosed from error


def print_note(kind: str, message: str, colour: str) -> None:
    """Print a message to standard error, on one line: ``kind: message``."""
    click.secho(f"{kind}: {' '.join(message.split())}", fg=colour, err=True)


def reported(error: BaseException, with_traceback: bool = False) -> int:
    """Print what an error says, and return the exit code.

    Args:
        error: what ended the command.
        with_traceback: print the calls that led to it first.
    """
    if isinstance(error, PipeClosed):
        _read_no_more()
        return _PIPE_CLOSED
    if with_traceback:
        traceback.print_exception(error)
    text, code = _text_and_code(error)
    print_note("Error", text, "red")
    return code


def _text_and_code(error: BaseException) -> tuple[str, int]:
    """The message of an error, and the exit code."""
    if isinstance(error, click.UsageError):
        program = "hudi-fast" if error.ctx is None else error.ctx.command_path
        return f"{_usage_text(error)} See `{program} --help`.", _USAGE
    if isinstance(error, click.ClickException):
        return error.format_message(), error.exit_code
    if isinstance(error, click.Abort) and not isinstance(error.__cause__, KeyboardInterrupt):
        return "Not confirmed. The table was not changed; --yes confirms.", _ERROR
    if isinstance(error, click.Abort | KeyboardInterrupt):
        return (
            "Interrupted. Rows are visible only once they are committed: `hudi-fast history` lists commits, and the "
            "next write rolls back what was begun.",
            _INTERRUPTED,
        )
    text = " ".join([str(error) or type(error).__name__, *getattr(error, "__notes__", [])])
    if _is_expected(error):
        return text, _code_of(error)
    said = f"{type(error).__name__}: {text}".rstrip(".")
    return f"hudi-fast has a fault: {said}. Run it again with --traceback, and report what it prints.", _FAULT


def _usage_text(error: click.UsageError) -> str:
    if not isinstance(error, click.NoSuchOption):
        return error.format_message()
    close = difflib.get_close_matches(error.option_name, error.possibilities or (), 1)
    return f"There is no option {error.option_name}.{f' Did you mean {close[0]}?' if close else ''}"


def _code_of(error: BaseException) -> int:
    """The exit code of an error. After code 1 a script may run the command again, once the cause is fixed."""
    if isinstance(error, PostCommitError):
        return _COMMITTED
    return _UNKNOWN if isinstance(error, CommitStateUnknownError) else _ERROR


def _is_expected(error: BaseException) -> bool:
    """Whether the error concerns the call, the table or files, and is not a fault of the program."""
    from_arrow = type(error).__module__.partition(".")[0] == "pyarrow"
    return from_arrow or isinstance(error, HudiError | OSError)


def _read_no_more() -> None:
    """Let Python write the rest of its buffer to nowhere when it ends."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
