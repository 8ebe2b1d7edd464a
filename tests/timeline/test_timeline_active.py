import os
import pickle

import pytest

from hudi_fast.errors import CorruptTableError
from hudi_fast.timeline.instants import (
    Instant,
    State,
    Timeline,
    instant_from_ms,
    load_timeline,
    read_instant_body,
    read_requested_body,
)
from tests.timeline.stored_timelines import NAMES, unzip_timeline

DONE = State.COMPLETED


def done(requested, action="commit", completion=None):
    return Instant(requested, action, DONE, completion or requested + "5")


def pending(requested, action="commit"):
    return Instant(requested, action, State.INFLIGHT)


@pytest.mark.parametrize("name", NAMES)
def test_complete_writes_are_those_that_apache_hudi_lists(name, tmp_path):
    stored = unzip_timeline(name, tmp_path)
    timeline = load_timeline(stored.storage, stored.config)
    if stored.config.layout_version == 1:
        found = [i.requested for i in timeline.writes()]
    else:
        found = [f"{i.requested}_{i.completion}" for i in timeline.writes()]
    assert found == sorted(stored.about["completed"])
    assert timeline.last_completed_write == timeline.writes()[-1]
    assert all(timeline.is_completed_or_archived(i.requested) for i in timeline.writes())
    assert not timeline.pending()


@pytest.mark.parametrize("name", NAMES)
def test_every_instant_has_a_body(name, tmp_path):
    stored = unzip_timeline(name, tmp_path)
    for instant in load_timeline(stored.storage, stored.config).completed():
        assert read_instant_body(stored.storage, stored.config, instant)


def test_actions_beside_the_writes(tmp_path):
    stored = unzip_timeline("cow_v9_restored", tmp_path)
    timeline = load_timeline(stored.storage, stored.config)
    assert [i.requested for i in timeline.of_action("savepoint")] == ["20261121054955320"]
    assert [i.requested for i in timeline.of_action("restore")] == ["20261121054959727"]
    assert timeline.find("20261121054955320").action == "commit"
    assert timeline.find("20261121054955320", "savepoint").completion == "20261121054956308"
    assert timeline.completion_of("20261121054955320") == "20261121054956229"
    assert timeline.find("20261121054955320", "clean") is None
    assert timeline.newest_time == "20261121055003614"


def test_a_savepointed_commit_does_not_begin_the_timeline():
    timeline = Timeline((done("1"), done("1", "savepoint"), done("5"), done("6")))
    assert timeline.first_write_requested == "5"
    assert timeline.first_requested == "1"
    assert timeline.is_completed_or_archived("3")
    assert Timeline((done("1"), done("1", "savepoint"))).first_write_requested == "1"


def test_what_is_older_than_the_first_write_is_archived():
    timeline = Timeline((done("2", "clean"), pending("4"), done("5"), pending("7", "compaction")))
    assert timeline.is_completed_or_archived("3")
    assert not timeline.is_completed_or_archived("4")
    assert timeline.is_completed_or_archived("5")
    assert not timeline.is_completed_or_archived("6")
    assert not timeline.is_completed_or_archived("7")
    assert timeline.completion_of("3") is None


def test_a_partition_built_late_does_not_begin_the_timeline_of_a_metadata_table():
    solo, unknown = "00000000000000000", "00000000000000001"
    timeline = Timeline((done(solo, "deltacommit"), done("5", "deltacommit"), done("6", "deltacommit")))
    assert timeline.is_completed_or_archived("3")
    assert timeline.is_completed_or_archived(solo)
    assert not timeline.is_completed_or_archived(unknown)
    assert not Timeline((done(solo, "deltacommit"),)).is_completed_or_archived("3")


def test_nothing_is_archived_in_an_empty_timeline():
    timeline = Timeline(())
    assert not timeline.is_completed_or_archived("0")
    assert (timeline.first_requested, timeline.last_completed_write, timeline.newest_time) == (None, None, None)


def test_pending_instants_by_kind():
    timeline = Timeline(
        (
            pending("1"),
            pending("2", "compaction"),
            pending("3", "logcompaction"),
            pending("4", "clustering"),
            pending("5", "clean"),
            done("6", "deltacommit"),
        )
    )
    assert [i.requested for i in timeline.pending()] == ["1", "2", "3", "4", "5"]
    assert [i.requested for i in timeline.pending_writes] == ["1"]
    assert [i.requested for i in timeline.pending_compactions] == ["2"]
    assert [i.requested for i in timeline.pending_log_compactions] == ["3"]
    assert [i.requested for i in timeline.pending_clusterings] == ["4"]
    assert [i.requested for i in timeline.completed()] == ["6"]
    assert timeline.last_completed_write.requested == "6"


def test_the_highest_state_counts_across_action_names(tmp_path):
    stored = unzip_timeline("cow_v9_clustered", tmp_path)
    timeline = load_timeline(stored.storage, stored.config)
    assert [i.action for i in timeline.instants if i.requested == "20261121054749236"] == ["replacecommit"]
    stored.storage.delete_file(".hoodie/timeline/20261121054749236_20261121054750483.replacecommit")
    timeline = load_timeline(stored.storage, stored.config)
    (clustering,) = timeline.pending_clusterings
    assert (clustering.requested, clustering.state) == ("20261121054749236", State.INFLIGHT)
    assert read_instant_body(stored.storage, stored.config, clustering) == b""
    assert read_requested_body(stored.storage, stored.config, clustering).startswith(b"Obj\x01")


def test_completion_without_a_name_is_the_modification_time(tmp_path):
    stored = unzip_timeline("mor_v6_compacted", tmp_path)
    first = load_timeline(stored.storage, stored.config).writes()[0]
    path = tmp_path / "table" / ".hoodie" / first.file_name
    os.utime(path, ns=(0, 1_795_240_190_123_000_000))
    again = load_timeline(stored.storage, stored.config)
    assert again.completion_of(first.requested) == instant_from_ms(1_795_240_190_123, "LOCAL")


def test_a_legacy_file_in_layout_2_is_complete(tmp_path):
    stored = unzip_timeline("cow_v8_mixed", tmp_path)
    first = load_timeline(stored.storage, stored.config).writes()[0]
    folder = tmp_path / "table" / ".hoodie" / "timeline"
    os.rename(folder / first.file_name, folder / f"{first.requested}.commit")
    os.utime(folder / f"{first.requested}.commit", ns=(0, 1_795_240_190_123_000_000))
    again = load_timeline(stored.storage, stored.config).writes()[0]
    assert again.completion == instant_from_ms(1_795_240_190_123, "LOCAL")
    assert read_instant_body(stored.storage, stored.config, again).startswith(b"Obj\x01")


def test_an_instant_that_vanished_is_named(tmp_path):
    stored = unzip_timeline("cow_v8_mixed", tmp_path)
    first = load_timeline(stored.storage, stored.config).writes()[0]
    stored.storage.delete_file(f".hoodie/timeline/{first.file_name}")
    with pytest.raises(CorruptTableError, match=f"completed commit {first.requested} has no file"):
        read_instant_body(stored.storage, stored.config, first)


def test_a_timeline_can_be_sent_to_workers(tmp_path):
    stored = unzip_timeline("cow_v9_archived", tmp_path)
    timeline = load_timeline(stored.storage, stored.config)
    copy = pickle.loads(pickle.dumps(timeline))
    assert copy == timeline
    assert copy.is_completed_or_archived(timeline.first_write_requested)
    assert timeline.first_requested < timeline.first_write_requested
