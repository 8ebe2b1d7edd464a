"""Seconds of upgrades and downgrades of tables with a long timeline.

::

    python -m benchmarks.upgrading [--instants 10000] [--folder FOLDER]

Writes a table of three commits in version 6 or 9 and copies the second one's files, which name three partitions, under
other times until the timeline has so many instants, each with its requested, inflight and completed file. The second
table has all but two of them in the archived timeline. ``--folder`` is where the tables are made: some local disks take
ten times as long as others to create a file.
"""

from __future__ import annotations

import argparse
import datetime
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.table.services import TableServices
from hudi_fast.view.table_state import load_state

_OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.metadata.enable": "false",
}
_SOON = {"hoodie.metadata.enable": "false", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
_WAYS = ((5, 6, 8, 9), (9, 8, 6, 5))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure both directions, with an active and with an archived timeline."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instants", type=int, default=10_000)
    parser.add_argument("--folder")
    given = parser.parse_args(arguments)
    for first, *others in _WAYS:
        for archived in (False, True):
            folder = Path(tempfile.mkdtemp(prefix="hudi_fast-upgrading-", dir=given.folder))
            try:
                _make(folder, first, given.instants)
                if archived:
                    TableServices(Storage(folder)).archive(_SOON)
                for version in others:
                    started = time.perf_counter()
                    result = TableServices(Storage(folder)).upgrade(version)
                    what = "archived" if archived else "active"
                    seconds = time.perf_counter() - started
                    print(f"{given.instants} {what} instants, {result.before} to {result.after}: {seconds:.2f} s")
            finally:
                shutil.rmtree(folder)


def _make(folder: Path, version: int, instants: int) -> None:
    options = {**_OPTIONS, "hoodie.write.table.version": str(version)}
    for ts in range(3):
        cities = ["rome", "oslo", "bonn"] * 4
        rows = pa.table({"id": [f"k{number}" for number in range(12)], "ts": [ts] * 12, "city": cities})
        hf.write(rows, folder, options)
    state = load_state(Storage(folder))
    model = state.timeline.writes()[1].requested
    timeline = folder / state.config.timeline_folder
    bodies = {one.name: one.read_bytes() for one in timeline.iterdir() if one.name.startswith(model)}
    begin = datetime.datetime(2020, 1, 1)
    for number in range(instants - 3):
        moment = begin + datetime.timedelta(seconds=20 * number)
        requested, completed = (f"{moment + datetime.timedelta(seconds=more):%Y%m%d%H%M%S}000" for more in (0, 3))
        for name, body in bodies.items():
            _, dot, rest = name.partition(".")
            path = timeline / ((f"{requested}_{completed}" if "_" in name else requested) + dot + rest)
            path.write_bytes(body)
            if version < 8:
                os.utime(path, (moment.timestamp() + 3,) * 2)


if __name__ == "__main__":
    main()
