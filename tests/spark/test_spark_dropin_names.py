"""Names of tables in a session, without a JVM."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.spark.dropin.names import NamedTable, keep_names, named_tables, table_name


@pytest.mark.parametrize(
    ("said", "case_sensitive", "expected"),
    [("Rides", False, "rides"), ("Rides", True, "Rides"), ("`rides_1`", False, "rides_1"), (" r1 ", False, "r1")],
)
def test_a_name_is_letters_digits_and_underscores(said: str, case_sensitive: bool, expected: str) -> None:
    assert table_name(said, case_sensitive) == expected


@pytest.mark.parametrize("said", ["", "12", "a-b", "a b", "``"])
def test_other_text_is_no_name(said: str) -> None:
    with pytest.raises(ConfigError, match="not a table name"):
        table_name(said, False)


@pytest.mark.parametrize("said", ["db.rides", "`my db`.`rides`", "cat.db.rides"])
def test_a_database_is_not_supported(said: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="database"):
        table_name(said, False)


def test_a_session_remembers_its_tables() -> None:
    settings: dict[str, Any] = {}
    conf = SimpleNamespace(get=settings.get, set=settings.__setitem__, unset=settings.pop)
    spark = SimpleNamespace(conf=conf)
    assert named_tables(spark) == {}
    names = {"rides": NamedTable("/t", "100", 7), "other": NamedTable("/o", "", None)}
    keep_names(spark, names)
    assert named_tables(spark) == names
    keep_names(spark, {})
    assert settings == {}
