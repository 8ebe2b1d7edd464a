"""Names that a session defines: temporary views over Hudi tables."""

from __future__ import annotations

import pytest

import hudi_fast as hf
from hudi_fast.spark_api.dropin.names import Definition, define, defined, drop_names


@pytest.fixture
def session(spark):
    made = spark.newSession()
    hf.accelerate(made)
    yield made
    hf.accelerate(made, False)


def test_a_session_remembers_its_names(session, spark):
    said = Definition("/t", "", "default")
    define(session, "Rides", said, session.range(3))
    found = defined(session, "rides")
    assert (found.path, found.query, found.database) == ("/t", "", "default")
    assert session.catalog.tableExists("rides")
    other = spark.newSession()
    hf.accelerate(other)
    assert defined(other, "rides") is None
    drop_names(session)
    assert defined(session, "rides") is None
    assert not session.catalog.tableExists("rides")


def test_another_view_in_its_place_counts(session):
    define(session, "rides", Definition("/t", "", "default"), session.range(3))
    session.range(4).createOrReplaceTempView("rides")
    assert defined(session, "rides") is None
    drop_names(session)
    assert session.table("rides").count() == 4


def test_a_name_that_is_taken_is_replaced_only_if_asked(session):
    session.range(4).createTempView("taken")
    with pytest.raises(Exception, match="already exists"):
        define(session, "taken", Definition("/t", "", "default"), session.range(3), replace=False)
    assert defined(session, "taken") is None
