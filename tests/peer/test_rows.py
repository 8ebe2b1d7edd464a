"""The comparison of rows itself: it passes what means the same and names what does not."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from tests.support.rows import assert_same_rows

BASE = pa.table({"id": ["a", "b", "c"], "n": [1, 2, 3]})


def differences(left, right, **arguments):
    with pytest.raises(AssertionError) as caught:
        assert_same_rows(left, right, **arguments)
    return str(caught.value)


@pytest.mark.parametrize("key", [None, ["id"]])
def test_the_order_of_rows_and_of_columns_means_nothing(key):
    assert_same_rows(BASE, BASE.take([2, 0, 1]).select(["n", "id"]), key=key)


def test_one_instant_in_two_units_or_zones_is_the_same():
    moment = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
    seconds = pa.table({"at": pa.array([moment], pa.timestamp("s", "UTC"))})
    for kind in (pa.timestamp("ns", "UTC"), pa.timestamp("ms", "Europe/Vienna"), pa.timestamp("us", "UTC")):
        assert_same_rows(seconds, seconds.set_column(0, "at", seconds["at"].cast(kind)))


def test_nan_equals_nan_and_map_entries_have_no_order():
    kind = pa.map_(pa.string(), pa.int64())
    left = pa.table({"x": [float("nan")], "m": pa.array([[("a", 1), ("b", 2)]], kind)})
    right = pa.table({"x": [float("nan")], "m": pa.array([[("b", 2), ("a", 1)]], kind)})
    assert_same_rows(left, right)


def test_dictionaries_and_large_strings_are_strings():
    coded = pa.array(["a", "b", "c"]).dictionary_encode()
    assert_same_rows(BASE.set_column(0, "id", coded), BASE.set_column(0, "id", BASE["id"].cast(pa.large_string())))


def test_a_changed_value_is_named_by_key_and_column():
    text = differences(BASE, BASE.set_column(1, "n", pa.array([1, 20, 3])), key=["id"])
    assert "'b' n: 2 != 20" in text
    assert "'a'" not in text


def test_missing_rows_are_named_by_key():
    text = differences(BASE, BASE.slice(0, 2), key=["id"])
    assert "3 on the left, 2 on the right" in text
    assert "1 keys only left: 'c'" in text


def test_a_row_that_comes_twice_is_a_difference():
    text = differences(pa.concat_tables([BASE, BASE.slice(0, 1)]), BASE, key=["id"])
    assert "'a' 2 rows != 1 rows" in text


def test_other_columns_and_other_types_are_named_before_rows_are_looked_at():
    text = differences(BASE.append_column("x", BASE["n"]), BASE.set_column(1, "n", BASE["n"].cast(pa.int32())))
    assert "only left: x" in text
    assert "n: int64 != int32" in text


def test_meta_columns_that_change_with_each_commit_are_ignored_unless_asked_for():
    times = [pa.table({"_hoodie_commit_time": [time], "id": ["a"]}) for time in ("1", "2")]
    assert_same_rows(*times)
    assert "_hoodie_commit_time" in differences(*times, ignore=())
