"""Give damaged files to a reader, in a process with bounded memory and time; prints what went wrong.

    python -m tests.untrusted.fuzz "log files" --first 0 --count 1000
    python -m tests.untrusted.fuzz --minutes 10          all readers in turn, each time with other damage

A case is a number: the same number gives the same damage. A process of its own reads, because a hostile file may end
it; what it was doing is in shared memory.
"""

from __future__ import annotations

import argparse
import faulthandler
import mmap
import os
import random
import resource
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from tests.untrusted.bombs import BOMBS, NAMED
from tests.untrusted.mutations import mutated
from tests.untrusted.readers import READERS, REFUSALS, Reader

SECONDS = 20
"""Most seconds for one case."""
_NO_CASE = 3
MEGABYTES = 700
"""Most memory for one case, beyond what the process has after it has read an undamaged file."""


def fuzz(name: str, first: int, count: int) -> list[str]:
    """Read ``count`` damaged files, from case ``first`` on; what went wrong."""
    found: list[str] = []
    at = first
    while at < first + count:
        at, problem = _in_process(name, at, first + count - at)
        found += [problem] if problem else []
    return found


def burst() -> list[str]:
    """Open each of the bombs; what went wrong."""
    return [problem for name in BOMBS if (problem := _in_process(name, 0, 1)[1])]


def _in_process(name: str, first: int, count: int) -> tuple[int, str]:
    """Cases until one goes wrong, in a process: the next case, and what went wrong."""
    shared = mmap.mmap(-1, 1 << 16)
    child = os.fork()
    if child == 0:
        try:
            _child(name, first, count, shared)
        except BaseException:
            traceback.print_exc()
            os._exit(_NO_CASE)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    done = int.from_bytes(shared[:8], "little")
    text = shared[16 : 16 + int.from_bytes(shared[8:16], "little")].decode("utf-8", "replace")
    if os.waitstatus_to_exitcode(status) == _NO_CASE:
        raise RuntimeError(f"{name}: an undamaged file cannot be read")
    if not status:
        return first + count, ""
    return done + 1, f"{name} {done}: {text or 'the process ended, status ' + str(os.waitstatus_to_exitcode(status))}"


def _child(name: str, first: int, count: int, shared: mmap.mmap) -> None:
    reader = READERS.get(name) or Reader(lambda: [b""], lambda _, folder: _opened(BOMBS[name], folder))
    seeds = reader.seeds()
    with tempfile.TemporaryDirectory() as outer:
        folder = Path(outer) / "t"
        for seed in seeds if name in READERS else ():  # loads the kernels, which may take longer than a case
            _read(reader, seed, folder)
        for at in range(first, first + count):
            shared[:8] = at.to_bytes(8, "little")
            limit = _megabytes() + MEGABYTES << 20
            resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            try:
                _read(reader, mutated(seeds, random.Random(at)), folder)
            except BaseException:
                text = _told(*sys.exc_info()[1:]).encode()[-6000:]
                shared[8:16] = len(text).to_bytes(8, "little")
                shared[16 : 16 + len(text)] = text
                shutil.rmtree(outer)
                os._exit(2)
            faulthandler.cancel_dump_traceback_later()


def _read(reader: Reader, content: bytes, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        reader.read(content, folder)
    except REFUSALS:
        pass


def _opened(bomb: Callable[[Path], object], folder: Path) -> None:
    """Open a bomb, which has to end in an error that names its file."""
    try:
        bomb(folder)
    except (CorruptTableError, UnsupportedFeatureError) as error:
        if getattr(error, "path", None) is None and not any(name in str(error) for name in NAMED):
            raise AssertionError(f"the file is not named: {error}") from error
    else:
        raise AssertionError("it was read")


def _told(error: BaseException | None, trace: TracebackType | None) -> str:
    """The error, and the last lines of the package that it passed."""
    lines = [
        f"{one.filename.partition('hudi_fast/')[2]}:{one.lineno}"
        for one in traceback.extract_tb(trace)
        if "hudi_fast/" in one.filename
    ]
    return f"{type(error).__name__}: {str(error)[:300]}\n    at {' > '.join(lines[-6:])}"


def _megabytes() -> int:
    """The process's address space."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() >> 20


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("readers", nargs="*")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--bombs", action="store_true")
    given = parser.parse_args()
    if given.bombs:
        print("\n".join(burst()))
        return
    names = given.readers or list(READERS)
    end = time.monotonic() + 60 * given.minutes if given.minutes else None
    first, seen = given.first, set()
    while True:
        for name in names:
            begun = time.monotonic()
            for problem in fuzz(name, first, given.count):
                kind = problem.partition("    at ")[2][-60:] + problem.partition(": ")[2][:12]
                if kind not in seen:
                    seen.add(kind)
                    print(problem, flush=True)
            print(f"-- {name} {first} {time.monotonic() - begun:.1f}s", flush=True)
            if end and time.monotonic() > end:
                return
        first += given.count
        if end is None:
            return


if __name__ == "__main__":
    main()
