"""A switched-on session of its own, whose tables are dropped after the test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import hudi_fast as hf

__all__ = ["fast", "listed"]


@pytest.fixture
def fast(spark: Any) -> Iterator[Any]:
    session = spark.newSession()
    hf.accelerate(session)
    session.sql("CREATE DATABASE sql_tests")
    session.sql("USE sql_tests")
    yield session
    session.sql("USE default")
    for one in session.catalog.listTables("sql_tests"):
        if not one.isTemporary:
            kind = "VIEW" if one.tableType == "VIEW" else "TABLE"
            session.sql(f"DROP {kind} IF EXISTS sql_tests.{one.name}")
    session.sql("DROP DATABASE sql_tests CASCADE")
    hf.accelerate(session, False)


def listed(session: Any, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query, sorted."""
    return sorted((tuple(row) for row in session.sql(query).collect()), key=str)
