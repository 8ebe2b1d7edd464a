"""Errors on the command line: their line, and their exit code.

Module: hudi_fast.cli.failures.
"""

from __future__ import annotations

import click
import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.cli.failures import PipeClosed, noting_closed_pipes, print_note, reported


def test_a_message_of_several_lines_is_one_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    print_note("Error", "first\n  second [bold]", "red")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "Error: first second [bold]\n"


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (hf.TableNotFoundError("No table."), 1, "No table."),
        (hf.StorageFailedError("The disk is full."), 1, "The disk is full."),
        (FileNotFoundError(2, "No such file", "rows.csv"), 1, "rows.csv"),
        (pa.ArrowInvalid("Not a Parquet file"), 1, "Not a Parquet file"),
        (click.Abort(), 1, "not changed"),
        (click.UsageError("Too many."), 2, "Too many. See `hudi-fast --help`."),
        (hf.PostCommitError("It is committed."), 3, "It is committed."),
        (hf.CommitStateUnknownError("No answer."), 4, "No answer."),
        (KeyError("x"), 70, "fault: KeyError: 'x'. Run it again with --traceback"),
        (KeyboardInterrupt(), 130, "Interrupted."),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_each_kind_of_error_has_an_exit_code_and_says_one_line(
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, said: str
) -> None:
    assert reported(error) == code
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("Error: ")
    assert said in err


def test_a_traceback_is_shown_to_who_asks_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(hf.ConfigError) as raised:
        raise hf.ConfigError("Wrong.")
    assert reported(raised.value, with_traceback=True) == 1
    err = capsys.readouterr().err
    assert "Traceback (most recent call last)" in err
    assert err.endswith("Error: Wrong.\n")


def test_another_error_of_the_system_is_no_closed_pipe() -> None:
    with pytest.raises(OSError, match="full"), noting_closed_pipes():
        raise OSError(28, "full")
    with pytest.raises(PipeClosed), noting_closed_pipes():
        raise BrokenPipeError(32, "Broken pipe")
