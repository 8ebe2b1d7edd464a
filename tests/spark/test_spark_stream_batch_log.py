"""The batches of a stream in its checkpoint: in order, exclusive, in Spark's layout."""

from __future__ import annotations

import json

import pytest

import hudi_fast as hf
from hudi_fast.reading.incremental.commit_range import StreamOffset
from hudi_fast.spark_api.streaming.changes import BatchLog
from hudi_fast.storage.base import Storage

TIMES = [f"2024013112000{number}000" for number in range(10)]


def log_in(tmp_path):
    return BatchLog(Storage(tmp_path / "log"))


def test_batches_follow_each_other(tmp_path):
    log = log_in(tmp_path)
    assert log.newest() is None
    log.begin(0, StreamOffset(TIMES[1], TIMES[0]))
    first = log_in(tmp_path).newest()
    assert (first.number, first.end, first.before, first.is_done) == (0, StreamOffset(TIMES[1], TIMES[0]), None, False)
    log.finish(0)
    assert log_in(tmp_path).newest().is_done
    log.begin(1, StreamOffset(TIMES[2]))
    second = log_in(tmp_path).newest()
    assert (second.number, second.before, second.is_done) == (1, first.end, False)


def test_files_have_the_form_that_spark_reads(tmp_path):
    log = log_in(tmp_path)
    log.begin(0, StreamOffset(TIMES[1], TIMES[0]))
    log.finish(0)
    version, head, offset = (tmp_path / "log" / "offsets" / "0").read_text().splitlines()
    assert (version, json.loads(offset)) == ("v1", {"offsetCommitTime": TIMES[1], "begin": TIMES[0]})
    assert json.loads(head).keys() == {"batchWatermarkMs", "batchTimestampMs", "conf"}
    assert (tmp_path / "log" / "commits" / "0").read_text().splitlines() == ["v1", '{"nextBatchWatermarkMs":0}']


def test_a_batch_begins_once(tmp_path):
    log_in(tmp_path).begin(0, StreamOffset(TIMES[1]))
    with pytest.raises(hf.ConfigError, match="Another driver has begun batch 0"):
        log_in(tmp_path).begin(0, StreamOffset(TIMES[2]))
    assert log_in(tmp_path).newest().end == StreamOffset(TIMES[1])


def test_a_query_keeps_its_id_and_gives_it_to_the_clock(tmp_path):
    found = log_in(tmp_path).open_query("clock")
    assert log_in(tmp_path).open_query("clock") == found
    for path in ("metadata", "clock/metadata"):
        assert json.loads((tmp_path / "log" / path).read_text()) == {"id": found}


def test_old_batches_are_forgotten(tmp_path):
    log = log_in(tmp_path)
    for number in range(103):
        log.begin(number, StreamOffset(TIMES[0]))
        log.finish(number)
    for folder in ("offsets", "commits"):
        assert {int(path.name) for path in (tmp_path / "log" / folder).iterdir()} == set(range(3, 103))


def test_what_is_no_checkpoint_of_such_a_stream_is_refused(tmp_path):
    offsets = tmp_path / "log" / "offsets"
    offsets.mkdir(parents=True)
    for text, said in (
        ('v1\n{}\n{"logOffset":3}', "has no offsetCommitTime"),
        ('v1\n{}\n{"offsetCommitTime":"1"}\n{"offsetCommitTime":"1"}', "offsets/0 has 2 offsets in the format 'v1'"),
        ('v2\n{}\n{"offsetCommitTime":"1"}', "in the format 'v2'; expected 1 in 'v1'"),
        ("", "has 0 offsets in the format ''"),
        ("v1\n{}\n{", "has an offset that is no JSON"),
    ):
        (offsets / "0").write_text(text)
        with pytest.raises(hf.HudiError, match=said):
            log_in(tmp_path).newest()
    (offsets / "0").rename(offsets / "2")
    (offsets / "2").write_text(f'v1\n{{}}\n{{"offsetCommitTime":"{TIMES[0]}"}}')
    with pytest.raises(hf.CorruptTableError, match="has a later batch than 1"):
        log_in(tmp_path).newest()
    (tmp_path / "log" / "metadata").write_text("{}")
    with pytest.raises(hf.CorruptTableError, match="has no id"):
        log_in(tmp_path).open_query("clock")


def test_other_files_beside_the_offsets_do_not_count(tmp_path):
    log = log_in(tmp_path)
    log.begin(0, StreamOffset(TIMES[0]))
    (tmp_path / "log" / "offsets" / ".0.crc").write_bytes(b"")
    (tmp_path / "log" / "offsets" / ".7.tmp").write_bytes(b"")
    assert log_in(tmp_path).newest().number == 0


def test_a_checkpoint_in_an_object_store(s3_server, tmp_path):
    storage = Storage(s3_server.path("checkpoint"), s3_server.options)
    log = BatchLog(storage)
    assert log.open_query("clock") == BatchLog(storage).open_query("clock")
    log.begin(0, StreamOffset(TIMES[1]))
    with pytest.raises(hf.ConfigError, match="Another driver"):
        BatchLog(storage).begin(0, StreamOffset(TIMES[2]))
    assert not BatchLog(storage).newest().is_done
    log.finish(0)
    assert BatchLog(storage).newest().is_done
