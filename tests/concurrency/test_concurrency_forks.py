"""A process with writing threads forks: its children hold no lock of it, and read and write tables themselves."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

import hudi_fast as hf
from tests.support.forks import in_children, started, wait_for
from tests.support.small_tables import options, plain_rows, table_rows

pytestmark = pytest.mark.skipif(
    "COVERAGE_RUN" in os.environ, reason="Where coverage is measured, a child of fork may wait for its locks for ever."
)

TABLES, CHILDREN, KEYS = 3, 12, 100
PATIENT = {**options(), "hoodie.write.lock.wait_time_ms": "60000", "hudi_fast.threads": "2"}
HASTY = {**options(), "hoodie.write.lock.wait_time_ms": "1000"}


def write(path: Path, key: int, ts: int = 1) -> None:
    hf.write(plain_rows([key], ts=ts, text="c"), path, PATIENT)


@pytest.mark.slow
def test_children_that_are_forked_during_writes_keep_no_lock_and_write_too(tmp_path: Path) -> None:
    tables = [tmp_path / f"t{number}" for number in range(TABLES)]
    for table in tables:
        write(table, 0)
        table_rows(table)  # a module that a thread imports while another one forks is locked in the child for ever
    ended, failures = threading.Event(), list[BaseException]()

    def keep_writing(table: Path) -> None:
        try:
            turn = 1
            while not ended.is_set():
                write(table, 0, turn := turn + 1)
        except BaseException as error:
            failures.append(error)

    def write_and_read(number: int) -> None:
        table = tables[number % TABLES]
        assert table_rows(table)
        write(table, KEYS + number)

    threads = [threading.Thread(target=keep_writing, args=(table,)) for table in tables]
    for thread in threads:
        thread.start()
    try:
        children = [started(lambda number=number: write_and_read(number)) for number in range(CHILDREN)]  # type: ignore[misc]
        codes = [wait_for(child, 120) for child in children]
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert failures == []
    assert codes == [0] * CHILDREN
    for number, table in enumerate(tables):
        assert {f"k{KEYS + child:05}" for child in range(number, CHILDREN, TABLES)} <= table_rows(table).keys()


@pytest.mark.slow
def test_a_child_that_lives_on_keeps_no_lock_of_the_table(tmp_path: Path) -> None:
    write(tmp_path / "t", 0)
    inside, go_on = threading.Event(), threading.Event()

    def rows() -> object:
        yield plain_rows([1]).to_batches()[0]
        inside.set()
        assert go_on.wait(60)
        yield plain_rows([2]).to_batches()[0]

    writer = threading.Thread(target=lambda: hf.write(rows(), tmp_path / "t", PATIENT))
    writer.start()
    assert inside.wait(60)
    ended, end = os.pipe()
    with in_children(2, lambda: (os.close(end), os.read(ended, 1))):
        go_on.set()
        writer.join()
        hf.write(plain_rows([3]), tmp_path / "t", HASTY)
        os.close(end)
    os.close(ended)
    assert table_rows(tmp_path / "t").keys() == {f"k0000{key}" for key in range(4)}
