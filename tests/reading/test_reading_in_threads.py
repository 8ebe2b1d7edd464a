"""Units that threads read, as one stream of batches."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest

from hudi_fast.reading import scan as in_threads_module
from hudi_fast.reading.scan import in_threads


def batch(number: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": [number]})


def read(unit: int) -> Iterator[pa.RecordBatch]:
    yield batch(10 * unit)
    yield batch(10 * unit + 1)


def numbers(batches: Iterator[pa.RecordBatch]) -> list[int]:
    return [value for one in batches for value in one["n"].to_pylist()]


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("units", [0, 1, 5])
def test_all_batches_of_all_units_are_yielded(units: int, threads: int) -> None:
    found = numbers(in_threads(range(units), read, threads))
    assert sorted(found) == [10 * unit + part for unit in range(units) for part in (0, 1)]
    if threads == 1:
        assert found == sorted(found)


def test_an_error_of_a_thread_is_raised() -> None:
    def failing(unit: int) -> Iterator[pa.RecordBatch]:
        if unit == 3:
            raise OSError("unit 3")
        yield from read(unit)

    with pytest.raises(OSError, match="unit 3"):
        numbers(in_threads(range(6), failing, 2))


def test_a_closed_stream_ends_its_threads_and_reads_no_more() -> None:
    before, started = threading.active_count(), []

    def counted(unit: int) -> Iterator[pa.RecordBatch]:
        started.append(unit)
        yield from read(unit)

    stream = in_threads(range(1000), counted, 2)
    next(stream)
    stream.close()
    assert threading.active_count() == before
    assert len(started) < 20


ENDINGS = {
    "half read": ("", 0),
    "an error": ("raise ValueError('in the midst')", 1),
    "exit": ("raise SystemExit(3)", 3),
}
"""The end of a process, and its exit code."""
HALF_READ = """
import time
import numpy as np, pyarrow as pa, pyarrow.compute as pc
from hudi_fast.reading.scan import in_threads

def read(unit):
    values = pa.array(np.random.default_rng(unit).random(200_000))
    while True:  # the interpreter ends while a thread is inside the library
        yield pa.record_batch([pc.take(values, pc.sort_indices(values)).slice(0, 10)], ["n"])

stream = in_threads(range(8), read, 4)
for _ in range(3):
    next(stream)
reader = pa.RecordBatchReader.from_batches(pa.schema([("n", pa.float64())]), stream)
"""


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_process_that_ends_while_threads_read_ends_as_usual(ending: str) -> None:
    more, code = ENDINGS[ending]
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", HALF_READ + more], capture_output=True, text=True, timeout=60)
        assert done.returncode == code, done.stderr
        assert "terminate" not in done.stderr


def test_a_thread_that_waits_for_a_batch_gets_an_error_when_the_process_ends() -> None:
    """Arrow's scanners read ahead in such a thread, and the process waits for it."""
    go_on = threading.Event()

    def slow(unit: int) -> Iterator[pa.RecordBatch]:
        go_on.wait(30)
        return iter(())

    errors: list[BaseException] = []

    def consume() -> None:
        try:
            next(in_threads(range(2), slow, 2))
        except BaseException as error:
            errors.append(error)

    consumer = threading.Thread(target=consume)
    consumer.start()
    while not any(one._is_awaited for one in in_threads_module._open):
        time.sleep(0.01)
    threading.Timer(0.05, go_on.set).start()
    in_threads_module._close_all()
    consumer.join(10)
    assert not consumer.is_alive()
    assert [type(one) for one in errors] == [RuntimeError]
