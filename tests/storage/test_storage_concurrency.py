"""How many threads work on files: by cores on local disk, by their sizes on an object store."""

from __future__ import annotations

import os
import threading

import pytest

from hudi_fast.storage.base import Storage
from hudi_fast.storage.concurrency import heaviest_first, in_threads, is_little, reads_at_once

MIB = 1 << 20
CORES = os.cpu_count() or 1


@pytest.mark.parametrize("sizes", [[], [1000] * 100, [500 * MIB] * 100])
def test_local_files_are_read_by_a_thread_per_core(sizes, tmp_path):
    assert reads_at_once(Storage(str(tmp_path)), sizes) == CORES


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], CORES),
        ([1000] * 100, 32),
        ([1000] * 7, max(CORES, 7)),
        ([500 * MIB] * 100, CORES),
        ([4 * MIB] * 100, max(CORES, 8)),
        ([1000] * 100 + [31 * MIB], 32),
        ([1000] * 100 + [30 * MIB] * 2, CORES),
    ],
)
def test_small_files_of_an_object_store_are_read_by_more_threads_than_cores(sizes, expected):
    storage = Storage("s3://bucket/table", {"region": "us-east-1", "anonymous": "true"})
    assert reads_at_once(storage, sizes) == expected


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_answers_are_in_the_order_of_the_items(threads, count):
    assert in_threads(lambda one: one * 10, range(count), threads) == [number * 10 for number in range(count)]


@pytest.mark.parametrize(("threads", "count", "own"), [(1, 4, True), (4, 1, True), (4, 4, False)])
def test_other_threads_work_only_if_there_are_several_threads_and_items(threads, count, own):
    used = in_threads(lambda _: threading.get_ident(), range(count), threads)
    assert (set(used) == {threading.get_ident()}) is own


@pytest.mark.parametrize("threads", [1, 4])
def test_the_first_error_is_raised(threads):
    def fail(number):
        raise ValueError(str(number))

    with pytest.raises(ValueError, match="0"):
        in_threads(fail, range(4), threads)


def test_the_heaviest_unit_begins_first():
    begun = []
    assert heaviest_first([3, 9, 5], lambda number: begun.append(number) or number, 1) == [1, 2, 0]
    assert begun == [1, 2, 0]


@pytest.mark.parametrize(
    ("is_local", "sizes", "expected"),
    [(True, [], True), (True, [1000] * 5, True), (True, [MIB, 1], False), (False, [1000], False), (False, [], False)],
)
def test_one_thread_is_best_for_little_work_on_local_disk(is_local, sizes, expected):
    assert is_little(is_local, sizes) is expected
