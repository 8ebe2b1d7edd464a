"""Zones by Hudi's names, and offsets of whole columns against Python's own, one at a time."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import ConfigError
from hudi_fast.keys.zones import MAX_MILLIS, MIN_MILLIS, default_zone, distinct_codes, local_to_utc, utc_offsets, zone

EPOCH = datetime(1970, 1, 1)
MS = timedelta(milliseconds=1)
NAMES = ["UTC", "GMT+5:30", "America/New_York", "America/St_Johns", "Australia/Lord_Howe", "Africa/Monrovia"]
MILLIS = st.lists(st.integers(MIN_MILLIS, MAX_MILLIS) | st.integers(0, 2_000_000_000_000), min_size=1, max_size=20)
# 28 to 30 hours around changes of the clocks in the zones above.
CHANGES = [1710054000000, 1730613600000, 1699075860000, 1712415600000, 63593070000, -2717650800000]
NEAR = st.lists(
    st.tuples(st.sampled_from(CHANGES), st.integers(-100_000_000, 100_000_000)).map(sum), min_size=1, max_size=20
)


@pytest.mark.parametrize(
    ("name", "hours"),
    [
        ("GMT", 0),
        ("UTC", 0),
        ("GMT+8", 8),
        ("GMT+08:00", 8),
        ("GMT-0330", -3.5),
        ("GMT+530", 5.5),
        ("PST", -8),
        ("EST", -5),
        ("IST", 5.5),
        ("MET", 1),
        ("Asia/Tokyo", 9),
    ],
)
def test_names_mean_what_they_mean_in_java(name, hours):
    assert datetime(2024, 1, 10, tzinfo=zone(name)).utcoffset() == timedelta(hours=hours)


def test_old_names_have_daylight_saving():
    assert datetime(2024, 7, 10, tzinfo=zone("EST")).utcoffset() == timedelta(hours=-4)


@pytest.mark.parametrize("name", ["UTC+8", "+08:00", "Mars/Olympus", "GMT+25", "", "../../etc/passwd"])
def test_names_that_java_would_take_for_gmt_are_errors(name):
    with pytest.raises(ConfigError, match="time zone"):
        zone(name)


def test_the_default_zone_follows_the_environment(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert default_zone() == ZoneInfo("Asia/Tokyo")
    monkeypatch.setenv("TZ", "UTC")
    assert default_zone() is UTC


def test_the_default_zone_without_an_environment_is_the_machines(monkeypatch):
    monkeypatch.delenv("TZ", raising=False)
    here = datetime(2024, 7, 1, 12, tzinfo=default_zone())
    assert here.utcoffset() is not None
    assert pickle.loads(pickle.dumps(here)) == here


@given(MILLIS | NEAR, st.sampled_from(NAMES))
def test_offsets_are_those_of_each_instant(millis, name):
    where = zone(name)
    expected = [(EPOCH.replace(tzinfo=UTC) + value * MS).astimezone(where).utcoffset() // MS for value in millis]
    assert utc_offsets(np.array(millis, dtype=np.int64), where).tolist() == expected


@given(MILLIS | NEAR, st.sampled_from(NAMES))
def test_local_times_lead_to_the_instants_that_show_them(millis, name):
    where = zone(name)
    instants, skipped = local_to_utc(np.array(millis, dtype=np.int64), where)
    for local, instant, skip in zip(millis, instants.tolist(), skipped.tolist(), strict=True):
        expected = (EPOCH + local * MS).replace(tzinfo=where).astimezone(UTC)
        assert skip == (expected.astimezone(where).replace(tzinfo=None) != EPOCH + local * MS)
        assert EPOCH.replace(tzinfo=UTC) + instant * MS == expected


def test_a_time_shown_twice_is_the_earlier_one_and_a_skipped_one_is_told():
    local = np.array(
        [int((datetime(2024, 11, 3, 1, 30) - EPOCH) / MS), int((datetime(2024, 3, 10, 2, 30) - EPOCH) / MS)]
    )
    instants, skipped = local_to_utc(local, zone("America/New_York"))
    assert instants[0] - local[0] == 4 * 3_600_000
    assert skipped.tolist() == [False, True]


def test_codes_lead_back_to_the_values():
    values = np.array([5, -1, 5, 7], dtype=np.int64)
    codes, distinct = distinct_codes(values)
    assert distinct[codes].tolist() == values.tolist()
    assert sorted(distinct.tolist()) == [-1, 5, 7]
