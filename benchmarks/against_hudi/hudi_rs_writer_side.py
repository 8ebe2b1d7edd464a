"""The side of hudi-rs 0.6, which also writes: ``--engine hudi_rs`` or ``hudi_rs_simple``; prints one JSON line.

A Rust program (``hudi_rs/src/main.rs``, built by :mod:`hudi_rs_program`) makes the calls and lives for all runs. This
script sends it one call at a time through a pipe, which takes less than a millisecond, and measures time and memory of
the program. A write of a new table loads it; any other upserts by key and keeps the row with the larger ``ts``.

``hudi_rs`` keeps its default, a record index; ``hudi_rs_simple`` has none and finds the rows by reading the keys of the
table. Both write zstd of level 3, which cannot be changed, and keep their default statistics in the metadata table.
"""

from __future__ import annotations

import json
import os
import subprocess

from hudi_rs_program import PROGRAM, hudi_rs_version
from side import Verbs, parse_work, process_tree, timed

INDEXES = {"hudi_rs": "record", "hudi_rs_simple": "simple"}


class Program:
    """The running Rust program."""

    def __init__(self, index: str, cores: int) -> None:
        # hudi-rs starts as many tasks as it finds cores, whatever the number of threads.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
        self._index = index
        self._process = subprocess.Popen(
            [PROGRAM, str(cores)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def processes(self) -> list[int]:
        """The measured processes: the program without this interpreter, which only waits."""
        return process_tree(self._process.pid)

    def write(self, rows: str, table: str, options: dict[str, str]) -> None:
        """Load a new table, or upsert."""
        if os.path.exists(table):
            self._call("upsert", rows, table)
        else:
            self._call("load", rows, table, options["hoodie.datasource.write.table.type"], self._index)

    def read(self, table: str, _: dict[str, str]) -> None:
        """Read every row and drop it."""
        self._call("read", table)

    def keep(self, table: str, folder: str, _: dict[str, str]) -> None:
        """Store every row as one Parquet file in the folder."""
        self._call("keep", table, os.path.join(folder, "rows.parquet"))

    def _call(self, *words: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        if self._process.stdout.readline() != "done\n":
            raise SystemExit(f"{words[0]} failed; the program ended with {self._process.wait()}")

    def close(self) -> None:
        """End the program."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    """Execute the work of the command line."""
    work, own = parse_work(__doc__ or "")
    if work.codec not in ("zstd", "default"):
        raise SystemExit("This side writes zstd only.")
    program = Program(INDEXES[own.engine], work.cores)
    run = timed(work, Verbs(program.read, program.keep, program.write), program.processes)
    program.close()
    versions = {"hudi-rs": hudi_rs_version()}
    print(json.dumps({**run, "versions": versions, "options": {"index": INDEXES[own.engine]}}), flush=True)


if __name__ == "__main__":
    main()
