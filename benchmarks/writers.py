"""Concurrent writers: eight processes that upsert into eight partitions, compared with one process.

Both variants make 24 commits. Each commit upserts 50 000 rows of 8 columns into one partition. With eight writers, each
has two threads. A single writer has one thread per core.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
from hudi_fast.kernels import warm_up

from hudi_fast import HudiTable, write

WRITERS = 8
COMMITS_OF_EACH = 3
ROWS = 50_000
OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "uuid",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    "hoodie.write.num.retries.on.conflict.failures": "2",
}


def _trips(writer: int, ts: int) -> pa.Table:
    rng = np.random.default_rng(writer + 100 * ts)
    columns: dict[str, pa.Array] = {
        "uuid": pa.array([f"key-{writer}-{number:012d}" for number in range(ROWS)]),
        "city": pa.array([f"city-{writer}"] * ROWS),
        "ts": pa.array(np.full(ROWS, ts)),
    }
    columns |= {f"value_{place}": pa.array(rng.random(ROWS)) for place in range(5)}
    return pa.table(columns)


def _prepare(path: str) -> None:
    warm_up()
    for writer in range(WRITERS):
        write(_trips(writer, 0), path, OPTIONS)


def _ready(_: int) -> None:
    warm_up()
    with tempfile.TemporaryDirectory() as folder:
        write(_trips(0, 0).slice(0, 100), folder, OPTIONS)
    time.sleep(0.2)  # gives each process one of these calls


def _upserts(path: str, writer: int, threads: int | None) -> None:
    more = {} if threads is None else {"hudi_fast.threads": str(threads)}
    table = HudiTable.open(path)
    for ts in range(1, COMMITS_OF_EACH + 1):
        table.upsert(_trips(writer, ts), {**OPTIONS, **more})


class Writers:
    """Rows per second of all writers."""

    params = (1, WRITERS)
    param_names = ("writers",)
    unit = "rows/s"
    timeout = 600

    def setup_cache(self) -> str:
        folder = tempfile.mkdtemp(prefix="hudi_fast-asv-")
        _prepare(f"{folder}/table")
        return folder

    def setup(self, folder: str, writers: int) -> None:
        self.path = tempfile.mkdtemp(dir=folder)
        shutil.copytree(f"{folder}/table", self.path, dirs_exist_ok=True)

    def teardown(self, folder: str, writers: int) -> None:
        shutil.rmtree(self.path)

    def track_upserted_rows(self, folder: str, writers: int) -> float:
        with ProcessPoolExecutor(writers) as processes:
            list(processes.map(_ready, range(writers)))
            started = time.perf_counter()
            threads = None if writers == 1 else 2
            jobs = [processes.submit(_upserts, self.path, number, threads) for number in range(WRITERS)]
            for job in jobs:
                job.result()
            seconds = time.perf_counter() - started
        assert HudiTable.open(self.path).to_arrow(columns=["uuid"]).num_rows == WRITERS * ROWS
        return WRITERS * COMMITS_OF_EACH * ROWS / seconds


if __name__ == "__main__":
    bench = Writers()
    made = bench.setup_cache()
    try:
        figures = {}
        for count in Writers.params:
            bench.setup(made, count)
            figures[count] = bench.track_upserted_rows(made, count)
            bench.teardown(made, count)
            print(f"{count} writers: {figures[count]:,.0f} rows/s")
        print(f"{WRITERS} writers: {figures[WRITERS] / figures[1]:.0%} of the rows/s of one writer")
    finally:
        shutil.rmtree(Path(made))
