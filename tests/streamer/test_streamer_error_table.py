"""The error table of a stream: each message that cannot be read is there once, and the others are rows."""

from __future__ import annotations

import json

import pytest

import hudi_fast as hf
from tests.support.instrumented_storage import FaultyStorage

KEY = "hoodie.datasource.write.recordkey.field"


@pytest.fixture
def job(tmp_path):
    """Properties of a stream with an error table, and its folder of input."""
    (tmp_path / "in").mkdir()
    return {
        KEY: "id",
        "hoodie.metadata.enable": "false",
        "hoodie.streamer.source.dfs.root": f"{tmp_path}/in",
        "hoodie.errortable.enable": "true",
        "hoodie.errortable.base.path": f"{tmp_path}/errors",
        "hoodie.errortable.target.table.name": "trips_errors",
    }


def put(tmp_path, name, *lines):
    (tmp_path / "in" / name).write_text("\n".join(lines))


def stream(job, tmp_path):
    return hf.Streamer(job, source_class="JsonDFSSource", target_base_path=f"{tmp_path}/t")


def errors(tmp_path):
    rows = hf.read(tmp_path / "errors", columns=["place", "reason", "value"]).sort_by("place").to_pylist()
    return [(row["place"].rpartition("/")[2], row["reason"], row["value"]) for row in rows]


def ids(tmp_path):
    return sorted(hf.read(tmp_path / "t", columns=["id"])["id"].to_pylist())


def test_what_cannot_be_read_is_in_the_error_table_with_place_reason_and_bytes(job, tmp_path):
    put(tmp_path, "1.json", '{"id": 1}', "no JSON", '{"id": 2}', "[3]")
    assert stream(job, tmp_path).turn().inserts == 2
    assert ids(tmp_path) == [1, 2]
    (first, second) = errors(tmp_path)
    assert (first[0], first[2], second[0], second[2]) == ("1.json, object 2", b"no JSON", "1.json, object 4", b"[3]")
    assert "1.json, object 2: expected a JSON object; found 'no JSON'" in first[1]
    assert hf.HudiTable.open(tmp_path / "errors").config.name == "trips_errors"


def test_without_errors_there_is_no_error_table(job, tmp_path):
    put(tmp_path, "1.json", '{"id": 1}')
    stream(job, tmp_path).turn()
    assert not hf.is_table(tmp_path / "errors")


def test_the_log_tells_of_the_error_table_only_if_a_turn_left_something_out(job, tmp_path, caplog):
    caplog.set_level("INFO")
    put(tmp_path, "1.json", '{"id": 1}')
    stream(job, tmp_path).turn()
    assert "error table" not in caplog.text
    put(tmp_path, "2.json", "bad")
    stream(job, tmp_path).turn()
    assert "1 messages are in the error table" in caplog.text


def test_a_turn_that_fails_and_is_repeated_has_each_error_once(job, tmp_path):
    put(tmp_path, "1.json", '{"id": 1}', "bad")
    failing = stream(job, tmp_path)
    failing._storage = FaultyStorage(tmp_path / "t", at=20, kind="before")
    with pytest.raises((hf.HudiError, OSError)):
        failing.turn()
    assert len(errors(tmp_path)) == 1
    assert stream(job, tmp_path).turn().inserts == 1
    assert (ids(tmp_path), len(errors(tmp_path))) == ([1], 1)


def test_a_turn_with_nothing_but_errors_moves_on(job, tmp_path):
    put(tmp_path, "1.json", '{"id": 1}')
    stream(job, tmp_path).turn()
    put(tmp_path, "2.json", "bad", json.dumps([1]))
    stream(job, tmp_path).turn()
    assert stream(job, tmp_path).turn().instant == ""
    assert (ids(tmp_path), len(errors(tmp_path))) == ([1], 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hoodie.errortable.enable": "yes"}, r"errortable\.enable is true or false; got 'yes'"),
        ({"hoodie.errortable.base.path": ""}, r"The error table needs the property hoodie\.errortable\.base\.path"),
    ],
)
def test_wrong_settings_are_refused(job, tmp_path, change, message):
    with pytest.raises(hf.ConfigError, match=message):
        stream(job | change, tmp_path)
