"""The harness notices two holders at once, or it would prove nothing."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

import pytest

from tests.locking.contention import assert_exclusive, contend_threads, critical_section


def test_threads_under_a_real_lock_pass(tmp_path: Path) -> None:
    lock = threading.Lock()
    contend_threads(tmp_path, lambda: lock, threads=4, rounds=25)


@pytest.mark.slow
def test_threads_without_a_lock_are_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="FileExistsError"):
        contend_threads(tmp_path, contextlib.nullcontext, threads=4, rounds=500)


def test_a_lost_update_and_an_overlap_are_noticed(tmp_path: Path) -> None:
    critical_section(tmp_path, "one")
    with pytest.raises(AssertionError):
        assert_exclusive(tmp_path, 2)
    assert_exclusive(tmp_path, 1)
    (tmp_path / "intervals-two").write_text("5 9\n8 12\n")
    with pytest.raises(AssertionError):
        assert_exclusive(tmp_path, 1)
