"""Runs the tests against each mutant, and tells which mutants no test notices.

Usage::

    python -m tests.mutants.run [--only NAME ...] [--area AREA] [--processes 2] [--tier test,full] [--seconds 1800]
                                [--seconds-of-all 14400] [--report FILE.json] [--resume] [--skip-control]
                                [--near-only] [--pytest-args 'ARGUMENTS'] [--folder FOLDER]

::

    mutants ─► a scratch copy for each process ─► the tests near the mutant ─► if all pass: all tests ─► report

Of several tiers the later ones are for mutants that survive the earlier ones. The report is written after each mutant,
so that ``--resume`` continues an interrupted run. A time bound counts as a failed test: a mutant may make the product
wait for ever. So ``--seconds-of-all`` has to be above the time that all tests take without a mutant.
"""

from __future__ import annotations

import argparse
import json
import queue
import shlex
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tests.mutants.catalogue import MUTANTS, Mutant
from tests.mutants.pytest_run import STOP, PytestRun, Verdict, run_pytest
from tests.mutants.scratch import Scratch

__all__ = ["Options", "Outcome", "main", "table_of"]

_CONTROL_TIER = "check"
_SECONDS, _SECONDS_OF_ALL = 1800.0, 14400.0


@dataclass(frozen=True, slots=True)
class Options:
    """How tests are run.

    Attributes:
        tiers: values of ``--tier``, one after the other; None passes no such option.
        seconds: time bound of the tests near a mutant.
        seconds_of_all: time bound of all tests.
        near_only: whether the other tests are left out.
        more: further options of pytest.
    """

    tiers: tuple[str | None, ...] = (None,)
    seconds: float = _SECONDS
    seconds_of_all: float = _SECONDS_OF_ALL
    near_only: bool = False
    more: tuple[str, ...] = ()

    def pytest_options(self, tier: str | None) -> list[str]:
        """The options of pytest for a tier."""
        return [*(() if tier is None else ("--tier", tier)), *self.more]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened to a mutant.

    Attributes:
        name: the mutant's.
        verdict: ``error`` if pytest could not run its tests.
        tier: in which it was caught, or the last one; empty without tiers.
        phase: ``near`` or ``all``, likewise.
        by: the first test that failed, ``timeout`` or ``crash``; empty for a survivor.
        seconds: of all runs.
        tiers: those that were run.
        output: the last lines of the run that decided.
    """

    name: str
    verdict: Verdict
    tier: str
    phase: str
    by: str
    seconds: float
    tiers: tuple[str, ...] = ()
    output: str = ""


def try_mutant(scratch: Scratch, mutant: Mutant, options: Options) -> Outcome:
    """Run tests against one mutant until one fails."""
    seconds, done = 0.0, []
    phases: list[tuple[str, Sequence[str], float]] = [("near", mutant.near, options.seconds)]
    if not options.near_only:
        phases.append(("all", ("tests",), options.seconds_of_all))
    with scratch.mutated(mutant):
        for tier in options.tiers:
            done.append(tier or "")
            for phase, paths, bound in phases:
                found = run_pytest(scratch, paths, options.pytest_options(tier), bound)
                seconds += found.seconds
                made = Outcome(mutant.name, found.verdict, tier or "", phase, found.by, round(seconds, 1), tuple(done))
                made = replace(made, output=found.output)
                if found.verdict != "survived":
                    return made
    return made


def control(scratch: Scratch, mutants: Sequence[Mutant], options: Options) -> PytestRun:
    """Run the tests near the mutants without any: all of them have to pass."""
    tier = None if options.tiers == (None,) else _CONTROL_TIER
    paths = sorted({path for one in mutants for path in one.near})
    return run_pytest(scratch, paths, options.pytest_options(tier), options.seconds_of_all)


def table_of(outcomes: Mapping[str, Outcome]) -> str:
    """A Markdown table of the outcomes, in the order of the catalogue."""
    lines = ["| mutant | caught by `make test` | caught by `make test-full` | first test |", "|---|---|---|---|"]
    for mutant in MUTANTS:
        one = outcomes.get(mutant.name)
        if one is not None:
            lines.append(f"| {one.name} | {_answer(one, 'test')} | {_answer(one, 'full')} | {one.by} |")
    verdicts = [one.verdict for one in outcomes.values()]
    counts = (f"{verdicts.count(kind)} {kind}" for kind in ("caught", "survived", "error"))
    return "\n".join([*lines, "", f"{len(outcomes)} mutants: {', '.join(counts)}."])


def _answer(one: Outcome, tier: str) -> str:
    if one.verdict == "error":
        return "error"
    if one.verdict == "caught":
        return "yes" if one.tier in (tier, "", "test", _CONTROL_TIER) else "no" if tier in one.tiers else "not asked"
    return "no" if tier in one.tiers or "full" in one.tiers or one.tiers == ("",) else "not asked"


class Report:
    """The outcomes so far, in a file.

    Args:
        path: of the file; None to keep them in memory alone.
        resume: whether to begin with those in the file; errors are left out, so that they are tried again.
    """

    def __init__(self, path: Path | None, resume: bool) -> None:
        self._path, self._lock = path, threading.Lock()
        self.outcomes: dict[str, Outcome] = {}
        if resume and path is not None and path.exists():
            names = {mutant.name for mutant in MUTANTS}
            for fields in json.loads(path.read_text(encoding="utf-8")):
                one = _outcome_of(fields)
                if one.name in names and one.verdict != "error":
                    self.outcomes[one.name] = one

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome, and write all of them."""
        with self._lock:
            self.outcomes[outcome.name] = outcome
            if self._path is not None:
                text = json.dumps([asdict(one) for one in self.outcomes.values()], indent=2)
                beside = self._path.with_name(f"{self._path.name}.new")
                beside.write_text(text, encoding="utf-8")
                beside.replace(self._path)


def _outcome_of(fields: dict[str, Any]) -> Outcome:
    return Outcome(**{**fields, "tiers": tuple(fields["tiers"])})


def run_all(mutants: Sequence[Mutant], scratches: Sequence[Scratch], options: Options, report: Report) -> None:
    """Try mutants, one at a time in each copy."""
    free: queue.SimpleQueue[Scratch] = queue.SimpleQueue()
    for one in scratches:
        free.put(one)

    def attempt(mutant: Mutant) -> Outcome:
        scratch = free.get()
        try:
            return try_mutant(scratch, mutant, options)
        finally:
            free.put(scratch)

    with ThreadPoolExecutor(len(scratches)) as pool:
        started = [pool.submit(attempt, mutant) for mutant in mutants]
        try:
            for number, future in enumerate(as_completed(started), start=1):
                outcome = future.result()
                report.add(outcome)
                told = f"{outcome.verdict} {outcome.phase} {outcome.tier} {outcome.by}".rstrip()
                print(f"{number}/{len(mutants)} {outcome.name}: {told}, {outcome.seconds:.0f} s", flush=True)
                if outcome.verdict == "error":
                    print(outcome.output, file=sys.stderr, flush=True)
        except BaseException:
            STOP.set()
            for future in started:
                future.cancel()
            raise


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Which mutants do the tests notice?")
    parser.add_argument("--only", nargs="+", default=[], help="names of mutants; all without it")
    parser.add_argument("--area", default="", help="the first word of their names")
    parser.add_argument("--processes", type=int, default=2, help="runs of pytest at a time")
    parser.add_argument("--tier", help="values of pytest's option, separated by commas; without it none is passed")
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="bound of the tests near a mutant")
    parser.add_argument("--seconds-of-all", type=float, default=_SECONDS_OF_ALL, help="bound of all tests")
    parser.add_argument("--near-only", action="store_true", help="leave all other tests out")
    parser.add_argument("--report", type=Path, help="a JSON file for the outcomes")
    parser.add_argument("--resume", action="store_true", help="skip the mutants in the report")
    parser.add_argument("--skip-control", action="store_true", help="do not run the tests without a mutant first")
    parser.add_argument("--pytest-args", default="", help="further options of pytest, as in a shell")
    parser.add_argument("--folder", type=Path, help="for the copies; by default a temporary one")
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.only) - {one.name for one in MUTANTS})
    if unknown:
        parser.error(f"--only: no mutant is named {', '.join(unknown)}")
    if given.resume and given.report is None:
        parser.error("--resume needs --report")
    return given


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests against mutants and print a table; 0 if all mutants were caught, 2 if the control failed."""
    given = _parsed(arguments)
    report = Report(given.report, given.resume)
    options = Options(
        (None,) if given.tier is None else tuple(given.tier.split(",")),
        given.seconds,
        given.seconds_of_all,
        given.near_only,
        tuple(shlex.split(given.pytest_args)),
    )
    asked = [one for one in MUTANTS if (not given.only or one.name in given.only) and given.area in ("", one.area)]
    left = [one for one in asked if one.name not in report.outcomes]
    folder = given.folder or Path(tempfile.mkdtemp(prefix="mutants-"))
    try:
        if left:
            count = max(1, min(given.processes, len(left)))
            scratches = [Scratch(folder / str(number)) for number in range(count)]
            if not given.skip_control:
                found = control(scratches[0], left, options)
                print(f"Without a mutant: {found.verdict}, {found.seconds:.0f} s", flush=True)
                if found.verdict != "survived":
                    print(found.output, file=sys.stderr)
                    return 2
            run_all(left, scratches, options, report)
    finally:
        if given.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    chosen = {one.name: report.outcomes[one.name] for one in asked if one.name in report.outcomes}
    print(table_of(chosen))
    return int(any(one.verdict != "caught" for one in chosen.values()))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # runs of pytest do not end with this process
    sys.exit(main())
