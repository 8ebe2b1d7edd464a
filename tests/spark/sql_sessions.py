"""A switched-on session of its own, whose tables are dropped after the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import hudi_fast as hf

__all__ = ["fast", "listed", "switched_on"]


@pytest.fixture
def fast(spark: Any) -> Iterator[Any]:
    with switched_on(spark, "sql_tests") as session:
        yield session


@contextmanager
def switched_on(spark: Any, database: str) -> Iterator[Any]:
    """A new session that is switched on and uses a database of its own, which is dropped in the end."""
    session = spark.newSession()
    hf.accelerate(session)
    session.sql(f"CREATE DATABASE {database}")
    session.sql(f"USE {database}")
    yield session
    session.sql("USE default")
    for one in session.catalog.listTables(database):
        if not one.isTemporary:
            kind = "VIEW" if one.tableType == "VIEW" else "TABLE"
            session.sql(f"DROP {kind} IF EXISTS {database}.{one.name}")
    session.sql(f"DROP DATABASE {database} CASCADE")
    hf.accelerate(session, False)


def listed(session: Any, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query, sorted."""
    return sorted((tuple(row) for row in session.sql(query).collect()), key=str)
