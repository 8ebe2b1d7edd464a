"""Events of S3 as values, and the memory of those whose objects a table has."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudi_fast as hf
from hudi_fast.streamer.sources.s3_events import EventMemory, hashed, object_events, shown_position

HOUR = 3600


def notification(key="in/a.json", name="ObjectCreated:Put", size=3, at="00:00:00", **more):
    """An event notification as S3 sends it."""
    told = {"key": key, "size": size, "eTag": "e", "sequencer": "01", **more}
    record = {
        "eventName": name,
        "eventTime": f"2026-01-01T{at}.000Z",
        "s3": {"bucket": {"name": "b"}, "object": told},
    }
    return json.dumps({"Records": [record]})


# ---- events


def test_a_created_object_has_its_key_decoded_and_other_events_are_left_out():
    (one,) = object_events(notification("in/a+b%2Bc%C3%A9.json"))
    assert (one.bucket, one.key, one.size) == ("b", "in/a b+cé.json", 3)
    assert object_events(notification(name="ObjectRemoved:Delete")) == []
    assert object_events(notification(name="ObjectCreated:CompleteMultipartUpload"))[0].key == "in/a.json"


def test_a_notification_of_sns_has_the_event_inside():
    body = json.dumps({"Type": "Notification", "Message": notification()})
    assert object_events(body) == object_events(notification())


def test_the_test_event_of_s3_has_no_objects():
    assert object_events('{"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "b"}') == []


@pytest.mark.parametrize("change", [{"eTag": "f"}, {"sequencer": "02"}, {"versionId": "v"}, {"key": "in/b.json"}])
def test_an_object_that_is_written_again_is_another_event_and_a_copy_is_not(change):
    first = object_events(notification())[0].identity
    assert object_events(notification())[0].identity == first
    assert object_events(notification(at="00:00:09"))[0].identity == first
    assert object_events(notification(**change))[0].identity != first


def test_without_a_sequencer_the_time_tells_events_apart():
    bodies = [notification(sequencer=None, at=at) for at in ("00:00:00", "00:00:00", "00:00:09")]
    first, same, other = (object_events(body)[0].identity for body in bodies)
    assert first == same != other


@pytest.mark.parametrize(
    "body", ["", "no JSON", "[]", "{}", '{"Records": [{}]}', '{"Message": "x"}', "3", "null", "[" * 100_000]
)
def test_another_message_is_refused(body):
    with pytest.raises(hf.InvalidDataError, match="expected an event notification of S3; found"):
        object_events(body)


# ---- memory


@given(
    st.lists(st.tuples(st.integers(0, 50 * HOUR), st.lists(st.integers(0, 30).map(str), max_size=4)), max_size=8).map(
        sorted
    ),
    st.integers(0, 10 * HOUR),
)
def test_an_event_is_known_for_its_time_at_least_and_for_an_hour_more_at_most(turns, seconds):
    memory, read = EventMemory(), {}
    for now, names in turns:
        memory = EventMemory.of(memory.after(map(hashed, names), now, seconds).text)
        read.update(dict.fromkeys(names, now))
        for name, at in read.items():
            if at + seconds >= now:
                assert hashed(name) in memory
            if at + seconds + HOUR < now:
                assert hashed(name) not in memory


def test_the_text_of_a_memory_has_eleven_bytes_for_an_event_and_is_the_same_for_the_same_events():
    names = [hashed(str(number)) for number in range(3000)]
    text = EventMemory().after(names, 0, 0).text
    assert len(text) < 3000 * 11
    assert text == EventMemory().after(reversed(names), 0, 0).text
    assert EventMemory.of(None).text == "s3-events:"


def test_people_are_shown_the_number_of_events_and_other_positions_as_they_are():
    assert shown_position(EventMemory().after([hashed("a"), hashed("b")], 0, 0).text) == "2 events of S3"
    assert [shown_position(one) for one in (None, "t,0:5", "1795988059013")] == [None, "t,0:5", "1795988059013"]


@pytest.mark.parametrize(
    "position", ["", "1795988059013", "t,0:5", "s3-events:1=AAA", "s3-events:1", "s3-events:1=AAAA"]
)
def test_the_position_of_another_source_is_refused(position):
    with pytest.raises(hf.ConfigError, match=r"is not one of a queue of S3's events\. Give --ignore-checkpoint"):
        EventMemory.of(position)
