import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import CorruptTableError
from hudi_fast.timeline.instants import (
    Instant,
    State,
    comparable_action,
    instant_file_name,
    instant_from_ms,
    ms_from_instant,
    parse_instant_file,
    with_state,
)

T, C = "20260101000000000", "20260101000001000"


@pytest.mark.parametrize(
    ("name", "layout", "expected"),
    [
        (f"{T}.commit.requested", 1, (T, "commit", State.REQUESTED, None)),
        (f"{T}.inflight", 1, (T, "commit", State.INFLIGHT, None)),
        (f"{T}.commit", 1, (T, "commit", State.COMPLETED, None)),
        (f"{T}.replacecommit.inflight", 1, (T, "replacecommit", State.INFLIGHT, None)),
        (f"{T}.compaction.requested", 1, (T, "compaction", State.REQUESTED, None)),
        (f"{T}.inflight", 2, (T, "commit", State.INFLIGHT, None)),
        (f"{T}_{C}.commit", 2, (T, "commit", State.COMPLETED, C)),
        (f"{T}.commit", 2, (T, "commit", State.COMPLETED, None)),
        (f"{T}_{C}.replacecommit", 2, (T, "replacecommit", State.COMPLETED, C)),
        (f"{T}.clustering.inflight", 2, (T, "clustering", State.INFLIGHT, None)),
        (f"{T}_{C}.savepoint", 2, (T, "savepoint", State.COMPLETED, C)),
        (f"{T}.logcompaction.requested", 2, (T, "logcompaction", State.REQUESTED, None)),
        ("20240101120000.deltacommit", 1, ("20240101120000", "deltacommit", State.COMPLETED, None)),
        ("20261121055304669001.compaction.inflight", 1, ("20261121055304669001", "compaction", State.INFLIGHT, None)),
    ],
)
def test_file_names_are_parsed(name, layout, expected):
    found = parse_instant_file(name, layout)
    assert found == Instant(*expected, file_name=name)


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.properties",
        f".{T}.commit.crc",
        f"{T}.commit.crc",
        f"{T}.compaction",
        f"{T}.unknown",
        f"{T}.commit.done",
        f"{T}_{C}.commit.requested",
        f"x{T}.commit",
        f"{T}",
    ],
)
def test_other_files_are_not_instants(name):
    assert parse_instant_file(name, 2) is None


def test_layout_1_knows_no_completion_times():
    assert parse_instant_file(f"{T}_{C}.commit", 1) is None


ACTIONS = "commit deltacommit compaction logcompaction replacecommit clustering clean rollback restore indexing".split()


@given(
    st.sampled_from(ACTIONS),
    st.sampled_from(State),
    st.sampled_from([1, 2]),
    st.from_regex(r"[0-9]{17}", fullmatch=True),
)
def test_a_name_that_is_written_is_read_back(action, state, layout, requested):
    completion = C if layout == 2 and state is State.COMPLETED else None
    instant = Instant(requested, action, state, completion)
    found = parse_instant_file(instant_file_name(instant, layout), layout)
    assert found is not None
    assert (found.requested, found.state, found.completion) == (requested, state, completion)
    expected = comparable_action(action) if state is State.COMPLETED else action
    assert found.action == ("replacecommit" if action == "clustering" and layout == 1 else expected)


def test_a_completed_instant_needs_a_completion_time_for_its_name():
    with pytest.raises(ValueError, match="no completion time"):
        instant_file_name(Instant(T, "commit", State.COMPLETED), 2)
    legacy = Instant(T, "commit", State.COMPLETED, C, f"{T}.commit")
    assert instant_file_name(legacy, 2) == f"{T}.commit"


def test_states_are_ordered():
    assert State.REQUESTED < State.INFLIGHT < State.COMPLETED


@given(st.integers(0, 4_000_000_000_000))
def test_milliseconds_survive_the_way_through_text_in_utc(ms):
    text = instant_from_ms(ms, "UTC")
    assert len(text) == 17
    assert ms_from_instant(text, "UTC") == ms


def test_local_is_the_zone_of_the_process():
    saved = os.environ.get("TZ")
    try:
        os.environ["TZ"] = "Asia/Kolkata"
        time.tzset()
        assert instant_from_ms(1_704_240_000_123, "LOCAL") == "20240103053000123"
        assert ms_from_instant("20240103053000123", "LOCAL") == 1_704_240_000_123
        assert instant_from_ms(1_704_240_000_123, "UTC") == "20240103000000123"
    finally:
        if saved is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = saved
        time.tzset()


def test_short_long_and_special_times():
    assert ms_from_instant("20240103000000", "UTC") == 1_704_240_000_999
    assert ms_from_instant("20240103000000123001", "UTC") == 1_704_240_000_123
    assert ms_from_instant("00000000000002", "UTC") == 2
    assert ms_from_instant("00000000000000001", "UTC") == 1


@pytest.mark.parametrize("text", ["", "yesterday", "2024010312", "20241303000000000"])
def test_what_is_not_a_time_is_refused(text):
    with pytest.raises(CorruptTableError, match="is not an instant time"):
        ms_from_instant(text, "UTC")


def test_completing_changes_the_action_name_of_services():
    requested = Instant(T, "compaction", State.REQUESTED, file_name=f"{T}.compaction.requested")
    assert with_state(requested, State.COMPLETED, C) == Instant(T, "commit", State.COMPLETED, C)
    assert with_state(requested, State.INFLIGHT) == Instant(T, "compaction", State.INFLIGHT)
