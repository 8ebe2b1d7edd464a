"""Weights of the units of a service plan."""

from __future__ import annotations

import pytest

from hudi_fast.services.running import bytes_read


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ({}, 0),
        ({"TOTAL_IO_READ_MB": 2.0}, 2 << 20),
        ({"TOTAL_IO_READ_MB": 1.0, "TOTAL_LOG_FILES_SIZE": 5.0}, (1 << 20) + 5),
    ],
)
def test_a_unit_weighs_the_bytes_that_it_reads(metrics: dict[str, float], expected: float) -> None:
    assert bytes_read(metrics) == expected
