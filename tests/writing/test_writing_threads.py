"""How many units of a service are in work at once in one process."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.writing.threads import map_in_threads
from hudi_fast.writing.write_plan import TaskToken
from tests.support.small_tables import options, plain_rows
from tests.writing.plans import drafted

MIB = 1 << 20


@pytest.mark.slow("weights1-2", "weights0-8")
@pytest.mark.parametrize(
    ("weights", "expected"), [([1000.0] * 20, 8), ([31.0 * MIB] * 20, 2), ([1000.0] * 5, 5), ([1000.0], 1)]
)
def test_small_units_of_an_object_store_are_in_work_together(
    weights: list[float], expected: int, tmp_path: Path
) -> None:
    hf.write(plain_rows([0]), tmp_path, options())
    plan = drafted(tmp_path, plain_rows([0]), options())[0]
    far = replace(plan, files=replace(plan.files, threads=2, max_threads=8))
    together, limit, lock = 0, 0, threading.Lock()

    def work(unit: int, token: TaskToken) -> list[Any]:
        nonlocal together, limit
        with lock:
            together += 1
            limit = max(limit, together)
        time.sleep(0.05)
        with lock:
            together -= 1
        return [unit, token.task]

    found = map_in_threads(far, range(len(weights)), weights, work)
    assert sorted(found) == sorted([*range(len(weights))] * 2)
    assert limit == expected
