"""Small tables without a metadata table; the long form tries more."""

from __future__ import annotations

import pytest

from tests.support import small_tables
from tests.support.tiers import is_long


@pytest.fixture(autouse=True)
def every_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The long form tries each call with all ways to fail."""
    monkeypatch.setattr("tests.faults.calls.EVERY_WAY", is_long(request.config))


@pytest.fixture(autouse=True)
def plain_tables(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A metadata table multiplies the calls of a write; only the tests of it keep one."""
    if request.module.__name__ != "tests.faults.test_faults_metadata":
        monkeypatch.setitem(small_tables.OPTIONS, "hoodie.metadata.enable", "false")
