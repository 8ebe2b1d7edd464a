"""Freed memory returns to the operating system after a step with many rows."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from hudi_fast.merging.row_buffer import return_freed_bytes, return_freed_memory

STATUS = Path("/proc/self/status")


def private_mib() -> int:
    found = re.search(r"RssAnon:\s+(\d+) kB", STATUS.read_text())
    assert found is not None
    return int(found[1]) >> 10


@pytest.mark.slow("return_freed_bytes-67108864")
@pytest.mark.skipif(not STATUS.exists(), reason="reads the memory of a process from /proc")
@pytest.mark.parametrize(("function", "many"), [(return_freed_memory, 1_000_000), (return_freed_bytes, 64 << 20)])
def test_memory_between_arrays_that_stay_is_returned(function, many):
    arrays = [np.ones(8192) for _ in range(4000)]  # 64 KiB each
    kept = arrays[::100]
    del arrays
    before = private_mib()
    function(many - 1)
    assert private_mib() >= before - 50  # nothing is done
    function(many)
    assert private_mib() <= before - 150
    assert all(array[0] == 1 for array in kept)
