"""Integer runs of ORC against the examples of its specification and against a slow twin."""

from __future__ import annotations

import numpy as np
import pytest
from hudi_fast.kernels.orc_runs import measure_runs, read_runs
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive import orc_runs as naive
from tests.support.examples import examples

PATCHED = "8e132b2107d01e00147028323c46505a646e78828c96a0aab4befce8"
PATCHED_VALUES = [2030, 2000, 2020, 1_000_000, *range(2040, 2200, 10)]
LARGEST = 2**63 - 1


def raw(content: str | bytes) -> np.ndarray:
    return np.frombuffer(bytes.fromhex(content) if isinstance(content, str) else content, np.uint8)


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ("0a2710", [10000] * 5),  # the examples of ORC's specification
        ("5e035ca1ab1edeadbeef", [23713, 43806, 57005, 48879]),
        (PATCHED, PATCHED_VALUES),
        ("c609020222424246", [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]),
    ],
)
def test_runs_are_those_of_the_specification(content: str, values: list[int]) -> None:
    assert read_runs(raw(content), len(values), 2).tolist() == values
    assert measure_runs(raw(content), 2) == (len(values), min(values), max(values), sum(values))
    for wrong in (raw(content)[:-1], raw(content + content)):
        with pytest.raises(ValueError, match=r"cut off|expected"):
            read_runs(wrong, len(values), 2)


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ("0206", [3] * 5),
        ("000d", [-7] * 3),
        ("4e0300010203", [0, -1, 1, -2]),
        (PATCHED, PATCHED_VALUES),
        ("c0130600", [3] * 20),
        ("c0020503", [-3, -5, -7]),
        ("c603010223", [-1, 0, 2, 5]),
    ],
)
def test_signed_runs(content: str, values: list[int]) -> None:
    assert read_runs(raw(content), len(values), 2, is_signed=True).tolist() == values


@pytest.mark.parametrize(
    ("content", "values"),
    [("610007", [7] * 100), ("61ff64", list(range(100, 0, -1))), ("fb020306070b", [2, 3, 6, 7, 11])],
)
def test_runs_of_version_1_are_those_of_the_specification(content: str, values: list[int]) -> None:
    assert read_runs(raw(content), len(values), 1).tolist() == values
    with pytest.raises(ValueError, match="cut off"):
        measure_runs(raw(content)[:-1], 1)


@given(
    runs=st.lists(
        st.tuples(st.integers(3, 130), st.integers(0, LARGEST), st.integers(-128, 127))
        | st.lists(st.integers(0, LARGEST), min_size=1, max_size=128),
        max_size=5,
    ),
    is_signed=st.booleans(),
)
def test_numbers_written_as_version_1_come_back(runs: list, is_signed: bool) -> None:
    stream = naive.first_version(runs, is_signed)
    values = naive.integers(stream, 1, is_signed)
    assert read_runs(raw(stream), len(values), 1, is_signed).tolist() == values
    plain = [one for run in runs if isinstance(run, list) for one in run]
    assert set(plain) <= set(values)


@pytest.mark.slow
@settings(max_examples=examples(1500))
@given(content=st.binary(max_size=200), version=st.sampled_from([1, 2]), is_signed=st.booleans())
def test_any_bytes_are_the_numbers_of_the_slow_twin_or_refused_as_by_it(
    content: bytes, version: int, is_signed: bool
) -> None:
    with np.errstate(over="ignore"):
        try:
            values = naive.integers(content, version, is_signed)
        except ValueError:
            with pytest.raises(ValueError, match="cut off"):
                measure_runs(raw(content), version, is_signed)
            return
    found = measure_runs(raw(content), version, is_signed)
    assert found.numbers == len(values)
    assert read_runs(raw(content), len(values), version, is_signed).tolist() == values
    assert found.least == min(values, default=LARGEST)
    assert found.largest == max(values, default=-LARGEST - 1)
    assert found.total == min(sum(one for one in values if one > 0), LARGEST)


@settings(max_examples=examples(500))
@given(
    head=st.integers(0x80, 0xBF),
    rest=st.binary(min_size=40, max_size=400),
    count=st.integers(0, 12),
    patches=st.integers(0, 8),
)
def test_patches_are_those_of_the_slow_twin(head: int, rest: bytes, count: int, patches: int) -> None:
    """Runs with few numbers and patches, so that many are whole."""
    stream = bytes([head & 0xFE, count, rest[0], rest[1] & 0xE0 | patches]) + rest[2:]
    for size in (len(stream), 20):
        with np.errstate(over="ignore"):
            try:
                values = naive.integers(stream[:size], 2, False)
            except ValueError:
                with pytest.raises(ValueError, match="cut off"):
                    measure_runs(raw(stream[:size]), 2)
                continue
        assert read_runs(raw(stream[:size]), len(values), 2).tolist() == values


def test_sums_stop_at_the_largest_number() -> None:
    stream = naive.first_version([[LARGEST, LARGEST, 5]], False)
    assert measure_runs(raw(stream), 1) == (3, 5, LARGEST, LARGEST)
    assert measure_runs(raw(b""), 2) == (0, LARGEST, -LARGEST - 1, 0)
