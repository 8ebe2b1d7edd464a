"""One run of pytest in a scratch copy, with a time bound."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tests.mutants.scratch import Scratch

__all__ = ["STOP", "PytestRun", "Verdict", "run_pytest"]

Verdict = Literal["caught", "survived", "error"]

STOP = threading.Event()
"""Once it is set all runs of this process are killed."""

_NO_TESTS = 5
_LOOK_SECONDS = 0.5
_CRASHES = {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL}
_SUMMARY = "short test summary info"
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
_LAST_LINES = 40


@dataclass(frozen=True, slots=True)
class PytestRun:
    """What a run of pytest found.

    Attributes:
        verdict: ``caught`` if a test failed.
        by: the first test that failed; ``timeout`` or ``crash`` if the run did not end by itself; else empty.
        seconds: duration.
        output: the last lines, unless all tests passed.
    """

    verdict: Verdict
    by: str
    seconds: float
    output: str = ""


def run_pytest(scratch: Scratch, paths: Sequence[str], options: Sequence[str], seconds: float) -> PytestRun:
    """Run tests of a copy up to the first failure.

    Args:
        scratch: the copy.
        paths: files and folders of tests.
        options: further options of pytest.
        seconds: after this time the run and all its processes are killed.

    Raises:
        InterruptedError: :data:`STOP` is set.
    """
    # The test of the catalogue fails with any mutant. Tests of packaging fail without one: they install a wheel of the
    # checkout, and a copy has the kernels twice.
    command = [".venv/bin/python", "-m", "pytest", "-x", "-q", "-ra", "-p", "no:cacheprovider"]
    command += ["--ignore=tests/mutants", "--ignore=tests/packaging", *options, *paths]
    started = time.monotonic()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command,
            cwd=scratch.folder,
            env=scratch.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = _code_of(process, started + seconds)
        finally:  # also the JVMs and servers of its tests
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        log.seek(0)
        text = log.read().decode(errors="replace")
    verdict, by = _judged(code, text)
    lines = [] if code == 0 else text.splitlines()[-_LAST_LINES:]
    return PytestRun(verdict, by, round(time.monotonic() - started, 1), "\n".join(lines))


def _code_of(process: subprocess.Popen[bytes], deadline: float) -> int | None:
    """The exit code of a process; None at the deadline."""
    while time.monotonic() < deadline:
        if STOP.is_set():
            raise InterruptedError("the run was stopped")
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(_LOOK_SECONDS)
    return None


def _judged(code: int | None, text: str) -> tuple[Verdict, str]:
    """The verdict of an exit code; None is a run that was killed."""
    if code is None:
        return "caught", "timeout"
    if code in (0, _NO_TESTS):
        return "survived", ""
    if code == 1:
        found = _FAILED.search(text, max(0, text.rfind(_SUMMARY)))  # captured messages may begin in the same way
        return "caught", "unknown" if found is None else found[1]
    if -code in _CRASHES:
        return "caught", "crash"
    return "error", ""
