"""How many slices are read at once: by cores on local disk, by their sizes on an object store."""

from __future__ import annotations

import os

import pytest

from hudi_fast.storage.base import Storage
from hudi_fast.storage.concurrency import reads_at_once

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
