"""The command line, run in the process of the tests."""

from __future__ import annotations

import sys

import pytest

from hudi_fast.cli.main import main


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command line in this process; gives (exit code, standard output, standard error)."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["hudi-fast", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        captured = capsys.readouterr()
        return left.value.code, captured.out, captured.err

    return call
