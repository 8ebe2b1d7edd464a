"""What a running stream tells over HTTP."""

from __future__ import annotations

import json
import time
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

import hudi_fast as hf
from hudi_fast.streamer.tables import Health


def turn(instant="20240101000000000", rows=3, left=5):
    return hf.Turn(instant, rows, 1, 0, "trips,0:9", 0.25, {"trips-0": left})


def asked(port, path):
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


@pytest.fixture
def served():
    health = Health("/lake/trips")
    with health.served(0, "127.0.0.1") as port:
        yield health, port


def test_a_stream_is_ready_after_its_first_turn(served):
    health, port = served
    assert asked(port, "/ready")[0] == 503
    assert asked(port, "/health")[0] == 200
    health.turned(turn())
    status, body = asked(port, "/ready?verbose")
    told = json.loads(body)
    assert (status, told["table"], told["position"], told["lag"]) == (200, "/lake/trips", "trips,0:9", {"trips-0": 5})
    assert told["rows"] == {"inserts": 3, "updates": 1, "deletes": 0}


def test_a_stream_whose_turns_do_not_end_counts_as_dead():
    health = Health("t", stale_seconds=0.05)
    health.turned(turn())
    assert health.answer("/health")[0] == 200
    time.sleep(0.06)
    assert health.answer("/health")[0] == 503
    health.turned(turn(""))
    assert health.answer("/health")[0] == 200


def test_metrics_add_up_and_tell_the_age_of_the_newest_commit(served):
    health, port = served
    for rows, left in ((3, 5), (4, 0)):
        health.turned(turn(rows=rows, left=left))
    health.turned(turn("", rows=0, left=0))
    status, body = asked(port, "/metrics")
    values = dict(line.rsplit(" ", 1) for line in body.splitlines() if not line.startswith("#"))
    assert status == 200
    assert float(values["hudi_fast_stream_turns_total"]) == 2
    assert float(values['hudi_fast_stream_rows_total{kind="inserts"}']) == 7
    assert float(values['hudi_fast_stream_lag{part="trips-0"}']) == 0
    assert 0 <= float(values["hudi_fast_stream_commit_age_seconds"]) < 60


def test_another_path_is_answered_with_the_paths_there_are(served):
    assert asked(served[1], "/") == (404, "The paths are /health, /ready and /metrics.\n")
